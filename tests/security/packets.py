"""A packet with something in every field that a signature covers."""

from __future__ import annotations

from typing import Any, Final

from falconmq.wire.base_header import BaseHeader
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import (
    DESTINATION_ID,
    MQFAddressHeader,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from falconmq.wire.multi_queue_format_header import DIRECT as MQF_DIRECT
from falconmq.wire.multi_queue_format_header import PUBLIC as MQF_PUBLIC
from falconmq.wire.sid import Sid
from falconmq.wire.user_header import JOURNAL_POSITIVE, UserHeader
from falconmq.wire.user_message import UserMessage

SOURCE: Final = bytes(range(16))
REMOTE: Final = bytes(range(16, 32))
CONNECTOR: Final = bytes(range(32, 48))
LISTED: Final = bytes(range(48, 64))
CORRELATION: Final = bytes(range(64, 84))
ANNA: Final = Sid.parse("S-1-5-21-7-8-9-1001")

_DIRECT, _PRIVATE_ON_SOURCE, _PUBLIC = 7, 2, 5


def make_packet(**properties: Any) -> UserMessage:
    """Destination: direct; administration: private; response: public; priority 5."""
    flags = 1 << 5 | JOURNAL_POSITIVE | _DIRECT << 10 | _PRIVATE_ON_SOURCE << 13 | _PUBLIC << 16
    user = UserHeader(
        source_queue_manager=SOURCE,
        queue_manager_address=bytes(16),
        time_to_be_received=77,
        sent_time=88,
        message_id=99,
        flags=flags,
        destination_queue="OS:b\\q",
        admin_queue=0x01020304,
        response_queue=LISTED,
        connector_type=CONNECTOR,
    )
    given: dict[str, Any] = {
        "flags": 0xF5,
        "message_class": 0x0002,
        "correlation_id": CORRELATION,
        "body_type": 0x1234,
        "application_tag": 0x0A0B0C0D,
        "label": "La",
        "extension_data": b"ext",
        "message_body": b"body",
    }
    return UserMessage(BaseHeader(5, 20), user, MessagePropertiesHeader(**{**given, **properties}))


def several_destinations() -> MultiQueueFormatHeader:
    return MultiQueueFormatHeader(
        MQFAddressHeader(
            DESTINATION_ID,
            (
                MQFFormatNameElement(MQF_DIRECT, "OS:x\\yz"),
                MQFFormatNameElement(MQF_PUBLIC, LISTED),
            ),
        )
    )
