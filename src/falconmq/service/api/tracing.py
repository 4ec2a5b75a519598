"""The routes of messages."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from falconmq.manager.core import QueueManagerCore
from falconmq.message import MessageId
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.explaining_schemas import RouteList, RouteOut
from falconmq.service.operating.tracing import newest_of, route_json, route_of
from falconmq.service.requests.finding import find_local

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_ROUTES_MAX: Final = 100


@router.get("/messages/{id:path}/trace", response_model=RouteOut)
async def get_trace(control: Given, id: str) -> dict[str, Any]:
    """Where a message was, as far as records and reports here tell."""
    names = manager_names(control)
    return control.engine.look(_route, MessageId.parse(id), names)


@router.get("/traces", response_model=RouteList)
async def get_traces(
    control: Given,
    queue: Annotated[str, Query(description="A queue of this queue manager.")],
    count: Annotated[int, Query(ge=1, le=_ROUTES_MAX)] = 5,
) -> dict[str, Any]:
    """The routes of the messages that something happened to lately in a queue."""
    return {"routes": control.engine.look(_routes, queue, count, manager_names(control))}


def manager_names(control: Control) -> dict[UUID, str]:
    """The queue managers that the configuration knows by name."""
    known = () if control.configuration is None else control.configuration.computers
    return {computer.id: computer.name for computer in known}


def _route(core: QueueManagerCore, id: MessageId, names: dict[UUID, str]) -> dict[str, Any]:
    return route_json(core, route_of(core, id), names)


def _routes(
    core: QueueManagerCore, queue: str, count: int, names: dict[UUID, str]
) -> list[dict[str, Any]]:
    found = newest_of(core, find_local(core, queue), count)
    return [_route(core, id, names) for id in found]
