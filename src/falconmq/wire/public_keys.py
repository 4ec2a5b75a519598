"""MQDSPUBLICKEYS: the public keys of a computer in the directory (MQMQ 2.2.1, 2.2.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.public_key_blob import CALG_RSA_KEYX, PublicKeyBlob
from falconmq.wire.reader import Layout, Reader, Structure, encode_utf16

PROV_RSA_FULL: Final = 0x00000001
PROV_RSA_AES: Final = 0x00000018
PROVIDER_TYPES: Final = (PROV_RSA_FULL, PROV_RSA_AES)  # MQ-2.2.1-04

_KEY: Final = Layout("MQDSPUBLICKEY", "III", "ulKeyLen", "ulProviderLen", "ulProviderType")
_KEYS: Final = Layout("MQDSPUBLICKEYS", "II", "ulLen", "cNumofKeys")


@dataclass(slots=True)
class PublicKey(Structure):
    """One key and the provider it belongs to. `key_blob` holds the bytes of a PublicKeyBlob."""

    provider_name: str
    provider_type: int
    key_blob: bytes

    @property
    def public_key(self) -> PublicKeyBlob:
        return PublicKeyBlob.decode(self.key_blob)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MQDSPUBLICKEY")
        key_size, name_size, provider_type = reader.fixed(_KEY)
        if provider_type not in PROVIDER_TYPES:
            problem = f"{provider_type:#x} is neither PROV_RSA_FULL nor PROV_RSA_AES"
            raise reader.refuse(_KEY, "ulProviderType", problem)
        name_part = reader.part(name_size, "sProviderName")
        provider_name = name_part.text("sProviderName")
        name_part.finish("sProviderName")
        start = reader.position
        key_part = reader.part(key_size, "aBuf")
        key = PublicKeyBlob.read(key_part)
        key_part.finish("aBuf")
        if key.key_algorithm != CALG_RSA_KEYX:  # MQ-2.2.1-08
            raise reader.error("aBuf", "holds a signing key")
        reader.leave(outer)
        return cls(provider_name, provider_type, bytes(reader.buffer[start : reader.position]))

    def encode(self) -> bytes:
        if self.provider_type not in PROVIDER_TYPES:
            problem = f"{self.provider_type:#x} is neither PROV_RSA_FULL nor PROV_RSA_AES"
            raise WireError("MQDSPUBLICKEY", "ulProviderType", problem)
        if "\0" in self.provider_name:
            raise WireError("MQDSPUBLICKEY", "sProviderName", "holds a NUL")
        self._check_key_blob()
        name = encode_utf16(self.provider_name) + b"\0\0"
        return _KEY.pack(len(self.key_blob), len(name), self.provider_type) + name + self.key_blob

    def _check_key_blob(self) -> None:
        try:
            key = self.public_key
        except WireError as error:
            raise WireError("MQDSPUBLICKEY", "aBuf", f"no RSA key: {error.problem}") from error
        if key.key_algorithm != CALG_RSA_KEYX:
            raise WireError("MQDSPUBLICKEY", "aBuf", "holds a signing key")
        if len(key.encode()) != len(self.key_blob):
            raise WireError("MQDSPUBLICKEY", "aBuf", "holds more than an RSA key")


@dataclass(slots=True)
class PublicKeys(Structure):
    """All keys of a computer, one for each provider."""

    keys: list[PublicKey] = field(default_factory=list)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MQDSPUBLICKEYS")
        size, count = reader.fixed(_KEYS)
        if size < _KEYS.size:
            raise reader.refuse(_KEYS, "ulLen", f"{size} is less than the {_KEYS.size} of itself")
        if count > (size - _KEYS.size) // _KEY.size:
            raise reader.refuse(_KEYS, "cNumofKeys", f"{count} keys do not fit {size} bytes")
        part = reader.part(size - _KEYS.size, "aPublicKeys")
        keys = [PublicKey.read(part) for _ in range(count)]
        part.finish("aPublicKeys")  # MQ-2.2.2-02
        reader.leave(outer)
        return cls(keys)

    def encode(self) -> bytes:
        keys = b"".join([key.encode() for key in self.keys])
        return _KEYS.pack(_KEYS.size + len(keys), len(self.keys)) + keys
