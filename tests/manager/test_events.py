"""What is remembered of messages: each thing that can happen leaves one record."""

from __future__ import annotations

import pytest

from falconmq.clock import VirtualClock
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind, EventLog, MessageEvent
from falconmq.manager.model import Queue
from falconmq.manager.moving import move_message
from falconmq.manager.opening import open_queue
from falconmq.manager.queues import delete_queue, open_subqueue, purge_queue
from falconmq.manager.reading import (
    dequeue_message,
    dequeue_message_begin,
    dequeue_message_end,
    peek_message,
)
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.message import Journal
from falconmq.names import parse_format_name
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import (
    IDENTIFIER,
    START_TIME,
    STRANGER,
    given_queue,
    make_core,
    message,
    only,
)
from tests.manager.readers import given_reader, position_of


def given_log(clock: VirtualClock | None = None) -> tuple[QueueManagerCore, EventLog]:
    core = make_core(clock=clock)
    core.events = EventLog(core.clock.time)
    return core, core.events


def put(core: QueueManagerCore, queue: Queue, stored: StoredMessage | None = None) -> StoredMessage:
    sent = message() if stored is None else stored
    assert enqueue_message(core, queue, sent) is EnqueueStatus.OK
    return sent


def kinds(log: EventLog) -> list[EventKind]:
    return [event.kind for event in log.after(0)]


def last(log: EventLog) -> MessageEvent:
    return next(iter(log.newest_first()))


# What is recorded


def test_a_message_that_can_be_read_has_arrived() -> None:
    core, log = given_log()
    queue = given_queue(core)
    sent = put(core, queue, message(b"hello"))
    assert last(log) == MessageEvent(
        1,
        START_TIME,
        EventKind.ARRIVED,
        IDENTIFIER.bytes_le,
        sent.identity[1],
        queue,
        only(queue).lookup_id,
        sent.size,
        0,
        "",
    )


def test_a_message_of_a_transaction_arrives_with_the_commit() -> None:
    core, log = given_log()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    enqueue_message(core, queue, message(transactional=True), transaction)
    assert kinds(log) == []
    commit_transaction(core, transaction.identifier)
    assert kinds(log) == [EventKind.ARRIVED]


def test_a_transaction_that_is_aborted_has_sent_nothing() -> None:
    core, log = given_log()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    enqueue_message(core, queue, message(transactional=True), transaction)
    abort_transaction(core, transaction.identifier)
    assert kinds(log) == []


def test_a_message_for_another_computer_is_queued() -> None:
    core, log = given_log()
    name = parse_format_name(r"DIRECT=OS:FAR\private$\orders")
    outgoing = open_queue(core, name, AccessType.SEND).queue
    assert outgoing is not None
    put(core, outgoing)
    assert (last(log).kind, last(log).queue) == (EventKind.QUEUED, outgoing)


def test_reading_leaves_a_record_and_peeking_does_not() -> None:
    core, log = given_log()
    queue = given_queue(core)
    sent = put(core, queue)
    reader = given_reader(core, queue)
    position_of(peek_message(core, given_reader(core, queue, AccessType.PEEK), timeout=0))
    assert kinds(log) == [EventKind.ARRIVED]
    position_of(dequeue_message(core, reader, timeout=0))
    event = last(log)
    assert (event.kind, event.reason) == (EventKind.RECEIVED, MessageClass.ACK_RECEIVE)
    assert (event.source, event.message_id) == sent.identity
    assert event.size == sent.size


def test_a_two_phase_read_is_a_reading_when_it_ends() -> None:
    core, log = given_log()
    queue = given_queue(core)
    put(core, queue)
    reader = given_reader(core, queue)
    for keeps, after in ((False, [EventKind.ARRIVED]), (True, [EventKind.RECEIVED])):
        position = position_of(dequeue_message_begin(core, reader, timeout=0))
        dequeue_message_end(core, reader, position, delete=keeps)
        assert kinds(log)[-1:] == after
    assert len(kinds(log)) == 2


def test_a_reader_who_gives_a_message_back_is_remembered() -> None:
    core, log = given_log()
    queue = given_queue(core, transactional=True)
    put(core, queue)
    transaction = create_transaction(core)
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    abort_transaction(core, transaction.identifier)
    assert kinds(log) == [EventKind.ARRIVED, EventKind.RETURNED]
    assert (last(log).queue, last(log).lookup_id) == (queue, only(queue).lookup_id)


def test_purging_and_deleting_say_which_of_the_two_it_was() -> None:
    core, log = given_log()
    queue = given_queue(core)
    put(core, queue)
    purge_queue(core, queue)
    put(core, queue)
    delete_queue(core, queue)
    arrived, purged, _, deleted = log.after(0)
    assert arrived.kind is EventKind.ARRIVED
    assert (purged.kind, purged.reason) == (EventKind.PURGED, MessageClass.NACK_Q_PURGED)
    assert (deleted.kind, deleted.reason) == (EventKind.QUEUE_DELETED, MessageClass.NACK_Q_DELETED)


def test_a_message_that_nobody_reads_expires_and_leaves_a_dead_letter() -> None:
    clock = VirtualClock()
    core, log = given_log(clock)
    queue = given_queue(core)
    put(core, queue, message(ttbr=10, journal=Journal.DEAD_LETTER))
    clock.advance(11)
    core.run_timers()
    _, dead, expired = log.after(0)
    assert (dead.kind, dead.queue) == (EventKind.DEAD_LETTERED, core.dead_letter)
    assert (expired.kind, expired.queue) == (EventKind.EXPIRED, queue)
    assert {dead.reason, expired.reason} == {MessageClass.NACK_RECEIVE_TIMEOUT}
    assert expired.time == START_TIME + 11


