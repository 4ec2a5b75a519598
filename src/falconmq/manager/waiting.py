"""Reads that wait for a message (MQDMPR 3.1.2.3, 3.1.6.3, 3.1.7.2.2, 3.1.7.3.1, .4 to .7).

One line per queue, first come first served over all descriptors (DM-A20). A new message feeds every
peeker ahead of the first receiver, then that receiver, who claims it in the same step. Nobody has
to be told to go on, so Release Next Reader (3.1.7.3.7) is the next turn of a loop.

A wait ends once: with a message, when its time is over, when somebody cancels it by its tag, when
its descriptor or cursor is closed, or when the transaction it reads in ends (DM-A61 and ours: what
could it still do?). Whoever ends it puts it on `core.woken`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import (
    Cursor,
    OpenQueueDescriptor,
    Queue,
    ReadResult,
    Transaction,
    WaitingRead,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import PositionState

_FEW_TIMERS: Final = 64


@dataclass(slots=True, eq=False)
class WaitInTransaction(WaitingRead):
    """A read that waits on behalf of a transaction; it ends with it."""

    transaction: Transaction | None = None


@dataclass(slots=True, eq=False)
class ReadTimer:
    """Waiting Message Read Timer (MQDMPR 3.1.2.3). A wait that has ended has cancelled it."""

    core: QueueManagerCore
    read: WaitingRead

    def __call__(self) -> None:
        waiting_message_read_timer_expired(self.core, self.read)  # DM-3.1.2.3-04


def wait_for_new_message(
    core: QueueManagerCore, read: WaitingRead, timeout: float | None
) -> WaitingRead | ReadResult:
    """Put a read in the line, for so many seconds; a result at once if it may not wait.

    Wait For New Message, MQDMPR 3.1.7.3.1.
    """
    queue = read.descriptor.queue
    if queue is None:
        return _refuse(read, MqStatus.QUEUE_NOT_AVAILABLE)  # DM-3.1.7.3.1-02
    if timeout is not None and timeout <= 0:
        return _refuse(read, MqStatus.IO_TIMEOUT)  # DM-3.1.7.3.1-03
    queue.waiting.append(read)  # DM-3.1.7.3.1-04
    if timeout is not None and timeout != inf:  # DM-3.1.2.3-03
        waiting_message_read_timer_start(core, read, timeout)  # DM-3.1.7.3.1-05
    return read


def waiting_message_read_timer_start(
    core: QueueManagerCore, read: WaitingRead, timeout: float
) -> None:
    """Waiting Message Read Timer Start, MQDMPR 3.1.7.3.4."""
    now = core.clock.monotonic()
    read.deadline = now + timeout
    core.timers.after(now, timeout, ReadTimer(core, read))  # DM-3.1.2.3-02
    _forget_cancelled_timers(core)


def waiting_message_read_timer_expired(core: QueueManagerCore, read: WaitingRead) -> None:
    """Waiting Message Read Timer Expired, MQDMPR 3.1.6.3."""
    end_waiting_read(core, read, MqStatus.IO_TIMEOUT)  # DM-3.1.6.3-01


def feed_waiting_reads(core: QueueManagerCore, queue: Queue, position: MessagePosition) -> None:
    """Give a message that became available to those who wait for one (MQDMPR 3.1.7.2.2).

    Waiting Message Read Satisfied, 3.1.7.3.6, for one reader after the other until somebody has
    taken it. A receiver whose transaction has ended takes nothing, and the next one is asked.
    """
    while queue.waiting and position.state is PositionState.AVAILABLE:  # DM-3.1.7.2.2-05
        read = queue.waiting.popleft()  # DM-3.1.7.2.2-08
        # Deleting a message tells subscribers: from here on none of them can end this wait.
        read.result = ReadResult(MqStatus.OK, position)
        read.result = read.complete(position)
        core.woken.append(read)


def end_waiting_read(core: QueueManagerCore, read: WaitingRead, status: MqStatus) -> bool:
    """End a wait without a message: its time ran out, or someone cancelled it.

    Waiting Message Read Timer Stop, MQDMPR 3.1.7.3.5. False if it had ended before.
    """
    if read.result is not None:
        return False
    queue = read.descriptor.queue
    if queue is not None and read in queue.waiting:
        queue.waiting.remove(read)  # DM-3.1.7.3.1-08
    read.failed()
    read.result = ReadResult(status)  # DM-3.1.7.3.1-06
    core.woken.append(read)
    return True


def end_waits_of(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    status: MqStatus = MqStatus.OPERATION_CANCELLED,
) -> None:
    """End the waits of a descriptor that closes, with a tag or without (DM-A61).

    The descriptor must still know its queue.
    """
    if descriptor.queue is not None:
        _end_waits(core, descriptor.queue.waiting, status, lambda r: r.descriptor is descriptor)


def end_waits_of_cursor(core: QueueManagerCore, cursor: Cursor) -> None:
    """End the wait of a cursor that closes (DM-3.1.7.1.2-04)."""
    queue, status = cursor.descriptor.queue, MqStatus.OPERATION_CANCELLED
    if queue is not None:
        _end_waits(core, queue.waiting, status, lambda read: read.cursor is cursor)


def end_waits_of_transaction(core: QueueManagerCore, transaction: Transaction) -> None:
    """End the waits in a transaction that commits, aborts or is prepared: too late for it.

    The documents do not foresee it. The reader is told TRANSACTION_SEQUENCE, as somebody who
    begins a read in such a transaction is.
    """

    def is_in_it(read: WaitingRead) -> bool:
        return isinstance(read, WaitInTransaction) and read.transaction is transaction

    for descriptor in core.descriptors.values():
        if descriptor.queue is not None and descriptor.queue.waiting:
            _end_waits(core, descriptor.queue.waiting, MqStatus.TRANSACTION_SEQUENCE, is_in_it)


def _end_waits(
    core: QueueManagerCore,
    reads: Iterable[WaitingRead],
    status: MqStatus,
    is_meant: Callable[[WaitingRead], bool],
) -> None:
    for read in [read for read in reads if is_meant(read)]:
        end_waiting_read(core, read, status)


def _refuse(read: WaitingRead, status: MqStatus) -> ReadResult:
    read.failed()
    read.result = ReadResult(status)
    return read.result


def _forget_cancelled_timers(core: QueueManagerCore) -> None:
    # A busy reader with a long time-out cancels a timer per message, and all of them would stay
    # until their time. Looking through them whenever their number has doubled costs little.
    heap = core.timers.monotonic
    count = len(heap)
    if count < _FEW_TIMERS or count & (count - 1):
        return
    heap[:] = [timer for timer in heap if not _is_cancelled(timer[2])]
    heapq.heapify(heap)


def _is_cancelled(action: Callable[[], None]) -> bool:
    return isinstance(action, ReadTimer) and action.read.result is not None
