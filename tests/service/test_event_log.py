"""The stored event log over HTTP: reading it, waiting for it, and what a kill leaves of it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from base64 import b64decode
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from falconmq import Message, aio
from falconmq.client import CONTROL_SOCKET, ControlClient, UnreachableError
from falconmq.client.event_columns import EVENT_COLUMNS, event_schema
from falconmq.errors import FalconMQError
from falconmq.manager import event_store
from falconmq.manager.events import EventKind
from falconmq.message import Acknowledge, Journal
from falconmq.service.configuration import EventsSection, HistorySection
from falconmq.service.daemon import Service
from falconmq.service.requests import event_log
from falconmq.store import MemoryStore
from falconmq.wire.packet import decode_packet
from falconmq.wire.user_message import UserMessage
from tests.cli.commands import start
from tests.service.observed import observed
from tests.service.services import ORDERS, direct, loopback, run, serving, until, waiting

ARROW = "application/vnd.apache.arrow.stream"
LEDGER = r".\private$\ledger"


async def state(http: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await http.get("/event-log", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def entries(http: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await http.get("/event-log/entries", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["entries"]
    return found


async def table(http: httpx.AsyncClient, **query: Any) -> pa.Table:
    answer = await http.get("/event-log/entries", params=query, headers={"Accept": ARROW})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == ARROW
    return pa.ipc.open_stream(answer.content).read_all()


async def given_events(service: Service) -> aio.Queue:
    """Events of several kinds: 1 to 7."""
    orders = await service.manager.create_queue(ORDERS, journaling=True)
    await orders.send(Message("a", trace=True))
    await orders.receive(timeout=0)
    await orders.send(Message("b", journal=Journal.DEAD_LETTER))
    await orders.purge()
    ledger = await service.manager.create_queue(LEDGER, transactional=True)
    async with service.manager.transaction() as transaction:
        await ledger.send(Message("c"), transaction=transaction)
    return orders


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table, as JSON writes it."""
    times = {name: row[name] and row[name].isoformat() for name in ("at", "sent_at")}
    return {
        **row,
        **times,
        "lookup_id": None if row["lookup_id"] is None else str(row["lookup_id"]),
    }


# Reading


def test_the_log_says_where_it_begins_and_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            core = service.engine.core
            who = {"manager": str(core.identifier), "computer": core.settings.computer_name}
            empty = {**who, "first": 1, "next": 1, "bytes": 0, "is_kept": True}
            assert await state(http) == empty
            await given_events(service)
            found = await state(http)
            assert (found["first"], found["next"]) == (1, 7)
            assert found["bytes"] > 0

    run(main())


def test_entries_are_the_same_as_json_and_as_a_table(tmp_path: Path) -> None:
    async def main() -> None:
        events = EventsSection(bodies=("*",))
        async with observed(tmp_path, events=events) as (service, http):
            await given_events(service)
            rows = await entries(http, packets=True)
            found = await table(http, packets=True)
            assert found.schema.equals(event_schema())
            assert found.column_names == [column.name for column in EVENT_COLUMNS]
            for row in rows:
                packet = row["packet"]
                row["packet"] = None if packet is None else b64decode(packet)
            assert [as_json(row) for row in found.to_pylist()] == rows
            kinds = ["arrived", "received", "journaled", "arrived", "purged", "arrived"]
            assert [row["kind"] for row in rows] == kinds
            assert [row["number"] for row in rows] == list(range(1, 7))

    run(main())


