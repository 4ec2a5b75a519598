"""What the fields of a packet mean, in words: flags spelled out, enumerations named, times in UTC.

`annotate` takes a field as the decoders name it (structure, field, value) and gives back how to
write its value and what it means. The trees of `falconmq decode`, the console and Spark all ask
here, so that a field reads the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from falconmq.errors import WireError
from falconmq.wire.access_masks import ObjectKind, mask_in_words
from falconmq.wire.base_header import INFINITE, SIGNATURE
from falconmq.wire.flag_words import (
    ACE_FLAGS,
    ACK_FLAGS,
    BASE_FLAGS,
    CONTROL,
    DEBUG_FLAGS,
    INTERNAL_FLAGS,
    OBJECT_ACE_FLAGS,
    OPERATING_SYSTEM,
    PING_FLAGS,
    SECURITY_FLAGS,
    TRANSACTION_FLAGS,
    USER_FLAGS,
    Siblings,
    Words,
)
from falconmq.wire.guid import NULL_GUID, guid_text
from falconmq.wire.message_class import MessageClass, is_sendable
from falconmq.wire.property_ids import PROPERTIES, ObjectType, Property
from falconmq.wire.reader import decode_utf16
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from falconmq.wire.sid import Sid
from falconmq.wire.ta_address import TaAddress
from falconmq.wire.variant import VT_CLSID, VT_VECTOR, type_name
from falconmq.wire.words import (
    body_text,
    body_type_name,
    byte_size,
    count_of,
    duration,
    hex_start,
    message_id_text,
    quoted,
    status_words,
    utc_time,
)


class Annotation(NamedTuple):
    """How a value is written, and what it means ("" where the value says it all)."""

    value: str
    meaning: str = ""


_NO_SIBLINGS: Final[Siblings] = MappingProxyType({})


def annotate(
    structure: str, field: str, value: Any, size: int, siblings: Siblings = _NO_SIBLINGS
) -> Annotation:
    """Write the value of a field and say what it means. `size` is its size in bytes."""
    prop = _property_of(field)
    if prop is not None:
        return _annotate_property(prop, field, value, size)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _annotate_bytes(structure, field, bytes(value), siblings)
    words = _WORDS.get((structure, field)) or _WORDS.get(("", field))
    meaning = words(value, siblings) if words is not None else ""
    if isinstance(value, str):
        return Annotation(quoted(value), meaning)
    return Annotation(_written_number(field, value, size), meaning)


# Bytes

_GUIDS: Final = frozenset(
    [
        "SourceQueueManager",
        "QueueManagerAddress",
        "ConnectorType",
        "ClientGuid",
        "ServerGuid",
        "QMGuid",
        "SourceGUID",
        "ConnectorQMGuid",
        "QueueIdentifier",
        "PublicQueueIdentifier",
        "DistributionListIdentifier",
        "SiteID",
        "PartitionID",
        "PSCSiteID",
        "AckedPartitionID",
        "BSCMachineID",
        "GuidIdentifier",
        "GuidMasterId",
        "ObjectType",
        "InheritedObjectType",
        "Identifier",
        "DestinationQueue",
        "AdminQueue",
        "ResponseQueue",
    ]
)
_TEXTS: Final = frozenset(
    ["Label", "DirectFormatName", "Header", "Body", "Event", "ObjectGuid", "DomainController"]
)
_CONTENTS: Final = frozenset(["MessageBody", "ExtensionData"])


def _annotate_bytes(structure: str, field: str, value: bytes, siblings: Siblings) -> Annotation:
    words = _WORDS.get((structure, field)) or _WORDS.get(("", field))
    if field in _GUIDS and len(value) == 16:
        meaning = "null" if value == NULL_GUID else ""
        if words is not None:
            meaning = words(value, siblings)
        return Annotation(guid_text(value), meaning)
    if field.endswith("SeqNumber") and len(value) == 8:
        number = int.from_bytes(value, "big")
        return Annotation(str(number), "the greatest there is" if number == MAX_SEQ_NUMBER else "")
    if field in _TEXTS and len(value) % 2 == 0:
        text = decode_utf16(value)
        meaning = words(text.removesuffix("\0"), siblings) if words is not None else ""
        return Annotation(quoted(text.removesuffix("\0")), meaning)
    meaning = words(value, siblings) if words is not None else ""
    if field in _CONTENTS:
        return Annotation(count_of(len(value), "byte"), meaning)
    if len(value) > 1 and len(set(value)) == 1:
        return Annotation(f"{len(value)} x {value[0]:02x}", meaning)
    return Annotation(hex_start(value, 20), meaning)


# Numbers

_HEXADECIMAL: Final = re.compile(
    r".*Flags|Signature|VersionNumber|Reserved\d?|MessageClass|.*Algorithm|Control|Mask|.*SectionID"
    r"|OperatingSystem|HeaderID|ID|BodyType|vt|AceType|Result|aiKeyAlg|TxSequenceID"
    r"|PrivateQueueIdentifier|DestinationQueue|AdminQueue|ResponseQueue|magic|bType|bVersion"
)
_UNITS: Final = {
    "TimeToReachQueue": "s",
    "TimeToBeReceived": "s",
    "RecoverableAckTimeout": "ms",
    "AckTimeout": "ms",
}
_SHORT_HEX: Final = frozenset(
    ["PrivateQueueIdentifier", "DestinationQueue", "AdminQueue", "ResponseQueue"]
)


def _written_number(field: str, value: Any, size: int) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    if field in _UNITS and value != INFINITE:
        return f"{value} {_UNITS[field]}"
    if field in _SHORT_HEX:
        return f"{value:#x}"
    if (_HEXADECIMAL.fullmatch(field) or field in _UNITS) and value >= 0:
        return f"0x{value:0{2 * size}X}"
    return str(value)


# Names of numbers

_HASHES: Final = {
    0x8001: "MD2",
    0x8002: "MD4",
    0x8003: "MD5",
    0x8004: "SHA-1",
    0x800C: "SHA-256",
    0x800E: "SHA-512",
}
_CIPHERS: Final = {
    0x6602: "RC2",
    0x6801: "RC4",
    0x660E: "AES-128",
    0x660F: "AES-192",
    0x6610: "AES-256",
}
_KEY_ALGORITHMS: Final = {0xA400: "RSA, key exchange", 0x2400: "RSA, signing"}
_CLASSES: Final[Mapping[int, str]] = {
    MessageClass.NORMAL: "message of an application",
    MessageClass.REPORT: "trace report",
    MessageClass.ACK_REACH_QUEUE: "the message reached its queue",
    MessageClass.ORDER_ACK: "transactional messages came in order",
    MessageClass.ACK_RECEIVE: "the message was read",
    MessageClass.NACK_BAD_DST_Q: "the destination queue is not available",
    MessageClass.NACK_DELETED: "deleted before it arrived",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "did not arrive in time",
    MessageClass.NACK_Q_EXCEED_QUOTA: "the queue is over its quota",
    MessageClass.NACK_ACCESS_DENIED: "the sender may not write to the queue",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "too many hops",
    MessageClass.NACK_BAD_SIGNATURE: "the signature is not valid",
    MessageClass.NACK_BAD_ENCRYPTION: "could not be decrypted",
    MessageClass.NACK_COULD_NOT_ENCRYPT: "could not be encrypted",
    MessageClass.NACK_NOT_TRANSACTIONAL_Q: "transactional, but the queue is not",
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG: "not transactional, but the queue is",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "the crypto provider is missing there",
    MessageClass.NACK_SOURCE_COMPUTER_GUID_CHANGED: "the GUID of the source changed",
    MessageClass.NACK_Q_DELETED: "the queue was deleted",
    MessageClass.NACK_Q_PURGED: "the queue was purged",
    MessageClass.NACK_RECEIVE_TIMEOUT: "not read in time",
    MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER: "not read in time, said by the sender",
    MessageClass.NACK_RECEIVE_REJECTED: "rejected by the reader",
}
_SYSTEM_QUEUES: Final = {1: "mqis_queue$", 3: "notify_queue$", 4: "order_queue$"}
_OPERATIONS: Final = {
    0: "change propagation",
    1: "change request",
    2: "sync request",
    3: "sync reply",
    4: "change reply",
    5: "already purged",
    6: "PSC ack",
    7: "BSC ack",
}
_COMMANDS: Final = {0: "create", 1: "update", 2: "delete", 3: "synchronize"}
_EVENTS: Final = {
    "1": "queue created",
    "2": "queue changed",
    "3": "queue deleted",
    "4": "machine changed",
}
_ACE_TYPES: Final = {
    0x00: "allow",
    0x01: "deny",
    0x02: "audit",
    0x03: "alarm",
    0x05: "allow, object",
    0x06: "deny, object",
    0x07: "audit, object",
    0x08: "alarm, object",
    0x09: "allow, callback",
    0x0A: "deny, callback",
    0x11: "mandatory label",
}


def _named(names: Mapping[Any, str]) -> Words:
    return lambda value, _: names.get(value, "unknown")


def class_words(message_class: int) -> str:
    """What a class means; empty if it is an application's own."""
    return _CLASSES.get(message_class, "")


