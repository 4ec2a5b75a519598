"""What the store keeps of consumers: one record of JSON for each, under its name.

A queue is named by its number, which no other queue ever gets: the place of a consumer in a queue
that was deleted is forgotten with it, and a new queue of the same name begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from falconmq.errors import MqStatus, QueueError, StoreError
from falconmq.manager.core import QueueManagerCore
from falconmq.store.interface import KEY_BYTES_MAX

TABLE: Final = "consumers"
VERSION: Final = 1
NAME_MAX: Final = 200


@dataclass(slots=True)
class Place:
    """How far a consumer is in a queue."""

    next: int = 0  # all arrival numbers below were acknowledged
    updated: float | None = None  # seconds of the calendar; None: never


@dataclass(slots=True)
class Record:
    """A consumer as the store has it."""

    fence: int = 0
    claimed: list[int] = field(default_factory=list)  # the queues of the newest claim
    places: dict[int, Place] = field(default_factory=dict)  # by queue number


def check_name(name: str) -> None:
    """Refuse what is no name of a consumer."""
    is_short = 0 < len(name) <= NAME_MAX and len(name.encode()) <= KEY_BYTES_MAX
    if not is_short or not name.isprintable():
        raise QueueError(
            f"{name!r} is no name of a consumer",
            status=MqStatus.INVALID_PARAMETER,
            hint=f"1 to {NAME_MAX} printable characters: nightly-archive",
        )


def read_record(core: QueueManagerCore, name: str) -> Record | None:
    """What is durable of a consumer; None if there is none."""
    stored = core.store.get(TABLE, name.encode())
    return None if stored is None else _decode(core, name, stored)


def all_records(core: QueueManagerCore) -> Iterator[tuple[str, Record]]:
    """All consumers, in the order of their names."""
    for key, stored in core.store.scan(TABLE):
        name = key.decode()
        yield name, _decode(core, name, stored)


def write_record(core: QueueManagerCore, name: str, record: Record) -> None:
    """Let the store have a consumer as it is now."""
    places = {
        str(number): {"next": place.next, "updated": place.updated}
        for number, place in record.places.items()
    }
    fields = {
        "version": VERSION,
        "fence": record.fence,
        "claimed": record.claimed,
        "places": places,
    }
    core.batch.put(TABLE, name.encode(), json.dumps(fields, separators=(",", ":")).encode())


def forget_record(core: QueueManagerCore, name: str) -> bool:
    """Take a consumer out of the store, even one that cannot be read; False if it is not there."""
    key = name.encode()
    if core.store.get(TABLE, key) is None:
        return False
    core.batch.delete(TABLE, key)
    return True


def _decode(core: QueueManagerCore, name: str, stored: bytes) -> Record:
    try:
        fields: dict[str, Any] = json.loads(stored)
        if fields["version"] != VERSION:
            raise ValueError(f"version {fields['version']}, this FalconMQ writes {VERSION}")
        places = {
            int(number): Place(place["next"], place["updated"])
            for number, place in fields["places"].items()
            if int(number) in core.queues  # the others were deleted
        }
        claimed = [number for number in fields["claimed"] if number in core.queues]
        return Record(fields["fence"], claimed, places)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"the record of consumer {name} cannot be read: {error}",
            status=MqStatus.MESSAGE_STORAGE_FAILED,
            hint=f"to forget it: falconmq consumer delete {name}",
        ) from error
