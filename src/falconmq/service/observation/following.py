"""Following the event log from the event loop, without holding up whoever writes it.

How to think about it. A listener of the log is called inside a turn, in any thread: it must be
short. So it only puts the event at the end of a bounded line and rings the loop once; the loop
takes what is in the line, in pieces, with pauses. If more comes than is taken, the oldest fall out
of the line: events have numbers without gaps, so whoever follows sees what he missed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final

from falconmq.manager.events import EventLog, MessageEvent

LINE_MAX: Final = 20_000  # events that wait for the loop
PIECE_MAX: Final = 500  # of them that are handled without letting others work

Deliver = Callable[[list[MessageEvent]], float]
"""Handles some events; the seconds to leave the loop alone after it."""


class Follower:
    """Hands the events of a log to `deliver`, on the event loop that calls `start`."""

    def __init__(self, events: EventLog, deliver: Deliver) -> None:
        self._events = events
        self._deliver = deliver
        self._line: deque[MessageEvent] = deque(maxlen=LINE_MAX)
        self._is_rung = False
        self._not_before = 0.0  # of the loop's clock
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def start(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._events.listeners = [*self._events.listeners, self._heard]

    def stop(self) -> None:
        """Hear nothing more; what waits in the line is dropped."""
        if self._loop is not None:
            self._loop = None
            others = [each for each in self._events.listeners if each != self._heard]
            self._events.listeners = others  # a new list: another thread may walk the old one
            self._line.clear()

    def drain(self) -> None:
        """Handle all that waits, now."""
        while self._line:
            self._hand_over(PIECE_MAX)

    def _heard(self, event: MessageEvent) -> None:
        self._line.append(event)
        loop = self._loop
        if not self._is_rung and loop is not None:
            self._is_rung = True
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody follows
                loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        loop = self._loop
        if loop is None:
            self._is_rung = False
        elif (seconds := self._not_before - loop.time()) > 0:
            loop.call_later(seconds, self._wake)
        else:
            self._is_rung = False  # first: whoever comes from now on rings again
            pause = self._hand_over(PIECE_MAX)
            self._not_before = loop.time() + pause
            if self._line and not self._is_rung:
                self._is_rung = True
                loop.call_later(pause, self._wake)

    def _hand_over(self, count: int) -> float:
        line = self._line
        taken: list[MessageEvent] = []
        with contextlib.suppress(IndexError):  # it is empty
            while len(taken) < count:
                taken.append(line.popleft())
        return self._deliver(taken) if taken else 0.0
