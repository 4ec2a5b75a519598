"""Batch reads: a snapshot of queues or of the event log, taken when it is planned.

Spark plans the partitions of a `load()` once. A DataFrame that is used twice therefore reads the
same ranges twice and never sees what came later; load again to see that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from falconmq.spark.feeds import ManagerFeeds
from falconmq.spark.following import Follower, Slice
from falconmq.spark.option_table import refuse
from falconmq.spark.options import SourceOptions
from falconmq.spark.problems import data_loss, told
from falconmq.spark.schema import Projection, project

if TYPE_CHECKING:
    import pyarrow as pa


class FalconMQReader(DataSourceReader):
    """Reads once. It has no `pushFilters`: with them Spark 4.3 gives wrong rows."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.is_consuming:
            raise refuse(
                "a batch read cannot consume: Spark does not say when it is done",
                "use readStream with trigger(availableNow=True)",
            )
        self._options = options
        self._projection = project(options, schema)

    def partitions(self) -> list[InputPartition]:
        with told():
            follower = Follower(self._options)
            try:
                return [InputPartition(found) for found in follower.snapshot()]
            finally:
                follower.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_slice(self._options, self._projection, partition.value)


def read_slice(
    options: SourceOptions, projection: Projection, found: Slice | None
) -> Iterator[pa.RecordBatch]:
    """What one task reads, on an executor; Spark plans None if there is nothing to read."""
    if found is None:
        return
    wanted, rows = projection.arrow_schema(), 0
    with told():
        manager = ManagerFeeds(options, found.place)
        try:
            for batch in manager.read(found.feed, found.start, found.stop, projection.asked):
                rows += batch.num_rows
                if batch.num_rows:
                    yield projection.shape(batch, wanted)
        finally:
            manager.close()
        if rows < found.count and options.fail_on_data_loss:
            what = f"{found.feed.name} at {manager.url}"
            raise data_loss(what, found.start, found.stop, found.count - rows)
