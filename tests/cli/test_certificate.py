"""`falconmq certificate`: made here, registered there."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.cli.certificate import _as_text
from falconmq.security.certificate_store import CertificateStore
from falconmq.security.certificates import read_certificate
from falconmq.wire.sid import Sid
from tests.cli.commands import InProcess
from tests.security.users import openssl
from tests.service.ports import HttpManager

ANNA = "S-1-5-21-7-8-9-1001"


@pytest.fixture(autouse=True)
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A service that commands find by themselves, and keys that are quickly made."""
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "data").mkdir()
    with HttpManager(tmp_path / "data") as running:
        monkeypatch.setenv("FALCONMQ_URL", running.url)
        monkeypatch.setenv("FALCONMQ_TOKEN", running.token(name="admin"))
        yield


def test_a_certificate_is_made_printed_and_registered(falconmq: InProcess, tmp_path: Path) -> None:
    store = CertificateStore(tmp_path / "data")
    made = falconmq("certificate", "create", ANNA, "--expires", "1y")
    assert made.code == 0
    (kept,) = store.all()
    assert read_certificate(made.out.encode()) == kept.certificate
    assert made.err.startswith(f"made {kept.identifier} for {ANNA} until ")
    assert (kept.certificate.not_after - kept.certificate.not_before).days == 365
    assert "PRIVATE" not in made.out
    # in both forms, elsewhere
    for name, content in (
        ("anna.pem", made.out.encode()),
        ("anna.cer", ssl.PEM_cert_to_DER_cert(made.out)),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        user = f"S-1-5-21-7-8-9-{len(name) + len(content)}"
        done = falconmq("certificate", "register", user, str(file))
        assert done.code == 0, done.err
        assert done.out.endswith(f" for {user}\n")
        assert (
            store.sign_certs(Sid.parse(user)).certificates[0].certificate == kept.certificate.data
        )
    shown = falconmq("certificate", "list").out.splitlines()
    assert shown[0].split() == ["ID", "USER", "KIND", "BITS", "EXPIRES", "SUBJECT"]
    assert [line.split()[2] for line in shown[1:]] == ["internal", "external", "external"]
    listed = json.loads(falconmq("certificate", "list", "--json").out)["certificates"]
    assert [each["id"] for each in listed] == [line.split()[0] for line in shown[1:]]


def test_a_second_internal_certificate_is_refused(falconmq: InProcess, tmp_path: Path) -> None:
    falconmq("certificate", "create", ANNA)
    done = falconmq("certificate", "create", ANNA)
    assert (done.code, done.out) == (1, "")
    assert "MQ_ERROR_INTERNAL_USER_CERT_EXIST" in done.err
    (kept,) = CertificateStore(tmp_path / "data").all()
    assert f"hint:  first: falconmq certificate remove {kept.identifier}" in done.err
    removed = falconmq("certificate", "remove", str(kept.identifier))
    assert removed == (0, f"removed {kept.identifier}\n", "")
    assert falconmq("certificate", "list") == (0, "", "no certificates yet\n")
    assert falconmq("certificate", "remove", str(kept.identifier)).code == 1


def test_what_is_no_user_or_no_certificate_is_refused(falconmq: InProcess, tmp_path: Path) -> None:
    file = tmp_path / "x.pem"
    for content in (b"nothing", b"\xff\xfe", b"0\x03abc"):
        file.write_bytes(content)
        done = falconmq("certificate", "register", ANNA, str(file))
        assert (done.code, done.out) == (1, "")
        assert "no X.509 certificate" in done.err or "is no certificate" in done.err
    done = falconmq("certificate", "create", "anna")
    assert done.code == 1
    assert "S-" in done.err
    assert falconmq("certificate", "create", ANNA, "--expires", "soon").code == 2
    assert falconmq("certificate", "register", ANNA, str(tmp_path / "nothing")).code == 2


def test_a_directory_that_nobody_serves_has_certificates_too(
    falconmq: InProcess, tmp_path: Path
) -> None:
    place = ("--data", str(tmp_path / "alone"))
    assert falconmq("queue", "create", r".\private$\orders", *place).code == 0
    made = json.loads(falconmq("certificate", "create", ANNA, "--json", *place).out)
    (kept,) = CertificateStore(tmp_path / "alone").all()
    assert made["id"] == str(kept.identifier)


def test_a_certificate_is_removed_by_the_beginning_of_its_id(
    falconmq: InProcess, tmp_path: Path
) -> None:
    falconmq("certificate", "create", ANNA)
    falconmq("certificate", "create", f"{ANNA}0")
    store = CertificateStore(tmp_path / "data")
    first, second = (str(each.identifier) for each in store.all())
    for given in ("", "xyz", first[:-1] + "x"):
        done = falconmq("certificate", "remove", given)
        assert (done.code, done.out) == (1, "")
        assert "falconmq certificate list" in done.err
    shared = next(n for n in range(37) if first[: n + 1] != second[: n + 1])
    done = falconmq("certificate", "remove", first[: shared + 1].upper())
    assert done == (0, f"removed {first}\n", "")
    assert [str(each.identifier) for each in store.all()] == [second]


def test_a_private_key_does_not_leave_its_file(falconmq: InProcess, tmp_path: Path) -> None:
    # given a certificate and its key as openssl makes them, alone and in one file
    key, certificate, both = (tmp_path / name for name in ("a.key", "a.pem", "both.pem"))
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=anna"),
        *("-keyout", key, "-out", certificate),
    )
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    # then the key is not even sent, and the certificate of the other file is registered
    done = falconmq("certificate", "register", ANNA, str(key))
    assert done.code == 1
    assert "has a private key and no certificate" in done.err
    done = falconmq("certificate", "register", ANNA, str(both), "--json")
    registered = json.loads(done.out)
    assert registered["certificate"] == certificate.read_text()
    assert _as_text(both, both.read_bytes()) == certificate.read_text()  # what the service gets
    said = openssl("x509", "-in", certificate, "-noout", "-fingerprint", "-sha256").decode()
    shown = said.strip().partition("=")[2].replace(":", "").lower()
    assert registered["fingerprint"] == shown
