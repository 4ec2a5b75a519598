"""AcceptorSession: MQQB 3.1.5.3.1, 3.1.5.4.1, 3.1.5.10."""

from __future__ import annotations

import pytest

from falconmq.transport.acceptor import AcceptorSession
from falconmq.transport.session import SessionOpened, SessionState
from falconmq.transport.settings import TransportSettings
from falconmq.wire import internal_header
from falconmq.wire.base_header import INTERNAL
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.internal_header import CONNECTION_REFUSED, InternalHeader
from tests.transport.session_helpers import (
    ADDRESS,
    EXPRESS,
    NULL,
    OTHER,
    PEER,
    RECOVERABLE,
    SETTINGS,
    US,
    assert_state,
    close_reason,
    in_state,
    new_acceptor,
    open_acceptor,
    receive,
    request,
    send,
    sent_data,
    sent_packets,
)


@pytest.mark.requirement(
    "QB-3.1.5.10-01", "QB-3.1.5.10-02", "QB-3.1.5.10-04", "QB-A58-01", "QB-3.1.3.2-35"
)
def test_an_accepted_connection_waits_for_the_first_packet() -> None:
    session = AcceptorSession(SETTINGS, US, ADDRESS, 100.0)
    assert_state(session, SessionState.WAITING_EC_MSG)
    assert session.remote_address == ADDRESS
    assert session.deadline == 160.0
    assert session.data_to_send() == []
    assert (session.messages_sent, session.messages_received, session.unacked) == (0, 0, 0)


@pytest.mark.requirement(
    "QB-3.1.5.3.1-01",
    "QB-3.1.5.3.1-04",
    "QB-3.1.5.3.1-05",
    "QB-3.1.5.3.1-06",
    "QB-3.1.5.3.1-07",
    "QB-3.1.5.3.1-09",
    "QB-3.1.5.3.1-10",
    "QB-3.1.5.3.1-11",
    "QB-3.1.5.3.1-13",
    "QB-3.1.5.3.1-14",
    "QB-3.1.5.3.1-02",
    "QB-2.2.3.1-03",
    "QB-2.2.3.1-07",
    "QB-2.2.3.1-19",
    "QB-A01-01",
    "QB-A02-01",
)
@pytest.mark.parametrize("server_guid", [US, NULL])
def test_a_request_for_us_or_for_nobody_is_accepted(server_guid: bytes) -> None:
    session = new_acceptor()
    session.receive_data(request(server_guid).encode(), 0.1)
    data = sent_data(session)
    assert len(data) == 572
    packet = EstablishConnection.decode(data)
    assert packet.base.flags & INTERNAL
    assert packet.internal.flags == internal_header.ESTABLISH_CONNECTION  # and CS is 0
    assert (packet.client_guid, packet.server_guid) == (PEER, US)
    assert packet.time_stamp == 4711
    assert packet.operating_system & 0xFF == 0x10
    assert packet.padding == b"\x5a" * 512
    assert_state(session, SessionState.WAITING_CP_MSG)
    assert session.remote_guid == PEER
    assert session.is_direct == (server_guid == NULL)
    assert session.events() == []


@pytest.mark.requirement("QB-3.1.5.3.1-12", "QB-2.2.3.1-11")
@pytest.mark.parametrize(("pinged", "session_bit"), [(True, 0), (False, 0x0100)])
def test_the_response_repeats_whether_we_were_pinged(pinged: bool, session_bit: int) -> None:
    session = new_acceptor()
    asked = EstablishConnection.request(PEER, US, uptime_ms=1, pinged=pinged)
    session.receive_data(asked.encode(), 0.1)
    (packet,) = sent_packets(session, EstablishConnection)
    assert packet.operating_system & 0x0100 == session_bit


@pytest.mark.requirement(
    "QB-3.1.5.3.1-08", "QB-2.2.1-09", "QB-A02-01", "QB-A07-01", "QB-3.1.1.1.1.2-02"
)
def test_a_request_for_another_queue_manager_is_refused_in_words() -> None:
    session = new_acceptor()
    session.receive_data(request(OTHER).encode(), 0.1)
    # then the refusal can still be sent, and the session is closed
    (packet,) = sent_packets(session, EstablishConnection)
    assert packet.refused
    assert (packet.client_guid, packet.server_guid) == (PEER, US)
    assert close_reason(session).startswith("refused: meant for")
    assert session.deadline is None


@pytest.mark.requirement("QB-2.2.1-10", "QB-A07-01")
def test_a_session_too_many_is_refused_in_words() -> None:
    session = AcceptorSession(SETTINGS, US, ADDRESS, 0.0, refused=True)
    session.receive_data(request().encode(), 0.1)
    (packet,) = sent_packets(session, EstablishConnection)
    assert packet.refused
    assert close_reason(session) == "refused by policy"


