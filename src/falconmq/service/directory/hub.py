"""The directory of a service: what it keeps for others, and the one that it is a part of.

How to think about it. A queue manager starts as a workgroup; then it becomes a part of its
directory, at the start or when somebody says `falconmq directory join`, in the same way:

    open       a back end (`back_ends`), and `CachedDirectory` before it, which never blocks long
    register   in a thread: its own object is there, and up to date (`registering`)
    remember   what it has to know is kept in the store, for a start while the directory is away
    become     in one turn: the core has a directory, a router, and hears of changes

Nothing here asks the directory in the loop: it is asked in a thread first, and the event that needs
the answers is raised in a turn behind it (`errands`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from falconmq.directory.base import DirectoryBase
from falconmq.directory.cached import CachedDirectory
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.guard import GuardedDirectory
from falconmq.directory.memory import DirectoryMemory
from falconmq.directory.notification_receiving import ChangeNotificationServer
from falconmq.directory.notification_sending import ChangeNotificationClient, SendingSettings
from falconmq.directory.routing import DirectoryRouter
from falconmq.directory.routing_choice import RoutingOptions
from falconmq.embedded.engine import Engine
from falconmq.errors import DirectoryError
from falconmq.manager import lifecycle
from falconmq.manager.access import caller_of
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import check_directory_online
from falconmq.service.configuration import Configuration, DirectorySection
from falconmq.service.directory import refreshing, registering
from falconmq.service.directory.back_ends import open_back_end
from falconmq.service.directory.beginning import begin
from falconmq.service.directory.candidates import candidate_of
from falconmq.service.directory.errands import Errands, Event, Work
from falconmq.service.directory.keeping import Keeper
from falconmq.service.directory.meeting import meet
from falconmq.service.directory.membership import (
    delete_membership,
    with_membership,
    write_membership,
)
from falconmq.service.directory.refusals import (
    already_joined,
    check_not_configured,
    has_public_queues,
    not_joined,
)
from falconmq.service.directory.registering import Candidate, Knowledge, unregister
from falconmq.service.directory.replicating import Replication, start_replication
from falconmq.service.directory.republishing import kept_queues, take_over
from falconmq.service.directory.statuses import hub_status
from falconmq.service.directory.transport_side import TransportSide

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_log = logging.getLogger("falconmq.directory")


class DirectoryHub:
    """Everything about directories in one service; in a workgroup it only keeps one for others."""

    def __init__(
        self, configuration: Configuration, engine: Engine, transport: Transport | None = None
    ) -> None:
        core = engine.core
        self.section = configuration.directory
        self.directory: CachedDirectory | None = None
        self.router: DirectoryRouter | None = None
        self.notifications: ChangeNotificationServer | None = None
        self.notifier: ChangeNotificationClient | None = None
        self.replication: Replication | None = None  # one of several directory servers
        self.on_membership: Callable[[Configuration], None] = self.configure  # joined, or left
        self.on_back: Callable[[], Awaitable[None]] = _nobody  # the directory is there again
        self._configuration = configuration
        self._engine = engine
        self._transport = TransportSide(engine, transport, self._spawn)
        self._own = EmbeddedDirectory(engine.store, core.clock, core.random)
        self._memory = DirectoryMemory(engine.store)
        self.kept: DirectoryBase = self._guarded(self._own)
        self._asked: DirectoryBase = self.kept
        self._keeper = Keeper(engine, self._memory)
        self._errands: Errands  # from the start on
        self._changing = asyncio.Lock()

    @property
    def asked(self) -> DirectoryBase:
        """The directory that commands and pages show: the one we are part of, else our own."""
        return self._asked

    async def start(self) -> None:
        """Become a part of the directory of the configuration; DirectoryError if that cannot be.

        A directory that is away is no error for a queue manager that it knows already.
        """
        self._errands = Errands(self._engine)
        self._errands.spawn(self._keeper.keep_always)
        if self.section.has_role:
            await self._replicate()
        if self.replication is not None and self.replication.enters_later:
            self._errands.spawn(partial(self.replication.enter_when_ready, self._enter_configured))
        elif self.section.is_joined:
            await self._enter_configured()

    async def stop(self) -> None:
        """Let go of everything; the membership stays."""
        if not hasattr(self, "_errands"):
            return  # it was never started
        await self._errands.stop()
        if self.replication is not None:
            await self.replication.stop()
        directory = self.directory
        if directory is not None:
            await self._keeper.keep_quietly()
            if not self._engine.is_closed:
                self._engine.run(self._fall_silent)
            await asyncio.to_thread(directory.close)

    def configure(self, configuration: Configuration) -> None:
        """Another configuration is in effect; which directory we are part of does not change."""
        self._configuration = configuration
        if self.replication is not None:
            self.replication.trust(configuration.computers)
        self._transport.use_ways(configuration.router(), self.router)

    async def join(self, section: DirectorySection) -> None:
        """Become a part of a directory now, and at every start. DirectoryError, nothing changed."""
        async with self._changing:
            check_not_configured(self._configuration)
            if self.directory is not None:
                raise already_joined(self.section.kind)
            await asyncio.to_thread(self._memory.clear)
            await self._enter(section, may_remember=False)
            data = self._configuration.manager.data
            try:
                await asyncio.to_thread(write_membership, data, section)
            except BaseException:
                await self._go(force=True)
                raise
            self.on_membership(with_membership(self._configuration, section))
            servers = ",".join(section.servers) or "-"
            _log.info("directory joined kind=%s servers=%s", section.kind, servers)

    async def leave(self, *, force: bool = False) -> None:
        """Be a workgroup from now on; the object of this queue manager is deleted.

        With `force` the entries of its public queues are deleted too. The queues stay here with
        their messages, under their direct names; the next join publishes them again. What cannot
        be deleted stays behind.
        """
        async with self._changing:
            check_not_configured(self._configuration)
            if self.directory is None:
                raise not_joined()
            if self._engine.core.public and not force:
                raise has_public_queues(len(self._engine.core.public))
            await self._go(force=force)
            data = self._configuration.manager.data
            await asyncio.to_thread(delete_membership, data)
            self.on_membership(with_membership(self._configuration, DirectorySection()))
            _log.info("directory left")

    async def refresh(self) -> None:
        """Read sites, gates and the map again now, beside the loop. DirectoryError.

        What the directory has of this queue manager is put right, if it is not what we said.
        """
        directory, router = self.directory, self.router
        if directory is None or router is None:
            return
        try:
            candidate, said = self._candidate(self.section), self._memory.said()
            knowledge = await asyncio.to_thread(registering.refresh, directory, candidate, said)
        except DirectoryError as error:
            if self.router is router:
                self._engine.run(refreshing.not_read, router, error)
            raise
        if self.router is router:
            self._engine.run(self._use, router, knowledge)
            await self._keeper.keep(knowledge)

    def status(self) -> dict[str, object]:
        """What `falconmq directory status` shows."""
        return hub_status(self, self._engine.core)

    # Becoming a part, and parting

    async def _replicate(self) -> None:
        protection = self._transport.protection
        self.replication = await start_replication(
            self._configuration, self._engine, self._own, protection
        )
        self.replication.on_applied = self._forget

    async def _enter_configured(self) -> None:
        async with self._changing:
            await self._enter(self.section, may_remember=True)

    def _forget(self) -> None:
        """Objects came from another directory server; any thread."""
        if self.directory is not None:
            self.directory.forget()

    async def _enter(self, section: DirectorySection, *, may_remember: bool) -> None:
        core = self._engine.core
        back_end = open_back_end(section, self._own, core.clock, core.random)
        directory = CachedDirectory(
            back_end,
            core.clock,
            cache_seconds=section.cache_seconds,
            timeout_seconds=section.timeout_seconds,
            on_change=partial(self._errands.spawn, self._notice),
            is_local=back_end is self._own,
        )
        candidate = replace(self._candidate(section), queues=self._engine.look(kept_queues))
        try:
            if back_end is self._own:
                await asyncio.to_thread(begin, back_end, section)
            knowledge = await asyncio.to_thread(
                meet, directory, candidate, self._memory, may_remember=may_remember
            )
            self._engine.run(self._become, section, directory, knowledge)
        except BaseException:
            await asyncio.to_thread(directory.close)
            raise
        self.section = section
        is_own = back_end is self._own
        self._asked = self.kept if is_own else self._guarded(back_end)
        self._tell_transport()

    def _candidate(self, section: DirectorySection) -> Candidate:
        """This queue manager, as it wants to be known."""
        configuration = replace(self._configuration, directory=section)
        candidate = self._engine.look(candidate_of, configuration)
        return candidate if self.replication is None else self.replication.as_it_is(candidate)

    def _become(
        self,
        core: QueueManagerCore,
        section: DirectorySection,
        directory: CachedDirectory,
        knowledge: Knowledge,
    ) -> None:
        """In a turn: the queue manager is a part of its directory."""
        refreshing.apply_section(core, section, knowledge)
        core.directory_beside = self._beside
        try:
            lifecycle.join_directory(core, directory, provisioning=knowledge.is_new)
        except BaseException:
            self._part(core)
            raise
        take_over(core, knowledge.published)
        self.directory = directory
        self._keeper.begin(directory, knowledge)
        options = RoutingOptions(foreign_penalty=section.foreign_penalty)
        seconds = section.routing_update_seconds
        self.router = router = DirectoryRouter(core, options, query_seconds=seconds)
        router.ask_refresh = _nothing
        router.start()
        refreshing.use_knowledge(core, router, knowledge)
        router.ask_refresh = partial(self._errands.spawn, self.refresh)
        router.answered = self._transport.answered
        sending = SendingSettings(is_directory_service=section.is_directory_service)
        self.notifier = core.change_notifier = ChangeNotificationClient(core, sending)
        self.notifications = ChangeNotificationServer(core, refreshing.receiving(section))
        self.notifications.start()

    def _use(self, core: QueueManagerCore, router: DirectoryRouter, knowledge: Knowledge) -> None:
        """In a turn: there is a new map; whoever waits for a way looks at it."""
        refreshing.use_knowledge(core, router, knowledge)
        self._transport.look_again(core)

    async def _go(self, *, force: bool) -> None:
        directory = self.directory
        assert directory is not None, "only who is in a directory leaves it"
        core = self._engine.core
        try:
            await asyncio.to_thread(unregister, directory, core.identifier, list(core.public))
        except DirectoryError as error:
            if not force:
                error.hint = f"{error.hint}; --force leaves all the same".removeprefix("; ")
                raise
            _log.warning("left behind in the directory: our object problem=%s", error)
        self._engine.run(self._part)
        self._tell_transport()
        await asyncio.to_thread(directory.close)
        await asyncio.to_thread(self._memory.clear)

    def _part(self, core: QueueManagerCore) -> None:
        self._fall_silent(core)
        lifecycle.leave_directory(core)
        refreshing.apply_section(core, DirectorySection(), None)
        core.directory_beside = core.change_notifier = None
        self.directory = self.router = self.notifications = self.notifier = None
        self.section, self._asked = DirectorySection(), self.kept
        self._keeper.begin(None, None)

    def _fall_silent(self, _: QueueManagerCore) -> None:
        if self.router is not None:
            self.router.stop()
        if self.notifications is not None:
            self.notifications.stop()
        if self.notifier is not None:
            self.notifier.close()

    def _tell_transport(self) -> None:
        """Another directory, or none: other ways, and others' keys from elsewhere."""
        self._transport.use_ways(self._configuration.router(), self.router)
        self._transport.use_keys(self.directory)

    def _guarded(self, directory: DirectoryBase) -> DirectoryBase:
        return GuardedDirectory(directory, partial(caller_of, self._engine.core))

    # Beside the loop

    def _spawn(self, work: Work) -> None:
        self._errands.spawn(work)

    def _beside(self, event: Event) -> None:
        """Raise an event that asks the directory (`core.directory_beside`)."""
        directory = self.directory
        if directory is not None:
            self._errands.raise_beside(directory, event)

    async def _notice(self) -> None:
        """The directory went away, or came back: let the core know before it has to ask."""
        directory = self.directory
        if directory is None:
            return
        if directory.is_away:
            self._engine.run(refreshing.notice_away)
            await self._keeper.keep()
            return
        if self._engine.core.is_directory_offline:
            await self._errands.raise_event(directory, check_directory_online)
        await self.refresh()
        await self.on_back()


async def _nobody() -> None:
    """Nobody waits for the directory."""


def _nothing() -> None:
    """The map was read just now."""
