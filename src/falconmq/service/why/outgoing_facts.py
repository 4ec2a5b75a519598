"""What is known of an outgoing queue: read here, judged in `outgoing_judging`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind, EventLog
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.names import DirectFormatName
from falconmq.service.why.route_facts import RouteFacts, route_facts
from falconmq.transport.settings import PORT
from falconmq.transport.situations import Situation
from falconmq.wire.message_class import NEGATIVE

if TYPE_CHECKING:
    from falconmq.service.operating.outgoing import Outgoing

_EVENTS_MAX: Final = 50_000  # looked at for the answers of receivers


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try to connect."""

    status: ConnectionStatus
    seconds: float  # ago
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Messages that were refused, by the class that says why."""

    message_class: int
    count: int
    seconds: float  # since the last one


@dataclass(frozen=True, slots=True)
class OutgoingFacts:
    """An outgoing queue at one moment."""

    number: int
    destination: str
    now: float = 0.0  # seconds since 1970
    host: str = ""  # where it leads, as people name it
    state: OutgoingState = OutgoingState.INACTIVE
    messages: int = 0
    size_bytes: int = 0
    oldest_seconds: float | None = None
    situation: Situation = field(default_factory=Situation)
    history: tuple[Attempt, ...] = ()
    refusals: tuple[Answer, ...] = ()
    has_transport: bool = True
    is_http: bool = False
    is_multicast: bool = False
    is_transactional: bool = False
    resend_count: int = 0
    order_ack_seconds: float | None = None  # since the last OrderAck; None: there was none
    order_ack_delay: float = 10.5  # that a receiver may take for one
    port: int = PORT
    route: RouteFacts | None = None  # what the directory says; None: it has no say


def outgoing_facts(
    core: QueueManagerCore, transport: Outgoing | None, queue: OutgoingQueue, port: int = PORT
) -> OutgoingFacts:
    """Read it; inside a turn."""
    situation = Situation() if transport is None else transport.situation(queue)
    now, info = core.clock.time(), queue.transfer_info
    has_acks = situation.is_transactional and info.last_ack_count > 0
    return OutgoingFacts(
        number=queue.number,
        destination=str(queue.destination),
        now=now,
        host=situation.host_name or _host(queue) or situation.address,
        state=queue.state,
        messages=len(queue.positions),
        size_bytes=queue.total_bytes,
        oldest_seconds=_oldest(queue, now),
        situation=situation,
        history=tuple(
            Attempt(attempt.status, max(0.0, now - attempt.time), attempt.addresses)
            for attempt in queue.connection_history
        ),
        refusals=() if core.events is None else _refusals(core.events, queue, now),
        has_transport=transport is not None,
        is_http=queue.is_http,
        is_multicast=queue.is_multicast,
        is_transactional=situation.is_transactional,
        resend_count=info.resend_count,
        order_ack_seconds=max(0.0, now - info.last_ack_time) if has_acks else None,
        port=port,
        route=route_facts(core, transport, queue),
    )


def _host(queue: OutgoingQueue) -> str:
    name = queue.destination
    return name.address if isinstance(name, DirectFormatName) else ""


def _oldest(queue: OutgoingQueue, now: float) -> float | None:
    """The age of the message that is first in line."""
    first = queue.positions.available.after(-1)
    position = None if first is None else queue.positions.find(first, decode=False)
    return None if position is None else max(0.0, now - position.message.arrival_time)


def _refusals(events: EventLog, queue: OutgoingQueue, now: float) -> tuple[Answer, ...]:
    """The negative answers to messages of this queue.

    An answer in an administration queue does not say which way its message went, but its record
    does; that is older, and comes later here.
    """
    told: dict[tuple[bytes, int], tuple[int, float]] = {}
    found: list[tuple[int, float]] = []
    for event in islice(events.newest_first(), _EVENTS_MAX):
        identity = event.source, event.message_id
        if event.kind is EventKind.TOLD and event.reason & NEGATIVE:
            told.setdefault(identity, (event.reason, event.time))
        elif event.kind is EventKind.QUEUED and event.queue is queue and identity in told:
            found.append(told.pop(identity))
    return answers(found, now)


def answers(found: Iterable[tuple[int, float]], now: float) -> tuple[Answer, ...]:
    """Classes and times, summed up; the most frequent first."""
    counts: Counter[int] = Counter()
    latest: dict[int, float] = {}
    for message_class, time in found:
        counts[message_class] += 1
        latest[message_class] = max(time, latest.get(message_class, 0.0))
    return tuple(
        Answer(message_class, count, max(0.0, now - latest[message_class]))
        for message_class, count in counts.most_common()
    )
