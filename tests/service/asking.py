"""Requests to the HTTP API as any client makes them: nothing of ours but the address."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from falconmq.clock import VirtualClock
from falconmq.embedded.engine import Engine
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import Settings
from falconmq.store import MemoryStore
from tests.embedded.helpers import COMPUTER, PATIENCE

ORDERS = r".\private$\orders"
LEDGER = r".\private$\ledger"  # transactional
PACKETS = "application/vnd.falconmq.packets"


class Answer(NamedTuple):
    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.content) if self.content else None


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self._path))


class Api:
    """The API behind a control socket; each request has a connection of its own."""

    def __init__(self, path: Path, prefix: str = "/api/v1") -> None:
        self._path = path
        self._prefix = prefix

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        connection = UnixConnection(self._path)
        sent = {"Content-Type": "application/json", **(headers or {})}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, self._prefix + path, content, sent)
            response = connection.getresponse()
            return Answer(response.status, response.read(), dict(response.headers))
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON of an answer that is expected to be good."""
        return self._good(self.ask("GET", path))

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        return self._good(self.ask("POST", path, body, headers))

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, str, str]:
        """HTTP status, MSMQ's error and the text of an answer that is expected to be a problem."""
        answer = self.ask(method, path, body)
        assert answer.status >= 400, answer
        return answer.status, answer.json["error"], answer.json["detail"]

    def _good(self, answer: Answer) -> Any:
        assert answer.status < 400, answer.content.decode()
        return answer.json

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def queue_path(name: str, tail: str = "") -> str:
    return f"/queues/{quote(name, safe='')}{tail}"


def texts(answer: Any) -> list[str]:
    return [message["text"] for message in answer["messages"]]


def clocked_engine(store: MemoryStore | None = None) -> tuple[Engine, VirtualClock]:
    """An engine with its threads, on a clock that stands still."""
    clock = VirtualClock()
    engine = start_engine(
        MemoryStore() if store is None else store,
        Settings(computer_name=COMPUTER),
        clock=clock,
        random=Random(7),
    )
    return engine, clock
