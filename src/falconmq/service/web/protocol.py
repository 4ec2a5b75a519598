"""HTTP/1.1 of the port: uvicorn's, for callers that nobody knows.

uvicorn waits for the headers of a request as long as it takes, and so does it read to its end what
is left of a body when the answer was given without it. (To close at once would be a reset, and some
callers would never see the answer.) Here both have a time. What cannot be understood is answered as
everything else is: with a problem.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from falconmq.security.fingerprints import fingerprint
from falconmq.service.access.roles import CERTIFICATE
from falconmq.service.web.certificates import Certificates
from falconmq.service.web.limits import SECURITY_HEADERS, Limits
from falconmq.service.web.problems import http_problem
from falconmq.service.web.server import Config

_SPARE: Final = 256  # connections beyond the limit that are still told so


class LimitedConfig(Config):
    """With the limits of the connections."""

    def __init__(
        self,
        app: Any,
        limits: Limits,
        certificates: Certificates | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            app,
            http=LimitedProtocol,
            h11_max_incomplete_event_size=limits.header_bytes,
            timeout_keep_alive=limits.keep_alive_seconds,
            **settings,
        )
        self.limits = limits
        self.certificates = certificates


class LimitedProtocol(H11Protocol):
    """One connection."""

    def __init__(
        self,
        config: LimitedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._certificates = config.certificates
        self._timer: asyncio.TimerHandle | None = None
        self._has_bytes = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections + _SPARE:
            transport.abort()
            return
        connection, certificates = transport.get_extra_info("ssl_object"), self._certificates
        certificate = None
        if connection is not None and certificates is not None:
            certificate = certificates.certificate_shown(connection)
        if certificate:  # TLS has verified it; each request of the connection has it
            self.app_state = {**self.app_state, CERTIFICATE: fingerprint(certificate)}
        self._watch()

    def data_received(self, data: bytes) -> None:
        self._has_bytes = True
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._answer(HTTPStatus.BAD_REQUEST, msg.rstrip("."))

    def _watch(self) -> None:
        """Whoever has not asked yet has some seconds; while we work nobody is watched."""
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn says that there is always one
        is_working = cycle is not None and not cycle.response_complete
        if is_working or self.transport.is_closing():
            self._rest()
        elif self._timer is None and self.timeout_keep_alive_task is None:
            self._timer = self.loop.call_later(self._limits.header_seconds, self._too_slow)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._has_bytes:
            self._answer(HTTPStatus.REQUEST_TIMEOUT, "the request came too slowly")
        else:
            self.transport.close()

    def _should_upgrade(self) -> bool:
        return False  # there is nothing else to speak

    def _answer(self, code: HTTPStatus, detail: str) -> None:
        """For a request that the application never sees; then nothing more is said."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = http_problem(HTTPException(code, detail))
            headers = [
                *response.raw_headers,
                *((name.encode(), value.encode()) for name, value in SECURITY_HEADERS),
                (b"cache-control", b"no-store"),
                (b"connection", b"close"),
            ]
            head = h11.Response(status_code=code, headers=headers, reason=code.phrase.encode())
            for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
