r"""Keeping the event log: what a turn recorded goes into the batch of that turn.

How to think about it. `EventLog.record` leaves each event in `pending`. At the end of the turn the
host calls `write`: the events are packed, and if the turn has a batch they go along with it as a
block (`event_store`), so that they are durable together with what they tell of. A turn of express
messages alone has no batch; its packed events wait for the next one, at most a second, and nothing
else waits for them. A crash loses those and no others.

A number is given when its block goes into a batch. If that batch fails, the numbers go back to what
is stored: nobody has seen them. So numbers have no gaps, whatever happens. They are not those of
`EventLog.number`, which count what this run remembers.

Blocks that are too old, or too many, leave at the front, a few with each block that is written. If
the disk is full the log gives way: for a minute each new block takes an old one along, so that
whoever receives a message makes room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import UUID

from falconmq.errors import ResourceError, StoreError
from falconmq.manager.event_facts import About, facts_of
from falconmq.manager.event_store import (
    NAMED,
    PACKED,
    RECORD,
    TABLE,
    BlockBuilder,
    Head,
    end_of,
    key_of,
    read_head,
)
from falconmq.manager.events import EventKind, MessageEvent
from falconmq.manager.record import StoredMessage
from falconmq.store.interface import StoreReader

if TYPE_CHECKING:
    from falconmq.manager.core import QueueManagerCore
    from falconmq.manager.model import Queue

DAY_SECONDS: Final = 86_400
DEFAULT_DAYS: Final = 7
DEFAULT_BYTES: Final = 1 << 30
WAIT_SECONDS: Final = 1.0  # that events without a batch wait for one
WAITING_MAX: Final = 1_000  # then they wait no longer
_RETIRED_AT_ONCE: Final = 32  # blocks that leave with one that comes
_RETIRED_IN_A_TURN: Final = 512  # blocks that leave in a turn of their own
_RETIRING_PAUSE: Final = 0.05  # seconds between such turns
_SHORT_SECONDS: Final = 60.0  # so long after a failed write the log makes room
_NAMES_MAX: Final = 10_000  # that are remembered
_WITH_PACKETS: Final = frozenset(
    {EventKind.QUEUED, EventKind.ARRIVED, EventKind.JOURNALED, EventKind.DEAD_LETTERED}
)

_log = logging.getLogger("falconmq.manager")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long events are kept, and of which queues with their packets."""

    max_age_days: int = DEFAULT_DAYS
    max_bytes: int = DEFAULT_BYTES
    bodies: Sequence[str] = ()  # patterns of path names; outgoing queues by where they lead


class Done(Protocol):
    """A commit that is over."""

    error: BaseException | None


class _Place(NamedTuple):
    """What is remembered of a queue."""

    name: str
    keeps_packets: bool


