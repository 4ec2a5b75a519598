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
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from falconmq.client.packets import MEDIA_TYPE, REQUEST_BYTES
from falconmq.embedded import actions
from falconmq.embedded.messages import Sequence
from falconmq.embedded.refusals import deleted, refused
from falconmq.embedded.signing import meet_demands, name_sender
from falconmq.errors import FalconMQError, MessageError
from falconmq.manager import transactions
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.model import OpenQueueDescriptor, Queue, Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.message import MessageId
from falconmq.service.requests.bulk_checks import check_packet
from falconmq.service.requests.bulk_targets import (
    WireForm,
    at,
    check_kind,
    check_room,
    fill_in,
    fill_in_place,
    read_packets,
    several,
)
from falconmq.service.requests.sending import Wanted, needs_transaction, take_back
from falconmq.service.schemas import MESSAGES_MAX
from falconmq.wire.packet import decode_packet
from falconmq.wire.reader import Buffer
from falconmq.wire.user_message import UserMessage

__all__ = [
    "MEDIA_TYPE",
    "REQUEST_BYTES",
    "Sent",
    "send_packets",
    "take_packet",
    "take_packets",
    "to_answer",
]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request: the messages have consecutive ids."""

    count: int
    first: MessageId
    last: MessageId


# Coming in: each packet for itself


def take_packets(body: bytes) -> list[StoredMessage]:
    """The messages of a request, checked; the error says which packet is wrong."""
    return read_packets(body, _take, MESSAGES_MAX)


def _take(packet: memoryview) -> StoredMessage:
    # A copy of its own: a message that waits must not keep the whole request in memory.
    data = bytearray(packet)
    return StoredMessage(data, take_packet(data))


def take_packet(packet: Buffer, *, keep_ids: bool = False) -> UserMessage:
    """A packet, if it is one that a sender may send; with `keep_ids` one that somebody has sent."""
    decoded = decode_packet(packet)
    if not isinstance(decoded, UserMessage):
        raise MessageError("packet", f"{type(decoded).__name__} is no message")
    check_packet(decoded, keep_ids=keep_ids)
    return decoded


# Coming in: all of them, in one turn


def send_packets(
    core: QueueManagerCore,
    name: str,
    messages: list[StoredMessage],
    wanted: Wanted,
    names_sender: bool = True,
) -> Sent:
    """Open a queue, put the messages into it, close it.

    In a transaction of their own, or in one that is open; None: if the queue is ours and needs one.
    """
    opened = actions.find(core, name, ShareMode.DENY_NONE)
    try:
        target = actions.descriptor(core, opened, AccessType.SEND)
        queue = target.queue
        if target.is_multiple:
            raise several(name)
        if queue is None:
            raise deleted(opened)
        if wanted is None:
            wanted = needs_transaction(opened)
        if wanted is False:
            transactions.check_usage(queue, None)
        form = WireForm.of(core, target.format_name)
        _check(form, messages, in_transaction=wanted is not False)
        _protect(core, queue, messages, names_sender=names_sender)
        check_room(core, opened, target, sum(message.size for message in messages))
        address = form.address
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


def _check(form: WireForm, messages: list[StoredMessage], *, in_transaction: bool) -> None:
    """See that all packets go to this queue, and are of its kind."""
    for index, message in enumerate(messages):
        try:
            form.check(message.packet)
            check_kind(message.packet, in_transaction=in_transaction)
        except FalconMQError as error:
            raise at(index, error) from None


def _protect(
    core: QueueManagerCore, queue: Queue, messages: list[StoredMessage], *, names_sender: bool
) -> None:
    """Say who sends them, and see that the queue takes them so."""
    for index, message in enumerate(messages):
        if names_sender:
            name_sender(core, message)
        try:
            meet_demands(core, queue, message)
        except FalconMQError as error:
            raise at(index, error) from error


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
        fill_in(message, source, address, now, number)
        if transaction is not None:
            fill_in_place(message, sequence, transaction)
        status = enqueue_message(core, queue, message, transaction)
        if status is not EnqueueStatus.OK:  # the copies that journals keep took the room
            raise at(index, refused(core, opened, [target], message.size, status))
    return first, number


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
