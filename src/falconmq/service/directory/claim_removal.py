"""An object that is in two sites: what one of them says of it is deleted, the other word stays.

That happens when a take-over lost the deletion of a queue manager in the site that it had left. All
servers show the same one of the two; which is the right one, a person knows.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from falconmq.directory.queries import find_all
from falconmq.directory.replication.properties import PATHS, deletion_properties
from falconmq.directory.replication.status import Double, doubles
from falconmq.directory.replication.writes import RequestedChange
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.states import QueueScope
from falconmq.service.directory.replicating import Replication
from falconmq.service.directory.role_moves import ask
from falconmq.wire.directory_change import DELETE


@dataclass(frozen=True, slots=True)
class ClaimRemoval:
    """Which object, which site lets it go, and where it is then."""

    name: str
    identifier: UUID
    site: str
    server: str  # who decides about that site
    rest: list[str]  # names of sites
    change: RequestedChange


async def remove_claim(
    replication: Replication, subject: str, site: str, *, dry_run: bool
) -> ClaimRemoval:
    """Let a site delete its word of an object that is in another site too. DirectoryError."""
    removal = await asyncio.to_thread(_plan, replication, subject, site)
    if not dry_run:
        await asyncio.to_thread(ask, replication, removal.change, "", removal.server)
    return removal


def _plan(replication: Replication, subject: str, site: str) -> ClaimRemoval:
    double = _find(replication, subject)
    rows = find_all(replication.own, "Site", (), ("identifier", "name"))
    names = {row["identifier"]: str(row["name"]) for row in rows}
    sites = {names.get(each, str(each)): each for each in (double.shown, *double.others)}
    chosen = next((name for name in sites if name.lower() == site.lower()), None)
    shown = str(double.row[PATHS[double.table.code]])
    if chosen is None:
        raise _refusal(f"{shown} is not in {site}", f"it is in {', '.join(sorted(sites))}")
    identifier, scope = double.row["identifier"], double.row.get("scope", QueueScope.ENTERPRISE)
    assert isinstance(identifier, UUID)
    assert isinstance(scope, int)
    partition = sites[chosen]
    known = replication.replicator.status().partitions
    server = next(each.authority for each in known if each.partition_id == partition)
    properties = deletion_properties(int(scope), double.table.code)
    change = RequestedChange(DELETE, identifier.bytes_le, partition, properties)
    rest = sorted(name for name in sites if name != chosen)
    return ClaimRemoval(shown, identifier, chosen, server, rest, change)


def _find(replication: Replication, subject: str) -> Double:
    wanted = subject.lower()
    for each in doubles(replication.own):
        identifier = str(each.row["identifier"])
        if wanted in (identifier, str(each.row[PATHS[each.table.code]]).lower()):
            return each
    raise _refusal(
        f"{subject} is not in two sites",
        "what is: falconmq directory replication status; to delete it: falconmq directory delete",
    )


def _refusal(problem: str, hint: str) -> DirectoryError:
    return DirectoryError(problem, status=MqStatus.UNSUPPORTED_OPERATION, hint=hint)