def _class_words(value: int, _: Siblings) -> str:
    try:
        name = MessageClass(value)
    except ValueError:
        return "an application's own class" if is_sendable(value) else "no class: reserved bits"
    return f"{name.name}: {_CLASSES[name]}"


def _body_type_words(value: int, _: Siblings) -> str:
    name = body_type_name(value)
    return "VT_EMPTY: bytes" if value == 0 else "unknown type" if name.startswith("0x") else name


def _privacy_words(value: int, _: Siblings) -> str:
    return {0: "not encrypted", 1: "40 bit", 3: "128 bit", 5: "AES"}.get(value, "unknown")


# Words that need the neighbours


def _lifetime_words(value: int, _: Siblings) -> str:
    return "infinite" if value == INFINITE else duration(value)


def _milliseconds_words(value: int, _: Siblings) -> str:
    return duration(value / 1000)


def _sequence_id_words(value: int, _: Siblings) -> str:
    return f"ordinal {value & 0xFFFFFFFF}, begun {utc_time(value >> 32)}"


def _previous_words(value: int, _: Siblings) -> str:
    return "none before" if value == 0 else ""


def _stored_words(flags: int, siblings: Siblings) -> str:
    """The recoverable numbers whose bits are set, as ranges."""
    if not flags:
        return "none on disk since the last ack"
    first = siblings.get("RecoverableMsgAckSeqNumber", 0)
    numbers = [first + bit & 0xFFFF for bit in range(32) if flags >> bit & 1]
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == (ranges[-1][1] + 1) & 0xFFFF:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
    return f"on disk: {text}"


