"""FalconMQ: an open queue manager that speaks MSMQ's native protocols on Linux."""

from falconmq.body import BodyType
from falconmq.errors import FalconMQError, MessageError, MqStatus, NameSyntaxError, WireError
from falconmq.message import (
    INFINITE,
    Acknowledge,
    Delivery,
    Journal,
    Message,
    MessageClass,
    MessageId,
)
from falconmq.names import FormatName, PathName, parse_format_name, parse_queue_name

__all__ = [
    "INFINITE",
    "Acknowledge",
    "BodyType",
    "Delivery",
    "FalconMQError",
    "FormatName",
    "Journal",
    "Message",
    "MessageClass",
    "MessageError",
    "MessageId",
    "MqStatus",
    "NameSyntaxError",
    "PathName",
    "WireError",
    "parse_format_name",
    "parse_queue_name",
]
