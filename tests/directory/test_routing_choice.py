"""Next hops as the routing guide wants them: its scenarios R1 to R8, R11, R12."""

from __future__ import annotations

import pytest

from falconmq.directory.routing_choice import (
    HOPS_MAX,
    Route,
    RoutingOptions,
    Rule,
    choose_route,
    trace_route,
)
from falconmq.directory.routing_explaining import explain, find_faults
from falconmq.directory.routing_map import RoutingMap
from tests.directory.enterprises import enterprise, guid, link, machine, named


def three_sites() -> RoutingMap:
    """A - B - C in a row; clients, servers and gates, of which B has two."""
    return enterprise(
        [
            machine("ANN", "A"),
            machine("ABE", "A"),
            machine("A-ROUTER", "A", server=True),
            machine("A-GATE", "A", server=True),
            machine("B-GATE1", "B", server=True),
            machine("B-GATE2", "B", server=True),
            machine("BOB", "B"),
            machine("C-GATE", "C", server=True),
            machine("CEM", "C"),
        ],
        [link("A B", 3, "A-GATE B-GATE1"), link("B C", 1, "B-GATE1 B-GATE2 C-GATE")],
    )


def route(
    routing_map: RoutingMap, source: str, goal: str, options: RoutingOptions | None = None
) -> Route:
    return choose_route(routing_map, guid(source), guid(goal), options or RoutingOptions())


def way(routing_map: RoutingMap, source: str, goal: str) -> list[str]:
    """Everybody who has the message on its way, in order."""
    steps = trace_route(routing_map, guid(source), guid(goal))
    return named(routing_map, [step.source for step in steps])


def check(
    routing_map: RoutingMap, source: str, goal: str, rule: Rule, hops: str, **options: bool
) -> None:
    found = route(routing_map, source, goal, RoutingOptions(**options))
    assert (found.rule, sorted(named(routing_map, found.hops))) == (rule, sorted(hops.split()))


def test_queue_managers_of_one_site_talk_to_each_other() -> None:  # R1
    check(three_sites(), "ANN", "ABE", Rule.DIRECT, "ABE")
    check(three_sites(), "A-ROUTER", "ABE", Rule.DIRECT, "ABE")
    check(three_sites(), "A-GATE", "ABE", Rule.DIRECT, "ABE")


def test_out_routing_servers_get_everything_in_their_order() -> None:  # R2
    servers = [machine(name, "A", server=True) for name in ("R1", "R2")]
    client = machine("ANN", "A", outs="R2 R1")
    found = enterprise([client, machine("ABE", "A"), machine("BOB", "B"), *servers])
    for goal in ("ABE", "BOB"):
        assert named(found, route(found, "ANN", goal).hops) == ["R2", "R1"]


def test_out_routing_servers_of_a_routing_server_say_nothing() -> None:
    machines = [machine("R1", "A", server=True, outs="R2"), machine("R2", "A", server=True)]
    check(enterprise([*machines, machine("ABE", "A")]), "R1", "ABE", Rule.DIRECT, "ABE")


@pytest.mark.parametrize(
    ("source", "rule", "hops"),
    [
        ("ANN", Rule.IN_SERVERS, "R1 R2"),
        ("R1", Rule.IS_IN_SERVER, "ABE"),
        ("R3", Rule.IN_SERVERS, "R1 R2"),
        ("G", Rule.IN_SERVERS, "R1 R2"),
        ("R2", Rule.IS_IN_SERVER, "ABE"),  # from another site
    ],
)
def test_in_routing_servers_stand_before_the_destination(
    source: str, rule: Rule, hops: str
) -> None:  # R3
    found = enterprise(
        [
            machine("ANN", "A"),
            machine("ABE", "A", ins="R1 R2"),
            machine("R1", "A", server=True),
            machine("R2", "B", server=True),
            machine("R3", "A", server=True),
            machine("G", "A", server=True),
        ],
        [link("A B", 1, "G R2")],
    )
    check(found, source, "ABE", rule, hops)


