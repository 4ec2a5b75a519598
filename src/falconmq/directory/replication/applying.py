"""A change of another server becomes true here (MQDSRP 3.1.7.2.3, 3.1.7.2.5 to .8).

A copy checks nothing that its authority has checked: it may see a queue before its machine, a new
object before it hears that the old one of that name is gone. So what is there is overwritten, what
is to go may be gone already (A-21), and of an object that has moved each of the two partitions
changes its own claim only. What cannot be applied leaves the number of the partition as it is; it
comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication import topology
from falconmq.directory.replication.claims import claim, claimed, disclaim
from falconmq.directory.replication.numbers import Entry
from falconmq.directory.replication.properties import (
    E_PECNAME,
    ENTERPRISE_TYPES,
    OBJECT_TABLES,
    PATHS,
    QM_SERVICE,
    S_PSC,
    values_of,
)
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import Partition
from falconmq.directory.schema import ObjectTable
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.manager.states import QueueScope
from falconmq.wire.directory_change import (
    CREATE,
    DELETE,
    SYNCHRONIZE,
    UPDATE,
    DirectoryChange,
    Identifier,
)
from falconmq.wire.property_ids import DeletionProperty, ObjectType, object_type_of

OK: Final = 0
_DELETION_PROPERTIES: Final = 2
_FOLLOWED: Final = (ObjectType.MQDS_SITE, ObjectType.MQDS_ENTERPRISE, ObjectType.MQDS_MACHINE)

Result = tuple[int, bool]
"""HRESULT, and whether the own BSCs must hear of it at once."""


def type_of(change: DirectoryChange) -> ObjectTable | None:
    """The type of object: of the first property, or what a deletion says (RP-3.1.7.2.3-03, -07)."""
    if change.command == DELETE:
        if len(change.properties) < _DELETION_PROPERTIES:
            return None
        code = change.properties[1][1]
    else:
        code = object_type_of(change.properties[0][0]) if change.properties else 0
    return OBJECT_TABLES.get(code) if isinstance(code, int) else None


def apply_change(server: Server, partition: Partition, change: DirectoryChange) -> Result:
    """Do what a change says; its number is given to the object, not yet to the partition."""
    table = type_of(change)
    if table is None:
        return MqStatus.MQDS_WRONG_OBJ_TYPE, False
    try:
        return _COMMANDS[change.command](server, partition, table, change)
    except FalconMQError as error:
        return error.status, False


def _create(
    server: Server, partition: Partition, table: ObjectTable, change: DirectoryChange
) -> Result:
    values = values_of(change.properties)
    path = PATHS.get(table.code)
    if path is not None and change.path_name is not None:
        values.setdefault(path, change.path_name)
    if change.guid_identifier is not None:
        values["identifier"] = UUID(bytes_le=change.guid_identifier)
    identifier = values.get("identifier", NULL_UUID)
    if identifier == NULL_UUID:  # nothing could ever change or delete it
        return MqStatus.ILLEGAL_PROPERTY_VALUE, False
    assert isinstance(identifier, UUID)
    row = claimed(server, table, partition.partition_id, identifier) or _usual(table)
    return _make_so(server, partition, table, change, row | values)


def _usual(table: ObjectTable) -> dict[str, object]:
    """An object of which nobody has said anything yet."""
    return {
        attribute.name: list(attribute.default)
        if isinstance(attribute.default, list)
        else attribute.default
        for attribute in table.attributes
    }


def _make_so(
    server: Server,
    partition: Partition,
    table: ObjectTable,
    change: DirectoryChange,
    row: dict[str, object],
) -> Result:
    """Let an object be as its authority says."""
    claim(server, table, partition.partition_id, change.seq_number, row)
    return OK, follow(server, partition, table, change)


def _update(
    server: Server, partition: Partition, table: ObjectTable, change: DirectoryChange
) -> Result:
    row = find_claimed(server, partition, table, change.identifier)
    if row is None:
        return MqStatus.MQDS_OBJECT_NOT_FOUND, False
    return _make_so(server, partition, table, change, _changed(row, change))


def _changed(row: dict[str, object], change: DirectoryChange) -> dict[str, object]:
    """What a change does not say of an object stays as it is."""
    return row | values_of(change.properties) | {"identifier": row["identifier"]}


def _synchronize(
    server: Server, partition: Partition, table: ObjectTable, change: DirectoryChange
) -> Result:
    """Create or update, whichever it takes (RP-3.1.7.2.8-05, -06)."""
    row = find_claimed(server, partition, table, change.identifier)
    if row is not None:
        return _make_so(server, partition, table, change, _changed(row, change))
    return _create(server, partition, table, change)


def _delete(
    server: Server, partition: Partition, table: ObjectTable, change: DirectoryChange
) -> Result:
    row = find_claimed(server, partition, table, change.identifier)
    guid = change.guid_identifier
    identifier = UUID(bytes_le=guid) if guid is not None else None
    if row is not None:
        identifier = UUID(str(row["identifier"]))
        let_go(server, partition, table, identifier)
    if identifier is None:
        return OK, False
    is_of_site = change.properties[0] == (DeletionProperty.PROPID_D_SCOPE, QueueScope.SITE)
    scope = int(QueueScope.SITE if is_of_site else QueueScope.ENTERPRISE)  # RP-3.1.1.2.2-08
    deletion = Entry(change.seq_number, table.code, identifier, is_deleted=True, scope=scope)
    server.numbers.bury(partition.partition_id, deletion)
    return OK, follow_deletion(server, partition, table, identifier, row)


def let_go(
    server: Server, partition: Partition, table: ObjectTable, identifier: UUID
) -> dict[str, object] | None:
    """A partition has an object no more; as it was there.

    Who decides about a site keeps the site, without a number. Perhaps the PEC was taken over by
    somebody who had not heard of it yet; and if this server becomes the PEC, it is told anew.
    """
    own = server.state.partitions.get(identifier) if table.type_name == tables.SITE else None
    if own is None or not server.owns(own):
        return disclaim(server, table, partition.partition_id, identifier)
    server.numbers.take_away(table.code, identifier)
    return server.objects.get(table, identifier)


def find_object(
    server: Server, table: ObjectTable, identifier: Identifier
) -> dict[str, object] | None:
    """The object that a change speaks of, by GUID or by path name (RP-3.1.7.2.3-04)."""
    if isinstance(identifier, bytes):
        return server.objects.get(table, UUID(bytes_le=identifier))
    path = PATHS.get(table.code)
    if path is None:
        return None
    if table.type_name == tables.ENTERPRISE:
        known = server.objects.enterprise()
        is_it = known is not None and str(known["name"]).lower() == identifier.lower()
        return known if is_it else None
    return server.objects.first(table, path, identifier)


def find_claimed(
    server: Server, partition: Partition, table: ObjectTable, identifier: Identifier
) -> dict[str, object] | None:
    """The same, as a partition has it: another one may have an object of that GUID or name too."""
    if isinstance(identifier, bytes):
        return claimed(server, table, partition.partition_id, UUID(bytes_le=identifier))
    if table.code in ENTERPRISE_TYPES:
        return find_object(server, table, identifier)
    for row in list(server.objects.by_index(table, PATHS[table.code], identifier)):
        found = claimed(server, table, partition.partition_id, UUID(str(row["identifier"])))
        if found is not None:
            return found
    return None


def follow(
    server: Server, partition: Partition, table: ObjectTable, change: DirectoryChange
) -> bool:
    """What a new or changed object means for partitions and neighbours."""
    if table.code not in _FOLLOWED:
        return False
    told = dict(change.properties)
    row = find_object(server, table, change.identifier)
    identifier = row["identifier"] if row is not None else None
    match table.code:
        case ObjectType.MQDS_SITE if isinstance(identifier, UUID):
            psc_name = told.get(S_PSC)
            if change.command == CREATE or (
                change.command == SYNCHRONIZE and isinstance(psc_name, str)
            ):
                return topology.site_created(server, identifier, str(psc_name or ""))
            if isinstance(psc_name, str):
                return topology.site_controller_changed(server, identifier, psc_name)
        case ObjectType.MQDS_ENTERPRISE:
            return topology.enterprise_changed(server, told.get(E_PECNAME))
        case ObjectType.MQDS_MACHINE if row is not None:
            name = str(row["computer_name"])
            topology.machine_changed(server, partition, name, told.get(QM_SERVICE))
    return False


def follow_deletion(
    server: Server,
    partition: Partition,
    table: ObjectTable,
    identifier: UUID,
    row: dict[str, object] | None,
) -> bool:
    """What the end of an object means for partitions and neighbours."""
    if table.code == ObjectType.MQDS_SITE:
        return topology.site_deleted(server, identifier)
    if table.code == ObjectType.MQDS_MACHINE and row is not None:
        topology.machine_deleted(server, partition, str(row["computer_name"]))
    return False


_COMMANDS: Final[
    Mapping[int, Callable[[Server, Partition, ObjectTable, DirectoryChange], Result]]
] = MappingProxyType({CREATE: _create, UPDATE: _update, DELETE: _delete, SYNCHRONIZE: _synchronize})
