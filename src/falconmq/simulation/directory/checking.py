"""After quiet time: all copies are the same, and every promise was kept."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.numbers import NumberReader
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.status import ReplicationStatus, fingerprints
from falconmq.simulation.directory.enterprise import NEAR, WATCHED, Enterprise
from falconmq.simulation.directory.ledger import Name
from falconmq.simulation.directory.server import DirectoryServer
from falconmq.simulation.world import SimulationError

_QUEUES: Final = tables.table_of(tables.QUEUE)


def check_quiet(enterprise: Enterprise) -> None:
    """Everything; SimulationError says what is wrong and where."""
    statuses = {server.name: _status(server) for server in enterprise.servers.values()}
    for server in enterprise.servers.values():
        _check_at_rest(server, statuses[server.name])
        _check_topology(enterprise, server, statuses[server.name])
    _check_numbers(enterprise, statuses)
    _check_copies(enterprise, statuses)
    found = _objects(enterprise, enterprise.pec)
    for site in enterprise.controllers:
        found.update(_objects(enterprise, enterprise.psc(site)))
    enterprise.ledger.check(found, enterprise.is_open)


def _status(server: DirectoryServer) -> ReplicationStatus:
    status = server.status()
    if status is None:
        raise SimulationError(f"{server.name} is down, and nobody starts it")
    return status


def _check_at_rest(server: DirectoryServer, status: ReplicationStatus) -> None:
    for partition in status.partitions:
        where = f"{server.name}, partition {partition.partition_id}"
        if partition.state != "NORMAL":
            raise SimulationError(f"{where}: a full synchronisation never ends: {partition.state}")
        if partition.pending or partition.is_waiting:
            raise SimulationError(f"{where} waits for ever for missing changes")
    if status.waiting_writes:
        raise SimulationError(f"{server.name} has {status.waiting_writes} writes that never end")


def _check_topology(
    enterprise: Enterprise, server: DirectoryServer, status: ReplicationStatus
) -> None:
    controllers = enterprise.controllers
    expected = {ENTERPRISE_PARTITION: enterprise.pec_name, **controllers}
    found = {each.partition_id: each.authority for each in status.partitions}
    if found != expected:
        raise SimulationError(f"{server.name} believes in the authorities {found}, not {expected}")
    own = {partition for partition, name in expected.items() if name == server.name}
    if own != {each.partition_id for each in status.partitions if each.is_own}:
        raise SimulationError(f"{server.name} does not decide about what it should")
    wanted = set()
    if server.role is not Role.BSC:
        wanted = {name for name in controllers.values() if name != server.name}
        wanted |= {bsc.name for bsc in enterprise.bscs(server.site)}
    neighbours = {each.machine for each in status.neighbours}
    if neighbours != wanted:
        raise SimulationError(
            f"{server.name} tells {sorted(neighbours)}, and should tell {sorted(wanted)}"
        )


def _check_numbers(enterprise: Enterprise, statuses: dict[str, ReplicationStatus]) -> None:
    lasts = {
        each.partition_id: each.last
        for status in statuses.values()
        for each in status.partitions
        if each.is_own
    }
    for name, status in statuses.items():
        for each in status.partitions:
            if each.last != lasts[each.partition_id]:
                authority = enterprise.authority(each.partition_id).name
                raise SimulationError(
                    f"{name} is at {each.last} of partition {each.partition_id}, "
                    f"{authority} at {lasts[each.partition_id]}"
                )


def _check_copies(enterprise: Enterprise, statuses: dict[str, ReplicationStatus]) -> None:
    """Objects and their numbers; and the deletions that nobody may have forgotten yet."""
    purged: dict[UUID, int] = {}
    for status in statuses.values():
        for each in status.partitions:
            purged[each.partition_id] = max(purged.get(each.partition_id, 0), each.purged)
    for server in enterprise.servers.values():
        _compare(enterprise.pec, server, purged)
        _compare(enterprise.psc(server.site), server, purged)


def _compare(one: DirectoryServer, other: DirectoryServer, purged: dict[UUID, int]) -> None:
    is_same_site = one.site == other.site
    first, lines = (
        _lines(server, purged, with_near_queues=is_same_site) for server in (one, other)
    )
    for key in sorted(first.keys() | lines.keys()):
        if first.get(key) != lines.get(key):
            raise SimulationError(
                f"{key} is {first.get(key)} at {one.name} and {lines.get(key)} at {other.name}"
            )


def _lines(
    server: DirectoryServer, purged: dict[UUID, int], *, with_near_queues: bool
) -> dict[str, str]:
    """Other sites may know a queue of site scope or not; within its site all know it."""
    lines = {}
    with server.directory.reading() as (objects, _):
        for key, value in fingerprints(server.directory).items():
            partition, kind, identifier = key.split("/")
            if kind == "deleted" and int(value.split()[0]) <= purged.get(UUID(partition), 0):
                continue
            row = objects.get(_QUEUES, UUID(identifier)) if kind == tables.QUEUE else None
            is_near = row is not None and NEAR in str(row["path_name"])
            if not is_near or (with_near_queues and UUID(partition) == server.site):
                lines[key] = value
    return lines


def _objects(enterprise: Enterprise, server: DirectoryServer) -> dict[Name, object]:
    """What a directory has: the watched value of each object, by its name."""
    found: dict[Name, object] = {}
    with server.directory.reading() as (objects, reader):
        numbers = NumberReader(reader)
        for type_name, (key, attribute) in WATCHED.items():
            table = tables.table_of(type_name)
            for identifier in objects.identifiers(table):
                row = objects.get(table, identifier)
                assert row is not None
                name = (type_name, str(row[key]).lower())
                place = numbers.of(table.code, identifier)
                if NEAR in name[1] and place is not None and place[0] != server.site:
                    continue
                if name in found and not enterprise.is_open(name):
                    raise SimulationError(f"{type_name} {name[1]} is there twice")
                found[name] = row[attribute]
    return found
