"""Streams, driven as Spark drives them, over real queue managers."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxRows

import falconmq
from falconmq.client.ranges import Arrivals, Ranges
from falconmq.errors import FalconMQError
from falconmq.message import Delivery
from tests.e2e.estate import PATIENCE, Daemon, Estate, path, wait_until
from tests.spark.playing import ALL, Query, Rows, url

_names = itertools.count()
QUICK: Any = {"columns": "arrival_number,body", "bodyFormat": "string", "pollTimeoutMs": 0}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One for all tests here; each has queues of its own."""
    with Estate(tmp_path_factory.mktemp("streams")) as estate:
        yield estate.manager("A").start()


def new_queue(daemon: Daemon, **properties: object) -> str:
    name = f"Q{next(_names)}"
    daemon.create_queue(name, **properties)
    return path(name)


def send(daemon: Daemon, queue: str, *texts: object, **properties: object) -> None:
    daemon.client.send(queue, [{"text": str(text), **properties} for text in texts])


def texts(rows: Rows | None) -> list[str]:
    assert rows is not None
    return [row["body"] for row in rows]


def browse(daemon: Daemon, queue: str, checkpoint: str | None = None, **options: object) -> Query:
    return Query(daemon, checkpoint, queue=queue, **{**QUICK, **options})


def consume(daemon: Daemon, queue: str, checkpoint: str | None = None, **options: object) -> Query:
    given = {"mode": "consume", "consumer": queue[-5:].replace("\\", "-"), **options}
    return browse(daemon, queue, checkpoint, **given)


def left(daemon: Daemon, queue: str) -> int:
    count: int = daemon.client.queue(queue)["messages"]
    return count


def test_urgent_messages_and_late_commits_are_not_skipped(daemon: Daemon) -> None:
    queue = new_queue(daemon, transactional=True)
    with (
        falconmq.connect(url(daemon)) as manager,
        manager.queue(queue) as opened,
        manager.transaction() as late,
    ):
        opened.send(falconmq.Message("late"), transaction=late)
        send(daemon, queue, "first")
        query = browse(daemon, queue)
        assert texts(query.batch()) == ["first"]
        late.commit()
    assert texts(query.batch()) == ["late"]
    assert query.batch() is None
    plain = new_queue(daemon)
    send(daemon, plain, "calm", priority=1)
    query = browse(daemon, plain)
    assert texts(query.batch()) == ["calm"]
    send(daemon, plain, "urgent", priority=7)
    send(daemon, plain, "slow", priority=0)
    assert texts(query.batch()) == ["urgent", "slow"]
    assert left(daemon, plain) == 3


def test_locked_messages_are_read(daemon: Daemon) -> None:
    queue = new_queue(daemon, transactional=True)
    send(daemon, queue, "held", "free")
    with (
        falconmq.connect(url(daemon)) as manager,
        manager.queue(queue) as opened,
        manager.transaction() as reading,
    ):
        assert opened.receive(transaction=reading).text == "held"
        query = browse(daemon, queue, columns="body,locked")
        rows = query.batch()
        reading.abort()
    assert rows == [{"body": "held", "locked": True}, {"body": "free", "locked": False}]


def test_limits_hold_and_are_shared_over_queues(daemon: Daemon) -> None:
    small, large = new_queue(daemon), new_queue(daemon)
    send(daemon, small, *range(10))
    send(daemon, large, *range(100, 130))
    query = browse(daemon, f"{small},{large}", maxMessagesPerTrigger=8)
    batches = [texts(rows) for rows in query.everything()]
    assert [len(batch) for batch in batches] == [8] * 5
    assert all(sum(int(text) < 100 for text in batch) for batch in batches)
    assert sorted(map(int, itertools.chain(*batches))) == [*range(10), *range(100, 130)]
    one = browse(daemon, large)
    assert len(texts(one.batch(ReadMaxRows(7)))) == 7
    size = 5 * 140
    assert 1 < len(texts(one.batch(ReadMaxBytes(size)))) <= 5
    assert len(texts(one.batch(ReadMaxBytes(1)))) == 1, "one that is larger comes alone"
    both = browse(daemon, f"{small},{large}", maxBytesPerTrigger=size)
    assert isinstance(both.reader.getDefaultReadLimit(), ReadMaxBytes)
    assert 1 < len(texts(both.batch())) <= 5
    assert len(texts(both.batch(ALL))) > 30, "Spark may want all of it in spite of the limit"