def test_only_routing_servers_pass_messages_on() -> None:
    # given lists that name clients and somebody nobody knows
    found = enterprise(
        [
            machine("ANN", "A", outs="BEN R1 NOBODY"),
            machine("BEN", "A", outs="ANN"),
            machine("R1", "A", server=True),
            machine("ABE", "A", ins="BEN"),
        ]
    )
    # then these are passed over: ANN and BEN would send to each other for ever
    first = route(found, "ANN", "ABE")
    assert named(found, first.hops) == ["R1"]
    assert set(first.unusable) == {guid("BEN"), guid("NOBODY")}
    assert "passed over: BEN" in explain(found, first)
    assert not route(found, "R1", "ABE").is_possible
    assert "None is left." in explain(found, route(found, "R1", "ABE"))
    assert [f for f in find_faults(found) if "BEN, which is none" in f]


def test_a_client_asks_a_routing_server_of_its_site() -> None:  # R4
    check(three_sites(), "ANN", "CEM", Rule.ROUTING_SERVERS, "A-ROUTER A-GATE")
    alone = enterprise([machine("ANN", "A"), machine("BOB", "B")])
    assert not route(alone, "ANN", "BOB").is_possible
    assert "no routing server in site A" in explain(alone, route(alone, "ANN", "BOB"))


def test_a_routing_server_asks_a_gate_of_its_site() -> None:  # R5
    check(three_sites(), "A-ROUTER", "CEM", Rule.OWN_GATES, "A-GATE")
    bare = enterprise([machine("R", "A", server=True), machine("BOB", "B")])
    assert not route(bare, "R", "BOB").is_possible
    assert "no gate in site A" in explain(bare, route(bare, "R", "BOB"))


def test_a_gate_asks_the_gates_of_the_next_site() -> None:
    check(three_sites(), "A-GATE", "CEM", Rule.NEXT_SITE, "B-GATE1 B-GATE2")
    found = route(three_sites(), "A-GATE", "CEM")
    assert found.sites == ((4, 2, guid("B")),)


@pytest.mark.parametrize(
    ("costs", "sites"),
    [
        ({"A B": 3, "B C": 1, "B D": 1, "C D": 1}, ["A", "B", "C"]),
        ({"A B": 3, "B C": 3, "C D": 1, "B D": 1}, ["A", "B", "D", "C"]),
    ],
)
def test_the_two_examples_of_the_specification(
    costs: dict[str, int], sites: list[str]
) -> None:  # R6
    gates = [machine(f"{site}-GATE", site, server=True) for site in "ABCD"]
    links = [
        link(ends, cost, " ".join(f"{site}-GATE" for site in ends.split()))
        for ends, cost in costs.items()
    ]
    found = enterprise([*gates, machine("CEM", "C")], links)
    assert way(found, "A-GATE", "CEM") == [*(f"{site}-GATE" for site in sites), "CEM"]
    table = found.routing_table(frozenset({guid("B")}))
    assert table[guid("C")].site == guid(sites[2])


def test_a_gate_in_both_sites_goes_directly() -> None:  # R7
    machines = [machine("ANN", "A"), machine("G", "A B", server=True), machine("BOB", "B")]
    found = enterprise(machines, [link("A B", 5, "G")])
    assert way(found, "ANN", "BOB") == ["ANN", "G", "BOB"]
    assert found.gates_of(guid("A")) == found.gates_of(guid("B")) == (guid("G"),)


def test_of_several_sites_of_the_destination_the_cheapest_counts() -> None:  # R8
    gates = [machine(f"{site}-GATE", site, server=True) for site in "ABC"]
    links = [link("A B", 5, "A-GATE B-GATE"), link("A C", 2, "A-GATE C-GATE")]
    found = enterprise([*gates, machine("BOTH", "B C")], links)
    first = route(found, "A-GATE", "BOTH")
    assert named(found, first.hops[:1]) == ["C-GATE"]
    assert first.sites[0].cost == 2


