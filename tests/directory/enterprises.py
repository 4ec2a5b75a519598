"""Enterprises to route through: machines, sites and links by short names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid5

from falconmq.directory.routing_map import Link, Machine, MapSite, RoutingMap

_NAMES = UUID("f00df00d-0000-4000-8000-000000000001")


def guid(name: str) -> UUID:
    """The GUID of a machine or site, the same for the same name."""
    return uuid5(_NAMES, name)


def guids(names: str) -> tuple[UUID, ...]:
    return tuple(guid(name) for name in names.split())


def machine(name: str, sites: str, **attributes: Any) -> Machine:
    """A queue manager in the named sites; `ins="a b"` and `outs="c"` name its routing servers."""
    return Machine(
        guid(name),
        name,
        f"{name.lower()}.example.com",
        frozenset(guids(sites)),
        attributes.get("server", False),
        guids(attributes.get("ins", "")),
        guids(attributes.get("outs", "")),
        attributes.get("foreign", False),
        frozenset(guids(attributes.get("networks", ""))),
    )


def link(ends: str, cost: int, gates: str = "") -> Link:
    one, other = guids(ends)
    return Link(one, other, cost, guids(gates))


def enterprise(
    machines: Iterable[Machine],
    links: Iterable[Link] = (),
    *,
    foreign: str = "",
    foreign_penalty: bool = False,
) -> RoutingMap:
    """A map of these machines; its sites are all that a machine is in, or that are foreign."""
    machines, links = list(machines), list(links)
    far = set(guids(foreign))
    sites = {site for m in machines for site in m.sites} | far
    names: Mapping[UUID, str] = {guid(name): name for name in "ABCDEFGHIJ"}
    found = [MapSite(site, names.get(site, "?"), site in far) for site in sorted(sites)]
    return RoutingMap(machines, found, links, foreign_penalty=foreign_penalty)


def named(routing_map: RoutingMap, hops: Iterable[UUID]) -> list[str]:
    """The computer names of some hops."""
    return [routing_map.machines[hop].computer_name for hop in hops]
