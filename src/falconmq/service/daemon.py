"""The life of a queue manager on its ports: start, reload, stop in order.

    start   data directory -> core -> enterprise, if it is in one -> declared queues -> transport ->
            ports -> doors -> READY
    reload  the configuration is read again, what can be applied is (`service.reload`)
    stop    no new connections -> no new calls -> nothing more is read -> what is in hand becomes
            durable and is acknowledged -> sessions close -> store closes

A kill in between loses nothing that was acknowledged: the order only saves peers from sending again
and waiting calls from an error they cannot read.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, Self
from uuid import UUID

from falconmq import aio
from falconmq.embedded import blocking
from falconmq.embedded.engine import Engine
from falconmq.manager.access import acting_as
from falconmq.names import QueueKind
from falconmq.service import declared, securing
from falconmq.service.configuration import Configuration, DeclaredQueue
from falconmq.service.directory.asking_ahead import reach
from falconmq.service.directory.hub import DirectoryHub
from falconmq.service.engine import start_hosted_engine
from falconmq.service.file_modes import check_files
from falconmq.service.host import Host
from falconmq.service.reload import Report, reload
from falconmq.service.troubles import store_troubles
from falconmq.store import open_data_directory
from falconmq.transport.binding import AsyncioNetwork
from falconmq.transport.session import Session
from falconmq.transport.transport import Transport

if TYPE_CHECKING:
    from falconmq.service.api.context import Control
    from falconmq.service.web.http import HttpServer

STOP_SECONDS: Final = 10.0  # for what is in hand to become durable

_log = logging.getLogger("falconmq.service")


class Door(Protocol):
    """Something that lets people in, beside the protocol: the control socket."""

    async def stop(self) -> None: ...


def _import_doors() -> None:
    with suppress(ModuleNotFoundError):  # `open_doors` says what is missing
        importlib.import_module("falconmq.service.api")
        importlib.import_module("falconmq.service.web.control")
        importlib.import_module("falconmq.service.console.app")
        importlib.import_module("falconmq.service.web.http")


class Service:
    """A queue manager on its ports; `await Service.start(configuration)`, then `stop`."""

    def __init__(self, configuration: Configuration, engine: Engine) -> None:
        manager = configuration.manager
        self.configuration = configuration
        self.engine = engine
        self.manager = aio.QueueManager(engine)
        self.network = AsyncioNetwork(
            configuration.transport,
            manager.bind,
            port=manager.port,
            hosts=configuration.hosts,
        )
        self.transport = Transport(
            engine.core,
            self.network,
            configuration.router(),
            configuration.transport,
            securing.protect(engine.core, configuration),
        )
        self.hub = DirectoryHub(configuration, engine, self.transport)
        self.hub.on_membership = self.configure
        self.hub.on_back = self._declare_the_rest
        self.host = Host(engine, self.transport)
        self.network.attach(self.host, self.transport)
        self.doors: list[Door] = []
        self.http: HttpServer | None = None  # None: it is not enabled
        self.declared: list[declared.Result] = []  # what became of [[queues]]
        self._control: Control | None = None  # of the doors
        self._reloading = asyncio.Lock()

    @classmethod
    async def start(cls, configuration: Configuration) -> Self:
        """Everything up; FalconMQError if the data directory or a port cannot be had.

        Files that others may read or change are not used (`service.file_modes`).
        """
        for finding in check_files(configuration):
            _log.warning("%s; %s", finding.text, finding.hint)
        store = open_data_directory(configuration.manager.data)
        service = cls(configuration, start_hosted_engine(store, configuration))
        await service.open()
        return service

    async def open(self) -> None:
        """Let peers and people in; if that cannot be, everything is down again."""
        try:
            # First what takes long to import: a peer that had to wait for us would take the line
            # for slow, and have its acknowledgements late for the life of the session.
            _import_doors()
            await self.hub.start()  # before anybody needs a way, or a public queue
            await self.declare(self.configuration.queues)
            securing.use_keys(self.transport.protection, self.configuration)
            is_hardened = self.configuration.security.hardened
            if not is_hardened:  # else nobody finds the ports open: DM-3.1.1.1-42
                await self.network.listen()
            self.host.run(self.transport.start)
            if not is_hardened:
                await self.network.accept()
            await self.open_doors()
        except BaseException:
            await self.stop()
            raise

    async def open_doors(self) -> None:
        """Control socket and HTTP port; without their packages the protocol alone is served."""
        try:
            from falconmq.service.access import Access  # noqa: PLC0415 - optional packages
            from falconmq.service.api import create_app  # noqa: PLC0415
            from falconmq.service.web.control import ControlServer  # noqa: PLC0415
            from falconmq.service.web.http import HttpServer  # noqa: PLC0415
        except ModuleNotFoundError as error:
            _log.warning(
                "no control socket: %s is missing; install falconmq[server] to use the commands",
                error.name,
            )
            return
        access = Access.of(self.configuration.manager.data)
        app = create_app(
            self.manager,
            status=self.status,
            transport=self.transport,
            configuration=self.configuration,
            access=access,
            troubles=self.troubles,
            reload=self.reload,
            hub=self.hub,
        )
        self._control = app.state.control
        self._control.watch.start()
        self.engine.run(self._control.key_publisher.catch_up)
        self.doors.append(self._control.watch)
        control = ControlServer()
        await control.start(self.configuration.control_socket, app)
        self.doors.append(control)
        if self.configuration.http.enabled:
            http = HttpServer(self.configuration, access)
            await http.start(app)
            self.doors.append(http)
            self.http = http

    async def declare(self, queues: Sequence[DeclaredQueue]) -> list[declared.Result]:
        """Make the queues what the configuration says; ConfigurationError if they cannot be."""
        if any(queue.name.kind is QueueKind.PUBLIC for queue in queues):
            await reach(self.engine)
        with acting_as(None):  # whoever asked for the reload: the configuration decides
            self.declared, commit = self.engine.run(declared.declare, queues)
        if commit is not None:
            await asyncio.to_thread(blocking.finish, self.engine, commit)
        for queue in self.declared:
            if queue.outcome is not declared.Outcome.UNCHANGED:
                changes = ",".join(queue.changes) or "-"
                _log.info("queue %s name=%s set=%s", queue.outcome.value, queue.name, changes)
        return self.declared

    async def _declare_the_rest(self) -> None:
        """The directory is back: public queues that could not be made without it are made now."""
        if declared.are_postponed(self.declared):
            await self.declare(self.configuration.queues)

    async def reload(self) -> Report:
        """Read the configuration again; FalconMQError if it is wrong, and then nothing changed."""
        async with self._reloading:
            return await reload(self)

    async def write_down(self, who: str, action: str, problem: str = "") -> None:
        """Into the audit log: something that no request asked for."""
        if self._control is not None:
            from falconmq.service.requests.audit import Entry  # noqa: PLC0415 - behind the doors

            result = "failed" if problem else "done"
            entry = Entry(who, "this computer", action, "", result, problem=problem)
            await self._control.audit.record(entry)

    def configure(self, configuration: Configuration) -> None:
        """Another configuration is in effect."""
        self.configuration = configuration
        securing.configure(self.transport.protection, configuration)
        self.hub.configure(configuration)
        if self._control is not None:
            self._control.configure(configuration)
        if self.http is not None:
            self.http.apply(configuration.http)

    def troubles(self) -> list[str]:
        """Why messages cannot be taken now; nothing if they can."""
        found = store_troubles(self.engine)
        if not self.transport.is_running:
            found.append("the transport does not run")
        if self.host.is_congested:
            found.append("the disk is slow: peers have to wait until it has written")
        return found

    def status(self) -> dict[str, object]:
        """What `falconmq status` shows of the service itself."""
        transport = self.transport
        return {
            "listening": self.network.addresses,
            "http": None if self.http is None else self.http.url,
            "configuration": self.configuration.source,
            "directory": self.hub.status(),
            "declared_queues": [queue.to_json() for queue in self.declared],
            "sessions": [_describe(session) for session in transport.sessions],
            "counters": {
                "connections accepted": self.network.accepted,
                **{f"refused: {reason}": n for reason, n in self.network.refused.items()},
                **transport.counters,
                "failures": self.host.failures,
            },
        }

    async def stop(self) -> None:
        """Down in order; whatever goes wrong, the store is closed at the end."""
        try:
            self.network.stop_accepting()
            for door in self.doors:
                await door.stop()
            self.network.stop_reading()
            await self._settle()
            await self.hub.stop()
            self.host.handle(self.transport.stop)
            await self._settle()
            await self.network.close()
        finally:
            self.host.stop()
            self.engine.close()

    async def _settle(self) -> None:
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.host.settled()
        except TimeoutError:
            _log.warning("the disk is slow: stopping although commits are not done")


def _describe(session: Session) -> dict[str, object]:
    return {
        "address": session.remote_address,
        "queue_manager": session.remote_guid and str(UUID(bytes_le=session.remote_guid)),
        "state": session.state.name,
        "is_initiator": session.is_initiator,
        "is_direct": session.is_direct,
        "messages_sent": session.messages_sent,
        "messages_received": session.messages_received,
        "unacknowledged": session.unacked,
    }
