"""What is wrong, in words: one row for each finding, with what it rests on.

Findings of messages follow from their rows in the ledger (`lives` names the kinds), those of
streams from silver/streams, gaps of the archive from the commits of bronze/events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql

from falconmq.spark.jobs.coverage import Cover
from falconmq.spark.jobs.lake_tables import FINDINGS
from falconmq.spark.jobs.view import View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TIME: Final = "yyyy-MM-dd HH:mm:ss"
_ERRORS: Final = ("lost", "doubled", "dead_letter", "archive_gap")


def of_lives(lives: DataFrame) -> DataFrame:
    """Findings of messages."""
    rows = lives.where(sql.size("findings") > 0).withColumn("kind", sql.explode("findings"))
    evidence = sql.to_json(
        sql.struct(
            "state",
            "reason",
            "told",
            "arrivals",
            "receipts",
            "duplicates",
            "latency_seconds",
            "lost_from",
            "lost_to",
            "places",
        )
    )
    return rows.select(
        "kind",
        _severity().alias("severity"),
        "message_id",
        "queue",
        "route",
        "first_at",
        "last_at",
        sql.lit(1).cast("bigint").alias("messages"),
        _explanation().alias("explanation"),
        evidence.alias("evidence"),
    )


def _severity() -> Column:
    kind = sql.col("kind")
    is_info = kind == "repeated"
    return sql.when(kind.isin(*_ERRORS), "error").when(is_info, "info").otherwise("warning")


def _explanation() -> Column:
    queue = sql.coalesce("queue", sql.lit("an unknown queue"))
    whole = sql.format_string
    begun = sql.date_format(sql.coalesce("begun_at", "sent_at", "first_at"), _TIME)
    latency = sql.round(sql.col("latency_seconds"), 1).cast("string")
    texts = {
        "lost": whole(
            "%s handed it over to %s, whose log never mentions it; it was sent to %s at %s",
            sql.coalesce("lost_from", sql.lit("?")),
            sql.coalesce("lost_to", sql.lit("?")),
            queue,
            begun,
        ),
        "doubled": whole(
            "it came into %s %s times and was received %s times",
            queue,
            sql.col("arrivals").cast("string"),
            sql.col("receipts").cast("string"),
        ),
        "repeated": whole(
            "it came to %s again (%s times) and was dropped there: its sender had not heard that "
            "it had arrived",
            queue,
            sql.col("duplicates").cast("string"),
        ),
        "unknown_fate": whole(
            "sent to %s at %s; what became of it falls into a gap of the archive", queue, begun
        ),
        "late": whole("it took %s seconds to %s", latency, queue),
        "dead_letter": whole(
            "it could not be delivered to %s: %s", queue, sql.coalesce("reason", sql.lit("?"))
        ),
        "stuck": whole(
            "it has been waiting to be sent to %s since %s",
            queue,
            sql.date_format(sql.coalesce("begun_at", "first_at"), _TIME),
        ),
    }
    chosen = sql.when(sql.lit(False), "")
    for kind, text in texts.items():
        chosen = chosen.when(sql.col("kind") == kind, text)
    return chosen


def of_disorders(streams: DataFrame, view: View) -> DataFrame:
    """Messages of streams that arrived after their successors (`streams.folded`)."""
    rows = streams.withColumn("one", sql.explode("disorders"))
    text = sql.format_string(
        "numbers %s to %s of the stream arrived in %s after their successors",
        sql.col("one.low").cast("string"),
        sql.col("one.high").cast("string"),
        _queue_text(),
    )
    return _of_streams(rows, view, "out_of_order", "warning", "one.at", text, sql.col("one.size"))


def of_missing(streams: DataFrame, view: View) -> DataFrame:
    """Numbers that never arrived, of senders whose own logs are not here to say more."""
    rows = streams.withColumn("one", sql.explode("missing"))
    patience = view.limits.grace + view.limits.tolerance
    at = sql.col("one.at").cast("double")
    is_known = sql.col("source").isin(*view.covers) if view.covers else sql.lit(False)
    begin = sql.col("one.after").cast("double")
    over = sql.lit(False)
    for cover in view.covers.values():
        end = cover.through.timestamp() - patience
        over = over | ((sql.col("manager") == cover.manager) & (at <= end))
    rows = rows.where(~is_known & over & ~_is_hidden(view, sql.col("manager"), begin, at))
    text = sql.format_string(
        "numbers %s to %s of the stream never arrived in %s, though later ones did",
        sql.col("one.low").cast("string"),
        sql.col("one.high").cast("string"),
        _queue_text(),
    )
    count = sql.col("one.high") - sql.col("one.low") + 1
    return _of_streams(rows, view, "lost", "error", "one.at", text, count)


def _is_hidden(view: View, manager: Column, begin: Column, end: Column) -> Column:
    """Whether a gap in a manager's log touches a time."""
    found = sql.lit(False)
    slack = view.limits.tolerance
    for cover in view.covers.values():
        for gap in cover.gaps:
            low, high = gap.after.timestamp() - slack, gap.before.timestamp() + slack
            touches = (manager == cover.manager) & (begin < high) & (end > low)
            found = found | sql.coalesce(touches, sql.lit(False))
    return found


def _queue_text() -> Column:
    return sql.concat("computer", sql.regexp_replace("queue", r"^\.", ""))


def _of_streams(
    rows: DataFrame,
    view: View,
    kind: str,
    severity: str,
    at: str,
    text: Column,
    count: Column,
) -> DataFrame:
    source: Column = sql.col("source")
    for cover in view.covers.values():
        source = sql.when(sql.col("source") == cover.manager, cover.computer).otherwise(source)
    evidence = sql.struct("source", "sequence_id", "one.low", "one.high", "last_number")
    return rows.select(
        sql.lit(kind).alias("kind"),
        sql.lit(severity).alias("severity"),
        sql.lit(None).cast("string").alias("message_id"),
        _queue_text().alias("queue"),
        sql.concat(source, sql.lit(" -> "), sql.col("computer")).alias("route"),
        sql.col(at).alias("first_at"),
        sql.col(at).alias("last_at"),
        count.cast("bigint").alias("messages"),
        text.alias("explanation"),
        sql.to_json(evidence).alias("evidence"),
    )


def of_gaps(spark: SparkSession, covers: Mapping[str, Cover]) -> DataFrame:
    """What the archive could not get any more."""
    rows: list[tuple[Any, ...]] = []
    for cover in covers.values():
        for gap in cover.gaps:
            text = (
                f"{gap.high - gap.low} events of {cover.computer} were forgotten there before "
                "they were archived"
            )
            evidence = json.dumps({"manager": cover.manager, "from": gap.low, "to": gap.high})
            times = (gap.after, gap.before)
            who = (None, None, cover.computer)
            rows.append(("archive_gap", "error", *who, *times, 0, text, evidence))
    return spark.createDataFrame(rows, FINDINGS.schema)
