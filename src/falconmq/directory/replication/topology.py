"""What the data say of the enterprise: sites, their controllers, who is whose neighbour.

Sites, machines and the enterprise object are data like all others; when one changes, partitions and
neighbours follow (MQDSRP 3.1.7.2.5 to .12, guide 9.11). Everything is keyed, so being told twice
does no harm (A-15). Each function says whether the own BSCs must hear of it at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from falconmq.directory.replication.claims import disclaim
from falconmq.directory.replication.properties import OBJECT_TABLES, is_bsc
from falconmq.directory.replication.requesting import send_sync_request
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Neighbour, Partition
from falconmq.directory.replication.timers import Timer, TimerKind
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER


def site_created(server: Server, site: UUID, psc_name: str) -> bool:
    """A site is new here, or was synchronised (RP-3.1.7.2.5-07 to -13, RP-3.1.7.2.11-07 to -12)."""
    if site in server.state.partitions:
        return site_controller_changed(server, site, psc_name)
    partition = Partition(site, psc_name)
    server.state.partitions[site] = partition
    _follow_controller(server, partition)
    if not server.owns(partition):
        send_sync_request(server, partition)
    return True


def site_controller_changed(server: Server, site: UUID, psc_name: str) -> bool:
    """Another machine is the PSC of a site now (RP-3.1.7.2.11-04 to -06, -13)."""
    partition = server.state.partitions.get(site)
    if partition is None:
        return False
    is_pec = server.owns(server.enterprise)
    if server.owns(partition) and not is_pec and not server.is_me(psc_name):
        server.looks_at_site = True  # it decides until it hands over: see `roles`
        server.has_successor = True  # a PEC that is none any more: the new one has named a PSC
        return True
    is_another = partition.authority_name != psc_name
    partition.authority_name = psc_name
    _follow_controller(server, partition)
    if is_another and not server.is_bsc and partition.misses_changes:
        partition.window = MAX_SEQ_NUMBER  # the old one was asked, and may never answer
        send_sync_request(server, partition)
    return True


def site_deleted(server: Server, site: UUID) -> bool:
    """RP-3.1.7.2.7-05 to -07; every role forgets it, or the least ack would never move (A-21).

    With a site goes all that is in it. Only who decides about it keeps that: perhaps somebody took
    over the enterprise who had not heard of this site yet, and it is made once more.
    """
    partition = server.state.partitions.get(site)
    if partition is None or server.owns(partition):
        return False
    del server.state.partitions[site]
    forget_objects(server, site)
    server.timers.cancel(Timer(TimerKind.SYNC_RESEND, site))
    server.timers.cancel(Timer(TimerKind.RESET, site))
    for neighbour in server.state.pscs:
        if neighbour.partition_id == site:
            remove_neighbour(server, neighbour)
    return True


def forget_objects(server: Server, site: UUID) -> None:
    """Drop what is in a site, and what is remembered of it."""
    for entry in list(server.numbers.objects(site, MIN_SEQ_NUMBER, MAX_SEQ_NUMBER)):
        disclaim(server, OBJECT_TABLES[entry.object_type], site, entry.identifier)
    server.numbers.forget_deletions(site, MIN_SEQ_NUMBER, MAX_SEQ_NUMBER)


def enterprise_changed(server: Server, pec_name: object) -> bool:
    """RP-3.1.7.2.10-03, -04"""
    partition = server.enterprise
    if not isinstance(pec_name, str) or not pec_name or pec_name == partition.authority_name:
        return False
    if server.owns(partition):
        partition.window = MIN_SEQ_NUMBER  # from now on something can be missing, and is asked for
    partition.authority_name = pec_name
    return True


def machine_changed(server: Server, partition: Partition, machine: str, service: object) -> None:
    """A machine of the own site becomes a BSC or ceases to be one (RP-3.1.7.2.12)."""
    if server.is_bsc or partition.partition_id != server.identity.site or service is None:
        return
    known = _bsc_named(server, machine)
    if not is_bsc(service):
        if known is not None:
            remove_neighbour(server, known)
    elif known is None and not server.is_me(machine):
        add_neighbour(server, Neighbour(partition.partition_id, machine, is_bsc=True))


def machine_deleted(server: Server, partition: Partition, machine: str) -> None:
    """RP-3.1.7.2.7-08; not if another site has lost a machine of that name, which moved to ours."""
    known = _bsc_named(server, machine)
    if known is not None and known.partition_id == partition.partition_id:
        remove_neighbour(server, known)


def recognize(server: Server) -> None:
    """At a start: who the neighbours are by what the directory says; the role may be a new one."""
    bscs: set[bytes] = set()
    if not server.is_bsc:
        for partition in server.state.partitions.values():
            if partition.partition_id != ENTERPRISE_PARTITION:
                _follow_controller(server, partition)
        bscs = {neighbour.key for neighbour in _bscs_of_site(server)}
    for neighbour in list(server.state.neighbours.values()):
        is_left = neighbour.key not in bscs if neighbour.is_bsc else server.is_bsc
        if is_left:
            remove_neighbour(server, neighbour)


def _bscs_of_site(server: Server) -> Iterator[Neighbour]:
    """The BSCs of the own site, made neighbours if they are not."""
    machines = OBJECT_TABLES[ObjectType.MQDS_MACHINE]
    site = server.site
    if site is None:
        return
    for row in list(server.objects.by_index(machines, "site_identifiers", site.partition_id)):
        if row["server_type"] == DirectoryServerType.BACKUP_SITE_CONTROLLER:
            name = str(row["computer_name"])
            machine_changed(server, site, name, row["server_type"])
            known = _bsc_named(server, name)
            if known is not None and not server.is_me(name):
                yield known


def add_neighbour(server: Server, neighbour: Neighbour) -> None:
    server.state.neighbours[neighbour.key] = neighbour
    server.arm_propagation(neighbour)


def remove_neighbour(server: Server, neighbour: Neighbour) -> None:
    del server.state.neighbours[neighbour.key]
    server.timers.cancel(Timer(TimerKind.PROPAGATION, neighbour.key))


def _follow_controller(server: Server, partition: Partition) -> None:
    """The neighbour of a site is its PSC; a BSC has none, but follows its own PSC (A-18)."""
    machine, site = partition.authority_name, partition.partition_id
    if server.is_bsc:
        # One that is named itself keeps asking the old one, for the last that it decided.
        if site == server.identity.site and machine and not server.is_me(machine):
            if server.my_psc_name != machine:
                ask_another(server)
            server.my_psc_name = machine
        return
    known = next((psc for psc in server.state.pscs if psc.partition_id == site), None)
    if not machine or server.is_me(machine):
        if known is not None:
            remove_neighbour(server, known)
    elif known is not None:
        if known.machine_name != machine and server.owns(server.enterprise):
            server.told_apart.add(known.machine_name)  # nobody tells it any more
        known.machine_name = machine  # RP-3.1.7.2.11-06
    else:  # with the GUID of its site: A-17
        add_neighbour(server, Neighbour(site, machine, is_bsc=False))


def ask_another(server: Server) -> None:
    """Whoever is asked from now on may have less than the one before: ask for what there is."""
    for partition in server.state.partitions.values():
        if partition.misses_changes and not server.owns(partition):
            partition.window = MAX_SEQ_NUMBER


def _bsc_named(server: Server, machine: str) -> Neighbour | None:
    name = machine.lower()
    return next((bsc for bsc in server.state.bscs if bsc.machine_name.lower() == name), None)
