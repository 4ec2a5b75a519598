"""Queues of the embedded API: send, receive, peek, lookup ids, properties, errors."""

from __future__ import annotations

import pytest

import falconmq
from falconmq import (
    Delivery,
    Journal,
    Message,
    MqStatus,
    QueueError,
    QueueManager,
    ReadError,
    ResourceError,
    SeekAction,
    TransactionError,
)
from falconmq.errors import FalconMQError, MessageError
from tests.embedded.helpers import ORDERS, Timed


def texts(queue: falconmq.Queue) -> list[str]:
    return [message.text for message in queue]


def test_a_message_comes_back_with_what_the_queue_manager_filled_in(manager: QueueManager) -> None:
    # given a queue
    orders = manager.create_queue(ORDERS)
    # when a message goes through it
    sent = Message("hello", label="greeting", priority=5, application_tag=7, extension=b"more")
    id = orders.send(sent)
    received = orders.receive(timeout=0)
    # then it has what was sent, and what queue managers add
    assert (received.text, received.label, received.priority) == ("hello", "greeting", 5)
    assert (received.application_tag, received.extension) == (7, b"more")
    assert received.id == id == sent.id
    assert received.source_queue_manager == manager.id
    assert received.sent_time == sent.sent_time
    assert received.arrived_at is not None
    assert received.lookup_id is not None
    assert received.destination == sent.destination
    assert str(received.destination) == orders.format_name


