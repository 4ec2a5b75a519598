"""How long changes take until all replicas have them, and who has them last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def applied(lines: DataFrame) -> DataFrame:
    """When each replica had each change: (partition, sequence, replica, at, object)."""
    changes = lines.where("kind = 'change'")
    return changes.groupBy("partition", "sequence", "replica").agg(
        sql.min("at").alias("at"), sql.max("object").alias("object")
    )


def convergence(applied: DataFrame, positions: DataFrame) -> DataFrame:
    """One row for each change.

    A replica that has passed the number without a line in its log got the change in a full
    synchronisation: it has it, and nobody knows since when. It counts in `unlogged`.
    """
    changes = applied.groupBy("partition", "sequence").agg(
        sql.max("object").alias("object"), sql.min("at").alias("first_at")
    )
    places = changes.join(
        positions.select("partition", "replica", "authority", "last"), "partition"
    ).join(
        applied.select("partition", "sequence", "replica", "at"),
        ["partition", "sequence", "replica"],
        "left",
    )
    grouped = places.groupBy("partition", "sequence", "authority").agg(
        sql.max("object").alias("object"),
        sql.expr("coalesce(max(at) filter (where replica <=> authority), min(first_at))").alias(
            "originated_at"
        ),
        sql.max("at").alias("last_at"),
        sql.expr("max_by(replica, at) filter (where at is not null)").alias("slowest"),
        sql.count("*").alias("replicas"),
        sql.expr("count(*) filter (where at is null and last >= sequence)").alias("unlogged"),
        sql.expr(
            "array_sort(collect_list(replica) filter (where at is null and last < sequence))"
        ).alias("missing"),
    )
    return grouped.selectExpr(
        "partition",
        "sequence",
        "object",
        "authority",
        "originated_at",
        "case when size(missing) = 0 then greatest(last_at, originated_at) end as complete_at",
        # Clocks differ: a replica cannot have had it before it was made.
        "case when size(missing) = 0 then greatest(0D, "
        "(unix_micros(last_at) - unix_micros(originated_at)) / 1e6) end as seconds",
        "case when size(missing) = 0 then slowest end as last_replica",
        "replicas",
        "unlogged",
        "missing",
    )


def replicas(
    positions: DataFrame, applied: DataFrame, converged: DataFrame, differences: DataFrame
) -> DataFrame:
    """One row for each replica and partition: how far, how quick, how often the last."""
    origins = converged.select("partition", "sequence", "originated_at")
    delays = applied.join(origins, ["partition", "sequence"]).selectExpr(
        "partition",
        "replica",
        "greatest(0D, (unix_micros(at) - unix_micros(originated_at)) / 1e6) as seconds",
    )
    quick = delays.groupBy("partition", "replica").agg(
        sql.count("*").alias("changes"),
        sql.expr("percentile(seconds, 0.5)").alias("p50_seconds"),
        sql.expr("percentile(seconds, 0.95)").alias("p95_seconds"),
        sql.expr("percentile(seconds, 0.99)").alias("p99_seconds"),
        sql.max("seconds").alias("max_seconds"),
    )
    lasts = converged.groupBy("partition", sql.col("last_replica").alias("replica")).agg(
        sql.count("*").alias("times_last")
    )
    different = differences.groupBy("partition", "replica").agg(
        sql.countDistinct("object").alias("differences"),
        sql.expr("count(distinct object) filter (where not is_expected)").alias("unexpected"),
    )
    keys = ["partition", "replica"]
    return (
        positions.join(quick, keys, "left")
        .join(lasts, keys, "left")
        .join(different, keys, "left")
        .fillna(0, ["changes", "times_last", "differences", "unexpected"])
    )
