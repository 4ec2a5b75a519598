"""Messages whose time runs out on the way (MQQB 3.1.7.1.2), and reports of those that leave."""

from __future__ import annotations

import pytest

from falconmq.manager.model import Queue
from falconmq.message import INFINITE, Acknowledge, Journal
from falconmq.wire.message_class import MessageClass
from tests.transport.answers import PUBLIC_QUEUE, given_public_queue
from tests.transport.estate import Estate, Node, bodies, direct, only
from tests.transport.played_peer import PlayedPeer, transaction_of

NEGATIVE = Acknowledge.NEGATIVE_ARRIVAL
DEAD_LETTER = Journal.DEAD_LETTER


def given_two(**settings: bool) -> tuple[Estate, Node, Node]:
    estate = Estate()
    return estate, estate.node("SALES01", 1, **settings), estate.node("SALES02", 2)


def given_silent_peer(**settings: bool) -> tuple[Estate, Node, str]:
    """Messages to this name wait: nobody listens there."""
    estate, here, there = given_two(**settings)
    estate.refusing.add(there.address)
    return estate, here, direct(there, "orders")


def given_played_peer() -> tuple[Estate, Node, str, PlayedPeer]:
    estate, here, there = given_two()
    name = direct(there, "orders")
    return estate, here, name, PlayedPeer.given(estate, here, name)


def class_of_only(queue: Queue) -> int:
    return only(queue).packet.properties.message_class


def count(node: Node, name: str) -> int:
    return len(node.outgoing(name).positions)


# While it waits


@pytest.mark.requirement("MQ-2.2.19.2-25")
@pytest.mark.requirement("QB-3.1.7.1.2-03", "QB-3.1.7.1.2-04", "QB-3.1.7.1.2-06")
@pytest.mark.requirement("QB-3.1.1.1.1.3-02", "DM-3.1.1.12-77")
def test_message_that_waits_too_long_is_dead_lettered_and_its_sender_hears_of_it() -> None:
    estate, here, name = given_silent_peer()
    admin = here.queue("admin")
    here.send(
        name,
        b"one",
        time_to_reach_queue=10,
        acknowledgements=NEGATIVE,
        administration_queue=direct(here, "admin"),
        journal=DEAD_LETTER,
    )
    estate.advance(10.5)
    assert count(here, name) == 1
    estate.advance(1.0)
    assert count(here, name) == 0
    assert bodies(here.core.dead_letter) == [b"one"]
    assert class_of_only(admin) == MessageClass.NACK_REACH_QUEUE_TIMEOUT
    assert bodies(here.core.transactional_dead_letter) == []


@pytest.mark.requirement("QB-3.1.7.1.2-04", "QB-3.1.7.1.2-06")
def test_expired_message_leaves_in_silence_if_its_sender_asked_for_nothing() -> None:
    estate, here, name = given_silent_peer()
    admin = here.queue("admin")
    here.send(name, b"one", time_to_reach_queue=1, administration_queue=direct(here, "admin"))
    estate.advance(30.0)
    assert count(here, name) == 0
    assert bodies(admin) == []
    assert bodies(here.core.dead_letter) == []


@pytest.mark.requirement("MQ-2.2.19.2-25")
@pytest.mark.requirement("QB-3.1.7.1.2-05", "QB-3.1.1.1.1.7-02")
@pytest.mark.parametrize("has_own_queue", [False, True])
def test_expired_transactional_message_goes_to_the_dead_letter_queue_of_its_kind(
    has_own_queue: bool,
) -> None:
    estate, here, name = given_silent_peer()
    own = here.queue("mine", transactional=True)
    path = r".\private$\mine" if has_own_queue else ""
    properties = {"time_to_reach_queue": 5, "journal": DEAD_LETTER}
    here.send(name, b"one", transactional=True, dead_letter_queue=path, **properties)
    estate.advance(10.0)
    expected = [b"one"]
    assert bodies(own) == (expected if has_own_queue else [])
    assert bodies(here.core.transactional_dead_letter) == ([] if has_own_queue else expected)
    assert bodies(here.core.dead_letter) == []
    assert count(here, name) == 0


@pytest.mark.requirement("QB-A44-01", "QB-3.1.7.1.2-02")
def test_message_without_a_limit_waits_for_ever() -> None:
    estate, here, name = given_silent_peer()
    here.send(name, b"one", time_to_reach_queue=INFINITE, time_to_be_received=INFINITE)
    for _ in range(3):
        estate.clock.advance(10 * 365 * 86_400.0)
        here.run(here.core.run_timers)
    assert count(here, name) == 1
    estate.refusing.clear()
    orders = estate.nodes["10.0.0.2"].queue("orders")
    estate.advance(10.0)
    assert bodies(orders) == [b"one"]


@pytest.mark.requirement("QB-A44-01")
def test_message_that_nobody_could_read_in_time_any_more_is_not_sent() -> None:
    estate, here, name = given_silent_peer()
    properties = {"time_to_reach_queue": INFINITE, "time_to_be_received": 5}
    here.send(name, b"one", journal=DEAD_LETTER, **properties)
    estate.advance(10.0)
    assert count(here, name) == 0
    assert bodies(here.core.dead_letter) == [b"one"]


# At the moment of sending


