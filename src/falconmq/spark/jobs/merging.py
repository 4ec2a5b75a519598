r"""What is known of a message, collected from events and from what was known before.

How to think about it. Spark brings together all rows about a message: new events, and its row in
the ledger if that is open. This module makes one row of them, for thousands of messages at once. A
message has *places*: a queue of a manager, where it arrived at a time, once, and left in some way.
Facts are merged by rules that do not care for order or grouping (the earliest time, the sum of the
counts, the reason of what happened last), so it does not matter how the events were cut into
batches, and no times of different managers are compared.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.json

from falconmq.spark.grouped import (
    NONE,
    TIME,
    Groups,
    Texts,
    as_numbers,
    as_times,
    combined_codes,
    numbers,
    taken,
)

ENDINGS: Final = ("expired", "purged", "queue_deleted", "rejected")
Kinds = tuple[str, ...]
# What events tell of a place, and of which kinds they are; None: of any.
_TIMES: Final[dict[str, Kinds | None]] = {
    "queued_at": ("queued",),
    "delivered_at": ("delivered",),
    "arrived_at": ("arrived",),
    "received_at": ("received",),
    "moved_at": ("moved",),
    "ended_at": ENDINGS,
    "kept_at": ("journaled", "dead_lettered"),
    "refused_at": ("refused",),
    "reported_at": ("reported",),
    "first_at": None,
}
_COUNTS: Final[dict[str, Kinds]] = {
    "queued": ("queued",),
    "delivered": ("delivered",),
    "arrivals": ("arrived",),
    "receipts": ("received",),
    "moves": ("moved",),
    "endings": ENDINGS,
}
_TEXTS: Final[dict[str, Kinds | None]] = {
    "address": ("delivered", "reported"),
    "ending": ENDINGS,
    "computer": None,
}
_REASONS: Final = (*ENDINGS, "dead_lettered", "refused")
PLACE: Final = pa.struct(
    [
        *((name, pa.string()) for name in ("manager", "computer", "queue")),
        *((name, TIME) for name in _TIMES),
        *((name, pa.int64()) for name in _COUNTS),
        *((name, pa.string()) for name in ("address", "ending", "reason")),
    ]
)
_ABOUT: Final = {  # of the message itself: how two values become one
    "size": "maximum",
    "sent_at": "minimum",
    "sequence_number": "maximum",
    "previous_number": "maximum",
    "is_traced": "maximum",
    "updated_batch": "maximum",
    "told_at": "minimum",
    "duplicates": "total",
    "returns": "total",
    "events": "total",
    "first_at": "minimum",
    "last_at": "maximum",
}
_ABOUT_TIMES: Final = ("sent_at", "told_at", "first_at", "last_at")
_ABOUT_TEXTS: Final = ("destination", "sequence_id")
MERGED: Final = pa.schema(
    [
        ("message_id", pa.string()),
        *((name, TIME if name in _ABOUT_TIMES else pa.int64()) for name in _ABOUT),
        *((name, pa.string()) for name in _ABOUT_TEXTS),
        ("told", pa.list_(pa.string())),
        ("places", pa.list_(PLACE)),
    ]
)
BEFORE: Final = MERGED.names[1:]
"""What is kept of a message: columns of a row of the ledger, `is_traced` as a number."""

BEFORE_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_BEFORE: Final = pa.schema([MERGED.field(name) for name in BEFORE])
EVENT: Final = (  # what is read of an event
    *("at", "kind", "manager", "computer", "queue", "reason", "detail", "size", "sent_at"),
    *("sequence_id", "sequence_number", "previous_number", "destination", "trace"),
)
Columns = dict[str, Any]


def merge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows sorted by message, of which the last may go on in the next batch, as Spark has them."""
    rest: pa.Table | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        if rest is not None:
            table = pa.concat_tables([rest, table])
        ids = table.column("message_id")
        last = ids[-1].as_py()
        cut = pc.index(pc.equal(ids, last), True).as_py()
        rest = table.slice(cut)
        if cut:
            yield merge(table.slice(0, cut))
    if rest is not None:
        yield merge(rest)


