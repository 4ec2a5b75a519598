"""metrics: gold tables of the days that changed, and only of those."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.spark.jobs import metrics
from falconmq.spark.jobs.backlog import DAY, MINUTE, NEVER, at_moments, of_day
from falconmq.spark.jobs.coverage import ALWAYS, Cover, to_json
from falconmq.spark.jobs.lake_tables import (
    BACKLOG,
    CHANGES,
    DEAD_LETTERS,
    LATENCY,
    LEDGER_OPEN,
    THROUGHPUT,
)
from falconmq.spark.jobs.running import tell_nobody
from falconmq.spark.tables import Lake
from tests.spark.made_logs import DiedError, dying_after

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUEUE, ROUTE = r"SALES02\private$\orders", "SALES01 -> SALES02"
NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
GOLD = (LATENCY, THROUGHPUT, BACKLOG, DEAD_LETTERS, CHANGES)


@given(
    messages=st.lists(
        st.tuples(st.integers(0, 50), st.one_of(st.none(), st.integers(0, 20))), min_size=1
    ),
    moments=st.lists(st.integers(0, 80), min_size=1),
)
def test_depth_and_oldest_are_what_counting_says(
    messages: list[tuple[int, int | None]], moments: list[int]
) -> None:
    spans = [(came, NEVER if stayed is None else came + stayed) for came, stayed in messages]
    arrived = np.array([came for came, _ in spans], np.int64)
    left = np.array([gone for _, gone in spans], np.int64)
    depth, oldest = at_moments(arrived, left, np.array(moments, np.int64))
    for moment, deep, old in zip(moments, depth.tolist(), oldest.tolist(), strict=True):
        there = [came for came, gone in spans if came <= moment < gone]
        assert deep == len(there)
        assert old == min(there, default=moment)


def test_a_day_has_the_minutes_in_which_something_waits_comes_or_goes() -> None:
    arrived = np.array([10 * MINUTE + 5, 10 * MINUTE + 7, 1430 * MINUTE], np.int64)
    left = np.array([12 * MINUTE, 10 * MINUTE + 9, NEVER], np.int64)
    minutes, depth, oldest = of_day(arrived, left, 0, DAY + 5)
    assert (minutes // MINUTE).tolist()[:3] == [10, 11, 12]
    assert depth.tolist()[:3] == [1, 1, 0]
    assert oldest[1] == pytest.approx((2 * MINUTE - 6) / 1e6)
    assert (minutes // MINUTE).tolist()[3:] == list(range(1430, 1440))
    # nothing is said of times that are not known yet
    minutes, _, _ = of_day(arrived, left, 0, 1435 * MINUTE)
    assert minutes.max() // MINUTE == 1434


def life(number: int, at: datetime, batch: int, **facts: Any) -> dict[str, Any]:
    return {
        "message_id": str(number),
        "arrived_at": at,
        "received_at": at + timedelta(seconds=90),
        "left_at": at + timedelta(seconds=90),
        "last_at": at + timedelta(seconds=90),
        "state": "received",
        "queue": QUEUE,
        "route": ROUTE,
        "size": 100,
        "latency_seconds": number / 10,
        "updated_batch": batch,
        **facts,
    }


def write(spark: SparkSession, lake: Lake, rows: list[dict[str, Any]], batch: int) -> None:
    cover = Cover("m", "SALES02", ALWAYS, NOON + timedelta(days=1))
    plan = {"covers": to_json({"m": cover})}
    frame = spark.createDataFrame(rows, LEDGER_OPEN.schema)
    lake.table(LEDGER_OPEN).replace(frame, source="ledger", batch=batch, facts=plan)


def gold(spark: SparkSession, lake: Lake) -> dict[str, list[tuple[Any, ...]]]:
    tables = {spec.name: lake.table(spec).read(spark).drop("batch").collect() for spec in GOLD}
    return {name: sorted(map(tuple, rows), key=str) for name, rows in tables.items()}


@pytest.mark.slow
def test_gold_tables_follow_the_ledger_day_by_day(spark: SparkSession, tmp_path: Path) -> None:
    # given a day of 20 messages, one of them a dead letter, and a day before it without any
    lake = Lake(tmp_path / "lake")
    before = [life(n, NOON - timedelta(days=1, seconds=-n), 1) for n in range(1, 11)]
    today = [life(n, NOON + timedelta(seconds=n), 1) for n in range(1, 21)]
    dead = {"state": "dead-lettered", "reason": "NACK_Q_PURGED", "received_at": None}
    today[4] |= dead
    write(spark, lake, before + today, 1)
    dry = metrics.run(spark, lake, metrics.Options(dry_run=True), tell_nobody)
    assert dry.facts["days"] == ["2026-11-15", "2026-11-16"]
    assert lake.table(LATENCY).commits() == []
    # when the metrics die on their way and run again
    with dying_after(7), pytest.raises(DiedError):
        metrics.run(spark, lake, metrics.Options(), tell_nobody)
    metrics.run(spark, lake, metrics.Options(), tell_nobody)
    # then the tables say what happened
    found = gold(spark, lake)
    noon = NOON.replace(tzinfo=None)
    latency = {row[:3]: row[3:] for row in found["gold/latency"]}
    assert latency[noon, "*", "*"] == (20, 1.0, 1.9, 2.0, 2.0)
    assert latency[noon, QUEUE, ROUTE] == latency[noon, "*", "*"]
    assert len(latency) == 4
    throughput = {row[0]: row[2:] for row in found["gold/throughput"] if row[0] >= noon}
    assert throughput == {
        noon: (20, 0, 2000),
        noon + timedelta(minutes=1): (0, 19, 0),
    }
    backlog = {row[0]: row[2] for row in found["gold/backlog"] if row[0] >= noon}
    assert backlog == {noon: 20, noon + timedelta(minutes=1): 0}
    assert found["gold/dead_letters"] == [(noon, QUEUE, ROUTE, "NACK_Q_PURGED", 1)]
    worse = {row[3] for row in found["gold/changes"] if row[6]}
    assert worse == {"dead_letters"}
    day = {(r[1], r[3]): r[4:6] for r in found["gold/changes"] if r[0] == date(2026, 11, 16)}
    assert day["*", "messages"] == (10.0, 20.0)
    # and a day that changes is made anew, the others stay as they are
    assert metrics.run(spark, lake, metrics.Options(), tell_nobody).read == 0
    write(spark, lake, [*before, *today, life(21, NOON, 2)], 2)
    summary = metrics.run(spark, lake, metrics.Options(), tell_nobody)
    assert summary.facts["days"] == ["2026-11-16"]
    again = gold(spark, lake)
    assert {row[:3]: row[3] for row in again["gold/latency"]}[noon, "*", "*"] == 21
    assert len(again["gold/latency"]) == 4
    assert len(again["gold/changes"]) == len(found["gold/changes"])
