"""Changes that this server decides: numbered, remembered and on their way (MQDSRP 3.1.7.1).

A change of an own partition is checked as in any directory, gets the next number, and goes to all
neighbours when their time comes. Object, deletion and number are one commit.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.applying import (
    find_claimed,
    find_object,
    follow,
    follow_deletion,
    type_of,
)
from falconmq.directory.replication.claims import disclaim
from falconmq.directory.replication.numbers import Entry
from falconmq.directory.replication.properties import (
    E_PECNAME,
    ENTERPRISE_TYPES,
    OBJECT_TABLES,
    PATHS,
    Properties,
    carried_names,
    deletion_properties,
    properties_for,
    values_of,
)
from falconmq.directory.replication.purging import purge_when_due
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import QueueScope
from falconmq.wire.directory_change import (
    CREATE,
    DELETE,
    SYNCHRONIZE,
    UPDATE,
    DirectoryChange,
    Identifier,
)
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER, increment


def partition_of(server: Server, table: ObjectTable, row: Row) -> UUID | None:
    """The partition that an object belongs to; None: of a type that has no copies elsewhere."""
    if table.code in ENTERPRISE_TYPES:
        return ENTERPRISE_PARTITION
    if table.code == ObjectType.MQDS_QUEUE:
        computer = str(row["path_name"]).partition("\\")[0]
        machines = OBJECT_TABLES[ObjectType.MQDS_MACHINE]
        machine = server.objects.first(machines, "computer_name", computer)
        return None if machine is None else partition_of(server, machines, machine)
    sites = row.get("site_identifiers")
    return sites[0] if isinstance(sites, list) and sites else None


def read_next_sequence_number(server: Server, partition: Partition | None) -> int:
    """Read Next Sequence Number (MQDSRP 3.1.7.1.3): MIN_SEQ_NUMBER where another one decides."""
    if partition is None or not server.owns(partition):
        return MIN_SEQ_NUMBER
    return increment(partition.last)


def decide_create(
    server: Server, partition: Partition, table: ObjectTable, row: dict[str, object]
) -> UUID:
    """Create an object of an own partition."""
    is_own_site = table.type_name == tables.SITE and row["identifier"] == server.identity.site
    if is_own_site and not row["primary_site_controller"]:
        row["primary_site_controller"] = server.name
    known = None
    if table.type_name == tables.QUEUE_MANAGER:
        known = server.objects.first(table, "computer_name", row["computer_name"])
        if known is not None:
            _check_is_of(server, partition, known)
    identifier = server.objects.create(table, row)
    if known is None:
        number_created(server, partition, table, identifier)
    return identifier


def number_created(
    server: Server, partition: Partition, table: ObjectTable, identifier: UUID
) -> None:
    """Number an object that is new, or that nobody numbered yet, and tell everybody."""
    row = with_owner(server, table, server.objects.get(table, identifier) or {})
    number = read_next_sequence_number(server, partition)
    server.numbers.give(table.code, identifier, partition.partition_id, number)
    later = server.settings.has_later_properties
    properties = properties_for(table, row, later=later)
    path = PATHS.get(table.code)  # a creation has the path, where there is one
    name: Identifier = identifier.bytes_le if path is None else str(row[path])
    propagate(server, partition, _change(CREATE, name, partition, number, properties))


def decide_write(
    server: Server,
    partition: Partition,
    table: ObjectTable,
    identifier: UUID,
    changes: dict[str, object],
) -> None:
    """Change an object of an own partition."""
    _check_is_shown(server, partition, table, identifier)
    _check_stays(server, partition, table, changes)
    names = {*changes, "modify_time"}
    row = server.objects.write(table, identifier, changes)
    _number_written(server, partition, table, row, names)


def _number_written(
    server: Server,
    partition: Partition,
    table: ObjectTable,
    row: Row,
    names: Collection[str],
    pec_name: str = "",
) -> None:
    """Number a change of some attributes, and tell it as the whole object.

    A copy that asks for what it missed is told of each object once, as it is by then, or not at all
    if it has changed again behind the range. Were that change told with its own properties only,
    the copy would take it for complete, and never hear of the ones before.
    """
    later = server.settings.has_later_properties
    carried = carried_names(table, later=later)
    if carried.isdisjoint(names) and not pec_name:
        return  # nothing of it has copies
    properties = properties_for(table, with_owner(server, table, row), later=later, names=carried)
    if table.code == ObjectType.MQDS_ENTERPRISE:
        properties.append((E_PECNAME, pec_name or partition.authority_name))
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    number = read_next_sequence_number(server, partition)
    server.numbers.give(table.code, identifier, partition.partition_id, number)
    change = _change(UPDATE, identifier.bytes_le, partition, number, properties)
    propagate(server, partition, change)


def decide_pec(server: Server, name: str) -> None:
    """Name the PEC. If it is another server, this is the last that this one decides above sites."""
    row = server.objects.enterprise()
    assert row is not None
    table = OBJECT_TABLES[ObjectType.MQDS_ENTERPRISE]
    _number_written(server, server.enterprise, table, row, (), name)


def decide_delete(
    server: Server, partition: Partition, table: ObjectTable, identifier: UUID
) -> None:
    """Delete an object of an own partition; the deletion is remembered (A-16)."""
    if table.code == ObjectType.MQDS_SITE:
        _check_empty(server, identifier)
    row = dict(server.objects.delete(table, identifier))
    scope = row.get("scope", QueueScope.ENTERPRISE)
    assert isinstance(scope, int)
    number_deleted(server, partition, table, identifier, int(scope))
    follow_deletion(server, partition, table, identifier, row)


def _delete_hidden(
    server: Server, partition: Partition, table: ObjectTable, name: Identifier
) -> bool:
    """Delete what a partition says of an object that is shown as another one has it, if it does.

    Whoever asks this partition for a deletion means its own word, and no other.
    """
    row = find_claimed(server, partition, table, name)
    if row is None:
        return False
    identifier = UUID(str(row["identifier"]))
    if server.numbers.hidden_in(partition.partition_id, table.code, identifier) is None:
        return False
    scope = row.get("scope", QueueScope.ENTERPRISE)
    assert isinstance(scope, int)
    number_deleted(server, partition, table, identifier, int(scope))
    follow_deletion(server, partition, table, identifier, row)
    return True


def number_deleted(
    server: Server, partition: Partition, table: ObjectTable, identifier: UUID, scope: int
) -> None:
    number = read_next_sequence_number(server, partition)
    disclaim(server, table, partition.partition_id, identifier)
    deletion = Entry(number, table.code, identifier, is_deleted=True, scope=scope)
    server.numbers.bury(partition.partition_id, deletion)
    properties = deletion_properties(scope, table.code)
    propagate(
        server, partition, _change(DELETE, identifier.bytes_le, partition, number, properties)
    )


def propagate(server: Server, partition: Partition, change: DirectoryChange) -> None:
    """Propagate Directory Change (MQDSRP 3.1.7.1.2): to all neighbours, when their time comes."""
    change.encode()  # what cannot be told to others is refused before anything follows from it
    table = type_of(change)
    if change.command != DELETE and table is not None:
        follow(server, partition, table, change)
    for neighbour in server.state.neighbours.values():  # RP-3.1.7.1.2-17, -18
        neighbour.available.append(change)
    partition.last = partition.told_last = change.seq_number  # RP-3.1.7.1.2-19
    server.counters["decided"] += 1
    purge_when_due(server, partition)


def decide_request(server: Server, partition: Partition, change: DirectoryChange) -> int:
    """What another server, or somebody here, asks for in properties (RP-3.2.7.2-05 to -13)."""
    mark = server.objects.workspace.mark()
    try:
        _decide(server, partition, change)
    except FalconMQError as error:
        server.objects.workspace.restore(mark)
        return error.status
    return 0


def _decide(server: Server, partition: Partition, change: DirectoryChange) -> None:
    if change.command not in (CREATE, UPDATE, DELETE, SYNCHRONIZE):  # RP-3.2.7.2-12
        raise refusal(f"there is no command {change.command}", MqStatus.ERROR)
    table = type_of(change)
    if table is None:
        raise refusal("the change names no type of object", MqStatus.MQDS_WRONG_OBJ_TYPE)
    row = find_object(server, table, change.identifier)
    values = values_of(change.properties)
    is_new = change.command == CREATE or (change.command == SYNCHRONIZE and row is None)
    if is_new:
        _create_requested(server, partition, table, change, values)
        return
    if row is None:
        problem = f"the directory has no {table.type_name} {change.identifier!r}"
        raise refusal(problem, MqStatus.MQDS_OBJECT_NOT_FOUND)
    identifier = UUID(str(row["identifier"]))
    if change.command == DELETE and _delete_hidden(server, partition, table, change.identifier):
        return
    _check_is_shown(server, partition, table, identifier)
    if change.command == DELETE:
        decide_delete(server, partition, table, identifier)
        return
    changes = table.changes(values)
    _check_stays(server, partition, table, changes)
    written = server.objects.write(table, identifier, changes)
    pec_name = str(dict(change.properties).get(E_PECNAME, ""))
    _number_written(server, partition, table, written, {*changes, "modify_time"}, pec_name)


def _create_requested(
    server: Server,
    partition: Partition,
    table: ObjectTable,
    change: DirectoryChange,
    values: dict[str, object],
) -> None:
    path = PATHS.get(table.code)
    if path is not None and change.path_name is not None:
        values[path] = change.path_name
    if change.guid_identifier is not None:
        values["identifier"] = UUID(bytes_le=change.guid_identifier)
    row = table.complete(values)
    if "identifier" in values:  # the requester gave it one, so that he knows it too
        row["identifier"] = values["identifier"]
    if partition_of(server, table, row) != partition.partition_id:
        problem = f"a new {table.type_name} of another partition"
        raise refusal(problem, MqStatus.MQDS_UNKNOWN_SOURCE)
    decide_create(server, partition, table, row)


def with_owner(server: Server, table: ObjectTable, row: Row) -> Row:
    """A queue with the GUID of its machine, which is kept with the machine only."""
    if table.code != ObjectType.MQDS_QUEUE:
        return row
    machines = OBJECT_TABLES[ObjectType.MQDS_MACHINE]
    machine = server.objects.first(machines, "computer_name", row["computer_name"])
    if machine is None:
        return row
    return {**row, "queue_manager_identifier": machine["identifier"]}


def _check_stays(
    server: Server, partition: Partition, table: ObjectTable, changes: dict[str, object]
) -> None:
    """A machine stays in its partition: two servers cannot decide about one object."""
    sites = changes.get("site_identifiers")
    if table.code != ObjectType.MQDS_MACHINE or sites is None:
        return
    if partition_of(server, table, changes) != partition.partition_id:
        raise refusal(
            "a queue manager of a replicated directory keeps its first site",
            MqStatus.ILLEGAL_PROPERTY_VALUE,
            "to move it: delete it and create it in the other site",
        )


def _check_is_shown(
    server: Server, partition: Partition, table: ObjectTable, identifier: UUID
) -> None:
    """What is changed is what people see: not a claim behind that of another partition."""
    known = server.numbers.of(table.code, identifier)
    if known is not None and known[0] != partition.partition_id:
        raise refusal(
            f"{table.type_name} {identifier} is of another partition",
            MqStatus.MQDS_UNKNOWN_SOURCE,
            "if it is in two sites: falconmq directory replication remove-claim",
        )


def _check_is_of(server: Server, partition: Partition, machine: Row) -> None:
    """Who is registered again is told that it is there already; but not if it is somewhere else."""
    identifier = machine["identifier"]
    assert isinstance(identifier, UUID)
    place = server.numbers.of(ObjectType.MQDS_MACHINE, identifier)
    if place is not None and place[0] != partition.partition_id:
        raise refusal(
            f"queue manager {machine['computer_name']} is in another site, as far as is known here",
            MqStatus.MACHINE_EXISTS,
            "delete it there; when this server has heard of that, create it here",
        )


def _check_empty(server: Server, site: UUID) -> None:
    """Nobody would decide any more about what a site has, as far as that is known here."""
    objects = server.numbers.objects(site, MIN_SEQ_NUMBER, MAX_SEQ_NUMBER)
    if next(objects, None) is not None:
        raise refusal(
            "the site has queue managers or queues",
            MqStatus.DS_ERROR,
            "delete those first; with all of them: falconmq directory replication remove-site",
        )


def _change(
    command: int, name: Identifier, partition: Partition, number: int, properties: Properties
) -> DirectoryChange:
    """RP-3.1.7.1.2-11 to -16; the purged number is the change's own, so it is never stale: A-13."""
    return DirectoryChange(
        command, name, partition.partition_id.bytes_le, partition.last, number, number, properties
    )
