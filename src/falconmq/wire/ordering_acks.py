"""OrderAck and FinalAck: what became of transactional messages (MQQB 2.2.4, 2.2.5).

Both are user messages to the queue `order_queue$` of the original sender, alike in all but the
36 bytes of their body, their class and their delivery mode; hence one module for the two.

- An OrderAck says up to which number the messages of a sequence have arrived. It is express: the
  next one says more (QB-A35).
- A FinalAck tells the end of one message: read, refused, or gone unread and why. It is recoverable.

`to_user_message` makes the packet to send; `from_user_message` finds the acknowledgement in one
that came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.base_header import INFINITE, PACKET_SIZE_MIN, BaseHeader
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.queue_name import DIRECT, PRIVATE_ON_DESTINATION
from falconmq.wire.reader import Layout, Reader, Structure
from falconmq.wire.transaction_header import FINAL_ACK_REQUIRED, TransactionHeader
from falconmq.wire.user_header import (
    DELIVERY_MODE_SHIFT,
    DESTINATION_QUEUE_TYPE_SHIFT,
    EXPRESS,
    JOURNAL_NEGATIVE,
    JOURNAL_POSITIVE,
    MESSAGE_PROPERTIES_HEADER,
    RECOVERABLE,
    UserHeader,
)
from falconmq.wire.user_message import UserMessage

BODY_SIZE: Final = 36
LABEL: Final = "QM Ordering Ack"
ORDER_QUEUE_IDENTIFIER: Final = 4  # the private queue order_queue$ of every queue manager
ORDER_QUEUE: Final = "\\PRIVATE$\\order_queue$"
FINAL_ACK_CLASS_MIN: Final = int(MessageClass.ACK_RECEIVE)

_NEVER_PREVIOUS: Final = 0xFFFFFFFF  # no number follows it
_SPX_ADDRESS: Final = re.compile(r"[0-9A-F]{8}\.[0-9A-F]{12}", re.ASCII | re.IGNORECASE)
_ORDER_ACK_BODY: Final = Layout(
    "OrderAckBody",
    "QII20s",
    "TxSequenceID",
    "TxSequenceNumber",
    "TxPreviousSequenceNumber",
    "Reserved",
)
_FINAL_ACK_BODY: Final = Layout(
    "FinalAckBody",
    "QII16sI",
    "TxSequenceID",
    "TxSequenceNumber",
    "TxPreviousSequenceNumber",
    "SourceGUID",
    "MessageID",
)


@dataclass(slots=True)
class OrderAckBody(Structure):
    """The last number that arrived in a sequence (MQQB 2.2.4.1)."""

    tx_sequence_id: int  # as in the TransactionHeader: Ordinal low, TimeStamp high
    tx_sequence_number: int
    tx_previous_sequence_number: int
    reserved: bytes = bytes(20)  # Windows leaves garbage here, QB-2.2.4.1-05

    @classmethod
    def up_to(cls, tx_sequence_id: int, tx_sequence_number: int) -> Self:
        """What acknowledges a number of a sequence and all before it."""
        return cls(tx_sequence_id, tx_sequence_number, tx_sequence_number - 1)  # QB-2.2.4.1-04

    def covers(self, transaction: TransactionHeader) -> bool:
        """Whether the message with this header has arrived, accepted or not (QB-2.2.4-02, QB-A55).

        Its sender then drops it from the outgoing queue. A number counts in its sequence: QB-A34.
        """
        return (
            transaction.tx_sequence_id == self.tx_sequence_id
            and transaction.tx_sequence_number <= self.tx_sequence_number
        )

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("OrderAckBody")
        sequence, number, previous, reserved = reader.fixed(_ORDER_ACK_BODY)
        _check_read(reader, _ORDER_ACK_BODY, number, previous)
        reader.leave(outer)
        return cls(sequence, number, previous, reserved)

    def encode(self) -> bytes:
        number, previous = self.tx_sequence_number, self.tx_previous_sequence_number
        _check_sent("OrderAckBody", number, previous)
        if previous != number - 1:
            problem = f"{previous} does not come right before {number}"
            raise WireError("OrderAckBody", "TxPreviousSequenceNumber", problem)
        return _ORDER_ACK_BODY.pack(self.tx_sequence_id, number, previous, self.reserved)


@dataclass(slots=True)
class FinalAckBody(Structure):
    """The message that a FinalAck is about (MQQB 2.2.5.1)."""

    tx_sequence_id: int  # as in the TransactionHeader: Ordinal low, TimeStamp high
    tx_sequence_number: int
    tx_previous_sequence_number: int
    source_guid: bytes  # of the queue manager that sent the message
    message_id: int

    @classmethod
    def about(cls, message: UserMessage) -> Self:
        """What names this message; only transactional ones are acknowledged so (QB-A40)."""
        transaction, user = message.transaction, message.user
        if transaction is None:
            raise WireError("FinalAckBody", "TxSequenceID", "the message is not transactional")
        return cls(
            transaction.tx_sequence_id,
            transaction.tx_sequence_number,
            transaction.previous_tx_sequence_number,
            user.source_queue_manager,
            user.message_id,
        )

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("FinalAckBody")
        sequence, number, previous, source_guid, message_id = reader.fixed(_FINAL_ACK_BODY)
        _check_read(reader, _FINAL_ACK_BODY, number, previous)
        reader.leave(outer)
        return cls(sequence, number, previous, source_guid, message_id)

    def encode(self) -> bytes:
        number, previous = self.tx_sequence_number, self.tx_previous_sequence_number
        _check_sent("FinalAckBody", number, previous)
        return _FINAL_ACK_BODY.pack(
            self.tx_sequence_id, number, previous, self.source_guid, self.message_id
        )


@dataclass(slots=True)
class OrderAck:
    """Messages of a sequence have arrived."""

    body: OrderAckBody

    def to_user_message(
        self,
        *,
        source_queue_manager: bytes,
        destination: bytes | str,
        sent_time: int,
        message_id: int,
    ) -> UserMessage:
        """The packet to send.

        `destination` is the queue manager that sent the messages: its GUID, or its address if they
        came by a direct format name.
        """
        return _ack_message(
            _ack_header(source_queue_manager, destination, EXPRESS, sent_time, message_id),
            MessageClass.ORDER_ACK,
            self.body.encode(),
        )


@dataclass(slots=True)
class FinalAck:
    """A message was read (ACK_RECEIVE), or it never will be: the class says why."""

    body: FinalAckBody
    message_class: int = int(MessageClass.ACK_RECEIVE)

    def to_user_message(
        self,
        *,
        source_queue_manager: bytes,
        destination: bytes | str,
        sent_time: int,
        message_id: int,
    ) -> UserMessage:
        """The packet to send; the arguments are those of `OrderAck.to_user_message`."""
        if self.message_class < FINAL_ACK_CLASS_MIN:
            problem = f"{self.message_class:#06x} is no class of a FinalAck"
            raise WireError("FinalAck", "MessageClass", problem)
        return _ack_message(
            _ack_header(source_queue_manager, destination, RECOVERABLE, sent_time, message_id),
            self.message_class,
            self.body.encode(),
        )


def needs_final_ack(message: UserMessage, *, rejected: bool) -> bool:
    """Whether a FinalAck is due when a message is rejected, or else leaves its destination queue.

    A rejected transactional message always gets one; an accepted one if its sender keeps a journal
    or a dead-letter copy, or asks for it (QB-2.2.5-02).
    """
    if message.transaction is None:  # QB-A40
        return False
    journaled = message.user.flags & (JOURNAL_NEGATIVE | JOURNAL_POSITIVE)
    return rejected or bool(journaled or message.transaction.flags & FINAL_ACK_REQUIRED)


def from_user_message(message: UserMessage) -> OrderAck | FinalAck | None:
    """The acknowledgement a user message is; None if it is an ordinary one (QB-A10).

    The flags of the headers are not asked: what counts is destination, label, size and class. That
    the order queue is our own is for the queue manager to see.
    """
    properties = message.properties
    if properties.label != LABEL or len(properties.message_body) != BODY_SIZE:
        return None
    if not _goes_to_order_queue(message.user):
        return None
    if properties.message_class == MessageClass.ORDER_ACK:
        return OrderAck(OrderAckBody.decode(properties.message_body))
    if properties.message_class >= FINAL_ACK_CLASS_MIN:
        return FinalAck(FinalAckBody.decode(properties.message_body), properties.message_class)
    return None


def order_queue_name(address: str) -> str:
    """The direct name, without "DIRECT=", of the order queue at an address.

    IPv4, IPv6 or SPX (net and node in hexadecimal digits); SPX ended with NT and 2000, its names
    remain. WireError for anything else, a host name for example.
    """
    if _SPX_ADDRESS.fullmatch(address):
        return f"SPX:{address}{ORDER_QUEUE}"
    try:
        ip = ip_address(address)
    except ValueError as error:
        raise WireError("UserHeader", "DestinationQueue", f"{address!r} is no address") from error
    if "%" in address:  # a zone means something on this computer only
        raise WireError("UserHeader", "DestinationQueue", f"{address!r} has a zone")
    return f"TCP:{ip}{ORDER_QUEUE}"


def _goes_to_order_queue(user: UserHeader) -> bool:
    name = user.destination_queue
    if isinstance(name, str):
        return name.lower().endswith(ORDER_QUEUE.lower())
    return user.destination_queue_type == PRIVATE_ON_DESTINATION and name == ORDER_QUEUE_IDENTIFIER


def _ack_header(
    source_queue_manager: bytes,
    destination: bytes | str,
    delivery_mode: int,
    sent_time: int,
    message_id: int,
) -> UserHeader:
    """A UserHeader with all flags 0 but DM, DQ and MP."""
    queue: int | str
    if isinstance(destination, str):
        queue_type, address, queue = DIRECT, NULL_GUID, order_queue_name(destination)
    else:
        queue_type, address, queue = PRIVATE_ON_DESTINATION, destination, ORDER_QUEUE_IDENTIFIER
    flags = delivery_mode << DELIVERY_MODE_SHIFT | queue_type << DESTINATION_QUEUE_TYPE_SHIFT
    return UserHeader(
        source_queue_manager,
        address,
        INFINITE,
        sent_time,
        message_id,
        flags | MESSAGE_PROPERTIES_HEADER,
        queue,
    )


def _ack_message(user: UserHeader, message_class: int, body: bytes) -> UserMessage:
    properties = MessagePropertiesHeader(
        message_class=message_class, label=LABEL, message_body=body
    )
    return UserMessage(BaseHeader(0, PACKET_SIZE_MIN), user, properties)


def _check_read(reader: Reader, layout: Layout, number: int, previous: int) -> None:
    if not number:
        raise reader.refuse(layout, "TxSequenceNumber", "0, but sequences begin with 1")
    if previous == _NEVER_PREVIOUS:
        raise reader.refuse(layout, "TxPreviousSequenceNumber", "no number follows 0xFFFFFFFF")


def _check_sent(structure: str, number: int, previous: int) -> None:
    if not number:
        raise WireError(structure, "TxSequenceNumber", "0, but sequences begin with 1")
    if previous == _NEVER_PREVIOUS:
        problem = "no number follows 0xFFFFFFFF"
        raise WireError(structure, "TxPreviousSequenceNumber", problem)
