r"""Replication on MSMQ messages: what carries the engine's messages to other directory servers.

How to think about it. The engine knows partitions, sequence numbers and neighbours, and no queue.
The carrier knows one queue manager, and nothing of partitions:

    start       create and open private queue 1, mqis_queue$, and listen
    a message   dequeued at once; judged; given to the engine, together with who signed it
    a nack      a write that found no way fails; a refused signature is tried again, three times
    a timer     the engine says when it wants to be called next
    Send        whatever the engine answers goes out, as the profile of its kind says

The loop never waits (A-08): a write that another server has to make is an entry in the engine's
table, and its reply comes in through the same queue. One bad message never ends the loop.

The engine commits what it changes before it answers, which may take milliseconds. All its work goes
through `run_beside`; a host may hand in one that does it in a thread, one piece after the other.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from falconmq.directory.dequeuing import DequeueLoop
from falconmq.directory.replication.carrying_judging import (
    Dropped,
    Judge,
    Nacked,
    Received,
    Refused,
)
from falconmq.directory.replication.carrying_notes import Notes
from falconmq.directory.replication.carrying_sending import ReplicationSender
from falconmq.directory.replication.effects import Send
from falconmq.directory.replication.profiles import PROFILES, RESEND
from falconmq.directory.replication.replication_queue import (
    create_replication_queue,
    machine_of,
    replication_queue,
)
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.record import StoredMessage
from falconmq.names.syntax import fold
from falconmq.security.keys import ManagerKeys
from falconmq.wire.message_class import MessageClass
from falconmq.wire.replication_messages import ChangeRequestMessage, ReplicationMessage

RESENDS_MAX: Final = 3  # of one body whose signature is refused, A-30
PAUSE_SECONDS: Final = 0.01  # at least, between two runs of the engine's timers
_TAG: Final = "directory replication"
_TOLD_MAX: Final = 256  # lines of the log about dropped messages: strangers may send many

_log = logging.getLogger("falconmq.directory")


Effects = Iterable[Send]
Work = Callable[[], Effects]
RunBeside = Callable[[Work, Callable[[Effects], None]], None]
"""Do some work of the engine, one piece after the other, and hand over what comes of it."""
CallSoon = Callable[[Callable[[], None]], None]


class Engine(Protocol):
    """What the carrier needs of the replication engine."""

    on_effects: Callable[[], None] | None

    def start(self) -> Effects:
        """Begin; the queue is open."""

    def stop(self) -> None:
        """End what waits."""

    def receive(self, message: ReplicationMessage, sender: UUID | None) -> Effects:
        """A message came, signed by this queue manager; None: nobody proved who sent it."""

    def change_request_nacked(self, message: ChangeRequestMessage) -> Effects:
        """A change request found no way to its owner."""

    def take_effects(self) -> Effects:
        """What writes in this directory left to be sent."""

    def run_due(self) -> Effects:
        """Do what is due."""

    def next_due(self) -> float | None:
        """When there is something due, on the monotonic clock; None: nothing waits."""


def run_here(work: Work, done: Callable[[Effects], None]) -> None:
    """Inside the turn, at once."""
    done(work())


class ReplicationCarrier:
    """Carries the messages of one engine. The core's timers drive it."""

    def __init__(
        self,
        core: QueueManagerCore,
        engine: Engine,
        keys: Callable[[], ManagerKeys],
        judge: Judge | None = None,
        run_beside: RunBeside = run_here,
        call_soon: CallSoon | None = None,
    ) -> None:
        """`call_soon` has something done in a turn, and may be called from any thread; without it
        writes in the directory are made in a turn.
        """
        self.core = core
        self.engine = engine
        self.counters: Counter[str] = Counter()
        self.notes = Notes(core.clock)
        self._judge = Judge() if judge is None else judge
        self._run_beside = run_beside
        self._call_soon = self._in_this_turn if call_soon is None else call_soon
        self._sender = ReplicationSender(core, keys, self.counters)
        name = replication_queue(core.identifier)  # RP-3.1.3.3-01
        self._loop = DequeueLoop(core, name, self._arrived, tag=_TAG)
        self._armed_for: float | None = None
        self._told: set[tuple[UUID, Dropped]] = set()

    @property
    def is_running(self) -> bool:
        return self._loop.is_open

    def start(self) -> None:
        """Listen, and let the engine begin; QueueError if there can be no queue."""
        create_replication_queue(self.core)  # RP-3.1.3.3-02: without it nothing works
        self._loop.open()
        self._loop.receive()  # RP-3.1.3.3-03
        self.engine.on_effects = self._written
        self._run_beside(self.engine.start, self.carry)

    def stop(self) -> None:
        """End listening and the timers; what was sent goes out all the same."""
        self.engine.on_effects = None
        self.engine.stop()
        self._loop.close()
        self._sender.close()
        self._armed_for = None

    def ask(self, work: Work) -> None:
        """Let the engine do something, send what comes of it, and see when it is due next."""
        self._run_beside(partial(_attempt, work), self.carry)

    def carry(self, effects: Effects) -> None:
        """Send what the engine wants to have sent."""
        if not self.is_running:
            return
        for send in effects:
            self._sender.send(send.machine, send.message.encode(), PROFILES[send.profile])
            self.notes.sent(send)
        self._arm()

    def _written(self) -> None:
        """Somebody changed the directory here, in whatever thread."""
        self._call_soon(self._take_written)

    def _take_written(self) -> None:
        self.ask(self.engine.take_effects)

    def _in_this_turn(self, action: Callable[[], None]) -> None:
        self.core.timers.after(self.core.clock.monotonic(), 0, action)

    # Messages

    def _arrived(self, stored: StoredMessage) -> None:
        self.counters["received"] += 1
        judged = self._judge.judge(stored)
        match judged:
            case Received(message, sender):
                self.counters[type(message).__name__] += 1
                self.notes.received(message, sender)
                self.ask(lambda: self.engine.receive(message, sender))
            case Nacked():
                self._nacked(judged)
            case Refused():
                self._drop(judged, stored)

    def _nacked(self, nack: Nacked) -> None:
        """A message of our own came back; it must be one that we sent (RP-3.1.5.1-13, -14)."""
        self.counters["nacks"] += 1
        sent = self._sender.take_sent(nack.about, nack.body)
        if sent is None:
            self.counters[Dropped.NOT_OUR_MESSAGE.value] += 1
            return
        message = nack.message
        if isinstance(message, ChangeRequestMessage):
            self.ask(lambda: self.engine.change_request_nacked(message))
            return
        machine = machine_of(nack.destination)
        is_refusal = nack.message_class == MessageClass.NACK_BAD_SIGNATURE  # RP-3.3.7.9-02
        if not is_refusal or machine is None or fold(machine) != fold(sent.machine):
            self.counters[Dropped.NACK.value] += 1
        elif sent.resends >= RESENDS_MAX:
            self.counters[Dropped.RESENT_TOO_OFTEN.value] += 1
            _log.warning('replication message refused machine="%s" reason="signature"', machine)
        else:
            self.counters["resent"] += 1
            self._sender.send(machine, nack.body, RESEND, resends=sent.resends + 1)

    def _drop(self, refused: Refused, stored: StoredMessage) -> None:
        """Nothing answers a bad message; people can see it (guide 8, step 4)."""
        reason = refused.reason
        self.counters[reason.value] += 1
        source = UUID(bytes_le=bytes(stored.packet.user.source_queue_manager))
        if (source, reason) not in self._told and len(self._told) < _TOLD_MAX:
            self._told.add((source, reason))
            _log.warning(
                'replication message dropped source=%s reason="%s" detail="%s"',
                source,
                reason.value,
                refused.detail,
            )

    # Timers

    def _arm(self) -> None:
        """One timer of the core stands for all of the engine's."""
        deadline = self.engine.next_due()
        if deadline is None or self._is_armed_before(deadline):
            return
        now = self.core.clock.monotonic()
        self._armed_for = deadline
        self.core.timers.after(now, max(PAUSE_SECONDS, deadline - now), self._run_timers)

    def _is_armed_before(self, deadline: float) -> bool:
        return self._armed_for is not None and self._armed_for <= deadline

    def _run_timers(self) -> None:
        if self.is_running:
            self._armed_for = None
            self.ask(self.engine.run_due)


def _attempt(work: Work) -> Effects:
    """What the engine cannot do now, a hello or a synchronisation makes good; the loop goes on."""
    try:
        return work()
    except FalconMQError as error:
        _log.error('replication failed problem="%s" hint="%s"', error, error.hint)
        return ()
