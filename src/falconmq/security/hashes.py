"""The hash algorithms that MSMQ lists (MQMQ 2.2.19.3), and which of them are used here.

MD2, MD4, MD5 and SHA-1 are weak, and for administrators to allow, each peer by its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from falconmq.errors import MqStatus
from falconmq.security import old_hashes
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
    compute: Callable[[bytes], bytes] | None = None  # None: the library does

    def digest(self, data: bytes) -> bytes:
        if self.compute is None:
            return hashlib.new(self.name, data, usedforsecurity=False).digest()
        if len(data) > old_hashes.BYTES_MAX:
            raise SignatureError(
                f"{len(data)} bytes are too many for {self.name.upper()}",
                status=MqStatus.CANNOT_CREATE_HASH_EX,
                hint="the sender should sign with SHA-512",
            )
        return self.compute(data)

    def digest_info(self, data: bytes) -> bytes:
        return self.digest_info_prefix + self.digest(data)


HASHES: Final[Mapping[int, Hash]] = MappingProxyType(
    {
        HASH_MD2: Hash(
            "md2",
            bytes.fromhex("3020300c06082a864886f70d020205000410"),
            is_weak=True,
            compute=old_hashes.md2,
        ),
        HASH_MD4: Hash(
            "md4",
            bytes.fromhex("3020300c06082a864886f70d020405000410"),
            is_weak=True,
            compute=old_hashes.md4,
        ),
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


def hash_of(algorithm: int, *, allow_weak: bool = False) -> Hash:
    """The hash that a packet names; SignatureError or WeakAlgorithmError if it is not for use."""
    found = HASHES.get(algorithm)
    if found is None:
        raise SignatureError(
            f"hash algorithm: {algorithm:#x} is no hash",
            status=MqStatus.CANNOT_CREATE_HASH_EX,
            hint="the sender should sign with SHA-512",
        )
    if found.is_weak and not allow_weak:
        raise WeakAlgorithmError(f"the hash {found.name.upper()}")
    return found
