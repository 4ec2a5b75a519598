"""Queue names in packets, MQMQ 2.2.18.1.5 and 2.2.18.1.7."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import queue_name
from falconmq.wire.queue_name import (
    PrivateQueueFormatName,
    QueueName,
    encode_queue_name,
    read_queue_name,
)
from falconmq.wire.reader import Reader
from falconmq.wire.tracing import TracingReader
from tests.strategies.user_message import mutated, private_queue_format_names, queue_names
from tests.strategies.wire import texts
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

GUID = bytes(range(0x10, 0x20))


def read(queue_type: int, data: bytes) -> QueueName:
    reader = Reader(data)
    reader.enter("UserHeader")
    return read_queue_name(reader, queue_type, "AdminQueue")


def direct(text: str, padding: bytes) -> bytes:
    data = text.encode("utf-16-le") + b"\0\0"
    return len(data).to_bytes(2, "little") + data + padding


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NONE", 0),
        ("ADMIN_QUEUE", 1),
        ("PRIVATE_ON_SOURCE", 2),
        ("PRIVATE_ON_DESTINATION", 3),
        ("PRIVATE_ON_ADMIN", 4),
        ("PUBLIC", 5),
        ("PRIVATE", 6),
        ("DIRECT", 7),
    ],
)
def test_types_have_their_numbers(name: str, value: int) -> None:
    assert getattr(queue_name, name) == value


@pytest.mark.parametrize(
    ("queue_type", "data", "name"),
    [
        (0, b"", None),
        (1, b"", None),
        pytest.param(
            2,
            b"\x44\x33\x22\x11",
            0x11223344,
            marks=pytest.mark.requirement("MQ-2.2.18.1.5.1-01", "QB-MQMQ2.2.18.1.5-01"),
        ),
        (3, b"\x44\x33\x22\x11", 0x11223344),
        (4, b"\x44\x33\x22\x11", 0x11223344),
        pytest.param(5, GUID, GUID, marks=pytest.mark.requirement("MQ-2.2.18.1.7.1-01")),
        pytest.param(
            6,
            GUID + b"\x44\x33\x22\x11",
            PrivateQueueFormatName(GUID, 0x11223344),
            marks=pytest.mark.requirement(
                "MQ-2.2.18.1.7.2-01", "MQ-2.2.18.1.7.2-03", "QB-MQMQ2.2.18.1.7-01"
            ),
        ),
        (7, direct("OS:ab", b"\0\0"), "OS:ab"),
    ],
)
@pytest.mark.requirement("MQ-2.2.18.1.5-01", "QB-MQMQ2.2.18.1.7-01")
def test_the_type_decides_the_layout(queue_type: int, data: bytes, name: QueueName) -> None:
    reader = Reader(data + b"next")
    assert read_queue_name(reader, queue_type, "AdminQueue") == name
    assert reader.position == len(data)
    assert encode_queue_name(queue_type, name, "AdminQueue") == data


@pytest.mark.requirement(
    "MQ-2.2.18.1.5.2-01",
    "MQ-2.2.18.1.5.2-02",
    "MQ-2.2.18.1.5.2-05",
    "QB-MQMQ2.2.18.1.5-02",
)
def test_the_direct_name_of_the_example_is_28_bytes() -> None:
    data = bytes.fromhex(
        "1a00 4f0053003a00 6100300034006200 6d00300032005c007100 0000".replace(" ", "")
    )
    assert len(data) == 28
    assert encode_queue_name(7, "OS:a04bm02\\q", "DestinationQueue") == data
    assert read(7, data) == "OS:a04bm02\\q"


@pytest.mark.requirement("MQ-2.2.18.1.5.2-03", "QB-MQMQ2.2.18.1.5-02")
@pytest.mark.parametrize(("text", "padding"), [("", 0), ("a", 2), ("ab", 0), ("abc", 2)])
def test_a_direct_name_is_padded_to_four_with_zeros(text: str, padding: int) -> None:
    data = encode_queue_name(7, text, "DestinationQueue")
    assert data == direct(text, bytes(padding))
    assert len(data) % 4 == 0


@pytest.mark.requirement("MQ-2.2.18.1.5.2-04", "QB-MQMQ2.2.18.1.5-02")
def test_padding_behind_a_direct_name_may_hold_anything() -> None:
    reader = Reader(direct("a", b"\xff\xff") + b"next")
    assert read_queue_name(reader, 7, "DestinationQueue") == "a"
    assert bytes(reader.take(4, "next")) == b"next"


@pytest.mark.requirement("MQ-2.2.18.1.5.2-06")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x05\x00" + b"a\0b\0\0\0", "Count at offset 0: 5"),
        (b"\x00\x00\x00\x00", "Count at offset 0: 0"),
        (b"\x01\x00\x00\x00", "Count at offset 0: 1"),
        (b"\x06\x00" + b"a\0\0\0", "DirectFormatName at offset 2: needs 6 bytes"),
        (b"\xfe\xff" + b"a\0\0\0", "DirectFormatName at offset 2: needs 65534 bytes"),
        (b"\x04\x00" + b"a\0b\0" + b"\0\0", "DirectFormatName at offset 4: no NUL"),
        (b"\x04\x00" + b"a\0\0\xd8" + b"\0\0", "DirectFormatName at offset 4: no NUL"),
    ],
)
def test_a_malformed_direct_name_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read(7, data)


def test_a_nul_inside_a_direct_name_is_kept_but_not_sent() -> None:
    assert read(7, direct("a\0b", b"\0\0")) == "a\0b"
    with pytest.raises(WireError, match="NUL"):
        encode_queue_name(7, "a\0b", "DestinationQueue")


def test_the_longest_direct_name_has_32766_characters() -> None:
    name = "x" * 32766
    assert read(7, encode_queue_name(7, name, "DestinationQueue")) == name
    with pytest.raises(WireError, match="Count"):
        encode_queue_name(7, name + "x", "DestinationQueue")


@pytest.mark.parametrize("queue_type", range(8))
@pytest.mark.parametrize(
    "name", [None, 5, GUID, PrivateQueueFormatName(GUID, 5), "OS:a\\b"], ids=repr
)
def test_a_value_of_another_type_is_not_sent(queue_type: int, name: QueueName) -> None:
    expected = [type(None), type(None), int, int, int, bytes, PrivateQueueFormatName, str]
    if isinstance(name, expected[queue_type]):
        assert read(queue_type, encode_queue_name(queue_type, name, "AdminQueue")) == name
    else:
        with pytest.raises(WireError, match=r"AdminQueue.*no queue name of type"):
            encode_queue_name(queue_type, name, "AdminQueue")


@pytest.mark.parametrize("guid", [b"", GUID[:15], GUID + b"\0"])
def test_a_guid_of_another_size_is_not_sent(guid: bytes) -> None:
    with pytest.raises(WireError, match="PublicQueueFormatName"):
        encode_queue_name(5, guid, "AdminQueue")
    with pytest.raises(WireError, match="SourceQueueManager"):
        PrivateQueueFormatName(guid, 1).encode()


@pytest.mark.parametrize("identifier", [0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_identifiers_use_all_32_bits(identifier: int) -> None:
    data = identifier.to_bytes(4, "little")
    assert read(3, data) == identifier
    assert encode_queue_name(3, identifier, "DestinationQueue") == data
    name = PrivateQueueFormatName(GUID, identifier)
    assert PrivateQueueFormatName.decode(GUID + data) == name
    assert name.encode() == GUID + data


@pytest.mark.parametrize("identifier", [-1, 1 << 32])
def test_an_identifier_of_more_than_32_bits_is_not_sent(identifier: int) -> None:
    with pytest.raises(WireError, match="PrivateQueueIdentifier"):
        encode_queue_name(3, identifier, "DestinationQueue")
    with pytest.raises(WireError, match="PrivateQueueIdentifier"):
        PrivateQueueFormatName(GUID, identifier).encode()


def test_a_trace_names_the_field_and_its_parts() -> None:
    reader = TracingReader(direct("a", b"\0\0") + GUID + b"\x01\0\0\0")
    read_queue_name(reader, 7, "DestinationQueue")
    read_queue_name(reader, 6, "AdminQueue")
    destination, admin = reader.root.children
    assert (destination.name, destination.size) == ("DestinationQueue", 8)
    assert [node.name for node in destination.children] == ["Count", "DirectFormatName", "Padding"]
    assert (admin.name, admin.offset, admin.size) == ("AdminQueue", 8, 20)


@given(st.integers(0, 7).flatmap(lambda kind: st.tuples(st.just(kind), queue_names(kind))))
def test_names_of_every_type_come_back(case: tuple[int, QueueName]) -> None:
    queue_type, name = case
    data = encode_queue_name(queue_type, name, "ResponseQueue")
    assert len(data) % 4 == 0
    assert read(queue_type, data) == name


@given(private_queue_format_names)
def test_round_trip(name: PrivateQueueFormatName) -> None:
    assert len(assert_round_trip(name)) == 20


@given(
    st.integers(0, 7),
    st.binary(max_size=40)
    | mutated(texts().map(lambda name: encode_queue_name(7, name, "AdminQueue"))),
)
def test_any_bytes_decode_or_raise_wire_error(queue_type: int, data: bytes) -> None:
    assert_decodes_or_refuses(lambda data: read(queue_type, data), data)


@pytest.mark.parametrize(
    ("queue_type", "data"),
    [(2, bytes(4)), (5, GUID), (6, GUID + bytes(4)), (7, direct("abc", b"\0\0"))],
)
def test_a_cut_name_is_refused(queue_type: int, data: bytes) -> None:
    assert_every_cut_is_refused(lambda data: read(queue_type, data), data)
