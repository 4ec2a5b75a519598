"""Messages that go over other queue managers (MQQB 3.1.1.5, 3.1.5.2.1, 3.1.5.8.2, 3.1.5.8.5)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from falconmq.manager.queues import purge_queue
from falconmq.manager.states import OutgoingState
from falconmq.message import Acknowledge, Journal
from falconmq.transport.routing import StaticRouter
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_header import HOP_COUNT
from tests.transport.estate import Estate, Line, Node, bodies, only
from tests.transport.played_peer import (
    given_routes,
    sent_bodies,
    state_of,
    transaction_of,
    user_messages,
)

BOTH = Journal.JOURNAL | Journal.DEAD_LETTER


def route(estate: Estate, node: Node, goal: Node, over: Sequence[Node]) -> None:
    """From this node, the way to the goal goes over one of these."""
    ways = {goal.identifier: [hop.identifier for hop in over]}
    node.transport.router = StaticRouter(estate.hosts, ways)


def given_three() -> tuple[Estate, Node, Node, Node]:
    """A sender, a router, a receiver; sender and receiver see each other over the router alone."""
    estate = Estate()
    here = estate.node("SALES01", 1)
    router = estate.node("ROUTER", 2)
    there = estate.node("SALES03", 3)
    given_routes(estate)
    route(estate, here, there, [router])
    route(estate, there, here, [router])
    return estate, here, router, there


def lines_between(node: Node, other: Node) -> list[Line]:
    return [line for line in node.lines if line.other is not None and line.other.node is other]


def waiting(node: Node) -> list[bytes]:
    """What is in the outgoing queues of a node."""
    return [body for queue in node.core.outgoing.values() for body in bodies(queue)]


@pytest.mark.requirement("QB-3.1.5.2.1-07", "QB-3.1.5.2.1-13")
def test_message_goes_over_the_router_and_nowhere_else() -> None:
    estate, here, router, there = given_three()
    orders = there.queue("orders")
    here.send(there.private_name(orders), b"one", recoverable=True)
    estate.advance(15.0)
    assert bodies(orders) == [b"one"]
    assert lines_between(here, there) == []
    assert here.lookups == ["ROUTER"]
    assert router.lookups == ["SALES03"]
    assert waiting(here) == waiting(router) == []


@pytest.mark.requirement("QB-3.1.1.5-07", "QB-3.1.1.6.2-02")
def test_router_changes_nothing_but_the_hop_count() -> None:
    estate, here, router, there = given_three()
    orders = there.queue("orders", transactional=True)
    here.send_transaction(there.private_name(orders), b"1", b"2", b"3", journal=BOTH)
    estate.settle()
    (first,), (second,) = lines_between(here, router), lines_between(router, there)
    for before, after in zip(user_messages(first), user_messages(second), strict=True):
        assert after.user.flags & HOP_COUNT == 1
        assert after.user.flags & ~HOP_COUNT == before.user.flags
        before.user.flags = after.user.flags
        assert before.encode() == after.encode()


@pytest.mark.requirement("QB-3.1.1.5-06", "QB-3.1.1.6.2-01", "QB-3.1.1.6.2-02", "QB-3.1.1.5-07")
def test_stream_is_a_matter_between_sender_and_receiver() -> None:
    estate, here, router, there = given_three()
    orders = there.queue("orders", transactional=True)
    name = there.private_name(orders)
    here.send_transaction(name, b"1", b"2", b"3")
    estate.settle()
    assert bodies(orders) == [b"1", b"2", b"3"]
    # the router lets go as soon as the next has them; the sender waits for the order ack
    estate.advance(0.4)
    assert router.transport.awaiting == {}
    assert list(router.store.scan("outgoing_streams")) == []
    assert list(router.store.scan("incoming_streams")) == []
    assert bodies(here.outgoing(name)) == [b"1", b"2", b"3"]
    estate.advance(20.0)
    assert waiting(here) == waiting(router) == waiting(there) == []
    # and the next message begins another sequence, which the receiver takes
    here.send_transaction(name, b"4")
    estate.advance(20.0)
    assert bodies(orders) == [b"1", b"2", b"3", b"4"]
    assert waiting(here) == []


def test_end_of_a_routed_message_is_told_to_its_sender_and_the_router_keeps_no_copy() -> None:
    estate, here, router, there = given_three()
    orders = there.queue("orders", transactional=True)
    plain = there.queue("plain")
    here.send_transaction(there.private_name(orders), b"1", b"2", journal=BOTH)
    here.send(there.private_name(plain), b"plain", recoverable=True, journal=Journal.JOURNAL)
    estate.advance(20.0)
    there.run(purge_queue, there.core, orders)
    estate.advance(20.0)
    assert bodies(here.core.transactional_dead_letter) == [b"1", b"2"]
    assert bodies(here.core.journal) == [b"plain"]
    for queue in (
        router.core.journal,
        router.core.dead_letter,
        router.core.transactional_dead_letter,
    ):
        assert bodies(queue) == []
    assert waiting(here) == waiting(router) == waiting(there) == []


def test_router_keeps_messages_while_the_next_hop_is_away() -> None:
    estate, here, router, there = given_three()
    orders, plain = there.queue("orders", transactional=True), there.queue("plain")
    estate.refusing.add(there.address)
    here.send_transaction(there.private_name(orders), b"1", b"2")
    here.send(there.private_name(plain), b"plain", recoverable=True)
    estate.advance(20.0)
    assert sorted(waiting(router)) == [b"1", b"2", b"plain"]
    assert waiting(here) == [b"1", b"2"]  # the plain one is the router's now
    # when the router fails meanwhile
    router.restart()
    estate.refusing.clear()
    estate.advance(60.0)
    assert bodies(orders) == [b"1", b"2"]
    assert bodies(plain) == [b"plain"]
    assert waiting(here) == waiting(router) == []


@pytest.mark.requirement("QB-3.1.6.5-01")
def test_routed_message_that_got_lost_is_sent_again_with_its_number() -> None:
    # given a router that loses its disk
    estate, here, router, there = given_three()
    orders = there.queue("orders", transactional=True)
    estate.refusing.add(there.address)
    name = there.private_name(orders)
    here.send_transaction(name, b"1", b"2")
    estate.advance(1.0)
    for queue in list(router.core.outgoing.values()):
        router.run(purge_queue, router.core, queue)
    assert waiting(router) == []
    estate.refusing.clear()
    estate.advance(60.0)
    assert bodies(orders) == [b"1", b"2"]
    assert waiting(here) == []
    sent = user_messages(lines_between(here, router)[0])
    numbers = [transaction_of(message).tx_sequence_number for message in sent]
    assert numbers[:4] == [1, 2, 1, 2]


@pytest.mark.requirement("QB-3.1.6.1-03")
def test_second_router_is_tried_when_the_first_is_away() -> None:
    estate, here, router, there = given_three()
    other = estate.node("ROUTER2", 4)
    given_routes(estate)
    route(estate, here, there, [router, other])
    orders = there.queue("orders")
    estate.refusing.add(router.address)
    name = there.private_name(orders)
    here.send(name, b"one")
    estate.settle()
    assert here.outgoing(name).next_hops == [f"IP={router.address}", f"IP={other.address}"]
    estate.advance(5.0)
    assert bodies(orders) == [b"one"]
    assert here.outgoing(name).next_hops == [f"IP={other.address}"]
    assert state_of(here.outgoing(name)) is OutgoingState.CONNECTED


def test_message_that_expires_at_the_router_is_reported_to_its_sender() -> None:
    estate, here, router, there = given_three()
    orders, admin = there.queue("orders"), here.queue("admin")
    estate.refusing.add(there.address)
    here.send(
        there.private_name(orders),
        b"one",
        recoverable=True,  # the router acknowledges it long before it expires
        time_to_reach_queue=8,
        acknowledgements=Acknowledge.NEGATIVE_ARRIVAL,
        administration_queue=here.private_name(admin),
    )
    estate.advance(30.0)
    assert waiting(router) == []
    nack = only(admin).packet.properties.message_class
    assert nack == MessageClass.NACK_REACH_QUEUE_TIMEOUT


def test_messages_of_two_senders_with_the_same_numbers_pass_one_router() -> None:
    # given two senders whose MessageIDs are the same, one of them the router itself
    estate, here, router, there = given_three()
    orders = there.queue("orders", transactional=True)
    name = there.private_name(orders)
    for number in range(3):
        here.send_transaction(name, b"h%d" % number, journal=Journal.JOURNAL)
        router.send_transaction(name, b"r%d" % number, journal=Journal.JOURNAL)
        estate.settle()
    found = bodies(orders)
    assert [body for body in found if body[:1] == b"h"] == [b"h0", b"h1", b"h2"]
    assert [body for body in found if body[:1] == b"r"] == [b"r0", b"r1", b"r2"]
    estate.advance(20.0)
    assert sorted(waiting(here)) == [b"h0", b"h1", b"h2"]
    assert sorted(waiting(router)) == [b"r0", b"r1", b"r2"]
    assert all(sent_bodies(line).count(b"h0") <= 1 for line in router.lines)


@pytest.mark.parametrize("transactional", [True, False])
def test_message_that_comes_back_to_its_sender_ends_there(transactional: bool) -> None:
    # given ways to a queue manager that lead in a circle through the sender
    estate, here, router, there = given_three()
    route(estate, here, there, [router])
    route(estate, router, there, [here])
    acks = here.queue("acks")
    name = there.private_name(there.queue("orders"))
    # when a message goes that way
    here.send(
        name,
        b"one",
        transactional=transactional,
        recoverable=True,
        journal=Journal.DEAD_LETTER,
        acknowledgements=Acknowledge.NEGATIVE_ARRIVAL,
        administration_queue=here.private_name(acks),
    )
    estate.advance(60.0)
    # then it is refused at its second look at the sender, and its sender hears of it once
    assert only(acks).packet.properties.message_class == MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert len(here.core.transactional_dead_letter.positions) == transactional
    assert waiting(here) == []
    assert waiting(router) == []
