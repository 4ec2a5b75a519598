"""The map of an enterprise: sites, the links between them, the gates in them (MQBR 3.1.1, 3.1.3.1).

How to think about it. Queue managers live in sites; two in a common site talk to each other. Links
join sites and have a price. At both ends of a link stand gates: routing servers of the site that
the link names. A message for another site goes from gate to gate along the cheapest links.

A map never changes: it is what the directory said when it was read. All questions are answered from
it alone, so two queue managers with the same map never disagree about a way.

Costs are counted from the goal: `costs_to` says for every site how much of the way is left. Whoever
sends a message only to gates with less left than it has itself can never send it in a circle, which
is why `next_sites` offers no others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from falconmq.manager.directory_objects import COST_MAX, COST_MIN

_KNOWN_MAX: Final = 256  # goals whose costs are kept; 3 ms to count anew for 1,000 sites
FOREIGN_PENALTY: Final = COST_MAX  # for each foreign end of a link, as PROPID_L_COST counts it


@dataclass(frozen=True, slots=True)
class Machine:
    """A queue manager, as far as ways are concerned."""

    identifier: UUID
    computer_name: str = ""
    host_name: str = ""  # under which it is reached
    sites: frozenset[UUID] = frozenset()
    is_routing_server: bool = False
    in_servers: tuple[UUID, ...] = ()  # over which alone it is reached
    out_servers: tuple[UUID, ...] = ()  # over which alone it sends
    is_foreign: bool = False
    networks: frozenset[UUID] = frozenset()  # connected networks of MSMQ 1.0; none: any


@dataclass(frozen=True, slots=True)
class MapSite:
    identifier: UUID
    name: str = ""
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A way between two sites, in both directions."""

    site1: UUID
    site2: UUID
    cost: int
    gates: tuple[UUID, ...] = ()


class Left(NamedTuple):
    """How much of the way is left; the cheaper first, of equal ones the shorter."""

    cost: int
    hops: int


class NextSite(NamedTuple):
    """A neighbouring site on the way to a goal: what the whole way over it costs."""

    cost: int
    hops: int
    site: UUID


