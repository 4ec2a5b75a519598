"""The way of messages to another queue manager, as the directory has it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import Field

from falconmq.directory.routing_choice import Route
from falconmq.errors import DirectoryError, MqStatus
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.directory import Asked
from falconmq.service.directory.charts import Chart, chart_of, find_destination
from falconmq.service.schemas import Strict

router: Final = APIRouter()


class MapOut(Strict):
    """The map of sites and links that ways are found on."""

    joined: bool = Field(description="Whether messages of this queue manager follow it.")
    read_at: str | None = Field(description="When the directory gave it.")
    problem: str = Field(description="Why it could not be read last time; empty if it was.")
    sites: int
    links: int
    queue_managers: int
    faults: list[str] = Field(description="What somebody should mend in the directory.")


class RouteStep(Strict):
    """What one queue manager does with a message."""

    queue_manager: str
    id: str
    rule: str = Field(examples=["gates of the next site"])
    reason: str
    next: list[str] = Field(description="Whom it is sent to, in the order of the tries.")
    cost: int | None = Field(description="Of the links from here; null without a way.")
    links: int | None


class RouteOut(Strict):
    """The way to a queue manager."""

    destination: str
    id: str
    sites: list[str]
    possible: bool = Field(description="Whether the way leads to the destination.")
    configured: bool = Field(description="[[computers]] or [[routes]] decide the first step.")
    steps: list[RouteStep]
    map: MapOut


@router.post("/routes/refresh", response_model=MapOut, dependencies=[Depends(require(Role.MANAGE))])
async def refresh_routes(control: Given, directory: Asked) -> dict[str, Any]:
    """Read sites, links and gates from the directory now, not when the hour is over."""
    if control.hub is None or control.hub.router is None:
        raise DirectoryError(
            "this queue manager is in no directory, and follows no map",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint="falconmq directory join",
        )
    await control.hub.refresh()
    return _map_json(await chart_of(control, directory))


@router.get(
    "/routes/{name:path}", response_model=RouteOut, dependencies=[Depends(require(Role.READ))]
)
async def get_route(control: Given, directory: Asked, name: str) -> dict[str, Any]:
    """The way hop by hop, with reasons; `name` is a queue manager, a GUID or a queue."""
    chart = await chart_of(control, directory)
    destination = await asyncio.to_thread(find_destination, chart, directory, name)
    routes = chart.trace(destination)
    steps = [_step_json(chart, route) for route in routes]
    hosts = _configured(control, chart, destination)
    if hosts:
        reason = f"The configuration says so: {', '.join(hosts)}."
        steps = [{**steps[0], "rule": "configuration", "reason": reason, "next": hosts}]
    machine = chart.map.machines.get(destination)
    return {
        "destination": chart.name_of(destination),
        "id": str(destination),
        "sites": [] if machine is None else sorted(map(chart.site_name, machine.sites)),
        "possible": bool(hosts) or routes[-1].is_possible,
        "configured": bool(hosts),
        "steps": steps,
        "map": _map_json(chart),
    }


def _configured(control: Control, chart: Chart, destination: UUID) -> list[str]:
    """The next hosts by [[computers]] and [[routes]], which count before any map."""
    if control.configuration is None or destination == chart.source:
        return []
    hops = control.configuration.router().get_next_hops(destination)
    return [hop.host_name for hop in hops]


def _step_json(chart: Chart, step: Route) -> dict[str, Any]:
    left = chart.left_from(step.source, step.destination)
    return {
        "queue_manager": chart.name_of(step.source),
        "id": str(step.source),
        "rule": step.rule.value,
        "reason": chart.explain(step),
        "next": [chart.name_of(hop) for hop in step.hops],
        "cost": None if left is None else left.cost,
        "links": None if left is None else left.hops,
    }


def _map_json(chart: Chart) -> dict[str, Any]:
    read_at = chart.read_at
    return {
        "joined": chart.is_joined,
        "read_at": None if read_at is None else datetime.fromtimestamp(read_at, UTC).isoformat(),
        "problem": chart.problem,
        "sites": len(chart.map.sites),
        "links": len(chart.map.links),
        "queue_managers": len(chart.map.machines),
        "faults": list(chart.faults),
    }
