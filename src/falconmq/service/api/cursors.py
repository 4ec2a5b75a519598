"""Cursors: places in queues, to walk along their messages with `POST /queues/{name}/receive`.

    POST   /queues/{name}/cursors          open; {id, queue, peek, timeout, expires_at}
    DELETE /cursors/{id}                   close

A cursor that nobody uses is closed after 300 seconds, or what `timeout` said.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Request

from falconmq.service import state_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.access.roles import check
from falconmq.service.api.context import Given

router: Final = APIRouter(dependencies=[Depends(require(Role.READ, Role.RECEIVE))])


@router.post(
    "/queues/{name:path}/cursors",
    response_model=schemas.CursorOut,
    status_code=HTTPStatus.CREATED,
)
async def open_cursor(
    control: Given, request: Request, name: str, given: schemas.CursorRequest | None = None
) -> dict[str, Any]:
    """A place at the start of a queue. To receive with it takes the role receive."""
    chosen = schemas.CursorRequest() if given is None else given  # type: ignore[call-arg]
    if not chosen.peek:
        check(request.scope, Role.RECEIVE)
    return await control.cursors.open(name, chosen.timeout, peek=chosen.peek, handle=chosen.handle)


@router.delete("/cursors/{id}", status_code=HTTPStatus.NO_CONTENT)
async def close_cursor(control: Given, id: UUID) -> None:
    """Give the place up; a read that waits there ends."""
    await control.cursors.close(id)
