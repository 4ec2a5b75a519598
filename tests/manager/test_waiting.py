"""Reads that wait: who gets what comes, and how a wait ends without a message."""

from __future__ import annotations

from functools import partial
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor, Queue, ReadResult, WaitingRead
from falconmq.manager.positions import START, MessagePosition
from falconmq.manager.reading import (
    cancel_waiting_message_read_request,
    dequeue_message,
    dequeue_message_begin,
    dequeue_message_end,
    peek_message,
    peek_next_message,
)
from falconmq.manager.states import PositionState
from falconmq.manager.storing import enqueue_message, message_position_available
from falconmq.manager.waiting import (
    end_waiting_read,
    end_waits_of,
    end_waits_of_transaction,
    feed_waiting_reads,
    wait_for_new_message,
)
from tests.manager.helpers import bodies, commit, given_queue, make_core, message, pass_time
from tests.manager.readers import (
    body,
    given_cursor,
    given_reader,
    given_transaction,
    position_of,
    send,
    status,
    waits,
)
from tests.strategies.queues import timeouts


@pytest.fixture
def core() -> QueueManagerCore:
    return make_core()


@pytest.fixture
def queue(core: QueueManagerCore) -> Queue:
    return given_queue(core)


@pytest.fixture
def reader(core: QueueManagerCore, queue: Queue) -> OpenQueueDescriptor:
    return given_reader(core, queue)


# What comes in time


