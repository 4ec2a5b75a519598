r"""How far a reader is: offsets, the limits of a batch, and its cut into partitions.

How to think about it. Everything that is read is a *feed*: a queue of one queue manager, or its
event log. The messages of a feed have numbers that only grow, so one number says how far a reader
is: the next one it wants. Spark keeps the offsets of all feeds as one JSON document a batch:

    {"v": 1, "managers": {"<guid>": {"url": "http://sales02:8018", "queues": {
        ".\\private$\\orders": {"next": 4711, "seen": 123}}}}}

`seen` counts the messages that were planned so far. A batch that is read again, after a crash,
therefore knows how many messages its range held: if there are fewer now, somebody else took some.
`lost` counts those, for readers who go on nevertheless. Nothing here talks to anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from falconmq.errors import FalconMQError, MqStatus

VERSION: Final = 1
LOG: Final = "events"  # the feed of a manager's event log; no queue is called so
_K = TypeVar("_K")


class Feed(NamedTuple):
    """A queue of a queue manager, or its event log."""

    manager: str  # GUID
    name: str


@dataclass(frozen=True)
class Position:
    """How far one feed was read."""

    next: int
    seen: int = 0  # messages before it that were planned
    lost: int = 0  # of those, the ones that were gone when a batch was read again

    def advanced(self, stop: int, count: int) -> Position:
        return replace(self, next=stop, seen=self.seen + count)


@dataclass(frozen=True)
class Offsets:
    """How far all feeds were read."""

    positions: Mapping[Feed, Position] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)  # of the managers, by GUID

    @classmethod
    def from_json(cls, document: Any) -> Offsets:
        """Read what Spark kept; FalconMQError if it is not ours or of another version."""
        try:
            version = document["v"]
            if version != VERSION:
                raise _unreadable(f"its version is {version}, this FalconMQ knows {VERSION}")
            positions: dict[Feed, Position] = {}
            urls: dict[str, str] = {}
            for manager, state in document["managers"].items():
                urls[manager] = str(state["url"])
                for name, at in state["queues"].items():
                    position = Position(
                        int(at["next"]), int(at.get("seen", 0)), int(at.get("lost", 0))
                    )
                    positions[Feed(manager, name)] = position
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise _unreadable(f"{type(error).__name__}: {error}") from error
        return cls(positions, urls)

    def to_json(self) -> dict[str, Any]:
        """Always the same text for the same offsets: Spark compares them as texts."""
        managers: dict[str, Any] = {}
        for manager in sorted({feed.manager for feed in self.positions} | set(self.urls)):
            feeds = sorted(feed for feed in self.positions if feed.manager == manager)
            managers[manager] = {
                "url": self.urls.get(manager, ""),
                "queues": {feed.name: _as_json(self.positions[feed]) for feed in feeds},
            }
        return {"v": VERSION, "managers": managers}

    def of(self, feed: Feed) -> Position:
        """A feed that is not there has not been read: it begins at its beginning."""
        return self.positions.get(feed, Position(0))

    def moved(self, changed: Mapping[Feed, Position]) -> Offsets:
        return replace(self, positions={**self.positions, **changed})


def share(limit: int, backlogs: Mapping[_K, int]) -> dict[_K, int]:
    """Share a limit over feeds by what waits in them.

    Never more than the limit in all and never more than there is. Each feed with a backlog gets at
    least one, if the limit is enough for that; else those with the largest backlogs do.
    """
    total = sum(backlogs.values())
    if total <= limit:
        return dict(backlogs)
    waiting = sorted((key for key in backlogs if backlogs[key]), key=lambda key: -backlogs[key])
    shares = dict.fromkeys(backlogs, 0)
    for key in waiting[:limit]:
        shares[key] = 1
    spare, rest = limit - min(limit, len(waiting)), total - len(waiting)
    for key in waiting if spare else ():
        shares[key] += spare * (backlogs[key] - 1) // rest
    left = limit - sum(shares.values())
    for key in waiting:  # what rounding left over
        more = min(left, backlogs[key] - shares[key]) if shares[key] else 0
        shares[key] += more
        left -= more
    return shares


def part_counts(
    counts: Sequence[int], *, wanted: int | None = None, at_most: int | None = None
) -> list[int]:
    """Into how many partitions each feed of a batch is cut.

    At least `wanted` in all if there are that many messages, and none with more than `at_most`.
    """
    total = sum(counts)
    parts = []
    for count in counts:
        number = -(-count // at_most) if at_most else 1
        if wanted and total:
            number = max(number, -(-wanted * count // total))
        parts.append(min(count, max(1, number)))
    return parts


def _as_json(position: Position) -> dict[str, int]:
    lost = {"lost": position.lost} if position.lost else {}
    return {"next": position.next, "seen": position.seen, **lost}


def _unreadable(problem: str) -> FalconMQError:
    return FalconMQError(
        f"these are no offsets of FalconMQ: {problem}",
        status=MqStatus.INVALID_PARAMETER,
        hint="a checkpoint belongs to one query with one source: give this query a new one",
    )
