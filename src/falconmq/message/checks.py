"""What MSMQ does not let a sender say. Called for each message that is made and that is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from falconmq.errors import MessageError, MqStatus
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
from falconmq.wire.base_header import PACKET_SIZE_MAX
from falconmq.wire.message_class import is_sendable
from falconmq.wire.reader import encode_utf16
from falconmq.wire.user_header import HOP_COUNT_MAX

if TYPE_CHECKING:
    from falconmq.message.message import Message
    from falconmq.message.parts import MessageTransaction

LABEL_MAX: Final = 249  # MQ_MAX_MSG_LABEL_LEN, in UTF-16 units, MQ-2.4-03
PRIORITY_MAX: Final = 7
TRANSACTION_ID_MAX: Final = 0xFFFFF  # 20 bits on the wire, DM-3.1.1.12-118
_DELIVERY_MAX: Final = int(max(Delivery))
_JOURNAL_MAX: Final = int(Journal.DEAD_LETTER | Journal.JOURNAL)
_ACKNOWLEDGE_MAX: Final = int(Acknowledge.FULL_REACH_QUEUE | Acknowledge.FULL_RECEIVE)
_U32_MAX: Final = 0xFFFFFFFF
_U64_MAX: Final = 0xFFFFFFFFFFFFFFFF

_RC: Final = frozenset({EncryptionAlgorithm.RC2, EncryptionAlgorithm.RC4})
_AES: Final = frozenset(
    {EncryptionAlgorithm.AES128, EncryptionAlgorithm.AES192, EncryptionAlgorithm.AES256}
)
_CIPHERS: Final[dict[int, frozenset[EncryptionAlgorithm]]] = {
    PrivacyLevel.NONE: _RC | _AES,
    PrivacyLevel.BASE: _RC,  # MQ-2.2.19.3-40
    PrivacyLevel.ENHANCED: _RC,  # MQ-2.2.19.3-41
    PrivacyLevel.ADVANCED: _AES,  # MQ-2.2.19.3-42
}
_HASHES: Final = frozenset(HashAlgorithm)
_SIGNATURES: Final = (
    AuthenticationLevel.SIG10,
    AuthenticationLevel.SIG20,
    AuthenticationLevel.SIG30,
)


def check_message(message: Message) -> None:
    """Refuse what MSMQ does not allow a sender to say: MessageError with field and hint."""
    if len(message.body) > PACKET_SIZE_MAX:
        refuse_size(len(message.body))
    _check_label(message.label)
    _check_range("priority", message.priority, PRIORITY_MAX)  # DM-3.1.1.12-50
    _check_range("delivery", message.delivery, _DELIVERY_MAX)
    _check_range("journal", message.journal, _JOURNAL_MAX)
    _check_range("acknowledgements", message.acknowledgements, _ACKNOWLEDGE_MAX)
    _check_range("body_type", message.body_type, _U32_MAX)
    _check_range("application_tag", message.application_tag, _U32_MAX)
    _check_range("time_to_be_received", message.time_to_be_received, _U32_MAX)
    if message.time_to_reach_queue is not None:
        _check_range("time_to_reach_queue", message.time_to_reach_queue, _U32_MAX)
    if len(message.correlation_id) != 20:
        raise bad_correlation_id(message.correlation_id)
    _check_class(message.message_class)
    _check_ciphers(message)
    if message.authentication_level and message.wants_signature:
        _check_signature(message.authentication_level)
    if message.sender_id or message.sender_id_type is not SenderIdType.SID:
        _check_sender(message.sender_id, message.sender_id_type)
    if message.transaction is not None:
        _check_transaction(message.transaction)
    _check_range("hop_count", message.hop_count, HOP_COUNT_MAX)


def refuse_size(size: int) -> NoReturn:
    """Raise the error for a message that no packet can carry."""
    raise MessageError(
        "body",
        f"the message needs {size} bytes and its headers, a packet holds {PACKET_SIZE_MAX}",
        status=MqStatus.INSUFFICIENT_RESOURCES,
        hint="send it in parts, or store it elsewhere and send where it is",
    )


def bad_correlation_id(value: bytes) -> MessageError:
    return MessageError(
        "correlation_id",
        f"{len(value)} bytes instead of 20",
        status=MqStatus.ILLEGAL_PROPERTY_SIZE,
        hint="it is usually the id of the message that is answered: correlation_id=question.id",
    )


def _check_range(field: str, value: object, highest: int, lowest: int = 0) -> None:
    if not isinstance(value, int) or not lowest <= value <= highest:
        raise MessageError(field, f"{value!r} is not in {lowest}..{highest}")


def _check_label(label: str) -> None:
    units = len(label)
    if not label.isascii():
        units = len(encode_utf16(label)) // 2
    if units > LABEL_MAX:  # MQ-2.4-03
        raise MessageError(
            "label",
            f"{units} characters, {LABEL_MAX} are allowed",
            status=MqStatus.LABEL_TOO_LONG,
            hint="shorten it, or put the text into the body or the extension",
        )
    if "\0" in label:  # MQ-2.2.19.3-48
        raise MessageError("label", "a NUL would end it", hint="leave the NUL out")


def _check_class(message_class: int) -> None:
    _check_range("message_class", message_class, 0xFFFF)
    if not is_sendable(message_class):  # MQ-2.2.18.1.6-22
        raise MessageError(
            "message_class",
            f"{message_class:#06x} has bits outside 0xE1FF",
            hint="an application's own class uses bits of 0xE1FF only",
        )


def _check_ciphers(message: Message) -> None:
    ciphers = _CIPHERS.get(message.privacy_level)
    if ciphers is None:  # MQ-2.2.19.3-28
        raise MessageError(
            "privacy_level",
            f"{message.privacy_level!r} is no level",
            hint="choose one of " + ", ".join(f"{level.name} {level}" for level in PrivacyLevel),
        )
    if message.encryption_algorithm not in ciphers:  # MQ-2.2.19.3-38
        raise MessageError(
            "encryption_algorithm",
            f"{message.encryption_algorithm:#x} does not go with this privacy level",
            status=MqStatus.PROPERTIES_CONFLICT,
            hint="choose one of " + ", ".join(sorted(cipher.name for cipher in ciphers)),
        )
    is_signed = message.signature or message.multiple_destination_signature
    if (is_signed or message.authentication_level) and message.hash_algorithm not in _HASHES:
        raise MessageError("hash_algorithm", f"{message.hash_algorithm:#x} makes no signature")
    _check_range("hash_algorithm", message.hash_algorithm, _U32_MAX)


def _check_signature(level: int) -> None:
    """Refuse a signature that nobody here makes; XML signatures are for messages over HTTP."""
    if level not in _SIGNATURES:
        name = level.name if isinstance(level, AuthenticationLevel) else level
        raise MessageError(
            "authentication_level",
            f"{name} is no signature that can be made",
            hint="choose one of " + ", ".join(f"{each.name} {each}" for each in _SIGNATURES),
        )


def _check_sender(sender_id: bytes, sender_id_type: int) -> None:
    if sender_id_type == SenderIdType.NONE:  # MQ-2.2.20.6-05
        fits = not sender_id
    elif sender_id_type == SenderIdType.QUEUE_MANAGER:  # MQ-2.2.20.6-07
        fits = len(sender_id) == 16
    elif sender_id_type == SenderIdType.SID:  # MQ-2.2.20.6-06
        # None is the one of whoever sends the message: the queue manager knows it.
        fits = not sender_id or (
            len(sender_id) >= 8 and sender_id[0] == 1 and len(sender_id) == 8 + 4 * sender_id[1]
        )
    else:  # MQ-2.2.20.6-04
        raise MessageError("sender_id_type", f"{sender_id_type!r} is no kind of sender id")
    if not fits:
        raise MessageError(
            "sender_id", f"{len(sender_id)} bytes are no {SenderIdType(sender_id_type).name}"
        )


def _check_transaction(transaction: MessageTransaction) -> None:
    _check_range("transaction.sequence_id", transaction.sequence_id, _U64_MAX)
    _check_range("transaction.sequence_number", transaction.sequence_number, _U32_MAX, 1)
    previous = transaction.previous_sequence_number
    _check_range("transaction.previous_sequence_number", previous, _U32_MAX - 1)
    _check_range("transaction.id", transaction.id, TRANSACTION_ID_MAX)
