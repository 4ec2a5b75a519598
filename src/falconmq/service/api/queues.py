"""Queues: list, create, look at, delete, purge.

The routers of messages come before this one: `GET /queues/{name}` takes every path that is left.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Query

from falconmq.embedded.queue import QueueChanges
from falconmq.manager.states import QueuePrivacy
from falconmq.service import problems, schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.api.views import all_queues, queue_json

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_MANAGE: Final = [Depends(require(Role.MANAGE))]


@router.get("/queues", response_model=schemas.QueueList)
async def get_queues(control: Given, system: bool = False) -> dict[str, Any]:
    """All queues that were created here; with `system` the dead-letter queues and the journal."""
    manager = control.manager
    found = all_queues(manager) if system else manager.queues()
    return {"queues": [queue_json(queue) for queue in found]}


@router.post(
    "/queues",
    response_model=schemas.QueueOut,
    status_code=HTTPStatus.CREATED,
    dependencies=_MANAGE,
)
async def create_queue(control: Given, given: schemas.CreateQueueRequest) -> dict[str, Any]:
    """Create a queue; 409 QUEUE_EXISTS if there is one of that name."""
    values = given.model_dump(exclude_none=True, exclude={"name", "transactional"})
    if "privacy_level" in values:
        values["privacy_level"] = QueuePrivacy[values["privacy_level"]]
    queue = await control.manager.create_queue(
        given.name, transactional=given.transactional, **cast("QueueChanges", values)
    )
    return queue_json(queue)


@router.get("/queues/{name:path}", response_model=schemas.QueueOut)
async def get_queue(control: Given, name: str) -> dict[str, Any]:
    async with await control.manager.queue(name) as queue:
        return queue_json(queue)


@router.delete("/queues/{name:path}", status_code=HTTPStatus.NO_CONTENT, dependencies=_MANAGE)
async def delete_queue(
    control: Given,
    name: str,
    only_if_empty: Annotated[bool, Query(description="Refuse while it holds messages.")] = False,
) -> None:
    """Delete a queue with all its messages."""
    async with await control.manager.queue(name) as queue:
        if only_if_empty and queue.count:
            raise problems.QueueNotEmptyError(queue.name, queue.count)
        await control.manager.delete_queue(queue)


@router.post("/queues/{name:path}/purge", response_model=schemas.PurgeAnswer, dependencies=_MANAGE)
async def purge_queue(control: Given, name: str) -> dict[str, int]:
    """Delete all messages; those that a transaction holds go when it ends."""
    async with await control.manager.queue(name) as queue:
        return {"purged": await queue.purge()}