@pytest.mark.requirement(
    "QB-3.1.1.1.1.2-01",
    "QB-3.1.5.4.1-01",
    "QB-3.1.5.4.1-06",
    "QB-3.1.5.4.1-07",
    "QB-3.1.5.4.1-08",
    "QB-3.1.5.4.1-09",
    "QB-3.1.5.4.1-10",
    "QB-3.1.5.4.1-11",
    "QB-3.1.5.4.1-13",
    "QB-2.1.1-03",
)
def test_parameters_are_answered_with_our_window_and_open_the_session() -> None:
    # given an acceptor with a window of its own
    session = new_acceptor(TransportSettings(window_size=20))
    session.receive_data(request().encode(), 0.1)
    session.data_to_send()
    assert sent_data(session) == b""
    # when the peer proposes its parameters
    session.receive_data(ConnectionParameters(1496, 30_000, 64).encode(), 0.5)
    # then they are repeated, but for the window
    (packet,) = sent_packets(session, ConnectionParameters)
    assert packet.base.flags & INTERNAL
    assert packet.internal.flags == internal_header.CONNECTION_PARAMETERS  # and CS is 0
    assert (packet.recoverable_ack_timeout, packet.ack_timeout) == (1496, 30_000)
    assert packet.window_size == 20
    (event,) = session.events()
    assert isinstance(event, SessionOpened)
    assert_state(session, SessionState.OPEN)
    assert session.can_send
    assert session.opened_at == 0.5


@pytest.mark.requirement("QB-3.1.5.4.1-02", "QB-3.1.1.3.1-22")
def test_the_window_of_the_initiator_limits_what_is_sent() -> None:
    session = open_acceptor(parameters=ConnectionParameters(500, 20_000, 2))
    send(session, 1, 2)
    assert not session.can_send


@pytest.mark.requirement("QB-3.1.5.4.1-03", "QB-3.1.5.4.1-04", "QB-3.1.1.3.1-26")
@pytest.mark.parametrize(("is_direct", "factor"), [(False, 1), (True, 2)])
def test_the_initiator_says_how_long_to_wait_for_acknowledgements(
    is_direct: bool, factor: int
) -> None:
    session = open_acceptor(is_direct=is_direct, parameters=ConnectionParameters(500, 45_000))
    send(session, "a", now=0.0)
    assert session.deadline == 45.0 * factor
    # and an express message from the peer is acknowledged after half of it
    receive(session, EXPRESS, now=1.0)
    assert session.deadline == 1.0 + 22.5


@pytest.mark.requirement("QB-3.1.5.4.1-05", "QB-3.1.1.3.1-27")
def test_the_initiator_says_when_recoverable_messages_are_acknowledged() -> None:
    session = open_acceptor(parameters=ConnectionParameters(1500, 20_000))
    receive(session, RECOVERABLE, now=1.0)
    session.settle(1, 2.0)
    assert session.deadline == 3.5


@pytest.mark.requirement("QB-A52-01")
def test_parameters_out_of_range_are_brought_to_the_nearest_limit() -> None:
    session = open_acceptor(parameters=ConnectionParameters(1, 5))
    # then a recoverable message is acknowledged after 500 ms
    receive(session, RECOVERABLE, now=1.0)
    session.settle(1, 2.0)
    assert session.deadline == 2.5
    # and a message that is sent may wait for 20 seconds
    session.acknowledge_now(2.5)
    send(session, "a", now=3.0)
    assert session.deadline == 23.0
    too_long = open_acceptor(parameters=ConnectionParameters(500, 1_000_000))
    send(too_long, "a", now=0.0)
    assert too_long.deadline == 120.0
    # and a window of 0 lets one message through
    narrow = open_acceptor(parameters=ConnectionParameters(500, 20_000, 0))
    assert narrow.can_send
    send(narrow, "a")
    assert not narrow.can_send


def test_refused_parameters_close_the_session() -> None:
    session = in_state(False, SessionState.WAITING_CP_MSG)
    refusal = ConnectionParameters(500, 20_000, internal=InternalHeader(3 | CONNECTION_REFUSED))
    session.receive_data(refusal.encode(), 0.2)
    assert "refused" in close_reason(session)
    assert session.data_to_send() == []


@pytest.mark.requirement(
    "QB-3.1.2.1-02", "QB-3.1.2.1-03", "QB-3.1.6.6-01", "QB-A08-01", "QB-3.1.1.1.1.2-02"
)
def test_a_peer_that_does_not_go_on_is_given_up() -> None:
    # given a connection accepted at 0, and another whose request came at 50
    silent, slow = new_acceptor(), new_acceptor()
    slow.receive_data(request().encode(), 50.0)
    slow.data_to_send()
    # then each has a minute from its last step
    assert (silent.deadline, slow.deadline) == (60.0, 110.0)
    silent.handle_timer(60.0)
    slow.handle_timer(109.0)
    assert close_reason(silent) == "not open after 60 seconds"
    assert_state(slow, SessionState.WAITING_CP_MSG)
    slow.handle_timer(110.0)
    assert close_reason(slow) == "not open after 60 seconds"
    assert slow.data_to_send() == []


@pytest.mark.requirement("QB-3.1.5.4.1-12", "QB-3.1.2.1-02")
def test_an_open_session_needs_no_initialization_timer() -> None:
    session = open_acceptor()
    session.handle_timer(61.0)
    assert_state(session, SessionState.OPEN)


@pytest.mark.requirement("QB-3.1.1.3.1-01")
def test_two_sessions_share_nothing() -> None:
    one, two = open_acceptor(), open_acceptor()
    send(one, "a")
    receive(one, EXPRESS)
    assert (one.messages_sent, one.messages_received, one.unacked) == (1, 1, 1)
    assert (two.messages_sent, two.messages_received, two.unacked) == (0, 0, 0)
    assert two.events() == []
    assert two.data_to_send() == []
