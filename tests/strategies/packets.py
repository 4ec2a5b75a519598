"""Strategies for the packets of a session, and for pings."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.base_header import INTERNAL, SESSION_HEADER, BaseHeader
from falconmq.wire.connection_parameters import SIZE as CONNECTION_PARAMETERS_SIZE
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import SIZE as ESTABLISH_CONNECTION_SIZE
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.internal_header import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    PACKET_TYPE,
    SESSION_ACK,
    InternalHeader,
)
from falconmq.wire.ordering_acks import FinalAckBody, OrderAckBody
from falconmq.wire.ping import Ping
from falconmq.wire.session_ack import SIZE as SESSION_ACK_SIZE
from falconmq.wire.session_ack import SessionAck
from tests.strategies.headers import session_headers
from tests.strategies.user_message import user_messages
from tests.strategies.wire import guids, u8, u16, u32, u64


def _base_headers(size: int, flags: int = INTERNAL) -> st.SearchStrategy[BaseHeader]:
    """BaseHeaders of an internal packet, with any garbage in the fields that are ignored."""
    return st.builds(
        BaseHeader,
        flags=u16.map(lambda any_flags: any_flags | flags),
        packet_size=st.just(size),
        time_to_reach_queue=u32,
        reserved=u8,
    )


def internal_headers(packet_type: int, forbidden: int = 0) -> st.SearchStrategy[InternalHeader]:
    """InternalHeaders of this type; `forbidden` bits are never set."""
    return st.builds(
        InternalHeader,
        flags=u16.map(lambda flags: flags & ~PACKET_TYPE & ~forbidden | packet_type),
        reserved=u16,
    )


establish_connections = st.builds(
    EstablishConnection,
    client_guid=guids,
    server_guid=guids,
    time_stamp=u32,
    operating_system=u16,
    reserved=u16,
    padding=st.binary(min_size=1, max_size=16).map(lambda piece: (piece * 512)[:512]),
    base=_base_headers(ESTABLISH_CONNECTION_SIZE),
    internal=internal_headers(ESTABLISH_CONNECTION),
)
connection_parameters = st.builds(
    ConnectionParameters,
    recoverable_ack_timeout=u32,
    ack_timeout=u32,
    window_size=u16,
    reserved=u16,
    base=_base_headers(CONNECTION_PARAMETERS_SIZE),
    internal=internal_headers(CONNECTION_PARAMETERS),
)
session_acks = st.builds(
    SessionAck,
    session=session_headers,
    base=_base_headers(SESSION_ACK_SIZE, INTERNAL | SESSION_HEADER),
    internal=internal_headers(SESSION_ACK, forbidden=0x0010),
)
internal_packets = st.one_of(establish_connections, connection_parameters, session_acks)
packets = st.one_of(internal_packets, user_messages())

order_ack_bodies = st.builds(
    lambda sequence, number, reserved: OrderAckBody(sequence, number, number - 1, reserved),
    u64,
    st.integers(1, 0xFFFFFFFF),
    st.binary(min_size=20, max_size=20),
)
final_ack_bodies = st.builds(
    FinalAckBody,
    tx_sequence_id=u64,
    tx_sequence_number=st.integers(1, 0xFFFFFFFF),
    tx_previous_sequence_number=st.integers(0, 0xFFFFFFFE),
    source_guid=guids,
    message_id=u32,
)
pings = st.builds(Ping, flags=u16, cookie=u32, qm_guid=guids)
