"""Why, traces, sessions, pings and the purge of outgoing queues over HTTP, in a real service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from falconmq import Message
from falconmq.message import Journal
from falconmq.service.access import Principal, Role, set_principal
from falconmq.service.api import create_app
from falconmq.service.daemon import Service
from falconmq.service.web.control import ControlServer
from tests.service.asking import ORDERS, Api
from tests.service.services import direct, loopback, run, serving, until


class Doored:
    """A service in memory with a control socket."""

    def __init__(self, service: Service, directory: Path) -> None:
        self._service = service
        self._path = directory / "control.sock"
        self._server = ControlServer()
        self._app = create_app(
            service.manager, transport=service.transport, configuration=service.configuration
        )

    async def __aenter__(self) -> Callable[..., Any]:
        await self._server.start(self._path, self._app)
        api = Api(self._path)

        async def ask(method: str, path: str, body: object = None) -> Any:
            return await asyncio.to_thread(api.ask, method, path, body)

        return ask

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()


def why(subject: str) -> str:
    return f"/why?{urlencode({'subject': subject})}"


def test_why_over_http(tmp_path: Path) -> None:
    async def main() -> None:
        address = loopback()
        name = rf"DIRECT=TCP:{address}\private$\orders"
        async with serving(try_connect_interval=30.0) as service, Doored(service, tmp_path) as ask:
            queue = await service.manager.queue(name)
            id = await queue.send(Message("1"))
            await until(lambda: bool(service.transport.peers) and _is_refused(service))
            found = (await ask("GET", why(name))).json
            assert found["kind"] == "outgoing"
            assert found["severity"] == "error"
            assert found["causes"][0]["code"] == "connection-refused"
            assert found["causes"][0]["since"].endswith("+00:00")
            assert found["hints"] == [
                f"is the service running there? check: falconmq ping {address}"
            ]
            found = (await ask("GET", why(str(id)))).json
            assert found["kind"] == "message"
            assert [step["kind"] for step in found["timeline"]] == ["queued"]
            refused = await ask("GET", why(r".\private$\nowhere"))
            assert (refused.status, refused.json["error"]) == (404, "MQ_ERROR_QUEUE_NOT_FOUND")
            assert (await ask("GET", "/why")).status == 422

    run(main())


def _is_refused(service: Service) -> bool:
    return any(peer.problem for peer in service.transport.peers.values())


def test_a_lease_that_holds_a_message_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as service, Doored(service, tmp_path) as ask:
            queue = await service.manager.create_queue(ORDERS)
            id = await queue.send(Message("1"))
            path = f"/queues/{quote(ORDERS, safe='')}/receive"
            taken = (await ask("POST", path, {"lease": 60})).json
            found = (await ask("GET", why(str(id)))).json
            assert f"lease {taken['lease']} holds it" in found["causes"][1]["text"]
            backlog = (await ask("GET", why(ORDERS))).json
            assert backlog["causes"][0]["text"] == f"lease {taken['lease']} holds 1 message"

    run(main())


def test_traces_over_http(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as service, Doored(service, tmp_path) as ask:
            queue = await service.manager.create_queue(ORDERS)
            id = await queue.send(Message("1"))
            await queue.receive(timeout=0)
            path = f"/messages/{quote(str(id), safe='')}/trace"
            found = (await ask("GET", path)).json
            assert [stop["kind"] for stop in found["stops"]] == ["arrived", "received"]
            assert {stop["name"] for stop in found["stops"]} == {service.configuration.manager.name}
            listed = (await ask("GET", f"/traces?{urlencode({'queue': ORDERS})}")).json
            assert listed == {"routes": [found]}
            assert (await ask("GET", "/messages/nonsense/trace")).status == 400

    run(main())


def test_sessions_and_ping_over_http(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as there, serving() as here, Doored(here, tmp_path) as ask:
            await there.manager.create_queue(ORDERS)
            assert (await ask("GET", "/sessions")).json == {"sessions": []}
            queue = await here.manager.queue(direct(there))
            await queue.send(Message("1"))
            await until(lambda: len(there.transport.sessions) == 1)
            await until(lambda: here.transport.counters["sessions opened"] == 1)
            (session,) = (await ask("GET", "/sessions")).json["sessions"]
            address = there.configuration.manager.bind
            assert (session["address"], session["state"]) == (address, "OPEN")
            assert (session["is_initiator"], session["is_direct"]) == (True, True)
            assert session["queue_manager"] == str(there.engine.core.identifier)
            assert session["messages_sent"] == 1
            assert session["open_seconds"] >= 0
            found = (await ask("POST", "/ping", {"address": address, "timeout": 1})).json
            assert found["is_reachable"] is True
            assert found["addresses"][0]["tcp"] == "connected"
            assert (await ask("POST", "/ping", {"address": ""})).status == 422

    run(main())


def test_an_outgoing_queue_is_purged_and_dead_letters_are_kept(tmp_path: Path) -> None:
    async def main() -> None:
        name = rf"DIRECT=TCP:{loopback()}\private$\orders"
        async with serving() as service, Doored(service, tmp_path) as ask:
            queue = await service.manager.queue(name)
            await queue.send(Message("1", journal=Journal.DEAD_LETTER))
            await queue.send(Message("2"))
            (number,) = [q.number for q in service.engine.core.outgoing.values()]
            assert (await ask("DELETE", f"/outgoing/{number}/messages")).json == {"purged": 2}
            assert (await ask("DELETE", f"/outgoing/{number}/messages")).json == {"purged": 0}
            (letter,) = (await ask("GET", "/dead-letters")).json["letters"]
            assert letter["reason"] == "NACK_DELETED"
            assert (await ask("DELETE", "/outgoing/4711/messages")).status == 404

    run(main())


READING = ["/why?subject=x", "/dead-letters", "/sessions", "/traces?queue=x", "/messages/x/trace"]
MANAGING = [
    ("POST", "/ping"),
    ("POST", "/dead-letters/redrive"),
    ("POST", "/dead-letters/delete"),
    ("DELETE", "/outgoing/1/messages"),
]


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [("GET", path, Role.READ) for path in READING]
    + [(method, path, Role.MANAGE) for method, path in MANAGING],
)
def test_every_route_needs_its_role(method: str, path: str, role: Role) -> None:
    async def main() -> None:
        async with serving() as service:
            app = create_app(service.manager, transport=service.transport)
            for roles, status in ((None, 401), (Role.SEND, 403)):
                assert await _status(app, method, path, roles) == status
            if role is Role.MANAGE:
                assert await _status(app, method, path, Role.READ) == 403
            assert await _status(app, method, path, role) not in (401, 403)

    run(main())


async def _status(app: Any, method: str, path: str, role: Role | None) -> int:
    """What an application answers to a caller that a door let in with this role."""
    found: list[int] = []
    plain, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": f"/api/v1{plain}",
        "raw_path": f"/api/v1{plain}".encode(),
        "query_string": query.encode(),
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "scheme": "http",
    }
    if role is not None:
        set_principal(scope, Principal("x", frozenset({role})))
    sent = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for event in sent:
            return event
        return {"type": "http.disconnect"}

    async def send(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            found.append(event["status"])

    await app(scope, receive, send)
    return found[0]
