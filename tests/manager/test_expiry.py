"""Time to be received: messages that nobody read in time (MQDMPR 3.1.2.4, 3.1.7.2.7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.clock import VirtualClock
from falconmq.manager.model import Queue
from falconmq.manager.moving import move_message
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import delete_queue, open_subqueue, purge_queue
from falconmq.manager.reading import dequeue_message, dequeue_message_end, peek_message
from falconmq.manager.states import OperationType, PositionState
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.message import INFINITE
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import (
    START_TIME,
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    only,
    pass_time,
    record_events,
    restart,
    same,
)
from tests.manager.readers import given_reader, position_of, waits

TIMEOUT = MessageClass.NACK_RECEIVE_TIMEOUT


@pytest.mark.requirement("MQ-2.2.19.2-08", "MQ-2.2.19.2-09")
@pytest.mark.requirement(
    "DM-3.1.2.4-01",
    "DM-3.1.2.4-04",
    "DM-3.1.7.2.7-01",
    "DM-3.1.7.2.7-04",
    "DM-3.1.7.1.9-13",
    "DM-3.1.1.12-87",
)
@pytest.mark.parametrize("recoverable", [True, False])
def test_a_message_expires_so_long_after_it_was_sent(recoverable: bool) -> None:
    # given a message with ten seconds, four of which it needed to come here
    core = make_core()
    queue = given_queue(core)
    events = record_events(core)
    sent = message(ttbr=10, sent_time=START_TIME - 4, recoverable=recoverable)
    enqueue_message(core, queue, sent)
    commit(core)
    # when the rest passes, then it is there to the last moment, and then it is gone
    pass_time(core, 5.9)
    assert not events.deleted
    assert core.next_deadline() == pytest.approx(0.1)
    pass_time(core, 0.1)
    assert events.reasons == [TIMEOUT]
    assert len(queue.positions) == 0
    commit(core)
    assert bodies(same(restart(core), queue)) == []


@pytest.mark.requirement("DM-3.1.2.4-02", "DM-3.1.1.12-87")
def test_a_message_without_a_limit_stays_for_ever() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(ttbr=INFINITE))
    assert core.next_deadline() is None
    pass_time(core, 1e9)
    assert len(queue.positions) == 1


@pytest.mark.requirement("DM-3.1.2.4-03")
def test_a_message_with_no_time_at_all_is_gone_at_once() -> None:
    # given somebody who waits for a message
    core = make_core()
    queue = given_queue(core)
    waiting = dequeue_message(core, given_reader(core, queue), timeout=None)
    events = record_events(core)
    # when one comes with time 0, then even he does not get it
    enqueue_message(core, queue, message(ttbr=0))
    assert events.reasons == [TIMEOUT]
    waits(waiting)
    commit(core)
    assert core.used_bytes == 0


@pytest.mark.requirement("DM-3.1.2.4-04")
def test_the_timer_of_a_message_that_is_gone_does_nothing() -> None:
    core = make_core()
    queue, other = given_queue(core), given_queue(core, "other")
    for target in (queue, other):
        enqueue_message(core, target, message(ttbr=10))
    dequeue_message(core, given_reader(core, queue), timeout=0)
    delete_queue(core, other)
    events = record_events(core)
    pass_time(core, 20)
    assert not events.deleted


@pytest.mark.requirement("DM-3.1.2.4-01")
def test_journals_and_dead_letter_queues_keep_what_has_expired() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"a", ttbr=10))
    move_message(core, only(queue), core.dead_letter)
    commit(core)
    pass_time(core, 20)
    assert bodies(core.dead_letter) == [b"a"]
    core = restart(core)
    pass_time(core, 20)
    assert bodies(core.dead_letter) == [b"a"]


@pytest.mark.requirement("DM-3.1.2.4-01")
def test_time_goes_on_through_a_restart() -> None:
    core = make_core()
    queue = given_queue(core)
    for body, seconds in ((b"soon", 10), (b"late", 30)):
        enqueue_message(core, queue, message(body, ttbr=seconds))
    commit(core)
    clock = core.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(15)
    core = restart(core)
    events = record_events(core)
    core.run_timers()
    assert events.reasons == [TIMEOUT]
    assert bodies(same(core, queue)) == [b"late"]
    pass_time(core, 15)
    assert bodies(same(core, queue)) == []


@pytest.mark.requirement("DM-3.1.2.4-01")
def test_a_moved_message_expires_where_it_is() -> None:
    core = make_core()
    queue = given_queue(core)
    subqueue = open_subqueue(core, queue, "late")
    enqueue_message(core, queue, message(ttbr=10))
    move_message(core, only(queue), subqueue)
    events = record_events(core)
    pass_time(core, 10)
    assert [(q, reason) for q, _, reason in events.deleted] == [(subqueue, TIMEOUT)]


@pytest.mark.requirement("DM-3.1.7.2.7-05")
def test_a_message_that_is_held_expires_when_its_reader_gives_it_back() -> None:
    # given a message that a transaction has read
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(ttbr=10, transactional=True))
    commit(core)
    transaction = create_transaction(core)
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    waiting = peek_message(core, given_reader(core, queue), timeout=None)
    events = record_events(core)
    # when its time runs out, then nothing happens yet
    pass_time(core, 20)
    assert not events.deleted
    assert only(queue).state is PositionState.LOCKED
    # when the transaction aborts, then it expires, and nobody sees it before
    abort_transaction(core, transaction.identifier)
    assert events.reasons == [TIMEOUT]
    waits(waiting)
    commit(core)
    assert bodies(same(restart(core), queue)) == []


@pytest.mark.requirement("DM-3.1.7.2.7-05")
def test_a_message_that_is_held_and_then_taken_was_received() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(ttbr=10, transactional=True))
    transaction = create_transaction(core)
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    events = record_events(core)
    pass_time(core, 20)
    commit_transaction(core, transaction.identifier)
    assert events.reasons == [MessageClass.ACK_RECEIVE]
    assert not queue.expired


@pytest.mark.requirement("DM-3.1.7.2.7-05")
def test_a_two_phase_read_that_gives_back_too_late_gives_back_nothing() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(ttbr=10))
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    events = record_events(core)
    pass_time(core, 20)
    dequeue_message_end(core, reader, held, delete=False)
    assert events.reasons == [TIMEOUT]


def test_what_was_purged_and_expired_while_held_was_purged() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(ttbr=10))
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    events = record_events(core)
    purge_queue(core, queue)
    pass_time(core, 20)
    dequeue_message_end(core, reader, held, delete=False)
    assert events.reasons == [MessageClass.NACK_Q_PURGED]


@pytest.mark.requirement("DM-3.1.7.2.7-02", "DM-3.1.7.2.7-03")
def test_a_message_that_expires_before_its_sender_commits_joins_the_transaction() -> None:
    # given a message sent in a transaction that is still open
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    sent = message(ttbr=10, transactional=True, wire_id=transaction.wire_id)
    enqueue_message(core, queue, sent, transaction)
    events = record_events(core)
    # when its time runs out
    pass_time(core, 20)
    # then the transaction has one more operation, and the message stays locked
    operation = transaction.operations[-1]
    assert (operation.kind, operation.reason) == (OperationType.DEQUEUE, TIMEOUT)
    assert operation.position is only(queue)
    assert operation.position.state is PositionState.LOCKED
    # when it commits, then the message comes and goes in one step
    waiting = dequeue_message(core, given_reader(core, queue), timeout=None)
    commit_transaction(core, transaction.identifier)
    assert events.reasons == [TIMEOUT]
    waits(waiting)
    assert not transaction.operations
    assert core.used_bytes == 0


def test_an_aborted_transaction_takes_its_expired_messages_along_without_a_word() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    sent = message(ttbr=10, transactional=True, wire_id=transaction.wire_id)
    enqueue_message(core, queue, sent, transaction)
    events = record_events(core)
    pass_time(core, 20)
    abort_transaction(core, transaction.identifier)
    assert not events.deleted
    assert not queue.expired
    assert len(queue.positions) == 0


@pytest.mark.requirement("DM-3.1.7.2.7-06")
def test_a_message_whose_transaction_is_over_expires_like_any_other() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    sent = message(ttbr=10, transactional=True, wire_id=transaction.wire_id)
    enqueue_message(core, queue, sent, transaction)
    commit_transaction(core, transaction.identifier)
    events = record_events(core)
    pass_time(core, 20)
    assert events.reasons == [TIMEOUT]


@given(
    sent=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7)), max_size=20),
    steps=st.lists(st.floats(0, 12), max_size=6),
)
def test_at_any_time_exactly_those_are_there_whose_time_has_not_run_out(
    sent: list[tuple[int, int]], steps: list[float]
) -> None:
    core = make_core()
    queue = given_queue(core)
    for i, (seconds, priority) in enumerate(sent):
        enqueue_message(core, queue, message(b"%d" % i, ttbr=seconds, priority=priority))
    now = 0.0
    for step in steps:
        pass_time(core, step)
        now = core.clock.time() - START_TIME
        there = {b"%d" % i for i, (seconds, _) in enumerate(sent) if seconds > now}
        assert set(bodies(queue)) == there


def test_timers_of_messages_that_were_read_do_not_pile_up() -> None:
    # given a queue whose messages may wait a year, and one that stays
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"stays", ttbr=100, priority=0, recoverable=False))
    reader = given_reader(core, queue)
    # when ten thousand go through it
    sent = message(ttbr=31_536_000, recoverable=False)
    for _ in range(10_000):
        enqueue_message(core, queue, sent)
        dequeue_message(core, reader, timeout=0)
    # then their timers are gone too, and the one that is needed is not
    assert len(core.timers.wall) < 2100
    pass_time(core, 101)
    assert len(queue.positions) == 0


def test_a_sweep_while_timers_run_loses_none() -> None:
    # given two thousand messages that expire one after the other, each bringing a new one
    core = make_core()
    queue = given_queue(core)
    for i in range(2000):
        enqueue_message(core, queue, message(ttbr=1 + i % 50, recoverable=False))
    late = message(ttbr=1000, recoverable=False)

    def refill(_queue: Queue, _position: MessagePosition, _reason: int) -> None:
        enqueue_message(core, queue, late)

    core.deleted_subscribers.append(refill)
    pass_time(core, 51)
    assert len(queue.positions) == 2000
