"""Who may use what is left open between requests: every route asks for its role."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from falconmq import Message, aio
from falconmq.service.access import Principal, Role, set_principal
from falconmq.service.api import create_app
from tests.embedded.helpers import threaded_engine
from tests.service.asking import ORDERS, PACKETS, queue_path

ID = str(UUID(int=7))
RECEIVE = queue_path(ORDERS, "/receive")
ALL = frozenset({Role.READ, Role.SEND, Role.RECEIVE})


def as_one_with(app: FastAPI, *roles: Role) -> ASGIApp:
    """A door that knows its caller."""

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        set_principal(scope, Principal("tester", frozenset(roles)))
        await app(scope, receive, send)

    return door


def ask(
    roles: tuple[Role, ...], method: str, path: str, body: object, headers: dict[str, str]
) -> int:
    """The status of an answer; the queue has a message."""

    async def main() -> int:
        engine = threaded_engine()
        manager = aio.QueueManager(engine)
        queue = await manager.create_queue(ORDERS)
        await queue.send(Message("a"))
        transport = httpx.ASGITransport(app=as_one_with(create_app(manager), *roles))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            url = "/api/v1" + path
            answer = await client.request(method, url, json=body, headers=headers)
        await manager.close()
        return answer.status_code

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("POST", RECEIVE, {}, {Role.RECEIVE}),
        ("POST", RECEIVE, {"peek": True}, {Role.READ}),
        ("POST", RECEIVE, {"lease": 5}, {Role.RECEIVE}),
        ("GET", queue_path(ORDERS, "/messages"), None, {Role.READ}),
        ("GET", queue_path(ORDERS, "/messages/1"), None, {Role.READ}),
        ("DELETE", queue_path(ORDERS, "/messages/1"), None, set()),
        (
            "POST",
            queue_path(ORDERS, "/messages/move"),
            {"lookup_ids": ["1"], "target": ORDERS},
            set(),  # receive and send together
        ),
        ("PATCH", queue_path(ORDERS), {}, set()),
        ("POST", "/transactions", {}, {Role.SEND, Role.RECEIVE}),
        ("GET", "/transactions", None, {Role.READ}),
        ("GET", f"/transactions/{ID}", None, ALL),
        ("POST", f"/transactions/{ID}/commit", None, {Role.SEND, Role.RECEIVE}),
        ("POST", f"/transactions/{ID}/abort", None, {Role.SEND, Role.RECEIVE}),
        ("POST", f"/transactions/{ID}/prepare", None, {Role.SEND, Role.RECEIVE}),
        ("POST", f"/transactions/{ID}/extend", None, {Role.SEND, Role.RECEIVE}),
        ("GET", "/leases", None, {Role.READ}),
        ("GET", f"/leases/{ID}", None, {Role.READ, Role.RECEIVE}),
        ("POST", f"/leases/{ID}/commit", None, {Role.RECEIVE}),
        ("POST", f"/leases/{ID}/abort", None, {Role.RECEIVE}),
        ("POST", f"/leases/{ID}/extend", None, {Role.RECEIVE}),
        ("POST", queue_path(ORDERS, "/handles"), None, {Role.RECEIVE}),
        ("POST", f"/handles/{ID}/extend", None, {Role.RECEIVE}),
        ("DELETE", f"/handles/{ID}", None, {Role.RECEIVE}),
        ("POST", queue_path(ORDERS, "/cursors"), None, {Role.RECEIVE}),
        ("POST", queue_path(ORDERS, "/cursors"), {"peek": True}, {Role.READ, Role.RECEIVE}),
        ("DELETE", f"/cursors/{ID}", None, {Role.READ, Role.RECEIVE}),
    ],
)
def test_a_route_asks_for_its_role(method: str, path: str, body: Any, allowed: set[Role]) -> None:
    for role in Role:
        is_refused = ask((role,), method, path, body, {}) == 403
        assert is_refused == (role not in allowed | {Role.MANAGE}), role
    assert ask((), method, path, body, {}) == 403


@pytest.mark.parametrize(("peek", "role"), [(True, Role.READ), (False, Role.RECEIVE)])
def test_the_fast_door_asks_for_the_same_roles(peek: bool, role: Role) -> None:
    for given in Role:
        status = ask((given,), "POST", RECEIVE, {"peek": peek}, {"Accept": PACKETS})
        assert (status == 200) == (given in (role, Role.MANAGE)), given


def test_moving_takes_the_roles_to_receive_and_to_send() -> None:
    body = {"lookup_ids": ["1"], "target": ORDERS}
    path = queue_path(ORDERS, "/messages/move")
    assert ask((Role.RECEIVE, Role.SEND), "POST", path, body, {}) == 404
