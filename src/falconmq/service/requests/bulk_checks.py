"""What a packet must be that comes through the fast door: one that a sender may send."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import MessageError
from falconmq.message.checks import LABEL_MAX
from falconmq.serialization import from_user_message, to_user_message
from falconmq.wire.base_header import PRIORITY, SESSION_HEADER, TRACE
from falconmq.wire.base_header import RESERVED_FLAGS as BASE_RESERVED_FLAGS
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import is_custom, is_sendable
from falconmq.wire.message_properties_header import (
    ENCRYPTION_AES128,
    ENCRYPTION_AES192,
    ENCRYPTION_AES256,
    ENCRYPTION_RC2,
    ENCRYPTION_RC4,
)
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    DELIVERY_MODE_SHIFT,
    HOP_COUNT,
    HTTP,
    RECOVERABLE,
    RESERVED_FLAGS,
)
from falconmq.wire.user_message import UserMessage

_NOBODY: Final = UUID(int=0)
_ACKNOWLEDGEMENTS: Final = 0x0F
_SHORT_LABEL: Final = LABEL_MAX // 2  # even if each character takes two units
_CIPHERS: Final = frozenset(
    {ENCRYPTION_RC2, ENCRYPTION_RC4, ENCRYPTION_AES128, ENCRYPTION_AES192, ENCRYPTION_AES256}
)


def check_packet(packet: UserMessage, *, keep_ids: bool = False) -> None:
    """Refuse what no sender may send, and what only a queue manager fills in.

    With `keep_ids` a queue manager has filled it in, when the message was sent for the first time.
    """
    base, user, properties = packet.base, packet.user, packet.properties
    base_flags, user_flags = base.flags, user.flags
    if base_flags & (SESSION_HEADER | BASE_RESERVED_FLAGS):
        raise MessageError("packet", f"BaseHeader.Flags {base_flags:#06x} has bits of no sender")
    if user_flags & (RESERVED_FLAGS | HTTP) or packet.extra:
        raise MessageError("packet", "it has headers or flags that a sender does not send")
    _check_identity(packet, keep_ids=keep_ids)
    message_class = properties.message_class
    if message_class and not (is_custom(message_class) and is_sendable(message_class)):
        raise MessageError(
            "message_class",
            f"{message_class:#06x} is not for senders",
            hint="NORMAL, or an application's own class of the bits 0xE1FF",
        )
    if bool(properties.flags & _ACKNOWLEDGEMENTS) != (user.admin_queue is not None):
        raise MessageError(  # MQ-2.2.19.2-47
            "administration_queue", "one goes with the acknowledgements that are asked for"
        )
    _check_delivery(packet)
    if base_flags & TRACE and packet.debug is None:  # MQ-2.2.19.1-23
        raise MessageError("trace", "TR needs a DebugHeader")
    if not _is_plain(packet):
        _check_thoroughly(packet)


def _check_identity(packet: UserMessage, *, keep_ids: bool) -> None:
    user = packet.user
    if keep_ids and (user.source_queue_manager == NULL_GUID or not user.message_id):
        raise MessageError(
            "packet",
            "SourceQueueManager or MessageID is zero",
            hint="keep_ids is for messages that were sent before; leave it out for new ones",
        )
    if not keep_ids and (
        user.source_queue_manager != NULL_GUID or user.message_id or user.sent_time
    ):
        raise MessageError(
            "packet",
            "SourceQueueManager, MessageID and SentTime are not zero",
            hint="the queue manager fills them in",
        )


def _check_delivery(packet: UserMessage) -> None:
    flags = packet.user.flags
    mode = (flags & DELIVERY_MODE) >> DELIVERY_MODE_SHIFT
    if mode > RECOVERABLE:  # MQ-2.2.19.2-18
        raise MessageError("delivery", f"{mode} is neither express nor recoverable")
    if flags & HOP_COUNT:
        raise MessageError("hop_count", "a message that is sent has made no hop")
    transaction = packet.transaction
    if transaction is None:
        return
    if packet.base.flags & PRIORITY:  # MQ-2.2.19.1-10
        raise MessageError("priority", "a transactional message has priority 0")
    if mode != RECOVERABLE:  # MQ-2.2.19.2-65
        raise MessageError("delivery", "a transactional message is recoverable")
    if transaction.connector_qm_guid is not None:
        raise MessageError("transaction", "a connector's transaction is not for this door")


def _is_plain(packet: UserMessage) -> bool:
    """Whether all that could be wrong has been looked at: so it is with nearly every message."""
    properties = packet.properties
    return (
        packet.security is None
        and packet.multi_queue_format is None
        and not properties.privacy_level
        and properties.encryption_algorithm in _CIPHERS
        and len(properties.label) <= _SHORT_LABEL
        and "\0" not in properties.label
    )


def _check_thoroughly(packet: UserMessage) -> None:
    """Make a message of it and send that: then every rule for senders is asked."""
    message = from_user_message(packet)
    if message.destinations:
        raise MessageError(
            "destinations",
            "a packet of this door goes to one queue",
            hint="send it as JSON to a list of queues, or once to each",
        )
    to_user_message(
        message,
        source_queue_manager=_NOBODY,
        message_id=0,
        sent_time=0,
        destination_queue_manager=_NOBODY,
    )
