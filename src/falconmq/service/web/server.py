"""uvicorn in the event loop of the service: what the control socket and the HTTP port share."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from falconmq.service.api import end_waits

_GRACE: Final = 5  # seconds that requests get to end
_POLL: Final = 0.005


class Config(uvicorn.Config):
    """The service has its own log, and no use for what an application server adds."""

    def __init__(self, app: ASGIApp, **settings: Any) -> None:
        super().__init__(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # whoever sends them could be anybody
            timeout_graceful_shutdown=_GRACE,
            **settings,
        )


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the business of the service."""
        yield


class WebServer:
    """Serves an application on a socket, in the loop that calls `_serve`."""

    def __init__(self) -> None:
        self._app: FastAPI | None = None
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """That are open now."""
        return 0 if self._server is None else len(self._server.server_state.connections)

    async def stop(self) -> None:
        """End the requests that wait, let the others finish."""
        server, self._server = self._server, None
        if server is None or self._app is None or self._task is None:
            return
        end_waits(self._app)
        server.should_exit = True
        await self._task
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # it had its time

    async def _serve(self, app: FastAPI, config: Config, listener: socket.socket) -> None:
        """Serve until `stop`; returns when requests are taken."""
        self._app, self._server = app, _Server(config)
        self._task = asyncio.create_task(self._server.serve([listener]))
        while not self._server.started:
            if self._task.done():
                listener.close()
                await self._task
            await asyncio.sleep(_POLL)
