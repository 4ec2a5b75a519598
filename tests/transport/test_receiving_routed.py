"""Messages for other queue managers, passed on by a router (MQQB 3.1.5.8.2, 3.1.5.8.5)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.queues import create_queue
from falconmq.message import Acknowledge
from falconmq.names import PathName
from falconmq.transport.routing import StaticRouter
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL
from falconmq.wire.ordering_acks import FinalAck, OrderAck, from_user_message
from falconmq.wire.user_header import HOP_COUNT, HOP_COUNT_MAX, JOURNAL_NEGATIVE, JOURNAL_POSITIVE
from falconmq.wire.user_message import UserMessage
from tests.transport.answers import PUBLIC_QUEUE
from tests.transport.estate import Estate, Line, Node, bodies, direct, only
from tests.transport.raw_peer import ACKS, RawPeer, read, routed_estate, run

S1 = 7 << 32 | 1


def given_router(**settings: Any) -> tuple[Estate, Node, Node, Node]:
    """Three queue managers: A and B, who know each other over R alone."""
    estate = routed_estate()
    a, r, b = (estate.node(name, n, **settings) for n, name in enumerate("ARB", start=1))
    hosts = estate.hosts
    a.transport.router = StaticRouter(hosts, {b.identifier: [r.identifier]})
    b.transport.router = StaticRouter(hosts, {a.identifier: [r.identifier]})
    return estate, a, r, b


def sent_by(node: Node) -> list[UserMessage]:
    """The user messages a node has sent, over all its lines."""
    lines: list[Line] = node.lines
    return [p for line in lines for p in line.packets if isinstance(p, UserMessage)]


def ordinary(packets: list[UserMessage]) -> list[UserMessage]:
    return [packet for packet in packets if from_user_message(packet) is None]


@pytest.mark.requirement(
    "QB-3.1.5.8.2-21", "QB-3.1.5.8.5-03", "QB-3.1.5.8-03", "QB-A13-01", "QB-3.1.1.1.1.4-02"
)
@pytest.mark.parametrize("recoverable", [True, False])
def test_a_router_passes_a_message_on_with_one_hop_more(recoverable: bool) -> None:
    # given a queue behind a router
    estate, a, r, b = given_router()
    queue = b.queue("orders")
    # when a message is sent to it
    a.send(b.private_name(queue), b"far", recoverable=recoverable, label="as it was")
    estate.advance(15)
    # then it is there, and the way was one hop long
    message = only(queue).packet
    assert bytes(message.properties.message_body) == b"far"
    assert message.user.flags & HOP_COUNT == 1
    assert r.transport.counters["passed on"] == 1
    # and nothing but the hop count has changed on the way
    (first,), (second,) = sent_by(a), sent_by(r)
    second.user.flags -= 1
    assert second.encode() == first.encode()
    # and nobody keeps a copy
    assert not any(len(q.positions) for node in (a, r) for q in node.core.outgoing.values())


@pytest.mark.requirement("QB-3.1.1.6.2-01", "QB-3.1.1.6.2-02", "QB-A57-01", "QB-3.1.5.8.6-01")
def test_a_router_takes_no_part_in_a_transactional_stream() -> None:
    """The guide's scenario 34."""
    # given a transactional queue behind a router
    estate, a, r, b = given_router()
    queue = b.queue("orders", transactional=True)
    # when messages are sent to it
    for number in range(1, 4):
        a.send(b.private_name(queue), b"%d" % number, transactional=True, journal=0x3)
    estate.advance(2)
    assert bodies(queue) == [b"1", b"2", b"3"]
    read(b, queue)
    estate.advance(2)
    # then the router has passed TransactionHeaders on as they were
    headers = [packet.transaction for packet in ordinary(sent_by(a))]
    assert [p.transaction for p in ordinary(sent_by(r)) if p.transaction] == headers
    # and has no streams; the acknowledgments that it has sent are those of B, to A
    assert list(r.store.scan("incoming_streams")) == []
    assert list(r.store.scan("outgoing_streams")) == []
    acks = [p for p in sent_by(r) if from_user_message(p) is not None]
    kinds = [type(from_user_message(p)) for p in acks]
    assert sorted(kinds, key=str) == [FinalAck, OrderAck]
    assert {p.user.source_queue_manager for p in acks} == {b.transport.guid}
    assert {p.user.queue_manager_address for p in acks} == {a.transport.guid}
    # and A knows the end of the first message
    assert len(a.core.journal.positions) == 1
    assert len(a.outgoing(b.private_name(queue)).positions) == 2


