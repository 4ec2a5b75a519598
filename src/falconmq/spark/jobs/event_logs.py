"""The event logs of queue managers, as the jobs see them.

A log is a row of numbered events of which the oldest are forgotten after a while. The jobs ask how
far it goes and read ranges of it; `DaemonLogs` does that over HTTP and through Spark's source, and
tests hand in logs of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from falconmq.client import ControlClient
from falconmq.client.ranges import Ranges
from falconmq.errors import FalconMQError, MqStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


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

    def read(self, spark: SparkSession, status: LogStatus, start: int, stop: int) -> DataFrame:
        """The events in [start, stop), with the column `packet`."""

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

    def read(self, spark: SparkSession, status: LogStatus, start: int, stop: int) -> DataFrame:
        return (
            self._reader(spark, status.url)
            .option("source", "events")
            .option("packets", "true")
            .option("startingOffsets", _offsets(start))
            .option("endingOffsets", _offsets(stop))
            .option("minPartitions", str(self.partitions))
            .load()
        )

    def browse(self, spark: SparkSession, url: str, queue: str) -> tuple[str, DataFrame]:
        with Ranges(self._connect(url)) as ranges:
            manager = ranges.arrivals(queue).manager
        return manager, self._reader(spark, url).option("queue", queue).load()

    def _reader(self, spark: SparkSession, url: str) -> DataFrameReader:
        given = {"url": url, "token": self.token, "caFile": self.ca_file}
        return spark.read.format("falconmq").options(**_known(given))

    def _connect(self, url: str) -> ControlClient:
        return ControlClient.connect(url, self.token, ca_file=self.ca_file)


def _offsets(number: int) -> str:
    return json.dumps({"events": number})


def _known(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}
