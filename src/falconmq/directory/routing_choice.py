"""Who gets a message next: GetNextHops and its helpers (MQBR 3.1.5.1 to 3.1.5.8).

The table of the guide, first match wins; "server" is a routing server:

| source is       | condition                              | next hops                          |
|-----------------|----------------------------------------|------------------------------------|
| no server       | has out-routing servers                | these                              |
| anybody         | destination is foreign, common site    | the connector queue here           |
| a server        | is an in-routing server of destination | destination                        |
| anybody         | common site, in-routing servers        | these                              |
| anybody         | common site                            | destination                        |
| no server       |                                        | servers of the own sites           |
| server, no gate |                                        | gates of the own sites             |
| gate            |                                        | gates of the next site of the table|

The documents take one server or gate where there are several. We offer all of them, the best first:
the transport stays with the first as long as it answers, and tries the next when it does not. Which
of equal ones is first differs from sender to sender, so that they share the work, and is always the
same for each.

No circle is possible while all have the same map. A server sends to gates, a gate to gates that are
nearer to the destination than itself, in-routing servers to the destination: each step of a way is
one of these, in this order. The named servers count only if they are routing servers, for nobody
else passes messages on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final
from uuid import UUID

from falconmq.directory.routing_map import Machine, NextSite, RoutingMap

HOPS_MAX: Final = 29  # UserHeader.Flags.RC, after which a message is refused


class Rule(Enum):
    """Which line of the table decided."""

    HERE = "the destination is this queue manager"
    OUT_SERVERS = "out-routing servers"
    CONNECTOR = "connector queue"
    IS_IN_SERVER = "in-routing server of the destination"
    IN_SERVERS = "in-routing servers of the destination"
    DIRECT = "common site"
    ROUTING_SERVERS = "routing servers of the own sites"
    OWN_GATES = "gates of the own sites"
    NEXT_SITE = "gates of the next site"
    UNKNOWN_SOURCE = "the directory does not know this queue manager"
    UNKNOWN_DESTINATION = "the directory does not know the destination"


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """What the documents leave to the administrator."""

    foreign_penalty: bool = False  # foreign sites only as a last resort, as PROPID_L_COST does
    alternative_sites: bool = True  # behind the gates of the best site, those of other nearer ones
    server_if_direct_fails: bool = False  # behind a destination in reach, servers of the site


DEFAULT_OPTIONS: Final = RoutingOptions()


@dataclass(frozen=True, slots=True)
class Route:
    """The next step of a way and why. `hops` are in the order to try them; none: it ends here."""

    source: UUID
    destination: UUID
    rule: Rule
    hops: tuple[UUID, ...] = ()
    unusable: tuple[UUID, ...] = ()  # servers that somebody named, and that are none
    sites: tuple[NextSite, ...] = ()  # of NEXT_SITE: over which site, the best first
    connector: UUID | None = None  # of CONNECTOR: the foreign site whose queue takes it

    @property
    def is_possible(self) -> bool:
        return bool(self.hops) or self.rule in (Rule.HERE, Rule.CONNECTOR)


def choose_route(
    routing_map: RoutingMap,
    source: UUID,
    destination: UUID,
    options: RoutingOptions = DEFAULT_OPTIONS,
) -> Route:
    """The next hops of a message that `source` has for a queue of `destination` (MQBR 3.1.5.1)."""
    if source == destination:
        return Route(source, destination, Rule.HERE)
    here, there = routing_map.machines.get(source), routing_map.machines.get(destination)
    if here is None:
        return Route(source, destination, Rule.UNKNOWN_SOURCE)
    if there is None:
        return Route(source, destination, Rule.UNKNOWN_DESTINATION)
    choice = _Choice(routing_map, here, there, options)
    return choice.near() or choice.far()


def trace_route(
    routing_map: RoutingMap,
    source: UUID,
    destination: UUID,
    options: RoutingOptions = DEFAULT_OPTIONS,
) -> list[Route]:
    """The whole way, if every queue manager on it has this map and the first hop always answers."""
    routes = [choose_route(routing_map, source, destination, options)]
    while routes[-1].hops and len(routes) <= HOPS_MAX:
        step = choose_route(routing_map, routes[-1].hops[0], destination, options)
        routes.append(step)
    return routes


@dataclass(frozen=True, slots=True)
class _Choice:
    """One question, and the lines of the table as its methods."""

    map: RoutingMap
    here: Machine
    there: Machine
    options: RoutingOptions

    def near(self) -> Route | None:
        """What needs no way through the enterprise; None if it needs one."""
        here, there = self.here, self.there
        if not here.is_routing_server and here.out_servers:
            return self._over(Rule.OUT_SERVERS, here.out_servers)
        common = here.sites & there.sites
        if common and self.map.is_foreign(there):
            site = min(common, key=lambda site: (not self.map.is_foreign_site(site), site))
            return Route(here.identifier, there.identifier, Rule.CONNECTOR, connector=site)
        if here.is_routing_server and here.identifier in there.in_servers:
            return self._route(Rule.IS_IN_SERVER, [there.identifier])
        if common and there.in_servers:
            return self._over(Rule.IN_SERVERS, there.in_servers)
        if common and (here.is_routing_server or _share_network(here, there)):
            return self._route(Rule.DIRECT, [there.identifier, *self._helpers(common)])
        return None

    def far(self) -> Route:
        here = self.here
        if not here.is_routing_server:
            servers = self.map.servers_of(here.sites)
            return self._route(Rule.ROUTING_SERVERS, self._ordered(servers))
        if not self.map.is_gate(here):
            gates = [gate for site in here.sites for gate in self.map.gates_of(site)]
            return self._route(Rule.OWN_GATES, self._ordered(gates))
        ways = self.map.next_sites(here.sites, self.there.sites)
        if not self.options.alternative_sites:
            ways = ways[:1]
        gates = [gate for way in ways for gate in self._ordered(self.map.gates_of(way.site))]
        return self._route(Rule.NEXT_SITE, gates, ways=ways)

    def _over(self, rule: Rule, named: Sequence[UUID]) -> Route:
        """A list that an administrator made, in its order, without those that pass nothing on."""
        usable = [server for server in named if self._passes_on(server)]
        unusable = [server for server in named if not self._passes_on(server)]
        return self._route(rule, usable, unusable=unusable)

    def _passes_on(self, server: UUID) -> bool:
        machine = self.map.machines.get(server)
        return machine is not None and (machine.is_routing_server or machine is self.there)

    def _helpers(self, common: Iterable[UUID]) -> list[UUID]:
        """Servers of the site that may get through where we do not; they themselves need none."""
        if self.here.is_routing_server or not self.options.server_if_direct_fails:
            return []
        return self._ordered(self.map.servers_of(common))

    def _ordered(self, candidates: Iterable[UUID]) -> list[UUID]:
        """The nearest to the destination first; those without a way last, for they may know one."""

        def key(candidate: UUID) -> tuple[float, float, bytes]:
            left = self.map.left_from(self.map.machines[candidate], self.there.sites)
            cost, hops = (inf, inf) if left is None else left
            return cost, hops, _lot(self.here.identifier, candidate)

        return sorted(candidates, key=key)

    def _route(
        self,
        rule: Rule,
        hops: Iterable[UUID],
        *,
        unusable: Iterable[UUID] = (),
        ways: Iterable[NextSite] = (),
    ) -> Route:
        return Route(
            self.here.identifier,
            self.there.identifier,
            rule,
            tuple(dict.fromkeys(hops)),
            unusable=tuple(unusable),
            sites=tuple(ways),
        )


def _share_network(one: Machine, other: Machine) -> bool:
    """Whether two of a site can connect: networks of MSMQ 1.0 count where both have some."""
    return not one.networks or not other.networks or bool(one.networks & other.networks)


def _lot(source: UUID, candidate: UUID) -> bytes:
    """The place of a candidate among equals: another for each source, the same every time."""
    return hashlib.blake2b(source.bytes + candidate.bytes, digest_size=8).digest()
