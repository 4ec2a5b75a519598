"""Signed and private messages from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from falconmq import Message, PrivacyLevel
from falconmq import open as open_directory
from falconmq.security.certificate_store import CertificateStore, Registered
from falconmq.security.certificates import read_certificate
from falconmq.security.signatures import verify
from falconmq.security.signing_keys import SigningKeys
from falconmq.wire.sid import Sid
from falconmq.wire.user_message import UserMessage
from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.security.users import ANNA, BERT, make_users, openssl
from tests.service.ports import HttpManager

SIG10, SIG20 = 1, 3


class Site:
    """A service with two certificates; commands find it by themselves, as administrators."""

    def __init__(self, port: HttpManager, users: dict[Sid, Registered]) -> None:
        self.users = users
        core = port.app.state.control.engine.core
        core.signing_keys = SigningKeys(port.configuration.manager.data)
        self.port = port
        self.queue = port.do(lambda: port.manager.create_queue(ORDERS))

    def received(self) -> Message:
        message: Message = self.port.do(lambda: self.queue.receive(timeout=0))
        return message


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("data")
    with HttpManager(directory) as port:
        yield Site(port, make_users(directory, ANNA, BERT))


@pytest.fixture
def site(running: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("FALCONMQ_URL", running.port.url)
    name = f"admin-{len(running.port.tokens.all())}"
    monkeypatch.setenv("FALCONMQ_TOKEN", running.port.token(name=name))
    yield running
    running.port.do(running.queue.purge)


@pytest.mark.parametrize(
    ("options", "level", "hash_algorithm"),
    [
        (["--certificate", str(BERT)], SIG20, "SHA_512"),
        (["--certificate", str(BERT), "--sign", "--hash", "sha-256"], SIG20, "SHA_256"),
        (["--certificate", str(BERT), "--authentication-level", "sig10"], SIG10, "SHA_512"),
    ],
)
def test_a_message_is_signed(
    falconmq: InProcess, site: Site, options: list[str], level: int, hash_algorithm: str
) -> None:
    assert falconmq("send", ORDERS, "--body", "x", *options).err == ""
    message = site.received()
    assert message.authentication_level == level
    assert message.sender_certificate == site.users[BERT].certificate.data
    assert getattr(message.hash_algorithm, "name", "") == hash_algorithm


def test_a_certificate_of_the_same_user_without_a_key_is_not_meant(
    falconmq: InProcess, site: Site, tmp_path: Path
) -> None:
    store = CertificateStore(site.port.configuration.manager.data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
        other = CertificateStore(tmp_path).create(ANNA, 3600)  # it ends first: it is listed first
    external = store.register(ANNA, other.certificate.data)
    try:
        done = falconmq("send", ORDERS, "--body", "x", "--certificate", str(ANNA))
    finally:
        store.remove(external.identifier)
    assert done.err == ""
    assert site.received().sender_certificate == site.users[ANNA].certificate.data


def test_a_certificate_is_named_by_its_id(falconmq: InProcess, site: Site) -> None:
    which = str(site.users[ANNA].identifier)
    assert falconmq("send", ORDERS, "--body", "x", "--certificate", which).code == 0
    assert site.received().sender_id == ANNA.encode()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--certificate", "nobody"], "there is no certificate nobody to sign with"),
        (["--sign"], "there are 2 certificates to sign with"),
        (["--certificate", str(ANNA), "--hash", "md5"], "MD5 is weak"),
        (["--certificate", str(ANNA), "--hash", "sha-3"], "'sha-3' is not known"),
        (["--sign", "--authentication-level", "xml-sig"], "XML_SIG is no signature"),
        (["--encrypt", "strong"], "'strong' is not known"),
    ],
)
def test_what_cannot_be_done_is_explained(
    falconmq: InProcess, site: Site, options: list[str], said: str
) -> None:
    done = falconmq("send", ORDERS, "--body", "x", *options)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert "hint:" in done.err


@pytest.mark.parametrize("level", ["base", "enhanced", "advanced"])
def test_a_message_is_to_be_encrypted(falconmq: InProcess, site: Site, level: str) -> None:
    assert falconmq("send", ORDERS, "--body", "x", "--encrypt", level).err == ""
    assert site.received().privacy_level is PrivacyLevel[level.upper()]


def test_from_a_new_directory_to_a_message_that_shows_who_signed_it(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
    monkeypatch.delenv("FALCONMQ_URL", raising=False)
    place = ("--data", str(tmp_path / "data"))
    (tmp_path / "falconmq.toml").write_text(
        f"[manager]\nname = 'SALES01'\n"
        f"[[principals]]\nname = 'anna'\nsid = '{ANNA}'\nsocket = true\n"
        "groups = ['Administrators']\n"
    )
    named = (*place, "--config", str(tmp_path / "falconmq.toml"))
    assert falconmq("queue", "create", ORDERS, *named).code == 0
    refused = falconmq("send", ORDERS, "--body", "x", "--sign", *named)
    assert f"hint:  make one: falconmq certificate create {ANNA}" in refused.err
    made = falconmq("certificate", "create", "anna", *named)
    assert f"for anna ({ANNA}) until" in made.err
    assert falconmq("send", ORDERS, "--body", "x", "--sign", *named).err == ""
    shown: dict[str, Any] = json.loads(falconmq("peek", ORDERS, "--json", *named).out)
    assert shown["authentication_level"] == "SIG20"
    assert (shown["sender"]["sid"], shown["sender"]["name"]) == (str(ANNA), "anna")
    # openssl reads the same subject in the certificate that was printed
    subject = openssl("x509", "-noout", "-subject", "-nameopt", "RFC2253", data=made.out.encode())
    assert subject.decode().strip() == f"subject={shown['sender']['certificate']}"


def test_what_is_stored_can_be_verified_by_whoever_has_the_packet(
    falconmq: InProcess, site: Site
) -> None:
    falconmq("send", ORDERS, "--body", "x", "--certificate", str(ANNA))
    positions = site.queue.opened.queue.positions
    (lookup_id,) = positions.lookup_ids()
    assert verify(UserMessage.decode(positions.find(lookup_id).message.data)).value == SIG20


@pytest.fixture
def bundle(tmp_path: Path) -> dict[str, Path]:
    """A certificate of another authority and its key, in the files that people have."""
    files = {name: tmp_path / name for name in ("a.pem", "a.key", "a.p12", "secret")}
    files["secret"].write_text("open sesame\r\nand more\n")
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=Shop/CN=anna"),
        *("-keyout", files["a.key"], "-out", files["a.pem"]),
    )
    openssl(
        *("pkcs12", "-export", "-inkey", files["a.key"], "-in", files["a.pem"]),
        *("-out", files["a.p12"], "-passout", "pass:open sesame"),
    )
    return files


def test_a_message_is_signed_with_a_certificate_from_elsewhere(
    falconmq: InProcess, tmp_path: Path, bundle: dict[str, Path]
) -> None:
    # given a certificate of the user's own, and one from elsewhere with its key
    at = ("--data", str(tmp_path / "data"))
    assert falconmq("queue", "create", ORDERS, *at).code == 0
    make_users(tmp_path / "data", ANNA)
    p12, password = str(bundle["a.p12"]), ("--password-file", str(bundle["secret"]))
    done = falconmq("certificate", "register", str(ANNA), p12, "--key", p12, *password, *at)
    assert done.err == ""
    assert " (CN=anna,O=Shop) with its key for " in done.out
    assert "external with key" in falconmq("certificate", "list", *at).out
    said = openssl("x509", "-in", bundle["a.pem"], "-noout", "-fingerprint", "-sha256").decode()
    # when it is named by its fingerprint or its subject, it signs; the user's name means the other
    shown = said.strip().partition("=")[2]
    for which in (shown, "CN=anna,O=Shop", str(ANNA)):
        done = falconmq("send", ORDERS, "--body", "x", "--sign", "--certificate", which, *at)
        assert done.err == ""
    with open_directory(tmp_path / "data") as manager:
        queue = manager.queue(ORDERS)
        received = [queue.receive(timeout=0) for _ in range(3)]
    subjects = [read_certificate(each.sender_certificate).subject for each in received]
    internal = f"CN={ANNA},OU=FalconMQ internal certificate"
    assert subjects == ["CN=anna,O=Shop", "CN=anna,O=Shop", internal]
    assert [each.authentication_level for each in received] == [SIG20] * 3


def test_a_private_key_is_refused_with_its_reason(
    falconmq: InProcess, tmp_path: Path, bundle: dict[str, Path]
) -> None:
    at = ("--data", str(tmp_path / "data"))
    assert falconmq("queue", "create", ORDERS, *at).code == 0
    pem, p12, user = str(bundle["a.pem"]), str(bundle["a.p12"]), str(ANNA)
    done = falconmq("certificate", "register", user, p12, "--key", p12, *at)
    assert (done.code, done.out) == (1, "")
    assert "the private key has a password" in done.err
    assert "--password-file" in done.err
    openssl("genrsa", "-out", tmp_path / "other.key", "1024")
    other = ("--key", str(tmp_path / "other.key"))
    done = falconmq("certificate", "register", user, pem, *other, *at)
    assert "not that of the certificate CN=anna,O=Shop" in done.err
    # usage
    done = falconmq("certificate", "register", user, pem, "--password-file", pem, *at)
    assert (done.code, "--password-file without a key" in done.err) == (2, True)
    assert CertificateStore(tmp_path / "data").all() == []


def test_a_private_key_does_not_travel(
    falconmq: InProcess, site: Site, bundle: dict[str, Path]
) -> None:
    pem, key = str(bundle["a.pem"]), str(bundle["a.key"])
    done = falconmq("certificate", "register", str(ANNA), pem, "--key", key)
    assert (done.code, done.out) == (2, "")
    assert "--key and --url do not go together" in done.err
