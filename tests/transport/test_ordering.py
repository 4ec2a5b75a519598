"""Transactional streams at the receiver: what is next, and the OrderAcks (MQQB 3.1.5.8.6)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from falconmq.manager.model import IncomingTransactionalTransferInfo, Queue
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import OrderAck, from_user_message
from falconmq.wire.user_header import DELIVERY_MODE, JOURNAL_POSITIVE
from falconmq.wire.user_message import UserMessage
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.raw_peer import ADDRESS, RawPeer, read, routed_estate

S1 = 7 << 32 | 9  # TimeStamp 7, Ordinal 9
S2 = 8 << 32 | 1  # later, though its Ordinal is smaller
S0 = 6 << 32 | 99


def given_stream(**settings: Any) -> tuple[Estate, Node, Queue, RawPeer]:
    """A receiver with a transactional queue, and a peer with a session."""
    estate = routed_estate()
    node = estate.node("B", 2, **settings)
    queue = node.queue("orders", transactional=True)
    return estate, node, queue, RawPeer(node).open()


def send(peer: RawPeer, queue: Queue, *numbers: int, sequence: int = S1) -> None:
    for number in numbers:
        peer.send(queue, b"%d" % number, transaction=(sequence, number, number - 1))


def acked(peer: RawPeer) -> list[int]:
    return [ack.body.tx_sequence_number for ack in peer.order_acks]


def order_ack_packet(peer: RawPeer) -> UserMessage:
    (packet,) = (m for m in peer.messages if isinstance(from_user_message(m), OrderAck))
    return packet


# What is next


@pytest.mark.requirement(
    "QB-3.1.5.8.6-04",
    "QB-3.1.5.8.6-05",
    "QB-3.1.5.8.6-06",
    "QB-3.1.5.8.6-07",
    "QB-3.1.5.8.6-08",
    "QB-3.1.5.8.6-10",
    "QB-A33-01",
    "QB-3.1.5.8.1-01",
)
@pytest.mark.parametrize(
    ("before", "packet", "is_accepted"),
    [
        pytest.param([], (S1, 1, 0), True, id="the first"),
        pytest.param([], (S1, 5, 0), True, id="a first one whose predecessors are gone"),
        pytest.param([], (S1, 2, 1), False, id="the second first"),
        pytest.param([(S1, 1, 0)], (S1, 1, 0), False, id="a duplicate"),
        pytest.param([(S1, 1, 0)], (S1, 2, 1), True, id="the next"),
        pytest.param([(S1, 1, 0)], (S1, 3, 2), False, id="behind a hole"),
        pytest.param([(S1, 1, 0)], (S1, 3, 1), True, id="over a hole that the sender knows"),
        pytest.param([(S1, 1, 0), (S1, 3, 1)], (S1, 2, 1), False, id="an old one"),
        pytest.param([(S1, 1, 0), (S1, 3, 1)], (S2, 1, 0), True, id="a new sequence"),
        pytest.param([(S1, 1, 0), (S1, 3, 1)], (S2, 2, 1), False, id="a new one, second first"),
        pytest.param([(S2, 1, 0)], (S1, 4, 3), False, id="an old sequence"),
        pytest.param([(S1, 1, 0)], (S0, 1, 0), False, id="an older first one"),
        pytest.param([(S1, 1, 0)], (S1, 0xFFFFFFFF, 1), True, id="the last number"),
    ],
)
def test_only_what_follows_the_last_one_is_accepted(
    before: list[tuple[int, int, int]], packet: tuple[int, int, int], is_accepted: bool
) -> None:
    """The guide's scenario 25, its table 6.6 row by row."""
    # given a stream that has come so far
    _, node, queue, peer = given_stream()
    for transaction in before:
        peer.send(queue, b"before", transaction=transaction)
    assert len(bodies(queue)) == len(before)
    # when a message comes
    peer.send(queue, b"now", transaction=packet)
    # then it is in the queue or it is not, and the stream is where the last accepted one was
    assert bodies(queue) == [b"before"] * len(before) + [b"now"] * is_accepted
    (info,) = queue.incoming_transfers
    place = packet if is_accepted else (before or [(0, 0, 0)])[-1]
    assert (info.sequence_id, info.sequence_number) == place[:2]
    assert info.reject_count == (not is_accepted)
    assert node.transport.counters["out of order"] == (not is_accepted)
    assert not peer.is_closed


