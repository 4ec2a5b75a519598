"""Messages: send, receive, peek, as JSON or as MSMQ packets.

A receive deletes when its answer is ready and the caller still there (`requests.reading`); with a
lease or in a transaction when that is committed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from falconmq.client.packets import NO_SENDER, SENDER_HEADER
from falconmq.embedded.messages import from_position
from falconmq.errors import FalconMQError
from falconmq.manager.model import Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.message import Message, MessageId
from falconmq.service import schemas
from falconmq.service.access import Role, require
from falconmq.service.access.roles import check
from falconmq.service.api.context import Control, Given
from falconmq.service.directory.asking_ahead import ask_ahead
from falconmq.service.requests import bulk
from falconmq.service.requests.enlisting import take
from falconmq.service.requests.idempotency import KEY_HEADER, Key, scoped_key
from falconmq.service.requests.messages import from_json, to_json
from falconmq.service.requests.peeking import look, look_at, place_of
from falconmq.service.requests.reader import Reader
from falconmq.service.requests.reading import Hold, durable
from falconmq.service.requests.sending import send_messages
from falconmq.service.web.callers import Caller
from falconmq.service.web.problems import PartlySentError

CALLER_GONE: Final = 499  # nobody reads it; what proxies write into their logs
PACKETS: Final[dict[str, Any]] = {
    bulk.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}
}
_SEND: Final = [Depends(require(Role.SEND))]
_READ: Final = [Depends(require(Role.RECEIVE, Role.READ))]  # `receive` looks more closely

router: Final = APIRouter()


@router.post(
    "/queues/{name:path}/messages",
    response_model=schemas.SendAnswer,
    status_code=HTTPStatus.CREATED,
    dependencies=_SEND,
)
async def send(
    control: Given, name: str, given: schemas.SendRequest, key: Key = None
) -> dict[str, list[str]]:
    """Send messages; durable when the answer comes.

    In a transaction all are sent or none. Outside one, those before a refused message are sent:
    the problem has their number as `sent`.
    """
    messages = _messages(given)
    sent: list[MessageId] = []  # what a refusal leaves behind
    work = partial(_send, control, name, messages, given.transaction, sent)
    content = (name, given.model_dump_json())
    return await control.answers.once(key, content, work, is_final=lambda: bool(sent))


@router.post(
    "/queues/{name:path}/packets",
    response_model=schemas.SendPacketsAnswer,
    status_code=HTTPStatus.CREATED,
    openapi_extra={
        "requestBody": {"content": PACKETS, "required": True},
        "parameters": [
            {"in": "header", "name": KEY_HEADER, "required": False, "schema": {"type": "string"}},
            {
                "in": "header",
                "name": SENDER_HEADER,
                "required": False,
                "schema": {"type": "string", "enum": [NO_SENDER]},
            },
        ],
    },
    dependencies=_SEND,
)
async def send_packets(
    control: Given,
    request: Request,
    name: str,
    transaction: Annotated[
        bool | UUID | None, Query(description="As in a request to send messages as JSON.")
    ] = None,
) -> Response:
    """Send MSMQ packets, one behind the other: all or none; durable when the answer comes.

    SourceQueueManager, MessageID and SentTime are zero, the destination is the format name of the
    queue, and a packet has a TransactionHeader if it is sent in a transaction, with any numbers.
    A packet that names no sender gets the SID of the caller, unless FalconMQ-Sender is none.
    """
    key = scoped_key(request, request.headers.get(KEY_HEADER))
    body = await packets_of(request)
    names_sender = request.headers.get(SENDER_HEADER) != NO_SENDER
    work = partial(_send_packets, control, name, body, transaction, names_sender)
    answer = await control.answers.once(key, (name, str(transaction), body), work)
    return Response(json.dumps(answer), HTTPStatus.CREATED, media_type="application/json")


@router.post(
    "/queues/{name:path}/receive",
    response_model=schemas.ReceiveAnswer,
    responses={HTTPStatus.OK: {"content": PACKETS}},
    dependencies=_READ,
)
async def receive(
    control: Given, request: Request, name: str, given: schemas.ReceiveRequest
) -> Response:
    """Receive or peek messages; an empty list if none came in time.

    The messages are locked first. They are deleted when the answer is built and the caller still
    there; if it has gone, they are back in their places. A caller that ends between that and the
    reading of the answer loses them: to be sure, ask for a `lease` and commit it after the work.

    In a `transaction` they belong to it: a caller that goes away while it waits has taken nothing,
    but one that misses the answer must abort, or its commit deletes what it never saw.

    Who accepts application/vnd.falconmq.packets gets a line of JSON with what no packet carries,
    then the packets. To peek the role read is enough.
    """
    check(request.scope, Role.READ if given.peek else Role.RECEIVE)
    as_packets = bulk.MEDIA_TYPE in request.headers.get("accept", "")
    if given.lease is not None:
        control.leases.check_room(given.lease_id)
    async with (
        Reader(control, name, given) as reader,
        Hold(control.engine, reader.queue.opened) as hold,
        Caller(request, control.stopping) as caller,
    ):
        found = await _find(control, reader, hold, caller, given)
        lease = _lease_id(given) if hold.positions else None
        content = bulk.to_answer(found, lease) if as_packets else _json(control, found, lease)
        if await caller.has_gone():
            return Response(status_code=CALLER_GONE)
        if lease is not None and given.lease is not None:
            control.leases.grant(lease, hold, reader.queue, given.lease, is_owner=reader.is_owner)
            reader.keep_open()
        elif hold.positions:
            await hold.keep()
    return Response(content, media_type=bulk.MEDIA_TYPE if as_packets else "application/json")


async def _find(
    control: Control, reader: Reader, hold: Hold, caller: Caller, given: schemas.ReceiveRequest
) -> Sequence[MessagePosition]:
    """Find the messages, or wait for one; what `hold` has is deleted in the end."""
    engine, queue, cursor = control.engine, reader.queue, reader.cursor
    if given.peek:
        if cursor is not None:
            return await caller.during(look_at(engine, queue, cursor, given)) or ()
        return await caller.during(look(engine, queue, given)) or ()
    if given.transaction is not None:
        transaction = control.transactions.use(given.transaction)
        return await caller.during(take(engine, queue.opened, transaction, given, cursor)) or ()
    if cursor is not None:
        await caller.during(hold.take_at(cursor, given.timeout))
    elif given.has_place:
        await hold.take_by_lookup_id(*place_of(given))
    elif not hold.take_now(given.count):
        await caller.during(hold.take(given.count, given.timeout))
    return hold.positions


def _lease_id(given: schemas.ReceiveRequest) -> UUID | None:
    """The id of the lease that a request asks for; None: it asks for none."""
    return None if given.lease is None else given.lease_id or uuid4()


def _json(control: Control, positions: Sequence[MessagePosition], lease: UUID | None) -> bytes:
    names = control.principals.names
    messages = [to_json(from_position(position), names=names) for position in positions]
    return json.dumps({"messages": messages, "lease": lease and str(lease)}).encode()


async def _send(
    control: Control,
    name: str,
    messages: list[Message],
    wanted: bool | UUID | None,
    sent: list[MessageId],
) -> dict[str, Any]:
    await ask_ahead(control.engine, name)
    owner = _transaction(control, wanted)
    try:
        _, commit = control.engine.run(send_messages, name, messages, owner, sent)
    except FalconMQError as error:
        if sent:
            raise PartlySentError(error, len(sent)) from error
        raise
    ids = [str(id) for id in sent]
    sent.clear()  # if the store cannot write them, none was sent
    if commit is not None:
        await durable(control.engine, commit)
    return {"ids": ids}


async def _send_packets(
    control: Control, name: str, body: bytes, wanted: bool | UUID | None, names_sender: bool
) -> dict[str, Any]:
    messages = bulk.take_packets(body)
    await ask_ahead(control.engine, name)
    owner = _transaction(control, wanted)
    sent, commit = control.engine.run(bulk.send_packets, name, messages, owner, names_sender)
    if commit is not None:
        await durable(control.engine, commit)
    return {"count": sent.count, "first_id": str(sent.first), "last_id": str(sent.last)}


def _transaction(control: Control, wanted: bool | UUID | None) -> bool | Transaction | None:
    """What a request says of transactions; an open one is used at once, or not at all."""
    return control.transactions.use(wanted).use() if isinstance(wanted, UUID) else wanted


async def packets_of(request: Request) -> bytes:
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
