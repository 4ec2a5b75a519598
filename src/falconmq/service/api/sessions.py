"""Connections with other queue managers, and whether one can be had."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.explaining_schemas import PingAnswer, PingRequest, SessionList
from falconmq.service.operating.reaching import Where, answer
from falconmq.service.operating.sessions import sessions_json

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_MANAGE: Final = [Depends(require(Role.MANAGE))]


@router.get("/sessions", response_model=SessionList)
async def get_sessions(control: Given) -> dict[str, Any]:
    """All sessions with other queue managers at this moment."""
    return {"sessions": control.engine.look(sessions_json, control.transport)}


@router.post("/ping", response_model=PingAnswer, dependencies=_MANAGE)
async def ping(control: Given, given: PingRequest) -> dict[str, Any]:
    """Ask a computer, from here, whether its queue manager can be reached."""
    return await answer(given.address, where_of(control), given.timeout)


def where_of(control: Control) -> Where:
    identifier, configuration = control.engine.core.identifier, control.configuration
    if configuration is None:
        return Where(identifier)
    manager = configuration.manager
    ping_port = configuration.transport.ping_port
    return Where(identifier, manager.bind, manager.port, ping_port, configuration.hosts)
