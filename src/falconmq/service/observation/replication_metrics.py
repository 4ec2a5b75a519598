"""Directory replication in `/metrics`: what its status says, as series.

Partitions are called as people call them; a name that two of them have stands for the first, and
the other is called by its GUID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Protocol

from falconmq.directory.replication.carrying_judging import Dropped

PARTITIONS_MAX: Final = 1_000  # and as many neighbours have series of their own
_NORMAL: Final = "NORMAL"
_DROPPED: Final = "dropped."  # so the counters of the engine begin
# What the engine counts, and what it is called here.
_ENGINE: Final[Mapping[str, str]] = {
    "applied": "falconmq_directory_replication_applied_total",
    "decided": "falconmq_directory_replication_decided_total",
    "sync_requests": "falconmq_directory_replication_sync_requests_total",
    "sync0": "falconmq_directory_replication_full_syncs_total",
    "purged": "falconmq_directory_replication_purged_total",
}
_CARRIER: Final[Mapping[str, str]] = {
    "sent": "falconmq_directory_replication_sent_total",
    "received": "falconmq_directory_replication_received_total",
}
_REASONS: Final = frozenset(reason.value for reason in Dropped) | {"not sent"}


class Families(Protocol):
    def add(self, name: str, value: float, *labels: str) -> None:
        """A sample of a metric."""


def add_replication(families: Families, status: Mapping[str, Any]) -> None:
    """All series, out of what `status_json` says."""
    _add_partitions(families, status["partitions"])
    families.add("falconmq_directory_replication_waiting_writes", status["waiting_writes"])
    families.add("falconmq_directory_replication_doubles", len(status["doubles"]))
    waiting: Counter[str] = Counter()
    for neighbour in status["neighbours"]:
        waiting[neighbour["machine"]] += neighbour["waiting_changes"]
    for machine in sorted(waiting)[:PARTITIONS_MAX]:
        families.add("falconmq_directory_replication_neighbour_changes", waiting[machine], machine)
    _add_counters(families, status["counters"]["engine"], status["counters"]["carrier"])


def _add_partitions(families: Families, partitions: list[dict[str, Any]]) -> None:
    used: set[str] = set()
    for each in partitions[:PARTITIONS_MAX]:
        label = each["id"] if each["name"] in used else each["name"]
        used.add(label)
        families.add("falconmq_directory_replication_last_number", each["last"], label)
        families.add("falconmq_directory_replication_lag_changes", each["lag"], label)
        families.add("falconmq_directory_replication_pending_changes", each["pending"], label)
        families.add("falconmq_directory_replication_full_sync", each["state"] != _NORMAL, label)


def _add_counters(
    families: Families, engine: Mapping[str, int], carrier: Mapping[str, int]
) -> None:
    for counter, name in _ENGINE.items():
        families.add(name, engine.get(counter, 0))
    for counter, name in _CARRIER.items():
        families.add(name, carrier.get(counter, 0))
    dropped: Counter[str] = Counter()
    for counter, count in engine.items():
        if counter.startswith(_DROPPED):
            dropped[counter.removeprefix(_DROPPED).replace("_", " ")] += count
    for counter in _REASONS & carrier.keys():
        dropped[counter] += carrier[counter]
    for reason in sorted(dropped):
        families.add("falconmq_directory_replication_dropped_total", dropped[reason], reason)
