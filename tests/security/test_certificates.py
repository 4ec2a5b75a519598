"""Certificates of users, and the file that keeps them."""

from __future__ import annotations

import contextlib
import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.errors import MqStatus
from falconmq.security import rsa
from falconmq.security.certificate_store import CertificateStore
from falconmq.security.certificates import create_certificate, read_certificate, to_pem
from falconmq.security.problems import (
    CertificateError,
    CertificateExistsError,
    CryptographyMissingError,
    KeyFileError,
    UnknownEntryError,
)
from falconmq.security.rsa import RsaKeyPair
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCerts, certificate_digest
from tests.security import known
from tests.security.packets import ANNA

BERT = Sid.parse("S-1-5-21-7-8-9-1002")
NOW = 1_700_000_000.0
YEAR = 365 * 86_400
# An Ed25519 certificate of openssl: MSMQ knows RSA only.
NO_RSA = b"""\
-----BEGIN CERTIFICATE-----
MIIBLjCB4aADAgECAhRVW3aI8srsF8scs60nho1AyPTjfjAFBgMrZXAwDDEKMAgG
A1UEAwwBYTAgFw0yNjExMTYxMDE1NTNaGA8yMTI2MTAyMzEwMTU1M1owDDEKMAgG
A1UEAwwBYTAqMAUGAytlcAMhABmB0fRFmXMk6iq8cfMmhtzp2bt5rFQfzwdSaBMH
TBBQo1MwUTAdBgNVHQ4EFgQUm5e4QVbEdsqESKAigPH/nIMyA6gwHwYDVR0jBBgw
FoAUm5e4QVbEdsqESKAigPH/nIMyA6gwDwYDVR0TAQH/BAUwAwEB/zAFBgMrZXAD
QQAmEa3w1P5NeRR29LStXqAAGZ2Laksguacd6N/gj7+AjZH1/okXnsJM4cbEzlEd
za6Slr72H5qTy+GvlALfc+cA
-----END CERTIFICATE-----
"""


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of 1024 bits are made ten times as fast."""
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)


@pytest.fixture
def store(tmp_path: Path) -> CertificateStore:
    return CertificateStore(tmp_path, lambda: NOW)


def test_a_certificate_says_whose_it_is_and_how_long_it_is_good() -> None:
    data = create_certificate(ANNA, known.PAIR_1024, NOW, YEAR, 77)
    found = read_certificate(data)
    assert found.data == data
    assert found.subject == found.issuer
    assert f"CN={ANNA}" in found.subject
    assert found.serial_number == 77
    assert found.not_before == datetime.fromtimestamp(NOW, UTC)
    assert found.not_after == datetime.fromtimestamp(NOW + YEAR, UTC)
    assert found.public_key == known.PAIR_1024.public


def test_a_certificate_of_openssl_is_read_in_both_forms() -> None:
    found = read_certificate(known.CERTIFICATE)
    assert (found.subject, found.serial_number) == ("CN=Anna", 7)
    assert found.public_key == known.PAIR_1024.public
    text = to_pem(known.CERTIFICATE)
    assert text.startswith("-----BEGIN CERTIFICATE-----\n")
    assert read_certificate(b"\n" + text.encode()) == found


@pytest.mark.parametrize("data", [b"", b"0", known.CERTIFICATE + b"\0", b"-----BEGIN X-----"])
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(CertificateError) as refused:
        read_certificate(data)
    assert refused.value.status is MqStatus.INVALID_CERTIFICATE


@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, len(known.CERTIFICATE) - 1), value=st.integers(0, 255))
def test_a_damaged_certificate_brings_nothing_down(place: int, value: int) -> None:
    data = bytearray(known.CERTIFICATE)
    data[place] = value
    with contextlib.suppress(CertificateError):
        read_certificate(bytes(data))


def test_a_certificate_without_an_rsa_key_is_refused() -> None:
    with pytest.raises(CertificateError, match="no RSA key") as refused:
        read_certificate(NO_RSA)
    assert "RSA and nothing else" in refused.value.hint


def test_short_keys_get_no_certificate() -> None:
    with pytest.raises(CertificateError, match="too short"):
        create_certificate(ANNA, known.PAIR_512, NOW, YEAR, 1)


@pytest.mark.requirement("DM-3.1.1.1-61")
def test_a_user_has_one_internal_certificate_at_most(store: CertificateStore) -> None:
    made = store.create(ANNA, YEAR)
    assert made.is_internal
    assert made.pair is not None
    assert made.certificate.public_key == made.pair.public
    with pytest.raises(CertificateExistsError) as refused:
        store.create(ANNA)
    assert refused.value.status is MqStatus.INTERNAL_USER_CERT_EXIST
    assert str(made.identifier) in refused.value.hint
    # others may have theirs, and external ones are not counted
    store.create(BERT)
    store.register(ANNA, known.CERTIFICATE)
    assert store.internal_of(ANNA) == made
    # when it is gone, there may be another
    store.remove(made.identifier)
    assert store.internal_of(ANNA) is None
    assert store.create(ANNA).pair != made.pair


def test_of_two_who_make_one_at_once_one_is_refused(
    store: CertificateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given somebody who makes one while our key is being made
    other = CertificateStore(tmp_path, lambda: NOW)
    generate = rsa.generate

    def slowly(bits: int, random: Random | None = None) -> RsaKeyPair:
        monkeypatch.setattr(rsa, "generate", generate)
        other.create(ANNA)
        return generate(bits, random)

    monkeypatch.setattr(rsa, "generate", slowly)
    with pytest.raises(CertificateExistsError):
        store.create(ANNA)
    assert len(store.all()) == 1


def test_certificates_are_kept_for_their_owner_alone(
    store: CertificateStore, tmp_path: Path
) -> None:
    made = store.create(ANNA)
    path = tmp_path / "certificates.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CertificateStore(tmp_path).all() == [made]
    path.chmod(0o644)
    with pytest.raises(KeyFileError, match="has mode 0644"):
        store.all()


def test_a_listing_has_everything_but_the_private_key(store: CertificateStore) -> None:
    made = store.create(ANNA, YEAR)
    registered = store.register(BERT, to_pem(known.CERTIFICATE).encode())
    assert made.pair is not None
    shown = store.listing()
    assert f"{made.pair.private_exponent:x}" not in json.dumps(shown)
    assert [each["id"] for each in shown] == [str(made.identifier), str(registered.identifier)]
    assert [each["kind"] for each in shown] == ["internal", "external"]
    assert shown[0]["user"] == str(ANNA)
    assert shown[0]["begins"] == "2023-11-14T22:13:20+00:00"
    assert shown[0]["expires"] == "2024-11-13T22:13:20+00:00"
    assert shown[0]["bits"] == 1024
    assert not shown[0]["expired"]
    assert made.shown(NOW + YEAR)["expired"]
    assert not made.shown(NOW + YEAR - 1)["expired"]
    assert shown[1]["certificate"] == to_pem(known.CERTIFICATE)
    assert "private" not in repr(made)


def test_a_certificate_is_registered_once_for_each_user(store: CertificateStore) -> None:
    store.register(ANNA, known.CERTIFICATE)
    store.register(BERT, known.CERTIFICATE)
    with pytest.raises(CertificateExistsError, match="registered for"):
        store.register(ANNA, to_pem(known.CERTIFICATE).encode())
    with pytest.raises(CertificateError):
        store.register(ANNA, b"nothing")
    assert len(store.all()) == 2


def test_a_user_s_list_is_that_of_a_directory(store: CertificateStore) -> None:
    made = store.create(ANNA)
    store.register(ANNA, known.CERTIFICATE)
    store.register(BERT, known.CERTIFICATE)
    found = UserSignCerts.decode(store.sign_certs(ANNA).encode()).certificates
    assert {each.certificate for each in found} == {made.certificate.data, known.CERTIFICATE}
    for each in found:
        assert each.digest == certificate_digest(each.certificate)
    assert made.identifier.bytes_le in {each.identifier for each in found}


def test_what_is_not_there_cannot_be_removed(store: CertificateStore, tmp_path: Path) -> None:
    with pytest.raises(UnknownEntryError) as refused:
        store.remove(UUID(int=7))
    assert "falconmq certificate list" in refused.value.hint
    assert not (tmp_path / "certificates.json").exists()


@pytest.mark.parametrize(
    "entries", [[], {"x": 1}, {str(UUID(int=1)): {}}, {"x": {"user": "S-1-1-0", "certificate": ""}}]
)
def test_a_damaged_file_is_said_to_be_damaged(
    store: CertificateStore, tmp_path: Path, entries: object
) -> None:
    path = tmp_path / "certificates.json"
    path.touch(0o600)
    path.write_text(json.dumps({"format": 1, "certificates": entries}))
    with pytest.raises(KeyFileError, match="is damaged"):
        store.all()


def test_a_missing_library_is_not_taken_for_a_damaged_file(
    store: CertificateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.register(ANNA, known.CERTIFICATE)

    def missing(name: str) -> object:
        raise CryptographyMissingError

    monkeypatch.setattr("falconmq.security.library.load", missing)
    with pytest.raises(CryptographyMissingError):
        store.all()
