"""Rules of the specification that a decoder lets pass and a careful reader wants to know about.

The decoders accept what Windows and newer peers really send; `check` then says where a packet
breaks a rule all the same. Each finding names the row of the requirement catalogue, so that whoever
builds or debugs a peer can look it up. A finding never means that FalconMQ would refuse the packet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from falconmq.errors import WireError
from falconmq.wire import base_header, message_properties_header, security_header, user_header
from falconmq.wire.base_header import INFINITE, BaseHeader
from falconmq.wire.connection_parameters import (
    ACK_TIMEOUT_MAX,
    ACK_TIMEOUT_MIN,
    RECOVERABLE_ACK_TIMEOUT_MAX,
    RECOVERABLE_ACK_TIMEOUT_MIN,
    ConnectionParameters,
)
from falconmq.wire.debug_header import QUEUE_TYPE as DEBUG_QUEUE_TYPE
from falconmq.wire.debug_header import RESERVED_FLAGS as DEBUG_RESERVED_FLAGS
from falconmq.wire.establish_connection import (
    PADDING,
    RELEASE,
    RELEASE_VALUE,
    RESERVED_OPERATING_SYSTEM,
    EstablishConnection,
)
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.internal_header import RESERVED_FLAGS as INTERNAL_RESERVED_FLAGS
from falconmq.wire.internal_header import InternalHeader
from falconmq.wire.message_class import MessageClass, is_sendable
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import MultiQueueFormatHeader
from falconmq.wire.ordering_acks import (
    BODY_SIZE,
    FINAL_ACK_CLASS_MIN,
    LABEL,
    ORDER_QUEUE,
    ORDER_QUEUE_IDENTIFIER,
)
from falconmq.wire.ping import Ping
from falconmq.wire.queue_name import ADMIN_QUEUE, DIRECT, NONE, PRIVATE_ON_ADMIN
from falconmq.wire.security_header import SecurityHeader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.sid import Sid
from falconmq.wire.transaction_header import RESERVED_FLAGS as TRANSACTION_RESERVED_FLAGS
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import RECOVERABLE, UserHeader
from falconmq.wire.user_message import UserMessage
from falconmq.wire.words import body_type_name

_FINAL_ACK_CLASSES: Final = frozenset(
    {0x4000, 0x8000, 0x8003, 0x8004, 0x8006, 0x8007, 0x8009, 0x800B, 0xC000, 0xC001, 0xC002, 0xC004}
)  # QB-2.2.5-14, QB-2.2.5-15; 0xC004 by QB-A35
_BASE_BITS: Final = ((0x00C0, "MQ-2.2.19.1-19"), (0xFE00, "MQ-2.2.19.1-24"))
_USER_BITS: Final = (
    (0x00000080, "MQ-2.2.19.2-22"),
    (0x01000000, "MQ-2.2.19.2-72"),
    (0x0C000000, "MQ-2.2.19.2-76"),
    (0xE0000000, "MQ-2.2.19.2-80"),
)
_HASHES: Final = frozenset({0x8001, 0x8002, 0x8003, 0x8004, 0x800C, 0x800E})
_WEAK_CIPHERS: Final = frozenset({0x6602, 0x6801})
_AES_CIPHERS: Final = frozenset({0x660E, 0x660F, 0x6610})
_CIPHERS_OF_LEVEL: Final = {
    1: (_WEAK_CIPHERS, "MQ-2.2.19.3-40"),
    3: (_WEAK_CIPHERS, "MQ-2.2.19.3-41"),
    5: (_AES_CIPHERS, "MQ-2.2.19.3-42"),
}


class Finding(NamedTuple):
    """A rule that a packet breaks."""

    row: str  # of conformance/*.tsv
    field: str  # Structure.Field
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem} ({self.row})"


def check(packet: object, *, is_response: bool | None = None) -> list[Finding]:
    """The rules that a decoded packet breaks.

    `is_response` says whether an EstablishConnection or a Ping goes from the acceptor to the
    initiator; None if nobody knows.
    """
    if isinstance(packet, UserMessage):
        return list(_user_message(packet))
    if isinstance(packet, EstablishConnection):
        return list(_establish_connection(packet, is_response))
    if isinstance(packet, ConnectionParameters):
        return list(_connection_parameters(packet))
    if isinstance(packet, SessionAck):
        return list(_session_ack(packet))
    if isinstance(packet, Ping) and is_response is False and packet.refused:
        return [Finding("QB-2.2.7-06", "Ping.Flags", "RF is set in a request")]
    return []


def is_ordering_ack(message: UserMessage) -> bool:
    """Whether this is an OrderAck or a FinalAck, its body well-formed or not (QB-A10)."""
    properties, queue = message.properties, message.user.destination_queue
    if isinstance(queue, str):
        to_order_queue = queue.lower().endswith(ORDER_QUEUE.lower())
    else:
        to_order_queue = queue == ORDER_QUEUE_IDENTIFIER
    message_class = properties.message_class
    return (
        to_order_queue
        and (message_class == MessageClass.ORDER_ACK or message_class >= FINAL_ACK_CLASS_MIN)
        and properties.label == LABEL
        and len(properties.message_body) == BODY_SIZE
    )


# Headers of every packet


def _reserved_bits(value: int, rows: tuple[tuple[int, str], ...], field: str) -> Iterator[Finding]:
    for mask, row in rows:
        if value & mask:
            yield Finding(row, field, f"reserved bits {value & mask:#x} are set")


def _reserved(value: int, row: str, field: str) -> Iterator[Finding]:
    if value:
        yield Finding(row, field, f"{value:#x} instead of 0")


def _internal(base: BaseHeader, internal: InternalHeader) -> Iterator[Finding]:
    yield from _reserved_bits(base.flags, _BASE_BITS, "BaseHeader.Flags")
    if base.time_to_reach_queue != INFINITE:
        problem = f"{base.time_to_reach_queue} s in an internal packet, not infinite"
        yield Finding("MQ-2.2.19.1-41", "BaseHeader.TimeToReachQueue", problem)
    if base.flags & base_header.DEBUG_HEADER:
        problem = "DH is set in an internal packet"
        yield Finding("MQ-2.2.19.1-17", "BaseHeader.Flags", problem)
    yield from _trace(base)
    yield from _reserved(internal.reserved, "QB-2.2.1-02", "InternalHeader.Reserved")
    rows = ((INTERNAL_RESERVED_FLAGS, "QB-2.2.1-11"),)
    yield from _reserved_bits(internal.flags, rows, "InternalHeader.Flags")


def _trace(base: BaseHeader) -> Iterator[Finding]:
    if base.flags & (base_header.TRACE | base_header.DEBUG_HEADER) == base_header.TRACE:
        yield Finding("MQ-2.2.19.1-23", "BaseHeader.Flags", "TR is set without DH")


def _no_session_header(base: BaseHeader) -> Iterator[Finding]:
    if base.flags & base_header.SESSION_HEADER:
        problem = "SH is set, but this packet has no SessionHeader"
        yield Finding("MQ-2.2.19.1-15", "BaseHeader.Flags", problem)


def _session_header(session: SessionHeader) -> Iterator[Finding]:
    if session.window_size == 0:
        problem = "0: nothing could ever be sent"
        yield Finding("MQ-2.2.20.4-17", "SessionHeader.WindowSize", problem)
    number, flags = session.recoverable_msg_ack_seq_number, session.recoverable_msg_ack_flags
    field = "SessionHeader.RecoverableMsgAckSeqNumber"
    if flags and not flags & 1:
        problem = f"number {number} itself is not on disk: its bit is clear"
        yield Finding("MQ-2.2.20.4-08", field, problem)
    elif number and not flags:
        problem = f"{number}, but no message is marked as stored"
        yield Finding("MQ-2.2.20.4-09", field, problem)


# Internal packets


def _establish_connection(
    packet: EstablishConnection, is_response: bool | None
) -> Iterator[Finding]:
    yield from _internal(packet.base, packet.internal)
    yield from _no_session_header(packet.base)
    release = packet.operating_system & RELEASE
    if release != RELEASE_VALUE:
        problem = f"RE is {release:#04x} instead of {RELEASE_VALUE:#04x}"
        yield Finding("QB-2.2.3.1-09", "EstablishConnectionHeader.OperatingSystem", problem)
    rows = ((RESERVED_OPERATING_SYSTEM, "QB-2.2.3.1-15"),)
    field = "EstablishConnectionHeader.OperatingSystem"
    yield from _reserved_bits(packet.operating_system, rows, field)
    field = "EstablishConnectionHeader.Reserved"
    yield from _reserved(packet.reserved, "QB-2.2.3.1-17", field)
    if is_response and packet.padding != PADDING:
        problem = "not all 0x5A in a response"
        yield Finding("QB-2.2.3.1-19", "EstablishConnectionHeader.Padding", problem)


def _connection_parameters(packet: ConnectionParameters) -> Iterator[Finding]:
    yield from _internal(packet.base, packet.internal)
    yield from _no_session_header(packet.base)
    for value, low, high, row, field in (
        (
            packet.recoverable_ack_timeout,
            RECOVERABLE_ACK_TIMEOUT_MIN,
            RECOVERABLE_ACK_TIMEOUT_MAX,
            "QB-2.2.2.1-01",
            "RecoverableAckTimeout",
        ),
        (packet.ack_timeout, ACK_TIMEOUT_MIN, ACK_TIMEOUT_MAX, "QB-2.2.2.1-02", "AckTimeout"),
    ):
        if not low <= value <= high:
            problem = f"{value} ms is not in {low}..{high}"
            yield Finding(row, f"ConnectionParametersHeader.{field}", problem)
    field = "ConnectionParametersHeader.Reserved"
    yield from _reserved(packet.reserved, "QB-2.2.2.1-03", field)


def _session_ack(packet: SessionAck) -> Iterator[Finding]:
    yield from _internal(packet.base, packet.internal)
    yield from _session_header(packet.session)


# User messages


def _user_message(message: UserMessage) -> Iterator[Finding]:
    if is_ordering_ack(message):
        yield from _ordering_ack(message)
    else:
        yield from _reserved_bits(message.base.flags, _BASE_BITS, "BaseHeader.Flags")
    yield from _trace(message.base)
    yield from _user_header(message.user)
    if message.transaction is not None:
        yield from _transactional(message, message.transaction)
    if message.security is not None:
        yield from _security(message.security, message.properties)
    yield from _properties(message.properties)
    yield from _acknowledgements(message)
    yield from _optional_headers(message)


def _user_header(user: UserHeader) -> Iterator[Finding]:
    yield from _reserved_bits(user.flags, _USER_BITS, "UserHeader.Flags")
    if user.flags & user_header.HTTP:
        problem = "AH is set outside a remote-read image"
        yield Finding("MQ-2.2.19.2-75", "UserHeader.Flags", problem)
    hops = user.flags & user_header.HOP_COUNT
    if hops > user_header.HOP_COUNT_MAX:
        problem = f"RC says {hops} hops, {user_header.HOP_COUNT_MAX} are the most"
        yield Finding("MQ-2.2.19.2-16", "UserHeader.Flags", problem)
    if user.delivery_mode > RECOVERABLE:
        problem = f"DM {user.delivery_mode} is neither express nor recoverable"
        yield Finding("MQ-2.2.19.2-18", "UserHeader.Flags", problem)
    field = "UserHeader.QueueManagerAddress"
    is_null = user.queue_manager_address == NULL_GUID
    if user.destination_queue_type == DIRECT and not is_null:
        yield Finding("MQ-2.2.19.2-06", field, "not null although the destination is direct")
    elif user.destination_queue_type not in (DIRECT, NONE) and is_null:
        yield Finding("MQ-2.2.19.2-05", field, "null although the destination is not direct")
    if user.response_queue_type == ADMIN_QUEUE and user.admin_queue is None:
        problem = "RQ 1 says the admin queue, there is none"
        yield Finding("MQ-2.2.19.2-52", "UserHeader.Flags", problem)
    if user.response_queue_type == PRIVATE_ON_ADMIN and user.admin_queue is None:
        problem = "RQ 4 says the host of the admin queue, there is none"
        yield Finding("MQ-2.2.19.2-56", "UserHeader.Flags", problem)
    for field, name in (
        ("DestinationQueue", user.destination_queue),
        ("AdminQueue", user.admin_queue),
        ("ResponseQueue", user.response_queue),
    ):
        if isinstance(name, str) and "\0" in name:
            problem = "a NUL inside the name"
            yield Finding("MQ-2.2.18.1.5.2-02", f"UserHeader.{field}", problem)


def _transactional(message: UserMessage, transaction: TransactionHeader) -> Iterator[Finding]:
    priority = message.base.flags & base_header.PRIORITY
    if priority:
        problem = f"PR is {priority} in a transactional message, not 0"
        yield Finding("MQ-2.2.19.1-10", "BaseHeader.Flags", problem)
    if message.user.delivery_mode != RECOVERABLE:
        problem = "TH is set, but DM does not say recoverable"
        yield Finding("MQ-2.2.19.2-65", "UserHeader.Flags", problem)
    rows = ((TRANSACTION_RESERVED_FLAGS, "MQ-2.2.20.5-16"),)
    yield from _reserved_bits(transaction.flags, rows, "TransactionHeader.Flags")
    number, previous = transaction.tx_sequence_number, transaction.previous_tx_sequence_number
    if previous >= number:
        problem = f"{previous} does not come before {number}"
        yield Finding("MQ-2.2.20.5-22", "TransactionHeader.PreviousTxSequenceNumber", problem)


def _security(security: SecurityHeader, properties: MessagePropertiesHeader) -> Iterator[Finding]:
    flags = security.flags
    field = "SecurityHeader.Flags"
    yield from _sender_id(security)
    if flags & security_header.AUTHENTICATED:
        yield Finding("MQ-2.2.20.6-09", field, "AU is set on the wire")
    if flags & security_header.AUTHENTICATION_SIGNATURE:
        yield Finding("MQ-2.2.20.6-19", field, "AS is set on the wire")
    rows = ((security_header.RESERVED_FLAGS, "MQ-2.2.20.6-20"),)
    yield from _reserved_bits(flags, rows, field)
    data = (security.security_id, security.encryption_key, security.signature, security.sender_cert)
    if not any(map(len, data)) and security.provider_info is None:
        row = "MQ-2.2.20.6-16" if flags & security_header.SECURITY_DATA else "MQ-2.2.20.6-32"
        yield Finding(row, "SecurityHeader.SecurityData", "empty")
    if flags & security_header.DEFAULT_PROVIDER:
        if security.provider_info is not None:
            problem = "given although DE says the default provider"
            yield Finding("MQ-2.2.20.6-51", "SecurityHeader.ProviderInfo", problem)
    elif len(security.signature) and security.provider_info is None:
        problem = "missing: there is a signature and DE is clear"
        yield Finding("MQ-2.2.20.6-13", "SecurityHeader.ProviderInfo", problem)
    if len(security.signature) and properties.hash_algorithm not in _HASHES:
        problem = f"{properties.hash_algorithm:#x} is unknown, the signature cannot be checked"
        yield Finding("MQ-2.2.19.3-33", "MessagePropertiesHeader.HashAlgorithm", problem)


def _sender_id(security: SecurityHeader) -> Iterator[Finding]:
    kind, size = security.flags & security_header.SENDER_ID_TYPE, len(security.security_id)
    field = "SecurityHeader.SecurityID"
    if kind == security_header.SENDER_ID_NONE:
        if size:
            problem = f"{size}, but ST says that there is no SecurityID"
            yield Finding("MQ-2.2.20.6-05", "SecurityHeader.SenderIdSize", problem)
    elif kind == security_header.SENDER_ID_SID:
        if not _is_sid(bytes(security.security_id)):
            yield Finding("MQ-2.2.20.6-06", field, f"no SID in {size} bytes, but ST says one")
    elif kind != security_header.SENDER_ID_QUEUE_MANAGER:
        yield Finding("MQ-2.2.20.6-04", "SecurityHeader.Flags", f"ST {kind} is not 0, 1 or 2")
    elif size != 16:
        yield Finding("MQ-2.2.20.6-07", field, f"{size} bytes, but ST says a GUID of 16")


def _is_sid(data: bytes) -> bool:
    try:
        return len(Sid.decode(data).encode()) == len(data)
    except WireError:
        return False


def _properties(properties: MessagePropertiesHeader) -> Iterator[Finding]:
    name = "MessagePropertiesHeader"
    rows = ((message_properties_header.RESERVED_FLAGS, "MQ-2.2.19.3-07"),)
    yield from _reserved_bits(properties.flags, rows, f"{name}.Flags")
    if not is_sendable(properties.message_class):
        problem = f"{properties.message_class:#06x} has bits outside 0xe1ff"
        yield Finding("MQ-2.2.18.1.6-22", f"{name}.MessageClass", problem)
    if "\0" in properties.label:
        yield Finding("MQ-2.2.19.3-48", f"{name}.Label", "a NUL inside the label")
    if body_type_name(properties.body_type).startswith("0x"):
        problem = f"{properties.body_type:#x} is no type"
        yield Finding("MQ-2.2.19.3-19", f"{name}.BodyType", problem)
    size, allocated = len(properties.message_body), properties.allocation_body_size
    if allocated is not None and allocated < size:
        problem = f"{allocated} is less than MessageSize {size}"
        yield Finding("MQ-2.2.19.3-26", f"{name}.AllocationBodySize", problem)
    yield from _privacy(properties)


def _privacy(properties: MessagePropertiesHeader) -> Iterator[Finding]:
    level, cipher = properties.privacy_level, properties.encryption_algorithm
    field = "MessagePropertiesHeader.EncryptionAlgorithm"
    if level == 0:
        if cipher not in _WEAK_CIPHERS | _AES_CIPHERS:
            yield Finding("MQ-2.2.19.3-38", field, f"{cipher:#x} is none of RC2, RC4 and AES")
        return
    if level not in _CIPHERS_OF_LEVEL:
        problem = f"{level} is not 0, 1, 3 or 5"
        yield Finding("MQ-2.2.19.3-28", "MessagePropertiesHeader.PrivacyLevel", problem)
        return
    ciphers, row = _CIPHERS_OF_LEVEL[level]
    if cipher not in ciphers:
        yield Finding(row, field, f"{cipher:#x} does not go with privacy level {level}")


def _acknowledgements(message: UserMessage) -> Iterator[Finding]:
    wanted = message.properties.flags & ~message_properties_header.RESERVED_FLAGS
    has_queue = message.user.admin_queue is not None
    if wanted and not has_queue:
        problem = "acknowledgements are asked for, but no admin queue is named"
        yield Finding("MQ-2.2.19.2-47", "UserHeader.AdminQueue", problem)
    elif has_queue and not wanted:
        problem = "an admin queue is named, but no acknowledgement is asked for"
        yield Finding("MQ-2.2.19.2-47", "UserHeader.AdminQueue", problem)


def _optional_headers(message: UserMessage) -> Iterator[Finding]:
    debug, soap, session = message.debug, message.soap, message.session
    if debug is not None:
        if debug.flags & DEBUG_QUEUE_TYPE > 1:
            problem = f"QT {debug.flags & DEBUG_QUEUE_TYPE} is neither 0 nor 1"
            yield Finding("MQ-2.2.20.8-03", "DebugHeader.Flags", problem)
        rows = ((DEBUG_RESERVED_FLAGS, "MQ-2.2.20.8-04"),)
        yield from _reserved_bits(debug.flags, rows, "DebugHeader.Flags")
        yield from _reserved(debug.reserved, "MQ-2.2.20.8-07", "DebugHeader.Reserved")
    if soap is not None:
        yield from _reserved(soap.reserved, "MQ-2.2.20.7-04", "SoapHeader.Reserved")
        yield from _reserved(soap.reserved1, "MQ-2.2.20.7-12", "SoapHeader.Reserved1")
    if message.multi_queue_format is not None:
        yield from _multi_queue_format(message.multi_queue_format)
    if session is not None:
        yield from _session_header(session)


def _multi_queue_format(header: MultiQueueFormatHeader) -> Iterator[Finding]:
    for part in (header.destination, header.administration, header.response):
        yield from _reserved(part.reserved, "MQ-2.2.20.2-06", "MQFAddressHeader.Reserved")
    reserved = header.signature.reserved
    yield from _reserved(reserved, "MQ-2.2.20.3-04", "MQFSignatureHeader.Reserved")


def _ordering_ack(message: UserMessage) -> Iterator[Finding]:
    """OrderAck and FinalAck (MQQB 2.2.4, 2.2.5)."""
    is_order = message.properties.message_class == MessageClass.ORDER_ACK
    rows = "QB-2.2.4" if is_order else "QB-2.2.5"
    if message.base.flags:
        problem = f"{message.base.flags:#x} instead of 0"
        yield Finding(f"{rows}-03", "BaseHeader.Flags", problem)
    allowed = user_header.DESTINATION_QUEUE_TYPE | user_header.MESSAGE_PROPERTIES_HEADER
    if not is_order:
        allowed |= user_header.DELIVERY_MODE
        if message.user.delivery_mode != RECOVERABLE:
            yield Finding("QB-2.2.5-05", "UserHeader.Flags", "DM does not say recoverable")
    if message.user.flags & ~allowed:
        problem = f"bits {message.user.flags & ~allowed:#x} are set beside DQ and MP"
        yield Finding(f"{rows}-{'05' if is_order else '06'}", "UserHeader.Flags", problem)
    properties = message.properties
    if properties.flags:
        row = f"{rows}-{'12' if is_order else '13'}"
        problem = f"{properties.flags:#x} instead of 0"
        yield Finding(row, "MessagePropertiesHeader.Flags", problem)
    if properties.body_type:
        row = f"{rows}-{'14' if is_order else '16'}"
        problem = f"{body_type_name(properties.body_type)} instead of VT_EMPTY"
        yield Finding(row, "MessagePropertiesHeader.BodyType", problem)
    if not is_order and properties.message_class not in _FINAL_ACK_CLASSES:
        problem = f"{properties.message_class:#06x} is no class of a FinalAck"
        yield Finding("QB-2.2.5-15", "MessagePropertiesHeader.MessageClass", problem)
    yield from _ordering_ack_body(bytes(properties.message_body), is_order=is_order)


def _ordering_ack_body(body: bytes, *, is_order: bool) -> Iterator[Finding]:
    name, rows = ("OrderAckBody", "QB-2.2.4.1") if is_order else ("FinalAckBody", "QB-2.2.5.1")
    number = int.from_bytes(body[8:12], "little")
    previous = int.from_bytes(body[12:16], "little")
    if number == 0:
        yield Finding(f"{rows}-03", f"{name}.TxSequenceNumber", "0, but sequences begin with 1")
    elif is_order and previous != number - 1:
        problem = f"{previous} instead of {number - 1}"
        yield Finding("QB-2.2.4.1-04", f"{name}.TxPreviousSequenceNumber", problem)
    if is_order and any(body[16:]):
        yield Finding("QB-2.2.4.1-05", f"{name}.Reserved", "not all zero")
