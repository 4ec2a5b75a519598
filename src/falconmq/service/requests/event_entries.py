"""Events of the stored log in words: what an entry says as JSON, the same as its Arrow columns."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any, Final

from falconmq.manager.event_store import NAMED, ORDERED, TRACED, StoredEvent
from falconmq.manager.events import EventKind
from falconmq.service.observation.event_texts import class_text

_NAMES: Final = {int(kind): kind.name.lower() for kind in EventKind}
KIND_NAMES: Final = tuple(_NAMES.get(number, str(number)) for number in range(256))


def entry_json(
    event: StoredEvent, *, manager: str, computer: str, packets: bool = False
) -> dict[str, Any]:
    """One entry; null where there is nothing to say."""
    record = event.record
    is_ordered = bool(record.flags & ORDERED)
    packet = event.packet if packets else None
    return {
        "number": event.number,
        "at": _time(record.at / 1_000_000),
        "kind": KIND_NAMES[record.kind],
        "manager": manager,
        "computer": computer,
        "message_id": f"{event.source}\\{record.message_id}" if record.flags & NAMED else None,
        "queue": event.queue,
        "lookup_id": str(record.lookup_id) if record.lookup_id else None,
        "arrival_number": record.arrival_number or None,
        "size": record.size,
        "reason": class_text(record.reason) if record.reason else None,
        "detail": event.detail,
        "sent_at": _time(record.sent_time) if record.sent_time else None,
        "sequence_id": str(record.sequence_id) if is_ordered else None,
        "sequence_number": record.sequence_number if is_ordered else None,
        "previous_number": record.previous_number if is_ordered else None,
        "destination": event.destination,
        "trace": bool(record.flags & TRACED),
        "packet": None if packet is None else b64encode(packet).decode("ascii"),
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
