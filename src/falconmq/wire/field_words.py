"""What the values of fields mean: numbers that are names, and words that need the neighbours.

`FIELD_WORDS` has the fields by structure and name, or by name alone where every structure means the
same. Flags have tables of their own (`flag_words`), properties of directory objects too
(`property_words`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
from falconmq.wire.property_words import property_name
from falconmq.wire.sid import Sid
from falconmq.wire.variant import type_name
from falconmq.wire.words import (
    body_text,
    body_type_name,
    count_of,
    duration,
    message_id_text,
    status_words,
    utc_time,
)

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

FIELD_WORDS: Final[Mapping[tuple[str, str], Words]] = {
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
    ("", "PropertyID"): lambda value, _: property_name(value),
    ("", "PropertyId"): lambda value, _: property_name(value),
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
