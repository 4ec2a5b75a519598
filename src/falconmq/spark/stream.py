"""Streaming reads: Spark asks how far there is something, and reads that range.

What Spark does in a batch: `latestOffset(start)`, the offsets are written, `commit` of the batch
before, `partitions`, `read` in the tasks, the sink, and the commit log. When it asks for the next
batch, `start` is in its commit log. So a query that consumes removes everything before `start`
then, and not only in `commit`, which comes one batch later and for the last batch never.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from falconmq.spark.following import Follower
from falconmq.spark.offsets import Offsets
from falconmq.spark.option_table import LATEST, refuse
from falconmq.spark.options import SourceOptions
from falconmq.spark.problems import told
from falconmq.spark.reader import read_slice
from falconmq.spark.schema import project

if TYPE_CHECKING:
    import pyarrow as pa


class FalconMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One lives in the driver for as long as the query does, others read in the executors."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.ending != LATEST or options.ending_time is not None:
            raise refuse(
                "a stream has no end",
                "leave endingOffsets and endingTimestamp out; trigger(availableNow=True) stops",
            )
        self._options = options
        self._projection = project(options, schema)
        self._follower: Follower | None = None  # in the driver, when it is first asked

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_follower": None}

    def initialOffset(self) -> dict[str, Any]:
        with told():
            return self._in_driver().begin().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.messages_per_trigger is not None:
            return ReadMaxRows(self._options.messages_per_trigger)
        if self._options.bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with told():
            self._in_driver().stop_at_newest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with told():
            follower, offsets = self._in_driver(), Offsets.from_json(start)
            follower.acknowledge(offsets)
            messages, size = self._limits(limit)
            latest = follower.latest(offsets, messages=messages, size=size)
            return start if latest == offsets else latest.to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        with told():
            return self._in_driver().newest().to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        with told():
            found = self._in_driver().slices(Offsets.from_json(start), Offsets.from_json(end))
            return [InputPartition(each) for each in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_slice(self._options, self._projection, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        with told():
            self._in_driver().acknowledge(Offsets.from_json(end))

    def stop(self) -> None:
        if self._follower is not None:
            self._follower.close()

    def _in_driver(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(self._options)
        return self._follower

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None]:
        """Messages and bytes of a batch. Spark knows one limit only; we keep both, if any."""
        if isinstance(limit, ReadAllAvailable):
            return None, None
        messages, size = self._options.messages_per_trigger, self._options.bytes_per_trigger
        if isinstance(limit, ReadMaxRows):
            messages = limit.max_rows
        elif isinstance(limit, ReadMaxBytes):
            size = limit.max_bytes
        return messages, size
