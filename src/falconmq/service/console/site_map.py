"""The map of sites and links as a picture: where each box stands, and how the links run.

Sites stand in columns, by the number of links from the site of this queue manager, which is at the
left. In a column each stands near those that its links come from, so that few links cross.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple
from uuid import UUID

from falconmq.directory.routing_choice import Route
from falconmq.directory.routing_map import Machine
from falconmq.service.directory.charts import Chart

SITES_MOST: Final = 80  # that are drawn; a table has them all
_SPACE, _MARGIN = 16, 12  # between boxes, around all
_HEAD, _LINE, _FOOT = 30, 19, 8  # heights in a box
_ROOMY: Final = 12  # sites up to which there is room
_BULGE: Final = 62  # of a link between two sites of the same column


class Sizes(NamedTuple):
    """How much room there is."""

    width: int  # of a box
    gap: int  # between columns
    names: int  # queue managers in a box
    letters: int  # of a name


_LARGE: Final = Sizes(184, 116, 5, 20)
_SMALL: Final = Sizes(150, 84, 2, 16)


@dataclass(frozen=True, slots=True)
class Member:
    """A queue manager in its box."""

    name: str
    mark: str  # what it does for others: gate, server, foreign, or nothing
    is_here: bool
    is_on_way: bool
    y: int = 0
    short: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A site."""

    identifier: UUID
    name: str
    x: int
    y: int
    height: int
    members: tuple[Member, ...]  # that are shown
    more: int  # that are not
    look: str  # CSS classes: own, foreign, way
    summary: str
    width: int
    short: str
    tag: str  # ours, foreign or nothing

    @property
    def middle(self) -> int:
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Line:
    """A link."""

    path: str
    cost: int
    x: int
    y: int  # where its cost stands
    look: str
    summary: str


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    summary: str


def draw(chart: Chart, way: Sequence[Route] = ()) -> Picture | None:
    """The picture; None if there is nothing to draw, or too much."""
    if not 0 < len(chart.map.sites) <= SITES_MOST:
        return None
    own = own_sites(chart)
    columns = _columns(chart, own)
    machines = members_of(chart)
    members = {site: _members(chart, site, machines[site], way) for site in chart.map.sites}
    sizes = _LARGE if len(chart.map.sites) <= _ROOMY else _SMALL
    heights = {site: _height(len(members[site]), sizes.names) for site in chart.map.sites}
    tall = max(sum(heights[site] + _SPACE for site in column) for column in columns)
    boxes: dict[UUID, Box] = {}
    for number, column in enumerate(columns):
        y = _MARGIN + (tall - sum(heights[site] + _SPACE for site in column)) // 2
        for site in column:
            place = _MARGIN + number * (sizes.width + sizes.gap), y, heights[site]
            boxes[site] = _box(chart, site, place, members[site], sizes, is_own=site in own)
            y += heights[site] + _SPACE
    lines = tuple(_lines(chart, boxes, _links_of(chart, way)))
    width = 2 * _MARGIN + len(columns) * (sizes.width + sizes.gap) - sizes.gap
    if len(columns[-1]) > 1:
        width += _BULGE
    summary = (
        f"{len(boxes)} sites and {len(lines)} links, drawn from the left by their distance from "
        f"{', '.join(sorted(map(chart.site_name, own))) or 'the site with most links'}"
    )
    return Picture(width, tall + 2 * _MARGIN, tuple(boxes.values()), lines, summary)


def own_sites(chart: Chart) -> frozenset[UUID]:
    """The sites of this queue manager."""
    machine = chart.map.machines.get(chart.source)
    return frozenset() if machine is None else machine.sites & chart.map.sites.keys()


def members_of(chart: Chart) -> dict[UUID, list[Machine]]:
    """The queue managers of each site, those first that messages to other sites go over."""
    found: dict[UUID, list[Machine]] = {site: [] for site in chart.map.sites}
    for machine in chart.map.machines.values():
        for site in machine.sites & found.keys():
            found[site].append(machine)
    return {site: _by_rank(chart, site, machines) for site, machines in found.items()}


def _by_rank(chart: Chart, site: UUID, machines: Iterable[Machine]) -> list[Machine]:
    gates = frozenset(chart.map.gates_of(site))

    def key(machine: Machine) -> tuple[bool, bool, str]:
        is_gate = machine.identifier in gates
        return not is_gate, not machine.is_routing_server, machine.computer_name

    return sorted(machines, key=key)


def _columns(chart: Chart, own: frozenset[UUID]) -> list[list[UUID]]:
    """Sites by the number of links that they are away; those without a way come last."""
    left = set(chart.map.sites)
    columns: list[list[UUID]] = []
    front = set(own) or {max(sorted(left), key=lambda site: len(chart.map.neighbours(site)))}
    while front:
        columns.append(_in_order(chart, front, columns[-1] if columns else []))
        left -= front
        front = {n for site in front for n in chart.map.neighbours(site)} & left
    if left:
        columns.append(_in_order(chart, left, []))
    return columns


