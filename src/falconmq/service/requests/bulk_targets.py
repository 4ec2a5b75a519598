"""Packets of the fast door and the queue they go to: do they name it, has it room for them.

And what only a queue manager knows of a message: it is written into the packet, over zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from falconmq.embedded import actions
from falconmq.embedded.messages import Sequence
from falconmq.embedded.refusals import refused
from falconmq.errors import FalconMQError, MessageError, MqStatus, QueueError, TransactionError
from falconmq.manager.core import KILOBYTE, QueueManagerCore
from falconmq.manager.model import UNLIMITED, OpenQueueDescriptor, Transaction
from falconmq.manager.public_queues import public_host
from falconmq.manager.record import StoredMessage, transaction_header_offset
from falconmq.manager.states import EnqueueStatus
from falconmq.message import INFINITE
from falconmq.names import (
    DirectFormatName,
    FormatName,
    PrivateFormatName,
    PublicFormatName,
)
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.queue_name import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC, QueueName
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.transaction_header import TRANSACTION_ID_SHIFT, TransactionHeader
from falconmq.wire.user_message import UserMessage

# Places in a packet: one of the BaseHeader, then those of the UserHeader.
_TIME_TO_REACH_QUEUE: Final = struct.Struct("<I")
_TIME_TO_REACH_QUEUE_OFFSET: Final = 12
_SOURCE_QUEUE_MANAGER: Final = slice(16, 32)
_QUEUE_MANAGER_ADDRESS: Final = slice(32, 48)
_SENT: Final = struct.Struct("<II")  # SentTime and MessageID
_SENT_OFFSET: Final = 52
_T = TypeVar("_T")


def read_packets(body: bytes, read: Callable[[memoryview], _T], most: int) -> list[_T]:
    """What `read` makes of each packet of a request; the error says which packet is wrong."""
    splitter = PacketSplitter()
    splitter.feed(body)
    found: list[_T] = []
    try:
        for packet in splitter:
            if len(found) == most:
                hint = "send the others with another request"
                raise MessageError("packet", f"one request takes {most}", hint=hint)
            found.append(read(packet))
        if splitter.pending:
            raise MessageError("packet", f"{splitter.pending} bytes are there, it is longer")
    except FalconMQError as error:
        raise at(len(found), error) from None
    if not found:
        raise MessageError("packets", "there are none", hint="the body is one packet or more")
    return found


@dataclass(frozen=True, slots=True)
class WireForm:
    """How packets name a destination, and their QueueManagerAddress."""

    format_name: FormatName
    type: int
    name: QueueName
    address: bytes

    @classmethod
    def of(cls, core: QueueManagerCore, format_name: FormatName) -> WireForm:
        """As `serialization` writes them; MessageError if no packet can go there."""
        is_sendable = not (
            isinstance(format_name, DirectFormatName) and format_name.subqueue is not None
        )
        if is_sendable and not format_name.is_read_only:
            if isinstance(format_name, DirectFormatName):  # MQ-2.2.19.2-06
                return cls(format_name, DIRECT, format_name.wire_text, NULL_GUID)
            if isinstance(format_name, PrivateFormatName):  # MQ-2.2.19.2-05
                number, address = format_name.number, format_name.computer.bytes_le
                return cls(format_name, PRIVATE_ON_DESTINATION, number, address)
            if isinstance(format_name, PublicFormatName):
                guid, address = format_name.queue.bytes_le, public_host(core, format_name).bytes_le
                return cls(format_name, PUBLIC, guid, address)  # MQ-2.2.19.2-05
        raise MessageError(
            "destination",
            f"{format_name} takes no packets",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
            hint="name a queue, not its journal or subqueue",
        )

    def check(self, packet: UserMessage) -> None:
        """Refuse a packet that goes elsewhere."""
        user = packet.user
        is_meant = user.destination_queue_type == self.type and (
            user.destination_queue == self.name or self._is_same_direct(user.destination_queue)
        )
        if not is_meant or user.queue_manager_address not in (NULL_GUID, self.address):
            problem = f"the packet goes elsewhere than to {self.format_name}"
            hint = "GET the queue: its format_name is what a packet names"
            raise MessageError("destination", problem, hint=hint)

    def _is_same_direct(self, found: QueueName) -> bool:
        """Direct names are equal in any spelling."""
        return isinstance(found, str) and DirectFormatName.from_wire(found) == self.format_name


def check_kind(packet: UserMessage, *, in_transaction: bool) -> None:
    """Refuse a packet without a TransactionHeader in a transaction, and one with it outside."""
    if (packet.transaction is not None) != in_transaction:
        is_in = "inside" if in_transaction else "outside"
        has = "has no" if in_transaction else "has a"
        raise TransactionError(
            f"it is sent {is_in} a transaction and {has} TransactionHeader",
            status=MqStatus.TRANSACTION_USAGE,
            hint="?transaction=true goes with a TransactionHeader in every packet",
        )


def check_room(
    core: QueueManagerCore, opened: actions.Opened, target: OpenQueueDescriptor, size: int
) -> None:
    """So many bytes fit, or nothing of them is taken."""
    queue = target.queue
    assert queue is not None
    if core.is_throttled or _exceeds(core.used_bytes + size, core.settings.quota_kilobytes):
        raise refused(core, opened, [target], size, EnqueueStatus.MANAGER_QUOTA)
    if _exceeds(queue.total_bytes + size, queue.properties.quota_kilobytes):
        raise refused(core, opened, [target], size, EnqueueStatus.QUEUE_QUOTA)


def _exceeds(size: int, quota_kilobytes: int) -> bool:
    return quota_kilobytes != UNLIMITED and size > quota_kilobytes * KILOBYTE


# What a queue manager writes into a packet


def fill_in(
    message: StoredMessage, source: bytes, address: bytes, sent_time: int, number: int
) -> None:
    """What a queue manager says of a message, in its bytes, and beside them if it is decoded."""
    data = message.data
    assert isinstance(data, bytearray)
    data[_SOURCE_QUEUE_MANAGER] = source
    data[_QUEUE_MANAGER_ADDRESS] = address
    _SENT.pack_into(data, _SENT_OFFSET, sent_time, number)
    if message.decoded is not None:
        user = message.decoded.user
        user.source_queue_manager = source
        user.queue_manager_address = address
        user.sent_time = sent_time
        user.message_id = number


def fill_in_kept(message: StoredMessage, address: bytes) -> None:
    """The same for a message that was sent long ago: who, when and its number stay.

    It has reached its queue, however long that took.
    """
    head, data = message.head, message.data
    fill_in(message, head.source_queue_manager, address, head.sent_time, head.message_id)
    assert isinstance(data, bytearray)
    _TIME_TO_REACH_QUEUE.pack_into(data, _TIME_TO_REACH_QUEUE_OFFSET, INFINITE)
    if message.decoded is not None:
        message.decoded.base.time_to_reach_queue = INFINITE


def fill_in_place(message: StoredMessage, sequence: Sequence, transaction: Transaction) -> None:
    """The message's place in its transaction; the transport numbers what it sends anew."""
    place = sequence.next(transaction)
    header = TransactionHeader(
        place.id << TRANSACTION_ID_SHIFT,
        place.sequence_id,
        place.sequence_number,
        place.previous_sequence_number,
    )
    written, offset = header.encode(), transaction_header_offset(message.data)
    assert isinstance(message.data, bytearray)
    message.data[offset : offset + len(written)] = written
    if message.decoded is not None:
        message.decoded.transaction = header


def several(name: str) -> QueueError:
    return QueueError(
        f"{name} names several queues, and a packet goes to one",
        status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        hint="send to each of them, or send JSON",
    )


def at(index: int, error: FalconMQError) -> FalconMQError:
    """The same error, and which packet it is about."""
    error.args = (f"packets[{index}]: {error}",)
    return error
