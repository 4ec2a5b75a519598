"""Queues: list, create, look at, change, delete, purge.

The routers of messages come before this one: `GET /queues/{name}` takes every path that is left.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Query

from falconmq import aio
from falconmq.embedded.actions import local
from falconmq.embedded.queue import QueueChanges
from falconmq.manager.access import check_queue
from falconmq.manager.model import UNLIMITED
from falconmq.manager.states import QueuePrivacy
from falconmq.service import schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.views import queue_json
from falconmq.service.directory.asking_ahead import ask_ahead, reach
from falconmq.service.requests.finding import look_up
from falconmq.service.web import problems
from falconmq.service.web.audited import note
from falconmq.wire.access_masks import MQSEC_GET_QUEUE_PROPERTIES

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_PAGE_MAX: Final = 10_000
_MANAGE: Final = [Depends(require(Role.MANAGE))]


@router.get("/queues", response_model=schemas.QueueList)
async def get_queues(
    control: Given,
    system: Annotated[bool, Query(description="The queue manager's own ones too.")] = False,
    contains: Annotated[str, Query(description="Only names with this in them.")] = "",
    after: Annotated[str | None, Query(description="Behind this name: the next page.")] = None,
    count: Annotated[int | None, Query(ge=1, le=_PAGE_MAX)] = None,
) -> dict[str, Any]:
    """The queues that were created here, in the order of their names; all, or a page of them."""
    found, is_more = control.engine.look(control.names.page, system, contains, after, count)
    queues = [aio.Queue(control.engine, opened) for opened in found]
    return {
        "queues": [queue_json(queue) for queue in queues],
        "next": queues[-1].name if is_more else None,
    }


@router.post(
    "/queues",
    response_model=schemas.QueueOut,
    status_code=HTTPStatus.CREATED,
    dependencies=_MANAGE,
)
async def create_queue(control: Given, given: schemas.CreateQueueRequest) -> dict[str, Any]:
    """Create a queue; 409 QUEUE_EXISTS if there is one of that name."""
    note(target=given.name)
    values = given.model_dump(exclude_none=True, exclude={"name", "transactional"})
    if "privacy_level" in values:
        values["privacy_level"] = QueuePrivacy[values["privacy_level"]]
    await reach(control.engine, given.name)
    queue = await control.manager.create_queue(
        given.name, transactional=given.transactional, **cast("QueueChanges", values)
    )
    return queue_json(queue)


@router.get("/queues/{name:path}", response_model=schemas.QueueOut)
async def get_queue(control: Given, name: str) -> dict[str, Any]:
    """One queue; nothing is opened for that."""
    queue = await _look_up(control, name)
    control.engine.look(check_queue, local(queue.opened), MQSEC_GET_QUEUE_PROPERTIES)
    return queue_json(queue)


@router.patch("/queues/{name:path}", response_model=schemas.QueueOut, dependencies=_MANAGE)
async def update_queue(control: Given, name: str, given: schemas.QueueUpdate) -> dict[str, Any]:
    """Change properties, all or none; what is left out stays as it is."""
    changes = given.model_dump(exclude_unset=True)
    for limit in ("quota_kilobytes", "journal_quota_kilobytes"):
        if limit in changes and changes[limit] is None:
            changes[limit] = UNLIMITED
    if "privacy_level" in changes:
        changes["privacy_level"] = QueuePrivacy[changes["privacy_level"]]
    queue = await _look_up(control, name)
    note(details=", ".join(f"{key}={value}" for key, value in changes.items()))
    if changes:
        await reach(control.engine, name)
        await queue.update(**cast("QueueChanges", changes))
    return queue_json(queue)


@router.delete("/queues/{name:path}", status_code=HTTPStatus.NO_CONTENT, dependencies=_MANAGE)
async def delete_queue(
    control: Given,
    name: str,
    only_if_empty: Annotated[bool, Query(description="Refuse while it holds messages.")] = False,
) -> None:
    """Delete a queue with all its messages."""
    queue = await _look_up(control, name)
    if only_if_empty and queue.count:
        raise problems.QueueNotEmptyError(queue.name, queue.count)
    await reach(control.engine, name)
    await control.manager.delete_queue(queue)


@router.post("/queues/{name:path}/purge", response_model=schemas.PurgeAnswer, dependencies=_MANAGE)
async def purge_queue(control: Given, name: str) -> dict[str, int]:
    """Delete all messages; those that a transaction holds go when it ends."""
    queue = await _look_up(control, name)
    return {"purged": await queue.purge()}


async def _look_up(control: Control, name: str) -> aio.Queue:
    await ask_ahead(control.engine, name)
    return aio.Queue(control.engine, control.engine.look(look_up, name))
