"""Entries of LDAP as rows: names out of places, and what other entries have to tell (guide 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.distinguished_names import (
    domain_of,
    folded,
    parent_of,
    queue_name,
    split_name,
)
from falconmq.directory.ldap_connection import SUBTREE, Entry, LdapConnections
from falconmq.directory.ldap_values import MAPPED, in_order_of
from falconmq.directory.schema import ObjectTable
from falconmq.directory.tree import Tree
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryServerType

REMOTE_ACCESS_BIT: Final = 0x10
ROUTING_BIT: Final = 0x01
CLUSTER_SERVICE: Final = b"MSClusterVirtualServer"
MACHINE_LISTS: Final[Mapping[str, str]] = {
    "out_routing_server_identifiers": "mSMQOutRoutingServers",
    "in_routing_server_identifiers": "mSMQInRoutingServers",
}
COMPUTER_ATTRIBUTES: Final = (
    "objectClass",
    "objectGUID",
    "dNSHostName",
    "operatingSystemVersion",
    "mSMQSignCertificates",
    "servicePrincipalName",
    "objectSid",
)
_OF_COMPUTER: Final = frozenset(
    {
        "qualified_computer_name",
        "operating_system_version",
        "public_signing_keys",
        "clustered",
    }
)
_OF_OWNER: Final = frozenset({"queue_manager_identifier", "qualified_path_name"})
_MORE: Final[Mapping[str, tuple[str, ...]]] = {
    tables.QUEUE: ("mSMQQueueNameExt",),
    tables.QUEUE_MANAGER: (*MACHINE_LISTS.values(), "mSMQServiceType"),
    tables.ROUTING_LINK: ("mSMQSite1", "mSMQSite2", "mSMQSiteGates"),
}


class EntryReader:
    """Turns the entries of one query into rows; asks for each other entry once."""

    def __init__(
        self, connections: LdapConnections, tree: Tree, attributes: Collection[str] | None
    ) -> None:
        self._connections = connections
        self._tree = tree
        self._attributes = None if attributes is None else frozenset(attributes)
        self._identifiers: dict[str, UUID] = {}
        self._owners: dict[str, tuple[UUID, str]] = {}

    def row(self, table: ObjectTable, entry: Entry) -> dict[str, object]:
        """The attributes of an entry; those nobody wants keep their defaults."""
        mapped = MAPPED[table.type_name]
        row: dict[str, object] = {}
        for attribute in table.attributes:
            kept = mapped.get(attribute.name)
            if kept is not None:
                row[attribute.name] = kept.decode(
                    attribute, entry.values.get(kept.ldap_name.lower())
                )
            else:
                default = attribute.default
                row[attribute.name] = list(default) if isinstance(default, list) else default
        if "full_path" in row:
            row["full_path"] = entry.name
        self._complete(table.type_name, row, entry)
        return row

    def _complete(self, type_name: str, row: dict[str, object], entry: Entry) -> None:
        match type_name:
            case tables.QUEUE:
                self._complete_queue(row, entry)
            case tables.QUEUE_MANAGER:
                self._complete_machine(row, entry)
            case tables.ROUTING_LINK:
                self._complete_link(row, entry)
            case tables.ENTERPRISE:
                row["name"] = domain_of(self._tree.root)
            case tables.USER:
                certificates, digests = row["certificates"], row["certificate_digests"]
                assert isinstance(certificates, bytes)
                assert isinstance(digests, list)
                row["certificate_digests"] = in_order_of(certificates, digests)
            case _:
                row["name"] = split_name(entry.name)[0][1]

    def _wants(self, names: Collection[str]) -> bool:
        return self._attributes is None or not self._attributes.isdisjoint(names)

    def _complete_queue(self, row: dict[str, object], entry: Entry) -> None:
        (_, component), _, (_, computer) = split_name(entry.name)[:3]
        extension = (entry.first("mSMQQueueNameExt") or b"").decode()
        name = queue_name(component, extension)
        row["path_name"] = f"{computer}\\{name}".lower()
        row["computer_name"] = computer.lower()
        row["directory_path"] = f"LDAP://{entry.name}"
        if self._wants(_OF_OWNER):
            identifier, host = self._owner(parent_of(parent_of(entry.name)))
            row["queue_manager_identifier"] = identifier
            row["qualified_path_name"] = f"{host or computer}\\{name}".lower()

    def _owner(self, computer: str) -> tuple[UUID, str]:
        """The GUID of the queue manager on a computer, and the computer's whole name."""
        place = folded(computer)
        if place not in self._owners:
            condition = "(|(objectClass=computer)(objectClass=mSMQConfiguration))"
            wanted = ("objectClass", "objectGUID", "dNSHostName")
            identifier, host = NULL_UUID, ""
            for entry in self._connections.search(computer, SUBTREE, condition, wanted):
                if folded(entry.name) == place:
                    host = (entry.first("dNSHostName") or b"").decode()
                else:
                    identifier = _identifier(entry)
            self._owners[place] = identifier, host
        return self._owners[place]

    def _complete_machine(self, row: dict[str, object], entry: Entry) -> None:
        row["computer_name"] = split_name(entry.name)[1][1]
        service = int(entry.first("mSMQServiceType") or b"0")
        row["remote_access_server"] = bool(service & REMOTE_ACCESS_BIT)
        row["server_type"] = _server_type(service if row["directory_server"] else 0)
        for name, ldap_name in MACHINE_LISTS.items():
            if self._wants((name,)):
                row[name] = self._named(entry, ldap_name)
        if self._wants(_OF_COMPUTER):
            computer = self._connections.read(parent_of(entry.name), COMPUTER_ATTRIBUTES)
            if computer is not None:
                _add_computer(row, computer)

    def _complete_link(self, row: dict[str, object], entry: Entry) -> None:
        for name, ldap_name in (
            ("site1_identifier", "mSMQSite1"),
            ("site2_identifier", "mSMQSite2"),
        ):
            found = self._named(entry, ldap_name)
            row[name] = found[0] if found else None
        row["site_gate_identifiers"] = self._named(entry, "mSMQSiteGates")

    def _named(self, entry: Entry, attribute: str) -> list[UUID]:
        """The GUIDs of the entries that an attribute names; those that are gone are left out."""
        found = []
        for value in entry.values.get(attribute.lower(), ()):
            identifier = self.identifier_at(value.decode())
            if identifier != NULL_UUID:
                found.append(identifier)
        return found

    def identifier_at(self, name: str) -> UUID:
        place = folded(name)
        if place not in self._identifiers:
            entry = self._connections.read(name, ("objectGUID",))
            self._identifiers[place] = NULL_UUID if entry is None else _identifier(entry)
        return self._identifiers[place]


