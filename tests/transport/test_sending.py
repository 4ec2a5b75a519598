"""From the outgoing queue to the wire and out of the queue (MQQB 3.1.5.5, 3.1.7.1, 3.1.7.12)."""

from __future__ import annotations

from typing import Any

import pytest

from falconmq.manager.dispatch import add_message_to_dispatch_collection, held_dispatch
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import purge_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import OutgoingState
from falconmq.message import Acknowledge, Journal
from falconmq.names import parse_format_name
from falconmq.transport.session import SessionState
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_header import DELIVERY_MODE, DELIVERY_MODE_SHIFT
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.played_peer import PlayedPeer, sent_bodies, state_of

WINDOW = 64


def given_two(**settings: int) -> tuple[Estate, Node, Node]:
    estate = Estate()
    return estate, estate.node("SALES01", 1, **settings), estate.node("SALES02", 2, **settings)


def given_played_peer() -> tuple[Estate, Node, str, PlayedPeer]:
    estate, here, there = given_two()
    name = direct(there, "orders")
    return estate, here, name, PlayedPeer.given(estate, here, name)


def numbered(start: int, stop: int) -> list[bytes]:
    return [b"%03d" % number for number in range(start, stop)]


def send_numbered(node: Node, name: str, start: int, stop: int, **properties: object) -> None:
    for body in numbered(start, stop):
        node.send(name, body, **properties)


def count(node: Node, name: str) -> int:
    return len(node.outgoing(name).positions)


def head(node: Node, name: str) -> MessagePosition:
    positions = node.outgoing(name).positions
    position = positions.find(min(positions.available))
    assert position is not None
    return position


# Delivery


@pytest.mark.requirement("QB-3.1.7.1.1-02", "QB-3.1.7.1.6-01", "QB-3.1.7.1-06")
@pytest.mark.requirement("QB-3.1.1.3.1.2-01", "QB-3.1.7.11-01")
def test_packet_of_the_message_goes_out_as_it_is() -> None:
    _, here, name, peer = given_played_peer()
    message = here.send(name, b"one", label="An order", priority=5, recoverable=True)
    (sent,) = peer.messages
    assert sent.encode() == bytes(message.data)
    assert bytes(peer.line.written) == bytes(message.data)


@pytest.mark.requirement("QB-3.1.1.3.1-30", "QB-3.1.7.12-06", "QB-3.1.7.12-09", "QB-3.1.7.16-01")
@pytest.mark.requirement("QB-3.1.7.16-02")
def test_messages_of_a_queue_go_out_in_the_order_they_came() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    send_numbered(here, name, 0, 300)
    estate.settle()
    assert bodies(orders) == numbered(0, 300)
    assert here.core.dispatch is not None
    assert len(here.core.dispatch) == 0


@pytest.mark.requirement("QB-3.1.7.1-02")
def test_nothing_is_sent_before_the_session_is_open() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    while estate._later:
        node, event, args = estate._later.popleft()
        node.run(event, *args)
    line = here.lines[0]
    here.send(name, b"two")
    assert state_of(here.outgoing(name)) is OutgoingState.WAITING
    assert sent_bodies(line) == []
    estate.settle()
    assert sent_bodies(line) == [b"one", b"two"]


def test_nothing_is_sent_before_it_is_durable() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"hello")
    estate.settle()
    here.holds_commits = True
    here.send(name, b"one", recoverable=True)
    estate.advance(1.0)
    assert bodies(orders) == [b"hello"]
    here.release_commits()
    estate.settle()
    assert bodies(orders) == [b"hello", b"one"]


@pytest.mark.requirement("QB-3.1.1.1.1.3-02", "QB-3.1.5.5.4-01", "QB-3.1.5.5.2-01")
def test_three_express_messages_are_acknowledged_once_and_leave() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    here.send(name, b"two", journal=Journal.JOURNAL)
    here.send(name, b"three")
    estate.settle()
    assert count(here, name) == 3
    assert bodies(here.core.journal) == []
    estate.advance(9.9)  # half of AckTimeout is 10 seconds
    assert count(here, name) == 3
    estate.advance(0.2)
    assert count(here, name) == 0
    assert bodies(orders) == [b"one", b"two", b"three"]
    assert bodies(here.core.journal) == [b"two"]
    acks = [packet for packet in there.lines[0].packets if isinstance(packet, SessionAck)]
    assert [ack.session.ack_sequence_number for ack in acks] == [3]


