"""Queues that are kept open: to receive from them alone, or to see that they stay.

    POST   /queues/{name}/handles          open; {id, queue, exclusive, timeout, expires_at}
    POST   /handles/{id}/extend
    DELETE /handles/{id}                   close

A handle that nobody uses is closed after 300 seconds, or what `timeout` said.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends

from falconmq.service import state_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given

router: Final = APIRouter(dependencies=[Depends(require(Role.RECEIVE))])


@router.post(
    "/queues/{name:path}/handles",
    response_model=schemas.HandleOut,
    status_code=HTTPStatus.CREATED,
)
async def open_handle(
    control: Given, name: str, given: schemas.OpenRequest | None = None
) -> dict[str, Any]:
    """Open a queue to receive from; 409 SHARING_VIOLATION if that does not go with others."""
    chosen = schemas.OpenRequest() if given is None else given  # type: ignore[call-arg]
    return await control.handles.open(name, chosen.timeout, exclusive=chosen.exclusive)


@router.post("/handles/{id}/extend", response_model=schemas.HandleOut)
async def extend(
    control: Given, id: UUID, given: schemas.ExtendRequest | None = None
) -> dict[str, Any]:
    """Let its idle time begin anew."""
    return control.handles.extend(id, None if given is None else given.timeout)


@router.delete("/handles/{id}", status_code=HTTPStatus.NO_CONTENT)
async def close_handle(control: Given, id: UUID) -> None:
    """Close it. Reads that wait end, its cursors close, what was leased through it is back."""
    await control.handles.close(id)
