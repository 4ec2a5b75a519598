"""SecurityHeader, MQMQ 2.2.20.6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import security_header
from falconmq.wire.reader import Reader
from falconmq.wire.security_header import ProviderInfo, SecurityHeader
from tests.strategies.user_message import mutated, provider_infos, security_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# S-1-5-21-3181267629-1039849782-3663111779-1000 of the MQQB example
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")
GUID = bytes(range(0x50, 0x60))
# sizes 5, 7, 9, 11, 13 and padding of 3, 1, 3, 1, 3
ALL_ITEMS = (
    bytes.fromhex("0100 0500 0700 0900 0b000000 0d000000")
    + b"ident\0\0\0"
    + b"the-key\0"
    + b"signature\0\0\0"
    + b"certificate\0"
    + b"\x18\0\0\0c\0s\0p\0\0\0!\0\0\0"
)


@pytest.mark.requirement(
    "MQ-2.2.20.6-01",
    "MQ-2.2.20.6-02",
    "MQ-2.2.20.6-22",
    "MQ-2.2.20.6-23",
    "MQ-2.2.20.6-24",
    "MQ-2.2.20.6-25",
    "MQ-2.2.20.6-26",
    "MQ-2.2.20.6-27",
    "MQ-2.2.20.6-28",
    "MQ-2.2.20.6-29",
    "MQ-2.2.20.6-30",
    "MQ-2.2.20.6-31",
    "MQ-2.2.20.6-33",
    "MQ-2.2.20.6-34",
    "MQ-2.2.20.6-36",
    "MQ-2.2.20.6-52",
    "MQ-2.2.20.6-53",
    "QB-MQMQ2.2.20.6-01",
    "QB-MQMQ2.2.20.6-02",
    "QB-MQMQ2.2.20.6-05",
)
def test_every_field_stands_at_its_offset_and_every_item_on_a_boundary() -> None:
    header = SecurityHeader.decode(ALL_ITEMS)
    assert header == SecurityHeader(
        flags=1,
        security_id=b"ident",
        encryption_key=b"the-key",
        signature=b"signature",
        sender_cert=b"certificate",
        provider_info=ProviderInfo(0x18, "csp", extra=b"!"),
    )
    assert header.encode() == ALL_ITEMS


@pytest.mark.requirement("MQ-2.2.20.6-35", "QB-MQMQ2.2.20.6-05")
@pytest.mark.parametrize(
    ("header", "sizes", "length"),
    [
        (SecurityHeader(1, SID), (28, 0, 0, 0, 0), 44),
        (SecurityHeader(2, GUID), (16, 0, 0, 0, 0), 32),
        (SecurityHeader(0, encryption_key=b"key"), (0, 3, 0, 0, 0), 20),
        (SecurityHeader(0x40, signature=b"s"), (0, 0, 1, 0, 0), 20),
        (SecurityHeader(0, sender_cert=b"certs"), (0, 0, 0, 5, 0), 24),
        (SecurityHeader(0, provider_info=ProviderInfo(1, "a")), (0, 0, 0, 0, 8), 24),
    ],
)
def test_items_of_size_zero_take_no_room(
    header: SecurityHeader, sizes: tuple[int, ...], length: int
) -> None:
    data = assert_round_trip(header)
    assert len(data) == length
    wire = [(2, 2), (4, 2), (6, 2), (8, 4), (12, 4)]
    assert tuple(int.from_bytes(data[at : at + size], "little") for at, size in wire) == sizes


@pytest.mark.requirement("MQ-2.2.20.6-17")
@pytest.mark.parametrize("announced", [0x00, 0x80])
def test_the_sizes_say_what_is_there_whatever_ai_says(announced: int) -> None:
    data = bytes([1 | announced, 0]) + bytes.fromhex("1c00 0000 0000 00000000 00000000") + SID
    reader = Reader(data + b"next")
    header = SecurityHeader.read(reader)
    assert header.security_id == SID
    assert reader.offset == 44
    assert header.encode() == data


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("SENDER_ID_TYPE", 0x000F, marks=pytest.mark.requirement("MQ-2.2.20.6-03")),
        pytest.param("AUTHENTICATED", 0x0010, marks=pytest.mark.requirement("MQ-2.2.20.6-08")),
        pytest.param("ENCRYPTED_BODY", 0x0020, marks=pytest.mark.requirement("MQ-2.2.20.6-10")),
        pytest.param("DEFAULT_PROVIDER", 0x0040, marks=pytest.mark.requirement("MQ-2.2.20.6-12")),
        pytest.param("SECURITY_DATA", 0x0080, marks=pytest.mark.requirement("MQ-2.2.20.6-15")),
        pytest.param(
            "AUTHENTICATION_SIGNATURE", 0x0F00, marks=pytest.mark.requirement("MQ-2.2.20.6-18")
        ),
        ("AUTHENTICATION_SIGNATURE_SHIFT", 8),
        ("RESERVED_FLAGS", 0xF000),
        ("SENDER_ID_NONE", 0),
        ("SENDER_ID_SID", 1),
        ("SENDER_ID_QUEUE_MANAGER", 2),
        ("SENDER_CERT_SIZE_MAX", 0xFFFF),
    ],
)
@pytest.mark.requirement("QB-MQMQ2.2.20.6-04")
def test_flags_have_their_bits(name: str, value: int) -> None:
    assert getattr(security_header, name) == value


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(0x0010, marks=pytest.mark.requirement("MQ-2.2.20.6-09")),
        pytest.param(0x0100, marks=pytest.mark.requirement("MQ-2.2.20.6-19")),
        pytest.param(0x0300, marks=pytest.mark.requirement("MQ-2.2.20.6-19")),
        pytest.param(0x0500, marks=pytest.mark.requirement("MQ-2.2.20.6-19")),
        pytest.param(0x0800, marks=pytest.mark.requirement("MQ-2.2.20.6-19")),
    ],
)
def test_the_notes_of_a_receiver_are_not_sent(flags: int) -> None:
    with pytest.raises(WireError, match="AU and AS"):
        SecurityHeader(flags | 1, SID).encode()


@pytest.mark.requirement("MQ-2.2.20.6-04")
@pytest.mark.parametrize("sender_id_type", range(3, 16))
def test_other_types_of_sender_are_read_but_not_sent(sender_id_type: int) -> None:
    data = bytearray(SecurityHeader(1, SID).encode())
    data[0] = sender_id_type
    header = SecurityHeader.decode(data)
    assert header.security_id == SID
    with pytest.raises(WireError, match=f"ST {sender_id_type} is not"):
        header.encode()


@pytest.mark.parametrize(
    ("sender_id_type", "security_id"),
    [
        pytest.param(0, b"x", marks=pytest.mark.requirement("MQ-2.2.20.6-05")),
        (1, b""),
        pytest.param(2, b"", marks=pytest.mark.requirement("MQ-2.2.20.6-07")),
        pytest.param(2, GUID[:15], marks=pytest.mark.requirement("MQ-2.2.20.6-07")),
        pytest.param(2, SID, marks=pytest.mark.requirement("MQ-2.2.20.6-07")),
    ],
)
def test_a_sender_id_that_is_not_of_its_type_is_not_sent(
    sender_id_type: int, security_id: bytes
) -> None:
    with pytest.raises(WireError, match=r"SenderIdSize|SecurityID"):
        SecurityHeader(sender_id_type, security_id, sender_cert=b"certificate").encode()


@pytest.mark.requirement("MQ-2.2.20.6-16", "MQ-2.2.20.6-32", "QB-MQMQ2.2.20.6-03")
@pytest.mark.parametrize("flags", [0x00, 0x80])
def test_a_header_without_data_is_read_but_not_sent(flags: int) -> None:
    header = SecurityHeader.decode(bytes([flags]) + bytes(15))
    assert header == SecurityHeader(flags)
    with pytest.raises(WireError, match="without any data"):
        header.encode()


@pytest.mark.requirement("MQ-2.2.20.6-28", "QB-MQMQ2.2.20.6-03")
def test_a_certificate_has_at_most_65535_bytes() -> None:
    largest = SecurityHeader(0, sender_cert=bytes(0xFFFF))
    assert_round_trip(largest)
    with pytest.raises(WireError, match="SenderCertSize: 65536 is over 65535"):
        SecurityHeader(0, sender_cert=bytes(0x10000)).encode()
    with pytest.raises(WireError, match="SenderCertSize at offset 8: 65536 is over"):
        SecurityHeader.decode(bytes(8) + b"\x00\x00\x01\x00" + bytes(4) + bytes(0x10000))


@pytest.mark.requirement("MQ-2.2.20.6-13")
def test_a_signature_of_another_provider_names_it() -> None:
    signed = SecurityHeader(0, signature=b"signature")
    with pytest.raises(WireError, match="provider's name"):
        signed.encode()
    signed.provider_info = ProviderInfo(1, "csp")
    assert_round_trip(signed)
    assert_round_trip(SecurityHeader(0x40, signature=b"signature"))


@pytest.mark.requirement("MQ-2.2.20.6-51")
def test_the_default_provider_is_not_named() -> None:
    with pytest.raises(WireError, match="DE says"):
        SecurityHeader(0x41, SID, provider_info=ProviderInfo(1, "csp")).encode()


@pytest.mark.requirement("MQ-2.2.20.6-20")
def test_reserved_bits_are_zero_unless_they_came_from_a_peer() -> None:
    assert SecurityHeader(1, SID).encode()[:2] == b"\x01\x00"


@pytest.mark.requirement("MQ-2.2.20.6-21")
@pytest.mark.parametrize("bit", range(12, 16))
def test_reserved_bits_are_kept_and_change_nothing(bit: int) -> None:
    data = (1 | 1 << bit).to_bytes(2, "little") + ALL_ITEMS[2:]
    header = SecurityHeader.decode(data)
    assert header.encode() == data
    header.flags &= ~(1 << bit)
    assert header == SecurityHeader.decode(ALL_ITEMS)


@pytest.mark.requirement("MQ-2.2.20.6-34")
def test_padding_may_hold_anything() -> None:
    data = bytearray(ALL_ITEMS)
    for start, end in ((21, 24), (31, 32), (41, 44), (55, 56), (69, 72)):
        data[start:end] = b"\xff" * (end - start)
    assert SecurityHeader.decode(data) == SecurityHeader.decode(ALL_ITEMS)


def test_parts_are_cut_out_without_copying() -> None:
    header = SecurityHeader.decode(ALL_ITEMS)
    for item in (header.security_id, header.encryption_key, header.signature, header.sender_cert):
        assert isinstance(item, memoryview)
        assert item.obj is ALL_ITEMS


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        (b"\x01\0\0", "ProviderType at offset 16: needs 4 bytes"),
        (b"\x01\0\0\0", "ProviderName at offset 20: no NUL"),
        (b"\x01\0\0\0a", "ProviderName at offset 20: no NUL"),
        (b"\x01\0\0\0a\0b\0", "ProviderName at offset 20: no NUL"),
    ],
)
def test_a_provider_without_type_or_name_is_refused(info: bytes, problem: str) -> None:
    size = len(info).to_bytes(4, "little")
    data = bytes(12) + size + info + bytes(-len(info) % 4) + bytes(8)
    with pytest.raises(WireError, match=problem):
        SecurityHeader.decode(data)


def test_sizes_past_the_end_are_refused() -> None:
    for at, field in ((2, "SecurityID"), (4, "EncryptionKey"), (6, "Signature")):
        data = bytearray(20)
        data[at : at + 2] = b"\xff\xff"
        with pytest.raises(WireError, match=f"{field} at offset 16: needs 65535 bytes, 4 are left"):
            SecurityHeader.decode(data)
    with pytest.raises(WireError, match="ProviderInfo at offset 16: needs 4294967295 bytes"):
        SecurityHeader.decode(bytes(12) + b"\xff\xff\xff\xff" + bytes(4))


@pytest.mark.requirement("MQ-2.2.20.6-22", "MQ-2.2.20.6-24", "MQ-2.2.20.6-26")
def test_items_have_at_most_65535_bytes() -> None:
    largest = bytes(0xFFFF)
    header = SecurityHeader(0xF0E1, largest, largest, largest, largest)
    assert assert_round_trip(header)[:12] == b"\xe1\xf0" + b"\xff" * 6 + b"\xff\xff\0\0"
    assert_round_trip(SecurityHeader(0, provider_info=ProviderInfo(0xFFFFFFFF, "x" * 40000)))


@given(security_headers())
def test_round_trip(header: SecurityHeader) -> None:
    assert len(assert_round_trip(header)) % 4 == 0


@given(provider_infos)
def test_provider_round_trip(info: ProviderInfo) -> None:
    assert_round_trip(info)


@given(st.binary(max_size=60) | mutated(security_headers().map(SecurityHeader.encode)))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SecurityHeader.decode, data)
    assert_decodes_or_refuses(ProviderInfo.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(SecurityHeader.decode, ALL_ITEMS)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (SecurityHeader(1, bytes(0x10000)), "SenderIdSize"),
        (SecurityHeader(0, encryption_key=bytes(0x10000)), "EncryptionKeySize"),
        (SecurityHeader(0x40, signature=bytes(0x10000)), "SignatureSize"),
        (SecurityHeader(0x10001, SID), "Flags"),
        (SecurityHeader(0, provider_info=ProviderInfo(1 << 32, "a")), "ProviderType"),
        (SecurityHeader(0, provider_info=ProviderInfo(1, "a\0b")), "ProviderName"),
    ],
    ids=["SecurityID", "EncryptionKey", "Signature", "Flags", "ProviderType", "ProviderName"],
)
def test_a_value_that_does_not_fit_is_refused_by_name(header: SecurityHeader, field: str) -> None:
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field == field
