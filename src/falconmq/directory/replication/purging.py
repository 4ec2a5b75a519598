"""When deletions are forgotten (MQDSRP 3.1.7.2.9, guide 9.8).

A deletion must be remembered until everybody has heard of it: whoever decides waits for the acks of
all PSCs, everybody else for his word. The newest numbers are kept in any case.
"""

from __future__ import annotations

from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.wire.sequence_number import MIN_SEQ_NUMBER


def purge_when_due(server: Server, partition: Partition) -> None:
    """After a change: every 256 numbers (RP-3.1.7.2.3-14, A-22).

    Not while a copy knows that it is behind: the rest of a long answer would say that its sender
    has purged less than we have by then, and be dropped as stale, part after part.
    """
    is_behind = partition.misses_changes or partition.told_last > partition.last
    if is_behind and not server.owns(partition):
        return
    if partition.last > partition.previous_purged + server.settings.purge_step:
        purge_deleted_objects(server, partition)
        partition.previous_purged = partition.last


def purge_deleted_objects(server: Server, partition: Partition) -> None:
    limit = purge_limit(server, partition)
    if limit is not None:
        _forget(server, partition, limit)


def purge_like(server: Server, partition: Partition, purged: int) -> None:
    """Follow a server that has forgotten more than we have, before we answer it.

    It would drop every answer of a server that remembers more than it does, as if it were stale. A
    BSC purges when its own count says so, perhaps before its PSC; and who decided about a partition
    before us has purged by acks that we never saw. Nothing is lost by it: whoever is further behind
    hears that it comes too late, and fetches everything.
    """
    limit = min(purged, partition.last)
    if limit > partition.purged:
        _forget(server, partition, limit)


def _forget(server: Server, partition: Partition, limit: int) -> None:
    count = server.numbers.forget_deletions(partition.partition_id, MIN_SEQ_NUMBER, limit)
    partition.purged = limit
    server.counters["purged"] += count


def purge_limit(server: Server, partition: Partition) -> int | None:
    """Up to which number deletions may be forgotten now; None: no further than they are."""
    limit = max(MIN_SEQ_NUMBER, partition.last - server.settings.purge_buffer)  # -02
    if partition.purge_state is not PurgeState.NORMAL or partition.purged >= limit:  # -03, -04
        return None
    if not server.owns(partition):
        limit = min(limit, partition.allowed_purge)  # -09, -10
    elif server.state.pscs:
        is_enterprise = partition.partition_id == ENTERPRISE_PARTITION
        acked = min(
            psc.acked_enterprise if is_enterprise else psc.acked  # -05, -06
            for psc in server.state.pscs
        )
        limit = min(limit, acked)  # -08
    return limit if limit > partition.purged else None  # -07
