"""What was asked for, and what may be true now: the promises of a directory with copies.

Objects are known by their names, for that is how changes are asked for elsewhere. Of each name the
ledger keeps the changes that somebody asked for, each with the time in which it can have become
true: a change made where it is decided happens at once; one that was sent on can happen until its
last message is dead, also if nobody heard of it. What is definite: a change that was acknowledged
happened. So a later definite change supersedes an earlier one, and whatever the directory says in
the end must be the word of a change that nothing definite has superseded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from falconmq.simulation.world import SimulationError

FORWARDED_SECONDS: Final = 25.0  # two hops of ten seconds each, and a little

Name = tuple[str, str]
"""The type of an object and its name: path name, computer name, or GUID where it has none."""


class Kind(Enum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


class Outcome(Enum):
    DONE = auto()
    REFUSED = auto()
    UNKNOWN = auto()  # perhaps it happened, perhaps not


@dataclass(slots=True, eq=False)
class Change:
    """A change that somebody asked for."""

    kind: Kind
    value: object
    began: float
    ended: float  # it cannot become true any more after this
    outcome: Outcome = Outcome.UNKNOWN
    is_forgiven: bool = False  # a dead server, or one that decided no more, said it: see Enterprise

    def forgive(self) -> None:
        """It may be lost, although somebody acknowledged it."""
        self.is_forgiven = True
        if self.outcome is Outcome.DONE:
            self.outcome = Outcome.UNKNOWN

    def acknowledge(self) -> None:
        if not self.is_forgiven:
            self.outcome = Outcome.DONE

    def is_before(self, other: Change) -> bool:
        return self.ended < other.began


@dataclass
class Ledger:
    """All names and their changes."""

    names: dict[Name, list[Change]] = field(default_factory=dict)
    forgiven: set[Name] = field(default_factory=set)  # something of it may be lost

    def add(self, name: Name, change: Change) -> Change:
        self.names.setdefault(name, []).append(change)
        return change

    def forgive(self, name: Name) -> None:
        """What was asked of a name until now may be lost."""
        self.forgiven.add(name)
        for change in self.names.get(name, ()):
            change.forgive()

    def forgive_unanswered(self, now: float) -> None:
        """What is on its way may be lost."""
        for changes in self.names.values():
            for change in changes:
                if change.outcome is Outcome.UNKNOWN and change.ended > now:
                    change.forgive()

    @property
    def acknowledged(self) -> int:
        changes = (each for known in self.names.values() for each in known)
        return sum(each.outcome is Outcome.DONE for each in changes)

    def check(self, found: dict[Name, object], is_open: Callable[[Name], bool]) -> None:
        """Compare with what a directory has in the end: the value of each name that is there.

        Of a name that is open nothing is known.
        """
        for name in sorted(found.keys() - self.names.keys()):
            raise _broken(name, "is there and nobody asked for it")
        for name, changes in self.names.items():
            if is_open(name):
                continue
            if name in found:
                _check_present(name, changes, found[name])
            else:
                _check_absent(name, changes)


def _possible(changes: list[Change], *kinds: Kind) -> list[Change]:
    return [each for each in changes if each.kind in kinds and each.outcome is not Outcome.REFUSED]


def _definite(changes: list[Change], *kinds: Kind) -> list[Change]:
    return [each for each in changes if each.kind in kinds and each.outcome is Outcome.DONE]


def _check_present(name: Name, changes: list[Change], value: object) -> None:
    deletions = _definite(changes, Kind.DELETE)
    creations = _possible(changes, Kind.CREATE)
    if all(any(made.is_before(gone) for gone in deletions) for made in creations):
        raise _broken(name, "was deleted and is there")
    words = [each for each in _possible(changes, Kind.CREATE, Kind.CHANGE) if each.value == value]
    if not words:
        raise _broken(name, f"is {value!r}, and nobody asked for that")
    later = _definite(changes, Kind.CREATE, Kind.CHANGE)
    if all(any(word.is_before(other) for other in later) for word in words):
        raise _broken(name, f"is {value!r} again: a later change that was acknowledged is lost")


def _check_absent(name: Name, changes: list[Change]) -> None:
    deletions = _possible(changes, Kind.DELETE)
    for made in _definite(changes, Kind.CREATE):
        if all(gone.is_before(made) for gone in deletions):
            raise _broken(name, "was made and acknowledged, and is not there")


def _broken(name: Name, problem: str) -> SimulationError:
    error = SimulationError(f"{name[0]} {name[1]} {problem}")
    error.add_note(name[1])
    return error
