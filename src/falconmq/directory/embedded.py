"""The directory that needs nobody: in the store of a queue manager.

One record for each object under type and GUID; beside it an index, so that a path name, a computer
name or a site leads to its objects without looking at any other. Every change is one commit,
durable when the call returns; `create_many` registers any number of objects in one.

Where several servers keep copies of one directory, `replica` stands before every change: it numbers
it, or hands it to the server that decides (`directory.replication`).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final, Protocol
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.base import DirectoryBase, not_found
from falconmq.directory.object_reader import ObjectReader
from falconmq.directory.object_writer import ObjectWriter
from falconmq.directory.schema import ObjectTable
from falconmq.directory.workspace import Workspace
from falconmq.errors import FalconMQError
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import PathName
from falconmq.store.interface import Store, StoreReader

_DERIVED: Final = frozenset({"queue_manager_identifier", "qualified_path_name"})


class Replica(Protocol):
    """What makes the changes of a directory that has copies elsewhere; it raises what it refuses.

    The rows are checked already. None of its methods is called while `changing` is held.
    """

    def create(self, table: ObjectTable, row: dict[str, object]) -> UUID: ...

    def write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None: ...

    def delete(self, table: ObjectTable, identifier: UUID) -> None: ...


class EmbeddedDirectory(DirectoryBase):
    """Directory objects in a store. Any thread may call it; changes happen one at a time."""

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        super().__init__()
        self.replica: Replica | None = None
        self._store = store
        self._clock = clock
        self._random = random
        self._changing = threading.Lock()
        self._writer: ObjectWriter | None = None  # of whoever registers many objects now
        self._objects = ObjectReader(store)

    @contextmanager
    def changing(self) -> Iterator[ObjectWriter]:
        """Make changes that become true together when the block ends, or not at all."""
        with self._changing:
            writer = ObjectWriter(Workspace(self._store), self._clock, self._random)
            yield writer
            writer.workspace.commit()

    @contextmanager
    def reading(self) -> Iterator[tuple[ObjectReader, StoreReader]]:
        """All objects as they are at one moment, and the tables beside them."""
        with self._store.snapshot() as snapshot:
            yield ObjectReader(snapshot), snapshot

    def create_many(
        self, type_name: str, rows: Iterable[Row]
    ) -> list[tuple[DirectoryResult, UUID]]:
        """All or none of the good ones is kept: they are one commit."""
        if self.replica is not None:
            return super().create_many(type_name, rows)
        results: list[tuple[DirectoryResult, UUID]] = []
        try:
            with self.changing() as self._writer:
                results = [self._create_one(type_name, row) for row in rows]
        except FalconMQError as error:
            result = self._refused(error)
            return [(result, NULL_UUID)] * len(results)
        return results

    def find_servers(self, domain_name: str) -> Sequence[str]:  # noqa: ARG002 - there is one
        """The queue managers that serve a directory to others."""
        table = tables.table_of(tables.QUEUE_MANAGER)
        rows = self._find(table, equals("directory_server", value=True), None)
        return [str(row["computer_name"]) for row in rows]

    def close(self) -> None:
        """Nothing to give back: the store belongs to whoever opened it."""

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        if self.replica is not None:
            return self.replica.create(table, row)
        assert self._writer is not None  # only create_many comes here
        return self._writer.create(table, row)

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        if self.replica is not None:
            self.replica.write(table, identifier, changes)
            return
        with self.changing() as writer:
            writer.write(table, identifier, changes)

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        if self.replica is not None:
            self.replica.delete(table, identifier)
            return
        with self.changing() as writer:
            writer.delete(table, identifier)

    # Finding

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        return self._find_after(table, filters, attributes, None)

    def _find_after(
        self,
        table: ObjectTable,
        filters: Filters,
        attributes: Collection[str] | None,
        after: UUID | None,
    ) -> Iterator[Row]:
        wants_derived = attributes is None or not _DERIVED.isdisjoint(attributes)
        owners: dict[object, Row | None] = {}
        for row in self._objects.candidates(table, filters, after):
            if table.matches(row, filters):
                if wants_derived and table.type_name == tables.QUEUE:
                    self._derive(row, owners)
                yield row

    def _derive(self, row: dict[str, object], owners: dict[object, Row | None]) -> None:
        """What a queue has from its queue manager; `owners` are those that were found before."""
        computer = row["computer_name"]
        if computer not in owners:
            machines = tables.table_of(tables.QUEUE_MANAGER)
            owners[computer] = self._objects.first(machines, "computer_name", computer)
        machine = owners[computer]
        if machine is not None:
            row["queue_manager_identifier"] = machine["identifier"]
            qualified = str(machine["qualified_computer_name"] or machine["computer_name"])
            path = PathName.parse(str(row["path_name"]))
            row["qualified_path_name"] = str(path.with_computer(qualified)).lower()

    def at(self, place: str) -> tuple[ObjectTable, Row]:
        key = self._objects.key_at(place)
        for table in tables.TABLES.values():
            if key is not None and table.code == key[0]:
                row = self._objects.get(table, UUID(bytes=key[1:]))
                if row is not None:
                    return table, row
        raise not_found("object", equals("full_path", place))
