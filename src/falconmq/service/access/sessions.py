"""Log-ins of the web console: a cookie instead of a token with every request.

The pages of the console use it so; `access` is `control.access`:

    GET  /login     a form with one field for the token; open to everybody.
    POST /login     session = access.log_in(request.scope, token)    401 or 429 if it is refused
                    answer = RedirectResponse("/", 303)
                    set_cookie(answer, request.scope, session)
    POST /logout    check_csrf(request.scope, form["csrf_token"])
                    access.log_out(request.scope)
                    clear_cookie(answer, request.scope)
    every page      principal_of(request.scope) is None: redirect to /login
    every form      <input type="hidden" name="csrf_token" value="{{ csrf_of(request.scope) }}">
                    and its handler begins with check_csrf(request.scope, form["csrf_token"])
    every script    sends the header X-CSRF-Token: csrf_of(request.scope); below /api/ the door
                    itself asks for it

A caller without a log-in (`http.loopback_role`, or a token in the header) has the CSRF token "",
and `check_csrf` lets it through: the door has looked where such a request comes from.

A session is the use of a token: it ends with it, when the token expires or is revoked. Sessions are
in memory; after a restart people log in again.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import Response

from falconmq.service.access.roles import Principal, Scope

IDLE_SECONDS: Final = 12 * 3600.0
CSRF_HEADER: Final = "X-CSRF-Token"
_MOST: Final = 10_000  # sessions; the one that was idle for longest makes room
_RANDOM_BYTES: Final = 32
_KEY: Final = "falconmq.session"


@dataclass(slots=True)
class Session:
    """Somebody who has logged in."""

    cookie: str
    csrf: str
    principal: Principal
    token_id: str  # of the token it was opened with
    expires: float  # by the clock of the sessions; later with every use


class Sessions:
    """Who is logged in. Memory is bounded, and time is handed in."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        idle_seconds: float = IDLE_SECONDS,
        most: int = _MOST,
    ) -> None:
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._most = most
        self._sessions: dict[str, Session] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, principal: Principal, token_id: str = "") -> Session:
        """Log in."""
        self._forget_idle()
        if len(self._sessions) >= self._most:
            del self._sessions[next(iter(self._sessions))]
        session = Session(
            secrets.token_urlsafe(_RANDOM_BYTES),
            secrets.token_urlsafe(_RANDOM_BYTES),
            principal,
            token_id,
            self._clock() + self._idle_seconds,
        )
        self._sessions[session.cookie] = session
        return session

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, which is used herewith; None if there is none any more."""
        session = self._sessions.pop(cookie, None)
        if session is None or session.expires <= self._clock():
            return None
        session.expires = self._clock() + self._idle_seconds
        self._sessions[cookie] = session
        return session

    def close(self, cookie: str) -> None:
        """Log out."""
        self._sessions.pop(cookie, None)

    def _forget_idle(self) -> None:
        now = self._clock()
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            if oldest.expires > now:
                return
            del self._sessions[oldest.cookie]


def set_session(scope: Scope, session: Session) -> None:
    """For the door: this request came with the cookie of a session."""
    scope[_KEY] = session


def session_of(scope: Scope) -> Session | None:
    """The log-in a request came with; None: it came without, or with a token."""
    session: Session | None = scope.get(_KEY)
    return session


def csrf_of(scope: Scope) -> str:
    """What forms and scripts of a page have to send back; "" without a log-in."""
    session = session_of(scope)
    return "" if session is None else session.csrf


def check_csrf(scope: Scope, given: object) -> None:
    """403 unless the request was made by one of our own pages."""
    session = session_of(scope)
    if session is None:
        return
    text = given if isinstance(given, str) else ""
    if not hmac.compare_digest(text.encode(), session.csrf.encode()):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "the CSRF token is missing or wrong: load the page again"
        )


def cookie_name(scope: Scope) -> str:
    """Browsers do not tell the ports of a computer apart: each has a cookie of its own name."""
    server = scope.get("server")
    return f"falconmq_session_{server[1] if server else 0}"


def cookie_of(scope: Scope) -> str:
    """The cookie a request came with; "" if there is none."""
    name, headers = cookie_name(scope), Headers(scope=scope)
    return cookie_parser(headers.get("cookie", "")).get(name, "")


def set_cookie(response: Response, scope: Scope, session: Session) -> None:
    """Let the browser send the session with every request to this port, and nowhere else."""
    response.set_cookie(
        cookie_name(scope),
        session.cookie,
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_encrypted(scope),
    )


def clear_cookie(response: Response, scope: Scope) -> None:
    response.delete_cookie(
        cookie_name(scope),
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_encrypted(scope),
    )


def is_encrypted(scope: Scope) -> bool:
    """TLS to us, or to a proxy in front of us; whoever lies about it has a worse cookie."""
    forwarded = Headers(scope=scope).get("x-forwarded-proto", "")
    return "https" in (scope.get("scheme"), forwarded.lower())
