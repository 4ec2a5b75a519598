"""How much of the truth is archived: of which managers, from when to when, with which gaps.

The ledger may say that a message was lost only where it would have seen the message otherwise. The
commits of bronze/events tell how far each log was read and what it had forgotten; this reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from falconmq.spark.tables import Commit

ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Gap:
    """Events that a log had forgotten before they were archived."""

    low: int
    high: int  # the first that is there again
    after: datetime  # they happened between these two
    before: datetime


@dataclass
class Cover:
    """What is known of one manager's log."""

    manager: str
    computer: str
    since: datetime
    through: datetime
    gaps: list[Gap] = field(default_factory=list)


def coverage(commits: Iterable[Commit]) -> dict[str, Cover]:
    """By manager; `commits` are those of bronze/events, the oldest first."""
    covers: dict[str, Cover] = {}
    for commit in commits:
        facts = commit.facts
        if "manager" not in facts or "through" not in facts:
            continue
        _add(covers, facts)
    return covers


def _add(covers: dict[str, Cover], facts: dict[str, Any]) -> None:
    manager, through = facts["manager"], _time(facts["through"])
    asked = _time(facts["asked_at"]) or ALWAYS
    first = _time(facts["first_at"])
    cover = covers.get(manager)
    if cover is None:
        # A log that begins with its first event has forgotten nothing.
        since = ALWAYS if facts["from"] <= 1 else first or asked
        cover = covers[manager] = Cover(manager, facts["computer"], since, since)
    if facts.get("gap"):
        low, high = facts["gap"]
        cover.gaps.append(Gap(low, high, cover.through, first or through or asked))
    cover.computer = facts["computer"]
    if through is not None:
        cover.through = max(cover.through, through)


def to_json(covers: dict[str, Cover]) -> list[dict[str, Any]]:
    """For the plan of a batch."""

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return [plain(asdict(cover)) for cover in covers.values()]


def from_json(document: Iterable[dict[str, Any]]) -> dict[str, Cover]:
    covers = {}
    for entry in document:
        gaps = [
            Gap(gap["low"], gap["high"], _known(gap["after"]), _known(gap["before"]))
            for gap in entry["gaps"]
        ]
        since, through = _known(entry["since"]), _known(entry["through"])
        cover = Cover(entry["manager"], entry["computer"], since, through, gaps)
        covers[cover.manager] = cover
    return covers


def _known(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
