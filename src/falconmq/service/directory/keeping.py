"""Keeping what is known of the directory in the store, while it is known."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final
from uuid import UUID

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.memory import DirectoryMemory
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.service.directory import refreshing
from falconmq.service.directory.registering import Knowledge

KEEP_SECONDS: Final = 30.0


class Keeper:
    """Writes down what was read, and the queues of others that messages wait for."""

    def __init__(self, engine: Engine, memory: DirectoryMemory) -> None:
        self._engine = engine
        self._memory = memory
        self._directory: CachedDirectory | None = None
        self._knowledge: Knowledge | None = None
        self._queues: set[UUID] = set()  # that the store knows

    def begin(self, directory: CachedDirectory | None, knowledge: Knowledge | None) -> None:
        """Another directory, or none; this much of it is in the store already."""
        self._directory, self._knowledge, self._queues = directory, knowledge, set()

    async def keep(self, knowledge: Knowledge | None = None) -> None:
        """Keep this, or what else there is now that was not there before."""
        directory, found = self._directory, knowledge or self._knowledge
        if directory is None or found is None:
            return
        queues = self._engine.look(refreshing.remembered_queues)
        if knowledge is not None or queues.keys() != self._queues:
            self._knowledge, self._queues = found, set(queues)
            rows = [*refreshing.with_memories(directory, found), *queues.values()]
            await asyncio.to_thread(self._memory.keep, rows, found.read_at)

    async def keep_quietly(self) -> None:
        """As far as that is possible now: a full disk has other things to say."""
        with suppress(FalconMQError):
            await self.keep()

    async def keep_always(self) -> None:
        """What is asked for between two readings of the map is kept as well."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            await self.keep_quietly()
