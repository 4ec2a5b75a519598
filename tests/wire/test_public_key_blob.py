"""PUBLICKEYBLOB, MQQB 2.4.1 and MQMQ 2.2.20.6."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.public_key_blob import PublicKeyBlob
from tests.strategies.keys import public_key_blobs
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

BYTES = bytes.fromhex("06020000 00a40000 52534131 20000000 01000100 a1b2c3d4")
BLOB = PublicKeyBlob(modulus=0xD4C3B2A1, public_exponent=0x00010001)


@pytest.mark.requirement("DM-3.1.3-30", "DM-3.1.3-31")
@pytest.mark.requirement(
    "QB-2.4.1-01", "QB-2.4.1-02", "QB-2.4.1-03", "QB-2.4.1-04", "QB-2.4.1-05", "MQ-2.2.20.6-45"
)
def test_every_field_stands_at_its_offset() -> None:
    blob = PublicKeyBlob.decode(BYTES)
    assert blob.modulus == 0xD4C3B2A1  # little-endian
    assert blob.public_exponent == 0x00010001
    assert blob.key_algorithm == 0xA400
    assert blob.bit_length == 32
    assert blob == BLOB
    assert BLOB.encode() == BYTES


@pytest.mark.requirement("MQ-2.2.20.6-46")
@pytest.mark.parametrize(("algorithm", "accepted"), [(0x2400, 1), (0xA400, 1), (0xA401, 0), (0, 0)])
def test_the_key_type_is_signing_or_encryption(algorithm: int, accepted: int) -> None:
    data = BYTES[:4] + algorithm.to_bytes(4, "little") + BYTES[8:]
    blob = replace(BLOB, key_algorithm=algorithm)
    if accepted:
        assert PublicKeyBlob.decode(data) == blob
        assert blob.encode() == data
    else:
        with pytest.raises(WireError, match="aiKeyAlg"):
            PublicKeyBlob.decode(data)
        with pytest.raises(WireError, match="aiKeyAlg"):
            blob.encode()


@pytest.mark.requirement("MQ-2.2.20.6-47", "MQ-2.2.20.6-49", "QB-2.4.1-02", "QB-2.4.1-05")
@pytest.mark.parametrize(
    ("modulus", "bits"),
    [(1, 8), (0xFF, 8), (0x100, 16), (0x1_0000_0001, 40), ((1 << 511) + 1, 512)],
)
def test_the_modulus_is_a_whole_number_of_bytes(modulus: int, bits: int) -> None:
    data = PublicKeyBlob(modulus, 3).encode()
    assert int.from_bytes(data[12:16], "little") == bits
    assert len(data) == 20 + bits // 8
    assert int.from_bytes(data[20:], "little") == modulus


@pytest.mark.requirement("MQ-2.2.20.6-48", "QB-2.4.1-03")
@pytest.mark.parametrize("exponent", [0, 3, 0x10001, 0xFFFFFFFF])
def test_the_exponent_is_unsigned_in_four_bytes(exponent: int) -> None:
    data = PublicKeyBlob(0xD4C3B2A1, exponent).encode()
    assert data[16:20] == exponent.to_bytes(4, "little")
    assert PublicKeyBlob.decode(data).public_exponent == exponent


@pytest.mark.requirement("QB-2.4.1-04", "MQ-2.2.20.6-45")
def test_a_key_goes_through_the_blob_and_still_encrypts() -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    numbers = private.public_key().public_numbers()
    data = PublicKeyBlob(numbers.n, numbers.e).encode()
    assert len(data) == 20 + 128

    blob = PublicKeyBlob.decode(data)
    public = rsa.RSAPublicNumbers(blob.public_exponent, blob.modulus).public_key()
    cipher = public.encrypt(b"session key", padding.PKCS1v15())
    assert private.decrypt(cipher, padding.PKCS1v15()) == b"session key"


def test_a_padded_modulus_keeps_its_length() -> None:
    data = BYTES[:-2] + b"\0\0"
    blob = PublicKeyBlob.decode(data)
    assert (blob.modulus, blob.bit_length) == (0xB2A1, 32)
    assert blob.encode() == data


def test_a_large_key_can_be_shown() -> None:
    assert "bit_length=16384" in repr(PublicKeyBlob((1 << 16384) - 1, 3))


@given(public_key_blobs())
def test_round_trip(blob: PublicKeyBlob) -> None:
    assert_round_trip(blob)


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(PublicKeyBlob.decode, data)


@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(PublicKeyBlob.decode, changed)


def test_a_cut_blob_is_refused() -> None:
    assert_every_cut_is_refused(PublicKeyBlob.decode, BYTES)


@pytest.mark.parametrize(
    ("offset", "data", "field"),
    [
        (0, "07", "bType"),
        (0, "01", "bType"),
        (1, "03", "bVersion"),
        (2, "0100", "reserved"),
        (8, "52534132", "magic"),  # RSA2, a private key
        (12, "00000000", "bitLen"),
        (12, "1f000000", "bitLen"),
        (12, "08400000", "bitLen"),  # 16392
        (12, "ffffffff", "bitLen"),
    ],
)
def test_other_values_are_refused(offset: int, data: str, field: str) -> None:
    value = bytes.fromhex(data)
    with pytest.raises(WireError) as caught:
        PublicKeyBlob.decode(BYTES[:offset] + value + BYTES[offset + len(value) :])
    assert (caught.value.field, caught.value.offset) == (field, offset)


@pytest.mark.parametrize(
    ("blob", "field"),
    [
        (PublicKeyBlob(0, 3), "bitLen"),
        (PublicKeyBlob(1, 3, bit_length=12), "bitLen"),
        (PublicKeyBlob(1, 3, bit_length=-8), "bitLen"),
        (PublicKeyBlob(1 << 16384, 3), "bitLen"),
        (PublicKeyBlob(0x100, 3, bit_length=8), "modulus"),
        (PublicKeyBlob(-1, 3), "modulus"),
        (PublicKeyBlob(1, 1 << 32), "pubExp"),
        (PublicKeyBlob(1, -1), "pubExp"),
    ],
)
def test_impossible_values_are_refused_by_name(blob: PublicKeyBlob, field: str) -> None:
    with pytest.raises(WireError) as caught:
        blob.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)
