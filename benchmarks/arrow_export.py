"""Rows per second between packets and Arrow columns, against doing it message by message.

Both ways are measured in one run, so that their ratio says something on any machine. `export` is
what a queue manager does with the records of its store before it sends an Arrow stream, `import`
what a sender does with the rows of a table; `serialize` writes a finished batch as a stream has it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.codec import best
from falconmq.client.arrow import messages_to_batch, table_to_messages
from falconmq.client.packet_building import arrow_to_packets
from falconmq.client.packets import destination_of, to_packet
from falconmq.embedded.messages import from_position
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.message import Message, MessageTransaction
from falconmq.serialization import to_user_message
from falconmq.service.requests.record_columns import records_to_batch
from falconmq.service.requests.records import Rows

QUEUE: Final = r".\private$\orders"
DESTINATION: Final = destination_of(r"DIRECT=OS:sales01\private$\orders")
SOURCE: Final = UUID("55735802-9150-9595-4997-b6e611ea26c6")
TEN: Final = (
    "arrival_number",
    "message_id",
    "label",
    "body",
    "body_type",
    "priority",
    "correlation_id",
    "sent_at",
    "arrived_at",
    "size",
)
SENT: Final = ("body", "label", "priority", "application_tag", "correlation_id")


@dataclass
class Row:
    work: str
    columns: int
    rows_per_second: float
    one_by_one: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.one_by_one is None else self.rows_per_second / self.one_by_one


def make_records(count: int, body_size: int) -> list[bytes]:
    """Messages as a queue holds them: labels and numbers differ, every second one has a stream."""
    records = []
    for number in range(1, count + 1):
        message = Message(
            bytes(body_size), label=f"order {number}", application_tag=number, recoverable=True
        )
        message.destination = DESTINATION
        if number % 2:
            message.transaction = MessageTransaction(1, number, number - 1, 7)
        packet = to_user_message(
            message, source_queue_manager=SOURCE, message_id=number, sent_time=1_700_000_000
        )
        stored = StoredMessage(packet.encode(), None, 1_700_000_000.5, number)
        records.append(stored.encode())
    return records


def one_by_one(records: list[bytes], columns: Sequence[str] | None) -> pa.RecordBatch:
    found = [StoredMessage.decode(record) for record in records]
    messages = [
        from_position(MessagePosition(None, place, message))  # type: ignore[arg-type]  # no queue
        for place, message in enumerate(found)
    ]
    beside = {
        "arrival_number": [message.arrival_number for message in found],
        "arrived_at": [int(message.arrival_time * 1000) * 1000 for message in found],
        "size": [message.size for message in found],
    }
    return messages_to_batch(messages, QUEUE, beside=beside, columns=columns)


def at_once(records: list[bytes], columns: Sequence[str] | None) -> pa.RecordBatch:
    return records_to_batch(Rows.of(records, range(len(records))), QUEUE, columns=columns)


def send_one_by_one(batch: pa.RecordBatch) -> list[bytes]:
    return [
        to_packet(message, DESTINATION, in_transaction=True) for message in table_to_messages(batch)
    ]


def measure(count: int, body_size: int, seconds: float) -> list[Row]:
    records = make_records(count, body_size)
    rows = []

    def rate(operation: Callable[[], object]) -> float:
        return count / best(operation, seconds)

    for columns in (TEN, None):
        batch = at_once(records, columns)
        assert batch.equals(one_by_one(records, columns))
        fast, slow = partial(at_once, records, columns), partial(one_by_one, records, columns)
        rows.append(Row("export", batch.num_columns, rate(fast), rate(slow)))
        rows.append(Row("serialize", batch.num_columns, rate(batch.serialize)))
    for names in (SENT, batch.schema.names):
        some = batch.select(names)
        build = partial(arrow_to_packets, some, DESTINATION, in_transaction=True)
        assert build() == send_one_by_one(some)
        rows.append(Row("import", len(names), rate(build), rate(partial(send_one_by_one, some))))
    return rows


def print_table(rows: list[Row], count: int, body_size: int) -> None:
    table = Table(title=f"batches of {count} messages with bodies of {body_size} bytes")
    table.add_column("work")
    for column in ("columns", "rows/s", "one by one, rows/s", "ratio"):
        table.add_column(column, justify="right")
    for row in rows:
        slow = "" if row.one_by_one is None else f"{row.one_by_one:,.0f}"
        ratio = "" if row.ratio is None else f"{row.ratio:.1f}"
        table.add_row(row.work, str(row.columns), f"{row.rows_per_second:,.0f}", slow, ratio)
    Console().print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.arrow_export", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rows", type=int, default=10_000, help="of a batch (10000)")
    parser.add_argument("--body", type=int, default=200, help="bytes of a body (200)")
    parser.add_argument("--seconds", type=float, default=1.0, help="per figure (1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    rows = measure(options.rows, options.body, options.seconds)
    if options.json:
        print(json.dumps([{**row.__dict__, "ratio": row.ratio} for row in rows], indent=1))
    else:
        print_table(rows, options.rows, options.body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
