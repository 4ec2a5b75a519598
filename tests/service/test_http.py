"""The HTTP port: where it listens, what all its answers have, health, tokens over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from falconmq.errors import FalconMQError
from falconmq.service.access import Role, TokenStore
from falconmq.service.configuration import Configuration, HttpSection, ManagerSection
from falconmq.service.daemon import Service
from falconmq.service.process import serve
from falconmq.service.tables import ConfigurationError
from falconmq.service.troubles import store_troubles
from falconmq.service.web.http import HttpServer
from tests.embedded.helpers import ORDERS, GatedStore, threaded_engine
from tests.service.ports import HttpManager
from tests.service.services import configured, loopback, run, serving

TOKENS = "/api/v1/tokens"


def http_of(configuration: Configuration, **values: object) -> Configuration:
    return replace(configuration, http=HttpSection(**values))  # type: ignore[arg-type]  # any


# Where it listens


def test_it_listens_where_the_configuration_says(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port:
        host, number = port.address
        assert host == "127.0.0.1"
        assert port.url == f"http://127.0.0.1:{number}"
        assert httpx.get(f"{port.url}/healthz").json() == {"status": "ok"}


def test_a_port_in_use_is_refused_with_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(FalconMQError) as raised, HttpManager(tmp_path, port=number):
            pass
    assert f"cannot listen on HTTP 127.0.0.1:{number}: Address already in use" in str(raised.value)
    assert "http.port" in raised.value.hint
    assert "http.enabled = false" in raised.value.hint


def test_an_address_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(FalconMQError, match=r"cannot listen on HTTP 192\.0\.2\.1:0") as raised,
        HttpManager(tmp_path, bind="192.0.2.1", plain=True),
    ):
        pass
    assert "http.bind" in raised.value.hint


@pytest.mark.parametrize("bind", ["0.0.0.0", "192.0.2.1", "::"])  # refused
def test_tokens_do_not_cross_a_network_in_clear(tmp_path: Path, bind: str) -> None:
    with (
        pytest.raises(ConfigurationError, match="in clear") as raised,
        HttpManager(tmp_path, bind=bind),
    ):
        pass
    assert "http.certificate" in raised.value.hint
    assert "http.plain = true" in raised.value.hint


def test_unless_somebody_says_that_something_else_protects_them(tmp_path: Path) -> None:
    with HttpManager(tmp_path, bind="0.0.0.0", plain=True) as port:  # for a moment
        assert port.url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{port.url}/healthz").status_code == 200


def test_ipv6_has_brackets(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this computer has no IPv6")
    with HttpManager(tmp_path, bind="::1") as port:
        assert port.url.startswith("http://[::1]:")
        assert httpx.get(f"{port.url}/healthz").status_code == 200


def test_answers_leave_at_once_and_callers_that_vanish_are_noticed(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port, port.client() as client:
        assert client.get("/healthz").status_code == 200
        assert port.server._server is not None
        (connection,) = port.server._server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        # without it the second half of an answer waits 40 ms for the acknowledgement of the first
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


# Every answer


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/queues", "/nothing", "/api/v1/openapi.json"])
def test_every_answer_has_the_headers_of_a_careful_server(tmp_path: Path, path: str) -> None:
    with HttpManager(tmp_path) as port, port.client() as client:
        for answer in (client.get(path), client.get(path, headers={"Authorization": "Bearer x"})):
            headers = answer.headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"
            assert headers["content-security-policy"] == (
                "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                "form-action 'self'; object-src 'none'"
            )
            assert headers["x-frame-options"] == "DENY"
            assert headers["cross-origin-opener-policy"] == "same-origin"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert "strict-transport-security" not in headers  # there is no TLS
            assert "server" not in headers


def test_files_of_the_console_may_be_kept(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port, port.client() as client:
        answer = client.get("/static/nothing-of-this-name.css")
        assert "cache-control" not in answer.headers
        assert "content-security-policy" in answer.headers


def test_openapi_says_which_routes_need_a_token(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port:
        document = httpx.get(f"{port.url}/api/v1/openapi.json").json()
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            needed: list[dict[str, list[str]]] = [{"token": []}]
            expected = needed if path.startswith("/api/") else None
            if path.startswith(("/api/", "/healthz", "/readyz")):
                assert operation.get("security") == expected, f"{method} {path}"


# Health


def test_readiness_says_why_not(tmp_path: Path) -> None:
    troubles: list[str] = []
    with HttpManager(tmp_path, troubles=lambda: list(troubles)) as port, port.client() as client:
        answer = client.get("/readyz")
        assert answer.status_code == 200
        assert answer.json() == {"status": "ready", "reasons": []}
        troubles.append("the disk is full")
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json() == {"status": "not ready", "reasons": ["the disk is full"]}
        assert client.get("/healthz").status_code == 200


def test_a_service_that_stops_is_not_ready(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port, port.client() as client:
        port.app.state.control.stopping.set()
        assert client.get("/readyz").json()["reasons"] == ["the service stops"]


def test_a_service_knows_its_troubles() -> None:
    async def main() -> None:
        async with serving() as service:
            assert service.troubles() == []
            service.transport.is_running = False
            service.host._is_congested = True
            assert service.troubles() == [
                "the transport does not run",
                "the disk is slow: peers have to wait until it has written",
            ]
            service.transport.is_running = True

    run(main())


def test_a_store_that_cannot_write_is_a_trouble() -> None:
    store = GatedStore()
    engine = threaded_engine(store)
    try:
        assert store_troubles(engine) == []
        committer = engine.committer
        committer._error = OSError("broken")  # type: ignore[attr-defined]  # as after a failure
        assert store_troubles(engine) == ["the store cannot write: broken"]
        committer._error = None  # type: ignore[attr-defined]
    finally:
        engine.close()
    assert store_troubles(engine) == ["the queue manager is closed"]


@pytest.mark.parametrize(
    ("free", "flag", "expected"),
    [(1 << 30, 0, ""), (100, 0, "is full"), (1 << 30, os.ST_RDONLY, "is read-only")],
)
def test_a_disk_without_room_is_a_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, flag: int, expected: str
) -> None:
    async def main() -> None:
        service = await Service.start(configured(loopback(), tmp_path / "data"))
        real = os.statvfs(tmp_path)
        values = list(real[:10])
        values[1], values[4], values[8] = 1, free, flag  # frsize, bavail, flag
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(values))
        try:
            troubles = service.troubles()
        finally:
            await service.stop()
        assert len(troubles) == bool(expected)
        assert not expected or expected in troubles[0]

    run(main())


# Tokens over HTTP


def test_a_manager_makes_lists_and_revokes_tokens(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port, port.client(port.token(name="admin")) as client:
        made = client.post(TOKENS, json={"name": "shop", "roles": ["send"], "lifetime": 3600})
        assert made.status_code == 201
        assert made.json()["expires"] == "2023-11-14T23:13:20+00:00"
        with port.client(made.json()["token"]) as shop:
            assert shop.get("/api/v1/queues").status_code == 403  # it may send, not look
            listed = client.get(TOKENS).json()["tokens"]
            assert [token["name"] for token in listed] == ["admin", "shop"]
            assert all("token" not in token and "secret_sha256" not in token for token in listed)
            assert client.delete(f"{TOKENS}/shop").status_code == 204
            assert shop.get("/api/v1/queues").status_code == 401


@pytest.mark.parametrize("role", [Role.READ, Role.SEND, Role.RECEIVE])
def test_nobody_else_sees_or_makes_tokens(tmp_path: Path, role: Role) -> None:
    with HttpManager(tmp_path) as port, port.client(port.token(role)) as client:
        assert client.get(TOKENS).status_code == 403
        assert client.post(TOKENS, json={"name": "x", "roles": ["manage"]}).status_code == 403
        assert client.delete(f"{TOKENS}/tester").status_code == 403


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"name": "admin", "roles": ["read"]}, 409),
        ({"name": "a b", "roles": ["read"]}, 400),
        ({"name": "x", "roles": []}, 422),
        ({"name": "x", "roles": ["king"]}, 422),
        ({"name": "x", "roles": ["read"], "lifetime": 0}, 422),
        ({"name": "x", "roles": ["read"], "forever": True}, 422),
    ],
)
def test_a_token_that_cannot_be_is_refused(
    tmp_path: Path, given: dict[str, object], code: int
) -> None:
    with HttpManager(tmp_path) as port, port.client(port.token(name="admin")) as client:
        assert client.post(TOKENS, json=given).status_code == code
        assert client.delete(f"{TOKENS}/nobody").status_code == 404
        assert len(port.tokens.all()) == 1


# In the service


def test_a_service_has_its_port_beside_the_control_socket(tmp_path: Path) -> None:
    async def main() -> None:
        bind = loopback()
        service = await Service.start(configured(bind, tmp_path / "data"))
        try:
            assert service.http is not None
            assert service.http.url == f"http://{bind}:8018"  # its own address: none collides
            assert service.status()["http"] == service.http.url
            token, _ = TokenStore(tmp_path / "data").create("tester", [Role.MANAGE])
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=service.http.url, headers=headers) as client:
                answer = await client.get("/api/v1/status")
                assert answer.json()["http"] == service.http.url
                ready = await client.get("/readyz")
                assert ready.json() == {"status": "ready", "reasons": []}
                # a reader that waits is answered when the service stops
                await client.post("/api/v1/queues", json={"name": ORDERS})
                path = "/api/v1/queues/.%5Cprivate%24%5Corders/receive"
                waiting = asyncio.create_task(client.post(path, json={"timeout": 60}, timeout=None))
                queue = await service.manager.queue(ORDERS)
                while not queue.opened.queue.waiting:  # type: ignore[union-attr]  # it is local
                    await asyncio.sleep(0.002)
                await service.stop()
                assert (await waiting).status_code in (200, 503)
        finally:
            await service.stop()

    run(main())


def test_a_service_without_the_port(tmp_path: Path) -> None:
    async def main() -> None:
        bind = loopback()
        chosen = http_of(configured(bind, tmp_path / "data"), enabled=False)
        service = await Service.start(chosen)
        try:
            assert service.http is None
            assert service.status()["http"] is None
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(bind, 8018)
        finally:
            await service.stop()

    run(main())


def test_a_service_whose_http_port_is_taken_does_not_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bind = loopback()
    with socket.create_server((bind, 8018)):
        assert run(serve(configured(bind, tmp_path / "data"))) == 1
    assert f"cannot start: cannot listen on HTTP {bind}:8018" in caplog.text
    assert "hint: something else listens there" in caplog.text
    assert not (tmp_path / "data" / "control.sock").exists()


def said_at_start(configuration: Configuration, caplog: pytest.LogCaptureFixture) -> str:
    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(serve(configuration, ready=lambda _: ready.set()))
        await ready.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await task == 0

    caplog.clear()
    with caplog.at_level(logging.INFO):
        run(main())
    return caplog.text


def test_the_log_says_where_the_console_is_and_how_to_get_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bind, data = loopback(), tmp_path / "da ta"
    chosen = http_of(configured(bind, data), port=0)
    text = said_at_start(chosen, caplog)
    assert f"http listening url=http://{bind}:" in text
    assert f"the console is at http://{bind}:" in text
    command = f"falconmq token create admin --role manage --data '{data}'"
    assert text.count(command) == 1
    # who has a token knows it
    TokenStore(data).create("admin", [Role.MANAGE])
    text = said_at_start(chosen, caplog)
    assert "http listening url=" in text
    assert "falconmq token create" not in text


def test_a_server_that_never_started_can_be_stopped(tmp_path: Path) -> None:
    manager = ManagerSection("SALES01", tmp_path)
    with HttpManager(tmp_path) as port:
        server = HttpServer(Configuration(manager), port.access)
        port.do(server.stop)
