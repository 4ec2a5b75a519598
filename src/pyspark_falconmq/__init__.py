"""Lets Spark find `format("falconmq")` by itself where FalconMQ is installed.

Spark imports packages whose names begin with `pyspark_` and asks them for `DefaultSource`.
"""

from falconmq.spark.source import FalconMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
