"""One run of a queue manager: its core, its transport, and the host that runs their turns.

How to think about it. The host does what every host does: run an event, let the transport write its
state into the batch, take the batch, submit it; when it is durable, settle it and tell the
transport in a new turn. If a commit fails, memory is restored from the store. A life ends with a
crash or a stop of its node, and the next one begins with what the disk has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from falconmq.manager import lifecycle
from falconmq.manager.coordinator import ReenlistmentMessage, resolve_in_doubt
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.model import Queue, ReadResult, WaitingRead
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import ConnectionStatus
from falconmq.simulation.disk import Submitted
from falconmq.simulation.network import Endpoint, NodeNetwork
from falconmq.transport.transport import Transport
from falconmq.wire.user_header import DELIVERY_MODE
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.simulation.node import Node
    from falconmq.transport.peers import Peer
    from falconmq.transport.session import Session
    from falconmq.transport.turns import Turn

_T = TypeVar("_T")
_COMMITTED: Final = ReenlistmentMessage.REENLIST_COMMITTED
_ABORTED: Final = ReenlistmentMessage.REENLIST_ABORTED
_TICK: Final = 1e-6  # wall times have no finer grain in a float
_LONGEST_SLEEP: Final = 60.0  # the wall clock may jump while a host sleeps

Outcome = Callable[[bool], None]
"""Told the truth about a turn: its batch is durable, or it never will be."""


@dataclass(slots=True, eq=False)
class Decision:
    """What a coordinator has decided, and how it hears that it was done."""

    is_commit: bool
    ended: Callable[[Life, bool], None]
    is_told: bool = False  # the queue manager is at it


@dataclass(slots=True, eq=False)
class Reader:
    """The tag of a read that waits: told when its end is durable, or that it failed (None)."""

    ended: Callable[[ReadResult | None], None]


class WatchedTransport(Transport):
    """A transport whose refusals the ledger hears of; nothing else tells of them."""

    def __init__(self, life: Life) -> None:
        node = life.node
        super().__init__(life.core, life.network, node.router, node.settings)
        self._life = life

    def count_refusal(
        self, packet: UserMessage, message_class: int, queue: Queue | None = None
    ) -> None:
        super().count_refusal(packet, message_class, queue)
        self._life.refused(packet, message_class)


class Life:
    """One run of the queue manager on a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.world = node.world
        self.is_over = False
        settings = Settings(
            node.name,
            local_names=frozenset({node.name, node.address}),
            quota_kilobytes=node.quota_kilobytes,
        )
        random = Random(node.world.random.getrandbits(64))  # noqa: S311 - repeatable chance
        self.core = QueueManagerCore(node.identifier, node.disk.store, node.clock, random, settings)
        self.network = NodeNetwork(node.network, self)
        self.transport = WatchedTransport(self)
        self._observed: list[Callable[[], None]] = []  # of the turn that runs
        self._done: deque[Turn] = deque()  # durable, the transport is not told yet
        self._is_telling = False
        self._is_serving = False  # its timers run
        self._wake_at: float | None = None
        self.turns = 0

    @property
    def is_current(self) -> bool:
        return not self.is_over

    def begin(self, outcome: Outcome) -> None:
        """Read the store; `outcome` hears whether what that wrote is durable."""
        core = self.core
        core.available_subscribers.append(self._available)
        core.deleted_subscribers.append(self._deleted)

        def begun(is_durable: bool) -> None:
            outcome(is_durable)
            if is_durable and not self.is_over:
                self._serve()

        self.turn(lambda: lifecycle.initialize(core), begun)

    def _serve(self) -> None:
        """Start the transport; some ask their coordinator at once, to others it comes later."""
        self._is_serving = True
        asked: list[Decision] = []

        def outcome_of(identifier: UUID) -> ReenlistmentMessage:
            decision = self.node.decisions[identifier]
            decision.is_told = True
            asked.append(decision)
            return _COMMITTED if decision.is_commit else _ABORTED

        def start() -> None:
            self.transport.start()
            if self.world.chance(0.5):
                resolve_in_doubt(self.core, outcome_of)

        def told(is_durable: bool) -> None:
            for decision in asked:
                decision.ended(self, is_durable)

        self.turn(start, told)

    def _available(self, queue: Queue, position: MessagePosition) -> None:
        ledger = self.node.ledger
        ledger.seen(self.node, queue, position)
        if position.message.is_recoverable:
            self._observed.append(lambda: ledger.available(self.node, queue, position))
        else:  # it lives in memory: nothing has to be durable first
            ledger.available(self.node, queue, position)

    def _deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        ledger = self.node.ledger
        if position.message.is_recoverable:
            self._observed.append(lambda: ledger.deleted(self.node, queue, position, reason))
        else:
            ledger.deleted(self.node, queue, position, reason)

    def refused(self, packet: UserMessage, message_class: int) -> None:
        ledger = self.node.ledger
        if packet.user.flags & DELIVERY_MODE:
            self._observed.append(lambda: ledger.refused(self.node, packet, message_class))
        else:
            ledger.refused(self.node, packet, message_class)

    # Turns

    def turn(self, event: Callable[[], _T], outcome: Outcome | None = None) -> _T:
        """Run one event; `outcome` hears whether its batch became durable."""
        self.turns += 1
        result = event()
        self._submit(outcome)
        return result

    def _submit(self, outcome: Outcome | None = None) -> None:
        turn = self.transport.end_turn()
        batch, positions, woken = self.core.take_batch()
        observed, self._observed = self._observed, []

        def settled(is_durable: bool) -> None:
            if outcome is not None:
                outcome(is_durable)
            if is_durable:
                for action in observed:
                    action()

        if batch.operations:
            self.node.disk.submit(Submitted(batch, lambda: self._durable(turn, positions), settled))
        else:
            settled(True)
            self._stand_in_line(turn)
        for read in woken:
            self._wake(read, has_batch=bool(batch.operations))
        self._tell_transport()
        self._arm()

    def _stand_in_line(self, turn: Turn | None) -> None:
        """A turn without a batch waits too: what it saw may be in a batch before it."""
        last = self.node.disk.last
        if turn is None:
            return
        if last is None:
            self._done.append(turn)
            return
        before = last.done

        def both() -> None:
            before()
            self._durable(turn, [])

        last.done = both

    def _durable(self, turn: Turn | None, positions: list[MessagePosition]) -> None:
        if self.is_over:
            return
        lifecycle.settle(self.core, positions)
        if turn is not None:
            self._done.append(turn)
            self._tell_transport()

    def _tell_transport(self) -> None:
        """Every turn that is durable, each in a turn of its own: a loop, not a recursion."""
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._done and not self.is_over:
                turn = self._done.popleft()
                self.turn(partial(self.transport.turn_done, turn))
        finally:
            self._is_telling = False

    def _wake(self, read: WaitingRead, *, has_batch: bool) -> None:
        """Tell a reader, when the batch is durable before which nobody may see its message."""
        if not isinstance(read.tag, Reader):
            return
        reader, result = read.tag, read.result
        self.when_durable(
            None if result is None else result.position,
            lambda ok: reader.ended(result if ok else None),
            has_batch=has_batch,
        )

    def when_durable(
        self, position: MessagePosition | None, outcome: Outcome, *, has_batch: bool
    ) -> None:
        """Wait for the batch of the last turn, or of the message that was read in it."""
        last = self.node.disk.last
        is_pending = position is not None and position.is_written and not position.is_stored
        if last is None or not (has_batch or is_pending):
            outcome(True)
            return
        before = last.outcome

        def both(ok: bool) -> None:
            before(ok)
            outcome(ok)

        last.outcome = both

    def restore(self) -> None:
        """A commit failed: memory goes back to what the store has."""
        self._done.clear()
        self._observed.clear()
        lifecycle.restore(self.core)
        self.transport.restored()
        self._submit()

    def forget(self) -> None:
        """Nothing of this life is used any more."""
        self._done.clear()
        self._observed.clear()

    # Timers

    def _arm(self) -> None:
        if self.is_over or not self._is_serving:
            return
        seconds = self.core.next_deadline()
        if seconds is None:
            return
        time = self.world.now + min(max(seconds, _TICK), _LONGEST_SLEEP * 30)
        if self._wake_at is None or time < self._wake_at:
            self._wake_at = time
            self.world.at(time, lambda: self._alarm(time))

    def _alarm(self, time: float) -> None:
        if self.is_over or self._wake_at != time:
            return
        self._wake_at = None
        if self.core.next_deadline() == 0.0:
            self.turn(self.core.run_timers)
        else:
            self._arm()

    def clock_jumped(self) -> None:
        self.turn(self.core.run_timers)

    # What the network calls

    def accepted(self, end: Endpoint, address: str) -> bool:
        session = self.turn(lambda: self.transport.accepted(end, address))
        end.session = session
        return session is not None

    def connected(self, session: Session, end: Endpoint) -> None:
        if self.is_over:
            return
        end.session = session
        if end.is_lost:
            status = ConnectionStatus.SOCKET_CONNECT_FAILURE
            self.turn(lambda: self.transport.connect_failed(session, status, "reset"))
            return
        self.turn(lambda: self.transport.connected(session, end))

    def connect_failed(self, session: Session, status: ConnectionStatus, problem: str) -> None:
        if not self.is_over:
            self.turn(lambda: self.transport.connect_failed(session, status, problem))

    def data_received(self, end: Endpoint, data: bytes) -> None:
        session = end.session
        if self.is_over or end.is_closed or end.is_lost or session is None:
            return
        self.turn(lambda: self.transport.data_received(session, data))

    def connection_lost(self, end: Endpoint, problem: str) -> None:
        session = end.session
        if not self.is_over and session is not None:
            self.turn(lambda: self.transport.connection_lost(session, problem))

    def resolved(self, peer: Peer, addresses: Sequence[str], problem: str) -> None:
        if not self.is_over:
            self.turn(lambda: self.transport.resolved(peer, addresses, problem))
