"""Packets of the event log become rows of bronze/messages, in the executors.

Pure functions on record batches: they need no Spark, and Spark only carries the batches. A packet
that is none does not stop the others: its row has the reason in `reject` instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from falconmq.client import arrow
from falconmq.client.columns import COLUMNS
from falconmq.errors import FalconMQError
from falconmq.spark.jobs.lake_tables import MESSAGE_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

REJECT: Final = "reject"
SCHEMA: Final = (
    f"manager string, number bigint, kind string, at timestamp, {MESSAGE_COLUMNS}, "
    f"packet binary, {REJECT} string"
)
"""What `decode_batches` makes: a message or, if `reject` is not null, its packet."""

NEEDED: Final = (
    *("manager", "number", "kind", "at", "queue", "lookup_id"),
    *("arrival_number", "reason", "packet"),
)
"""The columns of events that it reads."""

_DEAD: Final = "dead_lettered"
_ARRIVED: Final = ("arrived", _DEAD, "journaled")


def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`."""
    for batch in batches:
        if batch.num_rows:
            yield decode_batch(batch)


def decode_batch(events: pa.RecordBatch) -> pa.RecordBatch:
    """The messages of events that have a packet, each in its place."""
    pyarrow = arrow.load()
    try:
        messages = _decode(events)
    except FalconMQError:  # one of them is no packet: find out which
        return (
            pyarrow.Table.from_batches(
                [_decode_one(events.slice(row, 1)) for row in range(events.num_rows)]
            )
            .combine_chunks()
            .to_batches()[0]
        )
    nothing = pyarrow.nulls(events.num_rows, pyarrow.binary())
    return _row(events, messages, nothing, [None] * events.num_rows)


def _decode_one(event: pa.RecordBatch) -> pa.RecordBatch:
    pyarrow = arrow.load()
    try:
        return _row(event, _decode(event), pyarrow.nulls(1, pyarrow.binary()), [None])
    except FalconMQError as error:
        nobody = [pyarrow.nulls(1, field.type) for field in arrow.schema()]
        messages = pyarrow.RecordBatch.from_arrays(nobody, schema=arrow.schema())
        return _row(event, messages, event.column("packet"), [str(error)])


def _decode(events: pa.RecordBatch) -> pa.RecordBatch:
    from falconmq.client.packet_columns import packed_of, packets_to_batch  # noqa: PLC0415 - numpy

    pyarrow = arrow.load()
    compute = pyarrow.compute
    kinds = events.column("kind")
    seconds = compute.floor_temporal(events.column("at"), unit="second")
    nothing = pyarrow.scalar(None, pyarrow.timestamp("us", "UTC"))
    has_arrived = compute.is_in(kinds, pyarrow.array(_ARRIVED))
    is_dead = compute.equal(kinds, _DEAD)
    beside: dict[str, Any] = {
        "queue": events.column("queue"),
        "lookup_id": events.column("lookup_id"),
        "arrival_number": events.column("arrival_number"),
        "locked": pyarrow.nulls(events.num_rows, pyarrow.bool_()),
        "arrived_at": compute.if_else(has_arrived, seconds, nothing),
        "message_class": compute.if_else(
            is_dead, events.column("reason"), pyarrow.scalar(None, pyarrow.string())
        ),
    }
    return packets_to_batch(packed_of(events.column("packet")), beside)


def _row(
    events: pa.RecordBatch, messages: pa.RecordBatch, packets: pa.Array, reasons: list[str | None]
) -> pa.RecordBatch:
    pyarrow = arrow.load()
    head = ("manager", "number", "kind", "at")
    names = [*head, *(column.name for column in COLUMNS), "packet", REJECT]
    arrays = [
        *(events.column(name) for name in head),
        *(messages.column(column.name) for column in COLUMNS),
        packets,
        pyarrow.array(reasons, pyarrow.string()),
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=names)
