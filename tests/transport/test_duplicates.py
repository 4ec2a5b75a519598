"""Messages that come again: acknowledged, and not delivered (MQQB 3.1.5.8.1)."""

from __future__ import annotations

from typing import Any

import pytest

from falconmq.manager.model import Queue
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.raw_peer import ACKS, RawPeer, routed_estate

OTHER = bytes(range(16))


def given_queue(**settings: int) -> tuple[Estate, Node, Queue]:
    estate = routed_estate()
    node = estate.node("B", 2, **settings)
    return estate, node, node.queue("orders")


@pytest.mark.requirement("QB-3.1.5.8.1-03", "QB-A12-01")
@pytest.mark.parametrize("recoverable", [True, False])
def test_a_duplicate_is_acknowledged_and_not_delivered(recoverable: bool) -> None:
    # given a message that came over a session that broke
    estate, node, queue = given_queue()
    peer = RawPeer(node).open()
    first = peer.send(queue, b"once", message_id=7, recoverable=recoverable)
    peer.hang_up()
    # when it comes again on the next session, with a new one behind it
    again = RawPeer(node).open()
    again.write(first)
    again.send(queue, b"new", message_id=8, recoverable=recoverable)
    estate.advance(15)
    # then it is in the queue once, and both are acknowledged
    assert bodies(queue) == [b"once", b"new"]
    (ack,) = again.session_acks
    assert ack.ack_sequence_number == 2
    assert ack.recoverable_msg_ack_flags == (0b11 if recoverable else 0)
    assert not again.is_closed
    assert node.transport.counters["duplicates"] == 1


@pytest.mark.requirement("QB-3.1.5.8.1-02", "QB-A12-01")
def test_the_same_number_of_another_queue_manager_is_another_message() -> None:
    _, node, queue = given_queue()
    peer = RawPeer(node).open()
    peer.send(queue, b"mine", message_id=7)
    peer.send(queue, b"theirs", message_id=7, source=OTHER)
    assert bodies(queue) == [b"mine", b"theirs"]


@pytest.mark.requirement("QB-3.1.5.8.1-02", "QB-3.1.5.8.2-08")
def test_a_duplicate_is_remembered_longer() -> None:
    # given a clean-up every half hour that drops what is older than that, and two messages
    estate, node, queue = given_queue()
    estate.advance(100)  # not on the very second of a clean-up
    for message_id in (7, 8):
        RawPeer(node).open().send(queue, message_id=message_id)
    # when one of them comes again behind the next clean-up
    estate.advance(1900)
    RawPeer(node).open().send(queue, message_id=7)
    # then the clean-up behind that drops only the other
    estate.advance(1800)
    assert len(node.transport.history) == 1
    RawPeer(node).open().send(queue, message_id=7)
    assert len(bodies(queue)) == 2
    RawPeer(node).open().send(queue, message_id=8)
    assert len(bodies(queue)) == 3


@pytest.mark.requirement("QB-3.1.5.8.2-08")
def test_after_a_while_nothing_is_remembered() -> None:
    estate, node, queue = given_queue()
    RawPeer(node).open().send(queue)
    assert len(node.transport.history) == 1
    estate.advance(3700)
    assert len(node.transport.history) == 0


@pytest.mark.requirement("QB-3.1.5.8.2-06")
def test_of_too_many_messages_the_oldest_are_forgotten() -> None:
    _, node, queue = given_queue(history_size=10)
    peer = RawPeer(node).open()
    packets = [peer.send(queue) for _ in range(11)]
    assert len(node.transport.history) == 10
    peer.write(packets[1])
    assert len(bodies(queue)) == 11
    peer.write(packets[0])
    assert len(bodies(queue)) == 12


@pytest.mark.requirement("QB-3.1.5.8.1-01")
def test_transactional_messages_are_not_in_the_history() -> None:
    # given a transactional queue
    _, node, plain = given_queue()
    queue = node.queue("strict", transactional=True)
    peer = RawPeer(node).open()
    peer.send(plain, message_id=7)
    # when two messages of a stream come that have the same MessageID, as one before them
    for number in (1, 2):
        peer.send(queue, message_id=7, transaction=(1 << 32 | 1, number, number - 1))
    # then both are taken: their place in the stream counts
    assert len(bodies(queue)) == 2
    assert len(node.transport.history) == 1


@pytest.mark.requirement("QB-3.1.5.8.1-03", "QB-A15-01", "QB-3.1.5.8-02")
def test_a_refused_message_that_comes_again_is_not_refused_again() -> None:
    # given a message that expired on the way, and was answered
    _, node, queue = given_queue()
    peer = RawPeer(node).open()
    late: dict[str, Any] = {"message_id": 7, "time_to_reach_queue": 5, "age": 60}
    for _ in range(2):
        peer.send(queue, admin=ACKS, acknowledgements=NEGATIVE_ARRIVAL, **late)
    # then the second is only a duplicate
    assert peer.classes == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]
    assert node.transport.counters["duplicates"] == 1


@pytest.mark.requirement("QB-A12-01")
@pytest.mark.parametrize("recoverable", [True, False])
def test_a_cut_line_neither_loses_nor_doubles(recoverable: bool) -> None:
    """The guide's scenario 18."""
    # given messages that have arrived, whose acknowledgment has not
    estate = routed_estate()
    sender, receiver = estate.node("A", 1), estate.node("B", 2)
    queue = receiver.queue("orders")
    name = direct(receiver, "orders")
    for number in range(10):
        sender.send(name, b"%d" % number, recoverable=recoverable)
    estate.settle()
    assert len(bodies(queue)) == 10
    # when the line breaks, and messages follow
    estate.cut(sender.lines[0])
    sender.send(name, b"10", recoverable=recoverable)
    estate.advance(30)
    # then each is there once, in order, and the sender has none of them any more
    assert bodies(queue) == [b"%d" % number for number in range(11)]
    assert receiver.transport.counters["duplicates"] == 10
    assert len(sender.outgoing(name).positions) == 0


def test_a_duplicate_in_the_same_segment_is_one_too() -> None:
    _, node, queue = given_queue()
    peer = RawPeer(node).open()
    packet = peer.message(queue, recoverable=True).encode()
    peer.write(packet, packet, packet)
    assert len(bodies(queue)) == 1


def test_a_message_without_room_is_no_duplicate_when_it_comes_again() -> None:
    # given a queue manager that is full
    _, node, queue = given_queue()
    node.core.settings.quota_kilobytes = 1
    peer = RawPeer(node).open()
    packet = peer.send(queue, bytes(3000))
    assert peer.is_closed
    # when there is room
    node.core.settings.quota_kilobytes = 1000
    RawPeer(node).open().write(packet)
    # then it is taken
    assert len(bodies(queue)) == 1
