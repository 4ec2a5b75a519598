"""Putting what was read from the directory into the core, in a turn; and what to read first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.memory import KnownRow
from falconmq.directory.notification import ReceivingSettings
from falconmq.directory.routing import DirectoryRouter
from falconmq.errors import DirectoryError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import (
    directory_server_list_update,
    directory_site_gates_update,
    directory_sites_update,
    read_directory,
    update_local_queue_manager,
)
from falconmq.manager.directory_backend import equals, remembered
from falconmq.manager.directory_objects import DirectoryObject, QueueManager, Row, Site
from falconmq.manager.registry import qualified_computer_name
from falconmq.names import PublicFormatName
from falconmq.service.configuration import DirectorySection
from falconmq.service.directory.registering import QUEUE_MANAGER, Knowledge

Question = tuple[str, UUID]
"""A type and the identifier of one of its objects."""


def apply_section(
    core: QueueManagerCore, section: DirectorySection, knowledge: Knowledge | None
) -> None:
    """Let the core have the settings of `[directory]`; None: those of a workgroup."""
    settings = core.settings
    settings.domain_name = section.domain
    settings.qualified_computer_name = section.host_name
    core.local.qualified_computer_name = qualified_computer_name(settings)
    sites = None if knowledge is None else knowledge.own.get("site_identifiers")
    settings.site_identifier = sites[0] if isinstance(sites, list) and sites else None
    settings.directory_sites_update_seconds = section.sites_update_seconds
    settings.directory_site_gates_update_seconds = section.site_gates_update_seconds


def receiving(section: DirectorySection) -> ReceivingSettings:
    """How notifications are collected; all times in the proportions that Windows has."""
    usual, seconds = ReceivingSettings(), section.notification_seconds
    scale = seconds / usual.collect_seconds
    return replace(
        usual,
        collect_seconds=seconds,
        quiet_seconds=scale * usual.quiet_seconds,
        longest_seconds=scale * usual.longest_seconds,
    )


def use_knowledge(core: QueueManagerCore, router: DirectoryRouter, knowledge: Knowledge) -> None:
    """Decide by the map that was read; sites know their gates, and we our routing servers."""
    found = knowledge.map.to_map(foreign_penalty=router.options.foreign_penalty)
    if knowledge.is_remembered:
        router.use(found, read_at=knowledge.read_at)
        router.fail("the directory is away")
    else:
        router.use(found)
    if not knowledge.is_remembered:
        update_local_queue_manager(core, knowledge.own)
    rows = {row["identifier"]: row for row in knowledge.map.machines}
    core.sites[:] = [_site(core, row) for row in knowledge.sites]
    for site in core.sites:
        site.site_gates = _machines(rows, found.gates_of(site.identifier))
    local = core.local
    local.connect(
        _machines(rows, local.out_routing_server_identifiers),
        _machines(rows, local.in_routing_server_identifiers),
    )


def not_read(_: QueueManagerCore, router: DirectoryRouter, error: DirectoryError) -> None:
    """The map could not be read: the router tries again soon."""
    router.fail(str(error))


def notice_away(core: QueueManagerCore) -> None:
    """Go offline, as any question would: from then on what is remembered counts."""
    if not core.is_directory_offline:
        read_directory(core, QUEUE_MANAGER, equals("identifier", core.identifier))


def with_memories(directory: CachedDirectory, knowledge: Knowledge) -> list[KnownRow]:
    """What is kept: the map, and whatever else is known of its queue managers, as their keys."""
    found = []
    for type_name, row in knowledge.rows():
        known: Row | None = None
        if type_name == QUEUE_MANAGER:
            known = directory.remembered(type_name, equals("identifier", row["identifier"]))
        found.append((type_name, row if known is None else {**known, **row}))
    return found


def remembered_queues(core: QueueManagerCore) -> dict[UUID, KnownRow]:
    """The queues of others that messages wait for, as far as the directory has told of them."""
    found: dict[UUID, KnownRow] = {}
    for name in core.outgoing:
        if isinstance(name, PublicFormatName):
            row = remembered(core.directory, "Queue", equals("identifier", name.queue))
            if row is not None:
                found[name.queue] = "Queue", row
    return found


def questions_of(core: QueueManagerCore, event: Callable[..., None]) -> list[Question]:
    """What an event is going to ask the directory for."""
    if event is directory_server_list_update:
        return []
    if event is directory_sites_update:
        return _of(core.sites)
    if event is directory_site_gates_update:
        return [question for site in core.sites for question in _of(site.site_gates)]
    queues: list[Question] = [("Queue", identifier) for identifier in core.public]
    return [(QUEUE_MANAGER, core.identifier), *queues]


def fetch_quietly(directory: CachedDirectory, questions: Iterable[Question]) -> None:
    """In a thread: ask now, so that the event finds the answers; it notices what is missing."""
    with suppress(DirectoryError):
        for type_name, identifier in questions:
            directory.fetch(type_name, equals("identifier", identifier))


def _of(objects: Iterable[DirectoryObject]) -> list[Question]:
    return [(each.type_name, each.identifier) for each in objects]


def _site(core: QueueManagerCore, row: Row) -> Site:
    """The site of a row: the one that the core has, if it has it."""
    known = (site for site in core.sites if site.identifier == row["identifier"])
    site = next(known, None)
    if site is None:
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        site = Site(identifier)
    site.update(row)
    return site


def _machines(rows: dict[object, Row], identifiers: Iterable[UUID]) -> list[QueueManager]:
    found = []
    for identifier in identifiers:
        machine = QueueManager(identifier)
        if identifier in rows:
            machine.update(rows[identifier])
        found.append(machine)
    return found
