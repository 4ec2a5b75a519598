"""Asking before connecting (MQQB 3.1.5.2.2, 3.1.7.6 to 3.1.7.8)."""

from __future__ import annotations

from functools import partial

import pytest

from falconmq.errors import MqStatus
from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.transport.settings import PING_PORT, TransportSettings
from falconmq.wire.establish_connection import SESSION_NOT_PINGED, EstablishConnection
from falconmq.wire.ping import Ping
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.played_peer import given_routes, history, state_of

RETRY = TransportSettings().try_connect_interval


def given_two(**settings: object) -> tuple[Estate, Node, Node]:
    estate = Estate()
    here = estate.node("SALES01", 1, ping_enabled=True)
    return estate, here, estate.node("SALES02", 2, ping_answered=True, **settings)


def answer_pings(asker: Node, asked: Node) -> None:
    """Carry the datagrams there, and the answers back."""
    for data, address, port in asker.datagrams:
        assert (address, port) == (asked.address, PING_PORT)
        asked.run(
            partial(asked.transport.datagram_received, data, asker.address, 50_000, is_answer=False)
        )
    asker.datagrams.clear()
    for data, address, port in asked.datagrams:
        assert (address, port) == (asker.address, 50_000)
        asker.run(
            partial(
                asker.transport.datagram_received, data, asked.address, PING_PORT, is_answer=True
            )
        )
    asked.datagrams.clear()


@pytest.mark.requirement("QB-3.1.5.2.2-01", "QB-3.1.5.2.2-02", "QB-3.1.5.2.2-03")
def test_peer_is_pinged_at_its_address_and_then_connected() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    here.send(r"DIRECT=OS:SALES02\private$\orders", b"one")
    estate.settle()
    # nothing but a ping to the resolved address
    (datagram,) = here.datagrams
    assert datagram[1:] == (there.address, PING_PORT)
    assert here.lines == []
    # when it is welcome
    answer_pings(here, there)
    estate.settle()
    assert bodies(orders) == [b"one"]
    request = here.lines[0].packets[0]
    assert isinstance(request, EstablishConnection)
    assert not request.operating_system & SESSION_NOT_PINGED


@pytest.mark.requirement("DM-3.1.1.3-22")
@pytest.mark.requirement("QB-3.1.5.2.2-04", "QB-3.1.5.2.2-05", "QB-3.1.6.1-04")
def test_refused_ping_is_a_failure_and_the_retry_connects_without_one() -> None:
    estate, here, there = given_two(sessions_max=0)
    there.queue("orders")
    name = direct(there, "orders")
    estate.names[there.address] = [there.address, "10.0.0.9"]
    here.send(name, b"one")
    estate.settle()
    answer_pings(here, there)
    estate.settle()
    queue = here.outgoing(name)
    (attempt,) = queue.connection_history
    assert attempt.status is ConnectionStatus.PING_FAILURE
    assert attempt.time == estate.clock.time()
    assert attempt.error is MqStatus.SERVICE_NOT_AVAILABLE
    assert attempt.addresses == (there.address,)
    assert here.lines == []
    # when the retry comes, the next address is connected without a ping
    estate.advance(RETRY - 0.1)
    assert len(queue.connection_history) == 1
    estate.advance(0.2)
    assert here.datagrams == []
    assert queue.connection_history[-1].status is ConnectionStatus.CONNECTION_REFUSED
    assert queue.connection_history[-1].addresses == ("10.0.0.9",)


@pytest.mark.requirement("QB-3.1.5.2.2-01")
def test_peer_that_answers_no_ping_is_connected_all_the_same_by_the_retry() -> None:
    # given a peer that does not answer pings, as Windows since Vista
    estate, here, there = given_two()
    orders = there.queue("orders")
    here.send(direct(there, "orders"), b"one")
    estate.advance(1.1)
    assert len(here.datagrams) == 1
    # when the retry comes, which resolves its only name again
    estate.advance(RETRY)
    # then no second ping is sent
    assert len(here.datagrams) == 1
    assert bodies(orders) == [b"one"]


@pytest.mark.requirement("QB-3.1.5.2.2-04", "QB-3.1.5.2.2-05")
def test_ping_without_an_answer_fails_after_a_second() -> None:
    estate, here, there = given_two()
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.advance(0.9)
    queue = here.outgoing(name)
    assert history(queue) == []
    estate.advance(0.2)
    assert history(queue) == [ConnectionStatus.PING_FAILURE]
    assert here.lines == []


def test_answer_to_another_question_is_no_answer() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.settle()
    ((data, _, _),) = here.datagrams
    ping = Ping.decode(data)
    foreign = Ping(0, ping.cookie + 1, there.identifier.bytes_le).encode()
    here.run(
        partial(here.transport.datagram_received, foreign, there.address, PING_PORT, is_answer=True)
    )
    estate.settle()
    assert here.lines == []
    answer_pings(here, there)
    estate.settle()
    assert state_of(here.outgoing(name)) is OutgoingState.CONNECTED


def test_two_names_of_one_address_need_one_ping() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    here.send(direct(there, "orders"), b"1")
    here.send(r"DIRECT=OS:SALES02\private$\orders", b"2")
    estate.settle()
    assert len(here.datagrams) == 1
    answer_pings(here, there)
    estate.settle()
    assert sorted(bodies(orders)) == [b"1", b"2"]
    assert len(here.lines) == 1


@pytest.mark.requirement("QB-3.1.5.2.2-01")
def test_nobody_is_pinged_by_default() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    there.queue("orders")
    here.send(direct(there, "orders"), b"one")
    estate.settle()
    assert here.datagrams == []
    request = here.lines[0].packets[0]
    assert isinstance(request, EstablishConnection)
    assert request.operating_system & SESSION_NOT_PINGED


@pytest.mark.parametrize("is_answered", [True, False])
def test_ping_is_forgotten_when_the_other_side_connects_first(is_answered: bool) -> None:
    estate, here, there = given_two()
    given_routes(estate)
    orders, answers = here.queue("orders"), there.queue("answers")
    here.send(there.private_name(answers), b"answer")
    estate.settle()
    there.send(here.private_name(orders), b"question")
    estate.settle()
    assert bodies(answers) == [b"answer"]
    if is_answered:
        answer_pings(here, there)
    estate.advance(20.0)
    assert len(here.lines) == 1
    assert ConnectionStatus.PING_FAILURE not in history(here.outgoing(there.private_name(answers)))
