"""InternalHeader, MQQB 2.2.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.internal_header import RESERVED_FLAGS, SIZE, InternalHeader
from tests.strategies.packets import internal_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

any_internal_header = st.one_of(
    internal_headers(1, forbidden=0x0010), internal_headers(2), internal_headers(3)
)


@pytest.mark.requirement("QB-2.2.1-01")
def test_reserved_comes_first_and_flags_second() -> None:
    header = InternalHeader.decode(bytes.fromhex("0102 0283"))
    assert header == InternalHeader(flags=0x8302, reserved=0x0201)
    assert header.encode() == bytes.fromhex("0102 0283")
    assert SIZE == 4


@pytest.mark.requirement("QB-2.2.1-04", "QB-2.2.1-07")
@pytest.mark.parametrize(
    ("flags", "packet_type", "refused"),
    [(0x0002, 2, False), (0x0012, 2, True), (0xFFE3, 3, False), (0xFFF3, 3, True)],
)
def test_the_low_four_bits_are_the_type_and_bit_4_refuses(
    flags: int, packet_type: int, refused: bool
) -> None:
    header = InternalHeader(flags)
    assert header.packet_type == packet_type
    assert header.refused is refused
    assert RESERVED_FLAGS == 0xFFE0  # X5 to X15


@pytest.mark.requirement("QB-2.2.1-02")
def test_reserved_is_sent_as_0() -> None:
    assert InternalHeader(1).encode() == bytes.fromhex("0000 0100")


@pytest.mark.requirement("QB-2.2.1-03", "QB-2.2.1-12")
@pytest.mark.parametrize("packet_type", [1, 2, 3])
def test_garbage_in_reserved_fields_changes_nothing(packet_type: int) -> None:
    header = InternalHeader.decode(b"\xff\xff" + (0xFFE0 | packet_type).to_bytes(2, "little"))
    assert (header.packet_type, header.refused) == (packet_type, False)


@pytest.mark.requirement("QB-2.2.1-06")
@pytest.mark.parametrize("packet_type", [0, *range(4, 16)])
def test_an_unknown_packet_type_is_refused(packet_type: int) -> None:
    with pytest.raises(WireError, match=f"PT {packet_type} is none of") as caught:
        InternalHeader.decode(bytes([0, 0, packet_type, 0]))
    assert (caught.value.field, caught.value.offset) == ("Flags", 2)


@pytest.mark.requirement("QB-2.2.1-05")
@pytest.mark.parametrize("packet_type", range(16))
def test_only_the_three_known_packet_types_are_sent(packet_type: int) -> None:
    header = InternalHeader(packet_type)
    if packet_type in (1, 2, 3):
        assert header.encode() == bytes([0, 0, packet_type, 0])
    else:
        with pytest.raises(WireError, match=f"PT {packet_type} is none of"):
            header.encode()


@pytest.mark.requirement("QB-2.2.1-08")
def test_a_session_ack_never_refuses_but_the_other_two_may() -> None:
    with pytest.raises(WireError, match="CS is set in a SessionAck"):
        InternalHeader(0x0011).encode()
    with pytest.raises(WireError, match="CS is set in a SessionAck"):
        InternalHeader.decode(bytes.fromhex("0000 1100"))
    assert InternalHeader.decode(InternalHeader(0x0012).encode()).refused
    assert InternalHeader.decode(InternalHeader(0x0013).encode()).refused


@given(any_internal_header)
def test_round_trip(header: InternalHeader) -> None:
    assert len(assert_round_trip(header)) == SIZE


@given(st.binary(max_size=SIZE + 2))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(InternalHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(InternalHeader.decode, InternalHeader(2).encode())


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (InternalHeader(2, reserved=0x10000), "Reserved"),
        (InternalHeader(2, reserved=-1), "Reserved"),
        (InternalHeader(0x10002), "Flags"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(header: InternalHeader, field: str) -> None:
    with pytest.raises(WireError, match="does not fit") as caught:
        header.encode()
    assert caught.value.field == field