def _correlation_words(value: bytes, siblings: Siblings) -> str:
    if not any(value):
        return "none"
    message_class = siblings.get("MessageClass", 0)
    if message_class == MessageClass.NORMAL or len(value) != 20:
        return ""
    return f"about message {message_id_text(value[:16], int.from_bytes(value[16:], 'little'))}"


def _queue_words(type_shift: int, host: str) -> Words:
    """A queue name that is a private number or the GUID of a public queue."""

    def words(value: Any, siblings: Siblings) -> str:
        if isinstance(value, bytes):
            return "public queue"
        queue_type = siblings.get("Flags", 0) >> type_shift & 7
        where = {2: "the source", 4: "the admin queue's host"}.get(queue_type, host)
        system = f", {_SYSTEM_QUEUES[value]}" if value in _SYSTEM_QUEUES else ""
        return f"private queue on {where}{system}"

    return words


def _sender_words(value: bytes, siblings: Siblings) -> str:
    if siblings.get("Flags", 0) & 0xF == 2 and len(value) == 16:
        return f"queue manager {guid_text(value)}"
    try:
        return str(Sid.decode(value))
    except WireError:
        return "neither SID nor GUID"


def _body_words(value: bytes, siblings: Siblings) -> str:
    kind, _ = body_text(value, siblings.get("BodyType", 0), limit=512)
    return kind