def test_an_entry_says_all_that_is_known(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await given_events(service)
            arrived, received, journaled, *_, ordered = await entries(http)
            assert arrived["queue"] == received["queue"] == ORDERS
            assert journaled["queue"] == rf"{ORDERS};journal"
            assert arrived["message_id"] == received["message_id"] == journaled["message_id"]
            assert arrived["destination"] == str(orders.format_name)
            assert arrived["arrival_number"] == received["arrival_number"]
            assert journaled["arrival_number"] > arrived["arrival_number"]
            assert (arrived["trace"], ordered["trace"]) == (True, False)
            assert (arrived["reason"], received["reason"]) == (None, "ACK_RECEIVE")
            assert arrived["sent_at"][:16] == arrived["at"][:16]
            assert arrived["sequence_id"] is None
            assert int(ordered["sequence_id"]) > 0
            assert (ordered["sequence_number"], ordered["previous_number"]) == (1, 0)
            assert ordered["packet"] is None

    run(main())


def test_packets_are_given_to_those_who_ask_and_of_the_chosen_queues(tmp_path: Path) -> None:
    async def main() -> None:
        events = EventsSection(bodies=(ORDERS,))
        async with observed(tmp_path, events=events) as (service, http):
            await given_events(service)
            found = (await table(http, packets=True)).to_pylist()
            assert [row["packet"] is not None for row in found] == [
                row["kind"] == "arrived" and row["queue"] == ORDERS for row in found
            ]
            packet = decode_packet(found[0]["packet"])
            assert isinstance(packet, UserMessage)
            assert bytes(packet.properties.message_body).decode("utf-16-le") == "a"
            for row in [*(await table(http)).to_pylist(), *await entries(http)]:
                assert row["packet"] is None

    run(main())


def test_a_range_is_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "PAGE_EVENTS", 3)  # so that ranges cross pages

    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await given_events(service)
            ledger = await service.manager.queue(LEDGER)
            async with service.manager.transaction() as transaction:
                for _ in range(3):  # 7 to 9, in one block
                    await ledger.send(Message("c"), transaction=transaction)
            for start, stop in ((1, 10), (1, 1), (2, 5), (3, 3), (8, 9), (10, 10), (2, 99)):
                numbers = list(range(start, min(stop, 10)))
                asked = {"from": start, "to": stop}
                assert [row["number"] for row in await entries(http, **asked)] == numbers
                assert (await table(http, **asked))["number"].to_pylist() == numbers
            page = (await http.get("/event-log/entries?from=2&limit=2")).json()
            assert (page["from"], page["to"], len(page["entries"])) == (2, 4, 2)
            page = (await http.get("/event-log/entries?from=8&limit=2")).json()
            assert (page["from"], page["to"], len(page["entries"])) == (8, 10, 2)

    run(main())


def test_what_has_left_the_log_is_gone_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "EVENTS_MAX", 1)

    async def main() -> None:
        async with observed(tmp_path, events=EventsSection(max_bytes=700)) as (service, http):
            await given_events(service)
            first = (await state(http))["first"]
            assert 1 < first < 7
            for headers in ({}, {"Accept": ARROW}):
                answer = await http.get("/event-log/entries?from=1", headers=headers)
                assert answer.status_code == 410
                said = f"events 1 to {first - 1} are gone: the log begins with number {first}"
                assert answer.json()["detail"] == said
                assert f"go on from {first}" in answer.json()["hint"]
            assert (await entries(http))[0]["number"] == first  # without `from` what is there
            answer = await http.get("/event-log/entries?from=8")
            assert answer.status_code == 400
            assert "there is no event 8 yet" in answer.json()["detail"]

    run(main())


def test_a_stream_breaks_off_when_the_log_is_cut_under_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, _):
            orders = await given_events(service)
            stream = event_log.stream(service.engine, event_log.Range(1, 7), packets=False)
            await anext(stream)  # the schema
            keeper = event_log.keeper_of(service.engine)
            assert keeper is not None
            keeper.retention = replace(keeper.retention, max_bytes=1)
            await orders.send(Message("x"))
            with pytest.raises(FalconMQError, match="are gone"):
                async for _ in stream:
                    pass

    run(main())


def test_a_damaged_block_is_an_error_with_a_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            await given_events(service)
            (key, value), *_ = list(service.engine.store.scan(event_store.TABLE))
            service.engine.run(lambda core: core.batch.put(event_store.TABLE, key, value[:-1]))
            await until(lambda: service.engine.store.get(event_store.TABLE, key) == value[:-1])
            answer = await http.get("/event-log/entries")
            assert answer.status_code == 507
            assert "from number 1 on cannot be read" in answer.json()["detail"]

    run(main())


# Waiting


def test_a_caller_who_waits_is_told_when_something_is_durable(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            orders = await service.manager.create_queue(ORDERS)
            keeper = event_log.keeper_of(service.engine)
            assert keeper is not None
            found = asyncio.create_task(state(http, after=1, wait=30))
            await until(lambda: bool(keeper.listeners))
            assert not found.done()
            await orders.send(Message("a"))
            assert (await found)["next"] == 2
            assert keeper.listeners == []
            assert (await state(http, after=1, wait=30))["next"] == 2  # at once
            assert (await state(http, after=2, wait=0.01))["next"] == 2  # nothing came

    run(main())


def test_the_end_of_the_service_ends_the_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, http):
            keeper = event_log.keeper_of(service.engine)
            assert keeper is not None
            found = asyncio.create_task(state(http, after=1, wait=30))
            await until(lambda: bool(keeper.listeners))
            assert service._control is not None
            service._control.stopping.set()
            assert (await found)["next"] == 1

    run(main())


