"""One message to the queues of an open descriptor, one copy each (MQDMPR 3.1.7.1.27)."""

from __future__ import annotations

import pytest

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.distributing import address_copies, enqueue_message_to_open_queue
from falconmq.manager.model import OpenQueueDescriptor
from falconmq.manager.queues import delete_queue, open_queue
from falconmq.manager.quotas import begin_flow_control
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus
from falconmq.manager.transactions import create_transaction
from falconmq.message import Acknowledge, Message
from falconmq.names import MultipleElementFormatName, parse_format_name
from falconmq.serialization import from_user_message, to_user_message
from tests.manager.helpers import (
    IDENTIFIER,
    START_TIME,
    bodies,
    given_queue,
    make_core,
    message,
    only,
)

OK, QUEUE_QUOTA = EnqueueStatus.OK, EnqueueStatus.QUEUE_QUOTA
MANAGER_QUOTA = EnqueueStatus.MANAGER_QUOTA


def _open_many(core: QueueManagerCore, *names: str) -> OpenQueueDescriptor:
    text = ",".join(rf"DIRECT=OS:SALES01\private$\{name}" for name in names)
    return open_queue(core, parse_format_name(text), AccessType.SEND)


@pytest.mark.requirement("MQ-2.2.20.1-02")
@pytest.mark.requirement(
    "DM-3.1.7.1.27-01", "DM-3.1.7.1.27-03", "DM-3.1.7.1.27-04", "DM-3.1.7.1.27-06"
)
def test_each_queue_of_a_multiple_element_name_gets_its_own_copy() -> None:
    # given a descriptor of two queues
    core = make_core()
    queues = [given_queue(core, "a"), given_queue(core, "b")]
    descriptor = _open_many(core, "a", "b")
    # when a message is sent through it
    sent = Message(b"both", label="x", acknowledgements=Acknowledge.NONE)
    copies = address_copies(descriptor, sent)
    stored = [_stored(copy, i) for i, copy in enumerate(copies)]
    assert enqueue_message_to_open_queue(core, descriptor, stored) is OK
    # then each has one, addressed to itself, and naming all of them
    assert isinstance(descriptor.format_name, MultipleElementFormatName)
    for queue, child in zip(queues, descriptor.children, strict=True):
        copy = from_user_message(only(queue).message.packet)
        assert copy.destination == child.format_name
        assert copy.destinations == descriptor.format_name.elements
        assert (copy.body, copy.label) == (b"both", "x")
    assert sent.destination is None


def _stored(sent: Message, number: int) -> StoredMessage:
    return StoredMessage.of(
        to_user_message(
            sent, source_queue_manager=IDENTIFIER, message_id=number, sent_time=START_TIME
        )
    )


@pytest.mark.requirement("DM-3.1.7.1.27-05")
def test_the_first_refusal_ends_it_and_earlier_copies_stay() -> None:
    core = make_core()
    a, b, c = given_queue(core, "a"), given_queue(core, "b"), given_queue(core, "c")
    b.properties.quota_kilobytes = 0
    descriptor = _open_many(core, "a", "b", "c")
    status = enqueue_message_to_open_queue(core, descriptor, [message(b"m") for _ in range(3)])
    assert status is QUEUE_QUOTA
    assert [bodies(a), bodies(b), bodies(c)] == [[b"m"], [], []]


@pytest.mark.requirement("DM-3.1.7.1.27-04")
def test_copies_go_in_the_same_transaction() -> None:
    core = make_core()
    a, b = given_queue(core, "a"), given_queue(core, "b")
    transaction = create_transaction(core)
    copies = [message(), message()]
    enqueue_message_to_open_queue(core, _open_many(core, "a", "b"), copies, transaction)
    assert [operation.position.queue for operation in transaction.operations] == [a, b]


@pytest.mark.requirement("DM-3.1.7.1.27-02", "DM-3.1.7.1.27-01")
def test_a_single_queue_takes_the_message_and_its_status_comes_back() -> None:
    core = make_core()
    queue = given_queue(core)
    name = parse_format_name(r"DIRECT=OS:SALES01\private$\orders")
    descriptor = open_queue(core, name, AccessType.SEND)
    (copy,) = address_copies(descriptor, Message(b"m"))
    assert copy.destination == name
    transaction = create_transaction(core)
    assert enqueue_message_to_open_queue(core, descriptor, [message(b"m")], transaction) is OK
    assert only(queue).transaction is transaction
    begin_flow_control(core)
    assert enqueue_message_to_open_queue(core, descriptor, [message()]) is MANAGER_QUOTA


def test_a_queue_that_was_deleted_while_it_was_open_is_named() -> None:
    core = make_core()
    queue = given_queue(core)
    descriptor = open_queue(
        core, parse_format_name(r"DIRECT=OS:SALES01\private$\orders"), AccessType.SEND
    )
    delete_queue(core, queue)
    with pytest.raises(QueueError, match="orders was deleted") as caught:
        enqueue_message_to_open_queue(core, descriptor, [message()])
    assert caught.value.status is MqStatus.QUEUE_DELETED
