"""Who shares a session: one for each address, direct and not (QB-A56)."""

from __future__ import annotations

import pytest

from falconmq.manager.states import OutgoingState
from falconmq.transport.session import SessionState
from falconmq.wire.guid import NULL_GUID
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.played_peer import given_routes, history, sent_bodies, state_of


def given_two() -> tuple[Estate, Node, Node]:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    given_routes(estate)
    return estate, here, there


@pytest.mark.requirement("QB-A56-01")
def test_queues_of_one_host_share_one_session() -> None:
    estate, here, there = given_two()
    orders, bills = there.queue("orders"), there.queue("bills")
    here.send(direct(there, "orders"), b"order")
    here.send(direct(there, "bills"), b"bill")
    estate.settle()
    assert len(here.lines) == 1
    assert (bodies(orders), bodies(bills)) == ([b"order"], [b"bill"])
    # and one that comes later, when the session is open, joins it
    letters = there.queue("letters")
    here.send(direct(there, "letters"), b"letter")
    estate.settle()
    assert len(here.lines) == 1
    assert bodies(letters) == [b"letter"]
    queue = here.outgoing(direct(there, "letters"))
    assert queue.next_hops == [f"IP={there.address}"]
    assert history(queue)[-1].value == "established"


@pytest.mark.requirement("QB-A56-01")
def test_two_names_of_one_address_share_one_session() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    estate.names["alias"] = [there.address]
    here.send(direct(there, "orders"), b"1")
    here.send(r"DIRECT=OS:SALES02\private$\orders", b"2")
    here.send(r"DIRECT=OS:alias\private$\orders", b"3")
    estate.settle()
    assert len(here.lines) == 1
    assert sorted(bodies(orders)) == [b"1", b"2", b"3"]
    # when it breaks, all of them connect again, over one session
    there.holds_commits = True
    for name in ("SALES02", "alias"):
        here.send(rf"DIRECT=OS:{name}\private$\orders", name.encode(), recoverable=True)
    estate.settle()
    estate.cut(here.lines[0])
    there.release_commits()
    estate.advance(30.0)
    assert len(here.lines) == 2
    assert sorted(bodies(orders)) == [b"1", b"2", b"3", b"SALES02", b"alias"]
    for name in ("SALES02", "alias"):
        assert not len(here.outgoing(rf"DIRECT=OS:{name}\private$\orders").positions)


@pytest.mark.requirement("QB-A56-01")
def test_direct_and_other_names_never_share_a_session() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    here.send(direct(there, "orders"), b"direct")
    estate.settle()
    here.send(there.private_name(orders), b"private")
    estate.settle()
    first, second = here.lines
    assert sent_bodies(first) == [b"direct"]
    assert sent_bodies(second) == [b"private"]
    assert first.packets[0].server_guid == NULL_GUID
    assert second.packets[0].server_guid == there.identifier.bytes_le
    # and later messages keep to their own
    here.send(direct(there, "orders"), b"d")
    here.send(there.private_name(orders), b"p")
    estate.settle()
    assert sent_bodies(first) == [b"direct", b"d"]
    assert sent_bodies(second) == [b"private", b"p"]
    assert [s.is_direct for s in here.transport.sessions] == [True, False]


def test_queue_manager_at_the_address_of_another_is_not_sent_its_messages() -> None:
    # given two queue managers whose hosts have one address
    estate, here, there = given_two()
    other = estate.node("SALES03", 3)
    orders, bills = there.queue("orders"), other.queue("bills")
    given_routes(estate)
    estate.names["sales03"] = [there.address]
    here.send(there.private_name(orders), b"order")
    here.send(other.private_name(bills), b"bill")
    estate.advance(12.0)
    assert bodies(orders) == [b"order"]
    assert sent_bodies(here.lines[0]) == [b"order"]
    assert all(sent_bodies(line) == [] for line in here.lines[1:])
    assert state_of(here.outgoing(other.private_name(bills))) is not OutgoingState.CONNECTED


