"""Putting messages into queues, moving them, taking them out (MQDMPR 3.1.7.1.9, .16, .27, 3.1.7.2).

Two events carry everything: a place becomes available, a place is deleted. All other code raises
one of them; whoever has to know (the transport, acknowledgements, the event log) subscribes. The
reason of a deletion tells them how the message left:

    ACK_RECEIVE             somebody read it
    NACK_Q_PURGED           its queue was purged
    NACK_Q_DELETED          its queue was deleted
    NACK_RECEIVE_TIMEOUT    nobody read it in time
    NACK_RECEIVE_REJECTED   its reader refused it

A message that moves to another queue, and one whose sender's transaction aborts, leave without a
word: no acknowledgement may tell of them.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, cast

from falconmq.errors import MqStatus, NameSyntaxError, QueueError, TransactionError
from falconmq.manager.arrivals import SEQUENCE, SEQUENCE_BITS, note_arrival
from falconmq.manager.core import (
    KILOBYTE,
    QueueManagerCore,
    message_key,
    next_number,
)
from falconmq.manager.directory_objects import UNLIMITED
from falconmq.manager.events import EventKind
from falconmq.manager.model import (
    OpenQueueDescriptor,
    OutgoingQueue,
    Queue,
    Transaction,
    TransactionalOperation,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import EnqueueStatus, OperationType, PositionState, QueueType
from falconmq.manager.waiting import feed_waiting_reads
from falconmq.message import INFINITE, Message, is_expired
from falconmq.names import MultipleElementFormatName, PathName, SingleFormatName
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE

PRIORITY_SHIFT: Final = SEQUENCE_BITS
PRIORITY_MAX: Final = 7
_TIMED: Final = frozenset({QueueType.PRIVATE, QueueType.PUBLIC})
_TIMERS_MIN: Final = 1024  # below this nobody minds the timers of messages that are gone


def enqueue_message(
    core: QueueManagerCore,
    queue: Queue,
    message: StoredMessage,
    transaction: Transaction | None = None,
    *,
    unlimited: bool = False,
) -> EnqueueStatus:
    """Put a message into a queue; in a transaction it stays invisible until the commit.

    Enqueue Message, MQDMPR 3.1.7.1.9. `unlimited` is for the few bytes of a FinalAck: without them
    its sender would keep the message for ever, and they go out by themselves.
    """
    if transaction is not None:
        check_not_prepared(transaction)
    size = message.size
    settings = core.settings
    is_full = core.is_throttled or _exceeds(core.used_bytes + size, settings.quota_kilobytes)
    if is_full and not unlimited:
        return EnqueueStatus.MANAGER_QUOTA  # DM-3.1.7.1.9-04, DM-3.1.7.1.9-05
    if _exceeds(queue.total_bytes + size, queue.properties.quota_kilobytes):
        return EnqueueStatus.QUEUE_QUOTA  # DM-3.1.7.1.9-06
    sent, to_reach_queue, _ = _times(message)
    if is_expired(int(core.clock.time()), sent, to_reach_queue):
        return EnqueueStatus.TIMED_OUT  # DM-3.1.7.1.9-07
    position = link_message(core, queue, message)
    if transaction is None:
        message_position_available(core, queue, position)  # DM-3.1.7.1.9-16
    else:
        position.transaction = transaction  # it stays locked: DM-3.1.7.1.9-15
        operation = TransactionalOperation(OperationType.ENQUEUE, position)
        transaction.operations.append(operation)  # DM-3.1.7.1.9-14
    return EnqueueStatus.OK


def enqueue_message_to_open_queue(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    messages: list[StoredMessage],
    transaction: Transaction | None = None,
) -> EnqueueStatus:
    """Put a message into the queue, or one copy each into the queues, of a descriptor.

    Enqueue Message To An Open Queue, MQDMPR 3.1.7.1.27. `messages` are the copies, in the order of
    the elements, each with its own destination (`address_copies`); a single queue takes the only
    one. The first refusal ends it: copies that went before stay, unless a transaction takes them
    back.
    """
    targets = descriptor.children if descriptor.is_multiple else [descriptor]
    for target, message in zip(targets, messages, strict=True):
        if target.queue is None:
            raise QueueError(
                f"{target.format_name} was deleted while it was open",
                status=MqStatus.QUEUE_DELETED,
                hint="close it, and open the queue again if it was created anew",
            )
        status = enqueue_message(core, target.queue, message, transaction)
        if status is not EnqueueStatus.OK:
            return status  # DM-3.1.7.1.27-05
    return EnqueueStatus.OK  # DM-3.1.7.1.27-06


def address_copies(descriptor: OpenQueueDescriptor, message: Message) -> list[Message]:
    """The copies of a message that go to the queues of a descriptor, each with its destination."""
    if not descriptor.is_multiple:
        return [_addressed(message, descriptor, message.destinations)]
    name = descriptor.format_name
    assert isinstance(name, MultipleElementFormatName)
    names = name.elements  # DM-3.1.7.1.27-03
    return [_addressed(message, child, names) for child in descriptor.children]


def _addressed(
    message: Message, target: OpenQueueDescriptor, destinations: tuple[SingleFormatName, ...]
) -> Message:
    addressed = copy.copy(message)
    addressed.destination = cast("SingleFormatName", target.format_name)  # DM-3.1.7.1.27-04
    addressed.destinations = destinations
    return addressed


def link_message(core: QueueManagerCore, queue: Queue, message: StoredMessage) -> MessagePosition:
    """Give a message the next place of a queue, locked until someone makes it available."""
    message.arrival_time = core.clock.time()  # DM-3.1.7.1.9-18
    message.arrival_number = 0
    sequence = next_number(core, core.sequential_id) & SEQUENCE  # DM-3.1.7.1.9-09
    lookup_id = (PRIORITY_MAX - message.priority) << PRIORITY_SHIFT | sequence  # DM-A02
    return link_position(core, MessagePosition(queue, lookup_id, message))


def link_position(core: QueueManagerCore, position: MessagePosition) -> MessagePosition:
    """Put a place that has its number into its queue: its bytes count, its time runs."""
    position.queue.positions.link(position)
    core.used_bytes += position.size
    start_time_to_be_received_timer(core, position)  # DM-3.1.7.1.9-13
    return position


def message_position_available(
    core: QueueManagerCore, queue: Queue, position: MessagePosition
) -> None:
    """A message can be read: store it, tell the subscribers, feed those who wait (3.1.7.2.2).

    The subscribers come first: a reader who waits may take the message away, and nobody should hear
    of that before hearing that it came.
    """
    is_new = position.message.arrival_number == 0
    if is_new and isinstance(queue, OutgoingQueue):
        _number(core, queue, position)
    if not _make_readable(core, position):
        return
    if is_new and core.events is not None:
        is_outgoing = isinstance(queue, OutgoingQueue)
        _record(core, EventKind.QUEUED if is_outgoing else EventKind.ARRIVED, queue, position)
    if is_new and queue.queue_type in _TIMED:
        _journal_local_delivery(core, position.message)
        for subscriber in core.arrived_subscribers:
            subscriber(queue, position)
    for subscriber in core.available_subscribers:
        subscriber(queue, position)
    feed_waiting_reads(core, queue, position)


def _number(core: QueueManagerCore, queue: OutgoingQueue, position: MessagePosition) -> None:
    """Give a transactional message of ours its place in the stream; routed ones have theirs.

    If there is no transport (an embedded manager, or one that is starting), it gets it later.
    """
    agent, message = core.outgoing_agent, position.message
    if message.transaction is None or not _is_source(core, message):
        return
    if agent is None:
        message.needs_number = True
    else:
        agent.number(queue, position)


def _make_readable(core: QueueManagerCore, position: MessagePosition) -> bool:
    """Unlock, number and store a place; False if its time had run out and it is gone again."""
    queue = position.queue
    if position.state is not PositionState.AVAILABLE:
        queue.positions.release(position)
    message = position.message
    if message.arrival_number == 0:
        message.arrival_number = _next_arrival_number(core, position)
    if message.arrival_number != position.lookup_id & SEQUENCE and queue.keeps_arrivals:
        note_arrival(queue.positions, message.arrival_number, position.lookup_id)
    store_position(core, position)
    if position.lookup_id in queue.expired:
        expire(core, position)  # DM-3.1.7.2.7-05
        return False
    return True


def _next_arrival_number(core: QueueManagerCore, position: MessagePosition) -> int:
    """Count messages as they become readable, which in a transaction is later than they come.

    The numbers are those of SequentialID: a message that is readable at once has the number of its
    lookup identifier, any other gets one of its own. So they grow, are never given twice, and a
    restart needs no look at the messages to go on.
    """
    counter = core.sequential_id
    is_newest = position.lookup_id & SEQUENCE == counter.value & SEQUENCE
    number = counter.value if is_newest else next_number(core, counter)
    queue = position.queue
    queue.arrival_number = number
    for watcher in queue.arrival_watchers:
        watcher()
    return number


def message_position_deleted(
    core: QueueManagerCore, queue: Queue, position: MessagePosition, reason: int
) -> None:
    """A message leaves its queue, for `reason` (a message class): MQDMPR 3.1.7.2.1."""
    remove_position(core, position)
    if core.events is not None:
        source, ordinal = position.message.identity
        core.events.left(
            source, ordinal, queue, position.lookup_id, position.size, reason, position.message
        )
    if reason == MessageClass.ACK_RECEIVE:
        journal = _target_journal(queue)
        if journal is not None:
            store_copy(core, journal, position.message)  # DM-A60
    for subscriber in core.deleted_subscribers:
        subscriber(queue, position, reason)


def move_message(
    core: QueueManagerCore,
    position: MessagePosition,
    target: Queue,
    transaction: Transaction | None = None,
) -> None:
    """Move a message to another queue of this queue manager (Move Message, MQDMPR 3.1.7.1.16).

    A subqueue keeps the lookup identifier, any other queue gives a new one (DM-A33). Nobody is
    told that the message left: it was neither read nor lost, so no acknowledgement may go out.
    """
    if transaction is None:
        complete_move(core, position, target)
        return
    check_not_prepared(transaction)
    if target.queue_type is QueueType.SYSTEM:  # DM-3.1.7.1.16-02
        raise TransactionError(
            f"a transaction cannot move messages to {target.path_name}",
            status=MqStatus.TRANSACTION_USAGE,
            hint="journals and dead-letter queues are filled by the queue manager alone",
        )
    if position.state is PositionState.AVAILABLE:
        position.queue.positions.hold(position)  # DM-3.1.7.1.16-07
    position.transaction = transaction
    operation = TransactionalOperation(OperationType.MOVE, position, target)
    transaction.operations.append(operation)


def complete_move(core: QueueManagerCore, position: MessagePosition, target: Queue) -> None:
    """The move itself, now or when its transaction commits."""
    source, message = position.queue, position.message
    is_system = target.queue_type is QueueType.SYSTEM
    remove_position(core, position)  # DM-3.1.7.1.16-03
    if is_system and not _has_room(target, message):
        return  # DM-3.1.1.12-53, DM-3.1.1.12-57
    message = replace(message, move_count=message.move_count + 1)
    if core.events is not None:
        _record(core, EventKind.MOVED, source, position, str(target.path_name.with_computer(".")))
    if _same_family(source, target):
        message.arrival_number = 0
        target.moved_in += 1
        if position.lookup_id & SEQUENCE == core.sequential_id.value & SEQUENCE:
            next_number(core, core.sequential_id)  # or it would have its old arrival number again
        moved = link_position(core, MessagePosition(target, position.lookup_id, message))
    else:
        moved = link_message(core, target, message)
    if is_system:
        _deliver_unnoticed(core, moved)
    else:
        message_position_available(core, target, moved)


def store_copy(core: QueueManagerCore, target: Queue, message: StoredMessage) -> bool:
    """Keep a copy in a journal or dead-letter queue; False if its quota has no room for it."""
    if not _has_room(target, message):
        return False
    position = link_message(core, target, replace(message))
    if core.events is not None:
        is_dead = message.is_dead_letter
        kind = EventKind.DEAD_LETTERED if is_dead else EventKind.JOURNALED
        _record(core, kind, target, position, reason=message.dead_letter_reason)
    _deliver_unnoticed(core, position)
    return True


def _record(
    core: QueueManagerCore,
    kind: EventKind,
    queue: Queue,
    position: MessagePosition,
    detail: str = "",
    *,
    reason: int = 0,
) -> None:
    assert core.events is not None
    source, ordinal = position.message.identity
    message, size = position.message, position.size
    core.events.record(
        kind, source, ordinal, queue, position.lookup_id, size, reason, detail, message
    )


def _deliver_unnoticed(core: QueueManagerCore, position: MessagePosition) -> None:
    """Make a message readable without telling the subscribers (DM-3.1.7.1.16-06).

    Who waits for one gets it all the same (DM-A63).
    """
    _make_readable(core, position)
    feed_waiting_reads(core, position.queue, position)


def store_position(core: QueueManagerCore, position: MessagePosition) -> None:
    """Let the store have a recoverable message that became readable."""
    if position.is_written or not position.message.is_recoverable:
        return
    position.is_written = True
    _write(core, position)


def store_again(core: QueueManagerCore, position: MessagePosition) -> None:
    """Let the store have what changed beside the packet. Memory is ahead until it is durable."""
    if position.is_written:
        position.is_stored = False
        _write(core, position)


def _write(core: QueueManagerCore, position: MessagePosition) -> None:
    key = message_key(position.queue.number, position.lookup_id)
    core.batch.put("messages", key, position.message.encode())
    position.pending_writes += 1
    core.unsettled.append(position)


def remove_position(core: QueueManagerCore, position: MessagePosition) -> None:
    """Take a place out of its queue, in memory and in the store."""
    queue = position.queue
    queue.positions.unlink(position)  # DM-3.1.7.2.1-02, DM-3.1.7.2.1-03, DM-3.1.7.2.1-04
    queue.expired.discard(position.lookup_id)
    core.used_bytes -= position.size
    if position.is_written:
        core.batch.delete("messages", message_key(queue.number, position.lookup_id))


def remove_sent(
    core: QueueManagerCore, queue: Queue, lookup_id: int, size: int, *, is_recoverable: bool
) -> None:
    """Take a message out of an outgoing queue that its peer has; it need not be read for that."""
    queue.positions.forget(lookup_id, size)
    core.used_bytes -= size
    if is_recoverable:
        core.batch.delete("messages", message_key(queue.number, lookup_id))


def check_not_prepared(transaction: Transaction) -> None:
    """Refuse another operation in a transaction that was promised as it is."""
    if transaction.is_prepared:
        raise TransactionError(
            f"transaction {transaction.identifier} is prepared and takes no more operations",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="begin another transaction",
        )


# Time to be received


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


def time_to_be_received_deadline(queue: Queue, message: StoredMessage) -> float | None:
    """When a message in this queue expires; None for never (MQDMPR 3.1.2.4).

    Journals and dead-letter queues keep what they have, as an application's own dead-letter queue
    does. A message on its way may not outlive either of its times (QB-A44).
    """
    sent, to_reach_queue, to_be_received = _times(message)
    if isinstance(queue, OutgoingQueue):
        limit = min(to_be_received, to_reach_queue)
        return None if limit == INFINITE else sent + limit + 1  # QB-3.1.7.1.2-02
    if to_be_received == INFINITE or message.is_dead_letter:  # DM-3.1.2.4-02
        return None
    if queue.queue_type not in _TIMED:
        return None
    return sent + to_be_received  # DM-3.1.2.4-01


def _times(message: StoredMessage) -> tuple[int, int, int]:
    """SentTime, TimeToReachQueue and TimeToBeReceived; nothing is decoded for them."""
    packet = message.decoded
    if packet is None:
        head = message.head
        return head.sent_time, head.time_to_reach_queue, head.time_to_be_received
    user = packet.user
    return user.sent_time, packet.base.time_to_reach_queue, user.time_to_be_received


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
    header = message.transaction
    is_ours = message.packet.user.source_queue_manager == core.identifier.bytes_le
    return header is not None and is_ours and message.wire_transaction_id == transaction.wire_id


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


# Journals and dead letters


def dead_letter(core: QueueManagerCore, queue: Queue, message: StoredMessage, reason: int) -> None:
    """Keep a copy of an undelivered message, if it is for us to keep (MC-MQAC 3.1.6.1.1).

    The application's own dead-letter queue never travels, so whoever knows it is the sender.
    """
    letter = replace(message, is_dead_letter=True, dead_letter_reason=reason)
    own = _application_dead_letter_queue(core, message)
    if own is not None:  # DM-3.1.1.12-05
        store_copy(core, own, letter)
    elif not _takes_transactions(queue, message):
        store_copy(core, core.dead_letter, letter)  # DM-3.1.1.12-56
    elif _is_source(core, message):
        store_copy(core, core.transactional_dead_letter, letter)  # DM-A55


def _takes_transactions(queue: Queue, message: StoredMessage) -> bool:
    """Whether the message is for a transactional queue; on its way the message itself tells."""
    if isinstance(queue, OutgoingQueue):
        return message.transaction is not None
    return queue.properties.transactional


def journal_sent_message(core: QueueManagerCore, message: StoredMessage) -> bool:
    """Keep the copy that the sender of a delivered message asked for; False if there is none."""
    if not message.packet.user.flags & JOURNAL_POSITIVE:  # DM-3.1.1.12-54
        return False
    return store_copy(core, core.journal, message)  # DM-3.1.1.12-52, DM-3.1.1.12-53


def _journal_local_delivery(core: QueueManagerCore, message: StoredMessage) -> None:
    """A message to a queue of its own computer is delivered when it can be read."""
    packet = message.decoded
    flags = message.head.flags if packet is None else packet.user.flags
    if not flags & JOURNAL_POSITIVE:
        return
    if not message.move_count and _is_source(core, message):
        journal_sent_message(core, message)


def _target_journal(queue: Queue) -> Queue | None:
    """Where a copy of a message goes that was read; a subqueue shares its queue's journal."""
    if queue.queue_type is QueueType.SYSTEM:
        return None
    main = queue.parent or queue
    return main.journal if main.properties.journaling else None


