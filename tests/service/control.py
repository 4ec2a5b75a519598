"""A queue manager with its control socket, as the service has it, for tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from falconmq import aio
from falconmq.client import CONTROL_SOCKET, ControlClient
from falconmq.embedded.engine import Engine
from falconmq.service.api import create_app
from falconmq.service.api.context import Control
from falconmq.service.operating.outgoing import Outgoing
from falconmq.service.web.control import ControlServer
from tests.embedded.helpers import PATIENCE, threaded_engine


class ControlledManager:
    """Queue manager and control server in an event loop of their own; the test is a client."""

    def __init__(
        self,
        directory: Path,
        engine: Engine | None = None,
        *,
        status: Callable[[], dict[str, Any]] = dict,
        transport: Outgoing | None = None,
    ) -> None:
        self.directory = directory
        self.path = directory / CONTROL_SOCKET
        self.engine = threaded_engine() if engine is None else engine
        self.manager = aio.QueueManager(self.engine)
        self.blocking = self.manager.blocking
        self._status = status
        self._transport = transport
        self._server = ControlServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def client(self) -> ControlClient:
        return ControlClient(self.path)

    @property
    def control(self) -> Control:
        """What the handlers work with."""
        control: Control = self.app.state.control
        return control

    def stop_server(self) -> None:
        self._run(self._server.stop)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._run(self._start)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._server.stop)
        self._run(self.manager.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _start(self) -> None:
        app = create_app(self.manager, status=self._status, transport=self._transport)
        self.app = app
        await self._server.start(self.path, app)

    def _run(self, call: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(call(), self._loop).result(PATIENCE)
