"""What people are shown of the directory that a queue manager is part of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from falconmq.directory.routing import DirectoryRouter
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_backend import NO_ROW, equals
from falconmq.service.directory.registering import QUEUE_MANAGER

if TYPE_CHECKING:
    from falconmq.service.directory.hub import DirectoryHub


def hub_status(hub: DirectoryHub, core: QueueManagerCore) -> dict[str, Any]:
    """As JSON; a workgroup has the same keys, with nothing in them."""
    directory, section = hub.directory, hub.section
    own, enterprise = None, NO_ROW
    if directory is not None:
        enterprise = directory.remembered("Enterprise", ()) or NO_ROW
        own = directory.remembered(QUEUE_MANAGER, equals("identifier", core.identifier))
    return {
        "kind": section.kind,
        "is_joined": directory is not None,
        "servers": list(section.servers),
        "sites": [site.name for site in core.sites],
        "domain": core.settings.domain_name or str(enterprise.get("name", "")),
        "is_registered": own is not None,
        "is_away": directory is not None and directory.is_away,
        "is_offline": core.is_directory_offline,
        "away_since": None if directory is None else _time(directory.away_since),
        "problem": "" if directory is None else directory.problem,
        "public_queues": len(core.public),
        "notifications_received": _counters(hub.notifications),
        "notifications_sent": _counters(hub.notifier),
        "map": None if hub.router is None else _map(hub.router),
    }


def _counters(counting: Any) -> dict[str, int]:
    counters: Mapping[str, int] = {} if counting is None else counting.counters
    return dict(counters)


def _map(router: DirectoryRouter) -> dict[str, Any]:
    return {
        "sites": len(router.map.sites),
        "links": len(router.map.links),
        "queue_managers": len(router.map.machines),
        "read_at": _time(router.read_at),
        "problem": router.problem,
        "faults": list(router.faults),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
