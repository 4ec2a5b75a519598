"""Group commit: many callers, one sync.

How to think about it. A sync costs a millisecond whether it covers one message or three hundred. So
there is one writer thread; whoever has a batch leaves it in the queue and goes on, or waits for its
`Commit`. While the writer syncs, more batches arrive; when it is back, everything that is queued
becomes the next commit, in the order it came. One caller pays one sync a message, fifty callers
share one.

Callers that send, wait and send again would fall into two halves that take turns, each waiting for
the sync of the other. So before it starts, the writer gives those it has just woken a moment to
come back: until as many are there as it knows of, but at most a tenth of the time a commit takes.

When a commit fails, the batches behind it may build on what did not happen: they all fail with it,
and so does everything submitted later, until the host has put its memory right and says `resume`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, Self

from falconmq.errors import StoreError
from falconmq.store.interface import Store, WriteBatch
from falconmq.store.measuring import Histogram

DEFAULT_QUEUED_BYTES: Final = 64 << 20
DEFAULT_PATIENCE: Final = 0.1  # of the time that the last commit took
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_BATCHES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

_log = logging.getLogger("falconmq.store")


class Commit:
    """The promise that a batch becomes durable; `is_done` with `error` None when it is."""

    __slots__ = ("_callbacks", "_event", "_mutex", "error", "is_done")

    def __init__(self, mutex: threading.Lock) -> None:
        self.is_done = False
        self.error: BaseException | None = None
        self._mutex = mutex  # the committer's; it guards the two below against the last moment
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[Commit], None]] = _NOBODY

    def wait(self, timeout: float | None = None) -> None:
        """Return when the batch is durable; raise the store's error if it will never be.

        TimeoutError after `timeout` seconds. An interrupt leaves the commit as it is: it goes on.
        """
        event = self._event_of_the_end()
        if event is not None and not event.wait(timeout):
            raise TimeoutError(f"not durable after {timeout} seconds")
        if self.error is not None:
            raise self.error.with_traceback(None)  # shared: without the frames of other waiters

    def add_done_callback(self, callback: Callable[[Commit], None]) -> None:
        """Call back when it is done: in the writer's thread, or here and now if it is already."""
        with self._mutex:
            if not self.is_done:
                self._callbacks = [*self._callbacks, callback]
                return
        callback(self)

    def settle(self, error: BaseException | None) -> None:
        """For committers, with the mutex held: it is done. Without it, `announce` has to follow."""
        self.error = error
        self.is_done = True

    def announce(self) -> None:
        """Wake and call those who wait."""
        if self._event is not None:
            self._event.set()
        for callback in self._callbacks:
            try:
                callback(self)
            except Exception:  # noqa: BLE001  # a listener's mistake must not stop the writer
                _log.exception("callback of a commit failed")

    def _event_of_the_end(self) -> threading.Event | None:
        """Made when somebody waits, for most never do; None if it is over."""
        with self._mutex:
            if self.is_done:
                return None
            if self._event is None:
                self._event = threading.Event()
            return self._event


_NOBODY: Final[list[Callable[[Commit], None]]] = []


class Committer(Protocol):
    """Takes batches in order and says when each is durable."""

    @property
    def error(self) -> BaseException | None:
        """What failed and was not resumed from, if anything."""
        ...

    def submit(self, batch: WriteBatch) -> Commit: ...

    def resume(self) -> None:
        """Take batches again after a failure; the caller has put its memory right."""
        ...

    def close(self) -> None: ...


