"""Message: what users hold in their hands (MQDMPR 3.1.1.12).

    Message("hello", label="greeting", priority=5)
    Message(b"\\x01\\x02", recoverable=False)
    Message.json({"order": 7}, response_queue="DIRECT=OS:web\\\\private$\\\\replies")

A message is checked when it is made and again when it is sent, because its properties may be
changed in between. One that was received is never checked: it holds what the peer sent, even where
FalconMQ itself would not send that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack
from uuid import UUID

from falconmq.body import (
    BodyType,
    BodyValue,
    XmlValue,
    body_text,
    decode_variant,
    decode_xml,
    describe_body,
    encode_variant,
    encode_xml,
)
from falconmq.errors import MessageError, MqStatus
from falconmq.message.checks import bad_correlation_id, check_message
from falconmq.message.enums import (
    Acknowledge,
    AuthenticationLevel,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.message.message_id import NO_MESSAGE_ID, MessageId
from falconmq.message.parts import CryptographicProvider, MessageTransaction
from falconmq.names import MultipleElementFormatName, SingleFormatName, parse_format_name
from falconmq.wire.base_header import DEFAULT_PRIORITY, INFINITE
from falconmq.wire.message_class import MessageClass

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

DEFAULT_TIME_TO_REACH_QUEUE: Final = 345_600  # seconds: four days, DM-3.1.1.12-85

_LISTS: Final = {
    "destination": "destinations",
    "administration_queue": "administration_queues",
    "response_queue": "response_queues",
}


class MessageProperties(TypedDict, total=False):
    """The keywords of `Message(...)`, for those who pass them on."""

    label: str
    priority: int
    recoverable: bool | None
    delivery: Delivery | None
    time_to_reach_queue: int | None
    time_to_be_received: int
    acknowledgements: Acknowledge
    journal: Journal
    administration_queue: SingleFormatName | str | None
    response_queue: SingleFormatName | str | None
    correlation_id: bytes | str
    application_tag: int
    extension: bytes
    message_class: int
    destination: SingleFormatName | str | None
    destinations: tuple[SingleFormatName, ...]
    administration_queues: tuple[SingleFormatName, ...]
    response_queues: tuple[SingleFormatName, ...]
    dead_letter_queue: str
    allow_peek_when_locked: bool
    trace: bool
    report_queue: UUID | None
    connector_type: UUID | None
    privacy_level: int
    encryption_algorithm: int | None
    hash_algorithm: int
    authentication_level: int
    sender_id: bytes
    sender_id_type: int | None
    sender_certificate: bytes
    signature: bytes
    multiple_destination_signature: bytes
    symmetric_key: bytes
    provider: CryptographicProvider | None
    soap_header: str | None
    soap_body: str | None


@dataclass(slots=True, init=False, repr=False)
class Message:
    """One message. The keywords are what a sender may choose; the rest is filled in on the way.

    What it says
        body, body_type       bytes, and the VARIANT type that tells readers what they are.
                              `Message("text")` makes VT_BSTR, as COM does; `Message.json`,
                              `Message.xml` and `Message.variant` make the other usual bodies
        label                 up to 249 characters that people and filters see
        application_tag       a number of the application, AppSpecific in Windows
        extension             bytes beside the body
        correlation_id        the id of the message this one answers
        message_class         NORMAL, or what an acknowledgement says
    Where it goes
        destination           the queue; `Queue.send` fills it in
        destinations          all queues, when it goes to several at once
        response_queue, response_queues              where answers are expected
        administration_queue, administration_queues  where acknowledgements go
        dead_letter_queue     path name of a dead-letter queue of the application's own
    How it travels
        priority              0 to 7; transactional messages have 0
        recoverable           True: it survives a restart; False: it lives in memory alone; None:
                              as the queue manager that sends it does by default
        delivery              the same as MSMQ says it, RECOVERABLE or EXPRESS; `send` fills it in
        time_to_reach_queue   seconds; None is the queue manager's default, four days unless
                              configured; INFINITE is no limit
        time_to_be_received   seconds from sending until it expires unread
        acknowledgements      which ones the sender wants; needs an administration queue
        journal               which copies the sending computer keeps
        trace, report_queue   report each hop to this public queue
        connector_type, allow_peek_when_locked
    Who sent it and how it is protected
        privacy_level         whether the body is encrypted on its way to another computer
        authentication_level  which signature the queue manager is to make when it is sent; of a
                              received message, which signature was verified
        hash_algorithm        the hash of that signature
        sender_certificate    whose key signs; left out: the sender's own. Of a received message,
                              the certificate of whoever signed it
        sender_id             the SID of the sender. Left out, the queue manager fills it in if it
                              knows who sends; `sender_id_type=SenderIdType.NONE` leaves it out
        encryption_algorithm, symmetric_key, signature, multiple_destination_signature, provider
    Filled in by queue managers
        id, sent_time, destination_queue_manager, hop_count, transaction, arrived_time, lookup_id,
        abort_count, move_count, transaction_status_queue, soap_header, soap_body, soap_envelope,
        soap_compound_message
    """

    body: bytes
    body_type: int
    label: str
    priority: int
    delivery: Delivery
    recoverable: bool | None = field(compare=False)  # `delivery` says it for good
    time_to_reach_queue: int | None
    time_to_be_received: int
    acknowledgements: Acknowledge
    journal: Journal
    administration_queue: SingleFormatName | None
    response_queue: SingleFormatName | None
    correlation_id: MessageId
    application_tag: int
    extension: bytes
    message_class: int
    destination: SingleFormatName | None
    destinations: tuple[SingleFormatName, ...]
    administration_queues: tuple[SingleFormatName, ...]
    response_queues: tuple[SingleFormatName, ...]
    dead_letter_queue: str
    allow_peek_when_locked: bool
    trace: bool
    report_queue: UUID | None
    connector_type: UUID | None
    privacy_level: int
    encryption_algorithm: int
    hash_algorithm: int
    authentication_level: int
    sender_id: bytes
    sender_id_type: int
    sender_certificate: bytes
    signature: bytes
    multiple_destination_signature: bytes
    symmetric_key: bytes
    provider: CryptographicProvider | None
    soap_header: str | None
    soap_body: str | None

    id: MessageId | None
    sent_time: int | None  # seconds since 1970, UTC
    destination_queue_manager: UUID | None
    hop_count: int
    transaction: MessageTransaction | None
    arrived_time: int | None  # seconds since 1970, UTC
    lookup_id: int | None
    abort_count: int
    move_count: int
    transaction_status_queue: SingleFormatName | None
    soap_envelope: str | None
    soap_compound_message: str | None

    def __init__(
        self,
        body: str | bytes | bytearray | memoryview = b"",
        *,
        body_type: int | None = None,
        label: str = "",
        priority: int = DEFAULT_PRIORITY,
        recoverable: bool | None = None,
        delivery: Delivery | None = None,
        time_to_reach_queue: int | None = None,
        time_to_be_received: int = INFINITE,
        acknowledgements: Acknowledge = Acknowledge.NONE,
        journal: Journal = Journal.NONE,
        administration_queue: SingleFormatName | str | None = None,
        response_queue: SingleFormatName | str | None = None,
        correlation_id: bytes | str = NO_MESSAGE_ID,
        application_tag: int = 0,
        extension: bytes = b"",
        message_class: int = MessageClass.NORMAL,
        destination: SingleFormatName | str | None = None,
        destinations: tuple[SingleFormatName, ...] = (),
        administration_queues: tuple[SingleFormatName, ...] = (),
        response_queues: tuple[SingleFormatName, ...] = (),
        dead_letter_queue: str = "",
        allow_peek_when_locked: bool = False,
        trace: bool = False,
        report_queue: UUID | None = None,
        connector_type: UUID | None = None,
        privacy_level: int = PrivacyLevel.NONE,
        encryption_algorithm: int | None = None,
        hash_algorithm: int = HashAlgorithm.SHA_512,
        authentication_level: int = AuthenticationLevel.NONE,
        sender_id: bytes = b"",
        sender_id_type: int | None = None,
        sender_certificate: bytes = b"",
        signature: bytes = b"",
        multiple_destination_signature: bytes = b"",
        symmetric_key: bytes = b"",
        provider: CryptographicProvider | None = None,
        soap_header: str | None = None,
        soap_body: str | None = None,
    ) -> None:
        self.body, self.body_type = _body(body, body_type)
        self.label = label
        self.priority = priority
        self.delivery, self.recoverable = _delivery(delivery, recoverable)
        self.time_to_reach_queue = time_to_reach_queue
        self.time_to_be_received = time_to_be_received
        self.acknowledgements = acknowledgements
        self.journal = journal
        self.administration_queue = _format_name("administration_queue", administration_queue)
        self.response_queue = _format_name("response_queue", response_queue)
        self.correlation_id = _correlation_id(correlation_id)
        self.application_tag = application_tag
        self.extension = extension
        self.message_class = message_class
        self.destination = _format_name("destination", destination)
        self.destinations = destinations
        self.administration_queues = administration_queues
        self.response_queues = response_queues
        self.dead_letter_queue = dead_letter_queue
        self.allow_peek_when_locked = allow_peek_when_locked
        self.trace = trace
        self.report_queue = report_queue
        self.connector_type = connector_type
        self.privacy_level = privacy_level
        if encryption_algorithm is None:
            is_aes = privacy_level == PrivacyLevel.ADVANCED
            encryption_algorithm = EncryptionAlgorithm.AES256 if is_aes else EncryptionAlgorithm.RC4
        self.encryption_algorithm = encryption_algorithm
        self.hash_algorithm = hash_algorithm
        self.authentication_level = authentication_level
        self.sender_id = sender_id
        self.sender_id_type = SenderIdType.SID if sender_id_type is None else sender_id_type
        self.sender_certificate = sender_certificate
        self.signature = signature
        self.multiple_destination_signature = multiple_destination_signature
        self.symmetric_key = symmetric_key
        self.provider = provider
        self.soap_header = soap_header
        self.soap_body = soap_body
        self.id = None
        self.sent_time = None
        self.destination_queue_manager = None
        self.hop_count = 0
        self.transaction = None
        self.arrived_time = None
        self.lookup_id = None
        self.abort_count = 0
        self.move_count = 0
        self.transaction_status_queue = None
        self.soap_envelope = None
        self.soap_compound_message = None
        self.check()

    @classmethod
    def json(cls, value: Any, **properties: Unpack[MessageProperties]) -> Self:
        """A message whose body is `value` as JSON in UTF-8."""
        import json  # noqa: PLC0415 - most programs that import messages never need it

        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            body = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise MessageError("body", f"JSON cannot hold this value: {error}") from error
        return cls(body, **properties)

    @classmethod
    def xml(
        cls, value: XmlValue, type_name: str | None = None, **properties: Unpack[MessageProperties]
    ) -> Self:
        """A message whose body .NET's XmlMessageFormatter reads: `<string>hello</string>`."""
        return cls(encode_xml(value, type_name), **properties)

    @classmethod
    def variant(
        cls, value: BodyValue, body_type: int | None = None, **properties: Unpack[MessageProperties]
    ) -> Self:
        """A message whose body COM and .NET's ActiveXMessageFormatter read: a typed value."""
        body, known_type = encode_variant(value, body_type)
        return cls(body, body_type=known_type, **properties)

    @property
    def text(self) -> str:
        """The body as text: a VARIANT string, or plain UTF-8."""
        return body_text(self.body, self.body_type)

    @property
    def value(self) -> BodyValue:
        """The body as the value its type says; the bytes themselves if it has none."""
        return decode_variant(self.body, self.body_type)

    def as_json(self) -> Any:
        """The value of a JSON body."""
        import json  # noqa: PLC0415 - most programs that import messages never need it

        text = self.text
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            what = describe_body(self.body, self.body_type)
            raise MessageError("body", f"no JSON: it is {what}; {error}") from error

    def as_xml(self) -> XmlValue | Element:
        """The value of an XML body; the root element if it is more than one simple value."""
        body = self.body if self.body_type == BodyType.VT_EMPTY else self.text.encode()
        return decode_xml(body)

    @property
    def is_transactional(self) -> bool:
        return self.transaction is not None

    @property
    def is_authenticated(self) -> bool:
        return self.authentication_level != AuthenticationLevel.NONE

    @property
    def is_signed(self) -> bool:
        """Whether it carries a signature, verified or not."""
        return bool(self.signature or self.multiple_destination_signature)

    @property
    def wants_signature(self) -> bool:
        """Whether whoever sends it has to sign it first."""
        return bool(self.authentication_level) and not self.is_signed

    @property
    def source_queue_manager(self) -> UUID | None:
        """The queue manager that took the message from the application."""
        return None if self.id is None else self.id.queue_manager

    @property
    def transaction_id(self) -> MessageId | None:
        """Names the transaction, and prints like a message id: sender and the 20-bit number."""
        if self.id is None or self.transaction is None:
            return None
        return MessageId.of(self.id.queue_manager, self.transaction.id)

    @property
    def sent_at(self) -> datetime | None:
        return _datetime(self.sent_time)

    @property
    def arrived_at(self) -> datetime | None:
        return _datetime(self.arrived_time)

    def check(self) -> None:
        """Refuse what MSMQ does not allow a sender to say: MessageError with field and hint."""
        check_message(self)

    def __repr__(self) -> str:
        parts = [describe_body(self.body, self.body_type)]
        if self.label:
            parts.append(f"label {self.label!r}")
        if self.message_class != MessageClass.NORMAL:
            parts.append(_class_name(self.message_class))
        if self.is_transactional:
            parts.append("transactional")
        elif self.delivery == Delivery.RECOVERABLE:
            parts.append("recoverable")
        if self.priority != DEFAULT_PRIORITY and not self.is_transactional:
            parts.append(f"priority {self.priority}")
        if self.id is not None:
            parts.append(f"id {self.id}")
        return f"<Message: {', '.join(parts)}>"


