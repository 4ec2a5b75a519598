"""The symmetric ciphers of message bodies, as CryptoAPI uses them (MQQB 3.1.5.8.3, QB-A21).

    AES-128, -192, -256   CBC, the first block mixed with zeros, padded as PKCS #7 says
    RC2                   the same, as many effective bits as the key has
    RC4                   as it is, nothing is padded

RC2 and RC4 are refused unless `allow_weak`. None of them shows whether a body was changed on its
way: that is what signatures are for.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from falconmq.security import library
from falconmq.security.problems import DecryptionError, EncryptionError, WeakAlgorithmError
from falconmq.security.rc2 import BLOCK_SIZE as RC2_BLOCK_SIZE
from falconmq.security.rc2 import Rc2
from falconmq.wire.simple_blob import CALG_AES_128, CALG_AES_192, CALG_AES_256, CALG_RC2, CALG_RC4

NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {
        CALG_RC2: "RC2",
        CALG_RC4: "RC4",
        CALG_AES_128: "AES-128",
        CALG_AES_192: "AES-192",
        CALG_AES_256: "AES-256",
    }
)
KEY_SIZES: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        CALG_RC2: (5, 16),
        CALG_RC4: (5, 16),
        CALG_AES_128: (16,),
        CALG_AES_192: (24,),
        CALG_AES_256: (32,),
    }
)
WEAK: Final = frozenset({CALG_RC2, CALG_RC4})
_AES_BLOCK_SIZE: Final = 16


def encrypt(algorithm: int, key: bytes, data: bytes, *, allow_weak: bool = False) -> bytes:
    """A body as it goes over the wire. EncryptionError if the key does not fit the algorithm."""
    if algorithm not in NAMES or len(key) not in KEY_SIZES[algorithm]:
        raise EncryptionError(f"a key of {len(key)} bytes is none for algorithm {algorithm:#x}")
    _check_weak(algorithm, allow_weak=allow_weak)
    if algorithm == CALG_RC4:
        return _rc4(key, data)
    if algorithm == CALG_RC2:
        return Rc2(key, 8 * len(key)).encrypt_cbc(_padded(data, RC2_BLOCK_SIZE))
    encryptor = _aes(key).encryptor()
    sealed: bytes = encryptor.update(_padded(data, _AES_BLOCK_SIZE)) + encryptor.finalize()
    return sealed


def decrypt(algorithm: int, key: bytes, data: bytes, *, allow_weak: bool = False) -> bytes:
    """A body as it was. DecryptionError if it is none of this key."""
    if algorithm not in NAMES:
        raise DecryptionError(f"{algorithm:#x} is no encryption algorithm of MSMQ")
    _check_weak(algorithm, allow_weak=allow_weak)
    if len(key) not in KEY_SIZES[algorithm]:
        raise DecryptionError
    if algorithm == CALG_RC4:
        return _rc4(key, data)
    size = RC2_BLOCK_SIZE if algorithm == CALG_RC2 else _AES_BLOCK_SIZE
    if not data or len(data) % size:
        raise DecryptionError
    if algorithm == CALG_RC2:
        return _unpadded(Rc2(key, 8 * len(key)).decrypt_cbc(data), size)
    decryptor = _aes(key).decryptor()
    return _unpadded(decryptor.update(data) + decryptor.finalize(), size)


def _check_weak(algorithm: int, *, allow_weak: bool) -> None:
    if algorithm in WEAK and not allow_weak:
        raise WeakAlgorithmError(NAMES[algorithm])


def _rc4(key: bytes, data: bytes) -> bytes:
    ciphers = library.load("hazmat.primitives.ciphers")
    algorithms = library.load("hazmat.decrepit.ciphers.algorithms")
    worker = ciphers.Cipher(algorithms.ARC4(key), mode=None).encryptor()
    made: bytes = worker.update(data) + worker.finalize()
    return made


def _aes(key: bytes) -> Any:
    ciphers = library.load("hazmat.primitives.ciphers")
    algorithms = library.load("hazmat.primitives.ciphers.algorithms")
    modes = library.load("hazmat.primitives.ciphers.modes")
    return ciphers.Cipher(algorithms.AES(key), modes.CBC(bytes(_AES_BLOCK_SIZE)))


def _padded(data: bytes, size: int) -> bytes:
    missing = size - len(data) % size
    return data + bytes([missing]) * missing


def _unpadded(data: bytes, size: int) -> bytes:
    count = data[-1]
    if not 1 <= count <= size or data[-count:] != bytes([count]) * count:
        raise DecryptionError
    return data[:-count]
