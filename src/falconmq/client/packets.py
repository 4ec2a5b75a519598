r"""Messages as MSMQ packets: the body of the fast door (`application/vnd.falconmq.packets`).

A request is UserMessage packets (MQMQ 2.2.20) one behind the other; PacketSize tells where each
ends. The sender leaves SourceQueueManager, SentTime and MessageID zero: the queue manager fills
them in.

An answer begins with one line of JSON that says what never travels in a packet, and goes on with
the packets:

    {"count":2,"lookup_ids":["7","8"],"arrived":[1767225600,1767225600]}\n
    packet packet

Each list has one entry a message, in the order of the packets. A list in which every entry would be
0, false or empty is left out: `abort_counts`, `move_counts`, `authentication_levels`,
`allow_peek_when_locked`, `dead_letter_queues`, `dead_letter_reasons`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Final
from uuid import UUID

from falconmq.errors import MessageError, MqStatus, WireError
from falconmq.message import AuthenticationLevel, Delivery, Message, MessageId, MessageTransaction
from falconmq.names import (
    MultipleElementFormatName,
    PrivateFormatName,
    SingleFormatName,
    parse_format_name,
)
from falconmq.serialization import from_user_message, to_user_message
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.packet import decode_packet
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.user_message import UserMessage

MEDIA_TYPE: Final = "application/vnd.falconmq.packets"
SENDER_HEADER: Final = "FalconMQ-Sender"  # of a request with packets
NO_SENDER: Final = "none"  # its value: the service does not add who sends them
REQUEST_BYTES: Final = 16 * 1024 * 1024
NOBODY: Final = UUID(int=0)
# Any place will do: the queue manager gives each message its own.
_SOME_PLACE: Final = MessageTransaction(0, 1)
_ORDINAL_MAX: Final = 0xFFFFFFFF
_LEVELS: Final[dict[int, int]] = {int(level): level for level in AuthenticationLevel}


def destination_of(format_name: str) -> SingleFormatName:
    """The one queue that a format name names."""
    name = parse_format_name(format_name)
    if isinstance(name, MultipleElementFormatName):
        raise MessageError(
            "destination",
            f"{format_name} names several queues, a packet goes to one",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
            hint="send to each of them, or use send()",
        )
    return name


def names_private_queues(messages: Iterable[Message]) -> bool:
    """Whether a message wants answers in a private queue: how that is named depends on its host."""
    return any(
        isinstance(name, PrivateFormatName)
        for message in messages
        for name in (message.administration_queue, message.response_queue)
    )


def to_packets(
    messages: Iterable[Message],
    destination: SingleFormatName,
    *,
    in_transaction: bool,
    source: UUID = NOBODY,
) -> bytes:
    """The body of a request. The messages are changed as `Queue.send` changes them.

    `source` is the queue manager that sends them; only `names_private_queues` has to know it.
    """
    body = b"".join(
        [
            to_packet(message, destination, in_transaction=in_transaction, source=source)
            for message in messages
        ]
    )
    if len(body) > REQUEST_BYTES:
        raise MessageError(
            "messages",
            f"their packets have {len(body)} bytes, one request takes {REQUEST_BYTES}",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="send fewer at once",
        )
    return body


def can_carry(message: Message) -> bool:
    """Whether a packet carries all that the message asks for."""
    return not _left_out(message)


def _left_out(message: Message) -> str:
    """The first property that a packet does not carry."""
    if message.dead_letter_queue:
        return "dead_letter_queue"
    if message.allow_peek_when_locked:
        return "allow_peek_when_locked"
    return "authentication_level" if message.wants_signature else ""


def to_packet(
    message: Message,
    destination: SingleFormatName,
    *,
    in_transaction: bool,
    source: UUID = NOBODY,
) -> bytes:
    """One message for the body of a request."""
    if field := _left_out(message):
        raise MessageError(
            field,
            "a packet does not carry it",
            status=MqStatus.PROPERTIES_CONFLICT,
            hint="send this message as JSON: client.send()",
        )
    message.destination = destination
    message.destinations = ()
    message.transaction = _SOME_PLACE if in_transaction else None
    if message.recoverable is None:  # the safe default: it survives a restart
        message.delivery = Delivery.RECOVERABLE
    packet = to_user_message(
        message,
        source_queue_manager=source,
        message_id=0,
        sent_time=0,
        destination_queue_manager=NOBODY,
    )
    message.transaction = None  # its place is known to the queue manager alone
    packet.user.source_queue_manager = NULL_GUID
    return packet.encode()


def ids_of(answer: dict[str, Any]) -> list[MessageId]:
    """The ids of messages that were sent together: consecutive numbers, and none is 0."""
    first = MessageId.parse(answer["first_id"])
    count, source, ordinal = answer["count"], bytes(first[:16]), first.ordinal
    ids = []
    for _ in range(count):
        ids.append(MessageId(source + ordinal.to_bytes(4, "little")))
        ordinal = 1 if ordinal == _ORDINAL_MAX else ordinal + 1
    return ids


def from_packets(answer: bytes) -> list[Message]:
    """The messages of an answer; WireError if it is none."""
    end = answer.find(b"\n") if answer[:1] == b"{" else -1
    if end < 0:
        raise WireError("Packets", "Head", "the answer does not begin with a line of JSON")
    head = json.loads(answer[:end])
    splitter = PacketSplitter()
    splitter.feed(answer[end + 1 :])
    messages = [_message(packet) for packet in splitter]
    if len(messages) != head["count"] or splitter.pending:
        raise WireError("Packets", "Count", f"{len(messages)} packets of {head['count']} came")
    _add_what_never_travels(messages, head)
    return messages


def _message(packet: memoryview) -> Message:
    decoded = decode_packet(packet)
    if not isinstance(decoded, UserMessage):
        raise WireError("Packets", "Packet", "no user message")
    return from_user_message(decoded)


def _add_what_never_travels(messages: list[Message], head: dict[str, Any]) -> None:
    rows = zip(
        messages,
        head["lookup_ids"],
        head["arrived"],
        head.get("abort_counts", repeat(0)),
        head.get("move_counts", repeat(0)),
        head.get("authentication_levels", repeat(0)),
        head.get("allow_peek_when_locked", repeat(False)),
        head.get("dead_letter_queues", repeat("")),
        head.get("dead_letter_reasons", repeat(0)),
        strict=False,  # `repeat` has no end
    )
    for message, lookup_id, arrived, aborts, moves, level, may_peek, dead_letter, reason in rows:
        message.lookup_id = int(lookup_id)
        message.arrived_time = arrived
        message.abort_count = aborts
        message.move_count = moves
        message.authentication_level = _LEVELS.get(level, level)
        message.allow_peek_when_locked = may_peek
        message.dead_letter_queue = dead_letter
        if reason:
            message.message_class = reason
