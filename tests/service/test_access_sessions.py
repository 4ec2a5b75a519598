"""Log-ins and wrong tokens: what is remembered, for how long, and that it does not grow."""

from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.service.access import (
    Principal,
    Role,
    Sessions,
    check_csrf,
    clear_cookie,
    csrf_of,
    set_cookie,
)
from falconmq.service.access.failures import Failures
from falconmq.service.access.roles import Scope
from falconmq.service.access.sessions import cookie_of, set_session

READER = Principal("reader", frozenset({Role.READ}))


class Clock:
    """A time that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def scope_of(cookie: str = "", scheme: str = "http", **headers: str) -> Scope:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    if cookie:
        pairs.append((b"cookie", cookie.encode()))
    return {"type": "http", "scheme": scheme, "server": ("127.0.0.1", 8018), "headers": pairs}


def test_a_session_is_found_by_its_cookie_alone(clock: Clock) -> None:
    sessions = Sessions(clock)
    session = sessions.open(READER)
    assert sessions.find(session.cookie) is session
    assert session.principal is READER
    assert sessions.find(session.csrf) is None
    assert sessions.find("") is None
    assert len(session.cookie) == len(session.csrf) == 43  # 256 bits


def test_a_session_ends_after_twelve_hours_without_use(clock: Clock) -> None:
    sessions = Sessions(clock)
    used, idle = sessions.open(READER), sessions.open(READER)
    clock.now += 12 * 3600 - 1
    assert sessions.find(used.cookie) is used
    clock.now += 1
    assert sessions.find(idle.cookie) is None
    assert sessions.find(used.cookie) is used


def test_a_session_that_is_closed_is_gone(clock: Clock) -> None:
    sessions = Sessions(clock)
    session = sessions.open(READER)
    sessions.close(session.cookie)
    assert sessions.find(session.cookie) is None


def test_sessions_are_bounded_and_the_idle_ones_go_first(clock: Clock) -> None:
    sessions = Sessions(clock, most=3)
    first, second, third = (sessions.open(READER) for _ in range(3))
    assert sessions.find(first.cookie) is first  # now the second is the one unused for longest
    fourth = sessions.open(READER)
    assert len(sessions) == 3
    assert sessions.find(second.cookie) is None
    assert all(sessions.find(each.cookie) is each for each in (first, third, fourth))


def test_sessions_that_nobody_uses_are_forgotten(clock: Clock) -> None:
    sessions = Sessions(clock, idle_seconds=10)
    for _ in range(5):
        sessions.open(READER)
    clock.now += 10
    sessions.open(READER)
    assert len(sessions) == 1


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(clock: Clock) -> None:
    session = Sessions(clock).open(READER)
    response = Response()
    set_cookie(response, scope_of(), session)
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"falconmq_session_8018={session.cookie};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert cookie_of(scope_of(cookie.partition(";")[0])) == session.cookie


@pytest.mark.parametrize(
    "scope", [scope_of(scheme="https"), scope_of(x_forwarded_proto="https")], ids=["us", "proxy"]
)
def test_over_tls_the_cookie_never_leaves_it(clock: Clock, scope: Scope) -> None:
    response = Response()
    set_cookie(response, scope, Sessions(clock).open(READER))
    assert "Secure" in response.headers["set-cookie"]
    response = Response()
    clear_cookie(response, scope)
    assert "Max-Age=0" in response.headers["set-cookie"]


def test_a_form_needs_the_csrf_token_of_its_session(clock: Clock) -> None:
    session, other = (Sessions(clock).open(READER) for _ in range(2))
    scope = scope_of()
    set_session(scope, session)
    assert csrf_of(scope) == session.csrf
    check_csrf(scope, session.csrf)
    for wrong in ("", None, other.csrf, session.cookie, session.csrf[:-1], "ä"):
        with pytest.raises(HTTPException) as raised:
            check_csrf(scope, wrong)
        assert raised.value.status_code == 403


def test_without_a_session_there_is_no_csrf_token(clock: Clock) -> None:
    scope = scope_of()
    assert csrf_of(scope) == ""
    check_csrf(scope, None)


# Wrong tokens


def test_ten_wrong_tokens_in_a_minute_are_enough(clock: Clock) -> None:
    failures = Failures(clock)
    for _ in range(10):
        assert failures.add("10.0.0.7") == 0
        clock.now += 1
    assert failures.add("10.0.0.7") == 50  # until the first is a minute old
    clock.now += 49
    assert failures.add("10.0.0.7") == 1  # tries in between do not prolong it
    clock.now += 1
    assert failures.add("10.0.0.7") == 0
    assert failures.add("10.0.0.7") == 1  # the second is not yet


def test_another_address_is_not_punished(clock: Clock) -> None:
    failures = Failures(clock, most=1)
    failures.add("10.0.0.7")
    assert failures.add("10.0.0.7") == 60
    assert failures.add("10.0.0.8") == 0


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.7", "10.0.0.7", True),
        ("::ffff:10.0.0.7", "::ffff:10.0.0.8", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
    ],
)
def test_who_an_address_belongs_to(clock: Clock, first: str, second: str, is_same: bool) -> None:
    failures = Failures(clock, most=1)
    failures.add(first)
    assert (failures.add(second) > 0) == is_same


def test_addresses_are_bounded(clock: Clock) -> None:
    failures = Failures(clock, addresses=100, most=1)
    for number in range(1000):
        failures.add(f"10.0.{number // 250}.{number % 250}")
    assert len(failures) == 100
    assert failures.add("10.0.0.0") == 0  # forgotten
    assert failures.add("10.0.3.249") > 0
