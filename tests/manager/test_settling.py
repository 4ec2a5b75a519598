"""Memory and store between two commits and over a restart: nothing newer is forgotten."""

from __future__ import annotations

from falconmq.manager import coordinator
from falconmq.manager.cursors import open_cursor
from falconmq.manager.lifecycle import settle
from falconmq.manager.model import ReadResult
from falconmq.manager.queues import close_queue, delete_queue, open_queue, purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType
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
