"""What the tests of the jobs share: logs made by hand, and jobs that die between two commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from falconmq.client.event_columns import event_schema
from falconmq.spark.jobs.event_logs import LogStatus, Piece
from falconmq.spark.tables import Commit, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 16, 23, 59, 30, tzinfo=UTC)  # so that a log goes over midnight
MANAGER = "0d1ab8e4-3a0d-4b0e-9f4f-0a7d3c1f2b5e"
MESSAGE = f"{{{MANAGER.upper()}}}\\7"


class DiedError(Exception):
    """As if the process had been killed."""


@contextmanager
def dying_after(commits: int) -> Iterator[None]:
    """A job inside dies when it has made so many commits; `DiedError` is what is left of it."""
    write, left = Table._commit, [commits]

    def commit(table: Table, given: Commit) -> None:
        write(table, given)
        left[0] -= 1
        if not left[0]:
            raise DiedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_commit", commit)
        yield


def event(number: int, kind: str = "arrived", **facts: Any) -> dict[str, Any]:
    """One event of one message, a second after the one before."""
    given = {
        "number": number,
        "at": START + timedelta(seconds=number % 100_000),
        "kind": kind,
        "manager": MANAGER,
        "computer": "SALES01",
        "message_id": MESSAGE,
        "queue": r".\private$\orders",
        "size": 100,
        "trace": False,
        **facts,
    }
    return {name: given.get(name) for name in event_schema().names}


class MadeLogs:
    """The log of one manager, from rows."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = list(rows)
        self.first = 1
        self.urls: Sequence[str] = ["made:SALES01"]
        self.asked_at = START + timedelta(days=1)

    def status(self, url: str, after: int | None = None, wait: float = 0) -> LogStatus:
        following = self.rows[-1]["number"] + 1
        return LogStatus(MANAGER, "SALES01", url, self.first, following, self.asked_at)

    def pieces(self, status: LogStatus, start: int, stop: int) -> Sequence[Piece]:
        """Two halves."""
        assert start >= self.first
        rows = [row for row in self.rows if start <= row["number"] < stop]
        table = pa.Table.from_pylist(rows, schema=event_schema())
        middle = len(rows) // 2
        return [
            partial(pa.Table.to_batches, part)
            for part in (table.slice(0, middle), table.slice(middle))
            if part.num_rows
        ]

    def browse(self, spark: SparkSession, url: str, queue: str) -> tuple[str, DataFrame]:
        raise NotImplementedError
