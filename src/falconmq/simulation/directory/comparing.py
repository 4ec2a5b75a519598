"""How servers stand to each other: who has most, and what a dead one had that its heir has not.

The names of that are needed, for these changes are forgiven.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.numbers import NumberReader
from falconmq.directory.replication.settings import Role
from falconmq.simulation.directory.enterprise import WATCHED
from falconmq.simulation.directory.ledger import Name
from falconmq.simulation.directory.server import DirectoryServer
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER

Place = tuple[int, UUID]


def furthest(servers: Iterable[DirectoryServer], partition: UUID) -> DirectoryServer:
    return max(servers, key=lambda server: _last(server, partition))


def _last(server: DirectoryServer, partition: UUID) -> int:
    known = server.partition(partition)
    return -1 if known is None else known.last


def is_now(server: DirectoryServer, role: Role) -> bool:
    status = server.status()
    return status is not None and status.role == role.value and status.psc_name != server.name


def asks(bsc: DirectoryServer, psc: DirectoryServer) -> bool:
    status = bsc.status()
    return status is not None and status.psc_name == psc.name


def differences(one: DirectoryServer, other: DirectoryServer, partition: UUID) -> list[Name]:
    """The names of what two servers do not have in the same state."""
    first, second = _numbers(one, partition), _numbers(other, partition)
    names = []
    for place in first.keys() | second.keys():
        if first.get(place) != second.get(place):
            names += [name for server in (one, other) for name in _names(server, place)]
    return sorted(names)


def _numbers(server: DirectoryServer, partition: UUID) -> dict[Place, int]:
    with server.directory.reading() as (_, reader):
        numbers = NumberReader(reader)
        return {
            (entry.object_type, entry.identifier): entry.number
            for entry in numbers.objects(partition, MIN_SEQ_NUMBER, MAX_SEQ_NUMBER)
        }


def _names(server: DirectoryServer, place: Place) -> Iterator[Name]:
    code, identifier = place
    with server.directory.reading() as (objects, _):
        for type_name, (key, _) in WATCHED.items():
            table = tables.table_of(type_name)
            row = objects.get(table, identifier) if table.code == code else None
            if row is not None:
                yield type_name, str(row[key]).lower()
