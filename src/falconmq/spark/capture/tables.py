"""What comes out of captures: the columns of packets, sessions and anomalies, for Arrow and Spark.

One batch that leaves a task holds rows of one of the three; the other two are null in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

_TIME: Final = pa.timestamp("us", tz="UTC")
_ARROW: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp": _TIME,
    "binary": pa.binary(),
}

PACKET_FACTS: Final = (  # what a packet says; null where its kind does not say it
    ("kind", "string"),  # EstablishConnection, UserMessage, OrderAck, ..., Ping, malformed
    ("problem", "string"),  # why it is malformed
    ("message_id", "string"),
    ("message_class", "string"),
    ("priority", "int"),
    ("delivery", "string"),
    ("label", "string"),
    ("queue", "string"),  # format name of the destination
    ("body_size", "bigint"),
    ("body_type", "bigint"),
    ("correlation_id", "string"),
    ("sent_at", "timestamp"),
    ("time_to_reach_queue", "bigint"),
    ("time_to_be_received", "bigint"),
    ("hop_count", "int"),
    ("is_traced", "boolean"),
    ("sequence_id", "string"),
    ("sequence_number", "bigint"),
    ("previous_number", "bigint"),
    ("about_sequence_id", "string"),  # of an OrderAck or FinalAck
    ("about_sequence_number", "bigint"),
    ("about_message_id", "string"),
    ("client_manager", "string"),
    ("server_manager", "string"),
    ("is_refused", "boolean"),
    ("ack_sequence_number", "int"),  # the SessionHeader as it is, 16 bits that wrap
    ("stored_sequence_number", "int"),
    ("stored_flags", "bigint"),
    ("user_sequence_number", "int"),
    ("recoverable_sequence_number", "int"),
    ("window_size", "int"),
)
PACKETS: Final = (
    ("capture_set", "string"),
    ("capture", "string"),  # the file that completed it
    ("frame", "bigint"),  # the frame there
    ("at", "timestamp"),
    ("flow", "string"),  # its connection; null for pings
    ("direction", "string"),  # to_server or to_client
    ("index", "bigint"),  # its place among the packets of this direction, from 0
    ("source", "string"),
    ("source_port", "int"),
    ("destination", "string"),
    ("destination_port", "int"),
    ("size", "bigint"),
    ("lost", "bigint"),  # bytes right before it that the capture does not hold
    ("message_number", "bigint"),  # which user message of its direction it is, never wrapping
    ("acknowledged_number", "bigint"),  # user messages of the other direction that it acknowledges
    *PACKET_FACTS,
    ("packet", "binary"),  # its bytes, if they are kept
)
SESSIONS: Final = (
    ("capture_set", "string"),
    ("flow", "string"),
    ("client", "string"),
    ("client_port", "int"),
    ("server", "string"),
    ("server_port", "int"),
    ("client_manager", "string"),
    ("server_manager", "string"),
    ("started_at", "timestamp"),
    ("ended_at", "timestamp"),
    ("end_reason", "string"),  # closed, reset, replaced by a new connection, the capture ends
    ("is_whole", "boolean"),  # the captures hold its first segment
    ("is_refused", "boolean"),
    ("segments", "bigint"),
    ("repeated_segments", "bigint"),
    ("client_packets", "bigint"),
    ("server_packets", "bigint"),
    ("client_bytes", "bigint"),
    ("server_bytes", "bigint"),
    ("missing_bytes", "bigint"),
)
ANOMALIES: Final = (
    ("capture_set", "string"),
    ("capture", "string"),
    ("frame", "bigint"),
    ("at", "timestamp"),
    ("flow", "string"),
    ("direction", "string"),
    ("kind", "string"),
    ("reason", "string"),
    ("size", "bigint"),  # bytes concerned
    ("count", "bigint"),  # frames concerned
    ("first_bytes", "binary"),  # at most 64
)
TABLES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "packet": PACKETS,
    "session": SESSIONS,
    "anomaly": ANOMALIES,
}


def ddl(columns: Sequence[tuple[str, str]]) -> str:
    """The columns in Spark's words."""
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def struct_type(columns: Sequence[tuple[str, str]]) -> pa.StructType:
    return pa.struct([(name, _ARROW[kind]) for name, kind in columns])


def all_ddl() -> str:
    """Of what leaves a task: one struct for each table."""
    return ", ".join(f"{name} struct<{ddl(columns)}>" for name, columns in TABLES.items())


def batch_of(table: str, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """A batch of rows of one table, from its columns; those that are not given are null."""
    rows = len(next(iter(columns.values())))
    kinds = dict(TABLES[table])
    arrays = []
    for name, kind in kinds.items():
        array = columns.get(name)
        arrays.append(pa.nulls(rows, _ARROW[kind]) if array is None else array)
    row = pa.StructArray.from_arrays(arrays, fields=list(struct_type(TABLES[table])))
    structs = [
        row if name == table else pa.nulls(rows, struct_type(other))
        for name, other in TABLES.items()
    ]
    return pa.RecordBatch.from_arrays(structs, names=list(TABLES))


def batch_of_rows(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """A batch from rows that are dictionaries; what they leave out is null."""
    columns = {
        name: pa.array([row.get(name) for row in rows], _ARROW[kind])
        for name, kind in TABLES[table]
    }
    return batch_of(table, columns)


def array(column: str, values: Any) -> pa.Array:
    """Values of a column of packets."""
    return pa.array(values, _ARROW[dict(PACKETS)[column]])
