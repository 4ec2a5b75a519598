"""The fast door: messages come in and go out as the MSMQ packets they are.

    POST /queues/{name}/packets    UserMessage packets, one behind the other
    POST /queues/{name}/receive    with `Accept: application/vnd.falconmq.packets`

How to think about it. JSON costs more than all else that happens to a message here. A packet is
what queues keep and peers get, so it is taken as it is: decoded once to see that it is one a sender
may send, then the few bytes that only a queue manager knows are written over their zeros. On the
way out nothing is decoded at all. `client.packets` has the other end, and the format of answers.

All packets of a request are checked before the first one is stored, and they are stored in one
turn: all are sent, or none.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from falconmq.client.packets import MEDIA_TYPE, REQUEST_BYTES
from falconmq.embedded import actions
from falconmq.embedded.messages import Sequence
from falconmq.embedded.refusals import deleted, refused
from falconmq.errors import FalconMQError, MessageError, MqStatus, QueueError, TransactionError
from falconmq.manager import transactions
from falconmq.manager.core import KILOBYTE, QueueManagerCore, next_message_id
from falconmq.manager.model import UNLIMITED, OpenQueueDescriptor, Queue, Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage, transaction_header_offset
from falconmq.manager.states import AccessType, EnqueueStatus, QueueType, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.message import MessageId
from falconmq.names import (
    DirectFormatName,
    FormatName,
    PrivateFormatName,
    PublicFormatName,
)
from falconmq.service.requests.bulk_checks import check_packet
from falconmq.service.requests.sending import Wanted, needs_transaction, take_back
from falconmq.service.schemas import MESSAGES_MAX
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.packet import decode_packet
from falconmq.wire.queue_name import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC, QueueName
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.transaction_header import TRANSACTION_ID_SHIFT, TransactionHeader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage

__all__ = ["MEDIA_TYPE", "REQUEST_BYTES", "Sent", "send_packets", "take_packets", "to_answer"]

_FILLED_IN: Final = struct.Struct("<16s16sIII")  # of the UserHeader, from SourceQueueManager on
_FILLED_IN_OFFSET: Final = 16


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request: the messages have consecutive ids."""

    count: int
    first: MessageId
    last: MessageId


# Coming in: each packet for itself


def take_packets(body: bytes) -> list[StoredMessage]:
    """The messages of a request, checked; the error says which packet is wrong."""
    splitter = PacketSplitter()
    splitter.feed(body)
    messages: list[StoredMessage] = []
    try:
        for packet in splitter:
            if len(messages) == MESSAGES_MAX:
                hint = "send the others with another request"
                raise MessageError("packet", f"one request takes {MESSAGES_MAX}", hint=hint)
            messages.append(_take(packet))
        if splitter.pending:
            raise MessageError("packet", f"{splitter.pending} bytes are there, it is longer")
    except FalconMQError as error:
        raise _at(len(messages), error) from None
    if not messages:
        raise MessageError("packets", "there are none", hint="the body is one packet or more")
    return messages


def _take(packet: memoryview) -> StoredMessage:
    # A copy of its own: a message that waits must not keep the whole request in memory.
    data = bytearray(packet)
    decoded = decode_packet(data)
    if not isinstance(decoded, UserMessage):
        raise MessageError("packet", f"{type(decoded).__name__} is no message")
    check_packet(decoded)
    return StoredMessage(data, decoded)


# Coming in: all of them, in one turn


def send_packets(
    core: QueueManagerCore, name: str, messages: list[StoredMessage], wanted: Wanted
) -> Sent:
    """Open a queue, put the messages into it, close it.

    In a transaction of their own, or in one that is open; None: if the queue is ours and needs one.
    """
    opened = actions.find(core, name, ShareMode.DENY_NONE)
    try:
        target = actions.descriptor(core, opened, AccessType.SEND)
        queue = target.queue
        if target.is_multiple:
            raise _several(name)
        if queue is None:
            raise deleted(opened)
        if wanted is None:
            wanted = needs_transaction(opened)
        if wanted is False:
            transactions.check_usage(queue, None)
        address = _check_destinations(core, target.format_name, queue, messages)
        _check_kinds(messages, in_transaction=wanted is not False)
        _check_room(core, opened, target, messages)
        if wanted is False:
            first, last = _send_each(core, opened, target, messages, address, None)
        elif wanted is True:
            first, last = _send_together(core, opened, target, messages, address)
        else:
            first, last = _send_in(core, opened, target, messages, address, wanted)
    finally:
        actions.close(core, opened)
    identifier = core.identifier
    return Sent(len(messages), MessageId.of(identifier, first), MessageId.of(identifier, last))


