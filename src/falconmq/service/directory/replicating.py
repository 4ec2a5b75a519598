"""This service as one of several directory servers: its role, the engine, the carrier (MC-MQDSRP).

How to think about it. The directory in the own store is a copy of that of the enterprise. The
engine keeps it so, the carrier brings its messages to the other servers over MSMQ; both begin
before anybody writes into the directory, for what is written without the engine is told to nobody.

A primary enterprise controller (PEC) begins with what it has. All others begin with nothing: they
ask, and are ready when the object of their own site has come. Whom they may believe before that is
what an administrator said: `[[computers]]` names the servers, `falconmq key import` their keys.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import UUID

from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.queries import find_one
from falconmq.directory.replication.carrying import ReplicationCarrier
from falconmq.directory.replication.carrying_judging import Judge
from falconmq.directory.replication.engine import ReplicationEngine
from falconmq.directory.replication.replication_queue import QUEUE_PATH
from falconmq.directory.replication.roles import SERVER_TYPES
from falconmq.directory.replication.settings import ReplicationSettings, Role, ServerIdentity
from falconmq.directory.replication.status import fingerprints
from falconmq.directory.replication.writes import PendingWrite
from falconmq.embedded.engine import Engine
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_backend import equals
from falconmq.service.configuration import Computer, Configuration, DirectorySection
from falconmq.service.directory.beginning import begin
from falconmq.service.directory.registering import Candidate
from falconmq.service.directory.replicating_beside import Beside
from falconmq.transport.protection import Protection
from falconmq.wire.public_keys import PublicKeys

_ENTER_AGAIN_SECONDS: Final = 0.2  # and twice as long each time, until
_ENTER_AGAIN_SECONDS_MAX: Final = 10.0
_ASK_AGAIN_SECONDS: Final = 60.0  # for changes: nobody should wait for them 20 minutes
_ASK_AGAIN_HELLOS: Final = 5  # or after so many times `hello_seconds`, if that is sooner
_LOOK_SECONDS: Final = 0.5  # between two looks at a write whose end nobody told

_log = logging.getLogger("falconmq.directory")


class Replication:
    """The engine and the carrier of one service."""

    def __init__(
        self,
        engine: Engine,
        own: EmbeddedDirectory,
        identity: ServerIdentity,
        beside: Beside,
        trusted: dict[UUID, str],
    ) -> None:
        """`trusted` is that of the identity: it changes when the configuration is read again."""
        self.identity = identity
        self._trusted = trusted
        self.is_ready = asyncio.Event()  # the own site is here: the directory can be used
        self.on_applied: Callable[[], None] | None = None  # objects came from others; any thread
        self.replicator: ReplicationEngine
        self.carrier: ReplicationCarrier
        self._engine = engine
        self.own = own
        self._beside = beside
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._applied = 0
        self._knows_site = False
        beside.after_work = self._look

    async def start(self) -> None:
        """Open the queue and let the engine begin. FalconMQError."""
        self._engine.run(self._start_carrier)
        await self._beside.settled()
        _log.info("directory replication role=%s", self.replicator.role.value)

    def trust(self, computers: Iterable[Computer]) -> None:
        """These servers are vouched for by the configuration, from now on."""
        known = {computer.id: computer.name for computer in computers}
        self._trusted.update(known)
        for identifier in self._trusted.keys() - known.keys():
            del self._trusted[identifier]

    @property
    def enters_later(self) -> bool:
        """Whether the queue manager can be a part of the directory only when all is up.

        It needs a first copy; a backup controller even to be registered, for its PSC decides.
        """
        return self.replicator.role is Role.BSC or not self.is_ready.is_set()

    def as_it_is(self, candidate: Candidate) -> Candidate:
        """What the queue manager says of itself, with the role that it has by now."""
        attributes = {**candidate.attributes, "server_type": SERVER_TYPES[self.replicator.role]}
        return replace(candidate, attributes=attributes)

    async def enter_when_ready(self, enter: Callable[[], Awaitable[None]]) -> None:
        """Let the queue manager become a part of the directory when the first copy has come."""
        await self.is_ready.wait()
        seconds = _ENTER_AGAIN_SECONDS
        while True:
            try:
                await enter()
            except DirectoryError as error:  # what was written elsewhere is not back here yet
                _log.info("not in the directory yet, tried again: %s", error)
                await asyncio.sleep(seconds)
                seconds = min(2 * seconds, _ENTER_AGAIN_SECONDS_MAX)
            else:
                return

    async def stop(self) -> None:
        """End it; what waits for another server is told that nobody answered."""
        if not self._engine.is_closed:
            self._engine.run(self._stop_carrier)
        await self._beside.stop()

    def fingerprints(self) -> dict[str, str]:
        """Every object and every remembered deletion in a few bytes, to compare servers by."""
        return fingerprints(self.own)

    def wait(self, write: PendingWrite) -> None:
        """Wait for what another server decides, in a thread that may wait."""
        if threading.get_ident() == self._loop_thread:
            raise DirectoryError(
                "another directory server decides about this object, and nobody can wait here",
                status=MqStatus.NO_DS,
                hint="the change may be made all the same: look before you repeat it",
            )
        is_done = threading.Event()
        write.add_done_callback(lambda _: is_done.set())
        while write.status is None and not is_done.wait(_LOOK_SECONDS):
            pass

    def _start_carrier(self, _: QueueManagerCore) -> None:
        self.carrier.start()

    def _stop_carrier(self, _: QueueManagerCore) -> None:
        self.carrier.stop()

    def _look(self) -> None:
        """Behind each piece of work, in its thread: what has changed by it."""
        applied = self.replicator.counters.get("applied", 0)
        if applied != self._applied and self.on_applied is not None:
            self.on_applied()
        self._applied = applied
        if not self._knows_site:
            by_identifier = equals("identifier", self.identity.site)
            self._knows_site = find_one(self.own, "Site", by_identifier) is not None
            if self._knows_site:
                self._loop.call_soon_threadsafe(self.is_ready.set)


async def start_replication(
    configuration: Configuration,
    engine: Engine,
    own: EmbeddedDirectory,
    protection: Protection | None,
) -> Replication:
    """Be what `[directory] role` says, before anything is written: what the engine does not see,
    no other server hears of. FalconMQError.
    """
    if configuration.directory.role == Role.PEC.value:
        await asyncio.to_thread(begin, own, configuration.directory)
    made = _make(configuration, engine, own, protection)
    try:
        await made.start()
    except BaseException:
        await made.stop()
        raise
    return made


def _make(
    configuration: Configuration,
    engine: Engine,
    own: EmbeddedDirectory,
    protection: Protection | None,
) -> Replication:
    section, core = configuration.directory, engine.core
    if core.key_source is None or (protection is None and section.checks_servers):
        raise DirectoryError(
            "a directory server signs its messages, and nothing can be signed or verified here",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="pip install 'falconmq[security]'",
        )
    trusted: dict[UUID, str] = {}
    identity = ServerIdentity(
        Role(section.role),
        core.settings.computer_name,
        core.identifier,
        _site(own, section),
        pec_name=section.pec,
        psc_name=section.psc,
        trusted=trusted,
    )
    settings = ReplicationSettings(
        intersite_seconds=section.intersite_seconds,
        intrasite_seconds=section.intrasite_seconds,
        hello_seconds=section.hello_seconds,
        sync_resend_seconds=min(_ASK_AGAIN_SECONDS, _ASK_AGAIN_HELLOS * section.hello_seconds),
        requires_sender=section.checks_servers,
    )
    judge = Judge(section.checks_servers)
    if protection is not None:
        # The protocol knows nothing better than MD5; too short keys do not count all the same.
        protection.always_weak.add(QUEUE_PATH)
        judge = Judge(section.checks_servers, partial(_signing_keys_of, protection))
    beside = Beside(engine)
    made = Replication(engine, own, identity, beside, trusted)
    made.trust(configuration.computers)
    made.replicator = ReplicationEngine(own, identity, settings, core.clock, core.random)
    made.replicator.gate.wait = made.wait
    made.carrier = ReplicationCarrier(
        core, made.replicator, core.key_source, judge, beside.run, beside.call_soon
    )
    return made


def _site(own: EmbeddedDirectory, section: DirectorySection) -> UUID:
    """The own site: by its GUID, by its name once the directory is here, or the only one."""
    try:
        return UUID(section.site)
    except ValueError:
        pass
    filters = equals("name", section.site) if section.site else ()
    row = find_one(own, "Site", filters)
    if row is not None and isinstance(row["identifier"], UUID):
        return row["identifier"]
    raise DirectoryError(
        f"there is no site {section.site!r} in the directory of this server yet",
        status=MqStatus.CANT_RESOLVE_SITES,
        hint="name it by its GUID; the PEC knows it: falconmq directory show site NAME",
    )


def _signing_keys_of(protection: Protection, queue_manager: UUID) -> PublicKeys | None:
    """Of whichever registry there is now: joining a directory brings another one."""
    return protection.registry.signing_keys_of(queue_manager)
