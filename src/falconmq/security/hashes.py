"""The hash algorithms that MSMQ lists (MQMQ 2.2.19.3), and which of them are used here.

MD2 and MD4 are known by name and never computed: whoever can read one signed message can make
another one that fits its signature. MD5 and SHA-1 are weak, and for administrators to allow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from falconmq.errors import MqStatus
from falconmq.security.problems import SignatureError, WeakAlgorithmError
from falconmq.wire.message_properties_header import (
    HASH_MD2,
    HASH_MD4,
    HASH_MD5,
    HASH_SHA1,
    HASH_SHA256,
    HASH_SHA512,
)


@dataclass(frozen=True, slots=True)
class Hash:
    """A hash and how a signature names it: the DER in front of the digest (RFC 3447 9.2)."""

    name: str
    digest_info_prefix: bytes
    is_weak: bool

    def digest(self, data: bytes) -> bytes:
        return hashlib.new(self.name, data, usedforsecurity=False).digest()

    def digest_info(self, data: bytes) -> bytes:
        return self.digest_info_prefix + self.digest(data)


HASHES: Final[Mapping[int, Hash]] = MappingProxyType(
    {
        HASH_MD5: Hash("md5", bytes.fromhex("3020300c06082a864886f70d020505000410"), is_weak=True),
        HASH_SHA1: Hash("sha1", bytes.fromhex("3021300906052b0e03021a05000414"), is_weak=True),
        HASH_SHA256: Hash(
            "sha256", bytes.fromhex("3031300d060960864801650304020105000420"), is_weak=False
        ),
        HASH_SHA512: Hash(
            "sha512", bytes.fromhex("3051300d060960864801650304020305000440"), is_weak=False
        ),
    }
)
_BROKEN: Final[Mapping[int, str]] = MappingProxyType({HASH_MD2: "MD2", HASH_MD4: "MD4"})


def hash_of(algorithm: int, *, allow_weak: bool = False) -> Hash:
    """The hash that a packet names; SignatureError or WeakAlgorithmError if it is not for use."""
    found = HASHES.get(algorithm)
    if found is None:
        name = _BROKEN.get(algorithm, "")
        problem = f"{name} is broken and never used" if name else f"{algorithm:#x} is no hash"
        raise SignatureError(
            f"hash algorithm: {problem}",
            status=MqStatus.CANNOT_CREATE_HASH_EX,
            hint="the sender should sign with SHA-512",
        )
    if found.is_weak and not allow_weak:
        raise WeakAlgorithmError(f"the hash {found.name.upper()}")
    return found
