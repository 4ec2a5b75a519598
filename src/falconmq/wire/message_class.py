"""MESSAGE_CLASS_VALUES: what a message is, an application's own or an answer (MQMQ 2.2.18.1.6)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

NEGATIVE: Final = 0x8000
ABOUT_RECEIVE: Final = 0x4000  # about reading from the queue rather than arriving in it
CUSTOM_MASK: Final = 0xE1FF  # the bits an application may use in a class of its own


class MessageClass(IntEnum):
    """The classes with a meaning of their own. On the wire any 16-bit number may stand there."""

    NORMAL = 0x0000
    REPORT = 0x0001
    ACK_REACH_QUEUE = 0x0002
    ORDER_ACK = 0x00FF
    ACK_RECEIVE = 0x4000
    NACK_BAD_DST_Q = 0x8000
    NACK_DELETED = 0x8001
    NACK_REACH_QUEUE_TIMEOUT = 0x8002
    NACK_Q_EXCEED_QUOTA = 0x8003
    NACK_ACCESS_DENIED = 0x8004
    NACK_HOP_COUNT_EXCEEDED = 0x8005
    NACK_BAD_SIGNATURE = 0x8006
    NACK_BAD_ENCRYPTION = 0x8007
    NACK_COULD_NOT_ENCRYPT = 0x8008  # this one and the next two: MC-MQAC, MQ-2.2.18.1.6-24
    NACK_SOURCE_COMPUTER_GUID_CHANGED = 0x800C
    NACK_RECEIVE_TIMEOUT_AT_SENDER = 0xC003
    NACK_NOT_TRANSACTIONAL_Q = 0x8009
    NACK_NOT_TRANSACTIONAL_MSG = 0x800A
    NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B
    NACK_Q_DELETED = 0xC000
    NACK_Q_PURGED = 0xC001
    NACK_RECEIVE_TIMEOUT = 0xC002
    NACK_RECEIVE_REJECTED = 0xC004

    @property
    def symbol(self) -> str:
        """The name Microsoft's headers give it."""
        return "MQMSG_CLASS_" + self.name

    @property
    def is_negative(self) -> bool:
        return bool(self & NEGATIVE)  # MQ-2.2.18.1.6-23

    @property
    def is_about_receive(self) -> bool:
        return bool(self & ABOUT_RECEIVE)  # MQ-2.2.18.1.6-23


_PREDEFINED: Final = frozenset(int(member) for member in MessageClass)


def is_custom(message_class: int) -> bool:
    """An application's own class: the mask holds every predefined value too, so those come first.

    The class may still be one that must not be sent: `is_sendable`.
    """
    return message_class not in _PREDEFINED


def is_sendable(message_class: int) -> bool:
    """No bit outside the mask 0xE1FF (MQ-2.2.18.1.6-22)."""
    return not message_class & ~CUSTOM_MASK
