"""A data directory that no service serves, opened in this process for one command.

The queue manager runs in a thread with an event loop of its own, behind a control socket in a
directory that only this user can read. So a command speaks to it as to any other, with the same
answers and the same errors. There is no transport: what it sends to other computers waits in
outgoing queues until somebody serves the directory.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from falconmq import aio
from falconmq.client import CONTROL_SOCKET
from falconmq.embedded.engine import Engine
from falconmq.embedded.manager import start_engine
from falconmq.errors import DirectoryError
from falconmq.manager.core import Settings
from falconmq.service.api import create_app
from falconmq.service.configuration import Configuration, load
from falconmq.service.directory.hub import DirectoryHub
from falconmq.service.engine import prepare
from falconmq.service.file_modes import check_files
from falconmq.service.web.control import ControlServer
from falconmq.store import open_data_directory

_PATIENCE: Final = 60.0  # seconds for what is in hand to become durable
_log = logging.getLogger("falconmq.service")


class LocalManager:
    """`with LocalManager(configuration) as socket`: its control socket, until the block ends."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._server = ControlServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._manager: aio.QueueManager
        self._hub: DirectoryHub | None = None
        self._place: tempfile.TemporaryDirectory[str]

    @classmethod
    def configured(cls, directory: Path, config: Path | None) -> Self:
        """The one of a directory, with the name and the quota that the service would have."""
        return cls(load(config, data=directory))

    def __enter__(self) -> Path:
        try:
            self._manager = aio.QueueManager(self._engine())
        except BaseException:
            self._loop.close()
            raise
        self._place = tempfile.TemporaryDirectory(prefix="falconmq-")
        self._thread.start()
        socket = Path(self._place.name) / CONTROL_SOCKET
        try:
            self._run(lambda: self._start(socket))
        except BaseException:
            self.__exit__()
            raise
        return socket

    def __exit__(self, *_: object) -> None:
        try:
            self._run(self._stop)
            self._run(self._manager.close)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_PATIENCE)
            self._loop.close()
            self._place.cleanup()

    def _engine(self) -> Engine:
        manager = self._configuration.manager
        settings = Settings(
            computer_name=manager.name,
            local_names=frozenset(manager.local_names),
            quota_kilobytes=manager.quota_kilobytes,
        )
        check_files(self._configuration)
        store = open_data_directory(manager.data)
        return start_engine(store, settings, prepare=partial(prepare, self._configuration))

    async def _start(self, socket: Path) -> None:
        await self._start_hub()
        app = create_app(self._manager, configuration=self._configuration, hub=self._hub)
        await self._server.start(socket, app)

    async def _start_hub(self) -> None:
        """Be a part of the directory, as the service would; without it, as far as that goes."""
        self._hub = DirectoryHub(self._configuration, self._manager._engine)  # noqa: SLF001
        try:
            await self._hub.start()
        except DirectoryError as error:
            _log.warning("without a directory: %s; %s", error, error.hint)

    async def _stop(self) -> None:
        await self._server.stop()
        if self._hub is not None:
            await self._hub.stop()

    def _run(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(call(), self._loop).result(_PATIENCE)
