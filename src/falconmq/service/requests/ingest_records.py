"""What is remembered of ingests: the last batch that each key has done, in the store.

The record is written in the same commit as the messages of the batch, so it is true if and only if
they were sent. It is read from the store whenever it is asked for: nothing is loaded at a start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from falconmq.manager.core import QueueManagerCore
from falconmq.store.interface import KEY_BYTES_MAX, StoreReader

TABLE: Final = "ingests"
KEYS: Final = 10_000  # that are remembered; the one that was used longest ago is forgotten first
_HASHED: Final = b"\xff"  # begins no text in UTF-8


@dataclass(frozen=True, slots=True)
class Record:
    """The last batch of a key."""

    key: str
    batch: int
    at: float  # seconds since 1970
    count: int  # of its messages

    @property
    def moment(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")

    def encode(self) -> bytes:
        fields = {"key": self.key, "batch": self.batch, "at": self.at, "count": self.count}
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, value: bytes) -> Record:
        fields: dict[str, Any] = json.loads(value)
        return cls(fields["key"], fields["batch"], fields["at"], fields["count"])


class Records:
    """The records of all keys. What changes them runs in a turn of the engine."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store
        # The keys in the order of their use; read when it is first needed, and after a failure.
        self._order: dict[bytes, None] | None = None

    def get(self, key: str) -> Record | None:
        value = self._store.get(TABLE, _stored_key(key))
        return None if value is None else Record.decode(value)

    def all(self) -> list[Record]:
        """The one that was used last comes first."""
        return sorted(self._scan(), key=lambda record: record.at, reverse=True)

    def put(self, core: QueueManagerCore, record: Record) -> None:
        """Write a record, and forget the oldest one if there are too many."""
        order, key = self._ordered(), _stored_key(record.key)
        order.pop(key, None)
        order[key] = None
        core.batch.put(TABLE, key, record.encode())
        while len(order) > KEYS:
            oldest = next(iter(order))
            del order[oldest]
            core.batch.delete(TABLE, oldest)

    def delete(self, core: QueueManagerCore, key: str) -> None:
        stored = _stored_key(key)
        self._ordered().pop(stored, None)
        core.batch.delete(TABLE, stored)

    def read_again(self) -> None:
        """A write failed: the store knows which keys there are."""
        self._order = None

    def _ordered(self) -> dict[bytes, None]:
        if self._order is None:
            found = sorted(self._scan(), key=lambda record: record.at)
            self._order = {_stored_key(record.key): None for record in found}
        return self._order

    def _scan(self) -> Iterator[Record]:
        return (Record.decode(value) for _, value in self._store.scan(TABLE))


def _stored_key(key: str) -> bytes:
    text = key.encode()
    return text if len(text) <= KEY_BYTES_MAX else _HASHED + blake2b(text).digest()
