"""What the lake knows about a period, in the plain values of a report.

Spark adds up; only sums come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from falconmq.spark.jobs import lake_tables
from falconmq.spark.jobs.running import rejects_of
from falconmq.spark.report.close_up import close_up
from falconmq.spark.report.coverage import coverage_of, rejecting_jobs
from falconmq.spark.report.facts import (
    Finding,
    Headline,
    KindCount,
    Period,
    Rejects,
    Report,
    Route,
    Series,
    Timeline,
)
from falconmq.spark.report.periods import (
    bucket,
    during,
    moment,
    moment_or_none,
    moments,
    seconds,
    step_of,
    timeline,
)
from falconmq.spark.report.words import KINDS
from falconmq.spark.tables import Lake, TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOUR: Final = timedelta(hours=1)
QUEUES_MOST: Final = 8  # in the plot of waits
CAUSES_MOST: Final = 5
ROUTES_MOST: Final = 12
LISTED: Final = 20  # findings of each kind
_ALL: Final = "*"
# States of the ledger: messages that came to their queue although no log here tells of it, and
# messages that ended on their way.
_REACHED: Final = "('received', 'reached')"
_FAILED: Final = "('dead-lettered', 'expired', 'purged', 'queue deleted', 'rejected', 'refused')"


class Gatherer:
    """One lake, one session."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake

    def known(self) -> Period | None:
        """The hours that gold knows; None if it is empty."""
        minutes = self._read(lake_tables.THROUGHPUT).selectExpr("minute as at")
        hours = self._read(lake_tables.LATENCY).selectExpr("hour as at")
        found = minutes.unionByName(hours).selectExpr(
            "unix_seconds(min(at))", "unix_seconds(max(at))"
        )
        first, last = found.collect()[0]
        if first is None:
            return None
        return Period(moment(first // 3600 * 3600), moment(last // 3600 * 3600) + HOUR)

    def report(self, period: Period, made_at: datetime) -> Report:
        now, earlier = self._headlines(period)
        near = close_up(self._spark, self._lake, period)
        dead_letters, died, died_before = self._dead_letters(period)
        return Report(
            period=period,
            made_at=made_at,
            now=replace(now, dead_letters=died),
            earlier=earlier and replace(earlier, dead_letters=died_before),
            throughput=near.throughput if near else self._throughput(period),
            latency=near.latency if near else self._latency(period),
            is_close=near is not None,
            backlog=self._backlog(period),
            dead_letters=dead_letters,
            routes=self._routes(period),
            kinds=self._kinds(period),
            findings=self._findings(period),
            coverage=coverage_of(self._lake),
            rejects=self._rejects(),
        )

    def _read(self, spec: TableSpec) -> DataFrame:
        return self._lake.table(spec).read(self._spark)

    def _within(self, spec: TableSpec, column: str, period: Period) -> DataFrame:
        return self._read(spec).where(during(column, period))

    def _lives(self) -> DataFrame:
        """All messages, ended or not, each with the second it was sent."""
        wanted = (
            "coalesce(sent_at, begun_at) as sent",
            "case when arrived_at is not null then latency_seconds end as latency_seconds",
            f"arrived_at is not null or state in {_REACHED} as is_delivered",
            f"arrived_at is null and state in {_FAILED} as is_failed",
        )
        ended, open_ = (
            self._read(spec).selectExpr(*wanted)
            for spec in (lake_tables.LEDGER, lake_tables.LEDGER_OPEN)
        )
        return ended.unionByName(open_)

    def _headlines(self, period: Period) -> tuple[Headline, Headline | None]:
        """Of the period and of the one before, without dead letters.

        None if the lake begins later: a comparison with half a period would mislead.
        """
        before = period.before()
        columns = ["unix_seconds(min(sent))"]
        p95 = "percentile_approx(latency_seconds, 0.95, 10000)"
        for then in (during("sent", period), during("sent", before)):
            columns += [
                f"count_if({then})",
                f"count_if({then} and is_delivered)",
                f"{p95} filter (where {then} and latency_seconds is not null)",
                f"count_if({then} and is_failed)",
            ]
        row = self._lives().selectExpr(*columns).collect()[0]
        first, now, earlier = row[0], Headline(*row[1:5]), Headline(*row[5:9])
        is_known = first is not None and moment(first) <= before.since + before.length / 10
        return now, earlier if is_known else None

    def _throughput(self, period: Period) -> Timeline:
        step = step_of(period)
        minutes = step / timedelta(minutes=1)
        rows = (
            self._within(lake_tables.THROUGHPUT, "minute", period)
            .groupBy(bucket("minute", period, step))
            .agg({"arrived": "sum", "received": "sum"})
            .selectExpr("place", "`sum(arrived)` as arrived", "`sum(received)` as received")
            .collect()
        )
        if not rows:
            return Timeline()
        found = {row["place"]: row for row in rows}
        first, last = min(found), max(found)
        begins = moments(period, step)

        def values(column: str) -> tuple[float | None, ...]:
            return tuple(
                None
                if not first <= place <= last
                else (found[place][column] or 0) / minutes
                if place in found
                else 0.0
                for place in range(len(begins))
            )

        names = ("arrived", "received")
        return Timeline(begins, step, tuple(Series(name, values(name)) for name in names))

    def _latency(self, period: Period) -> Timeline:
        """Percentiles cannot be added up: of several hours the worst one counts."""
        names = ("p50", "p95", "p99")
        frame = self._within(lake_tables.LATENCY, "hour", period)
        frame = frame.where(f"queue = '{_ALL}' and route = '{_ALL}'")
        step = max(HOUR, step_of(period))
        rows = frame.groupBy(bucket("hour", period, step)).agg(
            *(self._max(f"{name}_seconds", name) for name in names)
        )
        cells = [(name, row["place"], row[name]) for row in rows.collect() for name in names]
        return timeline(period, step, cells, names)

    def _backlog(self, period: Period) -> Timeline:
        step = step_of(period)
        frame = self._within(lake_tables.BACKLOG, "minute", period).where(f"queue <> '{_ALL}'")
        rows = frame.groupBy("queue").agg(self._max("oldest_seconds", "most"))
        longest = rows.orderBy("most", ascending=False).limit(QUEUES_MOST).collect()
        queues = [row["queue"] for row in longest if row["most"]]
        chosen = frame.where(frame.queue.isin(queues))
        found = chosen.groupBy("queue", bucket("minute", period, step)).agg(
            self._max("oldest_seconds", "most")
        )
        cells = [(row["queue"], row["place"], row["most"]) for row in found.collect()]
        return timeline(period, step, cells, queues)

    def _dead_letters(self, period: Period) -> tuple[Timeline, int, int]:
        """By cause; and how many there were, in the period and in the one before."""
        step = max(HOUR, step_of(period))
        both = Period(period.before().since, period.until)
        found = (
            self._within(lake_tables.DEAD_LETTERS, "hour", both)
            .groupBy("cause", bucket("hour", period, step))
            .agg({"messages": "sum"})
            .selectExpr("coalesce(cause, 'unknown') as cause", "place", "`sum(messages)` as n")
            .collect()
        )
        before = sum(row["n"] for row in found if row["place"] < 0)
        rows = [row for row in found if row["place"] >= 0]
        sums: dict[str, int] = {}
        for row in rows:
            sums[row["cause"]] = sums.get(row["cause"], 0) + row["n"]
        causes = sorted(sums, key=lambda cause: (-sums[cause], cause))
        named = causes[:CAUSES_MOST]
        cells: dict[tuple[str, int], float] = {}
        for row in rows:
            key = (row["cause"] if row["cause"] in named else "others", row["place"])
            cells[key] = cells.get(key, 0) + row["n"]
        names = [*named, "others"] if len(causes) > CAUSES_MOST else named
        drawn = timeline(period, step, [(*key, n) for key, n in cells.items()], names)
        return drawn, sum(sums.values()), before

    def _routes(self, period: Period) -> tuple[Route, ...]:
        frame = self._within(lake_tables.LATENCY, "hour", period).where(f"route <> '{_ALL}'")
        rows = (
            frame.groupBy("route")
            .agg({"messages": "sum", "p95_seconds": "max"})
            .selectExpr("route", "`sum(messages)` as n", "`max(p95_seconds)` as p95")
            .orderBy("n", ascending=False)
            .limit(ROUTES_MOST)
            .collect()
        )
        return tuple(Route(row["route"], row["n"], row["p95"]) for row in rows)

    def _found(self, period: Period) -> DataFrame:
        """Findings that touch the period; those without a time belong to every one."""
        frame = self._read(lake_tables.FINDINGS)
        first = f"coalesce(unix_seconds(first_at), {seconds(period.since)})"
        last = f"coalesce(unix_seconds(last_at), {first})"
        since, until = seconds(period.since), seconds(period.until)
        return frame.where(f"{first} < {until} and {last} >= {since}")

    def _kinds(self, period: Period) -> tuple[KindCount, ...]:
        rows = (
            self._found(period)
            .groupBy("kind", "route")
            .agg({"*": "count", "messages": "sum", "first_at": "min", "last_at": "max"})
            .selectExpr(
                "kind",
                "route",
                "`count(1)` as findings",
                "`sum(messages)` as messages",
                "unix_seconds(`min(first_at)`) as first",
                "unix_seconds(`max(last_at)`) as last",
            )
            .collect()
        )
        order = list(KINDS)
        kinds = {row["kind"] for row in rows}
        ranked = sorted(kinds, key=lambda k: (order.index(k) if k in order else len(order), k))
        return tuple(_kind(kind, [row for row in rows if row["kind"] == kind]) for kind in ranked)

    def _findings(self, period: Period) -> tuple[Finding, ...]:
        frame = self._found(period).selectExpr(
            "kind",
            "severity",
            "explanation",
            "message_id",
            "queue",
            "route",
            "unix_seconds(first_at) as first",
            "unix_seconds(last_at) as last",
            "messages",
            "row_number() over (partition by kind order by messages desc, first_at, message_id) "
            "as place",
        )
        rows = frame.where(f"place <= {LISTED}").orderBy("kind", "place").collect()
        return tuple(
            Finding(
                row["kind"],
                row["severity"] or "",
                row["explanation"] or "",
                row["message_id"],
                row["queue"],
                row["route"],
                moment_or_none(row["first"]),
                moment_or_none(row["last"]),
                row["messages"] or 0,
            )
            for row in rows
        )

    def _rejects(self) -> tuple[Rejects, ...]:
        found = []
        for job in rejecting_jobs(self._lake):
            table = self._lake.table(rejects_of(job))
            counts = table.read(self._spark).groupBy("reason").count()
            rows = counts.orderBy("count", ascending=False).limit(3).collect()
            if rows:
                reasons = tuple((row["reason"] or "unknown", row["count"]) for row in rows)
                found.append(Rejects(job, table.rows, reasons))
        return tuple(found)

    def _max(self, column: str, name: str) -> Any:
        from pyspark.sql.functions import expr  # noqa: PLC0415 - pyspark is optional

        return expr(f"max({column})").alias(name)


def _kind(kind: str, rows: Sequence[Any]) -> KindCount:
    def total(row: Any) -> int:
        return row["messages"] or 0

    firsts = [row["first"] for row in rows if row["first"] is not None]
    lasts = [row["last"] for row in rows if row["last"] is not None] or firsts
    ranked = sorted((row for row in rows if row["route"]), key=lambda row: -total(row))
    return KindCount(
        kind,
        sum(row["findings"] for row in rows),
        sum(map(total, rows)),
        tuple(row["route"] for row in ranked),
        moment(min(firsts)) if firsts else None,
        moment(max(lasts)) if lasts else None,
    )
