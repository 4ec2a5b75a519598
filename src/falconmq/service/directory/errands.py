"""Work beside the loop: the directory is asked in a thread, what follows from it is done in a turn.

An event of the core that needs the directory would make everybody wait for it. So its questions are
asked first, where only a thread waits; the event then finds the answers fresh in the cache.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from falconmq.directory.cached import CachedDirectory
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import directory_server_list_update
from falconmq.service.directory import refreshing

_log = logging.getLogger("falconmq.directory")
Event = Callable[[QueueManagerCore], None]
Work = Callable[[], Coroutine[Any, Any, None]]


class Errands:
    """What a hub has going on beside the loop. It is made in the loop; any thread may ask."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def spawn(self, work: Work) -> None:
        """Do something soon. Turns may run in any thread, and so may this be called."""
        self._loop.call_soon_threadsafe(self._begin, work)

    def raise_beside(self, directory: CachedDirectory, event: Event) -> None:
        """Raise an event when what it is going to ask has been asked."""
        self.spawn(partial(self.raise_event, directory, event))

    async def raise_event(self, directory: CachedDirectory, event: Event) -> None:
        if not directory.is_away:
            questions = self._engine.look(refreshing.questions_of, event)
            await asyncio.to_thread(refreshing.fetch_quietly, directory, questions)
            if event is directory_server_list_update:
                await asyncio.to_thread(directory.fetch_servers, "")
        if self._engine.core.directory is directory:  # else it was left meanwhile
            self._engine.run(event)

    async def stop(self) -> None:
        """Break off what goes on, and begin nothing more."""
        self._is_stopped = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Work) -> None:
        if self._is_stopped:
            return
        task = self._loop.create_task(self._quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _quietly(self, work: Work) -> None:
        try:
            await work()
        except FalconMQError as error:
            _log.warning("directory: %s", error)
