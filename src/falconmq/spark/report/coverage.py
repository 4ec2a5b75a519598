"""What the lake holds of each queue manager, and which jobs rejected rows. Needs no Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from falconmq.spark.jobs import lake_tables
from falconmq.spark.report.facts import Coverage
from falconmq.spark.tables import Lake


def coverage_of(lake: Lake) -> tuple[Coverage, ...]:
    """What was archived of each queue manager, as the commits of bronze/events say."""
    found: dict[str, Coverage] = {}
    for commit in lake.table(lake_tables.EVENTS).commits():
        facts = commit.facts
        if not commit.source.startswith("archive:"):
            continue
        manager = commit.source.partition(":")[2]
        before = found.get(manager)
        first, last = _parsed(facts.get("first_at")), _parsed(facts.get("last_at"))
        latest, end = facts.get("latest"), facts.get("to")
        found[manager] = Coverage(
            computer=str(facts.get("computer") or manager),
            manager=manager,
            first_at=before.first_at if before and before.first_at else first,
            last_at=last or (before.last_at if before else None),
            events=commit.rows + (before.events if before else 0),
            behind=None if latest is None or end is None else max(0, latest - end),
        )
    return tuple(sorted(found.values(), key=lambda one: one.computer))


def rejecting_jobs(lake: Lake) -> list[str]:
    """Jobs that have a table of rejects."""
    folder = lake.path / "rejects"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _parsed(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
