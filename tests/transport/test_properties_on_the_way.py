"""What a message brings along to another queue manager, and what it asks for there."""

from __future__ import annotations

import pytest

from falconmq.message import Acknowledge, Message, MessageTransaction
from falconmq.names import parse_format_name
from falconmq.serialization import from_user_message
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE
from tests.transport.estate import Estate, bodies, direct, only
from tests.transport.raw_peer import RawPeer, read, routed_estate

CORRELATION = bytes(range(20))
SEQUENCE = 1 << 32 | 1


@pytest.mark.requirement("MQ-2.2.19.3-16")
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


@pytest.mark.requirement("MQ-2.2.19.2-84", "MQ-2.2.19.2-85")
def test_acknowledgements_go_to_one_queue_and_nothing_to_the_other() -> None:
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders, told, answers = there.queue("orders"), here.queue("acks"), here.queue("answers")
    # given a message that names a queue for acknowledgements and one for answers
    here.send(
        direct(there, "orders"),
        b"one",
        acknowledgements=Acknowledge.POSITIVE_ARRIVAL | Acknowledge.POSITIVE_RECEIVE,
        administration_queue=direct(here, "acks"),
        response_queue=direct(here, "answers"),
    )
    estate.settle()
    arrived = from_user_message(only(orders).packet)
    # when it is read
    read(there, orders)
    estate.advance(30.0)
    # then the queue manager sends to the first; the second is for whoever answers
    assert len(bodies(told)) == 2
    assert bodies(answers) == []
    assert arrived.response_queue == parse_format_name(direct(here, "answers"))


@pytest.mark.requirement("DM-3.1.1.12-94")
def test_a_private_name_brings_the_identifier_of_its_queue_manager() -> None:
    estate = routed_estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders")
    here.send(there.private_name(orders), b"one")
    estate.settle()
    address = only(orders).packet.user.queue_manager_address
    assert address == there.identifier.bytes_le


@pytest.mark.requirement("MQ-2.2.20.5-24")
def test_the_queue_manager_of_a_connector_is_carried_and_means_nothing() -> None:
    estate = Estate()
    node = estate.node("A", 1)
    orders = node.queue("orders", transactional=True)
    peer = RawPeer(node).open()
    # given messages of a connector, of nobody's, of one that we could know, and of none
    guids = [b"\xee" * 16, bytes(16), node.identifier.bytes_le, None]
    for number, guid in enumerate(guids, 1):
        packet = peer.message(orders, b"%d" % number, transaction=(SEQUENCE, number, number - 1))
        assert packet.transaction is not None
        packet.transaction.connector_qm_guid = guid
        peer.write(packet.encode())
    estate.advance(5.0)
    # then all are taken, the stream goes on, and each is kept as it came
    found = [orders.positions.find(lookup_id) for lookup_id in orders.positions.available]
    headers = [position.message.transaction for position in found if position is not None]
    assert [header and header.connector_qm_guid for header in headers] == guids
    assert peer.order_acks[-1].body.tx_sequence_number == len(guids)


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
