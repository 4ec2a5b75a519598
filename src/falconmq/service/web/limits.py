"""What one caller of the HTTP port may cost: size and time of a request, number of connections.

headers     64 KiB, within 20 seconds                           `web_protocol`
body        `http.request_bytes`: 413 for more, before it is read if its length is announced
            20 seconds, and then at least 500 bytes for each second: 408 for less
answers     as long as they take: people wait for messages
idle        75 seconds between two requests
at once     4096 connections: 503 for the others, but /healthz is answered
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from falconmq.service.web.problems import http_problem

_CONTENT_POLICY: Final = (
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "object-src 'none'"
)
SECURITY_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Content-Security-Policy", _CONTENT_POLICY),
    ("X-Frame-Options", "DENY"),  # for browsers that do not know frame-ancestors
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_STATIC: Final = "/static/"
_ALWAYS: Final = "/healthz"  # a service with many callers is not dead


@dataclass(frozen=True, slots=True)
class Limits:
    """See above; only tests have others."""

    header_bytes: int = 64 << 10
    header_seconds: float = 20.0
    body_seconds: float = 20.0
    body_bytes_per_second: float = 500.0
    keep_alive_seconds: int = 75
    connections: int = 4096


class LimitedApp:
    """An ASGI application in front of another one, which it spares the requests beyond limits."""

    def __init__(
        self, app: ASGIApp, limits: Limits, request_bytes: int, connections: Callable[[], int]
    ) -> None:
        self._app = app
        self._limits = limits
        self._connections = connections
        self.request_bytes = request_bytes  # may change while the service runs
        self.strict_transport_seconds = 0  # the same

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(scope, send, self.strict_transport_seconds)
        try:
            length = self._announced(scope, answer)
            if length == 0:
                await self._app(scope, receive, answer.send)
                return
            body = _Body(self._limits, self.request_bytes, receive, answer)
            await self._app(scope, body.receive, answer.send)
        except HTTPException as error:
            if not answer.has_begun:
                await http_problem(error)(scope, receive, answer.send)

    def _announced(self, scope: Scope, answer: _Answer) -> int | None:
        """How long the body is; None: it comes in chunks. HTTPException if it cannot be taken."""
        if self._connections() > self._limits.connections and scope["path"] != _ALWAYS:
            answer.is_last = True
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many connections", {"Retry-After": "5"}
            )
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers:
            return None
        length = int(headers.get("content-length", "0"))  # the parser has looked at it
        if length > self.request_bytes:
            answer.is_last = "expect" in headers  # else the body is on its way: see `web_protocol`
            raise too_large(self.request_bytes)
        return length


class _Body:
    """The body of one request as the application gets it: counted, and on time."""

    def __init__(self, limits: Limits, most: int, receive: Receive, answer: _Answer) -> None:
        self._limits = limits
        self._most = most
        self._receive = receive
        self._answer = answer
        self._began = asyncio.get_running_loop().time()
        self._size = 0
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()  # only the end of the connection can come
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            self._answer.is_last = True
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT, "the body of the request came too slowly"
            ) from None
        if message["type"] == "http.disconnect":
            # Nobody reads the answer, but an application that ends so needs no line in the log.
            raise HTTPException(HTTPStatus.BAD_REQUEST, "the request ended before its body did")
        self._take(message)
        return message

    @property
    def _deadline(self) -> float:
        limits = self._limits
        return self._began + limits.body_seconds + self._size / limits.body_bytes_per_second

    def _take(self, message: Message) -> None:
        self._size += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._size > self._most:
            raise too_large(self._most)


class _Answer:
    """The answer to one request, with the headers that all have."""

    def __init__(self, scope: Scope, send: Send, strict_transport_seconds: int) -> None:
        self._path: str = scope["path"]
        # Over TLS only: a browser believes nobody else that a host speaks TLS.
        self._strict_seconds = strict_transport_seconds if scope["scheme"] == "https" else 0
        self._send = send
        self.has_begun = False
        self.is_last = False  # the connection ends with it

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS:
                headers.setdefault(name, value)
            if self._strict_seconds:
                age = f"max-age={self._strict_seconds}"
                headers.setdefault("Strict-Transport-Security", age)
            if not self._path.startswith(_STATIC):
                headers.setdefault("Cache-Control", "no-store")
            if self.is_last:
                headers["Connection"] = "close"
        await self._send(message)


def too_large(most: int) -> HTTPException:
    return HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body of a request has at most {most} bytes here (http.request_bytes)",
    )