# Session acknowledgments


@pytest.mark.requirement("QB-3.1.5.5.1-01", "QB-3.1.5.5.2-01", "QB-A26-01", "QB-3.1.7.12-07")
@pytest.mark.requirement("QB-3.1.7.12-08", "QB-3.1.1.3.1.2-02", "QB-3.1.1.3.1.2-06")
def test_acknowledgment_frees_the_express_messages_it_counts_and_no_unsent_ones() -> None:
    _, here, name, peer = given_played_peer()
    send_numbered(here, name, 0, 100)
    assert len(peer.bodies) == WINDOW
    peer.acknowledge(3)
    assert count(here, name) == 97
    assert bodies(here.outgoing(name)) == numbered(3, 100)
    peer.acknowledge(3)  # told again, it frees nothing again
    assert count(here, name) == 97


@pytest.mark.requirement("QB-3.1.7.1-03", "QB-3.1.5.5.1-02", "QB-3.1.5.5.1-03", "QB-3.1.5.5.1-04")
@pytest.mark.requirement("QB-A27-01", "QB-3.1.1.3.1.2-05")
def test_window_lets_64_messages_out_and_each_acknowledged_one_makes_room_for_another() -> None:
    _, here, name, peer = given_played_peer()
    send_numbered(here, name, 0, 100, recoverable=True)
    assert peer.bodies == numbered(0, 64)
    peer.acknowledge(32, 1, 0xFFFFFFFF)
    assert peer.bodies == numbered(0, 96)  # each once, and in order
    peer.acknowledge(33, 33, 0b1)
    assert peer.bodies == numbered(0, 97)
    # when the peer asks for one at a time, it gets nothing until all but none are acknowledged
    peer.acknowledge(96, 34, 0xFFFFFFFF, window=1)
    assert peer.bodies == numbered(0, 97)
    peer.acknowledge(97, 66, 0xFFFFFFFF, window=1)
    assert peer.bodies == numbered(0, 98)
    peer.acknowledge(98, 98, 0b1, window=1)
    assert peer.bodies == numbered(0, 99)


@pytest.mark.requirement("QB-3.1.1.1.1.5-01", "QB-3.1.5.5.3-01", "QB-3.1.5.5.3-02")
@pytest.mark.requirement("QB-3.1.1.3.1.2-03")
def test_recoverable_message_leaves_when_its_bit_says_that_it_is_on_disk() -> None:
    _, here, name, peer = given_played_peer()
    send_numbered(here, name, 0, 8, recoverable=True)
    peer.acknowledge(8)  # received, but none of them on disk
    assert count(here, name) == 8
    peer.acknowledge(8, 2, 0b1011)  # 1 lies before the first bit, 2, 3 and 5 have theirs set
    assert bodies(here.outgoing(name)) == [b"003", b"005", b"006", b"007"]
    peer.acknowledge(8, 8, 0b1)
    assert bodies(here.outgoing(name)) == []


@pytest.mark.requirement("QB-3.1.5.5.2-01", "QB-3.1.5.5.3-02")
def test_express_and_recoverable_messages_of_one_queue_leave_each_in_their_own_way() -> None:
    _, here, name, peer = given_played_peer()
    for body, recoverable in ((b"E1", False), (b"R1", True), (b"R2", True), (b"E2", False)):
        here.send(name, body, recoverable=recoverable)
    modes = [(m.user.flags & DELIVERY_MODE) >> DELIVERY_MODE_SHIFT for m in peer.messages]
    assert modes == [0, 1, 1, 0]
    peer.acknowledge(3)
    assert bodies(here.outgoing(name)) == [b"R1", b"R2", b"E2"]
    peer.acknowledge(4, 2, 0b1)
    assert bodies(here.outgoing(name)) == []


