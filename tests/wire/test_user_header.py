"""UserHeader, MQMQ 2.2.19.2."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import user_header
from falconmq.wire.guid import guid_value
from falconmq.wire.queue_name import PrivateQueueFormatName, QueueName
from falconmq.wire.reader import Reader
from falconmq.wire.user_header import UserHeader
from tests.strategies.user_message import mutated, user_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

NULL = bytes(16)
SOURCE = bytes(range(0x10, 0x20))
ADDRESS = bytes(range(0x30, 0x40))
GUID = bytes(range(0x50, 0x60))
MP = 0x00200000
NUMBERS = bytes.fromhex("01020304 05060708 090a0b0c")  # the three fields before Flags
DIRECT = bytes.fromhex("0800 4f0053003a00 0000 0000")  # "OS:" and two bytes of padding
PRIVATE = GUID + b"\x44\x33\x22\x11"
# type: (value, bytes); the sizes of MQMQ guide 5.1
NAMES: dict[int, tuple[QueueName, bytes]] = {
    0: (None, b""),
    1: (None, b""),
    2: (0x11223344, b"\x44\x33\x22\x11"),
    3: (0x11223344, b"\x44\x33\x22\x11"),
    4: (0x11223344, b"\x44\x33\x22\x11"),
    5: (GUID, GUID),
    6: (PrivateQueueFormatName(GUID, 0x11223344), PRIVATE),
    7: ("OS:", DIRECT),
}


def header_bytes(flags: int, names: bytes = b"", address: bytes = NULL) -> bytes:
    return SOURCE + address + NUMBERS + flags.to_bytes(4, "little") + names


def rows(prefix: str, numbers: dict[int, int]) -> list[object]:
    """One case for each type, marked with the catalogue row that describes it."""
    return [
        pytest.param(kind, marks=pytest.mark.requirement(f"{prefix}-{number}"))
        for kind, number in numbers.items()
    ]


@pytest.mark.requirement(
    "MQ-2.2.18-01",
    "MQ-2.2.19.2-01",
    "MQ-2.2.19.2-02",
    "MQ-2.2.19.2-04",
    "MQ-2.2.19.2-07",
    "MQ-2.2.19.2-10",
    "MQ-2.2.19.2-12",
    "MQ-2.2.19.2-14",
    "MQ-2.2.19.2-82",
    "MQ-2.2.19.2-86",
    "QB-MQMQ2.2.19.2-01",
    "QB-MQMQ2.2.19.2-03",
    "QB-MQMQ2.2.19.2-04",
    "QB-MQMQ2.2.19.2-05",
    "QB-MQMQ2.2.19.2-10",
)
def test_every_field_stands_at_its_offset() -> None:
    flags = 0x00600000 | 6 << 16 | 5 << 13 | 3 << 10 | 0x321
    admin, connector = bytes(range(0x60, 0x70)), bytes(range(0x70, 0x80))
    data = header_bytes(flags, b"\x09\0\0\0" + admin + PRIVATE + connector, ADDRESS)
    header = UserHeader.decode(data)
    assert header == UserHeader(
        source_queue_manager=SOURCE,
        queue_manager_address=ADDRESS,
        time_to_be_received=0x04030201,
        sent_time=0x08070605,
        message_id=0x0C0B0A09,
        flags=flags,
        destination_queue=9,
        admin_queue=admin,
        response_queue=PrivateQueueFormatName(GUID, 0x11223344),
        connector_type=connector,
    )
    assert header.encode() == data
    assert len(header_bytes(MP)) == user_header.FIXED_SIZE == 48


@pytest.mark.requirement("MQ-2.2.18.1.1-01")
def test_a_guid_has_three_little_endian_parts_and_eight_bytes_in_order() -> None:
    header = UserHeader.decode(header_bytes(MP))
    expected = UUID("13121110-1514-1716-1819-1a1b1c1d1e1f")
    assert guid_value(header.source_queue_manager) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("HOP_COUNT", 0x0000001F, marks=pytest.mark.requirement("MQ-2.2.19.2-15")),
        pytest.param("DELIVERY_MODE", 0x00000060, marks=pytest.mark.requirement("MQ-2.2.19.2-17")),
        pytest.param("JOURNAL_NEGATIVE", 0x100, marks=pytest.mark.requirement("MQ-2.2.19.2-24")),
        pytest.param("JOURNAL_POSITIVE", 0x200, marks=pytest.mark.requirement("MQ-2.2.19.2-27")),
        pytest.param(
            "DESTINATION_QUEUE_TYPE", 0x1C00, marks=pytest.mark.requirement("MQ-2.2.19.2-29")
        ),
        pytest.param("ADMIN_QUEUE_TYPE", 0xE000, marks=pytest.mark.requirement("MQ-2.2.19.2-37")),
        pytest.param(
            "RESPONSE_QUEUE_TYPE", 0x00070000, marks=pytest.mark.requirement("MQ-2.2.19.2-49")
        ),
        pytest.param(
            "SECURITY_HEADER", 0x00080000, marks=pytest.mark.requirement("MQ-2.2.19.2-61")
        ),
        pytest.param(
            "TRANSACTION_HEADER", 0x00100000, marks=pytest.mark.requirement("MQ-2.2.19.2-63")
        ),
        pytest.param(
            "MESSAGE_PROPERTIES_HEADER",
            0x00200000,
            marks=pytest.mark.requirement("MQ-2.2.19.2-66"),
        ),
        pytest.param("CONNECTOR_TYPE", 0x00400000, marks=pytest.mark.requirement("MQ-2.2.19.2-68")),
        pytest.param(
            "MULTI_QUEUE_FORMAT_HEADER",
            0x00800000,
            marks=pytest.mark.requirement("MQ-2.2.19.2-70"),
        ),
        pytest.param("HTTP", 0x02000000, marks=pytest.mark.requirement("MQ-2.2.19.2-74")),
        pytest.param("SOAP_HEADER", 0x10000000, marks=pytest.mark.requirement("MQ-2.2.19.2-78")),
        ("RESERVED_FLAGS", 0x00000080 | 0x01000000 | 0x0C000000 | 0xE0000000),
        ("EXPRESS", 0),
        ("RECOVERABLE", 1),
        ("HOP_COUNT_MAX", 0x1D),
        ("DELIVERY_MODE_SHIFT", 5),
        ("DESTINATION_QUEUE_TYPE_SHIFT", 10),
        ("ADMIN_QUEUE_TYPE_SHIFT", 13),
        ("RESPONSE_QUEUE_TYPE_SHIFT", 16),
    ],
)
def test_flags_have_their_bits(name: str, value: int) -> None:
    assert getattr(user_header, name) == value


@pytest.mark.requirement("QB-MQMQ2.2.19.2-06")
def test_flags_are_taken_apart() -> None:
    header = UserHeader.decode(header_bytes(0x002D_CC20 | 0x100, b"\x01\0\0\0" + PRIVATE + GUID))
    assert header.destination_queue_type == 3
    assert header.admin_queue_type == 6
    assert header.response_queue_type == 5
    assert header.delivery_mode == user_header.RECOVERABLE
    assert header.flags & user_header.JOURNAL_NEGATIVE
    assert not header.flags & user_header.JOURNAL_POSITIVE
    assert header.flags & user_header.SECURITY_HEADER


@pytest.mark.parametrize("kind", rows("MQ-2.2.19.2", {0: 31, 3: 32, 5: 33, 7: 34}))
@pytest.mark.requirement("MQ-2.2.19.2-30", "QB-MQMQ2.2.19.2-07")
def test_the_destination_has_the_layout_of_its_type(kind: int) -> None:
    name, data = NAMES[kind]
    reader = Reader(header_bytes(MP | kind << 10, data) + b"next")
    header = UserHeader.read(reader)
    assert (header.destination_queue, header.admin_queue, header.response_queue) == (
        name,
        None,
        None,
    )
    assert reader.offset == 48 + len(data)
    assert header.encode() == header_bytes(MP | kind << 10, data)


@pytest.mark.requirement("MQ-2.2.19.2-30", "MQ-2.2.19.2-36", "QB-MQMQ2.2.19.2-07")
@pytest.mark.parametrize("kind", [1, 2, 4, 6])
def test_other_types_of_destination_are_refused(kind: int) -> None:
    name, data = NAMES[kind]
    with pytest.raises(WireError, match=f"Flags at offset 44: DQ {kind}"):
        UserHeader.decode(header_bytes(MP | kind << 10, data))
    with pytest.raises(WireError, match=f"DQ {kind}"):
        UserHeader(SOURCE, NULL, 0, 0, 0, MP | kind << 10, name).encode()


@pytest.mark.parametrize("kind", rows("MQ-2.2.19.2", {0: 39, 2: 40, 3: 41, 5: 42, 6: 43, 7: 44}))
@pytest.mark.requirement("MQ-2.2.19.2-38", "MQ-2.2.19.2-46", "QB-MQMQ2.2.19.2-08")
def test_the_admin_queue_has_the_layout_of_its_type(kind: int) -> None:
    name, data = NAMES[kind]
    reader = Reader(header_bytes(MP | kind << 13, data) + b"next")
    header = UserHeader.read(reader)
    assert (header.destination_queue, header.admin_queue, header.response_queue) == (
        None,
        name,
        None,
    )
    assert reader.offset == 48 + len(data)
    assert header.encode() == header_bytes(MP | kind << 13, data)


@pytest.mark.requirement("MQ-2.2.19.2-38", "MQ-2.2.19.2-45", "QB-MQMQ2.2.19.2-08")
@pytest.mark.parametrize("kind", [1, 4])
def test_other_types_of_admin_queue_are_refused(kind: int) -> None:
    name, data = NAMES[kind]
    with pytest.raises(WireError, match=f"Flags at offset 44: AQ {kind}"):
        UserHeader.decode(header_bytes(MP | kind << 13, data))
    with pytest.raises(WireError, match=f"AQ {kind}"):
        UserHeader(SOURCE, NULL, 0, 0, 0, MP | kind << 13, admin_queue=name).encode()


@pytest.mark.parametrize(
    "kind",
    rows("MQ-2.2.19.2", {0: 51, 1: 52, 2: 53, 3: 54, 4: 55, 5: 57, 6: 58, 7: 59}),
)
@pytest.mark.requirement("MQ-2.2.19.2-50", "MQ-2.2.19.2-60", "QB-MQMQ2.2.19.2-09")
def test_the_response_queue_has_the_layout_of_its_type(kind: int) -> None:
    name, data = NAMES[kind]
    reader = Reader(header_bytes(MP | kind << 16, data) + b"next")
    header = UserHeader.read(reader)
    assert (header.destination_queue, header.admin_queue, header.response_queue) == (
        None,
        None,
        name,
    )
    assert reader.offset == 48 + len(data)
    assert header.encode() == header_bytes(MP | kind << 16, data)


@pytest.mark.requirement("MQ-2.2.19.2-52", "QB-MQMQ2.2.19.2-09")
def test_a_response_queue_of_type_1_is_the_admin_queue() -> None:
    header = UserHeader.decode(header_bytes(MP | 1 << 16 | 7 << 13, DIRECT))
    assert header.response_queue is None
    assert header.resolved_response_queue() == (7, "OS:")
    other = UserHeader.decode(header_bytes(MP | 4 << 16 | 7 << 13, DIRECT + b"\x05\0\0\0"))
    assert other.resolved_response_queue() == (4, 5)


@pytest.mark.requirement("MQ-2.2.19.2-46", "MQ-2.2.19.2-60")
@pytest.mark.parametrize("field", ["destination_queue", "admin_queue", "response_queue"])
def test_a_name_that_no_type_announces_is_not_sent(field: str) -> None:
    header = UserHeader(SOURCE, NULL, 0, 0, 0, 0)
    setattr(header, field, 5)
    with pytest.raises(WireError, match="no queue name of type 0"):
        header.encode()


@pytest.mark.parametrize(("field", "shift"), [("destination", 10), ("admin", 13), ("response", 16)])
def test_a_type_without_its_name_is_not_sent(field: str, shift: int) -> None:
    with pytest.raises(WireError, match=f"{field.title()}Queue: None is no queue name of type 5"):
        UserHeader(SOURCE, ADDRESS, 0, 0, 0, 5 << shift).encode()


@pytest.mark.requirement("MQ-2.2.19.2-69", "QB-MQMQ2.2.19.2-10")
def test_cq_is_set_if_and_only_if_there_is_a_connector_type() -> None:
    without = UserHeader(SOURCE, NULL, 0, 0, 0, 0x00400000)
    assert without.encode()[44:] == b"\x00\x00\x20\x00"
    with_type = UserHeader(SOURCE, NULL, 0, 0, 0, 0, connector_type=GUID)
    assert with_type.encode()[44:] == b"\x00\x00\x60\x00" + GUID
    assert (without.flags, with_type.flags) == (0x00400000, 0), "encode must not change a header"


@pytest.mark.requirement("MQ-2.2.19.2-67")
def test_mp_is_always_sent_and_always_expected() -> None:
    assert UserHeader(SOURCE, NULL, 0, 0, 0, 0).encode()[44:] == b"\x00\x00\x20\x00"
    with pytest.raises(WireError, match="Flags at offset 44: MP is 0"):
        UserHeader.decode(header_bytes(0))


@pytest.mark.requirement("MQ-2.2.19.2-16")
def test_29_hops_are_the_most_that_are_sent() -> None:
    assert UserHeader.decode(header_bytes(MP | 0x1D)).encode() == header_bytes(MP | 0x1D)
    for hops in (0x1E, 0x1F):
        assert UserHeader.decode(header_bytes(MP | hops)).flags & 0x1F == hops, "a nack's business"
        with pytest.raises(WireError, match=f"RC {hops} is over 29"):
            UserHeader(SOURCE, NULL, 0, 0, 0, hops).encode()


@pytest.mark.requirement("MQ-2.2.19.2-18")
def test_only_two_delivery_modes_are_sent_but_any_is_read() -> None:
    for mode in (0, 1):
        assert UserHeader(SOURCE, NULL, 0, 0, 0, mode << 5).encode()[44] == mode << 5
    for mode in (2, 3):
        assert UserHeader.decode(header_bytes(MP | mode << 5)).delivery_mode == mode
        with pytest.raises(WireError, match="DM is not 0 or 1"):
            UserHeader(SOURCE, NULL, 0, 0, 0, mode << 5).encode()


@pytest.mark.requirement("MQ-2.2.19.2-75", "QB-MQMQ2.2.19.2-11")
def test_ah_is_read_but_never_sent() -> None:
    header = UserHeader.decode(header_bytes(MP | 0x02000000))
    assert header.flags & user_header.HTTP
    with pytest.raises(WireError, match="AH is never sent"):
        header.encode()


@pytest.mark.requirement("MQ-2.2.19.2-06", "QB-MQMQ2.2.19.2-02")
def test_a_direct_destination_goes_with_the_null_address() -> None:
    header = UserHeader(SOURCE, NULL, 0, 0, 0, 7 << 10, "OS:")
    assert header.encode()[16:32] == NULL
    header.queue_manager_address = ADDRESS
    with pytest.raises(WireError, match="QueueManagerAddress"):
        header.encode()
    # a receiver takes it: what it does with such an address is its own affair
    received = UserHeader.decode(header_bytes(MP | 7 << 10, DIRECT, ADDRESS))
    assert received.queue_manager_address == ADDRESS


@pytest.mark.parametrize(
    "bits",
    [
        pytest.param(0x00000080, marks=pytest.mark.requirement("MQ-2.2.19.2-23")),
        pytest.param(0x01000000, marks=pytest.mark.requirement("MQ-2.2.19.2-73")),
        pytest.param(0x04000000, marks=pytest.mark.requirement("MQ-2.2.19.2-77")),
        pytest.param(0x08000000, marks=pytest.mark.requirement("MQ-2.2.19.2-77")),
        pytest.param(0x20000000, marks=pytest.mark.requirement("MQ-2.2.19.2-81")),
        pytest.param(0x40000000, marks=pytest.mark.requirement("MQ-2.2.19.2-81")),
        pytest.param(0x80000000, marks=pytest.mark.requirement("MQ-2.2.19.2-81")),
    ],
)
@pytest.mark.requirement("QB-MQMQ2.2.19.2-11")
def test_reserved_bits_are_kept_and_change_nothing(bits: int) -> None:
    flags = MP | 7 << 10 | 2 << 13
    plain = UserHeader.decode(header_bytes(flags, DIRECT + b"\x02\0\0\0"))
    data = header_bytes(flags | bits, DIRECT + b"\x02\0\0\0")
    header = UserHeader.decode(data)
    assert header.encode() == data
    header.flags &= ~bits
    assert header == plain


@pytest.mark.requirement("MQ-2.2.19.2-07")
def test_every_field_holds_its_greatest_and_its_smallest_value() -> None:
    flags = (0xEDFFFFBD | 0x10000000).to_bytes(4, "little")  # no AH, DM 1, RC 29, all types 7
    names = DIRECT * 3 + b"\xff" * 16
    data = b"\xff" * 16 + NULL + b"\xff" * 12 + flags + names
    header = UserHeader.decode(data)
    numbers = (header.time_to_be_received, header.sent_time, header.message_id)
    assert numbers == (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    assert header.flags == 0xFDFFFFBD
    assert header.encode() == data
    smallest = bytes(44) + b"\0\0\x20\0"
    assert UserHeader.decode(smallest) == UserHeader(NULL, NULL, 0, 0, 0, MP)
    assert UserHeader(NULL, NULL, 0, 0, 0, 0).encode() == smallest


@given(user_headers())
def test_round_trip(header: UserHeader) -> None:
    assert len(assert_round_trip(header)) % 4 == 0


@given(st.binary(max_size=80) | mutated(user_headers().map(UserHeader.encode)))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(UserHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    flags = 0x00600000 | 6 << 16 | 5 << 13 | 7 << 10
    assert_every_cut_is_refused(
        UserHeader.decode, header_bytes(flags, DIRECT + GUID + PRIVATE + GUID)
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("source_queue_manager", bytes(15)),
        ("queue_manager_address", bytes(17)),
        ("time_to_be_received", 1 << 32),
        ("sent_time", -1),
        ("message_id", 1 << 32),
        ("flags", 1 << 32),
        ("connector_type", bytes(15)),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: object) -> None:
    header = UserHeader(SOURCE, ADDRESS, 1, 2, 3, 0)
    setattr(header, field, value)
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field.lower() == field.replace("_", "")
    assert caught.value.offset is None
