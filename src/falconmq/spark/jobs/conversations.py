"""Messages between two queue managers, from the packets of captures: sent, acknowledged, repeated.

A session acknowledges messages by count, a transactional sequence by number, and either way one
acknowledgement covers all before it. So messages and acknowledgements are laid in one row, the
highest number first, and the earliest acknowledgement seen so far is the one that covers a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CONVERSATIONS_SCHEMA: Final = (
    "message_id string, from_manager string, to_manager string, queue string, label string, "
    "message_class string, priority int, size bigint, sequence_id string, sequence_number bigint, "
    "flow string, capture string, frame bigint, first_at timestamp, last_at timestamp, "
    "sendings bigint, session_acked_at timestamp, session_ack_seconds double, "
    "order_acked_at timestamp, order_ack_seconds double, final_acked_at timestamp, "
    "final_class string, answered_at timestamp, answer_class string"
)


def conversations(packets: DataFrame, sessions: DataFrame) -> DataFrame:
    """One row for each message and pair of queue managers."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    messages = packets.where("kind = 'UserMessage'")
    acked = _covered(
        messages,
        packets.where("acknowledged_number is not null").select(
            "capture_set",
            "flow",
            f.when(f.col("direction") == "to_server", "to_client")
            .otherwise("to_server")
            .alias("direction"),
            f.col("acknowledged_number").alias("message_number"),
            "at",
        ),
        ["capture_set", "flow", "direction"],
        "message_number",
        "session_acked_at",
    )
    acked = _covered(
        acked,
        packets.where("kind = 'OrderAck'").select(
            f.col("about_sequence_id").alias("sequence_id"),
            f.col("about_sequence_number").alias("sequence_number"),
            "at",
        ),
        ["sequence_id"],
        "sequence_number",
        "order_acked_at",
    )
    managers = sessions.select("capture_set", "flow", "client_manager", "server_manager")
    placed = _with_managers(acked, managers)
    return _answered(_collapsed(placed), packets)


def duplicates(found: DataFrame) -> DataFrame:
    """Messages that went from one queue manager to another more than once, as anomalies."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    times = f.col("sendings").cast("string")
    return found.where("sendings > 1").select(
        f.lit("").alias("capture_set"),
        "capture",
        "frame",
        f.col("last_at").alias("at"),
        "flow",
        f.lit(None).cast("string").alias("direction"),
        f.lit("duplicate").alias("kind"),
        f.concat(
            f.lit("message "), "message_id", f.lit(" was sent "), times, f.lit(" times")
        ).alias("reason"),
        "size",
        f.col("sendings").alias("count"),
        f.lit(None).cast("binary").alias("first_bytes"),
    )


def _covered(
    messages: DataFrame, acks: DataFrame, keys: list[str], number: str, name: str
) -> DataFrame:
    """The messages with the time of the first acknowledgement that covers each."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    tagged = messages.withColumn("_ack", f.lit(None).cast("timestamp"))
    known = [f.col(key).isNotNull() for key in (*keys, number)]
    both = tagged.unionByName(acks.withColumn("_ack", f.col("at")), allowMissingColumns=True)
    highest_first = (
        Window.partitionBy(*keys)
        .orderBy(f.col(number).desc_nulls_last(), f.col("_ack").isNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    is_known = known[0]
    for condition in known[1:]:
        is_known &= condition
    covered: Column = f.when(is_known, f.min("_ack").over(highest_first))
    return both.withColumn(name, covered).where("message_id is not null").drop("_ack")


def _with_managers(messages: DataFrame, managers: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415

    ends = managers.select(
        "capture_set",
        "flow",
        f.col("client_manager").alias("_client"),
        f.col("server_manager").alias("_server"),
    )
    to_server = f.col("direction") == "to_server"
    joined = messages.join(ends, ["capture_set", "flow"], "left")
    return joined.withColumns(
        {
            "from_manager": f.when(to_server, f.col("_client")).otherwise(f.col("_server")),
            "to_manager": f.when(to_server, f.col("_server")).otherwise(f.col("_client")),
        }
    )


def _collapsed(messages: DataFrame) -> DataFrame:
    """One row for all sendings; what it says is that of the first."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    first = [
        "queue", "label", "message_class", "priority", "size", "sequence_id", "sequence_number",
        "flow", "capture", "frame",
    ]  # fmt: skip
    return messages.groupBy("message_id", "from_manager", "to_manager").agg(
        *(f.min_by(name, "at").alias(name) for name in first),
        f.min("at").alias("first_at"),
        f.max("at").alias("last_at"),
        f.count("*").alias("sendings"),
        f.min("session_acked_at").alias("session_acked_at"),
        f.min("order_acked_at").alias("order_acked_at"),
    )


def _answered(messages: DataFrame, packets: DataFrame) -> DataFrame:
    """With what became of them: FinalAcks, and acknowledgements of the administration queue."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    finals = (
        packets.where("kind = 'FinalAck'")
        .groupBy(f.col("about_message_id").alias("message_id"))
        .agg(
            f.min("at").alias("final_acked_at"),
            f.min_by("message_class", "at").alias("final_class"),
        )
    )
    answers = (
        packets.where(
            "kind = 'UserMessage' and message_class not in ('NORMAL', 'REPORT') "
            "and correlation_id is not null"
        )
        .groupBy(f.col("correlation_id").alias("message_id"))
        .agg(
            f.min("at").alias("answered_at"),
            f.min_by("message_class", "at").alias("answer_class"),
        )
    )
    all_of_it = (
        messages.join(finals, "message_id", "left")
        .join(answers, "message_id", "left")
        .withColumns(
            {
                f"{kind}_ack_seconds": _seconds(f.col("first_at"), f.col(f"{kind}_acked_at"))
                for kind in ("session", "order")
            }
        )
    )
    return all_of_it.select(*(column.split()[0] for column in CONVERSATIONS_SCHEMA.split(", ")))


def _seconds(begin: Column, end: Column) -> Column:
    from pyspark.sql import functions as f  # noqa: PLC0415

    return (f.unix_micros(end) - f.unix_micros(begin)) / 1_000_000
