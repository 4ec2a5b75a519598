"""What is due when: deadlines of the clock that was handed in, nothing that runs by itself."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum


class TimerKind(Enum):
    PROPAGATION = "changes for a neighbour"
    BSC_ACK = "sign of life of a BSC"
    SYNC_RESEND = "a sync request without an answer"
    RESET = "the next step of a full synchronisation"
    SYNC_REPLY = "the next part of a long answer"
    WRITE_WAIT = "a write without an answer"


@dataclass(frozen=True, slots=True)
class Timer:
    kind: TimerKind
    subject: Hashable = None


class Timers:
    """At most one deadline for each timer; arming it again moves it."""

    def __init__(self) -> None:
        self._deadlines: dict[Timer, float] = {}

    def arm(self, timer: Timer, at: float) -> None:
        self._deadlines[timer] = at

    def cancel(self, timer: Timer) -> None:
        self._deadlines.pop(timer, None)

    def cancel_all(self, kind: TimerKind) -> None:
        for timer in [timer for timer in self._deadlines if timer.kind is kind]:
            del self._deadlines[timer]

    def is_armed(self, timer: Timer) -> bool:
        return timer in self._deadlines

    def next_due(self) -> float | None:
        return min(self._deadlines.values(), default=None)

    def take_due(self, now: float) -> list[Timer]:
        """Those whose time has come, the earliest first; they are armed no more."""
        due = sorted(
            (timer for timer, at in self._deadlines.items() if at <= now),
            key=lambda timer: self._deadlines[timer],
        )
        for timer in due:
            del self._deadlines[timer]
        return due
