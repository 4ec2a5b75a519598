"""What people are shown of directory replication. It is asked for beside the loop."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory.queries import find_all, find_one
from falconmq.directory.replication.eras import era_of, number_in_era
from falconmq.directory.replication.properties import PATHS
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.status import Double, doubles
from falconmq.directory.texts import WORDS
from falconmq.manager.directory_backend import equals

if TYPE_CHECKING:
    from falconmq.directory.replication.status import NeighbourStatus, PartitionStatus
    from falconmq.service.directory.replicating import Replication

_DOUBLES_MAX: Final = 100  # objects that are in two sites
_WORDS: Final = {type_name: word for word, type_name in WORDS.items()}


def status_json(replication: Replication, clock: Clock) -> dict[str, Any]:
    """Partitions first the enterprise's, then by the names of their sites."""
    status = replication.replicator.status()
    rows = find_all(replication.own, "Site", ())
    names = {row["identifier"]: str(row["name"]) for row in rows}
    names[ENTERPRISE_PARTITION] = "enterprise"
    notes, now = replication.carrier.notes, clock.time()
    partitions = [_partition(each, names) for each in status.partitions]
    for shown, each in zip(partitions, status.partitions, strict=True):
        asked = notes.asked.get(each.partition_id) if each.is_waiting else None
        shown["asked_seconds"] = None if asked is None else round(max(0.0, now - asked.since), 1)
    partitions.sort(key=lambda each: (each["id"] != str(ENTERPRISE_PARTITION), each["name"]))
    heard = _heard(replication, now)
    return {
        "role": status.role,
        "configured_role": replication.identity.role.value,
        "awaits_role": status.awaits_role,
        "machine": status.machine_name,
        "site": names.get(status.site, str(status.site)),
        "primary_site_controller": status.psc_name,
        "ready": replication.is_ready.is_set(),
        "waiting_writes": status.waiting_writes,
        "doubles": [_double(each, names) for each in doubles(replication.own, _DOUBLES_MAX)],
        "partitions": partitions,
        "neighbours": [
            _neighbour(each, names, clock) | {"last_heard_seconds": heard.get(each.machine.lower())}
            for each in status.neighbours
        ],
        "counters": {
            "engine": dict(replication.replicator.counters),
            "carrier": dict(replication.carrier.counters),
        },
    }


def _double(double: Double, names: dict[object, str]) -> dict[str, Any]:
    return {
        "kind": _WORDS[double.table.type_name],
        "name": str(double.row[PATHS[double.table.code]]),
        "id": str(double.row["identifier"]),
        "shown": names.get(double.shown, str(double.shown)),
        "others": sorted(names.get(site, str(site)) for site in double.others),
    }


def fingerprint_page(replication: Replication, after: str, limit: int) -> dict[str, Any]:
    """So many fingerprints, of those whose names are greater than `after`."""
    found = replication.fingerprints()
    names = sorted(name for name in found if name > after)
    page = {name: found[name] for name in islice(names, limit)}
    return {"fingerprints": page, "next": names[limit - 1] if len(names) > limit else ""}


def _partition(status: PartitionStatus, names: dict[object, str]) -> dict[str, Any]:
    return {
        "id": str(status.partition_id),
        "name": names.get(status.partition_id, str(status.partition_id)),
        "authority": status.authority,
        "own": status.is_own,
        "taken_over_at": _moment(era_of(max(status.last, status.purged))),
        "last": status.last,
        "number": number_in_era(status.last),
        "lag": status.lag,
        "pending": status.pending,
        "purged": status.purged,
        "state": status.state,
        "waiting": status.is_waiting,
    }


def _neighbour(status: NeighbourStatus, names: dict[object, str], clock: Clock) -> dict[str, Any]:
    acked, hello = status.last_acked_time, status.last_hello
    site: UUID = status.site
    return {
        "machine": status.machine,
        "kind": status.kind,
        "site": names.get(site, str(site)),
        "waiting_changes": status.waiting_changes,
        "acked": status.acked,
        "acked_enterprise": status.acked_enterprise,
        "last_acked_at": _moment(acked),
        "last_hello_seconds": None if hello is None else round(clock.monotonic() - hello, 1),
        "silent": status.is_silent,
    }


def _moment(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None


def _heard(replication: Replication, now: float) -> dict[str, float]:
    """How long ago each server said something, by its name in small letters."""
    found = {}
    for machine, moment in list(replication.carrier.notes.heard.items()):
        row = find_one(replication.own, "QueueManager", equals("identifier", machine))
        known = replication.identity.trusted.get(machine, "")
        name = known if row is None else str(row["computer_name"])
        found[name.lower()] = round(max(0.0, now - moment), 1)
    return found
