"""Where replicas of a directory differ, and whether that will go away by itself.

Each partition has a *reference*: its authority, or the replica that is furthest if the authority's
export is not there. Every other replica is held against it. A difference is `is_expected` if the
replica is behind: the change that makes it equal is still to come. Otherwise replication believes
that it is done, and somebody has to act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# `reference` and `other` are the object as both have it; null: they know nothing of it.
_KIND: Final = """
case when reference is null
     then case when other.is_deleted then null
               when other.sequence > reference_last then 'ahead' else 'extra' end
     when reference.is_deleted
     then case when other is null or other.is_deleted then null
               when other.sequence > reference.sequence then 'ahead' else 'undeleted' end
     when other is null then 'missing'
     when other.sequence > reference.sequence then 'ahead'
     when other.is_deleted then 'deleted'
     when other.sequence < reference.sequence then 'stale'
     when size(attributes) > 0 then 'differs'
end
"""
_ATTRIBUTES: Final = """
case when reference is null or other is null or reference.is_deleted or other.is_deleted
     then array()
     else filter(
        array_sort(array_union(map_keys(reference.attributes), map_keys(other.attributes))),
        name -> not (try_element_at(reference.attributes, name)
                     <=> try_element_at(other.attributes, name)))
end
"""


def positions(lines: DataFrame) -> DataFrame:
    """How far each replica is with each partition, and how far behind the reference."""
    last = lines.groupBy("partition", "replica").agg(
        # What it says of itself; only if it says nothing, the highest number that it shows.
        sql.expr("coalesce(max(sequence) filter (where kind = 'partition'), max(sequence))").alias(
            "last"
        ),
        sql.coalesce(sql.max("purged"), sql.lit(0)).alias("purged"),
    )
    # Every server has a copy of everything: what no line tells of, it has not.
    replicas = lines.select("replica").distinct()
    authorities = lines.groupBy("partition").agg(sql.max("authority").alias("authority"))
    exported = lines.where("kind <> 'change'").select("partition", "replica").distinct()
    whole = (
        authorities.crossJoin(replicas)
        .join(last, ["partition", "replica"], "left")
        .join(exported.withColumn("is_exported", sql.lit(True)), ["partition", "replica"], "left")
        .fillna({"last": 0, "purged": 0, "is_exported": False})
    )
    rank = Window.partitionBy("partition").orderBy(
        sql.expr("is_exported and replica <=> authority").desc(),
        sql.col("is_exported").desc(),
        sql.col("last").desc(),
        "replica",
    )
    whole_partition = Window.unboundedPreceding, Window.unboundedFollowing
    first = Window.partitionBy("partition").orderBy("rank").rowsBetween(*whole_partition)
    return (
        whole.withColumn("rank", sql.row_number().over(rank))
        .withColumn("reference", sql.first("replica").over(first))
        .withColumn("reference_last", sql.first("last").over(first))
        .withColumn("behind", sql.greatest(sql.lit(0), sql.expr("reference_last - last")))
        .drop("rank", "is_exported")
    )


def differences(lines: DataFrame, positions: DataFrame) -> DataFrame:
    """One row for each object that a replica has otherwise, for each attribute that differs."""
    newest = Window.partitionBy("partition", "replica", "object").orderBy(
        sql.col("sequence").desc(), sql.col("at").desc_nulls_last()
    )
    objects = (
        lines.where("kind = 'object'")
        .withColumn("place", sql.row_number().over(newest))
        .where("place = 1")
        .select(
            "partition",
            "replica",
            "object",
            sql.struct("class", "sequence", "at", "is_deleted", "attributes").alias("state"),
        )
    )
    places = positions.where("replica <> reference")
    here = (
        objects.withColumnRenamed("replica", "reference")
        .withColumnRenamed("state", "reference_state")
        .join(places, ["partition", "reference"])
        .select("partition", "replica", "object", "reference_state")
    )
    there = objects.join(places.select("partition", "replica"), ["partition", "replica"])
    joined = here.join(
        there.withColumnRenamed("state", "other"), ["partition", "replica", "object"], "full"
    ).join(places.withColumnRenamed("reference", "reference_name"), ["partition", "replica"])
    found = (
        joined.withColumnRenamed("reference_state", "reference")
        .withColumn("attributes", sql.expr(_ATTRIBUTES))
        .withColumn("kind", sql.expr(_KIND))
        .where("kind is not null")
        .withColumn("attribute", sql.explode_outer("attributes"))
    )
    return found.selectExpr(
        "partition",
        "authority",
        "object",
        "coalesce(reference.class, other.class) as class",
        "kind",
        "attribute",
        "replica",
        "try_element_at(other.attributes, attribute) as value",
        "other.sequence as sequence",
        "other.at as changed_at",
        "reference_name as reference",
        "try_element_at(reference.attributes, attribute) as reference_value",
        "reference.sequence as reference_sequence",
        "reference.at as reference_changed_at",
        "behind",
        # Its own position does not reach the change that it lacks.
        "kind in ('missing', 'stale', 'deleted', 'undeleted', 'extra') "
        "and last < coalesce(reference.sequence, reference_last) as is_expected",
    )
