"""What the archive does on the executors: a piece of an event log becomes files of three tables.

How to think about it. A task reads its piece once, batch by batch as the queue manager sends it,
and writes each batch at once: all events to bronze/events, the packets among them as messages to
bronze/messages, and those that are no packets to rejects/archive. What goes back to the driver is
the names of the files and a few counts, so the rows themselves never pass through Java. Nothing of
it counts until the driver says so (`falconmq.spark.part_files`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.spark.jobs import packets
from falconmq.spark.part_files import Draft, PartFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from falconmq.spark.jobs.event_logs import Piece

_SCHEMA: Final = "outcome string"  # JSON: what an attempt did
_RECORD_BYTES: Final = 64 * 1024  # of a packet that is no packet, for the table of rejects


@dataclass(frozen=True)
class Drafts:
    """Where tasks write."""

    events: Draft
    messages: Draft
    rejects: Draft


@dataclass(frozen=True)
class Outcome:
    """What was written, by one task or by all; times in microseconds since 1970, of events."""

    events: tuple[str, ...] = ()  # files
    messages: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()
    carried: int = 0  # events with a packet
    first_at: int | None = None
    last_at: int | None = None


def write_pieces(spark: SparkSession, pieces: Sequence[Piece], drafts: Drafts) -> Outcome:
    """Have Spark write all pieces, each in a task."""
    if not pieces:
        return Outcome()
    numbers = spark.range(0, len(pieces), 1, len(pieces))
    work: Callable[..., Any] = partial(_run_tasks, pieces=pieces, drafts=drafts)
    told = [json.loads(row["outcome"]) for row in numbers.mapInArrow(work, _SCHEMA).collect()]
    firsts = [one["first_at"] for one in told if one["first_at"] is not None]
    lasts = [one["last_at"] for one in told if one["last_at"] is not None]
    return Outcome(
        events=tuple(name for one in told for name in one["events"]),
        messages=tuple(name for one in told for name in one["messages"]),
        rejects=tuple(name for one in told for name in one["rejects"]),
        carried=sum(one["carried"] for one in told),
        first_at=min(firsts, default=None),
        last_at=max(lasts, default=None),
    )


def write_piece(task: int, piece: Piece, drafts: Drafts) -> Outcome:
    """One attempt of one task."""
    events = PartFiles(drafts.events, task)
    messages = PartFiles(drafts.messages, task)
    rejects = PartFiles(drafts.rejects, task)
    carried = 0
    firsts: list[int] = []
    lasts: list[int] = []
    for batch in piece():
        if not batch.num_rows:
            continue
        has_packet = batch.column("packet").is_valid()
        events.write(_with_day(_without_packets(batch, has_packet.true_count)))
        times = pc.min_max(batch.column("at").cast(pa.int64())).as_py()
        firsts += [] if times["min"] is None else [times["min"]]
        lasts += [] if times["max"] is None else [times["max"]]
        if has_packet.true_count:
            carried += has_packet.true_count
            decoded = packets.decode_batch(batch.select(list(packets.NEEDED)).filter(has_packet))
            is_good = decoded.column(packets.REJECT).is_null()
            if is_good.false_count:
                rejects.write(_rejects(decoded.filter(pc.invert(is_good))))
                decoded = decoded.filter(is_good)
            messages.write(_with_day(decoded))
    return Outcome(
        events=events.close(),
        messages=messages.close(),
        rejects=rejects.close(),
        carried=carried,
        first_at=min(firsts, default=None),
        last_at=max(lasts, default=None),
    )


def _run_tasks(
    batches: Iterable[pa.RecordBatch], pieces: Sequence[Piece], drafts: Drafts
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: the numbers of pieces come, what was written goes back."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            outcome = write_piece(number, pieces[number], drafts)
            yield pa.RecordBatch.from_pydict({"outcome": [json.dumps(outcome.__dict__)]})


def _without_packets(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """Events that keep no packet in memory: those came in the same piece of it."""
    events = batch.drop_columns(["packet"])
    return events.take(pa.array(np.arange(events.num_rows))) if count else events


def _with_day(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("day", batch.column("at").cast(pa.date32()))


def _rejects(decoded: pa.RecordBatch) -> pa.RecordBatch:
    """Rows for the table of rejects."""
    numbers = decoded.column("number").cast(pa.string())
    return pa.RecordBatch.from_pydict(
        {
            "at": decoded.column("at"),
            "source": decoded.column("manager"),
            "place": pc.binary_join_element_wise("event", numbers, " "),
            "reason": decoded.column(packets.REJECT),
            "record": pc.binary_slice(decoded.column("packet"), 0, _RECORD_BYTES),
        }
    )
