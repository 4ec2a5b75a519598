"""Gold tables, findings and a ledger with known contents, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from falconmq.spark.jobs import lake_tables
from falconmq.spark.jobs.running import rejects_of
from falconmq.spark.tables import Commit, Lake, TableSpec

DAY = datetime(2026, 11, 16, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'&\x1b"
LOST = r"{55735802-9150-9595-4997-B6E611EA26C6}\2286"
ROUTE = "SALES01 -> BERLIN"
QUEUE = r"BERLIN\private$\orders"
Row = dict[str, Any]


def write_samples(lake: Lake) -> None:
    """Two days: on the first 100 messages, on the second 200, of which two were lost."""
    put(lake, lake_tables.LEDGER, _lives(DAY - timedelta(days=1), 100, 0.5, 0))
    put(lake, lake_tables.LEDGER_OPEN, _lives(DAY, 200, 2.0, 2))
    put(lake, lake_tables.LATENCY, _latency())
    put(lake, lake_tables.THROUGHPUT, _throughput())
    waits = [(QUEUE, 10, 90.0), (QUEUE, 11, 4000.0), ("SALES01\\private$\\calm", 10, 0.5)]
    put(
        lake,
        lake_tables.BACKLOG,
        [
            {"minute": DAY + timedelta(hours=hour), "queue": queue, "depth": 3, "oldest_seconds": s}
            for queue, hour, s in waits
        ],
    )
    causes = [(9, f"CAUSE_{n}", 7 - n) for n in range(7)] + [(-1, "CAUSE_0", 4)]
    put(
        lake,
        lake_tables.DEAD_LETTERS,
        [
            {"hour": DAY + timedelta(hours=hour), "queue": QUEUE, "cause": cause, "messages": n}
            for hour, cause, n in causes
        ],
    )
    put(lake, lake_tables.FINDINGS, _findings())
    put(
        lake,
        rejects_of("archive"),
        [{"at": DAY, "source": "g", "place": "event 5", "reason": HOSTILE, "record": b"x"}],
    )


def put(
    lake: Lake,
    spec: TableSpec,
    rows: Sequence[Row],
    source: str = "sample",
    facts: Row | None = None,
) -> None:
    """A commit with these rows; what they leave out is null. Spark would need a second for each."""
    schema = to_arrow_schema(cast("StructType", StructType.fromDDL(spec.schema)), timezone="UTC")
    table = lake.table(spec)
    number = len(table.commits()) + 1
    folder = table.path / "data" / f"batch={number}"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema), folder / "rows.parquet")
    commit = Commit(number, source, number, folder.name, len(rows), DAY.isoformat())
    table._commit(replace(commit, facts=facts or {}))


def _lives(day: datetime, count: int, slow: float, lost: int) -> list[Row]:
    rows = []
    for number in range(count):
        sent = day + timedelta(minutes=number)
        is_lost = number < lost
        seconds = slow if number >= count * 0.9 else 0.1
        rows.append(
            {
                "message_id": f"{{G}}\\{number}",
                "sent_at": sent,
                "arrived_at": None if is_lost or number == 7 else sent,
                "latency_seconds": None if is_lost else seconds,
                # The first was refused; that the eighth arrived, no log tells.
                "state": ("refused" if number == 0 else "lost") if is_lost else "received",
                "day": day.date(),
            }
        )
    return rows


def _latency() -> list[Row]:
    rows = []
    for hour in (8, 9, 10):
        for queue, route, n in (("*", "*", 66), (QUEUE, ROUTE, 40), ("q", HOSTILE, 26)):
            seconds = hour / 10
            rows.append(
                {
                    "hour": DAY + timedelta(hours=hour),
                    "queue": queue,
                    "route": route,
                    "messages": n,
                    "p50_seconds": seconds,
                    "p95_seconds": seconds * 2,
                    "p99_seconds": seconds * 3,
                    "max_seconds": seconds * 4,
                }
            )
    return rows


def _throughput() -> list[Row]:
    moments = (timedelta(days=-1), timedelta(0), timedelta(minutes=1), timedelta(hours=23))
    return [
        {"minute": DAY + at, "queue": QUEUE, "arrived": 30, "received": 15, "bytes": 9000}
        for at in moments
    ]


def _findings() -> list[Row]:
    lost_at = DAY + timedelta(hours=10, minutes=2)
    rows: list[Row] = [
        {
            "kind": "lost",
            "severity": "error",
            "message_id": LOST,
            "queue": QUEUE,
            "route": ROUTE,
            "first_at": lost_at + timedelta(minutes=2 * n),
            "last_at": lost_at + timedelta(minutes=2 * n),
            "messages": 1,
            "explanation": f"SALES01 handed it to BERLIN, which never saw it. {HOSTILE}",
        }
        for n in range(2)
    ]
    rows += [
        {"kind": "late", "severity": "warning", "message_id": f"{{G}}\\{n}", "messages": 1}
        | {"first_at": DAY, "last_at": DAY, "explanation": f"late {n}", "route": ROUTE}
        for n in range(30)
    ]
    before = DAY - timedelta(hours=3)
    rows.append(
        {"kind": "doubled", "severity": "error", "messages": 9, "explanation": "yesterday"}
        | {"first_at": before, "last_at": before}
    )
    return rows
