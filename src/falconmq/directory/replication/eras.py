"""Who decides after a server that is gone for good: the later era counts (decision 14).

The upper half of a sequence number is an era. It is 0 until somebody takes over a partition by
force; from then on it is the second in which that was done, or more. So everything that the new
authority decides has greater numbers than anything that the old one ever gave, and everybody can
tell the two apart: whoever hears of a later era believes that one, and fetches the partition as a
whole. That ends the words of the old authority too, when it comes back.
"""

from __future__ import annotations

import logging
from typing import Final

from falconmq.directory.replication.checks import Speaker
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.requesting import (
    begin_full_sync,
    believe_instead,
    send_change_propagation,
)
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.seq_number_header import PartitionSeqNumbers

_COUNTED_BITS: Final = 32
_MACHINES: Final = OBJECT_TABLES[ObjectType.MQDS_MACHINE]
_log: Final = logging.getLogger("falconmq.directory")


def era_of(number: int) -> int:
    """The second in which somebody took over, or 0."""
    return number >> _COUNTED_BITS


def number_in_era(number: int) -> int:
    """A sequence number without its era: how many changes there were since it began."""
    return number & ((1 << _COUNTED_BITS) - 1)


def first_of_era(era: int) -> int:
    """The number before all that are given in an era."""
    return era << _COUNTED_BITS


def known_era(partition: Partition) -> int:
    """The era in which a partition is here, also while it is fetched as a whole."""
    return era_of(max(partition.last, partition.purged))


def is_later(partition: Partition, element: PartitionSeqNumbers) -> bool:
    """Whether somebody speaks of an era that is not here yet."""
    return era_of(element.purged_seq_number) > known_era(partition)


def begin_era(server: Server, partition: Partition) -> None:
    """Decide about a partition from now on, above every number that anybody can have seen.

    All deletions count as forgotten: so every copy hears that it comes too late, and becomes like
    this one, whatever it has heard from the old authority.
    """
    heard_of = max(partition.last, partition.purged, partition.told_last)
    era = max(era_of(heard_of) + 1, int(server.clock.time()))
    begin = first_of_era(era)
    server.numbers.forget_deletions(partition.partition_id, 0, begin)
    partition.last = partition.purged = partition.told_last = begin
    partition.pending.clear()
    partition.authority_name = server.name
    server.counters["taken_over"] += 1


def hear_of_era(
    server: Server, partition: Partition, element: PartitionSeqNumbers, speaker: Speaker, name: str
) -> bool:
    """A server speaks as if it decided, and is not known to; whether it is believed.

    A backup hears of other partitions from its own PSC alone.
    """
    if not speaker.is_server and not speaker.is_anybody:
        return False
    if not is_later(partition, element):
        return False
    is_own_site = partition.partition_id == server.identity.site
    if server.is_bsc and not is_own_site:
        return False
    is_enterprise = partition.partition_id == ENTERPRISE_PARTITION
    if not is_enterprise and not _is_of_site(server, name, partition):
        return False  # it only says what it has heard; the PEC names who decides
    if server.owns(partition):
        server.counters["superseded"] += 1
        _log.warning("another server took over a role of this one server=%s", name)
    partition.authority_name = name
    if server.is_bsc:
        server.my_psc_name = name
    if is_enterprise:
        server.has_successor = True
    begin_full_sync(server, partition, element.purged_seq_number)
    return True


def fetch_whole(
    server: Server, partition: Partition, machine: str, *, is_presumed: bool = False
) -> None:
    """Fetch a partition anew from another server: who began to tell it as a whole is gone.

    From its beginning: two copies are not equally far, and half of each is none. In the era that is
    known here: an older copy is none either. `is_presumed`: see `requesting.ask_instead`.
    """
    believe_instead(server, partition, machine, is_presumed=is_presumed)
    begin_full_sync(server, partition, first_of_era(known_era(partition)))


def _is_of_site(server: Server, name: str, partition: Partition) -> bool:
    """One that is so new that it is not in our copy, setup vouches for: in our own site."""
    row = server.objects.first(_MACHINES, "computer_name", name)
    if row is None:
        return partition.partition_id == server.identity.site
    sites = row["site_identifiers"]
    return isinstance(sites, list) and sites[:1] == [partition.partition_id]


def answer_old_era(
    server: Server, partition: Partition, element: PartitionSeqNumbers, speaker: Speaker, name: str
) -> None:
    """Whoever decided before an era began is back, and does not know: tell it at once."""
    neighbour = server.state.neighbour_named(name)
    is_old = era_of(element.last_seq_number) < era_of(partition.last)
    if is_old and neighbour is not None and (speaker.is_server or speaker.is_anybody):
        last = neighbour.last_hello
        now = server.clock.monotonic()
        if last is not None and now - last < server.settings.intersite_seconds:
            return  # it was told a moment ago
        neighbour.last_hello = None
        send_change_propagation(server, neighbour)
