"""The HTTP API of a queue manager: queues and messages as JSON, under /api/v1.

    GET    /status                         queues, outgoing queues, sessions
    GET    /queues                         POST creates one
    GET    /queues/{name}                  DELETE deletes it
    POST   /queues/{name}/purge
    POST   /queues/{name}/messages         send, one or many
    POST   /queues/{name}/packets          send many, as MSMQ packets: the fast door
    POST   /queues/{name}/receive          receive or peek; waits if asked to; packets if accepted
    GET    /outgoing
    POST   /outgoing/{number}/pause        and /resume

`{name}` is a path name or format name, URL-quoted: `.%5Cprivate%24%5Corders`. It may hold slashes;
so no GET or DELETE path goes on behind it. Errors are problems (`service.problems`).

A receive deletes when its answer is ready and the caller still there (`service.reading`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from falconmq import aio
from falconmq.embedded.actions import local
from falconmq.embedded.engine import Engine
from falconmq.embedded.queue import QueueChanges
from falconmq.errors import FalconMQError, MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import UNLIMITED, OutgoingQueue
from falconmq.manager.states import QueuePrivacy
from falconmq.message import Message
from falconmq.service import bulk, problems, schemas
from falconmq.service.callers import Caller
from falconmq.service.messages import from_json, iso_time, to_json
from falconmq.service.outgoing import Outgoing, incoming_json, outgoing_json
from falconmq.service.peeking import peek
from falconmq.service.reading import Hold, durable, look
from falconmq.service.shortcut import Shortcut

CALLER_GONE: Final = 499  # nobody reads it; what proxies write into their logs
_PREFIX: Final = "/api/v1"
_PACKETS: Final[dict[str, Any]] = {
    bulk.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}
}

router: Final = APIRouter(prefix=_PREFIX)


class Control:
    """What the handlers work with."""

    def __init__(
        self,
        manager: aio.QueueManager,
        status: Callable[[], dict[str, Any]],
        transport: Outgoing | None,
    ) -> None:
        self.manager = manager
        self.status = status
        self.transport = transport
        self.stopping = asyncio.Event()  # requests that wait end when it is set

    @property
    def engine(self) -> Engine:
        return self.manager._engine  # noqa: SLF001  # two-phase reads are not in the Python API


async def _control(request: Request) -> Control:
    control: Control = request.app.state.control
    return control


Given = Annotated[Control, Depends(_control)]


def create_app(
    manager: aio.QueueManager,
    *,
    status: Callable[[], dict[str, Any]] = dict,
    transport: Outgoing | None = None,
) -> FastAPI:
    """The application. `status` adds to GET /status what only the service knows."""
    app = FastAPI(
        title="FalconMQ",
        description="Queues and messages of one queue manager.",
        version="1",
        docs_url=None,  # it would load scripts from the network
        redoc_url=None,
        openapi_url=f"{_PREFIX}/openapi.json",
        responses={"default": {"model": schemas.Problem, "description": "a problem"}},
    )
    app.state.control = control = Control(manager, status, transport)
    app.include_router(router)
    app.add_middleware(
        Shortcut,
        queues=f"{_PREFIX}/queues",
        send=partial(send_packets, control),
        receive=partial(receive, control),
    )
    problems.install(app)
    return app


def end_waits(app: FastAPI) -> None:
    """The service stops: requests that wait for messages are answered now."""
    app.state.control.stopping.set()


# Status and outgoing queues


@router.get("/status")
async def get_status(control: Given) -> dict[str, Any]:
    """Identity, space, queues and outgoing queues at this moment, and what the service adds."""
    manager, status = control.manager, control.manager.status()
    return {
        "id": str(status.id),
        "computer_name": status.computer_name,
        "path": status.path,
        "engine": status.engine,
        "durability": status.durability.name,
        "used_bytes": status.used_bytes,
        "limit_bytes": status.limit_bytes,
        "messages": status.messages,
        "message_bytes": status.message_bytes,
        "quota_kilobytes": status.quota_kilobytes,
        "transactions": status.transactions,
        "queues": [_queue_json(queue) for queue in _all_queues(manager)],
        "outgoing": control.engine.look(outgoing_json, control.transport),
        **control.status(),
    }


@router.get("/outgoing", response_model=schemas.OutgoingList)
async def get_outgoing(control: Given) -> dict[str, Any]:
    """What is on its way to other queue managers, and how the last tries to connect went."""
    return {"outgoing": control.engine.look(outgoing_json, control.transport)}


@router.post("/outgoing/{number}/pause", status_code=HTTPStatus.NO_CONTENT)
async def pause(control: Given, number: int) -> None:
    """Send nothing more from this outgoing queue until it is resumed; messages wait."""
    control.engine.run(_with_outgoing, number, _transport(control).pause)


@router.post("/outgoing/{number}/resume", status_code=HTTPStatus.NO_CONTENT)
async def resume(control: Given, number: int) -> None:
    """Send again."""
    control.engine.run(_with_outgoing, number, _transport(control).resume)


# Queues


@router.get("/queues", response_model=schemas.QueueList)
async def get_queues(control: Given, system: bool = False) -> dict[str, Any]:
    """All queues that were created here; with `system` the dead-letter queues and the journal."""
    manager = control.manager
    found = _all_queues(manager) if system else manager.queues()
    return {"queues": [_queue_json(queue) for queue in found]}


@router.post("/queues", response_model=schemas.QueueOut, status_code=HTTPStatus.CREATED)
async def create_queue(control: Given, given: schemas.CreateQueueRequest) -> dict[str, Any]:
    """Create a queue; 409 QUEUE_EXISTS if there is one of that name."""
    values = given.model_dump(exclude_none=True, exclude={"name", "transactional"})
    if "privacy_level" in values:
        values["privacy_level"] = QueuePrivacy[values["privacy_level"]]
    queue = await control.manager.create_queue(
        given.name, transactional=given.transactional, **cast("QueueChanges", values)
    )
    return _queue_json(queue)


@router.get("/queues/{name:path}", response_model=schemas.QueueOut)
async def get_queue(control: Given, name: str) -> dict[str, Any]:
    async with await control.manager.queue(name) as queue:
        return _queue_json(queue)


@router.delete("/queues/{name:path}", status_code=HTTPStatus.NO_CONTENT)
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


@router.post("/queues/{name:path}/purge", response_model=schemas.PurgeAnswer)
async def purge_queue(control: Given, name: str) -> dict[str, int]:
    """Delete all messages; those that a transaction holds go when it ends."""
    async with await control.manager.queue(name) as queue:
        return {"purged": await queue.purge()}


# Messages


@router.post(
    "/queues/{name:path}/messages",
    response_model=schemas.SendAnswer,
    status_code=HTTPStatus.CREATED,
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


def _all_queues(manager: aio.QueueManager) -> list[aio.Queue]:
    system = [manager.dead_letter, manager.transactional_dead_letter, manager.journal]
    return [*manager.queues(), *system]


def _queue_json(queue: aio.Queue) -> dict[str, Any]:
    journal = local(queue.opened).journal
    return {
        "name": queue.name,
        "format_name": queue.format_name,
        "label": queue.label,
        "transactional": queue.is_transactional,
        "journaling": queue.journaling,
        "quota_kilobytes": _limit(queue.quota_kilobytes),
        "journal_quota_kilobytes": _limit(queue.journal_quota_kilobytes),
        "authentication": queue.authentication,
        "privacy_level": queue.privacy_level.name,
        "base_priority": queue.base_priority,
        "created_at": iso_time(queue.created_at),
        "modified_at": iso_time(queue.modified_at),
        "messages": queue.count,
        "size_bytes": queue.size_bytes,
        "journal_messages": 0 if journal is None else len(journal.positions),
        "incoming_streams": incoming_json(local(queue.opened)),
    }


def _with_outgoing(
    core: QueueManagerCore, number: int, action: Callable[[OutgoingQueue], None]
) -> None:
    queue = core.queues.get(number)
    if not isinstance(queue, OutgoingQueue):
        raise QueueError(
            f"there is no outgoing queue {number}",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="GET /api/v1/outgoing lists them with their numbers",
        )
    action(queue)


def _transport(control: Control) -> Outgoing:
    if control.transport is None:
        raise QueueError(
            "this queue manager has no transport",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="start it with: falconmq serve",
        )
    return control.transport


def _limit(kilobytes: int) -> int | None:
    return None if kilobytes == UNLIMITED else kilobytes