def _application_dead_letter_queue(core: QueueManagerCore, message: StoredMessage) -> Queue | None:
    """The application's own dead-letter queue, if it is a queue of ours that takes the message."""
    if not message.dead_letter_queue:
        return None
    try:
        path_name = PathName.parse(message.dead_letter_queue)
    except NameSyntaxError:
        return None
    if not _is_this_computer(core, path_name.computer):
        return None
    queue = core.paths.get(path_name.with_computer("."))
    if queue is None or queue.properties.transactional != (message.transaction is not None):
        return None
    return queue


def _is_this_computer(core: QueueManagerCore, computer: str) -> bool:
    settings = core.settings
    names = {".", settings.computer_name, settings.qualified_computer_name, *settings.local_names}
    return computer.lower() in {name.lower() for name in names}


def _is_source(core: QueueManagerCore, message: StoredMessage) -> bool:
    return message.packet.user.source_queue_manager == core.identifier.bytes_le


def begin_flow_control(core: QueueManagerCore) -> None:
    """Refuse new messages as if the quota were used up (MQDMPR 3.1.7.2.5)."""
    core.is_throttled = True


def end_flow_control(core: QueueManagerCore) -> None:
    """Take messages again (MQDMPR 3.1.7.2.6)."""
    core.is_throttled = False


def _same_family(source: Queue, target: Queue) -> bool:
    """A queue and its subqueues; its journal is no relative (DM-3.1.7.1.16-10)."""
    if QueueType.SYSTEM in (source.queue_type, target.queue_type):
        return False
    return (source.parent or source) is (target.parent or target)


def _has_room(queue: Queue, message: StoredMessage) -> bool:
    return not _exceeds(queue.total_bytes + message.size, queue.properties.quota_kilobytes)


def _exceeds(size: int, quota_kilobytes: int) -> bool:
    return quota_kilobytes != UNLIMITED and size > quota_kilobytes * KILOBYTE  # DM-3.1.7.1.9-19
