"""Messages: send, receive, peek, as JSON or as MSMQ packets.

A receive deletes when its answer is ready and the caller still there (`service.reading`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from falconmq import aio
from falconmq.embedded.actions import local
from falconmq.errors import FalconMQError
from falconmq.message import Message
from falconmq.service import bulk, schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.callers import Caller
from falconmq.service.messages import from_json, to_json
from falconmq.service.peeking import peek
from falconmq.service.reading import Hold, durable, look

CALLER_GONE: Final = 499  # nobody reads it; what proxies write into their logs
_PACKETS: Final[dict[str, Any]] = {
    bulk.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}
}
_SEND: Final = [Depends(require(Role.SEND))]
_RECEIVE: Final = [Depends(require(Role.RECEIVE))]

router: Final = APIRouter()


@router.post(
    "/queues/{name:path}/messages",
    response_model=schemas.SendAnswer,
    status_code=HTTPStatus.CREATED,
    dependencies=_SEND,
)
async def send(control: Given, name: str, given: schemas.SendRequest) -> dict[str, list[str]]:
    """Send messages; durable when the answer comes.

    In a transaction all are sent or none. Outside one, those before a refused message are sent.
    """
    messages = _messages(given)
    async with await control.manager.queue(name) as queue:
        wanted = given.transaction
        if wanted is None:
            wanted = queue.is_local and queue.is_transactional
        if not wanted:
            return {"ids": [str(id) for id in await queue.send_many(messages)]}
        async with control.manager.transaction() as transaction:
            ids = await queue.send_many(messages, transaction)
        return {"ids": [str(id) for id in ids]}


@router.post(
    "/queues/{name:path}/packets",
    response_model=schemas.SendPacketsAnswer,
    status_code=HTTPStatus.CREATED,
    openapi_extra={"requestBody": {"content": _PACKETS, "required": True}},
    dependencies=_SEND,
)
async def send_packets(
    control: Given,
    request: Request,
    name: str,
    transaction: Annotated[
        bool | None, Query(description="As in a request to send messages as JSON.")
    ] = None,
) -> Response:
    """Send MSMQ packets, one behind the other: all or none; durable when the answer comes.

    SourceQueueManager, MessageID and SentTime are zero, the destination is the format name of the
    queue, and a packet has a TransactionHeader if it is sent in a transaction, with any numbers.
    """
    messages = bulk.take_packets(await _body(request))
    sent, commit = control.engine.run(bulk.send_packets, name, messages, transaction)
    if commit is not None:
        await durable(control.engine, commit)
    answer = {"count": sent.count, "first_id": str(sent.first), "last_id": str(sent.last)}
    return Response(json.dumps(answer), HTTPStatus.CREATED, media_type="application/json")


@router.post(
    "/queues/{name:path}/receive",
    response_model=schemas.ReceiveAnswer,
    responses={HTTPStatus.OK: {"content": _PACKETS}},
    dependencies=_RECEIVE,
)
async def receive(
    control: Given, request: Request, name: str, given: schemas.ReceiveRequest
) -> Response:
    """Receive or peek messages; an empty list if none came in time.

    The messages are locked first. They are deleted when the answer is built and the caller still
    there; if it has gone, they are back in their places. A caller that ends between that and the
    reading of the answer loses them: to be sure, peek, do the work, then receive by lookup_id.

    Who accepts application/vnd.falconmq.packets gets a line of JSON with what no packet carries,
    then the packets.
    """
    as_packets = bulk.MEDIA_TYPE in request.headers.get("accept", "")
    async with (
        await control.manager.queue(name) as queue,
        Hold(control.engine, queue.opened) as hold,
        Caller(request, control.stopping) as caller,
    ):
        local(queue.opened)  # a queue of another computer is refused at once
        content = await _answer(control, queue, hold, caller, given, as_packets=as_packets)
        if await caller.has_gone():
            return Response(status_code=CALLER_GONE)
        if hold.positions:
            await hold.keep()
    return Response(content, media_type=bulk.MEDIA_TYPE if as_packets else "application/json")


async def _answer(
    control: Control,
    queue: aio.Queue,
    hold: Hold,
    caller: Caller,
    given: schemas.ReceiveRequest,
    *,
    as_packets: bool,
) -> bytes:
    """Find the messages, or wait for one, and write them down."""
    if given.peek:
        if as_packets:
            seen = await caller.during(look(control.engine, queue, given))
            return bulk.to_answer(seen or ())
        return _json(await caller.during(peek(queue, given)) or ())
    if given.lookup_id is not None:
        await hold.take_by_lookup_id(int(given.lookup_id))
    elif not hold.take_now(given.count):
        await caller.during(hold.take(given.count, given.timeout))
    return bulk.to_answer(hold.positions) if as_packets else _json(hold.messages)


def _json(messages: Sequence[Message]) -> bytes:
    return json.dumps({"messages": [to_json(message) for message in messages]}).encode()


async def _body(request: Request) -> bytes:
    """The packets of a request; no more is read than may come."""
    if request.headers.get("content-type") != bulk.MEDIA_TYPE:
        raise HTTPException(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content is to be {bulk.MEDIA_TYPE}"
        )
    parts, size = [], int(request.headers.get("content-length", 0))
    if size <= bulk.REQUEST_BYTES:
        size = 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > bulk.REQUEST_BYTES:
                break
    if size > bulk.REQUEST_BYTES:
        raise HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"one request takes {bulk.REQUEST_BYTES} bytes; send the rest with another",
        )
    return b"".join(parts)


def _messages(given: schemas.SendRequest) -> list[Message]:
    messages = []
    for number, each in enumerate(given.messages):
        try:
            messages.append(from_json(each))
        except FalconMQError as error:
            if len(given.messages) > 1:
                error.args = (f"messages[{number}].{error}",)
            raise
    return messages