class EventKeeper:
    """Writes the events of a queue manager into its store."""

    def __init__(
        self, store: StoreReader, retention: Retention, name_of: Callable[[Queue], str]
    ) -> None:
        self.retention = retention
        self.pending: list[tuple[MessageEvent, About | None]] = []  # of this turn
        self.listeners: list[Callable[[], None]] = []  # called by any thread: more is durable
        self._name_of = name_of
        self._patterns = [pattern.casefold() for pattern in retention.bodies]
        self._waiting: list[BlockBuilder] = []  # packed, in no batch yet
        self._places: dict[int, _Place] = {}  # of queues by numbers, which never come again
        self._sources: dict[bytes, str] = {}
        self._is_due = False  # what waits is written, batch or not
        self._is_armed = self._is_hurried = False
        self._is_retiring = False
        self._is_stuck = False  # a block at the front cannot be read
        self._short_until = 0.0  # of the monotonic clock
        self._next = 0  # number that the next event gets
        self._newest = 0  # number that the newest block begins with
        self._bytes = 0  # of all blocks that were ever written
        self._front: Head | None = None  # the oldest block, when it was looked at
        self._front_from = 0  # it is not before this number
        self._load(store)

    # For the host

    def write(self, core: QueueManagerCore) -> bool:
        """At the end of a turn: what it recorded into its batch; False if nothing went in."""
        if self.pending:
            self._pack()
        if not self._waiting:
            return False
        if not (core.batch.operations or self._is_due):
            self._arm(core)
            return False
        for builder in self._waiting:
            self._put(core, builder)
        self._waiting = []
        self._is_due = False
        return True

    def stored(self, commit: Done) -> None:
        """A batch with events is done; in the thread of the committer."""
        if commit.error is None:
            for listener in self.listeners:
                listener()

    def failed(self, core: QueueManagerCore, error: BaseException | None) -> None:
        """A commit failed, or a turn was torn: what it recorded did not happen.

        What waits without a batch is of express messages, and they are still there.
        """
        self.pending.clear()
        if isinstance(error, ResourceError):
            self._short_until = core.clock.monotonic() + _SHORT_SECONDS
        self._load(core.store)

    # Packing

    def _pack(self) -> None:
        builder = self._waiting[-1] if self._waiting else self._another()
        for event, about in self.pending:
            if builder.is_full:
                builder = self._another()
            self._add(builder, event, about)
        self.pending.clear()

    def _another(self) -> BlockBuilder:
        builder = BlockBuilder()
        self._waiting.append(builder)
        return builder

    def _add(self, builder: BlockBuilder, event: MessageEvent, about: About | None) -> None:
        _, time, kind, source, message_id, queue, lookup_id, size, reason, detail = event
        at, text, facts = int(time * 1_000_000), builder.text, facts_of(about)
        flags, packet, place = facts.flags, None, None
        if queue is not None:
            place = self._places.get(queue.number) or self._place(queue)
            if place.keeps_packets and kind in _WITH_PACKETS and isinstance(about, StoredMessage):
                packet = about.data
                flags |= PACKED
        if message_id or any(source):
            flags |= NAMED
        record = RECORD.pack(
            at,
            kind,
            flags,
            reason,
            0 if place is None else text(place.name),
            text(detail),
            text(facts.destination),
            text(self._sources.get(source) or self._source(source)) if flags & NAMED else 0,
            message_id,
            facts.sent_time,
            lookup_id,
            facts.arrival_number,
            size,
            facts.sequence_id,
            facts.sequence_number,
            facts.previous_number,
            0 if packet is None else len(packet),
        )
        # A copy: what waits without a batch may outlive the turn, and its bytes may change then.
        builder.add(at, record, None if packet is None else bytes(packet))

    def _place(self, queue: Queue) -> _Place:
        if len(self._places) >= _NAMES_MAX:
            self._places.clear()
        name = self._name_of(queue)
        folded = name.casefold()
        keeps = any(fnmatchcase(folded, pattern) for pattern in self._patterns)
        place = self._places[queue.number] = _Place(name, keeps)
        return place

    def _source(self, source: bytes) -> str:
        if len(self._sources) >= _NAMES_MAX:
            self._sources.clear()
        text = self._sources[source] = f"{{{str(UUID(bytes_le=source)).upper()}}}"
        return text

    # Writing

    def _arm(self, core: QueueManagerCore) -> None:
        """See to it that what waits without a batch is written soon."""
        is_much = len(self._waiting) > 1 or len(self._waiting[0]) >= WAITING_MAX
        if self._is_hurried or (self._is_armed and not is_much):
            return
        self._is_armed, self._is_hurried = True, is_much
        wait = 0.0 if is_much else WAIT_SECONDS
        core.timers.after(core.clock.monotonic(), wait, self._become_due)

    def _become_due(self) -> None:
        """A timer: its turn ends with a `write`."""
        self._is_armed = self._is_hurried = False
        self._is_due = bool(self._waiting)

    def _put(self, core: QueueManagerCore, builder: BlockBuilder) -> None:
        number = self._next
        value = builder.encode(number, self._bytes)
        core.batch.put(TABLE, key_of(number), value)
        self._next += len(builder)
        self._bytes += len(value)
        self._newest = number
        self._retire(core, _RETIRED_AT_ONCE)

    # Retiring

    def _load(self, store: StoreReader) -> None:
        """Where the log ends, and with it what comes next."""
        self._next, self._newest, self._bytes = end_of(store)
        self._front, self._front_from = None, 0

    def _retire(self, core: QueueManagerCore, most: int) -> None:
        """Delete what is too old or too much, at most so many blocks; the rest in later turns."""
        oldest = int((core.clock.time() - self.retention.max_age_days * DAY_SECONDS) * 1_000_000)
        is_short = core.clock.monotonic() < self._short_until
        for _ in range(most):
            front = self._front or self._find_front(core.store)
            if front is None or front.first >= self._newest:  # the last one tells the numbers
                return
            is_over = self._bytes - front.bytes_before > self.retention.max_bytes
            if not is_over and front.last_at >= oldest and not is_short:
                return
            is_short = False  # one is enough
            core.batch.delete(TABLE, key_of(front.first))
            self._front, self._front_from = None, front.end
        if not self._is_retiring:
            self._is_retiring = True
            core.timers.after(core.clock.monotonic(), _RETIRING_PAUSE, lambda: self._go_on(core))

    def _go_on(self, core: QueueManagerCore) -> None:
        """A timer: there was more to retire than a turn should do beside its work."""
        self._is_retiring = False
        self._retire(core, _RETIRED_IN_A_TURN)

    def _find_front(self, store: StoreReader) -> Head | None:
        """The oldest block; None if all that is left is not durable yet."""
        found = islice(store.scan(TABLE, key_of(self._front_from)), 1)
        try:
            self._front = next((read_head(key, value) for key, value in found), None)
        except StoreError as error:  # the turn of a message must not fail for this
            if not self._is_stuck:
                _log.error("old events cannot be deleted: %s", error)
            self._is_stuck = True
        return self._front
