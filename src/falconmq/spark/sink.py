r"""Rows become messages: `frame.write` and `frame.writeStream` with `format("falconmq")`.

How to think about it. Each task hands its rows to the queue manager, where they wait in a stage;
nobody sees them there. It tells the driver the number of its stage. When all tasks are done, the
driver commits the stages of the batch: then all messages are there, in one moment, and the queue
manager remembers that this writer has done this batch. So a task that runs twice, a batch that is
replayed after a crash and a driver that was given up change nothing: each row is one message.

The writer of a stream is known by the id of its query, which stays with the checkpoint. An empty
batch is committed too: a driver that nobody waits for any more could fill it later.

Rows of a partition keep their order. What crosses from one process to another (Spark makes a new
writer for each batch, and another one to commit it) goes through `Handed`, the message of a task to
the driver; nothing that is open is ever sent.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from falconmq.client import ControlClient
from falconmq.client.ingests import Ingest
from falconmq.client.packets import destination_of
from falconmq.spark.option_table import refuse
from falconmq.spark.problems import told
from falconmq.spark.sink_options import COLLECT, SinkOptions, check_key, overwriting
from falconmq.spark.sink_rejects import RejectFile
from falconmq.spark.sink_rows import RowPackets, sorted_by
from falconmq.spark.sink_stage import TaskStage

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY: Final = "sql.streaming.queryId"  # of the properties that Spark gives a task
_BATCH: Final = "streaming.sql.batchId"

_log = logging.getLogger("falconmq.spark")


@dataclass(frozen=True)
class Handed(WriterCommitMessage):
    """What a task tells the driver."""

    key: str
    batch: int
    stage: UUID | None  # None: there was nothing to send
    count: int
    bytes: int
    rejected: int


def writer(
    options: Mapping[str, str],
    schema: StructType,  # noqa: ARG001  # the rows show their columns
    overwrite: bool,
) -> FalconMQWriter:
    """The writer of a batch: `frame.write`."""
    if overwrite:
        raise overwriting()
    return FalconMQWriter(SinkOptions.parse(options))


def stream_writer(
    options: Mapping[str, str],
    schema: StructType,  # noqa: ARG001
    overwrite: bool,
) -> FalconMQStreamWriter:
    """The writer of one batch of a stream: `frame.writeStream`."""
    if overwrite:
        raise overwriting()
    parsed = SinkOptions.parse(options)
    if parsed.batch:
        raise refuse("batch is for batch writes: a stream numbers its own", "leave it out")
    return FalconMQStreamWriter(parsed)


class FalconMQWriter(DataSourceArrowWriter):
    """Writes one DataFrame, once for its key."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.key = options.key or f"batch-{uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Handed:
        return hand_in(iterator, self.options, self.key, self.options.batch, _partition())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        commit(self.options, self.key, self.options.batch, _handed(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        abort(self.options, self.key, self.options.batch, _handed(messages))


class FalconMQStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a streaming query, each once."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Handed:
        with told():
            key, batch = _running_batch(self.options)
        return hand_in(iterator, self.options, key, batch, _partition())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        handed = _handed(messages)
        if handed:  # Spark plans no batch without tasks, and only they know the key
            commit(self.options, handed[0].key, batchId, handed)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        handed = _handed(messages)
        if handed:
            abort(self.options, handed[0].key, batchId, handed)


# In a task


def hand_in(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, key: str, batch: int, partition: int
) -> Handed:
    """Stage the rows of one task."""
    with told(), _ingest(options, key) as ingest:
        if options.order_by is not None:
            batches = sorted_by(options.order_by, batches)
        stage: TaskStage | None = None
        rejects: RejectFile | None = None
        try:
            for rows in batches:
                if not rows.num_rows:
                    continue
                if stage is None:
                    stage = TaskStage(ingest, options, batch, partition)
                    rejects = _reject_file(options, key, batch, partition)
                    making = _packets_for(stage, options, rejects)
                if not stage.is_repeated:
                    stage.send(making.packets(rows))
            if stage is None:
                return Handed(key, batch, None, 0, 0, 0)
            stage.flush()
            if rejects is not None:
                rejects.close()
        except BaseException:
            if stage is not None:
                stage.abort()
            raise
        rejected = 0 if rejects is None else len(rejects)
        return Handed(key, batch, stage.id, stage.count, stage.bytes, rejected)


def _packets_for(stage: TaskStage, options: SinkOptions, rejects: RejectFile | None) -> RowPackets:
    facts = stage.stage
    is_transactional = facts.is_transactional
    return RowPackets(
        destination_of(facts.format_name),
        options.transactional if is_transactional is None else is_transactional,
        facts.manager,
        keep_ids=options.keep_ids,
        rejected=None if rejects is None else rejects.add,
        order_by=options.order_by,
    )


def _reject_file(options: SinkOptions, key: str, batch: int, partition: int) -> RejectFile | None:
    if options.on_reject != COLLECT:
        return None
    assert options.reject_path is not None
    return RejectFile(options.reject_path, key, batch, partition, str(uuid4()))


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _running_batch(options: SinkOptions) -> tuple[str, int]:
    """Which batch of which query a task works for.

    A new checkpoint begins with batch 0 again, and is a new query: so its id is in the key even if
    the user gave one, or the queue manager would take its rows for old ones.
    """
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(_QUERY)
    batch = None if context is None else context.getLocalProperty(_BATCH)
    if query is None or batch is None:
        raise refuse(
            "Spark does not say which batch of which query this is",
            "write with foreachBatch: a batch write with the options key and batch",
        )
    return check_key(query if options.key is None else f"{options.key}:{query}"), int(batch)


# In the driver


def commit(options: SinkOptions, key: str, batch: int, handed: Sequence[Handed]) -> None:
    """All rows of a batch become messages; if they are already, nothing happens."""
    stages = [each.stage for each in handed if each.stage is not None]
    with told(), _ingest(options, key) as ingest:
        done = ingest.commit(batch, stages)
    rejected = sum(each.rejected for each in handed)
    if rejected:
        _log.warning(
            "rows rejected queue=%s batch=%d rejected=%d path=%s",
            options.queue, batch, rejected, options.reject_path,
        )  # fmt: skip
    _log.info(
        "batch committed queue=%s key=%s batch=%d messages=%d repeated=%s",
        options.queue, key, batch, done.count, done.is_repeated,
    )  # fmt: skip


def abort(options: SinkOptions, key: str, batch: int, handed: Sequence[Handed]) -> None:
    """Let the queue manager drop what it has now; else it does so by itself."""
    stages = [each.stage for each in handed if each.stage is not None]
    if stages:
        with _ingest(options, key) as ingest:
            ingest.abort(batch, stages)


def _handed(messages: Sequence[WriterCommitMessage | None]) -> list[Handed]:
    """What tasks have told; of one that failed Spark knows nothing."""
    return [message for message in messages if isinstance(message, Handed)]


@contextlib.contextmanager
def _ingest(options: SinkOptions, key: str) -> Iterator[Ingest]:
    with ControlClient.connect(options.url, options.token, ca_file=options.ca_file) as client:
        yield Ingest(client, key, patience=options.timeout)