def _check_destinations(
    core: QueueManagerCore, name: FormatName, queue: Queue, messages: list[StoredMessage]
) -> bytes:
    """See that all packets go to this queue; the QueueManagerAddress for them."""
    wanted_type, wanted, address = _wire_form(core, name, queue)
    for index, message in enumerate(messages):
        user = message.packet.user
        is_meant = user.destination_queue_type == wanted_type and (
            user.destination_queue == wanted or _is_same_direct(user.destination_queue, name)
        )
        if not is_meant or user.queue_manager_address not in (NULL_GUID, address):
            problem = f"the packet goes elsewhere than to {name}"
            hint = "GET the queue: its format_name is what a packet names"
            error = MessageError("destination", problem, hint=hint)
            raise _at(index, error)
    return address


def _wire_form(
    core: QueueManagerCore, name: FormatName, queue: Queue
) -> tuple[int, QueueName, bytes]:
    """How packets name a destination, and QueueManagerAddress: as `serialization` writes them."""
    is_sendable = not (isinstance(name, DirectFormatName) and name.subqueue is not None)
    if is_sendable and not name.is_read_only:
        if isinstance(name, DirectFormatName):
            return DIRECT, name.wire_text, NULL_GUID  # MQ-2.2.19.2-06
        if isinstance(name, PrivateFormatName):  # MQ-2.2.19.2-05
            return PRIVATE_ON_DESTINATION, name.number, name.computer.bytes_le
        if isinstance(name, PublicFormatName) and queue.queue_type is QueueType.PUBLIC:
            return PUBLIC, name.queue.bytes_le, core.identifier.bytes_le  # MQ-2.2.19.2-05
    raise MessageError(
        "destination",
        f"{name} takes no packets",
        status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        hint="name a queue, not its journal or subqueue",
    )


def _is_same_direct(found: QueueName, name: FormatName) -> bool:
    """Direct names are equal in any spelling."""
    return isinstance(found, str) and DirectFormatName.from_wire(found) == name


def _check_kinds(messages: list[StoredMessage], *, in_transaction: bool) -> None:
    for index, message in enumerate(messages):
        if (message.packet.transaction is not None) != in_transaction:
            is_in = "inside" if in_transaction else "outside"
            has = "has no" if in_transaction else "has a"
            error = TransactionError(
                f"it is sent {is_in} a transaction and {has} TransactionHeader",
                status=MqStatus.TRANSACTION_USAGE,
                hint="?transaction=true goes with a TransactionHeader in every packet",
            )
            raise _at(index, error)


def _check_room(
    core: QueueManagerCore,
    opened: actions.Opened,
    target: OpenQueueDescriptor,
    messages: list[StoredMessage],
) -> None:
    """All of them fit, or none is taken."""
    size = sum(message.size for message in messages)
    queue = target.queue
    assert queue is not None
    if core.is_throttled or _exceeds(core.used_bytes + size, core.settings.quota_kilobytes):
        raise refused(core, opened, [target], size, EnqueueStatus.MANAGER_QUOTA)
    if _exceeds(queue.total_bytes + size, queue.properties.quota_kilobytes):
        raise refused(core, opened, [target], size, EnqueueStatus.QUEUE_QUOTA)


def _exceeds(size: int, quota_kilobytes: int) -> bool:
    return quota_kilobytes != UNLIMITED and size > quota_kilobytes * KILOBYTE


def _send_together(
    core: QueueManagerCore,
    opened: actions.Opened,
    target: OpenQueueDescriptor,
    messages: list[StoredMessage],
    address: bytes,
) -> tuple[int, int]:
    transaction = transactions.create_transaction(core)
    try:
        assert target.queue is not None
        transactions.check_usage(target.queue, transaction)
        numbers = _send_each(core, opened, target, messages, address, transaction)
    except BaseException:
        transactions.abort_transaction(core, transaction.identifier)
        raise
    transactions.commit_transaction(core, transaction.identifier)
    return numbers


