"""The bulk door: queues as Arrow streams, in and out."""

from __future__ import annotations

import asyncio
import io
import time
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from falconmq import Message, aio
from falconmq.client.arrow import MEDIA_TYPE, schema
from falconmq.service.configuration import HttpSection
from falconmq.service.requests import arrow
from tests.service.observed import at, observed
from tests.service.services import ORDERS, run

ACCEPT = {"Accept": MEDIA_TYPE}
SEND = {"Content-Type": MEDIA_TYPE}


def stream(*tables: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, tables[0].schema, options=options) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


async def read(http: httpx.AsyncClient, queue: str = ORDERS, **wanted: Any) -> pa.Table:
    answer = await http.get(at(queue, "messages"), params=wanted, headers=ACCEPT)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    with pa.ipc.open_stream(answer.content) as reader:
        return reader.read_all()


async def send(
    http: httpx.AsyncClient, content: bytes, queue: str = ORDERS, **wanted: Any
) -> httpx.Response:
    return await http.post(at(queue, "messages"), content=content, params=wanted, headers=SEND)


def test_a_queue_is_read_as_a_table(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            await orders.send(Message("low", priority=1))
            await orders.send(urgent := Message("high", priority=7, label="first"))
            table = await read(http)
            assert table.schema.equals(schema())
            first, second = table.to_pylist()
            assert (first["label"], first["message_id"]) == ("first", str(urgent.id))
            assert first["queue"] == ORDERS
            assert (first["arrival_number"], second["arrival_number"]) == (2, 1)
            assert first["size"] > len(first["body"]) > 0
            assert first["arrived_at"].microsecond  # not only seconds
            assert orders.count == 2

    run(main())


def test_an_empty_queue_has_a_schema(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            table = await read(http)
            assert (table.num_rows, table.schema.names) == (0, schema().names)

    run(main())


def test_pages_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "PAGE_MESSAGES", 3)

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            for number in range(10):
                await orders.send(Message(str(number).encode(), recoverable=number % 2 == 0))
            whole = await read(http)
            assert whole.column("body").to_pylist() == [str(n).encode() for n in range(10)]
            assert [len(chunk) for chunk in whole.column("body").chunks] == [3, 3, 3, 1]
            some = await read(http, count=4)
            assert some.num_rows == 4
            rest = await read(http, after=some.column("lookup_id").to_pylist()[-1])
            assert rest.num_rows == 6
            assert (await read(http, count=0)).num_rows == 0

    run(main())


def test_a_page_has_a_limit_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "PAGE_BYTES", 1000)

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            for _ in range(6):
                await orders.send(Message(bytes(400)))
            assert [len(chunk) for chunk in (await read(http)).column("body").chunks] == [2, 2, 2]

    run(main())


def test_system_queues_and_journals_are_read_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS, journaling=True)
            await orders.send(Message("x"))
            await orders.receive(timeout=0)
            assert (await read(http, str(orders.journal.format_name))).num_rows == 1
            assert (await read(http, str(service.manager.dead_letter.format_name))).num_rows == 0

    run(main())


def test_what_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            missing = await http.get(at(ORDERS, "messages"), headers=ACCEPT)
            assert missing.status_code == 404
            assert missing.headers["content-type"] == "application/problem+json"
            elsewhere = r"DIRECT=OS:other\private$\orders"
            assert (await http.get(at(elsewhere, "messages"), headers=ACCEPT)).status_code >= 400
            await service.manager.create_queue(ORDERS)
            bad = await http.get(at(ORDERS, "messages"), headers=ACCEPT, params={"count": -1})
            assert bad.status_code == 422

    run(main())


def test_whoever_does_not_ask_for_arrow_gets_json(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            sent = await http.post(at(ORDERS, "messages"), json={"messages": [{"text": "x"}]})
            assert sent.status_code == 201
            seen = await http.get(at(ORDERS, "messages"))
            assert seen.headers["content-type"] == "application/json"

    run(main())


def test_a_table_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            first = pa.table({"body": [b"1", b"2"], "label": ["a", "b"]})
            second = pa.table({"body": [b"3"], "label": pa.array([None], pa.string())})
            answer = await send(http, stream(first, second))
            assert answer.status_code == 201
            got = [await orders.receive(timeout=0) for _ in range(3)]
            assert [(m.body, m.label) for m in got] == [(b"1", "a"), (b"2", "b"), (b"3", "")]
            assert answer.json() == {
                "count": 3,
                "first_id": str(got[0].id),
                "last_id": str(got[2].id),
            }

    run(main())


def test_what_was_read_can_be_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            copies = await service.manager.create_queue(r".\private$\copies")
            response = r"DIRECT=OS:web\private$\replies"
            await orders.send(Message("x", label="l", priority=6, response_queue=response))
            read_ = await read(http)
            assert (await send(http, stream(read_), r".\private$\copies")).status_code == 201
            copy, original = await copies.receive(timeout=0), await orders.receive(timeout=0)
            assert (copy.body, copy.label, copy.priority) == (original.body, "l", 6)
            assert str(copy.response_queue) == response
            assert copy.id != original.id

    run(main())


def test_nothing_is_an_answer_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            empty = pa.table({"body": pa.array([], pa.binary())})
            answer = await send(http, stream(empty))
            assert answer.json() == {"count": 0, "first_id": None, "last_id": None}

    run(main())


def test_a_transactional_queue_takes_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "TURN_MESSAGES", 2)

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(
                ORDERS, transactional=True, quota_kilobytes=2
            )
            good = pa.table({"body": [b"x"] * 5})
            assert (await send(http, stream(good))).status_code == 201
            got = [await orders.receive(timeout=0) for _ in range(5)]
            assert len({m.transaction.id for m in got if m.transaction is not None}) == 1
            # the last one finds no room: the others go with it
            big = pa.table({"body": [b"x", b"y", b"z", bytes(3000)]})
            answer = await send(http, stream(big))
            assert answer.status_code >= 400
            assert "QUOTA" in answer.json()["error"] or "RESOURCES" in answer.json()["error"]
            assert orders.count == 0
            plain = await send(http, stream(good), transaction=False)
            assert plain.status_code >= 400
            assert orders.count == 0

    run(main())