def test_equal_ways_are_told_apart_the_same_way_by_everybody() -> None:
    # given two ways of the same cost, one with more links, and two with as many
    gates = [machine(f"{site}-GATE", site, server=True) for site in "ABCDE"]
    pairs = {"A B": 2, "B D": 2, "A C": 1, "C E": 1, "E D": 2, "A E": 2}
    links = [
        link(ends, cost, " ".join(f"{site}-GATE" for site in ends.split()))
        for ends, cost in pairs.items()
    ]
    found = enterprise([*gates, machine("DAN", "D")], links)
    # then the fewest links win, then the smallest GUID
    best = min(guid("B"), guid("E"))
    assert route(found, "A-GATE", "DAN").sites[0] == (4, 2, best)


def test_if_a_gate_is_down_its_fellows_are_next_and_then_other_nearer_sites() -> None:
    # given a way over B with two gates, and a dearer one over C
    machines = [machine(name, name[0], server=True) for name in ("A-1", "B-1", "B-2", "C-1", "D-1")]
    links = [
        link("A B", 1, "A-1 B-1 B-2"),
        link("B D", 1, "B-1 D-1"),
        link("A C", 5, "A-1 C-1"),
        link("C D", 1, "C-1 D-1"),
        link("B E", 1, "B-1"),
    ]
    found = enterprise([*machines, machine("DAN", "D"), machine("EVA", "E")], links)
    first = route(found, "A-1", "DAN")
    assert sorted(named(found, first.hops[:2])) == ["B-1", "B-2"]
    assert named(found, first.hops[2:]) == ["C-1"]
    # without the switch the documents' way is the only one
    only = route(found, "A-1", "DAN", RoutingOptions(alternative_sites=False))
    assert sorted(named(found, only.hops)) == ["B-1", "B-2"]


def test_a_site_farther_away_is_no_way_out() -> None:
    # given a neighbour of A from which the only way to D leads back over A
    machines = [machine(name, name[0], server=True) for name in ("A-1", "B-1", "D-1")]
    links = [link("A D", 1, "A-1 D-1"), link("A B", 1, "A-1 B-1")]
    found = enterprise([*machines, machine("DAN", "D")], links)
    assert named(found, route(found, "A-1", "DAN").hops) == ["D-1"]


def test_the_work_is_shared_and_everybody_keeps_its_server() -> None:
    servers = [machine(f"R{n}", "A", server=True) for n in range(4)]
    clients = [machine(f"C{n}", "A") for n in range(40)]
    found = enterprise([*servers, *clients, machine("BOB", "B")])
    first = [route(found, client.computer_name, "BOB").hops[0] for client in clients]
    assert set(first) == {server.identifier for server in servers}
    assert first == [route(found, client.computer_name, "BOB").hops[0] for client in clients]


def test_a_routing_server_may_help_where_the_direct_way_fails() -> None:
    found = three_sites()
    helped = route(found, "ANN", "ABE", RoutingOptions(server_if_direct_fails=True))
    assert named(found, helped.hops)[0] == "ABE"
    assert sorted(named(found, helped.hops[1:])) == ["A-GATE", "A-ROUTER"]
    # a server has no such help: two of them would send to each other
    check(found, "A-ROUTER", "ABE", Rule.DIRECT, "ABE", server_if_direct_fails=True)


def test_without_a_common_network_a_routing_server_stands_between() -> None:
    machines = [
        machine("ANN", "A", networks="IP"),
        machine("IPX", "A", networks="IPX"),
        machine("BOTH", "A", networks="IP IPX"),
        machine("ANY", "A"),
        machine("R", "A", server=True, networks="IP IPX"),
    ]
    found = enterprise(machines)
    check(found, "ANN", "IPX", Rule.ROUTING_SERVERS, "R")
    check(found, "R", "IPX", Rule.DIRECT, "IPX")
    check(found, "ANN", "BOTH", Rule.DIRECT, "BOTH")
    check(found, "ANN", "ANY", Rule.DIRECT, "ANY")


