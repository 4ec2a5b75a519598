"""The event logs of queue managers, as the jobs see them.

A log is a row of numbered events of which the oldest are forgotten after a while. The jobs ask how
far it goes and for the pieces of a range, which tasks then read; `DaemonLogs` does that over HTTP,
planned and read as by Spark's source, and tests hand in logs of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from falconmq.client import ControlClient
from falconmq.client.ranges import Ranges
from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.options import SourceOptions
from falconmq.spark.problems import SourceError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

Piece = Callable[[], "Iterable[pa.RecordBatch]"]
"""A part of an event log that one task reads, on an executor: it is pickled."""


@dataclass(frozen=True)
class LogStatus:
    """What a queue manager's log holds at a moment: all numbers in [first, next)."""

    manager: str  # GUID, lower case
    computer: str
    url: str
    first: int
    next: int
    asked_at: datetime  # by the clock here: up to then the log tells everything


class EventLogs(Protocol):
    """Logs that can be archived; `urls` say which there are."""

    @property
    def urls(self) -> Sequence[str]: ...

    def status(self, url: str, after: int | None = None, wait: float = 0) -> LogStatus:
        """How far a log goes; waits up to `wait` seconds for a number behind `after`."""

    def pieces(self, status: LogStatus, start: int, stop: int) -> Sequence[Piece]:
        """The events in [start, stop), with the column `packet`, for as many tasks."""

    def browse(self, spark: SparkSession, url: str, queue: str) -> tuple[str, DataFrame]:
        """The GUID of a manager, and the messages of a queue of it, with all columns."""


@dataclass(frozen=True)
class DaemonLogs:
    """The logs of queue managers that run."""

    urls: Sequence[str]
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    partitions: int = 2  # a range is read in so many pieces at the same time

    def status(self, url: str, after: int | None = None, wait: float = 0) -> LogStatus:
        asked_at = datetime.now(UTC)
        with Ranges(self._connect(url)) as ranges:
            state = ranges.log_state(after=after, wait=wait)
        if not state.is_kept:
            raise FalconMQError(
                f"{state.computer} ({url}) keeps no event log",
                status=MqStatus.SERVICE_NOT_AVAILABLE,
                hint="set keep = true in the section [events] of its configuration",
            )
        return LogStatus(state.manager, state.computer, url, state.first, state.next, asked_at)

    def pieces(self, status: LogStatus, start: int, stop: int) -> Sequence[Piece]:
        """As Spark's source plans them; but the tasks read them without Spark between."""
        from falconmq.spark.reader import FalconMQReader  # noqa: PLC0415 - it needs pyspark
        from falconmq.spark.schema import source_schema  # noqa: PLC0415

        given = {
            **self._place(status.url),
            "source": "events",
            "packets": "true",
            "startingOffsets": _offsets(start),
            "endingOffsets": _offsets(stop),
            "minPartitions": str(self.partitions),
        }
        options = SourceOptions.parse(given)
        reader = FalconMQReader(options, source_schema(options))
        try:
            found = reader.partitions()
        except SourceError as error:  # its text has the hint as well, for Spark's users
            raise FalconMQError(str(error)) from error
        return [partial(reader.read, partition) for partition in found]

    def browse(self, spark: SparkSession, url: str, queue: str) -> tuple[str, DataFrame]:
        with Ranges(self._connect(url)) as ranges:
            manager = ranges.arrivals(queue).manager
        return manager, self._reader(spark, url).option("queue", queue).load()

    def _reader(self, spark: SparkSession, url: str) -> DataFrameReader:
        return spark.read.format("falconmq").options(**self._place(url))

    def _place(self, url: str) -> dict[str, str]:
        """The options of the source that say where, and who asks."""
        given = {"url": url, "token": self.token, "caFile": self.ca_file}
        return {name: value for name, value in given.items() if value is not None}

    def _connect(self, url: str) -> ControlClient:
        return ControlClient.connect(url, self.token, ca_file=self.ca_file)


def _offsets(number: int) -> str:
    return json.dumps({"events": number})
