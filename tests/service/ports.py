"""A queue manager with its HTTP port, as the service has it, for tests."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from falconmq import aio
from falconmq.embedded.engine import Engine
from falconmq.service.access import Access, Role
from falconmq.service.access.failures import Failures
from falconmq.service.access.sessions import Sessions
from falconmq.service.access.tokens import TokenStore
from falconmq.service.api import create_app
from falconmq.service.configuration import Configuration, HttpSection, ManagerSection
from falconmq.service.web.http import HttpServer
from falconmq.service.web.limits import Limits
from tests.embedded.helpers import PATIENCE, threaded_engine


class Clock:
    """A time that the test sets."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class HttpManager:
    """Queue manager and HTTP port in an event loop of their own; the test is a caller."""

    def __init__(
        self,
        directory: Path,
        *,
        limits: Limits | None = None,
        troubles: Callable[[], list[str]] = list,
        bind: str = "127.0.0.1",
        engine: Engine | None = None,
        **http: Any,
    ) -> None:
        self.clock = Clock()
        section = HttpSection(bind=bind, port=http.pop("port", 0), **http)
        self.configuration = Configuration(ManagerSection("SALES01", directory), http=section)
        self.tokens = TokenStore(directory, self.clock)
        self.access = Access(self.tokens, Sessions(self.clock), Failures(self.clock))
        self.manager = aio.QueueManager(threaded_engine() if engine is None else engine)
        self.app = create_app(
            self.manager,
            configuration=self.configuration,
            access=self.access,
            troubles=troubles,
        )
        self.server = HttpServer(self.configuration, self.access, limits)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def address(self) -> tuple[str, int]:
        parts = httpx.URL(self.url)
        assert parts.port is not None
        return parts.host, parts.port

    def token(self, *roles: Role, name: str = "tester", lifetime: float | None = None) -> str:
        return self.tokens.create(name, roles or [Role.MANAGE], lifetime)[0]

    def client(self, token: str = "", **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE, **options)

    def connect(self) -> socket.socket:
        """A connection of its own, for what no library would send."""
        return socket.create_connection(self.address, timeout=PATIENCE)

    def do(self, call: Callable[[], Any]) -> Any:
        """Run something in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.do(lambda: self.server.start(self.app))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self.server.stop)
        self.do(self.manager.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


def ask(connection: socket.socket, request: bytes) -> tuple[int, Mapping[str, str], bytes]:
    """Send something, read until the other side closes: code, headers and body of the answer."""
    connection.sendall(request)
    return answer_on(connection)


def answer_on(connection: socket.socket) -> tuple[int, Mapping[str, str], bytes]:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split(" ")[1]), fields, body