@pytest.mark.requirement("MQ-2.2.19.1-38")
@pytest.mark.requirement("QB-3.1.7.1.2-01", "QB-3.1.7.1.2-02", "QB-3.1.7.1.2-03", "QB-3.1.7.1-05")
@pytest.mark.requirement("QB-A44-01")
@pytest.mark.parametrize("limit", ["time_to_reach_queue", "time_to_be_received"])
@pytest.mark.parametrize(("seconds", "is_sent"), [(10.0, True), (11.0, False)])
def test_time_is_checked_before_a_message_is_sent(
    seconds: float, is_sent: bool, limit: str
) -> None:
    # given a full window, and a message behind it
    estate, here, name, peer = given_played_peer()
    peer.acknowledge(0, window=1)
    here.send(name, b"first")
    here.send(name, b"second", **{limit: 10})
    # when its time is over and the window opens before any timer has run
    estate.clock.advance(seconds)
    peer.acknowledge(1, window=1)
    assert peer.bodies == ([b"first", b"second"] if is_sent else [b"first"])
    assert count(here, name) == int(is_sent)


@pytest.mark.requirement("QB-3.1.7.1.2-01")
def test_message_behind_an_expired_one_takes_its_place() -> None:
    estate, here, name, peer = given_played_peer()
    peer.acknowledge(0, window=1)
    here.send(name, b"first")
    for number in range(5):
        here.send(name, b"%d" % number, time_to_reach_queue=10)
    here.send(name, b"last")
    estate.clock.advance(12.0)
    peer.acknowledge(1, window=1)
    assert peer.bodies == [b"first", b"last"]


@pytest.mark.requirement("QB-A44-01")
def test_message_from_the_future_has_no_age() -> None:
    estate, here, name, peer = given_played_peer()
    peer.acknowledge(0, window=1)
    here.send(name, b"first")
    here.send(name, b"second", time_to_reach_queue=0)
    estate.clock.jump(-3600.0)  # somebody sets the clock back
    peer.acknowledge(1, window=1)
    assert peer.bodies == [b"first", b"second"]


@pytest.mark.requirement("QB-3.1.7.1.2-01")
def test_time_is_checked_before_a_message_is_sent_again() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    there.holds_commits = True
    here.send(name, b"one", recoverable=True, time_to_reach_queue=3)
    here.send(name, b"two", recoverable=True)
    estate.settle()
    estate.cut(here.lines[0])
    estate.advance(6.0)
    second = here.lines[1]
    sent = [bytes(p.properties.message_body) for p in second.packets[2:]]
    assert sent == [b"two"]


# While it is sent


@pytest.mark.requirement("QB-3.1.1.1.1.3-02")
@pytest.mark.parametrize("recoverable", [False, True])
def test_message_that_expires_unacknowledged_is_dead_lettered_and_its_late_ack_does_no_harm(
    recoverable: bool,
) -> None:
    estate, here, name, peer = given_played_peer()
    properties = {"recoverable": recoverable, "journal": DEAD_LETTER | Journal.JOURNAL}
    here.send(name, b"one", time_to_reach_queue=5, **properties)
    here.send(name, b"two", recoverable=recoverable)
    estate.advance(7.0)
    assert bodies(here.core.dead_letter) == [b"one"]
    assert bodies(here.outgoing(name)) == [b"two"]
    peer.acknowledge(2, int(recoverable), 0b11 if recoverable else 0)
    assert bodies(here.core.journal) == []
    assert bodies(here.core.dead_letter) == [b"one"]
    assert count(here, name) == 0
    assert len(here.transport.sessions) == 1


# After it arrived


def test_message_that_has_arrived_does_not_expire_at_its_sender() -> None:
    # given a transactional message that has arrived, whose sender wants to know its end
    estate, here, name, peer = given_played_peer()
    here.send(name, b"one", transactional=True, time_to_reach_queue=5, journal=DEAD_LETTER)
    (message,) = peer.messages
    peer.acknowledge(1, 1, 0b1)
    peer.order_ack(transaction_of(message).tx_sequence_id, 1)
    estate.advance(60.0)
    assert bodies(here.core.transactional_dead_letter) == []
    assert count(here, name) == 1
    # not even after a restart
    here.restart()
    estate.advance(60.0)
    assert bodies(here.core.transactional_dead_letter) == []
    assert count(here, name) == 1


def test_message_that_expires_in_its_queue_is_no_concern_of_the_way() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one", time_to_be_received=20, journal=DEAD_LETTER)
    estate.advance(12.0)
    assert count(here, name) == 0
    estate.advance(20.0)
    assert bodies(orders) == []
    assert bodies(here.core.dead_letter) == []
    assert bodies(there.core.dead_letter) == [b"one"]


# Reports


@pytest.mark.requirement("QB-3.1.7.1.7-01", "DM-3.1.1.12-48")
def test_traced_message_is_reported_when_it_leaves() -> None:
    estate, here, there = given_two(send_reports=True)
    there.queue("orders")
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    reports = given_public_queue(here.core)
    here.send(name, b"traced", trace=True, report_queue=PUBLIC_QUEUE)
    here.send(name, b"untraced", report_queue=PUBLIC_QUEUE)
    estate.advance(3.0)
    assert bodies(reports) == []  # it has not left yet
    estate.refusing.clear()
    estate.advance(3.0)
    report = only(reports).packet
    assert report.properties.message_class == MessageClass.REPORT
    text = bytes(report.properties.message_body).decode("utf-16-le")
    assert f"<NEXT HOP>{there.address}</NEXT HOP>" in text
