"""Two-phase commit: a queue and a database, or nothing (MQDMPR 3.1.4.6 to .11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from falconmq.errors import MqStatus, StoreError, TransactionError
from falconmq.manager.coordinator import (
    Answer,
    EnlistmentMessage,
    PrepareResult,
    ReenlistmentMessage,
    abort_prepared,
    commit_prepared,
    dtc_reenlistment,
    dtc_transaction_abort,
    dtc_transaction_commit,
    dtc_transaction_prepare,
    enlist,
    in_doubt,
    prepare,
    resolve_in_doubt,
)
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.lifecycle import initialize, restore, stop
from falconmq.manager.model import Transaction
from falconmq.manager.moving import move_message
from falconmq.manager.prepared import TABLE, store_transaction
from falconmq.manager.queues import delete_queue, open_subqueue, purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import OperationType, PositionState
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import create_transaction
from falconmq.store.interface import WriteBatch
from falconmq.store.memory_engine import MemoryStore, ProcessCrash
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
from tests.manager.readers import given_reader

COMMITTED = ReenlistmentMessage.REENLIST_COMMITTED
ABORTED = ReenlistmentMessage.REENLIST_ABORTED
TIMEOUT = ReenlistmentMessage.REENLIST_TIMEOUT
Found = tuple[list[bytes], list[bytes], list[bytes]]
UNDONE: Found = ([b"in", b"move"], [], [])
DONE: Found = ([], [b"out"], [b"move"])


class Work:
    """A transaction that receives, sends and moves; an outside coordinator decides about it."""

    def __init__(self) -> None:
        self.core = make_core()
        self.orders = given_queue(self.core, "orders", transactional=True)
        self.answers = given_queue(self.core, "answers", transactional=True)
        self.late = open_subqueue(self.core, self.orders, "late")
        for text in (b"in", b"move"):
            enqueue_message(self.core, self.orders, message(text, transactional=True))
        commit(self.core)
        self.transaction = enlist(self.core, create_transaction(self.core, UUID(int=77)))
        self.identifier = self.transaction.identifier
        reader = given_reader(self.core, self.orders)
        dequeue_message(self.core, reader, timeout=0, transaction=self.transaction)
        sent = message(b"out", transactional=True, wire_id=self.transaction.wire_id)
        enqueue_message(self.core, self.answers, sent, self.transaction)
        move_message(self.core, positions(self.orders)[1], self.late, self.transaction)
        commit(self.core)

    def restart(self) -> None:
        self.core = restart(self.core)
        self.orders, self.answers = same(self.core, self.orders), same(self.core, self.answers)
        self.late = same(self.core, self.late)

    @property
    def found(self) -> Found:
        return bodies(self.orders), bodies(self.answers), bodies(self.late)

    @property
    def all_positions(self) -> list[PositionState]:
        queues = (self.orders, self.answers, self.late)
        return [position.state for queue in queues for position in positions(queue)]


def transactions_in(store: MemoryStore) -> list[UUID]:
    return [UUID(bytes=key) for key, _ in store.scan(TABLE)]


@pytest.mark.requirement("DM-3.1.7.1.8-03")
def test_who_is_enlisted_is_decided_from_outside() -> None:
    core = make_core()
    transaction = create_transaction(core)
    assert enlist(core, transaction) is transaction
    assert transaction.single_phase is False
    with pytest.raises(TransactionError):
        enlist(core, Transaction(UUID(int=1)))


@pytest.mark.requirement(
    "DM-3.1.4.6-01", "DM-3.1.4.6-02", "DM-3.1.4.6-03", "DM-3.1.4.6-06", "DM-3.1.4.6-07"
)
def test_prepare_is_a_promise_that_is_written_down() -> None:
    # given work in a transaction
    work = Work()
    # when the coordinator asks to prepare
    assert EnlistmentMessage(0x1033).name == "PREPAREREQ"
    answer = dtc_transaction_prepare(work.core, work.identifier)
    # then the answer is yes, and goes out with the batch that holds the transaction
    assert answer == Answer(EnlistmentMessage.PREPAREREQDONE, PrepareResult.OK)
    assert (answer.message, answer.result) == (0x1036, 0)
    assert transactions_in(store_of(work.core)) == []
    commit(work.core)
    assert transactions_in(store_of(work.core)) == [work.identifier]
    # and nothing is done yet, and nothing is free
    assert work.transaction.is_prepared
    assert work.transaction.single_phase is False
    assert work.found == ([], [], [])
    assert work.all_positions == [PositionState.LOCKED] * 3


@pytest.mark.requirement("DM-3.1.4.7-01", "DM-3.1.4.7-02", "DM-3.1.4.7-03")
def test_commit_does_it_and_forgets_the_promise_in_one_batch() -> None:
    work = Work()
    dtc_transaction_prepare(work.core, work.identifier)
    commit(work.core)
    assert EnlistmentMessage(0x1035).name == "COMMITREQ"
    answer = dtc_transaction_commit(work.core, work.identifier)
    assert answer == Answer(EnlistmentMessage.COMMITREQDONE)
    assert answer.message == 0x1038
    assert work.found == DONE
    commit(work.core)
    assert transactions_in(store_of(work.core)) == []
    work.restart()
    assert work.found == DONE
    assert not work.core.transactions


@pytest.mark.requirement("DM-3.1.4.8-01", "DM-3.1.4.8-02", "DM-3.1.4.8-03")
@pytest.mark.parametrize("is_prepared", [True, False])
def test_abort_undoes_it_prepared_or_not(is_prepared: bool) -> None:
    work = Work()
    if is_prepared:
        dtc_transaction_prepare(work.core, work.identifier)
        commit(work.core)
    assert EnlistmentMessage(0x1034).name == "ABORTREQ"
    answer = dtc_transaction_abort(work.core, work.identifier)
    assert answer == Answer(EnlistmentMessage.ABORTREQDONE)
    assert answer.message == 0x1037
    assert work.found == UNDONE
    commit(work.core)
    assert transactions_in(store_of(work.core)) == []
    work.restart()
    assert work.found == UNDONE


@pytest.mark.requirement("DM-3.1.4.6-04", "DM-3.1.4.6-08")
def test_a_coordinator_with_one_resource_manager_lets_it_decide() -> None:
    work = Work()
    answer = dtc_transaction_prepare(work.core, work.identifier, single_phase=True)
    assert answer == Answer(EnlistmentMessage.PREPAREREQDONE, PrepareResult.SINGLEPHASE_COMMIT)
    assert answer.result == 3
    assert work.found == DONE
    commit(work.core)
    assert transactions_in(store_of(work.core)) == []
    work.restart()
    assert work.found == DONE


@pytest.mark.requirement("DM-3.1.4.6-05", "DM-3.1.4.6-09")
@pytest.mark.parametrize("single_phase", [True, False])
def test_who_does_not_know_the_transaction_votes_to_abort(single_phase: bool) -> None:
    core = make_core()
    answer = dtc_transaction_prepare(core, UUID(int=1), single_phase=single_phase)
    assert answer == Answer(EnlistmentMessage.PREPAREREQDONE, PrepareResult.ABORT)
    assert answer.result == 1


@pytest.mark.requirement("DM-3.1.1.13-01", "DM-3.1.1.13-02", "DM-3.1.1.13-03", "DM-3.1.1.13-04")
def test_a_prepared_transaction_comes_back_with_all_its_operations() -> None:
    # given a prepared transaction
    work = Work()
    lookup_ids = [operation.position.lookup_id for operation in work.transaction.operations]
    prepare(work.core, work.identifier)
    commit(work.core)
    used = work.core.used_bytes
    # when the power fails
    work.restart()
    # then it is in doubt, its operations and its locks are back, and nothing else is
    (transaction,) = in_doubt(work.core)
    assert transaction.identifier == work.identifier
    assert transaction.wire_id == work.transaction.wire_id
    assert transaction.is_prepared
    assert transaction.single_phase is False
    kinds = [operation.kind for operation in transaction.operations]
    assert kinds == [OperationType.DEQUEUE, OperationType.ENQUEUE, OperationType.MOVE]
    assert [operation.position.lookup_id for operation in transaction.operations] == lookup_ids
    assert [operation.target for operation in transaction.operations] == [None, None, work.late]
    assert transaction.operations[0].reason == MessageClass.ACK_RECEIVE
    assert {operation.position.transaction for operation in transaction.operations} == {transaction}
    assert work.found == ([], [], [])
    assert work.all_positions == [PositionState.LOCKED] * 3
    assert work.core.used_bytes == used
    header = only(work.answers).message.transaction
    assert header is not None
    assert header.flags & (FIRST_MESSAGE | LAST_MESSAGE) == FIRST_MESSAGE | LAST_MESSAGE


def test_an_orderly_stop_keeps_the_promise_too() -> None:
    work = Work()
    prepare(work.core, work.identifier)
    commit(work.core)
    stop(work.core)
    commit(work.core)
    initialize(work.core)
    work.restart()
    assert [t.identifier for t in in_doubt(work.core)] == [work.identifier]
    commit_prepared(work.core, work.identifier)
    assert work.found == DONE


def test_a_commit_that_fails_leaves_the_promise_standing() -> None:
    work = Work()
    prepare(work.core, work.identifier)
    commit(work.core)
    commit_prepared(work.core, work.identifier)
    store_of(work.core).fail_commit()
    with pytest.raises(StoreError):
        commit(work.core)
    restore(work.core)
    assert [t.identifier for t in in_doubt(work.core)] == [work.identifier]
    commit_prepared(work.core, work.identifier)
    commit(work.core)
    work.restart()
    assert work.found == DONE


@pytest.mark.requirement(
    "DM-3.1.4.9-01", "DM-3.1.4.9-02", "DM-3.1.4.10-01", "DM-3.1.4.10-02", "DM-3.1.3-48"
)
@pytest.mark.parametrize(
    ("outcome", "number", "expected"), [(COMMITTED, 0x1063, DONE), (ABORTED, 0x1062, UNDONE)]
)
def test_who_is_in_doubt_after_a_crash_is_told_how_it_ended(
    outcome: ReenlistmentMessage, number: int, expected: object
) -> None:
    assert outcome == number
    assert ReenlistmentMessage(0x1061).name == "REENLIST"
    work = Work()
    dtc_transaction_prepare(work.core, work.identifier)
    commit(work.core)
    work.restart()
    asked: list[UUID] = []

    def outcome_of(identifier: UUID) -> ReenlistmentMessage:
        asked.append(identifier)
        return outcome

    resolve_in_doubt(work.core, outcome_of)
    assert asked == [work.identifier]
    assert work.found == expected
    commit(work.core)
    work.restart()
    assert work.found == expected
    assert in_doubt(work.core) == []


@pytest.mark.requirement("DM-3.1.4.11-01")
def test_if_nobody_knows_the_transaction_stays_as_it_is() -> None:
    assert ReenlistmentMessage(0x1064) is TIMEOUT
    work = Work()
    dtc_transaction_prepare(work.core, work.identifier)
    commit(work.core)
    work.restart()
    with pytest.raises(TransactionError, match="nobody knows yet") as caught:
        dtc_reenlistment(work.core, work.identifier, TIMEOUT)
    assert caught.value.status is MqStatus.DTC_CONNECT
    assert work.found == ([], [], [])
    assert len(core_batch(work.core)) == 0
    work.restart()
    assert [t.identifier for t in in_doubt(work.core)] == [work.identifier]


def core_batch(core: QueueManagerCore) -> WriteBatch:
    return core.take_batch()[0]


def test_a_crash_before_the_promise_is_durable_aborts() -> None:
    work = Work()
    dtc_transaction_prepare(work.core, work.identifier)
    work.restart()
    assert in_doubt(work.core) == []
    assert work.found == UNDONE


def test_only_what_was_promised_can_be_committed_by_a_coordinator() -> None:
    work = Work()
    for event in (commit_prepared, abort_prepared):
        with pytest.raises(TransactionError, match="was not prepared") as caught:
            event(work.core, work.identifier)
        assert caught.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert work.all_positions == [PositionState.LOCKED] * 3


def test_internal_transactions_are_nobodys_doubt() -> None:
    core = make_core()
    create_transaction(core)
    assert in_doubt(core) == []


def test_wire_numbers_of_transactions_in_doubt_are_not_given_again() -> None:
    work = Work()
    prepare(work.core, work.identifier)
    commit(work.core)
    work.restart()
    work.core.last_wire_id = work.transaction.wire_id - 1
    assert create_transaction(work.core).wire_id == work.transaction.wire_id + 1


def test_a_message_in_doubt_expires_when_it_is_let_go() -> None:
    # given a message received in a prepared transaction, with time that runs out during the outage
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"a", transactional=True, ttbr=100))
    transaction = enlist(core, create_transaction(core))
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    sent = message(b"b", transactional=True, ttbr=100, wire_id=transaction.wire_id)
    enqueue_message(core, queue, sent, transaction)
    prepare(core, transaction.identifier)
    commit(core)
    core = restart(core)
    pass_time(core, 200)
    events = record_events(core)
    # when the coordinator aborts, then the one expires and the other was never there
    abort_prepared(core, transaction.identifier)
    assert events.reasons == [MessageClass.NACK_RECEIVE_TIMEOUT]
    assert len(same(core, queue).positions) == 0


def test_a_purge_before_the_promise_is_remembered() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"a", transactional=True))
    transaction = enlist(core, create_transaction(core))
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    purge_queue(core, queue)
    prepare(core, transaction.identifier)
    commit(core)
    core = restart(core)
    assert only(same(core, queue)).state is PositionState.PURGE_PENDING
    events = record_events(core)
    abort_prepared(core, transaction.identifier)
    assert events.reasons == [MessageClass.NACK_Q_PURGED]


def test_a_purge_after_the_promise_is_remembered_if_it_is_written() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"a", transactional=True))
    transaction = enlist(core, create_transaction(core))
    dequeue_message(core, given_reader(core, queue), timeout=0, transaction=transaction)
    prepare(core, transaction.identifier)
    commit(core)
    purge_queue(core, queue)
    store_transaction(core, transaction)
    commit(core)
    core = restart(core)
    assert only(same(core, queue)).state is PositionState.PURGE_PENDING


def test_queues_and_express_messages_that_are_gone_are_no_doubt() -> None:
    # given a prepared transaction over an express message and a queue that is deleted meanwhile
    core = make_core()
    express, gone = given_queue(core, "express"), given_queue(core, "gone")
    kept = given_queue(core, "kept")
    enqueue_message(core, express, message(b"e", recoverable=False))
    transaction = enlist(core, create_transaction(core))
    dequeue_message(core, given_reader(core, express), timeout=0, transaction=transaction)
    for queue in (gone, kept):
        enqueue_message(core, queue, message(b"m"), transaction)
    prepare(core, transaction.identifier)
    commit(core)
    delete_queue(core, gone)
    commit(core)
    # when it is committed after a restart, then the rest of it happens
    core = restart(core)
    commit_prepared(core, transaction.identifier)
    assert bodies(same(core, kept)) == [b"m"]
    commit(core)
    assert bodies(same(restart(core), kept)) == [b"m"]


@pytest.mark.parametrize("damage", [b"", b"\x09" + bytes(11), b"\1" + bytes(7) + b"\1\0\0\0"])
def test_a_damaged_promise_stops_the_start_and_is_named(damage: bytes) -> None:
    core = make_core()
    batch = WriteBatch()
    batch.put(TABLE, UUID(int=77).bytes, damage)
    store_of(core).commit([batch])
    with pytest.raises(StoreError, match="00000000-0000-0000-0000-00000000004d"):
        restart(core)


# A database and a queue together


class Shop:
    """Takes orders from a queue into a database and answers, all of it together or not at all.

    The database is the coordinator too: a row in `decisions` comes with the very commit that
    decides, and is looked up by whoever is in doubt.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(self.connect()) as database:
            database.executescript(
                "create table orders (body text); create table decisions (id text primary key);"
            )
        self.core = make_core()
        self.orders = given_queue(self.core, "orders", transactional=True)
        self.answers = given_queue(self.core, "answers", transactional=True)
        enqueue_message(self.core, self.orders, message(b"one chair", transactional=True))
        commit(self.core)

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None)

    def take_order(self, crash_at: int) -> None:
        """The whole business; the power fails at one of its moments."""
        moments: Iterator[int] = iter(range(100))

        def moment() -> None:
            if next(moments) == crash_at:
                raise ProcessCrash

        with closing(self.connect()) as database:
            transaction = enlist(self.core, create_transaction(self.core))
            identifier = transaction.identifier
            reader = given_reader(self.core, self.orders)
            dequeue_message(self.core, reader, timeout=0, transaction=transaction)
            answer = message(b"thanks", transactional=True, wire_id=transaction.wire_id)
            enqueue_message(self.core, self.answers, answer, transaction)
            moment()  # 0: nothing but memory
            database.execute("begin immediate")
            database.execute("insert into orders values ('one chair')")
            moment()  # 1: the database has begun
            prepare(self.core, identifier)
            moment()  # 2: prepared in memory
            commit(self.core)
            moment()  # 3: the promise is durable
            database.execute("insert into decisions values (?)", (str(identifier),))
            moment()  # 4: the decision is not yet
            database.execute("commit")
            moment()  # 5: decided
            commit_prepared(self.core, identifier)
            moment()  # 6: committed in memory
            commit(self.core)
            moment()  # 7: all is durable
            database.execute("delete from decisions where id = ?", (str(identifier),))
            moment()  # 8: and forgotten

    def come_back(self) -> None:
        self.core = restart(self.core)
        self.orders, self.answers = same(self.core, self.orders), same(self.core, self.answers)
        with closing(self.connect()) as database:

            def outcome_of(identifier: UUID) -> ReenlistmentMessage:
                row = database.execute("select 1 from decisions where id = ?", (str(identifier),))
                return COMMITTED if row.fetchone() else ABORTED

            resolve_in_doubt(self.core, outcome_of)
            commit(self.core)
            database.execute("delete from decisions")

    @property
    def found(self) -> tuple[list[bytes], list[bytes], list[str]]:
        with closing(self.connect()) as database:
            rows = [row[0] for row in database.execute("select body from orders")]
        return bodies(self.orders), bodies(self.answers), rows


