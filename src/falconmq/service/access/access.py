"""What the HTTP port knows of callers: tokens, log-ins, and who tried in vain."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

from starlette.exceptions import HTTPException

from falconmq.service.access.failures import Failures
from falconmq.service.access.roles import Principal, Scope
from falconmq.service.access.sessions import Session, Sessions, cookie_of
from falconmq.service.access.tokens import Token, TokenStore

OnRefusal = Callable[[Scope, int, str], Awaitable[None]]
CallerWith = Callable[[str], Principal | None]

_log = logging.getLogger("falconmq.service")


class Access:
    """`control.access`: one for all requests."""

    def __init__(
        self,
        tokens: TokenStore,
        sessions: Sessions | None = None,
        failures: Failures | None = None,
    ) -> None:
        self.tokens = tokens
        self.sessions = Sessions() if sessions is None else sessions
        self.failures = Failures() if failures is None else failures
        self.on_refusal: OnRefusal | None = None  # who is told of it
        self.caller_with: CallerWith = _nobody  # who shows a certificate, by its fingerprint

    @classmethod
    def of(cls, directory: Path) -> Access:
        """That of a data directory."""
        return cls(TokenStore(directory))

    def identify(self, scope: Scope, text: str) -> Token:
        """The token that somebody shows; 401 if it is none, 429 after too many that are none."""
        token = self.tokens.find(text)
        if token is not None:
            return token
        address = address_of(scope)
        wait = self.failures.add(address)
        if wait:
            raise HTTPException(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too many wrong tokens from this address",
                {"Retry-After": str(math.ceil(wait))},
            )
        _log.warning("token refused address=%s path=%s", address, scope.get("path"))
        raise HTTPException(
            HTTPStatus.UNAUTHORIZED,
            "this token is not known, or it has expired",
            {"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )

    async def refused(self, scope: Scope, error: HTTPException) -> None:
        """A request did not come in. Who only comes too often is told so and not written down."""
        if self.on_refusal is not None and error.status_code != HTTPStatus.TOO_MANY_REQUESTS:
            await self.on_refusal(scope, error.status_code, str(error.detail))

    def log_in(self, scope: Scope, text: str) -> Session:
        """For the console: a session for whoever shows a token; refused like `identify`."""
        token = self.identify(scope, text.strip())
        self.sessions.close(cookie_of(scope))  # a cookie from before the log-in is worth nothing
        return self.sessions.open(token.principal, token.id)

    def log_out(self, scope: Scope) -> None:
        self.sessions.close(cookie_of(scope))

    def session(self, scope: Scope) -> Session | None:
        """The log-in of a request, with the roles its token has now."""
        cookie = cookie_of(scope)
        session = self.sessions.find(cookie) if cookie else None
        if session is None:
            return None
        principal = self._principal(session)
        if principal is None:
            self.sessions.close(cookie)
            return None
        session.principal = principal
        return session

    def _principal(self, session: Session) -> Principal | None:
        if not session.token_id:  # it was opened for somebody without a token
            return session.principal
        token = self.tokens.valid(session.token_id)
        return None if token is None else token.principal


def _nobody(certificate: str) -> Principal | None:  # noqa: ARG001
    """No certificate is known."""
    return None


def address_of(scope: Scope) -> str:
    """Where a request comes from; "" if that is no address."""
    client = scope.get("client")
    return str(client[0]) if client else ""
