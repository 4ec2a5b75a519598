"""Transactions of the embedded API: together or not at all, also with a database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import falconmq
from falconmq import Message, MqStatus, QueueManager, ReadError, TransactionError
from tests.embedded.helpers import ORDERS, Timed

INVOICES = r".\private$\invoices"


def texts(queue: falconmq.Queue) -> list[str]:
    return [message.text for message in queue]


@pytest.fixture
def orders(manager: QueueManager) -> falconmq.Queue:
    return manager.create_queue(ORDERS, transactional=True)


@pytest.mark.requirement("MQ-2.2.20.5-14")
def test_messages_are_there_when_the_block_ends_and_not_before(
    manager: QueueManager, orders: falconmq.Queue
) -> None:
    with manager.transaction() as transaction:
        orders.send(Message("a"), transaction)
        orders.send(Message("b"), transaction)
        assert texts(orders) == []
    assert texts(orders) == ["a", "b"]
    first, last = list(orders)
    assert first.transaction is not None
    assert last.transaction is not None
    assert first.transaction_id == last.transaction_id
    assert (first.transaction.is_first, first.transaction.is_last) == (True, False)
    assert (last.transaction.is_first, last.transaction.is_last) == (False, True)
    assert last.transaction.previous_sequence_number == first.transaction.sequence_number


def test_an_exception_takes_back_what_was_sent_and_received(
    manager: QueueManager, orders: falconmq.Queue
) -> None:
    # given a message
    with manager.transaction() as transaction:
        orders.send(Message("a"), transaction)

    # when a block that received it and sent another fails
    def fail() -> None:
        with manager.transaction() as transaction:
            assert orders.receive(transaction, timeout=0).text == "a"
            orders.send(Message("b"), transaction)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    # then the first is back at its place, and remembers
    assert texts(orders) == ["a"]
    assert orders.peek(timeout=0).abort_count == 1


def test_a_committed_receive_is_for_good(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        orders = manager.create_queue(ORDERS, transactional=True)
        with manager.transaction() as transaction:
            orders.send_many([Message("a"), Message("b")], transaction)
        with manager.transaction() as transaction:
            orders.receive(transaction, timeout=5)
    with falconmq.open(tmp_path) as manager:
        assert texts(manager.queue(ORDERS)) == ["b"]


def test_what_was_not_committed_is_not_there_after_a_restart(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        orders = manager.create_queue(ORDERS, transactional=True)
        with manager.transaction() as transaction:
            orders.send(Message("kept"), transaction)
        open_one = manager.transaction()
        orders.send(Message("lost"), open_one)
        orders.receive(open_one, timeout=0)
    with falconmq.open(tmp_path) as manager:
        assert texts(manager.queue(ORDERS)) == ["kept"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_can_be_used_once(
    manager: QueueManager, orders: falconmq.Queue, end: str
) -> None:
    transaction = manager.transaction()
    getattr(transaction, end)()
    assert not transaction.is_active
    for use in (
        transaction.commit,
        transaction.abort,
        transaction.prepare,
        lambda: orders.send(Message("x"), transaction),
        lambda: orders.receive(transaction, timeout=0),
    ):
        with pytest.raises(TransactionError, match=f"was {end}") as raised:
            use()
        assert raised.value.status is MqStatus.TRANSACTION_SEQUENCE
        assert "manager.transaction()" in raised.value.hint


def test_a_block_that_ended_its_transaction_itself_is_left_alone(
    manager: QueueManager, orders: falconmq.Queue
) -> None:
    with manager.transaction() as transaction:
        orders.send(Message("a"), transaction)
        transaction.abort()
    assert texts(orders) == []


def test_a_transaction_of_another_manager_is_refused(
    manager: QueueManager, orders: falconmq.Queue
) -> None:
    with pytest.raises(TransactionError, match="another queue manager"):
        orders.send(Message("x"), Timed().manager.transaction())


def test_a_queue_that_is_not_transactional_takes_part_in_none(manager: QueueManager) -> None:
    plain = manager.create_queue(INVOICES)
    plain.send(Message("x"))
    for use in (
        lambda t: plain.send(Message("y"), t),
        lambda t: plain.receive(t, timeout=0),
        lambda t: plain.move(plain.peek(timeout=0), plain.subqueue("z"), t),
    ):
        with manager.transaction() as transaction, pytest.raises(TransactionError) as raised:
            use(transaction)
        assert raised.value.status is MqStatus.TRANSACTION_USAGE


def test_a_locked_message_is_passed_by(manager: QueueManager, orders: falconmq.Queue) -> None:
    with manager.transaction() as transaction:
        orders.send_many([Message("a"), Message("b")], transaction)
    with manager.transaction() as mine, manager.transaction() as yours:
        first = orders.receive(mine, timeout=0)
        assert first.text == "a"
        assert orders.receive(yours, timeout=0).text == "b"
        assert first.lookup_id is not None
        with pytest.raises(ReadError, match="a transaction holds"):
            orders.move(first, orders.subqueue("x"))


def test_a_move_is_part_of_the_transaction(manager: QueueManager, orders: falconmq.Queue) -> None:
    with manager.transaction() as transaction:
        orders.send(Message("a"), transaction)
    poison = orders.subqueue("poison")
    with manager.transaction() as transaction:
        orders.move(orders.peek(timeout=0), poison, transaction)
        assert texts(poison) == []
    assert (texts(orders), texts(poison)) == ([], ["a"])


class Shop:
    """A queue of orders and a database of the same: each order is in exactly one of them."""

    def __init__(self, path: Path) -> None:
        self.manager = falconmq.open(path / "data")
        self.database = sqlite3.connect(path / "orders.db")
        self.database.execute("create table if not exists orders (body text, id text)")
        if not self.manager.queues():
            self.manager.create_queue(ORDERS, transactional=True)
        self.orders = self.manager.queue(ORDERS)
        for doubt in self.manager.in_doubt():  # the database decides
            query = "select 1 from orders where id = ?"
            is_there = self.database.execute(query, (str(doubt.id),)).fetchone()
            doubt.commit() if is_there else doubt.abort()

    def move_one(self, *, stop_after: str = "") -> None:
        transaction = self.manager.transaction()
        message = self.orders.receive(transaction, timeout=0)
        row = (message.text, str(transaction.id))
        self.database.execute("insert into orders values (?, ?)", row)
        transaction.prepare()
        if stop_after == "prepare":
            return
        self.database.commit()
        if stop_after == "database":
            return
        transaction.commit()

    def close(self) -> None:
        self.database.rollback()
        self.database.close()
        self.manager.close()

    @property
    def rows(self) -> list[str]:
        return [row[0] for row in self.database.execute("select body from orders")]


@pytest.mark.parametrize(
    ("stop_after", "in_queue", "in_database"),
    [("", [], ["7"]), ("prepare", ["7"], []), ("database", [], ["7"])],
)
def test_a_database_and_a_queue_commit_together(
    tmp_path: Path, stop_after: str, in_queue: list[str], in_database: list[str]
) -> None:
    # given an order in a queue
    shop = Shop(tmp_path)
    with shop.manager.transaction() as transaction:
        shop.orders.send(Message("7"), transaction)
    # when it goes into the database, and the program ends somewhere on the way
    shop.move_one(stop_after=stop_after)
    shop.close()
    # then after a restart it is in one of the two, as the database decided
    shop = Shop(tmp_path)
    assert (texts(shop.orders), shop.rows) == (in_queue, in_database)
    assert shop.manager.in_doubt() == []
    shop.close()


def test_a_prepared_transaction_keeps_its_messages_locked_and_takes_no_more(
    manager: QueueManager, orders: falconmq.Queue
) -> None:
    with manager.transaction() as transaction:
        orders.send(Message("a"), transaction)
    with manager.transaction() as transaction:
        orders.receive(transaction, timeout=0)
        transaction.prepare()
    assert transaction.is_prepared
    assert [doubt.id for doubt in manager.in_doubt()] == [transaction.id]
    with pytest.raises(TransactionError):
        orders.send(Message("b"), transaction)
    with pytest.raises(ReadError):
        orders.receive(timeout=0)
    transaction.abort()
    assert texts(orders) == ["a"]
