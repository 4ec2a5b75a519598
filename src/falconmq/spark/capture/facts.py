"""What one packet says, as the row of a table: any packet, one by one, through the wire layer.

This is the slow way and the measure of the fast one (`shapes`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from falconmq.errors import WireError
from falconmq.message.enums import Delivery
from falconmq.wire.base_header import TRACE
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID, guid_text
from falconmq.wire.inspection import destination_text
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NO_CORRELATION_ID
from falconmq.wire.ordering_acks import FinalAckBody, OrderAckBody
from falconmq.wire.packet import InternalPacket, decode_packet
from falconmq.wire.ping import Ping
from falconmq.wire.rules import is_ordering_ack
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.user_header import HOP_COUNT
from falconmq.wire.user_message import UserMessage

MALFORMED: Final = "malformed"
_CLASS_NAMES: Final = {int(member): member.name for member in MessageClass}
_DELIVERIES: Final = {int(member): member.name for member in Delivery}
_MICROSECONDS: Final = 1_000_000

Row = dict[str, Any]


def packet_facts(data: bytes) -> Row:
    """The facts of a packet of a session; `problem` says why there are none."""
    try:
        packet = decode_packet(data)
        return message_facts(packet) if isinstance(packet, UserMessage) else _internal(packet)
    except WireError as error:
        return {"kind": MALFORMED, "problem": str(error)}


def ping_facts(data: bytes) -> Row:
    """The facts of a datagram to or from the port of pings."""
    try:
        ping = Ping.decode(data)
    except WireError as error:
        return {"kind": MALFORMED, "problem": str(error)}
    return {"kind": "Ping", "client_manager": manager_text(ping.qm_guid),
            "is_refused": ping.refused}  # fmt: skip


def message_facts(message: UserMessage) -> Row:
    """Those of a user message; an OrderAck or FinalAck is one too."""
    user, properties, transaction = message.user, message.properties, message.transaction
    row: Row = {
        "kind": "UserMessage",
        "message_id": id_text(user.source_queue_manager, user.message_id),
        "message_class": class_name(properties.message_class),
        "priority": message.priority,
        "delivery": delivery_name(user.delivery_mode),
        "label": clean(properties.label),
        "queue": clean(destination_text(user)),
        "body_size": len(properties.message_body),
        "body_type": properties.body_type,
        "correlation_id": correlation_text(properties.correlation_id),
        "sent_at": user.sent_time * _MICROSECONDS,
        "time_to_reach_queue": message.base.time_to_reach_queue,
        "time_to_be_received": user.time_to_be_received,
        "hop_count": user.flags & HOP_COUNT,
        "is_traced": bool(message.base.flags & TRACE),
    }
    if transaction is not None:
        row["sequence_id"] = str(transaction.tx_sequence_id)
        row["sequence_number"] = transaction.tx_sequence_number
        row["previous_number"] = transaction.previous_tx_sequence_number
    if message.session is not None:
        row |= session_facts(message.session)
    if is_ordering_ack(message):
        row |= _ordering(message)
    return row


def _ordering(message: UserMessage) -> Row:
    body: OrderAckBody | FinalAckBody
    if message.properties.message_class == MessageClass.ORDER_ACK:
        body = OrderAckBody.decode(message.properties.message_body)
        row: Row = {"kind": "OrderAck"}
    else:
        body = FinalAckBody.decode(message.properties.message_body)
        about = id_text(body.source_guid, body.message_id)
        row = {"kind": "FinalAck", "about_message_id": about}
    row["about_sequence_id"] = str(body.tx_sequence_id)
    row["about_sequence_number"] = body.tx_sequence_number
    return row


def _internal(packet: InternalPacket) -> Row:
    row: Row = {"kind": type(packet).__name__}
    if isinstance(packet, EstablishConnection):
        row["client_manager"] = manager_text(packet.client_guid)
        row["server_manager"] = manager_text(packet.server_guid)
        row["is_refused"] = packet.refused
    elif isinstance(packet, ConnectionParameters):
        row["window_size"] = packet.window_size
        row["is_refused"] = packet.refused
    elif isinstance(packet, SessionAck):
        row |= session_facts(packet.session)
    return row


def session_facts(session: SessionHeader) -> Row:
    return {
        "ack_sequence_number": session.ack_sequence_number,
        "stored_sequence_number": session.recoverable_msg_ack_seq_number,
        "stored_flags": session.recoverable_msg_ack_flags,
        "user_sequence_number": session.user_msg_sequence_number,
        "recoverable_sequence_number": session.recoverable_msg_seq_number,
        "window_size": session.window_size,
    }


def class_name(message_class: int) -> str:
    return _CLASS_NAMES.get(message_class) or str(message_class)


def delivery_name(mode: int) -> str:
    return _DELIVERIES.get(mode) or str(mode)


@lru_cache(maxsize=4096)
def manager_text(guid: bytes) -> str | None:
    """In small letters, as everywhere in tables; null for the GUID that is none."""
    return None if guid == NULL_GUID else guid_text(guid).lower()


def id_text(manager: bytes, number: int) -> str:
    return f"{id_prefix(manager)}{number}"


@lru_cache(maxsize=4096)
def id_prefix(manager: bytes) -> str:
    return f"{{{guid_text(manager)}}}\\"


def correlation_text(identifier: bytes) -> str | None:
    if identifier == NO_CORRELATION_ID:
        return None
    return id_text(bytes(identifier[:16]), int.from_bytes(identifier[16:], "little"))


def clean(text: str) -> str:
    """Without lone surrogates, which no table takes."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