def test_a_foreign_destination_ends_in_the_connector_queue_of_its_site() -> None:
    machines = [
        machine("ANN", "A"),
        machine("G", "A F", server=True),
        machine("HOST", "F", foreign=True),
    ]
    found = enterprise(machines, [link("A F", 1, "G")], foreign="F")
    assert way(found, "ANN", "HOST") == ["ANN", "G"]
    last = route(found, "G", "HOST")
    assert (last.rule, last.connector, last.is_possible) == (Rule.CONNECTOR, guid("F"), True)
    assert "connector queue" in explain(found, last)


def test_foreign_sites_are_a_last_resort_only_when_asked_for() -> None:  # R12
    machines = [machine(name, name[0], server=True) for name in ("A-1", "F-1", "D-1")]
    links = [
        link("A F", 1, "A-1 F-1"),
        link("F D", 1, "F-1 D-1"),
        link("A D", 9, "A-1 D-1"),
    ]
    for penalty, first in ((False, "F-1"), (True, "D-1")):
        found = enterprise(
            [*machines, machine("DAN", "D")], links, foreign="F", foreign_penalty=penalty
        )
        assert named(found, route(found, "A-1", "DAN").hops[:1]) == [first]


def test_somebody_unknown_has_no_route() -> None:
    found = three_sites()
    for source, goal, rule in (
        ("ANN", "NOBODY", Rule.UNKNOWN_DESTINATION),
        ("NOBODY", "ANN", Rule.UNKNOWN_SOURCE),
    ):
        missing = route(found, source, goal)
        assert (missing.rule, missing.is_possible) == (rule, False)
        assert "directory does not know" in explain(found, missing)
    assert route(found, "ANN", "ANN").rule is Rule.HERE


def test_tables_that_disagree_end_at_the_hop_limit() -> None:  # R11
    # given a map in which a gate is in the next site for one, and in another for the other
    machines = [machine("A-1", "A", server=True), machine("B-1", "B", server=True)]
    there = machine("DAN", "D")
    ours = enterprise(
        [*machines, there, machine("D-1", "D", server=True)],
        [link("A B", 1, "A-1 B-1"), link("B D", 1, "B-1 D-1")],
    )
    theirs = enterprise(
        [*machines, there, machine("D-1", "D", server=True)],
        [link("A B", 1, "A-1 B-1"), link("A D", 1, "A-1 D-1")],
    )
    # when each decides by its own, then it goes to and fro, and only RC ends it
    assert named(ours, route(ours, "A-1", "DAN").hops) == ["B-1"]
    assert named(theirs, route(theirs, "B-1", "DAN").hops) == ["A-1"]
    assert HOPS_MAX == 29


@pytest.mark.parametrize(
    ("links", "fault"),
    [
        ([link("A B", 0, "A-1 B-1")], "cost 0 is not in 1..999999"),
        ([link("A B", 1_000_000, "A-1 B-1")], "cost 1000000 is not in"),
        ([link("A A", 1, "A-1")], "does not join two sites"),
        ([link("A J", 1, "A-1")], "does not join two sites"),
        ([link("A B", 1, "A-1 CLIENT")], "CLIENT, which is no routing server"),
        ([link("A B", 1, "A-1 C-1")], "C-1, which is in neither site"),
        ([link("A B", 1, "A-1 NOBODY")], "which the directory does not know"),
        ([link("A B", 1, "A-1")], "site B has no gate"),
    ],
)
def test_faults_of_a_map_are_named(links: list[object], fault: str) -> None:
    machines = [machine(name, name[0], server=True) for name in ("A-1", "B-1", "C-1")]
    found = enterprise([*machines, machine("CLIENT", "B")], links)  # type: ignore[arg-type]
    assert [line for line in find_faults(found) if fault in line]


