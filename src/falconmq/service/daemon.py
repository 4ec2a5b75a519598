"""The life of the daemon: start, serve until a signal, stop in order.

    start   data directory -> core -> enterprise, if it is in one -> declared queues -> transport ->
            ports -> doors -> READY
    reload  SIGHUP: the configuration is read again, what can be applied is (`service.reload`)
    stop    no new connections -> no new calls -> nothing more is read -> what is in hand becomes
            durable and is acknowledged -> sessions close -> store closes

A kill in between loses nothing that was acknowledged: the order only saves peers from sending again
and waiting calls from an error they cannot read.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from random import SystemRandom
from typing import TYPE_CHECKING, Final, Protocol, Self
from uuid import UUID

from falconmq import aio
from falconmq.clock import SystemClock
from falconmq.embedded import blocking
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.manager import lifecycle
from falconmq.manager.access import acting_as
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.event_keeping import EventKeeper
from falconmq.manager.events import EventLog
from falconmq.manager.persistence import stored_identifier
from falconmq.security.key_store import KeyStore
from falconmq.security.signing_keys import SigningKeys
from falconmq.service import declared, securing
from falconmq.service.addresses import local_addresses
from falconmq.service.configuration import ALL_INTERFACES, Configuration, DeclaredQueue
from falconmq.service.directory.hub import DirectoryHub
from falconmq.service.file_modes import check_files
from falconmq.service.host import Host
from falconmq.service.observation.event_texts import queue_text
from falconmq.service.readiness import Readiness
from falconmq.service.reload import Report, reload
from falconmq.service.securing import secure
from falconmq.service.troubles import store_troubles
from falconmq.store import GroupCommitter, Store, open_data_directory
from falconmq.transport.binding import AsyncioNetwork
from falconmq.transport.protection import Protection
from falconmq.transport.session import Session
from falconmq.transport.transport import Transport

if TYPE_CHECKING:
    from falconmq.service.api.context import Control
    from falconmq.service.web.http import HttpServer

STOP_SECONDS: Final = 10.0  # for what is in hand to become durable
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

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

    async def declare(self, queues: Iterable[DeclaredQueue]) -> list[declared.Result]:
        """Make the queues what the configuration says; ConfigurationError if they cannot be."""
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


async def serve(
    configuration: Configuration, *, ready: Callable[[Service], None] | None = None
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 0 when asked to stop, 1 if it cannot start.

    A second signal ends the process at once. SIGHUP reads the configuration again.
    """
    readiness = Readiness()
    stopping, reloading = asyncio.Event(), asyncio.Event()
    with _signals(stopping, reloading):
        try:
            service = await Service.start(configuration)
        except FalconMQError as error:
            _log.error("cannot start: %s", error)
            if error.hint:
                _log.error("hint: %s", error.hint)
            return 1
        watchdog = asyncio.create_task(_be_alive(readiness))
        keys = asyncio.create_task(_make_keys(configuration, service.transport.protection))
        reloads = asyncio.create_task(_reload_when_asked(service, readiness, reloading))
        try:
            _tell(service)
            readiness.ready(_listening(service))
            if ready is not None:
                ready(service)
            await stopping.wait()
        finally:
            readiness.stopping("stopping")
            watchdog.cancel()
            await asyncio.wait({keys}, timeout=STOP_SECONDS)  # so that a short start makes them
            keys.cancel()
            reloads.cancel()
            await service.stop()
    _log.info("stopped")
    return 0


def run(configuration: Configuration) -> int:
    """`serve` for a command: its own log, its own event loop, the faster one if it is there."""
    configure_log(configuration.log_level)
    allow_many_files()
    # Messages are many small objects without cycles: looking for cycles every 700 of them took a
    # tenth of the time of recoverable messages, a fifth of express ones.
    gc.set_threshold(100_000, 50, 100)
    try:
        uvloop = importlib.import_module("uvloop")  # optional
    except ModuleNotFoundError:
        return asyncio.run(serve(configuration))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return int(runner.run(serve(configuration)))


def start_hosted_engine(store: Store, configuration: Configuration) -> Engine:
    """A queue manager over a store, whose timers the host runs."""
    try:
        chance = SystemRandom()
        identifier = stored_identifier(store) or UUID(int=chance.getrandbits(128), version=4)
        settings = Settings(
            computer_name=configuration.manager.name,
            local_names=local_names(configuration),
            quota_kilobytes=configuration.manager.quota_kilobytes,
        )
        core = QueueManagerCore(identifier, store, SystemClock(), chance, settings)
        prepare(configuration, core)
        lifecycle.initialize(core)
        committer = GroupCommitter(store)
    except BaseException:
        store.close()
        raise
    engine = Engine(core, store, committer, housekeeping=False)
    try:
        blocking.call(engine, _nothing)  # what the initialization wrote
    except BaseException:
        engine.close()
        raise
    return engine


