"""Strategies for the headers that every packet or session is made of."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.wire.base_header import PACKET_SIZE_MAX, PACKET_SIZE_MIN, BaseHeader
from falconmq.wire.session_header import SessionHeader
from tests.strategies.wire import u8, u16, u32

base_headers = st.builds(
    BaseHeader,
    flags=u16,
    packet_size=st.integers(PACKET_SIZE_MIN, PACKET_SIZE_MAX),
    time_to_reach_queue=u32,
    reserved=u8,
)
session_headers = st.builds(
    SessionHeader,
    ack_sequence_number=u16,
    recoverable_msg_ack_seq_number=u16,
    recoverable_msg_ack_flags=u32,
    user_msg_sequence_number=u16,
    recoverable_msg_seq_number=u16,
    window_size=u16,
    reserved=u16,
)
