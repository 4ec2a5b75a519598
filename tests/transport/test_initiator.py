"""InitiatorSession: MQQB 3.1.5.2.3, 3.1.5.3.2, 3.1.5.4.2."""

from __future__ import annotations

import dataclasses

import pytest

from falconmq.transport.session import SessionOpened, SessionState
from falconmq.transport.settings import TransportSettings
from falconmq.wire import internal_header
from falconmq.wire.base_header import INTERNAL
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.internal_header import CONNECTION_REFUSED, InternalHeader
from tests.transport.session_helpers import (
    ADDRESS,
    NULL,
    OTHER,
    PEER,
    US,
    assert_state,
    close_reason,
    in_state,
    new_initiator,
    open_initiator,
    send,
    sent_data,
    sent_packets,
)


def parameters_after(round_trip: float, *, start: float = 0.0) -> ConnectionParameters:
    """What an initiator proposes when the response takes so long."""
    session = new_initiator()
    session.connected(start)
    (asked,) = sent_packets(session, EstablishConnection)
    session.receive_data(asked.response(PEER).encode(), start + round_trip)
    (parameters,) = sent_packets(session, ConnectionParameters)
    return parameters


@pytest.mark.requirement(
    "QB-3.1.5.2.3-03",
    "QB-3.1.5.2.3-04",
    "QB-3.1.5.2.3-05",
    "QB-3.1.5.2.3-06",
    "QB-3.1.5.2.3-07",
    "QB-3.1.5.2.3-08",
    "QB-3.1.5.2.3-10",
    "QB-3.1.5.2.3-11",
    "QB-2.2.3.1-02",
    "QB-2.2.3.1-04",
    "QB-2.2.3.1-06",
    "QB-2.2.3.1-09",
    "QB-2.2.3.1-13",
    "QB-2.2.3.1-17",
    "QB-2.2.3-02",
    "QB-2.2.3-03",
)
def test_a_connected_initiator_asks_for_a_session() -> None:
    # given a session for the queue manager PEER, 4294967.296 + 2.5 seconds after the start
    session = new_initiator(remote_guid=PEER)
    assert sent_data(session) == b""
    # when TCP is there
    session.connected(4_294_967.296 + 2.5)
    # then it asks PEER for a session, at a time stamp that has wrapped
    data = sent_data(session)
    assert len(data) == 572
    packet = EstablishConnection.decode(data)
    assert packet.base.flags & INTERNAL
    assert packet.internal.packet_type == internal_header.ESTABLISH_CONNECTION
    assert not packet.refused
    assert (packet.client_guid, packet.server_guid) == (US, PEER)
    assert packet.time_stamp == 2500
    assert packet.operating_system == 0x0310  # RE 0x10, SE, OS; no QS
    assert packet.reserved == 0
    assert_state(session, SessionState.WAITING_ECR_MSG)
    assert session.events() == []


@pytest.mark.requirement("QB-3.1.5.2.3-07", "QB-2.2.3.1-04")
@pytest.mark.parametrize("remote_guid", [None, PEER])
def test_with_a_direct_format_name_it_asks_for_nobody(remote_guid: bytes | None) -> None:
    session = new_initiator(remote_guid=remote_guid, is_direct=True)
    session.connected(0.0)
    (packet,) = sent_packets(session, EstablishConnection)
    assert packet.server_guid == NULL


@pytest.mark.requirement("QB-3.1.5.2.3-09", "QB-2.2.3.1-10")
@pytest.mark.parametrize(("pinged", "operating_system"), [(True, 0x0210), (False, 0x0310)])
def test_the_request_tells_whether_the_peer_was_pinged(pinged: bool, operating_system: int) -> None:
    session = new_initiator(pinged=pinged)
    session.connected(0.0)
    (packet,) = sent_packets(session, EstablishConnection)
    assert packet.operating_system == operating_system


@pytest.mark.requirement(
    "QB-3.1.1.1.1.1-01",
    "QB-3.1.5.3.2-01",
    "QB-3.1.5.3.2-06",
    "QB-3.1.5.3.2-07",
    "QB-3.1.5.3.2-08",
    "QB-3.1.5.3.2-10",
    "QB-3.1.5.3.2-11",
    "QB-3.1.5.3.2-12",
    "QB-3.1.5.4.2-01",
    "QB-3.1.5.4.2-05",
    "QB-2.1.1-03",
    "QB-2.2.2-02",
    "QB-2.2.2-03",
    "QB-2.2.2.1-03",
    "QB-3.1.3.2-23",
    "QB-3.1.3.2-26",
)
def test_it_opens_by_two_questions_and_two_answers() -> None:
    session = new_initiator()
    session.connected(0.0)
    (asked,) = sent_packets(session, EstablishConnection)
    # when PEER answers
    session.receive_data(asked.response(PEER).encode(), 0.1)
    # then the session proposes parameters
    data = sent_data(session)
    packet = ConnectionParameters.decode(data)
    assert len(data) == 32
    assert packet.base.flags & INTERNAL
    assert packet.internal.flags == internal_header.CONNECTION_PARAMETERS
    assert packet.ack_timeout == 20_000
    assert packet.window_size == 64
    assert packet.reserved == 0
    assert_state(session, SessionState.WAITING_CPR_MSG)
    assert session.events() == []
    # when these are answered too
    session.receive_data(packet.response().encode(), 0.25)
    # then it is open, and nothing more is said
    (event,) = session.events()
    assert isinstance(event, SessionOpened)
    assert_state(session, SessionState.OPEN)
    assert session.can_send
    assert session.opened_at == 0.25
    assert session.data_to_send() == []
    assert session.remote_address == ADDRESS


