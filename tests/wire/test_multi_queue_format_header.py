"""MultiQueueFormatHeader and its parts, MQMQ 2.2.20.1 to 2.2.20.3 and 2.2.18.1.4."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.multi_queue_format_header import (
    MQFAddressHeader,
    MQFFormatNameElement,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from falconmq.wire.queue_name import PrivateQueueFormatName
from falconmq.wire.reader import Reader
from falconmq.wire.tracing import TracingReader
from tests.strategies.user_message import (
    address_headers,
    format_name_elements,
    multi_queue_format_headers,
    mutated,
    signature_headers,
)
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

GUID = bytes(range(0x50, 0x60))
NINES = bytes.fromhex("99999999888877776666555555555555")
LETTERS = bytes.fromhex("aaaaaaaabbbbccccddddeeeeeeeeeeee")
# the derived example of MQMQ guide 4.8
DERIVED = bytes.fromhex(
    "48000000640000000300000003004f0053003a0068005c0061000000"
    "020000009999999988887777666655555555555505000000"
    "01000000aaaaaaaabbbbccccddddeeeeeeeeeeee"
    "0c000000c800000000000000 0c0000002c01000000000000 5e01000000000000"
)
ELEMENTS = {
    1: MQFFormatNameElement(1, GUID),
    2: MQFFormatNameElement(2, PrivateQueueFormatName(GUID, 0x11223344)),
    3: MQFFormatNameElement(3, "OS:a"),
    6: MQFFormatNameElement(6, GUID),
}


def address_bytes(size: int, count: int, names: bytes, header_id: int = 0x64) -> bytes:
    fields = ((size, 4), (header_id, 2), (0, 2), (count, 4))
    return b"".join(value.to_bytes(width, "little") for value, width in fields) + names


@pytest.mark.requirement(
    "MQ-2.2.20.1-01",
    "MQ-2.2.20.2-04",
    "MQ-2.2.20.2-09",
    "MQ-2.2.20.2-11",
    "QB-MQMQ2.2.18.1.4-01",
    "QB-MQMQ2.2.20.1-01",
)
def test_the_derived_example_decodes_to_its_three_names() -> None:
    header = MultiQueueFormatHeader.decode(DERIVED)
    assert header == MultiQueueFormatHeader(
        destination=MQFAddressHeader(
            0x0064,
            (
                MQFFormatNameElement(3, "OS:h\\a"),
                MQFFormatNameElement(2, PrivateQueueFormatName(NINES, 5)),
                MQFFormatNameElement(1, LETTERS),
            ),
        ),
        administration=MQFAddressHeader(0x00C8),
        response=MQFAddressHeader(0x012C),
        signature=MQFSignatureHeader(),
    )
    assert header.encode() == DERIVED
    assert MultiQueueFormatHeader(header.destination).encode() == DERIVED


@pytest.mark.requirement(
    "MQ-2.2.20.2-01",
    "MQ-2.2.20.2-02",
    "MQ-2.2.20.2-03",
    "MQ-2.2.20.2-05",
    "MQ-2.2.20.2-08",
    "MQ-2.2.20.2-09",
    "MQ-2.2.20.2-10",
    "MQ-2.2.20.2-11",
    "QB-MQMQ2.2.20.2-01",
)
def test_every_field_of_a_list_stands_at_its_offset() -> None:
    data = bytes.fromhex("14000000 c800 0102 02000000 0300 0000 0300 0000")
    header = MQFAddressHeader.decode(data)
    names = (MQFFormatNameElement(3, ""), MQFFormatNameElement(3, ""))
    assert header == MQFAddressHeader(0x00C8, names, reserved=0x0201)
    assert header.encode() == data


@pytest.mark.requirement(
    "MQ-2.2.20.3-01",
    "MQ-2.2.20.3-02",
    "MQ-2.2.20.3-03",
    "MQ-2.2.20.3-06",
    "MQ-2.2.20.3-07",
    "MQ-2.2.20.3-08",
    "MQ-2.2.20.3-09",
    "QB-MQMQ2.2.20.3-01",
)
def test_every_field_of_the_signature_stands_at_its_offset() -> None:
    data = bytes.fromhex("5e01 0102 05000000 1112131415")
    reader = Reader(data + b"next")
    header = MQFSignatureHeader.read(reader)
    assert header == MQFSignatureHeader(b"\x11\x12\x13\x14\x15", reserved=0x0201)
    assert reader.offset == len(data)
    assert header.encode() == data
    assert isinstance(header.signature, memoryview)
    assert MQFSignatureHeader().encode() == bytes.fromhex("5e01 0000 00000000")


@pytest.mark.parametrize(
    ("element", "data"),
    [
        pytest.param(
            ELEMENTS[1],
            b"\x01\0\0\0" + GUID,
            marks=pytest.mark.requirement("MQ-2.2.18.1.4-03", "MQ-2.2.18.1.7.1-02"),
        ),
        pytest.param(
            ELEMENTS[2],
            b"\x02\0\0\0" + GUID + b"\x44\x33\x22\x11",
            marks=pytest.mark.requirement("MQ-2.2.18.1.4-04", "MQ-2.2.18.1.7.2-02"),
        ),
        pytest.param(
            ELEMENTS[3],
            b"\x03\0O\0S\0:\0a\0\0\0",
            marks=pytest.mark.requirement(
                "MQ-2.2.18.1.4-05", "MQ-2.2.18.1.4.1-01", "MQ-2.2.18.1.4.1-02"
            ),
        ),
        pytest.param(
            ELEMENTS[6],
            b"\x06\0\0\0" + GUID,
            marks=pytest.mark.requirement(
                "MQ-2.2.18.1.4-06", "MQ-2.2.18.1.4.2-01", "MQ-2.2.18.1.4.2-02"
            ),
        ),
    ],
    ids=["public", "private", "direct", "distribution list"],
)
@pytest.mark.requirement("MQ-2.2.18.1.4-01", "QB-MQMQ2.2.18.1.4-01")
def test_every_element_has_its_layout(element: MQFFormatNameElement, data: bytes) -> None:
    reader = Reader(data + b"\x03\0")
    assert MQFFormatNameElement.read(reader) == element
    assert reader.offset == len(data)
    assert element.encode() == data


@pytest.mark.requirement(
    "MQ-2.2.18.1.4.2-02", "MQ-2.2.18.1.7.1-02", "MQ-2.2.18.1.7.2-02", "QB-MQMQ2.2.18.1.4-01"
)
@pytest.mark.parametrize("kind", [1, 2, 6])
def test_a_guid_behind_an_odd_name_needs_no_padding(kind: int) -> None:
    # an element of 6 bytes leaves the next one two bytes before a boundary, where FormatType fits
    first = MQFFormatNameElement(3, "a")
    data = MQFAddressHeader(0x64, (first, ELEMENTS[kind])).encode()
    assert data[12:18] == b"\x03\0a\0\0\0"
    assert data[18:20] == bytes([kind, 0])
    assert data[20:36] == GUID
    assert MQFAddressHeader.decode(data).format_name_list == (first, ELEMENTS[kind])


@pytest.mark.requirement("MQ-2.2.18.1.4-02", "QB-MQMQ2.2.18.1.4-01")
@pytest.mark.parametrize("format_type", [0, 4, 5, 7, 8, 0x0100, 0xFFFF])
def test_other_format_types_are_refused(format_type: int) -> None:
    data = format_type.to_bytes(2, "little") + bytes(22)
    with pytest.raises(WireError, match=f"FormatType at offset 0: {format_type} is unknown"):
        MQFFormatNameElement.decode(data)
    with pytest.raises(WireError, match=f"FormatType at offset 12: {format_type} is unknown"):
        MQFAddressHeader.decode(address_bytes(36, 1, data))
    with pytest.raises(WireError, match=f"no name of type {format_type}"):
        MQFFormatNameElement(format_type, GUID).encode()


@pytest.mark.parametrize("kind", [1, 2, 3, 6])
@pytest.mark.parametrize("other", [1, 2, 3])
def test_a_value_of_another_type_is_not_sent(kind: int, other: int) -> None:
    if kind == other or (kind, other) == (6, 1):
        return
    with pytest.raises(WireError, match=f"no name of type {kind}"):
        MQFFormatNameElement(kind, ELEMENTS[other].name).encode()


@pytest.mark.requirement("MQ-2.2.20.1-05", "MQ-2.2.20.2-12")
@pytest.mark.parametrize("kinds", list(itertools.permutations([1, 2, 3, 6])))
def test_every_order_of_elements_comes_back(kinds: tuple[int, ...]) -> None:
    names = tuple(ELEMENTS[kind] for kind in kinds)
    header = MultiQueueFormatHeader(
        MQFAddressHeader(0x0064, names),
        MQFAddressHeader(0x00C8, names[:2]),
        MQFAddressHeader(0x012C, names[2:]),
        MQFSignatureHeader(b"signature"),
    )
    data = assert_round_trip(header)
    offset = 0
    for count in (4, 2, 2):  # HeaderSize leads from list to list, always to a boundary
        size = int.from_bytes(data[offset : offset + 4], "little")
        assert data[offset + 8] == count
        assert size % 4 == 0
        offset += size
    assert data[offset : offset + 2] == b"\x5e\x01"


@pytest.mark.requirement("MQ-2.2.20.2-12", "QB-MQMQ2.2.20.1-01")
def test_a_header_size_that_leaves_out_the_padding_is_understood() -> None:
    counted = MultiQueueFormatHeader(MQFAddressHeader(0x64, (MQFFormatNameElement(3, "a"),)))
    data = counted.encode()
    assert data[:4] == b"\x14\0\0\0"
    assert MultiQueueFormatHeader.decode(b"\x12\0\0\0" + data[4:]) == counted


@pytest.mark.requirement("MQ-2.2.18.1.4-07", "MQ-2.2.20.1-06", "MQ-2.2.20.2-13", "MQ-2.2.20.2-12")
def test_padding_may_hold_anything() -> None:
    names = (ELEMENTS[1], MQFFormatNameElement(3, "a"))
    clean = MultiQueueFormatHeader(MQFAddressHeader(0x64, names))
    data = bytearray(clean.encode())
    assert data[14:16] == data[38:40] == b"\0\0"
    data[14:16] = data[38:40] = b"\xff\xff"
    assert MultiQueueFormatHeader.decode(data) == clean


@pytest.mark.requirement("MQ-2.2.18.1.7.1-02")
def test_a_public_name_without_alignment_is_understood() -> None:
    names = b"\x01\0" + GUID + b"\x03\0a\0\0\0"
    data = address_bytes(36, 2, names)
    header = MQFAddressHeader.decode(data)
    assert header.format_name_list == (ELEMENTS[1], MQFFormatNameElement(3, "a"))
    tracer = TracingReader(data)
    assert MQFAddressHeader.read(tracer) == header
    (node,) = tracer.root.children
    assert [child.name for child in node.children][4:] == ["MQFFormatNameElement"] * 2


def test_bytes_that_no_element_accounts_for_are_refused() -> None:
    names = b"\x03\0a\0\0\0" + bytes(4)
    with pytest.raises(WireError, match="FormatNameList at offset 18: 4 bytes behind 1 elements"):
        MQFAddressHeader.decode(address_bytes(22, 1, names + bytes(2)))
    assert MQFAddressHeader.decode(address_bytes(21, 1, names + bytes(2))) == MQFAddressHeader(
        0x64, (MQFFormatNameElement(3, "a"),)
    )


@pytest.mark.requirement("MQ-2.2.20.2-02")
@pytest.mark.parametrize("size", [0, 11])
def test_a_header_size_below_12_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"HeaderSize at offset 0: {size} is below 12"):
        MQFAddressHeader.decode(address_bytes(size, 0, bytes(8)))


@pytest.mark.parametrize("size", [0x40, 0xFFFFFFFF])
def test_a_header_size_past_the_end_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"FormatNameList at offset 12: needs {size - 12} bytes"):
        MQFAddressHeader.decode(address_bytes(size, 1, b"\x03\0\0\0"))


@pytest.mark.parametrize("count", [2, 0xFFFFFFFF])
def test_more_elements_than_fit_are_refused_before_any_is_read(count: int) -> None:
    data = address_bytes(19, count, b"\x03\0\0\0\x03\0\0\0")
    with pytest.raises(WireError, match=f"ElementCount at offset 8: {count} do not fit"):
        MQFAddressHeader.decode(data)


def test_a_name_cannot_reach_into_the_next_list() -> None:
    data = address_bytes(18, 1, b"\x03\0a\0b\0" + b"\0\0")
    with pytest.raises(WireError, match="no NUL ends this string"):
        MQFAddressHeader.decode(data)


@pytest.mark.requirement("MQ-2.2.20.2-04", "MQ-2.2.20.1-01", "QB-MQMQ2.2.20.2-01")
@pytest.mark.parametrize(("offset", "expected"), [(4, 0x64), (76, 0xC8), (88, 0x12C)])
@pytest.mark.parametrize("header_id", [0x0064, 0x00C8, 0x012C, 0x015E, 0])
def test_lists_come_in_their_order(offset: int, expected: int, header_id: int) -> None:
    data = bytearray(DERIVED)
    data[offset : offset + 2] = header_id.to_bytes(2, "little")
    if header_id == expected:
        assert MultiQueueFormatHeader.decode(data).encode() == DERIVED
    else:
        with pytest.raises(WireError, match=f"HeaderID at offset {offset}: 0x0"):
            MultiQueueFormatHeader.decode(data)


@pytest.mark.requirement("MQ-2.2.20.2-04")
def test_lists_in_the_wrong_place_are_not_sent() -> None:
    destination, other = MQFAddressHeader(0x64), MQFAddressHeader(0xC8)
    for header in (
        MultiQueueFormatHeader(other),
        MultiQueueFormatHeader(destination, administration=destination),
        MultiQueueFormatHeader(destination, response=other),
        MultiQueueFormatHeader(MQFAddressHeader(0x015E)),
    ):
        with pytest.raises(WireError, match="HeaderID"):
            header.encode()
    with pytest.raises(WireError, match="HeaderID"):
        MQFAddressHeader(0x015E).encode()


@pytest.mark.requirement("MQ-2.2.20.3-02", "QB-MQMQ2.2.20.3-01")
def test_another_id_of_the_signature_is_refused() -> None:
    with pytest.raises(WireError, match="ID at offset 0: 0x0064"):
        MQFSignatureHeader.decode(bytes.fromhex("6400 0000 00000000"))


@pytest.mark.parametrize("size", [6, 0xFFFFFFFF])
def test_a_signature_past_the_end_is_refused(size: int) -> None:
    data = bytes.fromhex("5e01 0000") + size.to_bytes(4, "little") + b"12345"
    with pytest.raises(WireError, match=f"Signature at offset 8: needs {size} bytes, 5"):
        MQFSignatureHeader.decode(data)


@pytest.mark.requirement("MQ-2.2.20.2-06", "MQ-2.2.20.3-04")
def test_reserved_fields_are_zero_unless_they_came_from_a_peer() -> None:
    assert MQFAddressHeader(0x64).encode()[6:8] == b"\0\0"
    assert MQFSignatureHeader().encode()[2:4] == b"\0\0"


@pytest.mark.requirement("MQ-2.2.20.2-07", "MQ-2.2.20.3-05")
def test_reserved_fields_are_kept_and_change_nothing() -> None:
    data = bytearray(DERIVED)
    for place in (6, 78, 90, 98):
        data[place : place + 2] = b"\xff\xff"
    header = MultiQueueFormatHeader.decode(data)
    assert header.encode() == data
    for part in (header.destination, header.administration, header.response, header.signature):
        assert part.reserved == 0xFFFF
        part.reserved = 0
    assert header.encode() == DERIVED


@given(multi_queue_format_headers)
def test_round_trip(header: MultiQueueFormatHeader) -> None:
    assert_round_trip(header)


@given(format_name_elements)
def test_element_round_trip(element: MQFFormatNameElement) -> None:
    assert_round_trip(element)


@given(address_headers(0x64))
def test_list_round_trip(header: MQFAddressHeader) -> None:
    assert len(assert_round_trip(header)) % 4 == 0


@given(signature_headers)
def test_signature_round_trip(header: MQFSignatureHeader) -> None:
    assert_round_trip(header)


@given(
    st.binary(max_size=60)
    | mutated(multi_queue_format_headers.map(MultiQueueFormatHeader.encode))
    | mutated(st.just(DERIVED))
)
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(MultiQueueFormatHeader.decode, data)
    assert_decodes_or_refuses(MQFAddressHeader.decode, data)
    assert_decodes_or_refuses(MQFFormatNameElement.decode, data)
    assert_decodes_or_refuses(MQFSignatureHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(MultiQueueFormatHeader.decode, DERIVED)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (MQFAddressHeader(0x64, reserved=0x10000), "Reserved"),
        (MQFSignatureHeader(reserved=-1), "Reserved"),
        (MQFFormatNameElement(1, GUID[:15]), "FormatName"),
        (MQFFormatNameElement(3, "a\0b"), "DirectFormatName"),
        (MQFFormatNameElement(2, PrivateQueueFormatName(GUID, 1 << 32)), "PrivateQueueIdentifier"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    header: MQFAddressHeader | MQFSignatureHeader | MQFFormatNameElement, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field == field
