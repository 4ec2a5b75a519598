"""X.509 certificates of users: made, read, compared (MQMQ 2.2.21, 2.2.22; MQQB 3.1.5.8.3).

An internal certificate is one that the queue manager made for a user and signed itself; it says
nothing that the list it is registered in does not say better. An external one comes from elsewhere.
Nobody checks who issued a certificate: a receiver compares it, byte for byte, with those that are
registered for the sender.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from falconmq.security import library
from falconmq.security.problems import CertificateError
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey, library_key
from falconmq.wire.security_header import SENDER_CERT_SIZE_MAX
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts

USER_KEY_BITS: Final = 2048  # of the pairs that internal certificates are made for
_ORGANIZATION: Final = "FalconMQ internal certificate"
_PEM: Final = b"-----BEGIN"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What people want to know of a certificate. `data` is its DER."""

    data: bytes = field(repr=False)
    subject: str
    issuer: str
    serial_number: int
    not_before: datetime
    not_after: datetime
    public_key: RsaPublicKey


def create_certificate(
    owner: Sid, pair: RsaKeyPair, now: float, lifetime_seconds: float, serial_number: int
) -> bytes:
    """A certificate that a user's pair signed for itself, in DER; `now` in seconds since 1970."""
    x509 = library.load("x509")
    hashes = library.load("hazmat.primitives.hashes")
    serialization = library.load("hazmat.primitives.serialization")
    if pair.public.is_legacy:
        raise CertificateError(f"an RSA key of {pair.public.bits} bits is too short to sign with")
    name = _name(x509, owner)
    private_key = library_key(pair)
    begins = datetime.fromtimestamp(int(now), UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private_key.public_key())
        .serial_number(serial_number)
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(seconds=int(lifetime_seconds)))
        .sign(private_key, hashes.SHA256())
    )
    data: bytes = made.public_bytes(serialization.Encoding.DER)
    return data


def read_certificate(data: bytes) -> Certificate:
    """A certificate from its DER or PEM. CertificateError if it is none, or none for MSMQ."""
    x509 = library.load("x509")
    serialization = library.load("hazmat.primitives.serialization")
    unsupported = library.load("exceptions").UnsupportedAlgorithm
    try:
        is_pem = data.lstrip().startswith(_PEM)
        load = x509.load_pem_x509_certificate if is_pem else x509.load_der_x509_certificate
        found = load(data)
        der = found.public_bytes(serialization.Encoding.DER)
        certificate = Certificate(
            der,
            found.subject.rfc4514_string(),
            found.issuer.rfc4514_string(),
            found.serial_number,
            found.not_valid_before_utc,
            found.not_valid_after_utc,
            _public_key(found),
        )
    except (ValueError, TypeError, x509.InvalidVersion, unsupported) as error:
        raise CertificateError("this is no X.509 certificate, neither DER nor PEM") from error
    if len(der) > SENDER_CERT_SIZE_MAX:
        raise CertificateError(f"{len(der)} bytes of certificate do not fit a message")
    return certificate


@lru_cache(maxsize=64)
def public_key_of(data: bytes) -> RsaPublicKey:
    """The key of a certificate that came with a message."""
    return read_certificate(data).public_key


def to_pem(data: bytes) -> str:
    """A certificate as text."""
    x509 = library.load("x509")
    serialization = library.load("hazmat.primitives.serialization")
    text: bytes = x509.load_der_x509_certificate(data).public_bytes(serialization.Encoding.PEM)
    return text.decode("ascii")


def sign_certs(entries: Iterable[tuple[bytes, bytes]]) -> UserSignCerts:
    """The MQUSERSIGNCERTS of a user: pairs of a GUID and a certificate."""
    return UserSignCerts(
        [UserSignCert.registered(identifier, certificate) for identifier, certificate in entries]
    )


def registered_as(certificate: bytes, registered: UserSignCerts) -> UserSignCert | None:
    """The entry of a user's list that has exactly these bytes (QB-3.1.5.8.3-12).

    The digest beside an entry is not asked: it is MD5, and anybody can make two certificates alike.
    """
    return next(
        (entry for entry in registered.certificates if entry.certificate == certificate), None
    )


def _public_key(found: Any) -> RsaPublicKey:
    key = found.public_key()
    if not isinstance(key, library.load("hazmat.primitives.asymmetric.rsa").RSAPublicKey):
        raise CertificateError(
            "the certificate has no RSA key", hint="MSMQ signs with RSA and nothing else"
        )
    numbers = key.public_numbers()
    return RsaPublicKey(numbers.n, numbers.e)


def _name(x509: Any, owner: Sid) -> Any:
    oid = x509.NameOID
    return x509.Name(
        [
            x509.NameAttribute(oid.ORGANIZATIONAL_UNIT_NAME, _ORGANIZATION),
            x509.NameAttribute(oid.COMMON_NAME, str(owner)),
        ]
    )
