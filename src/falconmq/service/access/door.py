"""The door of the HTTP port: finds out who asks, before the application sees the request.

    Authorization: Bearer TOKEN     the principal of the token; a wrong one is refused here
    the cookie of a log-in          the principal of the token it was opened with
    a certificate, over TLS         the principal that is configured for it
    http.loopback_role              a caller from this computer, without a token

A browser sends cookies, and requests from this computer, for any site that somebody has open. So
what comes without a token is looked at twice: the host it names must be ours (a name that others
have pointed at this computer is not), and a request that changes something must come from our own
pages.
"""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from falconmq.service.access.access import Access, address_of
from falconmq.service.access.roles import CERTIFICATE, Principal, Role, set_principal
from falconmq.service.access.sessions import CSRF_HEADER, check_csrf, set_session
from falconmq.service.web.problems import http_problem

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login", "/favicon.ico"})
STATIC: Final = "/static/"
_API: Final = "/api/"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OUR_PAGES: Final = frozenset({"same-origin", "none"})  # none: typed by the user
# A proxy on this computer hands on requests from elsewhere: they are not those of a local caller.
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Door:
    """An ASGI application in front of another one."""

    def __init__(
        self, app: ASGIApp, access: Access, *, address: str = "", loopback_role: str = ""
    ) -> None:
        self._app = app
        self._access = access
        self._address = address  # that the port has: a host that requests may name
        self.loopback_role = loopback_role  # may change while the service runs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._look_at(scope)
            except HTTPException as error:
                await self._access.refused(scope, error)
                await http_problem(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _look_at(self, scope: Scope) -> None:
        """Write into the request who asks, if anybody is known to; HTTPException to refuse it."""
        headers, path = Headers(scope=scope), scope["path"]
        is_open = path in OPEN_PATHS or path.startswith(STATIC)
        scheme, _, text = headers.get("authorization", "").partition(" ")
        if scheme and not is_open:
            if scheme.lower() != "bearer":
                raise _no_bearer(scheme)
            token = self._access.identify(scope, text.strip())
            set_principal(scope, token.principal)
            return  # other sites cannot make a browser send this header
        if scope["method"] not in _SAFE:
            _check_origin(headers)
        session = self._access.session(scope)
        if session is not None:
            set_session(scope, session)
            set_principal(scope, session.principal)
            if path.startswith(_API) and scope["method"] not in _SAFE:
                check_csrf(scope, headers.get(CSRF_HEADER, ""))
        elif (caller := self._with_certificate(scope)) is not None:
            set_principal(scope, caller)
        elif self.loopback_role and self._is_local(scope, headers):
            set_principal(scope, Principal("loopback", frozenset({Role(self.loopback_role)})))

    def _with_certificate(self, scope: Scope) -> Principal | None:
        shown = scope.get("state", {}).get(CERTIFICATE, "")
        return self._access.caller_with(shown) if shown else None

    def _is_local(self, scope: Scope, headers: Headers) -> bool:
        if not _is_loopback(address_of(scope)) or any(name in headers for name in _FORWARDED):
            return False
        host = host_name(headers.get("host", ""))
        return host == self._address or is_local_name(host)


def is_local_name(host: str) -> bool:
    """Whether a name can only mean this computer, whatever a DNS server says."""
    return host == "localhost" or host.endswith(".localhost") or _is_loopback(host)


def host_name(host: str) -> str:
    """The name in a Host header, without its port: `[::1]:8018` is `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _check_origin(headers: Headers) -> None:
    """403 if a browser says that another site made this request."""
    site = headers.get("sec-fetch-site")
    origin = headers.get("origin")
    is_ours = site is None or site in _OUR_PAGES
    if origin is not None:
        is_ours = is_ours and origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if not is_ours:
        raise HTTPException(HTTPStatus.FORBIDDEN, "this request was made by a page of another site")


def _no_bearer(scheme: str) -> HTTPException:
    return HTTPException(
        HTTPStatus.UNAUTHORIZED,
        f"a token is needed as Authorization: Bearer TOKEN, not {scheme[:20]}",
        {"WWW-Authenticate": "Bearer"},
    )


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)
