"""A directory in LDAP: Active Directory, or a server with the same schema (directory guide 5).

Objects stand where MSMQ puts them, so that both kinds of queue managers can live in one directory.
Calls block until the server has answered; any thread may call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import Final
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.base import DirectoryBase, DirectoryRefusedError, already_exists, not_found
from falconmq.directory.distinguished_names import domain_of, queue_component, split_name
from falconmq.directory.ldap_connection import Entry, LdapConnections
from falconmq.directory.ldap_entries import (
    COMPUTER_ATTRIBUTES,
    MACHINE_LISTS,
    EntryReader,
    ldap_names,
    service_type,
)
from falconmq.directory.ldap_filters import class_condition, escaped, server_filter
from falconmq.directory.ldap_machines import SETTINGS_DEPEND_ON, Machines, containers
from falconmq.directory.ldap_places import check_possible, search_place
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.directory.ldap_values import CLASSES, MAPPED, encode_time
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.tree import Tree, public_path
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.wire.sid import Sid

_ACTIVE_DIRECTORY: Final = b"1.2.840.113556.1.4.800"
_ROOT_ATTRIBUTES: Final = (
    "configurationNamingContext",
    "rootDomainNamingContext",
    "namingContexts",
    "supportedCapabilities",
)


class LdapDirectory(DirectoryBase):
    """Directory objects in LDAP."""

    def __init__(self, settings: LdapSettings, clock: Clock, random: Random) -> None:
        super().__init__()
        self._settings = settings
        self._connections = LdapConnections(settings)
        self._clock = clock
        self._random = random
        self._known_tree: Tree | None = None
        self._is_ours = True  # False: Active Directory, which gives GUIDs and times itself

    def computer_sid(self, computer_name: str) -> Sid | None:
        try:
            name = self._tree().computer(computer_name)
            entry = self._connections.read(name, COMPUTER_ATTRIBUTES)
            value = None if entry is None else entry.first("objectSid")
            return None if value is None else Sid.decode(value)
        except FalconMQError as error:
            self._refused(error)
            return None

    def find_servers(self, domain_name: str) -> Sequence[str]:  # noqa: ARG002 - they are configured
        return self._settings.hosts

    def close(self) -> None:
        """Leave the servers; the next call comes back."""
        self._connections.close()

    # Changing

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        check_possible(table, row)
        tree = self._tree()
        identifier = row["identifier"]
        if not isinstance(identifier, UUID) or identifier == NULL_UUID:
            row["identifier"] = identifier = UUID(int=self._random.getrandbits(128), version=4)
        if table.type_name == tables.ENTERPRISE:
            self._build_tree(tree, str(row["name"]))
        name, values = self._place(tree, table, row)
        if table.type_name == tables.QUEUE_MANAGER:
            known = self._connections.read(name, ("objectGUID",))
            if known is not None:  # no error: E5
                return _guid_of(known)
            self._machines(tree).ensure_computer(row, is_ours=self._is_ours)
        identifier = self._add(table, name, {**self._encode(table, row), **values}, identifier)
        if table.type_name == tables.QUEUE_MANAGER:
            self._machines(tree).synchronize_settings({**row, "identifier": identifier})
        return identifier

    def _place(
        self, tree: Tree, table: ObjectTable, row: Row
    ) -> tuple[str, dict[str, list[bytes]]]:
        """Where a new object goes, and the attributes that follow from its place and others'."""
        match table.type_name:
            case tables.QUEUE:
                path = public_path(str(row["path_name"]))
                extension = queue_component(path.name)[1]
                more = {"mSMQQueueNameExt": [extension.encode()]} if extension else {}
                return tree.queue(path), more
            case tables.QUEUE_MANAGER:
                return tree.queue_manager(str(row["computer_name"])), self._machine_values(row)
            case tables.SITE:
                return tree.site(str(row["name"])), {}
            case tables.ROUTING_LINK:
                return self._place_link(tree, row)
            case tables.ENTERPRISE:
                return tree.enterprise, {}
            case tables.USER:
                sid = row["security_identifier"]
                assert isinstance(sid, bytes)
                return tree.user(sid), {}
        return tree.recipient(str(row["name"])), {}

    def _place_link(self, tree: Tree, row: Row) -> tuple[str, dict[str, list[bytes]]]:
        ends, values = [], {}
        for name, ldap_name in (
            ("site1_identifier", "mSMQSite1"),
            ("site2_identifier", "mSMQSite2"),
        ):
            identifier = row[name]
            assert isinstance(identifier, UUID)
            site = self._entry(tables.table_of(tables.SITE), identifier)
            if site is None:
                problem = f"{name}: the directory has no site {identifier}"
                raise refusal(problem, MqStatus.ILLEGAL_PROPERTY_VALUE)
            ends.append(identifier)
            values[ldap_name] = [site.name.encode()]
        values["mSMQSiteGates"] = self._names_of_machines(row["site_gate_identifiers"])
        return tree.routing_link(ends[0], ends[1]), values

    def _add(
        self, table: ObjectTable, name: str, values: dict[str, list[bytes]], identifier: UUID
    ) -> UUID:
        stamped = {**values, **self._stamp(identifier)}
        if not self._is_ours:
            stamped.pop("objectGUID", None)
        try:
            self._connections.add(name, CLASSES[table.type_name], stamped)
        except DirectoryRefusedError as error:
            exists = error.result is DirectoryResult.OBJECT_ALREADY_EXISTS
            known = self._connections.read(name, ("objectGUID",)) if exists else None
            if known is None or _guid_of(known) != identifier:  # ours: the answer was lost before
                raise
        if self._is_ours:
            return identifier
        made = self._connections.read(name, ("objectGUID",))
        return NULL_UUID if made is None else _guid_of(made)

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        check_possible(table, changes)
        entry = self._entry(table, identifier)
        if entry is None:
            raise not_found(table.type_name, equals("identifier", identifier))
        values = self._encode(table, changes)
        if "site_gate_identifiers" in changes:
            values["mSMQSiteGates"] = self._names_of_machines(changes["site_gate_identifiers"])
        security = values.pop("nTSecurityDescriptor", None)
        row: dict[str, object] = {}
        if table.type_name == tables.QUEUE_MANAGER:
            row = EntryReader(self._connections, self._tree(), None).row(table, entry) | changes
            values |= self._machine_values({**changes, **_service(row, changes)})
            machines = self._machines(self._tree())
            machines.change_computer(entry.name, changes, is_ours=self._is_ours)
        self._connections.modify(entry.name, {**values, **self._changed()})
        if security is not None:  # by itself: others may have that right (guide 5.3)
            self._connections.modify(entry.name, {"nTSecurityDescriptor": security})
        if row and not SETTINGS_DEPEND_ON.isdisjoint(changes):
            self._machines(self._tree()).synchronize_settings(row)

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        if table.type_name == tables.ENTERPRISE:
            raise refusal("an enterprise is deleted with its directory only", MqStatus.DS_ERROR)
        entry = self._entry(table, identifier)
        if entry is None:
            raise not_found(table.type_name, equals("identifier", identifier))
        machines = self._machines(self._tree())
        if table.type_name == tables.SITE:
            machines.clear_site(entry.name)
        self._connections.delete(entry.name)
        if table.type_name == tables.QUEUE_MANAGER:
            machines.withdraw({"identifier": identifier})

    def _encode(self, table: ObjectTable, row: Row) -> dict[str, list[bytes]]:
        mapped = MAPPED[table.type_name]
        return {
            mapped[attribute.name].ldap_name: mapped[attribute.name].encode(
                attribute, row[attribute.name]
            )
            for attribute in table.attributes
            if attribute.name in mapped
            and attribute.name in row
            and attribute.name not in ("identifier", "create_time", "modify_time")
        }

    def _machine_values(self, row: Row) -> dict[str, list[bytes]]:
        values = {
            ldap_name: self._names_of_machines(row[name])
            for name, ldap_name in MACHINE_LISTS.items()
            if name in row
        }
        if "remote_access_server" in row:
            values["mSMQServiceType"] = [str(service_type(row)).encode()]
        return values

    def _names_of_machines(self, identifiers: object) -> list[bytes]:
        """Distinguished names of queue managers; those that nobody knows are left out."""
        assert isinstance(identifiers, list)
        table = tables.table_of(tables.QUEUE_MANAGER)
        entries = [self._entry(table, identifier) for identifier in identifiers]
        return [entry.name.encode() for entry in entries if entry is not None]

    def _stamp(self, identifier: UUID | None) -> dict[str, list[bytes]]:
        """What Active Directory gives by itself."""
        if not self._is_ours:
            return {}
        now = [encode_time(int(self._clock.time()))]
        given = identifier or UUID(int=self._random.getrandbits(128), version=4)
        return {"objectGUID": [given.bytes_le], "whenCreated": now, "whenChanged": now}

    def _changed(self) -> dict[str, list[bytes]]:
        if not self._is_ours:
            return {}
        return {"whenChanged": [encode_time(int(self._clock.time()))]}

    def _build_tree(self, tree: Tree, name: str) -> None:
        """Everything above the objects, where it is missing."""
        domain = domain_of(tree.root)
        if name.lower() != domain.lower():
            raise refusal(
                f"this directory is that of {domain}, not of {name}",
                MqStatus.ILLEGAL_ENTERPRISE_OPERATION,
                f"name the enterprise {domain}, or use the directory of {name}",
            )
        if self._connections.read(tree.enterprise, ("objectClass",)) is not None:
            raise already_exists(tables.ENTERPRISE, domain)
        if self._connections.read(tree.root, ("objectClass",)) is None:
            label = split_name(tree.root)[0][1].encode()
            values = {"objectClass": [b"organization", b"dcObject"], "o": [label], "dc": [label]}
            self._connections.add(tree.root, "organization", values)
        for place, object_class in containers(tree):
            if self._connections.read(place, ("objectClass",)) is None:
                self._connections.add(place, object_class, self._stamp(None))

    def _machines(self, tree: Tree) -> Machines:
        return Machines(self._connections, tree, self._stamp)

    # Finding

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        check_possible(table, {})
        tree = self._tree()
        where = search_place(tree, table, filters)
        if where is None:
            return
        reader = EntryReader(self._connections, tree, attributes)
        condition = server_filter(table, filters)
        wanted = None if attributes is None else {*attributes, *(item.name for item in filters)}
        for entry in self._connections.search(*where, condition, ldap_names(table, wanted)):
            row = reader.row(table, entry)
            if table.matches(row, filters):
                yield row

    def _entry(self, table: ObjectTable, identifier: UUID) -> Entry | None:
        check_possible(table, {})
        where = search_place(self._tree(), table, ())
        assert where is not None
        guid = f"(objectGUID={escaped(identifier.bytes_le)})"
        condition = f"(&{class_condition(table.type_name)}{guid})"
        return next(self._connections.search(*where, condition, ldap_names(table)), None)

    def at(self, place: str) -> tuple[ObjectTable, Row]:
        entry = self._connections.read(place, ("objectClass",))
        if entry is None:
            raise not_found("object", equals("full_path", place))
        classes = {value.decode().lower() for value in entry.values["objectclass"]}
        for type_name, object_class in CLASSES.items():
            if object_class.lower() in classes:
                table = tables.table_of(type_name)
                whole = self._connections.read(place, ldap_names(table))
                if whole is not None:
                    reader = EntryReader(self._connections, self._tree(), ())
                    return table, reader.row(table, whole)
        problem = f"{place} is of another class: {', '.join(sorted(classes))}"
        raise refusal(problem, MqStatus.NOT_A_CORRECT_OBJECT_CLASS)

    def _tree(self) -> Tree:
        """Where the server has the domain and its configuration (guide 5.2, 5.6)."""
        if self._known_tree is None:
            entry = self._connections.read("", _ROOT_ATTRIBUTES)
            root = self._settings.root or _root_of(entry)
            configuration = None if entry is None else entry.first("configurationNamingContext")
            tree = Tree.below(root)
            if configuration is not None and not self._settings.root:
                tree = Tree(root, configuration.decode())
            capabilities = () if entry is None else entry.values.get("supportedcapabilities", ())
            self._is_ours = _ACTIVE_DIRECTORY not in capabilities
            self._known_tree = tree
        return self._known_tree


def _root_of(entry: Entry | None) -> str:
    for name in ("rootDomainNamingContext", "namingContexts"):
        value = None if entry is None else entry.first(name)
        if value:
            return value.decode()
    raise DirectoryRefusedError(
        DirectoryResult.DIRECTORY_NOT_CONNECTED,
        "the LDAP server does not say what it holds",
        hint="name the root, such as DC=example,DC=com",
    )


def _service(row: Row, changes: Row) -> dict[str, object]:
    """All that mSMQServiceType is made of, when one part of it changes."""
    parts = ("routing_server", "directory_server", "server_type", "remote_access_server")
    return {name: row[name] for name in parts} if any(name in changes for name in parts) else {}


def _guid_of(entry: Entry) -> UUID:
    value = entry.first("objectGUID")
    return NULL_UUID if value is None else UUID(bytes_le=value)
