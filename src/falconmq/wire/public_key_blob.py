"""PUBLICKEYBLOB: an RSA public key as CryptoAPI writes it (MQQB 2.4.1, MQMQ 2.2.1, 2.2.20.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.reader import Layout, Reader, Structure

BLOB_TYPE: Final = 0x06  # PUBLICKEYBLOB
BLOB_VERSION: Final = 0x02
MAGIC: Final = 0x31415352  # the bytes 52 53 41 31, "RSA1"
CALG_RSA_KEYX: Final = 0x0000A400  # a key to encrypt with
CALG_RSA_SIGN: Final = 0x00002400  # a key to sign with
KEY_ALGORITHMS: Final = (CALG_RSA_KEYX, CALG_RSA_SIGN)  # MQ-2.2.20.6-46
BIT_LENGTH_MAX: Final = 16384  # what CryptoAPI's RSA providers know at most

_LAYOUT: Final = Layout(
    "PUBLICKEYBLOB",
    "BBHIIII",
    "bType",
    "bVersion",
    "reserved",
    "aiKeyAlg",
    "magic",
    "bitLen",
    "pubExp",
)


@dataclass(slots=True)
class PublicKeyBlob(Structure):
    """The numbers n and e of an RSA key.

    `bit_length` is the length of the modulus on the wire; a whole number of bytes. Left out, it is
    that of `modulus`. The modulus is little-endian on the wire, the reverse of what RSA tools show.
    """

    modulus: int = field(repr=False)  # thousands of digits, Python refuses to print more
    public_exponent: int
    key_algorithm: int = CALG_RSA_KEYX
    bit_length: int = 0

    def __post_init__(self) -> None:
        if not self.bit_length:
            self.bit_length = (self.modulus.bit_length() + 7) // 8 * 8  # MQ-2.2.20.6-49

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("PUBLICKEYBLOB")
        kind, version, reserved, algorithm, magic, bit_length, exponent = reader.fixed(_LAYOUT)
        if kind != BLOB_TYPE:
            raise reader.refuse(_LAYOUT, "bType", f"{kind:#04x} instead of 0x06")
        if version != BLOB_VERSION:
            raise reader.refuse(_LAYOUT, "bVersion", f"{version:#04x} instead of 0x02")
        if reserved:
            raise reader.refuse(_LAYOUT, "reserved", f"{reserved:#06x} instead of 0")
        if algorithm not in KEY_ALGORITHMS:
            raise reader.refuse(_LAYOUT, "aiKeyAlg", f"{algorithm:#010x} is no RSA key")
        if magic != MAGIC:
            raise reader.refuse(_LAYOUT, "magic", f"{magic:#010x} instead of RSA1")
        if _bad_bit_length(bit_length):
            raise reader.refuse(_LAYOUT, "bitLen", f"{bit_length} is no length of an RSA modulus")
        modulus = int.from_bytes(reader.take(bit_length // 8, "modulus"), "little")
        reader.leave(outer)
        return cls(modulus, exponent, algorithm, bit_length)

    def encode(self) -> bytes:
        bits = self.bit_length
        if self.key_algorithm not in KEY_ALGORITHMS:
            raise WireError("PUBLICKEYBLOB", "aiKeyAlg", f"{self.key_algorithm:#x} is no RSA key")
        if _bad_bit_length(bits):
            raise WireError("PUBLICKEYBLOB", "bitLen", f"{bits} is no length of an RSA modulus")
        if self.modulus < 0 or self.modulus.bit_length() > bits:  # QB-2.4.1-05
            raise WireError("PUBLICKEYBLOB", "modulus", f"does not fit {bits} bits")
        numbers = (self.key_algorithm, MAGIC, bits, self.public_exponent)
        header = _LAYOUT.pack(BLOB_TYPE, BLOB_VERSION, 0, *numbers)
        return header + self.modulus.to_bytes(bits // 8, "little")


def _bad_bit_length(bits: int) -> bool:
    return not 0 < bits <= BIT_LENGTH_MAX or bits % 8 != 0