@pytest.mark.requirement("MQ-2.2.19.2-28")
@pytest.mark.requirement("QB-3.1.5.5.4-01")
def test_acknowledged_message_is_journaled_once_if_its_sender_asked_for_it() -> None:
    _, here, name, peer = given_played_peer()
    for number, journal in enumerate((Journal.NONE, Journal.JOURNAL, Journal.DEAD_LETTER)):
        here.send(name, b"%d" % number, recoverable=True, journal=journal)
    peer.acknowledge(3)
    assert bodies(here.core.journal) == []
    peer.acknowledge(3, 1, 0b111)
    assert bodies(here.core.journal) == [b"1"]
    assert bodies(here.core.dead_letter) == []
    peer.acknowledge(3, 1, 0b111)
    assert bodies(here.core.journal) == [b"1"]


def test_journal_survives_a_restart_and_the_message_is_not_sent_again() -> None:
    estate, here, name, peer = given_played_peer()
    here.send(name, b"one", recoverable=True, journal=Journal.JOURNAL)
    peer.acknowledge(1, 1, 0b1)
    here.restart()
    estate.advance(60.0)
    assert bodies(here.core.journal) == [b"one"]
    assert here.lines == []


# One session, several queues


def test_window_is_never_exceeded_by_the_queues_that_share_a_session() -> None:
    estate, here, there = given_two()
    first = direct(there, "q0")
    names = [direct(there, f"q{number}") for number in range(5)]
    peer = PlayedPeer.given(estate, here, first)
    (session,) = here.transport.sessions
    for body in numbered(0, 50):
        for name in names:
            here.send(name, body)
            assert session.unacked <= WINDOW
    assert len(peer.messages) == WINDOW
    acknowledged = 0
    while acknowledged < 250:
        acknowledged = min(acknowledged + 7, len(peer.messages))
        peer.acknowledge(acknowledged)
        assert session.unacked <= WINDOW
        assert len(peer.messages) <= acknowledged + WINDOW
    # then every queue got all of its messages out, in its order
    by_queue: dict[object, list[bytes]] = {}
    for message in peer.messages:
        name_on_wire = message.user.destination_queue
        by_queue.setdefault(name_on_wire, []).append(bytes(message.properties.message_body))
    assert list(by_queue.values()) == [numbered(0, 50)] * 5
    assert all(count(here, name) == 0 for name in names)


def test_most_urgent_message_of_all_queues_that_share_a_session_goes_first() -> None:
    estate, here, there = given_two()
    orders, bills = direct(there, "orders"), direct(there, "bills")
    peer = PlayedPeer.given(estate, here, orders)
    peer.acknowledge(0, window=1)
    here.send(orders, b"first")  # the window is full now
    for priority in (3, 0, 5):
        here.send(orders, b"order%d" % priority, priority=priority)
        here.send(bills, b"bill%d" % (priority + 1), priority=priority + 1)
    for number in range(1, 7):
        peer.acknowledge(number, window=1)
    expected = [b"first", b"bill6", b"order5", b"bill4", b"order3", b"bill1", b"order0"]
    assert peer.bodies == expected


def test_urgent_message_overtakes_the_backlog_of_its_own_queue() -> None:
    _, here, name, peer = given_played_peer()
    send_numbered(here, name, 0, 70, priority=3)
    here.send(name, b"urgent", priority=7)
    peer.acknowledge(2)
    assert peer.bodies[64:] == [b"urgent", b"064"]


@pytest.mark.requirement("QB-3.1.7.1.1-01", "DM-3.1.1.12-02")
def test_messages_of_the_queue_manager_itself_get_identifiers_that_never_repeat() -> None:
    # given a receiver that answers each message with an acknowledgment of its own
    estate, here, there = given_two()
    there.queue("orders")
    admin = here.queue("admin")
    asked: dict[str, Any] = {
        "acknowledgements": Acknowledge.POSITIVE_ARRIVAL,
        "administration_queue": direct(here, "admin"),
    }
    for _ in range(3):
        for _ in range(3):
            here.send(direct(there, "orders"), recoverable=True, **asked)
        estate.advance(12.0)
        there.restart()
    found = [admin.positions.find(lookup_id) for lookup_id in admin.positions.available]
    identifiers = [p.message.packet.user.message_id for p in found if p is not None]
    assert len(identifiers) == 9
    assert 0 not in identifiers
    assert identifiers == sorted(set(identifiers))


