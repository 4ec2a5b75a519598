"""Messages on their way to other queue managers."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue
from falconmq.service import schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.outgoing import outgoing_json

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
