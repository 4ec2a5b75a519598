"""Asking for what is missing, up to everything: a sync as its client sees it (MQDSRP 3.3.7.5).

A partition that was away for so long that deletions are forgotten is fetched as a whole: all
objects are marked, everything is applied anew, and what is still marked at the end is gone. Each
step is kept in the store, so a crash in any of them goes on where it was (A-28).
"""

from __future__ import annotations

from uuid import UUID

from falconmq.directory.replication.applying import follow_deletion, let_go
from falconmq.directory.replication.checks import Speaker, may_tell
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.receiving import check_pending, process_changes, went_on
from falconmq.directory.replication.requesting import begin_full_sync, send_sync_request
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import Partition, PurgeState
from falconmq.directory.replication.taking_over import ask_around
from falconmq.directory.replication.timers import Timer, TimerKind
from falconmq.wire.replication_messages import (
    COMPLETE_SYNC0_NOW,
    COMPLETE_SYNC0_SOON,
    AlreadyPurgedMessage,
    SyncReplyMessage,
)
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER, decrement


def receive_sync_reply(server: Server, reply: SyncReplyMessage, speaker: Speaker) -> None:
    """Take in what was asked for (MQDSRP 3.3.7.5)."""
    partition = _told(server, reply.partition_id, speaker)
    if partition is None or reply.purged_seq_number < partition.purged:  # -03, -08
        return
    before, partition.unanswered = partition.last, 0
    process_changes(server, reply.directory_changes, speaker, may_flush=True)  # -04
    asked = server.asked_around.get(partition.partition_id)
    if asked is not None and asked.has(speaker.name):
        if partition.last > before:
            ask_around(server, partition, [speaker.name])  # until it has nothing new
        elif reply.from_seq_number == before:  # and not a late part of an earlier answer
            asked.heard(speaker.name)
    if partition.purge_state is PurgeState.SYNC0:
        if reply.complete_sync0 == COMPLETE_SYNC0_NOW:  # -05
            partition.purge_state = PurgeState.COMPLETESYNC0
            server.arm(TimerKind.RESET, partition.partition_id, 0.0)
        elif reply.complete_sync0 == COMPLETE_SYNC0_SOON and partition.last > before:  # -06
            send_sync_request(server, partition)  # once: an answer that comes twice brings no news
    elif partition.purge_state is PurgeState.NORMAL:
        _close_window(server, partition, reply, before)
        check_pending(server, partition)  # -12
        _ask_for_the_rest(server, partition, reply, before)
    if not partition.misses_changes:
        server.timers.cancel(Timer(TimerKind.SYNC_RESEND, partition.partition_id))


def _close_window(
    server: Server, partition: Partition, reply: SyncReplyMessage, before: int
) -> None:
    """Nothing is missing any more, or nothing ever was (RP-3.3.7.5-09 to -11).

    The lookup includes the number that was asked from, so an answer with that alone is empty too.
    """
    if partition.window == MIN_SEQ_NUMBER:
        return  # none is open: an answer that came twice
    if partition.window == MAX_SEQ_NUMBER:
        partition.window = MIN_SEQ_NUMBER
        return
    is_news = any(change.seq_number > before for change in reply.directory_changes)
    if not is_news and partition.window == reply.to_seq_number:
        partition.window = MIN_SEQ_NUMBER
        partition.last = max(partition.last, decrement(reply.to_seq_number))
        went_on(server, partition, before)


def _ask_for_the_rest(
    server: Server, partition: Partition, reply: SyncReplyMessage, before: int
) -> None:
    """The answer is all there, and yet something is missing: the highest numbers were not for us.

    Asked again, the answer is empty, and that closes the window.
    """
    is_end = partition.window == reply.to_seq_number
    if is_end and partition.misses_changes and partition.last > before:
        send_sync_request(server, partition)


def receive_already_purged(server: Server, message: AlreadyPurgedMessage, speaker: Speaker) -> None:
    """Too much was missed: fetch the whole partition (MQDSRP 3.3.7.7, 3.3.7.10)."""
    partition = _told(server, message.partition_id, speaker)
    purged = message.purged_seq_number
    if partition is None or partition.last >= purged or partition.purged >= purged:  # -03, -04
        return
    asked = server.asked_around.get(partition.partition_id)
    if asked is not None and not speaker.is_named(server.source_of(partition)):
        asked.ahead.add(speaker.name.lower())  # it is no authority: we only wanted to know
        return
    begin_full_sync(server, partition, purged)


def run_reset(server: Server, partition: Partition) -> None:
    """The step of a full synchronisation that is next: mark everything, or drop what is marked."""
    if partition.purge_state is PurgeState.STARTSYNC0:
        server.numbers.reset(partition.partition_id, MAX_SEQ_NUMBER)  # RP-3.3.7.10-06, -08
        partition.purge_state = PurgeState.SYNC0
        send_sync_request(server, partition)
    elif partition.purge_state is PurgeState.COMPLETESYNC0:
        _drop_marked(server, partition)  # RP-3.3.7.11-03, -05
        partition.purge_state = PurgeState.NORMAL
        server.looks_at_site = True
        partition.window = MIN_SEQ_NUMBER
        server.timers.cancel(Timer(TimerKind.SYNC_RESEND, partition.partition_id))
        check_pending(server, partition)


def _drop_marked(server: Server, partition: Partition) -> None:
    marked = list(server.numbers.objects(partition.partition_id, MIN_SEQ_NUMBER, MIN_SEQ_NUMBER))
    for entry in marked:
        table = OBJECT_TABLES[entry.object_type]
        row = let_go(server, partition, table, entry.identifier)
        follow_deletion(server, partition, table, entry.identifier, row)
    server.numbers.forget_deletions(partition.partition_id, MIN_SEQ_NUMBER, MIN_SEQ_NUMBER)


def _told(server: Server, partition_id: bytes, speaker: Speaker) -> Partition | None:
    """The partition that a message speaks of, if its sender may speak of it (A-33)."""
    partition = server.state.partitions.get(UUID(bytes_le=partition_id))
    if partition is None:
        server.drop("unknown_partition")
        return None
    if not may_tell(server, partition, speaker):
        server.drop("not_its_authority")
        return None
    return partition
