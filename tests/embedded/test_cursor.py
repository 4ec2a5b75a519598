"""Cursors of the embedded API."""

from __future__ import annotations

import pytest

import falconmq
from falconmq import Message, MqStatus, QueueManager, ReadError
from tests.embedded.helpers import ORDERS, Timed


def given_queue(manager: QueueManager, *texts: str) -> falconmq.Queue:
    orders = manager.create_queue(ORDERS)
    orders.send_many(Message(text, label=text) for text in texts)
    return orders


def test_a_cursor_walks_and_takes_what_it_looks_for(manager: QueueManager) -> None:
    # given three messages
    orders = given_queue(manager, "a", "urgent", "c")
    # when a cursor looks for one and takes it
    with orders.cursor() as cursor:
        message = cursor.peek(timeout=0)
        while message.label != "urgent":
            message = cursor.peek_next(timeout=0)
        assert cursor.receive(timeout=0).label == "urgent"
        # then its next look shows what followed
        assert cursor.peek(timeout=0).label == "c"
    assert [message.label for message in orders] == ["a", "c"]


def test_the_statuses_of_a_cursor_are_read_errors_with_hints(manager: QueueManager) -> None:
    orders = given_queue(manager, "a")
    with orders.cursor() as cursor:
        with pytest.raises(ReadError) as raised:
            cursor.peek_next(timeout=0)
        assert raised.value.status is MqStatus.ILLEGAL_CURSOR_ACTION
        assert "peek" in raised.value.hint
        cursor.peek(timeout=0)
        orders.receive(timeout=0)
        with pytest.raises(ReadError) as raised:
            cursor.receive(timeout=0)
        assert raised.value.status is MqStatus.MESSAGE_ALREADY_RECEIVED
        assert "peek_next" in raised.value.hint
        with pytest.raises(ReadError) as raised:
            cursor.peek_next(timeout=0)
        assert raised.value.status is MqStatus.IO_TIMEOUT


def test_iteration_goes_on_when_messages_disappear_around_it() -> None:
    orders = given_queue(Timed().manager, "a", "b", "c", "d")
    seen = []
    for message in orders:
        seen.append(message.text)
        if message.text == "b":
            orders.purge()
            orders.send(Message("e"))
    assert seen == ["a", "b", "e"]


def test_an_iteration_that_is_left_closes_its_cursor() -> None:
    timed = Timed()
    orders = given_queue(timed.manager, "a", "b")
    for _ in orders:
        assert len(timed.engine.core.cursors) == 1
        break
    assert len(timed.engine.core.cursors) == 0


def test_a_cursor_receives_in_a_transaction(manager: QueueManager) -> None:
    ledger = manager.create_queue(ORDERS, transactional=True)
    with manager.transaction() as transaction:
        ledger.send_many([Message("a"), Message("b")], transaction)
    with manager.transaction() as transaction, ledger.cursor() as cursor:
        cursor.peek(timeout=0)
        cursor.peek_next(timeout=0)
        assert cursor.receive(transaction).text == "b"
        transaction.abort()
    assert [message.text for message in ledger] == ["a", "b"]


def test_a_cursor_whose_message_was_taken_iterates_over_the_rest(manager: QueueManager) -> None:
    orders = given_queue(manager, "a", "b", "c")
    with orders.cursor() as cursor:
        cursor.peek(timeout=0)
        orders.receive(timeout=0)
        assert [message.text for message in cursor] == ["b", "c"]
