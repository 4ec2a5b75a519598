"""metrics: is it healthy, and what got worse; the gold tables, from the ledger.

How to think about it. Everything in gold belongs to a day. A run asks the ledger which days its
news are about, makes all rows of those days anew and puts them in the place of the old ones; other
days stay as they are. So a run that dies leaves each table with the old or the new rows of a day,
and the next run, whose position is where it was, does those days again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql

from falconmq.spark.jobs import coverage
from falconmq.spark.jobs.backlog import DAY, SCHEMA, backlog_group
from falconmq.spark.jobs.lake_tables import (
    BACKLOG,
    CHANGES,
    DEAD_LETTERS,
    LATENCY,
    LEDGER_OPEN,
    THROUGHPUT,
)
from falconmq.spark.jobs.ledger import SOURCE as LEDGER_SOURCE
from falconmq.spark.jobs.ledger import all_lives
from falconmq.spark.jobs.running import Progress, Summary, Tell
from falconmq.spark.tables import BATCH

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from falconmq.spark.tables import Lake, Table

JOB: Final = "metrics"
SOURCE: Final = "metrics"
ALL: Final = "*"
_SPECS: Final = (LATENCY, THROUGHPUT, BACKLOG, DEAD_LETTERS, CHANGES)  # the position is in the last
_DAY_COLUMNS: Final = {
    LATENCY.name: "hour",
    THROUGHPUT.name: "minute",
    BACKLOG.name: "minute",
    DEAD_LETTERS.name: "hour",
    CHANGES.name: "day",
}
_NEEDED: Final = (
    *("arrived_at", "received_at", "left_at", "last_at", "state", "reason", "queue", "route"),
    *("size", "latency_seconds"),
)
# measure -> how much worse is worse: a factor, and what it must exceed besides
_WORSE: Final = {"p95_seconds": (1.5, 1.0), "dead_letters": (1.2, 0.0), "oldest_seconds": (2.0, 60)}


@dataclass(frozen=True)
class Options:
    """Nothing to choose but whether to do it."""

    dry_run: bool = False


def run(spark: SparkSession, lake: Lake, options: Options, tell: Tell) -> Summary:
    """Bring the gold tables up to the ledger."""
    summary = Summary(JOB, is_dry=options.dry_run)
    with lake.lock(JOB):
        newest = lake.table(LEDGER_OPEN).last(LEDGER_SOURCE)
        done = lake.table(CHANGES).last(SOURCE)
        position = 0 if done is None else int(done.facts["ledger"])
        if newest is None or newest.batch == position:
            return summary
        lives = all_lives(spark, lake)
        days = touched_days(lives, position)
        summary.read = len(days)
        summary.facts["days"] = [day.isoformat() for day in days]
        if options.dry_run:
            return summary
        lives = _relevant(lives, days)
        until = _until(newest.facts)
        # The last day will be touched again soon: its rows are kept apart from the others.
        parts = [part for part in (days[:-1], days[-1:]) if part] or [[]]
        for index, part in enumerate(parts):
            reached = newest.batch if index == len(parts) - 1 else position
            tell(Progress("measuring days", sum(map(len, parts[:index])), len(days), "days"))
            _write(spark, lake, lives, part, until, reached, summary)
        tell(Progress("measuring days", len(days), len(days), "days"))
        for spec in _SPECS:
            lake.table(spec).sweep(3600.0)
    return summary


def touched_days(lives: DataFrame, position: int) -> list[date]:
    """The days that rows which changed after a batch of the ledger are about."""
    changed = lives.where(sql.col("updated_batch") > position)
    times = sql.array("arrived_at", "received_at", "left_at", "last_at")
    moments = changed.select(sql.explode(times).alias("at")).where("at is not null")
    rows = moments.select(sql.to_date("at").alias("day")).distinct().collect()
    return sorted(row["day"] for row in rows)


def _relevant(lives: DataFrame, days: Sequence[date]) -> DataFrame:
    """What the tables of some days are made of: the day before is needed, to compare."""
    if not days:
        return lives
    start = _start(days[0] - timedelta(days=1))
    recent = (sql.col("last_at") >= sql.lit(start)) | sql.col("left_at").isNull()
    return lives.where(recent).select(*_NEEDED).localCheckpoint()


def latency(lives: DataFrame, days: Sequence[date]) -> DataFrame:
    """Percentiles by hour of arrival; for each queue and route, and for all."""
    rows = lives.where(_on("arrived_at", days)).where("latency_seconds is not null")
    grouped = _with_all(rows, sql.date_trunc("hour", "arrived_at").alias("hour"), "latency_seconds")
    return grouped.groupBy("hour", "queue", "route").agg(
        sql.count("*").alias("messages"), *_percentiles()
    )


def _percentiles() -> list[Column]:
    shares = {"p50_seconds": 0.5, "p95_seconds": 0.95, "p99_seconds": 0.99}
    made = [
        sql.percentile_approx("latency_seconds", share, 10_000).alias(name)
        for name, share in shares.items()
    ]
    return [*made, sql.max("latency_seconds").alias("max_seconds")]


def _with_all(rows: DataFrame, *columns: Column | str) -> DataFrame:
    """Each row twice: for its queue and route, and for all."""
    queue = sql.coalesce("queue", sql.lit("?"))
    pairs = sql.array(
        sql.struct(queue.alias("queue"), sql.coalesce("route", sql.lit("?")).alias("route")),
        sql.struct(sql.lit(ALL).alias("queue"), sql.lit(ALL).alias("route")),
    )
    return rows.select(*columns, sql.inline(pairs))


def throughput(lives: DataFrame, days: Sequence[date]) -> DataFrame:
    """Messages and bytes by minute."""

    def side(time: str, arrived: int) -> DataFrame:
        return lives.where(_on(time, days)).select(
            sql.date_trunc("minute", time).alias("minute"),
            sql.coalesce("queue", sql.lit("?")).alias("queue"),
            sql.lit(arrived).alias("arrived"),
            sql.lit(1 - arrived).alias("received"),
            (sql.coalesce("size", sql.lit(0)) * arrived).alias("bytes"),
        )

    both = side("arrived_at", 1).unionByName(side("received_at", 0))
    sums = [sql.sum(name).alias(name) for name in ("arrived", "received", "bytes")]
    return both.groupBy("minute", "queue").agg(*sums)


def backlog(lives: DataFrame, days: Sequence[date], until: datetime) -> DataFrame:
    """Depth and age by minute, of the queues in which messages wait or waited."""
    starts = [int(_start(day).timestamp() * 1e6) for day in days]
    here = lives.where("arrived_at is not null").select(
        sql.coalesce("queue", sql.lit("?")).alias("queue"),
        sql.unix_micros("arrived_at").alias("arrived"),
        sql.unix_micros("left_at").alias("left"),
        sql.explode(sql.array(*map(sql.lit, starts)) if starts else sql.array()).alias("start"),
    )
    overlapping = here.where(f"arrived < start + {DAY} and (left is null or left >= start)")
    end = int(until.timestamp() * 1e6)

    def group(rows: pa.Table) -> pa.Table:
        return backlog_group(rows, end)

    return overlapping.groupBy("queue", "start").applyInArrow(group, SCHEMA)


def dead_letters(lives: DataFrame, days: Sequence[date]) -> DataFrame:
    """By hour and cause."""
    rows = lives.where("state = 'dead-lettered'").where(_on("last_at", days))
    return rows.groupBy(
        sql.date_trunc("hour", "last_at").alias("hour"),
        sql.coalesce("queue", sql.lit("?")).alias("queue"),
        sql.coalesce("route", sql.lit("?")).alias("route"),
        sql.coalesce("reason", sql.lit("?")).alias("cause"),
    ).agg(sql.count("*").alias("messages"))


def changes(lives: DataFrame, backlogs: DataFrame, days: Sequence[date]) -> DataFrame:
    """Each day beside the day before, and whether that is worse."""
    known = sorted({*days, *(day - timedelta(days=1) for day in days)})
    measured = _measures(lives, known).unionByName(_oldest(backlogs, known))
    now = measured.withColumnRenamed("value", "now")
    before = measured.select(
        sql.date_add("day", 1).alias("day"),
        "queue",
        "route",
        "measure",
        sql.col("value").alias("before"),
    )
    both = before.join(now, ["day", "queue", "route", "measure"], "full")
    both = both.where(sql.col("day").isin(list(days)))
    return both.join(_comparable(measured), "day").withColumn("is_worse", _is_worse())


def _comparable(measured: DataFrame) -> DataFrame:
    """Days, and whether anything was measured on the day before."""
    days = measured.select("day").distinct()
    earlier = days.select(sql.date_add("day", 1).alias("day"), sql.lit(True).alias("has_before"))
    return days.join(earlier, "day", "left")


def _measures(lives: DataFrame, days: Sequence[date]) -> DataFrame:
    came = _with_all(
        lives.where(_on("arrived_at", days)),
        sql.to_date("arrived_at").alias("day"),
        "latency_seconds",
    )
    came = came.groupBy("day", "queue", "route").agg(
        sql.count("*").cast("double").alias("messages"),
        sql.percentile_approx("latency_seconds", 0.95, 10_000).alias("p95_seconds"),
    )
    dead = _with_all(
        lives.where("state = 'dead-lettered'").where(_on("last_at", days)),
        sql.to_date("last_at").alias("day"),
    )
    dead = dead.groupBy("day", "queue", "route").agg(
        sql.count("*").cast("double").alias("dead_letters")
    )
    return _long(came, "messages", "p95_seconds").unionByName(_long(dead, "dead_letters"))


def _oldest(backlogs: DataFrame, days: Sequence[date]) -> DataFrame:
    rows = backlogs.where(_on("minute", days))
    rows = rows.groupBy(
        sql.to_date("minute").alias("day"), "queue", sql.lit(ALL).alias("route")
    ).agg(sql.max("oldest_seconds").alias("oldest_seconds"))
    return _long(rows, "oldest_seconds")


def _long(rows: DataFrame, *measures: str) -> DataFrame:
    return rows.unpivot(("day", "queue", "route"), measures, "measure", "value")


def _is_worse() -> Column:
    before, now = sql.coalesce("before", sql.lit(0.0)), sql.coalesce("now", sql.lit(0.0))
    worse = sql.lit(False)  # of a day without a day before it nothing is
    for measure, (factor, more) in _WORSE.items():
        is_more = (now > before * factor) & (now > before + more)
        worse = worse | ((sql.col("measure") == measure) & is_more)
    return worse & sql.coalesce("has_before", sql.lit(False))


def _write(
    spark: SparkSession,
    lake: Lake,
    lives: DataFrame,
    days: Sequence[date],
    until: datetime,
    reached: int,
    summary: Summary,
) -> None:
    """Make the rows of some days anew, table by table."""
    backlogs = lake.table(BACKLOG)
    made: dict[str, Callable[[], DataFrame]] = {
        LATENCY.name: lambda: latency(lives, days),
        THROUGHPUT.name: lambda: throughput(lives, days),
        BACKLOG.name: lambda: backlog(lives, days, until),
        DEAD_LETTERS.name: lambda: dead_letters(lives, days),
        CHANGES.name: lambda: changes(lives, backlogs.read(spark), days),
    }
    for spec in _SPECS:
        rows = _rewrite(spark, lake.table(spec), made[spec.name](), days, reached)
        summary.add(spec.name, rows)


def _rewrite(
    spark: SparkSession, table: Table, rows: DataFrame, days: Sequence[date], reached: int
) -> int:
    """Put rows of days in the place of the old ones; rows of other days beside them stay."""
    names = {day.isoformat() for day in days}
    affected = [c for c in table.counting() if names & set(c.facts["days"])]
    others = {name for commit in affected for name in commit.facts["days"]} - names
    if others:
        column = _DAY_COLUMNS[table.name]
        kept = table.read(spark, affected).drop(BATCH)
        rows = rows.select(*table.columns).unionByName(kept.where(~_on(column, days)))
    last = table.last(SOURCE)
    facts: dict[str, Any] = {"days": sorted(names | others), "ledger": reached}
    batch = 1 if last is None else last.batch + 1
    return table.rewrite(rows, affected, source=SOURCE, batch=batch, facts=facts).rows


def _on(column: str, days: Sequence[date]) -> Column:
    return sql.coalesce(sql.to_date(column).isin(list(days)), sql.lit(False))


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _until(plan: dict[str, Any]) -> datetime:
    """What comes later is not known yet."""
    covers = coverage.from_json(plan["covers"]).values()
    return max((cover.through for cover in covers), default=datetime.now(UTC))
