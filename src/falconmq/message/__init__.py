"""Message and its enums: what users hold in their hands (MQDMPR 3.1.1.12)."""

from falconmq.message.checks import LABEL_MAX, refuse_size
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
from falconmq.message.message import (
    DEFAULT_TIME_TO_REACH_QUEUE,
    Message,
    MessageProperties,
    is_expired,
)
from falconmq.message.message_id import NO_MESSAGE_ID, MessageId
from falconmq.message.parts import CryptographicProvider, MessageTransaction
from falconmq.wire.base_header import INFINITE
from falconmq.wire.message_class import MessageClass

__all__ = [
    "DEFAULT_TIME_TO_REACH_QUEUE",
    "INFINITE",
    "LABEL_MAX",
    "NO_MESSAGE_ID",
    "Acknowledge",
    "AuthenticationLevel",
    "CryptographicProvider",
    "Delivery",
    "EncryptionAlgorithm",
    "HashAlgorithm",
    "Journal",
    "Message",
    "MessageClass",
    "MessageId",
    "MessageProperties",
    "MessageTransaction",
    "PrivacyLevel",
    "SenderIdType",
    "is_expired",
    "refuse_size",
]