class RoutingMap:
    """Everything that the choice of a way depends on. Links that cannot be used are left out."""

    def __init__(
        self,
        machines: Iterable[Machine] = (),
        sites: Iterable[MapSite] = (),
        links: Iterable[Link] = (),
        *,
        foreign_penalty: bool = False,
    ) -> None:
        self.machines: Mapping[UUID, Machine] = MappingProxyType(
            {m.identifier: m for m in machines}
        )
        self.sites: Mapping[UUID, MapSite] = MappingProxyType({s.identifier: s for s in sites})
        self.all_links = tuple(links)
        self.links = tuple(link for link in self.all_links if self._is_usable(link))
        self._foreign_penalty = foreign_penalty
        self._neighbours = self._find_neighbours()
        self._gates = self._find_gates()
        self._servers = self._find_servers()
        self._costs: dict[frozenset[UUID], Mapping[UUID, Left]] = {}

    def gates_of(self, site: UUID) -> tuple[UUID, ...]:
        """The gates of a site: routing servers in it that one of its links names (8.1, 8.6)."""
        return self._gates.get(site, ())

    def is_gate(self, machine: Machine) -> bool:
        """IsSiteGate, MQBR 3.1.5.8."""
        return any(machine.identifier in self.gates_of(site) for site in machine.sites)

    def is_foreign_site(self, site: UUID) -> bool:
        known = self.sites.get(site)
        return known is not None and known.is_foreign

    def is_foreign(self, machine: Machine) -> bool:
        """Whether it stands for a foreign system, which does not speak our protocol."""
        return machine.is_foreign or (
            bool(machine.sites) and all(map(self.is_foreign_site, machine.sites))
        )

    def connector_sites(self, identifier: UUID) -> list[UUID]:
        """The foreign sites that a queue manager is a connector of: it is in them, and is none."""
        machine = self.machines.get(identifier)
        if machine is None or self.is_foreign(machine):
            return []
        return sorted(filter(self.is_foreign_site, machine.sites))

    def servers_of(self, sites: Iterable[UUID]) -> list[UUID]:
        """The routing servers in some sites, each once."""
        found = (server for site in sites for server in self._servers.get(site, ()))
        return list(dict.fromkeys(found))

    def neighbours(self, site: UUID) -> Mapping[UUID, int]:
        """The sites that links lead to from a site, and what the cheapest of these cost."""
        return self._neighbours.get(site, {})

    def costs_to(self, goals: frozenset[UUID]) -> Mapping[UUID, Left]:
        """What is left of the way to the nearest goal, for every site that has a way (Dijkstra)."""
        known = self._costs.get(goals)
        if known is None:
            if len(self._costs) >= _KNOWN_MAX:
                del self._costs[next(iter(self._costs))]  # the oldest
            known = self._costs[goals] = self._count(goals)
        return known

    def left_from(self, machine: Machine, goals: frozenset[UUID]) -> Left | None:
        """What is left of the way for a queue manager; None if none of its sites has a way."""
        costs = self.costs_to(goals)
        return min((costs[site] for site in machine.sites if site in costs), default=None)

    def next_sites(self, own: frozenset[UUID], goals: frozenset[UUID]) -> list[NextSite]:
        """The neighbouring sites that are nearer to a goal than our own ones, the best first.

        The first is the row of the routing table (MQBR 3.1.1.2): the least cost, of equal ones the
        fewest hops, then the smallest GUID, so that everybody comes to the same one.
        """
        costs = self.costs_to(goals)
        ours = min((costs[site] for site in own if site in costs), default=None)
        if ours is None:
            return []
        best: dict[UUID, NextSite] = {}
        for site in own:
            for neighbour, price in self.neighbours(site).items():
                left = costs.get(neighbour)
                if left is not None and left.cost < ours.cost:
                    way = NextSite(price + left.cost, 1 + left.hops, neighbour)
                    best[neighbour] = min(way, best.get(neighbour, way))
        return sorted(best.values())

    def routing_table(self, own: frozenset[UUID]) -> dict[UUID, NextSite]:
        """The RoutingTable of a gate: for each other site, which one is next (MQBR 3.1.3.1)."""
        ways = {site: self.next_sites(own, frozenset({site})) for site in self.sites}
        return {site: found[0] for site, found in ways.items() if found}

    def _is_usable(self, link: Link) -> bool:
        ends = {link.site1, link.site2}
        is_priced = COST_MIN <= link.cost <= COST_MAX  # guide 8.6: ignored on read
        return is_priced and len(ends) == 2 and ends <= self.sites.keys()

    def _price(self, link: Link) -> int:
        if not self._foreign_penalty:
            return link.cost
        ends = (self.sites[link.site1], self.sites[link.site2])
        return link.cost + FOREIGN_PENALTY * sum(site.is_foreign for site in ends)

    def _find_neighbours(self) -> dict[UUID, dict[UUID, int]]:
        found: dict[UUID, dict[UUID, int]] = {}
        for link in self.links:
            price = self._price(link)
            for site, other in ((link.site1, link.site2), (link.site2, link.site1)):
                row = found.setdefault(site, {})
                row[other] = min(price, row.get(other, price))
        return found

    def _find_gates(self) -> dict[UUID, tuple[UUID, ...]]:
        found: dict[UUID, set[UUID]] = {}
        for link in self.links:
            for gate in link.gates:
                machine = self.machines.get(gate)
                if machine is not None and machine.is_routing_server:
                    for site in {link.site1, link.site2} & machine.sites:
                        found.setdefault(site, set()).add(gate)
        return {site: tuple(sorted(gates)) for site, gates in found.items()}

    def _find_servers(self) -> dict[UUID, tuple[UUID, ...]]:
        found: dict[UUID, set[UUID]] = {}
        for machine in self.machines.values():
            if machine.is_routing_server:
                for site in machine.sites:
                    found.setdefault(site, set()).add(machine.identifier)
        return {site: tuple(sorted(servers)) for site, servers in found.items()}

    def _count(self, goals: frozenset[UUID]) -> Mapping[UUID, Left]:
        costs: dict[UUID, Left] = {}
        heap = [(Left(0, 0), goal) for goal in goals]
        heapq.heapify(heap)
        while heap:
            left, site = heapq.heappop(heap)
            if site in costs:
                continue
            costs[site] = left
            for neighbour, price in self.neighbours(site).items():
                if neighbour not in costs:
                    heapq.heappush(heap, (Left(left.cost + price, left.hops + 1), neighbour))
        return costs
