"""One task's part of a batch, on its way into a stage of the queue manager.

Packets are collected into requests and sent one after the other. While the queue manager is away
they are sent again (`client.ingests`). If it was restarted meanwhile, its stages are gone: then the
task begins a new one with the packets that it still has. It keeps so many of them; a task that has
sent more ends with an error, and Spark runs it again.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.client.ingests import REQUEST_PACKETS, Ingest, Staged
from falconmq.errors import FalconMQError, MqStatus, TransactionError
from falconmq.spark.sink_options import SinkOptions

KEPT_BYTES: Final = 64 << 20
_RESTARTS: Final = 5  # of the queue manager, within one task


class TaskStage:
    """A stage that survives a restart of the queue manager, if it is small enough."""

    def __init__(self, ingest: Ingest, options: SinkOptions, batch: int, partition: int) -> None:
        self._ingest = ingest
        self._options = options
        self._batch = batch
        self._partition = partition
        self._sent: list[bytes] | None = []  # contents of requests; None: too much to keep
        self._sent_bytes = 0
        self._packets: list[bytes] = []  # that wait for more
        self._waiting_bytes = 0
        self._restarts = 0
        self.count = 0
        self.bytes = 0
        self.stage = self._open()

    @property
    def is_repeated(self) -> bool:
        """The batch is done already: nothing has to be sent."""
        return self.stage.is_repeated

    @property
    def id(self) -> UUID | None:
        """The stage to commit; None: there is nothing in it."""
        return None if self.is_repeated or not self.count else self.stage.id

    def send(self, packets: list[bytes]) -> None:
        """Some more packets; they go out when there are enough for a request."""
        for packet in packets:
            is_full = self._waiting_bytes + len(packet) > self._options.request_bytes
            if self._packets and (is_full or len(self._packets) == REQUEST_PACKETS):
                self.flush()
            self._packets.append(packet)
            self._waiting_bytes += len(packet)

    def flush(self) -> None:
        """Send what waits."""
        if not self._packets:
            return
        content = b"".join(self._packets)
        self.count += len(self._packets)
        self.bytes += len(content)
        self._packets, self._waiting_bytes = [], 0
        self._keep(content)
        self._number += 1
        try:
            self._add(self._number, content)
        except TransactionError as error:
            if error.status is not MqStatus.STALE_HANDLE:
                raise
            self._begin_again(error)

    def abort(self) -> None:
        """Nobody will commit it."""
        if not self.is_repeated:
            self._ingest.abort(self._batch, [self.stage.id])

    def _open(self) -> Staged:
        self._number = 0  # of the last request
        return self._ingest.open(
            self._batch,
            self._options.queue,
            partition=self._partition,
            seconds=self._options.stage_seconds,
            keep_ids=self._options.keep_ids,
        )

    def _keep(self, content: bytes) -> None:
        self._sent_bytes += len(content)
        if self._sent is not None:
            self._sent.append(content)
            if self._sent_bytes > KEPT_BYTES:
                self._sent = None

    def _add(self, number: int, content: bytes) -> None:
        if not self.is_repeated:
            self._ingest.add(self._batch, self.stage.id, number, content)

    def _begin_again(self, error: TransactionError) -> None:
        """The stage is gone: fill another one, until one stays."""
        while True:
            self._restarts += 1
            if self._sent is None or self._restarts > _RESTARTS:
                raise self._lost() from error
            self.stage = self._open()
            try:
                for content in self._sent:
                    self._number += 1
                    self._add(self._number, content)
            except TransactionError as again:
                if again.status is not MqStatus.STALE_HANDLE:
                    raise
            else:
                return

    def _lost(self) -> FalconMQError:
        return FalconMQError(
            f"the queue manager was restarted, or has dropped the stage of partition "
            f"{self._partition}, and of its {self._sent_bytes} bytes the task has kept "
            f"{KEPT_BYTES} at most",
            status=MqStatus.STALE_HANDLE,
            hint="nothing was sent; Spark runs the task again if it may (spark.task.maxFailures). "
            "More partitions make smaller tasks, stageSeconds lets stages live longer",
        )
