"""Messages as Arrow streams: the same paths as JSON, chosen by Accept and Content-Type.

    GET    /queues/{name}/messages    with `Accept: application/vnd.apache.arrow.stream`;
                                      from_arrival and to_arrival: a range of arrival numbers
    POST   /queues/{name}/messages    with `Content-Type: application/vnd.apache.arrow.stream`

The columns are in docs/reference/arrow-schema.md. This router comes before those of messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from falconmq import aio
from falconmq.client import arrow as table
from falconmq.client.packets import REQUEST_BYTES
from falconmq.embedded.actions import local
from falconmq.errors import FalconMQError
from falconmq.manager.access import check_open
from falconmq.manager.positions import END, START
from falconmq.manager.states import AccessType
from falconmq.message import MessageId
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.directory.asking_ahead import ask_ahead
from falconmq.service.reading_schemas import ARRIVAL_MAX
from falconmq.service.requests import arrow
from falconmq.service.requests.idempotency import Key
from falconmq.service.requests.ranges import look_up
from falconmq.service.web.problems import PartlySentError

_STREAM: Final = table.MEDIA_TYPE.encode()
_HEADERS: Final = {"GET": b"accept", "POST": b"content-type"}


class _ArrowRoute(APIRoute):
    """A route for requests that speak Arrow; others go on to the next one."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        wanted = _HEADERS.get(scope["method"])
        if not any(name == wanted and _STREAM in value for name, value in scope["headers"]):
            return Match.NONE, {}
        return super().matches(scope)


router: Final = APIRouter(route_class=_ArrowRoute, include_in_schema=False)


@router.get("/queues/{name:path}/messages", dependencies=[Depends(require(Role.READ))])
async def browse(
    control: Given,
    name: str,
    after: Annotated[int, Query(ge=START, lt=END, description="Behind this lookup id.")] = START,
    count: Annotated[
        int | None, Query(ge=0, description="At most so many; all if left out.")
    ] = None,
    from_arrival: Annotated[
        int | None,
        Query(ge=0, lt=ARRIVAL_MAX, description="In the order of arrival, from here on."),
    ] = None,
    to_arrival: Annotated[
        int | None, Query(ge=0, lt=ARRIVAL_MAX, description="Below this arrival number.")
    ] = None,
    columns: Annotated[
        str | None, Query(description="Names with commas between them; all if left out.")
    ] = None,
) -> StreamingResponse:
    """The messages of a queue, in its order or in that of their arrival; they stay."""
    await asyncio.to_thread(table.load)
    chosen = None if columns is None else columns.split(",")
    await asyncio.to_thread(table.schema_of, chosen)  # refuses what is no column
    if from_arrival is not None or to_arrival is not None:
        if after != START or count is not None:
            raise HTTPException(
                HTTPStatus.UNPROCESSABLE_ENTITY, "a range of arrivals, or after and count; not both"
            )
        opened = control.engine.look(look_up, name)
        start = 0 if from_arrival is None else from_arrival
        stream = arrow.read_range(control.engine, opened, start, to_arrival, chosen)
        return StreamingResponse(stream, media_type=table.MEDIA_TYPE)
    queue = await control.manager.queue(name)
    # A queue of another computer, or one it may not read, is refused before the stream begins.
    control.engine.look(check_open, local(queue.opened), AccessType.PEEK)
    stream = arrow.browse(control.engine, queue, after=after, count=count, columns=chosen)
    return StreamingResponse(_closing(queue, stream), media_type=table.MEDIA_TYPE)


async def _closing(queue: aio.Queue, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async with queue:
        async for chunk in stream:
            yield chunk


@router.post(
    "/queues/{name:path}/messages",
    status_code=HTTPStatus.CREATED,
    dependencies=[Depends(require(Role.SEND))],
)
async def send(
    control: Given,
    request: Request,
    name: str,
    key: Key,
    transaction: Annotated[
        bool | UUID | None, Query(description="As in a request to send messages as JSON.")
    ] = None,
) -> dict[str, Any]:
    """Send a table of messages; durable when the answer comes. `body` is the column it needs."""
    await asyncio.to_thread(table.load)
    body = await _body(control, request)
    sent: list[MessageId] = []  # what a refusal leaves behind
    work = partial(_send, control, name, body, transaction, sent)
    content = (name, str(transaction), body)
    return await control.answers.once(key, content, work, is_final=lambda: bool(sent))


async def _send(
    control: Control,
    name: str,
    body: bytes,
    wanted: bool | UUID | None,
    sent: list[MessageId],
) -> dict[str, Any]:
    messages = await arrow.take(body)
    await ask_ahead(control.engine, name)
    owner = control.transactions.use(wanted) if isinstance(wanted, UUID) else wanted
    async with await control.manager.queue(name) as queue:
        try:
            await arrow.send(control.manager, queue, messages, owner, sent)
        except FalconMQError as error:
            if sent:
                raise PartlySentError(error, len(sent)) from error
            raise
    return {
        "count": len(sent),
        "first_id": str(sent[0]) if sent else None,
        "last_id": str(sent[-1]) if sent else None,
    }


async def _body(control: Control, request: Request) -> bytes:
    """The stream of a request; no more is read than may come."""
    configuration = control.configuration
    limit = REQUEST_BYTES if configuration is None else configuration.http.request_bytes
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"one request takes {limit} bytes; send the rest with another",
            )
    return b"".join(parts)
