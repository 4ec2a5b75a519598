"""A symmetric key: which one a receiver can take, how it is made, how it travels (MQQB 3.1.7.1.5).

It travels in a SIMPLEBLOB under the receiver's RSA key, and is used for many messages until it is
too old. The best provider that the receiver has a key for is taken, even if the sender asked for
less: a message of level Base goes out under AES if that is possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random, SystemRandom

from falconmq.errors import MqStatus, WireError
from falconmq.security import rsa
from falconmq.security.ciphers import KEY_SIZES
from falconmq.security.problems import DecryptionError, EncryptionError, WeakAlgorithmError
from falconmq.security.providers import ADVANCED, BASE, BY_PRIVACY_LEVEL, ENHANCED, Provider
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.wire.simple_blob import (
    CALG_AES_256,
    CALG_RC2,
    CALG_RC4,
    SimpleBlob,
)

_SHORT_KEY_BYTES = 5  # 40 bits
_LONG_KEY_BYTES = 16
_PADDED_ZEROS = bytes(_LONG_KEY_BYTES - _SHORT_KEY_BYTES)  # 88 bits


@dataclass(frozen=True, slots=True)
class EncryptionSettings:
    """What MQQB 3.1.1.3 lets an administrator choose."""

    preferred_advanced_algorithm: int = CALG_AES_256  # QB-3.1.3.1-13
    preferred_enhanced_algorithm: int = CALG_RC4  # QB-3.1.3.1-14
    preferred_base_algorithm: int = CALG_RC4  # QB-3.1.3.1-15
    send_enhanced_rc2_using_40_bit_keys: bool = False  # QB-3.1.3.1-16
    reject_enhanced_rc2_using_40_bit_keys: bool = False  # QB-3.1.3.1-17


@dataclass(frozen=True, slots=True)
class Choice:
    """What a body is encrypted with: UseCSP, UseAlgorithm, UseSymmKeyLength, UsePublicKey."""

    provider: Provider
    algorithm: int
    key_bits: int
    public_key: RsaPublicKey = field(repr=False)


def choose(
    keys: Mapping[Provider, RsaPublicKey],
    privacy_level: int,
    settings: EncryptionSettings,
    *,
    allow_weak: bool = False,
) -> Choice:
    """The best that a receiver with these keys can read, and no less than the level asks for.

    EncryptionError if there is nothing; WeakAlgorithmError if it were weak and that is not allowed.
    """
    wanted = BY_PRIVACY_LEVEL.get(privacy_level)
    if wanted is None:
        raise EncryptionError(f"{privacy_level} is no privacy level that encrypts")
    for provider in (ADVANCED, ENHANCED, BASE):  # QB-3.1.7.1.5-06, -08, -10
        if provider in keys:
            return _checked(_choice(provider, keys[provider], settings), allow_weak=allow_weak)
        if provider is wanted:  # QB-3.1.7.1.5-07, -09
            break
    raise EncryptionError(  # QB-3.1.7.1.5-11
        f"the receiver has no key of the {wanted.name}",
        status=MqStatus.PUBLIC_KEY_NOT_FOUND,
        hint="import its keys: falconmq key import FILE",
    )


def make_key(choice: Choice, random: Random | None = None) -> bytes:
    """A key of chance for a choice (QB-3.1.7.1.5-16)."""
    random = SystemRandom() if random is None else random
    key = random.randbytes(choice.key_bits // 8)
    if choice.provider is ENHANCED and len(key) == _SHORT_KEY_BYTES:
        key += _PADDED_ZEROS  # QB-3.1.7.1.5-17
    return key


def wrap_key(choice: Choice, key: bytes, random: Random | None = None) -> bytes:
    """The SIMPLEBLOB that takes a key to its receiver (QB-3.1.7.1.5-18)."""
    return SimpleBlob(choice.algorithm, rsa.encrypt(choice.public_key, key, random)).encode()


def unwrap_key(pair: RsaKeyPair, algorithm: int, blob: bytes, *, allow_weak: bool = False) -> bytes:
    """The key in a SIMPLEBLOB (QB-3.1.5.8.3-27). DecryptionError if it is none for us."""
    if pair.public.is_legacy and not allow_weak:
        raise WeakAlgorithmError(f"an RSA key of {pair.public.bits} bits")
    try:
        found = SimpleBlob.decode(blob)
    except WireError as error:
        raise DecryptionError from error
    if found.session_key_algorithm != algorithm or algorithm not in KEY_SIZES:
        raise DecryptionError
    key = rsa.decrypt(pair, found.encrypted_key)
    if len(key) not in KEY_SIZES[algorithm]:
        raise DecryptionError
    return key


def pair_for(pairs: Sequence[RsaKeyPair], algorithm: int, blob: bytes) -> RsaKeyPair:
    """Which of our pairs a SIMPLEBLOB was made for. DecryptionError if it is none of them.

    Of a pair that it was not made for, the library makes up a key; its length is that of a real one
    in one of a hundred cases. Only then it is looked closer, which takes 50 times as long.
    """
    if len(pairs) == 1:
        return pairs[0]  # `unwrap_key` says whether it is the right one
    try:
        sealed = bytes(SimpleBlob.decode(blob).encrypted_key)
    except WireError as error:
        raise DecryptionError from error
    found = [pair for pair in pairs if _could_open(pair, algorithm, sealed)]
    if len(found) > 1:
        found = [pair for pair in found if rsa.is_for(pair, sealed)]
    if not found:
        raise DecryptionError
    return found[0]


def _could_open(pair: RsaKeyPair, algorithm: int, sealed: bytes) -> bool:
    try:
        return len(rsa.decrypt(pair, sealed)) in KEY_SIZES.get(algorithm, ())
    except DecryptionError:
        return False


def is_reduced(provider: Provider, algorithm: int, key: bytes) -> bool:
    """Whether an Enhanced RC2 key has only 40 bits of chance (QB-3.1.5.8.3-32)."""
    return provider is ENHANCED and algorithm == CALG_RC2 and key.endswith(_PADDED_ZEROS)


def _choice(provider: Provider, key: RsaPublicKey, settings: EncryptionSettings) -> Choice:
    if provider is ADVANCED:
        algorithm = settings.preferred_advanced_algorithm
        (size,) = KEY_SIZES[algorithm]
        return Choice(provider, algorithm, 8 * size, key)
    if provider is BASE:
        return Choice(provider, settings.preferred_base_algorithm, 40, key)
    algorithm = settings.preferred_enhanced_algorithm
    is_short = algorithm == CALG_RC2 and settings.send_enhanced_rc2_using_40_bit_keys
    return Choice(provider, algorithm, 40 if is_short else 128, key)  # QB-3.1.1.3-13


def _checked(choice: Choice, *, allow_weak: bool) -> Choice:
    if not allow_weak and choice.provider.is_weak:
        raise WeakAlgorithmError(f"the {choice.provider.name}, all that the receiver has,")
    if not allow_weak and choice.public_key.is_legacy:
        raise WeakAlgorithmError(f"the receiver's RSA key of {choice.public_key.bits} bits")
    return choice
