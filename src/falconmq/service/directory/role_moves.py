"""Roles of directory servers that move: as planned, or because a server is gone for good.

Who decides is a change of the directory like any other; the servers follow it by themselves (see
`directory.replication.roles`). Here is what an operator needs around it: is the name right, can the
server be reached, and for a dead one, has everybody told what he knows (decision 14).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from falconmq.directory.queries import find_one
from falconmq.directory.replication import requesting, taking_over
from falconmq.directory.replication.properties import E_PECNAME, S_PSC
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.status import PartitionStatus, ReplicationStatus
from falconmq.directory.replication.writes import RequestedChange
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryServerType
from falconmq.service.directory.gathering import gather, until
from falconmq.service.directory.replicating import Replication
from falconmq.wire.directory_change import UPDATE

ENTERPRISE: Final = "enterprise"

Reach = Callable[[str], Awaitable[str]]
"""Try to reach a computer; why that does not work, or nothing."""


@dataclass(frozen=True, slots=True)
class Move:
    """A role, who has it, who gets it, and the change of the directory that says so."""

    subject: str
    old: str
    new: str
    change: RequestedChange


@dataclass(slots=True)
class TakeOver:
    """What is taken over from whom, and who was asked for what it knows."""

    roles: list[str]
    partitions: list[UUID]
    take: Callable[..., None]
    dead: str
    pec: str = ""  # who has to name the new PSC
    asked: list[str] | None = None
    silent: list[str] | None = None


async def move_role(
    replication: Replication, subject: str, new: str, reach: Reach, *, dry_run: bool
) -> Move:
    """Let another server decide about a site, or about the enterprise. DirectoryError."""
    move = await asyncio.to_thread(_plan_move, replication, subject, new)
    problem = await reach(move.new)
    if problem:
        raise _refusal(
            f"{move.new} cannot be reached: {problem}",
            f"nothing was changed; look: falconmq ping {move.new}",
        )
    if not dry_run:
        await asyncio.to_thread(ask, replication, move.change, "")
    return move


async def take_over_roles(
    replication: Replication,
    dead: str,
    reach: Reach,
    *,
    pec: str,
    ignores_others: bool,
    dry_run: bool,
) -> TakeOver:
    """Decide instead of a server that is gone for good. DirectoryError."""
    plan = await asyncio.to_thread(_plan_take_over, replication, dead, pec)
    if not await reach(plan.dead):
        raise _refusal(
            f"{plan.dead} can be reached: it is not gone",
            "move its role: falconmq directory replication move; or stop it for good first",
        )
    if not dry_run:
        try:
            await _take_over(replication, plan, ignores_others=ignores_others)
        except BaseException:
            replication.replicator.command(taking_over.stop_asking)
            raise
    return plan


async def _take_over(replication: Replication, plan: TakeOver, *, ignores_others: bool) -> None:
    engine = replication.replicator
    plan.asked, plan.silent = [], []
    for partition in plan.partitions:
        asked, silent = await gather(engine, partition, plan.dead)
        plan.asked += [name for name in asked if name not in plan.asked]
        plan.silent += [name for name in silent if name not in plan.silent]
    if plan.silent and not ignores_others:
        raise _refusal(
            f"no answer from {', '.join(plan.silent)}: what only they have heard would be lost",
            "start them, or leave them out with --ignore-others",
        )

    def check(server: Server) -> None:
        for partition in plan.partitions:
            copy = server.state.partitions[partition]
            taking_over.check_copy(server, copy, is_forced=ignores_others)

    await asyncio.to_thread(engine.command, check)  # before the PEC is told anything
    if plan.pec:
        await _be_named(replication, plan.pec)
    await asyncio.to_thread(engine.command, lambda s: plan.take(s, is_forced=ignores_others))


def _plan_move(replication: Replication, subject: str, new: str) -> Move:
    status = replication.replicator.status()
    if subject.lower() == ENTERPRISE:
        return _plan_enterprise_move(replication, status, new)
    site = find_one(replication.own, "Site", equals("name", subject))
    if site is None:
        raise _refusal(f"there is no site {subject}", "falconmq directory list site")
    name, old = str(site["name"]), str(site["primary_site_controller"])
    row = _machine(replication, new)
    if row["site_identifiers"] != [site["identifier"]]:
        raise _refusal(f"{new} is not a queue manager of {name}", "name a backup of this site")
    if str(row["computer_name"]).lower() == old.lower():
        raise _refusal(f"{new} is the server that decides about {name} already")
    if row["server_type"] != DirectoryServerType.BACKUP_SITE_CONTROLLER:
        raise _refusal(f"{new} is no backup controller of {name}", "only a backup has a copy")
    if old.lower() == _enterprise(status).authority.lower():
        raise _refusal(
            f"{old} is the PEC too, which is always a PSC",
            "move that role first: falconmq directory replication move enterprise SERVER",
        )
    new = str(row["computer_name"])
    change = RequestedChange(UPDATE, name, ENTERPRISE_PARTITION, [(S_PSC, new)])
    return Move(name, old, new, change)


def _plan_enterprise_move(replication: Replication, status: ReplicationStatus, new: str) -> Move:
    old, enterprise = _enterprise(status).authority, find_one(replication.own, "Enterprise", ())
    if new.lower() == old.lower():
        raise _refusal(f"{new} is the PEC already")
    sites = [each.authority for each in status.partitions if not _is_enterprise(each)]
    found = next((name for name in sites if name.lower() == new.lower()), None)
    if found is None or enterprise is None:
        raise _refusal(f"{new} is not the PSC of a site", "a PSC can become the PEC")
    name = str(enterprise["name"])
    change = RequestedChange(UPDATE, name, ENTERPRISE_PARTITION, [(E_PECNAME, found)])
    return Move(ENTERPRISE, old, found, change)


def _plan_take_over(replication: Replication, dead: str, pec: str) -> TakeOver:
    status = replication.replicator.status()
    site, above = status.site, _enterprise(status).authority
    is_pec_dead = above.lower() == dead.lower()
    if status.role != Role.BSC.value:
        if not is_pec_dead or _enterprise(status).is_own:
            raise _not_ours(dead, above)
        take = taking_over.take_over_enterprise
        return TakeOver([ENTERPRISE], [ENTERPRISE_PARTITION], take, above)
    if status.psc_name.lower() != dead.lower():
        raise _not_ours(dead, status.psc_name)
    _machine(replication, status.machine_name)  # whom nobody knows cannot be named
    row = find_one(replication.own, "Site", equals("identifier", site))
    name = str(site) if row is None else str(row["name"])
    if is_pec_dead and not pec:
        both = [ENTERPRISE_PARTITION, site]
        return TakeOver([ENTERPRISE, name], both, taking_over.take_over_both, status.psc_name)
    take = taking_over.take_over_site
    return TakeOver([name], [site], take, status.psc_name, pec=pec or above)


async def _be_named(replication: Replication, pec: str) -> None:
    """Let the PEC write into the directory who decides now, and hear it from there."""
    engine, own = replication.replicator, replication.identity
    row = await asyncio.to_thread(find_one, replication.own, "Site", equals("identifier", own.site))
    assert row is not None
    change = RequestedChange(
        UPDATE, str(row["name"]), ENTERPRISE_PARTITION, [(S_PSC, own.machine_name)]
    )
    await asyncio.to_thread(ask, replication, change, pec)
    names: list[str] = []

    def ask_pec(server: Server) -> None:
        requesting.ask_instead(server, server.enterprise, pec)

    def look(server: Server) -> None:
        names[:] = [server.site.authority_name] if server.site is not None else []

    await asyncio.to_thread(engine.command, ask_pec)
    await until(lambda: engine.command(look), lambda: names == [own.machine_name])


def ask(replication: Replication, change: RequestedChange, at: str, who: str = "the PEC") -> None:
    """Make a change of the directory, wherever it is decided. DirectoryError."""
    write = replication.replicator.request(change, at)
    replication.wait(write)
    match write.status:
        case MqStatus.OK:
            return
        case MqStatus.MQDS_NO_RSP_FROM_OWNER | MqStatus.MQDS_OWNER_NOT_REACHED | None:
            raise DirectoryError(
                f"{who} did not answer",
                status=MqStatus.NO_DS,
                hint="the change may have been made all the same: look before you repeat it",
            )
        case status:
            raise _refusal(f"{who} refused: {status:#010x}")


def _machine(replication: Replication, name: str) -> Row:
    row = find_one(replication.own, "QueueManager", equals("computer_name", name))
    if row is None:
        raise _refusal(f"the directory knows no {name}", "falconmq directory list queue-manager")
    return row


def _enterprise(status: ReplicationStatus) -> PartitionStatus:
    return next(each for each in status.partitions if _is_enterprise(each))


def _is_enterprise(partition: PartitionStatus) -> bool:
    return partition.partition_id == ENTERPRISE_PARTITION


def _not_ours(dead: str, decides: str) -> DirectoryError:
    return _refusal(
        f"{dead} has no role that this server can take over",
        f"here {decides} decides; a PSC takes over from the PEC, a backup from its own PSC",
    )


def _refusal(problem: str, hint: str = "") -> DirectoryError:
    return DirectoryError(problem, status=MqStatus.UNSUPPORTED_OPERATION, hint=hint)