def test_a_link_with_an_impossible_cost_is_no_way() -> None:
    machines = [machine("A-1", "A", server=True), machine("B-1", "B", server=True)]
    for cost, is_way in ((0, False), (1, True), (999_999, True), (1_000_000, False)):
        found = enterprise([*machines, machine("BOB", "B")], [link("A B", cost, "A-1 B-1")])
        assert bool(found.neighbours(guid("A"))) is is_way
        assert route(found, "A-1", "BOB").is_possible is is_way


def test_of_two_links_between_the_same_sites_the_cheaper_counts() -> None:
    machines = [machine("A-1", "A", server=True), machine("B-1", "B", server=True)]
    for first, second in ((5, 2), (2, 5)):
        links = [link("A B", first, "A-1 B-1"), link("B A", second, "A-1 B-1")]
        found = enterprise([*machines, machine("BOB", "B")], links)
        assert route(found, "A-1", "BOB").sites[0].cost == 2


def test_a_gate_that_is_no_routing_server_is_no_gate() -> None:
    machines = [machine("A-1", "A", server=True), machine("B-1", "B"), machine("BOB", "B")]
    found = enterprise(machines, [link("A B", 1, "A-1 B-1")])
    assert found.gates_of(guid("B")) == ()
    assert not route(found, "A-1", "BOB").is_possible


def test_a_server_that_is_nearer_is_asked_first_and_one_without_a_way_last() -> None:
    machines = [
        machine("ANN", "A B C"),
        machine("A-1", "A", server=True),
        machine("B-1", "B", server=True),
        machine("C-1", "C", server=True),
        machine("D-1", "D", server=True),
        machine("DAN", "D"),
    ]
    links = [link("A D", 5, "A-1 D-1"), link("B D", 2, "B-1 D-1")]
    found = enterprise(machines, links)
    assert named(found, route(found, "ANN", "DAN").hops) == ["B-1", "A-1", "C-1"]


def test_the_connector_queue_is_that_of_the_foreign_site() -> None:
    for near in "BCDE":  # whichever GUID is smaller
        machines = [machine("G", f"{near} F", server=True)]
        foreign = machine("HOST", f"{near} F", foreign=True)
        found = enterprise([*machines, foreign], foreign="F")
        assert route(found, "G", "HOST").connector == guid("F")


def test_ways_to_very_many_sites_do_not_fill_the_memory() -> None:
    found = enterprise([machine("A-1", "A", server=True)])
    goals = [frozenset({guid(str(number))}) for number in range(1000)]
    first = found.costs_to(goals[0])
    assert found.costs_to(goals[0]) is first  # remembered
    for goal in goals:
        assert found.costs_to(goal) == {next(iter(goal)): (0, 0)}
    assert len(found._costs) == 256
    assert found.costs_to(goals[0]) == first


def test_a_map_without_faults_has_none() -> None:
    assert find_faults(three_sites()) == []
    assert find_faults(enterprise([machine("ANN", "A")])) == []


def test_a_route_is_explained_in_words() -> None:
    found = three_sites()
    text = explain(found, route(found, "A-GATE", "CEM"))
    assert text.startswith(
        "A-GATE is a gate; the cheapest way to CEM costs 4 over 2 links and begins with site B."
    )
    assert "If it does not answer: B-GATE" in text
    cut = enterprise([machine("G", "A B", server=True), machine("CEM", "C")], [link("A B", 1, "G")])
    assert "No links lead from sites A, B to site C." in explain(cut, route(cut, "G", "CEM"))
    gateless = enterprise(
        [machine("G", "A", server=True), machine("BOB", "B")], [link("A B", 1, "G")]
    )
    assert "no gate in site B" in explain(gateless, route(gateless, "G", "BOB"))
