"""What one caller of the HTTP port may cost: bytes, seconds, connections."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from falconmq.service.configuration import HttpSection
from falconmq.service.requests.bulk import MEDIA_TYPE
from falconmq.service.web.limits import Limits
from tests.embedded.helpers import ORDERS, wait_until
from tests.service.ports import HttpManager, answer_on, ask

MESSAGES = "/api/v1/queues/.%5Cprivate%24%5Corders/messages"
PACKETS = "/api/v1/queues/.%5Cprivate%24%5Corders/packets"
RECEIVE = "/api/v1/queues/.%5Cprivate%24%5Corders/receive"
KINDS = {MESSAGES: "application/json", PACKETS: MEDIA_TYPE}
MOST = 1 << 16
QUICK = Limits(
    header_seconds=0.3, body_seconds=0.3, body_bytes_per_second=1e9, keep_alive_seconds=1
)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[HttpManager]:
    with HttpManager(tmp_path, loopback_role="manage", request_bytes=MOST) as port:
        port.manager.blocking.create_queue(ORDERS)  # a request could be too slow
        yield port


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[HttpManager]:
    with HttpManager(tmp_path, loopback_role="manage", limits=QUICK) as port:
        port.manager.blocking.create_queue(ORDERS)  # a request could be too slow
        yield port


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def is_too_large(code: int, body: bytes) -> bool:
    problem = json.loads(body)
    return code == 413 and problem["status"] == 413 and str(MOST) in problem["detail"]


# Bytes


@pytest.mark.parametrize("path", [MESSAGES, PACKETS])
def test_a_body_may_have_so_many_bytes(port: HttpManager, path: str) -> None:
    with port.client() as client:
        for extra, expected in ((0, False), (1, True)):
            answer = client.post(path, content=b"x" * (MOST + extra))
            assert is_too_large(answer.status_code, answer.content) == expected


@pytest.mark.parametrize("path", [MESSAGES, PACKETS])
def test_a_body_in_chunks_is_counted(port: HttpManager, path: str) -> None:
    with port.client() as client:
        client.headers["Content-Type"] = KINDS[path]
        answer = client.post(path, content=(b"x" * 1000 for _ in range(66)))
        assert is_too_large(answer.status_code, answer.content)
        answer = client.post(path, content=(b"x" * 1000 for _ in range(65)))
        assert answer.status_code in (400, 422)
        assert client.get("/healthz").status_code == 200


def test_who_announces_too_much_is_answered_before_it_comes(port: HttpManager) -> None:
    with port.connect() as connection:
        connection.sendall(head(MESSAGES, "Content-Length: 1000000000"))
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413")


def test_who_asks_first_is_told_not_to_send(port: HttpManager) -> None:
    with port.connect() as connection:
        lines = "Content-Length: 1000000000", "Expect: 100-continue"
        code, headers, body = ask(connection, head(MESSAGES, *lines))
        assert is_too_large(code, body)
        assert headers["connection"] == "close"


def test_who_does_not_listen_until_all_is_sent_gets_the_answer_too(port: HttpManager) -> None:
    size = 8 << 20
    with port.connect() as connection:
        connection.sendall(head(MESSAGES, f"Content-Length: {size}") + b"x" * size)
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
        # and may go on with the same connection
        code, _, _ = ask(connection, head("/healthz", "Connection: close", method="GET"))
        assert code == 200


def test_the_limit_can_be_changed(port: HttpManager) -> None:
    with port.client() as client:
        body = {"messages": [{"text": "x" * MOST}]}
        assert client.post(MESSAGES, json=body).status_code == 413
        http = HttpSection(loopback_role="manage", request_bytes=1 << 20)
        port.server.apply(http)
        assert client.post(MESSAGES, json=body).status_code in (200, 201)


def test_headers_may_have_so_many_bytes(port: HttpManager) -> None:
    with port.connect() as connection:
        code, _, _ = ask(
            connection,
            head("/healthz", f"X-Long: {'x' * 60000}", "Connection: close", method="GET"),
        )
        assert code == 200
    with port.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        code, headers, body = ask(connection, b"x" * 70000)
        assert code in (400, 431)
        assert headers["content-type"] == "application/problem+json"
        assert headers["x-content-type-options"] == "nosniff"
        assert json.loads(body)["status"] == code


@pytest.mark.parametrize(
    "request_",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # TLS
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_answered_with_a_problem(port: HttpManager, request_: bytes) -> None:
    with port.connect() as connection:
        code, headers, body = ask(connection, request_)
    assert code == 400
    assert headers["content-type"] == "application/problem+json"
    assert headers["cache-control"] == "no-store"
    assert json.loads(body)["detail"] == "Invalid HTTP request received"


def test_a_wish_for_another_protocol_is_ignored(
    port: HttpManager, caplog: pytest.LogCaptureFixture
) -> None:
    with port.connect() as connection:
        lines = "Connection: Upgrade, close", "Upgrade: h2c"
        assert ask(connection, head("/healthz", *lines, method="GET"))[0] == 200
    assert caplog.text == ""


# Seconds


def closes_within(connection: socket.socket, seconds: float) -> bytes:
    """What it still says until it closes, long before the times that users have are over."""
    began = time.monotonic()
    data = b""
    while piece := connection.recv(65536):
        data += piece
    assert time.monotonic() - began < seconds + 15
    return data


def test_who_says_nothing_is_sent_away(quick: HttpManager) -> None:
    with quick.connect() as connection:
        assert closes_within(connection, 0.3) == b""


@pytest.mark.parametrize("first", [b"G", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
def test_headers_that_do_not_end_are_not_waited_for(quick: HttpManager, first: bytes) -> None:
    with quick.connect() as connection:
        connection.sendall(first)
        answer = closes_within(connection, 0.3)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"application/problem+json" in answer


def test_a_drop_now_and_then_does_not_prolong_it(quick: HttpManager) -> None:
    with quick.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert drips_until_closed(connection) < 5


def drips_until_closed(connection: socket.socket) -> float:
    """One byte after the other; how many seconds the other side bears it."""
    began = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - began < 10:
            connection.sendall(b"x")
            time.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.parametrize("path", [MESSAGES, PACKETS])
def test_a_body_that_does_not_come_is_not_waited_for(
    quick: HttpManager, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with quick.connect() as connection:
        lines = "Content-Length: 1000", f"Content-Type: {KINDS[path]}"
        connection.sendall(head(path, *lines) + b"{")
        answer = closes_within(connection, 0.3)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"came too slowly" in answer
    assert b"connection: close" in answer
    assert "ERROR" not in caplog.text


def test_a_body_that_comes_has_the_time_it_needs(tmp_path: Path) -> None:
    limits = Limits(body_seconds=2.0, body_bytes_per_second=50)
    with HttpManager(tmp_path, loopback_role="manage", limits=limits) as port:
        with port.client() as client:
            assert client.post("/api/v1/queues", json={"name": ORDERS}).status_code == 201
        body = json.dumps({"messages": [{"text": "x" * 300}]}).encode()
        with port.connect() as connection:  # 2.5 seconds for 330 bytes: fast enough
            length, kind = f"Content-Length: {len(body)}", f"Content-Type: {KINDS[MESSAGES]}"
            connection.sendall(head(MESSAGES, length, kind, "Connection: close"))
            for start in range(0, len(body), 40):
                connection.sendall(body[start : start + 40])
                time.sleep(0.3)
            assert answer_on(connection)[0] in (200, 201)


def test_who_waits_for_a_message_is_not_sent_away(quick: HttpManager) -> None:
    with quick.client() as client:
        answer = client.post(RECEIVE, json={"timeout": 1.5})
        assert answer.status_code == 200
        assert answer.json()["messages"] == []


def test_headers_in_pieces_do_not_cut_the_wait_behind_them_short(quick: HttpManager) -> None:
    body = json.dumps({"timeout": 1.0}).encode()
    kind, length = f"Content-Type: {KINDS[MESSAGES]}", f"Content-Length: {len(body)}"
    request = head(RECEIVE, kind, length, "Connection: close") + body
    with quick.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, 40, 10):  # each piece comes alone
            connection.sendall(request[start : start + 10])
            time.sleep(0.02)
        code, _, content = ask(connection, request[40:])
    assert (code, json.loads(content)["messages"]) == (200, [])


def test_an_idle_connection_is_closed_in_the_end(quick: HttpManager) -> None:
    with quick.connect() as connection:
        connection.sendall(head("/healthz", method="GET"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        closes_within(connection, 1)


def test_the_rest_of_a_body_that_nobody_wants_is_not_waited_for(quick: HttpManager) -> None:
    with quick.connect() as connection:
        connection.sendall(head("/nothing", "Content-Length: 100000"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")
        connection.sendall(b"x")
        closes_within(connection, 0.3)


def test_a_caller_that_goes_away_leaves_no_trace(
    port: HttpManager, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (MESSAGES, PACKETS):
        with port.connect() as connection:
            lines = "Content-Length: 1000", f"Content-Type: {KINDS[path]}"
            connection.sendall(head(path, *lines) + b"{")
            wait_until(lambda: port.server.connections == 1)
        wait_until(lambda: port.server.connections == 0)
    assert caplog.text == ""


# Connections


def test_more_connections_than_allowed_are_told_to_come_back(tmp_path: Path) -> None:
    limits = Limits(connections=3)
    with HttpManager(tmp_path, limits=limits) as port, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(port.connect())
        wait_until(lambda: port.server.connections == 3)
        answer = httpx.get(f"{port.url}/readyz")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
        assert answer.json()["detail"] == "too many connections"
        assert httpx.get(f"{port.url}/healthz").status_code == 200  # it is not dead
        stack.close()
        wait_until(lambda: port.server.connections == 0)
        assert httpx.get(f"{port.url}/readyz").status_code == 200


def test_far_too_many_are_not_even_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falconmq.service.web.protocol._SPARE", 1)
    with HttpManager(tmp_path, limits=Limits(connections=1)) as port, ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(port.connect())
        wait_until(lambda: port.server.connections == 2)
        third = stack.enter_context(port.connect())
        with pytest.raises((ConnectionError, IndexError, ValueError)):
            ask(third, head("/healthz", method="GET"))
