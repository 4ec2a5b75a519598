"""When notifications are looked at: together, and not too often (MQCN notes 3 and 14, guide 6).

    Idle -> Waiting       one comes: a timer of 60 s, or what is left of 900 s since the last run
    Waiting -> Waiting    more come
    Waiting -> Idle       the timer: all of them in the order they came, or, if they are 100 and
                          more, none of them, and all public queues are read from the directory

So nobody can keep a queue manager busy by telling it to look again. No clock is read here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from falconmq.directory.notification import ReceivingSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run(Generic[T]):
    """What to do now: handle these in their order, or forget them all and reload."""

    items: list[T]
    is_reload: bool


class Throttle(Generic[T]):
    """Collects what comes until it is time. `deadline` is None while nothing waits."""

    def __init__(self, settings: ReceivingSettings) -> None:
        self.deadline: float | None = None
        self._settings = settings
        self._last_run: float | None = None
        self._items: list[T] = []
        self._count = 0

    @property
    def pending(self) -> int:
        """How many came since the last run."""
        return self._count

    def arrived(self, item: T, now: float) -> None:
        """One more; the first one sets the deadline."""
        self._count += 1
        if self._count < self._settings.flood:
            self._items.append(item)
        else:
            self._items.clear()  # nobody will read them: a flood costs no memory
        if self.deadline is None:
            self.deadline = now + self._delay(now)

    def run(self, now: float) -> Run[T]:
        """The deadline has come: what to do, and begin anew (CN-1.6-09, -10)."""
        is_reload = self._count >= self._settings.flood  # CN-1.6-11
        found = Run(self._items, is_reload)
        self._items, self._count, self.deadline = [], 0, None
        self._last_run = now
        return found

    def _delay(self, now: float) -> float:
        settings = self._settings
        if self._last_run is None:
            return settings.collect_seconds
        age = now - self._last_run
        if age > settings.quiet_seconds:
            return settings.collect_seconds  # CN-1.6-07
        return settings.longest_seconds - age  # CN-1.6-08
