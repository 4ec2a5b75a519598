r"""Where a service listens, as a URL says it.

http://sales02:8018        https://queues.example.com        https://example.com/queues
unix:/var/lib/falconmq     the control socket of that data directory
unix:///run/control.sock   that socket
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from falconmq.client.location import CONTROL_SOCKET
from falconmq.errors import FalconMQError, MqStatus, UnreachableError

API: Final = "/api/v1"
_PORTS: Final = {"http": 80, "https": 443}
_FORMS: Final = "http://HOST:8018, https://HOST:8018 or unix:/path/to/data"


@dataclass(frozen=True, slots=True)
class Door:
    """One address of one service."""

    url: str  # as people are told
    host: str = ""
    port: int = 0
    is_tls: bool = False
    prefix: str = API
    socket: Path | None = None  # then it is a unix socket

    @classmethod
    def parse(cls, url: str) -> Door:
        """Read a URL; FalconMQError says what it should look like."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise _refuse(url, str(error)) from error
        if parts.scheme == "unix":
            return cls.of_socket(_socket(url, parts))
        if parts.scheme not in _PORTS or not parts.hostname:
            raise _refuse(url, "it names no service")
        if parts.username or parts.query or parts.fragment:
            raise _refuse(url, "host, port and path are enough; a token is given beside it")
        return cls(
            url,
            parts.hostname,
            port or _PORTS[parts.scheme],
            parts.scheme == "https",
            parts.path.rstrip("/") + API,
        )

    @classmethod
    def of_socket(cls, path: Path) -> Door:
        """The control socket of a service."""
        return cls(f"unix:{path}", "localhost", socket=path)

    @property
    def shown(self) -> str:
        """The service, in texts for people: the data directory, or the URL."""
        return self.url if self.socket is None else str(self.socket.parent)

    def unreachable(self, error: BaseException) -> UnreachableError:
        """Nobody could be connected to."""
        if isinstance(error, PermissionError) and self.socket is not None:
            return UnreachableError(
                f"the service at {self.shown} belongs to another user",
                status=MqStatus.ACCESS_DENIED,
                hint="run the command as that user",
            )
        if self.socket is not None:
            return UnreachableError(
                f"no service is running at {self.shown}",
                status=MqStatus.SERVICE_NOT_AVAILABLE,
                hint=f"start it: falconmq serve --data {shlex.quote(self.shown)}",
            )
        return UnreachableError(
            f"no service answers at {self.shown}: {error}",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="is it running there? its log names the address it listens on",
        )

    def untrusted(self, error: BaseException) -> UnreachableError:
        """Somebody is there who cannot prove to be the service."""
        return UnreachableError(
            f"the certificate of {self.shown} is not trusted: {error}",
            status=MqStatus.INVALID_CERTIFICATE,
            hint="name the certificate of the authority that signed it: ca_file=...",
        )

    def no_answer(self, error: BaseException | str) -> UnreachableError:
        """A request was sent, and what became of it is not known."""
        return UnreachableError(
            f"the service at {self.shown} did not answer: {error}",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="it may have done what it was asked; look before asking again",
        )


def chosen(url: str | None, token: str | None) -> tuple[Door, str | None]:
    """The door that was named, or the one of the environment, and the token for it."""
    named = url or os.environ.get("FALCONMQ_URL", "")
    if not named:
        raise FalconMQError(
            "no service is named",
            status=MqStatus.INVALID_PARAMETER,
            hint=f"give a URL, {_FORMS}, or set FALCONMQ_URL",
        )
    return Door.parse(named), token or os.environ.get("FALCONMQ_TOKEN") or None


def from_anywhere(url: str) -> str:
    """The same place for processes that run in other folders: a path is made absolute."""
    scheme, _, path = url.partition(":")
    if scheme != "unix" or not path or path.startswith("/"):
        return url
    return f"unix:{Path(path).expanduser().absolute()}"


def _socket(url: str, parts: SplitResult) -> Path:
    if parts.netloc or not parts.path:
        raise _refuse(url, "a socket has a path and no host")
    path = Path(parts.path).expanduser()
    return path if path.suffix == ".sock" else path / CONTROL_SOCKET


def _refuse(url: str, problem: str) -> FalconMQError:
    return FalconMQError(
        f"{url}: {problem}", status=MqStatus.INVALID_PARAMETER, hint=f"write {_FORMS}"
    )
