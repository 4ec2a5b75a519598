"""The reader refuses to run past its part, and says where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.guid import guid_bytes, guid_text, guid_value
from falconmq.wire.reader import Layout, Reader, decode_utf16, encode_utf16, padding
from falconmq.wire.tracing import Node, TracingReader
from tests.strategies.wire import guids, texts

LAYOUT = Layout("Thing", "BHI", "One", "Two", "Four")


def test_fixed_fields_are_little_endian_and_packed() -> None:
    data = bytes.fromhex("01 0302 07060504")
    assert Reader(data).fixed(LAYOUT) == (0x01, 0x0203, 0x04050607), "up to the very end"
    reader = Reader(data + b"\xff")
    assert reader.fixed(LAYOUT) == (0x01, 0x0203, 0x04050607)
    assert reader.position == LAYOUT.size == 7
    assert LAYOUT.pack(0x01, 0x0203, 0x04050607) == bytes.fromhex("01 0302 07060504")


@pytest.mark.parametrize(
    ("size", "field", "offset"),
    [(0, "One", 0), (1, "Two", 1), (2, "Two", 1), (3, "Four", 3), (6, "Four", 3)],
)
def test_a_cut_layout_names_the_field_that_is_cut(size: int, field: str, offset: int) -> None:
    reader = Reader(b"??" + bytes(size), 2)
    reader.enter("Thing")
    with pytest.raises(WireError) as caught:
        reader.fixed(LAYOUT)
    error = caught.value
    assert (error.structure, error.field, error.offset) == ("Thing", field, offset)


def test_offsets_in_errors_count_from_the_start_of_the_packet() -> None:
    reader = Reader(bytes(10), offset=3)
    reader.enter("Thing")
    reader.skip(4, "Skipped")
    with pytest.raises(WireError, match=r"Thing\.Blob at offset 4: needs 9 bytes, 3 are left"):
        reader.take(9, "Blob")


def test_a_refused_field_is_reported_where_it_stands() -> None:
    reader = Reader(bytes(20), offset=3)
    reader.enter("Thing")
    reader.skip(2, "Before")
    reader.fixed(LAYOUT)
    assert reader.refuse(LAYOUT, "Four", "bad").offset == 5


def test_taken_bytes_are_not_copied() -> None:
    data = bytes(range(100))
    assert Reader(data).take(50, "Body").obj is data


def test_a_part_can_neither_be_overrun_nor_left_unread() -> None:
    reader = Reader(bytes(range(8)))
    reader.enter("Thing")
    part = reader.part(4, "Part")
    assert reader.position == 4
    assert part.u16("Two") == 0x0100
    with pytest.raises(WireError, match="2 bytes too many"):
        part.finish("Part")
    with pytest.raises(WireError, match="needs 4 bytes, 2 are left"):
        part.u32("Four")
    part.u16("Two")
    part.finish("Part")
    with pytest.raises(WireError, match="needs 5 bytes, 4 are left"):
        reader.part(5, "Part")


def test_alignment_counts_from_the_start_of_the_packet() -> None:
    reader = Reader(bytes(12), offset=3)
    reader.u8("One")
    reader.align(4)
    assert reader.position == 7
    reader.align(4)
    assert reader.position == 7


def test_padding_that_is_cut_off_is_refused() -> None:
    reader = Reader(bytes(1))
    reader.u8("One")
    with pytest.raises(WireError):
        reader.align(4)


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 511, 512, 513, 1200])
@pytest.mark.parametrize("character", ["a", "Ā", "āa"])  # U+0100 has a zero low byte
def test_text_ends_at_its_nul_wherever_that_lies(length: int, character: str) -> None:
    text = (character * length)[:length]
    reader = Reader(b"?" + encode_utf16(text) + b"\0\0" + b"tail", 1)
    assert reader.text("Name") == text
    assert reader.remaining == 4


@pytest.mark.parametrize("tail", [b"", b"a", b"a\0", b"a\0\0", b"\0", b"\0a\0a"])
def test_text_without_a_nul_is_refused(tail: bytes) -> None:
    reader = Reader(tail)
    reader.enter("Thing")
    with pytest.raises(WireError, match=r"Thing\.Name at offset 0: no NUL"):
        reader.text("Name")


def test_text_may_end_with_the_packet() -> None:
    reader = Reader(b"a\0\0\0")
    assert (reader.text("Name"), reader.remaining) == ("a", 0)
    assert Reader(b"\0\0").text("Name") == ""


def test_text_does_not_look_beyond_its_part() -> None:
    part = Reader(b"a\0b\0\0\0").part(4, "Part")
    with pytest.raises(WireError, match="no NUL"):
        part.text("Name")


@given(texts())
def test_text_round_trips_with_lone_surrogates(text: str) -> None:
    assert decode_utf16(encode_utf16(text)) == text


@given(guids)
def test_guids_round_trip_through_uuid(data: bytes) -> None:
    assert guid_bytes(guid_value(data)) == data


@pytest.mark.requirement("MQ-2.2.18.1.1-01", "CN-2.2.1-01")
def test_a_guid_has_three_little_endian_parts_and_eight_bytes_as_they_are() -> None:
    data = bytes.fromhex("00112233 4455 6677 8899aabbccddeeff")
    assert guid_text(data) == "33221100-5544-7766-8899-AABBCCDDEEFF"
    assert Reader(data).guid("Id") == data


@pytest.mark.parametrize(("size", "pad"), [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (5, 3)])
def test_padding_reaches_the_next_boundary(size: int, pad: int) -> None:
    assert padding(size) == bytes(pad)


@pytest.mark.parametrize(
    ("values", "field"), [((256, 0, 0), "One"), ((0, 1 << 16, 0), "Two"), ((0, 0, -1), "Four")]
)
def test_a_value_that_does_not_fit_is_refused_by_name(values: tuple[int, ...], field: str) -> None:
    with pytest.raises(WireError) as caught:
        LAYOUT.pack(*values)
    assert (caught.value.structure, caught.value.field) == ("Thing", field)
    assert caught.value.offset is None


@pytest.mark.parametrize("size", [0, 15, 17])
def test_bytes_of_the_wrong_length_are_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"Thing.Id: {size} bytes instead of 16"):
        Layout("Thing", "16s", "Id").pack(bytes(size))


def test_the_tracing_reader_draws_the_tree_of_what_was_read() -> None:
    reader = TracingReader(bytes.fromhex("01 0302 07060504 6100 0000 09 aabb"))
    outer = reader.enter("Thing")
    reader.fixed(LAYOUT)
    inner = reader.enter("Inner")
    reader.text("Name")
    reader.part(1, "Part").u8("Count")
    reader.leave(inner)
    reader.take(2, "Blob")
    reader.leave(outer)
    assert reader.root.children == [
        Node(
            "Thing",
            0,
            14,
            is_structure=True,
            children=[
                Node("One", 0, 1, 0x01),
                Node("Two", 1, 2, 0x0203),
                Node("Four", 3, 4, 0x04050607),
                Node(
                    "Inner",
                    7,
                    5,
                    is_structure=True,
                    children=[Node("Name", 7, 4, "a"), Node("Count", 11, 1, 9)],
                ),
                Node("Blob", 12, 2, b"\xaa\xbb"),
            ],
        )
    ]


@given(st.binary(max_size=40))
def test_tracing_changes_nothing_that_is_read(data: bytes) -> None:
    def read_all(reader: Reader) -> object:
        try:
            return [reader.u8("A"), reader.text("B"), reader.guid("C")]
        except WireError as error:
            return str(error)

    assert read_all(Reader(data)) == read_all(TracingReader(data))
