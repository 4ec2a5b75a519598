"""One computer with a copy of the directory: its disk, its clock, and the life that it has now.

The replication engine is the real one. It is called as a carrier would call it: with messages, when
something is due, and when somebody writes. The power may fail in any commit; then the engine is
gone, with everything that it had in memory, and the next one begins with what the disk has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.replication.effects import Send
from falconmq.directory.replication.engine import ReplicationEngine
from falconmq.directory.replication.settings import ReplicationSettings, Role, ServerIdentity
from falconmq.directory.replication.status import PartitionStatus, ReplicationStatus
from falconmq.directory.replication.writes import PendingWrite
from falconmq.errors import FalconMQError
from falconmq.manager.states import DirectoryResult
from falconmq.simulation.world import NodeClock, World
from falconmq.store.memory_engine import MemoryStore, ProcessCrash

if TYPE_CHECKING:
    from falconmq.simulation.directory.post import Post

_SECONDS_TO_TRY_AGAIN: Final = 3.0  # of a server that cannot write when it starts
_LITTLE: Final = 0.000001  # so that what is due is due in spite of rounding
_COUNTED: Final = {"sync0": "full synchronisation", "purged": "deletion forgotten"}

Asked = Callable[[EmbeddedDirectory], DirectoryResult]


class DirectoryServer:
    """See the module. `role` and the names may be changed while it is down."""

    def __init__(
        self, world: World, post: Post, settings: ReplicationSettings, name: str, site: UUID
    ) -> None:
        self.world = world
        self.post = post
        self.settings = settings
        self.name = name
        self.site = site
        self.role = Role.BSC
        self.pec_name = ""
        self.psc_name = ""
        self.identifier = UUID(int=world.random.getrandbits(128), version=4)
        self.store = MemoryStore()
        self.clock = NodeClock(world)
        self.life = 0  # which one, counted from 1
        self.engine: ReplicationEngine | None = None
        self.is_doomed = False  # the power will fail in a commit
        self.is_kept_down = False  # by the operator, or by a fault that wakes it later
        self._directory: EmbeddedDirectory | None = None
        self._waiting: list[PendingWrite] = []  # what the last write waits for
        self._wakes_at: float | None = None

    @property
    def is_up(self) -> bool:
        return self.engine is not None

    @property
    def directory(self) -> EmbeddedDirectory:
        assert self._directory is not None
        return self._directory

    def start(self) -> None:
        """Begin a life with what the disk has."""
        if self.engine is not None or self.is_kept_down:
            return
        self.life += 1
        random = Random(f"{self.world.seed}/{self.name}/{self.life}")  # noqa: S311
        identity = ServerIdentity(
            self.role,
            self.name,
            self.identifier,
            self.site,
            pec_name=self.pec_name,
            psc_name=self.psc_name,
            trusted=self.post.trusted,
        )
        self.world.note(self.name, "starts as %s", self.role.value)
        self._directory = EmbeddedDirectory(self.store, self.clock, random)
        try:
            self.engine = ReplicationEngine(
                self._directory, identity, self.settings, self.clock, random
            )
            self.engine.gate.wait = self._waiting.append
            self._call(self.engine.start)
        except FalconMQError as error:  # the disk is full
            self.world.note(self.name, "cannot start: %s", error)
            self.crash()
            self.world.after(_SECONDS_TO_TRY_AGAIN, self.start)

    def crash(self) -> None:
        """The power fails: everything that is not on the disk is gone."""
        if self.engine is None:
            return
        self.world.note(self.name, "CRASH")
        self.count_events()
        self.engine = None
        self.is_doomed = False
        self.store.crash()
        self._wakes_at = None
        if self.world.chance(0.3):
            self.clock.reboot()

    def fail_in_commit(self, number: int) -> None:
        """The power fails in one of the next commits, before or after it is durable."""
        self.is_doomed = True
        self.store.fail_commit(number, ProcessCrash(), durable=self.world.chance(0.5))

    def receive(self, data: bytes, sender: UUID) -> None:
        """A message arrives, with the signature of a server."""
        engine = self.engine
        if engine is not None:
            message = self.post.decode(data)
            self._call(lambda: engine.receive(message, sender))

    def nacked(self, data: bytes) -> None:
        """A change request of ours came back."""
        engine = self.engine
        if engine is not None:
            request = self.post.decode_request(data)
            self._call(lambda: engine.change_request_nacked(request))

    def ask(self, asked: Asked) -> tuple[DirectoryResult | None, PendingWrite | None]:
        """Write as an application does; None: the power failed; a PendingWrite: it takes time."""
        engine, results = self.engine, []
        assert engine is not None
        self._waiting.clear()

        def act() -> Iterable[Send]:
            results.append(asked(self.directory))
            return engine.take_effects()

        if not self._call(act):
            return None, None
        return results[0], self._waiting.pop() if self._waiting else None

    def partition(self, partition_id: UUID) -> PartitionStatus | None:
        """How far this server is in a partition; None if it does not know it."""
        status = self.status()
        known = [] if status is None else status.partitions
        return next((each for each in known if each.partition_id == partition_id), None)

    def status(self) -> ReplicationStatus | None:
        """What it tells its operator; None while it is down."""
        engine, told = self.engine, []

        def look() -> Iterable[Send]:
            if engine is not None:
                told.append(engine.status())
            return ()

        self._call(look)
        return told[0] if told else None

    def owns(self, partition_id: UUID) -> bool:
        partition = self.partition(partition_id)
        return partition is not None and partition.is_own

    def count_events(self) -> None:
        """Add what this life had to do to the counts of the world."""
        counters = {} if self.engine is None else self.engine.counters
        for counter, kind in _COUNTED.items():
            if counters.get(counter):
                self.world.counts[kind] += counters[counter]

    def _call(self, action: Callable[[], Iterable[Send]]) -> bool:
        """One call of the engine; what it wants to send goes out, unless the power fails in it."""
        try:
            sends = list(action())
        except ProcessCrash:
            self.world.counts["crash at a commit"] += 1
            self.crash()
            self.world.after(self.world.random.choice((0.1, 5.0, 60.0)), self.start)
            return False
        for send in sends:
            self.post.send(self, send)
        self._sleep()
        return True

    def _sleep(self) -> None:
        """Wake when the engine has something to do."""
        due = self.engine.next_due() if self.engine is not None else None
        if due is None:
            return
        at = self.world.now + max(0.0, due - self.clock.monotonic()) + _LITTLE
        if self._wakes_at is None or at < self._wakes_at:
            self._wakes_at = at
            life = self.life
            self.world.at(at, lambda: self._wake(life, at))

    def _wake(self, life: int, at: float) -> None:
        engine = self.engine
        if engine is None or life != self.life or at != self._wakes_at:
            return
        self._wakes_at = None
        due = engine.next_due()
        if due is not None and due <= self.clock.monotonic():
            self._call(engine.run_due)
        else:
            self._sleep()
