"""The columns of the event log as a table: Arrow streams over HTTP, Parquet files, Spark.

One list for the service that writes them, for readers, and for the reference. As in
`client.columns` the types are those that Arrow, Parquet and Spark share. Nothing here needs
pyarrow until somebody asks for the schema.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from falconmq.client.arrow import load
from falconmq.client.columns import BINARY, BOOL, INT64, STRING, TIME

if TYPE_CHECKING:
    import pyarrow as pa


class EventColumn(NamedTuple):
    """One column."""

    name: str
    type: str
    description: str


EVENT_COLUMNS: Final = (
    EventColumn("number", INT64, "Counts the events of one queue manager, without gaps."),
    EventColumn("at", TIME, "When it happened."),
    EventColumn("kind", STRING, "What happened: queued, arrived, delivered, received, ..."),
    EventColumn("manager", STRING, "GUID of the queue manager where it happened."),
    EventColumn("computer", STRING, "Name of its computer."),
    EventColumn("message_id", STRING, "`{GUID}\\number` of the message; null if it is about none."),
    EventColumn("queue", STRING, "Path name; of an outgoing queue where it leads; null if none."),
    EventColumn("lookup_id", INT64, "The place of the message there; null if it has none."),
    EventColumn("arrival_number", INT64, "Counts messages as they become readable there."),
    EventColumn("size", INT64, "Bytes of the message; 0 if they are not known."),
    EventColumn("reason", STRING, "The message class that says why, such as NACK_Q_PURGED."),
    EventColumn("detail", STRING, "The peer, or where the message went."),
    EventColumn("sent_at", TIME, "When the message was sent."),
    EventColumn("sequence_id", STRING, "The stream it belongs to, 64 bits in digits."),
    EventColumn("sequence_number", INT64, "Its place in the stream, from 1."),
    EventColumn("previous_number", INT64, "The place of the one before it; 0 if there is none."),
    EventColumn("destination", STRING, "Format name of the queue that it was sent to."),
    EventColumn("trace", BOOL, "Its sender asked for reports of every hop."),
    EventColumn("packet", BINARY, "The message as it travels, of queues whose bodies are kept."),
)


@lru_cache(maxsize=1)
def event_schema() -> pa.Schema:
    """The columns, each with its description as metadata."""
    arrow = load()
    types = {
        BINARY: arrow.binary(),
        BOOL: arrow.bool_(),
        INT64: arrow.int64(),
        STRING: arrow.string(),
        TIME: arrow.timestamp("us", "UTC"),
    }
    return arrow.schema(
        [
            arrow.field(
                column.name, types[column.type], metadata={"description": column.description}
            )
            for column in EVENT_COLUMNS
        ]
    )
