"""Reading the configuration again while the service runs (SIGHUP, `falconmq config reload`).

First everything is read and checked; whatever is wrong with it, nothing changes. Then each setting
that differs is applied if that is safe, or reported as waiting for a restart. What is in effect is
`Service.configuration`, which is replaced; nobody may keep a copy of a value that can be reloaded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from falconmq.manager.core import QueueManagerCore
from falconmq.service import declared
from falconmq.service.configuration import Configuration, Source
from falconmq.service.configuration.loading import load_again
from falconmq.service.configuration.settings import SETTINGS
from falconmq.service.configuration.showing import effective, plain, value_of
from falconmq.service.file_modes import check_files
from falconmq.service.securing import secure

if TYPE_CHECKING:
    from falconmq.service.daemon import Service

LISTS: Final = ("hosts", "computers", "routes", "principals")

_log = logging.getLogger("falconmq.service")


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that is not what it was."""

    name: str
    is_applied: bool  # else it waits for a restart
    old: object
    new: object

    def to_json(self) -> dict[str, Any]:
        outcome = "applied" if self.is_applied else "needs restart"
        return {
            "name": self.name,
            "outcome": outcome,
            "old": plain(self.old),
            "new": plain(self.new),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What a reload did."""

    changes: tuple[Change, ...]
    queues: tuple[declared.Result, ...]
    unchanged: int  # settings that are as they were

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": [change.to_json() for change in self.changes],
            "queues": [queue.to_json() for queue in self.queues],
            "unchanged": self.unchanged,
        }


async def reload(service: Service) -> Report:
    """Read file and environment again and apply what can be; ConfigurationError changes nothing."""
    old = service.configuration
    new = load_again(old.origin)
    check_files(new)
    service.engine.look(declared.check_kinds, new.queues)
    changes = compare(old, new)
    merged = merge(old, new, changes)
    if service.http is not None:
        service.http.reload_certificates()
    queues = await service.declare(new.queues)
    _apply(service, merged, changes)
    for change in changes:
        outcome = "applied" if change.is_applied else "needs a restart"
        _log.info("setting %s name=%s old=%s new=%s", outcome, change.name, change.old, change.new)
    unchanged = len(SETTINGS) + len(LISTS) - len(changes)
    return Report(tuple(changes), tuple(queues), unchanged)


def compare(old: Configuration, new: Configuration) -> list[Change]:
    """What differs, and whether a reload applies it."""
    changes = []
    for setting in SETTINGS:
        before, after = value_of(old, setting), value_of(new, setting)
        if before != after:
            changes.append(Change(setting.name, setting.reloads, before, after))
    shown_old, shown_new = effective(old), effective(new)
    changes += [
        Change(name, True, shown_old[name], shown_new[name])
        for name in LISTS
        if getattr(old, name) != getattr(new, name)
    ]
    return changes


def merge(old: Configuration, new: Configuration, changes: list[Change]) -> Configuration:
    """What is in effect after the reload: the new values where they are applied, else the old."""
    waiting = {change.name for change in changes if not change.is_applied}
    return replace(
        new,
        manager=replace(old.manager, **_applied(changes, "manager")),
        transport=old.transport,  # the transport reads this very object; `_apply` changes it
        http=replace(old.http, **_applied(changes, "http")),
        history=old.history,
        events=old.events,
        telemetry=old.telemetry,
        directory=old.directory,
        security=replace(old.security, **_applied(changes, "security")),
        sources=_sources(old, new, waiting),
    )


def _applied(changes: list[Change], section: str) -> dict[str, Any]:
    """The new values of a section, by key."""
    prefix = f"{section}."
    return {
        change.name.removeprefix(prefix): change.new
        for change in changes
        if change.is_applied and change.name.startswith(prefix)
    }


def _sources(old: Configuration, new: Configuration, waiting: set[str]) -> Mapping[str, Source]:
    found = {name: source for name, source in new.sources.items() if name not in waiting}
    found.update({name: old.sources[name] for name in waiting if name in old.sources})
    return found


def _apply(service: Service, merged: Configuration, changes: list[Change]) -> None:
    for key, value in _applied(changes, "transport").items():
        setattr(merged.transport, key, value)
    logging.getLogger().setLevel(merged.log_level.upper())
    service.network.resolver.hosts = merged.hosts
    service.engine.run(_set_quota, merged.manager.quota_kilobytes)
    service.engine.run(secure, merged.security)
    service.configure(merged)


def _set_quota(core: QueueManagerCore, kilobytes: int) -> None:
    core.settings.quota_kilobytes = core.local.quota_kilobytes = kilobytes