@pytest.mark.requirement("QB-3.1.5.8.6-07", "QB-3.1.5.8.6-08", "QB-3.1.5.8.6-09", "QB-A50-01")
def test_management_sees_how_often_and_when_last() -> None:
    # given a stream with one message
    estate, node, queue, peer = given_stream()
    send(peer, queue, 1)
    (info,) = queue.incoming_transfers
    came = node.core.clock.time()
    assert (info.last_access_time, info.reject_count) == (came, 0)
    # when duplicates come, then they are counted, and the time of the last is known
    estate.advance(5)
    send(peer, queue, 1, 1)
    assert (info.last_access_time, info.reject_count) == (came + 5, 2)
    # when the next one comes, then the count begins anew
    estate.advance(5)
    send(peer, queue, 2)
    assert (info.last_access_time, info.reject_count) == (came + 10, 0)
    assert info.sequence_number == 2


@pytest.mark.requirement(
    *(f"QB-3.1.5.8.8-{number:02}" for number in (9, 10, 11, 12, 13, 14, 16)), "QB-A50-01"
)
def test_each_stream_into_a_queue_has_its_line() -> None:
    # given two senders, and a queue that one of them calls by two names
    estate, node, queue, peer = given_stream()
    other = RawPeer(node, address="10.0.0.98", guid=bytes(range(16))).open()
    elsewhere = node.queue("elsewhere", transactional=True)
    # when all of them send, one of them twice
    send(peer, queue, 1, 2)
    send(other, queue, 1)
    peer.send(queue.private_queue_number, transaction=(S2, 1, 0))
    # then there is a line for each, at the queue that it leads to
    by_name = [_line(info) for info in queue.incoming_transfers]
    name = rf"DIRECT=TCP:{node.address}\private$\orders"
    private = f"PRIVATE={node.identifier}\\{queue.private_queue_number:08x}"
    assert by_name == [
        (name, peer.guid, S1, 2),
        (name, other.guid, S1, 1),
        (private, peer.guid, S2, 1),
    ]
    assert elsewhere.incoming_transfers == []
    now = estate.clock.time()
    assert {info.last_access_time for info in queue.incoming_transfers} == {now}


def _line(info: IncomingTransactionalTransferInfo) -> tuple[str, bytes, int, int]:
    return info.format_name, info.sender.bytes_le, info.sequence_id, info.sequence_number


def test_two_queues_of_one_host_have_streams_of_their_own() -> None:
    """The guide's scenario 36."""
    estate = routed_estate()
    sender, receiver = estate.node("A", 1), estate.node("B", 2)
    queues = [receiver.queue(name, transactional=True) for name in ("one", "two")]
    for number in range(10):
        name = ("one", "two")[number % 2]
        sender.send(direct(receiver, name), b"%d" % number, transactional=True)
    estate.advance(5)
    assert bodies(queues[0]) == [b"0", b"2", b"4", b"6", b"8"]
    assert bodies(queues[1]) == [b"1", b"3", b"5", b"7", b"9"]
    assert receiver.transport.counters["out of order"] == 0


# Refused, but in order


@pytest.mark.requirement("QB-A55-01", "QB-A33-01")
@pytest.mark.parametrize("refused", ["no queue", "plain queue", "full queue", "expired"])
def test_a_refused_message_has_still_arrived(refused: str) -> None:
    # given a destination that refuses
    estate, node, queue, peer = given_stream()
    target: Queue | int = queue
    properties: dict[str, Any] = {}
    if refused == "no queue":
        target = 4711
    elif refused == "plain queue":
        target = node.queue("plain")
    elif refused == "full queue":
        target = node.queue("full", transactional=True, quota_kilobytes=1)
        properties = {"body": bytes(5000)}
    else:
        properties = {"time_to_reach_queue": 1, "age": 10}
    peer = RawPeer(node, address="10.0.0.98").open()
    # when two messages come in order, the second again
    for transaction in ((S1, 1, 0), (S1, 2, 1), (S1, 2, 1)):
        peer.send(target, transaction=transaction, source=peer.guid, **properties)
    # then both are told by a FinalAck, once, and the OrderAck covers them
    if refused == "no queue":  # it came by its number: the answer goes to the source
        name = f"PRIVATE={UUID(bytes_le=peer.guid)}\\00000004"
        assert len(node.outgoing(name).positions) == 2
        estate.advance(0.5)
        assert len(node.outgoing(name).positions) == 3
        return
    assert [ack.body.tx_sequence_number for ack in peer.final_acks] == [1, 2]
    estate.advance(0.5)
    assert acked(peer) == [2]


