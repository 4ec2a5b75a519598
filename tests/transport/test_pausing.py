"""Pause and resume of outgoing queues (MQQB 3.1.7.13, 3.1.7.14)."""

from __future__ import annotations

import pytest

from falconmq.manager.dispatch import add_message_to_dispatch_collection, held_dispatch
from falconmq.manager.states import OutgoingState
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.played_peer import PlayedPeer, history, sent_bodies, state_of


def given_two() -> tuple[Estate, Node, Node]:
    estate = Estate()
    return estate, estate.node("SALES01", 1), estate.node("SALES02", 2)


def pause(node: Node, name: str) -> None:
    node.run(node.transport.pause, node.outgoing(name))


def resume(node: Node, name: str) -> None:
    node.run(node.transport.resume, node.outgoing(name))


@pytest.mark.requirement("QB-3.1.7.13-11", "QB-3.1.7.12-03", "QB-3.1.7.1-02", "QB-3.1.7.14-03")
def test_paused_queue_sends_nothing_until_it_is_resumed() -> None:
    estate, here, there = given_two()
    name = direct(there, "orders")
    peer = PlayedPeer.given(estate, here, name)
    pause(here, name)
    assert state_of(here.outgoing(name)) is OutgoingState.ON_HOLD
    (ack,) = peer.acks
    assert ack.session.window_size == 1
    for number in range(3):
        here.send(name, b"%d" % number)
    estate.advance(5.0)
    peer.acknowledge(0)  # not even when something happens on the session
    assert peer.bodies == []
    assert len(here.outgoing(name).positions) == 3
    resume(here, name)
    assert peer.bodies == [b"0", b"1", b"2"]
    assert state_of(here.outgoing(name)) is OutgoingState.CONNECTED


@pytest.mark.requirement("QB-3.1.7.13-12")
def test_pause_takes_the_messages_of_its_queue_out_of_the_dispatch_collection() -> None:
    estate, here, there = given_two()
    orders, bills = direct(there, "orders"), direct(there, "bills")
    peer = PlayedPeer.given(estate, here, orders)
    peer.acknowledge(0, window=1)
    here.send(orders, b"full")
    here.send(orders, b"order")
    here.send(bills, b"bill")
    tables, collection = here.transport.tables, here.core.dispatch
    assert collection is not None
    with held_dispatch(here.core):  # as if a message were being sent at this moment
        for name in (orders, bills):
            queue = here.outgoing(name)
            position = queue.positions.find(max(queue.positions.available))
            assert position is not None
            add_message_to_dispatch_collection(here.core, tables[queue], position)
        pause(here, orders)
        assert len(collection) == 1
    assert peer.bodies == [b"full"]


def test_other_queues_of_the_session_go_on() -> None:
    estate, here, there = given_two()
    orders, bills = there.queue("orders"), there.queue("bills")
    for name in ("orders", "bills"):
        here.send(direct(there, name), b"hello")
    estate.settle()
    pause(here, direct(there, "orders"))
    here.send(direct(there, "orders"), b"order")
    here.send(direct(there, "bills"), b"bill")
    estate.settle()
    assert bodies(orders) == [b"hello"]
    assert bodies(bills) == [b"hello", b"bill"]
    resume(here, direct(there, "orders"))
    estate.settle()
    assert bodies(orders) == [b"hello", b"order"]


@pytest.mark.requirement("QB-3.1.7.14-04")
def test_resumed_session_counts_as_active() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"hello")
    estate.advance(305.0)  # past the first look for idle sessions, at 300
    pause(here, name)
    here.send(name, b"one")
    estate.advance(290.0)
    resume(here, name)
    estate.advance(10.0)  # the second look
    assert len(here.transport.sessions) == 1
    assert bodies(orders) == [b"hello", b"one"]


@pytest.mark.requirement("QB-3.1.7.14-01", "QB-3.1.7.14-02", "QB-3.1.5.9-07")
def test_resume_connects_if_messages_wait_and_the_session_is_gone() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"hello")
    estate.advance(15.0)
    pause(here, name)
    here.send(name, b"one")
    estate.cut(here.lines[0])
    estate.advance(60.0)
    # nobody connects for a queue on hold, and it stays on hold
    assert len(here.lines) == 1
    assert state_of(here.outgoing(name)) is OutgoingState.ON_HOLD
    resume(here, name)
    estate.settle()
    assert bodies(orders) == [b"hello", b"one"]


@pytest.mark.requirement("QB-3.1.7.14-01")
def test_resume_connects_nowhere_if_nothing_waits() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"hello")
    estate.advance(15.0)
    pause(here, name)
    estate.cut(here.lines[0])
    resume(here, name)
    estate.advance(60.0)
    assert len(here.lines) == 1


@pytest.mark.requirement("QB-3.1.5.2.3-14", "QB-3.1.5.4.2-07")
def test_queue_that_is_paused_while_its_session_opens_stays_on_hold() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    pause(here, name)
    estate.settle()
    queue = here.outgoing(name)
    assert state_of(queue) is OutgoingState.ON_HOLD
    assert history(queue)[-1].value == "established"  # the session opens all the same
    assert bodies(orders) == []
    resume(here, name)
    estate.settle()
    assert bodies(orders) == [b"one"]


@pytest.mark.requirement("QB-3.1.5.9-02", "QB-3.1.5.9-06")
def test_queue_on_hold_stays_on_hold_when_its_session_ends() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.settle()
    pause(here, name)
    estate.cut(here.lines[0])
    assert state_of(here.outgoing(name)) is OutgoingState.ON_HOLD


def test_what_was_sent_before_the_pause_is_still_acknowledged() -> None:
    estate, here, there = given_two()
    name = direct(there, "orders")
    peer = PlayedPeer.given(estate, here, name)
    here.send(name, b"one", recoverable=True)
    pause(here, name)
    here.send(name, b"two", recoverable=True)
    peer.acknowledge(1, 1, 0b1)
    assert bodies(here.outgoing(name)) == [b"two"]
    assert peer.bodies == [b"one"]


def test_paused_transactional_queue_sends_nothing_again_before_it_is_resumed() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders", transactional=True)
    name = direct(there, "orders")
    there.holds_commits = True
    here.send_transaction(name, b"1", b"2")
    estate.settle()
    pause(here, name)
    estate.advance(35.0)  # its resend timer ends
    assert sum(len(sent_bodies(line)) for line in here.lines) == 2
    there.release_commits()
    resume(here, name)
    estate.advance(60.0)
    assert bodies(orders) == [b"1", b"2"]
    assert not len(here.outgoing(name).positions)
