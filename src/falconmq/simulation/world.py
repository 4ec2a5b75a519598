"""Virtual time: an event queue, one source of chance, and the clocks of the computers.

How to think about it. The world is a list of actions with their times. It takes the earliest, sets
its clock to that time and runs it; between two actions no time passes, so hours in which nothing
happens cost nothing. Everything that could go one way or the other asks `random`, which one seed
starts: the same seed gives the same run, in any process, on any machine.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Final

START_TIME: Final = 1_700_000_000.0
_EVENTS_KEPT: Final = 3000
_EVENTS_MAX: Final = 200_000  # a run that needs more goes round in circles

Note = tuple[float, str, str, tuple[object, ...]]


class SimulationError(Exception):
    """A promise was broken; the text says which, and by whom."""


class World:
    """See the module."""

    def __init__(self, seed: int, *, keep_all: bool = False) -> None:
        self.seed = seed
        self.keeps_all = keep_all
        self.random = Random(seed)  # noqa: S311 - chance that can be repeated
        self.now = 0.0
        self.events = 0
        self.counts: Counter[str] = Counter()  # faults by kind, and what else is of interest
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._added = 0
        self._notes: deque[Note] = deque(maxlen=None if keep_all else _EVENTS_KEPT)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Run an action at a time; those of the same time run in the order they came."""
        self._added += 1
        heapq.heappush(self._queue, (max(time, self.now), self._added, action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.at(self.now + seconds, action)

    def run_until(self, time: float) -> None:
        """Run everything up to a time."""
        queue = self._queue
        while queue and queue[0][0] <= time:
            self.now, _, action = heapq.heappop(queue)
            self.events += 1
            if self.events > _EVENTS_MAX:
                raise SimulationError(f"{self.events} events and no end: somebody goes in circles")
            action()
        self.now = time

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def note(self, who: str, text: str, *values: object) -> None:
        """Remember what happened; the text is put together only if somebody reads it."""
        self._notes.append((self.now, who, text, values))

    def story(self, *, about: str = "", last: int = 60) -> list[str]:
        """The last notes, or those that speak of `about`, one line each."""
        lines = [_line(note) for note in self._notes]
        if about:
            lines = [line for line in lines if about in line]
        return lines[-last:] if last else lines

    def digest(self) -> str:
        """A hash over all notes that were kept: equal runs have equal ones."""
        digest = hashlib.sha256()
        for note in self._notes:
            digest.update(_line(note).encode())
        return digest.hexdigest()


def _line(note: Note) -> str:
    time, who, text, values = note
    return f"{time:12.4f} {who:8} {text % values if values else text}"


class NodeClock:
    """The clock of one computer: its wall time may jump, its stopwatch runs with the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._booted = -world.random.uniform(1.0, 100_000.0)
        self._offset = START_TIME + world.random.uniform(-1.5, 1.5)
        self.jumped_forward = 0.0
        self.jumped = 0.0

    def time(self) -> float:
        return self._offset + self._world.now

    def monotonic(self) -> float:
        return self._world.now - self._booted

    def jump(self, seconds: float) -> None:
        """Set the wall clock, as an administrator or NTP does."""
        self._offset += seconds
        self.jumped += abs(seconds)
        self.jumped_forward += max(0.0, seconds)

    def reboot(self) -> None:
        """The computer starts again: its stopwatch begins at zero."""
        self._booted = self._world.now - 1.0
