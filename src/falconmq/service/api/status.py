"""The queue manager as a whole."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends

from falconmq.manager.core import QueueManagerCore
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.views import all_queues, queue_json
from falconmq.service.file_modes import Finding, find
from falconmq.service.operating.outgoing import outgoing_json
from falconmq.store import Store

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
        "files": [finding.to_json() for finding in _findings(control)],
        **control.status(),
    }


def _findings(control: Control) -> list[Finding]:
    """What others may do with the files of the service, and should not be able to."""
    return [] if control.configuration is None else find(control.configuration)


def _manager_json(control: Control) -> dict[str, Any]:
    return {"run_id": str(control.run_id), **control.engine.look(_manager, control.engine.store)}


def _manager(core: QueueManagerCore, store: Store) -> dict[str, Any]:
    """What `QueueManager.status` shows, without the queues: of ten thousand they take a second."""
    statistics = store.statistics()
    return {
        "id": str(core.identifier),
        "computer_name": core.settings.computer_name,
        "hardened": core.settings.hardened_security,
        "path": statistics.path,
        "engine": statistics.engine,
        "durability": statistics.durability.name,
        "used_bytes": statistics.used_bytes,
        "reusable_bytes": statistics.reusable_bytes,
        "file_bytes": statistics.file_bytes,
        "limit_bytes": statistics.limit_bytes,
        "commits": statistics.commits,
        "messages": sum(len(queue.positions) for queue in core.queues.values()),
        "message_bytes": core.used_bytes,
        "quota_kilobytes": core.settings.quota_kilobytes,
        "transactions": len(core.transactions),
    }
