"""Let a server hear what others know of a partition, before it decides instead of a dead one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from falconmq.directory.replication import eras, taking_over
from falconmq.directory.replication.engine import ReplicationEngine
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import PurgeState

_ANSWER_SECONDS: Final = 10.0
_ASKED_TIMES: Final = 3
_LOOK_SECONDS: Final = 0.1

Names = Callable[[Server], Iterable[str]]


async def gather(
    engine: ReplicationEngine, partition: UUID, dead: str
) -> tuple[list[str], list[str]]:
    """Ask all that have a copy; who was asked, and who did not answer."""
    groups: list[Names] = [
        lambda server: taking_over.backups(server, dead),
        lambda server: taking_over.other_primaries(server, dead),
    ]
    await _be_whole(engine, partition, groups)
    asked: list[str] = []
    silent: list[str] = []
    for names_of in groups:
        found, missing = await _ask(engine, partition, names_of)
        asked += found
        silent += missing
    return asked, silent


async def until(look: Callable[[], None], is_enough: Callable[[], bool]) -> None:
    """Look until it is enough, or has taken long."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _ANSWER_SECONDS
    await asyncio.to_thread(look)
    while not is_enough() and loop.time() < end:
        await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.to_thread(look)


async def _ask(
    engine: ReplicationEngine, partition: UUID, names_of: Names
) -> tuple[list[str], list[str]]:
    """Ask some of those that have a copy, and wait for them."""
    names: list[str] = []
    silent: list[str] = []

    def ask(server: Server) -> None:
        names[:] = names_of(server)
        taking_over.ask_around(server, server.state.partitions[partition], silent or names)

    def waiting(server: Server) -> None:
        asked = server.asked_around.get(partition)
        still = set() if asked is None else asked.waiting - asked.ahead
        silent[:] = [name for name in names if name.lower() in still]

    for _ in range(_ASKED_TIMES):  # any message can be lost
        await asyncio.to_thread(engine.command, ask)
        await until(lambda: engine.command(waiting), lambda: not silent)
        if not silent:
            break
    return names, silent


async def _be_whole(engine: ReplicationEngine, partition: UUID, groups: Iterable[Names]) -> None:
    """If the dead server was telling everything anew, let somebody else do that."""
    copy = _Copy(engine, partition)
    await asyncio.to_thread(copy.look)
    if copy.is_whole():
        return
    names: list[str] = []

    def look(server: Server) -> None:
        names[:] = [name for names_of in groups for name in names_of(server)]

    await asyncio.to_thread(engine.command, look)
    for name in names:
        await asyncio.to_thread(copy.fetch_from, name)
        while copy.goes_on() and not copy.is_whole():
            copy.is_stuck = True
            await until(copy.look, lambda: copy.goes_on() or copy.is_whole())
        if copy.is_whole():
            return


class _Copy:
    """How far the own copy of a partition is."""

    def __init__(self, engine: ReplicationEngine, partition: UUID) -> None:
        self.is_stuck = False
        self._engine = engine
        self._partition = partition
        self._state = ""
        self._last = 0

    def is_whole(self) -> bool:
        return self._state == PurgeState.NORMAL.name

    def goes_on(self) -> bool:
        """Whether something came since somebody said that it is stuck."""
        return not self.is_stuck

    def look(self) -> None:
        known = self._engine.status().partitions
        seen = next(each for each in known if each.partition_id == self._partition)
        if seen.last > self._last:
            self.is_stuck = False
        self._last, self._state = seen.last, seen.state

    def fetch_from(self, name: str) -> None:
        def fetch(server: Server) -> None:
            eras.fetch_whole(server, server.state.partitions[self._partition], name)

        self._engine.command(fetch)
        self.look()
        self.is_stuck = False
