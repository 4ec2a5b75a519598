"""What operators see of replication: how far each partition is, and what two servers differ in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.records import decode_row, encode_row, object_key
from falconmq.directory.replication.eras import era_of, number_in_era
from falconmq.directory.replication.numbers import NumberReader
from falconmq.directory.replication.properties import OBJECT_TABLES, carried_names
from falconmq.directory.replication.roles import is_waiting_for_role
from falconmq.directory.replication.server import Server
from falconmq.directory.schema import ObjectTable
from falconmq.manager.directory_objects import Row


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition."""

    partition_id: UUID
    authority: str
    is_own: bool
    last: int
    purged: int
    allowed_purge: int
    state: str
    pending: int
    told_last: int
    is_waiting: bool  # a sync request has no answer yet

    @property
    def lag(self) -> int:
        """How many changes are known of that are not here; of a later era, those that it has."""
        if era_of(self.told_last) > era_of(self.last):
            return number_in_era(self.told_last)
        return max(0, self.told_last - self.last)


@dataclass(frozen=True, slots=True)
class NeighbourStatus:
    """One neighbour; `last_hello` is a moment of the monotonic clock."""

    machine: str
    site: UUID
    kind: str
    waiting_changes: int
    acked: int
    acked_enterprise: int
    last_acked_time: float
    last_hello: float | None
    is_silent: bool  # a BSC that missed too many acks


@dataclass(frozen=True, slots=True)
class ReplicationStatus:
    role: str
    machine_name: str
    site: UUID
    psc_name: str
    partitions: list[PartitionStatus]
    neighbours: list[NeighbourStatus]
    waiting_writes: int
    awaits_role: bool  # named as the PSC of its site, and the old one has not handed over


def status_of(server: Server) -> ReplicationStatus:
    partitions = [
        PartitionStatus(
            partition.partition_id,
            partition.authority_name,
            server.owns(partition),
            partition.last,
            partition.purged,
            partition.allowed_purge,
            partition.purge_state.name,
            len(partition.pending),
            max(partition.told_last, partition.last),
            not server.owns(partition) and partition.misses_changes,
        )
        for partition in server.state.partitions.values()
    ]
    allowed = server.settings.bsc_ack_seconds * server.settings.missed_bsc_acks_max
    oldest = server.clock.time() - allowed
    neighbours = [
        NeighbourStatus(
            neighbour.machine_name,
            neighbour.partition_id,
            "BSC" if neighbour.is_bsc else "PSC",
            len(neighbour.available),
            neighbour.acked,
            neighbour.acked_enterprise,
            neighbour.last_acked_time,
            neighbour.last_hello,
            neighbour.is_bsc and 0 < neighbour.last_acked_time < oldest,
        )
        for neighbour in server.state.neighbours.values()
    ]
    return ReplicationStatus(
        server.role.value,
        server.name,
        server.identity.site,
        server.my_psc_name,
        partitions,
        neighbours,
        len(server.waiting),
        is_waiting_for_role(server),
    )


@dataclass(frozen=True, slots=True)
class Double:
    """An object that is in two sites, or more, by what their servers say."""

    table: ObjectTable
    row: Row  # as it is shown
    shown: UUID  # the site whose word that is
    others: tuple[UUID, ...]


def doubles(directory: EmbeddedDirectory, most: int | None = None) -> list[Double]:
    """The objects that are in two sites, or so many of them; nearly always there are none."""
    found: dict[tuple[int, UUID], list[UUID]] = {}
    with directory.reading() as (objects, reader):
        numbers = NumberReader(reader)
        for code, identifier, said in numbers.all_hidden():
            if len(found) == most and (code, identifier) not in found:
                break
            found.setdefault((code, identifier), []).append(said.partition)
        listed = []
        for (code, identifier), others in found.items():
            table, place = OBJECT_TABLES[code], numbers.of(code, identifier)
            row = objects.get(table, identifier)
            if row is not None and place is not None:
                listed.append(Double(table, row, place[0], tuple(others)))
        return listed


def fingerprints(directory: EmbeddedDirectory) -> dict[str, str]:
    """A line for each object and each remembered deletion: equal lines, equal copies."""
    lines: dict[str, str] = {}
    with directory.reading() as (objects, reader):
        numbers = NumberReader(reader)
        for code, identifier, partition, number in numbers.numbered():
            table = OBJECT_TABLES[code]
            row = objects.get(table, identifier)
            digest = "missing" if row is None else _digest(table, row)
            lines[f"{partition}/{table.type_name}/{identifier}"] = f"{number} {digest}"
        for code, identifier, said in numbers.all_hidden():
            table = OBJECT_TABLES[code]
            row = decode_row(table, object_key(table, identifier), said.record)
            key = f"{said.partition}/{table.type_name}/{identifier}"
            lines[key] = f"{said.number} {_digest(table, row)}"
        for partition, deletion in numbers.all_deletions():
            key = f"{partition}/deleted/{deletion.identifier}"
            lines[key] = f"{deletion.number} {OBJECT_TABLES[deletion.object_type].type_name}"
    return lines


def _digest(table: ObjectTable, row: Row) -> str:
    """Of what copies have; the rest is each server's own."""
    names = carried_names(table, later=True) | {"identifier"}
    usual = {attribute.name: attribute.default for attribute in table.attributes}
    compared = usual | {name: value for name, value in row.items() if name in names}
    return hashlib.blake2b(encode_row(table, compared), digest_size=8).hexdigest()
