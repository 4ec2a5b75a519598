"""ConnectionParameters, MQQB 2.2.2."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import (
    SIZE,
    ConnectionParameters,
    clamp_recoverable_ack_timeout,
)
from falconmq.wire.internal_header import InternalHeader
from tests.strategies.packets import connection_parameters
from tests.strategies.wire import u16, u32
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

BYTES = bytes.fromhex("10c1 0b00 4c494f52 20000000 ffffffff 0102 0300 03040506 0708090a 0b0c 0d0e")
REQUEST = ConnectionParameters(1496, 120_000)


@pytest.mark.requirement("QB-2.2.2-01", "QB-2.2.2.1-01", "QB-2.2.2.1-02", "QB-2.2.2.1-05")
def test_every_field_stands_at_its_offset() -> None:
    packet = ConnectionParameters.decode(BYTES)
    assert packet == ConnectionParameters(
        recoverable_ack_timeout=0x06050403,
        ack_timeout=0x0A090807,
        window_size=0x0E0D,
        reserved=0x0C0B,
        base=BaseHeader(0x000B, 32, 0xFFFFFFFF, 0xC1),
        internal=InternalHeader(0x0003, 0x0201),
    )
    assert packet.encode() == BYTES
    assert len(BYTES) == SIZE == 32


@pytest.mark.requirement("QB-2.2.2-02", "QB-2.2.2-03", "QB-2.2.2.1-03")
def test_two_timeouts_make_an_internal_packet_of_type_3() -> None:
    assert REQUEST.encode() == bytes.fromhex(
        "10000b00 4c494f52 20000000 ffffffff 00000300 d8050000 c0d40100 0000 4000"
    )


@pytest.mark.requirement("QB-2.2.2.1-04")
@given(u16)
def test_garbage_in_reserved_changes_no_answer(reserved: int) -> None:
    noisy = replace(REQUEST, reserved=reserved)
    decoded = ConnectionParameters.decode(noisy.encode())
    assert decoded.response() == REQUEST.response()
    assert decoded.clamped() == REQUEST.clamped()


@given(connection_parameters, u16)
def test_a_response_copies_the_timeouts_and_has_its_own_window(
    request: ConnectionParameters, window_size: int
) -> None:
    response = request.response(window_size).encode()
    assert response[:20] == bytes.fromhex("10000b00 4c494f52 20000000 ffffffff 00000300")
    assert response[20:28] == request.encode()[20:28]
    assert response[28:] == b"\0\0" + window_size.to_bytes(2, "little")


@pytest.mark.parametrize(
    ("received", "used"),
    [
        (0, 500),
        (499, 500),
        (500, 500),
        (501, 501),
        (119_999, 119_999),
        (120_000, 120_000),
        (120_001, 120_000),
        (0xFFFFFFFF, 120_000),
    ],
)
@pytest.mark.requirement("QB-2.2.2.1-01")
def test_the_recoverable_timeout_is_brought_into_its_range(received: int, used: int) -> None:
    packet = ConnectionParameters.decode(ConnectionParameters(received, 20_000, 7).encode())
    assert packet.clamped() == ConnectionParameters(used, 20_000, 7)
    assert clamp_recoverable_ack_timeout(received) == used
    assert packet.is_in_range is (received == used)


@pytest.mark.parametrize(
    ("received", "used"),
    [
        (0, 20_000),
        (19_999, 20_000),
        (20_000, 20_000),
        (20_001, 20_001),
        (120_000, 120_000),
        (120_001, 120_000),
        (0xFFFFFFFF, 120_000),
    ],
)
@pytest.mark.requirement("QB-2.2.2.1-02")
def test_the_ack_timeout_is_brought_into_its_range(received: int, used: int) -> None:
    packet = ConnectionParameters.decode(ConnectionParameters(500, received, 7).encode())
    assert packet.clamped() == ConnectionParameters(500, used, 7)
    assert packet.is_in_range is (received == used)


@pytest.mark.requirement("QB-2.2.2.1-05")
@pytest.mark.parametrize(("received", "used"), [(0, 1), (1, 1), (64, 64), (0xFFFF, 0xFFFF)])
def test_any_window_is_valid_and_0_is_taken_as_1(received: int, used: int) -> None:
    packet = ConnectionParameters.decode(ConnectionParameters(500, 20_000, received).encode())
    assert packet.is_in_range
    assert packet.clamped().window_size == used


def test_refusal_shows() -> None:
    refusal = replace(REQUEST, internal=InternalHeader(0x0013))
    assert ConnectionParameters.decode(refusal.encode()).refused
    assert not REQUEST.refused


@given(connection_parameters)
def test_round_trip(packet: ConnectionParameters) -> None:
    assert len(assert_round_trip(packet)) == SIZE


@given(u32, u32, u16)
def test_three_values_make_a_packet(recoverable: int, ack: int, window: int) -> None:
    assert_round_trip(ConnectionParameters(recoverable, ack, window))


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(ConnectionParameters.decode, data)


@given(st.integers(0, SIZE - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(ConnectionParameters.decode, changed)


def test_a_cut_packet_is_refused() -> None:
    assert_every_cut_is_refused(ConnectionParameters.decode, BYTES)


@pytest.mark.parametrize(
    ("offset", "data", "field"),
    [
        (2, "0300", "Flags"),
        (8, "1f000000", "PacketSize"),
        (8, "21000000", "PacketSize"),
        (18, "0200", "Flags"),
    ],
)
def test_headers_of_another_packet_are_refused(offset: int, data: str, field: str) -> None:
    value = bytes.fromhex(data)
    changed = BYTES[:offset] + value + BYTES[offset + len(value) :]
    with pytest.raises(WireError) as caught:
        ConnectionParameters.decode(changed)
    assert (caught.value.field, caught.value.offset) == (field, offset)


@pytest.mark.parametrize(
    ("packet", "field"),
    [
        (replace(REQUEST, base=BaseHeader(0x0003, 32)), "Flags"),
        (replace(REQUEST, base=BaseHeader(0x000B, 36)), "PacketSize"),
        (replace(REQUEST, internal=InternalHeader(2)), "Flags"),
        (replace(REQUEST, recoverable_ack_timeout=1 << 32), "RecoverableAckTimeout"),
        (replace(REQUEST, ack_timeout=1 << 32), "AckTimeout"),
        (replace(REQUEST, reserved=1 << 16), "Reserved"),
        (replace(REQUEST, window_size=1 << 16), "WindowSize"),
        (replace(REQUEST, window_size=-1), "WindowSize"),
    ],
)
def test_impossible_values_are_refused_by_name(packet: ConnectionParameters, field: str) -> None:
    with pytest.raises(WireError) as caught:
        packet.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)
