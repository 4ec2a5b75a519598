"""A directory that gets copies: what nobody numbered yet is numbered now.

An authority looks at the keys of its objects when it starts. Those of its partitions that have no
number are told to everybody like new ones; those that have a number and are gone were deleted while
replication was off. Of a partition that another server decides about, nothing is done: it is told.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.deciding import (
    decide_write,
    number_created,
    number_deleted,
    partition_of,
)
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.server import Server
from falconmq.manager.states import QueueScope
from falconmq.wire.property_ids import ObjectType

# What others stand below comes first.
_ORDER: Final = (
    ObjectType.MQDS_ENTERPRISE,
    ObjectType.MQDS_SITE,
    ObjectType.MQDS_CN,
    ObjectType.MQDS_USER,
    ObjectType.MQDS_ROUTINGLINK,
    ObjectType.MQDS_MACHINE,
    ObjectType.MQDS_QUEUE,
)


def adopt(server: Server) -> None:
    """Number what has no number, in the partitions of this server."""
    if server.is_bsc:
        return
    numbered = {(code, identifier) for code, identifier, _, _ in server.numbers.numbered()}
    for code in _ORDER:
        table = OBJECT_TABLES[code]
        for identifier in list(server.objects.identifiers(table)):
            if (code, identifier) not in numbered:
                _adopt_object(server, code, identifier)
    _bury_missing(server)


def _adopt_object(server: Server, code: int, identifier: UUID) -> None:
    table = OBJECT_TABLES[code]
    row = server.objects.get(table, identifier) or {}
    partition_id = partition_of(server, table, row)
    partition = None if partition_id is None else server.state.partitions.get(partition_id)
    if partition is None or not server.owns(partition):
        return
    number_created(server, partition, table, identifier)
    is_own_site = table.type_name == tables.SITE and identifier == server.identity.site
    if is_own_site and not row["primary_site_controller"]:
        changes: dict[str, object] = {"primary_site_controller": server.name}
        decide_write(server, partition, table, identifier, changes)


def _bury_missing(server: Server) -> None:
    for code, identifier, partition_id, _ in list(server.numbers.numbered()):
        partition = server.state.partitions.get(partition_id)
        table = OBJECT_TABLES[code]
        is_own = partition is not None and server.owns(partition)
        if partition is not None and is_own and not server.objects.has(table, identifier):
            number_deleted(server, partition, table, identifier, QueueScope.ENTERPRISE)
