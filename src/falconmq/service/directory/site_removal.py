"""A site is given up; what that means for the directory is in `directory.replication`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from falconmq.directory.queries import find_one
from falconmq.directory.replication import site_removal
from falconmq.directory.replication.claims import claimed
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.server import Server
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryServerType
from falconmq.service.directory.replicating import Replication
from falconmq.service.directory.role_moves import Reach
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER

_MACHINES: Final = OBJECT_TABLES[ObjectType.MQDS_MACHINE]


@dataclass(slots=True)
class Removal:
    """A site, its servers, and how much goes with it."""

    name: str
    site: UUID
    servers: list[str]
    queue_managers: int = 0
    queues: int = 0


async def remove_site(
    replication: Replication, name: str, reach: Reach, *, dry_run: bool
) -> Removal:
    """Take a site out of the enterprise, with all that is in it. DirectoryError."""
    removal = await asyncio.to_thread(_plan, replication, name)
    found = await asyncio.gather(*(reach(server) for server in removal.servers))
    alive = [server for server, problem in zip(removal.servers, found, strict=True) if not problem]
    if alive:
        raise DirectoryError(
            f"{', '.join(alive)} can be reached: {removal.name} has servers that run",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint="stop them for good first",
        )

    def act(server: Server) -> None:
        site_removal.check_removable(server, removal.site)
        if not dry_run:
            site_removal.remove_site(server, removal.site)

    await asyncio.to_thread(replication.replicator.command, act)
    return removal


def _plan(replication: Replication, name: str) -> Removal:
    site = find_one(replication.own, "Site", equals("name", name))
    if site is None:
        raise DirectoryError(
            f"there is no site {name}",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint="falconmq directory list site",
        )
    controller, identifier = str(site["primary_site_controller"]), site["identifier"]
    assert isinstance(identifier, UUID)
    removal = Removal(str(site["name"]), identifier, [controller] if controller else [])

    def look(server: Server) -> None:
        entries = server.numbers.objects(identifier, MIN_SEQ_NUMBER, MAX_SEQ_NUMBER)
        for entry in entries:
            if entry.object_type == ObjectType.MQDS_QUEUE:
                removal.queues += 1
            elif entry.object_type == ObjectType.MQDS_MACHINE:
                removal.queue_managers += 1
                row = claimed(server, _MACHINES, identifier, entry.identifier)
                if row is not None and row["server_type"] != DirectoryServerType.STANDALONE:
                    removal.servers.append(str(row["computer_name"]))

    replication.replicator.command(look)
    known = {server.lower(): server for server in reversed(removal.servers)}
    removal.servers = sorted(known.values())
    return removal