@pytest.mark.requirement("QB-3.1.7.1-04")
def test_session_that_the_peer_has_opened_carries_our_messages_too() -> None:
    # given a session of theirs for a queue of ours, known by our identifier
    estate, here, there = given_two()
    orders, answers = here.queue("orders"), there.queue("answers")
    there.send(here.private_name(orders), b"question")
    estate.settle()
    (session,) = here.transport.sessions
    here.send(there.private_name(answers), b"answer")
    estate.settle()
    assert here.transport.sessions == [session]
    assert bodies(answers) == [b"answer"]
    assert state_of(here.outgoing(there.private_name(answers))) is OutgoingState.CONNECTED
    # when it breaks while messages wait, we connect ourselves
    here.lines[0].is_closed = False
    there.holds_commits = True
    here.send(there.private_name(answers), b"more", recoverable=True)
    estate.settle()
    estate.cut(here.lines[0])
    there.release_commits()
    estate.advance(30.0)
    assert bodies(answers) == [b"answer", b"more"]
    assert not len(here.outgoing(there.private_name(answers)).positions)


@pytest.mark.parametrize("is_direct", [True, False])
def test_two_that_connect_to_each_other_at_the_same_moment_both_deliver(is_direct: bool) -> None:
    estate, here, there = given_two()
    ours, theirs = here.queue("ours"), there.queue("theirs")
    to_them = direct(there, "theirs") if is_direct else there.private_name(theirs)
    to_us = direct(here, "ours") if is_direct else here.private_name(ours)
    # when each has sent its request before it has seen the other's
    here.send(to_them, b"there")
    there.send(to_us, b"here")
    estate.settle()
    assert bodies(ours) == [b"here"]
    assert bodies(theirs) == [b"there"]
    # then what they send later arrives once, and everything is acknowledged
    for number in range(10):
        here.send(to_them, b"there%d" % number, recoverable=True)
        there.send(to_us, b"here%d" % number, recoverable=True)
        estate.settle()
    estate.advance(30.0)
    assert bodies(ours) == [b"here", *(b"here%d" % n for n in range(10))]
    assert bodies(theirs) == [b"there", *(b"there%d" % n for n in range(10))]
    assert not len(here.outgoing(to_them).positions)
    assert not len(there.outgoing(to_us).positions)
    # and both fall silent in the end: idle sessions are closed, not opened again
    estate.advance(1000.0)
    assert here.transport.sessions == []
    assert there.transport.sessions == []


def test_host_that_was_moved_to_an_open_session_does_not_retry_as_well() -> None:
    # given messages that wait for a host that refuses, while its session to us is open
    estate, here, there = given_two()
    orders, answers = here.queue("orders"), there.queue("answers")
    estate.refusing.add(there.address)
    here.send(there.private_name(answers), b"waits")
    estate.settle()
    assert len(here.lines) == 0
    # when the host itself connects
    there.send(here.private_name(orders), b"question")
    estate.settle()
    assert bodies(answers) == [b"waits"]
    (session,) = here.transport.sessions
    assert session.state is SessionState.OPEN
    estate.refusing.clear()
    estate.advance(20.0)
    assert here.transport.sessions == [session]
    assert len(here.lines) == 1


def test_what_waits_for_a_direct_name_does_not_go_over_a_session_that_is_none() -> None:
    # given a message to a direct name that waits for a host that refuses
    estate, here, there = given_two()
    orders, answers = here.queue("orders"), there.queue("answers")
    estate.refusing.add(there.address)
    here.send(direct(there, "answers"), b"waits")
    estate.settle()
    # when the host itself connects, by our identifier
    there.send(here.private_name(orders), b"question")
    estate.settle()
    assert bodies(orders) == [b"question"]
    # then that session is not for it: it has one of its own as soon as it can be had
    assert bodies(answers) == []
    estate.refusing.clear()
    estate.advance(20.0)
    assert bodies(answers) == [b"waits"]
    assert [session.is_direct for session in here.transport.sessions] == [False, True]
