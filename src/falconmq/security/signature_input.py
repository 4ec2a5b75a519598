"""What a signature covers: fields of a packet, one behind the other (MQMQ 2.5.1 to 2.5.3).

The lists are the specification's. What it leaves open is decided here and nowhere else, for no
signed packet of Windows has been at hand to try it with:

    the label        with its NUL; nothing if there is none
    queue names      the bytes of the packet: a direct name with its Count and NUL, without padding
    what is absent   nothing: a queue, a connector type, a list of destinations
    FormatNameList   the destinations, without the header of the list and without padding behind it
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from falconmq.errors import WireError
from falconmq.security.problems import SignatureError
from falconmq.wire.base_header import PRIORITY
from falconmq.wire.counted_text import encode_counted_text
from falconmq.wire.message_properties_header import RESERVED_FLAGS
from falconmq.wire.multi_queue_format_header import MultiQueueFormatHeader
from falconmq.wire.queue_name import DIRECT, QueueName, encode_queue_name
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE
from falconmq.wire.user_message import UserMessage

_ACKNOWLEDGMENTS: Final = 0xFF & ~RESERVED_FLAGS
_COUNT: Final = struct.Struct("<H")


class SignatureVersion(IntEnum):
    """Which list was signed; the value is what a receiver notes in Flags.AS."""

    MSMQ_1_0 = 0x1
    MSMQ_2_0 = 0x3
    MSMQ_3_0 = 0x5


def signature_input(version: SignatureVersion, packet: UserMessage) -> bytes:
    """The bytes that are hashed. SignatureError if the packet could not be written as it is."""
    try:
        parts = _common(packet)
        if version is SignatureVersion.MSMQ_2_0:
            parts += [*_properties(packet), _destination(packet)]
        elif version is SignatureVersion.MSMQ_3_0:
            parts.append(bytes(packet.properties.extension_data))
            parts.append(_format_name_list(packet.multi_queue_format))
            parts += _properties(packet)
    except WireError as error:
        raise SignatureError(f"the packet cannot be signed or verified: {error}") from error
    return b"".join(parts)


def _common(packet: UserMessage) -> list[bytes]:
    """The six fields that all lists begin with, and the whole of the first list."""
    user, properties = packet.user, packet.properties
    label = properties.label
    return [
        properties.correlation_id,
        properties.application_tag.to_bytes(4, "little"),
        bytes(properties.message_body),
        encode_counted_text(label, "MessagePropertiesHeader", "Label") if label else b"",
        _queue_name(user.response_queue_type, user.response_queue, "ResponseQueue"),
        _queue_name(user.admin_queue_type, user.admin_queue, "AdminQueue"),
    ]


def _properties(packet: UserMessage) -> list[bytes]:
    """The eight fields that the second and the third list share."""
    user, properties = packet.user, packet.properties
    journal = bool(user.flags & JOURNAL_POSITIVE) << 1 | bool(user.flags & JOURNAL_NEGATIVE)
    return [
        user.source_queue_manager,
        bytes([user.delivery_mode]),
        bytes([packet.base.flags & PRIORITY]),
        bytes([journal]),
        bytes([properties.flags & _ACKNOWLEDGMENTS]),
        properties.message_class.to_bytes(2, "little"),
        properties.body_type.to_bytes(4, "little"),
        user.connector_type or b"",
    ]


def _destination(packet: UserMessage) -> bytes:
    user = packet.user
    return _queue_name(user.destination_queue_type, user.destination_queue, "DestinationQueue")


def _queue_name(queue_type: int, name: QueueName, field: str) -> bytes:
    if queue_type == DIRECT and isinstance(name, str):
        text = encode_counted_text(name, "DirectQueueFormatName", field)
        return _COUNT.pack(len(text)) + text
    return encode_queue_name(queue_type, name, field)


def _format_name_list(header: MultiQueueFormatHeader | None) -> bytes:
    names = bytearray()
    for element in header.destination.format_name_list if header is not None else ():
        names += element.encode_at(len(names))
    return bytes(names)
