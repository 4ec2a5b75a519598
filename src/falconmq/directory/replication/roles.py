"""What a server is follows from what the directory says; the configuration only says the beginning.

How to think about it. A role moves as a change like any other, and the order of changes makes it
safe. Who is the PEC is a change of the enterprise partition, the last one that the old PEC decides:
whoever has it has everything. Who is the PSC of a site is decided by the PEC, so it says nothing of
how far the site's own partition is. The old PSC, when it hears of it, decides two last things, that
it is a BSC and that its successor is a PSC; a BSC that is named takes up the role when that
last change has come to it, and keeps asking until then. So nobody decides before the other one has
ended, and nothing that was decided is lost.

A role that is given in the configuration counts until there is a copy; then the directory does.
"""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from falconmq.directory.replication.deciding import decide_write
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.requesting import (
    send_change_propagation,
    send_sync_request,
    tell_apart,
)
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.directory.replication.timers import Timer, TimerKind
from falconmq.directory.replication.topology import recognize
from falconmq.errors import FalconMQError
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER

MACHINES: Final = OBJECT_TABLES[ObjectType.MQDS_MACHINE]
_SITES: Final = OBJECT_TABLES[ObjectType.MQDS_SITE]
SERVER_TYPES: Final = {
    Role.PEC: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
    Role.PSC: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    Role.BSC: DirectoryServerType.BACKUP_SITE_CONTROLLER,
}
PRIMARY: Final = (SERVER_TYPES[Role.PEC], SERVER_TYPES[Role.PSC])
_RESETTING: Final = (PurgeState.STARTSYNC0, PurgeState.COMPLETESYNC0)
# A partition that became ours while we fetched it is all here: who is its authority is its newest
# change, and a full synchronisation goes from the oldest to the newest.
_FETCHED: Final = (PurgeState.SYNC0, PurgeState.COMPLETESYNC0)
_log: Final = logging.getLogger("falconmq.directory")


def take_configured_role(server: Server) -> None:
    """At a start: the role of the configuration, until the first copy of the directory is here.

    Never again: whoever writes a new role into it some day cannot know what the directory says when
    it is read at last.
    """
    standing, identity = server.state.standing, server.identity
    if standing.role and server.site is not None:
        return
    standing.role = identity.role.value
    if identity.role is Role.BSC:  # RP-3.1.3.1-08, -10
        site, told = server.site, identity.psc_name
        known = "" if site is None or server.is_me(site.authority_name) else site.authority_name
        standing.psc_name = known or told
        if site is not None and not known:
            _resign(server, site)
            site.authority_name = told


def settle_role(server: Server) -> None:
    """At the end of a turn: be what the directory says by now."""
    enterprise = server.state.partitions.get(ENTERPRISE_PARTITION)
    if enterprise is None:
        return
    if server.role is Role.PEC and not server.owns(enterprise):
        site = server.site
        if server.has_successor or (site is not None and not server.owns(site)):
            become(server, Role.PSC)
    if server.role is Role.PSC and _is_site_lost(server, enterprise):
        become(server, Role.BSC)
    elif server.role is Role.PSC and server.is_me(enterprise.authority_name):
        become(server, Role.PEC)
    elif server.is_bsc:
        _take_up(server, enterprise)
    tell_apart(server)
    server.forget_turn()


def become(server: Server, role: Role) -> None:
    """Begin with another role, as at a start."""
    _log.info("directory replication role=%s before=%s", role.value, server.role.value)
    server.counters["role_changes"] += 1
    server.state.standing.role = role.value
    site = server.site
    if role is Role.BSC:
        if site is not None:
            _resign(server, site)
            server.my_psc_name = site.authority_name
        server.arm(TimerKind.BSC_ACK, None, server.settings.first_bsc_ack_seconds)
    else:
        server.my_psc_name = ""
        server.timers.cancel(Timer(TimerKind.BSC_ACK))
    recognize(server)
    for neighbour in server.state.neighbours.values():
        neighbour.last_hello = None  # they hear of it with the next message
    for partition in list(server.state.partitions.values()):
        if server.owns(partition):
            partition.window = MIN_SEQ_NUMBER
            partition.pending.clear()
            server.timers.cancel(Timer(TimerKind.SYNC_RESEND, partition.partition_id))
            own_partition(server, partition)
        elif partition.purge_state not in _RESETTING:
            partition.window = MAX_SEQ_NUMBER
            send_sync_request(server, partition)
    say_role(server)


