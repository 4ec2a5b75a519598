"""How a directory server begins, and begins again (MQDSRP 3.1.3, 3.3.3; guide 9.1)."""

from __future__ import annotations

from typing import Final

from falconmq.directory.replication.adopting import adopt
from falconmq.directory.replication.requesting import send_sync_request
from falconmq.directory.replication.roles import own_partition
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.directory.replication.timers import TimerKind
from falconmq.directory.replication.topology import recognize

_AT_ONCE: Final = 10  # so many partitions are asked for at once; the others a little later
_APART_SECONDS: Final = 0.1
_RESETTING: Final = (PurgeState.STARTSYNC0, PurgeState.COMPLETESYNC0)


def start(server: Server) -> None:
    partitions = server.state.partitions
    if not partitions:  # RP-3.1.3.1-01 to -04
        is_pec = server.role is Role.PEC
        pec_name = server.name if is_pec else server.identity.pec_name
        partitions[ENTERPRISE_PARTITION] = Partition(ENTERPRISE_PARTITION, pec_name)
    if server.is_bsc:
        server.arm(TimerKind.BSC_ACK, None, server.settings.first_bsc_ack_seconds)  # RP-3.3.3-02
    # A reply to a request of an earlier life must not find a new one that has its number.
    server.next_request = server.random.getrandbits(32)
    server.looks_at_site = True
    recognize(server)
    adopt(server)
    for neighbour in server.state.neighbours.values():
        neighbour.available.clear()  # RP-3.1.3.2-01, -02: a hello comes first, and they ask
    resume(server)
    later = 0.0
    for number, partition in enumerate(list(partitions.values())):
        if server.owns(partition) or partition.purge_state in _RESETTING:
            continue
        if number < _AT_ONCE:
            send_sync_request(server, partition)  # RP-3.3.3-05 to -07
        else:
            later += _APART_SECONDS
            server.arm(TimerKind.SYNC_RESEND, partition.partition_id, later)


def resume(server: Server) -> None:
    """Timers for all that is known: RP-3.3.3-03, -04, and whatever a full synchronisation needs."""
    for kind in (TimerKind.PROPAGATION, TimerKind.SYNC_RESEND, TimerKind.RESET):
        server.timers.cancel_all(kind)
    for neighbour in server.state.neighbours.values():
        server.arm_propagation(neighbour)
    for partition in server.state.partitions.values():
        if server.owns(partition):
            own_partition(server, partition)
            continue
        seconds = server.settings.sync_resend_seconds
        server.arm(TimerKind.SYNC_RESEND, partition.partition_id, seconds)
        if partition.purge_state in _RESETTING:
            server.arm(TimerKind.RESET, partition.partition_id, 0.0)
