"""Transactional messages that were sent when there was no transport (QB-A38)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import falconmq
from falconmq import Message
from falconmq.manager import lifecycle
from falconmq.manager.coordinator import enlist, prepare
from falconmq.manager.opening import open_queue
from falconmq.manager.states import AccessType
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import commit_transaction, create_transaction
from falconmq.names import parse_format_name
from falconmq.store.data_directory import open_data_directory
from tests.transport.estate import Estate, Node, bodies, direct


def without_transport(node: Node, event: Any, *args: Any) -> Any:
    """What an embedded manager does with the same data: no transport is there."""
    node.core.outgoing_agent = None
    for subscribers in (node.core.available_subscribers, node.core.deleted_subscribers):
        subscribers.clear()
    result = event(*args)
    batch, positions, _ = node.core.take_batch()
    node.store.commit([batch])
    lifecycle.settle(node.core, positions)
    return result


def given_two() -> tuple[Estate, Node, Node, str]:
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    return estate, here, there, direct(there, "orders")


def test_messages_of_an_embedded_manager_are_sent_in_order_once_there_is_a_transport() -> None:
    # given messages that were sent with a transport, and more without one
    estate, here, there, name = given_two()
    orders = there.queue("orders", transactional=True)
    estate.refusing.add(there.address)
    here.send_transaction(name, b"1", b"2")
    without_transport(here, here.send_transaction_now, name, b"3")
    without_transport(here, here.send_transaction_now, name, b"4", b"5")
    # when the service starts with these data
    here.restart()
    here.send_transaction(name, b"6")
    estate.refusing.clear()
    estate.advance(60.0)
    # then all of it is one stream
    assert bodies(orders) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert not len(here.outgoing(name).positions)
    (incoming,) = orders.incoming_transfers
    assert incoming.reject_count == 0


def test_the_order_is_that_of_the_commits() -> None:
    # given two transactions without a transport; the one that began first commits last
    estate, here, there, name = given_two()
    orders = there.queue("orders", transactional=True)

    def interleave() -> None:
        queue = open_queue(here.core, parse_format_name(name), AccessType.SEND).queue
        assert queue is not None
        first, second = create_transaction(here.core), create_transaction(here.core)
        enqueue_message(here.core, queue, here.build(name, b"late", transactional=True), first)
        enqueue_message(here.core, queue, here.build(name, b"soon", transactional=True), second)
        commit_transaction(here.core, second.identifier)
        commit_transaction(here.core, first.identifier)

    without_transport(here, interleave)
    here.restart()
    estate.advance(60.0)
    assert bodies(orders) == [b"soon", b"late"]


def test_a_message_that_gets_a_new_place_at_the_start_still_expires() -> None:
    # given two transactions without a transport; the one that began first commits last
    estate, here, there, name = given_two()
    there.queue("orders", transactional=True)
    estate.refusing.add(there.address)

    def interleave() -> None:
        queue = open_queue(here.core, parse_format_name(name), AccessType.SEND).queue
        assert queue is not None
        first, second = create_transaction(here.core), create_transaction(here.core)
        late = here.build(name, b"late", transactional=True, time_to_be_received=30)
        enqueue_message(here.core, queue, late, first)
        enqueue_message(here.core, queue, here.build(name, b"soon", transactional=True), second)
        commit_transaction(here.core, second.identifier)
        commit_transaction(here.core, first.identifier)

    without_transport(here, interleave)
    # when the service starts with these data, and reaches nobody for longer than it may wait
    here.restart()
    estate.advance(20.0)
    assert len(here.outgoing(name).positions) == 2
    estate.advance(20.0)
    # then it is gone, from its new place
    assert len(here.outgoing(name).positions) == 1


def test_nothing_is_sent_before_its_number_is_durable() -> None:
    # given a message without a number, and a disk that takes its time
    estate, here, there, name = given_two()
    orders = there.queue("orders", transactional=True)
    without_transport(here, here.send_transaction_now, name, b"1")
    here.restart(holds_commits=True)
    estate.advance(10.0)
    assert bodies(orders) == []
    # when the power fails before the disk was ready, and again the service starts
    here.restart()
    estate.advance(10.0)
    assert bodies(orders) == [b"1"]


def test_a_transaction_that_was_in_doubt_at_the_start_is_numbered_when_it_is_decided() -> None:
    estate, here, there, name = given_two()
    orders = there.queue("orders", transactional=True)

    def leave_in_doubt() -> None:
        queue = open_queue(here.core, parse_format_name(name), AccessType.SEND).queue
        assert queue is not None
        transaction = create_transaction(here.core)
        enqueue_message(here.core, queue, here.build(name, b"1", transactional=True), transaction)
        enlist(here.core, transaction)
        prepare(here.core, transaction.identifier)

    here.run(leave_in_doubt)
    here.restart()
    here.send_transaction(name, b"0")
    (identifier,) = here.core.transactions
    here.run(commit_transaction, here.core, identifier)
    estate.advance(10.0)
    assert bodies(orders) == [b"0", b"1"]


def test_an_embedded_manager_leaves_word_that_its_messages_have_no_number(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        far = manager.queue(r"DIRECT=TCP:10.0.0.7\private$\orders")
        with manager.transaction() as transaction:
            far.send(Message("1"), transaction)
    store = open_data_directory(tmp_path)
    (record,) = [record for _, record in store.scan("messages")]
    store.close()
    assert record[1] & 0x04