# Lost connections


@pytest.mark.requirement("QB-3.1.1.1.1.3-01", "QB-3.1.1.3.1.2-08")
def test_what_was_sent_and_not_acknowledged_is_sent_again_and_counted_from_one() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    there.holds_commits = True
    send_numbered(here, name, 0, 3)
    send_numbered(here, name, 3, 6, recoverable=True)
    estate.settle()
    assert len(sent_bodies(here.lines[0])) == 6
    estate.cut(here.lines[0])
    there.release_commits()  # what came before the cut is kept; nobody could acknowledge it
    estate.advance(5.0)
    assert sent_bodies(here.lines[1]) == numbered(0, 6)
    (session,) = here.transport.sessions
    assert session.messages_sent == 6
    # then the receiver knows them, acknowledges them, and has each once
    estate.advance(20.0)
    assert sorted(bodies(orders)) == numbered(0, 6)
    assert there.transport.counters["duplicates"] == 6
    assert count(here, name) == 0


@pytest.mark.requirement("QB-A26-01")
def test_acknowledgment_of_the_new_session_counts_what_the_new_one_has_sent() -> None:
    estate, here, there = given_two()
    name = direct(there, "orders")
    peer = PlayedPeer.given(estate, here, name)
    send_numbered(here, name, 0, 10)
    estate.cut(peer.line)
    estate.advance(5.0)
    second = PlayedPeer(here.lines[-1], greetings=0)
    (session,) = here.transport.sessions
    assert session.messages_sent == 10
    send_numbered(here, name, 10, 90)
    second.acknowledge(4)
    assert bodies(here.outgoing(name)) == numbered(4, 90)


@pytest.mark.requirement("QB-3.1.7.1.6-03")
def test_lost_connection_takes_the_messages_of_its_queues_out_of_the_dispatch_collection() -> None:
    estate, here, name, peer = given_played_peer()
    (session,) = here.transport.sessions
    peer.acknowledge(0, window=1)
    send_numbered(here, name, 0, 3)
    collection = here.core.dispatch
    assert collection is not None
    with held_dispatch(here.core):  # as if a message were being sent at this moment
        table = here.transport.tables[here.outgoing(name)]
        add_message_to_dispatch_collection(here.core, table, head(here, name))
        assert len(collection) == 1
        estate.cut(peer.line)
        assert len(collection) == 0
    assert session.state is SessionState.CLOSED
    assert peer.bodies == numbered(0, 1)


def test_connection_that_breaks_at_any_step_loses_and_doubles_no_recoverable_message() -> None:
    for cut_after in range(9):
        estate, here, there = given_two()
        orders = there.queue("orders")
        name = direct(there, "orders")
        send_numbered(here, name, 0, 6, recoverable=True)
        pieces = 0
        while estate._later or any(line.outbox for line in estate._lines()):
            while estate._later:
                node, event, args = estate._later.popleft()
                node.run(event, *args)
            for line in [line for line in estate._lines() if line.outbox]:
                if pieces == cut_after:
                    estate.cut(line)
                elif line.outbox:
                    estate.deliver(line)
                pieces += 1
        estate.advance(60.0)
        assert sorted(bodies(orders)) == numbered(0, 6), cut_after
        assert count(here, name) == 0, cut_after


# Restarts of the sender


@pytest.mark.requirement("QB-3.1.1.3.1-31", "QB-3.1.1.3.1-30")
def test_recoverable_messages_survive_a_restart_in_their_order_and_express_ones_do_not() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    for number in range(20):
        here.send(name, b"%03d" % number, recoverable=number % 2 == 0)
    estate.settle()
    here.restart()
    estate.refusing.clear()
    estate.advance(10.0)
    assert bodies(orders) == [b"%03d" % number for number in range(0, 20, 2)]


@pytest.mark.requirement("QB-3.1.1.3.1-31")
def test_message_that_was_sent_before_a_restart_and_not_acknowledged_is_sent_again() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    send_numbered(here, name, 0, 3, recoverable=True)
    estate.settle()
    here.restart()
    estate.settle()
    assert sent_bodies(here.lines[0]) == numbered(0, 3)
    estate.advance(10.0)
    assert bodies(orders) == numbered(0, 3)
    assert count(here, name) == 0


