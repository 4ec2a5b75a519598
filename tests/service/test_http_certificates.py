"""Callers that are known by certificates: made with openssl, shown over TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import falconmq
from falconmq import FalconMQError, Message, MqStatus
from falconmq.client.control import ControlClient
from falconmq.manager.access import Principal
from falconmq.security.fingerprints import fingerprint, parse_fingerprint
from falconmq.service.configuration import ConfiguredPrincipal, load
from falconmq.service.tables import ConfigurationError
from falconmq.service.web.certificates import Certificates
from tests.client.kinds import awaited
from tests.embedded.helpers import PATIENCE
from tests.security.users import ANNA, openssl
from tests.service.asking import ORDERS
from tests.service.ports import HttpManager
from tests.service.test_http_tls import write_pair

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make_authority(directory: Path, name: str) -> Path:
    """One that issues certificates; its key beside it."""
    made = directory / f"{name}.pem"
    key = directory / f"{name}.key"
    openssl("req", "-x509", *_KEY, "-keyout", key, "-out", made, "-subj", f"/CN={name}")
    return made


def make_caller(directory: Path, authority: Path, name: str) -> Path:
    """A certificate that an authority issued, and its key, in one file."""
    request, key, made = (directory / f"{name}.{end}" for end in ("csr", "key", "pem"))
    openssl("req", *_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    openssl(
        "x509", "-req", "-in", request, "-out", made, "-days", "2",
        "-CA", authority, "-CAkey", authority.with_suffix(".key"),
    )  # fmt: skip
    made.write_bytes(made.read_bytes() + key.read_bytes())
    return made


def printed_fingerprint(certificate: Path) -> str:
    """As openssl shows it: sha256 Fingerprint=AB:CD:..."""
    said = openssl("x509", "-in", certificate, "-noout", "-fingerprint", "-sha256").decode()
    return said.strip().partition("=")[2]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """anna and bert have certificates of our authority, mallory of another one."""
    directory = tmp_path_factory.mktemp("certificates")
    ours = make_authority(directory, "ours")
    for name in ("anna", "bert"):
        make_caller(directory, ours, name)
    make_caller(directory, make_authority(directory, "theirs"), "mallory")
    (directory / "callers.pem").write_bytes(ours.read_bytes())
    write_pair(directory, "server")
    return directory


@pytest.fixture(scope="module")
def port(files: Path) -> Iterator[HttpManager]:
    """anna is a principal; bert has a certificate that nobody has configured."""
    data = files / "data"
    data.mkdir()
    tls: dict[str, Any] = {"certificate": files / "server.pem", "key": files / "server.key"}
    with HttpManager(data, client_ca=files / "callers.pem", **tls) as port:
        shown = parse_fingerprint(printed_fingerprint(files / "anna.pem"))
        assert shown is not None
        anna = ConfiguredPrincipal(Principal("anna", ANNA), (), False, (shown,), ("read", "send"))
        control = port.app.state.control
        control.configure(replace(control.configuration, principals=(anna,)))
        control.engine.core.settings.access_control = False
        port.do(lambda: port.manager.create_queue(ORDERS))
        yield port


def context_of(files: Path, name: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(files / "server.pem"))
    if name:
        context.load_cert_chain(files / f"{name}.pem")
    return context


def get(port: HttpManager, context: ssl.SSLContext, path: str, token: str = "") -> httpx.Response:
    with port.client(token, verify=context) as client:
        return client.get(f"/api/v1{path}")


def _reloaded(port: HttpManager) -> Callable[[], Coroutine[Any, Any, None]]:
    async def reload() -> None:
        port.server.reload_certificates()

    return reload


def test_a_fingerprint_is_what_openssl_says(files: Path) -> None:
    der = openssl("x509", "-in", files / "anna.pem", "-outform", "DER")
    shown = printed_fingerprint(files / "anna.pem")
    assert parse_fingerprint(shown) == fingerprint(der) == shown.replace(":", "").lower()
    assert parse_fingerprint(shown[:-1]) is None
    assert parse_fingerprint("nothing") is None


def test_a_certificate_is_as_good_as_a_token(port: HttpManager, files: Path) -> None:
    assert get(port, context_of(files, "anna"), "/queues").status_code == 200
    # with the roles that the configuration gives it, and no others
    refused = get(port, context_of(files, "anna"), "/tokens")
    assert refused.status_code == 403
    assert "certificate of anna has not the role manage" in refused.json()["detail"]


def test_without_one_a_token_is_needed(port: HttpManager, files: Path) -> None:
    assert get(port, context_of(files), "/queues").status_code == 401
    assert get(port, context_of(files), "/queues", port.token()).status_code == 200


def test_a_token_counts_more_than_a_certificate(port: HttpManager, files: Path) -> None:
    token = port.token(name="other")
    assert get(port, context_of(files, "anna"), "/tokens", token).status_code == 200
    assert get(port, context_of(files, "anna"), "/queues", "wrong").status_code == 401


def test_a_certificate_that_nobody_has_configured_opens_nothing(
    port: HttpManager, files: Path
) -> None:
    assert get(port, context_of(files, "bert"), "/queues").status_code == 401


def test_a_principal_that_is_gone_is_nobody_at_the_next_request(
    port: HttpManager, files: Path
) -> None:
    control = port.app.state.control
    known = control.configuration
    with port.client(verify=context_of(files, "anna")) as client:  # one connection
        assert client.get("/api/v1/queues").status_code == 200
        control.configure(replace(known, principals=()))
        try:
            assert client.get("/api/v1/queues").status_code == 401
        finally:
            control.configure(known)
        assert client.get("/api/v1/queues").status_code == 200


def test_a_page_of_another_site_cannot_use_the_certificate_of_a_browser(
    port: HttpManager, files: Path
) -> None:
    with port.client(verify=context_of(files, "anna")) as client:
        headers = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        at = f"/api/v1/queues/{ORDERS}/messages".replace("\\", "%5C")
        sent = client.post(at, json={"messages": [{"text": "x"}]}, headers=headers)
    assert sent.status_code == 403
    assert "another site" in sent.json()["detail"]


def test_a_certificate_of_another_authority_is_refused_until_that_is_trusted(
    port: HttpManager, files: Path
) -> None:
    with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
        get(port, context_of(files, "mallory"), "/queues")
    # when the file has the other authority as well, and is read anew
    callers = files / "callers.pem"
    callers.write_bytes(callers.read_bytes() + (files / "theirs.pem").read_bytes())
    port.do(_reloaded(port))
    # then the connection stands, and nobody is known by that certificate
    assert get(port, context_of(files, "mallory"), "/queues").status_code == 401
    # and when the other authority is taken out again, its certificates end connections again
    callers.write_bytes((files / "ours.pem").read_bytes())
    with port.client("", verify=context_of(files, "mallory")) as before:
        before.get("/api/v1/queues")
        port.do(_reloaded(port))
        assert before.get("/api/v1/queues").status_code == 401  # a connection that stands, stays
    with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
        get(port, context_of(files, "mallory"), "/queues")
    assert get(port, context_of(files, "anna"), "/queues").status_code == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_that_is_taken_up_again_proves_nothing_about_authorities_of_now(
    port: HttpManager, files: Path, version: ssl.TLSVersion
) -> None:
    context = context_of(files, "anna")
    context.minimum_version = context.maximum_version = version
    first, session, reused = _asked(port, context, None)
    assert (first, reused) == (b"200", False)
    # when the files are read again, and the caller goes on with its session
    port.do(_reloaded(port))
    again, _, reused = _asked(port, context, session)
    # then it has to show its certificate again, or is nobody
    assert (again, reused) in ((b"401", True), (b"200", False))


def _asked(
    port: HttpManager, context: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[bytes, ssl.SSLSession | None, bool | None]:
    """The code of an answer, the session to take up again, and whether one was taken up."""
    request = b"GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with (
        port.connect() as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection,
    ):
        connection.sendall(request)
        answer = connection.recv(65536)
        return answer.split(b" ")[1], connection.session, connection.session_reused


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_programs_show_a_certificate_and_messages_name_its_principal(
    port: HttpManager, files: Path, kind: str
) -> None:
    options: dict[str, Any] = {
        "ca_file": files / "server.pem",
        "certificate_file": files / "anna.pem",
        "timeout": PATIENCE,
    }

    async def with_asyncio() -> None:
        async with falconmq.aio.connect(port.url, **options) as manager:
            await (await manager.queue(ORDERS)).send(Message("hello"))

    if kind == "asyncio":
        awaited(with_asyncio)
    else:
        with falconmq.connect(port.url, **options) as manager:
            manager.queue(ORDERS).send(Message("hello"))
    queue = port.do(lambda: port.manager.queue(ORDERS))
    received = port.do(lambda: queue.receive(timeout=0))
    assert received.sender_id == ANNA.encode()


def test_commands_show_the_certificate_of_the_environment(
    port: HttpManager, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FalconMQError):
        _queues(port, files)
    monkeypatch.setenv("FALCONMQ_CERTIFICATE", str(files / "anna.pem"))
    assert [each["name"] for each in _queues(port, files)] == [ORDERS]


def _queues(port: HttpManager, files: Path) -> list[dict[str, Any]]:
    with ControlClient.connect(port.url, ca_file=str(files / "server.pem")) as client:
        found: list[dict[str, Any]] = client.request("GET", "/queues")["queues"]
    return found


def test_a_program_is_told_what_is_wrong_with_its_certificate(
    port: HttpManager, files: Path
) -> None:
    for given in (files / "missing.pem", files / "server.pem"):  # no file; no key in it
        with pytest.raises(FalconMQError, match="cannot be shown") as refused:
            falconmq.connect(port.url, ca_file=files / "server.pem", certificate_file=given)
        assert refused.value.status is MqStatus.INVALID_CERTIFICATE
        assert "PEM" in refused.value.hint


# The configuration


def _load(directory: Path, http: str, principal: str = "") -> Any:
    path = directory / "falconmq.toml"
    text = f"[manager]\ndata = '{directory}'\n[http]\n{http}\n"
    if principal:
        text += f"[[principals]]\nname = 'anna'\nsid = '{ANNA}'\n{principal}\n"
    path.write_text(text)
    return load(path, environment={})


def test_the_configuration_names_certificates_and_roles(tmp_path: Path) -> None:
    shown = ":".join(["AB"] * 32)
    principal = f"certificates = ['{shown}']\nroles = ['send']"
    http = "certificate = 'c.pem'\nkey = 'k.pem'\nclient_ca = 'ca.pem'"
    found = _load(tmp_path, http, principal)
    assert found.http.client_ca.name == "ca.pem"
    (anna,) = found.principals
    assert (anna.certificates, anna.roles) == (("ab" * 32,), ("send",))


@pytest.mark.parametrize(
    ("http", "principal", "said"),
    [
        ("client_ca = 'ca.pem'", "", "only over HTTPS"),
        ("", "certificates = ['AB:CD']\nroles = ['send']", "a SHA-256 fingerprint"),
        ("", f"certificates = ['{'ab' * 32}']", "given together with"),
        ("", "roles = ['send']", "given together with"),
        ("", f"certificates = ['{'ab' * 32}']\nroles = ['king']", "some of read, send"),
    ],
)
def test_what_does_not_fit_together_is_told(
    tmp_path: Path, http: str, principal: str, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        _load(tmp_path, http, principal)


def test_a_certificate_belongs_to_one_principal(tmp_path: Path) -> None:
    shared = f"certificates = ['{'ab' * 32}']\nroles = ['send']"
    other = f"{shared}\n[[principals]]\nname = 'bert'\nsid = 'S-1-5-21-1-2-3-4'\n{shared}"
    with pytest.raises(ConfigurationError, match="it is anna already"):
        _load(tmp_path, "", other)


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_an_authority_that_cannot_be_read_is_told(
    tmp_path: Path, files: Path, content: str | None
) -> None:
    client_ca = tmp_path / "callers.pem"
    if content is not None:
        client_ca.write_text(content)
    with pytest.raises(ConfigurationError, match=r"http\.client_ca"):
        Certificates(files / "server.pem", files / "server.key", client_ca)
