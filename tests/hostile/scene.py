"""A daemon to attack, and the questions whether it is well."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx

from falconmq.transport.settings import PORT
from fuzz.peer_watch import Watch, anonymous_bytes
from tests.conformance_wire import packets
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import Stage

HTTP_PORT: Final = 8018
PING_PORT: Final = 3527
MIB: Final = 1 << 20
SECONDS: Final = 60.0  # until an answer must be there


class Scene:
    """One daemon with an HTTP port; whoever comes from this computer may manage it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.daemon = stage.daemon
        self.watch = Watch(stage)
        self.url = f"http://{stage.daemon.address}:{HTTP_PORT}"

    @property
    def memory(self) -> int:
        """Bytes that belong to the daemon."""
        assert self.daemon.process is not None
        return anonymous_bytes(self.daemon.process.pid)

    def is_well(self) -> None:
        """An honest peer is served, nothing is lost, and the log has nothing alarming."""
        assert self.watch.look(), self.watch.problems

    def connect(self, source: str = "", port: int = PORT) -> socket.socket:
        return socket.create_connection(
            (self.daemon.address, port), SECONDS, (source or self.stage.address(), 0)
        )

    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=SECONDS)


@contextlib.contextmanager
def attacked(**sections: dict[str, object]) -> Iterator[Scene]:
    place = Path(tempfile.mkdtemp(prefix="falconmq-hostile-"))
    stage = Stage(place, ping_answered=True)
    stage.daemon.sections["http"] = {"loopback_role": "manage", "port": HTTP_PORT}
    stage.daemon.sections |= sections
    with stage:
        stage.daemon.start()
        yield Scene(stage)


def flooding(play: Play, count: int, packet: bytes, *, varies_at: int = 0) -> None:
    """Send a message so many times, each with another number (or GUID), reading what comes back."""
    data = bytearray(packet)
    batch = 500
    for start in range(0, count, batch):
        pieces = []
        for number in range(start, min(start + batch, count)):
            data[varies_at : varies_at + 4] = (number + 1).to_bytes(4, "little")
            pieces.append(bytes(data))
        play.write(b"".join(pieces))
        while play.read(0.0):
            pass


def all_read(play: Play, count: int) -> None:
    """The daemon has read and acknowledged so many messages of this session, and one more."""
    play.sent = count
    play.write(packets.session_ack(play.header(2)) + play.message().encode())
    while not play.acks or play.acks[-1].session.ack_sequence_number != play.sent & 0xFFFF:
        assert play.read(SECONDS), "not all of them are acknowledged"


def closed_in_the_end(connection: socket.socket) -> bool:
    """Whether the daemon ends a connection; what it says before does not matter."""
    connection.settimeout(SECONDS)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def request(guid: bytes) -> bytes:
    return packets.establish(guid)
