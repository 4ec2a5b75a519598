"""Where the boxes and lines of the map of sites stand."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from falconmq.directory.routing_explaining import find_faults
from falconmq.directory.routing_map import Link, Machine, MapSite, RoutingMap
from falconmq.service.console.site_map import SITES_MOST, Picture, draw
from falconmq.service.directory.charts import Chart
from tests.directory.enterprises import enterprise, guid, link, machine


def chart_of(routing_map: RoutingMap, source: str) -> Chart:
    return Chart(routing_map, guid(source), tuple(find_faults(routing_map)), is_joined=True)


def chain(length: int) -> RoutingMap:
    """Sites S0, S1, ... in a row, each with a gate G0, G1, ..."""
    sites = [MapSite(guid(f"S{n}"), f"S{n}") for n in range(length)]
    machines = [
        Machine(guid(f"G{n}"), f"G{n}", f"g{n}", frozenset({site.identifier}), True)
        for n, site in enumerate(sites)
    ]
    links = [
        Link(one.identifier, other.identifier, 1, (guid(f"G{n}"), guid(f"G{n + 1}")))
        for n, (one, other) in enumerate(pairwise(sites))
    ]
    return RoutingMap(machines, sites, links)


def drawn(chart: Chart, to: str = "") -> Picture:
    picture = draw(chart, chart.trace(guid(to)) if to else ())
    assert picture is not None
    return picture


def test_sites_stand_from_the_left_by_their_distance() -> None:
    gates = [machine(f"{name}-GATE", name, server=True) for name in "ABCD"]
    links = [
        link("A B", 1, "A-GATE B-GATE"),
        link("B C", 2, "B-GATE C-GATE"),
        link("A D", 7, "A-GATE D-GATE"),
        link("D C", 9, "D-GATE C-GATE"),
    ]
    chart = chart_of(enterprise([machine("ME", "A"), *gates], links), "ME")
    picture = drawn(chart)
    columns = {box.name: box.x for box in picture.boxes}
    assert columns["A"] < columns["B"] == columns["D"] < columns["C"]
    assert sorted(line.cost for line in picture.lines) == [1, 2, 7, 9]
    (own,) = [box for box in picture.boxes if "own" in box.look]
    assert (own.name, own.tag) == ("A", "ours")
    assert [(m.name, m.mark, m.is_here) for m in own.members] == [
        ("A-GATE", "gate", False),
        ("ME", "", True),
    ]
    # when somebody asks for a way, then its sites, links and queue managers stand out
    picture = drawn(chart, to="C-GATE")
    assert {box.name for box in picture.boxes if "way" in box.look} == {"A", "B", "C"}
    assert sorted(line.cost for line in picture.lines if "way" in line.look) == [1, 2]
    here = {m.name for box in picture.boxes for m in box.members if m.is_on_way}
    assert here == {"ME", "A-GATE", "B-GATE", "C-GATE"}


def test_foreign_sites_and_those_without_a_link_are_there_too() -> None:
    machines = [machine("ME", "A", server=True), machine("FRIDA", "E", foreign=True)]
    routing_map = enterprise([*machines, machine("LOST", "Z")], [link("A E", 4, "ME")], foreign="E")
    picture = drawn(chart_of(routing_map, "ME"))
    boxes = {box.name: box for box in picture.boxes}
    assert (boxes["E"].tag, boxes["E"].look) == ("foreign", "foreign")
    assert [m.mark for m in boxes["E"].members] == ["foreign"]
    assert [line.look for line in picture.lines] == ["foreign"]
    assert boxes["?"].x > boxes["E"].x


@pytest.mark.parametrize("count", [1, 3, 30, SITES_MOST])
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_no_two_boxes_cover_each_other_and_all_are_in_the_picture(count: int, shape: str) -> None:
    routing_map = chain(count)
    if shape == "star":
        links = [Link(guid("S0"), guid(f"S{n}"), 1) for n in range(1, count)]
        routing_map = RoutingMap(routing_map.machines.values(), routing_map.sites.values(), links)
    picture = drawn(chart_of(routing_map, "G0"))
    assert len(picture.boxes) == count
    for one, other in combinations(picture.boxes, 2):
        is_beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        is_above = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert is_beside or is_above
    for box in picture.boxes:
        assert box.x >= 0 <= box.y
        assert box.x + box.width <= picture.width
        assert box.y + box.height <= picture.height


def test_a_box_shows_some_of_its_queue_managers_and_those_on_the_way_among_them() -> None:
    many = [machine(f"M{number:02}", "A") for number in range(40)]
    chart = chart_of(enterprise([machine("ME", "A"), *many]), "ME")
    (box,) = drawn(chart).boxes
    assert len(box.members) + box.more == 41
    assert box.more > 30
    (box,) = drawn(chart, to="M39").boxes
    assert {"ME", "M39"} <= {member.name for member in box.members}


def test_nothing_and_too_much_are_not_drawn() -> None:
    assert draw(Chart(RoutingMap(), guid("ME"))) is None
    assert draw(chart_of(chain(SITES_MOST + 1), "G0")) is None


def test_who_is_in_no_site_sees_the_map_from_its_middle() -> None:
    picture = drawn(chart_of(chain(3), "NOBODY"))
    first = min(picture.boxes, key=lambda box: box.x)
    assert first.name == "S1"
