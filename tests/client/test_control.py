"""The control client, when the other end is not what it should be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from falconmq.client import (
    CONTROL_SOCKET,
    ControlClient,
    ServiceError,
    UnreachableError,
    connections,
)
from falconmq.errors import MqStatus
from tests.embedded.helpers import Background, wait_until


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[ControlClient]:
    """Somebody at the socket who says this, whatever is asked."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer_once() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(65536)
                accepted.sendall(answer)

        thread = threading.Thread(target=answer_once, daemon=True)
        thread.start()
        with ControlClient(path) as client:
            yield client
        thread.join(10)


def test_nobody_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="no service is running") as raised:
        ControlClient(tmp_path / CONTROL_SOCKET).status()
    assert raised.value.status is MqStatus.SERVICE_NOT_AVAILABLE
    assert f"falconmq serve --data {tmp_path}" in raised.value.hint


def test_the_socket_of_another_user_is_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(_: object) -> None:  # root may connect to every socket, so it is pretended
        raise PermissionError

    monkeypatch.setattr("falconmq.client.connections.Connection.connect", connect)
    with pytest.raises(UnreachableError, match="another user"):
        ControlClient(tmp_path / CONTROL_SOCKET).status()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200", b"nonsense\r\n\r\n"])
def test_an_answer_that_breaks_off_leaves_it_open_what_happened(
    tmp_path: Path, answer: bytes
) -> None:
    with (
        answering(tmp_path / CONTROL_SOCKET, answer) as client,
        pytest.raises(UnreachableError, match="did not answer") as raised,
    ):
        client.status()
    assert "look before asking again" in raised.value.hint


@pytest.mark.parametrize("body", [b"oops", b"{}", b"[]", b'{"hresult": "0x1", "detail": ""}'])
def test_a_refusal_that_is_no_problem_is_still_a_refusal(tmp_path: Path, body: bytes) -> None:
    answer = b"HTTP/1.1 502 Bad\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with (
        answering(tmp_path / CONTROL_SOCKET, answer) as client,
        pytest.raises(ServiceError, match="HTTP status 502") as raised,
    ):
        client.status()
    assert raised.value.http_status == 502


# Connections stay open


class Server:
    """Somebody who answers every request with an empty list of queues, and counts."""

    def __init__(self, path: Path, requests_each: int = 1000, *, says_last: bool = True) -> None:
        self.path = path
        self.connections = 0
        self.requests = 0
        self._requests_each = requests_each
        self._says_last = says_last  # or it hangs up instead of the last answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        body = b'{"queues": []}'
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        with accepted:
            for number in range(self._requests_each):
                if not accepted.recv(65536):
                    return
                self.requests += 1
                if self._says_last or number + 1 < self._requests_each:
                    accepted.sendall(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()


def test_requests_share_a_connection(tmp_path: Path) -> None:
    with Server(tmp_path / CONTROL_SOCKET) as server, ControlClient(server.path) as client:
        assert [client.queues() for _ in range(5)] == [[]] * 5
        assert (server.connections, server.requests) == (1, 5)


def test_a_connection_that_the_service_has_closed_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 1000.0)  # it is not the time that tells
    with (
        Server(tmp_path / CONTROL_SOCKET, requests_each=1) as server,
        ControlClient(server.path) as client,
    ):
        client.queues()
        wait_until(
            lambda: not client.channel.connection().is_fresh()
        )  # until the good-bye has come
        client.queues()
        assert (server.connections, server.requests) == (2, 2)


def test_a_connection_that_rested_for_long_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(tmp_path / CONTROL_SOCKET) as server, ControlClient(server.path) as client:
        client.queues()
        monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
        client.queues()
        assert server.connections == 2


def test_a_request_that_could_not_be_sent_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a connection that is closed, which shows only when something is sent
    with Server(tmp_path / CONTROL_SOCKET) as server, ControlClient(server.path) as client:
        client.queues()
        found = client.channel.connection()
        assert found.sock is not None
        monkeypatch.setattr(type(found), "is_fresh", lambda _: True)
        found.sock.shutdown(socket.SHUT_WR)
        # when it is used
        client.queues()
        # then the request was carried out once, over a new one
        assert (server.connections, server.requests) == (2, 2)


def test_a_request_that_was_sent_is_never_sent_again(tmp_path: Path) -> None:
    # given a service that takes the second request of a connection and breaks off
    with (
        Server(tmp_path / CONTROL_SOCKET, requests_each=2, says_last=False) as server,
        ControlClient(server.path) as client,
    ):
        client.queues()
        with pytest.raises(UnreachableError, match="did not answer") as raised:
            client.queues()
        assert "look before asking again" in raised.value.hint
        assert server.requests == 2
        # and the next one begins anew
        client.queues()
        assert server.connections == 2


def test_each_thread_has_its_own_connection(tmp_path: Path) -> None:
    with Server(tmp_path / CONTROL_SOCKET) as server, ControlClient(server.path) as client:
        for _ in range(2):
            thread = threading.Thread(target=client.queues)
            thread.start()
            thread.join(10)
        client.queues()
        assert (server.connections, server.requests) == (3, 3)


def test_a_forked_process_does_not_speak_over_the_connection_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(tmp_path / CONTROL_SOCKET) as server, ControlClient(server.path) as client:
        client.queues()
        monkeypatch.setattr("os.getpid", lambda: 0)
        client.queues()
        assert server.connections == 2


def test_closing_the_client_ends_a_request_that_waits(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / CONTROL_SOCKET))
        listener.listen()
        client = ControlClient(tmp_path / CONTROL_SOCKET)
        waiting = Background(client.status)
        accepted, _ = listener.accept()
        with accepted:
            accepted.recv(65536)
            client.close()
            with pytest.raises(UnreachableError):
                waiting.result()


def test_a_refusal_ends_the_connection(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 500 Bad\r\nContent-Length: 0\r\n\r\n"
    with answering(tmp_path / CONTROL_SOCKET, answer) as client:
        with pytest.raises(ServiceError):
            client.status()
        assert not client.channel.connection().is_fresh()
