"""Messages on their way in and out of the core: what users hold, and what queues hold."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.embedded.signing import signed
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.model import Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.message import (
    AuthenticationLevel,
    Delivery,
    Message,
    MessageId,
    MessageTransaction,
)
from falconmq.names import SingleFormatName
from falconmq.serialization import from_user_message, to_user_message
from falconmq.wire.tx_sequence_id import message_identifier

_LEVELS: Final[dict[int, int]] = {int(level): level for level in AuthenticationLevel}


class Sequence:
    """Numbers the transactional messages to one destination; a new run starts a new sequence.

    A copy that an abort took back leaves a gap in the numbers. Local queues do not mind; the
    transport numbers anew what it sends to others.
    """

    __slots__ = ("id", "number")

    def __init__(self, id: int) -> None:
        self.id = id
        self.number = 0

    def next(self, transaction: Transaction) -> MessageTransaction:
        previous, self.number = self.number, self.number + 1
        return MessageTransaction(self.id, self.number, previous, transaction.wire_id)


def to_stored(
    core: QueueManagerCore,
    message: Message,
    destination: SingleFormatName,
    host: UUID | None,
    transaction: MessageTransaction | None,
) -> StoredMessage:
    """The message as its queue keeps it; fills in what a queue manager fills in."""
    message.destination = destination
    message.transaction = transaction
    if message.recoverable is None:  # the safe default: it survives a restart
        message.delivery = Delivery.RECOVERABLE
    number = next_message_id(core)
    sent_time = int(core.clock.time())
    packet = to_user_message(
        message,
        source_queue_manager=core.identifier,
        message_id=number,
        sent_time=sent_time,
        destination_queue_manager=host,
        default_time_to_reach_queue=core.settings.default_time_to_reach_queue,
    )
    stored = StoredMessage.of(signed(core, message, packet))
    message.id = MessageId(message_identifier(packet.user.source_queue_manager, number))
    message.sent_time = sent_time
    stored.allow_peek_when_locked = message.allow_peek_when_locked
    stored.dead_letter_queue = message.dead_letter_queue
    return stored


def from_position(position: MessagePosition) -> Message:
    """The message at a place, with what the queue knows about it."""
    stored = position.message
    message = from_user_message(stored.packet)
    level = stored.authentication_level
    message.authentication_level = _LEVELS.get(level, level)
    message.lookup_id = position.lookup_id
    message.arrived_time = int(stored.arrival_time)
    message.abort_count = stored.abort_count
    message.move_count = stored.move_count
    message.allow_peek_when_locked = stored.allow_peek_when_locked
    message.dead_letter_queue = stored.dead_letter_queue
    if stored.dead_letter_reason:
        message.message_class = stored.dead_letter_reason  # as MSMQ shows why it died
    return message