@pytest.mark.requirement(
    "QB-3.1.5.8.2-22",
    "QB-3.1.5.8.2-23",
    "QB-3.1.5.8.2-24",
    "QB-3.1.5.8.2-25",
    "QB-A16-01",
)
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("hops", [HOP_COUNT_MAX - 1, HOP_COUNT_MAX])
def test_after_29_hops_a_message_has_come_too_far(
    hops: int, transactional: bool, asked: bool
) -> None:
    """The guide's scenario 41."""
    # given a message that has gone through many routers
    estate, _, r, b = given_router()
    queue = b.queue("orders", transactional=transactional)
    peer = RawPeer(r).open(direct=False)
    estate.hosts[UUID(bytes_le=peer.guid)] = peer.address
    # when it comes to one more
    peer.send(
        queue.private_queue_number,
        address=b.transport.guid,
        transaction=(S1, 1, 0) if transactional else None,
        flags=hops,
        admin=5,
        acknowledgements=NEGATIVE_ARRIVAL if asked else 0,
    )
    estate.advance(1)
    # then it goes on if that makes 29, and else its sender is told
    is_refused = hops == HOP_COUNT_MAX
    assert len(bodies(queue)) == (not is_refused)
    exceeded = MessageClass.NACK_HOP_COUNT_EXCEEDED
    finals = [a.message_class for a in peer.final_acks if a.message_class == exceeded]
    assert finals == [exceeded] * (is_refused and transactional)
    assert peer.classes == [exceeded] * (is_refused and asked)
    assert r.transport.refusals[exceeded] == is_refused
    assert not peer.is_closed


@pytest.mark.requirement("QB-3.1.5.8.2-01")
def test_a_router_without_room_takes_nothing_and_keeps_nothing() -> None:
    # given a router whose quota is used up
    estate, a, r, b = given_router()
    queue = b.queue("orders")
    r.core.settings.quota_kilobytes = 1
    name = b.private_name(queue)
    # when a message comes
    a.send(name, bytes(4000), recoverable=True)
    estate.settle()
    # then it is with its sender, nobody is told that it was refused
    assert len(a.outgoing(name).positions) == 1
    assert r.transport.refusals.total() == 0
    assert not any(len(q.positions) for q in r.core.outgoing.values())
    # and when there is room, it gets through
    r.core.settings.quota_kilobytes = 1000
    estate.advance(60)
    assert len(bodies(queue)) == 1
    assert len(a.outgoing(name).positions) == 0


def test_a_router_drops_what_took_too_long() -> None:
    estate, _, r, b = given_router()
    queue = b.queue("orders")
    peer = RawPeer(r).open()
    peer.send(
        queue.private_queue_number,
        address=b.transport.guid,
        time_to_reach_queue=5,
        age=7,
        admin=ACKS,
        acknowledgements=NEGATIVE_ARRIVAL,
    )
    estate.advance(1)
    assert bodies(queue) == []
    assert peer.classes == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]


def test_an_address_of_another_does_not_open_our_own_queues() -> None:
    """Else whoever gives a false address would get past all that a queue asks for."""
    # given a public, transactional queue of ours
    _, _, r, b = given_router(send_insecure_nacks=True)
    path = PathName.parse(r".\letters")
    queue: Queue = r.run(
        lambda: create_queue(r.core, path, skip_directory=True, identifier=PUBLIC_QUEUE)
    )
    queue.properties.authentication = True
    peer = RawPeer(r).open()
    # when a message names it, with the address of another queue manager
    peer.send(
        PUBLIC_QUEUE.bytes_le,
        address=b.transport.guid,
        admin=ACKS,
        acknowledgements=NEGATIVE_ARRIVAL,
    )
    # then it is refused
    assert bodies(queue) == []
    assert peer.classes == [MessageClass.NACK_BAD_DST_Q]


