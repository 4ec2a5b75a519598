"""Queues as JSON, for every handler that shows one."""

from __future__ import annotations

from typing import Any

from falconmq import aio
from falconmq.embedded.actions import local
from falconmq.manager.model import UNLIMITED
from falconmq.service.operating.outgoing import incoming_json
from falconmq.service.requests.messages import iso_time


def all_queues(manager: aio.QueueManager) -> list[aio.Queue]:
    system = [manager.dead_letter, manager.transactional_dead_letter, manager.journal]
    return [*manager.queues(), *system]


def queue_json(queue: aio.Queue) -> dict[str, Any]:
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
        "waiting_readers": len(local(queue.opened).waiting),
        "incoming_streams": incoming_json(local(queue.opened)),
    }


def _limit(kilobytes: int) -> int | None:
    return None if kilobytes == UNLIMITED else kilobytes
