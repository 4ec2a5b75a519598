"""An explanation, as people and programs get it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """Whether somebody has to do something."""

    INFO = "info"  # it is as it should be
    WARNING = "warning"  # it may become a problem, or is one that passes by itself
    ERROR = "error"  # nothing moves until somebody acts


class Kind(StrEnum):
    """What was asked about."""

    MESSAGE = "message"
    QUEUE = "queue"
    OUTGOING = "outgoing"
    DIRECTORY = "directory"  # an object, or a change of one, that other servers should have


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is so, for those who want to see for themselves."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason; `code` is for programs and never changes its meaning."""

    code: str
    text: str
    severity: Severity = Severity.INFO
    hint: str = ""  # what to do next, a command if there is one
    since: float | None = None  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened to a message."""

    time: float  # seconds since 1970
    kind: str
    text: str
    queue: str = ""


@dataclass(slots=True)
class Explanation:
    """Why something is where it is: a sentence or two, and what they rest on."""

    subject: str
    kind: Kind
    summary: str
    facts: list[Fact] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)  # the one that matters most first
    timeline: list[Step] = field(default_factory=list)  # of a message, the oldest first

    @property
    def hints(self) -> list[str]:
        """What to do next, the most useful first; none if all is well."""
        return list(dict.fromkeys(cause.hint for cause in self.causes if cause.hint))

    @property
    def severity(self) -> Severity:
        """That of the worst cause."""
        order = list(Severity)
        return max((cause.severity for cause in self.causes), key=order.index, default=order[0])
