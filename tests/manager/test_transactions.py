"""Transactions: all of it or nothing (MQDMPR 3.1.1.13, .14, 3.1.4.3 to .5, 3.1.7.1.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, ResourceError, TransactionError
from falconmq.manager import transactions as transactions_module
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue, ReadResult, Transaction, WaitingRead
from falconmq.manager.moving import move_message
from falconmq.manager.queues import delete_queue, open_queue, open_subqueue, purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType, EnqueueStatus, OperationType, PositionState
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    check_usage,
    commit_transaction,
    create_transaction,
    prepare_transaction,
)
from falconmq.message import Journal
from falconmq.names import parse_format_name
from falconmq.store.memory_engine import ProcessCrash
from falconmq.wire.message_class import MessageClass
from falconmq.wire.transaction_header import FIRST_MESSAGE, LAST_MESSAGE
from tests.manager.helpers import (
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
    store_of,
)
from tests.manager.readers import body, given_reader, position_of, status, waits

NOBODY = UUID(int=404)
Ending = Callable[[QueueManagerCore, UUID], None]


def given_transactional_queue(core: QueueManagerCore, name: str = "orders", *sent: str) -> Queue:
    queue = given_queue(core, name, transactional=True)
    for text in sent:
        enqueue_message(core, queue, message(text.encode(), transactional=True))
    commit(core)
    return queue


def send_in(core: QueueManagerCore, queue: Queue, transaction: Transaction, *texts: str) -> None:
    for text in texts:
        sent = message(text.encode(), transactional=True, wire_id=transaction.wire_id)
        assert enqueue_message(core, queue, sent, transaction) is EnqueueStatus.OK


def receive_in(
    core: QueueManagerCore, queue: Queue, transaction: Transaction, timeout: float | None = 0
) -> ReadResult | WaitingRead:
    reader = given_reader(core, queue)
    return dequeue_message(core, reader, timeout=timeout, transaction=transaction)


def marks(queue: Queue) -> list[str]:
    """F for the first message of a transaction, L for the last, as packet and bytes say."""
    found = []
    for position in positions(queue):
        header = position.message.transaction
        assert header is not None
        assert bytes(position.message.data) == position.message.packet.encode()
        first, last = header.flags & FIRST_MESSAGE, header.flags & LAST_MESSAGE
        found.append(("F" if first else "") + ("L" if last else ""))
    return found


# Creating


@pytest.mark.requirement("DM-3.1.7.1.8-01", "DM-3.1.7.1.8-02", "DM-3.1.1.14-01", "DM-3.1.1.14-02")
def test_a_new_transaction_is_empty_internal_and_known() -> None:
    core = make_core()
    transaction = create_transaction(core, UUID(int=5))
    assert transaction.identifier == UUID(int=5)
    assert not transaction.operations
    assert core.transactions == {UUID(int=5): transaction}


@pytest.mark.requirement("DM-3.1.7.1.8-03", "DM-3.1.1.14-03")
def test_a_new_transaction_is_single_phase_until_somebody_enlists_it() -> None:
    assert create_transaction(make_core()).single_phase is True


def test_a_transaction_without_an_identifier_gets_one_of_its_own() -> None:
    core = make_core()
    identifiers = {create_transaction(core).identifier for _ in range(20)}
    assert len(identifiers) == 20


def test_an_identifier_that_is_in_use_is_refused() -> None:
    core = make_core()
    create_transaction(core, UUID(int=5))
    with pytest.raises(TransactionError) as caught:
        create_transaction(core, UUID(int=5))
    assert caught.value.status is MqStatus.TRANSACTION_ENLIST


@pytest.mark.requirement("MQ-2.2.20.5-15")
@pytest.mark.requirement("DM-3.1.1.12-118")
def test_the_twenty_bits_on_the_wire_differ_among_the_living() -> None:
    # given a transaction that stays open while the counter goes once around
    core = make_core()
    old = create_transaction(core)
    core.last_wire_id = (old.wire_id - 2) % (1 << 20)
    # when others come and go
    others = [create_transaction(core) for _ in range(4)]
    # then none of them has its number, and 0 is nobody's
    ids = [transaction.wire_id for transaction in (old, *others)]
    assert len(set(ids)) == 5
    core.last_wire_id = (1 << 20) - 1
    assert create_transaction(core).wire_id not in (0, *ids)
    assert all(0 < wire_id < 1 << 20 for wire_id in ids)


def test_more_transactions_than_the_wire_can_tell_apart_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = make_core()
    monkeypatch.setattr(transactions_module, "WIRE_ID_MAX", 3)
    for _ in range(3):
        create_transaction(core)
    with pytest.raises(ResourceError, match="3 transactions are open"):
        create_transaction(core)


@pytest.mark.requirement("DM-3.1.4.3-02", "DM-3.1.4.3-03", "DM-3.1.4.4-01", "DM-3.1.4.4-02")
@pytest.mark.requirement("DM-3.1.4.5-01", "DM-3.1.4.5-02")
@pytest.mark.parametrize("event", [prepare_transaction, commit_transaction, abort_transaction])
def test_an_unknown_transaction_is_refused_and_nothing_changes(event: Ending) -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    commit(core)
    with pytest.raises(TransactionError) as caught:
        event(core, NOBODY)
    assert caught.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert not transaction.is_prepared
    assert only(queue).state is PositionState.LOCKED
    assert len(core.take_batch()[0]) == 0


@pytest.mark.requirement("DM-3.1.4.4-10", "DM-3.1.4.4-11", "DM-3.1.4.5-07")
@pytest.mark.parametrize("first", [commit_transaction, abort_transaction])
@pytest.mark.parametrize("second", [prepare_transaction, commit_transaction, abort_transaction])
def test_a_transaction_ends_once(first: Ending, second: Ending) -> None:
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a")
    first(core, transaction.identifier)
    assert not core.transactions
    before = bodies(queue)
    with pytest.raises(TransactionError) as caught:
        second(core, transaction.identifier)
    assert caught.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert bodies(queue) == before


# Prepare: the first and the last


@pytest.mark.requirement("MQ-2.2.20.5-09", "MQ-2.2.20.5-11")
@pytest.mark.requirement(
    "DM-3.1.4.3-01",
    "DM-3.1.4.3-04",
    "DM-3.1.4.3-05",
    "DM-3.1.4.3-06",
    "DM-3.1.4.3-08",
    "DM-3.1.1.12-121",
    "DM-3.1.1.12-122",
)
def test_prepare_marks_the_first_and_the_last_message() -> None:
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a", "b", "c")
    transaction.single_phase = False
    prepare_transaction(core, transaction.identifier)
    assert transaction.single_phase is True  # if not told otherwise
    assert marks(queue) == ["F", "", "L"]
    assert bodies(queue) == []
    commit_transaction(core, transaction.identifier)
    assert bodies(queue) == [b"a", b"b", b"c"]
    commit(core)
    assert marks(same(restart(core), queue)) == ["F", "", "L"]


@pytest.mark.requirement("MQ-2.2.20.5-11")
@pytest.mark.requirement("DM-3.1.4.3-07")
def test_the_only_message_is_first_and_last() -> None:
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a")
    prepare_transaction(core, transaction.identifier, single_phase=False)
    assert transaction.single_phase is False
    assert marks(queue) == ["FL"]


@pytest.mark.requirement("DM-3.1.4.3-09")
def test_only_messages_that_were_sent_are_marked() -> None:
    # given a transaction that receives, sends two, moves and receives
    core = make_core()
    queue = given_transactional_queue(core, "orders", "x", "y", "z")
    target = given_transactional_queue(core, "target")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    send_in(core, target, transaction, "a", "b")
    found = queue.positions.find(queue.positions.lookup_ids()[1])
    assert found is not None
    move_message(core, found, open_subqueue(core, queue, "late"), transaction)
    receive_in(core, queue, transaction)
    # when it is prepared, then the first and last sent carry the marks
    prepare_transaction(core, transaction.identifier)
    assert marks(queue) == ["", "", ""]
    assert marks(target) == ["F", "L"]


@pytest.mark.requirement("DM-3.1.4.3-09")
def test_a_transaction_that_only_receives_prepares_too() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "x")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    prepare_transaction(core, transaction.identifier)
    assert marks(queue) == [""]


@pytest.mark.requirement("DM-3.1.1.12-121", "DM-3.1.1.12-122")
def test_each_queue_sees_where_the_transaction_begins_and_ends_for_it() -> None:
    core = make_core()
    one, two = given_transactional_queue(core, "one"), given_transactional_queue(core, "two")
    transaction = create_transaction(core)
    send_in(core, one, transaction, "a", "b")
    send_in(core, two, transaction, "c", "d", "e")
    commit_transaction(core, transaction.identifier)  # which prepares what is not prepared
    assert (marks(one), marks(two)) == (["F", "L"], ["F", "", "L"])


def test_a_message_that_is_not_transactional_is_left_as_it_is() -> None:
    core = make_core()
    queue = given_queue(core)
    transaction = create_transaction(core)
    sent = message(b"a")
    before = bytes(sent.data)
    enqueue_message(core, queue, sent, transaction)
    commit_transaction(core, transaction.identifier)
    assert bytes(only(queue).message.data) == before


def test_a_prepared_transaction_takes_no_more_operations() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "x")
    transaction = create_transaction(core)
    prepare_transaction(core, transaction.identifier)
    later: list[Callable[[], object]] = [
        lambda: send_in(core, queue, transaction, "a"),
        lambda: receive_in(core, queue, transaction),
        lambda: move_message(core, only(queue), queue, transaction),
    ]
    for operation in later:
        with pytest.raises(TransactionError) as caught:
            operation()
        assert caught.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert not transaction.operations
    assert bodies(queue) == [b"x"]


# Commit


@pytest.mark.requirement("DM-3.1.4.4-03", "DM-3.1.4.4-04", "DM-3.1.4.4-09", "DM-3.1.4.4-10")
def test_commit_makes_messages_readable_in_the_order_they_were_sent() -> None:
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a", "b")
    waiting = [dequeue_message(core, given_reader(core, queue), timeout=None) for _ in "12"]
    events = record_events(core)
    commit_transaction(core, transaction.identifier)
    assert [q for q, _ in events.available] == [queue, queue]
    assert [body(read) for read in waiting] == ["a", "b"]
    assert not transaction.operations
    assert not core.transactions


@pytest.mark.requirement(
    "DM-3.1.4.4-05", "DM-3.1.1.13-01", "DM-3.1.1.13-02", "DM-3.1.1.13-04", "DM-3.1.1.11-03"
)
def test_commit_deletes_what_was_received_for_the_reason_noted() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    transaction = create_transaction(core)
    taken = position_of(receive_in(core, queue, transaction))
    (operation,) = transaction.operations
    assert (operation.kind, operation.position) == (OperationType.DEQUEUE, taken)
    assert operation.reason == MessageClass.ACK_RECEIVE
    assert taken.state is PositionState.LOCKED
    events = record_events(core)
    commit_transaction(core, transaction.identifier)
    assert events.deleted == [(queue, taken, MessageClass.ACK_RECEIVE)]
    commit(core)
    assert bodies(same(restart(core), queue)) == []


@pytest.mark.requirement(
    "DM-3.1.4.4-06", "DM-3.1.4.4-07", "DM-3.1.4.4-08", "DM-3.1.4.4-12", "DM-3.1.1.13-03"
)
def test_commit_moves_what_was_moved() -> None:
    # given two messages, of which the second is moved to a queue that has one already
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a", "b")
    target = given_transactional_queue(core, "target", "t")
    before = target.total_bytes
    transaction = create_transaction(core)
    source = positions(queue)[1]
    move_message(core, source, target, transaction)
    (operation,) = transaction.operations
    assert (operation.kind, operation.target) == (OperationType.MOVE, target)
    events = record_events(core)
    commit_transaction(core, transaction.identifier)
    # then it is behind that one, its bytes went along, and nobody hears of a loss
    assert (bodies(queue), bodies(target)) == ([b"a"], [b"t", b"b"])
    assert source.state is PositionState.DELETED
    assert target.total_bytes == before + source.size
    assert core.used_bytes == queue.total_bytes + target.total_bytes
    assert not events.deleted
    ((told, moved),) = events.available
    assert (told, moved.queue, moved.state) == (target, target, PositionState.AVAILABLE)
    commit(core)
    core = restart(core)
    assert (bodies(same(core, queue)), bodies(same(core, target))) == ([b"a"], [b"t", b"b"])


@pytest.mark.requirement("DM-3.1.4.4-03")
def test_receive_and_send_happen_in_the_order_they_were_asked_for() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "in", "order")
    answers = given_transactional_queue(core, "out")
    transaction = create_transaction(core)
    send_in(core, answers, transaction, "first")
    receive_in(core, queue, transaction)
    send_in(core, answers, transaction, "second")
    heard: list[str] = []
    core.available_subscribers.append(lambda q, _p: heard.append(f"to {q.path_name.name}"))
    core.deleted_subscribers.append(lambda q, _p, _r: heard.append(f"from {q.path_name.name}"))
    commit_transaction(core, transaction.identifier)
    assert heard == ["to out", "from in", "to out"]


# Abort


@pytest.mark.requirement("DM-3.1.4.5-04", "DM-3.1.4.5-06", "DM-3.1.4.5-07")
def test_abort_puts_what_was_received_back_at_its_old_place() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a", "b", "c")
    ids, total = queue.positions.lookup_ids(), queue.total_bytes
    transaction = create_transaction(core)
    for _ in range(2):
        receive_in(core, queue, transaction)
    assert bodies(queue) == [b"c"]
    events = record_events(core)
    abort_transaction(core, transaction.identifier)
    assert bodies(queue) == [b"a", b"b", b"c"]
    assert queue.positions.lookup_ids() == ids
    assert queue.total_bytes == core.used_bytes == total
    assert [bytes(p.message.packet.properties.message_body) for _, p in events.available] == [
        b"a",
        b"b",
    ]
    assert not events.deleted
    assert not transaction.operations


@pytest.mark.requirement("DM-3.1.4.5-05")
def test_abort_takes_back_what_was_sent_without_a_word() -> None:
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a", "b")
    events = record_events(core)
    abort_transaction(core, transaction.identifier)
    assert len(queue.positions) == queue.total_bytes == core.used_bytes == 0
    assert not events.available
    assert not events.deleted
    commit(core)
    assert bodies(same(restart(core), queue)) == []


@pytest.mark.requirement("DM-3.1.4.5-04")
def test_abort_gives_back_what_was_to_be_moved() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    subqueue = open_subqueue(core, queue, "late")
    transaction = create_transaction(core)
    move_message(core, only(queue), subqueue, transaction)
    abort_transaction(core, transaction.identifier)
    assert (bodies(queue), bodies(subqueue)) == ([b"a"], [])
    assert (only(queue).message.move_count, only(queue).message.abort_count) == (0, 0)


@pytest.mark.requirement("DM-3.1.4.5-03", "DM-3.1.1.11-04")
@pytest.mark.parametrize("operation", ["receive", "move"])
def test_abort_deletes_what_was_purged_meanwhile(operation: str) -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    transaction = create_transaction(core)
    if operation == "receive":
        receive_in(core, queue, transaction)
    else:
        move_message(core, only(queue), open_subqueue(core, queue, "late"), transaction)
    events = record_events(core)
    assert purge_queue(core, queue) == 0
    assert only(queue).state is PositionState.PURGE_PENDING
    abort_transaction(core, transaction.identifier)
    assert events.reasons == [MessageClass.NACK_Q_PURGED]
    assert not events.available
    commit(core)
    assert bodies(same(restart(core), queue)) == []


@pytest.mark.requirement("DM-3.1.4.4-05")
def test_commit_of_a_receive_that_was_purged_meanwhile_is_a_receive() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    purge_queue(core, queue)
    events = record_events(core)
    commit_transaction(core, transaction.identifier)
    assert events.reasons == [MessageClass.ACK_RECEIVE]


@pytest.mark.requirement("DM-3.1.4.4-04")
def test_a_message_sent_but_not_committed_survives_a_purge() -> None:  # DM-A57
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a")
    purge_queue(core, queue)
    commit_transaction(core, transaction.identifier)
    assert bodies(queue) == [b"a"]


# Poison


@pytest.mark.parametrize("recoverable", [True, False])
def test_each_abort_is_counted(recoverable: bool) -> None:
    # given a message whose reader always fails
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"poison", recoverable=recoverable))
    commit(core)
    for count in range(3):
        transaction = create_transaction(core)
        taken = position_of(receive_in(core, queue, transaction))
        handed_out = taken.message
        assert handed_out.abort_count == count
        abort_transaction(core, transaction.identifier)
        assert handed_out.abort_count == count  # what the reader was given does not change
        commit(core)
    # then the next reader can see it, after a restart too
    assert only(queue).message.abort_count == 3
    if recoverable:
        assert only(same(restart(core), queue)).message.abort_count == 3


def test_an_abort_is_seen_before_it_is_durable() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "poison")
    for count in range(1, 4):
        transaction = create_transaction(core)
        receive_in(core, queue, transaction)
        abort_transaction(core, transaction.identifier)
        assert only(queue).message.abort_count == count
    commit(core)
    assert only(queue).message.abort_count == 3
    assert not list(queue.positions.resident())  # and then memory lets go of it


def test_a_reader_who_waits_gets_what_an_abort_gives_back() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    waiting = dequeue_message(core, given_reader(core, queue), timeout=None)
    abort_transaction(core, transaction.identifier)
    assert body(waiting) == "a"
    commit(core)
    assert bodies(same(restart(core), queue)) == []


@pytest.mark.parametrize("end", [prepare_transaction, commit_transaction, abort_transaction])
def test_a_read_that_waits_in_a_transaction_ends_with_it(end: Ending) -> None:
    core = make_core()
    queue = given_transactional_queue(core)
    transaction = create_transaction(core)
    waiting = receive_in(core, queue, transaction, timeout=None)
    waits(waiting)
    end(core, transaction.identifier)
    assert status(waiting) is MqStatus.TRANSACTION_SEQUENCE


# Queues that go away


@pytest.mark.parametrize("end", [commit_transaction, abort_transaction])
def test_a_queue_deleted_under_a_transaction_takes_its_messages_along(end: Ending) -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a", "b")
    subqueue = open_subqueue(core, queue, "late")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    send_in(core, queue, transaction, "c")
    move_message(core, positions(queue)[1], subqueue, transaction)
    delete_queue(core, queue)
    events = record_events(core)
    end(core, transaction.identifier)
    # what was sent in it is lost with the queue as soon as it is sent for good, not earlier
    lost = [MessageClass.NACK_Q_DELETED] if end is commit_transaction else []
    assert events.reasons == lost
    assert not events.available
    assert core.used_bytes == 0
    commit(core)
    assert restart(core).used_bytes == 0


def test_a_message_that_its_transaction_has_not_sent_yet_goes_in_silence_with_its_queue() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders")
    transaction = create_transaction(core)
    send_in(core, queue, transaction, "a")
    events = record_events(core)
    delete_queue(core, queue)
    assert not events.deleted
    assert core.used_bytes == 0


def test_a_move_whose_target_is_gone_stays_where_it_was() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    target = given_transactional_queue(core, "target")
    transaction = create_transaction(core)
    move_message(core, only(queue), target, transaction)
    delete_queue(core, target)
    commit_transaction(core, transaction.identifier)
    assert bodies(queue) == [b"a"]


# Crashes


@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_crash_before_the_commit_aborts(is_prepared: bool) -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a", "b")
    other = given_transactional_queue(core, "other")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    send_in(core, other, transaction, "sent")
    move_message(core, positions(queue)[1], other, transaction)
    if is_prepared:
        prepare_transaction(core, transaction.identifier)
    commit(core)  # of whatever else there was
    core = restart(core)
    assert not core.transactions
    assert bodies(same(core, queue)) == [b"a", b"b"]
    assert bodies(same(core, other)) == []


@pytest.mark.requirement("DM-3.1.4.4-13")
@pytest.mark.parametrize("is_durable", [True, False])
def test_a_crash_in_the_commit_leaves_all_of_it_or_nothing(is_durable: bool) -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a", "b", "c")
    other = given_transactional_queue(core, "other")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    send_in(core, other, transaction, "x", "y")
    move_message(core, positions(queue)[1], other, transaction)
    prepare_transaction(core, transaction.identifier)
    commit_transaction(core, transaction.identifier)
    # when the process dies just before or just after the sync
    store_of(core).fail_commit(error=ProcessCrash(), durable=is_durable)
    with pytest.raises(ProcessCrash):
        commit(core)
    core = restart(core)
    # then either everything has happened, or nothing
    done = ([b"c"], [b"x", b"y", b"b"])
    undone: Any = ([b"a", b"b", b"c"], [])
    found = (bodies(same(core, queue)), bodies(same(core, other)))
    assert found == (done if is_durable else undone)


@pytest.mark.requirement("DM-3.1.4.4-13")
def test_a_commit_is_one_batch() -> None:
    core = make_core()
    queue = given_transactional_queue(core, "orders", *map(str, range(10)))
    other = given_transactional_queue(core, "other")
    transaction = create_transaction(core)
    for number in range(10):
        receive_in(core, queue, transaction)
        send_in(core, other, transaction, str(number))
    commit(core)
    commits = store_of(core).commits
    commit_transaction(core, transaction.identifier)
    commit(core)
    assert store_of(core).commits == commits + 1
    core = restart(core)
    assert bodies(same(core, queue)) == []
    assert bodies(same(core, other)) == [b"%d" % n for n in range(10)]


@given(steps=st.lists(st.sampled_from(["send", "receive", "move"]), max_size=12), end=st.booleans())
def test_what_a_transaction_did_is_all_there_or_not_at_all(steps: list[str], end: bool) -> None:
    # given any work in a transaction
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a", "b", "c")
    subqueue = open_subqueue(core, queue, "late")
    commit(core)
    transaction = create_transaction(core)
    here, there, sent = [b"a", b"b", b"c"], [], []
    for number, step in enumerate(steps):
        if step == "send":
            send_in(core, queue, transaction, str(number))
            sent.append(b"%d" % number)
        elif here and step == "receive":
            receive_in(core, queue, transaction)
            here.pop(0)
        elif here:
            found = queue.positions.after(-1, peek=False)
            position = None if found is None else queue.positions.find(found)
            assert position is not None
            move_message(core, position, subqueue, transaction)
            there.append(here.pop(0))
    # when it ends, then the queues are as the model says, now and after a crash
    (commit_transaction if end else abort_transaction)(core, transaction.identifier)
    expected = (here + sent, there) if end else ([b"a", b"b", b"c"], [])
    assert (bodies(queue), bodies(subqueue)) == expected
    assert core.used_bytes == queue.total_bytes + subqueue.total_bytes
    assert not queue.positions.held
    commit(core)
    core = restart(core)
    assert (bodies(same(core, queue)), bodies(same(core, subqueue))) == expected


# Usage


@pytest.mark.parametrize(
    ("transactional", "in_transaction", "receiving", "is_refused"),
    [
        (True, True, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, False, False),
        (True, True, True, False),
        (True, False, True, False),
        (False, True, True, True),
        (False, False, True, False),
    ],
)
def test_usage_that_cannot_work_is_refused_with_the_remedy(
    transactional: bool, in_transaction: bool, receiving: bool, is_refused: bool
) -> None:
    core = make_core()
    queue = given_queue(core, transactional=transactional)
    transaction = create_transaction(core) if in_transaction else None
    for place in (queue, open_subqueue(core, queue, "late"), queue.journal):
        assert place is not None
        if not is_refused:
            check_usage(place, transaction, receiving=receiving)
            continue
        with pytest.raises(TransactionError) as caught:
            check_usage(place, transaction, receiving=receiving)
        assert caught.value.status is MqStatus.TRANSACTION_USAGE
        assert "transaction" in caught.value.hint


def test_usage_of_a_queue_elsewhere_is_judged_elsewhere() -> None:
    core = make_core()
    name = parse_format_name(r"DIRECT=OS:elsewhere\private$\orders")
    outgoing = open_queue(core, name, AccessType.SEND).queue
    assert outgoing is not None
    check_usage(outgoing, None)
    check_usage(outgoing, create_transaction(core))


def test_what_expired_in_its_own_transaction_stays_so_if_the_clock_is_set_back() -> None:
    # given a message that is sent in a transaction, and whose time runs out in it
    core = make_core()
    queue = given_transactional_queue(core, "orders")
    transaction = create_transaction(core)
    expiring = message(
        b"a",
        transactional=True,
        wire_id=transaction.wire_id,
        ttbr=10,
        journal=int(Journal.DEAD_LETTER),
    )
    enqueue_message(core, queue, expiring, transaction)
    pass_time(core, 11)
    # when the clock is set back, the note of its expiry is lost, and the transaction commits
    queue.expired.clear()
    events = record_events(core)
    commit_transaction(core, transaction.identifier)
    # then it is a dead letter all the same
    assert events.reasons == [MessageClass.NACK_RECEIVE_TIMEOUT]
    assert bodies(core.transactional_dead_letter) == [b"a"]


def test_a_commit_does_not_succeed_without_the_deletion_of_the_queue_it_read_from() -> None:
    # given a message that a transaction has read, and its queue deleted, not durable yet
    core = make_core()
    queue = given_transactional_queue(core, "orders", "a")
    transaction = create_transaction(core)
    receive_in(core, queue, transaction)
    delete_queue(core, queue)
    core.take_batch()
    # when the transaction commits
    commit_transaction(core, transaction.identifier)
    # then its batch is not empty: it waits in line, and fails if the deletion does
    batch, _, _ = core.take_batch()
    assert [table for table, _, value in batch.operations if value is None] == ["messages"]
