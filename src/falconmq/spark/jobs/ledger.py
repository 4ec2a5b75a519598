"""ledger: where each message is, and what is wrong; one row for each message's life.

How to think about it. A batch takes the events that were archived since the last one, brings them
together with the rows that are still open, makes those rows anew, and lets go of the ones that are
over. Rows that are over go to silver/ledger, the others stay in silver/ledger_open, whose commit
says how far the ledger is. Events of a message whose row is over already open that row again.

A batch writes silver/ledger, silver/findings, silver/streams and silver/ledger_open, in this order;
one that dies in between is done again by its own plan (`falconmq.spark.jobs.steps`).

How a row is made: `merging` collects what is known, `links` learns from it who is where and whose
clock is wrong, `judging` says what became of each message. All of that is numpy on record batches;
Spark brings together what belongs together. There is no join of streams and no state but tables.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql

from falconmq.spark.jobs import coverage, findings, gathering, testimony
from falconmq.spark.jobs.clocks import Link, combined, offsets
from falconmq.spark.jobs.judging import judging
from falconmq.spark.jobs.lake_tables import (
    EVENTS,
    FINDINGS,
    LEDGER,
    LEDGER_OPEN,
    MESSAGES,
    STREAMS,
)
from falconmq.spark.jobs.links import GATHERED, addresses_of, gather_batches, learnt
from falconmq.spark.jobs.running import Progress, Summary, Tell, rejects_of
from falconmq.spark.jobs.steps import Step, next_step
from falconmq.spark.jobs.streams import folded, runs_of
from falconmq.spark.jobs.view import Limits, View
from falconmq.spark.tables import BATCH, Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from falconmq.spark.tables import Lake

JOB: Final = "ledger"
REJECTS: Final = rejects_of(JOB)
SOURCE: Final = "ledger"
OVER: Final = "ledger:over"  # findings of rows that are over
OPEN: Final = "ledger:open"  # and of those that are not: made anew with each batch
_KEEP_SECONDS: Final = 3600.0  # readers of replaced files have so long to finish


@dataclass(frozen=True)
class Options:
    """What counts as wrong, and how much is done at a time."""

    late_seconds: float = 60.0
    stuck_seconds: float = 3600.0
    grace_seconds: float = 300.0
    clock_tolerance_seconds: float = 2.0
    settle_seconds: float = 3600.0
    forget_seconds: float = 7 * 24 * 3600.0
    rows: int = 2_000_000  # events in one batch, about
    dry_run: bool = False

    @property
    def limits(self) -> Limits:
        return Limits(
            self.late_seconds,
            self.stuck_seconds,
            self.grace_seconds,
            self.clock_tolerance_seconds,
            self.settle_seconds,
            self.forget_seconds,
        )


def run(spark: SparkSession, lake: Lake, options: Options, tell: Tell) -> Summary:
    """Bring the ledger up to what is archived."""
    summary = Summary(JOB, is_dry=options.dry_run)
    with lake.lock(JOB):
        ledger = _Ledger(spark, lake, options, summary, tell)
        if options.dry_run:
            summary.read = ledger.rows_to_read()
            return summary
        while ledger.do_batch():
            pass
        ledger.sweep()
        summary.facts["open"] = lake.table(LEDGER_OPEN).rows
        summary.facts["findings"] = lake.table(FINDINGS).rows
    return summary


def all_lives(spark: SparkSession, lake: Lake) -> DataFrame:
    """Every message that the ledger knows, over or not."""
    over, still = lake.table(LEDGER).read(spark), lake.table(LEDGER_OPEN).read(spark)
    return over.unionByName(still).drop(BATCH)


class _Ledger:
    def __init__(
        self, spark: SparkSession, lake: Lake, options: Options, summary: Summary, tell: Tell
    ) -> None:
        self._spark, self._options = spark, options
        self._summary, self._tell = summary, tell
        self._events, self._messages = lake.table(EVENTS), lake.table(MESSAGES)
        self._over, self._open = lake.table(LEDGER), lake.table(LEDGER_OPEN)
        self._findings, self._streams = lake.table(FINDINGS), lake.table(STREAMS)
        self._rejects = lake.table(REJECTS)
        self._tables = (self._over, self._streams, self._open)

    def rows_to_read(self) -> int:
        last = next_step(self._tables, SOURCE).last
        return sum(commit.rows for commit in self._events.commits()[last.get("events", 0) :])

    def sweep(self) -> None:
        for table in (*self._tables, self._findings):
            table.sweep(_KEEP_SECONDS)

    def do_batch(self) -> bool:
        """The next batch; False if there is nothing to do."""
        step = next_step(self._tables, SOURCE)
        plan = step.plan or self._plan(step.last)
        if plan is None:
            return False
        total = self.rows_to_read()
        self._tell(Progress("following messages", self._summary.read, self._summary.read + total))
        new = self._events.commits()[step.last.get("events", 0) : plan["events"]]
        messages = self._messages.commits()[step.last.get("messages", 0) : plan["messages"]]
        self._write(step, plan, new, messages)
        self._summary.read += sum(commit.rows for commit in new)
        self._tell(Progress("following messages", self._summary.read))
        return True

    def _plan(self, last: dict[str, Any]) -> dict[str, Any] | None:
        """How many commits of the archive this batch goes up to; None if there are no new ones."""
        commits = self._events.commits()
        start, rows = last.get("events", 0), 0
        if start >= len(commits):
            return None
        end = start
        while end < len(commits) and (
            end == start or rows + commits[end].rows <= self._options.rows
        ):
            rows += commits[end].rows
            end += 1
        return {
            "events": end,
            "messages": len(self._messages.commits()),
            "covers": coverage.to_json(coverage.coverage(commits[:end])),
            "limits": asdict(self._options.limits),
        }

    def _write(
        self,
        step: Step,
        plan: dict[str, Any],
        new: Sequence[Commit],
        messages: Sequence[Commit],
    ) -> None:
        spark = self._spark
        events = self._sound(self._events.read(spark, new), step)
        told = self._messages.read(spark, messages)
        all_events = events.unionByName(testimony.answers(told)).unionByName(
            testimony.reports(told)
        )
        fresh = all_events.where("message_id is not null")
        open_rows = self._open.read(spark).drop(BATCH)
        again, affected = self._reopened(fresh, open_rows, step)
        known = open_rows if again is None else open_rows.unionByName(again)
        # Kept without the way they were made: what is made of them is planned in no time.
        rows = gathering.by_message(fresh, known, step.batch)
        facts = rows.mapInArrow(gather_batches, GATHERED).localCheckpoint()
        plan = {**self._learnt(facts, step.last, new), **plan}
        view = _view(plan)
        lives = facts.mapInArrow(judging(view), f"{LEDGER.schema}, is_over boolean")
        lives = lives.localCheckpoint()
        streams = folded(self._streams.read(spark).drop(BATCH), runs_of(events)).localCheckpoint()
        self._write_tables(step, plan, view, lives, streams, again, affected)

    def _write_tables(
        self,
        step: Step,
        plan: dict[str, Any],
        view: View,
        lives: DataFrame,
        streams: DataFrame,
        again: DataFrame | None,
        affected: Sequence[Commit],
    ) -> None:
        over, still = lives.where("is_over"), lives.where("not is_over")
        key: dict[str, Any] = {"source": SOURCE, "batch": step.batch, "facts": plan}
        columns = self._over.columns
        rows = over.select(*columns)
        if again is not None:
            kept = self._over.read(self._spark, affected).select(*columns)
            rows = rows.unionByName(
                kept.join(again.select("message_id"), "message_id", "left_anti")
            )
        self._summary.add(LEDGER.name, self._over.rewrite(rows, affected, **key).rows)
        self._write_findings(step, plan, view, over, still, streams, again)
        self._streams.replace(streams, **key)
        self._summary.add(LEDGER_OPEN.name, self._open.replace(still, **key).rows)

    def _write_findings(
        self,
        step: Step,
        plan: dict[str, Any],
        view: View,
        over: DataFrame,
        still: DataFrame,
        streams: DataFrame,
        again: DataFrame | None,
    ) -> None:
        known = self._findings.find(OVER, step.batch)
        before = self._findings.counting(None if known is None else known.sequence)
        rows = findings.of_lives(over).unionByName(findings.of_disorders(streams, view))
        affected = (
            [commit for commit in before if commit.source == OVER] if again is not None else []
        )
        if again is not None:
            kept = self._findings.read(self._spark, affected).drop(BATCH)
            ids = again.select("message_id")
            rows = rows.unionByName(kept.join(ids, "message_id", "left_anti"))
        key: dict[str, Any] = {"batch": step.batch, "facts": {"events": plan["events"]}}
        self._findings.rewrite(rows, affected, source=OVER, **key)
        rows = (
            findings.of_lives(still)
            .unionByName(findings.of_missing(streams, view))
            .unionByName(findings.of_gaps(self._spark, view.covers))
        )
        earlier = [c for c in self._findings.counting() if c.source == OPEN]
        self._findings.rewrite(rows, earlier, source=OPEN, **key)

    def _sound(self, events: DataFrame, step: Step) -> DataFrame:
        """Events that can be used; the others go to the rejects."""
        bad = gathering.rejects(events)
        if not bad.isEmpty():
            commit = self._rejects.append(bad, source=SOURCE, batch=step.batch)
            self._summary.rejected += commit.rows
        return gathering.sound(events)

    def _reopened(
        self, fresh: DataFrame, open_rows: DataFrame, step: Step
    ) -> tuple[DataFrame | None, list[Commit]]:
        """Rows that are over and of which news came, and the commits that have them."""
        known = self._over.find(SOURCE, step.batch)
        commits = self._over.counting(None if known is None else known.sequence)
        watermark = _view(step.last).watermark if step.last else None
        if not commits or watermark is None:
            return None, []
        limits = Limits(**step.last["limits"])
        recent = watermark - timedelta(seconds=limits.settle - limits.tolerance)
        sender = sql.lower(sql.substring("message_id", 2, 36))
        is_birth = (sql.col("manager") == sender) & sql.expr("kind in ('queued', 'arrived')")
        births = sql.max(sql.when(is_birth & (sql.col("at") > sql.lit(recent)), 1))
        ids = fresh.groupBy("message_id").agg(births.alias("birth")).where("birth is null")
        ids = ids.select("message_id").join(
            open_rows.select("message_id"), "message_id", "left_anti"
        )
        hits = self._over.read(self._spark, commits).join(ids, "message_id", "left_semi")
        folders = {row[BATCH] for row in hits.select(BATCH).distinct().collect()}
        if not folders:
            return None, []
        affected = [commit for commit in commits if commit.folder.split("=", 1)[1] in folders]
        return hits.drop(BATCH), affected

    def _learnt(
        self, facts: DataFrame, last: dict[str, Any], new: Sequence[Commit]
    ) -> dict[str, Any]:
        links = [json.loads(row["links"]) for row in facts.select("links").collect()]
        shown = learnt(itertools.chain.from_iterable(links))
        bounds = combined([Link(*link) for link in last.get("links", [])], shown.links)
        return {
            "addresses": {**addresses_of(new), **last.get("addresses", {}), **shown.addresses},
            "links": [[link.a, link.b, link.low, link.high] for link in bounds],
        }


def _view(plan: dict[str, Any]) -> View:
    limits = Limits(**plan["limits"])
    links = [Link(*link) for link in plan["links"]]
    return View(
        coverage.from_json(plan["covers"]),
        plan["addresses"],
        offsets(links, limits.tolerance),
        limits,
    )
