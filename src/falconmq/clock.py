"""Time is handed in: nobody below the doors asks the operating system what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def time(self) -> float:
        """Seconds since 1970, UTC. It may jump, as wall clocks do."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; it never goes back."""
        ...


class SystemClock:
    """The clock of the operating system."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class VirtualClock:
    """A clock that stands still until it is moved; for tests and the simulator."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._time = now
        self._monotonic = 0.0

    def time(self) -> float:
        return self._time

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds >= 0
        self._time += seconds
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock, forwards or back, as an administrator or NTP does."""
        self._time += seconds
