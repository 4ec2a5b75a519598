"""What happens, as it happens: server-sent events, and the samples of the last hour."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from falconmq.embedded.actions import resolved
from falconmq.errors import MessageError, MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind
from falconmq.manager.model import Queue
from falconmq.manager.queues import find_queue
from falconmq.message import MessageId
from falconmq.names import FormatName, PathName, SingleFormatName, parse_queue_name
from falconmq.names.syntax import did_you_mean
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.directory.asking_ahead import ask_ahead
from falconmq.service.observation.event_texts import KINDS, encode_notice
from falconmq.service.observation.live import SUBSCRIBERS_MAX, Wanted
from falconmq.service.observation.sampling import INTERVAL_SECONDS

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_STREAM: Final = "text/event-stream"
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {_STREAM: {"schema": {"type": "string"}}}}},
)
async def get_events(
    control: Given,
    queue: Annotated[
        str | None, Query(description="Only of this queue: a path or format name.")
    ] = None,
    kind: Annotated[
        list[str] | None, Query(description="Only these: ARRIVED, RECEIVED, DEAD_LETTERED, ...")
    ] = None,
    message: Annotated[str | None, Query(description="Only of the message with this id.")] = None,
    after: Annotated[
        int | None, Query(ge=0, description="Begin behind the event with this number.")
    ] = None,
    run: Annotated[
        UUID | None, Query(description="The run_id in which `after` was seen, if it is known.")
    ] = None,
    status: Annotated[
        bool, Query(description="Tell every two seconds how things stand, as `event: status`.")
    ] = False,
    last_event_id: Annotated[int | None, Header(ge=0, description="As `after`.")] = None,
) -> StreamingResponse:
    """What happens to messages, as server-sent events, until the caller goes away.

    `event` is the kind, `id` the number, `data` JSON. The first event is `start` with the run_id
    and the number of the newest event. `gap` says which numbers were left out: they are too long
    ago, or the caller reads too slowly.
    """
    live = control.watch.live
    if live.readers >= SUBSCRIBERS_MAX:
        raise HTTPException(503, f"{SUBSCRIBERS_MAX} callers follow already")
    await ask_ahead(control.engine, queue or "")
    wanted = Wanted(_kinds(kind), _queue_number(control, queue), _message(message))
    begin = after if after is not None else last_event_id
    if run is not None and run != control.run_id and begin is not None:
        begin = 0  # numbers of another life: everything that is remembered is new
    content = _stream(control, wanted, begin, with_status=status)
    return StreamingResponse(content, media_type=_STREAM, headers=_HEADERS)


@router.get("/samples")
async def get_samples(
    control: Given,
    minutes: Annotated[float, Query(gt=0, le=60, description="How far back.")] = 60,
) -> dict[str, Any]:
    """The last hour in samples, the oldest first: totals, and rates a second."""
    sampler = control.watch.sampler
    return {
        "interval_seconds": INTERVAL_SECONDS,
        "now": sampler.latest(),
        "samples": sampler.since(60 * minutes),
    }


async def _stream(
    control: Control, wanted: Wanted, begin: int | None, *, with_status: bool
) -> AsyncIterator[bytes]:
    live = control.watch.live
    reader = live.open(wanted, with_status=with_status)
    try:
        yield encode_notice("start", {"run_id": str(control.run_id), "number": reader.seen})
        if begin is not None:
            if begin > reader.seen:  # of an earlier run, which counted further
                yield encode_notice("gap", {"from": begin + 1, "to": None})
                begin = 0
            async for chunk in live.past(reader, begin):
                yield chunk
        async for chunk in reader.chunks():
            yield chunk
    finally:
        live.close(reader)


def _kinds(names: list[str] | None) -> frozenset[EventKind] | None:
    if not names:
        return None
    words = [word for name in names for word in name.upper().replace("-", "_").split(",")]
    for word in words:
        if word not in KINDS:
            raise MessageError("kind", f"{word!r} is not known", hint=did_you_mean(word, KINDS))
    return frozenset(KINDS[word] for word in words)


def _message(text: str | None) -> tuple[bytes, int] | None:
    if text is None:
        return None
    identifier = MessageId.parse(text)
    return bytes(identifier[:16]), identifier.ordinal


def _queue_number(control: Control, name: str | None) -> int | None:
    if name is None:
        return None
    return control.engine.look(_find, parse_queue_name(name)).number


def _find(core: QueueManagerCore, name: PathName | FormatName) -> Queue:
    """A queue of ours, or the outgoing queue to one elsewhere; nothing is opened for it."""
    found = find_queue(core, name)
    if found is None and isinstance(name, PathName):
        name = resolved(core, name)
    if found is None and isinstance(name, SingleFormatName):
        found = core.outgoing.get(name)
    if found is None:
        raise QueueError(
            f"there is no queue {name}, and nothing waits for it",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="GET /api/v1/queues and /api/v1/outgoing list what there is",
        )
    return found