@pytest.mark.requirement("QB-3.1.3.2-26", "QB-3.1.5.3.2-10", "QB-3.1.5.3.2-11", "QB-2.2.2.1-02")
@pytest.mark.parametrize(
    ("ack_wait_timeout", "ack_timeout"), [(30.0, 32_000), (1.0, 20_000), (500.0, 120_000)]
)
def test_the_parameters_are_those_of_the_settings(
    ack_wait_timeout: float, ack_timeout: int
) -> None:
    settings = TransportSettings(
        ack_wait_timeout=ack_wait_timeout, round_trip_delay=2.0, window_size=17
    )
    session = new_initiator(settings)
    session.connected(0.0)
    (asked,) = sent_packets(session, EstablishConnection)
    session.receive_data(asked.response(PEER).encode(), 0.1)
    (packet,) = sent_packets(session, ConnectionParameters)
    assert (packet.ack_timeout, packet.window_size) == (ack_timeout, 17)


@pytest.mark.requirement("QB-3.1.5.3.2-04", "QB-3.1.5.3.2-05", "QB-3.1.5.3.2-09", "QB-2.2.2.1-01")
@pytest.mark.parametrize(
    ("round_trip", "timeout_ms"),
    [(0.1875, 1496), (0.010, 500), (0.0, 500), (0.0625, 500), (1.0, 8000), (20.0, 120_000)],
)
def test_recoverable_messages_are_acknowledged_within_eight_round_trips(
    round_trip: float, timeout_ms: int
) -> None:
    assert parameters_after(round_trip).recoverable_ack_timeout == timeout_ms


@pytest.mark.requirement("QB-A53-01")
def test_the_round_trip_is_right_when_the_time_stamp_wraps() -> None:
    start = 4_294_967.296 - 0.5
    assert parameters_after(1.0, start=start).recoverable_ack_timeout == 8000


@pytest.mark.requirement("QB-3.1.5.3.2-02", "QB-3.1.5.3.2-03", "QB-3.1.1.1.1.1-02")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"client_guid": OTHER}, "the response is for queue manager"),
        ({"server_guid": OTHER}, "answered, not"),
        ({"server_guid": NULL}, "answered, not"),
        ({"internal": InternalHeader(2 | CONNECTION_REFUSED)}, "the peer refused the session"),
    ],
)
def test_an_invalid_response_closes_the_session(changes: dict[str, object], reason: str) -> None:
    session = new_initiator(remote_guid=PEER)
    session.connected(0.0)
    (asked,) = sent_packets(session, EstablishConnection)
    response = dataclasses.replace(asked.response(PEER), **changes)  # type: ignore[arg-type]
    session.receive_data(response.encode(), 0.1)
    assert reason in close_reason(session)
    assert session.data_to_send() == []


@pytest.mark.requirement("QB-A03-01", "QB-3.1.1.3.1-02")
def test_with_a_direct_format_name_it_learns_who_answers() -> None:
    session = new_initiator(remote_guid=None, is_direct=True)
    session.connected(0.0)
    (asked,) = sent_packets(session, EstablishConnection)
    session.receive_data(asked.response(OTHER).encode(), 0.1)
    assert_state(session, SessionState.WAITING_CPR_MSG)
    assert session.remote_guid == OTHER


def test_refused_parameters_close_the_session() -> None:
    session = in_state(True, SessionState.WAITING_CPR_MSG)
    refusal = ConnectionParameters(500, 20_000, internal=InternalHeader(3 | CONNECTION_REFUSED))
    session.receive_data(refusal.encode(), 0.2)
    assert "refused" in close_reason(session)


@pytest.mark.requirement("QB-3.1.5.4.2-02", "QB-3.1.1.3.1-22")
def test_the_window_of_the_acceptor_limits_what_is_sent() -> None:
    session = open_initiator(window_size=2)
    send(session, 1, 2)
    assert not session.can_send


@pytest.mark.requirement(
    "QB-3.1.5.2.3-13",
    "QB-3.1.6.6-01",
    "QB-3.1.2.1-01",
    "QB-3.1.2.1-03",
    "QB-3.1.1.1.1.1-02",
    "QB-3.1.1.1.1.1-03",
)
@pytest.mark.parametrize("state", [SessionState.WAITING_ECR_MSG, SessionState.WAITING_CPR_MSG])
def test_a_session_that_is_not_open_in_time_closes(state: SessionState) -> None:
    session = in_state(True, state)
    # when 60 seconds have passed since the request
    assert session.deadline == 60.0
    session.handle_timer(59.9)
    assert_state(session, state)
    session.handle_timer(60.0)
    # then it closes and says nothing to the peer
    assert close_reason(session) == "not open after 60 seconds"
    assert session.data_to_send() == []


@pytest.mark.requirement("QB-3.1.5.2.3-01", "QB-3.1.5.2.3-13")
def test_the_initialization_timer_runs_from_the_request() -> None:
    session = new_initiator()
    assert session.deadline is None
    session.connected(1000.0)
    assert session.deadline == 1060.0


@pytest.mark.requirement("QB-3.1.2.1-03")
def test_a_slow_line_gets_more_time_to_open() -> None:
    session = new_initiator(TransportSettings(round_trip_delay=5.0))
    session.connected(0.0)
    assert session.deadline == 70.0


@pytest.mark.requirement("QB-3.1.5.4.2-04", "QB-3.1.2.1-01")
def test_an_open_session_needs_no_initialization_timer() -> None:
    session = open_initiator()
    session.handle_timer(61.0)
    assert_state(session, SessionState.OPEN)


def test_an_initiator_that_closed_before_it_was_connected_says_nothing() -> None:
    session = new_initiator()
    session.close("no longer needed")
    session.connected(1.0)
    assert close_reason(session) == "no longer needed"
    assert (session.data_to_send(), session.deadline) == ([], None)
