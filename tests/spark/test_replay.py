"""Replays: the right messages, once each, in their order, not too fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from falconmq.client import ControlClient
from falconmq.errors import FalconMQError
from falconmq.spark.jobs import lake_tables, replay
from falconmq.spark.jobs.running import Progress, tell_nobody
from falconmq.spark.replaying.choosing import Wanted, as_sent, chosen, chunked, glob
from falconmq.spark.replaying.pacing import CHUNK_MOST, Pace, chunk_size
from falconmq.spark.replaying.plans import check_name, read_state, read_states
from falconmq.spark.replaying.predicates import check_predicate, matching
from falconmq.spark.tables import Lake
from tests.service.asking import LEDGER, ORDERS, clocked_engine
from tests.service.control import ControlledManager
from tests.spark.gold_samples import DAY, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUID = "55735802-9150-9595-4997-B6E611EA26C6"
QUEUE = r"SALES01\private$\orders"
OTHER = r"BERLIN\private$\bills"


def message_id(number: int) -> str:
    return f"{{{GUID}}}\\{number}"


def archived(
    number: int, /, queue: str = QUEUE, kind: str = "arrived", **more: Any
) -> dict[str, Any]:
    """A row of bronze/messages; later numbers arrived earlier, to see whether somebody sorts."""
    at = DAY + timedelta(minutes=100 - number)
    row = {"manager": "g", "number": number, "kind": kind, "message_id": message_id(number)}
    row |= {"queue": queue, "label": f"order {number}", "body": b"body %d" % number}
    row |= {"body_type": 0, "priority": 3, "size": 100, "message_class": "NORMAL"}
    row |= {"sent_at": at - timedelta(seconds=5), "arrived_at": at, "day": at.date()}
    return row | {"delivery": "RECOVERABLE", "correlation_id": None} | more


ROWS = [
    *(archived(number) for number in range(1, 11)),
    archived(1, r"SALES01\system$;journal", "journaled", number=0),
    archived(11, OTHER, label="bill [11]"),
    archived(12, OTHER, "dead_lettered", message_class="NACK_REACH_QUEUE_TIMEOUT"),
    archived(13, OTHER, correlation_id=message_id(500)),
]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("bronze"))
    assert spark is not None  # the schema is read by it
    put(lake, lake_tables.MESSAGES, ROWS)
    return lake


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (Wanted(), [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (Wanted(queues=(r".\private$\BILLS",)), [13, 12, 11]),
        (Wanted(queues=(r"sales01\*", OTHER), label="order 1*"), [13, 12, 10, 1]),
        (Wanted(label="bill [11]"), [11]),
        (Wanted(message_ids=(message_id(3).lower(), message_id(77))), [3]),
        (
            Wanted(since=DAY + timedelta(minutes=95), until=DAY + timedelta(minutes=97)),
            [5, 4],
        ),
        (Wanted(where="kind = 'journaled' or message_class <> 'NORMAL'"), [12, 1]),
    ],
    ids=["all", "queue", "queues and label", "brackets", "ids", "times", "where"],
)
def test_the_right_messages_are_chosen_once_and_in_order(
    spark: SparkSession, lake: Lake, wanted: Wanted, numbers: list[int]
) -> None:
    found = chosen(lake.table(lake_tables.MESSAGES).read(spark), wanted)
    rows = found.select("message_id", "kind", "position").collect()
    rows.sort(key=lambda row: row["position"])
    assert [int(row["message_id"].rpartition("\\")[2]) for row in rows] == numbers
    assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
    if wanted == Wanted():
        assert rows[-1]["kind"] == "arrived"  # not the copy in the journal


def test_chunks_are_small_in_messages_and_in_bytes(spark: SparkSession) -> None:
    sizes = [10, 10, 10, 95, 10, 10, 10, 10, 300, 10]
    positions = [(place + 1, size, b"") for place, size in enumerate(sizes)]
    frame = spark.createDataFrame(positions, "position bigint, size bigint, body binary")
    rows = chunked(frame, messages=3, most_bytes=100).orderBy("position").collect()
    chunks = [row["chunk"] for row in rows]
    assert chunks == sorted(chunks)
    for chunk in set(chunks):
        held = [row["size"] for row in rows if row["chunk"] == chunk]
        assert len(held) <= 3
        assert sum(held[:-1]) <= 100  # the last one may be larger than a chunk


def test_what_is_sent_again_has_a_new_life(spark: SparkSession, lake: Lake) -> None:
    rows = lake.table(lake_tables.MESSAGES).read(spark).where("number in (12, 13)")
    plain = as_sent(rows, keep_ids=False, link=False)
    assert not {"message_id", "sent_at", "arrived_at", "queue", "lookup_id"} & set(plain.columns)
    linked = as_sent(rows, keep_ids=False, link=True).orderBy("label").collect()
    assert {row["message_class"] for row in linked} == {"NORMAL"}
    assert [row["correlation_id"] for row in linked] == [message_id(12), message_id(500)]
    kept = as_sent(rows, keep_ids=True, link=False)
    assert {"message_id", "sent_at"} <= set(kept.columns)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("true; drop table x", "it has ;"),
        ("true -- really", "it has --"),
        ("size > (SELECT max(1))", r"it asks another table \(select\)"),
        ("exists (table x)", r"it asks another table \(table\)"),
        ("rand() < 0.5", "rand does not depend on the message alone"),
        ("reflect('java.lang.Runtime', 'getRuntime') is null", "reflect does not depend"),
        ("label = 'it''s", "a ' is not closed"),
    ],
    ids=str,
)
def test_conditions_that_are_none_are_refused(text: str, problem: str) -> None:
    with pytest.raises(FalconMQError, match=problem):
        check_predicate(text)


@pytest.mark.parametrize(
    "text",
    ["label = 'select; -- rand()'", "`table` = 1", "label = 'it''s' and priority > 3"],
    ids=str,
)
def test_texts_may_hold_anything(text: str) -> None:
    check_predicate(text)


@pytest.mark.parametrize("text", ["labl = 'x'", "label", "count(*) > 1", "label = "], ids=str)
def test_conditions_that_spark_cannot_use_are_told(spark: SparkSession, text: str) -> None:
    frame = spark.createDataFrame([], "label string, priority int")
    with pytest.raises(FalconMQError, match="--where is no condition on a message") as caught:
        matching(frame, text)
    assert "label, priority" in caught.value.hint


@dataclass
class Watch:
    """Time that passes only in sleep."""

    time: float = 100.0
    naps: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.time += seconds


def test_a_pace_is_kept_from_the_start() -> None:
    watch, calls = Watch(), []
    pace = Pace(10.0, now=watch.now, sleep=watch.sleep)
    pace.wait(lambda: calls.append(1))
    assert watch.naps == []
    pace.sent(12)
    watch.time += 0.4  # sending took a while
    pace.wait(lambda: calls.append(1))
    assert watch.time == pytest.approx(101.2)
    assert len(calls) == len(watch.naps) == 2
    Pace(None).wait(lambda: calls.append(1))
    assert len(calls) == 2


def test_a_chunk_is_what_a_few_seconds_allow() -> None:
    assert [chunk_size(rate) for rate in (None, 0.01, 200, 1e9)] == [
        CHUNK_MOST,
        1,
        1000,
        CHUNK_MOST,
    ]
    with pytest.raises(FalconMQError, match="sends nothing"):
        chunk_size(0)


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 101], ids=repr)
def test_names_that_are_no_names_are_refused(name: str) -> None:
    with pytest.raises(FalconMQError, match="is no name for a replay"):
        check_name(name)


def test_patterns_are_taken_by_the_letter() -> None:
    assert glob(r"a.b*c?[d]$") == r"a\.b.*c.\[d\]\$"


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    engine, _ = clocked_engine()
    (tmp_path / "data").mkdir()
    with ControlledManager(tmp_path / "data", engine) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled


def labels(controlled: ControlledManager, queue: str = ORDERS) -> list[str]:
    with ControlClient.connect(f"unix:{controlled.directory}") as client:
        path = f"/queues/{queue.replace(chr(92), '%5C')}/receive"
        found = client.request("POST", path, {"count": 100, "peek": True})
    return [message["label"] for message in found["messages"]]


class StoppedError(Exception):
    """Somebody pressed Ctrl-C."""


def test_a_replay_goes_on_where_it_was_and_never_sends_twice(
    spark: SparkSession, tmp_path: Path, controlled: ControlledManager
) -> None:
    lake = Lake(tmp_path / "lake")
    put(lake, lake_tables.MESSAGES, ROWS)
    url = f"unix:{controlled.directory}"
    wanted = Wanted(queues=(QUEUE,))
    options = replay.Options("monday", ORDERS, url, wanted=wanted, rate=1.0)  # chunks of five
    watch = Watch()
    pace = Pace(1.0, now=watch.now, sleep=watch.sleep)

    dry = replay.run(spark, lake, replace(options, dry_run=True), tell_nobody)
    assert dry.read == 10
    assert [first["label"] for first in dry.facts["first"]][:2] == ["order 10", "order 9"]
    assert labels(controlled) == []

    def stop_after_a_chunk(progress: Progress) -> None:
        if progress.done == 5:
            raise StoppedError

    with pytest.raises(StoppedError):
        replay.run(spark, lake, options, stop_after_a_chunk, pace=pace)
    assert labels(controlled) == [f"order {n}" for n in (10, 9, 8, 7, 6)]
    state = read_state(lake, "monday")
    assert state is not None
    assert (state.sent, state.total, state.is_done) == (5, 10, False)

    # a crash between sending and noting it: the queue manager knows better
    (lake.path / "replays" / "monday" / "state.json").unlink()
    put(lake, lake_tables.MESSAGES, [archived(50)])  # came later: it is not meant
    told: list[Progress] = []
    summary = replay.run(spark, lake, options, told.append, pace=pace)
    assert labels(controlled) == [f"order {n}" for n in range(10, 0, -1)]
    assert (summary.written, summary.facts["before"], summary.facts["left"]) == ({ORDERS: 5}, 5, 0)
    assert (told[0].done, told[-1].done, told[-1].total) == (5, 10, 10)
    assert watch.time == pytest.approx(105)  # five messages, one a second, before the others

    summary = replay.run(spark, lake, options, tell_nobody)
    assert summary.written == {ORDERS: 0}
    assert len(labels(controlled)) == 10
    assert [state.is_done for state in read_states(lake)] == [True]

    with pytest.raises(FalconMQError, match="begun with other options: to was"):
        replay.run(spark, lake, replace(options, to=LEDGER), tell_nobody)
    with pytest.raises(FalconMQError, match="knows a replay monday, but this lake does not"):
        replay.run(spark, Lake(tmp_path / "other"), options, tell_nobody)


def test_ids_can_be_kept(spark: SparkSession, lake: Lake, controlled: ControlledManager) -> None:
    wanted = Wanted(message_ids=(message_id(4),))
    url = f"unix:{controlled.directory}"
    options = replay.Options("kept", LEDGER, url, wanted=wanted, keep_ids=True)
    replay.run(spark, lake, options, tell_nobody)
    with ControlClient.connect(url) as client:
        path = f"/queues/{LEDGER.replace(chr(92), '%5C')}/receive"
        (message,) = client.request("POST", path, {"count": 9, "peek": True})["messages"]
    assert message["id"] == message_id(4)
