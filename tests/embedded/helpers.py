"""Queue managers for tests: over a store in memory, with or without threads and time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from falconmq import QueueManager
from falconmq.clock import VirtualClock
from falconmq.embedded.engine import Engine
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import Settings
from falconmq.store import MemoryStore, WriteBatch

COMPUTER = "SALES01"
ORDERS = r".\private$\orders"
PATIENCE = 60.0  # seconds until a test gives up


class GatedStore(MemoryStore):
    """A store whose commits wait until the test opens the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.is_waiting = threading.Event()

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        self.is_waiting.set()
        assert self.gate.wait(PATIENCE)
        super().commit(batches)


class Timed:
    """A manager without threads, on a clock that stands still."""

    def __init__(self, store: MemoryStore | None = None, **settings: Any) -> None:
        self.store = MemoryStore() if store is None else store
        self.clock = VirtualClock()
        self.engine = start_engine(
            self.store,
            Settings(**{"computer_name": COMPUTER, **settings}),
            clock=self.clock,
            random=Random(7),
            is_threaded=False,
        )
        self.manager = QueueManager(self.engine)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.engine.run_timers()


def threaded(store: MemoryStore | None = None, **settings: Any) -> QueueManager:
    """A manager over a store in memory, with its committer and housekeeper."""
    return QueueManager(threaded_engine(store, **settings))


def threaded_engine(store: MemoryStore | None = None, **settings: Any) -> Engine:
    chosen = Settings(**{"computer_name": COMPUTER, **settings})
    return start_engine(MemoryStore() if store is None else store, chosen)


class Background:
    """A call in a thread of its own; `result` waits for it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._value: Any = None
        self._error: BaseException | None = None

        def run() -> None:
            try:
                self._value = call()
            except BaseException as error:  # noqa: BLE001  # raised again by `result`
                self._error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(PATIENCE)
        assert self.is_done, "it still waits"
        if self._error is not None:
            raise self._error
        return self._value


def wait_until(is_so: Callable[[], bool]) -> None:
    """Let other threads go on until something is so."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.001)):
        if is_so():
            return
        pause.wait(0.001)
    raise AssertionError("it never came to be")


def waiting_reads(manager: QueueManager) -> int:
    """How many reads wait for a message."""
    return sum(len(queue.waiting) for queue in manager._engine.core.queues.values())
