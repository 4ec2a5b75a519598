"""MQDSPUBLICKEY and MQDSPUBLICKEYS, MQMQ 2.2.1 and 2.2.2."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.public_key_blob import PublicKeyBlob
from falconmq.wire.public_keys import PublicKey, PublicKeys
from tests.strategies.keys import public_key_entries, public_key_lists
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

KEY_BLOB = bytes.fromhex("06020000 00a40000 52534131 20000000 01000100 a1b2c3d4")
KEY_BYTES = bytes.fromhex("18000000 06000000 01000000 4100 4200 0000") + KEY_BLOB
KEY = PublicKey("AB", 1, KEY_BLOB)
OTHER_BYTES = bytes.fromhex("18000000 04000000 18000000 4300 0000") + KEY_BLOB
OTHER = PublicKey("C", 0x18, KEY_BLOB)
BYTES = bytes.fromhex("5a000000 02000000") + KEY_BYTES + OTHER_BYTES


@pytest.mark.requirement("DM-3.1.3-26", "DM-3.1.3-27", "DM-3.1.3-29")
@pytest.mark.requirement("MQ-2.2.1-01", "MQ-2.2.1-02", "MQ-2.2.1-03", "MQ-2.2.1-05", "MQ-2.2.1-06")
def test_every_field_of_a_key_stands_at_its_offset() -> None:
    assert PublicKey.decode(KEY_BYTES) == KEY
    assert KEY.encode() == KEY_BYTES
    assert PublicKey.decode(OTHER_BYTES) == OTHER
    assert OTHER.encode() == OTHER_BYTES


@pytest.mark.requirement("DM-3.1.3-28")
@pytest.mark.requirement("MQ-2.2.1-04")
@pytest.mark.parametrize("provider_type", [0, 1, 2, 0x17, 0x18, 0x19, 0xFFFFFFFF])
def test_the_provider_is_full_or_aes(provider_type: int) -> None:
    data = KEY_BYTES[:8] + provider_type.to_bytes(4, "little") + KEY_BYTES[12:]
    key = PublicKey("AB", provider_type, KEY_BLOB)
    if provider_type in (0x00000001, 0x00000018):
        assert PublicKey.decode(data) == key
        assert key.encode() == data
    else:
        with pytest.raises(WireError) as caught:
            PublicKey.decode(data)
        assert (caught.value.field, caught.value.offset) == ("ulProviderType", 8)
        with pytest.raises(WireError, match="ulProviderType"):
            key.encode()


@pytest.mark.requirement("MQ-2.2.1-07")
@pytest.mark.parametrize(
    "blob",
    [
        b"\x07" + KEY_BLOB[1:],
        KEY_BLOB[:8] + b"RSA2" + KEY_BLOB[12:],
        KEY_BLOB + b"\0",
        KEY_BLOB[:-1],
        b"",
    ],
)
def test_a_buffer_that_is_no_rsa_key_is_refused(blob: bytes) -> None:
    with pytest.raises(WireError) as caught:
        PublicKey("AB", 1, blob).encode()
    assert (caught.value.field, caught.value.offset) == ("aBuf", None)
    with pytest.raises(WireError):
        PublicKey.decode(len(blob).to_bytes(4, "little") + KEY_BYTES[4:18] + blob)


@pytest.mark.requirement("MQ-2.2.1-07")
def test_the_buffer_opens_as_an_rsa_key() -> None:
    assert PublicKey.decode(KEY_BYTES).public_key == PublicKeyBlob(0xD4C3B2A1, 0x10001)


@pytest.mark.requirement("MQ-2.2.1-08")
def test_a_signing_key_is_refused() -> None:
    signing = KEY_BLOB[:4] + bytes.fromhex("00240000") + KEY_BLOB[8:]
    with pytest.raises(WireError, match="signing key"):
        PublicKey("AB", 1, signing).encode()
    with pytest.raises(WireError, match="signing key"):
        PublicKey.decode(KEY_BYTES[:18] + signing)


@pytest.mark.requirement("DM-3.1.3-24", "DM-3.1.3-25")
@pytest.mark.requirement("MQ-2.2.2-01", "MQ-2.2.2-02", "MQ-2.2.2-03", "MQ-2.2.2-04", "MQ-2.2.2-05")
def test_keys_follow_each_other_behind_size_and_count() -> None:
    assert PublicKeys.decode(BYTES) == PublicKeys([KEY, OTHER])
    assert PublicKeys([KEY, OTHER]).encode() == BYTES
    assert len(BYTES) == 0x5A
    assert PublicKeys().encode() == bytes.fromhex("08000000 00000000")


@pytest.mark.requirement("MQ-2.2.2-02", "MQ-2.2.2-04")
@pytest.mark.parametrize(
    ("size", "count", "field"),
    [
        (7, 0, "ulLen"),
        (0, 2, "ulLen"),
        (0x59, 2, "aBuf"),  # the last key is cut
        (0x5A, 1, "aPublicKeys"),  # bytes of a key that nobody counted
        (0x5A, 3, "ulKeyLen"),
        (0x5A, 7, "cNumofKeys"),
        (0x5A, 0xFFFFFFFF, "cNumofKeys"),
        (0x5B, 2, "aPublicKeys"),
        (0xFFFFFFFF, 2, "aPublicKeys"),
    ],
)
def test_size_and_count_must_agree_with_the_keys(size: int, count: int, field: str) -> None:
    data = size.to_bytes(4, "little") + count.to_bytes(4, "little") + BYTES[8:]
    with pytest.raises(WireError) as caught:
        PublicKeys.decode(data)
    assert caught.value.field == field


@pytest.mark.requirement("MQ-2.2.2-02", "MQ-2.2.1-07")
def test_the_three_keys_of_a_computer() -> None:
    names = [
        ("Microsoft Base Cryptographic Provider v1.0", 1),
        ("Microsoft Enhanced Cryptographic Provider v1.0", 1),
        ("Microsoft Enhanced RSA and AES Cryptographic Provider", 0x18),
    ]
    numbers = [
        rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key().public_numbers()
        for _ in names
    ]
    keys = PublicKeys(
        [
            PublicKey(name, provider, PublicKeyBlob(number.n, number.e).encode())
            for (name, provider), number in zip(names, numbers, strict=True)
        ]
    )
    data = keys.encode()
    assert int.from_bytes(data[:4], "little") == len(data)
    decoded = PublicKeys.decode(data)
    assert [(key.provider_name, key.provider_type) for key in decoded.keys] == names
    blobs = [key.public_key for key in decoded.keys]
    assert [(blob.modulus, blob.public_exponent) for blob in blobs] == [
        (number.n, number.e) for number in numbers
    ]


@pytest.mark.parametrize("name_size", [0, 1, 2, 4, 5, 7, 8])
def test_a_name_must_fill_its_length_and_end_with_nul(name_size: int) -> None:
    data = KEY_BYTES[:4] + name_size.to_bytes(4, "little") + KEY_BYTES[8:]
    with pytest.raises(WireError):
        PublicKey.decode(data)


def test_a_name_with_a_nul_inside_is_not_sent() -> None:
    with pytest.raises(WireError, match="sProviderName"):
        PublicKey("A\0B", 1, KEY_BLOB).encode()


@given(public_key_entries)
def test_a_key_makes_a_round_trip(key: PublicKey) -> None:
    assert_round_trip(key)


@given(public_key_lists)
def test_keys_make_a_round_trip(keys: PublicKeys) -> None:
    assert_round_trip(keys)


@given(st.binary(max_size=64))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(PublicKey.decode, data)
    assert_decodes_or_refuses(PublicKeys.decode, data)


@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(PublicKeys.decode, changed)


def test_cut_keys_are_refused() -> None:
    assert_every_cut_is_refused(PublicKeys.decode, BYTES)
