"""Taking messages out of queues (Message Position Deleted, MQDMPR 3.1.7.2.1).

Whoever has to know that a message left (the transport, acknowledgements, the event log) subscribes.
The reason tells them how it left:

    ACK_RECEIVE             somebody read it
    NACK_Q_PURGED           its queue was purged
    NACK_Q_DELETED          its queue was deleted
    NACK_RECEIVE_TIMEOUT    nobody read it in time
    NACK_RECEIVE_REJECTED   its reader refused it

A message that moves to another queue, and one whose sender's transaction aborts, leave without a
word, by `remove_position` alone: no acknowledgement may tell of them.
"""

from __future__ import annotations

from falconmq.manager.core import QueueManagerCore, message_key
from falconmq.manager.journaling import store_copy, target_journal
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.wire.message_class import MessageClass


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
        journal = target_journal(queue)
        if journal is not None:
            store_copy(core, journal, position.message)  # DM-A60
    for subscriber in core.deleted_subscribers:
        subscriber(queue, position, reason)


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
