"""The choices of a message: what MSMQ's constants MQMSG_... say, with the numbers of the wire."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from falconmq.wire import message_properties_header as properties_header
from falconmq.wire import security_header, user_header


class Delivery(IntEnum):
    """Whether a message survives a restart. Transactional messages are always recoverable."""

    EXPRESS = user_header.EXPRESS
    RECOVERABLE = user_header.RECOVERABLE


class Acknowledge(IntFlag):
    """Which acknowledgements go to the administration queue; `|` combines them."""

    NONE = 0x00
    POSITIVE_ARRIVAL = properties_header.POSITIVE_ARRIVAL
    POSITIVE_RECEIVE = properties_header.POSITIVE_RECEIVE
    NEGATIVE_ARRIVAL = properties_header.NEGATIVE_ARRIVAL
    NEGATIVE_RECEIVE = properties_header.NEGATIVE_RECEIVE
    NACK_REACH_QUEUE = NEGATIVE_ARRIVAL
    FULL_REACH_QUEUE = POSITIVE_ARRIVAL | NEGATIVE_ARRIVAL
    NACK_RECEIVE = NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE
    FULL_RECEIVE = POSITIVE_RECEIVE | NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE


class Journal(IntFlag):
    """Which copies the sending computer keeps."""

    NONE = 0
    DEAD_LETTER = 1  # in the dead-letter queue, if the message cannot be delivered
    JOURNAL = 2  # in the system journal, once it was delivered


class PrivacyLevel(IntEnum):
    """How the body is encrypted on its way."""

    NONE = properties_header.PRIVACY_NONE
    BASE = properties_header.PRIVACY_BASE  # 40 bits
    ENHANCED = properties_header.PRIVACY_ENHANCED  # 128 bits
    ADVANCED = properties_header.PRIVACY_ADVANCED  # AES


class AuthenticationLevel(IntEnum):
    """Which kind of signature the receiving queue manager verified."""

    NONE = 0
    SIG10 = 1
    SIG20 = 3
    SIG30 = 5
    XML_SIG = 9


class HashAlgorithm(IntEnum):
    """The hash a signature is made over."""

    MD2 = properties_header.HASH_MD2
    MD4 = properties_header.HASH_MD4
    MD5 = properties_header.HASH_MD5
    SHA1 = properties_header.HASH_SHA1
    SHA = properties_header.HASH_SHA1
    SHA_256 = properties_header.HASH_SHA256
    SHA_512 = properties_header.HASH_SHA512


class EncryptionAlgorithm(IntEnum):
    """The cipher of an encrypted body."""

    RC2 = properties_header.ENCRYPTION_RC2
    AES128 = properties_header.ENCRYPTION_AES128
    AES192 = properties_header.ENCRYPTION_AES192
    AES256 = properties_header.ENCRYPTION_AES256
    RC4 = properties_header.ENCRYPTION_RC4


class SenderIdType(IntEnum):
    """What `sender_id` holds."""

    NONE = security_header.SENDER_ID_NONE
    SID = security_header.SENDER_ID_SID
    QUEUE_MANAGER = security_header.SENDER_ID_QUEUE_MANAGER