def ldap_names(table: ObjectTable, wanted: Collection[str] | None = None) -> list[str]:
    """What to ask the server for: everything, or what some attributes are made of."""
    needed = None if wanted is None else {"identifier", "directory_server", *wanted}
    mapped = [
        item.ldap_name
        for name, item in MAPPED[table.type_name].items()
        if needed is None or name in needed
    ]
    return ["objectClass", *mapped, *_MORE.get(table.type_name, ())]


def service_type(row: Row) -> int:
    """mSMQServiceType: what a queue manager does for others, in bits (guide 5.3)."""
    service = ROUTING_BIT if row["routing_server"] else 0
    if row["remote_access_server"]:
        service |= REMOTE_ACCESS_BIT
    server_type = row["server_type"]
    if row["directory_server"] and isinstance(server_type, int):
        service |= server_type
    return service


def _server_type(service: int) -> DirectoryServerType:
    for role in reversed(DirectoryServerType):
        if role and service & role:
            return role
    return DirectoryServerType.STANDALONE


def _add_computer(row: dict[str, object], computer: Entry) -> None:
    row["qualified_computer_name"] = (computer.first("dNSHostName") or b"").decode()
    row["operating_system_version"] = (computer.first("operatingSystemVersion") or b"").decode()
    row["public_signing_keys"] = computer.first("mSMQSignCertificates") or b""
    services = computer.values.get("serviceprincipalname", ())
    row["clustered"] = any(CLUSTER_SERVICE in service for service in services)


def _identifier(entry: Entry) -> UUID:
    value = entry.first("objectGUID")
    return NULL_UUID if value is None else UUID(bytes_le=value)
