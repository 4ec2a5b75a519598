"""The HTTP port: the API and the web console, for callers who have a token.

    a connection  -> TLS -> limits -> the door, which finds out who asks -> the application

It listens on the loopback unless told otherwise. Elsewhere it wants a certificate, for tokens and
messages would cross the network in clear; `http.plain` says that something else sees to that.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import shlex
import socket
from typing import Final

from fastapi import FastAPI

from falconmq.errors import FalconMQError, MqStatus
from falconmq.service.access import Access, Door
from falconmq.service.configuration import Configuration, HttpSection
from falconmq.service.tables import ConfigurationError
from falconmq.service.web.certificates import Certificates
from falconmq.service.web.limits import LimitedApp, Limits
from falconmq.service.web.protocol import LimitedConfig
from falconmq.service.web.server import WebServer
from falconmq.transport.socket_errors import endpoint

_BACKLOG: Final = 2048
# A reader that waits for an hour may be gone without a word: after two minutes we know.
_PROBES: Final = (
    (socket.TCP_KEEPIDLE, 60),
    (socket.TCP_KEEPINTVL, 15),
    (socket.TCP_KEEPCNT, 4),
)

_log = logging.getLogger("falconmq.service")


class HttpServer(WebServer):
    """`await HttpServer(configuration, access).start(app)`; `url` is where it is then."""

    def __init__(
        self, configuration: Configuration, access: Access, limits: Limits | None = None
    ) -> None:
        super().__init__()
        self._http = configuration.http
        self._address = configuration.http_address
        self._access = access
        self._limits = Limits() if limits is None else limits
        self._certificates: Certificates | None = None
        self._door: Door | None = None
        self._limited: LimitedApp | None = None
        self.url = ""

    async def start(self, app: FastAPI) -> None:
        """Listen; FalconMQError if the certificate or the port cannot be used."""
        http, address = self._http, ipaddress.ip_address(self._address)
        if http.certificate is not None and http.key is not None:
            self._certificates = Certificates(http.certificate, http.key, http.client_ca)
        elif not address.is_loopback and not http.plain:
            raise _unprotected(self._address)
        listener = _listen(address, http.port)
        named = "" if address.is_unspecified else self._address
        self._door = Door(app, self._access, address=named, loopback_role=http.loopback_role)
        self._limited = LimitedApp(
            self._door, self._limits, http.request_bytes, lambda: self.connections
        )
        self._limited.strict_transport_seconds = http.strict_transport_seconds
        self.url = self._url(address, listener.getsockname()[1])
        await self._serve(app, self._config(self._limited), listener)

    def tell(self) -> None:
        """Say where it is; to whoever has no token yet, how to get in."""
        _log.info("http listening url=%s bind=%s", self.url, self._address)
        if self._access.tokens.is_empty:
            data = shlex.quote(str(self._access.tokens.path.parent))
            _log.info(
                "the console is at %s/ and there is no token for it yet; "
                "to make one: falconmq token create admin --role manage --data %s",
                self.url,
                data,
            )

    def apply(self, http: HttpSection) -> None:
        """Take over what may change while it runs: all but addresses, ports and files."""
        self._http = http
        if self._door is not None:
            self._door.loopback_role = http.loopback_role
        if self._limited is not None:
            self._limited.request_bytes = http.request_bytes
            self._limited.strict_transport_seconds = http.strict_transport_seconds

    def reload_certificates(self) -> None:
        """Show what is in the files now; ConfigurationError, and nothing changes, if it is bad."""
        if self._certificates is not None:
            self._certificates.reload()

    def _config(self, app: LimitedApp) -> LimitedConfig:
        certificates = self._certificates
        if certificates is None:
            return LimitedConfig(app, self._limits, backlog=_BACKLOG)
        return LimitedConfig(
            app,
            self._limits,
            certificates,
            backlog=_BACKLOG,
            ssl_context_factory=lambda *_: certificates.context,
        )

    def _url(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> str:
        host = str(address)
        if address.is_unspecified:  # every address; this one works from here
            host = "127.0.0.1" if address.version == 4 else "::1"
        scheme = "http" if self._certificates is None else "https"
        return f"{scheme}://{endpoint(host, port)}"


def _listen(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    # asyncio switches Nagle's delay off only if the socket says that it is TCP: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit it
        for option, value in _PROBES:
            listener.setsockopt(socket.IPPROTO_TCP, option, value)
        listener.bind((str(address), port))
    except OSError as error:
        listener.close()
        raise _cannot_listen(str(address), port, error) from error
    return listener


def _cannot_listen(address: str, port: int, error: OSError) -> FalconMQError:
    hint = "http.bind and http.port choose another place; http.enabled = false does without"
    if error.errno == errno.EADDRINUSE:
        hint = "something else listens there: http.port chooses another, 0 any that is free; "
        hint += "http.enabled = false does without"
    return FalconMQError(
        f"cannot listen on HTTP {endpoint(address, port)}: {error.strerror}",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint=hint,
    )


def _unprotected(address: str) -> ConfigurationError:
    return ConfigurationError(
        f"http.bind is {address}, and there is no certificate: tokens and messages would cross "
        "the network in clear",
        hint="give http.certificate and http.key; or, if a proxy or a private network protects "
        "it, http.plain = true",
    )
