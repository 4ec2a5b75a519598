"""What is known here of a directory object and of the servers that decide about it.

Read beside the loop: the directory and the replication engine are asked, no other server is. What
it means is judged in `replication_judging`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory import tables
from falconmq.directory.queries import find_all, find_one
from falconmq.directory.replication.eras import era_of, number_in_era
from falconmq.directory.replication.numbers import NumberReader
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.status import PartitionStatus, ReplicationStatus
from falconmq.directory.schema import ObjectTable
from falconmq.directory.texts import WORDS, named
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.service.directory.replicating import Replication

_WORDS: Final = {type_name: word for word, type_name in WORDS.items()}
# By what people call them; a user is looked for by GUID, and so are links.
_NAMED: Final = (tables.QUEUE, tables.QUEUE_MANAGER, tables.SITE, tables.CONNECTED_NETWORK)


class Spot(NamedTuple):
    """Where an object, or its deletion, is in the order of changes."""

    word: str  # queue, site, ...
    identifier: UUID
    partition: UUID
    number: int
    is_deleted: bool
    others: tuple[UUID, ...] = ()  # the sites that have it too


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition that the object is of, or may be of."""

    name: str
    authority: str
    source: str  # whom this server asks: the authority; of a backup controller, its PSC
    is_own: bool
    last: int
    told_last: int
    pending: int
    state: str
    asked_seconds: float | None  # since when an answer is awaited; None: none is
    asked_times: int
    heard_seconds: float | None  # since the source was last heard; None: not since the start

    @property
    def lag(self) -> int:
        return max(0, self.told_last - self.last)


@dataclass(frozen=True, slots=True)
class ReplicationFacts:
    """Everything at one moment."""

    subject: str
    now: float
    machine: str
    role: str
    is_ready: bool
    running_seconds: float
    spot: Spot | None
    partitions: tuple[PartitionFacts, ...]  # all of them, if nobody knows which it is
    to_send: dict[str, int] = field(default_factory=dict)  # changes, by neighbour
    also_in: tuple[str, ...] = ()  # the names of other sites that have the object


def replication_facts(replication: Replication, clock: Clock, subject: str) -> ReplicationFacts:
    """Look for an object by its name or GUID; FalconMQError if the store cannot be read."""
    status = replication.replicator.status()
    known = [each.partition_id for each in status.partitions]
    spot = _find(replication, known, subject)
    partition = _partition_of(replication, subject) if spot is None else spot.partition
    chosen = [each for each in status.partitions if each.partition_id == partition]
    reader = _Reader(replication, status, clock)
    return ReplicationFacts(
        subject,
        clock.time(),
        status.machine_name,
        status.role,
        replication.is_ready.is_set(),
        clock.time() - replication.carrier.notes.since,
        spot,
        tuple(reader.read(each) for each in chosen or status.partitions),
        _to_send(status),
        () if spot is None else reader.names_of(spot.others),
    )


def _to_send(status: ReplicationStatus) -> dict[str, int]:
    return {each.machine: each.waiting_changes for each in status.neighbours}


class _Reader:
    """Knows the names of sites, and which GUIDs the servers have."""

    def __init__(self, replication: Replication, status: ReplicationStatus, clock: Clock) -> None:
        rows = find_all(replication.own, tables.SITE, (), ("identifier", "name"))
        self._sites = {row["identifier"]: str(row["name"]) for row in rows}
        self._replication = replication
        self._psc_name = status.psc_name
        self._now = clock.time()

    def names_of(self, sites: tuple[UUID, ...]) -> tuple[str, ...]:
        return tuple(sorted(self._sites.get(site, str(site)) for site in sites))

    def read(self, status: PartitionStatus) -> PartitionFacts:
        partition = status.partition_id
        source = self._psc_name or status.authority
        notes = self._replication.carrier.notes
        asked = notes.asked.get(partition) if status.is_waiting else None
        heard = notes.heard.get(self._guid(source)) if source else None
        is_enterprise = partition == ENTERPRISE_PARTITION
        return PartitionFacts(
            "enterprise" if is_enterprise else self._sites.get(partition, str(partition)),
            status.authority,
            source,
            status.is_own,
            # As people count: since somebody took it over.
            0 if era_of(status.told_last) > era_of(status.last) else number_in_era(status.last),
            number_in_era(status.told_last),
            status.pending,
            status.state,
            None if asked is None else max(0.0, self._now - asked.since),
            0 if asked is None else asked.times,
            None if heard is None else max(0.0, self._now - heard),
        )

    def _guid(self, machine: str) -> UUID:
        """By the directory, or by what an administrator said before there was one."""
        by_name = equals("computer_name", machine)
        row = find_one(self._replication.own, tables.QUEUE_MANAGER, by_name, ("identifier",))
        if row is not None and isinstance(row["identifier"], UUID):
            return row["identifier"]
        trusted, wanted = list(self._replication.identity.trusted.items()), machine.lower()
        return next((guid for guid, name in trusted if name.lower() == wanted), NULL_UUID)


def _find(replication: Replication, partitions: list[UUID], subject: str) -> Spot | None:
    try:
        return _find_numbered(replication, partitions, UUID(subject))
    except ValueError:
        pass
    for type_name in _NAMED:
        filters = named(tables.table_of(type_name), subject)
        row = find_one(replication.own, type_name, filters, ("identifier",))
        if row is not None and isinstance(row["identifier"], UUID):
            return _find_numbered(replication, partitions, row["identifier"])
    return None


def _find_numbered(
    replication: Replication, partitions: list[UUID], identifier: UUID
) -> Spot | None:
    """An object first: one that was deleted and made again is there."""
    with replication.own.reading() as (_, reader):
        numbers = NumberReader(reader)
        for code, table in OBJECT_TABLES.items():
            place = numbers.of(code, identifier)
            if place is not None:
                partition, number = place[0], number_in_era(place[1])
                others = tuple(each.partition for each in numbers.hidden(code, identifier))
                return Spot(
                    _word(table), identifier, partition, number, is_deleted=False, others=others
                )
        for partition in partitions:
            found = numbers.deletion(partition, identifier)
            if found is not None:
                deleted = numbers.deletions(partition, found, found)
                kind = next(each.object_type for each in deleted if each.identifier == identifier)
                word = _word(OBJECT_TABLES[kind])
                return Spot(word, identifier, partition, number_in_era(found), is_deleted=True)
    return None


def _word(table: ObjectTable) -> str:
    return _WORDS.get(table.type_name, table.type_name)


def _partition_of(replication: Replication, subject: str) -> UUID | None:
    r"""Where a queue would be that is not here: with its computer, as COMPUTER\QUEUE says."""
    computer, separator, _ = subject.partition("\\")
    if not separator:
        return None
    by_name = equals("computer_name", computer)
    row = find_one(replication.own, tables.QUEUE_MANAGER, by_name, ("identifier",))
    if row is None or not isinstance(row["identifier"], UUID):
        return None
    with replication.own.reading() as (_, reader):
        code = tables.table_of(tables.QUEUE_MANAGER).code
        place = NumberReader(reader).of(code, row["identifier"])
    return None if place is None else place[0]
