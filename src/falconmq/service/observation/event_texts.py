"""Events of messages in words, for JSON answers and live views."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from falconmq.manager.events import EventKind, MessageEvent
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.message import MessageId
from falconmq.wire.message_class import MessageClass
from falconmq.wire.tx_sequence_id import message_identifier

_CLASSES: Final[dict[int, str]] = {int(member): member.name for member in MessageClass}


def event_json(event: MessageEvent) -> dict[str, Any]:
    """One event; `schemas` says how values are written. None where there is nothing to say."""
    is_named = event.message_id or any(event.source)
    return {
        "number": event.number,
        "time": datetime.fromtimestamp(event.time, UTC).isoformat(),
        "kind": event.kind.name,
        "message_id": message_id_text(event.source, event.message_id) if is_named else None,
        "queue": None if event.queue is None else queue_text(event.queue),
        "lookup_id": str(event.lookup_id) if event.lookup_id else None,
        "size": event.size,
        "reason": class_text(event.reason) if event.reason else None,
        "detail": event.detail,
    }


def encode_event(event: MessageEvent) -> bytes:
    """One event as a server-sent event; its number is what `Last-Event-ID` says later."""
    return _encode(event.kind.name, event_json(event), f"id: {event.number}\n")


def encode_notice(name: str, value: dict[str, Any]) -> bytes:
    """A server-sent event that is about no message: it has no number."""
    return _encode(name, value, "")


def _encode(name: str, value: dict[str, Any], head: str) -> bytes:
    data = json.dumps(value, separators=(",", ":"))  # ASCII, and never a line break
    return f"{head}event: {name}\ndata: {data}\n\n".encode("ascii")


def message_id_text(source: bytes, ordinal: int) -> str:
    r"""`{GUID}\number`, as people see it."""
    return str(MessageId(message_identifier(source, ordinal)))


def queue_text(queue: Queue) -> str:
    """The path name of a queue of ours; for an outgoing queue where it leads."""
    if isinstance(queue, OutgoingQueue):
        return str(queue.destination)
    return str(queue.path_name.with_computer("."))


def class_text(message_class: int) -> str:
    """The name of a message class; the number if it has none."""
    return _CLASSES.get(message_class) or f"{message_class:#06x}"


def manager_text(source: bytes) -> str:
    return str(UUID(bytes_le=source))


KINDS: Final[dict[str, EventKind]] = {kind.name: kind for kind in EventKind}
