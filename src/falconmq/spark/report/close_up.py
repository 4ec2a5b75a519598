"""The plots of a lake that knows only some minutes: a first try, a demo, a test.

The gold tables go by minutes and hours, and would show one lonely dot. So short stories are drawn
from the ledger itself, second by second.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from falconmq.spark.jobs import lake_tables
from falconmq.spark.report.facts import Period, Series, Timeline
from falconmq.spark.report.periods import bucket, during, moment, moments, timeline
from falconmq.spark.tables import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST: Final = timedelta(minutes=15)
_POINTS_MOST: Final = 100
_SECONDS: Final = (1, 2, 5, 10)
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class CloseUp(NamedTuple):
    """Plots by seconds."""

    throughput: Timeline  # messages a second
    latency: Timeline


def close_up(spark: SparkSession, lake: Lake, period: Period) -> CloseUp | None:
    """None if more is known of the period than a few minutes, or nothing at all."""
    lives = _lives(spark, lake).where(during("at", period))
    first, last = lives.selectExpr("unix_seconds(min(at))", "unix_seconds(max(last))").collect()[0]
    if first is None:
        return None
    short = Period(moment(first), moment(max(first, last or 0) + 1))
    if short.length > LONGEST:
        return None
    step = next(
        size
        for size in (timedelta(seconds=seconds) for seconds in _SECONDS)
        if short.length / size <= _POINTS_MOST
    )
    return CloseUp(_throughput(lives, short, step), _latency(lives, short, step))


def _lives(spark: SparkSession, lake: Lake) -> DataFrame:
    wanted = (
        "coalesce(begun_at, sent_at, first_at) as at",
        "greatest(begun_at, sent_at, first_at, arrived_at, received_at, left_at) as last",
        "arrived_at",
        "received_at",
        "case when arrived_at is not null then latency_seconds end as latency",
    )
    ended, open_ = (
        lake.table(spec).read(spark).selectExpr(*wanted)
        for spec in (lake_tables.LEDGER, lake_tables.LEDGER_OPEN)
    )
    return ended.unionByName(open_)


def _throughput(lives: DataFrame, period: Period, step: timedelta) -> Timeline:
    begins = moments(period, step)
    series = []
    for name in ("arrived", "received"):
        frame = lives.where(during(f"{name}_at", period))
        counts = frame.groupBy(bucket(f"{name}_at", period, step)).count().collect()
        found = {row["place"]: row["count"] for row in counts}
        rates = (found.get(place, 0) / step.total_seconds() for place in range(len(begins)))
        series.append(Series(name, tuple(rates)))
    return Timeline(begins, step, tuple(series))


def _latency(lives: DataFrame, period: Period, step: timedelta) -> Timeline:
    from pyspark.sql.functions import percentile_approx  # noqa: PLC0415 - pyspark is optional

    frame = lives.where(f"latency is not null and {during('arrived_at', period)}")
    rows = (
        frame.groupBy(bucket("arrived_at", period, step))
        .agg(*(percentile_approx("latency", share).alias(n) for n, share in _PERCENTILES.items()))
        .collect()
    )
    cells = [(name, row["place"], row[name]) for row in rows for name in _PERCENTILES]
    return timeline(period, step, cells, tuple(_PERCENTILES))
