"""A server takes over a role from one that is gone for good (decision 14).

A backup takes over its site; a PSC takes over the enterprise; a backup of a PEC may take over both.
First it asks everybody who may have heard more than it has: copies of one partition are beginnings
of one and the same story, so whoever has more of it can tell the rest. What nobody has but the dead
server is lost. Then it begins a new era (`eras`), and decides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from falconmq.directory.replication.deciding import decide_pec, decide_write, number_created
from falconmq.directory.replication.effects import Profile
from falconmq.directory.replication.eras import begin_era
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.roles import (
    MACHINES,
    PRIMARY,
    SERVER_TYPES,
    become,
    is_in_site,
    machine_named,
    write_type,
)
from falconmq.directory.replication.server import AskedAround, Server
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.directory.schema import refusal
from falconmq.errors import MqStatus
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.replication_messages import SCOPE_ENTERPRISE, SCOPE_NONE, SyncRequestMessage
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER

_SITES: Final = OBJECT_TABLES[ObjectType.MQDS_SITE]
_log: Final = logging.getLogger("falconmq.directory")


def ask_around(server: Server, partition: Partition, machines: Iterable[str]) -> None:
    """Ask other copies of a partition for what is not here; their answers count from now on."""
    asked = server.asked_around.setdefault(partition.partition_id, AskedAround())
    is_own_site = partition.partition_id == server.identity.site
    for machine in machines:
        asked.waiting.add(machine.lower())
        request = SyncRequestMessage(
            server.site_bytes,
            partition.partition_id.bytes_le,
            partition.last,
            MAX_SEQ_NUMBER,
            partition.purged,
            False,
            SCOPE_NONE if is_own_site else SCOPE_ENTERPRISE,
            server.name,
        )
        server.send(machine, request, Profile.WATCHED)


def backups(server: Server, dead: str) -> Iterator[str]:
    """The backups of a dead server, and those of the own site.

    They hear first what a server decides, and have the queues that a site keeps to itself.
    """
    row = machine_named(server, dead)
    told = row["site_identifiers"] if row is not None else []
    assert isinstance(told, list)
    for site in dict.fromkeys([*told[:1], server.identity.site]):
        for machine in server.objects.by_index(MACHINES, "site_identifiers", site):
            name = str(machine["computer_name"])
            is_backup = machine["server_type"] == DirectoryServerType.BACKUP_SITE_CONTROLLER
            if is_backup and not server.is_me(name) and name.lower() != dead.lower():
                yield name


def other_primaries(server: Server, dead: str) -> Iterator[str]:
    """The PSCs of other sites; they have everything but the queues that a site keeps to itself."""
    for partition in server.state.partitions.values():
        name = partition.authority_name
        is_site = partition.partition_id != ENTERPRISE_PARTITION
        if is_site and name and not server.is_me(name) and name.lower() != dead.lower():
            yield name


def take_over_enterprise(server: Server, *, is_forced: bool = False) -> None:
    """A PSC becomes the PEC instead of one that is gone.

    `is_forced`: even if others have heard much more than this server can be told.
    """
    if server.is_bsc or server.owns(server.enterprise):
        raise _wrong_role(server, "a PSC takes over the enterprise")
    check_copy(server, server.enterprise, is_forced=is_forced)
    _log.warning("takes over the enterprise from=%s", server.enterprise.authority_name)
    begin_era(server, server.enterprise)
    become(server, Role.PEC)
    decide_pec(server, server.name)
    _tell_own_site(server)
    stop_asking(server)


def _tell_own_site(server: Server) -> None:
    """If nobody else had heard of the own site, it is not in the copy that was taken over."""
    site = server.identity.site
    row = server.objects.get(_SITES, site)
    if row is not None and server.numbers.of(_SITES.code, site) is None:
        number_created(server, server.enterprise, _SITES, site)
        if not server.is_me(str(row["primary_site_controller"])):
            controller: dict[str, object] = {"primary_site_controller": server.name}
            decide_write(server, server.enterprise, _SITES, site, controller)


def take_over_site(server: Server, *, is_forced: bool = False) -> None:
    """A backup that the PEC has named begins, without the last words of its predecessor."""
    site = _own_site(server, is_forced=is_forced)
    if not server.is_me(site.authority_name):
        raise refusal(
            f"the PEC has not named this server as the PSC: it is {site.authority_name} here",
            MqStatus.UNSUPPORTED_OPERATION,
            "the PEC must be reached first: falconmq directory replication status",
        )
    _begin_site(server, site, Role.PSC, server.my_psc_name)
    stop_asking(server)


def take_over_both(server: Server, *, is_forced: bool = False) -> None:
    """A backup of the PEC becomes the PEC."""
    site, enterprise = _own_site(server, is_forced=is_forced), server.enterprise
    check_copy(server, enterprise, is_forced=is_forced)
    dead = server.my_psc_name
    begin_era(server, enterprise)
    _begin_site(server, site, Role.PEC, dead)
    decide_pec(server, server.name)
    controller: dict[str, object] = {"primary_site_controller": server.name}
    decide_write(server, enterprise, _SITES, site.partition_id, controller)
    stop_asking(server)


def _begin_site(server: Server, site: Partition, role: Role, dead: str) -> None:
    _log.warning("takes over the site from=%s", dead)
    begin_era(server, site)
    become(server, role)
    own = machine_named(server, server.name)
    assert own is not None
    write_type(server, site, own, SERVER_TYPES[role])
    _be_backups(server, site)


def _be_backups(server: Server, site: Partition) -> None:
    """A site has one PSC: whoever was it before is a backup now.

    That is the dead server; or another one that handed over to it, if that was lost with it.
    """
    rows = server.objects.by_index(MACHINES, "site_identifiers", site.partition_id)
    for row in list(rows):
        is_primary = row["server_type"] in PRIMARY
        if is_primary and is_in_site(server, row) and not server.is_me(str(row["computer_name"])):
            write_type(server, site, row, SERVER_TYPES[Role.BSC])


def _own_site(server: Server, *, is_forced: bool) -> Partition:
    site = server.site
    if not server.is_bsc or site is None:
        raise _wrong_role(server, "a BSC takes over its site")
    if machine_named(server, server.name) is None:
        raise refusal(
            f"the directory of this server has no queue manager {server.name}",
            MqStatus.UNSUPPORTED_OPERATION,
            "take over at a server that is in the directory",
        )
    check_copy(server, site, is_forced=is_forced)
    return site


def check_copy(server: Server, partition: Partition, *, is_forced: bool) -> None:
    """Refuse to decide with a copy that is not whole, or that others have left far behind."""
    if partition.purge_state is not PurgeState.NORMAL:
        raise refusal(
            "this server does not have all of it: it is fetching the whole anew",
            MqStatus.UNSUPPORTED_OPERATION,
            "take over at another server",
        )
    asked = server.asked_around.get(partition.partition_id)
    if asked is not None and asked.ahead and not is_forced:
        names = ", ".join(sorted(asked.ahead))
        raise refusal(
            f"this server was away for too long: {names} has gone far beyond it",
            MqStatus.UNSUPPORTED_OPERATION,
            "take over there; by force everybody goes back to what this one has",
        )


def _wrong_role(server: Server, rule: str) -> Exception:
    return refusal(
        f"{rule}, and this is a {server.role.name}",
        MqStatus.UNSUPPORTED_OPERATION,
        "falconmq directory replication status shows who is what",
    )


def stop_asking(server: Server) -> None:
    """Whoever was asked is believed no longer."""
    server.asked_around.clear()
