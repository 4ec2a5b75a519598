"""MQUSERSIGNCERTS: the certificates a user signs with, in the directory (MQMQ 2.2.21, 2.2.22)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.wire.reader import Layout, Reader, Structure

_CERTIFICATE: Final = Layout(
    "MQUSERSIGNCERT", "16s16sI", "Digest", "Identifier", "CertificateLength"
)
_CERTIFICATES: Final = Layout("MQUSERSIGNCERTS", "I", "CertificateCount")


@dataclass(slots=True)
class UserSignCert(Structure):
    """A certificate (X.509 in DER), its GUID and its MD5 digest.

    The digest is how the directory finds a certificate; it proves nothing. `registered` computes
    it. One that does not fit decodes, `is_digest_right` tells.
    """

    identifier: bytes
    certificate: bytes
    digest: bytes

    @classmethod
    def registered(cls, identifier: bytes, certificate: bytes) -> Self:
        """The entry for a certificate under a GUID of the caller's (MQ-2.2.22-02)."""
        return cls(identifier, certificate, certificate_digest(certificate))

    @property
    def is_digest_right(self) -> bool:
        return self.digest == certificate_digest(self.certificate)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MQUSERSIGNCERT")
        digest, identifier, size = reader.fixed(_CERTIFICATE)
        certificate = bytes(reader.take(size, "Certificate"))
        reader.leave(outer)
        return cls(identifier, certificate, digest)

    def encode(self) -> bytes:
        size = len(self.certificate)
        return _CERTIFICATE.pack(self.digest, self.identifier, size) + self.certificate


@dataclass(slots=True)
class UserSignCerts(Structure):
    """All certificates of a user."""

    certificates: list[UserSignCert] = field(default_factory=list)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MQUSERSIGNCERTS")
        (count,) = reader.fixed(_CERTIFICATES)
        if count > reader.remaining // _CERTIFICATE.size:
            problem = f"{count} certificates do not fit {reader.remaining} bytes"
            raise reader.refuse(_CERTIFICATES, "CertificateCount", problem)
        certificates = [UserSignCert.read(reader) for _ in range(count)]
        reader.leave(outer)
        return cls(certificates)

    def encode(self) -> bytes:
        certificates = b"".join([certificate.encode() for certificate in self.certificates])
        return _CERTIFICATES.pack(len(self.certificates)) + certificates


def certificate_digest(certificate: bytes) -> bytes:
    return hashlib.md5(certificate, usedforsecurity=False).digest()
