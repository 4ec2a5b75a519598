"""Why a message goes where it goes, in words, and what is wrong with a map (guide 8.5, 8.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from falconmq.directory.routing_choice import Route, Rule
from falconmq.directory.routing_map import RoutingMap
from falconmq.manager.directory_objects import COST_MAX, COST_MIN


def explain(routing_map: RoutingMap, route: Route) -> str:
    """Why these hops and in which order, in sentences for people."""
    words = _Words(routing_map)
    sentences = [words.reason(route)]
    if route.unusable:
        names = words.machines(route.unusable)
        sentences.append(f"No routing server, and so passed over: {names}.")
    if route.hops:
        sentences.append(f"Next is {words.machine(route.hops[0])}.")
        if len(route.hops) > 1:
            sentences.append(f"If it does not answer: {words.machines(route.hops[1:])}.")
    elif not route.is_possible:
        sentences.append(words.dead_end(route))
    return " ".join(sentences)


def find_faults(routing_map: RoutingMap) -> list[str]:
    """What an administrator should mend: such maps lead to messages that wait for ever."""
    return [
        *_faults_of_sites(routing_map),
        *_faults_of_links(routing_map),
        *_faults_of_machines(routing_map),
    ]


class _Words:
    """Names for people: GUIDs only for what the map does not know."""

    def __init__(self, routing_map: RoutingMap) -> None:
        self._map = routing_map

    def machine(self, identifier: UUID) -> str:
        machine = self._map.machines.get(identifier)
        return str(identifier) if machine is None else machine.computer_name or str(identifier)

    def machines(self, identifiers: Iterable[UUID]) -> str:
        return ", ".join(self.machine(identifier) for identifier in identifiers)

    def site(self, identifier: UUID) -> str:
        site = self._map.sites.get(identifier)
        return str(identifier) if site is None else site.name or str(identifier)

    def sites_of(self, machine: UUID) -> str:
        """The sites of a queue manager, as a sentence can hold them."""
        sites = sorted(map(self.site, self._map.machines[machine].sites))
        return f"site {sites[0]}" if len(sites) == 1 else f"sites {', '.join(sites)}"

    def reason(self, route: Route) -> str:
        here, there = self.machine(route.source), self.machine(route.destination)
        match route.rule:
            case Rule.HERE:
                return f"{here} has the queue itself."
            case Rule.UNKNOWN_SOURCE:
                return f"The directory does not know {here}, where the message is."
            case Rule.UNKNOWN_DESTINATION:
                return f"The directory does not know {there}, where the queue is."
            case Rule.OUT_SERVERS:
                return f"{here} sends over its out-routing servers only."
            case Rule.CONNECTOR:
                site = self.site(route.connector or route.destination)
                return f"{there} is foreign: the connector queue of {site} on {here} takes it."
            case Rule.IS_IN_SERVER:
                return f"{here} is an in-routing server of {there}."
            case Rule.IN_SERVERS:
                return f"{there} is reached over its in-routing servers only."
            case Rule.DIRECT:
                return f"{here} and {there} are in a common site."
            case Rule.ROUTING_SERVERS:
                return f"{there} is out of reach of {here}, which asks a routing server."
            case Rule.OWN_GATES:
                return f"{there} is in another site than {here}, which asks a gate of its own site."
            case Rule.NEXT_SITE:
                return self._next_site(route)

    def dead_end(self, route: Route) -> str:
        """What is missing, for a route that leads nowhere."""
        match route.rule:
            case Rule.ROUTING_SERVERS:
                return f"There is no routing server in {self.sites_of(route.source)}."
            case Rule.OWN_GATES:
                return f"There is no gate in {self.sites_of(route.source)}."
            case Rule.NEXT_SITE if route.sites:
                names = ", ".join(self.site(way.site) for way in route.sites)
                return f"There is no gate in site {names}."
            case Rule.NEXT_SITE:
                there = self.sites_of(route.destination)
                return f"No links lead from {self.sites_of(route.source)} to {there}."
            case Rule.OUT_SERVERS | Rule.IN_SERVERS:
                return "None is left."
            case _:
                return "Messages wait until it does."

    def _next_site(self, route: Route) -> str:
        here, there = self.machine(route.source), self.machine(route.destination)
        if not route.sites:
            return f"{here} is a gate, but knows no way to {there}."
        best = route.sites[0]
        links = "link" if best.hops == 1 else "links"
        return (
            f"{here} is a gate; the cheapest way to {there} costs {best.cost} over {best.hops} "
            f"{links} and begins with site {self.site(best.site)}."
        )


def _faults_of_sites(routing_map: RoutingMap) -> Iterator[str]:
    if len(routing_map.sites) < 2:
        return
    words = _Words(routing_map)
    for site in sorted(routing_map.sites):
        if not routing_map.gates_of(site):
            yield (
                f"site {words.site(site)} has no gate: nothing goes from it to other sites or back;"
                " name one of its routing servers at one of its links"
            )


def _faults_of_links(routing_map: RoutingMap) -> Iterator[str]:
    words = _Words(routing_map)
    for link in routing_map.all_links:
        name = f"the link between {words.site(link.site1)} and {words.site(link.site2)}"
        if not COST_MIN <= link.cost <= COST_MAX:
            yield f"{name} is not used: its cost {link.cost} is not in {COST_MIN}..{COST_MAX}"
        elif link not in routing_map.links:
            yield f"{name} is not used: it does not join two sites of the directory"
        for gate in link.gates:
            machine = routing_map.machines.get(gate)
            if machine is None:
                yield f"{name} names the gate {gate}, which the directory does not know"
            elif not machine.is_routing_server:
                yield f"{name} names the gate {words.machine(gate)}, which is no routing server"
            elif not machine.sites & {link.site1, link.site2}:
                yield f"{name} names the gate {words.machine(gate)}, which is in neither site"


def _faults_of_machines(routing_map: RoutingMap) -> Iterator[str]:
    words = _Words(routing_map)
    for machine in routing_map.machines.values():
        for kind, servers in (("in", machine.in_servers), ("out", machine.out_servers)):
            for server in servers:
                known = routing_map.machines.get(server)
                if known is None or not known.is_routing_server:
                    name = words.machine(machine.identifier)
                    other = words.machine(server)
                    yield f"{name} has the {kind}-routing server {other}, which is none"
