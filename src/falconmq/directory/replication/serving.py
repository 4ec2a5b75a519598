"""Answers to sync requests (MQDSRP 3.2.7.3, 3.2.7.7, 3.2.7.8; guide 9.7).

Whoever has a partition can serve it, its authority or a copy: all that has a number in the range,
objects and deletions, in ascending order, each naming the number before it. An answer that is too
long is cut at a number; the rest follows by itself, or is asked for during a full synchronisation.
"""

from __future__ import annotations

from uuid import UUID

from falconmq.directory.replication.checks import Speaker
from falconmq.directory.replication.claims import claimed
from falconmq.directory.replication.deciding import with_owner
from falconmq.directory.replication.effects import Profile
from falconmq.directory.replication.numbers import Entry
from falconmq.directory.replication.properties import (
    ENTERPRISE_TYPES,
    OBJECT_TABLES,
    deletion_properties,
    sync_properties,
)
from falconmq.directory.replication.purging import purge_like
from falconmq.directory.replication.server import LongReply, Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.directory.replication.timers import TimerKind
from falconmq.manager.states import QueueScope
from falconmq.wire.directory_change import DELETE, SYNCHRONIZE, DirectoryChange
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.replication_messages import (
    COMPLETE_SYNC0_NOW,
    COMPLETE_SYNC0_SOON,
    NOT_SYNC0,
    SCOPE_ENTERPRISE,
    AlreadyPurgedMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, increment


def receive_sync_request(server: Server, request: SyncRequestMessage, speaker: Speaker) -> None:
    """Serve a request, or say that it comes too late, or nothing at all."""
    partition = server.state.partitions.get(UUID(bytes_le=request.partition_id))
    if not speaker.is_named(request.requester_name):
        server.drop("sync_request_in_another_name")
        return
    if partition is None or partition.purge_state is not PurgeState.NORMAL:  # -02, -03
        server.drop("cannot_serve")
        return
    known = request.known_purged_seq_number
    purge_like(server, partition, known)
    if request.from_seq_number < partition.purged and known < partition.purged:  # -04, -05
        _send_already_purged(server, partition, request.requester_name)
        return
    last = request.to_seq_number
    if last == MAX_SEQ_NUMBER:  # -06
        last = partition.last
    if not server.owns(partition):
        # A copy answers for no more than it has: it may be asked for what somebody else told.
        last = min(last, increment(partition.last))
    task = LongReply(
        partition.partition_id, request.requester_name, request.from_seq_number, last, request.scope
    )
    changes, end = _collect(server, partition, task, task.first)
    is_whole = end == last
    complete = NOT_SYNC0  # -15
    if request.is_sync0:  # -16, -17
        is_now = is_whole and last == partition.last
        complete = COMPLETE_SYNC0_NOW if is_now else COMPLETE_SYNC0_SOON
    _send_reply(server, partition, task, changes, end, complete)
    if not is_whole and not request.is_sync0:
        _go_on(server, task, end)


def send_rest(server: Server, task: LongReply) -> None:
    """The next part of an answer; what was changed meanwhile has a higher number and comes so."""
    partition = server.state.partitions.get(task.partition_id)
    if partition is None or partition.purge_state is not PurgeState.NORMAL:
        return
    changes, end = _collect(server, partition, task, task.first + 1)
    _send_reply(server, partition, task, changes, end, NOT_SYNC0)
    if end != task.last:
        _go_on(server, task, end)


def _go_on(server: Server, task: LongReply, end: int) -> None:
    rest = LongReply(task.partition_id, task.requester_name, end, task.last, task.scope)
    server.arm(TimerKind.SYNC_REPLY, rest, 0.0)


def _send_already_purged(server: Server, partition: Partition, requester_name: str) -> None:
    message = AlreadyPurgedMessage(
        server.site_bytes, partition.partition_id.bytes_le, partition.purged
    )
    server.send(requester_name, message, Profile.QUIET)


def _send_reply(
    server: Server,
    partition: Partition,
    task: LongReply,
    changes: list[DirectoryChange],
    end: int,
    complete: int,
) -> None:
    reply = SyncReplyMessage(
        server.site_bytes,
        partition.partition_id.bytes_le,
        task.first,
        end,
        partition.purged,
        complete,
        changes,
    )
    server.counters["sync_replies"] += 1
    server.send(task.requester_name, reply, Profile.QUIET)


def _collect(
    server: Server, partition: Partition, task: LongReply, first: int
) -> tuple[list[DirectoryChange], int]:
    """As many changes as one message takes, and the number up to which they go."""
    settings = server.settings
    changes: list[DirectoryChange] = []
    size, previous = 0, task.first  # RP-3.2.7.3-13
    for entry in server.numbers.both(partition.partition_id, first, task.last):
        change = _change_of(server, partition, entry, task.scope)
        if change is None:
            continue
        change.previous_seq_number = previous
        size += len(change.encode())
        is_full = len(changes) >= settings.message_changes_max or size > settings.message_bytes_max
        if is_full and previous > task.first:  # something new is in it, so the next one gets on
            return changes, previous
        changes.append(change)
        previous = entry.number
    return changes, task.last


def _change_of(
    server: Server, partition: Partition, entry: Entry, scope: int
) -> DirectoryChange | None:
    """The change that makes an object, or its deletion, known; None for what is not asked for."""
    table = OBJECT_TABLES[entry.object_type]
    is_of_enterprise = partition.partition_id == ENTERPRISE_PARTITION
    if (table.code in ENTERPRISE_TYPES) is not is_of_enterprise:  # RP-3.2.7.3-07, -08
        return None
    command, properties = DELETE, deletion_properties(entry.scope, entry.object_type)
    if not entry.is_deleted:
        row = claimed(server, table, partition.partition_id, entry.identifier)
        if row is None:
            return None
        is_queue = table.code == ObjectType.MQDS_QUEUE  # RP-3.2.7.8-02, -20
        if is_queue and scope == SCOPE_ENTERPRISE and row["scope"] != QueueScope.ENTERPRISE:
            return None
        command, later = SYNCHRONIZE, server.settings.has_later_properties
        properties = sync_properties(
            table,
            with_owner(server, table, row),
            later=later,
            pec_name=server.enterprise.authority_name,
        )
    return DirectoryChange(
        command,
        entry.identifier.bytes_le,
        partition.partition_id.bytes_le,
        seq_number=entry.number,
        purged_seq_number=partition.purged,
        properties=properties,
    )