def _send_in(
    core: QueueManagerCore,
    opened: actions.Opened,
    target: OpenQueueDescriptor,
    messages: list[StoredMessage],
    address: bytes,
    owner: Transaction,
) -> tuple[int, int]:
    """All of them in a transaction that its caller commits, or none."""
    assert target.queue is not None
    transactions.check_usage(target.queue, owner)
    before = len(owner.operations)
    try:
        return _send_each(core, opened, target, messages, address, owner)
    except BaseException:
        take_back(core, owner, before)
        raise


def _send_each(
    core: QueueManagerCore,
    opened: actions.Opened,
    target: OpenQueueDescriptor,
    messages: list[StoredMessage],
    address: bytes,
    transaction: Transaction | None,
) -> tuple[int, int]:
    """Fill in and store one after the other; the first and the last of their numbers."""
    queue, source, now = target.queue, core.identifier.bytes_le, int(core.clock.time())
    assert queue is not None
    first = number = next_message_id(core)
    sequence = Sequence(now << 32 | first)
    for index, message in enumerate(messages):
        if index:
            number = next_message_id(core)
        _fill_in(message, source, address, now, number)
        if transaction is not None:
            _fill_in_place(message, sequence, transaction)
        status = enqueue_message(core, queue, message, transaction)
        if status is not EnqueueStatus.OK:  # the copies that journals keep took the room
            raise _at(index, refused(core, opened, [target], message.size, status))
    return first, number


def _fill_in(
    message: StoredMessage, source: bytes, address: bytes, sent_time: int, number: int
) -> None:
    """What a queue manager says of a message, in its bytes and beside them."""
    user: UserHeader = message.packet.user
    user.source_queue_manager = source
    user.queue_manager_address = address
    user.sent_time = sent_time
    user.message_id = number
    assert isinstance(message.data, bytearray)
    _FILLED_IN.pack_into(
        message.data,
        _FILLED_IN_OFFSET,
        source,
        address,
        user.time_to_be_received,
        sent_time,
        number,
    )


def _fill_in_place(message: StoredMessage, sequence: Sequence, transaction: Transaction) -> None:
    """The message's place in its transaction; the transport numbers what it sends anew."""
    place = sequence.next(transaction)
    header = TransactionHeader(
        place.id << TRANSACTION_ID_SHIFT,
        place.sequence_id,
        place.sequence_number,
        place.previous_sequence_number,
    )
    message.packet.transaction = header
    written, at = header.encode(), transaction_header_offset(message.data)
    assert isinstance(message.data, bytearray)
    message.data[at : at + len(written)] = written


# Going out


def to_answer(positions: Many[MessagePosition], lease: UUID | None = None) -> bytes:
    """The body of an answer: a line of JSON, then the packets (`client.packets`)."""
    messages = [position.message for position in positions]
    head: dict[str, Any] = {
        "count": len(positions),
        "lookup_ids": [str(position.lookup_id) for position in positions],
        "arrived": [int(message.arrival_time) for message in messages],
    }
    seldom: dict[str, list[Any]] = {
        "abort_counts": [message.abort_count for message in messages],
        "move_counts": [message.move_count for message in messages],
        "authentication_levels": [message.authentication_level for message in messages],
        "allow_peek_when_locked": [message.allow_peek_when_locked for message in messages],
        "dead_letter_queues": [message.dead_letter_queue for message in messages],
        "dead_letter_reasons": [message.dead_letter_reason for message in messages],
    }
    head.update((name, values) for name, values in seldom.items() if any(values))
    if lease is not None:
        head["lease"] = str(lease)
    line = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([line, b"\n", *[message.data for message in messages]])


def _several(name: str) -> QueueError:
    return QueueError(
        f"{name} names several queues, and a packet goes to one",
        status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        hint="send to each of them, or send JSON",
    )


def _at(index: int, error: FalconMQError) -> FalconMQError:
    """The same error, and which packet it is about."""
    error.args = (f"packets[{index}]: {error}",)
    return error
