"""Deadlines of the event loop, on the clock of the queue manager.

How to think about it. What callers leave open (transactions, leases, handles, cursors) must end by
itself when nobody comes back. Each has a `Deadline`; one timer of the loop stands for the earliest
of them. Whoever looks something up calls `run` first: so what is over is over, even if the loop was
too busy to say so, and a test only has to move the clock.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Final

from falconmq.clock import Clock

_FEW: Final = 64  # cancelled deadlines that nobody minds


class Deadline:
    """When something ends, unless that is put off or cancelled; made by `Expiring.start`."""

    __slots__ = ("_action", "_expiring", "_queued_at", "at")

    def __init__(self, expiring: Expiring, at: float, action: Callable[[], None]) -> None:
        self._expiring = expiring
        self._action: Callable[[], None] | None = action
        self._queued_at = at  # its earliest place in the line
        self.at = at  # of the monotonic clock

    @property
    def is_cancelled(self) -> bool:
        return self._action is None

    @property
    def moment(self) -> str:
        """The same in the time of the calendar, as ISO 8601."""
        return self._expiring.moment_of(self.at)

    def put_off(self, seconds: float) -> None:
        """It is so many seconds from now."""
        self.at = self._expiring.now + seconds
        if self.at < self._queued_at:
            self._queued_at = self.at
            self._expiring.queue(self)

    def cancel(self) -> None:
        if self._action is not None:
            self._action = None
            self._expiring.forget()

    def take_turn(self) -> Callable[[], None] | None:
        """Its place in the line has come: what to do now, if it is not cancelled or put off."""
        if self._action is None or self._queued_at > self._expiring.now:
            return None
        if self.at > self._expiring.now:
            self._queued_at = self.at
            self._expiring.queue(self)
            return None
        action, self._action = self._action, None
        return action


class Expiring:
    """All deadlines; for one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line: list[tuple[float, int, Deadline]] = []
        self._numbers = count()
        self._cancelled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False

    @property
    def now(self) -> float:
        return self._clock.monotonic()

    def moment_of(self, at: float) -> str:
        seconds = self._clock.time() + at - self._clock.monotonic()
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

    def start(self, seconds: float, action: Callable[[], None]) -> Deadline:
        """Do something so many seconds from now; the action must not raise."""
        deadline = Deadline(self, self.now + seconds, action)
        self.queue(deadline)
        return deadline

    def queue(self, deadline: Deadline) -> None:
        heapq.heappush(self._line, (deadline.at, next(self._numbers), deadline))
        if self._line[0][2] is deadline:
            self._arm()

    def forget(self) -> None:
        """One more is cancelled: sweep when half of them are."""
        self._cancelled += 1
        if self._cancelled > _FEW and self._cancelled * 2 > len(self._line):
            self._line = [entry for entry in self._line if not entry[2].is_cancelled]
            heapq.heapify(self._line)
            self._cancelled = 0

    def run(self) -> None:
        """Do what is due."""
        while self._line and self._line[0][0] <= self.now:
            deadline = heapq.heappop(self._line)[2]
            action = deadline.take_turn()
            if action is not None:
                action()

    def stop(self) -> None:
        """The service stops, and with it ends everything."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._line and not self._is_stopped:
            seconds = max(0.0, self._line[0][0] - self.now)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def _ring(self) -> None:
        self._timer = None
        try:
            self.run()
        finally:
            self._arm()