def _counted(noun: str, before: str = "") -> Words:
    return lambda value, _: f"{before}{count_of(value, noun)}"


def _constant(text: str) -> Words:
    return lambda *_: text


_BYTES: Final = _constant("bytes")

_WORDS: Final[Mapping[tuple[str, str], Words]] = {
    ("BaseHeader", "Flags"): BASE_FLAGS,
    ("BaseHeader", "Signature"): lambda value, _: '"LIOR"' if value == SIGNATURE else "not MSMQ",
    ("BaseHeader", "PacketSize"): _BYTES,
    ("BaseHeader", "TimeToReachQueue"): _lifetime_words,
    ("InternalHeader", "Flags"): INTERNAL_FLAGS,
    ("EstablishConnectionHeader", "ClientGuid"): _constant("queue manager that connects"),
    ("EstablishConnectionHeader", "ServerGuid"): lambda value, _: (
        "null: reached by a direct name" if value == NULL_GUID else "queue manager that is called"
    ),
    ("EstablishConnectionHeader", "TimeStamp"): lambda value, _: (
        f"{duration(value // 1000)} after the caller started"
    ),
    ("EstablishConnectionHeader", "OperatingSystem"): OPERATING_SYSTEM,
    ("ConnectionParametersHeader", "RecoverableAckTimeout"): _milliseconds_words,
    ("ConnectionParametersHeader", "AckTimeout"): _milliseconds_words,
    ("ConnectionParametersHeader", "WindowSize"): _constant("messages may wait for an ack"),
    ("SessionHeader", "AckSequenceNumber"): _counted("message", "has received "),
    ("SessionHeader", "RecoverableMsgAckSeqNumber"): lambda value, _: (
        "first recoverable on disk" if value else "no recoverable message since the last ack"
    ),
    ("SessionHeader", "RecoverableMsgAckFlags"): _stored_words,
    ("SessionHeader", "UserMsgSequenceNumber"): _counted("message", "has sent "),
    ("SessionHeader", "RecoverableMsgSeqNumber"): lambda value, _: f"of them {value} recoverable",
    ("SessionHeader", "WindowSize"): _constant("messages may wait for an ack"),
    ("Ping", "Flags"): PING_FLAGS,
    ("Ping", "QMGuid"): _constant("queue manager that sent this"),
    ("UserHeader", "SourceQueueManager"): _constant("queue manager that sent it first"),
    ("UserHeader", "QueueManagerAddress"): lambda value, _: (
        "null: direct destination" if value == NULL_GUID else "destination queue manager"
    ),
    ("UserHeader", "TimeToBeReceived"): _lifetime_words,
    ("UserHeader", "SentTime"): lambda value, _: utc_time(value),
    ("UserHeader", "MessageID"): lambda value, siblings: (
        message_id_text(siblings["SourceQueueManager"], value)
        if "SourceQueueManager" in siblings
        else ""
    ),
    ("UserHeader", "Flags"): USER_FLAGS,
    ("UserHeader", "DestinationQueue"): _queue_words(10, "the destination"),
    ("UserHeader", "AdminQueue"): _queue_words(13, "the destination"),
    ("UserHeader", "ResponseQueue"): _queue_words(16, "the destination"),
    ("UserHeader", "ConnectorType"): _constant("connector, an application's own"),
    ("TransactionHeader", "Flags"): TRANSACTION_FLAGS,
    ("", "TxSequenceID"): _sequence_id_words,
    ("", "PreviousTxSequenceNumber"): _previous_words,
    ("", "TxPreviousSequenceNumber"): _previous_words,
    ("SecurityHeader", "Flags"): SECURITY_FLAGS,
    ("SecurityHeader", "SecurityID"): _sender_words,
    ("SecurityHeader", "SenderCert"): _constant("X.509 certificate"),
    ("SecurityHeader", "EncryptionKey"): _constant("session key, encrypted"),
    ("ProviderInfo", "ProviderType"): lambda value, _: {1: "PROV_RSA_FULL", 24: "PROV_RSA_AES"}.get(
        value, ""
    ),
    ("MessagePropertiesHeader", "Flags"): ACK_FLAGS,
    ("MessagePropertiesHeader", "LabelLength"): _constant("characters with the NUL"),
    ("MessagePropertiesHeader", "MessageClass"): _class_words,
    ("MessagePropertiesHeader", "CorrelationID"): _correlation_words,
    ("MessagePropertiesHeader", "BodyType"): _body_type_words,
    ("MessagePropertiesHeader", "MessageSize"): _BYTES,
    ("MessagePropertiesHeader", "AllocationBodySize"): _BYTES,
    ("MessagePropertiesHeader", "ExtensionSize"): _BYTES,
    ("MessagePropertiesHeader", "PrivacyLevel"): _privacy_words,
    ("MessagePropertiesHeader", "HashAlgorithm"): _named(_HASHES),
    ("MessagePropertiesHeader", "EncryptionAlgorithm"): _named(_CIPHERS),
    ("MessagePropertiesHeader", "MessageBody"): _body_words,
    ("DebugHeader", "Flags"): DEBUG_FLAGS,
    ("DebugHeader", "QueueIdentifier"): _constant("public queue for trace reports"),
    ("MQFAddressHeader", "HeaderSize"): _BYTES,
    ("MQFAddressHeader", "HeaderID"): _named(
        {0x64: "Destination", 0xC8: "Administration", 0x12C: "Response"}
    ),
    ("MQFSignatureHeader", "ID"): _constant("signature"),
    ("MQFSignatureHeader", "Size"): _BYTES,
    ("MQFFormatNameElement", "FormatType"): _named(
        {1: "public", 2: "private", 3: "direct", 6: "distribution list"}
    ),
    ("", "PrivateQueueIdentifier"): lambda value, _: _SYSTEM_QUEUES.get(value, ""),
    ("FinalAckBody", "MessageID"): lambda value, siblings: (
        message_id_text(siblings["SourceGUID"], value) if "SourceGUID" in siblings else ""
    ),
    ("ChangeNotificationMessage", "Version"): _named(
        {1: "from a directory service", 2: "from a queue manager"}
    ),
    ("NotificationBody", "Event"): _named(_EVENTS),
    ("", "Command"): _named(_COMMANDS),
    ("", "UseGuid"): _named({0: "named by its path", 1: "named by its GUID"}),
    ("", "PropertyID"): lambda value, _: _property_name(value),
    ("", "PropertyId"): lambda value, _: _property_name(value),
    ("BaseReplicationHeader", "Operation"): _named(_OPERATIONS),
    ("ChangeReplyMessage", "Result"): lambda value, _: status_words(value),
    ("SyncRequestMessage", "IsSync0"): _named({0: "not in sync0", 1: "in sync0"}),
    ("SyncRequestMessage", "Scope"): _named({0: "everything", 1: "enterprise scope only"}),
    ("SyncReplyHeader", "CompleteSync0"): _named(
        {0: "not in sync0", 1: "more to fetch", 2: "sync0 is complete"}
    ),
    ("ChangePropagationMessage", "Flush"): _named({0: "", 1: "flush: not to be passed on"}),
    ("SECURITY_DESCRIPTOR", "Control"): CONTROL,
    ("ACE", "AceType"): _named(_ACE_TYPES),
    ("ACE", "AceFlags"): ACE_FLAGS,
    ("ACE", "Flags"): OBJECT_ACE_FLAGS,
    ("ACE", "Mask"): lambda value, _: mask_in_words(value, ObjectKind.QUEUE),
    ("SID", "IdentifierAuthority"): lambda value, _: str(int.from_bytes(value, "big")),
    ("PUBLICKEYBLOB", "aiKeyAlg"): _named(_KEY_ALGORITHMS),
    ("PUBLICKEYBLOB", "magic"): _constant('"RSA1"'),
    ("SIMPLEBLOB", "keyAlgorithm"): _named(_KEY_ALGORITHMS),
    ("SIMPLEBLOB", "sessionKeyAlgorithm"): _named(_CIPHERS),
    ("PROPVARIANT", "vt"): lambda value, _: type_name(value),
}


