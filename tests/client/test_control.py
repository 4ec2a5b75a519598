"""The control client, when the other end is not what it should be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from falconmq.client import CONTROL_SOCKET, ControlClient, ServiceError, UnreachableError
from falconmq.errors import MqStatus


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

    monkeypatch.setattr("falconmq.client.control._UnixConnection.connect", connect)
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
