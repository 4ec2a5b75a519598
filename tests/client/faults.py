"""A proxy that breaks connections where a test says: before a request or before its answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

PASS = "pass"
LOSE_REQUEST = "lose the request"  # the service never hears of it
LOSE_ANSWER = "lose the answer"  # the service has done it
HALF_ANSWER = "half of the answer"


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    method: str
    path: str
    body: bytes


Plan = Callable[[Request], str]


class BreakingProxy:
    """Stands between a client and the service at an address; `plan` decides for each request."""

    def __init__(self, target: tuple[str, int], plan: Plan | None = None) -> None:
        self.target = target
        self.plan: Plan = plan or (lambda _: PASS)
        self.passed_on: Callable[[Request, str], None] = lambda _, __: None
        self.seen: list[Request] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def paths(self) -> list[str]:
        """The last parts of what was asked for."""
        return [request.path.rpartition("/")[2].partition("?")[0] for request in self.seen]

    def once(self, part: str, fault: str) -> None:
        """Break the next request whose path has this part, and no other."""
        left = [fault]
        self.plan = lambda request: left.pop() if left and part in request.path else PASS

    def close(self) -> None:
        for each in (self._listener, *self._sockets):
            _hang_up(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._sockets.add(client)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            server: socket.socket | None = None
            try:
                while request := _read_message(client):
                    if server is None:
                        server = socket.create_connection(self.target)
                        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        self._sockets.add(server)
                    if not self._pass_on(request, client, server):
                        return
            finally:
                for each in (client, server):
                    if each is not None:
                        _hang_up(each)
                        self._sockets.discard(each)

    def _pass_on(self, raw: bytes, client: socket.socket, server: socket.socket) -> bool:
        request = _parsed(raw)
        fault = self.plan(request)
        self.seen.append(request)
        if fault == LOSE_REQUEST:
            return False
        server.sendall(raw)
        answer = _answer(server, client)
        self.passed_on(request, fault)
        if not answer or fault == LOSE_ANSWER:
            return False
        client.sendall(answer[: len(answer) // 2] if fault == HALF_ANSWER else answer)
        return fault == PASS


def _hang_up(connection: socket.socket) -> None:
    """Even if a thread reads from it: a close alone would wait for that."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _answer(server: socket.socket, client: socket.socket) -> bytes:
    """The answer; nothing if the client hangs up while the service lets it wait."""
    hung_up = threading.Event()

    def watch() -> None:
        with contextlib.suppress(OSError):
            if not client.recv(1, socket.MSG_PEEK):
                hung_up.set()
                server.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=watch, daemon=True).start()
    answer = _read_message(server)
    return b"" if hung_up.is_set() else answer


def _read_message(connection: socket.socket) -> bytes:
    """Head and body of a request or an answer; nothing at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    size = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            size = int(line[15:])
    while len(body) < size:
        piece = connection.recv(65536)
        if not piece:
            return b""
        body += piece
    return head + b"\r\n\r\n" + body


def _parsed(raw: bytes) -> Request:
    head, _, body = raw.partition(b"\r\n\r\n")
    method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
    return Request(method, unquote(path), body)
