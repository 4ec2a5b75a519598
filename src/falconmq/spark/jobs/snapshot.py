"""archive --snapshot: queues, journals and dead letters as they are now, into bronze/messages.

For what the event log has no bodies of. A message that is there already, by manager, queue and
arrival number, is not added again, so snapshots of a queue can be taken as often as one likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql

from falconmq.spark.jobs.lake_tables import MESSAGES
from falconmq.spark.jobs.running import Progress, Summary, Tell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from falconmq.spark.jobs.event_logs import EventLogs
    from falconmq.spark.tables import Lake

SOURCE: Final = "snapshot:"  # and the GUID of the manager
KEY: Final = ("manager", "queue", "arrival_number")


def new_rows(found: DataFrame, known: DataFrame, manager: str) -> DataFrame:
    """Messages of a queue that the archive does not have yet, as rows of bronze/messages."""
    rows = found.select(
        sql.lit(manager).alias("manager"),
        sql.lit(None).cast("bigint").alias("number"),
        sql.lit("snapshot").alias("kind"),
        "*",
        sql.to_date(sql.coalesce("arrived_at", "sent_at", sql.current_timestamp())).alias("day"),
    )
    return rows.dropDuplicates(list(KEY)).join(known.select(*KEY), list(KEY), "left_anti")


def archive_queue(
    spark: SparkSession,
    lake: Lake,
    logs: EventLogs,
    url: str,
    queue: str,
    summary: Summary,
    tell: Tell,
    is_dry: bool,
) -> None:
    """Add one queue of one manager."""
    table = lake.table(MESSAGES)
    manager, found = logs.browse(spark, url, queue)
    tell(Progress(f"reading {queue}", summary.read))
    fresh = new_rows(found, table.read(spark), manager)
    if is_dry:
        summary.read += fresh.count()
        return
    source = SOURCE + manager
    last = table.last(source)
    batch = 1 if last is None else last.batch + 1
    rows = table.append(fresh, source=source, batch=batch, facts={"queue": queue, "url": url}).rows
    summary.add(MESSAGES.name, rows)
    summary.read += rows
    tell(Progress(f"reading {queue}", summary.read))
