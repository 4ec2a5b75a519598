"""Deliberate mistakes in directory replication, to show that the checkers bite.

Much that one would take for a mistake is none: replication repairs lost messages and memories by
itself. These are mistakes that nothing repairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from falconmq.directory.replication import (
    applying,
    claims,
    deciding,
    engine,
    purging,
    receiving,
    requesting,
    roles,
    serving,
    synchronizing,
    taking_over,
    topology,
    write_requests,
)
from falconmq.directory.replication.applying import find_object, type_of
from falconmq.directory.replication.numbers import Entry, NumberBook, NumberReader
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import Partition, PurgeState, ReplicationState
from falconmq.directory.schema import ObjectTable
from falconmq.directory.workspace import Workspace
from falconmq.simulation.mutations import Replacement
from falconmq.wire.directory_change import CREATE, UPDATE, DirectoryChange
from falconmq.wire.sequence_number import MIN_SEQ_NUMBER

_handle_change = receiving.handle_change
_decide_request = deciding.decide_request
_decide = deciding._decide  # noqa: SLF001
_claim = claims.claim
_facts = Partition.facts
_store = ReplicationState.store
_LATE: Final = 3  # turns until the numbers are written


def _nothing(*_: object, **__: object) -> None:
    return None


def _no_elements(*_: object, **__: object) -> Iterator[object]:
    return iter(())


def _skip_gap(
    server: Server, partition: Partition, change: DirectoryChange, *, may_flush: bool
) -> None:
    change.previous_seq_number = min(change.previous_seq_number, partition.last)
    _handle_change(server, partition, change, may_flush=may_flush)


def _apply_old_changes(
    server: Server, partition: Partition, change: DirectoryChange, *, may_flush: bool
) -> None:
    """What comes late comes into force again."""
    last = partition.last
    if MIN_SEQ_NUMBER < change.seq_number <= last:
        partition.last = change.seq_number - 1
    _handle_change(server, partition, change, may_flush=may_flush)
    partition.last = max(last, partition.last)


def _forget_more(server: Server, partition: Partition, limit: int) -> None:
    """Deletions are forgotten that somebody may not have heard of."""
    server.numbers.forget_deletions(partition.partition_id, MIN_SEQ_NUMBER, partition.last)
    partition.purged = limit


def _count_what_waits(partition: Partition) -> tuple[object, ...]:
    """The store says that early changes were applied; a restart forgets them."""
    authority, last, *rest = _facts(partition)
    if partition.pending:
        last = max(partition.last, partition.pending[-1].seq_number)
    return authority, last, *rest


def _forget_full_sync(partition: Partition) -> tuple[object, ...]:
    *facts, _ = _facts(partition)
    return *facts, int(PurgeState.NORMAL)


def _store_late(state: ReplicationState, workspace: Workspace) -> None:
    """The number of a partition is written some commits after its object."""
    turns = getattr(workspace._store, "late", 0) + 1  # noqa: SLF001
    workspace._store.late = turns  # type: ignore[attr-defined]  # noqa: SLF001
    if turns % _LATE == 0:
        _store(state, workspace)


def _objects_only(reader: NumberReader, partition: UUID, first: int, last: int) -> Iterator[Entry]:
    return reader.objects(partition, first, last)


def _no_window(_: int) -> int:
    """A hello says that something is missing; up to where is not remembered, and not asked for."""
    return MIN_SEQ_NUMBER


def _say_yes(server: Server, partition: Partition, change: DirectoryChange) -> int:
    """Whoever asked from elsewhere hears of success, also of what was refused."""
    _decide_request(server, partition, change)
    return 0


def _say_yes_and_do_nothing(*_: object) -> int:
    return 0


def _make_what_is_missing(server: Server, partition: Partition, change: DirectoryChange) -> None:
    """A change of what was deleted meanwhile makes it again."""
    table = type_of(change)
    is_missing = table is not None and find_object(server, table, change.identifier) is None
    if change.command == UPDATE and is_missing:
        change.command = CREATE
    _decide(server, partition, change)


def _keep_the_younger(
    server: Server, table: ObjectTable, partition: UUID, number: int, row: dict[str, object]
) -> None:
    """Of an object that two partitions have, the one that was made first is thrown away."""
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    shown, known = server.numbers.of(table.code, identifier), server.objects.get(table, identifier)
    if shown is not None and shown[0] != partition and known is not None:
        made, before = row.get("create_time", 0), known.get("create_time", 0)
        assert isinstance(made, int)
        assert isinstance(before, int)
        if made < before:
            return
        server.numbers.take_away(table.code, identifier)
    _claim(server, table, partition, number, row)


def _begin_no_era(server: Server, partition: Partition) -> None:
    """Whoever takes over goes on with the numbers of the dead server."""
    partition.authority_name = server.name


def _no_end(number: int) -> int:
    """A copy answers up to whatever it was asked for."""
    return number + 1_000_000


def _always(*_: object, **__: object) -> bool:
    return True


def _never(*_: object, **__: object) -> bool:
    return False


DIRECTORY_MUTATIONS: Final[Mapping[str, tuple[Replacement, ...]]] = {
    "skip a gap": ((receiving, "handle_change", _skip_gap),),
    "apply old changes again": ((receiving, "handle_change", _apply_old_changes),),
    "purge too early": ((purging, "_forget", _forget_more),),
    "lose the pending changes at a restart": ((Partition, "facts", _count_what_waits),),
    "keep no deletions": ((NumberBook, "bury", _nothing),),
    "write the sequence number in a later commit": ((ReplicationState, "store", _store_late),),
    "do not move the window": ((receiving, "increment", _no_window),),
    "do not close the window": ((synchronizing, "_close_window", _nothing),),
    "keep what a full synchronisation did not name": ((synchronizing, "_drop_marked", _nothing),),
    "forget a full synchronisation at a restart": ((Partition, "facts", _forget_full_sync),),
    "leave deletions out of answers": ((NumberReader, "both", _objects_only),),
    "say no hello": ((requesting, "_hello", _no_elements),),
    "do not hear that deletions are forgotten": ((engine, "receive_already_purged", _nothing),),
    "obey a request that comes again": ((write_requests, "answer_of", _nothing),),
    "say yes to what was refused": ((write_requests, "decide_request", _say_yes),),
    "say yes and do nothing": ((write_requests, "decide_request", _say_yes_and_do_nothing),),
    "make again what was deleted": ((deciding, "_decide", _make_what_is_missing),),
    "find no neighbours in a new role": ((roles, "recognize", _nothing),),
    "begin before the old one has ended": ((roles, "_is_handed_over", _always),),
    "take over with the old numbers": ((taking_over, "begin_era", _begin_no_era),),
    "believe the dead server": ((receiving, "hear_of_era", _never),),
    "keep what was in a site that is gone": ((topology, "forget_objects", _nothing),),
    "keep one claim of two": ((applying, "claim", _keep_the_younger),),
    "answer for more than a copy has": ((serving, "increment", _no_end),),
}
