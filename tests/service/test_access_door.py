"""The door of the HTTP port: who comes in, and who is turned away, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import httpx
import pytest
from fastapi import Form, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from falconmq.service.access import (
    Access,
    Door,
    Role,
    check_csrf,
    clear_cookie,
    csrf_of,
    principal_of,
    set_cookie,
)
from tests.embedded.helpers import ORDERS
from tests.service.ports import HttpManager

QUEUES = "/api/v1/queues"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[HttpManager]:
    with HttpManager(tmp_path) as port:
        _add_pages(port)
        yield port


@pytest.fixture
def local(tmp_path: Path) -> Iterator[HttpManager]:
    """One that trusts callers of this computer."""
    with HttpManager(tmp_path, loopback_role="manage") as port:
        yield port


def _add_pages(port: HttpManager) -> None:
    """What the console does for log-ins, in short."""
    access = port.access

    async def log_in(request: Request, token: Annotated[str, Form()]) -> Response:
        session = access.log_in(request.scope, token)
        response = PlainTextResponse(session.csrf)
        set_cookie(response, request.scope, session)
        return response

    async def log_out(request: Request, csrf_token: Annotated[str, Form()] = "") -> Response:
        check_csrf(request.scope, csrf_token)
        access.log_out(request.scope)
        response = PlainTextResponse("bye")
        clear_cookie(response, request.scope)
        return response

    async def who(request: Request) -> Response:
        principal = principal_of(request.scope)
        name = "nobody" if principal is None else principal.name
        return PlainTextResponse(f"{name} {csrf_of(request.scope)}".strip())

    routes = port.app.router.routes
    before = len(routes)
    port.app.post("/login")(log_in)
    port.app.post("/test/out")(log_out)
    port.app.get("/test/who")(who)
    port.app.get("/static/who")(who)
    routes[:] = [*routes[before:], *routes[:before]]  # before whatever takes all paths


def create(client: httpx.Client, **headers: str) -> httpx.Response:
    return client.post(QUEUES, json={"name": ORDERS}, headers=headers)


# Tokens


def test_a_token_lets_its_owner_in(port: HttpManager) -> None:
    with port.client(port.token(Role.MANAGE)) as client:
        assert create(client).status_code == 201
        assert client.get(QUEUES).json()["queues"][0]["name"].lower().endswith("orders")


def test_without_a_token_nothing_is_shown(port: HttpManager) -> None:
    with port.client() as client:
        answer = client.get(QUEUES)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["hint"].startswith("a token is made with: falconmq token create")


@pytest.mark.parametrize("path", [QUEUES, "/api/v1/openapi.json", "/test/who", "/nothing"])
def test_a_wrong_token_is_refused_everywhere(port: HttpManager, path: str) -> None:
    with port.client(port.token()[:-1] + "!") as client:
        answer = client.get(path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert answer.json()["detail"] == "this token is not known, or it has expired"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/static/who"])
def test_some_paths_are_open_even_with_a_wrong_token(port: HttpManager, path: str) -> None:
    with port.client("wrong") as client:
        assert client.get(path).status_code == 200


def test_a_token_can_do_what_its_roles_say(port: HttpManager) -> None:
    with port.client(port.token(Role.READ, name="reader")) as client:
        assert client.get(QUEUES).status_code == 200
        answer = create(client)
    assert answer.status_code == 403
    assert answer.json()["detail"] == "reader has not the role manage"
    assert answer.json()["error"] == "MQ_ERROR_ACCESS_DENIED"


def test_an_expired_token_is_refused(port: HttpManager) -> None:
    with port.client(port.token(lifetime=60)) as client:
        assert client.get(QUEUES).status_code == 200
        port.clock.now += 60
        assert client.get(QUEUES).status_code == 401


def test_a_token_that_is_revoked_is_refused_at_once(port: HttpManager) -> None:
    with port.client(port.token(name="shop")) as client:
        assert client.get(QUEUES).status_code == 200
        port.tokens.revoke("shop")
        assert client.get(QUEUES).status_code == 401


@pytest.mark.parametrize("value", ["Basic YWRtaW46YWRtaW4=", "fmq_x", "Bearer"])
def test_other_ways_to_show_a_token_are_refused(port: HttpManager, value: str) -> None:
    with port.client() as client:
        assert client.get(QUEUES, headers={"Authorization": value}).status_code == 401


def test_a_good_token_counts_only_as_a_bearer_token(port: HttpManager) -> None:
    with port.client() as client:
        answer = client.get(QUEUES, headers={"Authorization": f"Basic {port.token()}"})
    assert answer.status_code == 401
    assert "Authorization: Bearer TOKEN" in answer.json()["detail"]


def test_the_name_of_the_scheme_has_no_case(port: HttpManager) -> None:
    with port.client() as client:
        token = port.token()
        answer = client.get(QUEUES, headers={"Authorization": f"bearer   {token}"})
    assert answer.status_code == 200


def test_too_many_wrong_tokens_are_answered_with_429(
    port: HttpManager, caplog: pytest.LogCaptureFixture
) -> None:
    with port.client("wrong") as client, port.client(port.token(), trust_env=False) as good:
        codes = [client.get(QUEUES).status_code for _ in range(12)]
        assert codes == [401] * 10 + [429] * 2
        answer = client.get(QUEUES)
        assert answer.headers["retry-after"] == "60"
        assert answer.json()["detail"] == "too many wrong tokens from this address"
        # who has a right one is not locked out by a neighbour
        assert good.get(QUEUES).status_code == 200
        port.clock.now += 60
        assert client.get(QUEUES).status_code == 401
    assert caplog.text.count("token refused address=127.0.0.1") == 11
    assert "wrong" not in caplog.text


# Log-ins


@pytest.fixture
def browser(port: HttpManager) -> Iterator[httpx.Client]:
    """Somebody who has logged in."""
    with port.client() as client:
        answer = client.post("/login", data={"token": port.token(name="ann")})
        assert answer.status_code == 200
        client.headers["X-Test-Csrf"] = answer.text
        yield client


def csrf(browser: httpx.Client) -> str:
    return browser.headers["X-Test-Csrf"]


def test_a_log_in_is_a_cookie_for_all_requests(browser: httpx.Client) -> None:
    assert browser.get("/test/who").text == f"ann {csrf(browser)}"
    assert browser.get(QUEUES).status_code == 200


def test_a_log_in_with_a_wrong_token_is_refused_and_counted(port: HttpManager) -> None:
    with port.client() as client:
        codes = [client.post("/login", data={"token": "x"}).status_code for _ in range(11)]
        assert codes == [401] * 10 + [429]
        assert not client.cookies


def test_a_request_with_a_cookie_that_changes_something_needs_the_csrf_token(
    browser: httpx.Client,
) -> None:
    answer = create(browser)
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]
    assert create(browser, **{"X-CSRF-Token": csrf(browser)[1:]}).status_code == 403
    assert create(browser, **{"X-CSRF-Token": "!" + csrf(browser)[1:]}).status_code == 403
    assert create(browser, **{"X-CSRF-Token": csrf(browser)}).status_code == 201


def test_a_page_checks_the_csrf_token_of_its_form(browser: httpx.Client) -> None:
    assert browser.post("/test/out", data={"csrf_token": "x"}).status_code == 403
    assert browser.get("/test/who").text.startswith("ann")
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    assert browser.post("/test/out", data={"csrf_token": csrf(browser)}).text == "bye"
    # the browser has dropped it, and the server does not know it any more
    assert not browser.cookies
    assert browser.get("/test/who", headers={"Cookie": cookie}).text == "nobody"


def test_a_log_in_ends_with_its_token(port: HttpManager, browser: httpx.Client) -> None:
    port.tokens.revoke("ann")
    assert browser.get("/test/who").text == "nobody"
    assert browser.get(QUEUES).status_code == 401
    assert len(port.access.sessions) == 0


def test_a_log_in_has_the_roles_its_token_has(port: HttpManager) -> None:
    with port.client() as client:
        token = port.token(Role.READ)
        given = client.post("/login", data={"token": f" {token}\n"}).text
        assert create(client, **{"X-CSRF-Token": given}).status_code == 403
        assert client.get(QUEUES).status_code == 200


def test_a_log_in_ends_after_twelve_hours(port: HttpManager, browser: httpx.Client) -> None:
    port.clock.now += 12 * 3600
    assert browser.get("/test/who").text == "nobody"


def test_a_new_log_in_replaces_the_old_one(port: HttpManager, browser: httpx.Client) -> None:
    browser.post("/login", data={"token": port.token(name="eve")})
    assert browser.get("/test/who").text.startswith("eve")
    assert len(port.access.sessions) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_other_sites_cannot_use_a_log_in(
    port: HttpManager, browser: httpx.Client, headers: dict[str, str]
) -> None:
    answer = create(browser, **{"X-CSRF-Token": csrf(browser)}, **headers)
    assert answer.status_code == 403
    assert "another site" in answer.json()["detail"]
    # nor can they log somebody in, to see what he then does
    assert browser.post("/login", data={"token": port.token()}, headers=headers).status_code == 403


def test_our_own_pages_can(port: HttpManager, browser: httpx.Client) -> None:
    headers = {"Origin": port.url, "Sec-Fetch-Site": "same-origin", "X-CSRF-Token": csrf(browser)}
    assert create(browser, **headers).status_code == 201


def test_a_token_may_come_from_any_site(port: HttpManager) -> None:
    with port.client(port.token()) as client:
        assert create(client, Origin="https://tools.example").status_code == 201


# Callers of this computer


def test_without_being_told_so_callers_of_this_computer_are_strangers(port: HttpManager) -> None:
    with port.client() as client:
        assert client.get(QUEUES).status_code == 401


def test_callers_of_this_computer_may_have_a_role(local: HttpManager) -> None:
    with local.client() as client:
        assert create(client).status_code == 201
        assert client.get(QUEUES).status_code == 200


@pytest.mark.parametrize(
    ("peer", "is_trusted"),
    [
        (("127.0.0.1", 1), True),
        (("127.9.9.9", 1), True),
        (("::1", 1), True),
        (("::ffff:127.0.0.1", 1), True),
        (("10.0.0.7", 1), False),
        (("::ffff:10.0.0.7", 1), False),
        (("2001:db8::1", 1), False),
        (("localhost", 1), False),  # no address
        (None, False),
    ],
)
def test_other_computers_do_not_have_it(
    tmp_path: Path, peer: tuple[str, int] | None, is_trusted: bool
) -> None:
    # given a door whose caller says whatever a caller of this computer would say
    seen: list[object] = []

    async def inside(scope: Scope, _: Receive, __: Send) -> None:
        seen.append(principal_of(scope))

    door = Door(inside, Access.of(tmp_path), loopback_role="manage")
    headers = [(b"host", b"localhost:8018")]
    scope = {"type": "http", "method": "GET", "path": QUEUES, "headers": headers, "client": peer}
    asyncio.run(door(scope, _nothing_comes, _nobody_listens))
    assert [principal is not None for principal in seen] == [is_trusted]


async def _nothing_comes() -> Message:
    raise AssertionError("the door does not read")


async def _nobody_listens(_: Message) -> None:
    raise AssertionError("the door does not answer")


def test_they_have_that_role_and_no_other(tmp_path: Path) -> None:
    with HttpManager(tmp_path, loopback_role="read") as port, port.client() as client:
        assert client.get(QUEUES).status_code == 200
        answer = create(client)
    assert answer.status_code == 403
    assert answer.json()["detail"] == "loopback has not the role manage"


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8018", "127.0.0.1:8018", "127.9.9.9", "[::1]:8018", "a.localhost"],
)
def test_names_that_can_only_mean_this_computer(local: HttpManager, host: str) -> None:
    with local.client() as client:
        assert client.get(QUEUES, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8018", "localhost.evil.example", ""]
)
def test_a_name_that_somebody_points_at_this_computer_is_not_trusted(
    local: HttpManager, host: str
) -> None:
    with local.client() as client:
        assert client.get(QUEUES, headers={"Host": host}).status_code == 401


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_what_a_proxy_of_this_computer_hands_on_is_not_trusted(
    local: HttpManager, name: str
) -> None:
    with local.client() as client:
        assert client.get(QUEUES, headers={name: "127.0.0.1"}).status_code == 401


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_other_sites_cannot_use_the_role_of_this_computer(
    local: HttpManager, headers: dict[str, str]
) -> None:
    with local.client() as client:
        assert create(client, **headers).status_code == 403
        assert create(client, Origin=local.url).status_code == 201


def test_the_role_of_this_computer_can_be_changed(local: HttpManager) -> None:
    with local.client() as client:
        assert client.get(QUEUES).status_code == 200
        local.server.apply(type(local.configuration.http)(loopback_role=""))
        assert client.get(QUEUES).status_code == 401
