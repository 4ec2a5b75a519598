"""RSA as MSMQ uses it: RSAES-PKCS1-v1_5 for keys, RSASSA-PKCS1-v1_5 for signatures (RFC 3447).

Everything here is in the order of RSA libraries, the highest byte first; the wire has it back to
front, and whoever writes to the wire turns it round.

How to think about the two ways. A pair of 1024 bits or more belongs to the package `cryptography`,
whose private operations leak nothing by their time. It refuses shorter keys, and rightly so; the
512 bits of the Base provider are there for peers that know nothing better. They are made and used
with plain integers, and callers ask `is_legacy` before they use them: only where an administrator
allowed weak algorithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random, SystemRandom
from typing import Any, Final

from falconmq.errors import MqStatus
from falconmq.security import library
from falconmq.security.hashes import Hash
from falconmq.security.primes import make_prime
from falconmq.security.problems import DecryptionError, EncryptionError, SignatureError

PUBLIC_EXPONENT: Final = 65537
LIBRARY_BITS_MIN: Final = 1024
_PADDING_MIN: Final = 11  # 00 02, eight bytes of chance or more, 00
_BITS_MAX: Final = 16384


@dataclass(frozen=True, slots=True)
class RsaPublicKey:
    """What everybody may know."""

    modulus: int = field(repr=False)
    exponent: int

    @property
    def bits(self) -> int:
        return self.modulus.bit_length()

    @property
    def size(self) -> int:
        """Bytes of the modulus, and so of whatever this key makes."""
        return (self.bits + 7) // 8

    @property
    def is_legacy(self) -> bool:
        """Too short for anything but peers that know nothing better."""
        return self.bits < LIBRARY_BITS_MIN

    @property
    def is_valid(self) -> bool:
        """Numbers that can be an RSA key at all (RFC 3447 3.1)."""
        is_modulus = self.modulus & 1 == 1 and self.bits <= _BITS_MAX
        return is_modulus and self.exponent & 1 == 1 and 3 <= self.exponent < self.modulus


@dataclass(frozen=True, slots=True)
class RsaKeyPair:
    """Both halves. The secret ones are in no text that Python makes of it."""

    modulus: int = field(repr=False)
    public_exponent: int
    private_exponent: int = field(repr=False)
    prime1: int = field(repr=False)
    prime2: int = field(repr=False)

    @property
    def public(self) -> RsaPublicKey:
        return RsaPublicKey(self.modulus, self.public_exponent)

    @property
    def is_valid(self) -> bool:
        """Whether the numbers belong together: a damaged file must not become a key."""
        order = math.lcm(self.prime1 - 1, self.prime2 - 1) if self.prime1 * self.prime2 else 0
        product_is_right = self.modulus == self.prime1 * self.prime2 and self.public.is_valid
        return product_is_right and self.public_exponent * self.private_exponent % order == 1


def generate(bits: int, random: Random | None = None) -> RsaKeyPair:
    """A new pair; the same again for the same `random`. Without one, chance comes from the system.

    Without `random` the library makes it, if it is long enough for the library.
    """
    if random is None and bits >= LIBRARY_BITS_MIN:
        return _generated_by_library(bits)
    random = SystemRandom() if random is None else random
    while True:
        prime1 = make_prime(bits // 2, random, PUBLIC_EXPONENT)
        prime2 = make_prime(bits - bits // 2, random, PUBLIC_EXPONENT)
        if prime1 != prime2:
            break
    order = math.lcm(prime1 - 1, prime2 - 1)
    secret = pow(PUBLIC_EXPONENT, -1, order)
    return RsaKeyPair(prime1 * prime2, PUBLIC_EXPONENT, secret, prime1, prime2)


def encrypt(key: RsaPublicKey, data: bytes, random: Random | None = None) -> bytes:
    """RSAES-PKCS1-v1_5. EncryptionError if it does not fit, or if the key is none."""
    if not key.is_valid or len(data) > key.size - _PADDING_MIN:
        raise EncryptionError(f"{len(data)} bytes do not go under an RSA key of {key.bits} bits")
    if random is None and not key.is_legacy:
        rsa = library.load("hazmat.primitives.asymmetric.rsa")
        sealed: bytes = (
            rsa.RSAPublicNumbers(key.exponent, key.modulus)
            .public_key()
            .encrypt(data, _padding().PKCS1v15())
        )
        return sealed
    random = SystemRandom() if random is None else random
    filling = bytes(random.randrange(1, 256) for _ in range(key.size - len(data) - 3))
    return _public_power(key, b"\0\2" + filling + b"\0" + data)


def decrypt(pair: RsaKeyPair, data: bytes) -> bytes:
    """RSAES-PKCS1-v1_5 back. DecryptionError, or bytes that mean nothing, if it was not for us."""
    key = pair.public
    if len(data) != key.size:
        raise DecryptionError
    if not key.is_legacy:
        try:
            opened: bytes = library_key(pair).decrypt(data, _padding().PKCS1v15())
        except ValueError as error:
            raise DecryptionError from error
        return opened
    number = int.from_bytes(data, "big")
    if number >= pair.modulus:
        raise DecryptionError
    block = pow(number, pair.private_exponent, pair.modulus).to_bytes(key.size, "big")
    end = block.find(b"\0", 2)
    if block[:2] != b"\0\2" or end < _PADDING_MIN - 1:
        raise DecryptionError
    return block[end + 1 :]


def is_for(pair: RsaKeyPair, data: bytes) -> bool:
    """Whether something was encrypted for this pair, when there are several.

    The library does not tell: for what is not ours it makes up bytes, so that nobody learns
    anything from an answer. Here the answer stays inside, and the number is blinded, so that the
    time it takes says nothing about the key.
    """
    key, number = pair.public, int.from_bytes(data, "big")
    if len(data) != key.size or number >= pair.modulus:
        return False
    chance = SystemRandom().randrange(2, pair.modulus - 1)
    blinded = number * pow(chance, key.exponent, pair.modulus) % pair.modulus
    power = pow(blinded, pair.private_exponent, pair.modulus)
    block = (power * pow(chance, -1, pair.modulus) % pair.modulus).to_bytes(key.size, "big")
    return block[:2] == b"\0\2" and block.find(b"\0", 2) >= _PADDING_MIN - 1


def sign(pair: RsaKeyPair, used: Hash, data: bytes) -> bytes:
    """RSASSA-PKCS1-v1_5. Pairs that the library does not take sign nothing."""
    if pair.public.is_legacy:
        raise SignatureError(
            f"an RSA key of {pair.public.bits} bits is too short to sign with",
            status=MqStatus.CANNOT_SIGN_DATA_EX,
            hint=f"use one of {LIBRARY_BITS_MIN} bits or more",
        )
    ready_made = library.load("hazmat.primitives.asymmetric.utils").NoDigestInfo()
    signature: bytes = library_key(pair).sign(
        used.digest_info(data), _padding().PKCS1v15(), ready_made
    )
    return signature


def verify(key: RsaPublicKey, used: Hash, data: bytes, signature: bytes) -> bool:
    """Whether a signature fits some bytes. The whole block is compared, never taken apart.

    Nothing here is secret, so plain integers do for keys of every length.
    """
    block = _signature_block(key, used.digest_info(data))
    if block is None or len(signature) != key.size or not key.is_valid:
        return False
    number = int.from_bytes(signature, "big")
    return number < key.modulus and _public_power(key, signature) == block


def _signature_block(key: RsaPublicKey, digest_info: bytes) -> bytes | None:
    filling = key.size - len(digest_info) - 3
    if filling < _PADDING_MIN - 3:
        return None
    return b"\0\1" + b"\xff" * filling + b"\0" + digest_info


def _public_power(key: RsaPublicKey, block: bytes) -> bytes:
    power = pow(int.from_bytes(block, "big"), key.exponent, key.modulus)
    return power.to_bytes(key.size, "big")


def _generated_by_library(bits: int) -> RsaKeyPair:
    rsa = library.load("hazmat.primitives.asymmetric.rsa")
    numbers = rsa.generate_private_key(PUBLIC_EXPONENT, bits).private_numbers()
    public = numbers.public_numbers
    return RsaKeyPair(public.n, public.e, numbers.d, numbers.p, numbers.q)


@lru_cache(maxsize=64)
def library_key(pair: RsaKeyPair) -> Any:
    """The pair as the library has it. It tests the numbers, for 40 ms: so each pair once."""
    rsa = library.load("hazmat.primitives.asymmetric.rsa")
    secret, prime1, prime2 = pair.private_exponent, pair.prime1, pair.prime2
    return rsa.RSAPrivateNumbers(
        p=prime1,
        q=prime2,
        d=secret,
        dmp1=rsa.rsa_crt_dmp1(secret, prime1),
        dmq1=rsa.rsa_crt_dmq1(secret, prime2),
        iqmp=rsa.rsa_crt_iqmp(prime1, prime2),
        public_numbers=rsa.RSAPublicNumbers(pair.public_exponent, pair.modulus),
    ).private_key()


def _padding() -> Any:
    return library.load("hazmat.primitives.asymmetric.padding")