def test_messages_are_recoverable_unless_the_sender_says_otherwise(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    for chosen in (None, True, False):
        orders.send(Message("x", recoverable=chosen))
    deliveries = [message.delivery for message in orders]
    assert deliveries == [Delivery.RECOVERABLE, Delivery.RECOVERABLE, Delivery.EXPRESS]


def test_a_sender_cannot_ask_for_both(manager: QueueManager) -> None:
    with pytest.raises(MessageError, match="recoverable"):
        Message("x", recoverable=True, delivery=Delivery.EXPRESS)


def test_higher_priority_comes_first_and_equals_in_order(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    for text, priority in (("a", 3), ("b", 7), ("c", 3), ("d", 0)):
        orders.send(Message(text, priority=priority))
    assert texts(orders) == ["b", "a", "c", "d"]
    assert [orders.receive(timeout=0).text for _ in range(4)] == ["b", "a", "c", "d"]


def test_iterating_and_peeking_remove_nothing(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b")])
    assert texts(orders) == texts(orders) == ["a", "b"]
    assert orders.peek(timeout=0).text == "a"
    assert orders.count == 2


def test_receiving_from_an_empty_queue_without_waiting_is_a_read_error() -> None:
    # given an empty queue
    timed = Timed()
    orders = timed.manager.create_queue(ORDERS)
    # when someone receives and does not wait
    with pytest.raises(ReadError, match=r"no message came to \.\\private\$\\orders") as raised:
        orders.receive(timeout=0)
    # then the error says so, and what to do
    assert raised.value.status is MqStatus.IO_TIMEOUT
    assert "timeout=5" in raised.value.hint


def test_messages_by_lookup_id(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b"), Message("c")])
    ids = [message.lookup_id or 0 for message in orders]
    assert orders.peek_by_lookup_id(ids[1]).text == "b"
    assert orders.peek_by_lookup_id(ids[1], seek=SeekAction.NEXT).text == "c"
    assert orders.peek_by_lookup_id(ids[1], seek=SeekAction.PREVIOUS).text == "a"
    assert orders.peek_by_lookup_id(0, seek=SeekAction.LAST).text == "c"
    assert orders.receive_by_lookup_id(ids[1]).text == "b"
    assert texts(orders) == ["a", "c"]
    with pytest.raises(ReadError) as raised:
        orders.receive_by_lookup_id(ids[1])
    assert raised.value.status is MqStatus.MESSAGE_NOT_FOUND
    assert raised.value.hint


def test_moving_to_a_subqueue_and_back_keeps_the_place(manager: QueueManager) -> None:
    # given three messages
    orders = manager.create_queue(ORDERS)
    orders.send_many([Message("a"), Message("b"), Message("c")])
    late = orders.subqueue("late")
    # when the middle one goes to a subqueue
    middle = list(orders)[1]
    orders.move(middle, late)
    # then it is there alone
    assert (texts(orders), texts(late)) == (["a", "c"], ["b"])
    assert late.peek(timeout=0).move_count == 1
    assert late.name == ORDERS + ";late"
    # and back where it was when it returns
    assert middle.lookup_id is not None
    late.move(middle.lookup_id, orders)
    assert texts(orders) == ["a", "b", "c"]


def test_moving_what_is_not_there_is_refused(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    with pytest.raises(ReadError) as raised:
        orders.move(5, orders.subqueue("late"))
    assert raised.value.status is MqStatus.MESSAGE_NOT_FOUND
    with pytest.raises(MessageError, match="lookup_id"):
        orders.move(Message("never sent"), orders)


def test_moving_between_kinds_of_queues_is_refused(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    ledger = manager.create_queue(r".\private$\ledger", transactional=True)
    orders.send(Message("x"))
    with pytest.raises(TransactionError):
        orders.move(orders.peek(timeout=0), ledger)
    assert orders.count == 1


def test_purge_says_how_many_it_deleted(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send_many(Message(str(number)) for number in range(5))
    assert orders.purge() == 5
    assert (orders.count, orders.size_bytes) == (0, 0)


def test_received_messages_leave_a_copy_if_the_queue_keeps_a_journal(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS, journaling=True)
    orders.send(Message("a"))
    orders.receive(timeout=0)
    assert texts(orders.journal) == ["a"]
    assert orders.journal.receive(timeout=0).text == "a"
    assert orders.journal.count == 0


def test_properties_can_be_changed_and_are_kept(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS, label="first", quota_kilobytes=10)
    assert (orders.label, orders.quota_kilobytes, orders.journaling) == ("first", 10, False)
    orders.update(label="second", quota_kilobytes=20, journaling=True)
    again = manager.queue(ORDERS)
    assert (again.label, again.quota_kilobytes, again.journaling) == ("second", 20, True)
    assert not again.is_transactional
    assert again.modified_at >= again.created_at


def test_a_full_queue_refuses_with_its_limit_and_takes_messages_again(
    manager: QueueManager,
) -> None:
    # given a queue that holds 2 KiB
    orders = manager.create_queue(ORDERS, quota_kilobytes=2)
    orders.send(Message(bytes(1500)))
    # when a message does not fit
    with pytest.raises(ResourceError, match="quota is 2 KiB") as raised:
        orders.send(Message(bytes(1500)))
    # then the error names limit and remedy, and nothing was sent
    assert raised.value.status is MqStatus.INSUFFICIENT_RESOURCES
    assert "quota_kilobytes" in raised.value.hint
    assert orders.count == 1
    # and there is room when messages were received
    orders.receive(timeout=0)
    orders.send(Message(bytes(1500)))


def test_a_full_manager_refuses_with_its_limit() -> None:
    timed = Timed(quota_kilobytes=1)
    orders = timed.manager.create_queue(ORDERS)
    with pytest.raises(ResourceError, match="the queue manager is full: 0 of its 1 KiB") as raised:
        orders.send(Message(bytes(2000)))
    assert raised.value.status is MqStatus.INSUFFICIENT_RESOURCES


def test_sending_outside_a_transaction_to_a_transactional_queue_is_refused_with_the_remedy(
    manager: QueueManager,
) -> None:
    orders = manager.create_queue(ORDERS, transactional=True)
    with pytest.raises(TransactionError, match="transactional") as raised:
        orders.send(Message("x"))
    assert raised.value.status is MqStatus.TRANSACTION_USAGE
    assert "with manager.transaction() as transaction" in raised.value.hint
    assert orders.count == 0


def test_a_message_that_must_not_be_sent_is_refused_and_not_sent(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    message = Message("x")
    message.priority = 9
    with pytest.raises(MessageError, match="priority"):
        orders.send(message)
    assert orders.count == 0


def test_a_message_expires_and_leaves_a_dead_letter() -> None:
    # given a message that may wait 5 seconds
    timed = Timed()
    orders = timed.manager.create_queue(ORDERS)
    orders.send(Message("late", time_to_be_received=5, journal=Journal.DEAD_LETTER))
    timed.pass_time(4)
    assert texts(orders) == ["late"]
    # when its time is over
    timed.pass_time(2)
    # then it is a dead letter
    assert texts(orders) == []
    assert texts(timed.manager.dead_letter) == ["late"]


def test_a_message_to_several_queues_reaches_each(manager: QueueManager) -> None:
    # given two queues here and one elsewhere
    first = manager.create_queue(r".\private$\first")
    second = manager.create_queue(r".\private$\second")
    names = [first.format_name, second.format_name, r"DIRECT=OS:sales02\private$\third"]
    # when one message goes to all of them
    everywhere = manager.queue(",".join(names))
    everywhere.send(Message("news"))
    # then each has its own copy that names all
    for queue in (first, second):
        message = queue.receive(timeout=0)
        assert message.text == "news"
        assert str(message.destination) == queue.format_name
        assert len(message.destinations) == 3
    assert manager.queue(names[2]).count == 1
    # and a message to one queue alone says nothing of several
    again = Message("news")
    everywhere.send(again)
    first.purge()
    first.send(again)
    assert first.receive(timeout=0).destinations == ()


def test_a_queue_elsewhere_can_be_sent_to_but_not_read(manager: QueueManager) -> None:
    remote = manager.queue(r"DIRECT=OS:sales02\private$\orders")
    remote.send(Message("over there"))
    assert not remote.is_local
    assert remote.count == 1
    for use in (remote.purge, lambda: remote.receive(timeout=0), lambda: remote.label):
        with pytest.raises(FalconMQError):
            use()


def test_an_exclusive_reader_keeps_others_out_until_it_closes(manager: QueueManager) -> None:
    manager.create_queue(ORDERS).send(Message("x"))
    with manager.queue(ORDERS, exclusive=True) as mine:
        assert mine.receive(timeout=0).text == "x"
        with pytest.raises(QueueError) as raised:
            manager.queue(ORDERS).receive(timeout=0)
        assert raised.value.status is MqStatus.SHARING_VIOLATION
    manager.queue(ORDERS).send(Message("y"))
    assert manager.queue(ORDERS).receive(timeout=0).text == "y"
    with pytest.raises(QueueError, match="was closed here"):
        mine.receive(timeout=0)


def test_a_deleted_queue_says_so_to_those_who_hold_it(manager: QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    orders.send(Message("x"))
    orders.peek(timeout=0)
    manager.delete_queue(ORDERS)
    for use in (
        lambda: orders.send(Message("y")),
        lambda: orders.receive(timeout=0),
        lambda: orders.peek(timeout=0),
        lambda: orders.count,
        orders.purge,
    ):
        with pytest.raises(QueueError, match=r"deleted|no queue"):
            use()


def test_a_queue_object_that_nobody_holds_keeps_nothing_open() -> None:
    # given queues that were opened in passing, one of them still walked along
    timed = Timed()
    timed.manager.create_queue(ORDERS).send_many([Message("a"), Message("b")])
    cursor = timed.manager.queue(ORDERS).cursor()
    for _ in range(10):
        timed.manager.queue(ORDERS).peek(timeout=0)
        timed.manager.queue(ORDERS).receive(timeout=0)
        timed.manager.queue(ORDERS).send(Message("c"))
    # when the next call comes
    assert cursor.peek(timeout=0).text == "c"
    # then only the cursor's queue is open
    assert len(timed.engine.core.descriptors) == 1
    cursor.close()
    del cursor
    timed.manager.queue(ORDERS, exclusive=True).receive(timeout=0)
    timed.manager.status()
    assert len(timed.engine.core.descriptors) == 0
