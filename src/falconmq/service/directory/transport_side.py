"""What the transport has of the directory: ways, keys, and the word that an answer came."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.routing import DirectoryRouter
from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.service.directory.errands import Work
from falconmq.service.directory.registry import use_directory
from falconmq.service.directory.ways import Ways
from falconmq.transport.routing import StaticRouter
from falconmq.transport.waiting import come_again

if TYPE_CHECKING:
    from falconmq.transport.protection import Protection
    from falconmq.transport.transport import Transport


class TransportSide:
    """The transport, as the hub sees it; a queue manager may have none."""

    def __init__(
        self, engine: Engine, transport: Transport | None, spawn: Callable[[Work], None]
    ) -> None:
        self._engine = engine
        self._transport = transport
        self._spawn = spawn  # lets something be done soon in the loop; any thread may ask

    @property
    def protection(self) -> Protection | None:
        return None if self._transport is None else self._transport.protection

    def use_ways(self, table: StaticRouter, router: DirectoryRouter | None) -> None:
        """Go by this table, and then by the map of this router."""
        if self._transport is not None:
            self._transport.router = Ways(table, router)

    def use_keys(self, directory: CachedDirectory | None) -> None:
        """Let others' keys and certificates be asked for in a directory, or in none."""
        use_directory(self.protection, directory, self.answered)

    def answered(self) -> None:
        """The directory has said what messages wait for, or will not say it now. Any thread."""
        self._spawn(self._come_again)

    def look_again(self, _: QueueManagerCore, *, is_new_map: bool = True) -> None:
        """In a turn: what waits for the directory tries it once more."""
        if self._transport is not None and self._transport.is_running:
            again = partial(come_again, self._transport, is_new_map=is_new_map)
            self._transport.after(0.0, again)

    async def _come_again(self) -> None:
        self._engine.run(self.look_again, is_new_map=False)