@pytest.mark.requirement(
    "DM-3.1.7.1.10-16", "DM-3.1.7.1.10-17", "DM-3.1.7.3.1-07", "DM-3.1.7.3.1-08",
    "DM-3.1.7.3.6-01",
)  # fmt: skip
def test_scenario_28_a_message_in_time_ends_the_wait_and_its_timer(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a receive that waits 5 seconds
    read = waits(dequeue_message(core, reader, timeout=5))
    assert (read.is_destructive, read.cursor) == (True, None)
    # when a message comes after 2
    pass_time(core, 2)
    send(core, queue, "a")
    # then it is received, and the line is empty
    assert body(read) == "a"
    assert not queue.waiting
    assert bodies(queue) == []
    assert commit(core) == [read]
    # and when the 5 seconds are over nothing happens any more
    pass_time(core, 5)
    assert body(read) == "a"
    assert commit(core) == []


@pytest.mark.requirement(
    "DM-3.1.2.3-01", "DM-3.1.2.3-02", "DM-3.1.2.3-04", "DM-3.1.6.3-01", "DM-3.1.7.3.1-05",
    "DM-3.1.7.3.1-06", "DM-3.1.7.3.4-01", "DM-3.1.7.3.5-01",
)  # fmt: skip
def test_scenario_28_no_message_in_time_is_a_timeout_to_the_moment(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given receives that wait 5 and 6 seconds
    first = waits(dequeue_message(core, reader, timeout=5))
    second = waits(dequeue_message(core, reader, timeout=6))
    # when not quite 5 seconds have passed, then both wait
    pass_time(core, 4.75)
    waits(first)
    assert core.next_deadline() == 0.25
    # when the fifth is over, then the first has ended, and it alone
    pass_time(core, 0.25)
    assert status(first) is MqStatus.IO_TIMEOUT
    assert list(queue.waiting) == [second]
    assert commit(core) == [first]


def test_a_wall_clock_that_jumps_does_not_end_a_wait(
    core: QueueManagerCore, reader: OpenQueueDescriptor
) -> None:
    read = waits(dequeue_message(core, reader, timeout=5))
    core.clock.jump(3600)  # type: ignore[attr-defined]  # the virtual clock
    core.run_timers()
    waits(read)


@pytest.mark.requirement("DM-3.1.2.3-03", "DM-3.1.7.1.10-06", "DM-3.1.7.1.11-03",
                         "DM-3.1.7.1.15-01", "DM-3.1.7.1.14-01")  # fmt: skip
def test_without_a_timeout_a_read_waits_for_ever(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given reads of all kinds without a time
    send(core, queue, "a")
    cursor = given_cursor(core, reader)
    peek_message(core, reader, cursor=cursor)
    reads = [waits(peek_next_message(core, reader, cursor))]
    dequeue_message(core, reader)
    reads += [
        waits(peek_message(core, reader)),
        waits(dequeue_message(core, reader)),
        waits(dequeue_message_begin(core, reader)),
        waits(dequeue_message(core, reader, timeout=inf)),
    ]
    # when years go by
    pass_time(core, 10**9)
    # then all of them wait, and no timer was ever set
    assert list(queue.waiting) == reads
    assert core.next_deadline() is None


@pytest.mark.requirement("DM-3.1.7.3.1-03")
@pytest.mark.parametrize("timeout", [0, 0.0, -1])
def test_without_time_there_is_no_wait(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, timeout: float
) -> None:
    assert status(dequeue_message(core, reader, timeout=timeout)) is MqStatus.IO_TIMEOUT
    assert status(peek_message(core, reader, timeout=timeout)) is MqStatus.IO_TIMEOUT
    assert not queue.waiting
    assert core.next_deadline() is None
    assert commit(core) == []


@pytest.mark.requirement("DM-3.1.7.3.1-02")
def test_nobody_waits_for_a_queue_that_is_gone(
    core: QueueManagerCore, reader: OpenQueueDescriptor
) -> None:
    failures: list[str] = []
    read = WaitingRead(reader, False, lambda p: ReadResult(MqStatus.OK, p), lambda: None)
    read.failed = lambda: failures.append("cursor told")
    reader.queue = None
    result = wait_for_new_message(core, read, 5)
    assert status(result) is MqStatus.QUEUE_NOT_AVAILABLE
    assert failures == ["cursor told"]
    assert core.next_deadline() is None


@pytest.mark.requirement("DM-3.1.7.3.1-01", "DM-3.1.7.3.1-04", "DM-3.1.1.16-17")
def test_a_wait_keeps_what_its_reader_asked_for(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a reader with a cursor, and one without, both with tags
    cursor = given_cursor(core, reader)
    with_cursor = waits(dequeue_message(core, reader, cursor=cursor, tag="first", timeout=3))
    without = waits(peek_message(core, reader, tag="second"))
    # then the line has both, as they came
    assert list(queue.waiting) == [with_cursor, without]
    assert [read.descriptor for read in queue.waiting] == [reader, reader]
    assert [read.is_destructive for read in queue.waiting] == [True, False]
    assert [read.tag for read in queue.waiting] == ["first", "second"]
    assert [read.cursor for read in queue.waiting] == [cursor, None]
    assert [read.deadline for read in queue.waiting] == [3, None]


# Who gets it


@pytest.mark.requirement("DM-3.1.7.2.2-04", "DM-3.1.7.2.2-05", "DM-3.1.7.2.2-06",
                         "DM-3.1.7.1.15-11", "DM-3.1.7.3.7-01")  # fmt: skip
def test_scenario_29_peekers_ahead_of_the_first_receiver_then_that_receiver(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a line: peek, receive, peek, receive
    peek1 = waits(peek_message(core, reader))
    receive1 = waits(dequeue_message(core, reader))
    peek2 = waits(peek_message(core, reader))
    receive2 = waits(dequeue_message(core, reader))
    # when one message comes
    send(core, queue, "a")
    # then the first two have it, and the others wait on
    assert body(peek1) == body(receive1) == "a"
    assert list(queue.waiting) == [peek2, receive2]
    assert commit(core) == [peek1, receive1]
    # when a second comes, the others have it
    send(core, queue, "b")
    assert body(peek2) == body(receive2) == "b"
    assert bodies(queue) == []


@pytest.mark.requirement("DM-3.1.7.2.2-08", "DM-3.1.7.1.10-23")
def test_scenario_30_of_two_receivers_the_older_gets_it(core: QueueManagerCore) -> None:
    # given receivers on two descriptors, the second descriptor's first in the line
    queue = given_queue(core)
    one, two = given_reader(core, queue), given_reader(core, queue)
    older = waits(dequeue_message(core, two))
    younger = waits(dequeue_message(core, one))
    # when a message comes
    send(core, queue, "a")
    # then the older has it for itself: nobody can take it before the host has even woken it
    assert body(older) == "a"
    waits(younger)
    assert status(dequeue_message(core, one, timeout=0)) is MqStatus.IO_TIMEOUT


@pytest.mark.requirement("DM-3.1.7.1.10-19", "DM-3.1.7.1.10-18")
def test_a_waiting_receive_does_what_it_would_have_done_at_once(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a two-phase read and one in a transaction, both waiting
    transaction = given_transaction(core)
    begun = waits(dequeue_message_begin(core, reader))
    inside = waits(dequeue_message(core, reader, transaction=transaction))
    # when two messages come
    send(core, queue, "a", "b")
    # then both are locked, the second one by the transaction
    assert (body(begun), body(inside)) == ("a", "b")
    assert position_of(begun).state is PositionState.LOCKED
    assert position_of(begun).transaction is None
    assert position_of(inside).state is PositionState.LOCKED
    assert [o.position for o in transaction.operations] == [position_of(inside)]
    assert len(queue.positions) == 2


def test_a_message_that_comes_back_feeds_those_who_wait(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a message locked by a two-phase read, and a receiver who waits
    send(core, queue, "a")
    locked = position_of(dequeue_message_begin(core, reader, timeout=0))
    read = waits(dequeue_message(core, reader))
    # when the first reader gives it back
    dequeue_message_end(core, reader, locked, delete=False)
    # then the second has it
    assert body(read) == "a"


def test_a_message_in_a_journal_feeds_those_who_wait_there(core: QueueManagerCore) -> None:
    # given a queue with a journal, and a reader of the journal who waits
    queue = given_queue(core, journaling=True)
    assert queue.journal is not None
    read = waits(dequeue_message(core, given_reader(core, queue.journal)))
    # when somebody receives from the queue
    send(core, queue, "a")
    dequeue_message(core, given_reader(core, queue), timeout=0)
    # then the copy goes to the reader of the journal
    assert body(read) == "a"


def test_a_subscriber_that_sends_again_feeds_the_next_in_the_line(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two receivers, and somebody who answers the first deletion with a message
    answered: list[int] = []

    def answer(deleted_from: Queue, position: MessagePosition, reason: int) -> None:
        if not answered:
            answered.append(reason)
            enqueue_message(core, deleted_from, message(b"answer"))

    core.deleted_subscribers.append(answer)
    first, second = waits(dequeue_message(core, reader)), waits(dequeue_message(core, reader))
    # when a message comes
    send(core, queue, "a")
    # then each has one, and each is told once
    assert (body(first), body(second)) == ("a", "answer")
    woken = commit(core)
    assert len(woken) == 2
    assert set(woken) == {first, second}


def test_a_wait_that_is_being_fed_cannot_be_ended(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a subscriber that ends all waits as soon as a message is deleted
    fed, other = waits(dequeue_message(core, reader)), waits(dequeue_message(core, reader))
    cancelled = MqStatus.OPERATION_CANCELLED
    core.deleted_subscribers.append(lambda *_: end_waits_of(core, reader))
    core.deleted_subscribers.append(lambda *_: assert_over(end_waiting_read(core, fed, cancelled)))
    # when a message comes
    send(core, queue, "a")
    # then the one who has it keeps it, the other is cancelled
    assert body(fed) == "a"
    assert status(other) is MqStatus.OPERATION_CANCELLED
    assert sorted(map(id, commit(core))) == sorted(map(id, (fed, other)))


@given(st.lists(st.tuples(st.booleans(), timeouts), max_size=8), st.integers(0, 8))
def test_the_line_is_fed_in_order_whatever_stands_in_it(
    line: list[tuple[bool, float | None]], sent: int
) -> None:
    # given any line of peekers and receivers, some of whom give up
    core = make_core()
    queue = given_queue(core)
    reads = []
    for is_receive, timeout in line:
        read = (dequeue_message if is_receive else peek_message)(
            core, given_reader(core, queue), timeout=timeout
        )
        if isinstance(read, WaitingRead):
            reads.append((read, timeout))
    pass_time(core, 2)
    left = [(read, timeout) for read, timeout in reads if timeout != 1.0]
    # when messages come
    for number in range(sent):
        send(core, queue, f"{number}")
    # then every reader has the first that no receiver before it in the line took
    taken = 0
    for read, _ in left:
        if taken < sent:
            assert body(read) == f"{taken}"
        else:
            waits(read)
        taken += read.is_destructive
    assert len(queue.positions) == max(0, sent - taken)


# Cancelled, closed, too late


@pytest.mark.requirement("DM-3.1.7.1.17-01", "DM-3.1.7.1.17-02", "DM-3.1.7.1.17-03",
                         "DM-3.1.7.1.17-04")  # fmt: skip
def test_scenario_31_cancel_by_tag(core: QueueManagerCore, queue: Queue) -> None:
    # given waits on two descriptors with tags, and one without
    first = waits(dequeue_message(core, given_reader(core, queue), tag=41))
    second = waits(dequeue_message(core, given_reader(core, queue), tag=42))
    third = waits(dequeue_message(core, given_reader(core, queue)))
    # when the second tag is cancelled
    status_x = MqStatus.INFORMATION_REMOTE_CANCELED_BY_CLIENT
    assert cancel_waiting_message_read_request(core, queue, 42, status_x)
    # then its reader gets the canceller's status, and leaves the line
    assert status(second) is status_x
    assert list(queue.waiting) == [first, third]
    assert commit(core) == [second]
    # and there is no such read any more; a read without tag is never meant
    assert not cancel_waiting_message_read_request(core, queue, 42, status_x)
    assert not cancel_waiting_message_read_request(core, queue, None, status_x)
    assert list(queue.waiting) == [first, third]


def test_a_tag_of_another_queue_is_not_meant(core: QueueManagerCore, queue: Queue) -> None:
    other = given_queue(core, "other")
    read = waits(dequeue_message(core, given_reader(core, other), tag=7))
    cancelled = MqStatus.OPERATION_CANCELLED
    assert not cancel_waiting_message_read_request(core, queue, 7, cancelled)
    waits(read)


def test_of_two_waits_with_one_tag_the_older_is_cancelled(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    older = waits(dequeue_message(core, reader, tag="t"))
    younger = waits(peek_message(core, reader, tag="t"))
    cancelled = MqStatus.OPERATION_CANCELLED
    assert cancel_waiting_message_read_request(core, queue, "t", cancelled)
    assert status(older) is MqStatus.OPERATION_CANCELLED
    waits(younger)


def test_scenario_32_closing_a_descriptor_ends_its_waits(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given waits with and without a tag on one descriptor, and one on another
    mine = [
        waits(dequeue_message(core, reader, tag="t")),
        waits(peek_message(core, reader, timeout=5)),
    ]
    other = waits(dequeue_message(core, given_reader(core, queue)))
    # when the first descriptor closes
    end_waits_of(core, reader)
    # then its reads end as cancelled, and stay so when their time comes
    assert [status(read) for read in mine] == [MqStatus.OPERATION_CANCELLED] * 2
    assert list(queue.waiting) == [other]
    assert commit(core) == mine
    pass_time(core, 5)
    assert status(mine[1]) is MqStatus.OPERATION_CANCELLED
    assert commit(core) == []


def test_a_descriptor_without_a_queue_has_no_waits_to_end(
    core: QueueManagerCore, reader: OpenQueueDescriptor
) -> None:
    reader.queue = None
    end_waits_of(core, reader)
    assert commit(core) == []


def test_a_wait_ends_once(core: QueueManagerCore, reader: OpenQueueDescriptor) -> None:
    read = waits(dequeue_message(core, reader))
    assert end_waiting_read(core, read, MqStatus.OPERATION_CANCELLED)
    assert not end_waiting_read(core, read, MqStatus.IO_TIMEOUT)
    assert status(read) is MqStatus.OPERATION_CANCELLED
    assert commit(core) == [read]


def test_a_wait_whose_queue_was_deleted_still_ends(
    core: QueueManagerCore, reader: OpenQueueDescriptor
) -> None:
    read = waits(dequeue_message(core, reader, timeout=1))
    reader.queue = None
    pass_time(core, 1)
    assert status(read) is MqStatus.IO_TIMEOUT


def test_a_transaction_that_ends_takes_its_waits_with_it(
    core: QueueManagerCore, queue: Queue
) -> None:
    # given waits in two transactions, on one queue and on another, and one in none
    ending, going_on = given_transaction(core, 1), given_transaction(core, 2)
    other = given_queue(core, "other")
    mine = [
        waits(dequeue_message(core, given_reader(core, queue), transaction=ending)),
        waits(dequeue_message(core, given_reader(core, other), transaction=ending)),
    ]
    rest = [
        waits(dequeue_message(core, given_reader(core, queue), transaction=going_on)),
        waits(dequeue_message(core, given_reader(core, queue))),
    ]
    # when the first transaction ends
    end_waits_of_transaction(core, ending)
    # then its reads are told, the rest waits on
    assert [status(read) for read in mine] == [MqStatus.TRANSACTION_SEQUENCE] * 2
    assert list(queue.waiting) == rest
    assert commit(core) == mine


@pytest.mark.parametrize("ends", ["over", "prepared"])
def test_a_wait_in_a_transaction_that_ended_unnoticed_takes_no_message(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, ends: str
) -> None:
    # given a cursor that waits in a transaction which ended, and a receiver behind it
    transaction = given_transaction(core)
    cursor = given_cursor(core, reader)
    late = waits(dequeue_message(core, reader, cursor=cursor, transaction=transaction))
    next_one = waits(dequeue_message(core, reader))
    if ends == "over":
        del core.transactions[transaction.identifier]
    transaction.is_prepared = ends == "prepared"
    # when a message comes
    send(core, queue, "a")
    # then the first wait ends without it, its cursor is free, and the next has the message
    assert status(late) is MqStatus.TRANSACTION_SEQUENCE
    assert cursor.state.name == "UNREAD"
    assert not transaction.operations
    assert body(next_one) == "a"


# Timers that are not needed any more


def test_cancelled_timers_do_not_pile_up(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a read with an hour's patience, and a busy one that is fed at once, 5000 times
    patient = waits(
        peek_message(core, given_reader(core, given_queue(core, "other")), timeout=3600)
    )
    for _ in range(5000):
        read = waits(dequeue_message(core, reader, timeout=7200))
        send(core, queue, "a", recoverable=False)
        assert read.result is not None
    # then few timers are left, and the patient read's is among them
    assert len(core.timers.monotonic) < 130
    pass_time(core, 3600)
    assert status(patient) is MqStatus.IO_TIMEOUT


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=64, max_size=140))
def test_timers_of_others_are_kept(timers: list[tuple[int, bool]]) -> None:
    # given timers that are no waits, and among them waits that have ended
    core = make_core()
    reader = given_reader(core, given_queue(core))
    rang: list[int] = []
    for seconds, is_wait in timers:
        if is_wait:
            read = waits(dequeue_message(core, reader, timeout=seconds + 1))
            end_waiting_read(core, read, MqStatus.OPERATION_CANCELLED)
        else:
            core.timers.after(0, seconds, partial(rang.append, seconds))
    # when time passes, then each of the others rings, in order
    pass_time(core, 60)
    assert rang == sorted(seconds for seconds, is_wait in timers if not is_wait)


def test_nobody_is_fed_with_a_message_that_somebody_holds(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a message that is locked, and a reader who waits
    send(core, queue, "a")
    locked = position_of(dequeue_message_begin(core, reader, timeout=0))
    read = waits(dequeue_message(core, reader))
    # when the line is fed with it
    feed_waiting_reads(core, queue, locked)
    # then nothing happens, until it is available
    waits(read)
    message_position_available(core, queue, locked)
    assert body(read) == "a"
    assert queue.positions.after(START, peek=True) is None


def assert_over(was_ended: bool) -> None:
    assert not was_ended
