"""SessionAck, MQQB 2.2.6."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.internal_header import InternalHeader
from falconmq.wire.session_ack import SIZE, SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.strategies.headers import session_headers
from tests.strategies.packets import session_acks
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

BYTES = bytes.fromhex(
    "10c1 1b00 4c494f52 24000000 ffffffff 0102 0100 0102 0304 05060708 090a 0b0c 0d0e 0f10"
)
SESSION = SessionHeader(0x0201, 0x0403, 0x08070605, 0x0A09, 0x0C0B, 0x0E0D, 0x100F)
ACK = SessionAck(SESSION)


@pytest.mark.requirement("QB-2.2.6-01")
def test_the_session_header_stands_at_20_and_counts_in_the_size() -> None:
    packet = SessionAck.decode(BYTES)
    assert packet == SessionAck(
        SESSION,
        base=BaseHeader(0x001B, 36, 0xFFFFFFFF, 0xC1),
        internal=InternalHeader(0x0001, 0x0201),
    )
    assert packet.encode() == BYTES
    assert len(BYTES) == SIZE == 36


@pytest.mark.requirement("QB-2.2.6-02", "QB-2.2.6-03")
def test_a_session_header_makes_an_internal_packet_of_type_1() -> None:
    start = bytes.fromhex("10001b00 4c494f52 24000000 ffffffff 00000100")
    assert ACK.encode() == start + SESSION.encode()


@pytest.mark.requirement("QB-2.2.1-08")
def test_an_ack_that_refuses_the_connection_is_neither_sent_nor_taken() -> None:
    with pytest.raises(WireError, match="CS is set in a SessionAck"):
        replace(ACK, internal=InternalHeader(0x0011)).encode()
    with pytest.raises(WireError, match="CS is set in a SessionAck"):
        SessionAck.decode(BYTES[:18] + b"\x11" + BYTES[19:])


@given(session_acks)
def test_round_trip(packet: SessionAck) -> None:
    assert len(assert_round_trip(packet)) == SIZE


@given(session_headers)
def test_a_session_header_is_all_it_needs(session: SessionHeader) -> None:
    assert_round_trip(SessionAck(session))


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SessionAck.decode, data)


@given(st.integers(0, SIZE - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(SessionAck.decode, changed)


def test_a_cut_packet_is_refused() -> None:
    assert_every_cut_is_refused(SessionAck.decode, BYTES)


@pytest.mark.parametrize(
    ("offset", "data", "field"),
    [
        (2, "1300", "Flags"),  # IN missing
        (2, "0b00", "Flags"),  # SH missing
        (8, "14000000", "PacketSize"),  # without the SessionHeader, as in a UserMessage
        (8, "25000000", "PacketSize"),
        (18, "0200", "Flags"),
    ],
)
def test_headers_of_another_packet_are_refused(offset: int, data: str, field: str) -> None:
    value = bytes.fromhex(data)
    changed = BYTES[:offset] + value + BYTES[offset + len(value) :]
    with pytest.raises(WireError) as caught:
        SessionAck.decode(changed)
    assert (caught.value.field, caught.value.offset) == (field, offset)


@pytest.mark.parametrize(
    ("packet", "field"),
    [
        (replace(ACK, base=BaseHeader(0x000B, 36)), "Flags"),
        (replace(ACK, base=BaseHeader(0x0013, 36)), "Flags"),
        (replace(ACK, base=BaseHeader(0x001B, 20)), "PacketSize"),
        (replace(ACK, internal=InternalHeader(2)), "Flags"),
        (replace(ACK, session=replace(SESSION, window_size=1 << 16)), "WindowSize"),
    ],
)
def test_impossible_values_are_refused_by_name(packet: SessionAck, field: str) -> None:
    with pytest.raises(WireError) as caught:
        packet.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)
