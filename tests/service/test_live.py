"""Many readers, slow readers: nobody waits for them, and they know what they missed."""

from __future__ import annotations

import asyncio
import json
import time
from asyncio import StreamReader, StreamWriter
from pathlib import Path
from typing import Any, Self

import pytest

from falconmq import Message, aio
from falconmq.manager.events import EventKind, EventLog, MessageEvent
from falconmq.service.observation import following, live
from falconmq.service.observation.event_texts import encode_event
from falconmq.service.observation.following import Follower
from falconmq.service.observation.live import LINE_BYTES, LiveEvents, Reader, Wanted
from falconmq.service.process import allow_many_files
from tests.embedded.helpers import Background, threaded_engine
from tests.service.observed import observed
from tests.service.services import ORDERS, run, until


def log_of(count: int = 0) -> EventLog:
    log = EventLog(lambda: 1_767_225_600.0)
    record(log, count)
    return log


def record(log: EventLog, count: int) -> None:
    for _ in range(count):
        log.record(EventKind.ARRIVED, bytes(15) + b"\1", log.number + 1, None, 1, 100)


class Scene:
    """Live events over a queue manager in memory."""

    def __init__(self, log: EventLog | None = None) -> None:
        self.engine = threaded_engine()
        self.log = self.engine.core.events = log or log_of()
        self.stopping = asyncio.Event()
        self.live = LiveEvents(self.engine, lambda: self.log, dict, self.stopping)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.live.close_all()
        await asyncio.to_thread(self.engine.close)


def decode(chunk: bytes) -> list[tuple[str, dict[str, Any]]]:
    events = []
    for text in chunk.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in text.split("\n"))
        events.append((fields["event"], json.loads(fields["data"])))
    return events


async def read(reader: Reader, count: int) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    async for chunk in reader.chunks():
        found += decode(chunk)
        if len(found) >= count:
            return found
    return found


def test_readers_who_want_the_same_share_one_piece() -> None:
    async def main() -> None:
        async with Scene() as scene:
            first, second = scene.live.open(Wanted()), scene.live.open(Wanted())
            record(scene.log, 3)
            await until(lambda: len(first._line) == 1)
            assert first._line[0] is second._line[0]

    run(main())


def test_an_event_is_written_down_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def encode(event: MessageEvent) -> bytes:
        written.append(event.number)
        return encode_event(event)

    monkeypatch.setattr(live, "encode_event", encode)

    async def main() -> None:
        async with Scene() as scene:
            kinds = frozenset({EventKind.ARRIVED})
            readers = [scene.live.open(Wanted()), scene.live.open(Wanted(kinds))]
            record(scene.log, 2)
            await until(lambda: all(reader._line for reader in readers))
            assert written == [1, 2]

    run(main())


def test_a_slow_reader_gets_a_gap_and_goes_on() -> None:
    async def main() -> None:
        async with Scene() as scene:
            slow = scene.live.open(Wanted())
            # given a reader whose line is full
            while not isinstance(slow._line[-1] if slow._line else None, live._Gap):
                record(scene.log, 400)
                number = scene.log.number
                await until(lambda number=number: slow.seen == number)  # type: ignore[misc]
            assert slow._bytes <= LINE_BYTES
            lost = slow._line[-1]
            assert isinstance(lost, live._Gap)
            # when more comes, the gap grows
            record(scene.log, 400)
            await until(lambda: slow.seen == scene.log.number)
            assert lost.last == scene.log.number
            # then it reads what it had, is told what is missing, and hears what comes next
            last = scene.log.number
            heard = await read(slow, lost.first)
            assert [data["number"] for kind, data in heard if kind == "ARRIVED"] == list(
                range(1, lost.first)
            )
            assert heard[-1] == ("gap", {"from": lost.first, "to": last})
            record(scene.log, 1)
            assert (await read(slow, 1))[0][1]["number"] == last + 1

    run(main())


def test_the_memory_of_a_slow_reader_is_bounded() -> None:
    async def main() -> None:
        async with Scene() as scene:
            slow = scene.live.open(Wanted())
            for _ in range(20):
                record(scene.log, 500)
                scene.live._deliver(scene.log.after(slow.seen))
            assert slow._bytes <= LINE_BYTES
            assert len(slow._line) < 20

    run(main())


def test_more_than_the_loop_can_take_is_a_gap_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LINE_MAX", 10)

    async def main() -> None:
        async with Scene() as scene:
            reader = scene.live.open(Wanted())
            record(scene.log, 25)
            heard = await read(reader, 11)
            assert heard[0] == ("gap", {"from": 1, "to": 15})
            assert [data["number"] for _, data in heard[1:]] == list(range(16, 26))

    run(main())