def test_an_address_that_nobody_knows_costs_the_router_no_session() -> None:
    estate, _, r, _ = given_router()
    peer = RawPeer(r).open()
    peer.send(4711, address=bytes(range(16)))
    estate.advance(10)
    assert not peer.is_closed
    assert r.transport.counters["passed on"] == 1


def test_what_a_router_has_not_passed_on_survives_its_power_failure() -> None:
    # given a router that has taken a message, and cannot reach the next hop
    estate, a, r, b = given_router()
    queue = b.queue("orders")
    name = b.private_name(queue)
    estate.refusing.add(b.address)
    a.send(name, b"far", recoverable=True)
    estate.advance(15)
    assert len(a.outgoing(name).positions) == 0
    # when its power fails, and then the way is free
    r.restart()
    estate.refusing.clear()
    estate.advance(20)
    # then the message arrives
    assert bodies(queue) == [b"far"]


def test_a_router_keeps_no_journal_and_no_dead_letters_of_others() -> None:
    # given a message that its sender wants journaled
    estate, a, r, b = given_router()
    queue = b.queue("orders")
    a.send(b.private_name(queue), b"far", recoverable=True, journal=_both())
    estate.advance(15)
    # then the only copy is at its sender
    assert len(a.core.journal.positions) == 1
    assert len(r.core.journal.positions) == 0
    assert len(r.core.dead_letter.positions) == 0
    assert bodies(queue) == [b"far"]


def _both() -> int:
    return (JOURNAL_NEGATIVE | JOURNAL_POSITIVE) >> 8


def test_a_message_goes_on_only_when_the_router_has_it_on_disk() -> None:
    estate, a, r, b = given_router()
    queue = b.queue("orders")
    r.holds_commits = True
    a.send(b.private_name(queue), b"far", recoverable=True)
    estate.advance(5)
    assert bodies(queue) == []
    run(r, r.release_commits)
    assert bodies(queue) == [b"far"]


@pytest.mark.requirement("QB-3.1.5.8.2-22", "QB-3.1.5.8.2-23")
@pytest.mark.parametrize("transactional", [True, False])
def test_a_message_that_goes_in_a_circle_ends_with_a_nack(transactional: bool) -> None:
    # given two routers, each of which takes the other for the way to B
    estate, a, r, b = given_router()
    s = estate.node("S", 4)
    queue = b.queue("orders", transactional=transactional)
    acks = a.queue("acks")
    for router, other in ((r, s), (s, r)):
        router.transport.router = StaticRouter(estate.hosts, {b.identifier: [other.identifier]})
    # when a message comes between them
    a.send(
        b.private_name(queue),
        b"lost",
        transactional=transactional,
        recoverable=True,
        acknowledgements=Acknowledge.FULL_REACH_QUEUE,
        administration_queue=direct(a, "acks"),
    )
    estate.advance(30)
    # then it goes round until its hops are used up, and its sender is told
    assert bodies(queue) == []
    assert only(acks).packet.properties.message_class == MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert r.transport.counters["passed on"] + s.transport.counters["passed on"] == HOP_COUNT_MAX
    assert len(a.outgoing(b.private_name(queue)).positions) == 0


def test_a_message_for_one_destination_too_many_stays_with_its_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estate, a, r, b = given_router()
    queue = b.queue("orders")
    monkeypatch.setattr("falconmq.manager.destinations.UNREACHED_MAX", 0)
    a.send(b.private_name(queue), b"far")
    estate.settle()
    assert r.transport.counters["sessions closed for lack of room"] == 1
    assert len(a.outgoing(b.private_name(queue)).positions) == 1
    monkeypatch.undo()
    estate.advance(15)
    assert bodies(queue) == [b"far"]