def _in_order(chart: Chart, sites: Iterable[UUID], before: Sequence[UUID]) -> list[UUID]:
    places = {site: place for place, site in enumerate(before)}

    def key(site: UUID) -> tuple[float, str]:
        near = [places[n] for n in chart.map.neighbours(site) if n in places]
        return sum(near) / len(near) if near else 0.0, chart.site_name(site)

    return sorted(sites, key=key)


def _members(
    chart: Chart, site: UUID, machines: Iterable[Machine], way: Sequence[Route]
) -> list[Member]:
    on_way = {step.source for step in way}
    found = sorted(machines, key=lambda machine: machine.identifier not in on_way)  # always shown
    return [
        Member(
            machine.computer_name or str(machine.identifier),
            mark_of(chart, machine, site),
            machine.identifier == chart.source,
            machine.identifier in on_way,
        )
        for machine in found
    ]


def mark_of(chart: Chart, machine: Machine, site: UUID) -> str:
    """What a queue manager is in a site, in a word; "" for most."""
    if machine.identifier in chart.map.gates_of(site):
        return "gate"
    if machine.is_routing_server:
        return "routing server"
    return "foreign" if chart.map.is_foreign(machine) else ""


def _height(members: int, most: int) -> int:
    lines = min(members, most) + (members > most)
    return _HEAD + lines * _LINE + (_FOOT if lines else 0)


def _box(
    chart: Chart,
    site: UUID,
    place: tuple[int, int, int],
    members: list[Member],
    sizes: Sizes,
    *,
    is_own: bool,
) -> Box:
    x, y, height = place
    name, is_foreign = chart.site_name(site), chart.map.is_foreign_site(site)
    is_on_way = any(member.is_on_way for member in members)
    looks = (("own", is_own), ("foreign", is_foreign), ("way", is_on_way))
    gates = sum(member.mark == "gate" for member in members)
    tag = "ours" if is_own else "foreign" if is_foreign else ""
    return Box(
        site,
        name,
        x,
        y,
        height,
        tuple(
            replace(member, y=y + _HEAD + number * _LINE + 13, short=_cut(member.name, sizes))
            for number, member in enumerate(members[: sizes.names])
        ),
        max(0, len(members) - sizes.names),
        _look(looks),
        f"site {name}{f', {tag}' if tag else ''}: {len(members)} queue managers, {gates} gates",
        sizes.width,
        _cut(name, sizes),
        tag,
    )


def _links_of(chart: Chart, way: Sequence[Route]) -> set[frozenset[UUID]]:
    """The links that a way uses: between the sites of two who have no site in common."""
    found: set[frozenset[UUID]] = set()
    for one, other in pairwise(step.source for step in way):
        here, there = chart.map.machines.get(one), chart.map.machines.get(other)
        if here is None or there is None or here.sites & there.sites:
            continue
        ends = [
            (price, a, b)
            for a in here.sites
            for b, price in chart.map.neighbours(a).items()
            if b in there.sites
        ]
        if ends:
            _, a, b = min(ends)
            found.add(frozenset((a, b)))
    return found


def _lines(chart: Chart, boxes: Mapping[UUID, Box], used: set[frozenset[UUID]]) -> Iterable[Line]:
    """One line for each two sites that links join, with what the cheapest costs."""
    costs: dict[frozenset[UUID], int] = {}
    for link in chart.map.links:
        ends = frozenset((link.site1, link.site2))
        costs[ends] = min(link.cost, costs.get(ends, link.cost))
    for ends, cost in costs.items():
        one, other = sorted((boxes[end] for end in ends), key=lambda box: (box.x, box.y))
        is_foreign = any(chart.map.is_foreign_site(end) for end in ends)
        look = _look((("way", ends in used), ("foreign", is_foreign)))
        path, x, y = _curve(one, other)
        yield Line(path, cost, x, y, look, f"{one.name} to {other.name}, cost {cost}")


def _curve(one: Box, other: Box) -> tuple[str, int, int]:
    """From the right of one box to the left of another; beside its column within one."""
    start, end = one.x + one.width, other.x
    if one.x == other.x:
        turn = start + _BULGE
        path = f"M{start} {one.middle}C{turn} {one.middle} {turn} {other.middle} {start} "
        return path + f"{other.middle}", start + _BULGE * 3 // 4, (one.middle + other.middle) // 2
    bend = (end - start) // 2
    path = f"M{start} {one.middle}C{start + bend} {one.middle} {end - bend} {other.middle} "
    return path + f"{end} {other.middle}", start + bend, (one.middle + other.middle) // 2


def _look(looks: Iterable[tuple[str, bool]]) -> str:
    return " ".join(name for name, is_so in looks if is_so)


def _cut(name: str, sizes: Sizes) -> str:
    return name if len(name) <= sizes.letters else f"{name[: sizes.letters - 1]}…"
