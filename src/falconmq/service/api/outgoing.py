"""Messages on their way to other queue managers."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.queues import purge_queue
from falconmq.service import schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.explaining_schemas import PurgeOutgoingAnswer
from falconmq.service.operating.outgoing import outgoing_json
from falconmq.service.requests.reading import durable

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_MANAGE: Final = [Depends(require(Role.MANAGE))]


@router.get("/outgoing", response_model=schemas.OutgoingList)
async def get_outgoing(control: Given) -> dict[str, Any]:
    """What is on its way to other queue managers, and how the last tries to connect went."""
    return {"outgoing": control.engine.look(outgoing_json, control.transport)}


@router.post("/outgoing/{number}/pause", status_code=HTTPStatus.NO_CONTENT, dependencies=_MANAGE)
async def pause(control: Given, number: int) -> None:
    """Send nothing more from this outgoing queue until it is resumed; messages wait."""
    control.engine.run(_with_outgoing, number, control.carrier.pause)


@router.post("/outgoing/{number}/resume", status_code=HTTPStatus.NO_CONTENT, dependencies=_MANAGE)
async def resume(control: Given, number: int) -> None:
    """Send again."""
    control.engine.run(_with_outgoing, number, control.carrier.resume)


@router.delete(
    "/outgoing/{number}/messages", response_model=PurgeOutgoingAnswer, dependencies=_MANAGE
)
async def purge(control: Given, number: int) -> dict[str, int]:
    """Give up what waits; dead letters are kept of messages whose senders asked for them."""
    engine = control.engine
    purged, commit = engine.run(_purge, number)
    if commit is not None:
        await durable(engine, commit)
    return {"purged": purged}


def _purge(core: QueueManagerCore, number: int) -> int:
    return purge_queue(core, _outgoing(core, number))


def _with_outgoing(
    core: QueueManagerCore, number: int, action: Callable[[OutgoingQueue], None]
) -> None:
    action(_outgoing(core, number))


def _outgoing(core: QueueManagerCore, number: int) -> OutgoingQueue:
    queue = core.queues.get(number)
    if not isinstance(queue, OutgoingQueue):
        raise QueueError(
            f"there is no outgoing queue {number}",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="GET /api/v1/outgoing lists them with their numbers",
        )
    return queue
