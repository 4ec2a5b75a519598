"""Directory objects as a store has them: by GUID, by what is indexed, by their place.

Whatever is found comes in the order of GUIDs, which stand at the end of all keys; so a search can
begin behind one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.records import (
    INDEX,
    INDEXED,
    OBJECTS,
    PLACES,
    decode_row,
    digest,
    index_prefix,
    object_key,
    type_range,
)
from falconmq.directory.schema import ObjectTable
from falconmq.manager.directory_backend import FilterOperator, Filters
from falconmq.store.interface import StoreReader

_BEHIND: Final = b"\0"  # added to a key: the least one behind it


class ObjectReader:
    """Finds objects; `reader` is a store, or a workspace with changes on top of one."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def get(self, table: ObjectTable, identifier: UUID) -> dict[str, object] | None:
        key = object_key(table, identifier)
        record = self._reader.get(OBJECTS, key)
        return None if record is None else decode_row(table, key, record)

    def has(self, table: ObjectTable, identifier: UUID) -> bool:
        return self._reader.get(OBJECTS, object_key(table, identifier)) is not None

    def all(self, table: ObjectTable, after: UUID | None = None) -> Iterator[dict[str, object]]:
        start, stop = type_range(table)
        if after is not None:
            start = object_key(table, after) + _BEHIND
        for key, record in self._reader.scan(OBJECTS, start, stop):
            yield decode_row(table, key, record)

    def identifiers(self, table: ObjectTable) -> Iterator[UUID]:
        """The GUIDs of all objects of a type; nothing else is read."""
        start, stop = type_range(table)
        for key, _ in self._reader.scan(OBJECTS, start, stop):
            yield UUID(bytes=key[1:])

    def by_index(
        self, table: ObjectTable, name: str, value: object, after: UUID | None = None
    ) -> Iterator[dict[str, object]]:
        prefix = index_prefix(table, name, value)
        start = prefix if after is None else prefix + after.bytes + _BEHIND
        for key, _ in self._reader.scan(INDEX, start, prefix + b"\xff" * 17):
            row = self.get(table, UUID(bytes=key[len(prefix) :]))
            if row is not None:
                yield row

    def first(self, table: ObjectTable, name: str, value: object) -> dict[str, object] | None:
        return next(self.by_index(table, name, value), None)

    def enterprise(self) -> dict[str, object] | None:
        """There is one at most."""
        return next(self.all(tables.table_of(tables.ENTERPRISE)), None)

    def key_at(self, place: str) -> bytes | None:
        """The key of whatever stands at a place in the tree."""
        return self._reader.get(PLACES, digest("full_path", place))

    def candidates(
        self, table: ObjectTable, filters: Filters, after: UUID | None = None
    ) -> Iterator[dict[str, object]]:
        """Few rows, with all that can pass among them: by the best index that a filter names."""
        for expression in filters:
            if expression.operator is not FilterOperator.EQUALS:
                continue
            if expression.name == "identifier" and isinstance(expression.value, UUID):
                return self._one(table, expression.value, after)
            if expression.name == "full_path":
                key = self.key_at(str(expression.value))
                return self._one(table, UUID(bytes=key[1:]) if key else None, after)
            is_list = isinstance(expression.value, list)
            if expression.name in INDEXED[table.type_name] and not is_list:
                return self.by_index(table, expression.name, expression.value, after)
        return self.all(table, after)

    def _one(
        self, table: ObjectTable, identifier: UUID | None, after: UUID | None
    ) -> Iterator[dict[str, object]]:
        if identifier is not None and (after is None or identifier > after):
            row = self.get(table, identifier)
            if row is not None:
                yield row