def test_a_copy_in_a_journal_is_recorded_where_it_is() -> None:
    core, log = given_log()
    queue = given_queue(core, journaling=True)
    put(core, queue)
    position_of(dequeue_message(core, given_reader(core, queue), timeout=0))
    assert kinds(log) == [EventKind.ARRIVED, EventKind.RECEIVED, EventKind.JOURNALED]
    assert last(log).queue is queue.journal


def test_a_message_that_moves_says_where_to() -> None:
    core, log = given_log()
    queue = given_queue(core)
    put(core, queue)
    first = only(queue)
    move_message(core, first, open_subqueue(core, queue, "later"))
    moved = next(event for event in log.after(0) if event.kind is EventKind.MOVED)
    assert (moved.queue, moved.lookup_id) == (queue, first.lookup_id)
    assert moved.detail == r".\private$\orders;later"
    assert kinds(log)[-1] is EventKind.ARRIVED  # in its new place


def test_without_a_log_everything_works_as_well() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    put(core, queue)
    position_of(dequeue_message(core, given_reader(core, queue), timeout=0))
    assert len(queue.positions) == 0


# The log itself


def test_records_are_numbered_without_gaps_and_the_oldest_falls_out() -> None:
    log = EventLog(lambda: 7.0, size=3)
    assert (log.number, log.first_number, log.after(0)) == (0, 1, [])
    for number in range(5):
        log.record(EventKind.ARRIVED, IDENTIFIER.bytes_le, number, None)
    assert (log.number, log.first_number) == (5, 3)
    assert [event.number for event in log.after(0)] == [3, 4, 5]
    assert [event.number for event in log.after(3)] == [4, 5]
    assert [event.number for event in log.after(3, count=1)] == [4]
    assert log.after(5) == []
    assert [event.number for event in log.newest_first()] == [5, 4, 3]


def test_counts_go_on_when_records_are_forgotten() -> None:
    core, log = given_log()
    core.events = log = EventLog(core.clock.time, size=2)
    queue = given_queue(core)
    sizes = [put(core, queue, message(b"x" * length)).size for length in (1, 2, 3)]
    assert log.counts[EventKind.ARRIVED] == 3
    assert log.sizes[EventKind.ARRIVED] == sum(sizes)
    assert log.by_queue[queue.number, EventKind.ARRIVED] == 3
    assert log.by_reason[EventKind.ARRIVED, 0] == 0
    purge_queue(core, queue)
    assert log.by_reason[EventKind.PURGED, MessageClass.NACK_Q_PURGED] == 3


def test_the_log_knows_when_a_thing_happened_last_in_a_queue() -> None:
    clock = VirtualClock()
    core, log = given_log(clock)
    queue = given_queue(core)
    put(core, queue)
    clock.advance(5)
    put(core, queue)
    assert log.started == START_TIME
    assert log.latest[queue.number, EventKind.ARRIVED] == START_TIME + 5
    assert (queue.number, EventKind.RECEIVED) not in log.latest


def test_a_message_is_found_by_both_halves_of_its_identifier() -> None:
    log = EventLog(lambda: 7.0)
    log.record(EventKind.ARRIVED, IDENTIFIER.bytes_le, 1, None)
    log.record(EventKind.ARRIVED, STRANGER.bytes_le, 1, None)
    log.record(EventKind.ARRIVED, IDENTIFIER.bytes_le, 2, None)
    log.record(EventKind.RECEIVED, IDENTIFIER.bytes_le, 1, None)
    found = log.of_message(IDENTIFIER.bytes_le, 1)
    assert [event.number for event in found] == [1, 4]


def test_listeners_hear_of_each_record_at_once() -> None:
    log = EventLog(lambda: 7.0)
    heard: list[MessageEvent] = []
    log.listeners.append(heard.append)
    log.record(EventKind.ARRIVED, IDENTIFIER.bytes_le, 1, None)
    assert heard == log.after(0)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (MessageClass.ACK_RECEIVE, EventKind.RECEIVED),
        (MessageClass.NACK_Q_PURGED, EventKind.PURGED),
        (MessageClass.NACK_Q_DELETED, EventKind.QUEUE_DELETED),
        (MessageClass.NACK_RECEIVE_TIMEOUT, EventKind.EXPIRED),
        (MessageClass.NACK_REACH_QUEUE_TIMEOUT, EventKind.EXPIRED),
        (MessageClass.NACK_RECEIVE_REJECTED, EventKind.REJECTED),
        (MessageClass.NORMAL, None),
    ],
)
def test_the_reason_of_a_deletion_decides_what_it_is_called(
    reason: MessageClass, kind: EventKind | None
) -> None:
    core, log = given_log()
    log.left(IDENTIFIER.bytes_le, 1, given_queue(core), 5, 10, reason)
    assert kinds(log) == ([] if kind is None else [kind])


def test_a_failed_write_leaves_a_mark() -> None:
    log = EventLog(lambda: 7.0)
    log.restored()
    event = last(log)
    assert (event.kind, event.queue, event.message_id) == (EventKind.RESTORED, None, 0)


def test_no_totals_are_kept_for_a_queue_that_is_gone() -> None:
    core, log = given_log()
    queue = given_queue(core)
    put(core, queue)
    assert log.by_queue
    delete_queue(core, queue)
    assert not log.by_queue
    assert not log.latest
    assert log.counts[EventKind.ARRIVED] == 1  # those of the manager stay