# Properties of directory objects

_PROPERTY_FIELD: Final = re.compile(r"PropertyValue\[(PROPID_\w+)\](\.Size)?")
_PROPERTIES_BY_NAME: Final = {prop.name: prop for prop in PROPERTIES.values()}
_PROPERTY_VALUES: Final[Mapping[str, Mapping[int, str]]] = {
    "PROPID_Q_JOURNAL": {0: "no journal", 1: "journal"},
    "PROPID_Q_AUTHENTICATE": {0: "any message", 1: "authenticated messages only"},
    "PROPID_Q_PRIV_LEVEL": {0: "not encrypted", 1: "encrypted or not", 2: "encrypted only"},
    "PROPID_Q_TRANSACTION": {0: "not transactional", 1: "transactional"},
    "PROPID_Q_SCOPE": {0: "site", 1: "enterprise"},
    "PROPID_D_SCOPE": {0: "site", 1: "enterprise"},
    "PROPID_D_OBJTYPE": {int(kind): kind.name for kind in ObjectType},
    "PROPID_QM_FOREIGN": {0: "MSMQ computer", 1: "foreign computer"},
    "PROPID_QM_OS": {
        0: "unknown",
        0x100: "foreign",
        0x200: "Windows 95",
        0x300: "Windows client",
        0x400: "Windows server",
        0x500: "Windows enterprise server",
    },
    "PROPID_CN_PROTOCOLID": {1: "IP", 3: "IPX", 5: "foreign"},
}