def own_partition(server: Server, partition: Partition) -> None:
    """What is decided here is all here."""
    partition.told_last = partition.last
    if partition.purge_state in _FETCHED:
        partition.purge_state = PurgeState.COMPLETESYNC0
        server.arm(TimerKind.RESET, partition.partition_id, 0.0)


def say_role(server: Server) -> None:
    """Let the directory say what this server is, where it may decide that."""
    site, row = server.site, machine_named(server, server.name)
    wanted = SERVER_TYPES[server.role]
    if site is None or row is None or not server.owns(site) or row["server_type"] == wanted:
        return
    if not is_in_site(server, row):
        _log.error(
            "the directory has this server in another site: take it out of that, "
            "falconmq directory replication remove-claim name=%s",
            server.name,
        )
        return
    write_type(server, site, row, wanted)


def write_type(server: Server, site: Partition, row: Row, server_type: DirectoryServerType) -> None:
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    decide_write(server, site, MACHINES, identifier, {"server_type": server_type})


def machine_named(server: Server, name: str) -> Row | None:
    return server.objects.first(MACHINES, "computer_name", name)


def is_in_site(server: Server, row: Row) -> bool:
    sites = row["site_identifiers"]
    return isinstance(sites, list) and sites[:1] == [server.identity.site]


def _is_site_lost(server: Server, enterprise: Partition) -> bool:
    """Whether another server decides about the own site; if the PEC named it, hand over to it.

    Not while the enterprise is fetched as a whole: the successor hears of it from this server.
    """
    site = server.site
    if site is None:
        return False
    if not server.owns(site):
        return bool(site.authority_name)
    if not server.looks_at_site:
        return False
    row = server.objects.get(_SITES, site.partition_id)
    successor = "" if row is None else str(row["primary_site_controller"])
    is_settled = enterprise.purge_state is PurgeState.NORMAL
    if not successor or server.is_me(successor) or not is_settled:
        return False
    _hand_over(server, site, successor)
    return True


def _hand_over(server: Server, site: Partition, successor: str) -> None:
    """The last two decisions of a PSC, and everything that its neighbours have not heard yet."""
    mark = server.objects.workspace.mark()
    own, other = machine_named(server, server.name), machine_named(server, successor)
    told = list(server.state.neighbours.values())
    if own is not None and other is not None and is_in_site(server, other):
        try:
            write_type(server, site, own, SERVER_TYPES[Role.BSC])
            write_type(server, site, other, SERVER_TYPES[Role.PSC])
        except FalconMQError as error:
            server.objects.workspace.restore(mark)
            _log.error("the role of a PSC is not handed over: %s", error)
    site.authority_name = successor
    for neighbour in told:
        send_change_propagation(server, neighbour)


def _take_up(server: Server, enterprise: Partition) -> None:
    """A BSC that the PEC has named becomes the PSC when the old one has handed over."""
    site = server.site
    if site is None or not server.is_me(site.authority_name):
        return
    if _is_handed_over(server) and site.purge_state is PurgeState.NORMAL:
        is_pec = server.is_me(enterprise.authority_name)
        become(server, Role.PEC if is_pec else Role.PSC)
    elif site.window != MAX_SEQ_NUMBER and site.purge_state is PurgeState.NORMAL:
        site.window = MAX_SEQ_NUMBER  # the last change is missing: ask, until it is here
        server.arm(TimerKind.SYNC_RESEND, site.partition_id, server.settings.intersite_seconds)


def _resign(server: Server, site: Partition) -> None:
    """What the directory said of this server until now is no reason to decide again."""
    server.state.standing.resigned_at = site.last


def _is_handed_over(server: Server) -> bool:
    """Whether the last change of the old PSC is here: it says that this server is a PSC."""
    row = machine_named(server, server.name)
    if row is None or row["server_type"] not in PRIMARY:
        return False
    own = server.identity
    number = server.numbers.number_in(own.site, MACHINES.code, own.queue_manager)
    return number is not None and number > server.state.standing.resigned_at


def is_waiting_for_role(server: Server) -> bool:
    """Whether this server is named as the PSC of its site, and the old one has not handed over."""
    site = server.site
    return server.is_bsc and site is not None and server.is_me(site.authority_name)
