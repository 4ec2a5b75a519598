"""Queues by arrival numbers: how far they are, and what a range of them holds.

    GET    /queues/{name}/arrivals         ?after= &wait=: answers when something came
    GET    /queues/{name}/arrivals/plan    ?from= &to= &messages= &bytes= &parts=

The messages themselves come as Arrow streams: see `bulk_arrow`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from falconmq.service import reading_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.api.slashes import OwnSlashes
from falconmq.service.observation.http_meter import NO_ANSWER
from falconmq.service.requests import ranges
from falconmq.service.web.callers import Caller

router: Final = APIRouter(route_class=OwnSlashes, dependencies=[Depends(require(Role.READ))])


@router.get("/queues/{name:path}/arrivals", response_model=schemas.ArrivalsOut)
async def get_arrivals(
    control: Given,
    request: Request,
    name: str,
    after: Annotated[
        int | None,
        Query(ge=0, lt=schemas.ARRIVAL_MAX, description="Wait until `next` is beyond this."),
    ] = None,
    wait: Annotated[
        float, Query(ge=0, le=schemas.WAIT_MAX, description="At most so many seconds.")
    ] = 0,
) -> Response:
    """How far a queue is: what it holds, and which arrival number comes next.

    All below `next` is durable and complete: no message gets such a number later.
    """
    work = ranges.arrivals(control.engine, name, after, wait)
    async with Caller(request, control.stopping) as caller:
        found = await caller.during(work)
    return Response(status_code=NO_ANSWER) if found is None else JSONResponse(found)


@router.get("/queues/{name:path}/arrivals/plan", response_model=schemas.PlanOut)
async def get_plan(
    control: Given,
    name: str,
    from_: Annotated[int, Query(alias="from", ge=0, lt=schemas.ARRIVAL_MAX)] = 0,
    to: Annotated[
        int | None,
        Query(ge=0, lt=schemas.ARRIVAL_MAX, description="Left out: as far as the queue is."),
    ] = None,
    messages: Annotated[
        int | None, Query(ge=1, description="No further than so many messages.")
    ] = None,
    size: Annotated[
        int | None,
        Query(alias="bytes", ge=1, description="Nor than so many bytes; one message always goes."),
    ] = None,
    parts: Annotated[int, Query(ge=1, le=schemas.PARTS_MAX, description="At most so many.")] = 1,
) -> dict[str, Any]:
    """What a range of arrival numbers holds now, cut into parts of about the same count.

    Messages that a reader holds count, those of transactions that are not committed do not.
    """
    return await ranges.plan(
        control.engine, name, from_, to, messages=messages, size=size, parts=parts
    )