def test_a_reader_who_comes_in_the_middle_gets_the_rest() -> None:
    async def main() -> None:
        async with Scene() as scene:
            early = scene.live.open(Wanted())
            record(scene.log, 3)
            late = scene.live.open(Wanted())  # before the first three were handed out
            record(scene.log, 2)
            assert [data["number"] for _, data in await read(early, 5)] == [1, 2, 3, 4, 5]
            assert [data["number"] for _, data in await read(late, 2)] == [4, 5]

    run(main())


def test_events_of_other_threads_arrive() -> None:
    async def main() -> None:
        async with Scene() as scene:
            queue = await aio.QueueManager(scene.engine).create_queue(ORDERS)
            reader = scene.live.open(Wanted())
            blocking = aio.QueueManager(scene.engine).blocking
            send = Background(lambda: blocking.queue(ORDERS).send(Message("hello")))
            heard = await read(reader, 1)
            assert heard[0][1]["queue"] == ORDERS
            await until(lambda: send.is_done)
            await queue.close()

    run(main())


def test_the_past_is_read_in_pages_and_ends_where_the_reader_began() -> None:
    async def main() -> None:
        async with Scene(log_of(1234)) as scene:
            reader = scene.live.open(Wanted())
            record(scene.log, 5)
            past = [event async for chunk in scene.live.past(reader, 0) for event in decode(chunk)]
            assert [data["number"] for _, data in past] == list(range(1, 1235))
            assert (await read(reader, 5))[0][1]["number"] == 1235

    run(main())


def test_nobody_listens_when_nobody_reads() -> None:
    async def main() -> None:
        async with Scene() as scene:
            assert not scene.log.listeners
            reader = scene.live.open(Wanted())
            assert len(scene.log.listeners) == 1
            scene.live.close(reader)
            assert not scene.log.listeners
            record(scene.log, 1)
            again = scene.live.open(Wanted())
            record(scene.log, 1)
            assert [data["number"] for _, data in await read(again, 1)] == [2]

    run(main())


def test_a_service_that_stops_ends_all_readers() -> None:
    async def main() -> None:
        async with Scene() as scene:
            reader = scene.live.open(Wanted())
            scene.stopping.set()
            assert [chunk async for chunk in reader.chunks()] == []
            assert scene.live.readers == 0

    run(main())


def test_a_follower_lets_the_loop_work_between_two_pieces() -> None:
    async def main() -> None:
        log, pieces = log_of(), list[int]()

        def deliver(events: list[Any]) -> float:
            pieces.append(len(events))
            return 0.05

        follower = Follower(log, deliver)
        follower.start()
        record(log, 1200)
        started = time.perf_counter()
        await until(lambda: sum(pieces) == 1200)
        assert pieces == [500, 500, 200]
        assert time.perf_counter() - started >= 0.1
        follower.stop()
        record(log, 1)
        await asyncio.sleep(0.06)
        assert sum(pieces) == 1200

    run(main())


async def follow(path: Path, count: int) -> list[tuple[StreamReader, StreamWriter]]:
    """Readers of the live events, each on a socket of its own; `start` has been read."""
    found = []
    for _ in range(count):
        stream, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: service\r\n\r\n")
        await stream.readuntil(b"event: start")
        await stream.readuntil(b"\n\n")
        found.append((stream, writer))
    return found


async def hear(stream: StreamReader, number: int) -> bool:
    """Read until an event comes; whether a gap was told of before it."""
    has_gap = False
    while True:
        line = await stream.readline()
        has_gap = has_gap or line.startswith(b"event: gap")
        if line.startswith(f"id: {number}\n".encode()):
            return has_gap


@pytest.mark.slow
def test_a_caller_who_does_not_read_slows_nobody_and_is_told_of_the_gap(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, _):
            log = service.engine.core.events
            assert log is not None
            assert service._control is not None
            path = service.configuration.control_socket
            [(slow, slow_writer), (quick, quick_writer)] = await follow(path, 2)
            slow._transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(20):
                record(log, 400)
                assert not await hear(quick, log.number)
            readers = service._control.watch.live._readers
            assert all(reader._bytes <= LINE_BYTES for reader in readers)
            slow._transport.resume_reading()  # type: ignore[attr-defined]
            record(log, 1)
            assert await hear(slow, log.number)
            for writer in (slow_writer, quick_writer):
                writer.close()

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.slow
def test_a_thousand_callers_hear_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        allow_many_files()
        async with observed(tmp_path) as (service, _):
            orders = await service.manager.create_queue(ORDERS)
            assert service._control is not None
            callers = await follow(service.configuration.control_socket, 1000)
            assert service._control.watch.live.readers == 1000
            for _ in range(3):
                await orders.send(Message("x"))
            log = service.engine.core.events
            assert log is not None
            number = log.number
            gaps = await asyncio.gather(*(hear(stream, number) for stream, _ in callers))
            assert not any(gaps)
            for _, writer in callers:
                writer.close()
            await until(lambda: service._control.watch.live.readers == 0)  # type: ignore[union-attr]

    asyncio.run(asyncio.wait_for(main(), 120))