# When an OrderAck is sent


@pytest.mark.requirement(
    "QB-3.1.2.7-01",
    "QB-3.1.3.2-27",
    "QB-3.1.1.6.2-05",
    "QB-3.1.1.6.2-06",
    "QB-3.1.5.8.6-03",
    "QB-3.1.6.9-01",
)
def test_half_a_second_after_a_message_comes_its_order_ack() -> None:
    estate, _, queue, peer = given_stream()
    send(peer, queue, 1)
    estate.advance(0.49)
    assert acked(peer) == []
    estate.advance(0.02)
    assert acked(peer) == [1]
    estate.advance(30)
    assert acked(peer) == [1]


@pytest.mark.requirement("QB-3.1.1.6.2-04", "QB-3.1.1.6.2-07", "QB-3.1.2.7-02", "QB-3.1.5.8.6-02")
def test_one_order_ack_covers_what_comes_close_together() -> None:
    """The guide's scenario 26, first half."""
    # given five messages within 300 ms
    estate, _, queue, peer = given_stream()
    for number in range(1, 6):
        send(peer, queue, number)
        if number < 5:
            estate.advance(0.075)
    # when half a second has passed since the last, not since the first
    estate.advance(0.49)
    assert acked(peer) == []
    estate.advance(0.02)
    # then there is one OrderAck, for the last
    assert acked(peer) == [5]


@pytest.mark.requirement("QB-3.1.3.2-29")
@pytest.mark.requirement("QB-3.1.1.6.2-04", "QB-3.1.2.7-02", "QB-3.1.5.8.6-02", "QB-3.1.6.9-02")
def test_a_steady_flow_is_acknowledged_every_ten_seconds() -> None:
    """The guide's scenario 26, second half."""
    # given a message every 100 ms for half a minute
    estate, _, queue, peer = given_stream()
    moments: list[float] = []
    for number in range(1, 331):
        send(peer, queue, number)
        for _ in range(2):
            before = len(peer.order_acks)
            estate.advance(0.05)
            if len(peer.order_acks) > before:
                moments.append(estate.clock.monotonic())
    # then an OrderAck comes whenever the last is ten seconds old, and not much later
    distances = [b - a for a, b in pairwise(moments)]
    assert len(moments) == 3
    assert all(10.0 <= distance <= 10.6 for distance in distances), distances


@pytest.mark.requirement("QB-3.1.1.6.2-03", "QB-3.1.5.8.6-06")
def test_what_came_ahead_of_others_is_not_acknowledged() -> None:
    # given messages 1, 2 and 4
    estate, _, queue, peer = given_stream()
    send(peer, queue, 1, 2, 4)
    # when the OrderAck comes, then it is for 2
    estate.advance(1)
    assert acked(peer) == [2]
    # when 3 comes, and 4 again, then the next one is for 4
    send(peer, queue, 3, 4)
    estate.advance(1)
    assert acked(peer) == [2, 4]
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]


def test_a_duplicate_is_acknowledged_again() -> None:
    """The guide's scenario 28: the OrderAck may have been lost."""
    estate, _, queue, peer = given_stream()
    send(peer, queue, 1, 2)
    estate.advance(1)
    send(peer, queue, 1)
    estate.advance(1)
    assert acked(peer) == [2, 2]
    assert bodies(queue) == [b"1", b"2"]


def test_nothing_accepted_is_nothing_to_acknowledge() -> None:
    estate, _, queue, peer = given_stream()
    send(peer, queue, 2)
    estate.advance(20)
    assert acked(peer) == []
    assert not peer.is_closed


