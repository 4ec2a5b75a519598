"""AES, RC2 and RC4, against what others made of the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.security import ciphers, library
from falconmq.security.problems import (
    CryptographyMissingError,
    DecryptionError,
    EncryptionError,
    WeakAlgorithmError,
)
from falconmq.security.rc2 import Rc2
from falconmq.wire.simple_blob import CALG_AES_128, CALG_AES_256, CALG_RC2, CALG_RC4
from tests.security import known

RFC_2268 = [  # section 5: key, effective bits, plain, sealed
    ("0000000000000000", 63, "0000000000000000", "ebb773f993278eff"),
    ("ffffffffffffffff", 64, "ffffffffffffffff", "278b27e42e2f0d49"),
    ("3000000000000000", 64, "1000000000000001", "30649edf9be7d2c2"),
    ("88", 64, "0000000000000000", "61a8a244adacccf0"),
    ("88bca90e90875a", 64, "0000000000000000", "6ccf4308974c267f"),
    ("88bca90e90875a7f0f79c384627bafb2", 64, "0000000000000000", "1a807d272bbe5db1"),
    ("88bca90e90875a7f0f79c384627bafb2", 128, "0000000000000000", "2269552ab0f85ca6"),
    (
        "88bca90e90875a7f0f79c384627bafb216f80a6f85920584c42fceb0be255daf1e",
        129,
        "0000000000000000",
        "5b78d3a43dfff1f1",
    ),
]
KEYS = [(algorithm, known.KEY[:size]) for algorithm, size, _ in known.BODIES]
BLOCK_CIPHERS = [(algorithm, key) for algorithm, key in KEYS if algorithm != CALG_RC4]


@pytest.mark.parametrize(("key", "bits", "plain", "sealed"), RFC_2268)
def test_rc2_is_that_of_its_rfc(key: str, bits: int, plain: str, sealed: str) -> None:
    cipher = Rc2(bytes.fromhex(key), bits)
    assert cipher.encrypt_block(bytes.fromhex(plain)).hex() == sealed
    assert cipher.decrypt_block(bytes.fromhex(sealed)).hex() == plain


@pytest.mark.parametrize(("key", "bits"), [(b"", 64), (bytes(129), 64), (b"k", 0), (b"k", 1025)])
def test_rc2_takes_keys_of_128_bytes_at_most(key: bytes, bits: int) -> None:
    with pytest.raises(ValueError, match="1 to 128 bytes"):
        Rc2(key, bits)


def test_aes_is_that_of_nist() -> None:
    # FIPS 197, appendices C.1 and C.3: one block, for which CBC with zeros is the same
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")
    for algorithm, size, expected in (
        (CALG_AES_128, 16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
        (CALG_AES_256, 32, "8ea2b7ca516745bfeafc49904b496089"),
    ):
        assert ciphers.encrypt(algorithm, known.KEY[:size], plain)[:16].hex() == expected


@pytest.mark.parametrize(
    ("key", "plain", "sealed"),
    [
        ("0102030405", "00" * 16, "b2396305f03dc027ccc3524a0a1118a8"),  # RFC 6229, 40 bits
        (
            "0102030405060708090a0b0c0d0e0f10",
            "00" * 16,
            "9ac7cc9a609d1ef7b2932899cde41b97",  # RFC 6229, 128 bits
        ),
    ],
)
def test_rc4_is_that_of_its_vectors(key: str, plain: str, sealed: str) -> None:
    made = ciphers.encrypt(CALG_RC4, bytes.fromhex(key), bytes.fromhex(plain), allow_weak=True)
    assert made.hex() == sealed


@pytest.mark.requirement("QB-A21-01")
@pytest.mark.requirement("MQ-2.2.19.3-43", "MQ-2.2.19.3-44")
@pytest.mark.parametrize(("algorithm", "size", "sealed"), known.BODIES)
def test_bodies_are_those_of_openssl(algorithm: int, size: int, sealed: str) -> None:
    key = known.KEY[:size]
    assert ciphers.encrypt(algorithm, key, known.PLAIN, allow_weak=True).hex() == sealed
    opened = ciphers.decrypt(algorithm, key, bytes.fromhex(sealed), allow_weak=True)
    assert opened == known.PLAIN


@pytest.mark.requirement("MQ-2.2.19.3-44")
@settings(max_examples=25, deadline=None)
@given(body=st.binary(max_size=100))
@pytest.mark.parametrize(("algorithm", "key"), KEYS)
def test_every_body_comes_back(algorithm: int, key: bytes, body: bytes) -> None:
    sealed = ciphers.encrypt(algorithm, key, body, allow_weak=True)
    assert ciphers.decrypt(algorithm, key, sealed, allow_weak=True) == body
    if algorithm != CALG_RC4:
        size = 8 if algorithm == CALG_RC2 else 16
        assert len(sealed) == len(body) // size * size + size  # a whole block more if it fits


@pytest.mark.parametrize(("algorithm", "key"), BLOCK_CIPHERS)
def test_what_was_cut_or_made_with_another_key_is_refused(algorithm: int, key: bytes) -> None:
    sealed = ciphers.encrypt(algorithm, key, known.PLAIN, allow_weak=True)
    for damaged in (b"", sealed[:-1], sealed + b"\0"):
        with pytest.raises(DecryptionError):
            ciphers.decrypt(algorithm, key, damaged, allow_weak=True)
    other = bytes(byte ^ 1 for byte in key)
    with pytest.raises(DecryptionError):
        ciphers.decrypt(algorithm, other, sealed, allow_weak=True)


@pytest.mark.parametrize("padding", [b"\0", b"\x11", b"\2\1\2"])
def test_wrong_padding_is_refused(padding: bytes) -> None:
    key = known.KEY[:16]
    block = b"x" * (16 - len(padding)) + padding
    sealed = ciphers.encrypt(CALG_AES_128, key, block)[:16]
    with pytest.raises(DecryptionError):
        ciphers.decrypt(CALG_AES_128, key, sealed)


def test_padding_of_more_than_a_block_is_refused() -> None:
    key = known.KEY[:16]
    sealed = ciphers.encrypt(CALG_AES_128, key, b"x" * 15 + b"\x11" * 17)[:32]
    with pytest.raises(DecryptionError):
        ciphers.decrypt(CALG_AES_128, key, sealed)


@pytest.mark.parametrize("algorithm", [CALG_RC2, CALG_RC4])
def test_weak_ciphers_are_for_administrators_to_allow(algorithm: int) -> None:
    for call in (ciphers.encrypt, ciphers.decrypt):
        with pytest.raises(WeakAlgorithmError) as refused:
            call(algorithm, known.KEY[:16], bytes(16))
        assert "allow weak algorithms" in refused.value.hint


@pytest.mark.parametrize(("algorithm", "size"), [(CALG_AES_128, 32), (CALG_RC2, 8), (0x6603, 16)])
def test_a_key_or_an_algorithm_that_msmq_does_not_have(algorithm: int, size: int) -> None:
    with pytest.raises(EncryptionError):
        ciphers.encrypt(algorithm, known.KEY[:size], b"x", allow_weak=True)
    with pytest.raises(DecryptionError):
        ciphers.decrypt(algorithm, known.KEY[:size], bytes(16), allow_weak=True)


def test_a_missing_library_is_missed_in_plain_words() -> None:
    with pytest.raises(CryptographyMissingError) as refused:
        library.load("hazmat.nothing_of_the_kind")
    assert refused.value.hint == "pip install 'falconmq[security]'"
