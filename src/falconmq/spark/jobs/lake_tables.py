"""The tables of the lake: what each is called, holds and is good for.

Bronze is what the queue managers told, silver what follows from it for each message, gold what
people look at. Schemas grow by columns at their end and in no other way (`falconmq.spark.tables`).
Nothing here needs pyspark.
"""

from __future__ import annotations

from typing import Final

from falconmq.client import event_columns
from falconmq.client.columns import COLUMNS
from falconmq.spark.tables import TableSpec

_TYPES: Final = {
    "string": "string",
    "binary": "binary",
    "bool": "boolean",
    "int32": "int",
    "int64": "bigint",
    "timestamp[us, tz=UTC]": "timestamp",
    "list<string>": "array<string>",
}
MESSAGE_COLUMNS: Final = ", ".join(f"{column.name} {_TYPES[column.type]}" for column in COLUMNS)
# Without the packet: that is in bronze/messages.
EVENT_COLUMNS: Final = ", ".join(
    f"{column.name} {_TYPES[column.type]}"
    for column in event_columns.EVENT_COLUMNS
    if column.name != "packet"
)
# A place that a message passed: a queue of a manager, and what happened there.
_PLACE: Final = (
    "manager: string, computer: string, queue: string, queued_at: timestamp, "
    "delivered_at: timestamp, arrived_at: timestamp, received_at: timestamp, "
    "moved_at: timestamp, ended_at: timestamp, kept_at: timestamp, refused_at: timestamp, "
    "reported_at: timestamp, first_at: timestamp, queued: bigint, delivered: bigint, "
    "arrivals: bigint, receipts: bigint, moves: bigint, endings: bigint, address: string, "
    "ending: string, reason: string"
)
LIFE_COLUMNS: Final = (
    "message_id string, sent_at timestamp, begun_at timestamp, arrived_at timestamp, "
    "received_at timestamp, left_at timestamp, state string, reason string, queue string, "
    "route string, size bigint, latency_seconds double, waiting_seconds double, "
    "sender string, source_computer string, destination string, arrived_manager string, "
    "arrived_computer string, arrivals bigint, receipts bigint, duplicates bigint, "
    "returns bigint, told array<string>, told_at timestamp, sequence_id string, "
    "sequence_number bigint, previous_number bigint, is_traced boolean, first_at timestamp, "
    f"last_at timestamp, events bigint, places array<struct<{_PLACE}>>, findings array<string>, "
    "lost_from string, lost_to string, updated_batch bigint, day date"
)

EVENTS: Final = TableSpec(
    "bronze/events",
    f"{EVENT_COLUMNS}, day date",
    ("day",),
    "What happened to messages, as the event logs of the queue managers tell it: one row for each "
    "(manager, number).",
)
MESSAGES: Final = TableSpec(
    "bronze/messages",
    f"manager string, number bigint, kind string, {MESSAGE_COLUMNS}, day date",
    ("day", "queue"),
    "The messages themselves, of queues whose bodies the event log keeps (kind: the event that "
    "brought them) and of snapshots (kind snapshot): one row for each (manager, number), or "
    "(manager, queue, arrival_number) in snapshots.",
)
LEDGER: Final = TableSpec(
    "silver/ledger",
    LIFE_COLUMNS,
    ("day",),
    "One row for each message whose life is over: where it was sent, each place it passed, how it "
    "ended, and how long that took.",
)
LEDGER_OPEN: Final = TableSpec(
    "silver/ledger_open",
    LIFE_COLUMNS,
    (),
    "The same for messages that are under way, that wait, or that ended only just now.",
)
STREAMS: Final = TableSpec(
    "silver/streams",
    "source string, sequence_id string, manager string, computer string, queue string, "
    "first_number bigint, last_number bigint, arrived bigint, repeated bigint, "
    "out_of_order bigint, "
    "missing array<struct<low: bigint, high: bigint, after: timestamp, at: timestamp>>, "
    "first_at timestamp, last_at timestamp",
    (),
    "How far each transactional stream came in each queue it goes to, and which of its numbers "
    "never arrived.",
)
FINDINGS: Final = TableSpec(
    "silver/findings",
    "kind string, severity string, message_id string, queue string, route string, "
    "first_at timestamp, last_at timestamp, messages bigint, explanation string, evidence string",
    (),
    "What is wrong: lost, doubled, late, out_of_order, dead_letter, stuck, unknown_fate and "
    "archive_gap; and what only looks so: repeated (sent again, and dropped where it was already). "
    "Each with an explanation in words and the evidence as JSON.",
)
LATENCY: Final = TableSpec(
    "gold/latency",
    "hour timestamp, queue string, route string, messages bigint, p50_seconds double, "
    "p95_seconds double, p99_seconds double, max_seconds double",
    (),
    'Seconds from sending until a message is in its queue, by hour; queue and route "*" for all.',
)
THROUGHPUT: Final = TableSpec(
    "gold/throughput",
    "minute timestamp, queue string, arrived bigint, received bigint, bytes bigint",
    (),
    "Messages that came into a queue and were received from it, by minute; bytes of those that "
    "came.",
)
BACKLOG: Final = TableSpec(
    "gold/backlog",
    "minute timestamp, queue string, depth bigint, oldest_seconds double",
    (),
    "How many messages wait in a queue at the end of a minute, and for how long the oldest does.",
)
DEAD_LETTERS: Final = TableSpec(
    "gold/dead_letters",
    "hour timestamp, queue string, route string, cause string, messages bigint",
    (),
    "Messages that ended as dead letters, by hour and cause (a message class).",
)
CHANGES: Final = TableSpec(
    "gold/changes",
    "day date, queue string, route string, measure string, before double, now double, "
    "is_worse boolean",
    (),
    "What changed from the day before to this day: messages, latency, dead letters and backlog of "
    "each queue; is_worse marks what an operator should look at.",
)
ALL: Final = (
    *(EVENTS, MESSAGES, LEDGER, LEDGER_OPEN, STREAMS, FINDINGS),
    *(LATENCY, THROUGHPUT, BACKLOG, DEAD_LETTERS, CHANGES),
)
