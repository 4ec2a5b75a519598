"""The map on the page of the directory: the picture, the way that was asked for, the tables."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from falconmq.directory.base import DirectoryBase
from falconmq.directory.routing_choice import Route
from falconmq.directory.routing_map import Machine
from falconmq.errors import FalconMQError
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.site_map import Picture, draw, mark_of, members_of, own_sites
from falconmq.service.console.view import View
from falconmq.service.directory.charts import Chart, chart_of, find_destination

_ROWS_MOST: Final = 500  # sites in the table
_NAMES_MOST: Final = 1000  # queue managers to choose from
_MEMBERS_MOST: Final = 50  # of a site, in the table


@dataclass(frozen=True, slots=True)
class Row:
    """A site in the table."""

    name: str
    words: str
    members: str
    gates: str
    links: str


@dataclass(frozen=True, slots=True)
class Way:
    """The way to somebody, in sentences."""

    text: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """What the page shows."""

    chart: Chart
    picture: Picture | None
    rows: tuple[Row, ...]
    names: tuple[str, ...]  # of queue managers, to choose from
    to: str
    way: Way | None
    trouble: Trouble | None  # why the way was not found


async def map_of(view: View, directory: DirectoryBase) -> Map | None:
    """The map of the enterprise; None if there is none, or it cannot be had now."""
    try:
        chart = await chart_of(view.control, directory)
    except FalconMQError:
        return None  # the list of entries says why
    if not chart.map.sites:
        return None
    to, trouble = view.query("to").strip(), None
    routes: list[Route] = []
    if to:
        try:
            routes = chart.trace(await asyncio.to_thread(find_destination, chart, directory, to))
        except FalconMQError as error:
            trouble = trouble_of(error)
    way = _way(chart, routes) if routes else None
    # A large enterprise takes a while to draw: the loop has other things to do.
    picture, rows, names = await asyncio.to_thread(_drawn, chart, routes)
    return Map(chart, picture, rows, names, to, way, trouble)


def _drawn(
    chart: Chart, routes: list[Route]
) -> tuple[Picture | None, tuple[Row, ...], tuple[str, ...]]:
    machines, own = members_of(chart), own_sites(chart)
    sites = sorted(chart.map.sites, key=chart.site_name)[:_ROWS_MOST]
    rows = tuple(_row(chart, site, machines[site], is_own=site in own) for site in sites)
    names = sorted({m.computer_name for m in chart.map.machines.values() if m.computer_name})
    return draw(chart, routes), rows, tuple(names[:_NAMES_MOST])


def _way(chart: Chart, routes: list[Route]) -> Way:
    names = " → ".join(chart.name_of(route.source) for route in routes)
    if not routes[-1].is_possible:
        text = f"{names}: from there no way leads on"
    else:
        left = chart.left_from(routes[0].source, routes[0].destination)
        text = names if left is None or not left.hops else f"{names}, cost {left.cost}"
    return Way(text, tuple(chart.explain(route) for route in routes))


def _row(chart: Chart, site: UUID, members: list[Machine], *, is_own: bool) -> Row:
    words = [("ours", is_own), ("foreign", chart.map.is_foreign_site(site))]
    shown = [(machine, mark_of(chart, machine, site)) for machine in members[:_MEMBERS_MOST]]
    names = [f"{m.computer_name}{f' ({mark})' if mark else ''}" for m, mark in shown]
    if len(members) > len(shown):
        names.append(f"and {len(members) - len(shown)} more")
    links = sorted((chart.site_name(n), cost) for n, cost in chart.map.neighbours(site).items())
    return Row(
        chart.site_name(site),
        ", ".join(word for word, is_so in words if is_so),
        ", ".join(names),
        ", ".join(chart.name_of(gate) for gate in chart.map.gates_of(site)) or "none",
        ", ".join(f"{name} (cost {cost})" for name, cost in links) or "none",
    )
