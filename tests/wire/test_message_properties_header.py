"""MessagePropertiesHeader, MQMQ 2.2.19.3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, WireError
from falconmq.wire import message_properties_header as properties
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.reader import Reader
from falconmq.wire.tx_sequence_id import message_identifier
from tests.strategies.user_message import message_properties_headers, mutated
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

CORRELATION = bytes(range(0x20, 0x34))
BYTES = (
    bytes.fromhex("05 03 0380")
    + CORRELATION
    + bytes.fromhex("01020304 05060708 05000000 09000000 03000000 0a0b0c0d 02660000 03000000")
    + bytes.fromhex("680069000000")
    + b"ext"
    + b"body!"
    + b"\0\0"
)


@pytest.mark.requirement(
    "MQ-2.2.19.3-01",
    "MQ-2.2.19.3-02",
    "MQ-2.2.19.3-09",
    "MQ-2.2.19.3-10",
    "MQ-2.2.19.3-13",
    "MQ-2.2.19.3-15",
    "MQ-2.2.19.3-18",
    "MQ-2.2.19.3-21",
    "MQ-2.2.19.3-23",
    "MQ-2.2.19.3-24",
    "MQ-2.2.19.3-25",
    "MQ-2.2.19.3-27",
    "MQ-2.2.19.3-31",
    "MQ-2.2.19.3-37",
    "MQ-2.2.19.3-45",
    "MQ-2.2.19.3-46",
    "MQ-2.2.19.3-47",
    "MQ-2.2.19.3-49",
    "MQ-2.2.19.3-50",
    "MQ-2.2.19.3-52",
    "MQ-2.2.19.3-54",
    "QB-MQMQ2.2.19.3-03",
    "QB-MQMQ2.2.19.3-05",
    "QB-MQMQ2.2.19.3-06",
    "QB-MQMQ2.2.19.3-07",
    "QB-MQMQ2.2.19.3-12",
)
def test_every_field_stands_at_its_offset() -> None:
    header = MessagePropertiesHeader.decode(BYTES)
    assert header == MessagePropertiesHeader(
        flags=5,
        message_class=0x8003,
        correlation_id=CORRELATION,
        body_type=0x04030201,
        application_tag=0x08070605,
        privacy_level=3,
        hash_algorithm=0x0D0C0B0A,
        encryption_algorithm=0x6602,
        label="hi",
        extension_data=b"ext",
        message_body=b"body!",
        allocation_body_size=9,
    )
    assert header.encode() == BYTES
    assert BYTES.index(b"h\0") == properties.FIXED_SIZE == 56


@pytest.mark.requirement("MQ-2.2.19.3-15", "QB-MQMQ2.2.19.3-04")
def test_a_correlation_id_holds_a_message_identifier() -> None:
    identifier = message_identifier(CORRELATION[:16], 0x04030201)
    data = MessagePropertiesHeader(message_class=2, correlation_id=identifier).encode()
    assert data[4:24] == CORRELATION[:16] + b"\x01\x02\x03\x04"
    assert MessagePropertiesHeader.decode(data).correlation_id == identifier


@pytest.mark.requirement("MQ-2.2.19.3-51", "MQ-2.2.19.3-53", "MQ-2.2.19.3-11")
def test_an_empty_message_is_56_bytes() -> None:
    data = assert_round_trip(MessagePropertiesHeader(allocation_body_size=0))
    assert len(data) == 56
    assert data == MessagePropertiesHeader().encode()
    assert data[:44] == bytes(44)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POSITIVE_ARRIVAL", 0x01),
        ("POSITIVE_RECEIVE", 0x02),
        ("NEGATIVE_ARRIVAL", 0x04),
        ("NEGATIVE_RECEIVE", 0x08),
        ("RESERVED_FLAGS", 0xF0),
    ],
)
@pytest.mark.requirement("QB-MQMQ2.2.19.3-01")
def test_flags_have_their_bits(name: str, value: int) -> None:
    assert getattr(properties, name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HASH_MD2", 0x8001),
        ("HASH_MD4", 0x8002),
        ("HASH_MD5", 0x8003),
        ("HASH_SHA1", 0x8004),
        ("HASH_SHA256", 0x800C),
        ("HASH_SHA512", 0x800E),
    ],
)
@pytest.mark.requirement("MQ-2.2.19.3-32", "QB-MQMQ2.2.19.3-10")
def test_hash_algorithms_have_their_numbers(name: str, value: int) -> None:
    assert getattr(properties, name) == value


@pytest.mark.requirement("QB-MQMQ2.2.19.3-10")
def test_the_hash_is_sha_512_unless_said_otherwise() -> None:
    assert MessagePropertiesHeader().encode()[44:48] == b"\x0e\x80\0\0"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENCRYPTION_RC2", 0x6602),
        ("ENCRYPTION_RC4", 0x6801),
        ("ENCRYPTION_AES128", 0x660E),
        ("ENCRYPTION_AES192", 0x660F),
        ("ENCRYPTION_AES256", 0x6610),
        ("PRIVACY_NONE", 0),
        ("PRIVACY_BASE", 1),
        ("PRIVACY_ENHANCED", 3),
        ("PRIVACY_ADVANCED", 5),
    ],
)
def test_encryption_algorithms_and_levels_have_their_numbers(name: str, value: int) -> None:
    assert getattr(properties, name) == value


@pytest.mark.requirement("MQ-2.2.19.3-28")
@pytest.mark.parametrize("level", [2, 4, 6, 0xFFFFFFFF])
def test_other_privacy_levels_are_read_but_not_sent(level: int) -> None:
    data = BYTES[:40] + level.to_bytes(4, "little") + BYTES[44:]
    header = MessagePropertiesHeader.decode(data)
    assert header.privacy_level == level
    with pytest.raises(WireError, match=f"PrivacyLevel: {level} is not"):
        header.encode()


WEAK, AES = {0x6602, 0x6801}, {0x660E, 0x660F, 0x6610}


@pytest.mark.parametrize(
    ("level", "algorithms"),
    [
        pytest.param(0, WEAK | AES, marks=pytest.mark.requirement("MQ-2.2.19.3-38")),
        pytest.param(1, WEAK, marks=pytest.mark.requirement("MQ-2.2.19.3-40")),
        pytest.param(3, WEAK, marks=pytest.mark.requirement("MQ-2.2.19.3-41")),
        pytest.param(5, AES, marks=pytest.mark.requirement("MQ-2.2.19.3-42")),
    ],
)
@pytest.mark.requirement("MQ-2.2.19.3-28")
def test_a_privacy_level_goes_with_its_algorithms_alone(level: int, algorithms: set[int]) -> None:
    for algorithm in WEAK | AES | {0, 0x6601, 0x6603, 0x6800, 0xFFFFFFFF}:
        header = MessagePropertiesHeader(privacy_level=level, encryption_algorithm=algorithm)
        if algorithm in algorithms:
            data = header.encode()
            assert data[40:44] == level.to_bytes(4, "little")
            assert data[48:52] == algorithm.to_bytes(4, "little")
        else:
            with pytest.raises(WireError, match="EncryptionAlgorithm"):
                header.encode()


def test_any_algorithm_is_read() -> None:
    data = BYTES[:44] + b"\xff" * 8 + BYTES[52:]
    header = MessagePropertiesHeader.decode(data)
    assert (header.hash_algorithm, header.encryption_algorithm) == (0xFFFFFFFF, 0xFFFFFFFF)


@pytest.mark.requirement("MQ-2.2.19.3-07")
def test_reserved_bits_are_zero_unless_they_came_from_a_peer() -> None:
    assert MessagePropertiesHeader(flags=0x0F).encode()[0] == 0x0F


@pytest.mark.requirement("MQ-2.2.19.3-08")
@pytest.mark.parametrize("bit", range(4, 8))
def test_reserved_bits_are_kept_and_change_nothing(bit: int) -> None:
    data = bytes([5 | 1 << bit]) + BYTES[1:]
    header = MessagePropertiesHeader.decode(data)
    assert header.encode() == data
    header.flags = 5
    assert header == MessagePropertiesHeader.decode(BYTES)


@pytest.mark.requirement(
    "MQ-2.2.19.3-09",
    "MQ-2.2.19.3-10",
    "MQ-2.2.19.3-11",
    "MQ-2.2.19.3-48",
    "QB-MQMQ2.2.19.3-02",
)
@pytest.mark.parametrize(("characters", "length"), [(0, 0), (1, 2), (2, 3), (249, 250)])
def test_label_length_counts_the_nul(characters: int, length: int) -> None:
    header = MessagePropertiesHeader(
        label="x" * characters, message_body=b"B", allocation_body_size=1
    )
    data = assert_round_trip(header)
    assert data[1] == length
    assert data[56 + 2 * length] == ord("B")
    assert data[56 : 56 + 2 * length] == (b"x\0" * characters + b"\0\0")[: 2 * length]


@pytest.mark.requirement("MQ-2.2.19.3-48")
def test_a_label_of_250_characters_is_too_long() -> None:
    with pytest.raises(WireError, match="LabelLength: 250 characters") as caught:
        MessagePropertiesHeader(label="x" * 250).encode()
    assert caught.value.status is MqStatus.LABEL_TOO_LONG
    assert int(caught.value.status) == 0xC00E005D
    # characters beyond 16 bits count twice
    with pytest.raises(WireError, match="LabelLength: 250 characters"):
        MessagePropertiesHeader(label="\U0001f985" * 125).encode()


@pytest.mark.requirement("MQ-2.2.19.3-09", "MQ-2.2.19.3-12", "QB-MQMQ2.2.19.3-02")
@pytest.mark.parametrize("length", range(0xFB, 0x100))
def test_a_label_length_over_250_is_malformed(length: int) -> None:
    data = BYTES[:1] + bytes([length]) + BYTES[2:56] + bytes(600)
    with pytest.raises(WireError, match=f"LabelLength at offset 1: {length} is over 250"):
        MessagePropertiesHeader.decode(data)


def test_the_longest_label_is_read() -> None:
    data = BYTES[:1] + b"\xfa" + BYTES[2:56] + b"x\0" * 249 + b"\0\0" + bytes(8)
    assert MessagePropertiesHeader.decode(data).label == "x" * 249


def test_a_label_without_its_nul_is_malformed() -> None:
    data = BYTES[:60] + b"!\0" + BYTES[62:]
    with pytest.raises(WireError, match="Label at offset 60: no NUL"):
        MessagePropertiesHeader.decode(data)


def test_a_nul_inside_a_label_is_kept_but_not_sent() -> None:
    header = MessagePropertiesHeader.decode(BYTES[:56] + b"\0\0" + BYTES[58:])
    assert header.label == "\0i"
    with pytest.raises(WireError, match="NUL"):
        header.encode()


def test_a_label_of_just_its_nul_is_no_label() -> None:
    data = BYTES[:1] + b"\x01" + BYTES[2:56] + b"\0\0" + b"ext" + b"body!" + b"\0\0"
    header = MessagePropertiesHeader.decode(data)
    assert (header.label, bytes(header.message_body)) == ("", b"body!")
    assert header.encode()[1] == 0


@pytest.mark.requirement("MQ-2.2.18.1.6-22", "MQ-2.2.19.3-14", "QB-MQMQ2.2.18.1.6-03")
@pytest.mark.parametrize("bit", [0x0200, 0x0400, 0x0800, 0x1000])
def test_a_class_outside_the_mask_is_read_but_not_sent(bit: int) -> None:
    data = BYTES[:2] + (0x2003 | bit).to_bytes(2, "little") + BYTES[4:]
    header = MessagePropertiesHeader.decode(data)
    assert header.message_class == 0x2003 | bit
    with pytest.raises(WireError, match="MessageClass"):
        header.encode()


@pytest.mark.requirement("MQ-2.2.19.3-14")
@pytest.mark.parametrize("message_class", [0x0000, 0x00FF, 0x4000, 0x8009, 0xC004, 0x2003, 0xE1FF])
def test_predefined_and_custom_classes_are_sent(message_class: int) -> None:
    data = MessagePropertiesHeader(message_class=message_class).encode()
    assert data[2:4] == message_class.to_bytes(2, "little")
    assert MessagePropertiesHeader.decode(data).message_class == message_class


@pytest.mark.requirement("MQ-2.2.19.3-20")
@pytest.mark.parametrize("body_type", [8, 30, 0x2011, 0xFFFFFFFF])
def test_any_body_type_is_carried(body_type: int) -> None:
    data = BYTES[:24] + body_type.to_bytes(4, "little") + BYTES[28:]
    header = MessagePropertiesHeader.decode(data)
    assert header.body_type == body_type
    assert header.encode() == data


@pytest.mark.requirement("MQ-2.2.19.3-26", "QB-MQMQ2.2.19.3-08")
def test_the_room_for_the_body_is_its_size_or_more() -> None:
    header = MessagePropertiesHeader(message_body=b"12345")
    assert header.encode()[32:40] == b"\x05\0\0\0\x05\0\0\0"
    for size in (5, 6, 0x00400000):
        header.allocation_body_size = size
        assert header.encode()[32:40] == b"\x05\0\0\0" + size.to_bytes(4, "little")
    for size in (4, 0, -1, 0x00400001):
        header.allocation_body_size = size
        with pytest.raises(WireError, match="AllocationBodySize"):
            header.encode()


@pytest.mark.parametrize("size", [0, 4, 0xFFFFFFFF])
def test_any_room_for_the_body_is_read_and_kept(size: int) -> None:
    data = BYTES[:36] + size.to_bytes(4, "little") + BYTES[40:]
    assert MessagePropertiesHeader.decode(data).allocation_body_size == size


@pytest.mark.requirement(
    "MQ-2.2.19.3-24",
    "MQ-2.2.19.3-46",
    "MQ-2.2.19.3-49",
    "MQ-2.2.19.3-54",
    "QB-MQMQ2.2.19.3-12",
)
@pytest.mark.parametrize("extension_size", range(6))
@pytest.mark.parametrize("body_size", range(6))
def test_nothing_stands_between_extension_and_body(extension_size: int, body_size: int) -> None:
    header = MessagePropertiesHeader(
        extension_data=b"E" * extension_size,
        message_body=b"B" * body_size,
        allocation_body_size=body_size,
    )
    data = assert_round_trip(header)
    assert data[32] == body_size
    assert data[52] == extension_size
    assert data[56:].rstrip(b"\0") == b"E" * extension_size + b"B" * body_size
    assert len(data) == 56 + (extension_size + body_size + 3) // 4 * 4


@pytest.mark.requirement("MQ-2.2.19.3-55")
def test_padding_may_hold_anything() -> None:
    reader = Reader(BYTES[:-2] + b"\xff\xff" + b"next")
    assert MessagePropertiesHeader.read(reader) == MessagePropertiesHeader.decode(BYTES)
    assert bytes(reader.take(4, "next")) == b"next"


@pytest.mark.requirement("MQ-2.2.19.3-56")
@pytest.mark.parametrize(
    ("extension_size", "message_size", "field"),
    [
        (0xFFFFFFFF, 0xFFFFFFFF, "ExtensionData"),
        (0xFFFFFFFF, 1, "ExtensionData"),
        (0, 0xFFFFFFFF, "MessageBody"),
        (4, 0xFFFFFFFC, "MessageBody"),  # together 2 ** 32
        (3, 9, "MessageBody"),
        (11, 0, "ExtensionData"),
    ],
)
def test_sizes_past_the_end_are_refused_without_wrapping(
    extension_size: int, message_size: int, field: str
) -> None:
    data = bytearray(BYTES)
    data[32:36] = message_size.to_bytes(4, "little")
    data[52:56] = extension_size.to_bytes(4, "little")
    with pytest.raises(WireError, match=rf"\.{field} at offset \d+: needs \d+ bytes"):
        MessagePropertiesHeader.decode(data)


def test_body_and_extension_are_cut_out_without_copying() -> None:
    header = MessagePropertiesHeader.decode(BYTES)
    assert isinstance(header.message_body, memoryview)
    assert isinstance(header.extension_data, memoryview)
    assert header.message_body.obj is BYTES
    assert header.extension_data.obj is BYTES


def test_every_field_holds_its_greatest_value() -> None:
    header = MessagePropertiesHeader(
        flags=0xFF,
        message_class=0xE1FF,
        correlation_id=b"\xff" * 20,
        body_type=0xFFFFFFFF,
        application_tag=0xFFFFFFFF,
        hash_algorithm=0xFFFFFFFF,
        allocation_body_size=0x00400000,
    )
    data = assert_round_trip(header)
    assert data == (
        b"\xff\x00\xff\xe1"
        + b"\xff" * 28
        + bytes.fromhex("00000000 00004000 00000000 ffffffff 01680000 00000000")
    )


@given(message_properties_headers())
def test_round_trip(header: MessagePropertiesHeader) -> None:
    assert len(assert_round_trip(header)) % 4 == 0


@given(
    st.binary(max_size=80)
    | mutated(message_properties_headers().map(MessagePropertiesHeader.encode))
)
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(MessagePropertiesHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(MessagePropertiesHeader.decode, BYTES)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("flags", 0x100),
        ("message_class", -1),
        ("correlation_id", bytes(19)),
        ("correlation_id", bytes(21)),
        ("body_type", 1 << 32),
        ("application_tag", -1),
        ("hash_algorithm", 1 << 32),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: object) -> None:
    header = MessagePropertiesHeader()
    setattr(header, field, value)
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field.lower() == field.replace("_", "")
