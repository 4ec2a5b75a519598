"""What the transport does about messages and queues that the core tells it of."""

from __future__ import annotations

from falconmq.manager.queues import delete_queue
from falconmq.wire.message_class import MessageClass
from tests.transport.estate import Estate, bodies, direct


def test_the_streams_of_a_deleted_queue_are_no_longer_its_own() -> None:
    # given a queue that a stream has come into
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders", transactional=True)
    here.send_transaction(direct(there, "orders"), b"1")
    estate.settle()
    assert bodies(orders) == [b"1"]
    assert len(orders.incoming_transfers) == 1
    # when it is deleted
    there.run(delete_queue, there.core, orders)
    # then it has none, and its sender hears that the next message has no queue
    assert orders.incoming_transfers == []
    here.send_transaction(direct(there, "orders"), b"2")
    estate.settle()
    assert there.transport.refusals[MessageClass.NACK_BAD_DST_Q] == 1
