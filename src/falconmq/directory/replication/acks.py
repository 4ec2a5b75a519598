"""Acks of PSCs and BSCs (MQDSRP 3.2.7.4, 3.2.7.5): how far they are, and that they live."""

from __future__ import annotations

from uuid import UUID

from falconmq.directory.replication.checks import Speaker
from falconmq.directory.replication.purging import purge_deleted_objects
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.wire.replication_messages import BSCAckMessage, PSCAckMessage


def receive_psc_ack(server: Server, ack: PSCAckMessage, speaker: Speaker) -> None:
    """RP-3.2.7.4-02 to -06; an ack may be what a purge waited for (A-22)."""
    name = ack.psc_name.lower()
    known = [psc for psc in server.state.pscs if psc.machine_name.lower() == name]
    partition = server.state.partitions.get(UUID(bytes_le=ack.acked_partition_id))
    if not known or partition is None or not server.owns(partition):
        server.drop("ack_for_nothing")
        return
    if not speaker.is_named(ack.psc_name):
        server.drop("ack_in_another_name")
        return
    for psc in known:
        if partition.partition_id == ENTERPRISE_PARTITION:
            psc.acked_enterprise = ack.acked_seq_number
        else:
            psc.acked = ack.acked_seq_number
    purge_deleted_objects(server, partition)


def receive_bsc_ack(server: Server, ack: BSCAckMessage, speaker: Speaker) -> None:
    """RP-3.2.7.5-02 to -04"""
    if not speaker.is_named(ack.bsc_name):
        server.drop("ack_in_another_name")
        return
    for bsc in server.state.bscs:
        if bsc.machine_name.lower() == ack.bsc_name.lower():
            bsc.last_acked_time = server.clock.time()
