"""What a server says of its own accord: sync requests, acks, changes for a neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from falconmq.directory.replication.effects import Profile
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.server import AskedAround, Server
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import Neighbour, Partition, PurgeState
from falconmq.directory.replication.timers import TimerKind
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.replication_messages import (
    SCOPE_ENTERPRISE,
    SCOPE_NONE,
    BSCAckMessage,
    ChangePropagationMessage,
    PSCAckMessage,
    SyncRequestMessage,
)
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER

_MACHINES: Final = OBJECT_TABLES[ObjectType.MQDS_MACHINE]


def send_sync_request(server: Server, partition: Partition) -> None:
    """Ask for what is missing in a partition (MQDSRP 3.3.7.3)."""
    if partition.purge_state in (PurgeState.STARTSYNC0, PurgeState.COMPLETESYNC0):
        return  # RP-3.3.7.3-02
    server.arm(TimerKind.SYNC_RESEND, partition.partition_id, server.settings.sync_resend_seconds)
    machine = server.source_of(partition)
    if not machine or server.is_me(machine):
        return  # a site that has no PSC yet
    request = SyncRequestMessage(
        server.site_bytes,
        partition.partition_id.bytes_le,
        partition.last,  # RP-3.3.7.3-03
        partition.window,
        partition.purged,
        partition.purge_state is PurgeState.SYNC0,  # RP-3.3.7.3-04
        SCOPE_NONE if server.is_bsc else SCOPE_ENTERPRISE,  # RP-3.3.7.3-05, -06
        server.name,
    )
    server.counters["sync_requests"] += 1
    server.send(machine, request, Profile.WATCHED)


def resend_sync_request(server: Server, partition: Partition) -> None:
    """Ask again while changes are missing: any message can be lost (A-38)."""
    if not server.owns(partition) and partition.misses_changes:
        partition.unanswered += 1
        send_sync_request(server, partition)


def ask_instead(
    server: Server, partition: Partition, machine: str, *, is_presumed: bool = False
) -> None:
    """Ask another server than the dead one from now on, about a partition that stays what it is.

    `is_presumed`: nobody said that it is dead. When it speaks, it is asked again.
    """
    believe_instead(server, partition, machine, is_presumed=is_presumed)
    partition.window = MAX_SEQ_NUMBER
    send_sync_request(server, partition)


def believe_instead(
    server: Server, partition: Partition, machine: str, *, is_presumed: bool = False
) -> None:
    """What another server than the dead one says of a partition counts from now on."""
    asked = server.asked_around.setdefault(partition.partition_id, AskedAround())
    asked.source = ""
    asked.instead_of, asked.source = server.source_of(partition), machine
    asked.is_presumed = is_presumed
    partition.unanswered = 0


def ask_again(server: Server, machine: str) -> None:
    """One that was presumed dead speaks: it is asked from now on, nobody else instead of it."""
    for asked in server.asked_around.values():
        if asked.is_presumed and asked.instead_of.lower() == machine.lower():
            asked.source = ""


def begin_full_sync(server: Server, partition: Partition, purged: int) -> None:
    """Fetch a whole partition anew from whoever decides about it (MQDSRP 3.3.7.10)."""
    server.counters["sync0"] += 1
    partition.purge_state = PurgeState.STARTSYNC0
    partition.last, partition.window = MIN_SEQ_NUMBER, MAX_SEQ_NUMBER
    partition.purged = purged
    partition.previous_purged = MIN_SEQ_NUMBER
    partition.pending.clear()
    server.arm(TimerKind.RESET, partition.partition_id, 0.0)


def send_psc_ack(server: Server, partition: Partition) -> None:
    """Tell who decides about a partition how far this PSC is (MQDSRP 3.3.7.4)."""
    ack = PSCAckMessage(
        server.site_bytes,
        server.site_bytes,  # RP-3.3.7.4-03
        partition.partition_id.bytes_le,
        partition.last,
        server.name,
    )
    server.send(partition.authority_name, ack, Profile.WATCHED)


def send_bsc_ack(server: Server) -> None:
    """Tell the PSC that this BSC lives (MQDSRP 3.3.6.2)."""
    server.arm(TimerKind.BSC_ACK, None, server.settings.bsc_ack_seconds)  # RP-3.3.2.2-02
    if server.my_psc_name:
        machine_id = server.identity.queue_manager.bytes_le
        ack = BSCAckMessage(server.site_bytes, machine_id, server.name)
        server.send(server.my_psc_name, ack, Profile.WATCHED)


def send_change_propagation(server: Server, neighbour: Neighbour) -> None:
    """Send a neighbour what has collected for it, and from time to time how far we are (3.3.7.2).

    Nothing is sent when there is nothing to say (A-27); nobody waits for an answer.
    """
    now, hello = server.clock.monotonic(), SeqNumberHeader()
    last = neighbour.last_hello
    if last is None or now - last >= server.settings.hello_seconds:
        partitions = list(_hello(server, neighbour))
        if partitions:
            hello, neighbour.last_hello = SeqNumberHeader(server.name, partitions), now
            server.told_apart.update(_unaware(server, neighbour))
    changes, neighbour.available = neighbour.available, []  # RP-3.3.7.2-11
    parts = list(_parts(server, changes))
    if not parts and hello.partition_seq_numbers:
        parts = [[]]
    for number, part in enumerate(parts, 1):
        said = hello if number == len(parts) else SeqNumberHeader()
        message = ChangePropagationMessage(server.site_bytes, part, said)
        server.send(neighbour.machine_name, message, Profile.QUIET)
        server.counters["propagated"] += len(part)


def tell_apart(server: Server) -> None:
    """Say how far the enterprise is to servers that are not our neighbours.

    They speak of a site as if they decided about it, and do not know that they do no more.
    """
    if server.is_bsc or server.enterprise.purge_state is not PurgeState.NORMAL:
        return
    for machine in sorted(server.told_apart):
        numbers = [_numbers(server.enterprise, server.enterprise.purged)]
        message = ChangePropagationMessage(
            server.site_bytes, [], SeqNumberHeader(server.name, numbers)
        )
        server.send(machine, message, Profile.QUIET)


def _unaware(server: Server, neighbour: Neighbour) -> Iterator[str]:
    """Who is the PSC of a neighbour's site by its own word, though the PEC has named another one.

    It hands over when it hears of that; but it may be asking a PEC that is dead. So it is told
    until it has.
    """
    if neighbour.is_bsc or not server.owns(server.enterprise):
        return
    rows = server.objects.by_index(_MACHINES, "site_identifiers", neighbour.partition_id)
    types = {str(row["computer_name"]): row["server_type"] for row in rows}
    if types.get(neighbour.machine_name) == DirectoryServerType.BACKUP_SITE_CONTROLLER:
        for name, server_type in types.items():
            if server_type == DirectoryServerType.PRIMARY_SITE_CONTROLLER:
                yield name


def _hello(server: Server, neighbour: Neighbour) -> Iterator[PartitionSeqNumbers]:
    if neighbour.is_bsc:  # RP-3.3.7.2-06
        for partition in server.state.partitions.values():
            # RP-3.3.7.2-07, -08
            purged = partition.purged if server.owns(partition) else partition.allowed_purge
            yield _numbers(partition, purged)
        return
    if server.role is Role.PEC:  # RP-3.3.7.2-04; also until its successor has begun
        yield _numbers(server.enterprise, server.enterprise.purged)
    site = server.site
    if site is not None and server.owns(site):  # RP-3.3.7.2-05
        yield _numbers(site, site.purged)


def _numbers(partition: Partition, purged: int) -> PartitionSeqNumbers:
    return PartitionSeqNumbers(partition.partition_id.bytes_le, partition.last, purged)


def _parts(server: Server, changes: list[DirectoryChange]) -> Iterator[list[DirectoryChange]]:
    """As many messages as the changes need."""
    part: list[DirectoryChange] = []
    size = 0
    for change in changes:
        more = len(change.encode())
        is_full = len(part) >= server.settings.message_changes_max
        if part and (is_full or size + more > server.settings.message_bytes_max):
            yield part
            part, size = [], 0
        part.append(change)
        size += more
    if part:
        yield part
