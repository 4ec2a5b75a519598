"""Ingests: batches from many writers, each sent exactly once or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from falconmq import Message, MqStatus, QueueManager
from falconmq.client.packets import MEDIA_TYPE, NOBODY, destination_of, to_packets
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.queues import delete_queue, find_queue
from falconmq.message import MessageId
from falconmq.names import PathName
from falconmq.serialization import to_user_message
from falconmq.service.access import Role
from falconmq.service.requests import ingest_records, ingests
from falconmq.service.requests.expiring import Expiring
from falconmq.service.requests.ingests import Ingests
from falconmq.store import MemoryStore
from tests.embedded.helpers import GatedStore, threaded_engine, wait_until
from tests.service.asking import LEDGER, ORDERS, Answer, Api, clocked_engine
from tests.service.control import ControlledManager
from tests.service.test_api_roles import ask

REMOTE = r"DIRECT=OS:sales02\private$\orders"
SOURCE = UUID("55735802-9150-9595-4997-B6E611EA26C6")
KEY = "nightly orders/2026"  # with everything that a path must quote


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def packets(manager: QueueManager, queue: str, *bodies: str | bytes) -> bytes:
    opened = manager.queue(queue)
    name = destination_of(str(opened.opened.format_name))
    messages = [Message(body) for body in bodies]
    return to_packets(messages, name, in_transaction=queue == LEDGER)


def of(batch: int, rest: str, key: str = KEY) -> str:
    return f"/ingests/{quote(key, safe='')}/{batch}/{rest}"


def stage(
    controlled: ControlledManager, batch: int, *bodies: str, queue: str = ORDERS, **query: Any
) -> Any:
    content = packets(controlled.blocking, queue, *bodies) if bodies else b""
    return hand_in(controlled, batch, content, queue, **query).json


def hand_in(
    controlled: ControlledManager,
    batch: int,
    content: bytes,
    queue: str = ORDERS,
    key: str = KEY,
    **query: object,
) -> Answer:
    given = "".join(f"&{name}={value}" for name, value in query.items())
    path = of(batch, f"stages?queue={quote(queue, safe='')}{given}", key)
    return Api(controlled.path).ask("POST", path, content, {"Content-Type": MEDIA_TYPE})


def commit(api: Api, batch: int, *stages: Any, key: str = KEY) -> Any:
    return api.post(of(batch, "commit", key), {"stages": [each["stage"] for each in stages]})


def refused_commit(api: Api, batch: int, *stages: Any) -> tuple[int, str, str]:
    body = {"stages": [each["stage"] for each in stages]}
    return api.refused("POST", of(batch, "commit"), body)


def texts(controlled: ControlledManager, queue: str = ORDERS) -> list[str]:
    return [message.text for message in controlled.blocking.queue(queue)]


def staged(api: Api) -> tuple[int, int]:
    found = api.get("/ingests")["staged"]
    return found["stages"], found["bytes"]


# What a batch is


def test_nothing_of_a_batch_is_seen_before_its_commit_and_all_of_it_after(
    controlled: ControlledManager, api: Api
) -> None:
    # given two writers, the second of which was quicker
    second = stage(controlled, 0, "c", "d", partition=1)
    first = stage(controlled, 0, "a", "b", partition=0)
    assert (first["count"], first["repeated"]) == (2, False)
    assert texts(controlled) == []
    # when their parts are committed, the order of the commit counts
    assert commit(api, 0, first, second) == {"committed": 4, "repeated": False}
    assert texts(controlled) == ["a", "b", "c", "d"]
    assert api.get(f"/ingests/{quote(KEY, safe='')}") | {"updated_at": ""} == {
        "key": KEY, "last_batch": 0, "count": 4, "updated_at": "",
    }  # fmt: skip
    assert staged(api) == (0, 0)


def test_a_batch_for_queues_of_both_kinds_is_one(controlled: ControlledManager, api: Api) -> None:
    parts = [stage(controlled, 3, "a"), stage(controlled, 3, "b", "c", queue=LEDGER)]
    assert commit(api, 3, *parts)["committed"] == 3
    assert (texts(controlled), texts(controlled, LEDGER)) == (["a"], ["b", "c"])
    # and the messages are as if they had been sent one by one
    ledger = list(controlled.blocking.queue(LEDGER))
    places = [message.transaction for message in ledger]
    assert [(each.is_first, each.is_last) for each in places if each] == [
        (True, False), (False, True),
    ]  # fmt: skip
    assert [each.sequence_number for each in places if each] == [1, 2]
    assert len({message.id for message in [*ledger, *controlled.blocking.queue(ORDERS)]}) == 3
    assert controlled.blocking.queue(ORDERS).receive(timeout=0).text == "a"
    assert texts(controlled) == []


def test_who_waits_for_a_message_gets_it_with_the_commit(
    controlled: ControlledManager, api: Api
) -> None:
    part = stage(controlled, 0, "a")
    with controlled.client() as client:
        commit(api, 0, part)
        assert [message["text"] for message in client.receive(ORDERS, timeout=30)] == ["a"]


def test_a_part_may_come_in_many_requests_and_each_of_them_twice(
    controlled: ControlledManager, api: Api
) -> None:
    id = str(uuid4())
    opened = stage(controlled, 0, stage=id)  # with no packets, to learn what they must be
    assert opened == stage(controlled, 0, stage=id)  # the answer got lost
    assert (opened["stage"], opened["count"], opened["transactional"]) == (id, 0, False)
    name = str(controlled.blocking.queue(ORDERS).opened.format_name)
    assert (opened["format_name"], opened["manager"]) == (name, str(controlled.blocking.id))

    def more(sequence: int, *bodies: str) -> Answer:
        path = of(0, f"stages/{id}?sequence={sequence}")
        content = packets(controlled.blocking, ORDERS, *bodies)
        return api.ask("POST", path, content, {"Content-Type": MEDIA_TYPE})

    first = more(1, "a")
    assert (first.status, first.json["count"]) == (200, 1)
    assert more(1, "a").json["count"] == 1  # that answer was lost as well
    gap = more(3, "c")
    assert (gap.status, gap.json["error"]) == (409, "MQ_ERROR_TRANSACTION_SEQUENCE")
    assert more(2, "b", "c").json["count"] == 3
    commit(api, 0, opened)
    assert texts(controlled) == ["a", "b", "c"]
    late = more(3, "d")
    assert (late.status, late.json["error"]) == (409, "MQ_ERROR_STALE_HANDLE")


def test_the_first_packets_may_come_with_the_stage_and_twice_too(
    controlled: ControlledManager, api: Api
) -> None:
    id = str(uuid4())
    for _ in range(2):
        assert stage(controlled, 0, "a", "b", stage=id)["count"] == 2
    commit(api, 0, {"stage": id})
    assert texts(controlled) == ["a", "b"]


# Once


def test_a_batch_that_is_committed_again_changes_nothing(
    controlled: ControlledManager, api: Api
) -> None:
    part = stage(controlled, 5, "a")
    commit(api, 5, part)
    # when the answer got lost, when the whole batch is made again, and when a zombie comes late
    again, late = stage(controlled, 5, "a"), stage(controlled, 4, "old")
    assert (again["repeated"], late["repeated"], staged(api)) == (True, True, (0, 0))
    for batch, stages in ((5, [part]), (5, [again]), (4, [late]), (5, [])):
        assert commit(api, batch, *stages) == {"committed": 0, "repeated": True}
    assert texts(controlled) == ["a"]
    # then the next batch, and one of somebody else, go their way
    commit(api, 6, stage(controlled, 6, "b"))
    other = hand_in(controlled, 5, packets(controlled.blocking, ORDERS, "c"), key="other").json
    commit(api, 5, other, key="other")
    assert texts(controlled) == ["a", "b", "c"]


def test_a_stage_from_before_the_batch_was_done_is_dropped(
    controlled: ControlledManager, api: Api
) -> None:
    zombie, older = stage(controlled, 5, "zombie"), stage(controlled, 3, "older")
    keep = stage(controlled, 6, "next")
    other = hand_in(controlled, 5, packets(controlled.blocking, ORDERS, "other"), key="other").json
    commit(api, 5, stage(controlled, 5, "a"))
    assert staged(api)[0] == 2
    assert commit(api, 5, zombie)["repeated"]
    assert commit(api, 3, older)["repeated"]
    commit(api, 6, keep)
    commit(api, 5, other, key="other")
    assert texts(controlled) == ["a", "next", "other"]


def test_an_empty_batch_is_done_too_so_that_no_zombie_can_fill_it(
    controlled: ControlledManager, api: Api
) -> None:
    zombie = stage(controlled, 7, "zombie")
    assert commit(api, 7) == {"committed": 0, "repeated": False}
    assert commit(api, 7, zombie) == {"committed": 0, "repeated": True}
    assert texts(controlled) == []


def test_a_record_is_found_after_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        commit(Api(controlled.path), 2, stage(controlled, 2, "a"))
        waiting = stage(controlled, 3, "b")
    store.crash()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        api = Api(controlled.path)
        assert commit(api, 2)["repeated"]
        code, error, detail = refused_commit(api, 3, waiting)  # stages live in memory
        assert (code, error) == (409, "MQ_ERROR_STALE_HANDLE")
        assert "no stage" in detail
        assert texts(controlled) == ["a"]


def test_an_unknown_stage_stops_the_whole_commit(controlled: ControlledManager, api: Api) -> None:
    part = stage(controlled, 0, "a")
    elsewhere = stage(controlled, 1, "b")  # of another batch
    for stranger in ({"stage": str(uuid4())}, elsewhere):
        assert refused_commit(api, 0, part, stranger)[:2] == (409, "MQ_ERROR_STALE_HANDLE")
    assert texts(controlled) == []
    assert commit(api, 0, part)["committed"] == 1  # it is still there


def test_a_stage_that_is_listed_twice_is_sent_once(controlled: ControlledManager, api: Api) -> None:
    part = stage(controlled, 0, "a")
    assert commit(api, 0, part, part)["committed"] == 1
    assert texts(controlled) == ["a"]


def test_aborted_stages_are_gone(controlled: ControlledManager, api: Api) -> None:
    part, other = stage(controlled, 0, "a"), stage(controlled, 1, "b")
    ids = [part["stage"], other["stage"], str(uuid4())]
    assert api.ask("POST", of(0, "abort"), {"stages": ids}).status == 204
    assert staged(api)[0] == 1  # that of the other batch
    assert refused_commit(api, 0, part)[0] == 409


# All or nothing: on an event loop of the test's own


class Bench:
    """Ingests over an engine, and the names of its queues."""

    def __init__(self, engine: Engine, staged_bytes: int = 1 << 30) -> None:
        self.engine = engine
        self.manager = QueueManager(engine)
        self.expiring = Expiring(engine.core.clock)
        self.ingests = Ingests(engine, self.expiring, staged_bytes)

    def create(self) -> None:
        self.manager.create_queue(ORDERS)
        self.manager.create_queue(LEDGER, transactional=True)

    async def stage(self, batch: int, *bodies: str, queue: str = ORDERS) -> UUID:
        content = packets(self.manager, queue, *bodies)
        view = await self.ingests.stage(
            KEY, batch, None, queue, content, seconds=60, keep_ids=False
        )
        return UUID(view["stage"])

    async def commit(self, batch: int, *stages: UUID) -> Any:
        return await self.ingests.commit(KEY, batch, list(stages))

    def state(self) -> tuple[int, int, int | None]:
        """How many messages can be read from the two queues, and the last batch."""
        record = self.ingests.records.get(KEY)
        orders, ledger = (len(list(self.manager.queue(name))) for name in (ORDERS, LEDGER))
        return orders, ledger, None if record is None else record.batch


def on_a_loop(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


def test_of_two_commits_of_a_batch_one_sends_and_the_other_finds_it_done() -> None:
    async def main() -> None:
        bench = Bench(threaded_engine())
        bench.create()
        one, other = await bench.stage(0, "a", "b"), await bench.stage(0, "a", "b")
        answers = await asyncio.gather(*(bench.commit(0, id) for id in (one, other, one)))
        assert sorted(answer["repeated"] for answer in answers) == [False, True, True]
        assert bench.state() == (2, 0, 0)
        bench.manager.close()

    on_a_loop(main())


def test_of_two_requests_with_one_number_at_the_same_time_one_counts() -> None:
    async def main() -> None:
        bench = Bench(threaded_engine())
        bench.create()
        part, content = await bench.stage(0, "a"), packets(bench.manager, ORDERS, "b")
        both = [bench.ingests.more(KEY, 0, part, 1, content) for _ in range(2)]
        assert [view["count"] for view in await asyncio.gather(*both)] == [2, 2]
        assert (await bench.commit(0, part))["committed"] == 2
        bench.manager.close()

    on_a_loop(main())


def test_a_commit_lets_others_work_and_goes_on_without_its_caller() -> None:
    async def main() -> None:
        bench = Bench(threaded_engine())
        bench.create()
        count = 3 * ingests.TURN_MESSAGES
        part = await bench.stage(0, *(["a"] * count))
        asking = asyncio.create_task(bench.commit(0, part))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert bench.state() == (0, 0, None)  # somebody else looked while it worked
        asking.cancel()
        assert (await bench.commit(0, part))["repeated"]  # it waits for the first one
        assert bench.state() == (count, 0, 0)
        bench.manager.close()

    on_a_loop(main())


def test_a_queue_that_is_deleted_during_the_commit_takes_everything_back() -> None:
    async def main() -> None:
        bench = Bench(threaded_engine())
        bench.create()
        many = ["a"] * (2 * ingests.TURN_MESSAGES)
        parts = [await bench.stage(0, *many), await bench.stage(0, "b", queue=LEDGER)]
        asking = asyncio.create_task(bench.commit(0, *parts))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        bench.engine.run(_delete, LEDGER)
        with pytest.raises(FalconMQError) as caught:
            await asking
        assert caught.value.status is MqStatus.QUEUE_DELETED
        assert bench.manager.queue(ORDERS).count == 0
        assert bench.ingests.records.get(KEY) is None
        assert bench.engine.core.used_bytes == 0
        assert not bench.engine.core.transactions
        # and without the part for it the batch can be sent
        assert (await bench.commit(0, parts[0]))["committed"] == len(many)
        bench.manager.close()

    on_a_loop(main())


def _delete(core: QueueManagerCore, name: str) -> None:
    queue = find_queue(core, PathName.parse(name))
    assert queue is not None
    delete_queue(core, queue)


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_crash_in_the_commit_leaves_the_messages_and_the_record_or_neither(
    is_durable: bool,
) -> None:
    store = MemoryStore()

    async def before() -> None:
        bench = Bench(threaded_engine(store))
        bench.create()
        await bench.stage(0, "x")  # counters are reserved now: the next commit is the one
        parts = [await bench.stage(1, "a", "b"), await bench.stage(1, "c", queue=LEDGER)]
        store.fail_commit(durable=is_durable)
        with pytest.raises(BaseException):  # noqa: B017, PT011  # the process ends in the middle
            await bench.commit(1, *parts)
        with contextlib.suppress(BaseException):  # its threads must not outlive it
            bench.manager.close()

    on_a_loop(before())
    store.crash()
    bench = Bench(threaded_engine(store))
    assert bench.state() == ((2, 1, 1) if is_durable else (0, 0, None))
    bench.manager.close()


def test_a_commit_that_the_store_cannot_write_may_be_tried_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        bench = Bench(threaded_engine(store))
        bench.create()
        parts = [await bench.stage(1, "a", "b"), await bench.stage(1, "c", queue=LEDGER)]
        store.fail_commit()
        with pytest.raises(FalconMQError):
            await bench.commit(1, *parts)
        assert bench.state() == (0, 0, None)
        assert await bench.commit(1, *parts) == {"committed": 3, "repeated": False}
        assert bench.state() == (2, 1, 1)
        assert [m.text for m in bench.manager.queue(LEDGER)] == ["c"]
        bench.manager.close()

    on_a_loop(main())


def test_a_failed_write_forgets_no_key_and_remembers_none_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingest_records, "KEYS", 2)

    async def main() -> None:
        store = MemoryStore()
        bench = Bench(threaded_engine(store))
        for key in ("a", "b"):
            await bench.ingests.commit(key, 0, [])
        store.fail_commit()
        with pytest.raises(FalconMQError):
            await bench.ingests.commit("c", 0, [])
        assert {record.key for record in bench.ingests.records.all()} == {"a", "b"}
        await bench.ingests.commit("c", 0, [])
        assert {record.key for record in bench.ingests.records.all()} == {"b", "c"}
        bench.manager.close()

    on_a_loop(main())


def test_what_another_failed_write_undoes_in_the_middle_is_not_half_sent() -> None:
    async def main() -> None:
        store = MemoryStore()
        bench = Bench(threaded_engine(store))
        bench.create()
        part = await bench.stage(0, *(["a"] * (3 * ingests.TURN_MESSAGES)))
        asking = asyncio.create_task(bench.commit(0, part))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        store.fail_commit()
        with pytest.raises(FalconMQError):
            bench.manager.queue(LEDGER).update(label="x")
        with pytest.raises(FalconMQError, match="undone") as caught:
            await asking
        assert caught.value.status is MqStatus.MESSAGE_STORAGE_FAILED
        assert bench.state() == (0, 0, None)
        await bench.commit(0, part)
        assert bench.state() == (3 * ingests.TURN_MESSAGES, 0, 0)
        bench.manager.close()

    on_a_loop(main())


def test_the_answer_waits_until_everything_is_durable() -> None:
    async def main() -> None:
        store = GatedStore()
        bench = Bench(threaded_engine(store))
        bench.create()
        part = await bench.stage(0, "a")
        store.gate.clear()
        store.is_waiting.clear()
        asking = asyncio.create_task(bench.commit(0, part))
        await asyncio.to_thread(wait_until, store.is_waiting.is_set)
        again = asyncio.create_task(bench.commit(0, part))
        done, _ = await asyncio.wait([asking, again], timeout=0.05)
        assert not done
        store.gate.set()
        assert [(await asking)["committed"], (await again)["repeated"]] == [1, True]
        bench.manager.close()

    on_a_loop(main())


# Refusals


def test_a_batch_that_does_not_fit_leaves_nothing_and_fits_later(
    controlled: ControlledManager, api: Api
) -> None:
    controlled.blocking.queue(ORDERS).update(quota_kilobytes=2)
    ledger = stage(controlled, 0, "l", queue=LEDGER)
    parts = [stage(controlled, 0, "x" * 400) for _ in range(3)]
    code, error, detail = refused_commit(api, 0, ledger, *parts)
    assert (code, error) == (507, "MQ_ERROR_INSUFFICIENT_RESOURCES")
    assert detail.startswith(ORDERS)  # of the whole batch: no message was put for that
    assert (texts(controlled), texts(controlled, LEDGER)) == ([], [])
    assert controlled.engine.core.used_bytes == 0
    controlled.blocking.queue(ORDERS).update(quota_kilobytes=8)
    assert commit(api, 0, ledger, *parts)["committed"] == 4


def test_a_queue_that_was_made_anew_is_another_one(controlled: ControlledManager, api: Api) -> None:
    part = stage(controlled, 0, "a")
    controlled.blocking.delete_queue(ORDERS)
    assert refused_commit(api, 0, part)[:2] == (404, "MQ_ERROR_QUEUE_NOT_FOUND")
    controlled.blocking.create_queue(ORDERS)
    assert refused_commit(api, 0, part)[:2] == (410, "MQ_ERROR_QUEUE_DELETED")
    assert texts(controlled) == []


def test_packets_are_checked_when_they_come(controlled: ControlledManager, api: Api) -> None:
    good = packets(controlled.blocking, ORDERS, "a")
    ledger = packets(controlled.blocking, LEDGER, "b")
    name = destination_of(str(controlled.blocking.queue(ORDERS).opened.format_name))
    transactional = to_packets([Message("c")], name, in_transaction=True)
    for content, code, said in (
        (good + ledger, 400, "packets[1]: destination"),
        (good + transactional, 409, "packets[1]: it is sent outside a transaction"),
        (good + good[:20], 400, "packets[1]"),
        (b"x" * 40, 400, "packets[0]"),
    ):
        answer = hand_in(controlled, 0, content)
        assert (answer.status, said in answer.json["detail"]) == (code, True), answer
    assert staged(api) == (0, 0)  # nothing of a refused stage is kept
    bad = [
        hand_in(controlled, 0, b"", r".\private$\nowhere"),
        hand_in(controlled, 0, b"", ORDERS + ";JOURNAL"),
        hand_in(controlled, 0, b"", REMOTE + "," + REMOTE + "2"),
        hand_in(controlled, 0, good, key="k" * 201),
        hand_in(controlled, -1, good),
        hand_in(controlled, 1 << 63, good),
    ]
    assert [answer.status for answer in bad] == [404, 400, 400, 422, 422, 422]


def test_keys_and_numbers_may_be_as_long_as_they_say(
    controlled: ControlledManager, api: Api
) -> None:
    key, batch = "\N{EURO SIGN}" * 200, (1 << 63) - 1  # 600 bytes: more than the store can index
    other = "\N{EURO SIGN}" * 199 + "x"
    for each in (key, other):
        content = packets(controlled.blocking, ORDERS, "a")
        part = hand_in(controlled, batch, content, key=each).json
        assert commit(api, batch, part, key=each)["committed"] == 1
    assert {each["key"] for each in api.get("/ingests")["ingests"]} == {key, other}
    assert api.get(f"/ingests/{quote(key)}")["last_batch"] == batch


def test_messages_for_another_computer_wait_there_for_their_way(
    controlled: ControlledManager, api: Api
) -> None:
    name = destination_of(REMOTE)
    opened = hand_in(controlled, 0, b"", REMOTE).json
    assert (opened["transactional"], opened["format_name"]) == (None, REMOTE)
    parts = [
        hand_in(controlled, 0, to_packets([Message("a")], name, in_transaction=is_in), REMOTE).json
        for is_in in (True, False)
    ]
    assert commit(api, 0, *parts)["committed"] == 2
    (outgoing,) = controlled.engine.core.outgoing.values()
    assert len(outgoing.positions) == 2
    mixed = to_packets([Message("a")], name, in_transaction=True)
    mixed += to_packets([Message("b")], name, in_transaction=False)
    assert "packets[1]" in hand_in(controlled, 1, mixed, REMOTE).json["detail"]


# Memory and time


def test_stages_have_a_bound_together_and_a_refused_one_costs_nothing(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as controlled:
        controlled.blocking.create_queue(ORDERS)
        api = Api(controlled.path)
        one = len(packets(controlled.blocking, ORDERS, "x" * 1000))
        controlled.control.ingests.stages.bytes_max = 2 * one + one // 2
        parts = [stage(controlled, 0, "x" * 1000) for _ in range(2)]
        full = hand_in(controlled, 0, packets(controlled.blocking, ORDERS, "x" * 1000))
        assert (full.status, full.json["error"]) == (507, "MQ_ERROR_INSUFFICIENT_RESOURCES")
        assert "http.staged_bytes" in full.json["hint"]
        assert staged(api)[0] == 2
        api.ask("POST", of(0, "abort"), {"stages": [parts[0]["stage"]]})
        parts[0] = stage(controlled, 0, "y" * 1000)
        assert commit(api, 0, *parts)["committed"] == 2
        assert staged(api) == (0, 0)


def test_a_stage_that_nobody_touches_is_dropped_and_its_memory_is_free(tmp_path: Path) -> None:
    engine, clock = clocked_engine()
    with ControlledManager(tmp_path, engine) as controlled:
        controlled.blocking.create_queue(ORDERS)
        api = Api(controlled.path)
        forgotten = stage(controlled, 0, "a", seconds=30)
        kept = stage(controlled, 0, "b", seconds=30)
        clock.advance(29)
        content = packets(controlled.blocking, ORDERS, "c")
        path = of(0, f"stages/{kept['stage']}?sequence=1")
        assert api.ask("POST", path, content, {"Content-Type": MEDIA_TYPE}).status == 200
        clock.advance(2)
        assert refused_commit(api, 0, forgotten)[:2] == (409, "MQ_ERROR_STALE_HANDLE")
        assert staged(api)[0] == 1
        assert commit(api, 0, kept)["committed"] == 2
        assert staged(api) == (0, 0)


def test_the_keys_that_were_used_last_are_remembered(
    controlled: ControlledManager, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_records, "KEYS", 2)
    for key in ("a", "b", "a", "c"):
        batch = 1 + (api.get(f"/ingests/{key}")["last_batch"] or 0)
        commit(api, batch, key=key)
    assert [each["key"] for each in api.get("/ingests")["ingests"]] == ["c", "a"]
    assert api.get("/ingests/b") == {
        "key": "b", "last_batch": None, "count": 0, "updated_at": None,
    }  # fmt: skip
    # and that is so for one who starts anew
    controlled.control.ingests.records.read_again()
    commit(api, 1, key="d")
    assert [each["key"] for each in api.get("/ingests")["ingests"]] == ["d", "c"]


def test_a_key_can_be_forgotten(controlled: ControlledManager, api: Api) -> None:
    commit(api, 3, key="a/b")
    assert api.ask("DELETE", "/ingests/a%2Fb").status == 204
    assert api.get("/ingests")["ingests"] == []
    assert not commit(api, 0, key="a/b")["repeated"]
    assert api.ask("DELETE", "/ingests/nobody").status == 404


# Messages that were sent before


def replayed(
    manager: QueueManager, queue: str, *, source: UUID = SOURCE, ordinal: int = 7
) -> bytes:
    message = Message("again", recoverable=True, time_to_reach_queue=60)
    message.destination = destination_of(str(manager.queue(queue).opened.format_name))
    packet = to_user_message(
        message,
        source_queue_manager=source,
        message_id=ordinal,
        sent_time=1_000_000_000,
        destination_queue_manager=NOBODY,
    )
    return packet.encode()


def test_messages_that_were_sent_before_may_keep_who_they_are(
    controlled: ControlledManager, api: Api
) -> None:
    content = replayed(controlled.blocking, ORDERS)
    part = hand_in(controlled, 0, content, keep_ids="true")
    commit(api, 0, part.json)
    (message,) = controlled.blocking.queue(ORDERS)
    assert message.id == MessageId.of(SOURCE, 7)
    assert (message.sent_time, message.text) == (1_000_000_000, "again")
    # else they are refused, as are new ones that ask for it
    assert "not zero" in hand_in(controlled, 1, content).json["detail"]
    new = packets(controlled.blocking, ORDERS, "a")
    null = replayed(controlled.blocking, ORDERS, source=NOBODY)
    for each in (new, null, replayed(controlled.blocking, ORDERS, ordinal=0)):
        assert "is zero" in hand_in(controlled, 1, each, keep_ids="true").json["detail"]
    far = hand_in(controlled, 1, b"", REMOTE, keep_ids="true")
    assert (far.status, "another computer" in far.json["detail"]) == (400, True)


# Who may do it

_STAGES = f"/ingests/k/0/stages?queue={quote(ORDERS, safe='')}"
_PACKETS = {"Content-Type": MEDIA_TYPE}


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("POST", _STAGES, None, {Role.SEND}),
        ("POST", _STAGES + "&keep_ids=true", None, set()),
        ("POST", f"/ingests/k/0/stages/{uuid4()}?sequence=1", None, {Role.SEND}),
        ("POST", "/ingests/k/0/commit", {"stages": []}, {Role.SEND}),
        ("POST", "/ingests/k/0/abort", {"stages": []}, {Role.SEND}),
        ("GET", "/ingests", None, {Role.SEND, Role.READ}),
        ("GET", "/ingests/k", None, {Role.SEND, Role.READ}),
        ("DELETE", "/ingests/k", None, set()),
    ],
    ids=["stage", "keep ids", "more", "commit", "abort", "list", "get", "forget"],
)
def test_each_request_needs_its_role(
    method: str, path: str, body: object, allowed: set[Role]
) -> None:
    headers = _PACKETS if "stages" in path else {}
    for role in Role:
        answer = ask((role,), method, path, body, headers)
        may = role in allowed or role is Role.MANAGE
        assert (answer != 403) is may, (role, answer)


def test_the_configuration_has_the_bound(tmp_path: Path) -> None:
    from falconmq.service.configuration import load  # noqa: PLC0415

    file = tmp_path / "falconmq.toml"
    file.write_text('[manager]\nname = "A"\n[http]\nstaged_bytes = 2000000\n')
    assert load(file).http.staged_bytes == 2_000_000