def _property_of(field: str) -> Property | None:
    match = _PROPERTY_FIELD.fullmatch(field)
    return None if match is None or match[2] else _PROPERTIES_BY_NAME.get(match[1])


def _property_name(number: int) -> str:
    prop = PROPERTIES.get(number)
    return prop.name if prop is not None else "unknown property"


def _annotate_property(prop: Property, field: str, value: Any, size: int) -> Annotation:
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        if prop.vt & ~VT_VECTOR == VT_CLSID and len(data) == 16:
            return Annotation(guid_text(data))
        if prop.name.endswith("SEQNUM") and len(data) == 8:
            return Annotation(str(int.from_bytes(data, "big")))
        return Annotation(hex_start(data, 20), _blob_words(prop.name, data))
    if isinstance(value, str):
        return Annotation(quoted(value))
    return Annotation(_written_number(field, value, size), _number_words(prop.name, value))


def _number_words(name: str, value: int) -> str:
    if name in _PROPERTY_VALUES:
        return _PROPERTY_VALUES[name].get(value, "unknown")
    if name.endswith("_TIME"):
        return utc_time(value)
    if name.endswith("QUOTA"):
        return "no limit" if value == INFINITE else f"KB = {byte_size(value * 1024)}"
    return ""


def _blob_words(name: str, data: bytes) -> str:
    try:
        if name == "PROPID_QM_ADDRESS":
            return TaAddress.decode(data).text
        if name.endswith("_SID"):
            return str(Sid.decode(data))
    except WireError:
        return ""
    return "security descriptor" if name.endswith("_SECURITY") else ""
