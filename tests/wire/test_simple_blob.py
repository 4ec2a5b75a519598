"""SIMPLEBLOB, MQQB 2.4.2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import simple_blob
from falconmq.wire.public_key_blob import PublicKeyBlob
from falconmq.wire.reader import Reader
from falconmq.wire.simple_blob import SimpleBlob
from tests.strategies.keys import simple_blobs
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

BYTES = bytes.fromhex("01020000 10660000 00a40000 a1b2c3d4")
BLOB = SimpleBlob(0x00006610, bytes.fromhex("d4c3b2a1"))
CATALOGUE = Path(__file__).parents[2] / "conformance" / "mqqb.tsv"


@pytest.mark.requirement("QB-2.4.2-01", "QB-2.4.2-03")
def test_every_field_stands_at_its_offset_and_the_key_back_to_front() -> None:
    assert SimpleBlob.decode(BYTES) == BLOB
    assert BLOB.encode() == BYTES


@pytest.mark.requirement("QB-2.4.2-02")
def test_the_algorithms_are_those_of_the_catalogue() -> None:
    row = re.search(r"^QB-2\.4\.2-02\t.*$", CATALOGUE.read_text(), re.MULTILINE)
    assert row is not None
    found = dict(re.findall(r"(AES-\d+|RC2|RC4) 0x([0-9A-F]{8})", row.group()))
    assert len(found) == 5
    for name, value in found.items():
        constant = getattr(simple_blob, "CALG_" + name.replace("-", "_"))
        assert constant == int(value, 16)
        data = SimpleBlob(constant, b"key").encode()
        assert data[4:8] == int(value, 16).to_bytes(4, "little")


@pytest.mark.requirement("QB-2.4.2-02")
@pytest.mark.parametrize("algorithm", [0, 0x6601, 0x6611, 0x8004, 1 << 32, -1])
def test_no_other_algorithm_is_sent(algorithm: int) -> None:
    with pytest.raises(WireError, match="sessionKeyAlgorithm"):
        SimpleBlob(algorithm, b"key").encode()


def test_an_unknown_algorithm_decodes_for_the_message_to_be_refused() -> None:
    data = BYTES[:4] + bytes.fromhex("01660000") + BYTES[8:]
    assert SimpleBlob.decode(data).session_key_algorithm == 0x6601


@pytest.mark.requirement("QB-A19-01")
@pytest.mark.parametrize("bits", [512, 1024, 2048])
def test_the_key_is_as_long_as_the_modulus(bits: int) -> None:
    key = bytes(index % 256 for index in range(bits // 8))
    data = SimpleBlob(0x6610, key).encode()
    assert len(data) == 12 + bits // 8
    assert SimpleBlob.decode(data).encrypted_key == key


@pytest.mark.requirement("QB-2.4.2-03")
@pytest.mark.parametrize("bits", [1024, 2048])
def test_a_session_key_reaches_the_owner_of_the_public_key(bits: int) -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    numbers = private.public_key().public_numbers()
    # the receiver's key as it comes from the directory
    blob = PublicKeyBlob.decode(PublicKeyBlob(numbers.n, numbers.e).encode())
    public = rsa.RSAPublicNumbers(blob.public_exponent, blob.modulus).public_key()
    session_key = bytes(range(32))

    cipher = public.encrypt(session_key, padding.PKCS1v15())
    data = SimpleBlob(0x6610, cipher).encode()

    assert len(data) == 12 + bits // 8
    assert data[12:] == cipher[::-1]
    received = SimpleBlob.decode(data)
    assert private.decrypt(received.encrypted_key, padding.PKCS1v15()) == session_key


def test_a_blob_in_a_part_takes_the_part_only() -> None:
    reader = Reader(BYTES + b"more")
    part = reader.part(len(BYTES), "EncryptionKey")
    assert SimpleBlob.read(part) == BLOB
    assert reader.remaining == 4


@given(simple_blobs)
def test_round_trip(blob: SimpleBlob) -> None:
    assert_round_trip(blob)


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SimpleBlob.decode, data)


@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(SimpleBlob.decode, changed)


def test_a_cut_header_is_refused_and_so_is_a_missing_key() -> None:
    assert_every_cut_is_refused(SimpleBlob.decode, BYTES[:13])
    with pytest.raises(WireError, match="encryptedKey"):
        SimpleBlob(0x6610, b"").encode()


@pytest.mark.parametrize(
    ("offset", "data", "field"),
    [
        (0, "06", "bType"),
        (1, "01", "bVersion"),
        (2, "0001", "reserved"),
        (8, "00240000", "keyAlgorithm"),
    ],
)
def test_other_values_are_refused(offset: int, data: str, field: str) -> None:
    value = bytes.fromhex(data)
    with pytest.raises(WireError) as caught:
        SimpleBlob.decode(BYTES[:offset] + value + BYTES[offset + len(value) :])
    assert (caught.value.field, caught.value.offset) == (field, offset)
