"""Blocks of the event log as Arrow record batches: numpy reads the records, no event is an object.

How to think about it. The parts of many blocks are put behind each other: all records make one
table, all texts one array. A record names its texts by their place in its own block, so the places
of each block are moved on by the number of texts in the blocks before it, and every column of texts
is one `take`. A million events take less than a second, in blocks of one event or of two thousand.

Needs numpy and pyarrow; imported when somebody wants Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.client.event_columns import event_schema
from falconmq.manager.event_store import NAMED, ORDERED, PACKED, RECORD, TRACED, Block, damaged
from falconmq.service.observation.event_texts import class_text
from falconmq.service.requests.event_entries import KIND_NAMES

_RECORDS: Final = np.dtype(
    [
        ("at", "<i8"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("reason", "<u2"),
        ("queue", "<u4"),
        ("detail", "<u4"),
        ("destination", "<u4"),
        ("source", "<u4"),
        ("message_id", "<u4"),
        ("sent_time", "<u4"),
        ("lookup_id", "<u8"),
        ("arrival_number", "<u8"),
        ("size", "<u4"),
        ("sequence_id", "<u8"),
        ("sequence_number", "<u4"),
        ("previous_number", "<u4"),
        ("packet_size", "<u4"),
    ]
)
assert _RECORDS.itemsize == RECORD.size
_MICROSECONDS: Final = 1_000_000
_KINDS: Final = pa.array(KIND_NAMES)

Numbers = npt.NDArray[Any]


def to_batch(
    blocks: Sequence[Block], *, manager: str, computer: str, packets: bool = False
) -> pa.RecordBatch:
    """All events of some blocks, in order; StoreError if one names what it does not hold."""
    records = np.frombuffer(b"".join([block.records for block in blocks]), _RECORDS)
    count, texts = len(records), _Texts(blocks)
    flags = records["flags"]
    is_named, is_ordered = flags & NAMED != 0, flags & ORDERED != 0
    columns = {
        "number": pa.array(_numbers(blocks)),
        "at": _times(records["at"]),
        "kind": _KINDS.take(pa.array(records["kind"])),
        "manager": pa.repeat(manager, count),
        "computer": pa.repeat(computer, count),
        "message_id": _message_ids(texts.of(records["source"]), records["message_id"], is_named),
        "queue": texts.of(records["queue"]),
        "lookup_id": _whole(records["lookup_id"], records["lookup_id"] != 0),
        "arrival_number": _whole(records["arrival_number"], records["arrival_number"] != 0),
        "size": _whole(records["size"]),
        "reason": _reasons(records["reason"]),
        "detail": texts.of(records["detail"]),
        "sent_at": _times(
            records["sent_time"].astype("<i8") * _MICROSECONDS, records["sent_time"] != 0
        ),
        "sequence_id": pa.array(records["sequence_id"], mask=~is_ordered).cast(pa.string()),
        "sequence_number": _whole(records["sequence_number"], is_ordered),
        "previous_number": _whole(records["previous_number"], is_ordered),
        "destination": texts.of(records["destination"]),
        "trace": pa.array(flags & TRACED != 0),
        "packet": _packets(blocks, records) if packets else pa.nulls(count, pa.binary()),
    }
    schema = event_schema()
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


class _Texts:
    """The texts of all blocks as one array, and how far each block's places are moved on."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        counts = np.array([block.head.texts for block in blocks], np.int64)
        events = np.array([block.head.events for block in blocks], np.int64)
        self._before = np.repeat(np.cumsum(counts) - counts, events)
        self._most = np.repeat(counts, events)
        sizes = np.frombuffer(b"".join([block.text_sizes for block in blocks]), "<u4")
        ends = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes, out=ends[1:])
        content = b"".join([block.texts for block in blocks])
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
        self._texts = pa.Array.from_buffers(pa.string(), len(sizes), buffers)

    def of(self, places: Numbers) -> pa.Array:
        """A column of texts; null where the place is 0."""
        if np.any(places > self._most):
            bad = int(np.argmax(places > self._most))
            number = int(_numbers(self._blocks)[bad])
            raise damaged(number, "it names a text that is not there")
        moved = places.astype(np.int64) + self._before - 1
        return self._texts.take(pa.array(moved, mask=places == 0))


def _numbers(blocks: Sequence[Block]) -> Numbers:
    counts = np.array([block.head.events for block in blocks], np.int64)
    first = np.array([block.head.first for block in blocks], np.int64)
    moved = np.repeat(first - (np.cumsum(counts) - counts), counts)
    numbers: Numbers = moved + np.arange(len(moved))
    return numbers


def _whole(values: Numbers, known: Numbers | None = None) -> pa.Array:
    mask = None if known is None else ~known
    return pa.array(values.astype(np.int64), mask=mask)


def _times(microseconds: Numbers, known: Numbers | None = None) -> pa.Array:
    return _whole(microseconds, known).cast(pa.timestamp("us", "UTC"))


def _message_ids(sources: pa.Array, ordinals: Numbers, known: Numbers) -> pa.Array:
    r"""`{GUID}\number`."""
    numbers = pa.array(ordinals, mask=~known).cast(pa.string())
    return pc.binary_join_element_wise(sources, numbers, "\\")


def _reasons(codes: Numbers) -> pa.Array:
    """Names of message classes; there are few different ones."""
    found, places = np.unique(codes, return_inverse=True)
    names = pa.array([class_text(int(code)) if code else None for code in found], pa.string())
    return names.take(pa.array(places))


def _packets(blocks: Sequence[Block], records: Numbers) -> pa.Array:
    """The packets stand behind each other, in the order of the events that have one."""
    known = records["flags"] & PACKED != 0
    sizes = np.where(known, records["packet_size"], 0)
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    content = b"".join([block.packets for block in blocks])
    if ends[-1] != len(content):
        raise damaged(blocks[0].head.first, "its packets are not as long as it says")
    valid = np.packbits(known, bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)
