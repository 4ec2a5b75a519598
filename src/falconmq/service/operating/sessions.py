"""Sessions as operators read them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.service.operating.outgoing import Outgoing
from falconmq.transport.session import Session


def sessions_json(core: QueueManagerCore, transport: Outgoing | None) -> list[dict[str, Any]]:
    """Inside a turn."""
    now = core.clock.monotonic()
    sessions = [] if transport is None else transport.sessions
    return [session_json(session, now) for session in sessions]


def session_json(session: Session, now: float) -> dict[str, Any]:
    return {
        "address": session.remote_address,
        "queue_manager": session.remote_guid and str(UUID(bytes_le=session.remote_guid)),
        "state": session.state.name,
        "is_initiator": session.is_initiator,
        "is_direct": session.is_direct,
        "messages_sent": session.messages_sent,
        "messages_received": session.messages_received,
        "unacknowledged": session.unacked,
        "bytes_sent": session.bytes_sent,
        "bytes_received": session.bytes_received,
        "open_seconds": _age(session.opened_at, now),
        "acknowledged_seconds": _age(session.acknowledged_at, now),
    }


def _age(moment: float | None, now: float) -> float | None:
    return None if moment is None else round(max(0.0, now - moment), 1)
