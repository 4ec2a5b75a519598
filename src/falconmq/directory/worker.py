"""Work that may hang, given to somebody who may wait for it.

A `Worker` is one thread that does one job after the other. Whoever asks waits only so long; a job
that takes longer is left to its thread, which ends with it, and the next job gets a new one. So a
server that swallows a question costs one thread, not the one who asked.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class TookTooLongError(Exception):
    """The answer did not come in time."""


class _Job(Generic[_T]):
    """One piece of work, and what came of it."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._work = work
        self._is_done = threading.Event()
        self._result: _T
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - whoever asked gets it
            self._error = error
        self._is_done.set()

    def result(self, seconds: float) -> _T:
        if not self._is_done.wait(seconds):
            raise TookTooLongError
        if self._error is not None:
            raise self._error
        return self._result


class Worker:
    """Does jobs in a thread of its own. Any thread may ask."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._mutex = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job[object] | None] | None = None

    def do(self, work: Callable[[], _T], seconds: float) -> _T:
        """What the work returns or raises; TookTooLongError if it is not done in time."""
        job = _Job(work)
        with self._mutex:
            jobs = self._jobs
            if jobs is None:
                jobs = self._jobs = queue.SimpleQueue()
                threading.Thread(target=_work, args=(jobs,), name=self._name, daemon=True).start()
            jobs.put(job)  # type: ignore[arg-type]
        try:
            return job.result(seconds)
        except TookTooLongError:
            self._leave(jobs)
            raise

    def close(self) -> None:
        """No more jobs; the thread ends when it has done what it has."""
        if self._jobs is not None:
            self._leave(self._jobs)

    def _leave(self, jobs: queue.SimpleQueue[_Job[object] | None]) -> None:
        """Let a thread end behind its last job."""
        with self._mutex:
            if self._jobs is jobs:
                self._jobs = None
                jobs.put(None)


def _work(jobs: queue.SimpleQueue[_Job[object] | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
