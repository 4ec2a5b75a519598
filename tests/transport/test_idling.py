"""What is left of peers that never come back."""

from __future__ import annotations

import pytest

from falconmq.message import Delivery
from falconmq.transport import incoming_streams
from falconmq.transport.settings import TransportSettings
from tests.transport.estate import Estate, bodies, direct
from tests.transport.raw_peer import RawPeer, routed_estate

HOUR = 3600.0


def test_an_outgoing_queue_without_messages_is_forgotten_after_a_while() -> None:
    # given a queue manager that has sent a message, and lost its session since
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders")
    here.send(direct(there, "orders"), b"1", delivery=Delivery.RECOVERABLE)
    estate.advance(700.0)
    assert bodies(orders) == [b"1"]
    assert here.core.outgoing
    # when an hour passes
    estate.advance(HOUR)
    # then nothing is left of it, in memory or in the store
    assert not here.core.outgoing
    assert not here.transport.tables
    assert not here.transport.peers
    # and the next message finds its way all the same
    here.send(direct(there, "orders"), b"2", delivery=Delivery.RECOVERABLE)
    estate.advance(10.0)
    assert bodies(orders) == [b"1", b"2"]


def test_a_queue_that_waits_for_its_peer_is_kept() -> None:
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    estate.refusing.add(there.address)
    here.send(direct(there, "orders"), b"1", delivery=Delivery.RECOVERABLE)
    estate.advance(3 * HOUR)
    assert len(here.outgoing(direct(there, "orders")).positions) == 1


def test_an_order_ack_for_a_sender_that_is_gone_is_dropped_some_day() -> None:
    # given a sender that cannot be called back, and the OrderAck that waits for it
    estate = routed_estate()
    node = estate.node("A", 1)
    node.queue("orders", transactional=True)
    peer = RawPeer(node)
    peer.open()
    peer.send(rf"TCP:{node.address}\private$\orders", b"1", transaction=(1 << 32 | 1, 1, 0))
    estate.settle()
    peer.hang_up()
    estate.advance(HOUR)
    assert sum(len(queue.positions) for queue in node.core.outgoing.values()) == 1
    # when it has waited longer than any sender does
    estate.advance(TransportSettings().resend_final + HOUR)
    # then it goes, and the outgoing queue after it
    assert not node.core.outgoing
    assert node.transport.counters["order acks dropped"] == 1


def test_streams_of_invented_senders_whose_messages_are_not_taken_cost_no_disk() -> None:
    # given a queue, and senders that nobody has heard of
    estate = routed_estate()
    node = estate.node("A", 1)
    orders = node.queue("orders", transactional=True)
    peer = RawPeer(node)
    peer.open()
    # when each sends the second message of a sequence whose first one never came
    for number in range(1500):
        invented = number.to_bytes(16, "big")
        peer.send(orders, b"", source=invented, transaction=(1 << 32 | 1, 2, 1))
    # then a thousand of them are remembered, and none is on disk
    assert len(orders.incoming_transfers) == 1000
    assert list(node.store.scan("incoming_streams")) == []
    assert bodies(orders) == []


def test_a_stream_that_nobody_uses_any_more_is_forgotten_within_the_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming_streams, "UNUSED_SECONDS_MAX", 2 * HOUR)
    estate = Estate()
    here, there = estate.node("A", 1), estate.node("B", 2)
    orders = there.queue("orders", transactional=True)
    here.send_transaction(direct(there, "orders"), b"1")
    estate.advance(2 * HOUR)
    assert len(orders.incoming_transfers) == 1
    estate.advance(HOUR)
    assert orders.incoming_transfers == []
