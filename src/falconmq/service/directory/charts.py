"""A map of the enterprise to look at, and ways on it from here: for commands and pages.

A queue manager that has joined a directory decides by its own map, and that one is shown: what it
says is what happens. In a workgroup the map is read from the directory in the store, if there is
one, so that it can be looked at before anybody joins.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_one
from falconmq.directory.routing_choice import (
    DEFAULT_OPTIONS,
    Route,
    RoutingOptions,
    trace_route,
)
from falconmq.directory.routing_explaining import explain, find_faults
from falconmq.directory.routing_map import Left, RoutingMap
from falconmq.directory.routing_reading import read_routing_map
from falconmq.errors import DirectoryError, MqStatus, NameSyntaxError
from falconmq.manager.directory_backend import equals
from falconmq.names import (
    DirectFormatName,
    FormatName,
    MachineFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    parse_queue_name,
)
from falconmq.names.syntax import fold

if TYPE_CHECKING:
    from falconmq.service.api.context import Control

_NEAR_MAX: Final = 5  # names in a hint


@dataclass(frozen=True, slots=True)
class Chart:
    """A map, who looks at it, and how good it is."""

    map: RoutingMap
    source: UUID
    faults: tuple[str, ...] = ()
    read_at: float | None = None  # seconds since 1970; None: it was never read
    problem: str = ""  # why it could not be read last time
    options: RoutingOptions = DEFAULT_OPTIONS
    is_joined: bool = False  # messages follow it

    def trace(self, destination: UUID) -> list[Route]:
        """The whole way from here, if the first hop always answers."""
        return trace_route(self.map, self.source, destination, self.options)

    def explain(self, route: Route) -> str:
        """Why the next step of a way is what it is."""
        return explain(self.map, route)

    def left_from(self, machine: UUID, destination: UUID) -> Left | None:
        """What links cost from one queue manager to another, and how many there are."""
        here, there = self.map.machines.get(machine), self.map.machines.get(destination)
        if here is None or there is None:
            return None
        return self.map.left_from(here, there.sites)

    def name_of(self, machine: UUID) -> str:
        known = self.map.machines.get(machine)
        return str(machine) if known is None else known.computer_name or str(machine)

    def site_name(self, site: UUID) -> str:
        known = self.map.sites.get(site)
        return str(site) if known is None else known.name or str(site)


async def chart_of(control: Control, directory: DirectoryBase) -> Chart:
    """The map that counts here; DirectoryError if it has to be read and cannot be."""
    core, hub = control.engine.core, control.hub
    router = None if hub is None else hub.router
    if router is not None:
        return Chart(
            router.map,
            core.identifier,
            tuple(router.faults),
            router.read_at,
            router.problem,
            router.options,
            is_joined=True,
        )
    found = await asyncio.to_thread(read_routing_map, directory)
    faults = await asyncio.to_thread(find_faults, found)
    return Chart(found, core.identifier, tuple(faults), core.clock.time())


def find_destination(chart: Chart, directory: DirectoryBase, text: str) -> UUID:
    """The queue manager that somebody means; DirectoryError says who is not known.

    By its name or GUID, or by a queue that it has. May ask the directory, and so take its time.
    """
    text = text.strip()
    found = _by_computer(chart, text)
    if found is None:
        found = _by_guid(chart, directory, text) or _by_queue(chart, directory, text)
    if found is None:
        raise _unknown(chart, text)
    return found


def _by_computer(chart: Chart, name: str) -> UUID | None:
    wanted = fold(name)
    for machine in chart.map.machines.values():
        if wanted in (fold(machine.computer_name), fold(machine.host_name)):
            return machine.identifier
    return None


def _by_guid(chart: Chart, directory: DirectoryBase, text: str) -> UUID | None:
    try:
        guid = UUID(text.strip("{}"))
    except ValueError:
        return None
    return guid if guid in chart.map.machines else _owner(directory, guid) or guid


def _by_queue(chart: Chart, directory: DirectoryBase, text: str) -> UUID | None:
    try:
        name = parse_queue_name(text)
    except NameSyntaxError:
        return None  # it was meant as a computer
    if isinstance(name, PathName):
        return chart.source if name.computer == "." else _by_computer(chart, name.computer)
    return _by_format_name(directory, name)


def _by_format_name(directory: DirectoryBase, name: FormatName) -> UUID | None:
    match name:
        case PublicFormatName(queue):
            return _owner(directory, queue)
        case PrivateFormatName(computer) | MachineFormatName(computer):
            return computer
        case DirectFormatName():
            raise DirectoryError(
                f"{name} goes straight to {name.address}: direct names are not routed",
                status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
                hint=f"falconmq ping {name.address}",
            )
        case _:
            return None


def _owner(directory: DirectoryBase, queue: UUID) -> UUID | None:
    row = find_one(directory, "Queue", equals("identifier", queue))
    owner = None if row is None else row.get("queue_manager_identifier")
    return owner if isinstance(owner, UUID) else None


def _unknown(chart: Chart, text: str) -> DirectoryError:
    names = sorted(m.computer_name for m in chart.map.machines.values() if m.computer_name)
    shown = ", ".join(names[:_NEAR_MAX]) + (", ..." if len(names) > _NEAR_MAX else "")
    known = f"it knows {shown}" if names else "it knows nobody"
    return DirectoryError(
        f"the directory knows no queue manager and no queue {text}",
        status=MqStatus.MACHINE_NOT_FOUND,
        hint=f"{known}; to read it again: falconmq directory route {text} --refresh",
    )
