"""Messages as spans for OpenTelemetry, made from the event log.

    send      QUEUED or ARRIVED of a message that was sent here; the root of its trace
    transfer  DELIVERED: from the moment it was queued until the next queue manager had it
    receive   RECEIVED: from its arrival until somebody took it
    expired, purged, rejected, ...  the same with status ERROR: it left in another way

How to think about it. A packet has no room for a trace id, but every queue manager on the way knows
the message by the same identifier. So trace id and the id of the root span are hashes of that: the
spans of a message find each other in whatever collects them, with no word between the managers.

Spans are made on the event loop, some hundred events at a time, and go to the batch processor of
the SDK, which exports from a thread of its own and drops what is too much. Nothing waits for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from falconmq.manager.events import EventKind, EventLog, MessageEvent
from falconmq.service.observation.event_texts import class_text, message_id_text, queue_text
from falconmq.service.observation.following import Follower

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

REMEMBERED_MAX: Final = 100_000  # messages whose last moment is known
FLUSH_SECONDS: Final = 5.0  # that a stop gives the exporter
_PAUSE: Final = 0.05  # seconds between two pieces of events
_NANOSECONDS: Final = 1_000_000_000
_BEGIN: Final = frozenset({EventKind.QUEUED, EventKind.ARRIVED})
# What ends the stay of a message in a queue, and what the span is called.
_END: Final = {
    EventKind.DELIVERED: "transfer",
    EventKind.RECEIVED: "receive",
    EventKind.EXPIRED: "expired",
    EventKind.PURGED: "purged",
    EventKind.QUEUE_DELETED: "queue deleted",
    EventKind.REJECTED: "rejected",
}
# What happens at one moment, and is bad news.
_MOMENTS: Final = {
    EventKind.DEAD_LETTERED: "dead letter",
    EventKind.REFUSED: "refused",
}
_GOOD: Final = frozenset({EventKind.DELIVERED, EventKind.RECEIVED})
_KINDS: Final = {
    "send": SpanKind.PRODUCER,
    "transfer": SpanKind.CLIENT,
    "receive": SpanKind.CONSUMER,
}

_log = logging.getLogger("falconmq.service")


def trace_id_of(source: bytes, message_id: int) -> int:
    """The trace of a message, the same on every queue manager; never 0."""
    return int.from_bytes(_digest(source, message_id)[:16], "big") or 1


def root_id_of(source: bytes, message_id: int) -> int:
    """The span in which it was sent; never 0."""
    return int.from_bytes(_digest(source, message_id)[16:24], "big") or 1


def _digest(source: bytes, message_id: int) -> bytes:
    return hashlib.sha256(b"falconmq" + source + message_id.to_bytes(4, "little")).digest()


class _Ids(IdGenerator):
    """Random ids, but the ones that are set for the root of a trace."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self.trace_id = 0
        self.span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id or self._random.generate_trace_id()

    def generate_span_id(self) -> int:
        return self.span_id or self._random.generate_span_id()


class Spans:
    """Follows an event log and makes spans of it: `start`, then `stop`."""

    def __init__(
        self, events: EventLog, manager: str, identifier: bytes, processor: SpanProcessor
    ) -> None:
        self._identifier = identifier
        self._ids = _Ids()
        resource = Resource.create(
            {"service.name": "falconmq", "service.instance.id": manager, "host.name": manager}
        )
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("falconmq")
        self._since: OrderedDict[tuple[bytes, int], float] = OrderedDict()
        self._follower = Follower(events, self._deliver)

    def start(self) -> None:
        self._follower.start()

    async def stop(self) -> None:
        """Make spans of what was heard, and let the exporter have them."""
        self._follower.drain()
        self._follower.stop()
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.to_thread(self._provider.shutdown)
        except TimeoutError:
            _log.warning("spans were not exported in %g seconds", FLUSH_SECONDS)

    def _deliver(self, events: list[MessageEvent]) -> float:
        for event in events:
            if event.kind in _BEGIN:
                self._begin(event)
            elif event.kind in _END:
                self._end(event)
            elif event.kind in _MOMENTS:
                self._span(event, _MOMENTS[event.kind], event.time)
        return _PAUSE

    def _begin(self, event: MessageEvent) -> None:
        key = event.source, event.message_id
        is_new = key not in self._since
        self._since[key] = event.time
        if len(self._since) > REMEMBERED_MAX:
            self._since.popitem(last=False)
        if is_new and event.source == self._identifier:
            self._root(event)

    def _end(self, event: MessageEvent) -> None:
        since = self._since.pop((event.source, event.message_id), event.time)
        self._span(event, _END[event.kind], since)

    def _root(self, event: MessageEvent) -> None:
        """The first span of a message, with the ids that everybody can tell."""
        self._ids.trace_id = trace_id_of(event.source, event.message_id)
        self._ids.span_id = root_id_of(event.source, event.message_id)
        try:
            self._span(event, "send", event.time, Context())
        finally:
            self._ids.trace_id = self._ids.span_id = 0

    def _span(
        self, event: MessageEvent, name: str, since: float, context: Context | None = None
    ) -> None:
        queue = "" if event.queue is None else queue_text(event.queue)
        span = self._tracer.start_span(
            f"{name} {queue or event.detail}".rstrip(),
            context=_child_of(event) if context is None else context,
            kind=_KINDS.get(name, SpanKind.INTERNAL),
            attributes=_attributes(event, name, queue),
            start_time=int(since * _NANOSECONDS),
        )
        if name != "send" and event.kind not in _GOOD:
            reason = class_text(event.reason) if event.reason else event.kind.name
            span.set_status(Status(StatusCode.ERROR, reason))
        span.end(int(event.time * _NANOSECONDS))


def _child_of(event: MessageEvent) -> Context:
    parent = SpanContext(
        trace_id_of(event.source, event.message_id),
        root_id_of(event.source, event.message_id),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _attributes(event: MessageEvent, name: str, queue: str) -> dict[str, str | int]:
    """What OpenTelemetry's conventions for messaging ask for, as far as it is known."""
    attributes: dict[str, str | int] = {
        "messaging.system": "msmq",
        "messaging.operation.name": name,
        "messaging.destination.name": queue or event.detail,
        "messaging.message.id": message_id_text(event.source, event.message_id),
        "messaging.message.envelope.size": event.size,
    }
    if name in _KINDS:
        attributes["messaging.operation.type"] = "receive" if name == "receive" else "send"
    if event.kind is EventKind.DELIVERED and event.detail:
        attributes["server.address"] = event.detail
    if event.reason:
        attributes["falconmq.message.class"] = class_text(event.reason)
    return attributes


def otlp_processor(endpoint: str) -> BatchSpanProcessor:
    """Exports over OTLP/HTTP; without an endpoint as OpenTelemetry's own variables say."""
    exporter = OTLPSpanExporter(endpoint=endpoint) if endpoint else OTLPSpanExporter()
    return BatchSpanProcessor(exporter)
