"""Any enterprise: no message goes in a circle, and what can be reached is reached at least cost.

The judge is a plain Floyd-Warshall over the links, which knows nothing of gates and tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.directory.routing_choice import HOPS_MAX, RoutingOptions, Rule, choose_route
from falconmq.directory.routing_map import Link, Machine, RoutingMap
from tests.directory.enterprises import enterprise, guid, link, machine

SITES = "ABCDEF"
NAMES = [f"M{number}" for number in range(12)]
costs = st.one_of(st.integers(1, 4), st.just(999_999))
pairs = st.sampled_from([f"{a} {b}" for a in SITES for b in SITES if a < b])
few_names = st.lists(st.sampled_from(NAMES), max_size=3).map(" ".join)
options = st.builds(RoutingOptions, st.booleans(), st.booleans(), st.booleans())


@dataclass
class Enterprise:
    map: RoutingMap
    machines: list[Machine]
    links: list[Link]


@st.composite
def wild(draw: st.DrawFn) -> Enterprise:
    """Anything an administrator could write down, sense or nonsense."""
    machines = [
        machine(
            name,
            " ".join(draw(st.sets(st.sampled_from(SITES), max_size=2))),
            server=draw(st.booleans()),
            ins=draw(few_names) if draw(st.booleans()) else "",
            outs=draw(few_names) if draw(st.booleans()) else "",
            foreign=draw(st.integers(0, 5)) == 0,
        )
        for name in NAMES[: draw(st.integers(2, len(NAMES)))]
    ]
    links = draw(st.lists(st.builds(link, pairs, st.integers(0, 4), few_names), max_size=10))
    foreign = " ".join(draw(st.sets(st.sampled_from(SITES), max_size=1)))
    found = enterprise(machines, links, foreign=foreign, foreign_penalty=draw(st.booleans()))
    return Enterprise(found, machines, links)


@st.composite
def orderly(draw: st.DrawFn) -> Enterprise:
    """Every site has a client, a server and gates, which all links of the site name."""
    sites = SITES[: draw(st.integers(2, len(SITES)))]
    gates = {site: [f"{site}-GATE{n}" for n in range(draw(st.integers(1, 2)))] for site in sites}
    machines = [machine(f"{site}-CLIENT", site) for site in sites]
    machines += [machine(f"{site}-SERVER", site, server=True) for site in sites]
    machines += [machine(name, site, server=True) for site in sites for name in gates[site]]
    chosen = draw(st.dictionaries(pairs, costs, max_size=12))
    links = [
        link(ends, cost, " ".join(gates[ends[0]] + gates[ends[2]]))
        for ends, cost in chosen.items()
        if ends[0] in sites and ends[2] in sites
    ]
    return Enterprise(enterprise(machines, links), machines, links)


def least_costs(links: list[Link]) -> dict[tuple[str, str], float]:
    """Floyd-Warshall, by the names of the sites."""
    cost = {(a, b): 0.0 if a == b else inf for a in SITES for b in SITES}
    name = {guid(site): site for site in SITES}
    for found in links:
        a, b = name[found.site1], name[found.site2]
        cost[a, b] = cost[b, a] = min(cost[a, b], found.cost)
    for k in SITES:
        for a in SITES:
            for b in SITES:
                cost[a, b] = min(cost[a, b], cost[a, k] + cost[k, b])
    return cost


@settings(max_examples=100, deadline=None)
@given(estate=wild(), chosen=options, data=st.data())
def test_whoever_is_chosen_at_each_hop_nothing_goes_in_a_circle(
    estate: Enterprise, chosen: RoutingOptions, data: st.DataObject
) -> None:
    ids = [m.identifier for m in estate.machines]
    here, goal = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
    seen = [here]
    while True:
        # every manager decides by itself, and any of its hops may be the one that answers
        route = choose_route(estate.map, here, goal, chosen)
        assert here not in route.hops
        if not route.hops:
            break
        here = data.draw(st.sampled_from(route.hops))
        assert here not in seen, f"{here} sees the message again"
        seen.append(here)
    assert len(seen) <= HOPS_MAX
    if here == goal:
        assert route.rule is Rule.HERE


@settings(max_examples=100, deadline=None)
@given(estate=orderly(), chosen=options, data=st.data())
def test_what_links_join_is_reached_and_at_the_least_cost(
    estate: Enterprise, chosen: RoutingOptions, data: st.DataObject
) -> None:
    ids = [m.identifier for m in estate.machines]
    here, goal = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
    name = {guid(site): site for site in SITES}
    site = {m.identifier: name[next(iter(m.sites))] for m in estate.machines}
    cost = least_costs(estate.links)
    wanted, paid = cost[site[here], site[goal]], 0.0
    direct = {
        pair: min(
            (found.cost for found in estate.links if {found.site1, found.site2} == pair),
            default=None,
        )
        for pair in {frozenset({found.site1, found.site2}) for found in estate.links}
    }
    for _ in range(HOPS_MAX):
        route = choose_route(estate.map, here, goal, chosen)
        if not route.hops:
            break
        one, other = guid(site[here]), guid(site[route.hops[0]])
        price = 0 if one == other else direct[frozenset({one, other})]
        assert price is not None, "a step between sites that no link joins"
        paid += price
        here = route.hops[0]
    assert (here == goal) == (wanted < inf)
    if here == goal:
        assert paid == wanted


@settings(max_examples=30, deadline=None)
@given(estate=orderly())
def test_the_routing_table_of_a_gate_agrees_with_the_judge(estate: Enterprise) -> None:
    cost = least_costs(estate.links)
    for own in SITES:
        table = estate.map.routing_table(frozenset({guid(own)}))
        reachable = {guid(site) for site in SITES if site != own and cost[own, site] < inf}
        assert set(table) == {site for site in reachable if site in estate.map.sites}
        for site in SITES:
            if guid(site) in table:
                assert table[guid(site)].cost == cost[own, site]
