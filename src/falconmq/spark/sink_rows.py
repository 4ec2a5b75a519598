r"""From rows to packets: what a task of the sink does with each batch of rows.

A row that cannot be a message (a label that is too long, a body that is null) ends the task, or is
put aside with the reason, as the options say. A column that no row can use (a misspelt name, a
number where a text must be) always ends it: that is a mistake in the query.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from falconmq.client.arrow import check_columns
from falconmq.client.columns import BY_NAME
from falconmq.client.packet_building import arrow_to_packets
from falconmq.errors import FalconMQError, MessageError
from falconmq.message import MessageId
from falconmq.names import SingleFormatName

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGE_ID: Final = "message_id"
SENT_AT: Final = "sent_at"
_SOURCE: Final = slice(16, 32)  # SourceQueueManager of a packet
_SENT: Final = struct.Struct("<II")  # SentTime and MessageID
_SENT_OFFSET: Final = 52
_ROW: Final = re.compile(r"row (\d+): ")  # that an error begins with


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that cannot be a message."""

    row: int  # of the task, from 0
    error: FalconMQError
    reason: str
    values: dict[str, Any]


@dataclass(slots=True)
class RowPackets:
    """Makes the packets of one task."""

    destination: SingleFormatName
    in_transaction: bool
    source: UUID  # the queue manager that sends them
    keep_ids: bool = False
    rejected: Callable[[Rejected], None] | None = None  # None: a rejected row ends it
    order_by: str | None = None
    rows: int = 0  # that were seen

    def packets(self, batch: pa.RecordBatch) -> list[bytes]:
        """One packet for each row that can be a message, in their order."""
        batch = self._columns(batch)
        if self.rows == 0:
            self._build(batch.slice(0, 0))  # columns that fit no row
        found = self._packets(batch, self.rows)
        self.rows += batch.num_rows
        return found

    def _columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of messages; the one that orders the rows may be another."""
        names = batch.schema.names
        if self.order_by in names and self.order_by not in BY_NAME:
            batch = batch.drop_columns([self.order_by])
        check_columns(batch.schema)
        if self.keep_ids and MESSAGE_ID not in names:
            hint = "keepIds is for rows that were read from queues"
            raise MessageError(MESSAGE_ID, "the column is missing", hint=hint)
        return batch

    def _packets(self, batch: pa.RecordBatch, first: int) -> list[bytes]:
        """Halve a batch with a row that is refused until that stands alone."""
        try:
            return self._build(batch)
        except FalconMQError as error:
            if self.rejected is None:
                raise _counted(error, first) from None
            if batch.num_rows == 1:
                reason = _ROW.sub("", str(error), count=1)
                self.rejected(Rejected(first, error, reason, batch.to_pylist()[0]))
                return []
        middle = batch.num_rows // 2
        found = self._packets(batch.slice(0, middle), first)
        return found + self._packets(batch.slice(middle), first + middle)

    def _build(self, batch: pa.RecordBatch) -> list[bytes]:
        packets = arrow_to_packets(
            batch, self.destination, in_transaction=self.in_transaction, source=self.source
        )
        return _with_ids(packets, batch) if self.keep_ids else packets


def _counted(error: FalconMQError, first: int) -> FalconMQError:
    """The same error; the row that it names is one of the task, not of some batch of it."""
    error.args = (_ROW.sub(lambda found: f"row {first + int(found[1])}: ", str(error), count=1),)
    return error


def _with_ids(packets: list[bytes], batch: pa.RecordBatch) -> list[bytes]:
    """The same packets as they were sent for the first time: by whom, when, with which number."""
    ids = batch.column(MESSAGE_ID).to_pylist()
    has_times = SENT_AT in batch.schema.names
    times = batch.column(SENT_AT).to_pylist() if has_times else [None] * len(ids)
    found = []
    for packet, text, sent_at in zip(packets, ids, times, strict=True):
        id, filled = _message_id(text), bytearray(packet)
        filled[_SOURCE] = id[:16]
        _SENT.pack_into(filled, _SENT_OFFSET, _seconds(sent_at), id.ordinal)
        found.append(bytes(filled))
    return found


def _message_id(text: object) -> MessageId:
    if not isinstance(text, str):
        raise MessageError(MESSAGE_ID, f"{text!r} names no message", hint="keepIds needs one each")
    return MessageId.parse(text)


def _seconds(sent_at: object) -> int:
    if not isinstance(sent_at, datetime):
        raise MessageError(SENT_AT, f"{sent_at!r} is no time", hint="keepIds needs one each")
    return int(sent_at.timestamp())


def sorted_by(column: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of a task, in the order of a column; equal ones stay as they came."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    every = list(batches)
    if not every:
        return
    table = pa.Table.from_batches(every)
    if column not in table.column_names:
        hint = f"orderBy takes one of {', '.join(table.column_names)}"
        raise MessageError(column, "the column is missing", hint=hint)
    order = pc.sort_indices(table, sort_keys=[(column, "ascending")])
    yield from table.take(order).to_batches(max_chunksize=10_000)