def is_expired(now: int, sent_time: int, time_to_reach_queue: int) -> bool:
    """Whether a message is too late: more than its time has passed since it was sent.

    The sender then deletes it and the receiver ignores it. All three are seconds, `now` and
    `sent_time` since 1970.
    """
    if time_to_reach_queue == INFINITE:  # MQ-2.2.19.1-36
        return False
    return now - sent_time > time_to_reach_queue  # MQ-2.2.19.1-37, MQ-2.2.19.1-40


def _body(body: object, body_type: int | None) -> tuple[bytes, int]:
    if isinstance(body, str):
        return encode_variant(body, body_type)
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body), BodyType.VT_EMPTY if body_type is None else body_type
    raise MessageError(
        "body",
        f"a body is text or bytes, not {type(body).__name__}",
        status=MqStatus.ILLEGAL_PROPERTY_VT,
        hint="use Message.json(...), Message.xml(...) or Message.variant(...)",
    )


def _delivery(delivery: Delivery | None, recoverable: bool | None) -> tuple[Delivery, bool | None]:
    if delivery is None:
        return (Delivery.RECOVERABLE if recoverable else Delivery.EXPRESS), recoverable
    if recoverable is not None and recoverable != (delivery == Delivery.RECOVERABLE):
        raise MessageError(
            "recoverable",
            f"{recoverable} contradicts delivery {delivery!r}",
            status=MqStatus.PROPERTIES_CONFLICT,
            hint="give one of the two",
        )
    return delivery, delivery == Delivery.RECOVERABLE


def _format_name(field: str, name: SingleFormatName | str | None) -> SingleFormatName | None:
    if not isinstance(name, str):
        return name
    parsed = parse_format_name(name)
    if isinstance(parsed, MultipleElementFormatName):  # DM-3.1.1.12-61
        raise MessageError(
            field,
            "one queue is needed, these are several",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
            hint=f"the list goes into {_LISTS[field]}",
        )
    return parsed


def _correlation_id(value: bytes | str) -> MessageId:
    if isinstance(value, MessageId):
        return value
    if isinstance(value, str):
        return MessageId.parse(value)
    if len(value) != 20:
        raise bad_correlation_id(value)
    return MessageId(value)


def _datetime(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _class_name(message_class: int) -> str:
    if isinstance(message_class, MessageClass):
        return message_class.name
    return f"class {message_class:#06x}"
