"""What the ledger reads: events that make sense, brought together by message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sql

from falconmq.spark.jobs.merging import BEFORE, BEFORE_TIME, EVENT
from falconmq.spark.tables import BATCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KINDS: Final = (
    *("queued", "arrived", "delivered", "received", "expired", "purged", "queue_deleted"),
    *("rejected", "moved", "journaled", "dead_lettered", "refused", "duplicate", "returned"),
    *("told", "restored", "reported"),
)
_IDENTIFIER: Final = r"^\\{[0-9A-Fa-f-]{36}\\}\\\\[0-9]+$"
_SOUND: Final = (
    f"(message_id is null or message_id rlike '{_IDENTIFIER}') and kind in {KINDS} "
    "and at is not null and manager is not null"
)
# Queue managers acknowledge streams by messages to each other's order queue: no application sent
# them, and they leave no trace where they end.
_ORDER_QUEUE: Final = r"(?i)(private\\$\\\\order_queue\\$|private=[0-9a-f-]{36}\\\\0*4)$"
_INTERNAL: Final = (
    f"coalesce(queue, '') rlike '{_ORDER_QUEUE}' or coalesce(destination, '') rlike "
    f"'{_ORDER_QUEUE}'"
)


def sound(events: DataFrame) -> DataFrame:
    """Rows of bronze/events that can be used, without the messages of queue managers themselves."""
    columns = [name for name in events.columns if name not in (BATCH, "day")]
    return events.where(f"({_SOUND}) and not ({_INTERNAL})").select(*columns)


def rejects(events: DataFrame) -> DataFrame:
    """The others, for the table of rejects."""
    words = (sql.lit("no event of a message: kind"), "kind", sql.lit("id"), "message_id")
    return events.where(f"not ({_SOUND})").select(
        "at",
        sql.col("manager").alias("source"),
        sql.concat(sql.lit("event "), sql.col("number").cast("string")).alias("place"),
        sql.concat_ws(" ", *words).alias("reason"),
        sql.lit(None).cast("binary").alias("record"),
    )


def by_message(events: DataFrame, known: DataFrame, batch: int) -> DataFrame:
    """Events of messages and rows of the ledger; those about one message stand together."""
    before = ", ".join(
        "cast(is_traced as bigint) as is_traced" if name == "is_traced" else name for name in BEFORE
    )
    document = sql.to_json(sql.expr(f"struct({before})"), {"timestampFormat": BEFORE_TIME})
    facts = known.select("message_id", document.alias("before"))
    rows = events.select(
        "message_id", *EVENT, sql.lit(batch).cast("bigint").alias("updated_batch")
    ).unionByName(facts, allowMissingColumns=True)
    # By a number first: the texts begin alike, and comparing them takes longer.
    spread = rows.repartition("message_id")
    return spread.sortWithinPartitions(sql.xxhash64("message_id"), "message_id")
