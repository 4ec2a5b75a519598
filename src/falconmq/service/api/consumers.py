"""Consumers: those who read queues by arrival numbers and remove what they are done with.

GET    /consumers                      all of them, and how far behind they are
POST   /consumers/{name}/claim         have queues for oneself, with a fence
POST   /consumers/{name}/acknowledge   all below a number is done: remove it
POST   /consumers/{name}/renew         and /release
DELETE /consumers/{name}               forget it
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.service import reading_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given

router: Final = APIRouter()
_RECEIVE: Final = [Depends(require(Role.RECEIVE))]


@router.get(
    "/consumers", response_model=schemas.ConsumerList, dependencies=[Depends(require(Role.READ))]
)
async def get_consumers(control: Given) -> dict[str, Any]:
    """All of them, in the order of their names."""
    return {"consumers": control.consumers.all()}


@router.post("/consumers/{name}/claim", response_model=schemas.ClaimAnswer, dependencies=_RECEIVE)
async def claim(control: Given, name: str, given: schemas.ClaimRequest) -> dict[str, Any]:
    """Have queues for oneself: nobody else may receive from them while the lease lives.

    A former run of the same consumer is over with that. 409 if another consumer has one of the
    queues, or somebody has it open to receive.
    """
    return await control.consumers.claim(name, given.queues, given.seconds)


@router.post(
    "/consumers/{name}/acknowledge",
    response_model=schemas.AcknowledgeAnswer,
    dependencies=_RECEIVE,
)
async def acknowledge(
    control: Given, name: str, given: schemas.AcknowledgeRequest
) -> dict[str, Any]:
    """Remove every message below a number, as received; durable when the answer comes.

    To say it again is no error. 409 STALE_HANDLE if another run took over. A lease that was over is
    taken again if nobody else has the queues.
    """
    return await control.consumers.acknowledge(name, given.fence, given.queues, given.seconds)


@router.post("/consumers/{name}/renew", response_model=schemas.RenewAnswer, dependencies=_RECEIVE)
async def renew(control: Given, name: str, given: schemas.RenewRequest) -> dict[str, Any]:
    """Keep the queues longer, from now on."""
    return await control.consumers.renew(name, given.fence, given.seconds)


@router.post("/consumers/{name}/release", status_code=HTTPStatus.NO_CONTENT, dependencies=_RECEIVE)
async def release(control: Given, name: str, given: schemas.ReleaseRequest) -> None:
    """Let go of the queues; how far the consumer is stays."""
    await control.consumers.release(name, given.fence)


@router.delete(
    "/consumers/{name}",
    status_code=HTTPStatus.NO_CONTENT,
    dependencies=[Depends(require(Role.MANAGE))],
)
async def delete(control: Given, name: str) -> None:
    """Forget it, and how far it is in its queues. Their messages stay."""
    await control.consumers.forget(name)
