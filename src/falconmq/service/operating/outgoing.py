"""Outgoing queues as operators read them: state, tries to connect, transactional streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import (
    ConnectionAttempt,
    OutgoingQueue,
    OutgoingTransferInfo,
    Queue,
)
from falconmq.manager.path_names import known_path
from falconmq.transport.session import Session
from falconmq.transport.situations import Situation, Whereabouts
from falconmq.wire.sequence_info import SequenceInfo


class Outgoing(Protocol):
    """What the transport does for an administrator; all of it runs inside a turn."""

    @property
    def sessions(self) -> list[Session]: ...
    def pause(self, queue: OutgoingQueue) -> None: ...
    def resume(self, queue: OutgoingQueue) -> None: ...
    def situation(self, queue: OutgoingQueue) -> Situation: ...
    def whereabouts(self, queue: OutgoingQueue, lookup_id: int) -> Whereabouts: ...


def outgoing_json(core: QueueManagerCore, transport: Outgoing | None) -> list[dict[str, Any]]:
    """All outgoing queues, as `schemas.OutgoingOut` describes one."""
    return [
        {
            **_outgoing(queue, Situation() if transport is None else transport.situation(queue)),
            "path_name": known_path(core, queue.destination),
        }
        for queue in core.queues.values()
        if isinstance(queue, OutgoingQueue)
    ]


def incoming_json(queue: Queue) -> list[dict[str, Any]]:
    """The transactional streams into a queue, as `schemas.IncomingStreamOut` describes one."""
    return [
        {
            "sender": str(info.sender),
            "format_name": info.format_name,
            "sequence_id": str(info.sequence_id),
            "sequence_number": info.sequence_number,
            "reject_count": info.reject_count,
            "last_access_time": _time(info.last_access_time),
        }
        for info in queue.incoming_transfers
    ]


def _outgoing(queue: OutgoingQueue, situation: Situation) -> dict[str, Any]:
    return {
        "number": queue.number,
        "destination": str(queue.destination),
        "state": queue.state.value,
        "next_hops": list(queue.next_hops or ()),
        "messages": len(queue.positions),
        "size_bytes": queue.total_bytes,
        "problem": situation.problem,
        "next_try_seconds": situation.next_try_seconds,
        "stream": _stream(queue.transfer_info) if situation.is_transactional else None,
        "connection_history": [_attempt(attempt) for attempt in queue.connection_history],
    }


def _attempt(attempt: ConnectionAttempt) -> dict[str, Any]:
    return {
        "time": _time(attempt.time),
        "status": attempt.status.value,
        "error": attempt.error.symbol,
        "addresses": list(attempt.addresses),
    }


def _stream(info: OutgoingTransferInfo) -> dict[str, Any]:
    return {
        "first_not_acknowledged": _sequence(info.first_non_ack),
        "last_not_acknowledged": _sequence(info.last_non_ack),
        "last_acknowledged": _sequence(info.last_ack),
        "next": _sequence(info.next_sequence),
        "not_acknowledged": info.no_ack_count,
        "not_read": info.no_read_count,
        "last_ack_count": info.last_ack_count,
        "last_ack_time": _time(info.last_ack_time),
        "resend_count": info.resend_count,
        "resend_interval_seconds": info.resend_interval_seconds,
        "resend_time": _time(info.resend_time),
    }


def _sequence(place: SequenceInfo | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"id": str(place.seq_id), "number": place.seq_no, "previous": place.prev_no}


def _time(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None