def test_partitions_are_cut_as_wished(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(20))
    wishes: tuple[tuple[dict[str, Any], int], ...] = (
        ({}, 1),
        ({"minPartitions": 4}, 4),
        ({"maxMessagesPerPartition": 3}, 7),
        ({"minPartitions": 50}, 20),
    )
    for options, wanted in wishes:
        query = browse(daemon, queue, **options)
        end = query.plan()
        assert end is not None
        parts = query.reader.partitions(json.loads(query.checkpoint), json.loads(end))
        assert len(parts) == wanted
        assert texts(query.run(end)) == [str(number) for number in range(20)]


def test_a_pattern_finds_queues_that_are_made_later(daemon: Daemon) -> None:
    daemon.create_queue("pattern-1")
    send(daemon, path("pattern-1"), "a")
    query = Query(daemon, queuePattern=r".\PRIVATE$\pattern-*", **QUICK)
    assert texts(query.batch()) == ["a"]
    daemon.create_queue("Pattern-2")
    send(daemon, path("Pattern-2"), "b")
    assert texts(query.batch()) == ["b"]
    send(daemon, path("pattern-1"), "c")
    send(daemon, path("Pattern-2"), "d")
    assert sorted(texts(query.batch())) == ["c", "d"]
    daemon.client.delete_queue(path("Pattern-2"))
    send(daemon, path("pattern-1"), "e")
    strict = Query(daemon, query.checkpoint, queuePattern="*pattern-*", failOnDataLoss=True)
    with pytest.raises(FalconMQError, match=r"Pattern-2 was read and is not there.*\nhint"):
        strict.batch()
    assert texts(query.batch()) == ["e"]


def test_a_queue_that_is_deleted_ends_the_query_with_words(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, "a")
    query = browse(daemon, queue)
    end = query.plan()
    assert end is not None
    daemon.client.delete_queue(queue)
    for step in (lambda: query.run(end), query.plan):
        with pytest.raises(FalconMQError, match=r"no queue .*\(MQ_ERROR_QUEUE_NOT_FOUND\)\nhint"):
            step()


def test_consuming_removes_what_spark_has_committed_and_nothing_else(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(10))
    query = consume(daemon, queue, maxMessagesPerTrigger=4)
    end = query.plan()
    assert end is not None
    assert left(daemon, queue) == 10
    assert texts(query.run(end)) == list("0123")
    assert left(daemon, queue) == 10, "the sink may not have it yet"
    second = query.plan()
    assert second is not None
    assert left(daemon, queue) == 6
    query.run(second)
    query.commit()
    assert left(daemon, queue) == 2


def test_a_run_to_the_newest_leaves_nothing(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(10))
    query = consume(daemon, queue, maxMessagesPerTrigger=4)
    query.stop_at_newest()
    send(daemon, queue, "later")
    assert [len(rows) for rows in query.everything()] == [4, 4, 2]
    assert left(daemon, queue) == 1
    again = consume(daemon, queue, query.checkpoint)
    again.stop_at_newest()
    assert [texts(rows) for rows in again.everything()] == [["later"]]
    assert left(daemon, queue) == 0


def test_removal_may_stay_a_batch_behind(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(8))
    query = consume(daemon, queue, maxMessagesPerTrigger=2, acknowledgeLag=1)
    assert len(query.everything()) == 4
    assert left(daemon, queue) == 2


def test_a_batch_that_runs_again_is_the_same(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(5))
    query = consume(daemon, queue, maxMessagesPerTrigger=3)
    start, end = query.checkpoint, query.plan()
    assert end is not None
    rows = query.run(end)
    after_crash = consume(daemon, queue, start)
    assert after_crash.run(end) == rows
    assert texts(after_crash.batch()) == ["3", "4"]


def test_lost_messages_fail_a_batch_or_are_counted(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(5))
    query = browse(daemon, queue)
    end = query.plan()
    assert end is not None
    daemon.client.receive(queue, count=2)
    strict = browse(daemon, queue, query.checkpoint, failOnDataLoss=True)
    with pytest.raises(FalconMQError, match=r"2 of the messages \d+ to \d+ of \.\\private\$\\Q"):
        strict.run(end)
    assert texts(query.run(end)) == ["2", "3", "4"]
    send(daemon, queue, "more")
    assert texts(query.batch()) == ["more"]
    assert '"lost": 2' in query.checkpoint


def test_messages_that_vanish_between_plan_and_read_are_noticed(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(5))
    for is_strict in (False, True):
        query = browse(daemon, queue, failOnDataLoss=is_strict)
        end = query.plan()
        assert end is not None
        parts = query.reader.partitions(json.loads(query.checkpoint), json.loads(end))
        daemon.client.receive(queue)
        batches = query.reader.read(parts[0])
        if is_strict:
            with pytest.raises(FalconMQError, match="1 of the messages"):
                list(batches)
        else:
            assert sum(batch.num_rows for batch in batches) == 4


