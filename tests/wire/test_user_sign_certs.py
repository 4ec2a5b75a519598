"""MQUSERSIGNCERTS and MQUSERSIGNCERT, MQMQ 2.2.21 and 2.2.22."""

from __future__ import annotations

import datetime as dt
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts
from tests.strategies.keys import user_sign_cert_lists, user_sign_certs
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

DIGEST = bytes(range(0x20, 0x30))
IDENTIFIER = bytes(range(0x30, 0x40))
CERT_BYTES = DIGEST + IDENTIFIER + bytes.fromhex("05000000") + b"x.509"
CERT = UserSignCert(IDENTIFIER, b"x.509", DIGEST)
EMPTY_BYTES = IDENTIFIER + DIGEST + bytes(4)
EMPTY = UserSignCert(DIGEST, b"", IDENTIFIER)
BYTES = bytes.fromhex("02000000") + CERT_BYTES + EMPTY_BYTES


@pytest.mark.requirement("DM-3.1.1.15-06", "DM-3.1.1.15-07", "DM-3.1.1.15-08")
@pytest.mark.requirement("MQ-2.2.22-02", "MQ-2.2.22-03", "MQ-2.2.22-04")
def test_every_field_stands_at_its_offset() -> None:
    assert UserSignCert.decode(CERT_BYTES) == CERT
    assert CERT.encode() == CERT_BYTES


@pytest.mark.requirement("DM-3.1.1.15-05")
@pytest.mark.requirement("MQ-2.2.22-01")
@given(st.binary(max_size=100))
def test_the_digest_is_the_md5_of_the_certificate(certificate: bytes) -> None:
    entry = UserSignCert.registered(IDENTIFIER, certificate)
    assert entry.encode()[:16] == hashlib.md5(certificate).digest()
    assert entry.is_digest_right
    assert UserSignCert.decode(entry.encode()).is_digest_right


def test_a_wrong_digest_decodes_and_shows() -> None:
    assert not UserSignCert.decode(CERT_BYTES).is_digest_right


@pytest.mark.requirement("MQ-2.2.22-04")
def test_an_x509_certificate_comes_back_whole() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a user")])
    day = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    data = UserSignCerts([UserSignCert.registered(IDENTIFIER, der)]).encode()
    (entry,) = UserSignCerts.decode(data).certificates
    assert x509.load_der_x509_certificate(entry.certificate) == certificate
    assert entry.is_digest_right


@pytest.mark.requirement("DM-3.1.1.15-04")
@pytest.mark.requirement("MQ-2.2.21-01", "MQ-2.2.21-02")
def test_certificates_follow_each_other_behind_their_count() -> None:
    assert UserSignCerts.decode(BYTES) == UserSignCerts([CERT, EMPTY])
    assert UserSignCerts([CERT, EMPTY]).encode() == BYTES
    assert UserSignCerts().encode() == bytes(4)


@pytest.mark.parametrize("count", [3, 1000, 0xFFFFFFFF])
def test_a_count_that_cannot_fit_is_refused(count: int) -> None:
    with pytest.raises(WireError) as caught:
        UserSignCerts.decode(count.to_bytes(4, "little") + BYTES[4:])
    assert (caught.value.field, caught.value.offset) == ("CertificateCount", 0)


@pytest.mark.parametrize("size", [6, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_certificate_past_the_end_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="Certificate"):
        UserSignCert.decode(CERT_BYTES[:32] + size.to_bytes(4, "little") + CERT_BYTES[36:])


@given(user_sign_certs)
def test_a_certificate_makes_a_round_trip(certificate: UserSignCert) -> None:
    assert_round_trip(certificate)


@given(user_sign_cert_lists)
def test_certificates_make_a_round_trip(certificates: UserSignCerts) -> None:
    assert_round_trip(certificates)


@given(st.binary(max_size=64))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(UserSignCert.decode, data)
    assert_decodes_or_refuses(UserSignCerts.decode, data)


@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(index: int, byte: int) -> None:
    changed = BYTES[:index] + bytes([byte]) + BYTES[index + 1 :]
    assert_decodes_or_refuses(UserSignCerts.decode, changed)


def test_cut_certificates_are_refused() -> None:
    assert_every_cut_is_refused(UserSignCerts.decode, BYTES)


@pytest.mark.parametrize(
    ("certificate", "field"),
    [
        (UserSignCert(bytes(15), b"", DIGEST), "Identifier"),
        (UserSignCert(IDENTIFIER, b"", bytes(17)), "Digest"),
    ],
)
def test_impossible_values_are_refused_by_name(certificate: UserSignCert, field: str) -> None:
    with pytest.raises(WireError) as caught:
        certificate.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)
