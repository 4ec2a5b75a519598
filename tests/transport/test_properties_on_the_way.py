"""What a message brings along to another queue manager, and what it asks for there."""

from __future__ import annotations

import pytest

from falconmq.message import Message, MessageTransaction
from falconmq.serialization import from_user_message
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE
from tests.transport.estate import Estate, direct, only
from tests.transport.raw_peer import RawPeer, read, routed_estate

CORRELATION = bytes(range(20))
SEQUENCE = 1 << 32 | 1


@pytest.mark.requirement("DM-3.1.1.12-72")
@pytest.mark.parametrize("correlation", [CORRELATION, bytes(20)])
def test_the_correlation_identifier_arrives_as_it_was_sent(correlation: bytes) -> None:
    assert Message(b"").correlation_id == bytes(20)
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders")
    here.send(direct(there, "orders"), b"one", correlation_id=correlation)
    estate.settle()
    assert from_user_message(only(orders).packet).correlation_id == correlation


@pytest.mark.requirement("DM-3.1.1.12-94")
def test_a_private_name_brings_the_identifier_of_its_queue_manager() -> None:
    estate = routed_estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders")
    here.send(there.private_name(orders), b"one")
    estate.settle()
    address = only(orders).packet.user.queue_manager_address
    assert address == there.identifier.bytes_le


@pytest.mark.requirement("DM-3.1.1.12-120")
@pytest.mark.parametrize("flags", [0, JOURNAL_POSITIVE, JOURNAL_NEGATIVE])
def test_a_final_ack_that_nobody_needs_is_not_sent(flags: int) -> None:
    # given a transactional message without FinalAckRequired
    assert not MessageTransaction(1, 1).final_ack_required
    estate = Estate()
    node = estate.node("A", 1)
    orders = node.queue("orders", transactional=True)
    peer = RawPeer(node).open()
    peer.send(orders, b"one", transaction=(SEQUENCE, 1, 0), flags=flags)
    # when it is read
    read(node, orders)
    estate.advance(5.0)
    # then only a journal or a dead-letter queue would be a reason to tell
    assert len(peer.final_acks) == bool(flags)