def test_a_transaction_may_be_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            answer = await send(http, stream(pa.table({"body": [b"x"]})), transaction=True)
            assert answer.json()["error"] == "MQ_ERROR_TRANSACTION_USAGE"

    run(main())


def test_a_table_is_sent_in_an_open_transaction(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS, transactional=True)
            began = (await http.post("/transactions", json={})).json()["id"]
            for _ in range(2):
                content = stream(pa.table({"body": [b"x"] * 3}))
                assert (await send(http, content, transaction=began)).status_code == 201
            assert (await read(http)).num_rows == 0
            await http.post(f"/transactions/{began}/commit")
            assert (await read(http)).num_rows == orders.count == 6

    run(main())


def test_a_request_that_comes_twice_is_done_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            content = stream(pa.table({"body": [b"x"] * 3}))
            headers = {**SEND, "Idempotency-Key": "batch 7"}
            path = at(ORDERS, "messages")
            answers = [await http.post(path, content=content, headers=headers) for _ in range(2)]
            assert answers[0].json() == answers[1].json()
            assert orders.count == 3
            other = stream(pa.table({"body": [b"y"]}))
            assert (await http.post(path, content=other, headers=headers)).status_code == 422

    run(main())


def test_outside_a_transaction_a_refusal_says_what_was_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS, quota_kilobytes=2)
            answer = await send(http, stream(pa.table({"body": [b"x", b"y", bytes(3000)]})))
            assert answer.status_code >= 400
            assert answer.json()["sent"] == orders.count == 2

    run(main())


def test_a_wrong_row_sends_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            good = pa.table({"body": [b"x"] * 3, "priority": [1, 2, 3]})
            bad = pa.table({"body": [b"x", b"y"], "priority": [1, 99]})
            answer = await send(http, stream(good, bad))
            assert answer.status_code == 400
            assert answer.json()["detail"].startswith("row 4: priority")
            assert orders.count == 0

    run(main())


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xff\xff\xff\x10\0\0\0" + bytes(16)])
def test_what_is_no_stream_is_refused(tmp_path: Path, content: bytes) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            answer = await send(http, content)
            assert answer.status_code == 400
            assert "no Arrow stream" in answer.json()["detail"]

    run(main())


def test_a_cut_stream_sends_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            whole = stream(pa.table({"body": [b"x" * 100] * 10}))
            for length in range(8, len(whole) - 8, 97):
                answer = await send(http, whole[:length])
                assert answer.status_code in (201, 400)
                if answer.status_code == 201:  # cut behind the schema: it holds no row
                    assert answer.json()["count"] == 0
            assert orders.count == 0

    run(main())


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_stream_is_refused(tmp_path: Path, compression: str) -> None:
    """Some kilobytes of it could become gigabytes."""

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            bomb = pa.table({"body": [bytes(1 << 20)] * 8})
            content = stream(bomb, compression=compression)
            assert len(content) < 100_000
            answer = await send(http, content)
            assert answer.status_code == 400
            assert "compressed" in answer.json()["detail"]

    run(main())


def test_offsets_that_lie_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await service.manager.create_queue(ORDERS)
            content = bytearray(stream(pa.table({"body": [b"abc", b"defg"]})))
            offsets = (0).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"\x07\0\0\0"
            place = content.index(offsets)
            content[place + 8 : place + 12] = (1 << 30).to_bytes(4, "little")
            answer = await send(http, bytes(content))
            assert answer.status_code == 400

    run(main())


def test_a_stream_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        limited = HttpSection(request_bytes=1 << 16)
        async with observed(tmp_path, http=limited) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            answer = await send(http, stream(pa.table({"body": [bytes(1 << 16)]})))
            assert answer.status_code == 413
            assert orders.count == 0

    run(main())


@pytest.mark.slow
def test_a_long_queue_is_read_while_messages_come_and_go(tmp_path: Path) -> None:
    count = 20_000

    async def fill(queue: aio.Queue) -> None:
        for _ in range(count // 500):
            await queue.send_many([Message(bytes(200), recoverable=False) for _ in range(500)])

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            await fill(orders)
            longest, stop = 0.0, asyncio.Event()

            async def work() -> None:
                nonlocal longest
                while not stop.is_set():
                    started = time.perf_counter()
                    await orders.send(Message("more"))
                    longest = max(longest, time.perf_counter() - started)

            worker = asyncio.create_task(work())
            started = time.perf_counter()
            table = await read(http, count=count)
            seconds = time.perf_counter() - started
            stop.set()
            await worker
            print(f"{table.num_rows / seconds:.0f} rows/s, longest send {longest * 1000:.0f} ms")
            assert table.num_rows == count

    asyncio.run(asyncio.wait_for(main(), 120))