@pytest.mark.requirement("QB-A33-01", "QB-3.1.1.1.1.8-01")
def test_no_order_ack_is_sent_before_the_disk_has_the_message() -> None:
    # given a message that is on disk, and a slow disk with the next
    estate, node, queue, peer = given_stream()
    send(peer, queue, 1)
    node.holds_commits = True
    send(peer, queue, 2)
    # when the OrderAck is due
    estate.advance(3)
    node.release_commits()
    estate.settle()
    # then it was for the first, and the second is told when the disk is done
    assert acked(peer) == [1]
    estate.advance(1)
    assert acked(peer) == [1, 2]


@pytest.mark.requirement("QB-A33-01")
@pytest.mark.parametrize("is_written", [True, False])
def test_message_and_place_in_the_stream_survive_a_power_failure_together(is_written: bool) -> None:
    # given a message that is on disk or on its way there
    _, node, queue, peer = given_stream()
    node.holds_commits = not is_written
    send(peer, queue, 1)
    # when the power fails, and the message comes again with the next one behind it
    node.restart()
    queue = node.core.queues[queue.number]
    assert bodies(queue) == [b"1"] * is_written
    peer = RawPeer(node).open()
    send(peer, queue, 1, 2)
    # then each is there once
    assert bodies(queue) == [b"1", b"2"]
    assert node.transport.counters["out of order"] == is_written


# What it says, and where it goes


@pytest.mark.requirement(
    "QB-A34-01", "QB-A35-01", *(f"QB-3.1.7.17-{n}" for n in ("03", 28, 29, 30))
)
def test_an_order_ack_says_which_sequence_of_the_sender_and_is_express() -> None:
    # given a receiver with a stream of its own to the sender
    estate, node, queue, peer = given_stream()
    node.send(rf"DIRECT=TCP:{ADDRESS}\private$\far", b"x", transactional=True)
    estate.settle()
    # when it acknowledges
    send(peer, queue, 1, 2, 3)
    estate.advance(1)
    # then it is the incoming sequence
    (ack,) = peer.order_acks
    assert ack.body.tx_sequence_id == S1
    assert (ack.body.tx_sequence_number, ack.body.tx_previous_sequence_number) == (3, 2)
    packet = order_ack_packet(peer)
    assert packet.user.flags & DELIVERY_MODE == 0
    assert packet.properties.message_class == MessageClass.ORDER_ACK


@pytest.mark.requirement("QB-A35-01")
def test_a_final_ack_is_recoverable() -> None:
    _, node, queue, peer = given_stream()
    peer.send(queue, transaction=(S1, 1, 0), flags=JOURNAL_POSITIVE)
    read(node, queue)
    (ack,) = peer.messages
    assert ack.user.flags & DELIVERY_MODE == 1 << 5
    assert ack.properties.message_class == MessageClass.ACK_RECEIVE


@pytest.mark.requirement("QB-3.1.7.17-35", "QB-A57-01")
def test_an_order_ack_of_a_direct_message_goes_to_the_address_it_came_from() -> None:
    """The guide's scenario 35."""
    estate, node, queue, peer = given_stream()
    send(peer, queue, 1)
    estate.advance(1)
    user = order_ack_packet(peer).user
    assert user.destination_queue == rf"TCP:{ADDRESS}\PRIVATE$\order_queue$"
    assert user.queue_manager_address == bytes(16)
    assert user.source_queue_manager == node.transport.guid


@pytest.mark.requirement("QB-3.1.7.17-37", "QB-A57-01")
def test_an_order_ack_of_any_other_message_goes_to_the_queue_manager_that_wrote_it() -> None:
    # given a peer that passes a message on for another
    estate = routed_estate()
    node, source = estate.node("B", 2), estate.node("A", 1)
    queue = node.queue("orders", transactional=True)
    router = RawPeer(node).open(direct=False)
    # when the message comes
    number = queue.private_queue_number
    router.send(number, source=source.transport.guid, transaction=(S1, 1, 0))
    estate.advance(1)
    # then the acknowledgment goes to the other
    assert router.order_acks == []
    (line,) = source.lines
    assert line.other is not None
    (packet,) = (p for p in line.other.packets if isinstance(p, UserMessage))
    assert isinstance(from_user_message(packet), OrderAck)
    assert packet.user.queue_manager_address == source.transport.guid
    assert packet.user.destination_queue == 4
