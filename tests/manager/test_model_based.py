"""Queues, transactions, time and power failures against a model that a child could check.

The model has a list of messages per queue, and a copy of what was durable when the host last
committed. A crash makes the copy the truth. After every step queue manager and model must agree on
what is readable and in which order, what is held, how many bytes there are, what the journals and
dead-letter queues keep, and who was told why a message left: so no message is lost, none comes
twice, and no transaction happens by halves.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from falconmq.manager import lifecycle
from falconmq.manager.coordinator import (
    abort_prepared,
    commit_prepared,
    enlist,
    in_doubt,
    prepare,
)
from falconmq.manager.model import Queue, ReadResult, Transaction
from falconmq.manager.moving import move_message
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import open_subqueue, purge_queue
from falconmq.manager.reading import dequeue_message, dequeue_message_end
from falconmq.manager.states import EnqueueStatus, PositionState
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
    prepare_transaction,
)
from falconmq.message import INFINITE, Journal
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import (
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    pass_time,
    positions,
    record_events,
    restart,
)
from tests.manager.readers import given_reader

PLAIN, ORDERS, LATE = "plain", "orders", "late"  # LATE is a subqueue of ORDERS, which journals
NAMES: Final = (PLAIN, ORDERS, LATE)
COPIES: Final = ("journal", "dead", "dead transactional")
LIMITS: Final = (INFINITE, INFINITE, 4, 12)
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
PURGE_PENDING = PositionState.PURGE_PENDING
names = st.sampled_from(NAMES)
pick = st.integers(0, 7)


@dataclass(eq=False)
class Entry:
    """One message as the model knows it; `rank` is where it stands."""

    body: bytes
    rank: tuple[int, int]
    is_recoverable: bool = True
    deadline: float | None = None
    is_dead_letter_wanted: bool = False
    is_held: bool = False
    is_sent: bool = True  # False until the transaction that sends it commits
    is_purged: bool = False
    is_expired: bool = False
    aborts: int = 0


@dataclass(eq=False)
class Step:
    kind: str
    entry: Entry
    queue: str
    target: str = ""
    was_purged: bool = False  # when it was prepared


@dataclass
class Truth:
    """What survives: messages by queue, and prepared transactions."""

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    prepared: dict[UUID, list[Step]] = field(default_factory=dict)


class QueueManagerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.core = make_core()
        given_queue(self.core, PLAIN)
        orders = given_queue(self.core, ORDERS, transactional=True, journaling=True)
        open_subqueue(self.core, orders, LATE)
        commit(self.core)
        self.queues: dict[str, Queue] = {}
        self.numbers = count(1)
        self.entries: dict[str, list[Entry]] = {name: [] for name in (*NAMES, *COPIES)}
        self.steps: dict[UUID, list[Step]] = {}
        self.prepared: set[UUID] = set()
        self.reads: list[tuple[MessagePosition, str, Entry]] = []
        self.durable = Truth()
        self.reasons: Counter[tuple[bytes, int]] = Counter()
        self._meet()
        self.host_commits()

    # Who is who

    def _meet(self) -> None:
        """Look at the queues of a core that has just started."""
        queues = {str(q.path_name).lower(): q for q in self.core.queues.values()}
        self.queues = {
            PLAIN: queues[r"sales01\private$\plain"],
            ORDERS: queues[r"sales01\private$\orders"],
            LATE: queues[r"sales01\private$\orders;late"],
            "journal": queues[r"sales01\private$\orders;journal"],
            "dead": self.core.dead_letter,
            "dead transactional": self.core.transactional_dead_letter,
        }
        self.events = record_events(self.core)
        self.reasons.clear()

    @property
    def now(self) -> float:
        return self.core.clock.time()

    def _readable(self, name: str) -> list[Entry]:
        """In the order readers meet them."""
        found = [entry for entry in self.entries[name] if not entry.is_held]
        return sorted(found, key=lambda entry: entry.rank)

    def _position(self, name: str, entry: Entry) -> MessagePosition:
        for position in positions(self.queues[name]):
            if bytes(position.message.packet.properties.message_body) == entry.body:
                return position
        raise AssertionError(f"{entry.body!r} is not in {name}")

    def _open(self, number: int) -> UUID:
        """An open transaction: one of those there are, or a new one."""
        live = [identifier for identifier in self.steps if identifier not in self.prepared]
        if len(live) < 2 and (not live or number % 3 == 0):
            live = [create_transaction(self.core).identifier]
            self.steps[live[0]] = []
        return live[number % len(live)]

    def _transaction(self, identifier: UUID) -> Transaction:
        return self.core.transactions[identifier]

    # How messages leave, in the model

    def _tell(self, entry: Entry, reason: int) -> None:
        self.reasons[entry.body, reason] += 1

    def _copy_to(self, name: str, entry: Entry) -> None:
        rank = (entry.rank[0], next(self.numbers))
        self.entries[name].append(Entry(entry.body, rank, entry.is_recoverable))

    def _receive(self, name: str, entry: Entry) -> None:
        self.entries[name].remove(entry)
        if name != PLAIN:
            self._copy_to("journal", entry)
        self._tell(entry, MessageClass.ACK_RECEIVE)

    def _expire(self, name: str, entry: Entry) -> None:
        self.entries[name].remove(entry)
        if entry.is_dead_letter_wanted:
            self._copy_to("dead" if name == PLAIN else "dead transactional", entry)
        self._tell(entry, MessageClass.NACK_RECEIVE_TIMEOUT)

    def _release(self, name: str, entry: Entry) -> None:
        """Let go of a message that was held."""
        entry.is_held = False
        if entry.is_purged:
            self.entries[name].remove(entry)
            self._tell(entry, MessageClass.NACK_Q_PURGED)
        elif entry.is_expired:
            self._expire(name, entry)

    def _time_has_passed(self) -> None:
        for name in NAMES:
            for entry in list(self.entries[name]):
                if entry.deadline is None or entry.deadline > self.now:
                    continue
                if entry.is_held:
                    entry.is_expired = True
                else:
                    self._expire(name, entry)

    # Sending and receiving

    def _new(self, name: str, priority: int, limit: int, wanted: bool, recoverable: bool) -> Entry:
        number = next(self.numbers)
        is_transactional = name != PLAIN
        rank = (7 if is_transactional else 7 - priority, number)
        entry = Entry(b"%d" % number, rank, is_transactional or recoverable)
        entry.deadline = None if limit == INFINITE else int(self.now) + limit
        entry.is_dead_letter_wanted = wanted
        return entry

    def _send(
        self, name: str, entry: Entry, limit: int, transaction: Transaction | None = None
    ) -> None:
        sent = message(
            entry.body,
            priority=7 - entry.rank[0],
            recoverable=entry.is_recoverable,
            transactional=name != PLAIN,
            ttbr=limit,
            journal=Journal.DEAD_LETTER if entry.is_dead_letter_wanted else 0,
            sent_time=int(self.now),
            wire_id=0 if transaction is None else transaction.wire_id,
        )
        status = enqueue_message(self.core, self.queues[name], sent, transaction)
        assert status is EnqueueStatus.OK
        self.entries[name].append(entry)

    @initialize()
    def given_some_messages(self) -> None:
        for name in (PLAIN, ORDERS, PLAIN, ORDERS, ORDERS):
            for limit in (INFINITE, 6):
                entry = self._new(name, 3, limit, wanted=True, recoverable=True)
                self._send(name, entry, limit)
        self.move(ORDERS, 0, 0, joins=False)
        self.host_commits()

    @rule(
        name=st.sampled_from((PLAIN, ORDERS)),
        priority=st.integers(0, 7),
        limit=st.sampled_from(LIMITS),
        wanted=st.booleans(),
        recoverable=st.booleans(),
    )
    def send(self, name: str, priority: int, limit: int, wanted: bool, recoverable: bool) -> None:
        self._send(name, self._new(name, priority, limit, wanted, recoverable), limit)

    @rule(number=pick, limit=st.sampled_from(LIMITS), wanted=st.booleans())
    def send_in_transaction(self, number: int, limit: int, wanted: bool) -> None:
        identifier = self._open(number)
        entry = self._new(ORDERS, 0, limit, wanted, True)
        self._send(ORDERS, entry, limit, self._transaction(identifier))
        entry.is_held, entry.is_sent = True, False
        self.steps[identifier].append(Step("send", entry, ORDERS))

    def _read(
        self, name: str, transaction: Transaction | None = None, *, two_phase: bool = False
    ) -> MessagePosition | None:
        """Read, and see that it is the message the model would give."""
        reader = given_reader(self.core, self.queues[name])
        result = dequeue_message(
            self.core, reader, timeout=0, transaction=transaction, two_phase=two_phase
        )
        assert isinstance(result, ReadResult)
        expected = self._readable(name)
        if result.position is None:
            assert not expected
            return None
        body = bytes(result.position.message.packet.properties.message_body)
        assert body == expected[0].body
        assert result.position.message.abort_count == expected[0].aborts
        return result.position

    @rule(name=names)
    def receive(self, name: str) -> None:
        readable = self._readable(name)
        if self._read(name) is not None:
            self._receive(name, readable[0])

    @rule(name=names, number=pick)
    def receive_in_transaction(self, name: str, number: int) -> None:
        identifier = self._open(number)
        readable = self._readable(name)
        if self._read(name, self._transaction(identifier)) is not None:
            readable[0].is_held = True
            self.steps[identifier].append(Step("receive", readable[0], name))

    @rule(name=names)
    def receive_in_two_phases(self, name: str) -> None:
        readable = self._readable(name)
        position = self._read(name, two_phase=True)
        if position is not None:
            readable[0].is_held = True
            self.reads.append((position, name, readable[0]))

    @precondition(lambda self: self.reads)
    @rule(number=pick, delete=st.booleans())
    def end_two_phases(self, number: int, delete: bool) -> None:
        position, name, entry = self.reads.pop(number % len(self.reads))
        reader = given_reader(self.core, self.queues[name])
        dequeue_message_end(self.core, reader, position, delete=delete)
        if delete and not entry.is_purged:
            self._receive(name, entry)
        else:
            self._release(name, entry)

    # Moving and purging

    @rule(name=st.sampled_from((ORDERS, LATE)), number=pick, which=pick, joins=st.booleans())
    def move(self, name: str, number: int, which: int, joins: bool) -> None:
        readable = self._readable(name)
        if not readable:
            return
        entry = readable[which % len(readable)]
        target = LATE if name == ORDERS else ORDERS
        position = self._position(name, entry)
        identifier = self._open(number) if joins else None
        if identifier is None:
            move_message(self.core, position, self.queues[target])
            self._moved(name, entry, target)
        else:
            transaction = self._transaction(identifier)
            move_message(self.core, position, self.queues[target], transaction)
            entry.is_held = True
            self.steps[identifier].append(Step("move", entry, name, target))

    def _moved(self, name: str, entry: Entry, target: str) -> None:
        self.entries[name].remove(entry)
        moved = copy.copy(entry)
        moved.is_held = moved.is_purged = moved.is_expired = False
        self.entries[target].append(moved)
        if moved.deadline is not None and moved.deadline <= self.now:
            self._expire(target, moved)

    @rule(name=names)
    def purge(self, name: str) -> None:
        readable = self._readable(name)
        assert purge_queue(self.core, self.queues[name]) == len(readable)
        for entry in list(self.entries[name]):
            if entry.is_held:
                entry.is_purged = True
            else:
                self.entries[name].remove(entry)
                self._tell(entry, MessageClass.NACK_Q_PURGED)

    # Transactions

    @precondition(lambda self: self.steps)
    @rule(number=pick, is_commit=st.booleans())
    def end(self, number: int, is_commit: bool) -> None:
        identifier = self._open(number)
        if is_commit:
            prepare_transaction(self.core, identifier)
            commit_transaction(self.core, identifier)
        else:
            abort_transaction(self.core, identifier)
        self._end(identifier, is_commit)

    @precondition(lambda self: self.steps and len(self.prepared) < 2)
    @rule(number=pick, is_durable=st.booleans())
    def promise(self, number: int, is_durable: bool) -> None:
        identifier = self._open(number)
        enlist(self.core, self._transaction(identifier))
        prepare(self.core, identifier)
        self.prepared.add(identifier)
        for step in self.steps[identifier]:
            step.was_purged = step.entry.is_purged
        if is_durable:
            self.host_commits()

    @precondition(lambda self: self.prepared)
    @rule(number=pick, is_commit=st.booleans())
    def decide(self, number: int, is_commit: bool) -> None:
        identifier = sorted(self.prepared)[number % len(self.prepared)]
        (commit_prepared if is_commit else abort_prepared)(self.core, identifier)
        self._end(identifier, is_commit)

    def _end(self, identifier: UUID, is_commit: bool) -> None:
        self.prepared.discard(identifier)
        for step in self.steps.pop(identifier):
            if is_commit:
                self._commit_step(step)
            else:
                self._abort_step(step)

    def _commit_step(self, step: Step) -> None:
        entry = step.entry
        if step.kind == "send":
            entry.is_sent, entry.is_purged = True, False  # DM-A57
            self._release(step.queue, entry)
        elif step.kind == "receive":
            self._receive(step.queue, entry)
        else:
            self._moved(step.queue, entry, step.target)

    def _abort_step(self, step: Step) -> None:
        if step.kind == "send":
            self.entries[step.queue].remove(step.entry)
            return
        if step.kind == "receive":
            step.entry.aborts += 1
        self._release(step.queue, step.entry)

    # Time, commits and crashes

    @rule(seconds=st.integers(1, 8))
    def time_passes(self, seconds: int) -> None:
        pass_time(self.core, seconds)
        self._time_has_passed()

    @rule()
    def host_commits(self) -> None:
        commit(self.core)
        stored = {
            name: [e for e in entries if e.is_sent and e.is_recoverable]
            for name, entries in self.entries.items()
        }
        promises = {identifier: self.steps[identifier] for identifier in self.prepared}
        self.durable = copy.deepcopy(Truth(stored, promises))

    @rule(is_durable=st.booleans())
    def crash(self, is_durable: bool) -> None:
        if is_durable:
            self.host_commits()
        self.core = restart(self.core)
        self._start_from_the_truth()

    @rule()
    def stop_and_start(self) -> None:
        """An orderly stop aborts what is open; two-phase reads are forgotten."""
        for identifier in list(self.steps):
            if identifier not in self.prepared:
                self._end(identifier, is_commit=False)
        lifecycle.stop(self.core)
        self.host_commits()
        self.core.available_subscribers.clear()
        self.core.deleted_subscribers.clear()
        lifecycle.initialize(self.core)
        commit(self.core)
        self._start_from_the_truth()

    def _start_from_the_truth(self) -> None:
        truth = copy.deepcopy(self.durable)
        self.entries, self.steps = truth.entries, truth.prepared
        self.prepared, self.reads = set(self.steps), []
        for entries in self.entries.values():
            for entry in entries:
                entry.is_held = entry.is_purged = entry.is_expired = False
        for steps in self.steps.values():
            self._take_up(steps)
        self._meet()
        assert {t.identifier for t in in_doubt(self.core)} == self.prepared
        self.core.run_timers()
        self._time_has_passed()

    def _take_up(self, steps: list[Step]) -> None:
        """A prepared transaction holds its messages again; express ones are gone."""
        for step in list(steps):
            if step.kind == "send":
                self.entries[step.queue].append(step.entry)
            elif step.entry not in self.entries[step.queue]:
                steps.remove(step)
                continue
            step.entry.is_held = True
            step.entry.is_purged = step.was_purged
            step.entry.is_expired = False

    # What must be true

    @invariant()
    def readers_see_what_the_model_says(self) -> None:
        for name in NAMES:
            assert bodies(self.queues[name]) == [e.body for e in self._readable(name)], name
        for name in COPIES:
            found = sorted(bodies(self.queues[name]))
            assert found == sorted(entry.body for entry in self.entries[name]), name

        ordered = sorted(self.entries["journal"], key=lambda entry: entry.rank)
        assert bodies(self.queues["journal"]) == [entry.body for entry in ordered]

    @invariant()
    def readers_see_how_often_others_failed(self) -> None:
        for name in NAMES:
            found = [p for p in positions(self.queues[name]) if p.state is AVAILABLE]
            expected = [entry.aborts for entry in self._readable(name)]
            assert [p.message.abort_count for p in found] == expected, name

    @invariant()
    def nothing_is_remembered_of_what_is_gone(self) -> None:
        for queue in self.queues.values():
            assert queue.expired <= set(queue.positions.held)

    @invariant()
    def what_is_held_is_held(self) -> None:
        for name in NAMES:
            held = {
                bytes(p.message.packet.properties.message_body): p.state
                for p in self.queues[name].positions.held.values()
            }
            expected = {
                entry.body: PURGE_PENDING if entry.is_purged else LOCKED
                for entry in self.entries[name]
                if entry.is_held
            }
            assert held == expected, name

    @invariant()
    def every_byte_is_counted_once(self) -> None:
        for queue in self.queues.values():
            assert queue.total_bytes == sum(position.size for position in positions(queue))
        assert self.core.used_bytes == sum(q.total_bytes for q in self.core.queues.values())

    @invariant()
    def everybody_was_told_why(self) -> None:
        told: Counter[tuple[bytes, int]] = Counter()
        for _, position, reason in self.events.deleted:
            told[bytes(position.message.packet.properties.message_body), reason] += 1
        assert told == self.reasons

    @invariant()
    def transactions_are_known(self) -> None:
        assert set(self.core.transactions) == set(self.steps)


TestQueueManager = QueueManagerMachine.TestCase
TestQueueManager.settings = settings(max_examples=120, stateful_step_count=40)
