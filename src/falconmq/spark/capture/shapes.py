"""Packets of common shapes to columns, many at once; what is left goes through `facts`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from falconmq.spark.capture import facts
from falconmq.spark.capture.cursors import messages
from falconmq.spark.capture.gather import fixed, taken
from falconmq.spark.capture.packed import PackedPackets, Shape, session_columns
from falconmq.spark.capture.tables import array
from falconmq.spark.capture.views import Flags, Ints
from falconmq.wire import (
    base_header,
    connection_parameters,
    establish_connection,
    session_ack,
)
from falconmq.wire.internal_header import (
    CONNECTION_PARAMETERS,
    CONNECTION_REFUSED,
    ESTABLISH_CONNECTION,
    PACKET_TYPE,
    SESSION_ACK,
)


def recognise(data: bytes, starts: Ints, lengths: Ints) -> list[Shape]:
    """The packets that are plain; all others go the slow way."""
    packets = PackedPackets(data, starts, lengths)
    found = [
        _session_acks(packets),
        _establish_connections(packets),
        _connection_parameters(packets),
        messages(packets),
    ]
    return [shape for shape in found if len(shape.rows)]


def _internal(packets: PackedPackets, packet_type: int, size: int, flags: int) -> tuple[Ints, Ints]:
    """Internal packets of a type, which have one size only: rows, and where they begin."""
    rows = np.flatnonzero(packets.lengths == size)
    starts = packets.starts[rows]
    plain = packets.word(starts + 2) & flags == flags
    plain &= packets.word(starts + 18) & PACKET_TYPE == packet_type
    return rows[plain], starts[plain]


def _is_refused(packets: PackedPackets, starts: Ints) -> Flags:
    refused: Flags = packets.word(starts + 18) & CONNECTION_REFUSED != 0
    return refused


def _session_acks(packets: PackedPackets) -> Shape:
    flags = base_header.INTERNAL | base_header.SESSION_HEADER
    rows, starts = _internal(packets, SESSION_ACK, session_ack.SIZE, flags)
    plain = ~_is_refused(packets, starts)  # which a SessionAck never is
    rows, starts = rows[plain], starts[plain]
    columns = session_columns(packets, starts + 20)
    return Shape(rows, {"kind": pa.repeat("SessionAck", len(rows)), **columns})


def _establish_connections(packets: PackedPackets) -> Shape:
    rows, starts = _internal(
        packets, ESTABLISH_CONNECTION, establish_connection.SIZE, base_header.INTERNAL
    )
    if not len(rows):
        return Shape(rows, {})
    columns = {
        "kind": pa.repeat("EstablishConnection", len(rows)),
        "client_manager": taken(fixed(packets.u1, starts + 20, 16), facts.manager_text),
        "server_manager": taken(fixed(packets.u1, starts + 36, 16), facts.manager_text),
        "is_refused": array("is_refused", _is_refused(packets, starts)),
    }
    return Shape(rows, columns)


def _connection_parameters(packets: PackedPackets) -> Shape:
    rows, starts = _internal(
        packets, CONNECTION_PARAMETERS, connection_parameters.SIZE, base_header.INTERNAL
    )
    columns = {
        "kind": pa.repeat("ConnectionParameters", len(rows)),
        "window_size": array("window_size", packets.word(starts + 30)),
        "is_refused": array("is_refused", _is_refused(packets, starts)),
    }
    return Shape(rows, columns)
