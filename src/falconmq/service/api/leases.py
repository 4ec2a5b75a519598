"""Leases: messages that were received with `lease`, to be committed or given back.

    GET    /leases                         those that have not ended
    GET    /leases/{id}                    also one that has: the last 10,000 ends are remembered
    POST   /leases/{id}/commit             and /abort, /extend

To commit or abort again what was committed or aborted is no error: the first answer may be lost.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends

from falconmq.service import state_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.state_schemas import State

router: Final = APIRouter()
_RECEIVE: Final = [Depends(require(Role.RECEIVE))]


@router.get("/leases", response_model=schemas.LeaseList, dependencies=[Depends(require(Role.READ))])
async def get_leases(control: Given) -> dict[str, Any]:
    """Those that have not ended."""
    return {"leases": control.leases.all()}


@router.get(
    "/leases/{id}",
    response_model=schemas.LeaseOut,
    dependencies=[Depends(require(Role.READ, Role.RECEIVE))],
)
async def get_lease(control: Given, id: UUID) -> dict[str, Any]:
    """A lease, or how it ended."""
    return control.leases.get(id)


@router.post("/leases/{id}/commit", response_model=schemas.LeaseOut, dependencies=_RECEIVE)
async def commit(control: Given, id: UUID) -> dict[str, Any]:
    """The work is done: delete the messages; durable when the answer comes.

    410 if their queue was deleted meanwhile; `purged` counts those that were purged.
    """
    return await control.leases.end(id, State.COMMITTED)


@router.post("/leases/{id}/abort", response_model=schemas.LeaseOut, dependencies=_RECEIVE)
async def abort(control: Given, id: UUID) -> dict[str, Any]:
    """Give the messages back, to their old places."""
    return await control.leases.end(id, State.ABORTED)


@router.post("/leases/{id}/extend", response_model=schemas.LeaseOut, dependencies=_RECEIVE)
async def extend(
    control: Given, id: UUID, given: schemas.ExtendRequest | None = None
) -> dict[str, Any]:
    """Keep them longer, from now on."""
    return control.leases.extend(id, None if given is None else given.timeout)
