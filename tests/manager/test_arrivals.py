"""Ranges of arrival numbers against a plain look at every message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from falconmq.manager import arrivals as arrivals_module
from falconmq.manager import positions as positions_module
from falconmq.manager.arrivals import (
    SEQUENCE,
    LateArrivals,
    Piece,
    Span,
    arrivals_between,
    first_arrival,
    next_arrival,
    note_arrival,
    readable,
)
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.lifecycle import restore
from falconmq.manager.model import Queue, Transaction, TransactionalOperation
from falconmq.manager.moving import move_message
from falconmq.manager.positions import LookupIds, MessagePosition
from falconmq.manager.queues import open_subqueue, purge_queue
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import OperationType, PositionState
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import (
    commit,
    given_queue,
    make_core,
    message,
    positions,
    restart,
    same,
)
from tests.strategies.queues import lookup_ids, priorities

ALL = 1 << 40


def known(queue: Queue) -> list[tuple[int, int]]:
    """Arrival numbers and lookup identifiers as the messages themselves have them."""
    found = [(place.message.arrival_number, place.lookup_id) for place in positions(queue)]
    return sorted(pair for pair in found if pair[0])


def paged(queue: Queue, start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """A range, page by page."""
    found: list[tuple[int, int]] = []
    while start < stop:
        span = arrivals_between(queue.positions, start, stop, count)
        assert len(span) <= count
        assert start < span.reached <= stop, "a page must get somewhere"
        found += span.places()
        start = span.reached
    return found


def send(core: QueueManagerCore, queue: Queue, *, transaction: Transaction | None = None) -> None:
    enqueue_message(core, queue, message(transactional=transaction is not None), transaction)


# A slice of the numbers of a queue


@given(st.sets(lookup_ids), lookup_ids, lookup_ids, st.integers(1, 6))
@settings(max_examples=200)
def test_numbers_between_two_are_a_slice(
    numbers: set[int], start: int, stop: int, count: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions_module, "_CHUNK", 3)
        found = LookupIds()
        for number in sorted(numbers):
            found.add(number)
        expected = sorted(number for number in numbers if start <= number < stop)
        assert found.between(start, stop, count) == expected[:count]
        assert sorted(found) == sorted(numbers), "and nothing is changed by looking"


# The runs of late messages


@given(st.lists(st.integers(0, 14), max_size=40))
@settings(max_examples=200)
def test_runs_say_what_was_said_last_of_each_place(places: list[int]) -> None:
    # given late arrivals at few places, so that they come again and runs are cut
    late, expected = LateArrivals(), dict[int, int]()
    for arrival, place in enumerate(places, start=100):
        late.add(arrival, place)
        expected[place] = arrival
    # then each place has its last number, in one run only
    for place in range(15):
        assert len(list(late.runs_at(place, place))) == (place in expected)
        assert late.number_of(place) == expected.get(place, place)
    for first, last in ((0, 14), (3, 9), (7, 7)):
        held = [run.lookup_id + n for run in late.runs_at(first, last) for n in range(run.length)]
        assert held == sorted(held)
        assert {n for n in held if first <= n <= last} == {
            n for n in expected if first <= n <= last
        }
    for start in (0, 100, 105, 120):
        runs = list(late.runs_from(start))
        numbers = [run.arrival + step for run in runs for step in range(run.length)]
        assert numbers == sorted(numbers)
        assert {n for n in numbers if n >= start} == {n for n in expected.values() if n >= start}


def test_a_transaction_is_one_run() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    for _ in range(1000):
        send(core, queue, transaction=transaction)
    assert arrivals_between(queue.positions, 0, ALL, 10).pieces == []
    assert readable(queue.positions) == (0, 0)
    commit_transaction(core, transaction.identifier)
    assert queue.positions.late is not None
    assert len(queue.positions.late) == 1
    assert len(arrivals_between(queue.positions, 0, ALL, 5000)) == 1000
    assert readable(queue.positions) == (1000, queue.total_bytes)


def test_runs_of_messages_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    # given transactions of one message, each committed when the next one has been sent to
    monkeypatch.setattr(arrivals_module, "_FEW_RUNS", 4)
    core = make_core()
    queue = given_queue(core, transactional=True)
    stays = positions_of_a_late_message(core, queue)
    for _ in range(200):
        positions_of_a_late_message(core, queue)
        newest = positions(queue)[-1]
        message_position_deleted(core, queue, newest, MessageClass.ACK_RECEIVE)
    # then only few of the many runs are left, and the message that stayed has its number
    late = queue.positions.late
    assert late is not None
    assert len(late) <= 8
    assert late.number_of(stays.lookup_id) == stays.message.arrival_number
    # and none when the queue is empty
    message_position_deleted(core, queue, stays, MessageClass.ACK_RECEIVE)
    assert queue.positions.late is None


def test_a_run_stays_while_a_reader_holds_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals_module, "_FEW_RUNS", 1)
    core = make_core()
    queue = given_queue(core, transactional=True)
    held = positions_of_a_late_message(core, queue)
    queue.positions.hold(held)
    positions_of_a_late_message(core, queue)
    positions_of_a_late_message(core, queue)
    queue.positions.release(held)
    assert paged(queue, 0, ALL, 10) == known(queue)


def positions_of_a_late_message(core: QueueManagerCore, queue: Queue) -> MessagePosition:
    transaction = create_transaction(core)
    send(core, queue, transaction=transaction)
    core.sequential_id.value += 2  # others send meanwhile
    commit_transaction(core, transaction.identifier)
    place = positions(queue)[-1]
    assert place.message.arrival_number > place.lookup_id & SEQUENCE
    return place


def test_outgoing_queues_keep_no_runs() -> None:
    core = make_core()
    queue = given_queue(core)
    queue.keeps_arrivals = False
    positions_of_a_late_message(core, queue)
    assert queue.positions.late is None


# Spans


def test_a_span_is_cut_by_arrival_numbers() -> None:
    span = Span([Piece(100, [101, 102, 105]), Piece(-2, [1, 8])], 20)
    assert span.places() == [(1, 101), (2, 102), (3, 1), (5, 105), (10, 8)]
    assert (span.numbers(), len(span), span.is_in_order) == ([1, 2, 3, 5, 10], 5, False)
    assert span.first(9) is span
    assert span.first(3) == Span([Piece(100, [101, 102]), Piece(-2, [1])], 5)
    assert span.first(3).is_in_order
    assert span.behind(5) == Span([Piece(100, [105]), Piece(-2, [8])], 20)


def test_much_work_is_done_in_several_looks() -> None:
    # given a range whose places are all late, and arrive far behind it
    core = make_core()
    queue = given_queue(core, transactional=True)
    first, second = create_transaction(core), create_transaction(core)
    for _ in range(20):
        send(core, queue, transaction=first)
        send(core, queue, transaction=second)
    commit_transaction(core, first.identifier)
    commit_transaction(core, second.identifier)
    # then a look passes no more than so many of them, and the next one goes on
    span = arrivals_between(queue.positions, 0, ALL, 5)
    assert (len(span), span.reached) == (0, 6)
    assert paged(queue, 0, next_arrival(queue), 5) == known(queue)


# The whole story


class Arrivals(RuleBasedStateMachine):
    """Everything that happens to messages, beside a reader of consecutive ranges."""

    @initialize()
    def begin(self) -> None:
        self.core = make_core()
        orders = given_queue(self.core, transactional=True)
        self.queues = [orders, open_subqueue(self.core, orders, "late")]
        commit(self.core)
        self.open: list[Transaction] = []
        self.offsets = [0, 0]
        self.seen: list[set[tuple[int, int]]] = [set(), set()]

    def free(self) -> list[MessagePosition]:
        found = [place for queue in self.queues for place in positions(queue)]
        return [place for place in found if place.state is PositionState.AVAILABLE]

    @rule(priority=priorities, recoverable=st.booleans())
    def send(self, priority: int, recoverable: bool) -> None:
        sent = message(priority=priority, recoverable=recoverable)
        enqueue_message(self.core, self.queues[0], sent)

    @precondition(lambda self: len(self.open) < 3)
    @rule()
    def begin_transaction(self) -> None:
        self.open.append(create_transaction(self.core))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), count=st.integers(1, 3))
    def send_in_transaction(self, data: st.DataObject, count: int) -> None:
        transaction = data.draw(st.sampled_from(self.open))
        for _ in range(count):
            send(self.core, self.queues[0], transaction=transaction)

    @precondition(lambda self: self.open and self.free())
    @rule(data=st.data())
    def receive_in_transaction(self, data: st.DataObject) -> None:
        transaction, place = data.draw(st.sampled_from(self.open)), self.draw_free(data)
        place.queue.positions.hold(place)
        place.transaction = transaction
        reason = MessageClass.ACK_RECEIVE
        operation = TransactionalOperation(OperationType.DEQUEUE, place, reason=reason)
        transaction.operations.append(operation)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), is_good=st.booleans())
    def end_transaction(self, data: st.DataObject, is_good: bool) -> None:
        transaction = data.draw(st.sampled_from(self.open))
        self.open.remove(transaction)
        end = commit_transaction if is_good else abort_transaction
        end(self.core, transaction.identifier)

    @precondition(lambda self: self.free())
    @rule(data=st.data())
    def receive(self, data: st.DataObject) -> None:
        place = self.draw_free(data)
        message_position_deleted(self.core, place.queue, place, MessageClass.ACK_RECEIVE)

    @precondition(lambda self: self.free())
    @rule(data=st.data(), in_transaction=st.booleans())
    def move(self, data: st.DataObject, in_transaction: bool) -> None:
        place = self.draw_free(data)
        target = self.queues[1 - self.queues.index(place.queue)]
        owner = self.open[0] if in_transaction and self.open else None
        move_message(self.core, place, target, owner)

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        purge_queue(self.core, data.draw(st.sampled_from(self.queues)))

    @rule()
    def write(self) -> None:
        commit(self.core)

    @rule()
    def fail_to_write(self) -> None:
        restore(self.core)
        self.open.clear()

    @rule()
    def crash(self) -> None:
        self.core = restart(self.core)
        self.queues = [same(self.core, queue) for queue in self.queues]
        self.open.clear()

    @rule(count=st.integers(1, 4))
    def read_on(self, count: int) -> None:
        commit(self.core)  # nothing is told before it is durable
        for index, queue in enumerate(self.queues):
            stop = max(self.offsets[index], next_arrival(queue))
            found = set(paged(queue, self.offsets[index], stop, count))
            assert not found & self.seen[index], "a message is read once"
            self.seen[index] |= found
            self.offsets[index] = stop

    def draw_free(self, data: st.DataObject) -> MessagePosition:
        place: MessagePosition = data.draw(st.sampled_from(self.free()))
        return place

    @invariant()
    def ranges_are_what_the_messages_say(self) -> None:
        for queue in self.queues:
            expected, stop = known(queue), next_arrival(queue)
            numbers = [number for number, _ in expected]
            assert len(set(numbers)) == len(numbers), "a number is given once"
            assert paged(queue, 0, stop, 3) == expected
            middle = numbers[len(numbers) // 2] if numbers else 0
            later = [pair for pair in expected if pair[0] >= middle]
            assert arrivals_between(queue.positions, middle, stop, 1000).places() == later
            assert first_arrival(queue) == (numbers[0] if numbers else stop)
            assert readable(queue.positions)[0] == len(expected)

    @invariant()
    def nothing_that_is_there_was_skipped(self) -> None:
        for queue, offset, seen in zip(self.queues, self.offsets, self.seen, strict=True):
            for pair in known(queue):
                assert pair[0] >= offset or pair in seen


ArrivalsTest: Any = Arrivals.TestCase
ArrivalsTest.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


# Named pieces of it


def test_a_message_that_moves_away_and_back_has_a_new_number() -> None:
    # given a message that was read by its number, and moved away
    core = make_core()
    queue = given_queue(core)
    away = open_subqueue(core, queue, "away")
    send(core, queue)
    first = known(queue)
    move_message(core, positions(queue)[0], away)
    # when it comes back at once
    move_message(core, positions(away)[0], queue)
    # then whoever read on meanwhile finds it, at its old place
    (number, place) = known(queue)[0]
    assert place == first[0][1]
    assert number > known(away)[0][0] if known(away) else number > first[0][0]
    assert paged(queue, first[0][0] + 1, next_arrival(queue), 10) == [(number, place)]
    assert queue.moved_in == 1


def test_a_restart_keeps_the_numbers_of_late_messages() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    for _ in range(3):
        send(core, queue, transaction=transaction)
    send(core, queue)
    commit_transaction(core, transaction.identifier)
    commit(core)
    before = known(queue)
    assert [number for number, _ in before] == [4, 5, 6, 7]
    queue = same(restart(core), queue)
    assert queue.positions.late is not None
    assert paged(queue, 0, ALL, 2) == before
    assert next_arrival(queue) == 8


def test_who_watches_a_queue_hears_of_every_arrival() -> None:
    core = make_core()
    queue = given_queue(core)
    heard: list[int] = []
    queue.arrival_watchers.append(lambda: heard.append(queue.arrival_number))
    send(core, queue)
    transaction = create_transaction(core)
    send(core, queue, transaction=transaction)
    commit_transaction(core, transaction.identifier)
    assert heard == [1, 2]


def test_places_that_are_noted_twice_are_one() -> None:
    core = make_core()
    queue = given_queue(core)
    note_arrival(queue.positions, 12, 5)
    note_arrival(queue.positions, 12, 5)
    assert queue.positions.late is not None
    assert len(queue.positions.late) == 1


@pytest.mark.parametrize("recoverable", [True, False])
def test_a_write_that_fails_loses_no_numbers(recoverable: bool) -> None:
    # given a late message, in the store or in memory alone
    core = make_core()
    queue = given_queue(core)
    away = open_subqueue(core, queue, "away")
    enqueue_message(core, queue, message(recoverable=recoverable))
    enqueue_message(core, queue, message(recoverable=recoverable))
    move_message(core, positions(queue)[0], away)
    commit(core)
    before = known(away)
    # when the next write fails
    send(core, queue)
    restore(core)
    # then it has its number still
    assert before[0][0] != before[0][1] & SEQUENCE
    assert paged(away, 0, ALL, 10) == before
