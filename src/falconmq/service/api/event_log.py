"""What happened to messages, from the store: numbered without gaps, kept for some days.

    GET    /event-log            where the log begins and ends; waits for more if asked to
    GET    /event-log/entries    the events of a range, as JSON or as an Arrow stream

A reader keeps the number that it has to read next, reads the entries from there to `next`, and then
waits with `after` set to that number.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from falconmq.client import arrow as columns
from falconmq.manager.access import check_manager
from falconmq.service import event_log_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.requests import event_log
from falconmq.wire.access_masks import MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
WAIT_MAX: Final = 30.0
NUMBER_MAX: Final = (1 << 63) - 1
_ARROW: Final = {"content": {columns.MEDIA_TYPE: {"schema": {"type": "string"}}}}


@router.get("/event-log", response_model=schemas.EventLogOut)
async def get_event_log(
    control: Given,
    after: Annotated[
        int | None,
        Query(ge=0, le=NUMBER_MAX, description="With `wait`: answer when `next` is above it."),
    ] = None,
    wait: Annotated[float, Query(ge=0, le=WAIT_MAX, description="Seconds.")] = 0,
) -> dict[str, Any]:
    """Where the log begins and ends, as far as it is durable."""
    if after is not None and wait:
        await event_log.wait_for_more(control.engine, after, wait, control.stopping)
    return event_log.state_of(control.engine)


@router.get("/event-log/entries", response_model=schemas.EntriesOut, responses={200: dict(_ARROW)})
async def get_entries(
    control: Given,
    request: Request,
    start: Annotated[
        int | None,
        Query(alias="from", ge=0, le=NUMBER_MAX, description="Left out: the oldest event."),
    ] = None,
    to: Annotated[
        int | None, Query(ge=0, le=NUMBER_MAX, description="Not included; left out: all.")
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=event_log.ENTRIES_MAX, description="JSON only: at most so many.")
    ] = event_log.ENTRIES_DEFAULT,
    packets: Annotated[bool, Query(description="With the messages, where they are kept.")] = False,
) -> Any:
    """The events of a range; Arrow if the caller accepts application/vnd.apache.arrow.stream.

    The answer is 410 if the range begins with events that have left the log.
    """
    engine = control.engine
    if packets:  # bodies of all queues: like reading the journal of the queue manager
        engine.look(check_manager, MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE)
    is_arrow = columns.MEDIA_TYPE in request.headers.get("accept", "")
    if is_arrow:
        await asyncio.to_thread(columns.load)
    asked = event_log.wanted(engine, start, to)
    if is_arrow:
        content = event_log.stream(engine, asked, packets=packets)
        return StreamingResponse(content, media_type=columns.MEDIA_TYPE)
    return await asyncio.to_thread(event_log.entries, engine, asked, limit, packets=packets)
