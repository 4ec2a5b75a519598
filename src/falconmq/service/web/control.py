"""The control socket: the HTTP API on a unix socket in the data directory.

Only the owner of the file gets in (mode 0600), so no password is needed. The server runs in the
event loop of the service and leaves signals to it.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from falconmq.client.location import socket_name
from falconmq.errors import MqStatus, StoreError
from falconmq.service.access import OWNER, set_principal
from falconmq.service.web.server import Config, WebServer

SOCKET_MODE: Final = 0o600
_BACKLOG: Final = 128


class ControlServer(WebServer):
    """Serves an application on a unix socket, in the loop that calls `start`."""

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None

    async def start(self, path: Path, app: FastAPI) -> None:
        """Listen. A file that a crash left is replaced; StoreError if somebody listens there."""
        listener = _listen(path)
        self._path = path
        await self._serve(app, Config(as_owner(app), http="h11"), listener)

    async def stop(self) -> None:
        """End the requests that wait, let the others finish, remove the file."""
        await super().stop()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None


def as_owner(app: ASGIApp) -> ASGIApp:
    """Whoever can open the socket may do everything."""

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        set_principal(scope, OWNER)
        await app(scope, receive, send)

    return door


def _listen(path: Path) -> socket.socket:
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        os.fchmod(listener.fileno(), SOCKET_MODE)  # bind gives it to the file, less the umask
        with socket_name(path) as name:
            listener.bind(name)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StoreError(
            f"cannot listen on {path}: {error.strerror or error}",
            hint="the data directory must allow this user to create a socket",
        ) from error
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StoreError(
            f"{path} is in the way: it is no socket",
            hint="move it away; FalconMQ makes its control socket there",
        )
    if _is_live(path):
        raise StoreError(
            f"another service listens on {path}",
            status=MqStatus.SHARING_VIOLATION,
            hint="stop it first, or use another data directory",
        )
    path.unlink()


def _is_live(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, socket_name(path) as name:
        probe.settimeout(1)
        try:
            probe.connect(name)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # it listens but does not answer: somebody is there
            return True
    return True
