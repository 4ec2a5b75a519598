"""Messages whose time runs out: Time To Be Received Timer (MQDMPR 3.1.2.4, 3.1.7.2.7).

How to think about it. A message that may not wait for ever has a timer. When it ends, the message
goes; if somebody holds it at that moment, its place is noted in `Queue.expired`, and it goes when
it is let go and nobody took it. The timer does not know whether its message is still there: most
are read long before, so timers without a message are swept away when there are many.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from falconmq.manager.core import QueueManagerCore, is_source
from falconmq.manager.journaling import dead_letter
from falconmq.manager.model import OutgoingQueue, Queue, Transaction, TransactionalOperation
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import OperationType, PositionState, QueueType
from falconmq.message import INFINITE
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_header import JOURNAL_NEGATIVE

TIMED: Final = frozenset({QueueType.PRIVATE, QueueType.PUBLIC})  # DM-3.1.2.4-01
_TIMERS_MIN: Final = 1024  # below this nobody minds the timers of messages that are gone


@dataclass(slots=True, eq=False)
class _Expiry:
    """What a timer does when the time of a message runs out."""

    core: QueueManagerCore
    queue: Queue
    lookup_id: int

    def __call__(self) -> None:
        if self.queue.is_deleted:
            return
        position = self.queue.positions.find(self.lookup_id)
        if position is not None:  # DM-3.1.2.4-04
            time_to_be_received_expired(self.core, position)

    @property
    def is_needed(self) -> bool:
        return not self.queue.is_deleted and self.lookup_id in self.queue.positions


# When


def time_to_be_received_deadline(queue: Queue, message: StoredMessage) -> float | None:
    """When a message in this queue expires; None for never (MQDMPR 3.1.2.4).

    Journals and dead-letter queues keep what they have, as an application's own dead-letter queue
    does. A message on its way may not outlive either of its times (QB-A44).
    """
    sent, to_reach_queue, to_be_received = times_of(message)
    if isinstance(queue, OutgoingQueue):
        limit = min(to_be_received, to_reach_queue)
        return None if limit == INFINITE else sent + limit + 1  # QB-3.1.7.1.2-02
    if to_be_received == INFINITE or message.is_dead_letter:  # DM-3.1.2.4-02
        return None
    if queue.queue_type not in TIMED:
        return None
    return sent + to_be_received  # DM-3.1.2.4-01


def times_of(message: StoredMessage) -> tuple[int, int, int]:
    """SentTime, TimeToReachQueue and TimeToBeReceived; nothing is decoded for them."""
    packet = message.decoded
    if packet is None:
        head = message.head
        return head.sent_time, head.time_to_reach_queue, head.time_to_be_received
    user = packet.user
    return user.sent_time, packet.base.time_to_reach_queue, user.time_to_be_received


# The timer


def start_time_to_be_received_timer(core: QueueManagerCore, position: MessagePosition) -> None:
    """Arm the timer of a message that may not wait for ever (MQDMPR 3.1.2.4)."""
    deadline = time_to_be_received_deadline(position.queue, position.message)
    if deadline is None:
        return
    if deadline <= core.clock.time():
        position.queue.expired.add(position.lookup_id)  # DM-3.1.2.4-03
    else:
        arm_expiry(core, position.queue, position.lookup_id, deadline)


def arm_expiry(core: QueueManagerCore, queue: Queue, lookup_id: int, deadline: float) -> None:
    """At `deadline` the message at this place expires, if it is still there."""
    core.timers.at_time(deadline, _Expiry(core, queue, lookup_id))
    armed = len(core.timers.wall)
    if armed < _TIMERS_MIN:
        return
    # Most messages are read long before they expire, and would leave their timers behind. So sweep
    # when as many were added as there are (rounded down to a power of two): it costs each a trice.
    if core.timers.started % (1 << armed.bit_length() - 1) == 0:
        _sweep_timers(core)


def _sweep_timers(core: QueueManagerCore) -> None:
    timers = core.timers.wall
    timers[:] = [timer for timer in timers if _is_needed(timer[2])]  # in place: it may be running
    heapq.heapify(timers)


def _is_needed(action: Callable[[], None]) -> bool:
    return not isinstance(action, _Expiry) or action.is_needed


# The end


def time_to_be_received_expired(core: QueueManagerCore, position: MessagePosition) -> None:
    """Time To Be Received Timer Expired, MQDMPR 3.1.7.2.7; who is held expires when let go."""
    if position.message.is_dead_letter:
        return  # armed after a restart, which does not look so closely
    if position.state is PositionState.AVAILABLE:
        expire(core, position)  # DM-3.1.7.2.7-04
        return
    position.queue.expired.add(position.lookup_id)  # DM-3.1.7.2.7-05
    transaction = position.transaction
    if transaction is not None and _was_sent_in(position.message, transaction, core):
        reason = MessageClass.NACK_RECEIVE_TIMEOUT
        operation = TransactionalOperation(OperationType.DEQUEUE, position, reason=reason)
        transaction.operations.append(operation)  # DM-3.1.7.2.7-03


def _was_sent_in(message: StoredMessage, transaction: Transaction, core: QueueManagerCore) -> bool:
    """Whether the transaction that holds a message is the one that sends it (DM-A31)."""
    if message.transaction is None or not is_source(core, message):
        return False
    return message.wire_transaction_id == transaction.wire_id


def expire(core: QueueManagerCore, position: MessagePosition) -> None:
    """Remove a message nobody read in time; its sender may have asked for a dead letter."""
    queue, reason = position.queue, MessageClass.NACK_RECEIVE_TIMEOUT
    if isinstance(queue, OutgoingQueue):
        agent, reason = core.outgoing_agent, MessageClass.NACK_REACH_QUEUE_TIMEOUT
        if agent is not None and agent.has_arrived(queue, position.lookup_id):
            return  # it reached its queue in time
    if position.message.packet.user.flags & JOURNAL_NEGATIVE:
        dead_letter(core, queue, position.message, reason)  # before it is gone, guide 8.9
    message_position_deleted(core, queue, position, reason)
