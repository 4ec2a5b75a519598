"""RSA pairs of every length that MSMQ has."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.security import rsa
from falconmq.security.hashes import HASHES, hash_of
from falconmq.security.primes import is_probable_prime, make_prime
from falconmq.security.problems import (
    DecryptionError,
    EncryptionError,
    SignatureError,
    WeakAlgorithmError,
)
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.security.signature_input import SignatureVersion, signature_input
from falconmq.wire.message_properties_header import (
    HASH_MD2,
    HASH_MD4,
    HASH_MD5,
    HASH_SHA1,
    HASH_SHA256,
    HASH_SHA512,
)
from tests.security import known
from tests.security.packets import make_packet

SIGNED = signature_input(SignatureVersion.MSMQ_2_0, make_packet())
PAIRS = {"512": known.PAIR_512, "1024": known.PAIR_1024}


@pytest.mark.parametrize("bits", [512, 1024])
def test_a_pair_has_exactly_the_bits_that_were_asked_for(bits: int) -> None:
    pair = rsa.generate(bits)
    assert pair.public.bits == bits
    assert pair.is_valid
    assert pair.public.is_legacy == (bits == 512)


def test_the_same_chance_makes_the_same_pair() -> None:
    assert rsa.generate(512, Random(3)) == rsa.generate(512, Random(3))
    assert rsa.generate(512, Random(3)) != rsa.generate(512, Random(4))
    assert rsa.generate(512) != rsa.generate(512)


def test_primes_are_primes() -> None:
    chance = Random(5)
    primes = [number for number in range(100) if is_probable_prime(number, chance)]
    assert primes[:10] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    assert len(primes) == 25
    assert is_probable_prime(2**521 - 1, chance)
    assert is_probable_prime(2**255 - 19, chance)
    assert is_probable_prime(2**224 - 2**96 + 1, chance)
    assert not is_probable_prime(2**523 - 1, chance)
    assert not is_probable_prime((2**255 - 19) * (2**521 - 1), chance)
    # numbers that pass Fermat's test for every base they share no factor with
    carmichael = 1590231231043178376951698401
    assert not is_probable_prime(carmichael, chance)
    for _ in range(20):
        made = make_prime(64, chance, 3)
        assert made.bit_length() == 64
        assert made >> 62 == 3
        assert made % 3 == 2


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_the_public_half_encrypts_the_private_one_decrypts(pair: RsaKeyPair) -> None:
    for random in (None, Random(1)):
        sealed = rsa.encrypt(pair.public, b"\0key\0", random)
        assert len(sealed) == pair.public.size
        assert rsa.decrypt(pair, sealed) == b"\0key\0"
    assert rsa.encrypt(pair.public, b"key") != rsa.encrypt(pair.public, b"key")


def test_what_openssl_encrypted_is_decrypted() -> None:
    assert rsa.decrypt(known.PAIR_512, known.WRAPPED_512) == known.KEY[:5]
    assert rsa.decrypt(known.PAIR_1024, known.WRAPPED_1024) == known.KEY


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_is_too_long_is_refused(pair: RsaKeyPair) -> None:
    longest = pair.public.size - 11
    assert rsa.decrypt(pair, rsa.encrypt(pair.public, b"x" * longest)) == b"x" * longest
    with pytest.raises(EncryptionError):
        rsa.encrypt(pair.public, b"x" * (longest + 1))


@pytest.mark.parametrize("key", [RsaPublicKey(0, 3), RsaPublicKey(1 << 600, 3), RsaPublicKey(9, 2)])
def test_numbers_that_are_no_key_encrypt_nothing(key: RsaPublicKey) -> None:
    assert not key.is_valid
    with pytest.raises(EncryptionError):
        rsa.encrypt(key, b"")


@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=70))
def test_bytes_of_no_meaning_are_refused_or_decrypt_to_no_meaning(data: bytes) -> None:
    for pair in PAIRS.values():
        for tried in (data, data.rjust(pair.public.size, b"\0")):
            try:
                assert rsa.decrypt(pair, tried) != known.KEY
            except DecryptionError as error:
                assert str(error) == "the body cannot be decrypted"  # never at which step


@pytest.mark.parametrize(
    "block",
    [
        b"\0\1" + b"\x77" * 8 + b"\0key",  # the kind of a signature
        b"\1\2" + b"\x77" * 8 + b"\0key",
        b"\0\2" + b"\x77" * 7 + b"\0key",  # too little filling
    ],
)
def test_a_block_of_another_shape_is_no_key(block: bytes) -> None:
    key = known.PAIR_512.public
    filled = block.partition(b"\0key")[0]
    if len(filled) == 10:  # the filling may be as long as it likes
        block = filled + b"\x77" * (key.size - len(filled) - 4) + b"\0key"
    else:
        block = block + b"x" * (key.size - len(block))
    number = int.from_bytes(block, "big") % key.modulus
    sealed = pow(number, key.exponent, key.modulus).to_bytes(key.size, "big")
    with pytest.raises(DecryptionError):
        rsa.decrypt(known.PAIR_512, sealed)


def test_a_number_beyond_the_modulus_is_refused() -> None:
    # given what would be right if somebody only looked at the rest of a division
    pair, bytes_of = known.PAIR_512, int.from_bytes
    sealed = (rsa.encrypt(pair.public, b"key") for _ in range(1000))
    larger = next(n for each in sealed if (n := bytes_of(each, "big") + pair.modulus) >> 512 == 0)
    with pytest.raises(DecryptionError):
        rsa.decrypt(pair, larger.to_bytes(64, "big"))
    pair, used = known.PAIR_1024, hash_of(HASH_SHA512)
    for data in (b"%d" % number for number in range(1000)):
        larger = bytes_of(rsa.sign(pair, used, data), "big") + pair.modulus
        if larger >> 1024 == 0:
            assert not rsa.verify(pair.public, used, data, larger.to_bytes(128, "big"))
            break
    else:
        pytest.fail("no signature is small enough")


@pytest.mark.requirement("MQ-2.2.19.3-32")
@pytest.mark.parametrize("algorithm", HASHES, ids=hex)
def test_signatures_are_those_of_openssl(algorithm: int) -> None:
    used = hash_of(algorithm, allow_weak=True)
    expected = known.SIGNATURES[algorithm]
    assert rsa.sign(known.PAIR_1024, used, SIGNED) == expected
    assert rsa.verify(known.PAIR_1024.public, used, SIGNED, expected)
    assert not rsa.verify(known.PAIR_1024.public, used, SIGNED + b"\0", expected)
    assert not rsa.verify(known.PAIR_1024.public, used, SIGNED, expected[::-1])
    assert not rsa.verify(known.PAIR_1024.public, used, SIGNED, b"\0" + expected)
    assert not rsa.verify(known.PAIR_512.public, used, SIGNED, expected)


def test_a_signature_over_another_block_of_the_same_digest_is_refused() -> None:
    # given a block with less filling, and the rest behind the digest
    used, pair = hash_of(HASH_SHA256), known.PAIR_1024
    info = used.digest_info(SIGNED)
    block = b"\0\1" + b"\xff" * 8 + b"\0" + info
    block += b"\0" * (pair.public.size - len(block))
    forged = pow(int.from_bytes(block, "big"), pair.private_exponent, pair.modulus)
    assert not rsa.verify(pair.public, used, SIGNED, forged.to_bytes(128, "big"))


def test_short_keys_sign_nothing() -> None:
    with pytest.raises(SignatureError, match="512 bits is too short"):
        rsa.sign(known.PAIR_512, hash_of(HASH_SHA256), SIGNED)
    # a digest that does not fit a key cannot be verified with it
    assert not rsa.verify(known.PAIR_512.public, hash_of(HASH_SHA512), SIGNED, bytes(64))


@pytest.mark.requirement("MQ-2.2.19.3-33")
@pytest.mark.parametrize("algorithm", [0, 0x8000, 0x800D])
def test_hashes_that_are_unknown_are_never_used(algorithm: int) -> None:
    with pytest.raises(SignatureError):
        hash_of(algorithm, allow_weak=True)


@pytest.mark.parametrize("algorithm", [HASH_MD2, HASH_MD4, HASH_MD5, HASH_SHA1])
def test_weak_hashes_are_for_administrators_to_allow(algorithm: int) -> None:
    with pytest.raises(WeakAlgorithmError):
        hash_of(algorithm)
    assert hash_of(algorithm, allow_weak=True).is_weak


@pytest.mark.parametrize("field", ["modulus", "private_exponent", "prime1"])
def test_numbers_that_do_not_belong_together_are_no_pair(field: str) -> None:
    assert known.PAIR_512.is_valid
    value = getattr(known.PAIR_512, field)
    assert not replace(known.PAIR_512, **{field: value + 2}).is_valid
    assert not replace(known.PAIR_512, **{field: 0}).is_valid


def test_no_text_of_a_pair_has_its_secrets() -> None:
    pair = known.PAIR_512
    text = f"{pair!r} {pair}"
    assert text == "RsaKeyPair(public_exponent=65537) RsaKeyPair(public_exponent=65537)"


@pytest.mark.parametrize("pair", [known.PAIR_512, known.PAIR_1024])
def test_a_pair_knows_what_was_encrypted_for_it(pair: RsaKeyPair) -> None:
    others = [rsa.generate(pair.public.bits, Random(seed)) for seed in range(3)]
    for _ in range(5):
        sealed = rsa.encrypt(pair.public, b"a key")
        assert rsa.is_for(pair, sealed)
        assert not any(rsa.is_for(other, sealed) for other in others)
        assert not rsa.is_for(pair, sealed[:-1])
        assert not rsa.is_for(pair, b"\xff" * len(sealed))  # more than the modulus
