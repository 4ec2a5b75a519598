"""Putting messages into queues (Enqueue Message, MQDMPR 3.1.7.1.9, and 3.1.7.2.2).

Two events carry everything: a place becomes available, a place is deleted. All other code raises
one of them; whoever has to know (the transport, acknowledgements, the event log) subscribes. The
first one is here, the second in `removing`. What they stand on:

    placing      the place itself: its number, its row in the queue, its record in the store
    quotas       whether there is room
    expiry       the time that a message may wait
    journaling   copies that are kept

and `moving` and `distributing` are made of all of them.
"""

from __future__ import annotations

from falconmq.errors import MqStatus, TransactionError
from falconmq.manager.core import QueueManagerCore, is_source
from falconmq.manager.events import EventKind
from falconmq.manager.expiry import (
    TIMED,
    expire,
    start_time_to_be_received_timer,
    times_of,
)
from falconmq.manager.journaling import journal_local_delivery
from falconmq.manager.model import OutgoingQueue, Queue, Transaction, TransactionalOperation
from falconmq.manager.placing import link_message, make_readable
from falconmq.manager.positions import MessagePosition
from falconmq.manager.quotas import exceeds
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import EnqueueStatus, OperationType
from falconmq.manager.waiting import feed_waiting_reads
from falconmq.message import is_expired


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
    is_full = core.is_throttled or exceeds(core.used_bytes + size, settings.quota_kilobytes)
    if is_full and not unlimited:
        return EnqueueStatus.MANAGER_QUOTA  # DM-3.1.7.1.9-04, DM-3.1.7.1.9-05
    if exceeds(queue.total_bytes + size, queue.properties.quota_kilobytes):
        return EnqueueStatus.QUEUE_QUOTA  # DM-3.1.7.1.9-06
    sent, to_reach_queue, _ = times_of(message)
    if is_expired(int(core.clock.time()), sent, to_reach_queue):
        return EnqueueStatus.TIMED_OUT  # DM-3.1.7.1.9-07
    position = link_message(core, queue, message)
    start_time_to_be_received_timer(core, position)  # DM-3.1.7.1.9-13
    if transaction is None:
        message_position_available(core, queue, position)  # DM-3.1.7.1.9-16
    else:
        position.transaction = transaction  # it stays locked: DM-3.1.7.1.9-15
        operation = TransactionalOperation(OperationType.ENQUEUE, position)
        transaction.operations.append(operation)  # DM-3.1.7.1.9-14
    return EnqueueStatus.OK


def check_not_prepared(transaction: Transaction) -> None:
    """Refuse another operation in a transaction that was promised as it is."""
    if transaction.is_prepared:
        raise TransactionError(
            f"transaction {transaction.identifier} is prepared and takes no more operations",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="begin another transaction",
        )


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
    make_readable(core, position)
    if position.lookup_id in queue.expired:
        expire(core, position)  # DM-3.1.7.2.7-05
        return
    if is_new and core.events is not None:
        is_outgoing = isinstance(queue, OutgoingQueue)
        kind = EventKind.QUEUED if is_outgoing else EventKind.ARRIVED
        core.events.record_position(kind, position)
    if is_new and queue.queue_type in TIMED:
        journal_local_delivery(core, position.message)
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
    if message.transaction is None or not is_source(core, message):
        return
    if agent is None:
        message.needs_number = True
    else:
        agent.number(queue, position)
