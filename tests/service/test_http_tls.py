"""HTTPS: real certificates, and new ones while the service runs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from falconmq.service.tables import ConfigurationError
from tests.embedded.helpers import PATIENCE
from tests.service.ports import HttpManager, ask

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
KEPT = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def write_pair(directory: Path, name: str, password: bytes = b"") -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    places = directory / "server.pem", directory / "server.key"
    places[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    places[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    places[1].chmod(0o600)
    return places


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def handshake(port: HttpManager, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(port.address, timeout=PATIENCE)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def shown_name(connection: ssl.SSLSocket) -> str:
    certificate = connection.getpeercert(binary_form=True)
    assert certificate is not None
    subject = x509.load_der_x509_certificate(certificate).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def anybody() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture
def port(tmp_path: Path) -> Iterator[HttpManager]:
    certificate, key = write_pair(tmp_path, "first")
    with HttpManager(tmp_path, certificate=certificate, key=key) as port:
        yield port


def test_with_a_certificate_the_port_speaks_https(port: HttpManager, tmp_path: Path) -> None:
    assert port.url.startswith("https://127.0.0.1:")
    with port.client(port.token(), verify=trusting(tmp_path / "server.pem")) as client:
        assert client.get("/api/v1/queues").status_code == 200


def test_browsers_that_came_over_tls_insist_on_it_and_keep_cookies_for_it(
    port: HttpManager, tmp_path: Path
) -> None:
    token = port.token()
    port.server.apply(replace(port.configuration.http, strict_transport_seconds=86_400))
    with port.client(verify=trusting(tmp_path / "server.pem")) as client:
        answer = client.post("/login", data={"token": token, "next": "/"})
        assert answer.status_code == 303
        assert answer.headers["strict-transport-security"] == "max-age=86400"
        out = client.post("/logout", data={"csrf_token": csrf_of(client.get("/").text)})
        cookies = [*answer.headers.get_list("set-cookie"), *out.headers.get_list("set-cookie")]
        assert len(cookies) == 3  # of the log-in, its end, and what the next page says
        for cookie in cookies:
            for attribute in ("HttpOnly", "SameSite=strict", "Secure", "Path=/"):
                assert attribute in cookie
        # and nobody insists who was not told to: other services of the host may have no TLS
        port.server.apply(port.configuration.http)
        assert "strict-transport-security" not in client.get("/login").headers


def csrf_of(page: str) -> str:
    return page.partition('name="csrf_token" value="')[2].partition('"')[0]


def test_with_a_certificate_it_may_listen_everywhere(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "first")
    bind = "0.0.0.0"  # with TLS
    with HttpManager(tmp_path, bind=bind, certificate=certificate, key=key) as port:
        assert port.url.startswith("https://127.0.0.1:")


def test_old_versions_of_tls_are_refused(port: HttpManager) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = anybody()
        context.minimum_version = context.maximum_version = version
        with handshake(port, context) as connection:
            assert ask(connection, GET)[0] == 200
    context = anybody()
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)), handshake(port, context):
        pass


def test_plain_http_is_not_understood(port: HttpManager) -> None:
    with port.connect() as connection, pytest.raises((ConnectionError, ValueError, IndexError)):
        ask(connection, GET)


def test_a_new_certificate_is_shown_and_connections_stay(port: HttpManager, tmp_path: Path) -> None:
    with handshake(port, anybody()) as old:
        assert shown_name(old) == "first"
        old.sendall(KEPT)
        assert old.recv(65536).startswith(b"HTTP/1.1 200")
        # when the files are replaced, nothing happens until somebody says so
        write_pair(tmp_path, "second")
        with handshake(port, anybody()) as between:
            assert shown_name(between) == "first"
        port.server.reload_certificates()
        with handshake(port, anybody()) as new:
            assert shown_name(new) == "second"
            assert ask(new, GET)[0] == 200
        # then who was there before goes on
        assert ask(old, GET)[0] == 200


@pytest.mark.parametrize("mistake", ["no key", "another key", "garbage", "password"])
def test_a_bad_pair_changes_nothing(port: HttpManager, tmp_path: Path, mistake: str) -> None:
    key = tmp_path / "server.key"
    if mistake == "no key":
        key.unlink()
    elif mistake == "another key":
        kept = key.read_bytes()
        write_pair(tmp_path, "second")
        key.write_bytes(kept)
    elif mistake == "garbage":
        (tmp_path / "server.pem").write_text("hello")
    else:
        write_pair(tmp_path, "second", b"secret")
    with pytest.raises(ConfigurationError, match=r"http\.certificate .* http\.key"):
        port.server.reload_certificates()
    with handshake(port, anybody()) as connection:
        assert shown_name(connection) == "first"
        assert ask(connection, GET)[0] == 200


def test_a_bad_pair_at_the_start_is_refused(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "first")
    key.write_text("hello")
    with (
        pytest.raises(ConfigurationError) as raised,
        HttpManager(tmp_path, certificate=certificate, key=key),
    ):
        pass
    assert "PEM" in raised.value.hint


def test_without_tls_there_is_nothing_to_reload(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port:
        port.server.reload_certificates()