# Keeping


def test_without_keeping_nothing_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path, events=EventsSection(keep=False)) as (service, http):
            await given_events(service)
            found = await state(http, after=1, wait=0.01)
            assert (found["next"], found["bytes"], found["is_kept"]) == (1, 0, False)
            assert await entries(http) == []
            assert (await table(http)).num_rows == 0

    run(main())


def test_what_is_kept_does_not_depend_on_what_is_remembered(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path, history=HistorySection(events=0)) as (service, http):
            await given_events(service)
            assert service.engine.core.events is not None
            assert service.engine.core.events.after(0) == []
            assert len(await entries(http)) == 6

    run(main())


def test_a_restart_goes_on_with_the_numbers(tmp_path: Path) -> None:
    async def main() -> None:
        async with observed(tmp_path) as (service, _):
            await given_events(service)
            await service.manager.delete_queue(ORDERS)
        async with observed(tmp_path) as (service, http):
            await (await service.manager.create_queue(ORDERS)).send(Message("x", recoverable=False))
        async with observed(tmp_path) as (_, http):
            rows = await entries(http)
            assert [row["number"] for row in rows] == list(range(1, 8))
            assert [row["queue"] for row in rows if row["kind"] == "arrived"][-1] == ORDERS

    run(main())


# Between queue managers


def stored(service: Service, kind: EventKind) -> list[event_store.StoredEvent]:
    blocks = event_store.blocks_from(service.engine.store, 0)
    found = [event for block in blocks for event in event_store.events_of(block)]
    return [event for event in found if event.record.kind == kind]


def name(event: event_store.StoredEvent) -> str:
    return f"{event.source}\\{event.record.message_id}"


def place(event: event_store.StoredEvent) -> tuple[int, int, int]:
    assert event.record.flags & event_store.ORDERED
    return event.record.sequence_id, event.record.sequence_number, event.record.previous_number


def test_a_transactional_message_keeps_its_place_from_queue_to_queue() -> None:
    async def main() -> None:
        async with serving() as here, serving() as there:
            await there.manager.create_queue(LEDGER, transactional=True)
            far = await here.manager.queue(direct(there, "ledger"))
            async with here.manager.transaction() as transaction:
                messages = [Message(str(number), journal=Journal.JOURNAL) for number in range(3)]
                sent = [await far.send(message, transaction=transaction) for message in messages]
            await until(lambda: len(stored(here, EventKind.DELIVERED)) == 3)
            queued, delivered = stored(here, EventKind.QUEUED), stored(here, EventKind.DELIVERED)
            arrived = stored(there, EventKind.ARRIVED)
            names = [str(each) for each in sent]
            assert [name(e) for e in queued] == [name(e) for e in arrived] == names
            assert sorted(map(name, delivered)) == sorted(names)
            numbers = [place(event)[:2] for event in queued]
            assert [number for _, number in numbers] == [1, 2, 3]
            assert numbers == [place(event)[:2] for event in arrived]
            assert sorted(numbers) == sorted(place(event)[:2] for event in delivered)
            assert {event.destination for event in (*queued, *arrived)} == {str(far.format_name)}
            assert {event.detail for event in delivered} == {there.configuration.manager.bind}
            for _ in range(3):
                await (await there.manager.queue(LEDGER)).receive(timeout=30)
            await until(lambda: len(stored(here, EventKind.TOLD)) == 3)
            told = stored(here, EventKind.TOLD)
            assert sorted(place(event)[:2] for event in told) == sorted(numbers)
            assert sorted(map(name, told)) == sorted(names)

    run(main())


