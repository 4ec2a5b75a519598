"""One directory server while it works: what it is, what it knows, what it wants to say.

The functions of the other modules are the events of MQDSRP; they take the server and change it. Its
`objects` and `numbers` are those of the turn that is under way: everything that one message or one
timer changes becomes true together when the turn ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory.object_writer import ObjectWriter
from falconmq.directory.replication.effects import Profile, Send
from falconmq.directory.replication.numbers import NumberBook
from falconmq.directory.replication.settings import ReplicationSettings, Role, ServerIdentity
from falconmq.directory.replication.state import (
    ENTERPRISE_PARTITION,
    Neighbour,
    Partition,
    ReplicationState,
)
from falconmq.directory.replication.timers import Timer, TimerKind, Timers
from falconmq.directory.replication.writes import PendingWrite, WaitingWrite, WriteKey
from falconmq.wire.replication_messages import ReplicationMessage


@dataclass(frozen=True, slots=True)
class LongReply:
    """The rest of an answer that is too long for one message (guide 9.7, step 8)."""

    partition_id: UUID
    requester_name: str
    first: int
    last: int
    scope: int


@dataclass(slots=True)
class AskedAround:
    """Who was asked for what a dead server may have told, before its role is taken over."""

    source: str = ""  # somebody who is believed instead of the dead one
    instead_of: str = ""  # as long as that would be asked
    is_presumed: bool = False  # nobody said that it is dead; it only does not answer
    waiting: set[str] = field(default_factory=set)  # names in small letters
    answered: set[str] = field(default_factory=set)
    ahead: set[str] = field(default_factory=set)  # these have gone where this copy cannot follow

    def has(self, name: str) -> bool:
        return name.lower() in self.waiting | self.answered

    def heard(self, name: str) -> None:
        """It has nothing that is not here."""
        self.waiting.discard(name.lower())
        self.answered.add(name.lower())


@dataclass
class Server:
    """See the module."""

    identity: ServerIdentity
    settings: ReplicationSettings
    clock: Clock
    random: Random
    objects: ObjectWriter
    numbers: NumberBook
    state: ReplicationState
    timers: Timers = field(default_factory=Timers)
    effects: list[Send] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    waiting: dict[WriteKey, WaitingWrite] = field(default_factory=dict)
    finished: list[tuple[PendingWrite, int]] = field(default_factory=list)
    next_request: int = 0
    # What was heard in this turn, for `roles`:
    looks_at_site: bool = False  # the directory may name another PSC of the own site
    has_successor: bool = False  # the new PEC has begun
    told_apart: set[str] = field(default_factory=set)  # who must hear how far the enterprise is
    asked_around: dict[UUID, AskedAround] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        """What this server is now: see `roles`."""
        return Role(self.state.standing.role or self.identity.role)

    @property
    def is_bsc(self) -> bool:
        return self.role is Role.BSC

    @property
    def my_psc_name(self) -> str:
        """MyPSCName, of a BSC: whom it asks."""
        return self.state.standing.psc_name

    @my_psc_name.setter
    def my_psc_name(self, name: str) -> None:
        self.state.standing.psc_name = name

    @property
    def site_bytes(self) -> bytes:
        """SiteID of every message (A-05)."""
        return self.identity.site.bytes_le

    @property
    def name(self) -> str:
        return self.identity.machine_name

    def is_me(self, machine_name: str) -> bool:
        return machine_name.lower() == self.name.lower()

    @property
    def enterprise(self) -> Partition:
        return self.state.partitions[ENTERPRISE_PARTITION]

    @property
    def site(self) -> Partition | None:
        """MySitePartition; None until the site is known here."""
        return self.state.partitions.get(self.identity.site)

    def owns(self, partition: Partition) -> bool:
        """Whether this server decides about a partition."""
        if partition.partition_id == ENTERPRISE_PARTITION:
            is_mine = self.role is Role.PEC  # RP-3.2.7.2-02
        else:
            is_mine = not self.is_bsc and partition.partition_id == self.identity.site  # -03
        return is_mine and self.is_me(partition.authority_name)

    def source_of(self, partition: Partition) -> str:
        """Whom to ask about a partition (RP-3.3.7.3-08, -09)."""
        usual = self._usual_source(partition)
        asked = self.asked_around.get(partition.partition_id)
        if asked is not None and asked.source and asked.instead_of == usual:
            return asked.source
        return usual

    def _usual_source(self, partition: Partition) -> str:
        return self.my_psc_name if self.is_bsc else partition.authority_name

    def is_asked_instead(self, partition: Partition, name: str) -> bool:
        """Whether a server is believed only because somebody else is dead."""
        asked = self.asked_around.get(partition.partition_id)
        if asked is None or name.lower() == self._usual_source(partition).lower():
            return False
        return asked.has(name) or asked.source.lower() == name.lower()

    def forget_turn(self) -> None:
        """What was heard in this turn is settled, or did not happen."""
        self.looks_at_site = self.has_successor = False
        self.told_apart.clear()

    def send(self, machine: str, message: ReplicationMessage, profile: Profile) -> None:
        self.effects.append(Send(machine, message, profile))

    def drop(self, reason: str) -> None:
        """Something is not obeyed; operators see how often and why."""
        self.counters[f"dropped.{reason}"] += 1

    def arm(self, kind: TimerKind, subject: Hashable, seconds: float) -> None:
        self.timers.arm(Timer(kind, subject), self.clock.monotonic() + seconds)

    def arm_propagation(self, neighbour: Neighbour) -> None:
        """RP-3.3.2.1-02: one timer for each neighbour."""
        settings = self.settings
        seconds = settings.intrasite_seconds if neighbour.is_bsc else settings.intersite_seconds
        self.arm(TimerKind.PROPAGATION, neighbour.key, seconds)
