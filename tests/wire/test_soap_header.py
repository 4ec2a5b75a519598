"""SoapHeader, MQMQ 2.2.20.7."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.reader import Reader
from falconmq.wire.soap_header import SoapHeader
from tests.strategies.user_message import mutated, soap_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

PADDED = bytes.fromhex("2003 0102 03000000 610062000000 0000 8403 0304 02000000 63000000")


@pytest.mark.requirement(
    "MQ-2.2.20.7-01",
    "MQ-2.2.20.7-02",
    "MQ-2.2.20.7-03",
    "MQ-2.2.20.7-06",
    "MQ-2.2.20.7-07",
    "MQ-2.2.20.7-08",
    "MQ-2.2.20.7-09",
    "MQ-2.2.20.7-10",
    "MQ-2.2.20.7-11",
    "MQ-2.2.20.7-14",
    "MQ-2.2.20.7-15",
    "MQ-2.2.20.7-16",
)
def test_every_field_stands_at_its_offset() -> None:
    header = SoapHeader.decode(PADDED)
    assert header == SoapHeader(header="ab", body="c", reserved=0x0201, reserved1=0x0403)
    assert header.encode() == PADDED


@pytest.mark.requirement("MQ-2.2.20.7-17")
@pytest.mark.parametrize("header", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("body", ["", "a", "ab", "abc"])
def test_both_strings_are_padded_to_four(header: str, body: str) -> None:
    data = assert_round_trip(SoapHeader(header, body))
    sizes = [2 * len(text) + 2 for text in (header, body)]
    assert len(data) == 16 + sum(size + size % 4 for size in sizes)
    padded = [bytes(size % 4) for size in sizes]
    assert data.endswith(body.encode("utf-16-le") + b"\0\0" + padded[1])


@pytest.mark.requirement("MQ-2.2.20.7-17")
def test_padding_may_hold_anything() -> None:
    data = bytearray(SoapHeader("ab", "ab").encode())
    data[14:16] = data[-2:] = b"\xff\xff"
    reader = Reader(data + b"next")
    assert SoapHeader.read(reader) == SoapHeader("ab", "ab")
    assert bytes(reader.take(4, "next")) == b"next"


def test_strings_without_padding_are_read_too() -> None:
    data = bytes.fromhex("2003 0000 03000000 610062000000 8403 0000 03000000 630064000000")
    reader = Reader(data + b"next")
    assert SoapHeader.read(reader) == SoapHeader("ab", "cd")
    assert bytes(reader.take(4, "next")) == b"next"


def test_padding_that_looks_like_a_section_is_still_padding() -> None:
    data = bytearray(SoapHeader("ab", "c").encode())
    data[14:16] = b"\x84\x03"
    assert SoapHeader.decode(data) == SoapHeader("ab", "c")


def test_a_packet_may_end_with_the_last_string() -> None:
    whole = SoapHeader("a", "ab").encode()
    assert SoapHeader.decode(whole[:-2]) == SoapHeader("a", "ab")


def test_no_string_is_not_an_empty_string() -> None:
    assert SoapHeader(None, None).encode() == bytes.fromhex("2003000000000000 8403000000000000")
    assert SoapHeader("", "").encode() == bytes.fromhex(
        "2003000001000000 00000000 8403000001000000 00000000"
    )


@pytest.mark.requirement("MQ-2.2.20.7-04", "MQ-2.2.20.7-12")
def test_reserved_fields_are_zero_unless_they_came_from_a_peer() -> None:
    data = SoapHeader("a", "b").encode()
    assert data[2:4] == data[14:16] == b"\0\0"


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(2, marks=pytest.mark.requirement("MQ-2.2.20.7-05")),
        pytest.param(14, marks=pytest.mark.requirement("MQ-2.2.20.7-13")),
    ],
)
def test_reserved_fields_are_kept_and_change_nothing(place: int) -> None:
    data = bytearray(SoapHeader("a", "b").encode())
    data[place : place + 2] = b"\xff\xff"
    header = SoapHeader.decode(data)
    assert (header.header, header.body) == ("a", "b")
    assert header.encode() == data


@pytest.mark.requirement("MQ-2.2.20.7-02", "MQ-2.2.20.7-10")
@pytest.mark.parametrize(("place", "field"), [(0, "HeaderSectionID"), (16, "BodySectionID")])
def test_another_section_is_refused(place: int, field: str) -> None:
    data = bytearray(PADDED)
    data[place] ^= 1
    with pytest.raises(WireError, match=f"{field} at offset {place}: "):
        SoapHeader.decode(data)


@pytest.mark.requirement("MQ-2.2.20.7-18")
@pytest.mark.parametrize("length", [0x80000001, 0xFFFFFFFF, 15])
@pytest.mark.parametrize(("place", "field"), [(4, "Header"), (20, "Body")])
def test_lengths_past_the_end_are_refused_without_wrapping(
    place: int, field: str, length: int
) -> None:
    data = bytearray(PADDED)
    data[place : place + 4] = length.to_bytes(4, "little")
    with pytest.raises(WireError, match=rf"\.{field} at offset {place + 4}: needs {2 * length} "):
        SoapHeader.decode(data)


@pytest.mark.parametrize(("place", "field"), [(12, "Header"), (26, "Body")])
def test_a_string_without_its_nul_is_refused(place: int, field: str) -> None:
    data = bytearray(PADDED)
    data[place] = 1
    with pytest.raises(WireError, match=rf"\.{field} at offset {place}: no NUL"):
        SoapHeader.decode(data)


def test_a_nul_inside_is_not_sent() -> None:
    for header in (SoapHeader("a\0b", None), SoapHeader(None, "a\0b")):
        with pytest.raises(WireError, match="NUL"):
            header.encode()


@given(soap_headers)
def test_round_trip(header: SoapHeader) -> None:
    assert len(assert_round_trip(header)) % 4 == 0


@given(st.binary(max_size=40) | mutated(soap_headers.map(SoapHeader.encode)))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SoapHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(SoapHeader.decode, PADDED)


@pytest.mark.parametrize("field", ["reserved", "reserved1"])
def test_a_value_that_does_not_fit_is_refused_by_name(field: str) -> None:
    header = SoapHeader("a", "b")
    setattr(header, field, 0x10000)
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field.lower() == field
