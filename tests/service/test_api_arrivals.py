"""Queues by ranges of arrival numbers: how far they are, plans, and Arrow streams of a range."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from falconmq import Message
from falconmq.client.arrow import MEDIA_TYPE, schema
from falconmq.errors import ResourceError
from falconmq.manager.arrivals import arrivals_between
from falconmq.manager.model import Queue
from falconmq.manager.queues import find_queue
from falconmq.names import PathName
from falconmq.service.requests import arrow, ranges
from falconmq.service.requests.records import PageReader, page_of
from falconmq.store import WriteBatch
from tests.embedded.helpers import Background, GatedStore, threaded_engine, wait_until
from tests.service.asking import LEDGER, ORDERS, Api, queue_path
from tests.service.control import ControlledManager

ARRIVALS = queue_path(ORDERS, "/arrivals")
PLAN = ARRIVALS + "/plan"
MESSAGES = queue_path(ORDERS, "/messages")
LONG = 30


@pytest.fixture
def store() -> GatedStore:
    return GatedStore()


@pytest.fixture
def controlled(tmp_path: Path, store: GatedStore) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled
        store.gate.set()


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def fill(controlled: ControlledManager, *bodies: str, **properties: Any) -> None:
    queue = controlled.blocking.queue(ORDERS)
    queue.send_many(Message(body, **properties) for body in bodies)


def core_queue(controlled: ControlledManager, name: str = ORDERS) -> Queue:
    found = find_queue(controlled.engine.core, PathName.parse(name))
    assert found is not None
    return found


def read(api: Api, start: int | None, stop: int | None, columns: str = "", **more: Any) -> pa.Table:
    wanted = {"from_arrival": start, "to_arrival": stop, "columns": columns or None, **more}
    query = "&".join(f"{name}={value}" for name, value in wanted.items() if value is not None)
    answer = api.ask("GET", f"{MESSAGES}?{query}", headers={"Accept": MEDIA_TYPE})
    assert answer.status == 200, answer.content
    with pa.ipc.open_stream(answer.content) as reader:
        return reader.read_all()


def labels(table: pa.Table) -> list[str]:
    return table.column("label").to_pylist()  # type: ignore[no-any-return]


# How far a queue is


def test_a_queue_says_how_far_it_is(controlled: ControlledManager, api: Api) -> None:
    core = controlled.engine.core
    empty = api.get(ARRIVALS)
    assert empty == {
        "queue": ORDERS,
        "format_name": str(controlled.blocking.queue(ORDERS).format_name),
        "manager": str(core.identifier),
        "first": 0,
        "next": 0,
        "count": 0,
        "bytes": 0,
        "counter": 0,
    }
    fill(controlled, "a", "b", "c")
    controlled.blocking.queue(ORDERS).receive()
    full = api.get(ARRIVALS)
    size = core_queue(controlled).total_bytes
    assert full == {**empty, "first": 2, "next": 4, "count": 2, "bytes": size, "counter": 3}


def test_what_a_reader_holds_counts_and_what_nobody_sent_does_not(
    controlled: ControlledManager, api: Api
) -> None:
    ledger = controlled.blocking.queue(LEDGER)
    with controlled.blocking.transaction() as transaction:
        ledger.send(Message("a"), transaction)
    path = queue_path(LEDGER, "/arrivals")
    with controlled.blocking.transaction() as transaction:
        ledger.receive(transaction=transaction)
        ledger.send(Message("b"), transaction)
        found = api.get(path)
        assert (found["count"], found["first"], found["next"]) == (1, 1, 2)
        assert api.get(path + "/plan")["count"] == 1
        transaction.abort()
    assert api.get(path)["count"] == 1


def test_who_waits_is_told_when_something_comes(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    queue = core_queue(controlled)
    waiting = Background(lambda: api.get(f"{ARRIVALS}?after=2&wait={LONG}"))
    wait_until(lambda: bool(queue.arrival_watchers))
    fill(controlled, "b")
    assert waiting.result()["next"] == 3
    assert queue.arrival_watchers == []
    assert api.get(f"{ARRIVALS}?after=2&wait={LONG}")["next"] == 3, "and at once if it is there"


def test_who_waits_hears_of_a_commit_and_of_a_journal(
    controlled: ControlledManager, api: Api
) -> None:
    ledger = controlled.blocking.queue(LEDGER)
    queue = core_queue(controlled, LEDGER)
    path = queue_path(LEDGER, "/arrivals")
    with controlled.blocking.transaction() as transaction:
        ledger.send(Message("a"), transaction)
        waiting = Background(lambda: api.get(f"{path}?after=0&wait={LONG}"))
        wait_until(lambda: bool(queue.arrival_watchers))
    assert waiting.result()["count"] == 1
    journal = queue_path(r".\system$;journal", "/arrivals")
    letters = core_queue(controlled, r".\system$;journal")
    waiting = Background(lambda: api.get(f"{journal}?after=0&wait={LONG}"))
    wait_until(lambda: bool(letters.arrival_watchers))
    fill(controlled, "kept", journal=2)
    assert waiting.result()["count"] == 1


def test_a_wait_is_over_in_time(controlled: ControlledManager, api: Api) -> None:
    assert api.get(f"{ARRIVALS}?after=5&wait=0.01")["next"] == 0
    assert core_queue(controlled).arrival_watchers == []
    assert api.refused("GET", f"{ARRIVALS}?after=5&wait=31")[0] == 422


def test_a_service_that_stops_ends_the_wait(controlled: ControlledManager, api: Api) -> None:
    waiting = Background(lambda: api.ask("GET", f"{ARRIVALS}?after=5&wait={LONG}"))
    queue = core_queue(controlled)
    wait_until(lambda: bool(queue.arrival_watchers))
    controlled.stop_server()
    assert waiting.result().status == 503
    assert queue.arrival_watchers == []


def test_nothing_is_told_before_it_is_durable(
    controlled: ControlledManager, api: Api, store: GatedStore
) -> None:
    # given a message that is on its way to the disk
    queue = core_queue(controlled)
    store.is_waiting.clear()
    store.gate.clear()
    sending = Background(lambda: fill(controlled, "a"))
    assert store.is_waiting.wait(LONG)
    # when somebody asks, or waits for it
    asking = Background(lambda: api.get(ARRIVALS))
    wait_until(lambda: queue.arrival_number == 1)
    reading = Background(lambda: read(api, 0, 2).num_rows)
    # then there is no answer until it is there
    assert not asking.is_done
    assert not reading.is_done
    store.gate.set()
    assert asking.result()["next"] == 2
    assert reading.result() == 1
    sending.result()


def test_a_write_that_fails_is_told_and_not_taken_for_true(
    controlled: ControlledManager, api: Api, store: GatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a receive that is on its way to the disk
    fill(controlled, "a")

    def commit(batches: list[WriteBatch]) -> None:
        store.is_waiting.set()
        assert store.gate.wait(LONG)
        raise ResourceError("the disk is full")

    store.is_waiting.clear()
    store.gate.clear()
    monkeypatch.setattr(store, "commit", commit)
    receiving = Background(lambda: controlled.blocking.queue(ORDERS).receive())
    assert store.is_waiting.wait(LONG)
    # when the range is read meanwhile, and the write fails
    engine = controlled.engine
    opened = engine.look(ranges.look_up, ORDERS)

    async def main() -> None:
        stream = arrow.read_range(engine, opened, 0, 2)
        await anext(stream)  # the schema
        reading = asyncio.ensure_future(anext(stream))
        for _ in range(3):
            await asyncio.sleep(0)  # it has looked
        store.gate.set()
        with pytest.raises(ResourceError):
            await reading

    asyncio.run(main())
    # then the reader is not told that the message is gone
    with pytest.raises(ResourceError):
        receiving.result()
    monkeypatch.undo()
    assert read(api, 0, 2).num_rows == 1


@pytest.mark.parametrize("tail", ["/arrivals", "/arrivals/plan"])
def test_what_is_no_queue_of_ours_is_a_problem(
    controlled: ControlledManager, api: Api, tail: str
) -> None:
    assert api.refused("GET", queue_path(r".\private$\nobody", tail))[0] == 404
    elsewhere = r"DIRECT=OS:elsewhere\private$\x"
    assert api.refused("GET", queue_path(elsewhere, tail))[0] == 400
    internal = r".\private$\order_queue$"
    assert api.refused("GET", queue_path(internal, tail))[0] == 403
    assert not controlled.engine.core.outgoing


# Plans


def test_a_plan_cuts_a_range_into_parts(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abcdefghij")
    whole = api.get(f"{PLAN}?from=3&parts=3")
    assert {**whole, "parts": 3} == {
        "queue": ORDERS,
        "from": 3,
        "to": 11,
        "count": 8,
        "bytes": None,
        "parts": 3,
    }
    cuts = [(part["from"], part["to"], part["count"]) for part in whole["parts"]]
    assert cuts == [(3, 5, 2), (5, 8, 3), (8, 11, 3)]
    few = api.get(f"{PLAN}?from=9&to=20&parts=5")
    assert [(part["from"], part["to"]) for part in few["parts"]] == [(9, 10), (10, 20)]


def test_a_plan_keeps_to_a_number_of_messages(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abcdef")
    controlled.blocking.queue(ORDERS).receive()
    some = api.get(f"{PLAN}?from=0&messages=3")
    assert (some["to"], some["count"], len(some["parts"])) == (5, 3, 1)
    exact = api.get(f"{PLAN}?from=0&messages=5")
    assert (exact["to"], exact["count"]) == (7, 5)
    rest = api.get(f"{PLAN}?from=5&messages=3")
    assert (rest["to"], rest["count"]) == (7, 2)
    none = api.get(f"{PLAN}?from=7&messages=3")
    assert (none["from"], none["to"], none["count"], none["parts"]) == (7, 7, 0, [])
    assert api.get(f"{PLAN}?from=9&to=4")["to"] == 9


def test_a_plan_keeps_to_bytes_exactly(controlled: ControlledManager, api: Api) -> None:
    # given messages of known sizes, some of them in memory alone
    fill(controlled, "a" * 100, "b" * 200)
    fill(controlled, "c" * 300, "d", recoverable=False)
    sizes = read(api, 0, 99, "size").column("size").to_pylist()
    for count in (1, 2, 3, 4):
        for spare in (0, 1):
            room = sum(sizes[:count]) + spare
            found = api.get(f"{PLAN}?from=0&bytes={room}&parts=2")
            assert (found["count"], found["bytes"]) == (count, sum(sizes[:count]))
            assert sum(part["bytes"] for part in found["parts"]) == found["bytes"]
            assert found["to"] == count + 1
    assert api.get(f"{PLAN}?from=0&bytes=1")["count"] == 1, "one message always goes"
    both = api.get(f"{PLAN}?from=0&bytes=100000&messages=2")
    assert (both["count"], both["bytes"]) == (2, sum(sizes[:2]))


def test_a_long_queue_is_planned_page_by_page(
    controlled: ControlledManager, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "PLAN_PAGE", 3)
    for number in range(10):
        fill(controlled, str(number), priority=number % 3)
    found = api.get(f"{PLAN}?parts=4")
    assert [part["count"] for part in found["parts"]] == [2, 3, 2, 3]
    assert api.get(f"{PLAN}?messages=7")["to"] == 8
    assert api.get(f"{PLAN}?bytes=1000000")["count"] == 10


# Ranges as Arrow streams


def test_a_range_comes_in_the_order_of_arrival(controlled: ControlledManager, api: Api) -> None:
    for number, priority in enumerate((3, 7, 0, 3, 7), start=1):
        fill(controlled, "", label=str(number), priority=priority)
    whole = read(api, 0, 6)
    assert whole.schema.equals(schema())
    assert labels(whole) == ["1", "2", "3", "4", "5"]
    assert whole.column("arrival_number").to_pylist() == [1, 2, 3, 4, 5]
    assert labels(read(api, 2, 4)) == ["2", "3"]
    assert labels(read(api, 4, None)) == ["4", "5"]
    assert labels(read(api, None, 3)) == ["1", "2"]
    assert labels(read(api, 0, 0)) == []
    assert labels(read(api, 6, 1 << 60)) == []


def test_only_the_columns_that_are_named_come(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "x", label="a")
    table = read(api, 0, 9, "label,arrival_number,body")
    assert table.column_names == ["label", "arrival_number", "body"]
    assert table.to_pylist()[0]["arrival_number"] == 1
    assert read(api, 5, 9, "label").column_names == ["label"]
    assert read(api, None, None, "label", count=1).column_names == ["label"]
    refusal = api.ask("GET", f"{MESSAGES}?columns=lable", headers={"Accept": MEDIA_TYPE})
    assert (refusal.status, "label" in refusal.json["hint"]) == (400, True)


def test_a_range_and_a_place_do_not_go_together(api: Api) -> None:
    query = f"{MESSAGES}?from_arrival=1&after=4"
    assert api.ask("GET", query, headers={"Accept": MEDIA_TYPE}).status == 422


def test_messages_that_are_held_come_too_and_say_so(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "", label="a")
    fill(controlled, "", label="b", recoverable=False)
    fill(controlled, "", label="c")
    handle = api.post(queue_path(ORDERS, "/receive"), {"lease": 5, "count": 2})
    assert len(handle["messages"]) == 2
    table = read(api, 0, 9)
    assert labels(table) == ["a", "b", "c"]
    assert table.column("locked").to_pylist() == [True, True, False]


def test_messages_that_are_not_committed_do_not_come(
    controlled: ControlledManager, api: Api
) -> None:
    ledger = controlled.blocking.queue(LEDGER)
    path = queue_path(LEDGER, "/messages") + "?from_arrival=0&to_arrival=99"

    def found() -> list[str]:
        answer = api.ask("GET", path, headers={"Accept": MEDIA_TYPE})
        with pa.ipc.open_stream(answer.content) as reader:
            return labels(reader.read_all())

    early, late = controlled.blocking.transaction(), controlled.blocking.transaction()
    with early, late:
        ledger.send(Message("", label="1"), late)
        ledger.send(Message("", label="2"), early)
        early.commit()
        assert found() == ["2"]
    assert found() == ["2", "1"]


def test_pages_and_batches_have_their_limits(
    controlled: ControlledManager, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given messages of several priorities and sizes, in memory and in the store
    chance = random.Random(7)
    for number in range(60):
        priority, size = chance.choice((0, 3, 7)), chance.choice((1, 400, 900))
        fill(
            controlled,
            "x" * size,
            label=str(number),
            priority=priority,
            recoverable=number % 3 > 0,
        )
    # when pages and batches are small
    monkeypatch.setattr(arrow, "PAGE_MESSAGES", 25)
    monkeypatch.setattr(arrow, "PAGE_BYTES", 4000)
    # then every message comes once, in order, and no batch is much larger than it may be
    table = read(api, 0, 99)
    assert labels(table) == [str(number) for number in range(60)]
    sizes = [sum(chunk.to_pylist()) for chunk in table.column("size").chunks]
    assert len(sizes) > 8
    assert max(sizes) < 4000 + 3000
    assert len(read(api, None, None, count=60).column("size").chunks) > 8


def test_a_message_that_was_moved_away_and_back_comes_once(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a page that was cut
    fill(controlled, *"abc")
    queue, engine = core_queue(controlled), controlled.engine
    span = arrivals_between(queue.positions, 0, 4, 10)
    page = engine.look(lambda _: page_of(queue, span))
    # when a message goes to a subqueue and comes back before the page is read
    orders = controlled.blocking.queue(ORDERS)
    away = orders.subqueue("away")
    place = orders.peek().lookup_id
    assert place is not None
    orders.move(place, away)
    away.move(place, orders)
    # then it is not in the page: it has a later number now
    rows = PageReader(engine.store, page, 1000).read()
    assert rows.arrivals == [2, 3]
    assert engine.look(lambda _: arrivals_between(queue.positions, 4, 99, 9)).numbers()


def test_a_message_that_came_between_meanwhile_is_not_in_the_page(
    controlled: ControlledManager,
) -> None:
    # given a page with a gap where a message waits for its commit
    ledger, engine = controlled.blocking.queue(LEDGER), controlled.engine
    late = controlled.blocking.transaction()
    with late:
        for is_late in (False, True, False):
            if is_late:
                ledger.send(Message("late"), late)
            else:
                with controlled.blocking.transaction() as transaction:
                    ledger.send(Message("early"), transaction)
        queue = core_queue(controlled, LEDGER)
        span = arrivals_between(queue.positions, 0, 99, 10)
        page = engine.look(lambda _: page_of(queue, span))
    # when that is committed before the page is read
    assert len(queue.positions) == 3
    # then the page has what it had
    assert PageReader(engine.store, page, 9999).read().arrivals == [1, 3]


def test_a_message_that_left_meanwhile_is_missing(controlled: ControlledManager) -> None:
    fill(controlled, *"abc")
    queue, engine = core_queue(controlled), controlled.engine
    span = arrivals_between(queue.positions, 0, 4, 10)
    page = engine.look(lambda _: page_of(queue, span))
    controlled.blocking.queue(ORDERS).receive()
    reader = PageReader(engine.store, page, 1)
    assert [reader.read().arrivals for _ in range(2)] == [[2], [3]]
    assert reader.is_done


def test_others_work_while_a_long_queue_is_planned(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "PLAN_PAGE", 1)
    fill(controlled, *"abcdefgh")
    engine = controlled.engine

    async def main() -> int:
        planning = asyncio.ensure_future(ranges.plan(engine, ORDERS, 0, None))
        rounds = 0
        while not planning.done():
            await asyncio.sleep(0)
            rounds += 1
        return rounds

    assert asyncio.run(main()) >= 8
