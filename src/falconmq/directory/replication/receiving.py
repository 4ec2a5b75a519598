"""Changes that arrive: in order at once, early ones wait, the rest is asked for (MQDSRP 3.1.5.2).

A partition knows the last number it has. A change that follows it is applied; one that does not is
kept until what lies between has come, and that is asked for once (guide 9.5).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from falconmq.directory.replication.applying import OK, apply_change
from falconmq.directory.replication.checks import Speaker, may_tell
from falconmq.directory.replication.eras import (
    answer_old_era,
    era_of,
    fetch_whole,
    hear_of_era,
    is_later,
    known_era,
)
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.purging import purge_when_due
from falconmq.directory.replication.requesting import (
    ask_again,
    ask_instead,
    send_change_propagation,
    send_psc_ack,
    send_sync_request,
)
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.directory.replication.topology import site_controller_changed
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.replication_messages import ChangePropagationMessage
from falconmq.wire.seq_number_header import PartitionSeqNumbers
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, increment

UNANSWERED_MAX: Final = 2  # sync requests; then somebody else who knows more is asked
_SITES: Final = OBJECT_TABLES[ObjectType.MQDS_SITE]


def receive_change_propagation(
    server: Server, message: ChangePropagationMessage, speaker: Speaker
) -> None:
    """MQDSRP 3.2.7.1: the changes in their order, then how far the sender is."""
    ask_again(server, speaker.name)
    process_changes(server, message.directory_changes, speaker, may_flush=not message.flush)
    header = message.seq_number_header
    if header.partition_seq_numbers and not speaker.is_named(header.machine_name):
        server.drop("hello_in_another_name")
        return
    for element in header.partition_seq_numbers:
        _hear(server, element, header.machine_name, speaker)


def process_changes(
    server: Server, changes: Iterable[DirectoryChange], speaker: Speaker, *, may_flush: bool
) -> None:
    """RP-3.1.5.2-01, -02: one by one; what is of an unknown partition is skipped.

    Whoever is believed at the beginning of a message is believed to its end, also if it says in
    between that another server decides by now: the rest of it is no less true.
    """
    believed: set[UUID] = set()
    for change in changes:
        partition = server.state.partitions.get(UUID(bytes_le=change.partition_id))
        if partition is None:
            server.drop("unknown_partition")
            continue
        if may_tell(server, partition, speaker):
            believed.add(partition.partition_id)
        if partition.partition_id not in believed or server.owns(partition):
            server.drop("not_its_authority")
        else:
            handle_change(server, partition, change, may_flush=may_flush)


def handle_change(
    server: Server, partition: Partition, change: DirectoryChange, *, may_flush: bool
) -> None:
    """Handle Directory Change (MQDSRP 3.1.7.2.2)."""
    partition.told_last = max(partition.told_last, change.seq_number)
    if change.seq_number <= partition.last or change.purged_seq_number < partition.purged:
        return  # RP-3.1.7.2.2-02, -03
    if change.previous_seq_number <= partition.last:  # -04
        if apply_in_sync(server, partition, change, may_flush=may_flush):
            check_pending(server, partition)
    elif not partition.pending:  # -07
        partition.pending.append(change)
        _ask_up_to(server, partition, change.seq_number)
    elif len(partition.pending) >= server.settings.pending_changes_max:  # -11
        server.drop("too_many_pending")
    elif all(waiting.seq_number != change.seq_number for waiting in partition.pending):  # -10
        insort(partition.pending, change, key=lambda waiting: waiting.seq_number)


def apply_in_sync(
    server: Server, partition: Partition, change: DirectoryChange, *, may_flush: bool
) -> bool:
    """Handle In-Sync Change (MQDSRP 3.1.7.2.3); whether it could be applied."""
    status, needs_flush = apply_change(server, partition, change)
    if status != OK:  # -09
        server.drop("cannot_apply")
        return False
    server.counters["applied"] += 1
    before, partition.last = partition.last, change.seq_number  # -10
    if partition.purge_state is PurgeState.NORMAL:  # -11, -13
        for bsc in server.state.bscs:
            bsc.available.append(change)
            if needs_flush and may_flush:  # -12
                send_change_propagation(server, bsc)
    went_on(server, partition, before)
    return True


def went_on(server: Server, partition: Partition, before: int) -> None:
    """A partition is further than it was: time to purge, or to say so, may have come."""
    purge_when_due(server, partition)  # RP-3.1.7.2.3-14
    is_settled = partition.purge_state is PurgeState.NORMAL or partition.last >= partition.purged
    step = server.settings.purge_step
    if is_settled and not server.is_bsc and before // step < partition.last // step:  # -15, A-31
        send_psc_ack(server, partition)


def check_pending(server: Server, partition: Partition) -> None:
    """Check Pending Changes (MQDSRP 3.1.7.2.4, A-23): apply those whose turn it is."""
    while partition.pending:
        change = partition.pending[0]
        is_stale = change.purged_seq_number < partition.purged  # -02
        if not is_stale and change.previous_seq_number > partition.last:  # -03
            _ask_up_to(server, partition, change.seq_number)  # -04
            return
        del partition.pending[0]  # -05
        if is_stale or change.seq_number <= partition.last:
            continue
        if not apply_in_sync(server, partition, change, may_flush=True):  # -06
            return


def _ask_up_to(server: Server, partition: Partition, number: int) -> None:
    """RP-3.1.7.2.2-08, -09: once for what is missing, not once for each change behind it."""
    if number > partition.window:
        partition.window = number
        send_sync_request(server, partition)


def _hear(
    server: Server, element: PartitionSeqNumbers, machine_name: str, speaker: Speaker
) -> None:
    """One partition of a hello (RP-3.2.7.1-04 to -12)."""
    partition = server.state.partitions.get(UUID(bytes_le=element.partition_id))
    if partition is None:  # -04
        return
    _follow_directory(server, partition, element, machine_name)
    is_told = may_tell(server, partition, speaker)
    if not is_told and hear_of_era(server, partition, element, speaker, machine_name):
        return
    if server.owns(partition):
        answer_old_era(server, partition, element, speaker, machine_name)
        return
    if not is_told:
        server.drop("not_its_authority")
        is_site = partition.partition_id != ENTERPRISE_PARTITION
        if speaker.is_server and is_site and not is_later(partition, element):
            server.told_apart.add(machine_name)  # perhaps it has not heard who decides by now
        _ask_about(server, partition, element, speaker)
        return
    is_enterprise = partition.partition_id == ENTERPRISE_PARTITION
    if is_enterprise and element.last_seq_number >= partition.last:
        server.has_successor = True  # it has begun: it has the change that names it
    if element.purged_seq_number < partition.purged:  # -05
        return
    last = element.last_seq_number
    partition.told_last = max(partition.told_last, last)
    partition.allowed_purge = max(partition.allowed_purge, element.purged_seq_number)  # -06
    if last <= partition.last or last < partition.window:  # -07, -08
        return
    is_authority = not server.is_asked_instead(partition, speaker.name)
    if is_authority and server.is_bsc:
        server.my_psc_name = machine_name  # -10
    elif is_authority:
        partition.authority_name = machine_name  # -09
    partition.window = increment(last)  # -11
    send_sync_request(server, partition)


def _ask_about(
    server: Server, partition: Partition, element: PartitionSeqNumbers, speaker: Speaker
) -> None:
    """Another directory server speaks as if it decided: whoever did so before knows whether it may.

    It is not believed; but if its role moved to it, the changes that say so are asked for.
    """
    if not speaker.is_server or element.last_seq_number <= partition.last:
        return
    is_normal = partition.purge_state is PurgeState.NORMAL
    if is_normal and partition.window != MAX_SEQ_NUMBER:
        partition.window = MAX_SEQ_NUMBER
        send_sync_request(server, partition)
    elif partition.unanswered >= UNANSWERED_MAX and not server.is_bsc:  # who decided told nobody
        if is_normal:
            ask_instead(server, partition, speaker.name, is_presumed=True)
        elif partition.purge_state is PurgeState.SYNC0:
            fetch_whole(server, partition, speaker.name, is_presumed=True)


def _follow_directory(
    server: Server,
    partition: Partition,
    element: PartitionSeqNumbers,
    machine_name: str,
) -> None:
    """Whoever speaks for a site, and is its PSC by our own copy of the directory, is believed.

    An era is heard of from the server that began it, perhaps after the role has moved on.
    """
    if partition.partition_id == ENTERPRISE_PARTITION or server.owns(partition):
        return
    if server.is_bsc and partition.partition_id != server.identity.site:
        return  # of other sites it hears from its own PSC
    site = server.objects.get(_SITES, partition.partition_id)
    named = "" if site is None else str(site["primary_site_controller"])
    is_current = era_of(element.last_seq_number) >= known_era(partition)
    if is_current and named.lower() == machine_name.lower() != partition.authority_name.lower():
        site_controller_changed(server, partition.partition_id, machine_name)
