"""What a request reads from: a queue that it opens for itself, an open handle, or a cursor."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from falconmq import aio
from falconmq.manager.model import Cursor
from falconmq.service.requests.finding import open_queue
from falconmq.service.schemas import ReceiveRequest

if TYPE_CHECKING:
    from falconmq.service.api.context import Control


class Reader:
    """`async with Reader(...) as reader`: the queue is open meanwhile."""

    queue: aio.Queue
    cursor: Cursor | None = None

    def __init__(self, control: Control, name: str, given: ReceiveRequest) -> None:
        self._control = control
        self._name = name
        self._given = given
        self._in_use = ExitStack()  # a handle or cursor of somebody, who keeps it
        self.is_owner = False  # of the queue: it was opened for this request

    def keep_open(self) -> None:
        """Somebody needs the queue longer, and closes it."""
        self.is_owner = False

    async def __aenter__(self) -> Self:
        control, given = self._control, self._given
        if given.cursor is not None:
            place = self._in_use.enter_context(
                control.cursors.use(given.cursor, self._name, peek=given.peek)
            )
            self.queue, self.cursor = place.queue, place.cursor
        elif given.handle is not None:
            handle = self._in_use.enter_context(control.handles.use(given.handle, self._name))
            self.queue = handle.queue
        else:
            self.queue = await open_queue(control.engine, self._name)
            self.is_owner = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._in_use.close()
        if self.is_owner:
            await self.queue.close()
