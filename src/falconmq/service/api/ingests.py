"""Ingests: batches of messages from many writers, each sent exactly once.

    POST   /ingests/{key}/{batch}/stages            hand in a part of a batch, as packets
    POST   /ingests/{key}/{batch}/stages/{stage}    more of it
    POST   /ingests/{key}/{batch}/commit            send all parts, or find that it was done
    POST   /ingests/{key}/{batch}/abort             drop some
    GET    /ingests                                 which keys there are, and how far
    GET    /ingests/{key}                           DELETE forgets it

`requests.ingests` tells how to think about it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request

from falconmq.client.ingests import STAGE_SECONDS
from falconmq.service import ingest_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.access.roles import check
from falconmq.service.api.context import Given
from falconmq.service.api.messages import PACKETS, packets_of
from falconmq.service.requests.ingest_records import Record
from falconmq.service.schemas import LIFETIME_MAX

router: Final = APIRouter()
_SEND: Final = [Depends(require(Role.SEND))]
_LOOK: Final = [Depends(require(Role.READ, Role.SEND))]
_MANAGE: Final = [Depends(require(Role.MANAGE))]
_BODY: Final[dict[str, Any]] = {"requestBody": {"content": PACKETS, "required": False}}

Key = Annotated[
    str, Path(min_length=1, max_length=schemas.KEY_MAX, description="Who sends the batches.")
]
Batch = Annotated[int, Path(ge=0, le=schemas.BATCH_MAX, description="Its number: they grow.")]


@router.post(
    "/ingests/{key:path}/{batch}/stages",
    response_model=schemas.StageOut,
    status_code=HTTPStatus.CREATED,
    openapi_extra=_BODY,
    dependencies=_SEND,
)
async def open_stage(
    control: Given,
    request: Request,
    key: Key,
    batch: Batch,
    queue: Annotated[str, Query(description="Where its messages go.")],
    stage: Annotated[
        UUID | None, Query(description="An id for it: then the request may come twice.")
    ] = None,
    seconds: Annotated[
        float, Query(ge=1, le=LIFETIME_MAX, description="Without a request until it is dropped.")
    ] = STAGE_SECONDS,
    keep_ids: Annotated[
        bool,
        Query(
            description="The packets were sent before, and keep SourceQueueManager, MessageID and "
            "SentTime; needs the role manage and a queue of this queue manager."
        ),
    ] = False,
    partition: Annotated[  # noqa: ARG001  # for the logs of proxies, and for people
        int, Query(ge=0, description="Which part of the batch it is; only for people.")
    ] = 0,
) -> dict[str, Any]:
    """Hand in a part of a batch, as MSMQ packets, or open it with none.

    Nothing is sent before the commit. A part that nobody commits is dropped.
    """
    if keep_ids:
        check(request.scope, Role.MANAGE)
    body = await packets_of(request)
    return await control.ingests.stage(
        key, batch, stage, queue, body, seconds=seconds, keep_ids=keep_ids
    )


@router.post(
    "/ingests/{key:path}/{batch}/stages/{stage}",
    response_model=schemas.StageOut,
    openapi_extra=_BODY,
    dependencies=_SEND,
)
async def add_to_stage(
    control: Given,
    request: Request,
    key: Key,
    batch: Batch,
    stage: UUID,
    sequence: Annotated[
        int, Query(ge=0, description="The request that made the stage was 0, the next one is 1.")
    ],
) -> dict[str, Any]:
    """More packets of a stage, in order. A number that was there before is ignored."""
    body = await packets_of(request)
    return await control.ingests.more(key, batch, stage, sequence, body)


@router.post(
    "/ingests/{key:path}/{batch}/commit",
    response_model=schemas.CommitOut,
    dependencies=_SEND,
)
async def commit(
    control: Given, key: Key, batch: Batch, given: schemas.StageList
) -> dict[str, Any]:
    """Send these stages, all or nothing; durable when the answer comes.

    If this batch or a later one of the key is done, nothing is sent: `repeated`. Other stages of
    the batch are dropped. 409 STALE_HANDLE if one is not known: then nothing is sent.
    """
    return await control.ingests.commit(key, batch, given.stages)


@router.post(
    "/ingests/{key:path}/{batch}/abort",
    status_code=HTTPStatus.NO_CONTENT,
    dependencies=_SEND,
)
async def abort(control: Given, key: Key, batch: Batch, given: schemas.StageList) -> None:
    """Drop stages; those that are not known are no error."""
    control.ingests.abort(key, batch, given.stages)


@router.get("/ingests", response_model=schemas.IngestList, dependencies=_LOOK)
async def get_ingests(control: Given) -> dict[str, Any]:
    """The keys that are remembered, and what is staged."""
    stages = control.ingests.stages
    return {
        "ingests": [_view(record.key, record) for record in control.ingests.records.all()],
        "staged": {"stages": len(stages), "bytes": stages.bytes, "bytes_max": stages.bytes_max},
    }


@router.get("/ingests/{key:path}", response_model=schemas.IngestOut, dependencies=_LOOK)
async def get_ingest(control: Given, key: Key) -> dict[str, Any]:
    """How far a key is; one that nobody knows has done nothing."""
    return _view(key, control.ingests.records.get(key))


@router.delete("/ingests/{key:path}", status_code=HTTPStatus.NO_CONTENT, dependencies=_MANAGE)
async def forget_ingest(control: Given, key: Key) -> None:
    """Forget what a key has done: its batches may be sent again."""
    await control.ingests.forget(key)


def _view(key: str, record: Record | None) -> dict[str, Any]:
    return {
        "key": key,
        "last_batch": None if record is None else record.batch,
        "count": 0 if record is None else record.count,
        "updated_at": None if record is None else record.moment,
    }
