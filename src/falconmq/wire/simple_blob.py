"""SIMPLEBLOB: a session key under a receiver's RSA key, as CryptoAPI writes it (MQQB 2.4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.public_key_blob import BLOB_VERSION, CALG_RSA_KEYX
from falconmq.wire.reader import Layout, Reader, Structure

BLOB_TYPE: Final = 0x01  # SIMPLEBLOB
CALG_RC2: Final = 0x00006602
CALG_AES_128: Final = 0x0000660E
CALG_AES_192: Final = 0x0000660F
CALG_AES_256: Final = 0x00006610
CALG_RC4: Final = 0x00006801
SESSION_KEY_ALGORITHMS: Final = (CALG_RC2, CALG_AES_128, CALG_AES_192, CALG_AES_256, CALG_RC4)

HEADER_SIZE: Final = 12
_LAYOUT: Final = Layout(
    "SIMPLEBLOB",
    "BBHII",
    "bType",
    "bVersion",
    "reserved",
    "sessionKeyAlgorithm",
    "keyAlgorithm",
)


@dataclass(slots=True)
class SimpleBlob(Structure):
    """What SecurityData.EncryptionKey holds.

    `encrypted_key` is the octet string of RSAES-PKCS1-v1_5, big-endian as RSA libraries take and
    give it; the wire has it back to front (QB-2.4.2-03). It is as long as the receiver's modulus
    (QB-A19); nothing in the blob says so, hence a decoder takes all that its part holds.
    An algorithm we do not know decodes: refusing the message, not the session, is the answer to it.
    """

    session_key_algorithm: int
    encrypted_key: bytes

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SIMPLEBLOB")
        kind, version, reserved, session_key_algorithm, algorithm = reader.fixed(_LAYOUT)
        if kind != BLOB_TYPE:
            raise reader.refuse(_LAYOUT, "bType", f"{kind:#04x} instead of 0x01")
        if version != BLOB_VERSION:
            raise reader.refuse(_LAYOUT, "bVersion", f"{version:#04x} instead of 0x02")
        if reserved:
            raise reader.refuse(_LAYOUT, "reserved", f"{reserved:#06x} instead of 0")
        if algorithm != CALG_RSA_KEYX:
            raise reader.refuse(_LAYOUT, "keyAlgorithm", f"{algorithm:#010x} instead of 0xA400")
        if not reader.remaining:
            raise reader.error("encryptedKey", "is missing")
        encrypted_key = bytes(reader.take(reader.remaining, "encryptedKey")[::-1])
        reader.leave(outer)
        return cls(session_key_algorithm, encrypted_key)

    def encode(self) -> bytes:
        algorithm = self.session_key_algorithm
        if algorithm not in SESSION_KEY_ALGORITHMS:  # QB-2.4.2-02
            raise WireError("SIMPLEBLOB", "sessionKeyAlgorithm", f"{algorithm:#x} is unknown")
        if not self.encrypted_key:
            raise WireError("SIMPLEBLOB", "encryptedKey", "is missing")
        header = _LAYOUT.pack(BLOB_TYPE, BLOB_VERSION, 0, algorithm, CALG_RSA_KEYX)
        return header + self.encrypted_key[::-1]
