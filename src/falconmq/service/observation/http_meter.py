"""Counting the requests of the HTTP API, for metrics: few series, whatever callers ask for."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from falconmq.store.measuring import Histogram

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_API: Final = "/api/v1/"
# What a path below /api/v1 may begin with; the rest of it names things and is never a label.
_SUBJECTS: Final = frozenset(
    {
        "audit",
        "backup",
        "certificates",
        "configuration",
        "consumers",
        "cursors",
        "dead-letters",
        "directory",
        "directory-replication",
        "event-log",
        "events",
        "handles",
        "ingests",
        "keys",
        "leases",
        "manager",
        "membership",
        "messages",
        "names",
        "openapi.json",
        "outgoing",
        "permissions",
        "ping",
        "queues",
        "routes",
        "samples",
        "sessions",
        "status",
        "tokens",
        "traces",
        "transactions",
        "why",
    }
)
_OF_A_QUEUE: Final = frozenset(
    {
        "arrivals",
        "cursors",
        "handles",
        "messages",
        "packets",
        "permissions",
        "plan",
        "purge",
        "receive",
    }
)
_AT_THE_ROOT: Final = frozenset({"/healthz", "/readyz", "/metrics", "/login"})
NO_ANSWER: Final = 499  # the caller went away first, as proxies write it


def route_of(path: str) -> str:
    """The kind of request that a path is: one of about forty words."""
    if path.startswith(_API):
        subject, _, rest = path.removeprefix(_API).partition("/")
        if subject not in _SUBJECTS:
            return "other"
        action = rest.rpartition("/")[2]
        return f"queues/{action}" if subject == "queues" and action in _OF_A_QUEUE else subject
    if path in _AT_THE_ROOT:
        return path[1:]
    return "static" if path.startswith("/static/") else "console"


class HttpMeter:
    """The numbers; `measured` wraps an application so that they count its requests."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # by route, method, code
        self.seconds: dict[str, Histogram] = {}  # by route
        self.in_progress = 0

    def done(self, route: str, method: str, code: int, seconds: float) -> None:
        self.requests[route, method if method in _METHODS else "other", code] += 1
        histogram = self.seconds.get(route)
        if histogram is None:
            histogram = self.seconds[route] = Histogram(_SECONDS)
        histogram.add(seconds)


class MeteredApp:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, *, meter: HttpMeter) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, code, seconds = time.perf_counter(), 0, 0.0

        async def noting(message: Message) -> None:
            nonlocal code, seconds
            if message["type"] == "http.response.start":
                code, seconds = message["status"], time.perf_counter() - started
            await send(message)

        meter = self._meter
        meter.in_progress += 1
        try:
            await self._app(scope, receive, noting)
        finally:
            meter.in_progress -= 1
            if not code:
                code, seconds = NO_ANSWER, time.perf_counter() - started
            meter.done(route_of(scope["path"]), scope["method"], code, seconds)
