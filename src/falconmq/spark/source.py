"""`format("falconmq")`: what Spark asks first, for reading and for writing.

Spark makes one of these for each `load()` and `save()`, in a process of its own, and sends it from
process to process. It holds the options and nothing else.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from falconmq.spark.options import SourceOptions
from falconmq.spark.problems import told
from falconmq.spark.reader import FalconMQReader
from falconmq.spark.schema import source_schema
from falconmq.spark.stream import FalconMQStreamReader


class FalconMQDataSource(DataSource):
    """Queues and the event log as tables, tables as messages."""

    @classmethod
    def name(cls) -> str:
        return "falconmq"

    def schema(self) -> StructType:
        with told():
            return source_schema(SourceOptions.parse(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        with told():
            return FalconMQReader(SourceOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        with told():
            return FalconMQStreamReader(SourceOptions.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from falconmq.spark import sink  # noqa: PLC0415 - readers need none of it

        with told():
            return sink.writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from falconmq.spark import sink  # noqa: PLC0415

        with told():
            return sink.stream_writer(self.options, schema, overwrite)