def packed(merged: pa.RecordBatch) -> bytes:
    """What is known of some messages, as one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, merged.schema) as writer:
        writer.write_batch(merged)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(facts: Any) -> pa.RecordBatch:
    return pa.ipc.open_stream(facts).read_next_batch()


def merge(rows: pa.Table) -> pa.RecordBatch:
    """One row for each message; all rows of a message stand together."""
    ids = rows.column("message_id").combine_chunks()
    starts = np.flatnonzero(
        np.append(True, pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False))
    )
    message = np.cumsum(np.bincount(starts, minlength=rows.num_rows)) - 1
    texts = Texts()
    is_known = pc.is_valid(rows.column("before").combine_chunks())
    is_known = is_known.to_numpy(zero_copy_only=False)
    known = _known(rows.column("before").filter(pa.array(is_known)))
    events = rows.select([*EVENT, "updated_batch"]).filter(pa.array(~is_known))
    ev = _events(events, texts)
    ev["message"] = message[~is_known]
    old_message = message[is_known]
    places = _places(ev, known, old_message, texts)
    about = _about(ev, known, old_message, len(starts), texts)
    columns = [ids.take(pa.array(starts)), *about.values()]
    columns.append(_told(ev, known, old_message, len(starts), texts))
    columns.append(_lists(places, len(starts), texts))
    return pa.RecordBatch.from_arrays(columns, schema=MERGED)


def _known(documents: Any) -> pa.StructArray:
    """What was known before. It comes as JSON: null in most rows, and nothing is as quick to pass
    through Spark as a column of nulls."""
    lines = "\n".join(documents.to_pylist()).encode()
    if not lines:
        return pa.array([], pa.struct(list(_BEFORE)))
    table = pa.json.read_json(
        io.BytesIO(lines),
        read_options=pa.json.ReadOptions(block_size=len(lines) + 1),
        parse_options=pa.json.ParseOptions(
            explicit_schema=_BEFORE, unexpected_field_behavior="error"
        ),
    )
    return table.combine_chunks().to_struct_array().combine_chunks()


def _events(events: pa.Table, texts: Texts) -> Columns:
    """Events as arrays."""
    found: Columns = {}
    for name in ("manager", "computer", "queue", "reason", "detail", "destination", "sequence_id"):
        found[name] = texts.codes(events.column(name))
    for name in ("at", "size", "sent_at", "sequence_number", "previous_number", "updated_batch"):
        found[name] = numbers(events.column(name))
    found["is_traced"] = numbers(events.column("trace"))
    found["kind"] = texts.codes(events.column("kind"))
    return found


def _is(ev: Columns, texts: Texts, kinds: tuple[str, ...]) -> Any:
    return np.isin(ev["kind"], [texts.code(kind) for kind in kinds])


def _places(ev: Columns, known: Any, old_message: Any, texts: Texts) -> Columns:
    """One entry for each message at each place, in order of message and time."""
    parents = old_message[pc.list_parent_indices(known.field("places")).to_numpy()]
    flat = pc.list_flatten(known.field("places"))
    rows: Columns = {"message": np.concatenate([ev["message"], parents])}
    for name in ("manager", "queue"):
        rows[name] = np.concatenate([ev[name], texts.codes(flat.field(name))])
    key = combined_codes([rows["message"], rows["manager"], rows["queue"]])
    count = int(key.max(initial=-1)) + 1
    groups = Groups(key, count)
    first = groups.row_of(np.arange(len(key)), last=False)
    found: Columns = {name: taken(rows[name], first, -1) for name in rows}
    for name, kinds in _TIMES.items():
        new = ev["at"] if kinds is None else np.where(_is(ev, texts, kinds), ev["at"], NONE)
        found[name] = groups.minimum(np.concatenate([new, numbers(flat.field(name))]))
    for name, counted in _COUNTS.items():
        new = _is(ev, texts, counted).astype(np.int64)
        found[name] = groups.total(np.concatenate([new, numbers(flat.field(name))]))
    _add_texts(found, ev, flat, groups, texts)
    order = np.lexsort((found["queue"], found["manager"], found["first_at"], found["message"]))
    return {name: values[order] for name, values in found.items()}


def _add_texts(found: Columns, ev: Columns, flat: Any, groups: Groups, texts: Texts) -> None:
    at = np.concatenate([ev["at"], numbers(flat.field("first_at"))])
    for name, kinds in _TEXTS.items():
        source = {"address": "detail", "ending": "kind", "computer": "computer"}[name]
        new = ev[source]
        if kinds is not None:
            new = np.where(_is(ev, texts, kinds), new, -1)
        values = np.concatenate([new, texts.codes(flat.field(name))])
        row = groups.row_of(np.where(values >= 0, at, NONE), last=True)
        found[name] = taken(values, row, -1)
    # The reason of what happened last: for what was known, that was when it ended or was kept.
    new = np.where(_is(ev, texts, _REASONS), ev["reason"], -1)
    values = np.concatenate([new, texts.codes(flat.field("reason"))])
    kept = [numbers(flat.field(name)) for name in ("ended_at", "kept_at", "refused_at")]
    when = np.concatenate([ev["at"], np.maximum.reduce(kept)])
    row = groups.row_of(np.where(values >= 0, when, NONE), last=True)
    found["reason"] = taken(values, row, -1)


def _about(
    ev: Columns, known: Any, old_message: Any, count: int, texts: Texts
) -> dict[str, pa.Array]:
    """Of the messages themselves."""
    groups = Groups(np.concatenate([ev["message"], old_message]), count)
    one = np.ones(len(ev["at"]), np.int64)
    new = {
        **ev,
        "told_at": np.where(_is(ev, texts, ("told",)), ev["at"], NONE),
        "duplicates": _is(ev, texts, ("duplicate",)).astype(np.int64),
        "returns": _is(ev, texts, ("returned",)).astype(np.int64),
        "events": one,
        "first_at": ev["at"],
        "last_at": ev["at"],
    }
    found: dict[str, pa.Array] = {}
    for name, how in _ABOUT.items():
        values = np.concatenate([new[name], numbers(known.field(name))])
        merged = getattr(groups, how)(values)
        found[name] = as_times(merged) if name in _ABOUT_TIMES else as_numbers(merged)
    for name in _ABOUT_TEXTS:
        codes = groups.maximum(np.concatenate([ev[name], texts.codes(known.field(name))]))
        found[name] = texts.column(codes)
    return found


def _told(ev: Columns, known: Any, old_message: Any, count: int, texts: Texts) -> pa.Array:
    """The classes of answers, each once; there are few of them."""
    found: dict[int, set[str]] = {}
    for row in np.flatnonzero(_is(ev, texts, ("told",)) & (ev["reason"] >= 0)).tolist():
        answers = found.setdefault(int(ev["message"][row]), set())
        answers.add(texts.values[ev["reason"][row]])
    told = known.field("told")
    for row in np.flatnonzero(pc.list_value_length(told).fill_null(0).to_numpy() > 0).tolist():
        found.setdefault(int(old_message[row]), set()).update(told[row].as_py())
    if not found:
        offsets = pa.array(np.zeros(count + 1, np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))
    lists = [sorted(found.get(index, ())) for index in range(count)]
    return pa.array(lists, pa.list_(pa.string()))


def _lists(places: Columns, count: int, texts: Texts) -> pa.Array:
    arrays: list[pa.Array] = []
    for field in PLACE:
        values = places[field.name]
        if pa.types.is_string(field.type):
            arrays.append(texts.column(values))
        elif pa.types.is_timestamp(field.type):
            arrays.append(as_times(values))
        else:
            arrays.append(as_numbers(values))
    offsets = np.searchsorted(places["message"], np.arange(count + 1)).astype(np.int32)
    struct = pa.StructArray.from_arrays(arrays, fields=list(PLACE))
    return pa.ListArray.from_arrays(pa.array(offsets), struct)
