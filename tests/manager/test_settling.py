"""Memory and store between two commits and over a restart: nothing newer is forgotten."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.errors import TransactionError
from falconmq.manager import coordinator
from falconmq.manager.coordinator import ReenlistmentMessage
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.cursors import open_cursor
from falconmq.manager.lifecycle import initialize, settle
from falconmq.manager.model import Queue, ReadResult
from falconmq.manager.queues import close_queue, delete_queue, open_queue, purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType, ManagerState
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import abort_transaction, create_transaction
from falconmq.names import PrivateFormatName
from tests.manager.helpers import (
    commit,
    given_queue,
    make_core,
    message,
    only,
    restart,
    same,
    store_of,
)


def test_an_abort_count_survives_two_batches_that_settle_one_after_the_other() -> None:
    # given a message whose first batch is on its way to the store
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"poison"))
    name = PrivateFormatName(core.identifier, queue.private_queue_number)
    descriptor = open_queue(core, name, AccessType.RECEIVE)
    first, first_positions, _ = core.take_batch()
    # when a receive is aborted, which writes its count with a second batch
    transaction = create_transaction(core)
    result = dequeue_message(core, descriptor, timeout=0, transaction=transaction)
    assert isinstance(result, ReadResult)
    abort_transaction(core, transaction.identifier)
    second, second_positions, _ = core.take_batch()
    # then the end of the first commit does not let the store's older record win
    store_of(core).commit([first])
    settle(core, first_positions)
    assert only(queue).message.abort_count == 1
    store_of(core).commit([second])
    settle(core, second_positions)
    assert only(queue).message.abort_count == 1


def test_closing_a_deleted_queue_forgets_its_cursors() -> None:
    core = make_core()
    queue = given_queue(core)
    name = PrivateFormatName(core.identifier, queue.private_queue_number)
    descriptor = open_queue(core, name, AccessType.RECEIVE)
    open_cursor(core, descriptor)
    delete_queue(core, queue)
    close_queue(core, descriptor)
    assert not core.cursors
    assert not core.descriptors


def test_a_purge_of_what_a_prepared_transaction_holds_survives_a_restart() -> None:
    # given a message that a prepared transaction has received
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"old", transactional=True))
    name = PrivateFormatName(core.identifier, queue.private_queue_number)
    descriptor = open_queue(core, name, AccessType.RECEIVE)
    transaction = create_transaction(core)
    dequeue_message(core, descriptor, timeout=0, transaction=transaction)
    coordinator.enlist(core, transaction)
    coordinator.prepare(core, transaction.identifier)
    commit(core)
    # when the queue is purged, the power fails, and the coordinator decides to abort
    purge_queue(core, queue)
    commit(core)
    core = restart(core)
    coordinator.abort_prepared(core, transaction.identifier)
    # then the message is gone, as it would have been without the crash
    assert len(same(core, queue).positions) == 0


def prepared_receive() -> tuple[QueueManagerCore, Queue, UUID]:
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"in doubt", transactional=True))
    name = PrivateFormatName(core.identifier, queue.private_queue_number)
    transaction = create_transaction(core)
    descriptor = open_queue(core, name, AccessType.RECEIVE)
    dequeue_message(core, descriptor, timeout=0, transaction=transaction)
    coordinator.enlist(core, transaction)
    coordinator.prepare(core, transaction.identifier)
    commit(core)
    return core, queue, transaction.identifier


def start_again(core: QueueManagerCore, outcome: ReenlistmentMessage) -> QueueManagerCore:
    again = QueueManagerCore(core.identifier, core.store, core.clock, core.random, core.settings)
    initialize(again, outcome_of=lambda _: outcome)
    return again


@pytest.mark.parametrize(
    ("outcome", "messages"),
    [(ReenlistmentMessage.REENLIST_COMMITTED, 0), (ReenlistmentMessage.REENLIST_ABORTED, 1)],
)
def test_the_coordinator_decides_at_the_start_what_was_in_doubt(
    outcome: ReenlistmentMessage, messages: int
) -> None:
    core, queue, _ = prepared_receive()
    again = start_again(core, outcome)
    assert again.state is ManagerState.READY
    assert len(same(again, queue).positions.available) == messages
    assert not coordinator.in_doubt(again)


@pytest.mark.requirement("DM-3.1.4.11-02")
def test_a_start_fails_when_nobody_knows_how_a_transaction_ended() -> None:
    core, _, identifier = prepared_receive()
    again = QueueManagerCore(core.identifier, core.store, core.clock, core.random, core.settings)
    with pytest.raises(TransactionError, match="nobody knows yet"):
        initialize(again, outcome_of=lambda _: ReenlistmentMessage.REENLIST_TIMEOUT)
    assert again.state is ManagerState.STOPPED
    # and the transaction stays as it is, for the next start
    last = restart(core)
    assert [found.identifier for found in coordinator.in_doubt(last)] == [identifier]
