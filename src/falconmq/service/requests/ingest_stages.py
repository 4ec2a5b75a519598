"""Stages: messages that callers have handed in and nobody has committed yet.

A stage is one writer's part of a batch, for one queue. Its packets are checked when they come and
kept as they came: nothing is opened, locked or counted in the queue before the commit, so a stage
that nobody commits leaves no trace. They live in memory, with a bound for all of them together, and
are dropped when nobody has touched them for a while, or when the service stops.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

from falconmq.client.ingests import REQUEST_PACKETS
from falconmq.errors import MqStatus, ResourceError, TransactionError
from falconmq.manager.record import StoredMessage
from falconmq.service.requests.bulk import take_packet
from falconmq.service.requests.bulk_targets import WireForm, check_kind, read_packets
from falconmq.service.requests.expiring import Deadline, Expiring
from falconmq.wire.user_message import UserMessage

STAGED_BYTES: Final = 1 << 30  # of all stages together, if nobody says otherwise
STAGES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """The queue that a stage is for."""

    name: str  # as the caller named it
    form: WireForm
    is_transactional: bool | None  # None: of another computer, so nobody here knows


@dataclass(frozen=True, slots=True)
class Piece:
    """The packets of one request, as they came."""

    body: bytes
    lengths: array[int]

    @classmethod
    def take(
        cls, body: bytes, target: Target, *, in_transaction: bool | None, keep_ids: bool
    ) -> Piece:
        """Check every packet; the error says which one is wrong. Any thread may do it."""
        is_in = in_transaction

        def read(packet: memoryview) -> int:
            nonlocal is_in
            decoded: UserMessage = take_packet(packet, keep_ids=keep_ids)
            target.form.check(decoded)
            if is_in is None:  # the first one says it for all
                is_in = decoded.transaction is not None
            check_kind(decoded, in_transaction=is_in)
            return len(packet)

        return cls(body, array("I", read_packets(body, read, REQUEST_PACKETS)))

    @property
    def size(self) -> int:
        """The memory it takes."""
        return len(self.body) + self.lengths.itemsize * len(self.lengths)

    def messages(self) -> Iterator[StoredMessage]:
        """Its messages, made anew with every look: each has its own copy of its bytes."""
        start = 0
        for length in self.lengths:
            yield StoredMessage(bytearray(self.body[start : start + length]))
            start += length


@dataclass(slots=True, eq=False)
class Stage:
    """One writer's part of a batch."""

    id: UUID
    key: str
    batch: int
    target: Target
    keep_ids: bool
    seconds: float
    deadline: Deadline | None = None
    pieces: list[Piece] = field(default_factory=list)
    count: int = 0
    bytes: int = 0  # of the packets
    next_sequence: int = 0  # of the request that it waits for
    in_transaction: bool | None = field(init=False)  # None: nobody knows before the first packet
    is_busy: bool = False  # a commit is sending it

    def __post_init__(self) -> None:
        self.in_transaction = self.target.is_transactional

    def messages(self) -> Iterator[StoredMessage]:
        for piece in self.pieces:
            yield from piece.messages()


class Stages:
    """All stages; for one event loop."""

    def __init__(self, expiring: Expiring, bytes_max: int = STAGED_BYTES) -> None:
        self._expiring = expiring
        self._open: dict[UUID, Stage] = {}
        self.bytes_max = bytes_max
        self.bytes = 0  # of memory, that all of them take

    def __len__(self) -> int:
        return len(self._open)

    def find(self, id: UUID, key: str, batch: int) -> Stage:
        """A stage of this batch; TransactionError (STALE_HANDLE) if there is none any more."""
        self._expiring.run()
        stage = self._open.get(id)
        if stage is None or (stage.key, stage.batch) != (key, batch):
            raise TransactionError(
                f"there is no stage {id} of batch {batch} of {key}",
                status=MqStatus.STALE_HANDLE,
                hint="it was dropped when its time was over, or the service was restarted; "
                "nothing of it was sent: stage the batch again",
            )
        return stage

    def known(self, id: UUID) -> Stage | None:
        self._expiring.run()
        return self._open.get(id)

    def open(self, stage: Stage) -> None:
        """Keep a new one."""
        if len(self._open) >= STAGES_MAX:
            raise ResourceError(
                f"{STAGES_MAX} stages are open",
                status=MqStatus.INSUFFICIENT_RESOURCES,
                hint="commit or abort some, or wait until their time is over",
            )
        self._open[stage.id] = stage
        stage.deadline = self._expiring.start(stage.seconds, partial(self._expire, stage))

    def check_room(self, size: int) -> None:
        """So many more bytes may be kept; ResourceError says what to do about it."""
        if self.bytes + size > self.bytes_max:
            raise ResourceError(
                f"{self.bytes} bytes are staged in {len(self._open)} stages, {size} more do not "
                f"fit into {self.bytes_max}",
                status=MqStatus.INSUFFICIENT_RESOURCES,
                hint="write fewer rows in one batch, wait until others have committed, or raise "
                "http.staged_bytes",
            )

    def add(self, stage: Stage, piece: Piece) -> None:
        """The next packets of a stage."""
        self.check_room(piece.size)
        if stage.in_transaction is None:
            first = next(piece.messages())
            stage.in_transaction = first.transaction is not None
        stage.pieces.append(piece)
        stage.count += len(piece.lengths)
        stage.bytes += len(piece.body)
        self.bytes += piece.size

    def touch(self, stage: Stage) -> None:
        """Somebody is there who cares for it: its time begins again."""
        assert stage.deadline is not None
        stage.deadline.put_off(stage.seconds)

    def drop(self, stage: Stage) -> None:
        if self._open.pop(stage.id, None) is None:
            return
        assert stage.deadline is not None
        stage.deadline.cancel()
        self.bytes -= sum(piece.size for piece in stage.pieces)
        stage.pieces.clear()

    def drop_up_to(self, key: str, batch: int) -> None:
        """This batch of a key is done: neither its stages nor older ones can be sent any more."""
        for stage in list(self._open.values()):
            if stage.key == key and stage.batch <= batch:
                self.drop(stage)

    def _expire(self, stage: Stage) -> None:
        if stage.is_busy:
            stage.deadline = self._expiring.start(stage.seconds, partial(self._expire, stage))
        else:
            self.drop(stage)
