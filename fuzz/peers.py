r"""Fuzz a running daemon over its sockets, as hostile peers would.

`python -m fuzz.peers --exchanges 1000000 --seed 7` starts a daemon on a loopback address of its own
and holds conversations with it, several at a time: valid ones, damaged in fields, bytes and order
(`peer_talk`, `peer_damage`). An exchange is a packet that the daemon has read, by its own log.
After each round it must be alive, answer an honest peer and a ping, have lost nothing of what it
holds, have nothing alarming in its log, and be hardly larger than after the first rounds
(`peer_watch`).

Seed and number make a conversation. What fails names both, and `--seed 7 --replay 4000-4199` holds
these conversations again, one after the other, looking at the daemon behind each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

from falconmq.transport.settings import PORT
from fuzz.peer_damage import damaged, damaged_datagrams
from fuzz.peer_talk import Address, Vocabulary
from fuzz.peer_watch import PING_PORT, Watch
from tests.conformance_wire.sealing import SID_TEXT, user
from tests.conformance_wire.stage import Stage

LINES: Final = 8  # conversations at a time
ROUND: Final = 1500  # conversations between two looks
SOURCES: Final = 12  # addresses that the peers have
WARM_UP: Final = 4  # rounds before the memory must not grow any more
PINGS: Final = 20  # one conversation in so many is one of datagrams
PATIENCE: Final = 120.0  # seconds for the daemon to close what we have ended
_REQUEST: Final = 572  # bytes of the first packet of a caller
_SETTINGS: Final = {"ping_answered": True, "send_insecure_nacks": True, "send_reports": True}


class Line(asyncio.Protocol):
    """A connection on which everything is said at once; what comes back is not read."""

    def __init__(self, pieces: Iterable[bytes], *, after: int = 0) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pieces = pieces
        self._after = after  # bytes that must come before we speak
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._after:
            self._speak()

    def data_received(self, data: bytes) -> None:
        if self._after:
            self._after = max(0, self._after - len(data))
            if not self._after:
                self._speak()

    def _speak(self) -> None:
        for piece in self._pieces:
            if self._transport.is_closing():  # the daemon has heard enough
                return
            self._transport.write(piece)
        try:
            self._transport.write_eof()
        except OSError:  # it has just hung up
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  # it may be reset
        if not self.ended.done():
            self.ended.set_result(None)


class Peers:
    """Hostile peers of one daemon: they call it, and answer when it calls."""

    def __init__(self, stage: Stage, vocabulary: Vocabulary, seed: int) -> None:
        self.said = 0  # packets and datagrams
        self._daemon = stage.daemon.address
        self._listening = stage.known_address
        self._sources = [stage.address() for _ in range(SOURCES)]
        self._vocabulary = vocabulary
        self._seed = seed
        self._called = itertools.count(1)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer the daemon, badly, when it calls with answers of its own."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._answer, self._listening, PORT, reuse_address=True)
        async with server:
            yield

    def _answer(self) -> Line:
        pieces = self._pieces(next(self._called), answers=True)
        return Line(pieces, after=_REQUEST)

    async def hold(self, numbers: Iterable[int]) -> None:
        """Hold these conversations, some at a time, until the daemon has ended them all."""
        left = iter(numbers)

        async def speak() -> None:
            for number in left:
                await self._converse(number)

        async with asyncio.TaskGroup() as group:
            for _ in range(LINES):
                group.create_task(speak())

    async def _converse(self, number: int) -> None:
        source = self._sources[number % SOURCES]
        if number % PINGS == 0:
            self._ping(source, number)
            return
        loop = asyncio.get_running_loop()
        pieces = self._pieces(number)
        _, line = await loop.create_connection(
            lambda: Line(pieces), self._daemon, PORT, local_addr=(source, 0)
        )
        try:
            await asyncio.wait_for(line.ended, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"conversation {number} is not ended by the daemon") from None

    def _pieces(self, number: int, *, answers: bool = False) -> list[bytes]:
        """The bytes of a conversation, as they are written."""
        talk, segment = self.conversation(number, answers=answers)
        self.said += len(talk)
        data = b"".join(talk)
        return [data[at : at + segment] for at in range(0, len(data), segment)]

    def conversation(self, number: int, *, answers: bool = False) -> tuple[list[bytes], int]:
        """The packets of a conversation, and the bytes that are written at a time."""
        random = Random(f"{self._seed}/{number}/{answers}/damage")
        talk = damaged(random, self._vocabulary.conversation(self._seed, number, answers=answers))
        return talk, random.choice((100_000, 100_000, 100_000, 1460, 97))

    def datagrams(self, number: int) -> list[bytes]:
        random = Random(f"{self._seed}/{number}/datagrams")
        return damaged_datagrams(random, self._vocabulary.pings(self._seed, number))

    def _ping(self, source: str, number: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind((source, 0))
            for datagram in self.datagrams(number):
                datagrams.sendto(datagram, (self._daemon, PING_PORT))
                self.said += 1


@contextlib.contextmanager
def attacked() -> Iterator[tuple[Stage, Vocabulary]]:
    """A daemon to attack, and what its peers know of it."""
    stage = Stage(Path(tempfile.mkdtemp(prefix="falconmq-peers-")), **_SETTINGS)
    stage.daemon.sections["history"] = {"events": 10_000}
    stage.daemon.sections["http"] = {"enabled": False}
    with stage:
        stage.daemon.start()
        stage.daemon.create_queue("plain")
        stage.daemon.create_queue("strict", transactional=True)
        stage.daemon.create_queue("signed", authentication=True)
        stage.daemon.create_queue("sealed", privacy_level="BODY")
        known = {"user": SID_TEXT, "certificate": user().pem}
        stage.client.request("POST", "/certificates/register", known)
        name: str = stage.client.queue(stage.path("plain"))["format_name"]
        number = int(name.rsplit("\\", 1)[1], 16)
        keys = stage.client.request("GET", "/keys/export")
        names = ("signed", "sealed", keys, "known")
        yield stage, Vocabulary(Address(stage.guid, "plain", "strict", number, *names))


class Attack:
    """Rounds of conversations with a look at the daemon behind each."""

    def __init__(self, stage: Stage, vocabulary: Vocabulary, seed: int) -> None:
        self.watch = Watch(stage)
        self.peers = Peers(stage, vocabulary, seed)
        self.seed = seed
        self.last = range(0)

    def run(self, exchanges: int, tell: Callable[[Attack], None], size: int = ROUND) -> bool:
        """Until the daemon has read so many packets; False if something went wrong."""
        for number in itertools.count():
            self.last = range(number * size, (number + 1) * size)
            is_well = self._round(self.last)
            if number >= WARM_UP:
                self.watch.settle_memory()
            tell(self)
            if not is_well:
                return False
            if self.watch.read >= exchanges:
                return True
        raise AssertionError

    def replay(self, numbers: Iterable[int]) -> int | None:
        """Hold conversations one by one; the number of the first behind which it is not well."""
        return next((n for n in numbers if not self._round([n])), None)

    def _round(self, numbers: Iterable[int]) -> bool:
        try:
            asyncio.run(self._hold(numbers))
        except (ExceptionGroup, AssertionError, OSError) as error:
            self.watch.problems.append(repr(error))
        return self.watch.look()

    async def _hold(self, numbers: Iterable[int]) -> None:
        async with self.peers.listening():
            await self.peers.hold(numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exchanges", type=int, default=100_000, help="that the daemon has read")
    parser.add_argument("--seed", type=int, default=1, help="to hold other conversations")
    parser.add_argument("--replay", metavar="FIRST-LAST", help="conversations to hold again")
    chosen = parser.parse_args()
    began = time.monotonic()
    with attacked() as (stage, vocabulary):
        attack = Attack(stage, vocabulary, chosen.seed)
        if chosen.replay:
            first, _, last = chosen.replay.partition("-")
            found = attack.replay(range(int(first), int(last or first) + 1))
            return tell_end(attack, began, found is None, stage, found)
        is_well = attack.run(chosen.exchanges, _tell)
        return tell_end(attack, began, is_well, stage, None)


def _tell(attack: Attack) -> None:
    watch = attack.watch
    sys.stdout.write(
        f"\rread {watch.read:,} of {attack.peers.said:,} packets in {watch.sessions:,} sessions, "
        f"{watch.memory_most >> 20} MiB "
    )
    sys.stdout.flush()


def tell_end(attack: Attack, began: float, is_well: bool, stage: Stage, found: int | None) -> int:
    watch = attack.watch
    seconds = time.monotonic() - began
    _tell(attack)
    sys.stdout.write(
        f"\nseed {attack.seed}: {watch.read / seconds:,.0f} exchanges a second, {seconds:.0f} s, "
        f"{watch.processor_seconds:.0f} s of a processor for the daemon; "
        f"memory {watch.memory_first >> 20} MiB when warm, at most {watch.memory_most >> 20} MiB; "
        f"{watch.purged:,} messages had come into queues\n"
    )
    for reason, count in watch.reasons.most_common(25):
        sys.stdout.write(f"{count:8,} sessions: {reason}\n")
    if is_well:
        return 0
    last = attack.last if found is None else range(found, found + 1)
    sys.stdout.write("\n".join(["FAILED", *watch.problems[:20], ""]))
    sys.stdout.write(
        f"to replay: python -m fuzz.peers --seed {attack.seed} --replay {last[0]}-{last[-1]}\n"
    )
    log = Path(".work/fuzz/findings/peers.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(stage.daemon.log, log)
    sys.stdout.write(f"the log of the daemon: {log}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
