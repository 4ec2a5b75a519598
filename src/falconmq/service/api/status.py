"""The queue manager as a whole."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.views import all_queues, queue_json
from falconmq.service.outgoing import outgoing_json

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])


@router.get("/manager")
async def get_manager(control: Given) -> dict[str, Any]:
    """Identity, space and messages at this moment, without the queues."""
    return _manager_json(control)


@router.get("/status")
async def get_status(control: Given) -> dict[str, Any]:
    """Identity, space, queues and outgoing queues at this moment, and what the service adds."""
    return {
        **_manager_json(control),
        "queues": [queue_json(queue) for queue in all_queues(control.manager)],
        "outgoing": control.engine.look(outgoing_json, control.transport),
        **control.status(),
    }


def _manager_json(control: Control) -> dict[str, Any]:
    status = control.manager.status()
    return {
        "id": str(status.id),
        "run_id": str(control.run_id),
        "computer_name": status.computer_name,
        "path": status.path,
        "engine": status.engine,
        "durability": status.durability.name,
        "used_bytes": status.used_bytes,
        "reusable_bytes": status.reusable_bytes,
        "file_bytes": status.file_bytes,
        "limit_bytes": status.limit_bytes,
        "commits": status.commits,
        "messages": status.messages,
        "message_bytes": status.message_bytes,
        "quota_kilobytes": status.quota_kilobytes,
        "transactions": status.transactions,
    }
