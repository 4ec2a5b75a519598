"""BaseHeader, MQMQ 2.2.19.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import base_header
from falconmq.wire.base_header import SIZE, BaseHeader
from tests.strategies.headers import base_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# every field at another value, so that two swapped fields show
BYTES = bytes.fromhex("10 5a 0102 4c494f52 03040500 06070809")


@pytest.mark.requirement(
    "MQ-2.2.19.1-01",
    "MQ-2.2.19.1-02",
    "MQ-2.2.19.1-03",
    "MQ-2.2.19.1-04",
    "MQ-2.2.19.1-06",
    "MQ-2.2.19.1-27",
    "MQ-2.2.19.1-28",
    "MQ-2.2.19.1-29",
    "MQ-2.2.19.1-35",
    "QB-MQMQ2.2.19.1-01",
    "QB-MQMQ2.2.19.1-04",
)
def test_every_field_stands_at_its_offset() -> None:
    header = BaseHeader.decode(bytes.fromhex("10 5a 0102 4c494f52 03041500 06070809"))
    assert header == BaseHeader(
        flags=0x0201, packet_size=0x150403, time_to_reach_queue=0x09080706, reserved=0x5A
    )
    assert header.encode() == bytes.fromhex("10 5a 0102 4c494f52 03041500 06070809")
    assert SIZE == len(header.encode()) == 16


@pytest.mark.requirement("MQ-2.2.19.1-05", "QB-MQMQ2.2.19.1-02")
@pytest.mark.parametrize("reserved", [0x00, 0x5A, 0xC0, 0xFF])
def test_any_reserved_byte_is_accepted_and_kept(reserved: int) -> None:
    data = BYTES[:1] + bytes([reserved]) + BYTES[2:]
    header = BaseHeader.decode(data)
    assert (header.flags, header.packet_size) == (0x0201, 0x050403)
    assert header.encode() == data


@pytest.mark.parametrize("version", [0x00, 0x0F, 0x11, 0xFF])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(WireError, match="VersionNumber at offset 0"):
        BaseHeader.decode(bytes([version]) + BYTES[1:])


@pytest.mark.parametrize("place", range(4, 8))
def test_another_signature_is_refused(place: int) -> None:
    data = bytearray(BYTES)
    data[place] ^= 0x20
    with pytest.raises(WireError, match="Signature at offset 4"):
        BaseHeader.decode(bytes(data))


@pytest.mark.requirement("MQ-2.2.19.1-33")
def test_four_megabytes_are_the_largest_packet() -> None:
    largest = bytes.fromhex("10 00 0000 4c494f52 00004000 ffffffff")
    assert BaseHeader.decode(largest).packet_size == 0x00400000
    assert BaseHeader(0, 0x00400000).encode() == largest
    with pytest.raises(WireError, match="PacketSize at offset 8: 4194305"):
        BaseHeader.decode(bytes.fromhex("10 00 0000 4c494f52 01004000 ffffffff"))
    with pytest.raises(WireError, match="PacketSize"):
        BaseHeader(0, 0x00400001).encode()


@pytest.mark.parametrize("size", [0, 15, 16, 19, 0x00400001, 0xFFFFFFFF])
def test_sizes_no_packet_has_are_refused(size: int) -> None:
    data = bytes.fromhex("1000 0000 4c494f52") + size.to_bytes(4, "little") + bytes(4)
    with pytest.raises(WireError, match=f"PacketSize at offset 8: {size} "):
        BaseHeader.decode(data)
    with pytest.raises(WireError, match="PacketSize"):
        BaseHeader(0, size).encode()


@pytest.mark.requirement("MQ-2.2.19.1-36")
def test_a_packet_has_all_the_time_in_the_world_unless_said_otherwise() -> None:
    assert BaseHeader(0, 20).time_to_reach_queue == base_header.INFINITE == 0xFFFFFFFF
    assert BaseHeader(0, 20).encode()[12:] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        pytest.param("PRIORITY", 0x0007, marks=pytest.mark.requirement("MQ-2.2.19.1-07")),
        pytest.param("INTERNAL", 0x0008, marks=pytest.mark.requirement("MQ-2.2.19.1-11")),
        pytest.param("SESSION_HEADER", 0x0010, marks=pytest.mark.requirement("MQ-2.2.19.1-14")),
        pytest.param("DEBUG_HEADER", 0x0020, marks=pytest.mark.requirement("MQ-2.2.19.1-16")),
        pytest.param("TRACE", 0x0100, marks=pytest.mark.requirement("MQ-2.2.19.1-21")),
        ("RESERVED_FLAGS", 0x00C0 | 0xFE00),
    ],
)
def test_flags_have_their_bits(name: str, mask: int) -> None:
    assert getattr(base_header, name) == mask


@pytest.mark.requirement("MQ-2.2.19.1-08")
def test_the_priority_is_3_unless_said_otherwise() -> None:
    assert base_header.DEFAULT_PRIORITY == 3


@given(base_headers)
def test_round_trip(header: BaseHeader) -> None:
    assert len(assert_round_trip(header)) == SIZE


@given(st.binary(max_size=SIZE + 4) | st.binary(max_size=12).map(lambda tail: BYTES[:8] + tail))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(BaseHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(BaseHeader.decode, BYTES)


@pytest.mark.parametrize(
    ("field", "value"),
    [("flags", 0x10000), ("flags", -1), ("time_to_reach_queue", 1 << 32), ("reserved", 0x100)],
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: int) -> None:
    header = BaseHeader(0, 20)
    setattr(header, field, value)
    with pytest.raises(WireError, match="does not fit") as caught:
        header.encode()
    assert caught.value.field.lower() == field.replace("_", "")
