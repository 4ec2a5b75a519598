"""What `falconmq demo` shows: the specification's own session, and one message of each kind.

The session is published in MS-MQQB 4.1; its bytes are in session_example.json. The messages are
made here with the wire layer, and `verify` proves that they survive the way over the wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Final
from uuid import UUID

from falconmq.errors import WireError
from falconmq.wire.base_header import DEFAULT_PRIORITY, INFINITE, PACKET_SIZE_MIN, BaseHeader
from falconmq.wire.change_notification import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationEvent,
)
from falconmq.wire.directory_change import CREATE, UPDATE, DirectoryChange, NotificationUpdate
from falconmq.wire.guid import NULL_GUID, guid_bytes
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import (
    NEGATIVE_ARRIVAL,
    POSITIVE_ARRIVAL,
    MessagePropertiesHeader,
)
from falconmq.wire.multi_queue_format_header import (
    DESTINATION_ID,
    MQFAddressHeader,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from falconmq.wire.multi_queue_format_header import DIRECT as MQF_DIRECT
from falconmq.wire.multi_queue_format_header import PUBLIC as MQF_PUBLIC
from falconmq.wire.ordering_acks import (
    FinalAck,
    FinalAckBody,
    OrderAck,
    OrderAckBody,
    from_user_message,
)
from falconmq.wire.packet import decode_packet
from falconmq.wire.property_ids import QueueProperty
from falconmq.wire.queue_name import DIRECT, PRIVATE_ON_DESTINATION, PRIVATE_ON_SOURCE, QueueName
from falconmq.wire.replication_messages import ChangePropagationMessage, decode_replication_message
from falconmq.wire.security_header import SENDER_ID_SID, SecurityHeader
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from falconmq.wire.sid import Sid
from falconmq.wire.transaction_header import (
    FINAL_ACK_REQUIRED,
    FIRST_MESSAGE,
    LAST_MESSAGE,
    TRANSACTION_ID_SHIFT,
    TransactionHeader,
)
from falconmq.wire.tx_sequence_id import message_identifier, tx_sequence_id
from falconmq.wire.user_header import (
    ADMIN_QUEUE_TYPE_SHIFT,
    DELIVERY_MODE_SHIFT,
    DESTINATION_QUEUE_TYPE_SHIFT,
    EXPRESS,
    JOURNAL_NEGATIVE,
    RECOVERABLE,
    UserHeader,
)
from falconmq.wire.user_message import UserMessage

_BODY_FILL: Final = b"a\0"  # all of frame 7's body that is published repeats this character

SALES: Final = guid_bytes(UUID("11111111-2222-4333-8444-555555555555"))  # queue managers
BILLING: Final = guid_bytes(UUID("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"))
SITE: Final = guid_bytes(UUID("99999999-8888-4777-8666-000000000001"))
QUEUE: Final = guid_bytes(UUID("99999999-8888-4777-8666-000000000002"))
SENT_TIME: Final = 1_700_000_000
_ORDERS: Final = "OS:billing\\private$\\orders"
_NOTIFY_QUEUE: Final = 3
_SEQUENCE: Final = tx_sequence_id(7, SENT_TIME)


# The session of the specification


@dataclass(slots=True)
class ExampleFrame:
    """One frame of the example; `missing` bytes of it are not published and were filled in."""

    name: str
    is_ping: bool
    from_client: bool
    data: bytes
    missing: int = 0


def session_frames() -> list[ExampleFrame]:
    """The frames of MS-MQQB 4.1, the one that is published in part completed."""
    text = resources.files("falconmq.cli").joinpath("session_example.json").read_text("utf-8")
    frames = []
    for frame in json.loads(text)["frames"]:
        published = bytes.fromhex(frame["hex"])
        data = published if frame["complete"] else complete(published)
        is_ping = frame["transport"] == "UDP"
        missing = len(data) - len(published)
        frames.append(ExampleFrame(frame["name"], is_ping, frame["from_client"], data, missing))
    return frames


def complete(published: bytes) -> bytes:
    """Frame 7 as it must have been: the body goes on as it began, then padding to PacketSize."""
    size = int.from_bytes(published[8:12], "little")
    padding = 2  # 222 bytes before the body and 2000 of it leave 2 to the boundary of 4
    fill = size - padding - len(published)
    return published + _BODY_FILL * (fill // len(_BODY_FILL)) + bytes(padding)


# One message of each kind


@dataclass(slots=True)
class Example:
    """A message, and what must come out of its bytes again."""

    name: str
    message: UserMessage
    read_body: Callable[[UserMessage], object] | None = None
    expected: object = None


@dataclass(slots=True)
class Verified:
    """An example after the way over the wire; `difference` is empty if all came back."""

    example: Example
    data: bytes
    difference: str = ""


def verify(example: Example) -> Verified:
    """Encode, decode, compare every header and the body, encode again, compare the bytes."""
    data = example.message.encode()
    try:
        again = decode_packet(data)
        if not isinstance(again, UserMessage):
            return Verified(example, data, "came back as another kind of packet")
        sent = example.message
        difference = next(
            (name for name in _COMPARED if not _is_same(getattr(sent, name), getattr(again, name))),
            "",
        )
        if not difference and again.encode() != data:
            difference = "the bytes of the second encoding"
        if not difference and example.read_body and example.read_body(again) != example.expected:
            difference = "what the body says"
    except WireError as error:
        difference = str(error)
    return Verified(example, data, difference)


_COMPARED: Final = (
    "user",
    "properties",
    "transaction",
    "security",
    "debug",
    "soap",
    "multi_queue_format",
    "session",
)


def _is_same(sent: object, got: object) -> bool:
    """Field by field; what the encoder fills in itself is left out."""
    if isinstance(sent, UserHeader) and isinstance(got, UserHeader):
        return not sent.flags & ~got.flags and replace(got, flags=sent.flags) == sent
    if isinstance(sent, MessagePropertiesHeader) and isinstance(got, MessagePropertiesHeader):
        return replace(got, allocation_body_size=sent.allocation_body_size) == sent
    return sent == got


def examples() -> list[Example]:
    """One message of each kind, made from scratch."""
    return [
        Example("express", _message("hello", b"Hello, MSMQ!")),
        Example(
            "recoverable",
            _message("order 4711", "4711 x 12".encode("utf-16-le"), mode=RECOVERABLE, body_type=8),
        ),
        Example("transactional", _transactional()),
        Example("with security header", _secured()),
        Example("to several queues", _multiple()),
        Example("administration ack", _administration_ack()),
        _order_ack(),
        _final_ack(),
        _notification_v1(),
        _notification_v2(),
        _replication(),
    ]


def _header(
    destination: QueueName = _ORDERS,
    *,
    mode: int = EXPRESS,
    flags: int = 0,
    admin: int | None = None,
    message_id: int = 1,
) -> UserHeader:
    is_direct = isinstance(destination, str)
    queue_type = DIRECT if is_direct else PRIVATE_ON_DESTINATION
    flags |= mode << DELIVERY_MODE_SHIFT | queue_type << DESTINATION_QUEUE_TYPE_SHIFT
    if admin is not None:
        flags |= PRIVATE_ON_SOURCE << ADMIN_QUEUE_TYPE_SHIFT
    address = NULL_GUID if is_direct else BILLING
    return UserHeader(
        SALES, address, INFINITE, SENT_TIME, message_id, flags, destination, admin_queue=admin
    )


def _message(
    label: str,
    body: bytes,
    *,
    destination: QueueName = _ORDERS,
    mode: int = EXPRESS,
    body_type: int = 0,
) -> UserMessage:
    base = BaseHeader(DEFAULT_PRIORITY, PACKET_SIZE_MIN, time_to_reach_queue=345600)
    properties = MessagePropertiesHeader(label=label, message_body=body, body_type=body_type)
    return UserMessage(base, _header(destination, mode=mode), properties)


def _transactional() -> UserMessage:
    message = _message("debit 10.00", b'{"account": 7, "debit": 10.00}', mode=RECOVERABLE)
    message.base.flags = 0  # priority 0, MQ-2.2.19.1-10
    message.user = _header(mode=RECOVERABLE, flags=JOURNAL_NEGATIVE, admin=0x22, message_id=2)
    message.properties.flags = POSITIVE_ARRIVAL | NEGATIVE_ARRIVAL
    flags = FINAL_ACK_REQUIRED | FIRST_MESSAGE | LAST_MESSAGE | 0xABCDE << TRANSACTION_ID_SHIFT
    message.transaction = TransactionHeader(flags, _SEQUENCE, 1, 0)
    return message


def _secured() -> UserMessage:
    message = _message("who am I", b"whoami")
    sid = Sid.parse("S-1-5-21-3181267629-1039849782-3663111779-1000")
    message.security = SecurityHeader(SENDER_ID_SID, security_id=sid.encode())
    return message


def _multiple() -> UserMessage:
    message = _message("to all", b"prices changed")
    names = (
        MQFFormatNameElement(MQF_DIRECT, _ORDERS),
        MQFFormatNameElement(MQF_DIRECT, "OS:archive\\private$\\orders"),
        MQFFormatNameElement(MQF_PUBLIC, QUEUE),
    )
    message.multi_queue_format = MultiQueueFormatHeader(MQFAddressHeader(DESTINATION_ID, names))
    return message


def _administration_ack() -> UserMessage:
    """What billing answers to the transactional message: it reached its queue."""
    message = _message("", b"", destination=0x22)
    message.base.time_to_reach_queue = INFINITE
    message.user.source_queue_manager, message.user.queue_manager_address = BILLING, SALES
    message.properties.message_class = MessageClass.ACK_REACH_QUEUE
    message.properties.correlation_id = message_identifier(SALES, 2)
    return message


def _order_ack() -> Example:
    ack = OrderAck(OrderAckBody.up_to(_SEQUENCE, 1))
    message = ack.to_user_message(
        source_queue_manager=BILLING, destination=SALES, sent_time=SENT_TIME, message_id=11
    )
    return Example("order ack", message, from_user_message, ack)


def _final_ack() -> Example:
    ack = FinalAck(FinalAckBody.about(_transactional()))
    message = ack.to_user_message(
        source_queue_manager=BILLING, destination="10.0.0.7", sent_time=SENT_TIME, message_id=12
    )
    return Example("final ack", message, from_user_message, ack)


def _notification_v1() -> Example:
    update = NotificationUpdate(
        UPDATE,
        QUEUE,
        SALES,
        [
            (int(QueueProperty.PROPID_Q_QUOTA), 8192),
            (int(QueueProperty.PROPID_Q_JOURNAL), 1),
            (int(QueueProperty.PROPID_Q_QMID), BILLING),
        ],
    )
    return _notification("change notification v1", ChangeNotificationMessage([update]))


def _notification_v2() -> Example:
    body = NotificationBody(NotificationEvent.QUEUE_CREATED, QUEUE, "dc1.example.com")
    return _notification("change notification v2", ChangeNotificationMessage(body))


def _notification(name: str, notification: ChangeNotificationMessage) -> Example:
    message = _message("", notification.encode(), destination=_NOTIFY_QUEUE)
    return Example(
        name,
        message,
        lambda got: ChangeNotificationMessage.decode(got.properties.message_body),
        notification,
    )


def _replication() -> Example:
    change = DirectoryChange(
        CREATE,
        "billing\\orders",
        SITE,
        previous_seq_number=41,
        seq_number=42,
        properties=[
            (int(QueueProperty.PROPID_Q_INSTANCE), QUEUE),
            (int(QueueProperty.PROPID_Q_LABEL), "orders"),
            (int(QueueProperty.PROPID_Q_CREATE_TIME), SENT_TIME),
        ],
    )
    numbers = SeqNumberHeader("PSC1", [PartitionSeqNumbers(SITE, 42, 0)])
    replication = ChangePropagationMessage(SITE, [change], numbers)
    message = _message("", replication.encode(), destination="OS:psc2\\private$\\mqis_queue$")
    return Example(
        "directory replication",
        message,
        lambda got: decode_replication_message(got.properties.message_body),
        replication,
    )
