"""What belongs to a queue manager besides its own entry: its computer, its settings in each site.

Active Directory makes the entry of a computer when that joins the domain; elsewhere nobody does, so
we do. A queue manager that serves others is announced below each of its sites (guide 5.3): a copy
of what it does, which is kept in step with every change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.distinguished_names import child, folded, parent_of, split_name
from falconmq.directory.ldap_connection import ONE_LEVEL, SUBTREE, LdapConnections
from falconmq.directory.ldap_entries import CLUSTER_SERVICE, service_type
from falconmq.directory.ldap_filters import escaped
from falconmq.directory.tree import Tree
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult

ROLES: Final = ("routing_server", "directory_server", "supporting_server")
SETTINGS_DEPEND_ON: Final = frozenset(
    {*ROLES, "server_type", "remote_access_server", "site_identifiers"}
)
Stamp = Callable[[UUID | None], dict[str, list[bytes]]]
"""What a new entry gets besides its attributes: GUID and times, where the server gives none."""


class Machines:
    """Computers and settings of queue managers."""

    def __init__(self, connections: LdapConnections, tree: Tree, stamp: Stamp) -> None:
        self._connections = connections
        self._tree = tree
        self._stamp = stamp

    def ensure_computer(self, row: Row, *, is_ours: bool) -> None:
        """Let the computer of a new queue manager have an entry that tells the same."""
        name = self._tree.computer(str(row["computer_name"]))
        values = computer_values(row, is_ours=is_ours)
        if row["clustered"] and is_ours:
            service = CLUSTER_SERVICE + b"/" + str(row["computer_name"]).encode()
            values["servicePrincipalName"] = [service]
        if self._connections.read(name, ("objectClass",)) is None and is_ours:
            self._connections.add(name, "computer", {**values, **self._stamp(None)})
        else:
            self._connections.modify(name, {key: items for key, items in values.items() if items})

    def change_computer(self, name: str, changes: Row, *, is_ours: bool) -> None:
        """Take over the changes of a queue manager that its computer's entry keeps."""
        self._connections.modify(parent_of(name), computer_values(changes, is_ours=is_ours))

    def synchronize_settings(self, row: Row) -> None:
        """Announce a server in its sites and nowhere else; one that serves nobody, nowhere."""
        wanted = {folded(name): name for name in self._wanted(row)}
        for name in list(self._announced(row)):
            if folded(name) in wanted:
                self._connections.modify(wanted.pop(folded(name)), _settings(row))
            else:
                self._connections.delete(name)
        for name in wanted.values():
            self._announce(name, row)

    def withdraw(self, row: Row) -> None:
        for name in list(self._announced(row)):
            self._connections.delete(name)

    def clear_site(self, site: str) -> None:
        """Take away the empty containers that announcing left below a site."""
        condition = "(|(objectClass=serversContainer)(objectClass=server))"
        below = self._connections.search(site, SUBTREE, condition, ("objectClass",))
        for entry in sorted(below, key=lambda item: -len(split_name(item.name))):
            if next(self._connections.search(entry.name, ONE_LEVEL, "(cn=*)", ("cn",)), None):
                return
            self._connections.delete(entry.name)

    def _wanted(self, row: Row) -> Iterator[str]:
        if not any(row[role] for role in ROLES):
            return
        identifiers = row["site_identifiers"]
        assert isinstance(identifiers, list)
        for identifier in identifiers:
            condition = f"(objectGUID={escaped(identifier.bytes_le)})"
            for site in self._connections.search(
                self._tree.sites, ONE_LEVEL, condition, ("objectGUID",)
            ):
                yield self._tree.settings(split_name(site.name)[0][1], str(row["computer_name"]))

    def _announced(self, row: Row) -> Iterator[str]:
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        condition = f"(&(objectClass=mSMQSettings)(mSMQQMID={escaped(identifier.bytes_le)}))"
        found = self._connections.search(self._tree.sites, SUBTREE, condition, ("mSMQQMID",))
        return (entry.name for entry in found)

    def _announce(self, name: str, row: Row) -> None:
        server = parent_of(name)
        self._ensure(parent_of(server), "serversContainer")
        self._ensure(server, "server")
        if self._connections.read(name, ("objectClass",)) is not None:
            self._connections.delete(name)  # of a queue manager that was here before
        self._connections.add(name, "mSMQSettings", {**_settings(row), **self._stamp(None)})

    def _ensure(self, name: str, object_class: str) -> None:
        try:
            self._connections.add(name, object_class, self._stamp(None))
        except DirectoryRefusedError as error:
            if error.result is not DirectoryResult.OBJECT_ALREADY_EXISTS:
                raise


def computer_values(row: Row, *, is_ours: bool) -> dict[str, list[bytes]]:
    """What a computer's entry keeps of a row; the names are the domain's in Active Directory."""
    kept: dict[str, list[bytes]] = {}
    keys = row.get("public_signing_keys")
    if isinstance(keys, bytes):
        kept["mSMQSignCertificates"] = [keys] if keys else []
    if is_ours:
        for name, ldap_name in (
            ("qualified_computer_name", "dNSHostName"),
            ("operating_system_version", "operatingSystemVersion"),
        ):
            value = row.get(name)
            if isinstance(value, str):
                kept[ldap_name] = [value.encode()] if value else []
    return kept


def containers(tree: Tree) -> Iterator[tuple[str, str]]:
    """What stands above all objects, the highest first: place and class."""
    yield tree.computers, "container"
    yield tree.users, "container"
    yield tree.configuration, "configuration"
    yield tree.sites, "sitesContainer"
    yield child("Services", tree.configuration), "container"


def _settings(row: Row) -> dict[str, list[bytes]]:
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    return {
        "mSMQQMID": [identifier.bytes_le],
        "mSMQServices": [str(service_type(row)).encode()],
        "mSMQRoutingService": [_boolean(row["routing_server"])],
        "mSMQDsService": [_boolean(row["directory_server"])],
        "mSMQDependentClientService": [_boolean(row["supporting_server"])],
    }


def _boolean(value: object) -> bytes:
    return b"TRUE" if value else b"FALSE"