@pytest.mark.parametrize("crash_at", range(10))
def test_a_database_and_a_queue_commit_together_wherever_the_power_fails(
    tmp_path: Path, crash_at: int
) -> None:
    # given a shop with one order in its queue
    shop = Shop(tmp_path / "shop.db")
    # when the power fails at any moment of taking it (9: it does not)
    try:
        shop.take_order(crash_at)
    except ProcessCrash:
        shop.come_back()
    # then the order is either still in the queue, or in the database and answered
    taken: object = ([], [b"thanks"], ["one chair"])
    waits: object = ([b"one chair"], [], [])
    assert shop.found == (taken if crash_at >= 5 else waits)
    # and a second failure changes nothing
    shop.come_back()
    assert shop.found == (taken if crash_at >= 5 else waits)
    assert in_doubt(shop.core) == []
    assert not shop.orders.positions.held
    assert not shop.answers.positions.held


def test_the_time_of_a_message_in_doubt_runs_on_after_a_restart() -> None:
    # given a message that may wait for 30 seconds, sent in a transaction that is prepared
    core = make_core()
    orders = given_queue(core, transactional=True)
    transaction = enlist(core, create_transaction(core, UUID(int=77)))
    sent = message(transactional=True, wire_id=transaction.wire_id, ttbr=30)
    enqueue_message(core, orders, sent, transaction)
    dtc_transaction_prepare(core, transaction.identifier)
    commit(core)
    # when it is committed after a restart
    core = restart(core)
    orders = same(core, orders)
    dtc_transaction_commit(core, transaction.identifier)
    assert len(positions(orders)) == 1
    # then it expires all the same
    pass_time(core, 31)
    assert positions(orders) == []
