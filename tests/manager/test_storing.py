"""Putting messages into queues, and taking them out (MQDMPR 3.1.7.1.9, 3.1.7.2)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.manager.core import KILOBYTE, QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.moving import move_message
from falconmq.manager.queues import delete_queue, open_subqueue, purge_queue
from falconmq.manager.quotas import begin_flow_control, end_flow_control
from falconmq.manager.reading import dequeue_message, dequeue_message_end, peek_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import (
    EnqueueStatus,
    OperationType,
    PositionState,
)
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import commit_transaction, create_transaction
from falconmq.message import INFINITE, CryptographicProvider, Message, MessageId
from falconmq.serialization import from_user_message
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_message import UserMessage
from tests.manager.helpers import (
    IDENTIFIER,
    START_TIME,
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    only,
    pass_time,
    positions,
    record_events,
    restart,
    same,
)
from tests.manager.readers import given_reader, position_of, send

OK, QUEUE_QUOTA = EnqueueStatus.OK, EnqueueStatus.QUEUE_QUOTA
MANAGER_QUOTA, TIMED_OUT = EnqueueStatus.MANAGER_QUOTA, EnqueueStatus.TIMED_OUT


# Order


@pytest.mark.requirement("MQ-2.2.19.1-09")
@pytest.mark.requirement(
    "DM-3.1.7.1.9-10", "DM-3.1.7.1.9-12", "DM-3.1.1.12-01", "DM-3.1.1.2-39", "DM-3.1.7.1.9-02"
)
def test_higher_priority_is_read_first_and_equals_as_they_came() -> None:
    # given a queue
    core = make_core()
    queue = given_queue(core)
    # when messages of several priorities arrive
    for body, priority in ((b"3a", 3), (b"7", 7), (b"3b", 3), (b"0", 0)):
        assert enqueue_message(core, queue, message(body, priority=priority)) is OK
    # then readers get them by priority and arrival, and the lookup identifiers ascend so
    found = positions(queue)
    assert [bytes(p.message.packet.properties.message_body) for p in found] == [
        b"7",
        b"3a",
        b"3b",
        b"0",
    ]
    assert [p.lookup_id >> 56 for p in found] == [0, 4, 4, 7]


@pytest.mark.requirement("DM-3.1.7.1.9-10")
def test_a_transactional_message_counts_as_priority_zero() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    sent = message(transactional=True)
    sent.packet.base.flags |= 7  # as some peer might write it
    enqueue_message(core, queue, sent)
    assert only(queue).lookup_id >> 56 == 0x07


@given(priorities=st.lists(st.integers(0, 7), max_size=30))
@pytest.mark.requirement("DM-3.1.1.2-39", "DM-3.1.7.1.9-12")
def test_any_arrival_gives_the_order_of_a_stable_sort(priorities: list[int]) -> None:
    core = make_core()
    queue = given_queue(core)
    arrived = [(priority, b"%d" % i) for i, priority in enumerate(priorities)]
    for priority, body in arrived:
        enqueue_message(core, queue, message(body, priority=priority))
    expected = [body for _, body in sorted(arrived, key=lambda a: -a[0])]
    assert bodies(queue) == expected
    commit(core)
    assert bodies(same(restart(core), queue)) == expected


@pytest.mark.requirement("DM-3.1.7.1.9-09", "DM-3.1.7.1.9-11")
def test_the_sequential_id_counts_accepted_messages_only() -> None:
    # given a queue with room for one message
    core = make_core()
    queue = given_queue(core, quota_kilobytes=1)
    before = core.sequential_id.value
    # when one message fits and the next does not
    assert enqueue_message(core, queue, message(bytes(600))) is OK
    assert enqueue_message(core, queue, message(bytes(600))) is QUEUE_QUOTA
    # then only the first has taken a number, and carries it
    assert core.sequential_id.value == before + 1
    assert only(queue).lookup_id & ((1 << 56) - 1) == before + 1


@pytest.mark.requirement("DM-3.1.1.12-01")
def test_no_lookup_identifier_comes_twice_however_often_the_power_fails() -> None:
    core = make_core()
    queue = given_queue(core)
    commit(core)
    seen: list[int] = []
    for _ in range(4):
        for _ in range(3):
            enqueue_message(core, queue, message())
        commit(core)
        seen += [p.lookup_id for p in positions(queue) if p.lookup_id not in seen]
        for position in positions(queue):
            move_message(core, position, core.dead_letter)
        commit(core)
        enqueue_message(core, queue, message())  # lost in the crash, and its number with it
        core = restart(core)
        queue = same(core, queue)
    assert len(seen) == 12
    assert seen == sorted(seen)


@pytest.mark.requirement("DM-3.1.1.12-07", "DM-3.1.7.1.9-18", "DM-3.1.1.12-127", "DM-3.1.1.11-09")
def test_a_stored_message_knows_its_arrival_and_its_place_its_queue() -> None:
    core = make_core()
    queue = given_queue(core)
    pass_time(core, 12.5)
    stored = message()
    enqueue_message(core, queue, stored)
    position = only(queue)
    assert stored.arrival_time == START_TIME + 12.5
    assert position.message is stored
    assert position.queue is queue
    commit(core)
    assert only(same(restart(core), queue)).message.arrival_time == START_TIME + 12.5


def test_arrival_numbers_follow_readability_and_survive_restarts() -> None:
    # given a message sent in a transaction before another arrives outside
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    for body in (b"a", b"b"):
        enqueue_message(core, queue, message(body, transactional=True), transaction)
    enqueue_message(core, queue, message(b"c", transactional=True))
    # when the transaction commits
    commit_transaction(core, transaction.identifier)
    commit(core)
    # then the numbers tell in which order readers could see them, not in which they lie there
    numbers = {
        bytes(p.message.packet.properties.message_body): p.message.arrival_number
        for p in positions(queue)
    }
    assert numbers[b"c"] < numbers[b"a"] < numbers[b"b"]
    # and after a crash no number comes again
    given_before = max(numbers.values())
    for position in positions(queue):
        move_message(core, position, core.dead_letter)
    commit(core)
    core = restart(core)
    enqueue_message(core, same(core, queue), message(b"d", transactional=True))
    assert only(same(core, queue)).message.arrival_number > given_before


# Quotas and refusals


@pytest.mark.requirement("DM-3.1.7.1.9-06", "DM-3.1.7.1.9-19", "DM-3.1.7.1.9-17", "DM-3.1.7.1.9-02")
def test_a_queue_takes_exactly_its_quota_in_kilobytes() -> None:
    core = make_core()
    queue = given_queue(core, quota_kilobytes=1)
    overhead = message().size
    assert enqueue_message(core, queue, message(bytes(KILOBYTE - overhead + 4))) is QUEUE_QUOTA
    assert len(queue.positions) == 0
    assert enqueue_message(core, queue, message(bytes(KILOBYTE - overhead))) is OK
    assert queue.total_bytes == KILOBYTE
    assert enqueue_message(core, queue, message()) is QUEUE_QUOTA


@pytest.mark.requirement("DM-3.1.7.1.9-19")
def test_what_waits_for_its_commit_counts_too_and_no_limit_is_no_limit() -> None:
    core = make_core()
    queue = given_queue(core, quota_kilobytes=1)
    transaction = create_transaction(core)
    assert enqueue_message(core, queue, message(bytes(600)), transaction) is OK
    assert enqueue_message(core, queue, message(bytes(600))) is QUEUE_QUOTA
    queue.properties.quota_kilobytes = core.settings.quota_kilobytes = 0xFFFFFFFF
    core.used_bytes = queue.positions.total_bytes = 1 << 50
    assert enqueue_message(core, queue, message(bytes(600))) is OK


@pytest.mark.requirement("DM-3.1.7.1.9-05", "DM-3.1.7.1.9-02")
def test_the_quota_of_the_manager_comes_before_that_of_the_queue() -> None:
    # given both full, by a message in another queue
    core = make_core(quota_kilobytes=1)
    enqueue_message(core, given_queue(core, "other"), message(bytes(600)))
    queue = given_queue(core, quota_kilobytes=0)
    # when a message arrives, then the manager's quota is what refuses it
    assert enqueue_message(core, queue, message(bytes(600))) is MANAGER_QUOTA
    assert len(queue.positions) == 0
    core.settings.quota_kilobytes = 0xFFFFFFFF
    assert enqueue_message(core, queue, message(bytes(600))) is QUEUE_QUOTA


@pytest.mark.requirement("DM-3.1.7.1.9-04", "DM-3.1.7.2.5-01", "DM-3.1.7.2.6-01")
def test_flow_control_refuses_everything_until_it_ends() -> None:
    core = make_core()
    queue = given_queue(core)
    begin_flow_control(core)
    assert enqueue_message(core, queue, message()) is MANAGER_QUOTA
    assert len(queue.positions) == 0
    end_flow_control(core)
    assert enqueue_message(core, queue, message()) is OK


@pytest.mark.requirement("DM-3.1.7.1.9-07", "DM-3.1.7.1.9-03", "DM-3.1.7.1.9-02")
@pytest.mark.parametrize(
    ("age", "ttrq", "status"),
    [(10, 10, OK), (11, 10, TIMED_OUT), (0, 0, OK), (1, 0, TIMED_OUT), (-5, 0, OK)],
)
def test_a_message_that_took_too_long_is_refused(
    age: int, ttrq: int, status: EnqueueStatus
) -> None:
    core = make_core()
    queue = given_queue(core)
    late = message(ttrq=ttrq, sent_time=START_TIME - age)
    assert enqueue_message(core, queue, late) is status
    assert len(queue.positions) == (1 if status is OK else 0)


def test_a_message_without_a_limit_may_take_for_ever() -> None:
    core = make_core()
    assert enqueue_message(core, given_queue(core), message(ttrq=INFINITE, sent_time=1)) is OK


# The two events


@pytest.mark.requirement(
    "DM-3.1.7.1.9-16", "DM-3.1.7.1.9-08", "DM-3.1.7.2.2-01", "DM-3.1.7.2.2-03", "DM-3.1.7.1.9-01"
)
def test_subscribers_hear_of_a_message_that_can_be_read() -> None:
    core = make_core()
    queue = given_queue(core)
    events = record_events(core)
    stored = message()
    enqueue_message(core, queue, stored)
    assert [(q, p.message, p.state) for q, p in events.available] == [
        (queue, stored, PositionState.AVAILABLE)
    ]


@pytest.mark.requirement(
    "DM-3.1.7.2.1-02", "DM-3.1.7.2.1-03", "DM-3.1.7.2.1-04", "DM-3.1.7.2.2-02", "DM-3.1.1.2-29"
)
def test_bytes_count_from_arrival_to_departure() -> None:
    core = make_core()
    queue = given_queue(core)
    sizes = []
    for length in (0, 10, 1000):
        stored = message(bytes(length))
        enqueue_message(core, queue, stored)
        sizes.append(stored.size)
    assert queue.total_bytes == core.used_bytes == sum(sizes)
    reader = given_reader(core, queue)
    taken = position_of(dequeue_message(core, reader, timeout=0))
    assert queue.total_bytes == core.used_bytes == sum(sizes[1:])
    assert taken.state is PositionState.DELETED
    assert taken.lookup_id not in queue.positions
    for _ in range(2):
        dequeue_message(core, reader, timeout=0)
    assert queue.total_bytes == core.used_bytes == 0


@pytest.mark.requirement("DM-3.1.7.2.2-07")
def test_a_message_that_comes_back_is_not_counted_twice() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a")
    before = queue.total_bytes
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    assert queue.total_bytes == before
    dequeue_message_end(core, reader, held, delete=False)
    assert queue.total_bytes == core.used_bytes == before


def _receive(core: QueueManagerCore, queue: Queue) -> None:
    dequeue_message(core, given_reader(core, queue), timeout=0)


def _receive_two_phase(core: QueueManagerCore, queue: Queue) -> None:
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    dequeue_message_end(core, reader, held, delete=True)


def _receive_in_transaction(core: QueueManagerCore, queue: Queue) -> None:
    transaction = create_transaction(core)
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    commit_transaction(core, transaction.identifier)


def _purge_held(core: QueueManagerCore, queue: Queue) -> None:
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    purge_queue(core, queue)
    dequeue_message_end(core, reader, held, delete=False)


def _expire(core: QueueManagerCore, queue: Queue) -> None:
    pass_time(core, 100)


WAYS_OUT: list[Any] = [
    pytest.param(_receive, MessageClass.ACK_RECEIVE, id="received"),
    pytest.param(_receive_two_phase, MessageClass.ACK_RECEIVE, id="received in two phases"),
    pytest.param(_receive_in_transaction, MessageClass.ACK_RECEIVE, id="received in transaction"),
    pytest.param(purge_queue, MessageClass.NACK_Q_PURGED, id="purged"),
    pytest.param(_purge_held, MessageClass.NACK_Q_PURGED, id="purged while held"),
    pytest.param(delete_queue, MessageClass.NACK_Q_DELETED, id="queue deleted"),
    pytest.param(_expire, MessageClass.NACK_RECEIVE_TIMEOUT, id="expired"),
]


@pytest.mark.requirement("DM-3.1.7.2-02")
@pytest.mark.requirement("DM-3.1.7.2.1-01")
@pytest.mark.parametrize(("leave", "reason"), WAYS_OUT)
@pytest.mark.parametrize("is_stored", [True, False])
def test_subscribers_hear_once_why_a_message_left(leave: Any, reason: int, is_stored: bool) -> None:
    # given a message that expires after a minute
    core = make_core()
    queue = given_queue(core)
    events = record_events(core)
    enqueue_message(core, queue, message(b"a", ttbr=60, recoverable=is_stored))
    commit(core)
    # when it leaves
    leave(core, queue)
    # then its queue, its message and the reason are told, once, and it is gone for good
    ((told_queue, position, told_reason),) = events.deleted
    assert (told_queue, told_reason) == (queue, reason)
    assert bytes(position.message.packet.properties.message_body) == b"a"
    assert core.used_bytes == 0
    commit(core)
    assert restart(core).used_bytes == 0


def test_subscribers_hear_of_the_arrival_before_the_waiting_reader_takes_it() -> None:
    core = make_core()
    queue = given_queue(core)
    dequeue_message(core, given_reader(core, queue), timeout=None)
    heard: list[str] = []
    core.available_subscribers.append(lambda _q, _p: heard.append("available"))
    core.deleted_subscribers.append(lambda _q, _p, _r: heard.append("deleted"))
    enqueue_message(core, queue, message())
    assert heard == ["available", "deleted"]


# What survives


@pytest.mark.requirement("DM-3.1.1.12-46")
@pytest.mark.requirement("MQ-2.2.19.2-19", "MQ-2.2.19.2-20")
@pytest.mark.requirement("DM-3.1.1.12-47", "DM-3.1.1.11-06")
def test_recoverable_messages_survive_a_crash_and_express_ones_do_not() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "kept")
    send(core, queue, "lost", recoverable=False)
    commit(core)
    again = same(restart(core), queue)
    assert bodies(again) == [b"kept"]
    assert only(again).state is PositionState.AVAILABLE


def test_what_was_not_committed_is_lost_and_what_was_read_before_does_not_return() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "read", "stays")
    commit(core)
    _receive(core, queue)
    commit(core)
    send(core, queue, "too late")
    assert bodies(same(restart(core), queue)) == [b"stays"]


@pytest.mark.requirement("DM-3.1.1.12-128")
def test_all_that_is_known_of_a_recoverable_message_survives() -> None:
    # given a message with everything a record can hold
    core = make_core()
    queue = given_queue(core)
    stored = message(
        b"body",
        label="label",
        allow_peek_when_locked=True,
        dead_letter_queue=r".\private$\dead",
        extension=b"beside",
        application_tag=7,
        journal=3,
        ttbr=1000,
        ttrq=900,
    )
    stored.authentication_level, stored.abort_count, stored.move_count = 3, 4, 5
    enqueue_message(core, queue, stored)
    commit(core)
    # when the power fails
    (again,) = positions(same(restart(core), queue))
    # then each attribute is back
    assert again.lookup_id == only(queue).lookup_id
    for name in StoredMessage.__slots__:
        if name not in ("data", "decoded", "extra"):
            assert getattr(again.message, name) == getattr(stored, name), name
    assert bytes(again.message.data) == bytes(stored.data)
    assert again.message.packet == UserMessage.decode(stored.data)


UNTOUCHED: list[Any] = [
    pytest.param(
        "application_tag",
        0xDEADBEEF,
        0,
        marks=pytest.mark.requirement("DM-3.1.1.12-68", "MQ-2.2.19.3-22"),
    ),
    pytest.param("body", bytes(range(256)), b"", marks=pytest.mark.requirement("DM-3.1.1.12-70")),
    pytest.param("body_type", 0x1234, 0, marks=pytest.mark.requirement("DM-3.1.1.12-71")),
    pytest.param(
        "correlation_id", MessageId(bytes(range(20))), MessageId(bytes(20)), id="DM-3.1.1.12-72"
    ),
    pytest.param("label", "\u00e4" * 249, "", marks=pytest.mark.requirement("DM-3.1.1.12-83")),
    pytest.param(
        "extension", bytes(range(255)), b"", marks=pytest.mark.requirement("DM-3.1.1.12-105")
    ),
    pytest.param(
        "connector_type", UUID(int=9), None, marks=pytest.mark.requirement("DM-3.1.1.12-106")
    ),
]


@pytest.mark.parametrize(("name", "value", "default"), UNTOUCHED)
def test_what_the_application_wrote_comes_out_as_it_went_in(
    name: str, value: Any, default: Any
) -> None:
    # given a message with and one without the property
    assert getattr(Message(), name) == default
    core = make_core()
    queue = given_queue(core)
    plain = {name: value} if name != "body" else {}
    enqueue_message(core, queue, message(value if name == "body" else b"", **plain))
    commit(core)
    # when it is moved, the power fails, and it is read
    move_message(core, only(queue), open_subqueue(core, queue, "checked"))
    commit(core)
    core = restart(core)
    subqueue = open_subqueue(core, same(core, queue), "checked")
    taken = position_of(dequeue_message(core, given_reader(core, subqueue), timeout=0))
    # then it is the same
    assert getattr(from_user_message(taken.message.packet), name) == value


@pytest.mark.requirement("DM-3.1.1.12-112", "DM-3.1.1.12-113")
def test_what_a_connector_wrote_is_kept_and_means_nothing_here() -> None:
    core = make_core()
    queue = given_queue(core)
    provider = CryptographicProvider("Somebody's Own Provider", 99)
    stored = message(b"x", connector_type=UUID(int=3), provider=provider)
    assert enqueue_message(core, queue, stored) is OK
    commit(core)
    (again,) = positions(same(restart(core), queue))
    assert from_user_message(again.message.packet).provider == provider


@pytest.mark.requirement("DM-3.1.1.12-69", "DM-3.1.1.12-84")
def test_source_and_sent_time_stay_those_of_the_sender() -> None:
    core = make_core()
    queue = given_queue(core)
    pass_time(core, 50)
    enqueue_message(core, queue, message(source=UUID(int=5), sent_time=START_TIME - 20))
    commit(core)
    read = from_user_message(only(same(restart(core), queue)).message.packet)
    assert read.source_queue_manager == UUID(int=5) != IDENTIFIER
    assert read.sent_time == START_TIME - 20


# In a transaction


@pytest.mark.requirement("DM-3.1.7.1.9-14", "DM-3.1.7.1.9-15", "DM-3.1.7.1.9-17")
def test_in_a_transaction_a_message_is_locked_and_nobody_hears_of_it() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    events = record_events(core)
    waiting = peek_message(core, given_reader(core, queue), timeout=None)
    transaction = create_transaction(core)
    assert enqueue_message(core, queue, message(transactional=True), transaction) is OK
    (operation,) = transaction.operations
    assert operation.kind is OperationType.ENQUEUE
    assert operation.position is only(queue)
    assert operation.position.state is PositionState.LOCKED
    assert not events.available
    assert bodies(queue) == []
    assert getattr(waiting, "result", None) is None
