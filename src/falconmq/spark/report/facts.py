"""What a report says, as plain values: no Spark, no HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Period:
    """From `since` until just before `until`, both UTC."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        return self.until - self.since

    def before(self) -> Period:
        """As long, and directly before."""
        return Period(self.since - self.length, self.since)


@dataclass(frozen=True)
class Headline:
    """The figures of one period; the seconds are None if nothing arrived."""

    messages: int = 0
    delivered: int = 0  # came into the queue they were sent to
    p95_seconds: float | None = None
    undelivered: int = 0  # ended before: refused, expired, deleted
    dead_letters: int = 0


@dataclass(frozen=True)
class Series:
    """Values over the moments of a plot; None where nothing was measured."""

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Timeline:
    """Moments, each the beginning of a step, and what was measured in it."""

    moments: tuple[datetime, ...] = ()
    step: timedelta = timedelta(minutes=1)
    series: tuple[Series, ...] = ()


@dataclass(frozen=True)
class Route:
    """What went one way."""

    name: str
    messages: int
    p95_seconds: float | None  # of the worst hour


@dataclass(frozen=True)
class Finding:
    """Something that went wrong; see silver/findings."""

    kind: str
    severity: str
    explanation: str
    message_id: str | None = None
    queue: str | None = None
    route: str | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    messages: int = 1


@dataclass(frozen=True)
class KindCount:
    """All findings of a kind, also those too many to be listed."""

    kind: str
    findings: int
    messages: int
    routes: tuple[str, ...] = ()  # where most of them are, at first
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(frozen=True)
class Coverage:
    """What the lake has of one queue manager."""

    computer: str
    manager: str
    first_at: datetime | None
    last_at: datetime | None
    events: int
    behind: int | None  # events that the manager had and the lake had not; None: not known


@dataclass(frozen=True)
class Rejects:
    """Rows that a job could not use."""

    job: str
    rows: int
    reasons: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Report:
    """All of it."""

    period: Period
    made_at: datetime
    now: Headline
    earlier: Headline | None  # None: the lake does not reach back so far
    throughput: Timeline = field(default_factory=Timeline)  # messages a minute, or a second
    latency: Timeline = field(default_factory=Timeline)  # seconds
    backlog: Timeline = field(default_factory=Timeline)  # seconds that the oldest waits, by queue
    dead_letters: Timeline = field(default_factory=Timeline)  # messages, by cause
    routes: tuple[Route, ...] = ()
    kinds: tuple[KindCount, ...] = ()
    findings: tuple[Finding, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    rejects: tuple[Rejects, ...] = ()
    is_close: bool = False  # a story of some minutes: throughput and latency go by seconds

    def kind(self, kind: str) -> KindCount:
        return next((k for k in self.kinds if k.kind == kind), KindCount(kind, 0, 0))
