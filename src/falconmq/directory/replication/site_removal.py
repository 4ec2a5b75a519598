"""A site is taken out of the enterprise, with all that is in it.

About the queue managers and queues of a site its own PSC decides. When that is gone, and no backup
is there to take over, nobody can delete them one by one; but who decides about sites can take away
the site, and every server forgets what was in it (see `topology.site_deleted`).
"""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from falconmq.directory.replication.deciding import decide_delete
from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.topology import forget_objects
from falconmq.directory.schema import refusal
from falconmq.errors import MqStatus
from falconmq.manager.directory_objects import Row
from falconmq.wire.property_ids import ObjectType

_SITES: Final = OBJECT_TABLES[ObjectType.MQDS_SITE]
_log: Final = logging.getLogger("falconmq.directory")


def check_removable(server: Server, site: UUID) -> Row:
    """Refuse what only the PEC can do, and not to itself; the site."""
    if not server.owns(server.enterprise):
        raise refusal(
            f"the PEC removes a site, and that is {server.enterprise.authority_name}",
            MqStatus.UNSUPPORTED_OPERATION,
            "say it there",
        )
    if site == server.identity.site:
        raise refusal(
            "this is the site of the PEC",
            MqStatus.UNSUPPORTED_OPERATION,
            "move that role first: falconmq directory replication move enterprise SERVER",
        )
    row = server.objects.get(_SITES, site)
    if row is None:
        raise refusal(f"there is no site {site}", MqStatus.MQDS_OBJECT_NOT_FOUND)
    return row


def remove_site(server: Server, site: UUID) -> None:
    """Delete a site and everything in it, at the PEC. The servers of the site are gone."""
    row = check_removable(server, site)
    _log.warning("a site is removed name=%s server=%s", row["name"], row["primary_site_controller"])
    forget_objects(server, site)
    decide_delete(server, server.enterprise, _SITES, site)
