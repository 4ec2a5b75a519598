"""Signatures and encrypted bodies by hand (MQMQ 2.2.20.6, 2.5; MQQB 2.4, 3.1.7.1.5).

Like `packets`, nothing here comes from FalconMQ: what the daemon cannot open or verify, it got
wrong. Only the package `cryptography` is used, as everybody uses it.
"""

from __future__ import annotations

import base64
import os
import struct
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.conformance_wire import packets

AES_128, AES_192, AES_256, RC4 = 0x660E, 0x660F, 0x6610, 0x6801
SHA1, SHA256, SHA512 = 0x8004, 0x800C, 0x800E
BASE, ENHANCED, ADVANCED = 1, 3, 5  # PrivacyLevel
ENCRYPTED, DEFAULT_PROVIDER, WITH_DATA = 0x20, 0x40, 0x80  # SecurityHeader.Flags
SID: Final = bytes.fromhex("0105000000000005150000000700000008000000090000") + b"\0" + b"\xe9\3\0\0"
SID_TEXT: Final = "S-1-5-21-7-8-9-1001"
OTHER_SID: Final = SID[:-4] + b"\xea\3\0\0"
_KEY_SIZES: Final = {AES_128: 16, AES_192: 24, AES_256: 32, RC4: 16}
_HASHES: Final[dict[int, Any]] = {
    SHA1: hashes.SHA1(),  # what old senders use
    SHA256: hashes.SHA256(),
    SHA512: hashes.SHA512(),
}


@dataclass(frozen=True)
class User:
    """Somebody with a key and a certificate."""

    key: rsa.RSAPrivateKey
    certificate: bytes

    @property
    def pem(self) -> str:
        found = x509.load_der_x509_certificate(self.certificate)
        return found.public_bytes(serialization.Encoding.PEM).decode()


@cache
def user(name: str = "anna") -> User:
    key = rsa.generate_private_key(65537, 1024)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return User(key, made.public_bytes(serialization.Encoding.DER))


def public_key(document: dict[str, str], level: int = ADVANCED) -> rsa.RSAPublicKey:
    """A key of a daemon, from what it exports: three PUBLICKEYBLOBs, one behind the other."""
    blobs = base64.b64decode(document["encryption"]).split(b"RSA1")[1:]
    blob = blobs[(BASE, ENHANCED, ADVANCED).index(level)]
    bits, exponent = struct.unpack_from("<II", blob)
    modulus = int.from_bytes(blob[8 : 8 + bits // 8], "little")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def simple_blob(key: rsa.RSAPublicKey, algorithm: int, secret: bytes) -> bytes:
    """SIMPLEBLOB: a key under an RSA key, its bytes back to front."""
    sealed = key.encrypt(secret, padding.PKCS1v15())[::-1]
    return struct.pack("<BBHII", 1, 2, 0, algorithm, 0xA400) + sealed


def encrypted(
    headers: packets.Headers, key: rsa.RSAPublicKey, algorithm: int = AES_256
) -> packets.Headers:
    """The message with its body encrypted; what its SecurityHeader held stays there."""
    secret = os.urandom(_KEY_SIZES[algorithm])
    blob = simple_blob(key, algorithm, secret)
    return replace(
        headers,
        body=_sealed(algorithm, secret, headers.body),
        privacy=ENHANCED if algorithm == RC4 else ADVANCED,
        cipher=algorithm,
        parts=replace(
            headers.parts, flags=headers.parts.flags | ENCRYPTED | WITH_DATA, encryption_key=blob
        ),
    )


def _sealed(algorithm: int, secret: bytes, body: bytes) -> bytes:
    if algorithm == RC4:
        return Cipher(ARC4(secret), mode=None).encryptor().update(body)
    missing = 16 - len(body) % 16
    cipher = Cipher(algorithms.AES(secret), modes.CBC(bytes(16))).encryptor()
    return cipher.update(body + bytes([missing]) * missing) + cipher.finalize()


def signed(
    headers: packets.Headers,
    who: User,
    *,
    algorithm: int = SHA512,
    first_list: bool = False,
    sid: bytes = SID,
) -> packets.Headers:
    """The message with a signature over the second list of properties, or over the first."""
    data = headers.correlation + struct.pack("<I", headers.tag) + headers.body
    if headers.label:
        data += (headers.label + "\0").encode("utf-16-le")
    data += _unpadded(headers.response) + _unpadded(headers.admin)
    if not first_list:
        journal = bool(headers.flags & packets.JOURNAL_POSITIVE) << 1
        journal |= bool(headers.flags & packets.JOURNAL_NEGATIVE)
        priority = 0 if headers.transaction is not None else headers.priority
        data += headers.source + bytes([headers.flags >> 5 & 3, priority])
        data += bytes([journal, headers.acknowledgements & 0x0F])
        data += struct.pack("<HI", headers.message_class, headers.body_type)
        data += _unpadded(headers.destination)
    signature = who.key.sign(data, padding.PKCS1v15(), _HASHES[algorithm])[::-1]
    flags = 1 | DEFAULT_PROVIDER | WITH_DATA
    parts = packets.Security(flags, sid, b"", signature, who.certificate)
    return replace(headers, hash_algorithm=algorithm, parts=parts)


def _unpadded(name: bytes) -> bytes:
    """A direct name without what only fills it up."""
    if not name:
        return b""
    (size,) = struct.unpack_from("<H", name)
    return name[: 2 + size]