def test_a_message_that_is_refused_is_named_where_that_happened() -> None:
    async def main() -> None:
        async with serving() as here, serving() as there:
            await here.manager.create_queue(LEDGER)
            await there.manager.create_queue(ORDERS, quota_kilobytes=0)
            far = await here.manager.queue(direct(there))
            sent = await far.send(
                Message(
                    "x",
                    recoverable=True,
                    acknowledgements=Acknowledge.NEGATIVE_ARRIVAL,
                    administration_queue=direct(here, "ledger"),
                )
            )
            await until(lambda: bool(stored(here, EventKind.TOLD)))
            (refused,) = stored(there, EventKind.REFUSED)
            assert (name(refused), refused.destination) == (str(sent), str(far.format_name))
            assert refused.record.sent_time > 0
            (told,) = stored(here, EventKind.TOLD)
            assert (name(told), told.record.reason) == (str(sent), refused.record.reason)
            await until(lambda: not waiting(here))

    run(main())


# A full house


def test_a_failed_commit_leaves_no_gap_and_no_event_of_what_failed() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with serving(store) as service:
            orders = await service.manager.create_queue(ORDERS)
            await orders.send(first := Message("a"))
            store.fail_commit()
            with pytest.raises(FalconMQError):
                await orders.send(Message("b"))
            await orders.send(third := Message("c"))
            arrived = stored(service, EventKind.ARRIVED)
            assert [name(event) for event in arrived] == [str(first.id), str(third.id)]
            (restored,) = stored(service, EventKind.RESTORED)
            numbers = [arrived[0].number, restored.number, arrived[1].number]
            assert numbers == [1, 2, 3]

    run(main())


class Load:
    """Somebody who sends and receives until the service is gone, and notes what was promised."""

    def __init__(self, data: Path) -> None:
        self.sent: set[str] = set()
        self.received: set[str] = set()
        self._data = data
        self.threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        self.is_busy = threading.Event()

    def _send(self) -> None:
        with ControlClient(self._data / CONTROL_SOCKET) as client, suppress(UnreachableError):
            while True:
                ids = client.send_packets(ORDERS, [Message(b"x", recoverable=True)] * 7)
                self.sent.update(map(str, ids))

    def _receive(self) -> None:
        with ControlClient(self._data / CONTROL_SOCKET) as client, suppress(UnreachableError):
            while True:
                got = client.receive_packets(ORDERS, count=3, timeout=30)
                self.received.update(str(message.id) for message in got)
                if len(self.received) > 100:
                    self.is_busy.set()


def test_a_kill_under_load_loses_no_event_of_what_was_promised(tmp_path: Path) -> None:
    promised, taken = set[str](), set[str]()
    bind = loopback()
    for is_last in (False, False, True):
        daemon = start(
            "serve", "--data", str(tmp_path), "--bind", bind,
            environment={"FALCONMQ_HTTP_ENABLED": "false"},
        )  # fmt: skip
        try:
            assert daemon.stderr is not None
            while b"listening" not in (line := daemon.stderr.readline()):
                assert line, "it did not start"
            with ControlClient(tmp_path / CONTROL_SOCKET) as client:
                if is_last:
                    check_log(client, promised, taken)
                    break
                if not client.queues():
                    client.create_queue(ORDERS)
                load = Load(tmp_path)
                for thread in load.threads:
                    thread.start()
                assert load.is_busy.wait(30)
                os.kill(daemon.pid, signal.SIGKILL)
                for thread in load.threads:
                    thread.join()
                promised |= load.sent
                taken |= load.received
        finally:
            daemon.kill()
            daemon.communicate()


def check_log(client: ControlClient, promised: set[str], taken: set[str]) -> None:
    state = client.request("GET", "/event-log")
    headers = {"Accept": ARROW}
    with client.stream("GET", "/event-log/entries", headers=headers) as pieces:
        log = pa.ipc.open_stream(b"".join(pieces)).read_all()
    assert log["number"].to_pylist() == list(range(1, state["next"]))
    rows = list(zip(log["kind"].to_pylist(), log["message_id"].to_pylist(), strict=True))
    arrived = Counter(id for kind, id in rows if kind == "arrived")
    received = Counter(id for kind, id in rows if kind == "received")
    assert max(arrived.values()) == max(received.values()) == 1
    assert promised <= arrived.keys()
    assert taken <= received.keys() <= arrived.keys()
    # what is there has arrived and was not received; what has arrived is there or was received
    there = {message["id"] for message in all_messages(client)}
    assert there == arrived.keys() - received.keys()


def all_messages(client: ControlClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    while page := client.receive(ORDERS, count=1000, peek=True, after=after):
        found += page
        after = page[-1]["lookup_id"]
    return found
