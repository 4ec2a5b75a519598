"""What a queue manager knew of its directory, in its store: so that it starts without it.

The rows of its own object, its enterprise, and the map of sites, links and queue managers, as they
were last read. A row may be a part of an object: only what was asked for is kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from falconmq.directory.records import exact_row, object_key, row_of_exact
from falconmq.directory.tables import TABLES, table_of
from falconmq.manager.directory_objects import Row
from falconmq.store.interface import Store, WriteBatch

TABLE: Final = "directory_memory"
_TIME: Final = b"\0time"  # no type has the code 0
_SAID: Final = b"\0said"
_FIRST: Final = bytes((1,))  # from here on there are rows

KnownRow = tuple[str, Row]
"""The name of a type, and a row of it."""


class DirectoryMemory:
    """Rows of a directory that is elsewhere. Any thread may call it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writing = threading.Lock()

    def rows(self) -> list[KnownRow]:
        """Everything that is known."""
        by_code = {table.code: table for table in TABLES.values()}
        found: list[KnownRow] = []
        for key, record in self._store.scan(TABLE, _FIRST):
            table = by_code[key[0]]
            found.append((table.type_name, row_of_exact(table, json.loads(record))))
        return found

    def kept_at(self) -> float:
        """When the directory said so, in seconds since 1970; 0 if it never did."""
        record = self._store.get(TABLE, _TIME)
        return 0.0 if record is None else float(json.loads(record))

    def keep(self, rows: Iterable[KnownRow], at: float = 0.0) -> None:
        """Know these rows, which were read at that time, and no others; durable when it returns."""
        with self._writing:
            wanted: dict[bytes, bytes] = {}
            for type_name, row in rows:
                table = table_of(type_name)
                identifier = row["identifier"]
                assert isinstance(identifier, UUID)
                record = json.dumps(exact_row(table, row), separators=(",", ":")).encode()
                wanted[object_key(table, identifier)] = record
            batch = WriteBatch()
            for key, record in self._store.scan(TABLE, _FIRST):
                if key not in wanted:
                    batch.delete(TABLE, key)
                elif wanted[key] == record:
                    del wanted[key]
            for key, record in wanted.items():
                batch.put(TABLE, key, record)
            self._put(batch, _TIME, at)
            if batch.operations:
                self._store.commit([batch])

    def said(self) -> dict[str, object]:
        """What the configuration had to say of this queue manager when it was last registered."""
        record = self._store.get(TABLE, _SAID)
        found: dict[str, object] = {} if record is None else json.loads(record)
        return found

    def say(self, values: Mapping[str, object]) -> None:
        with self._writing:
            batch = WriteBatch()
            self._put(batch, _SAID, dict(values))
            if batch.operations:
                self._store.commit([batch])

    def clear(self) -> None:
        """Another directory is joined, or none."""
        self.keep(())
        self.say({})

    def _put(self, batch: WriteBatch, key: bytes, value: object) -> None:
        record = json.dumps(value, sort_keys=True).encode()
        if self._store.get(TABLE, key) != record:
            batch.put(TABLE, key, record)
