"""A record batch of packets: most of them all at once, the unusual ones through the decoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.client.arrow import array_of, messages_to_batch, schema_of
from falconmq.client.packet_columns.buffers import Int64s, Packed
from falconmq.client.packet_columns.columns import make_column
from falconmq.client.packet_columns.shape import Shape, may_be_understood, read_shape
from falconmq.client.packet_columns.texts import placed
from falconmq.errors import WireError
from falconmq.message import Message
from falconmq.serialization import from_user_message
from falconmq.wire.packet import decode_packet
from falconmq.wire.user_message import UserMessage

_CLASS = "message_class"


def packets_to_batch(
    packets: Packed,
    beside: Mapping[str, Any],
    columns: Sequence[str] | None = None,
) -> pa.RecordBatch:
    """One row a packet: what `messages_to_batch` makes of the messages in them, and their `size`.

    All columns, or `columns` alone in their order. `beside` has the columns that a packet does not
    know (arrays or lists of the column's own values); where its `message_class` is null, the class
    of the packet stands. A packet that is none raises WireError, which names the row.
    """
    wanted = schema_of(columns)
    if not packets.starts.size:
        return pa.RecordBatch.from_pylist([], schema=wanted)
    made = _made(packets, [name for name in wanted.names if name not in beside or name == _CLASS])
    for name in set(wanted.names) & beside.keys():
        given = _given(beside[name], wanted.field(name).type)
        made[name] = pc.coalesce(given, made[name]) if name == _CLASS else given
    return pa.RecordBatch.from_arrays([made[name] for name in wanted.names], schema=wanted)


def _given(values: Any, type_: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values.cast(type_)
    return pa.array(values, type_) if isinstance(values, np.ndarray) else array_of(values, type_)


def _made(packets: Packed, names: list[str]) -> dict[str, pa.Array]:
    """The columns that packets know, each packet read by whoever understands it."""
    shape, seldom = _understood(packets)
    made = {} if shape is None else {name: make_column(name, shape) for name in names}
    if not seldom.size:
        return made
    decoded = _decoded(packets, seldom, names)
    if shape is None:
        return decoded
    is_seldom = np.zeros(len(packets.starts), np.bool_)
    is_seldom[seldom] = True
    return {
        name: placed([(~is_seldom, made[name]), (is_seldom, decoded[name])], len(is_seldom))
        for name in names
    }


def _understood(packets: Packed) -> tuple[Shape | None, Int64s]:
    """The shape of the packets that can be read at once, and the rows of all others."""
    candidates = may_be_understood(packets)
    rows = np.flatnonzero(candidates)
    shape = None
    if rows.size:
        shape = read_shape(packets if candidates.all() else packets.take(rows))
        candidates[rows] = shape.understood
        if not shape.understood.all():
            rows = rows[shape.understood]
            shape = read_shape(packets.take(rows)) if rows.size else None
    return shape, np.flatnonzero(~candidates)


def _decoded(packets: Packed, rows: Int64s, names: list[str]) -> dict[str, pa.Array]:
    """The columns of some packets, decoded one by one."""
    data = memoryview(packets.data)
    messages = []
    for row in rows:
        start = packets.starts[row]
        messages.append(_message(data[start : start + packets.lengths[row]], int(row)))
    beside = {"size": packets.lengths[rows].tolist()}
    batch = messages_to_batch(messages, beside=beside, columns=names)
    return dict(zip(names, batch.columns, strict=True))


def _message(packet: memoryview, row: int) -> Message:
    try:
        decoded = decode_packet(packet)
        if not isinstance(decoded, UserMessage):
            raise WireError("Packets", "Packet", "no user message")
    except WireError as error:
        error.args = (f"row {row}: {error}",)
        raise
    return from_user_message(decoded)
