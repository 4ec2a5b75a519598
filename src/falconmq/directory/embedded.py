"""The directory that needs nobody: in the store of a queue manager.

One record for each object under type and GUID; beside it an index, so that a path name, a computer
name or a site leads to its objects without looking at any other. Every change is one commit,
durable when the call returns; `create_many` registers any number of objects in one.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from random import Random
from typing import Final
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.base import DirectoryBase, DirectoryRefusedError, already_exists, not_found
from falconmq.directory.records import (
    INDEX,
    INDEXED,
    OBJECTS,
    PLACES,
    decode_row,
    digest,
    encode_row,
    index_prefix,
    index_prefixes,
    object_key,
    type_range,
)
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.tree import Tree, public_path
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_backend import FilterOperator, Filters, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import (
    PathName,
)
from falconmq.store.interface import Store, WriteBatch
from falconmq.wire.sid import Sid

_ROLES: Final = ("routing_server", "directory_server", "supporting_server")
_DERIVED: Final = frozenset({"queue_manager_identifier", "qualified_path_name"})
_MACHINE_LISTS: Final = ("out_routing_server_identifiers", "in_routing_server_identifiers")


class EmbeddedDirectory(DirectoryBase):
    """Directory objects in a store. Any thread may call it; changes happen one at a time."""

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._random = random
        self._changing = threading.Lock()
        self._batch = WriteBatch()
        self._taken: set[bytes] = set()  # places and keys of the batch that is being filled
        self._known_tree: Tree | None = None

    def create_many(
        self, type_name: str, rows: Iterable[Row]
    ) -> list[tuple[DirectoryResult, UUID]]:
        """All or none of the good ones is kept: they are one commit."""
        with self._changing:
            self._batch, self._taken = WriteBatch(), set()
            results = [self._create_one(type_name, row) for row in rows]
            try:
                self._store.commit([self._batch])
            except FalconMQError as error:
                result = self._refused(error)
                return [(result, NULL_UUID)] * len(results)
        return results

    def computer_sid(self, computer_name: str) -> Sid | None:  # noqa: ARG002 - no accounts here
        return None

    def find_servers(self, domain_name: str) -> Sequence[str]:  # noqa: ARG002 - there is one
        """The queue managers that serve a directory to others."""
        table = tables.table_of(tables.QUEUE_MANAGER)
        rows = self._find(table, equals("directory_server", value=True), None)
        return [str(row["computer_name"]) for row in rows]

    def close(self) -> None:
        """Nothing to give back: the store belongs to whoever opened it."""

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        existing = self._prepare(table, row)
        if existing is not None:
            return existing
        now = int(self._clock.time())
        if row["identifier"] == NULL_UUID:
            row["identifier"] = UUID(int=self._random.getrandbits(128), version=4)
        row.update({name: now for name in ("create_time", "modify_time") if name in row})
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        key, place = object_key(table, identifier), row.get("full_path")
        if key in self._taken or self._store.get(OBJECTS, key) is not None:
            raise already_exists(table.type_name, identifier)
        if isinstance(place, str):
            place_key = digest("full_path", place)
            if place_key in self._taken or self._store.get(PLACES, place_key) is not None:
                raise already_exists(table.type_name, place)
            self._taken.add(place_key)
            self._batch.put(PLACES, place_key, key)
        self._taken.add(key)
        self._put(table, key, row)
        return identifier

    def _prepare(self, table: ObjectTable, row: dict[str, object]) -> UUID | None:
        """Give a new object its place; the GUID of a queue manager that is there already."""
        if table.type_name == tables.ENTERPRISE:
            self._check_no_enterprise()
            return None
        tree = self._tree()
        match table.type_name:
            case tables.QUEUE:
                self._prepare_queue(tree, row)
            case tables.QUEUE_MANAGER:
                computer = str(row["computer_name"])
                row["full_path"] = tree.queue_manager(computer)
                self._keep_known_machines(row, _MACHINE_LISTS)
                known = self._first(table, "computer_name", computer)
                return None if known is None else UUID(str(known["identifier"]))
            case tables.SITE:
                row["full_path"] = tree.site(str(row["name"]))
            case tables.ROUTING_LINK:
                self._prepare_link(tree, row)
            case tables.USER:
                sid = row["security_identifier"]
                assert isinstance(sid, bytes)
                row["full_path"] = tree.user(sid)
            case tables.DISTRIBUTION_LIST | tables.QUEUE_ALIAS:
                row["full_path"] = tree.recipient(str(row["name"]))
            case _:
                if self._first(table, "name", row["name"]) is not None:
                    raise already_exists(table.type_name, row["name"])
        return None

    def _prepare_queue(self, tree: Tree, row: dict[str, object]) -> None:
        path = public_path(str(row["path_name"]))
        machines = tables.table_of(tables.QUEUE_MANAGER)
        machine = self._first(machines, "computer_name", path.computer)
        if machine is None:
            raise not_found(tables.QUEUE_MANAGER, equals("computer_name", path.computer))
        row["path_name"] = str(path).lower()  # as a directory gives it back, guide 5.4
        row["computer_name"] = path.computer.lower()
        row["full_path"] = tree.queue(path.with_computer(str(machine["computer_name"])))
        row["directory_path"] = f"LDAP://{row['full_path']}"

    def _prepare_link(self, tree: Tree, row: dict[str, object]) -> None:
        sites = tables.table_of(tables.SITE)
        ends = []
        for name in ("site1_identifier", "site2_identifier"):
            identifier = row[name]
            assert isinstance(identifier, UUID)
            if self._get(sites, identifier) is None:
                problem = f"{name}: the directory has no site {identifier}"
                raise refusal(problem, MqStatus.ILLEGAL_PROPERTY_VALUE)
            ends.append(identifier)
        row["full_path"] = tree.routing_link(ends[0], ends[1])
        self._keep_known_machines(row, ("site_gate_identifiers",))

    def _keep_known_machines(self, row: dict[str, object], names: Iterable[str]) -> None:
        """A list of queue managers keeps those that the directory can read (guide 5.3)."""
        machines = tables.table_of(tables.QUEUE_MANAGER)
        for name in names:
            asked = row.get(name)
            if isinstance(asked, list):
                row[name] = [item for item in asked if self._get(machines, item) is not None]

    def _check_no_enterprise(self) -> None:
        table = tables.table_of(tables.ENTERPRISE)
        known = next(self._all(table), None)
        if known is not None:
            raise already_exists(table.type_name, known["name"])

    def _put(self, table: ObjectTable, key: bytes, row: Row) -> None:
        self._batch.put(OBJECTS, key, encode_row(table, row))
        for prefix in index_prefixes(table, row):
            self._batch.put(INDEX, prefix + key[1:], b"")

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        with self._changing:
            row = self._get(table, identifier)
            if row is None:
                raise not_found(table.type_name, equals("identifier", identifier))
            lists = ("site_gate_identifiers", *_MACHINE_LISTS)
            self._keep_known_machines(changes, [name for name in lists if name in changes])
            key, batch = object_key(table, identifier), WriteBatch()
            for prefix in index_prefixes(table, row):
                batch.delete(INDEX, prefix + key[1:])
            row.update(changes)
            if "modify_time" in row:
                row["modify_time"] = int(self._clock.time())
            self._batch = batch
            self._put(table, key, row)
            self._store.commit([batch])

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        with self._changing:
            row = self._get(table, identifier)
            if row is None:
                raise not_found(table.type_name, equals("identifier", identifier))
            self._check_unused(table, row)
            key, batch = object_key(table, identifier), WriteBatch()
            batch.delete(OBJECTS, key)
            for prefix in index_prefixes(table, row):
                batch.delete(INDEX, prefix + key[1:])
            if "full_path" in row:
                batch.delete(PLACES, digest("full_path", row["full_path"]))
            self._store.commit([batch])

    def _check_unused(self, table: ObjectTable, row: Row) -> None:
        """What others stand below stays, as in a tree (guide 5.6, 9)."""
        used = ""
        match table.type_name:
            case tables.ENTERPRISE:
                used = "an enterprise is deleted with its directory only"
            case tables.QUEUE_MANAGER:
                queues = tables.table_of(tables.QUEUE)
                if self._first(queues, "computer_name", row["computer_name"]) is not None:
                    used = f"queue manager {row['computer_name']} has queues"
            case tables.SITE:
                machines = tables.table_of(tables.QUEUE_MANAGER)
                members = self._by_index(machines, "site_identifiers", row["identifier"])
                if any(member[role] for member in members for role in _ROLES):
                    used = f"site {row['name']} has servers"
        if used:
            raise refusal(used, MqStatus.DS_ERROR, "delete those first")

    # Finding

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        wants_derived = attributes is None or not _DERIVED.isdisjoint(attributes)
        for row in self._candidates(table, filters):
            if table.matches(row, filters):
                if wants_derived and table.type_name == tables.QUEUE:
                    self._derive(row)
                yield row

    def _candidates(self, table: ObjectTable, filters: Filters) -> Iterator[dict[str, object]]:
        """Few rows, with all that can pass among them: by the best index that a filter names."""
        for expression in filters:
            if expression.operator is not FilterOperator.EQUALS:
                continue
            if expression.name == "identifier" and isinstance(expression.value, UUID):
                row = self._get(table, expression.value)
                return iter(() if row is None else (row,))
            if expression.name == "full_path":
                key = self._store.get(PLACES, digest("full_path", expression.value))
                row = self._get(table, UUID(bytes=key[1:])) if key else None
                return iter(() if row is None else (row,))
            is_list = isinstance(expression.value, list)
            if expression.name in INDEXED[table.type_name] and not is_list:
                return self._by_index(table, expression.name, expression.value)
        return self._all(table)

    def _all(self, table: ObjectTable) -> Iterator[dict[str, object]]:
        start, stop = type_range(table)
        for key, record in self._store.scan(OBJECTS, start, stop):
            yield decode_row(table, key, record)

    def _by_index(
        self, table: ObjectTable, name: str, value: object
    ) -> Iterator[dict[str, object]]:
        prefix = index_prefix(table, name, value)
        for key, _ in self._store.scan(INDEX, prefix, prefix + b"\xff" * 17):
            row = self._get(table, UUID(bytes=key[len(prefix) :]))
            if row is not None:
                yield row

    def _first(self, table: ObjectTable, name: str, value: object) -> dict[str, object] | None:
        return next(self._by_index(table, name, value), None)

    def _get(self, table: ObjectTable, identifier: UUID) -> dict[str, object] | None:
        key = object_key(table, identifier)
        record = self._store.get(OBJECTS, key)
        return None if record is None else decode_row(table, key, record)

    def _derive(self, row: dict[str, object]) -> None:
        """What a queue has from its queue manager."""
        machines = tables.table_of(tables.QUEUE_MANAGER)
        machine = self._first(machines, "computer_name", row["computer_name"])
        if machine is not None:
            row["queue_manager_identifier"] = machine["identifier"]
            qualified = str(machine["qualified_computer_name"] or machine["computer_name"])
            path = PathName.parse(str(row["path_name"]))
            row["qualified_path_name"] = str(path.with_computer(qualified)).lower()

    def _tree(self) -> Tree:
        """The tree of the enterprise; it never changes its name."""
        if self._known_tree is None:
            known = next(self._all(tables.table_of(tables.ENTERPRISE)), None)
            if known is None:
                raise DirectoryRefusedError(
                    DirectoryResult.OBJECT_NOT_FOUND,
                    "the directory is empty",
                    hint="it begins with its enterprise: create that first",
                )
            self._known_tree = Tree.of_domain(str(known["name"]))
        return self._known_tree

    def at(self, place: str) -> tuple[ObjectTable, Row]:
        key = self._store.get(PLACES, digest("full_path", place))
        for table in tables.TABLES.values():
            if key is not None and table.code == key[0]:
                row = self._get(table, UUID(bytes=key[1:]))
                if row is not None:
                    return table, row
        raise not_found("object", equals("full_path", place))
