"""A real service with its doors open, and an HTTP client on its control socket, for tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from falconmq.service.configuration import Configuration
from falconmq.service.daemon import Service
from tests.service.services import configured, loopback

API = "http://service/api/v1"


@asynccontextmanager
async def observed(
    data: Path, bind: str = "", **changes: Any
) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """A service over a directory; `changes` are sections of its configuration."""
    configuration: Configuration = replace(configured(bind or loopback(), data), **changes)
    service = await Service.start(configuration)
    try:
        async with client(configuration) as http:
            yield service, http
    finally:
        await service.stop()


def client(configuration: Configuration) -> httpx.AsyncClient:
    door = httpx.AsyncHTTPTransport(uds=str(configuration.control_socket))
    return httpx.AsyncClient(transport=door, base_url=API, timeout=20)


def at(queue: str, action: str) -> str:
    """The path of something that is done with a queue."""
    return f"/queues/{quote(queue, safe='')}/{action}"


class Sse(NamedTuple):
    """One server-sent event."""

    event: str
    data: dict[str, Any]
    id: int | None = None


class Events:
    """The events of a stream, one by one."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Sse:
        """The next event; comments are passed over."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line.startswith(":"):
                continue
            if not line:
                if fields:
                    break
                continue
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            raise EOFError
        number = int(fields["id"]) if "id" in fields else None
        return Sse(fields["event"], json.loads(fields["data"]), number)

    async def until(self, kind: str) -> Sse:
        while (event := await self.next()).event != kind:
            pass
        return event


@asynccontextmanager
async def following(http: httpx.AsyncClient, **wanted: Any) -> AsyncIterator[Events]:
    """A stream of events that has begun: `start` has been read."""
    async with http.stream("GET", "/events", params=wanted) as response:
        assert response.status_code == 200, await response.aread()
        events = Events(response)
        assert (await events.next()).event == "start"
        yield events
