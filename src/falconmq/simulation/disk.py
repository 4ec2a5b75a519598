"""A disk that takes its time and fails: group commit in virtual time over the store in memory.

One commit is under way at a time; what is submitted meanwhile becomes the next group, in order. A
crash in the middle of a commit leaves it done or not done, as the lot falls, but nobody is told;
only the ledger of the checkers learns the truth. A full disk refuses every batch that adds
something; then everything behind it has failed too, and the host must restore its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from falconmq.errors import FalconMQError
from falconmq.simulation.world import SimulationError, World
from falconmq.store.interface import WriteBatch
from falconmq.store.memory_engine import MemoryStore

_FLUSHES_MAX: Final = 1000


@dataclass(slots=True, eq=False)
class Submitted:
    """A batch on its way, and who wants to know."""

    batch: WriteBatch
    done: Callable[[], None]  # it is durable, and the node lives
    outcome: Callable[[bool], None]  # the truth, also if nobody is left to hear it


@dataclass(eq=False)
class Disk:
    """The disk of one node; it outlives the node's lives."""

    world: World
    name: str
    store: MemoryStore = field(default_factory=MemoryStore)
    latency: float = 0.002
    is_slow: bool = False
    crash_in: int = 0  # commits until the power fails; 0: it does not
    failed: Callable[[FalconMQError], None] = lambda _: None
    power_failed: Callable[[], None] = lambda: None
    _waiting: list[Submitted] = field(default_factory=list)
    _group: list[Submitted] = field(default_factory=list)
    _life: int = 0

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._group

    @property
    def last(self) -> Submitted | None:
        """The newest batch that is not durable yet."""
        if self._waiting:
            return self._waiting[-1]
        return self._group[-1] if self._group else None

    def submit(self, entry: Submitted) -> None:
        self._waiting.append(entry)
        if not self._group:
            self._begin()

    def flush(self) -> None:
        """Wait for everything, as a process does that ends in order."""
        for _ in range(_FLUSHES_MAX):
            if not self._group and not self._waiting:
                return
            if not self._group:
                self._group, self._waiting = self._waiting, []
            self._life += 1
            self._end(self._life)
        raise SimulationError(f"the disk of {self.name} never comes to rest")

    def crash(self) -> None:
        """The power fails, between two commits or in the middle of one."""
        self._life += 1
        group, waiting = self._group, self._waiting
        self._group, self._waiting = [], []
        is_durable = bool(group) and self.world.chance(0.5)
        if is_durable:
            try:
                self.store.commit([entry.batch for entry in group])
            except FalconMQError:  # the disk was full
                is_durable = False
        for entry in group:
            entry.outcome(is_durable)
        for entry in waiting:
            entry.outcome(False)
        self.store.crash()

    def _begin(self) -> None:
        self._group, self._waiting = self._waiting, []
        random = self.world.random
        seconds = self.latency * (0.5 + random.random())
        if self.store.is_full:
            seconds += random.uniform(0.2, 4.0)  # a host that fails should not fail in a tight loop
        if self.is_slow and random.random() < 0.3:
            seconds += random.uniform(0.1, 3.0)
        life = self._life
        self.world.after(seconds, lambda: self._end(life))

    def _end(self, life: int) -> None:
        if life != self._life or not self._group:
            return
        if self.crash_in:
            self.crash_in -= 1
            if not self.crash_in:
                self.world.counts["crash at a commit"] += 1
                self.power_failed()
                return
        group = self._group
        try:
            self.store.commit([entry.batch for entry in group])
        except FalconMQError as error:
            self.world.counts["commit failed"] += 1
            lost, self._group, self._waiting = group + self._waiting, [], []
            for entry in lost:
                entry.outcome(False)
            self.failed(error)
            return
        self._group = []
        for entry in group:
            entry.outcome(True)
        for entry in group:
            entry.done()
        if not self._group and self._waiting:
            self._begin()
