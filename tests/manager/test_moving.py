"""Moving messages from queue to queue (MQDMPR 3.1.7.1.16)."""

from __future__ import annotations

import pytest

from falconmq.errors import MqStatus, TransactionError
from falconmq.manager.moving import move_message
from falconmq.manager.queues import open_subqueue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import OperationType, PositionState, QueueType
from falconmq.manager.transactions import create_transaction
from tests.manager.helpers import (
    bodies,
    commit,
    given_queue,
    make_core,
    only,
    positions,
    record_events,
    restart,
    same,
)
from tests.manager.readers import given_reader, position_of, send


@pytest.mark.requirement(
    "DM-3.1.7.1.16-01",
    "DM-3.1.7.1.16-03",
    "DM-3.1.7.1.16-04",
    "DM-3.1.7.1.16-05",
    "DM-3.1.7.1.16-09",
    "DM-3.1.7.1.16-10",
)
@pytest.mark.parametrize("is_stored", [True, False])
def test_a_message_moved_to_a_subqueue_keeps_its_place_in_the_order(is_stored: bool) -> None:
    # given two messages in a queue
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a", "b", recoverable=is_stored, priority=5)
    commit(core)
    first, second = positions(queue)
    size = first.size
    subqueue = open_subqueue(core, queue, "late")
    events = record_events(core)
    # when both are moved, the second first
    move_message(core, second, subqueue)
    move_message(core, first, subqueue)
    # then the source is empty, the target readable in the old order, and nobody hears of a loss
    assert first.state is second.state is PositionState.DELETED
    assert bodies(queue) == []
    assert bodies(subqueue) == [b"a", b"b"]
    assert [p.lookup_id for p in positions(subqueue)] == [first.lookup_id, second.lookup_id]
    assert {p.state for p in positions(subqueue)} == {PositionState.AVAILABLE}
    assert [q for q, _ in events.available] == [subqueue, subqueue]
    assert not events.deleted
    assert (queue.total_bytes, subqueue.total_bytes, core.used_bytes) == (0, 2 * size, 2 * size)
    assert [p.message.move_count for p in positions(subqueue)] == [1, 1]
    # and it is durable
    commit(core)
    core = restart(core)
    assert bodies(same(core, queue)) == []
    assert bodies(same(core, subqueue)) == ([b"a", b"b"] if is_stored else [])


@pytest.mark.requirement("DM-3.1.7.1.16-06", "DM-3.1.7.1.16-10", "DM-3.1.7.1.16-11")
def test_a_message_moved_to_a_system_queue_gets_a_new_number_and_nobody_is_told() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a")
    commit(core)
    position = only(queue)
    events = record_events(core)
    waiting = dequeue_message(core, given_reader(core, core.dead_letter), timeout=None)
    move_message(core, position, core.dead_letter)
    assert not events.available
    moved = position_of(waiting)  # but who waits there gets it, DM-A63
    assert moved.lookup_id != position.lookup_id
    send(core, queue, "b")
    size = only(queue).size
    move_message(core, only(queue), core.dead_letter)
    assert core.dead_letter.total_bytes == size


@pytest.mark.requirement("DM-3.1.7.1.16-07")
def test_a_move_in_a_transaction_only_locks() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a")
    subqueue = open_subqueue(core, queue, "late")
    transaction = create_transaction(core)
    move_message(core, only(queue), subqueue, transaction)
    (operation,) = transaction.operations
    assert (operation.kind, operation.target) == (OperationType.MOVE, subqueue)
    assert operation.position is only(queue)
    assert only(queue).state is PositionState.LOCKED
    assert bodies(queue) == bodies(subqueue) == []


@pytest.mark.requirement("DM-3.1.7.1.16-02")
def test_a_transaction_cannot_move_to_a_system_queue() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a")
    transaction = create_transaction(core)
    with pytest.raises(TransactionError) as caught:
        move_message(core, only(queue), core.dead_letter, transaction)
    assert caught.value.status is MqStatus.TRANSACTION_USAGE
    assert core.dead_letter.queue_type is QueueType.SYSTEM
    assert bodies(queue) == [b"a"]
    assert not transaction.operations


def test_a_move_wakes_who_waits_at_the_target() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a")
    subqueue = open_subqueue(core, queue, "late")
    waiting = dequeue_message(core, given_reader(core, subqueue), timeout=None)
    move_message(core, only(queue), subqueue)
    assert position_of(waiting).queue is subqueue
