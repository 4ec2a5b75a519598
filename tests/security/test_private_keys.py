"""Private keys from files of other programs, and certificates from elsewhere that sign here."""

from __future__ import annotations

import contextlib
import json
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.security import rsa
from falconmq.security.certificate_store import CertificateStore
from falconmq.security.certificates import read_certificate
from falconmq.security.hashes import HASHES
from falconmq.security.private_keys import is_pkcs12, read_private_key
from falconmq.security.problems import (
    CertificateError,
    CertificateExistsError,
    PrivateKeyError,
    SecurityError,
)
from falconmq.security.signing_keys import SigningKeys
from tests.security import known
from tests.security.users import ANNA, BERT, openssl

SHA256 = next(each for each in HASHES.values() if each.name == "sha256")
SECRET = "schlüssel"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What openssl makes of one key, in every form."""
    at = tmp_path_factory.mktemp("keys")
    (at / "secret").write_text(SECRET, encoding="utf-8")
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Anna"),
        *("-days", "3650", "-keyout", at / "key.pem", "-out", at / "anna.pem"),
    )
    protected = ("-passout", f"file:{at / 'secret'}")
    openssl("rsa", "-in", at / "key.pem", "-traditional", "-out", at / "pkcs1.pem")
    openssl("pkey", "-in", at / "key.pem", "-outform", "DER", "-out", at / "key.der")
    openssl("pkcs8", "-topk8", "-in", at / "key.pem", "-out", at / "locked.pem", *protected)
    both = ("pkcs12", "-export", "-inkey", at / "key.pem", "-in", at / "anna.pem")
    openssl(*both, "-out", at / "locked.p12", *protected)
    openssl(*both, "-out", at / "open.p12", "-passout", "pass:")
    nothing = ("pkcs12", "-export", "-nokeys", "-in", at / "anna.pem", "-out", at / "nokey.p12")
    openssl(*nothing, *protected)
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", at / "ec.pem")
    openssl("genpkey", "-algorithm", "ed25519", "-out", at / "ed.pem")
    (at / "both.pem").write_bytes((at / "anna.pem").read_bytes() + (at / "key.pem").read_bytes())
    return at


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("key.pem", ""),
        ("pkcs1.pem", ""),
        ("key.der", ""),
        ("both.pem", ""),
        ("locked.pem", SECRET),
        ("locked.p12", SECRET),
        ("open.p12", ""),
    ],
)
def test_a_key_is_read_in_every_form(files: Path, name: str, password: str) -> None:
    certificate = read_certificate((files / "anna.pem").read_bytes())
    data = (files / name).read_bytes()
    found = read_private_key(data, password)
    assert found.pair.is_valid
    assert found.pair.public == certificate.public_key
    assert found.certificate == (certificate.data if name.endswith("p12") else b"")
    assert is_pkcs12(data) is name.endswith("p12")
    assert str(found.pair.prime1) not in repr(found)


@pytest.mark.parametrize(
    ("name", "password", "says", "hint"),
    [
        ("locked.pem", "", "has a password", "--password-file"),
        ("locked.p12", "", "has a password", "--password-file"),
        ("locked.pem", "wrong", "does not open", "this very file"),
        ("locked.p12", "wrong", "does not open", "this very file"),
        ("nokey.p12", SECRET, "no private key", "the right file"),
        ("anna.pem", "", "no private key", "the right file"),
        ("secret", "", "no private key", "the right file"),
        ("ec.pem", "", "no RSA key", "RSA and nothing else"),
        ("ed.pem", "", "no RSA key", "RSA and nothing else"),
    ],
)
def test_what_cannot_sign_is_named(
    files: Path, name: str, password: str, says: str, hint: str
) -> None:
    with pytest.raises(PrivateKeyError, match=says) as refused:
        read_private_key((files / name).read_bytes(), password)
    assert hint in refused.value.hint


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short.pem"
    openssl("genrsa", "-out", short, "512")
    with pytest.raises(PrivateKeyError, match=r"too short|no private key"):
        read_private_key(short.read_bytes())


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_key_or_an_error_of_ours(data: bytes) -> None:
    for prefix in (b"", b"0\x82\x01\x00\x02\x01\x03", b"-----BEGIN PRIVATE KEY-----\n"):
        with contextlib.suppress(SecurityError):
            read_private_key(prefix + data)


# In the store


def test_an_external_certificate_signs_with_the_key_that_came_along(
    files: Path, tmp_path: Path
) -> None:
    store = CertificateStore(tmp_path)
    data, key = (files / "anna.pem").read_bytes(), (files / "key.pem").read_bytes()
    made = store.register_key(ANNA, data, key)
    assert (made.is_internal, made.shown(0)["kind"], made.shown(0)["signs"]) == (
        False,
        "external",
        True,
    )
    path = tmp_path / "certificates.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.pair is not None
    assert f"{made.pair.private_exponent:x}" not in json.dumps(store.listing())
    # it is found again, and what it signs is believed
    found = SigningKeys(tmp_path).with_certificate(data)
    assert found == made
    signature = rsa.sign(made.pair, SHA256, b"hello")
    assert rsa.verify(read_certificate(data).public_key, SHA256, b"hello", signature)
    # an internal one beside it is no second one, and signs first
    internal = store.create(ANNA)
    assert SigningKeys(tmp_path).of(ANNA) == internal
    store.remove(internal.identifier)
    assert SigningKeys(tmp_path).of(ANNA) == made
    assert store.internal_of(ANNA) is None


def test_a_registered_certificate_gets_its_key_later(files: Path, tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    before = store.register(ANNA, (files / "anna.pem").read_bytes())
    assert SigningKeys(tmp_path).of(ANNA) is None
    # from a file that has both
    with_key = store.register_key(ANNA, b"", (files / "locked.p12").read_bytes(), SECRET)
    assert with_key.identifier == before.identifier
    assert store.all() == [with_key]
    with pytest.raises(CertificateExistsError):
        store.register_key(ANNA, b"", (files / "open.p12").read_bytes())
    with pytest.raises(CertificateExistsError):  # nor does it lose the key again
        store.register(ANNA, (files / "anna.pem").read_bytes())
    assert SigningKeys(tmp_path).of(ANNA) == with_key
    assert SigningKeys(tmp_path).of(BERT) is None


def test_of_several_external_ones_the_one_that_is_good_for_longest_signs(
    files: Path, tmp_path: Path
) -> None:
    store = CertificateStore(tmp_path)
    for name, days in (("longer", "7300"), ("shorter", "30")):
        openssl(
            *("req", "-x509", "-key", files / "key.pem", "-subj", f"/CN={name}", "-days", days),
            *("-out", tmp_path / f"{name}.pem"),
        )
    key = (files / "key.pem").read_bytes()
    internal = store.create(ANNA)
    for name in ("shorter", "longer"):
        store.register_key(ANNA, (tmp_path / f"{name}.pem").read_bytes(), key)
    store.remove(internal.identifier)
    found = SigningKeys(tmp_path).of(ANNA)
    assert found is not None
    assert found.certificate.subject == "CN=longer"


def test_keys_that_do_not_belong_to_it_and_certificates_that_are_over_are_refused(
    files: Path, tmp_path: Path
) -> None:
    key = (files / "key.pem").read_bytes()
    store = CertificateStore(tmp_path)
    with pytest.raises(PrivateKeyError, match="not that of the certificate CN=Anna") as refused:
        store.register_key(ANNA, known.CERTIFICATE, key)
    assert "right two files" in refused.value.hint
    with pytest.raises(CertificateError, match="no certificate in the file of the key"):
        store.register_key(ANNA, b"", key)
    ends = read_certificate((files / "anna.pem").read_bytes()).not_after.timestamp()
    with pytest.raises(CertificateError, match="expired on"):
        CertificateStore(tmp_path, lambda: ends).register_key(
            ANNA, (files / "anna.pem").read_bytes(), key
        )
    assert store.all() == []


def test_keys_of_files_that_say_nothing_of_their_kind_were_made_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
    store = CertificateStore(tmp_path)
    made = store.create(ANNA)
    path = tmp_path / "certificates.json"
    document = json.loads(path.read_text())
    del document["certificates"][str(made.identifier)]["kind"]
    path.write_text(json.dumps(document))
    assert store.all() == [made]
