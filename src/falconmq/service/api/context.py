"""What the handlers of the HTTP API work with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID, uuid4

from fastapi import Depends, Request

from falconmq import aio
from falconmq.embedded.engine import Engine
from falconmq.errors import MqStatus, QueueError
from falconmq.manager.events import EventLog
from falconmq.service.access.principals import Principals
from falconmq.service.configuration.sections import AUDIT_BYTES
from falconmq.service.directory.publishing import KeyPublisher
from falconmq.service.observation.observing import Watch
from falconmq.service.operating.outgoing import Outgoing
from falconmq.service.requests.audit import AuditLog
from falconmq.service.requests.consumers import Consumers
from falconmq.service.requests.expiring import Expiring
from falconmq.service.requests.handles import Cursors, Handles
from falconmq.service.requests.idempotency import Answers
from falconmq.service.requests.ingest_stages import STAGED_BYTES
from falconmq.service.requests.ingests import Ingests
from falconmq.service.requests.leases import Leases
from falconmq.service.requests.queue_names import QueueNames
from falconmq.service.requests.transactions import Transactions

if TYPE_CHECKING:
    from falconmq.service.access import Access
    from falconmq.service.configuration import Configuration
    from falconmq.service.directory.hub import DirectoryHub
    from falconmq.service.reload import Report


class Control:
    """A queue manager and what the service knows around it; one for all requests."""

    def __init__(
        self,
        manager: aio.QueueManager,
        *,
        status: Callable[[], dict[str, Any]] = dict,
        transport: Outgoing | None = None,
        configuration: Configuration | None = None,
        access: Access | None = None,
        troubles: Callable[[], list[str]] = list,
        reload: Callable[[], Awaitable[Report]] | None = None,
    ) -> None:
        self.manager = manager
        self.status = status  # adds what only the service knows
        self.transport = transport
        self.configuration: Configuration | None = None  # None: it was not started from one
        self.principals = Principals()  # who callers are to the permissions of queues
        self.access = access  # tokens and log-ins; None: this directory is not served
        self.troubles = troubles  # why the service cannot work as it should
        self.hub: DirectoryHub | None = None  # the directory; None: there is no service
        self.reload = reload  # reads the configuration again; None: there is no service
        self.key_publisher = KeyPublisher()  # brings renewed keys into the directory
        self.run_id: UUID = uuid4()  # another one after every start
        self.stopping = asyncio.Event()  # requests that wait end when it is set
        self.watch = Watch(self)  # live events, samples, metrics
        # What callers leave open between requests, each with a deadline.
        self.expiring = Expiring(self.engine.core.clock)
        self.transactions = Transactions(manager, self.expiring)
        self.leases = Leases(self.expiring)
        self.handles = Handles(self.engine, self.expiring, self.leases)
        self.cursors = Cursors(self.engine, self.expiring, self.leases, self.handles)
        self.consumers = Consumers(self.engine, self.expiring)
        self.answers = Answers()  # of requests that may come twice
        staged = STAGED_BYTES if configuration is None else configuration.http.staged_bytes
        self.ingests = Ingests(self.engine, self.expiring, staged)
        self.names = QueueNames()  # of all queues, in their order
        self.audit = AuditLog(self.engine, self._audit_bytes)
        if configuration is not None:
            self.configure(configuration)

    def configure(self, configuration: Configuration) -> None:
        """A configuration is in effect, the first one or another."""
        self.configuration = configuration
        self.principals = Principals(configuration.principals)
        if self.access is not None:
            self.access.caller_with = self.principals.caller_with

    def _audit_bytes(self) -> int:
        return (
            AUDIT_BYTES if self.configuration is None else self.configuration.security.audit_bytes
        )

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
