"""What happened to messages, lately: the memory behind `why`, live views, metrics and spans.

How to think about it. Each time something happens to a message that an operator may ask about, one
short record goes to the end of a ring; the oldest falls out at the other end. Records are numbered
without gaps, so that somebody who follows them knows what he missed. The ring lives in memory: it
says what was done since the start, and is no proof of it. If a write of the store fails, what was
recorded for it did not happen; `RESTORED` marks the place. If there is a `keeper`, the store has
the same events as a log of its own, with numbers of its own (`event_keeping`).

A record costs about a microsecond. Nothing is resolved or formatted until somebody looks: the queue
is the object, the identifier the bytes of the packet.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from falconmq.wire.message_class import MessageClass

if TYPE_CHECKING:
    from falconmq.manager.core import QueueManagerCore
    from falconmq.manager.event_facts import About
    from falconmq.manager.event_keeping import EventKeeper
    from falconmq.manager.model import Queue
    from falconmq.manager.positions import MessagePosition

DEFAULT_SIZE: Final = 100_000
NO_SOURCE: Final = bytes(16)


class EventKind(IntEnum):
    """What can happen to a message."""

    QUEUED = 1  # put into an outgoing queue: sent here, or passed on
    ARRIVED = 2  # readable in a queue of ours
    DELIVERED = 3  # the next queue manager has it; detail: its address
    RECEIVED = 4  # somebody took it
    EXPIRED = 5  # nobody took it in time, or it was too long on its way
    PURGED = 6
    QUEUE_DELETED = 7
    REJECTED = 8  # its reader refused it
    MOVED = 9  # detail: the queue it went to
    JOURNALED = 10  # a copy was kept
    DEAD_LETTERED = 11  # a copy was kept, because of `reason`
    REFUSED = 12  # a peer sent it and we did not take it, because of `reason`
    DUPLICATE = 13  # a peer sent it again; the first one counts
    RETURNED = 14  # a transaction that had received it was aborted
    TOLD = 15  # an acknowledgement of class `reason` came back for it, or its FinalAck
    RESTORED = 16  # a write failed: what was recorded shortly before did not happen


# How a message leaves a queue of ours, by the reason that its deletion gives.
_LEFT: Final[dict[int, EventKind]] = {
    MessageClass.ACK_RECEIVE: EventKind.RECEIVED,
    MessageClass.NACK_Q_PURGED: EventKind.PURGED,
    MessageClass.NACK_Q_DELETED: EventKind.QUEUE_DELETED,
    MessageClass.NACK_RECEIVE_TIMEOUT: EventKind.EXPIRED,
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: EventKind.EXPIRED,
    MessageClass.NACK_RECEIVE_REJECTED: EventKind.REJECTED,
}


class MessageEvent(NamedTuple):
    """One thing that happened to one message."""

    number: int
    time: float  # seconds of the calendar
    kind: EventKind
    source: bytes  # SourceQueueManager; with `message_id` the identifier of the message
    message_id: int
    queue: Queue | None  # where; None if it is none of ours: `detail` names it
    lookup_id: int  # its place there; 0 if it has none
    size: int  # bytes
    reason: int  # a message class; 0 if there is none
    detail: str


Listener = Callable[[MessageEvent], None]


class EventLog:
    """The last events, and how many there were of each kind."""

    def __init__(self, clock: Callable[[], float], size: int = DEFAULT_SIZE) -> None:
        self._clock = clock
        self.started = clock()  # nothing that happened before is known here
        self._events: deque[MessageEvent] = deque(maxlen=size)
        self.number = 0  # of the newest
        self.counts: Counter[EventKind] = Counter()
        self.sizes: Counter[EventKind] = Counter()  # bytes
        self.by_queue: Counter[tuple[int, EventKind]] = Counter()  # by its number
        self.latest: dict[tuple[int, EventKind], float] = {}  # when it happened there last
        self.by_reason: Counter[tuple[EventKind, int]] = Counter()
        self.listeners: list[Listener] = []  # called inside the turn: be short, and do not raise
        self.keeper: EventKeeper | None = None  # writes them down, if somebody wants that

    def record(
        self,
        kind: EventKind,
        source: bytes,
        message_id: int,
        queue: Queue | None,
        lookup_id: int = 0,
        size: int = 0,
        reason: int = 0,
        detail: str = "",
        about: About | None = None,
    ) -> None:
        """Something happened; `about` is what tells more of the message, if it is at hand."""
        self.number += 1
        now = self._clock()
        event = MessageEvent(
            self.number,
            now,
            kind,
            source,
            message_id,
            queue,
            lookup_id,
            size,
            reason,
            detail,
        )
        self._events.append(event)
        self.counts[kind] += 1
        self.sizes[kind] += size
        if queue is not None:
            self.by_queue[queue.number, kind] += 1
            self.latest[queue.number, kind] = now
        if reason:
            self.by_reason[kind, reason] += 1
        if self.keeper is not None:
            self.keeper.pending.append((event, about))
        for listener in self.listeners:
            listener(event)

    def record_position(
        self, kind: EventKind, position: MessagePosition, detail: str = "", *, reason: int = 0
    ) -> None:
        """Something happened to a message at its place in a queue."""
        message = position.message
        source, message_id = message.identity
        queue, size = position.queue, message.size
        self.record(
            kind, source, message_id, queue, position.lookup_id, size, reason, detail, message
        )

    def left(
        self,
        source: bytes,
        message_id: int,
        queue: Queue,
        lookup_id: int,
        size: int,
        reason: int,
        about: About | None = None,
    ) -> None:
        """A message left a queue, for a reason; one without a name leaves no trace."""
        kind = _LEFT.get(reason)
        if kind is not None:
            self.record(kind, source, message_id, queue, lookup_id, size, reason, "", about)

    def forget_queue(self, number: int) -> None:
        """A queue is gone: no totals are kept for it, for its number is never given again."""
        for kind in EventKind:
            self.by_queue.pop((number, kind), None)
            self.latest.pop((number, kind), None)

    def failed(self, core: QueueManagerCore, error: BaseException | None) -> None:
        """A write failed, or a turn was torn; `restored` when memory is right again."""
        if self.keeper is not None:
            self.keeper.failed(core, error)

    def restored(self) -> None:
        self.record(EventKind.RESTORED, NO_SOURCE, 0, None)

    @property
    def first_number(self) -> int:
        """Of the oldest that is still known; one more than the newest if none is."""
        return self._events[0].number if self._events else self.number + 1

    def after(self, number: int, count: int | None = None) -> list[MessageEvent]:
        """The events behind a number, the oldest first, at most `count`."""
        skip = max(0, number - self.first_number + 1)
        stop = None if count is None else skip + count
        return list(islice(self._events, skip, stop))

    def of_message(self, source: bytes, message_id: int) -> list[MessageEvent]:
        """What is known of one message, the oldest first."""
        return [
            event
            for event in self._events
            if event.message_id == message_id and event.source == source
        ]

    def newest_first(self) -> Iterator[MessageEvent]:
        return reversed(self._events)