def prepare(configuration: Configuration, core: QueueManagerCore) -> None:
    """Make a queue manager what the configuration says, before anything happens in it."""
    remember(configuration, core)
    secure(core, configuration.security)
    core.key_source = KeyStore(configuration.manager.data).keys
    core.signing_keys = SigningKeys(configuration.manager.data)


async def _make_keys(configuration: Configuration, protection: Protection | None) -> None:
    """At the first start the keys of the queue manager are made, beside what is more urgent.

    At every other one it is looked whether they can be used: nobody else may read them.
    """
    store = KeyStore(configuration.manager.data)
    is_new = not store.path.exists()
    try:
        await asyncio.to_thread(store.keys)
    except FalconMQError as error:
        _log.error("no keys, nothing can be signed or encrypted: %s; %s", error, error.hint)
    else:
        if is_new:
            _log.info("keys made path=%s", store.path)
            securing.use_keys(protection, configuration)


def remember(configuration: Configuration, core: QueueManagerCore) -> None:
    """Let a queue manager record what happens to messages, as far as it is wanted."""
    events = configuration.events
    if configuration.history.events or events.keep:
        core.events = EventLog(core.clock.time, configuration.history.events)
        if events.keep:
            core.events.keeper = EventKeeper(core.store, events.retention, queue_text)


def local_names(configuration: Configuration) -> frozenset[str]:
    """The names and addresses that mean us in a direct format name."""
    manager, advertised = configuration.manager, configuration.transport.advertised_address
    names = {*manager.local_names, manager.bind}
    if manager.bind == ALL_INTERFACES:
        names = {*manager.local_names, *local_addresses()}
    return frozenset(names | {advertised} if advertised else names)


def configure_log(level: str) -> None:
    """To stderr; the journal adds the time itself."""
    time = "" if "JOURNAL_STREAM" in os.environ else "%(asctime)s "
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format=f"{time}%(levelname)s %(name)s %(message)s"
    )


def allow_many_files() -> None:
    """As many sockets as the system lets us have: the usual 1024 are few for a server."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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


def _nothing(core: QueueManagerCore) -> None:
    """A turn that only commits what is there."""


def _tell(service: Service) -> None:
    core, configuration = service.engine.core, service.configuration
    _log.info(
        "listening addresses=%s name=%s queue_manager=%s data=%s configuration=%s",
        ",".join(service.network.addresses),
        core.settings.computer_name,
        core.identifier,
        configuration.manager.data,
        configuration.source,
    )
    if service.http is not None:
        service.http.tell()
    if configuration.security.hardened:
        _log.warning(
            "hardened mode: no message comes or goes over the MSMQ port; "
            "security.hardened = false and a restart end it"
        )
    elif configuration.manager.bind == ALL_INTERFACES:
        _log.info("every interface of this computer is open to peers; manager.bind narrows it")


async def _be_alive(readiness: Readiness) -> None:
    interval = readiness.watchdog_interval
    while interval is not None:
        readiness.alive()
        await asyncio.sleep(interval)


def _listening(service: Service) -> str:
    if service.configuration.security.hardened:
        return "hardened mode: the MSMQ port is closed"
    return f"listening on {', '.join(service.network.addresses)}"


async def _reload_when_asked(
    service: Service, readiness: Readiness, reloading: asyncio.Event
) -> None:
    while True:
        await reloading.wait()
        reloading.clear()
        readiness.reloading("reading the configuration")
        problem = ""
        try:
            report = await service.reload()
        except FalconMQError as error:
            _log.error("configuration not reloaded, nothing was changed: %s", error)
            if error.hint:
                _log.error("hint: %s", error.hint)
            problem = str(error)
        except Exception as error:  # noqa: BLE001  # a bug; the service goes on as it was
            _log.exception("configuration not reloaded")
            problem = repr(error)
        else:
            waiting = sum(not change.is_applied for change in report.changes)
            applied = len(report.changes) - waiting
            _log.info("configuration reloaded applied=%d needs_restart=%d", applied, waiting)
        await service.write_down("SIGHUP", "config reload", problem)
        readiness.ready(_listening(service))


@contextmanager
def _signals(stopping: asyncio.Event, reloading: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # the store survives that; as shells count
        _log.info("stopping signal=%s; again to stop at once", number.name)
        stopping.set()

    handled = []
    for number in _SIGNALS:
        with suppress(RuntimeError, ValueError):  # only the main thread gets signals
            loop.add_signal_handler(number, ask, number)
            handled.append(number)
    with suppress(RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGHUP, reloading.set)
        handled.append(signal.SIGHUP)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
