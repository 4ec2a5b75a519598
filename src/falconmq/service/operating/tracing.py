"""The route of a message: from what was recorded here, and from the reports of others.

A message that asks to be traced makes every queue manager on its way send a report to a report
queue (`transport.reports`). If that queue is here, the reports tell of the other stops: each has
the queue manager that wrote it, the time, and, of a message that left, the address it went to.
Without reports a route has the stops of this queue manager alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import MessageEvent
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueueType
from falconmq.message import MessageId
from falconmq.service.observation.event_texts import queue_text
from falconmq.service.why.words import age, event_words
from falconmq.wire.message_class import MessageClass

REPORTS_MAX: Final = 5_000  # messages of one report queue that are looked at
_LABEL: Final = re.compile(
    r"([0-9A-F]{4}):([0-9A-F]{8}):([0-9A-F]{2}) received by ([0-9A-F-]{36}) at "
    r"(\d\d):(\d\d):(\d\d) [AP]M \w{3},(\w{3}) (\d\d) (\d\d)"
)
_TARGET: Final = re.compile(r"<TARGET QUEUE>(.*?)</TARGET QUEUE>", re.DOTALL)
_NEXT_HOP: Final = re.compile(r"<NEXT HOP>(.*?)</NEXT HOP>", re.DOTALL)
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_CENTURY: Final = 2000

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stop:
    """One thing that is known of a message on its way."""

    manager: UUID
    time: float  # seconds since 1970
    kind: str
    text: str
    queue: str = ""
    hops: int = 0  # queue managers before this one, as a report says
    is_report: bool = False


@dataclass(slots=True)
class Route:
    """Where a message was, in the order of time."""

    id: MessageId
    stops: list[Stop] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Report:
    """A report message, decoded."""

    ordinal: int
    source: UUID  # who sent the message first
    manager: UUID  # who wrote the report
    time: float
    hops: int
    target: str
    next_hop: str  # empty: the message came, and was not sent on yet


def route_of(core: QueueManagerCore, id: MessageId) -> Route:
    """All that is known here of one message; inside a turn."""
    here = core.identifier
    events = [] if core.events is None else core.events.of_message(*_identity(id))
    stops = [_from_event(event, here) for event in events]
    for queue in report_queues(core):
        for report in _reports(queue):
            if report.ordinal == id.ordinal and report.source == id.queue_manager:
                stop = _from_report(report)
                if stop.manager != here or not events:
                    stops.append(stop)
    return Route(id, _in_order(stops))


def _in_order(stops: list[Stop]) -> list[Stop]:
    """Queue managers in the order they first saw the message, and what each knows by its time.

    That a message was handed over is known here later than the next queue manager had it.
    """
    by_time = sorted(stops, key=lambda stop: (int(stop.time), stop.hops, stop.time))
    managers = list(dict.fromkeys(stop.manager for stop in by_time))
    return sorted(by_time, key=lambda stop: managers.index(stop.manager))


def newest_of(core: QueueManagerCore, queue: Queue, count: int) -> list[MessageId]:
    """The messages that something happened to in a queue lately, the newest first."""
    found: dict[MessageId, None] = {}
    for event in () if core.events is None else core.events.newest_first():
        if event.queue is queue:
            found[MessageId.of(UUID(bytes_le=event.source), event.message_id)] = None
        if len(found) == count:
            break
    return list(found)


def report_queues(core: QueueManagerCore) -> list[Queue]:
    """The queues of ours that reports may come to: public ones, and whatever is called so."""
    return [
        queue
        for queue in core.queues.values()
        if not isinstance(queue, OutgoingQueue)
        and queue.queue_type is not QueueType.SYSTEM
        and (queue.queue_type is QueueType.PUBLIC or "report" in queue.path_name.name.lower())
    ]


def _reports(queue: Queue) -> Iterator[Report]:
    for lookup_id in islice(queue.positions.available, REPORTS_MAX):
        position = queue.positions.find(lookup_id)
        report = None if position is None else read_report(position.message)
        if report is not None:
            yield report


def read_report(message: StoredMessage) -> Report | None:
    """What a report message says; None if it is none."""
    packet = message.packet
    properties = packet.properties
    if properties.message_class != MessageClass.REPORT:
        return None
    found = _LABEL.match(properties.label)
    if found is None:
        return None
    time = _time(found, message.arrival_time)
    try:
        body, source = bytes(properties.message_body).decode("utf-16-le"), UUID(found[4])
    except (UnicodeDecodeError, ValueError):
        return None
    target, hop = _TARGET.search(body), _NEXT_HOP.search(body)
    return Report(
        ordinal=int(found[2], 16),
        source=source,
        manager=UUID(bytes_le=packet.user.source_queue_manager),
        time=time,
        hops=int(found[3], 16),
        target="" if target is None else target[1],
        next_hop="" if hop is None else hop[1],
    )


def _time(label: re.Match[str], arrived: float) -> float:
    """The time that the label says; when it came, if that is none."""
    hour, minute, second, month, day, year = label.groups()[4:]
    try:
        at = datetime(
            _CENTURY + int(year),
            _MONTHS.index(month) + 1,
            int(day),
            int(hour),
            int(minute),
            int(second),
            tzinfo=UTC,
        )
    except ValueError:
        return arrived
    return at.timestamp()


def _from_event(event: MessageEvent, here: UUID) -> Stop:
    queue = "" if event.queue is None else queue_text(event.queue)
    return Stop(here, event.time, event.kind.name.lower(), event_words(event), queue)


def _from_report(report: Report) -> Stop:
    kind, text = "received-by", "came to this queue manager"
    if report.next_hop:
        kind, text = "sent-on", f"sent on to {report.next_hop}"
    return Stop(report.manager, report.time, kind, text, report.target, report.hops, True)


def _identity(id: MessageId) -> tuple[bytes, int]:
    return id.queue_manager.bytes_le, id.ordinal


# As JSON


def route_json(core: QueueManagerCore, route: Route, names: dict[UUID, str]) -> Json:
    """As `RouteOut` describes it; `names` are those of queue managers that are known."""
    known = {**names, core.identifier: core.settings.computer_name}
    stops = [
        {
            "manager": str(stop.manager),
            "name": known.get(stop.manager, ""),
            "queue": stop.queue,
            "time": datetime.fromtimestamp(stop.time, UTC).isoformat(),
            "kind": stop.kind,
            "text": stop.text,
            "source": "report" if stop.is_report else "here",
        }
        for stop in route.stops
    ]
    edges = list(_edges(route.stops))
    summary = _summary(core, route, len(edges) + 1, known)
    return {"id": str(route.id), "summary": summary, "stops": stops, "edges": edges}


def _edges(stops: list[Stop]) -> Iterator[Json]:
    """The steps from one queue manager to another; the time is between their first sights."""
    first = 0
    for end in range(1, len(stops)):
        if stops[end - 1].manager != stops[end].manager:
            seconds = max(0.0, stops[end].time - stops[first].time)
            yield {"start": end - 1, "end": end, "seconds": seconds}
            first = end


def _summary(core: QueueManagerCore, route: Route, managers: int, names: dict[UUID, str]) -> str:
    if not route.stops:
        return "Nothing is known of this message here."
    last = route.stops[-1]
    where = names.get(last.manager) or str(last.manager)
    when = age(core.clock.time() - last.time)
    seen = "1 queue manager" if managers == 1 else f"{managers} queue managers"
    return f"Seen by {seen}; {when} ago at {where}: {last.text}."
