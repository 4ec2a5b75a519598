"""The engine of directory replication in a thread of its own: no loop waits for its commits.

What the engine answers comes back in a turn, where messages can be sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from falconmq.directory.replication.carrying import Effects, Work
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore

_log = logging.getLogger("falconmq.directory")


class Beside:
    """Does the engine's work in one thread, one piece after the other; the rest is done in turns.

    It is the `run_beside` and the `call_soon` of a carrier.
    """

    def __init__(self, engine: Engine) -> None:
        self.problem: FalconMQError | None = None
        self.after_work: Callable[[], None] | None = None  # in the thread
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "falconmq replication")
        self._is_stopped = False

    def run(self, work: Work, done: Callable[[Effects], None]) -> None:
        if self._is_stopped:
            return

        def finished(future: Future[Effects]) -> None:
            self.call_soon(lambda: done(self._result(future)))

        self._thread.submit(self._work, work).add_done_callback(finished)

    def call_soon(self, action: Callable[[], None]) -> None:
        """Do something in a turn; any thread."""
        if not self._is_stopped:
            self._loop.call_soon_threadsafe(self._in_turn, action)

    async def settled(self) -> None:
        """Return when the work given so far is done; what failed in it is raised."""
        await asyncio.wrap_future(self._thread.submit(_nothing))
        if self.problem is not None:
            raise self.problem

    async def stop(self) -> None:
        self._is_stopped = True
        await asyncio.to_thread(self._thread.shutdown)

    def _work(self, work: Work) -> Effects:
        effects = work()
        if self.after_work is not None:
            self.after_work()
        return effects

    def _result(self, future: Future[Effects]) -> Effects:
        try:
            return future.result()
        except FalconMQError as error:
            self.problem = error
            return ()

    def _in_turn(self, action: Callable[[], None]) -> None:
        def turn(_: QueueManagerCore) -> None:
            action()

        if not self._is_stopped and not self._engine.is_closed:
            try:
                self._engine.run(turn)
            except FalconMQError as error:
                _log.error("replication: event refused: %s", error)


def _nothing() -> None:
    """Behind everything that was to be done."""