def test_holes_make_no_batch_and_are_not_asked_for_again(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = new_queue(daemon)
    query = browse(daemon, queue, pollTimeoutMs=50)
    assert query.batch() is None
    send(daemon, queue, *range(3))
    daemon.client.receive(queue, count=3)
    assert query.batch() is None
    with monkeypatch.context() as patched:
        patched.delattr(Ranges, "plan")
        assert query.batch() is None, "it waits for something behind the holes"
    send(daemon, queue, "new")
    assert texts(query.batch()) == ["new"]


def test_a_poll_waits_for_a_message(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    queues = [new_queue(daemon) for _ in range(3)]
    is_waiting = threading.Event()
    real = Ranges.arrivals

    def arrivals(
        self: Ranges, queue: str, *, after: int | None = None, wait: float = 0
    ) -> Arrivals:
        if wait:
            is_waiting.set()
        return real(self, queue, after=after, wait=wait)

    def send_when_somebody_waits(queue: str) -> None:
        assert is_waiting.wait(PATIENCE)
        send(daemon, queue, "woken")

    monkeypatch.setattr(Ranges, "arrivals", arrivals)
    for named, goal in ((queues[0], queues[0]), (",".join(queues[1:]), queues[-1])):
        query = browse(daemon, named, pollTimeoutMs=60_000)
        assert query.checkpoint
        is_waiting.clear()
        sender = threading.Thread(target=send_when_somebody_waits, args=(goal,))
        sender.start()
        assert texts(query.batch()) == ["woken"]
        sender.join()


def test_the_later_of_two_drivers_goes_on(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(6))
    first = consume(daemon, queue, maxMessagesPerTrigger=2)
    assert len(texts(first.batch())) == 2
    second = consume(daemon, queue, first.checkpoint, maxMessagesPerTrigger=2)
    assert texts(second.batch()) == ["2", "3"]
    with pytest.raises(FalconMQError, match=r"another query took over the consumer(.|\n)*hint:"):
        first.batch()
    assert texts(second.batch()) == ["4", "5"]
    assert second.batch() is None
    assert left(daemon, queue) == 0


def test_others_cannot_receive_meanwhile_and_can_afterwards(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(2))
    query = consume(daemon, queue)
    assert query.plan() is not None
    with pytest.raises(FalconMQError):
        daemon.client.receive(queue)
    other = consume(daemon, queue, consumer="somebody-else")
    with pytest.raises(FalconMQError, match="consumer"):
        other.batch()
    query.reader.stop()
    assert len(daemon.client.receive(queue)) == 1


def test_a_long_batch_keeps_its_lease(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, "a")
    query = consume(daemon, queue, leaseSeconds=1, consumer="long")
    assert query.plan() is not None

    def expiry() -> str:
        known = daemon.client.request("GET", "/consumers")["consumers"]
        (found,) = (each["expires_at"] for each in known if each["name"] == "long")
        return found or ""

    before = expiry()
    wait_until(lambda: expiry() > before, "the lease is renewed while a batch runs")
    query.reader.stop()


def test_a_consumer_that_is_ahead_of_the_checkpoint_is_told(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(4))
    query = consume(daemon, queue, maxMessagesPerTrigger=2)
    start = query.checkpoint
    query.everything()
    with pytest.raises(FalconMQError, match="another one used the same name"):
        consume(daemon, queue, start).batch()


def test_offsets_of_another_manager_are_refused_with_words(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, "a")
    query = browse(daemon, queue)
    other = "11111111-2222-3333-4444-555555555555"
    changed = query.checkpoint.replace(str(daemon.id), other)
    with pytest.raises(FalconMQError, match=f"another queue manager than before: it was {other}"):
        browse(daemon, queue, changed).batch()
    moved = changed.replace(url(daemon), "http://elsewhere")
    with pytest.raises(FalconMQError, match="at none of the urls now"):
        browse(daemon, queue, moved).batch()
    restored = json.loads(query.checkpoint)
    restored["managers"][str(daemon.id)]["queues"][queue]["next"] += 10**9
    with pytest.raises(FalconMQError, match="restored from an older backup"):
        browse(daemon, queue, json.dumps(restored)).batch()


def test_it_begins_where_the_user_wants(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(4))
    rows = browse(daemon, queue).batch()
    assert rows is not None
    third = rows[2]["arrival_number"]
    assert browse(daemon, queue, startingOffsets="latest").batch() is None
    by_name = json.dumps({queue.upper(): third})
    assert texts(browse(daemon, queue, startingOffsets=by_name).batch()) == ["2", "3"]
    assert texts(browse(daemon, queue, startingOffsets='{"other": -1}').batch()) == list("0123")
    latest = json.dumps({queue: -1})
    assert browse(daemon, queue, startingOffsets=latest).batch() is None
    again = browse(daemon, queue).checkpoint
    assert texts(browse(daemon, queue, startingOffsets=again).batch()) == list("0123")
    with pytest.raises(FalconMQError, match="no offset of"):
        browse(daemon, queue, startingOffsets=json.dumps({queue: "soon"})).batch()
    assert browse(daemon, queue, startingTimestamp="2100-01-01").batch() is None
    early = browse(daemon, queue, startingTimestamp="2000-01-01")
    assert texts(early.batch()) == list("0123")


def test_progress_knows_the_newest(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(3))
    query = browse(daemon, queue, maxMessagesPerTrigger=1)
    query.batch()
    reported = query.reader.reportLatestOffset()["managers"][str(daemon.id)]["queues"][queue]
    query.everything()
    done = json.loads(query.checkpoint)["managers"][str(daemon.id)]["queues"][queue]
    assert done["next"] == reported["next"]
    assert done["seen"] == 3


def test_a_manager_may_restart_at_any_step(estate: Estate) -> None:
    daemon = estate.manager("A").start()
    queue = new_queue(daemon)
    send(daemon, queue, *range(6))
    query = consume(daemon, queue, maxMessagesPerTrigger=2)
    assert query.checkpoint
    found: list[str] = []
    for step in ("plan", "run", "commit"):
        if step == "plan":
            daemon.restart()
        end = query.plan()
        assert end is not None
        if step == "run":
            daemon.restart()
        found += texts(query.run(end))
        if step == "commit":
            daemon.restart()
        query.commit()
    assert found == list("012345")
    assert query.batch() is None
    assert left(daemon, queue) == 0
    daemon.restart()  # an empty queue has forgotten its numbers
    assert query.batch() is None
    done, newest = (
        offset["managers"][str(daemon.id)]["queues"][queue]["next"]
        for offset in (json.loads(query.checkpoint), query.reader.reportLatestOffset())
    )
    assert newest >= done
    send(daemon, queue, "new")
    assert texts(query.batch()) == ["new"]


def test_two_managers_are_read_side_by_side(estate: Estate) -> None:
    a, b = estate.manager("A"), estate.manager("B")
    estate.start()
    for daemon in (a, b):
        daemon.create_queue("orders")
        send(daemon, path("orders"), daemon.name, "more")
    query = Query(f"{url(a)},{url(b)}", queue=path("orders"), maxMessagesPerTrigger=2, **QUICK)
    assert sorted(itertools.chain(*map(texts, query.everything()))) == ["A", "B", "more", "more"]
    only = Query(a, query.checkpoint, queue=path("orders"), **QUICK)
    with pytest.raises(FalconMQError, match="none of the urls"):
        only.batch()


def test_events_are_followed_and_what_was_forgotten_is_told(estate: Estate) -> None:
    daemon = estate.manager("A")
    daemon.sections["events"] = {"max_bytes": 1 << 20, "bodies": ["*"]}
    daemon.start()
    daemon.create_queue("orders")
    query = Query(daemon, source="events", packets=True, maxMessagesPerTrigger=3)
    assert query.checkpoint
    send(daemon, path("orders"), *range(5))
    wait_until(lambda: _next(query) > 5, "five events are durable")
    batches = query.everything()
    assert [len(rows) for rows in batches] == [3, 2]
    rows = [*itertools.chain(*batches)]
    assert [row["kind"] for row in rows] == ["arrived"] * 5
    assert all(row["packet"] for row in rows)
    before = query.checkpoint
    for _ in range(4):
        daemon.client.send_packets(
            path("orders"),
            [falconmq.Message(bytes(700_000), delivery=Delivery.RECOVERABLE)],
        )
    wait_until(lambda: query.reader._in_driver().begin().to_json() != json.loads(before), "")
    wait_until(lambda: _next(query) > 9, "nine events are durable")
    strict = Query(daemon, before, source="events")
    with pytest.raises(FalconMQError, match="of the event log of"):
        strict.batch()
    lenient = Query(daemon, before, source="events", failOnDataLoss=False)
    found = lenient.batch()
    assert found is not None
    lost = json.loads(lenient.checkpoint)["managers"][str(daemon.id)]["queues"]["events"]["lost"]
    assert lost + len(found) == 4
    assert lost > 0


def _next(query: Query) -> int:
    (manager,) = query.reader.reportLatestOffset()["managers"].values()
    number: int = manager["queues"]["events"]["next"]
    return number
