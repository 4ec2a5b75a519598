"""Plays Spark's part: drives the readers as it does, without Java."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from falconmq.spark.source import FalconMQDataSource
from falconmq.spark.stream import FalconMQStreamReader
from tests.e2e.estate import Daemon

Rows = list[dict[str, Any]]


def source(daemon: Daemon | str, **options: object) -> FalconMQDataSource:
    """As it arrives where it is used."""
    given = CaseInsensitiveDict()
    given["url"] = daemon if isinstance(daemon, str) else url(daemon)
    given.update({name: str(value) for name, value in options.items()})
    made: FalconMQDataSource = pickle.loads(pickle.dumps(FalconMQDataSource(given)))
    return made


def url(daemon: Daemon) -> str:
    return f"unix:{daemon.data}"


def load(daemon: Daemon | str, **options: object) -> Rows:
    """A batch read."""
    made = source(daemon, **options)
    reader = made.reader(made.schema())
    rows: Rows = []
    for partition in pickle.loads(pickle.dumps(reader.partitions())):
        rows += _read(reader, partition)
    return rows


class Query:
    """A stream: its batches one by one. Offsets survive it as texts, as in a checkpoint."""

    def __init__(
        self, daemon: Daemon | str, checkpoint: str | None = None, **options: object
    ) -> None:
        made = source(daemon, **options)
        schema = made.schema()
        assert isinstance(schema, StructType)
        reader = made.streamReader(schema)
        assert isinstance(reader, FalconMQStreamReader)
        self.reader = reader
        self._start = checkpoint  # the end of the last batch that was done

    def stop_at_newest(self) -> None:
        self.reader.prepareForTriggerAvailableNow()

    @property
    def checkpoint(self) -> str:
        if self._start is None:
            self._start = json.dumps(self.reader.initialOffset())
        return self._start

    def plan(self, limit: ReadLimit | None = None) -> str | None:
        """Where the next batch ends; None if there is none."""
        wanted = self.reader.getDefaultReadLimit() if limit is None else limit
        end = json.dumps(self.reader.latestOffset(json.loads(self.checkpoint), wanted))
        return None if end == self.checkpoint else end

    def run(self, end: str) -> Rows:
        """Read a planned batch; its end is then in the commit log."""
        start = self.checkpoint
        rows: Rows = []
        for partition in self.reader.partitions(json.loads(start), json.loads(end)):
            there: FalconMQStreamReader = pickle.loads(pickle.dumps(self.reader))
            rows += _read(there, pickle.loads(pickle.dumps(partition)))
        self._start = end
        return rows

    def batch(self, limit: ReadLimit | None = None) -> Rows | None:
        end = self.plan(limit)
        return None if end is None else self.run(end)

    def everything(self) -> list[Rows]:
        """All batches that there are now."""
        found = []
        while (rows := self.batch()) is not None:
            found.append(rows)
        return found

    def commit(self) -> None:
        """Spark says so one batch later."""
        self.reader.commit(json.loads(self.checkpoint))


def _read(reader: DataSourceReader | FalconMQStreamReader, partition: Any) -> Rows:
    rows: Rows = []
    for batch in reader.read(partition):
        assert isinstance(batch, pa.RecordBatch)
        rows += batch.to_pylist()
    return rows


ALL = ReadAllAvailable()
