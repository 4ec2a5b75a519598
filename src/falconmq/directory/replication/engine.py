"""Directory replication as a machine without I/O: messages and time go in, messages come out.

Each call is one turn: it reads and changes the directory under its lock, commits once, and only
then lets anything out, so that nobody hears of what a crash could undo. Nothing here waits or
sends; a carrier does that, with the clock that both were given (MC-MQDSRP; guide 9).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.replication import starting
from falconmq.directory.replication.acks import receive_bsc_ack, receive_psc_ack
from falconmq.directory.replication.checks import speaker_of
from falconmq.directory.replication.effects import Send
from falconmq.directory.replication.gate import ReplicatedWrites
from falconmq.directory.replication.numbers import NumberBook
from falconmq.directory.replication.receiving import receive_change_propagation
from falconmq.directory.replication.requesting import (
    resend_sync_request,
    send_bsc_ack,
    send_change_propagation,
)
from falconmq.directory.replication.roles import settle_role, take_configured_role
from falconmq.directory.replication.server import LongReply, Server
from falconmq.directory.replication.serving import receive_sync_request, send_rest
from falconmq.directory.replication.settings import ReplicationSettings, Role, ServerIdentity
from falconmq.directory.replication.state import ReplicationState
from falconmq.directory.replication.status import ReplicationStatus, status_of
from falconmq.directory.replication.synchronizing import (
    receive_already_purged,
    receive_sync_reply,
    run_reset,
)
from falconmq.directory.replication.timers import Timer, TimerKind
from falconmq.directory.replication.write_requests import (
    change_object,
    change_request_nacked,
    receive_change_reply,
    receive_change_request,
    wait_is_over,
)
from falconmq.directory.replication.writes import PendingWrite, RequestedChange
from falconmq.errors import FalconMQError, MqStatus
from falconmq.wire.replication_messages import (
    AlreadyPurgedMessage,
    BSCAckMessage,
    ChangePropagationMessage,
    ChangeReplyMessage,
    ChangeRequestMessage,
    PSCAckMessage,
    ReplicationMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)

_TOLD: Final = (ChangePropagationMessage, SyncReplyMessage, AlreadyPurgedMessage)
_log: Final = logging.getLogger("falconmq.directory")


class ReplicationEngine:
    """One directory server. Any thread may call it; calls happen one at a time."""

    def __init__(
        self,
        directory: EmbeddedDirectory,
        identity: ServerIdentity,
        settings: ReplicationSettings,
        clock: Clock,
        random: Random,
    ) -> None:
        self.on_effects: Callable[[], None] | None = None
        self.gate = ReplicatedWrites(self)
        self._directory = directory
        self._outbox: deque[Send] = deque()
        self._next_due: float | None = None
        self._deaf_until = 0.0  # by the monotonic clock
        with directory.changing() as writer:
            numbers = NumberBook(writer.workspace)
            state = ReplicationState.load(writer.workspace)
            self._server = Server(identity, settings, clock, random, writer, numbers, state)
            take_configured_role(self._server)

    @property
    def role(self) -> Role:
        """What this server is now."""
        return self._server.role

    @property
    def counters(self) -> dict[str, int]:
        return dict(self._server.counters)

    def start(self) -> list[Send]:
        """Begin to work (guide 9.1); from here on the directory's own changes are replicated."""
        with self.turn() as server:
            starting.start(server)
        self._directory.replica = self.gate
        return self.take_effects()

    def stop(self) -> None:
        """Leave the directory to itself; whoever waits for a write hears that nobody answered."""
        self._directory.replica = None
        with self.turn() as server:
            for waiting in server.waiting.values():
                if waiting.write is not None:
                    server.finished.append((waiting.write, MqStatus.MQDS_NO_RSP_FROM_OWNER))
            server.waiting.clear()

    def receive(self, message: ReplicationMessage, sender: UUID | None) -> list[Send]:
        """Take a message; `sender` is the queue manager whose signature was verified, or None."""
        if isinstance(message, _TOLD) and self._server.clock.monotonic() < self._deaf_until:
            self._server.drop("after_store_failed")
            return self.take_effects()
        try:
            with self.turn() as server:
                _dispatch(server, message, sender)
        except FalconMQError as error:
            self._failed(error)
            self._rest()
        return self.take_effects()

    def change_request_nacked(self, message: ChangeRequestMessage) -> list[Send]:
        """A change request came back: it could not be delivered."""
        with self.turn() as server:
            change_request_nacked(server, message)
        return self.take_effects()

    def next_due(self) -> float | None:
        """When `run_due` has something to do next, by the monotonic clock."""
        return self._next_due

    def run_due(self) -> list[Send]:
        """Do what is due now. It may be due again at once: long answers go out in parts."""
        with self.turn() as server:
            due = server.timers.take_due(server.clock.monotonic())
        for timer in due:
            try:
                with self.turn() as server:
                    _run(server, timer)
            except FalconMQError as error:
                self._failed(error)
                with self.turn() as server:
                    server.arm(timer.kind, timer.subject, server.settings.reset_retry_seconds)
        return self.take_effects()

    def take_effects(self) -> list[Send]:
        """Everything that waits to be sent, in its order."""
        effects = []
        while self._outbox:
            effects.append(self._outbox.popleft())
        return effects

    def request(self, change: RequestedChange, at: str = "") -> PendingWrite:
        """Ask for a change, of a certain server or of whoever knows the way.

        At its authority the result is there at once.
        """
        with self.turn() as server:
            write = change_object(server, change, at)
        self.tell_carrier()
        return write

    def command(self, action: Callable[[Server], None]) -> None:
        """Let an operator do something; what is refused leaves nothing behind. FalconMQError."""
        refused: FalconMQError | None = None
        with self.turn() as server:
            mark = server.objects.workspace.mark()
            try:
                action(server)
            except FalconMQError as error:
                server.objects.workspace.restore(mark)
                refused = error
        if refused is not None:
            raise refused
        self.tell_carrier()

    def status(self) -> ReplicationStatus:
        with self.turn() as server:
            return status_of(server)

    def tell_carrier(self) -> None:
        """After a change that did not come from the carrier."""
        if self.on_effects is not None:
            self.on_effects()

    @contextmanager
    def turn(self) -> Iterator[Server]:
        """One step of the server: all of it becomes true, or nothing."""
        server = self._server
        with self._directory.changing() as writer:
            server.objects, server.numbers = writer, NumberBook(writer.workspace)
            try:
                yield server
                settle_role(server)
                server.state.store(writer.workspace)
                writer.workspace.commit()
            except Exception:
                self._undo()
                raise
            self._outbox.extend(server.effects)
            server.effects.clear()
            self._next_due = server.timers.next_due()
            finished, server.finished = server.finished, []
        for write, status in finished:
            write.finish(status)

    def _undo(self) -> None:
        """What the store does not have did not happen: go on from what it has."""
        server = self._server
        server.effects.clear()
        server.finished.clear()
        server.forget_turn()
        with self._directory.reading() as (_, reader):
            server.state = ReplicationState.load(reader)
        take_configured_role(server)
        starting.resume(server)
        self._next_due = server.timers.next_due()

    def _rest(self) -> None:
        """Hear nothing new for a while, then ask for it: the store may be full.

        Otherwise part after part of an answer would be lost, and each be asked for at once.
        """
        with self.turn() as server:
            seconds = server.settings.reset_retry_seconds
            self._deaf_until = server.clock.monotonic() + seconds
            for partition in server.state.partitions.values():
                if not server.owns(partition):
                    server.arm(TimerKind.SYNC_RESEND, partition.partition_id, seconds)

    def _failed(self, error: FalconMQError) -> None:
        self._server.drop("store_failed")
        _log.error("directory replication cannot go on: %s", error)


