"""Spans of messages: the same trace on every queue manager, and how long a message stayed where."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from falconmq import Message
from falconmq.manager.events import EventKind
from falconmq.message import Journal
from falconmq.service.configuration import TelemetrySection
from falconmq.service.daemon import Service
from falconmq.service.observation import spans as module
from falconmq.service.observation.spans import Spans, root_id_of, trace_id_of
from tests.service.observed import observed
from tests.service.services import ORDERS, direct, run, serving, until


class Watched:
    """A service whose spans stay in memory."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._exporter = InMemorySpanExporter()
        core = service.engine.core
        assert core.events is not None
        self.spans = Spans(
            core.events, "SALES", core.identifier.bytes_le, SimpleSpanProcessor(self._exporter)
        )
        self.spans.start()

    @property
    def finished(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    async def span(self, name: str) -> ReadableSpan:
        """The one span whose name begins so; waits for it."""
        await until(lambda: any(span.name.startswith(name) for span in self.finished))
        [found] = [span for span in self.finished if span.name.startswith(name)]
        return found


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    async with serving() as service:
        both = Watched(service)
        yield both
        await both.spans.stop()


def ids(span: ReadableSpan) -> tuple[int, int, int | None]:
    assert span.context is not None
    parent = None if span.parent is None else span.parent.span_id
    return span.context.trace_id, span.context.span_id, parent


def seconds(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


def test_a_message_is_one_trace_on_two_queue_managers() -> None:
    async def main() -> None:
        async with watched() as here, watched() as there:
            orders = await there.service.manager.create_queue(ORDERS)
            away = await here.service.manager.queue(direct(there.service))
            await away.send(message := Message("hello"))
            sent, transfer = await here.span("send"), await here.span("transfer")
            await orders.receive(timeout=30)
            received = await there.span("receive")
            assert message.id is not None
            source, number = bytes(message.id[:16]), message.id.ordinal
            trace, root = trace_id_of(source, number), root_id_of(source, number)
            assert ids(sent) == (trace, root, None)
            assert [ids(span)[0] for span in (transfer, received)] == [trace, trace]
            assert [ids(span)[2] for span in (transfer, received)] == [root, root]
            assert len({ids(span)[1] for span in (sent, transfer, received)}) == 3
            assert len(there.finished) == 1  # it was not sent there

    run(main())


def test_spans_say_what_the_conventions_ask_for() -> None:
    async def main() -> None:
        async with watched() as here, watched() as there:
            await there.service.manager.create_queue(ORDERS)
            name = direct(there.service)
            await (await here.service.manager.queue(name)).send(message := Message("hello"))
            sent, transfer = await here.span("send"), await here.span("transfer")
            assert sent.name == f"send {name}"
            assert (sent.kind, transfer.kind) == (SpanKind.PRODUCER, SpanKind.CLIENT)
            assert sent.attributes is not None
            assert sent.attributes["messaging.system"] == "msmq"
            assert sent.attributes["messaging.destination.name"] == name
            assert sent.attributes["messaging.message.id"] == str(message.id)
            assert sent.attributes["messaging.operation.type"] == "send"
            assert transfer.attributes is not None
            address = there.service.configuration.manager.bind
            assert transfer.attributes["server.address"] == address
            assert sent.resource.attributes["service.name"] == "falconmq"

    run(main())


def test_a_span_lasts_as_long_as_the_message_stayed() -> None:
    async def main() -> None:
        async with watched() as here:
            orders = await here.service.manager.create_queue(ORDERS)
            clock = here.service.engine.core.clock
            now = clock.time
            core_events = here.service.engine.core.events
            assert core_events is not None
            await orders.send(Message("hello"))
            core_events._clock = lambda: now() + 90
            await orders.receive(timeout=0)
            received = await here.span("receive")
            assert 90 <= seconds(received) < 120
            assert seconds(await here.span("send")) == 0
            assert received.kind is SpanKind.CONSUMER
            assert received.status.status_code is StatusCode.UNSET

    run(main())


def test_bad_ends_are_errors() -> None:
    async def main() -> None:
        async with watched() as here:
            orders = await here.service.manager.create_queue(ORDERS)
            await orders.send(Message("late", time_to_be_received=1, journal=Journal.DEAD_LETTER))
            await orders.send(Message("purged"))
            expired, dead = await here.span("expired"), await here.span("dead letter")
            for span in (expired, dead):
                assert span.status.status_code is StatusCode.ERROR
                assert span.status.description == "NACK_RECEIVE_TIMEOUT"
                assert ids(span)[2] is not None
            await orders.purge()
            assert (await here.span("purged")).status.description == "NACK_Q_PURGED"

    run(main())


def test_only_so_many_messages_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 3)

    async def main() -> None:
        async with watched() as here:
            orders = await here.service.manager.create_queue(ORDERS)
            for _ in range(10):
                await orders.send(Message("x"))
            await until(lambda: len(here.finished) == 10)
            assert len(here.spans._since) == 3
            await orders.receive(timeout=0)
            assert seconds(await here.span("receive")) == 0  # its arrival was forgotten

    run(main())


def test_making_spans_holds_up_nobody() -> None:
    """A turn only puts the event into a line: no span is made before the loop comes round."""

    async def main() -> None:
        async with watched() as here:
            log = here.service.engine.core.events
            assert log is not None
            orders = await here.service.manager.create_queue(ORDERS)
            await orders.send(Message("first"))
            await here.span("send")
            assert orders.opened.queue is not None
            log.record(EventKind.PURGED, bytes(16), 7, orders.opened.queue)
            assert len(here.finished) == 1
            await here.span("purged")

    run(main())


def test_what_was_heard_before_the_stop_becomes_a_span() -> None:
    async def main() -> None:
        async with serving() as service:
            here = Watched(service)
            log, orders = service.engine.core.events, await service.manager.create_queue(ORDERS)
            assert log is not None
            log.record(EventKind.PURGED, bytes(16), 7, orders.opened.queue)
            await here.spans.stop()
            assert len(here.finished) == 1

    run(main())


class _Collector(BaseHTTPRequestHandler):
    received: list[ExportTraceServiceRequest]

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.received.append(ExportTraceServiceRequest.FromString(self.rfile.read(length)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


def test_a_configured_service_exports_its_spans(tmp_path: Path) -> None:
    received: list[ExportTraceServiceRequest] = []
    collector = HTTPServer(("127.0.0.1", 0), type("C", (_Collector,), {"received": received}))
    thread = Thread(target=collector.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"

    async def main() -> None:
        telemetry = TelemetrySection(enabled=True, endpoint=endpoint)
        async with observed(tmp_path, telemetry=telemetry) as (service, _):
            orders = await service.manager.create_queue(ORDERS)
            await orders.send(Message("hello"))
            await asyncio.sleep(0)
        # the stop of the service has let the exporter have what it made

    try:
        run(main())
    finally:
        collector.shutdown()
        collector.server_close()
        thread.join()
    [span] = received[0].resource_spans[0].scope_spans[0].spans
    assert span.name == f"send {ORDERS}"


def test_without_the_packages_the_service_says_what_to_install(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
sys.modules["opentelemetry.sdk"] = None
from dataclasses import replace
from pathlib import Path
from falconmq.errors import FalconMQError
from falconmq.service.configuration import TelemetrySection
from falconmq.service.daemon import Service
from tests.service.services import configured, loopback
chosen = configured(loopback(), Path({str(tmp_path)!r}))
try:
    asyncio.run(Service.start(replace(chosen, telemetry=TelemetrySection(enabled=True))))
except FalconMQError as error:
    print(error, "|", error.hint)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "opentelemetry.sdk.trace is not installed" in done.stdout, done.stderr
    assert "falconmq[telemetry]" in done.stdout
