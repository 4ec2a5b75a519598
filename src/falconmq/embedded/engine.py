"""The host that runs the core: one lock, one committer, one housekeeper.

How to think about it. The core is one thread's code, so every event runs under one lock: a turn.
A turn changes memory, hands its batch to the committer while the lock is still held (so batches are
committed in the order of the turns) and returns the commit that covers it. The caller leaves the
lock and waits for that commit: a thread by sleeping, an event loop by awaiting. While it waits the
other callers take their turns, and the committer makes all their batches durable with one sync.

A read that has to wait leaves a `Wait` with the core, as its tag. The turn that ends the read tells
the `Wait`; the reader then waits for the commit of that turn, like everybody else.

When a commit fails, nothing of it happened, but memory says it did. So the next turn, or whoever
waited for that commit, first waits until the committer is idle and then lets `lifecycle.restore`
read the store again. The same is done when an event was torn in the middle, by Ctrl-C or by a
mistake of ours: memory is never trusted after that.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from falconmq.errors import FalconMQError, MqStatus, QueueError
from falconmq.manager import lifecycle
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor, ReadResult, Transaction, WaitingRead
from falconmq.manager.opening import close_queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import OperationType
from falconmq.manager.storing import message_position_available
from falconmq.manager.waiting import end_waiting_read
from falconmq.store import Commit, Committer, Store, WriteBatch

_LONGEST_SLEEP: Final = 60.0  # seconds; the wall clock may jump while the housekeeper sleeps
_SECONDS_AFTER_FAILURE: Final = 1.0
_P = ParamSpec("_P")
_T = TypeVar("_T")

_log = logging.getLogger("falconmq.embedded")

Event = Callable[Concatenate[QueueManagerCore, _P], _T]


class Wait:
    """The tag of a read: told once when the read ends, together with the commit that covers it."""

    __slots__ = ("commit", "is_told", "told")

    def __init__(self, told: Callable[[], None]) -> None:
        self.told = told  # wakes whoever waits; called under the lock of the engine
        self.is_told = False
        self.commit: Commit | None = None

    def tell(self, commit: Commit | None) -> None:
        if not self.is_told:
            self.is_told = True
            self.commit = commit
            self.told()


class Engine:
    """Runs one core over one store, for any number of threads and event loops."""

    def __init__(
        self,
        core: QueueManagerCore,
        store: Store,
        committer: Committer,
        *,
        housekeeping: bool = True,
    ) -> None:
        self.core = core
        self.store = store
        self._committer = committer
        self._lock = threading.Lock()
        self._in_flight: deque[tuple[Commit, list[MessagePosition]]] = deque()
        self._waits: set[Wait] = set()  # of reads that have not returned
        # Descriptors of queue objects that nobody holds any more; filled by the garbage collector,
        # which may run anywhere, so they are closed in the next turn.
        self.left_open: deque[OpenQueueDescriptor] = deque()
        # For the transport, which has to know when what a turn did is durable.
        self.before_batch: Callable[[], None] | None = None
        self.turn_listener: Callable[[Commit | None], None] | None = None
        self.restore_listener: Callable[[], None] | None = None
        self.submitted_bytes = 0  # of the last batch
        self._is_torn = False  # memory is not what the store and the batches say
        self._is_closed = False
        self._timers_seen = 0
        self._alarm = threading.Event()
        self._housekeeper: threading.Thread | None = None
        if housekeeping:
            self._housekeeper = threading.Thread(
                target=self._housekeep, name="falconmq housekeeper", daemon=True
            )
            self._housekeeper.start()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def committer(self) -> Committer:
        return self._committer

    def run(
        self, event: Event[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> tuple[_T, Commit | None]:
        """One turn: raise an event in the core; its result, and the commit to wait for."""
        with self._lock:
            return self._turn(event, *args, **kwargs)

    def look(self, event: Event[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """A turn that only looks, at what may not be durable yet."""
        with self._lock:
            self._begin()
            return event(self.core, *args, **kwargs)

    def begin_read(
        self,
        wait: Wait,
        event: Event[_P, ReadResult | WaitingRead],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> tuple[ReadResult | WaitingRead, Commit | None]:
        """A turn that reads; a `WaitingRead` has `wait` as its tag. `end_read` has to follow."""
        self._waits.add(wait)
        try:
            with self._lock:
                outcome, commit = self._turn(event, *args, **kwargs)
                if isinstance(outcome, ReadResult):
                    commit = self._covering(outcome, commit)
                return outcome, commit
        except BaseException:
            self._waits.discard(wait)
            raise

    def result_of(self, wait: Wait, outcome: WaitingRead) -> tuple[ReadResult, Commit | None]:
        """How a read ended that waited, after its `Wait` was told."""
        result = outcome.result
        if result is None:  # only a close tells a wait that has not ended
            raise _closed()
        return result, wait.commit

    def end_read(self, wait: Wait) -> None:
        self._waits.discard(wait)

    def give_up(
        self, outcome: ReadResult | WaitingRead, transaction: Transaction | None, *, peek: bool
    ) -> None:
        """The reader went away before it had its message: nobody waits, nothing is lost.

        Interrupted or cancelled while it waited: the wait ends. A message that it was given in the
        meantime goes back to its place, as if it had never been read.
        """
        with self._lock:
            if not self._is_closed:
                self._turn(_give_up, outcome, transaction, peek)

    def failure(self, commit: Commit) -> BaseException:
        """Why a commit failed; memory is right again when this returns."""
        error = commit.error
        assert error is not None
        with self._lock:
            if not self._is_closed:
                self._restore_if_needed()
        if isinstance(error, FalconMQError):
            return copy.copy(error)  # each waiter raises its own, with its own traceback
        return error

    def run_timers(self) -> float | None:
        """Raise what is due; the seconds until there is more to do."""
        with self._lock:
            if self._is_closed:
                return None
            self._turn(QueueManagerCore.run_timers)
            self._timers_seen = self.core.timers.started
            return self.core.next_deadline()

    def close(self) -> None:
        """End every wait, stop the core, let the committer finish, close the store."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                self._stop()
            finally:
                for wait in list(self._waits):
                    wait.tell(None)
        self._alarm.set()
        if self._housekeeper is not None and self._housekeeper is not threading.current_thread():
            self._housekeeper.join()
        try:
            self._committer.close()
        finally:
            self.store.close()

    def _stop(self) -> None:
        if self._is_torn:
            return  # what is in memory is not to be trusted: the store has what is true
        for queue in list(self.core.queues.values()):
            for read in list(queue.waiting):
                end_waiting_read(self.core, read, MqStatus.OPERATION_CANCELLED)
        lifecycle.stop(self.core)
        self._submit()

    def _turn(
        self, event: Event[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> tuple[_T, Commit | None]:
        self._begin()
        try:
            result = event(self.core, *args, **kwargs)
            return result, self._submit()
        except FalconMQError:  # refused; what went before the refusal stands
            self._submit()
            raise
        except BaseException:
            self._is_torn = True
            raise

    def _begin(self) -> None:
        if self._is_closed:
            raise _closed()
        in_flight = self._in_flight
        while in_flight and in_flight[0][0].is_done:
            commit, positions = in_flight.popleft()
            if commit.error is not None:
                self._is_torn = True
            elif positions:
                lifecycle.settle(self.core, positions)
        if self._is_torn:
            self._restore()
        while self.left_open:
            close_queue(self.core, self.left_open.popleft())

    def _submit(self) -> Commit | None:
        core = self.core
        commit = None
        if self.before_batch is not None:
            self.before_batch()
        keeper = None if core.events is None else core.events.keeper
        is_told = keeper is not None and keeper.write(core)
        if core.batch.operations or core.woken:
            batch, positions, woken = core.take_batch()
            if batch.operations:
                self.submitted_bytes = batch.size
                commit = self._committer.submit(batch)
                self._in_flight.append((commit, positions))
                if keeper is not None and is_told:
                    commit.add_done_callback(keeper.stored)
            for read in woken:
                if isinstance(read.tag, Wait):
                    read.tag.tell(self._covering(read.result, commit))
        if self.turn_listener is not None:
            self.turn_listener(commit)
        if core.timers.started != self._timers_seen:
            self._timers_seen = core.timers.started
            self._alarm.set()
        return commit

    def _covering(self, result: ReadResult | None, commit: Commit | None) -> Commit | None:
        """The commit before which a result must not be shown, if there is one."""
        position = None if result is None else result.position
        if commit is not None or position is None:
            return commit
        is_pending = position.is_written and not position.is_stored
        return self._in_flight[-1][0] if is_pending and self._in_flight else None

    def _restore_if_needed(self) -> None:
        """Somebody saw a commit fail: whoever comes first puts memory right."""
        if self._is_torn or any(c.is_done and c.error is not None for c, _ in self._in_flight):
            self._restore()

    def _restore(self) -> None:
        self._is_torn = True  # until all of this is done
        with contextlib.suppress(Exception):  # those behind a failed commit fail with it
            self._committer.submit(WriteBatch()).wait()  # an empty one waits for all before it
        self._in_flight.clear()
        events = self.core.events
        if events is not None:
            events.failed(self.core, self._committer.error)
        lifecycle.restore(self.core)
        self._committer.resume()
        if events is not None:
            events.restored()
        if self.restore_listener is not None:
            self.restore_listener()
        self._is_torn = False
        self._submit()

    def _housekeep(self) -> None:
        while True:
            self._alarm.clear()
            try:
                seconds = self.run_timers()
            except Exception:  # noqa: BLE001  # memory is torn: the next turn restores it
                _log.exception("timers failed")
                seconds = _SECONDS_AFTER_FAILURE
            if self._is_closed:
                return
            self._alarm.wait(_LONGEST_SLEEP if seconds is None else min(_LONGEST_SLEEP, seconds))


def _give_up(
    core: QueueManagerCore,
    outcome: ReadResult | WaitingRead,
    transaction: Transaction | None,
    peek: bool,
) -> None:
    if isinstance(outcome, WaitingRead):
        end_waiting_read(core, outcome, MqStatus.OPERATION_CANCELLED)
    result = outcome.result if isinstance(outcome, WaitingRead) else outcome
    if result is not None and result.position is not None and not peek:
        _put_back(core, result.position, transaction)


def _put_back(
    core: QueueManagerCore, position: MessagePosition, transaction: Transaction | None
) -> None:
    queue = position.queue
    if queue.is_deleted:
        return  # with all its messages
    if transaction is not None:
        for operation in transaction.operations:
            if operation.position is position and operation.kind is OperationType.DEQUEUE:
                transaction.operations.remove(operation)
                message_position_available(core, queue, position)
                return
        return
    if position.lookup_id in queue.positions:
        return  # its deletion failed, and it is there again already
    again = MessagePosition(queue, position.lookup_id, position.message)
    queue.positions.link(again)
    core.used_bytes += again.size
    message_position_available(core, queue, again)


def _closed() -> QueueError:
    return QueueError(
        "the queue manager was closed",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="use it inside its `with` block, or open the data directory again",
    )