def _dispatch(server: Server, message: ReplicationMessage, sender: UUID | None) -> None:
    speaker = speaker_of(server, sender)
    if not speaker.is_anybody and not speaker.name:
        server.drop("unknown_sender")
        return
    match message:
        case ChangePropagationMessage():
            receive_change_propagation(server, message, speaker)
        case ChangeRequestMessage():
            receive_change_request(server, message, speaker)
        case SyncRequestMessage():
            receive_sync_request(server, message, speaker)
        case SyncReplyMessage():
            receive_sync_reply(server, message, speaker)
        case ChangeReplyMessage():
            receive_change_reply(server, message, speaker)
        case AlreadyPurgedMessage():
            receive_already_purged(server, message, speaker)
        case PSCAckMessage():
            receive_psc_ack(server, message, speaker)
        case BSCAckMessage():
            receive_bsc_ack(server, message, speaker)


def _run(server: Server, timer: Timer) -> None:
    state, subject = server.state, timer.subject
    match timer.kind:
        case TimerKind.PROPAGATION:
            neighbour = state.neighbours.get(subject) if isinstance(subject, bytes) else None
            if neighbour is not None:
                send_change_propagation(server, neighbour)
                server.arm_propagation(neighbour)  # RP-3.3.6.1-04
        case TimerKind.BSC_ACK:
            send_bsc_ack(server)
        case TimerKind.WRITE_WAIT:
            assert isinstance(subject, tuple)
            wait_is_over(server, subject)
        case TimerKind.SYNC_REPLY:
            assert isinstance(subject, LongReply)
            send_rest(server, subject)
        case TimerKind.SYNC_RESEND | TimerKind.RESET:
            partition = state.partitions.get(subject) if isinstance(subject, UUID) else None
            if partition is not None and timer.kind is TimerKind.RESET:
                run_reset(server, partition)
            elif partition is not None:
                resend_sync_request(server, partition)