class GroupCommitter:
    """Commits from a thread of its own. Any thread may submit; the order of the calls counts."""

    def __init__(
        self,
        store: Store,
        *,
        queued_bytes_max: int = DEFAULT_QUEUED_BYTES,
        patience: float = DEFAULT_PATIENCE,
    ) -> None:
        self.groups = 0  # commits of the store
        self.batches = 0  # that were made durable by them
        self.failures = 0  # commits of the store that did not happen
        self.seconds = Histogram(_SECONDS)  # that the commits took
        self.sizes = Histogram(_BATCHES)  # of the groups, in batches
        self._store = store
        self._queued_bytes_max = queued_bytes_max
        self._mutex = threading.Lock()
        self._work = threading.Condition(self._mutex)  # the writer waits here for batches
        self._room = threading.Condition(self._mutex)  # submitters wait here for room
        self._queue: list[tuple[Commit, WriteBatch]] = []
        self._queued_bytes = 0
        self._error: BaseException | None = None
        self._patience = patience
        self._expected = 0  # batches that may come from those who were just told
        self._commit_seconds = 0.0  # the last one took
        self._is_busy = False  # the writer has a group in its hands
        self._is_closed = False
        self._writer = threading.Thread(target=self._run, name="falconmq writer", daemon=True)
        self._writer.start()

    @property
    def error(self) -> BaseException | None:
        return self._error

    @property
    def queued_bytes(self) -> int:
        """What waits for the writer; `submit` blocks when it is at its bound."""
        return self._queued_bytes

    def submit(self, batch: WriteBatch) -> Commit:
        """Queue a batch. An empty one is done when everything before it is."""
        commit = Commit(self._mutex)
        with self._mutex:
            if self._queued_bytes and self._queued_bytes + batch.size > self._queued_bytes_max:
                self._wait_for_room(batch.size)
            if self._is_closed:
                raise _closed()
            if self._error is not None:
                commit.settle(self._error)
            elif batch.operations or self._queue or self._is_busy:
                self._queue.append((commit, batch))
                self._queued_bytes += batch.size
                queued = len(self._queue)
                # At least, not just: a Ctrl-C between append and notify must not leave it asleep.
                if not self._is_busy and (queued == 1 or queued >= self._expected):
                    self._work.notify()
            else:
                commit.settle(None)
        return commit

    def resume(self) -> None:
        with self._mutex:
            self._error = None

    def close(self) -> None:
        """Commit what is queued, then stop. The store stays open: it is the caller's."""
        with self._mutex:
            self._is_closed = True
            self._work.notify()
        if threading.current_thread() is not self._writer:
            self._writer.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait_for_room(self, size: int) -> None:
        """Block until the writer has taken the queue; the writer itself never waits for itself."""
        if threading.current_thread() is self._writer:
            return
        while self._queued_bytes and self._queued_bytes + size > self._queued_bytes_max:
            self._room.wait()

    def _run(self) -> None:
        while group := self._take_group():
            error = self._commit([batch for _, batch in group if batch.operations])
            self._finish([commit for commit, _ in group], error)
            del group  # the writer may now wait for long; the messages need not wait with it

    def _take_group(self) -> list[tuple[Commit, WriteBatch]]:
        """Everything that is queued; empty when the committer is closed."""
        with self._mutex:
            self._is_busy = False
            while not self._queue and not self._is_closed:
                self._work.wait()
            if len(self._queue) < self._expected and not self._is_closed:
                self._work.wait(self._patience * self._commit_seconds)
            group, self._queue = self._queue, []
            self._queued_bytes = 0
            self._is_busy = bool(group)
            self._room.notify_all()
        return group

    def _commit(self, batches: list[WriteBatch]) -> BaseException | None:
        if not batches:
            return None
        started = time.perf_counter()
        try:
            self._store.commit(batches)
        except BaseException as error:  # noqa: BLE001  # whatever it was: those who wait are told
            self.failures += 1
            return error
        self._commit_seconds = time.perf_counter() - started
        self.groups += 1
        self.batches += len(batches)
        self.seconds.add(self._commit_seconds)
        self.sizes.add(len(batches))
        return None

    def _finish(self, group: list[Commit], error: BaseException | None) -> None:
        with self._mutex:
            if error is not None:
                self._error = error
                group += [commit for commit, _ in self._queue]  # they may build on what failed
                self._queue = []
                self._queued_bytes = 0
                self._room.notify_all()
            self._expected = len(group) + len(self._queue)
            for commit in group:
                commit.settle(error)
        for commit in group:
            commit.announce()


class SynchronousCommitter:
    """The same for tests and the simulator: `submit` commits, and no thread is involved."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mutex = threading.Lock()
        self._error: BaseException | None = None
        self._is_closed = False

    @property
    def error(self) -> BaseException | None:
        return self._error

    def submit(self, batch: WriteBatch) -> Commit:
        """Commit a batch. Only an Exception becomes the error of the commit: a crash goes on."""
        if self._is_closed:
            raise _closed()
        commit = Commit(self._mutex)
        if self._error is None and batch.operations:
            try:
                self._store.commit([batch])
            except Exception as error:  # noqa: BLE001  # whatever it was: those who wait are told
                self._error = error
        commit.settle(self._error)
        return commit

    def resume(self) -> None:
        self._error = None

    def close(self) -> None:
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _closed() -> StoreError:
    return StoreError("the committer is closed", hint="the queue manager is shutting down")
