"""A real service with its HTTP port, in an event loop of its own, for a browser to look at."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from falconmq import Message
from falconmq.embedded import QueueManager
from falconmq.service.access import Role
from falconmq.service.configuration import load
from falconmq.service.daemon import Service
from tests.service.services import loopback

PATIENCE = 30.0  # seconds until a test gives up
_CONFIGURATION = """\
[manager]
name = "{name}"
data = "data"
bind = "{bind}"

[transport]
try_connect_interval = 0.2

[http]
port = 0
loopback_role = "{role}"
{more}
"""
_T = TypeVar("_T")


class Site:
    """`with Site(directory) as site`: `site.url`, and the queue manager for the test itself."""

    def __init__(
        self, directory: Path, *, name: str = "SALES01", loopback_role: str = "", more: str = ""
    ) -> None:
        self.file = directory / "falconmq.toml"
        self.file.write_text(
            _CONFIGURATION.format(name=name, bind=loopback(), role=loopback_role, more=more)
        )
        self.configuration = load(self.file)
        self.service: Service
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        assert self.service.http is not None
        return self.service.http.url

    @property
    def address(self) -> str:
        return self.configuration.manager.bind

    @property
    def manager(self) -> QueueManager:
        """The queue manager, for the thread of the test."""
        return self.service.manager.blocking

    def token(self, *roles: Role, name: str = "") -> str:
        """A new token."""
        tokens = self.control.access.tokens
        chosen = roles or (Role.MANAGE,)
        text, _ = tokens.create(name or f"test-{len(tokens.listing())}", chosen, None)
        return str(text)

    @property
    def control(self) -> Any:
        return self.service._control

    def send(self, name: str, *bodies: str | Message) -> None:
        queue = self.manager.queue(name)
        with self.manager.transaction() as transaction:
            inside = transaction if queue.is_local and queue.is_transactional else None
            for body in bodies:
                message = body if isinstance(body, Message) else Message(body, label=body[:40])
                queue.send(message, inside)

    def run(self, call: Callable[[], Coroutine[Any, Any, _T]], patience: float = PATIENCE) -> _T:
        """Run something in the loop of the service."""
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(patience)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.service = self.run(lambda: Service.start(self.configuration))
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.service.stop)
        finally:
            self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


class LogIn:
    """A log-in without a browser, for requests that no button makes, and for people without one."""

    def __init__(self, site: Site, token: str) -> None:
        self.client = httpx.Client(base_url=site.url)
        answer = self.client.post("/login", data={"token": token, "next": "/"})
        assert answer.status_code == HTTPStatus.SEE_OTHER, answer.text
        page = self.client.get("/").text
        self.csrf = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        assert self.csrf

    def get(self, path: str) -> str:
        return self.client.get(path).text

    def post(self, path: str, **fields: str | list[str]) -> httpx.Response:
        return self.client.post(path, data={"csrf_token": self.csrf, **fields})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
