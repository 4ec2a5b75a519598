"""Changes of directory objects: what a new one needs, and what must stay.

`create`, `write` and `delete` are for whoever decides: they check that names are free and that
nothing is taken away from below others. `keep` and `drop` are for a copy of what another server
decided already: they check nothing, because the copy has to become the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.base import DirectoryRefusedError, already_exists, not_found
from falconmq.directory.object_reader import ObjectReader
from falconmq.directory.records import (
    INDEX,
    INDEXED,
    OBJECTS,
    PLACES,
    digest,
    encode_row,
    index_prefixes,
    object_key,
)
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.tree import Tree, public_path
from falconmq.directory.workspace import Workspace
from falconmq.errors import MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult

_ROLES: Final = ("routing_server", "directory_server", "supporting_server")
_MACHINE_LISTS: Final = ("out_routing_server_identifiers", "in_routing_server_identifiers")


class ObjectWriter(ObjectReader):
    """Objects as they will be when the workspace is committed."""

    def __init__(self, workspace: Workspace, clock: Clock, random: Random) -> None:
        super().__init__(workspace)
        self.workspace = workspace
        self._clock = clock
        self._random = random
        self._known_tree: Tree | None = None

    # Deciding

    def create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        """Put a new object in its place; the GUID of a queue manager that is there already."""
        existing = self._prepare(table, row)
        if existing is not None:
            return existing
        now = int(self._clock.time())
        if row["identifier"] == NULL_UUID:
            row["identifier"] = self.new_identifier()
        row.update({name: now for name in ("create_time", "modify_time") if name in row})
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        if self.has(table, identifier):
            raise already_exists(table.type_name, identifier)
        place = row.get("full_path")
        if isinstance(place, str) and self.key_at(place) is not None:
            raise already_exists(table.type_name, place)
        self._put(table, row)
        return identifier

    def write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> Row:
        """Change attributes of an object; the whole row as it is afterwards."""
        row = self._existing(table, identifier)
        lists = ("site_gate_identifiers", *_MACHINE_LISTS)
        self._keep_known_machines(changes, [name for name in lists if name in changes])
        self._take_out_of_index(table, row)
        row.update(changes)
        if "modify_time" in row:
            row["modify_time"] = int(self._clock.time())
        self._put(table, row)
        return row

    def delete(self, table: ObjectTable, identifier: UUID) -> Row:
        """Delete an object that nothing stands below; the row that it was."""
        row = self._existing(table, identifier)
        self._check_unused(table, row)
        self.drop(table, row)
        return row

    def new_identifier(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)

    # Copying

    def keep(self, table: ObjectTable, row: dict[str, object]) -> None:
        """Make an object be exactly so, whether it was there or not."""
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        before = self.get(table, identifier)
        if before is not None:
            self.drop(table, before)
        self._put(table, row)

    def drop(self, table: ObjectTable, row: Row) -> None:
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        key = object_key(table, identifier)
        self.workspace.delete(OBJECTS, key)
        self._take_out_of_index(table, row)
        place = row.get("full_path")
        if isinstance(place, str) and self.key_at(place) == key:
            self._leave_place(table, row, place)

    def place(self, table: ObjectTable, row: dict[str, object]) -> None:
        """Give a copied object the place that it has where it was decided, as far as is known."""
        known = self.enterprise()
        tree = Tree.of_domain("" if known is None else str(known["name"]))
        if table.type_name == tables.QUEUE:
            path = public_path(str(row["path_name"]))
            row["computer_name"] = path.computer.lower()
            machine = self.first(_MACHINES, "computer_name", path.computer)
            named = path if machine is None else path.with_computer(str(machine["computer_name"]))
            row["full_path"] = row["full_path"] or tree.queue(named)
            row["directory_path"] = f"LDAP://{row['full_path']}"
        elif row.get("full_path") == "":
            row["full_path"] = _place(tree, table, row)

    # Inside

    def _existing(self, table: ObjectTable, identifier: UUID) -> dict[str, object]:
        row = self.get(table, identifier)
        if row is None:
            raise not_found(table.type_name, equals("identifier", identifier))
        return row

    def _put(self, table: ObjectTable, row: Row) -> None:
        identifier, place = row["identifier"], row.get("full_path")
        assert isinstance(identifier, UUID)
        key = object_key(table, identifier)
        self.workspace.put(OBJECTS, key, encode_row(table, row))
        for prefix in index_prefixes(table, row):
            self.workspace.put(INDEX, prefix + key[1:], b"")
        if isinstance(place, str):
            self.workspace.put(PLACES, digest("full_path", place), key)

    def _leave_place(self, table: ObjectTable, row: Row, place: str) -> None:
        """A copy may have two objects of one name for a while: the other one stands there now."""
        name = INDEXED[table.type_name][0]
        where = digest("full_path", place)
        for other in self.by_index(table, name, row[name]):
            if digest("full_path", other["full_path"]) == where:
                identifier = other["identifier"]
                assert isinstance(identifier, UUID)
                self.workspace.put(PLACES, where, object_key(table, identifier))
                return
        self.workspace.delete(PLACES, where)

    def _take_out_of_index(self, table: ObjectTable, row: Row) -> None:
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        for prefix in index_prefixes(table, row):
            self.workspace.delete(INDEX, prefix + identifier.bytes)

    def _prepare(self, table: ObjectTable, row: dict[str, object]) -> UUID | None:
        if table.type_name == tables.ENTERPRISE:
            known = self.enterprise()
            if known is not None:
                raise already_exists(table.type_name, known["name"])
            return None
        tree = self._tree()
        match table.type_name:
            case tables.QUEUE:
                self._prepare_queue(tree, row)
            case tables.QUEUE_MANAGER:
                computer = str(row["computer_name"])
                row["full_path"] = _place(tree, table, row)
                self._keep_known_machines(row, _MACHINE_LISTS)
                known = self.first(table, "computer_name", computer)
                return None if known is None else UUID(str(known["identifier"]))
            case tables.CONNECTED_NETWORK:
                if self.first(table, "name", row["name"]) is not None:
                    raise already_exists(table.type_name, row["name"])
            case tables.ROUTING_LINK:
                self._prepare_link(tree, row)
            case _:
                row["full_path"] = _place(tree, table, row)
        return None

    def _prepare_queue(self, tree: Tree, row: dict[str, object]) -> None:
        path = public_path(str(row["path_name"]))
        machine = self.first(_MACHINES, "computer_name", path.computer)
        if machine is None:
            raise not_found(tables.QUEUE_MANAGER, equals("computer_name", path.computer))
        row["path_name"] = str(path).lower()  # as a directory gives it back, guide 5.4
        row["computer_name"] = path.computer.lower()
        row["full_path"] = tree.queue(path.with_computer(str(machine["computer_name"])))
        row["directory_path"] = f"LDAP://{row['full_path']}"

    def _prepare_link(self, tree: Tree, row: dict[str, object]) -> None:
        for name in ("site1_identifier", "site2_identifier"):
            identifier = row[name]
            assert isinstance(identifier, UUID)
            if not self.has(tables.table_of(tables.SITE), identifier):
                problem = f"{name}: the directory has no site {identifier}"
                raise refusal(problem, MqStatus.ILLEGAL_PROPERTY_VALUE)
        row["full_path"] = _place(tree, tables.table_of(tables.ROUTING_LINK), row)
        self._keep_known_machines(row, ("site_gate_identifiers",))

    def _keep_known_machines(self, row: dict[str, object], names: Iterable[str]) -> None:
        """A list of queue managers keeps those that the directory can read (guide 5.3)."""
        for name in names:
            asked = row.get(name)
            if isinstance(asked, list):
                row[name] = [item for item in asked if self.has(_MACHINES, item)]

    def _check_unused(self, table: ObjectTable, row: Row) -> None:
        """What others stand below stays, as in a tree (guide 5.6, 9)."""
        used = ""
        match table.type_name:
            case tables.ENTERPRISE:
                used = "an enterprise is deleted with its directory only"
            case tables.QUEUE_MANAGER:
                queues = tables.table_of(tables.QUEUE)
                if self.first(queues, "computer_name", row["computer_name"]) is not None:
                    used = f"queue manager {row['computer_name']} has queues"
            case tables.SITE:
                members = self.by_index(_MACHINES, "site_identifiers", row["identifier"])
                if any(member[role] for member in members for role in _ROLES):
                    used = f"site {row['name']} has servers"
        if used:
            raise refusal(used, MqStatus.DS_ERROR, "delete those first")

    def _tree(self) -> Tree:
        """The tree of the enterprise; it never changes its name."""
        if self._known_tree is None:
            known = self.enterprise()
            if known is None:
                raise DirectoryRefusedError(
                    DirectoryResult.OBJECT_NOT_FOUND,
                    "the directory is empty",
                    hint="it begins with its enterprise: create that first",
                )
            self._known_tree = Tree.of_domain(str(known["name"]))
        return self._known_tree


_MACHINES: Final = tables.table_of(tables.QUEUE_MANAGER)


def _place(tree: Tree, table: ObjectTable, row: Row) -> str:
    """Where an object stands that is not a queue."""
    match table.type_name:
        case tables.QUEUE_MANAGER:
            return tree.queue_manager(str(row["computer_name"]))
        case tables.SITE:
            return tree.site(str(row["name"]))
        case tables.ROUTING_LINK:
            site1, site2 = row["site1_identifier"], row["site2_identifier"]
            assert isinstance(site1, UUID)
            assert isinstance(site2, UUID)
            return tree.routing_link(site1, site2)
        case tables.USER:
            sid = row["security_identifier"]
            assert isinstance(sid, bytes)
            return tree.user(sid)
        case _:
            return tree.recipient(str(row["name"]))