def test_thousand_messages_are_sent_in_order_after_a_restart_without_loading_them_all() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    for number in range(1000):
        here.send(name, b"%04d" % number, recoverable=True)
    estate.settle()
    here.restart()
    queue = here.outgoing(name)
    table = here.transport.tables[queue]
    assert len(table.unsent) == 1000
    assert list(queue.positions.resident()) == []
    assert table.kept == {}
    # when they are sent, no more than a window of them is known as more than a number
    estate.refusing.clear()
    fetched: list[int] = []

    def fetch(queue_number: int, lookup_id: int, decode: bool) -> StoredMessage:
        fetched.append(lookup_id)
        return here.core.fetch(queue_number, lookup_id, decode)

    queue.positions._fetch = fetch
    estate.advance(6.0)
    assert len(table.sent) <= WINDOW
    assert list(queue.positions.resident()) == []
    estate.advance(30.0)
    assert bodies(orders) == [b"%04d" % number for number in range(1000)]
    assert count(here, name) == 0
    assert len(fetched) == 1000  # each was read once


# What is not for this protocol


@pytest.mark.requirement("QB-3.1.7.12-01")
def test_message_to_a_queue_of_this_computer_does_not_concern_the_protocol() -> None:
    estate, here, _ = given_two()
    orders = here.queue("orders")
    here.send(direct(here, "orders"), b"one")
    estate.advance(10.0)
    assert bodies(orders) == [b"one"]
    assert here.transport.tables == {}
    assert here.transport.peers == {}
    assert here.lines == []


@pytest.mark.requirement("QB-3.1.7.12-04")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_message_for_the_web_is_left_to_another_protocol(scheme: str) -> None:
    estate, here, there = given_two()
    estate.names["sales02"] = [there.address]
    name = f"DIRECT={scheme}://SALES02/msmq/private$/orders"
    here.send(name, b"one")
    estate.advance(10.0)
    assert count(here, name) == 1
    assert here.transport.peers == {}
    assert here.lookups == []


@pytest.mark.requirement("QB-3.1.7.12-02")
def test_multicast_message_is_left_to_another_protocol() -> None:
    estate, here, there = given_two()
    name = parse_format_name("MULTICAST=234.1.1.1:8001")
    here.run(here._send, name, [here.build(direct(there, "orders"), b"one")])
    estate.advance(10.0)
    (queue,) = here.core.outgoing.values()
    assert queue.is_multicast
    assert bodies(queue) == [b"one"]
    assert here.transport.peers == {}
    assert here.transport.tables == {}


@pytest.mark.requirement("QB-3.1.7.12-03", "DM-3.1.1.1-42")
def test_hardened_queue_manager_sends_nothing_over_this_protocol() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    here.core.settings.hardened_security = True
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.advance(100.0)
    queue = here.outgoing(name)
    assert state_of(queue) is OutgoingState.LOCKED
    assert here.lines == []
    assert bodies(orders) == []
    # neither does Resume let them go
    here.run(here.transport.resume, queue)
    estate.advance(100.0)
    assert state_of(queue) is OutgoingState.LOCKED
    assert here.lines == []


# Purging


@pytest.mark.parametrize("sent_before", [0, 3, 64])
def test_purged_queue_sends_nothing_more_and_goes_on_with_what_comes_later(
    sent_before: int,
) -> None:
    _, here, name, peer = given_played_peer()
    peer.acknowledge(0, window=max(sent_before, 1))
    here.send(name, b"stopper")  # so that a window of one is full
    send_numbered(here, name, 0, 100, recoverable=True)
    already = len(peer.bodies)
    assert here.run(purge_queue, here.core, here.outgoing(name)) == 101
    assert count(here, name) == 0
    peer.acknowledge(already, 1, (1 << min(already - 1, 32)) - 1)  # of messages that are gone
    assert len(peer.bodies) == already
    assert here.core.used_bytes == 0
    here.send(name, b"later", recoverable=True)
    assert peer.bodies[already:] == [b"later"]
    peer.acknowledge(already + 1, already, 0b1)
    assert count(here, name) == 0
