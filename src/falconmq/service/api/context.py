"""What the handlers of the HTTP API work with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID, uuid4

from fastapi import Depends, Request

from falconmq import aio
from falconmq.embedded.engine import Engine
from falconmq.errors import MqStatus, QueueError
from falconmq.manager.events import EventLog
from falconmq.service.outgoing import Outgoing

if TYPE_CHECKING:
    from falconmq.service.configuration import Configuration


class Control:
    """A queue manager and what the service knows around it; one for all requests."""

    def __init__(
        self,
        manager: aio.QueueManager,
        *,
        status: Callable[[], dict[str, Any]] = dict,
        transport: Outgoing | None = None,
        configuration: Configuration | None = None,
    ) -> None:
        self.manager = manager
        self.status = status  # adds what only the service knows
        self.transport = transport
        self.configuration = configuration  # None: it was not started from one
        self.run_id: UUID = uuid4()  # another one after every start
        self.stopping = asyncio.Event()  # requests that wait end when it is set

    @property
    def engine(self) -> Engine:
        return self.manager._engine  # noqa: SLF001  # two-phase reads are not in the Python API

    @property
    def events(self) -> EventLog:
        """What happened to messages since the start."""
        events = self.engine.core.events
        if events is None:
            events = self.engine.core.events = EventLog(self.engine.core.clock.time)
        return events

    @property
    def carrier(self) -> Outgoing:
        """The transport; QueueError if there is none, as in a directory that is not served."""
        if self.transport is None:
            raise QueueError(
                "this queue manager has no transport",
                status=MqStatus.SERVICE_NOT_AVAILABLE,
                hint="start it with: falconmq serve",
            )
        return self.transport


async def _control(request: Request) -> Control:
    control: Control = request.app.state.control
    return control


Given = Annotated[Control, Depends(_control)]
