"""What a directory server knows of its partitions and neighbours (MQDSRP 3.1.1.2, 3.1.1.3).

What is kept in the store survives a restart; the rest begins anew, and is repaired by what the
neighbours say. `store` writes what has changed since the last commit and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from falconmq.directory.workspace import Workspace
from falconmq.errors import MqStatus, StoreError
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.store.interface import StoreReader
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER

TABLE: Final = "directory_replication"
VERSION: Final = 1
ENTERPRISE_PARTITION: Final = NULL_UUID
_PARTITION: Final = ("authority", "last", "purged", "allowed_purge", "purge_state")
_NEIGHBOUR: Final = ("site", "machine", "acked", "acked_enterprise", "last_acked_time")
_STANDING: Final = ("role", "psc", "resigned_at")


class PurgeState(IntEnum):
    """How far a full synchronisation of a partition is (RP-3.1.1.2.3-09)."""

    NORMAL = 0
    STARTSYNC0 = 1
    SYNC0 = 2
    COMPLETESYNC0 = 3


@dataclass(slots=True)
class Partition:
    """A part of the directory that one server decides about."""

    partition_id: UUID
    authority_name: str
    last: int = MIN_SEQ_NUMBER  # LastSeqNumber
    purged: int = MIN_SEQ_NUMBER  # PurgedSeqNumber
    allowed_purge: int = MIN_SEQ_NUMBER  # AllowedPurgeSeqNumber
    purge_state: PurgeState = PurgeState.NORMAL
    # Not kept: RP-3.1.1.2.3-11, -13, -15
    previous_purged: int = MIN_SEQ_NUMBER
    window: int = MAX_SEQ_NUMBER  # ChangeMissingWindow
    pending: list[DirectoryChange] = field(default_factory=list)
    told_last: int = MIN_SEQ_NUMBER  # the highest number that anybody spoke of
    unanswered: int = 0  # sync requests since the last answer

    @property
    def misses_changes(self) -> bool:
        """Whether a sync request is out, or should be."""
        if self.purge_state is not PurgeState.NORMAL:
            return True
        return self.window == MAX_SEQ_NUMBER or self.last + 1 < self.window

    @property
    def key(self) -> bytes:
        return b"P" + self.partition_id.bytes

    def facts(self) -> tuple[object, ...]:
        """What is kept, as `_PARTITION` names it."""
        return (
            self.authority_name,
            self.last,
            self.purged,
            self.allowed_purge,
            int(self.purge_state),
        )


@dataclass(slots=True)
class Neighbour:
    """A server that changes are sent to: another site's PSC, or a BSC of the own site."""

    partition_id: UUID  # its site
    machine_name: str
    is_bsc: bool
    acked: int = MIN_SEQ_NUMBER  # AckedSeqNumber, of a PSC
    acked_enterprise: int = MIN_SEQ_NUMBER  # AckedPECSeqNumber, of a PSC
    last_acked_time: float = 0.0  # LastAckedTime, of a BSC; A-32
    # Not kept: RP-3.1.1.2.4-07
    available: list[DirectoryChange] = field(default_factory=list)
    last_hello: float | None = None

    @property
    def key(self) -> bytes:
        """PSCs by their site, because the machine may change; BSCs by their name."""
        if self.is_bsc:
            return b"B" + self.machine_name.lower().encode(errors="surrogatepass")
        return b"C" + self.partition_id.bytes

    def facts(self) -> tuple[object, ...]:
        """What is kept, as `_NEIGHBOUR` names it."""
        return (
            self.partition_id.hex,
            self.machine_name,
            self.acked,
            self.acked_enterprise,
            self.last_acked_time,
        )


@dataclass(slots=True)
class Standing:
    """What this server is now; the directory may have made it something else than it began as."""

    role: str = ""  # "": it never began
    psc_name: str = ""  # of a BSC: whom it asks, MyPSCName
    resigned_at: int = MIN_SEQ_NUMBER  # the number of the own site at which it ceased to decide

    @property
    def key(self) -> bytes:
        return b"R"

    def facts(self) -> tuple[object, ...]:
        """What is kept, as `_STANDING` names it."""
        return self.role, self.psc_name, self.resigned_at


class ReplicationState:
    """All partitions and neighbours, and what this server is."""

    def __init__(self) -> None:
        self.partitions: dict[UUID, Partition] = {}
        self.neighbours: dict[bytes, Neighbour] = {}
        self.standing = Standing()
        self._stored: dict[bytes, tuple[object, ...]] = {}

    @classmethod
    def load(cls, reader: StoreReader) -> ReplicationState:
        state = cls()
        for key, record in reader.scan(TABLE):
            try:
                state._restore(key, json.loads(record))
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(
                    f"the record {key.hex()} of directory replication cannot be read: {error}",
                    status=MqStatus.MESSAGE_STORAGE_FAILED,
                    hint="nothing was changed; restore the data directory from a backup",
                ) from error
        state._stored = {item.key: item.facts() for item in state._items()}
        return state

    def store(self, workspace: Workspace) -> None:
        """Write what is not in the store as it is here."""
        found: dict[bytes, tuple[object, ...]] = {}
        for item in self._items():
            key, facts = item.key, item.facts()
            found[key] = facts
            if self._stored.get(key) != facts:
                fields = {"version": VERSION, **dict(zip(_NAMES[type(item)], facts, strict=True))}
                workspace.put(TABLE, key, json.dumps(fields, separators=(",", ":")).encode())
        for key in self._stored.keys() - found.keys():
            workspace.delete(TABLE, key)
        self._stored = found

    @property
    def pscs(self) -> list[Neighbour]:
        return [neighbour for neighbour in self.neighbours.values() if not neighbour.is_bsc]

    @property
    def bscs(self) -> list[Neighbour]:
        return [neighbour for neighbour in self.neighbours.values() if neighbour.is_bsc]

    def neighbour_named(self, machine_name: str) -> Neighbour | None:
        name = machine_name.lower()
        for neighbour in self.neighbours.values():
            if neighbour.machine_name.lower() == name:
                return neighbour
        return None

    def _items(self) -> Iterator[Partition | Neighbour | Standing]:
        yield from self.partitions.values()
        yield from self.neighbours.values()
        if self.standing.role:
            yield self.standing

    def _restore(self, key: bytes, fields: dict[str, Any]) -> None:
        if fields["version"] != VERSION:
            raise ValueError(f"version {fields['version']}, this FalconMQ writes {VERSION}")
        if key[:1] == b"P":
            partition = Partition(
                UUID(bytes=key[1:]),
                fields["authority"],
                fields["last"],
                fields["purged"],
                fields["allowed_purge"],
                PurgeState(fields["purge_state"]),
            )
            self.partitions[partition.partition_id] = partition
            return
        if key[:1] == b"R":
            self.standing = Standing(*(fields[name] for name in _STANDING))
            return
        neighbour = Neighbour(
            UUID(fields["site"]),
            fields["machine"],
            key[:1] == b"B",
            fields["acked"],
            fields["acked_enterprise"],
            fields["last_acked_time"],
        )
        self.neighbours[key] = neighbour


_NAMES: Final = {Partition: _PARTITION, Neighbour: _NEIGHBOUR, Standing: _STANDING}
