"""Messages as Arrow streams: the same paths as JSON, chosen by Accept and Content-Type.

    GET    /queues/{name}/messages    with `Accept: application/vnd.apache.arrow.stream`
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
from falconmq.client import arrow as columns
from falconmq.client.packets import REQUEST_BYTES
from falconmq.embedded.actions import local
from falconmq.errors import FalconMQError
from falconmq.manager.positions import END, START
from falconmq.message import MessageId
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.requests import arrow
from falconmq.service.requests.idempotency import Key
from falconmq.service.web.problems import PartlySentError

_STREAM: Final = columns.MEDIA_TYPE.encode()
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
) -> StreamingResponse:
    """The messages of a queue, in its order; they stay."""
    await asyncio.to_thread(columns.load)
    queue = await control.manager.queue(name)
    local(queue.opened)  # a queue of another computer is refused before the stream begins
    return StreamingResponse(
        _closing(queue, arrow.browse(control.engine, queue, after=after, count=count)),
        media_type=columns.MEDIA_TYPE,
    )


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
    await asyncio.to_thread(columns.load)
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
