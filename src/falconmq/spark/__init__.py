r"""Queues as Spark tables, and tables as queues.

    spark.read.format("falconmq").option("queue", r".\private$\orders").load()
    frame.write.format("falconmq").option("queue", r".\private$\orders").save()

`falconmq.spark.session` makes a session that knows the format. Any other session learns it by
`falconmq.spark.register(spark)`, or by itself where the package is installed (`pyspark_falconmq`).
The jobs of `falconmq pipeline` are in `falconmq.spark.jobs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Let a session know `format("falconmq")`, and its executors too if they are elsewhere."""
    from falconmq.spark.shipping import ship  # noqa: PLC0415 - they need pyspark
    from falconmq.spark.source import FalconMQDataSource  # noqa: PLC0415

    ship(spark)
    spark.dataSource.register(FalconMQDataSource)
