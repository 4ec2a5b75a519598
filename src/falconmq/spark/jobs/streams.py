"""Transactional streams: whether their messages arrived in order, and which never did.

Spark sorts the arrivals of each stream and hands them over as record batches; `falconmq.spark.runs`
makes runs of them, and what is known of a stream from before is brought together with its new runs.
The work is by run, not by message. A stream is one sender's numbering for one queue of one manager;
its row in silver/streams is made anew with each batch of the ledger. A message that its queue
refused has passed as well, and one that is moved to another queue repeats its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql import functions as sql

from falconmq.client import arrow
from falconmq.spark.jobs.lake_tables import STREAMS
from falconmq.spark.runs import Missing, Run, Stream, fold, run_starts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

KEY: Final = ("source", "sequence_id", "manager")
_RUNS: Final = (
    "source string, sequence_id string, manager string, queue string, computer string, "
    "number bigint, previous bigint, low bigint, high bigint, size bigint, "
    "first_at timestamp, last_at timestamp"
)
_FOLDED: Final = (
    f"{STREAMS.schema}, disorders array<struct<low: bigint, high: bigint, size: bigint, "
    "at: timestamp>>"
)


def runs_of(events: DataFrame) -> DataFrame:
    """The arrivals among events, as runs in order of arrival (`number` of their first event)."""
    passed = events.where("kind in ('arrived', 'refused') and sequence_id is not null")
    arrivals = passed.select(
        sql.lower(sql.substring("message_id", 2, 36)).alias("source"),
        "sequence_id",
        "manager",
        "queue",
        "computer",
        "number",
        "sequence_number",
        "previous_number",
        "at",
    )
    ordered = arrivals.repartition(*KEY).sortWithinPartitions(*KEY, "number")
    return ordered.mapInArrow(collapse_batches, _RUNS)


def collapse_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`; a run that goes over the end of a batch becomes two."""
    for batch in batches:
        if batch.num_rows:
            yield collapse(batch)


def collapse(arrivals: pa.RecordBatch) -> pa.RecordBatch:
    """The runs of arrivals that are sorted by stream and number of the event."""
    pyarrow = arrow.load()
    numbers = arrivals.column("sequence_number").to_numpy(zero_copy_only=False)
    previous = arrivals.column("previous_number").fill_null(0).to_numpy(zero_copy_only=False)
    starts = run_starts(_stream_codes(arrivals), numbers, previous)
    ends = np.append(starts[1:], len(numbers)) - 1
    first, last = pyarrow.array(starts), pyarrow.array(ends)
    columns = {
        name: arrivals.column(name).take(first) for name in (*KEY, "queue", "computer", "number")
    }
    columns |= {
        "previous": pyarrow.array(previous[starts]),
        "low": pyarrow.array(numbers[starts]),
        "high": pyarrow.array(numbers[ends]),
        "size": pyarrow.array(ends - starts + 1),
        "first_at": arrivals.column("at").take(first),
        "last_at": arrivals.column("at").take(last),
    }
    return pyarrow.RecordBatch.from_pydict(columns)


def _stream_codes(arrivals: pa.RecordBatch) -> Any:
    """A number for each row that changes where the stream does."""
    changes = np.zeros(arrivals.num_rows, bool)
    for name in KEY:
        codes = arrivals.column(name).dictionary_encode().indices.fill_null(-1)
        codes = codes.to_numpy(zero_copy_only=False)
        changes[1:] |= codes[1:] != codes[:-1]
    return np.cumsum(changes)


def folded(known: DataFrame, runs: DataFrame) -> DataFrame:
    """silver/streams with the new runs, and a column of what came in the wrong order."""
    left, right = known.groupBy(*KEY), runs.groupBy(*KEY)
    return left.cogroup(right).applyInArrow(fold_group, _FOLDED)


def fold_group(known: pa.Table, runs: pa.Table) -> pa.Table:
    """One stream: its row, if it had one, and its new runs."""
    before = known.to_pylist()[0] if known.num_rows else None
    rows = sorted(runs.to_pylist(), key=lambda row: row["number"])
    stream, disorders = fold(
        None if before is None else _stream(before),
        [
            Run(r["previous"], r["low"], r["high"], r["size"], r["first_at"], r["last_at"])
            for r in rows
        ],
    )
    assert stream is not None
    head = rows[-1] if rows else before
    assert head is not None
    row = {
        **{name: head[name] for name in (*KEY, "computer")},
        "queue": next((row["queue"] for row in (before, *rows) if row and row["queue"]), None),
        "first_number": stream.first_number,
        "last_number": stream.last_number,
        "arrived": stream.arrived,
        "repeated": stream.repeated,
        "out_of_order": stream.out_of_order,
        "missing": [gap._asdict() for gap in stream.missing],
        "first_at": stream.first_at,
        "last_at": stream.last_at,
        "disorders": [disorder._asdict() for disorder in disorders],
    }
    return arrow.load().Table.from_pylist([row], schema=_folded_schema())


def _stream(row: dict[str, Any]) -> Stream:
    gaps = [Missing(g["low"], g["high"], _utc(g["after"]), _utc(g["at"])) for g in row["missing"]]
    return Stream(
        row["first_number"],
        row["last_number"],
        row["arrived"],
        row["first_at"],
        row["last_at"],
        row["repeated"],
        row["out_of_order"],
        tuple(gaps),
    )


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _folded_schema() -> pa.Schema:
    pyarrow = arrow.load()
    number, text, time = pyarrow.int64(), pyarrow.string(), pyarrow.timestamp("us", "UTC")
    gap = pyarrow.struct([("low", number), ("high", number), ("after", time), ("at", time)])
    disorder = pyarrow.struct([("low", number), ("high", number), ("size", number), ("at", time)])
    return pyarrow.schema(
        [
            *((name, text) for name in ("source", "sequence_id", "manager", "computer", "queue")),
            *((name, number) for name in ("first_number", "last_number", "arrived")),
            *((name, number) for name in ("repeated", "out_of_order")),
            ("missing", pyarrow.list_(gap)),
            ("first_at", time),
            ("last_at", time),
            ("disorders", pyarrow.list_(disorder)),
        ]
    )
