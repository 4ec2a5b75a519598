"""What is known of a queue of ours: read here, judged in `queue_judging`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from falconmq.embedded.actions import path_of
from falconmq.manager.arrivals import count_from
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind, EventLog
from falconmq.manager.expiry import time_to_be_received_deadline
from falconmq.manager.model import UNLIMITED, OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.reading import MAY_RECEIVE
from falconmq.manager.states import PositionState, QueueType
from falconmq.service.observation.event_texts import message_id_text
from falconmq.service.requests.consumer_records import all_records
from falconmq.service.why.outgoing_facts import Answer, answers

if TYPE_CHECKING:
    from falconmq.service.why.holders import Holders

_HEAD_MAX: Final = 1_000  # messages that are looked at for those that expire soon
SOON_SECONDS: Final = 300.0
_EVENTS_MAX: Final = 50_000


@dataclass(frozen=True, slots=True)
class Holding:
    """Messages that somebody keeps to himself."""

    holder: str  # "transaction 5573...", "lease 5573...", "a reader"
    messages: int
    is_sender: bool = False  # they are being sent, and nobody can see them yet
    is_prepared: bool = False  # and an outside coordinator has to say how it ends
    since_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The transactional messages of one sender."""

    sender: str
    number: int
    reject_count: int
    seconds: float  # since the last message


@dataclass(frozen=True, slots=True)
class Consuming:
    """A consumer that reads the queue by arrival numbers."""

    name: str
    behind: int  # messages that it has not acknowledged
    seconds: float | None  # since it acknowledged; None: it never did


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue at one moment."""

    name: str
    now: float = 0.0
    is_system: bool = False  # a journal or dead-letter queue: it is not meant to be read away
    is_connector: bool = False  # for messages to foreign systems
    transactional: bool = False
    readable: int = 0
    holdings: tuple[Holding, ...] = ()
    readers_waiting: int = 0
    readers_open: int = 0  # who have it open to receive
    last_arrival_seconds: float | None = None
    last_receive_seconds: float | None = None
    log_seconds: float = 0.0  # for so long it is known what happened
    oldest_seconds: float | None = None
    size_bytes: int = 0
    quota_kilobytes: int | None = None
    is_journaling: bool = False
    journal_messages: int = 0
    journal_bytes: int = 0
    journal_quota_kilobytes: int | None = None
    manager_bytes: int = 0
    manager_quota_kilobytes: int | None = None
    is_throttled: bool = False
    head_id: str = ""
    head_aborts: int = 0
    expiring: int = 0  # of the first messages: within `SOON_SECONDS`
    expires_seconds: float | None = None  # until the first of them does
    streams: tuple[Stream, ...] = ()
    refusals: tuple[Answer, ...] = ()
    consumers: tuple[Consuming, ...] = ()

    @property
    def messages(self) -> int:
        return self.readable + sum(holding.messages for holding in self.holdings)


def queue_facts(core: QueueManagerCore, queue: Queue, holders: Holders) -> QueueFacts:
    """Read it; inside a turn."""
    now, events, properties = core.clock.time(), core.events, queue.properties
    journal = queue.journal
    head = next(_first(queue, 1), None)
    expiring = sorted(_expiries(queue, now))
    return QueueFacts(
        name=path_of(queue),
        now=now,
        is_system=queue.queue_type is QueueType.SYSTEM,
        is_connector=queue.queue_type is QueueType.CONNECTOR,
        transactional=properties.transactional,
        readable=len(queue.positions.available),
        holdings=holders.of_queue(queue, now),
        readers_waiting=len(queue.waiting),
        readers_open=sum(1 for found in queue.descriptors if found.access in MAY_RECEIVE),
        last_arrival_seconds=_last(events, queue, EventKind.ARRIVED, now),
        last_receive_seconds=_last(events, queue, EventKind.RECEIVED, now),
        log_seconds=0.0 if events is None else now - events.started,
        oldest_seconds=None if head is None else max(0.0, now - head.message.arrival_time),
        size_bytes=queue.total_bytes,
        quota_kilobytes=_limit(properties.quota_kilobytes),
        is_journaling=properties.journaling and journal is not None,
        journal_messages=0 if journal is None else len(journal.positions),
        journal_bytes=0 if journal is None else journal.total_bytes,
        journal_quota_kilobytes=_limit(properties.journal_quota_kilobytes),
        manager_bytes=core.used_bytes,
        manager_quota_kilobytes=_limit(core.settings.quota_kilobytes),
        is_throttled=core.is_throttled,
        head_id="" if head is None else message_id_text(*head.message.identity),
        head_aborts=0 if head is None else head.message.abort_count,
        expiring=len(expiring),
        expires_seconds=expiring[0] if expiring else None,
        streams=_streams(queue, now),
        refusals=() if events is None else _refusals(events, queue, now),
        consumers=tuple(_consumers(core, queue, now)),
    )


def _first(queue: Queue, count: int) -> Iterator[MessagePosition]:
    """The messages that a reader would get first."""
    for lookup_id in islice(queue.positions.available, count):
        position = queue.positions.find(lookup_id)
        if position is not None and position.state is PositionState.AVAILABLE:
            yield position


def _expiries(queue: Queue, now: float) -> Iterator[float]:
    """In how many seconds messages near the front expire, of those that do so soon."""
    if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
        return
    for position in _first(queue, _HEAD_MAX):
        deadline = time_to_be_received_deadline(queue, position.message)
        if deadline is not None and deadline - now <= SOON_SECONDS:
            yield max(0.0, deadline - now)


def _last(events: EventLog | None, queue: Queue, kind: EventKind, now: float) -> float | None:
    moment = None if events is None else events.latest.get((queue.number, kind))
    return None if moment is None else max(0.0, now - moment)


def _limit(kilobytes: int) -> int | None:
    return None if kilobytes == UNLIMITED else kilobytes


def _streams(queue: Queue, now: float) -> tuple[Stream, ...]:
    return tuple(
        Stream(
            str(info.sender),
            info.sequence_number,
            info.reject_count,
            max(0.0, now - info.last_access_time),
        )
        for info in queue.incoming_transfers
    )


def _consumers(core: QueueManagerCore, queue: Queue, now: float) -> Iterator[Consuming]:
    for name, record in all_records(core):
        place = record.places.get(queue.number)
        if place is not None:
            seconds = None if place.updated is None else max(0.0, now - place.updated)
            yield Consuming(name, count_from(queue, place.next), seconds)


def _refusals(events: EventLog, queue: Queue, now: float) -> tuple[Answer, ...]:
    """What peers sent to this queue and was not taken."""
    if not events.by_queue[queue.number, EventKind.REFUSED]:
        return ()
    return answers(
        (
            (event.reason, event.time)
            for event in islice(events.newest_first(), _EVENTS_MAX)
            if event.kind is EventKind.REFUSED and event.queue is queue
        ),
        now,
    )
