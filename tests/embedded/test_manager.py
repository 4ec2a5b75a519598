"""The queue manager of the embedded API: its queues, its data, its end."""

from __future__ import annotations

from pathlib import Path

import pytest

import falconmq
from falconmq import Durability, Message, MqStatus, QueueError, QueueManager, StoreError
from tests.embedded.helpers import ORDERS


def test_recoverable_messages_survive_and_express_ones_do_not(tmp_path: Path) -> None:
    # given a queue with a message of either kind
    with falconmq.open(tmp_path) as manager:
        identifier = manager.id
        orders = manager.create_queue(ORDERS, label="kept")
        orders.send(Message("recoverable"))
        orders.send(Message("express", recoverable=False))
    # when the directory is opened again
    with falconmq.open(tmp_path) as manager:
        orders = manager.queue(ORDERS)
        # then the queue is there, and what was to be kept
        assert [message.text for message in orders] == ["recoverable"]
        assert (manager.id, orders.label) == (identifier, "kept")


def test_what_was_received_does_not_return(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        orders = manager.create_queue(ORDERS)
        orders.send_many([Message("a"), Message("b")])
        orders.receive(timeout=0)
    with falconmq.open(tmp_path) as manager:
        assert [message.text for message in manager.queue(ORDERS)] == ["b"]


@pytest.mark.requirement("MQ-2.2.18.1.3-02", "MQ-2.2.18.1.3-04", "MQ-2.2.19.2-13")
def test_message_ids_and_lookup_ids_are_never_given_twice(tmp_path: Path) -> None:
    ids, lookup_ids = [], []
    for _ in range(3):
        with falconmq.open(tmp_path) as manager:
            if not manager.queues():
                manager.create_queue(ORDERS)
            orders = manager.queue(ORDERS)
            ids += [orders.send(Message("x")) for _ in range(2)]
            lookup_ids += [orders.receive(timeout=0).lookup_id or 0 for _ in range(2)]
    # every message of this queue manager has its identifier and a number of its own
    assert {id.queue_manager for id in ids} == {manager.id}
    ordinals = [id.ordinal for id in ids]
    assert ordinals == sorted(set(ordinals))
    assert lookup_ids == sorted(set(lookup_ids))


def test_queues_are_listed_by_name_without_those_of_the_manager(manager: QueueManager) -> None:
    manager.create_queue(r".\private$\b")
    manager.create_queue(r".\private$\a").subqueue("x")
    manager.queue(r"DIRECT=OS:elsewhere\private$\c").send(Message("x"))
    assert [queue.name for queue in manager.queues()] == [r".\private$\a", r".\private$\b"]


def test_a_queue_can_be_created_once(manager: QueueManager) -> None:
    manager.create_queue(ORDERS)
    with pytest.raises(QueueError) as raised:
        manager.create_queue(ORDERS.upper())
    assert raised.value.status is MqStatus.QUEUE_EXISTS


def test_a_queue_is_found_by_any_of_its_names(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("x"))
    names = [orders.format_name, r"DIRECT=OS:.\private$\orders", r"SALES01\PRIVATE$\Orders"]
    for name in names:
        found = manager.queue(name)
        assert found.is_local
        assert found.peek(timeout=0).text == "x"


def test_a_misspelt_queue_is_refused_with_the_nearest_name(manager: QueueManager) -> None:
    manager.create_queue(ORDERS)
    with pytest.raises(QueueError, match=r"no queue \.\\private\$\\ordres on SALES01") as raised:
        manager.queue(r".\private$\ordres")
    assert raised.value.status is MqStatus.QUEUE_NOT_FOUND
    assert r"did you mean .\private$\orders?" in raised.value.hint
    assert r"manager.create_queue(r'.\private$\ordres')" in raised.value.hint


def test_a_path_on_another_computer_is_refused_with_the_name_to_use(manager: QueueManager) -> None:
    with pytest.raises(QueueError) as raised:
        manager.queue(r"sales02\private$\orders")
    assert r"DIRECT=OS:sales02\private$\orders" in raised.value.hint


def test_a_second_owner_of_the_directory_is_refused(tmp_path: Path) -> None:
    with falconmq.open(tmp_path), pytest.raises(StoreError, match="in use") as raised:
        falconmq.open(tmp_path)
    assert raised.value.hint
    falconmq.open(tmp_path).close()


def test_use_after_close_is_a_clear_error(tmp_path: Path) -> None:
    manager = falconmq.open(tmp_path)
    orders = manager.create_queue(ORDERS)
    cursor = orders.cursor()
    transaction = manager.transaction()
    manager.close()
    for use in (
        lambda: orders.send(Message("x")),
        lambda: orders.receive(timeout=0),
        lambda: cursor.peek(timeout=0),
        manager.queues,
        manager.status,
        manager.transaction,
        lambda: list(orders),
    ):
        with pytest.raises(QueueError, match="was closed") as raised:
            use()
        assert raised.value.status is MqStatus.SERVICE_NOT_AVAILABLE
    manager.close()  # twice is fine
    orders.close()
    cursor.close()
    assert manager.is_closed
    assert "closed" in repr(manager)
    assert not transaction.is_prepared


def test_status_shows_durability_space_and_queues(tmp_path: Path) -> None:
    with falconmq.open(tmp_path / "a", durability=Durability.RELAXED) as manager:
        assert manager.status().durability is Durability.RELAXED
    with falconmq.open(tmp_path / "b", quota_kilobytes=5000) as manager:
        orders = manager.create_queue(ORDERS, journaling=True)
        orders.send_many(Message(bytes(1000)) for _ in range(50))
        for _ in range(20):
            orders.receive(timeout=0)
        transaction = manager.transaction()
        status = manager.status()
        assert transaction.is_active
        assert status.durability is Durability.SYNC
        assert status.path == str(tmp_path / "b")
        assert status.file_bytes >= status.used_bytes > 50 * 1000
        assert status.reusable_bytes > 0
        assert status.quota_kilobytes == 5000
        assert status.messages == 50  # 30 and 20 copies
        assert status.transactions == 1
        line = status.queues[0]
        assert (line.name, line.messages, line.journal_messages) == (ORDERS, 30, 20)
        assert line.size_bytes == orders.size_bytes > 30 * 1000


def test_the_dead_letter_queues_and_the_journal_can_be_read(manager: QueueManager) -> None:
    for queue in (manager.dead_letter, manager.transactional_dead_letter, manager.journal):
        assert list(queue) == []
        assert queue.is_local
        with pytest.raises(falconmq.FalconMQError):
            queue.send(Message("x"))
