"""What a session takes in which state, and what closes it: MQQB 3.1.5.1, 3.1.5.3 to 3.1.5.9."""

from __future__ import annotations

import contextlib
import itertools
import tracemalloc
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.transport.acceptor import AcceptorSession
from falconmq.transport.initiator import InitiatorSession
from falconmq.transport.session import MessageReceived, Session, SessionState
from falconmq.wire.base_header import INTERNAL, BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.packet import Packet
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.user_message import UserMessage
from tests.transport.session_helpers import (
    EXPRESS,
    PEER,
    RECOVERABLE,
    US,
    assert_state,
    close_reason,
    in_state,
    new_acceptor,
    new_initiator,
    open_acceptor,
    open_initiator,
    receive,
    received_bodies,
    request,
    send,
    sent_data,
    session_ack,
    user_message,
)

STATES = [state for state in SessionState if state is not SessionState.WAITING_RECONNECT]
OF_SIDE = {
    True: {
        SessionState.WAITING_EC_MSG,  # not connected yet
        SessionState.WAITING_ECR_MSG,
        SessionState.WAITING_CPR_MSG,
    },
    False: {SessionState.WAITING_EC_MSG, SessionState.WAITING_CP_MSG},
}
TABLES = {True: InitiatorSession.TRANSITIONS, False: AcceptorSession.TRANSITIONS}


def packet_for(kind: type[Packet], initiator: bool) -> Packet:
    """A packet that is right for this side, if its time has come."""
    if kind is EstablishConnection:
        asked = EstablishConnection.request(US, PEER, uptime_ms=0)
        return asked.response(PEER) if initiator else request()
    if kind is ConnectionParameters:
        return ConnectionParameters(500, 20_000)
    if kind is SessionAck:
        return SessionAck(SessionHeader(0, 0, 0, 0, 0))
    return user_message()


CASES = [
    (initiator, state, kind)
    for initiator in (True, False)
    for state in sorted(OF_SIDE[initiator] | {SessionState.OPEN}, key=lambda s: s.value)
    for kind in (EstablishConnection, ConnectionParameters, SessionAck, UserMessage)
]


@pytest.mark.requirement(
    "QB-3.1.5.3-01",
    "QB-3.1.5.4-01",
    "QB-3.1.5.5-01",
    "QB-3.1.5.8-01",
    "QB-3.1.5.1.1-01",
    "QB-3.1.5.1.1-02",
    "QB-3.1.5.1.1-03",
    "QB-3.1.5.1.1-06",
    "QB-2.1.1-02",
    "QB-2.1.1-03",
    "QB-3.1.1.3.1-23",
)
@pytest.mark.parametrize(("initiator", "state", "kind"), CASES)
def test_each_packet_in_each_state_takes_the_step_of_the_table_or_closes(
    initiator: bool, state: SessionState, kind: type[Packet]
) -> None:
    session = in_state(initiator, state)
    session.receive_data(packet_for(kind, initiator).encode(), 0.2)
    next_state = TABLES[initiator].get((state, kind))
    if next_state is None:
        assert close_reason(session) == f"{kind.__name__} is not allowed in {state.name}"
        assert session.data_to_send() == []
    else:
        assert_state(session, next_state)


@pytest.mark.requirement("QB-3.1.1.1.1.1-01", "QB-3.1.1.1.1.2-01")
def test_the_tables_hold_the_steps_of_the_specification_and_no_other() -> None:
    both = {
        (SessionState.OPEN, UserMessage): SessionState.OPEN,
        (SessionState.OPEN, SessionAck): SessionState.OPEN,
    }
    assert TABLES[True] == both | {
        (SessionState.WAITING_ECR_MSG, EstablishConnection): SessionState.WAITING_CPR_MSG,
        (SessionState.WAITING_CPR_MSG, ConnectionParameters): SessionState.OPEN,
    }
    assert TABLES[False] == both | {
        (SessionState.WAITING_EC_MSG, EstablishConnection): SessionState.WAITING_CP_MSG,
        (SessionState.WAITING_CP_MSG, ConnectionParameters): SessionState.OPEN,
    }


MALFORMED = {
    "version 0x11": b"\x11" + EXPRESS[1:],
    "signature": EXPRESS[:4] + b"LIOS" + EXPRESS[8:],
    "signature in the order of the number": EXPRESS[:4] + b"ROIL" + EXPRESS[8:],
    "packet type 7": BaseHeader(INTERNAL, 20).encode() + b"\0\0\x07\0",
    "packet type 0": BaseHeader(INTERNAL, 20).encode() + b"\0\0\0\0",
    "refusal in a SessionAck": (ack := session_ack())[:18] + b"\x11" + ack[19:],
    "SessionAck of 52 bytes": BaseHeader(0x1B, 52).encode() + session_ack()[16:] + bytes(16),
    "PacketSize under 20": EXPRESS[:8] + (19).to_bytes(4, "little") + EXPRESS[12:],
    "PacketSize over 4 MiB": EXPRESS[:8] + (0x400001).to_bytes(4, "little") + EXPRESS[12:],
    "a message cut in its headers": BaseHeader(3, 40).encode() + EXPRESS[16:40],
    "DQ 1": EXPRESS[:60] + b"\x00\x04\x20\x00" + EXPRESS[64:],
}


@pytest.mark.requirement(
    "QB-3.1.5.1-02",
    "QB-3.1.5.1.2-01",
    "QB-3.1.5.1.2-02",
    "QB-3.1.5.1.3-01",
    "QB-2.2.1-06",
    "QB-2.2.1-08",
    "QB-A09-01",
    "QB-3.1.1.1.1.1-04",
    "QB-3.1.1.1.1.2-03",
)
@pytest.mark.parametrize("initiator", [True, False])
@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_packet_closes_the_session_after_what_came_before(
    bad: bytes, initiator: bool
) -> None:
    # given an open session
    session = in_state(initiator, SessionState.OPEN)
    # when a good message, a bad packet and a good message come together
    receive(session, user_message(b"before").encode(), bad, user_message(b"after").encode())
    # then the first is delivered, and nothing behind the fault
    delivered, *_ = events = session.events()
    assert isinstance(delivered, MessageReceived)
    assert delivered.packet.properties.message_body == b"before"
    assert len(events) == 2
    assert "malformed packet" in str(events[1])
    assert_state(session, SessionState.CLOSED)
    assert session.data_to_send() == []


def test_the_reason_says_what_was_wrong_and_where() -> None:
    session = open_acceptor()
    receive(session, EXPRESS[:60] + b"\x00\x04\x20\x00" + EXPRESS[64:])
    reason = close_reason(session)
    assert reason == "malformed packet: UserHeader.Flags at offset 60: DQ 1 is not 0, 3, 5 or 7"


@pytest.mark.requirement("QB-3.1.5.9-01", "QB-3.1.5.9-04", "QB-3.1.5.9-05")
@pytest.mark.parametrize("initiator", [True, False])
def test_closing_stops_all_timers_and_sends_no_packet(initiator: bool) -> None:
    # given a session with all timers of an open session running
    session = in_state(initiator, SessionState.OPEN)
    send(session, "a")
    receive(session, EXPRESS, session_ack(sent=1, window_size=2))
    session.data_to_send()
    session.events()
    before = session.deadline
    # when it is closed, twice
    session.close("enough")
    session.close("again")
    # then it says so once, and no timer does anything any more
    assert close_reason(session) == "enough"
    assert (before, session.deadline) == (11.0, None)
    session.handle_timer(1e9)
    assert session.events() == []
    assert session.data_to_send() == []


@pytest.mark.parametrize("initiator", [True, False])
def test_everything_asked_of_a_closed_session_is_harmless(initiator: bool) -> None:
    session = in_state(initiator, SessionState.OPEN)
    receive(session, RECOVERABLE)
    session.close("enough")
    session.events()
    session.data_to_send()
    receive(session, EXPRESS, b"garbage")
    session.settle(1, 2.0)
    session.acknowledge_now(2.0)
    session.pause(2.0)
    session.handle_timer(2.0)
    send(session, "a")
    assert session.events() == []
    assert session.data_to_send() == []
    assert not session.can_send
    assert session.messages_received == 1


@pytest.mark.parametrize("initiator", [True, False])
def test_a_session_that_is_not_open_neither_acknowledges_nor_pauses(initiator: bool) -> None:
    state = SessionState.WAITING_CPR_MSG if initiator else SessionState.WAITING_CP_MSG
    session = in_state(initiator, state)
    session.acknowledge_now(1.0)
    session.pause(1.0)
    session.settle(0, 1.0)
    assert session.data_to_send() == []
    assert_state(session, state)


@pytest.mark.requirement("QB-2.1.1-03")
@pytest.mark.parametrize("initiator", [True, False])
def test_messages_are_sent_only_while_the_session_is_open(initiator: bool) -> None:
    for state in OF_SIDE[initiator] | {SessionState.CLOSED, SessionState.OPEN}:
        assert in_state(initiator, state).can_send == (state is SessionState.OPEN)


def test_sending_without_a_window_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="window is closed"):
        send(in_state(True, SessionState.WAITING_CPR_MSG), "a")


@pytest.mark.requirement(
    "QB-3.1.3.2-01",
    "QB-3.1.3.2-02",
    "QB-3.1.3.2-03",
    "QB-3.1.3.2-04",
    "QB-3.1.3.2-05",
    "QB-3.1.3.2-06",
    "QB-3.1.3.2-07",
    "QB-3.1.3.2-08",
    "QB-3.1.3.2-09",
    "QB-3.1.3.2-23",
    "QB-3.1.3.2-24",
    "QB-3.1.3.2-25",
    "QB-3.1.3.2-26",
    "QB-3.1.3.2-28",
    "QB-3.1.3.2-31",
    "QB-3.1.3.2-35",
)
@pytest.mark.parametrize("initiator", [True, False])
def test_a_session_begins_with_everything_at_its_start(initiator: bool) -> None:
    session = new_initiator() if initiator else new_acceptor()
    received, window, timers = session._received, session._window, session._timers
    assert (window.sent, window.recoverable_sent) == (0, 0)
    assert (received.received, received.recoverable_received) == (0, 0)
    assert (received.bits, received.last_acked_recoverable, received.unacknowledged) == (0, 0, 0)
    assert (timers.ack_wait, timers.ack_send) == (inf, inf)
    assert window.own_window == 64
    assert not session._session_active
    assert not session._received_ack
    assert session._ack_wait_timeout_ms == 20_000
    assert not session.direct_format_session
    assert session._recoverable_ack_send_timeout_ms == 0xFFFFFFFF
    assert_state(session, SessionState.WAITING_EC_MSG)


# Segments


CONVERSATION = b"".join(
    [
        request().encode(),
        ConnectionParameters(500, 20_000).encode(),
        user_message(b"one").encode(),
        session_ack(sent=1),
        user_message(b"two", recoverable=True, session=SessionHeader(0, 0, 0, 2, 1)).encode(),
        user_message(b"three" * 40_000).encode(),
        session_ack(sent=3, recoverable_sent=1),
        user_message(b"four").encode(),
        user_message(session=SessionHeader(0, 0, 0, 7, 7)).encode(),
        user_message(b"never").encode(),
    ]
)


def outcome(session: Session) -> list[object]:
    """All that a session tells and sends, in a form that compares."""
    seen: list[object] = []
    for event in session.events():
        if isinstance(event, MessageReceived):
            seen += [event.packet, bytes(event.data)]
        else:
            seen.append(str(event))
    return [*seen, sent_data(session), session.state]


def test_the_conversation_is_understood() -> None:
    session = new_acceptor()
    session.receive_data(CONVERSATION, 1.0)
    bodies = received_bodies(session)
    assert bodies == [b"one", b"two", b"three" * 40_000, b"four", b"hello"]
    assert_state(session, SessionState.CLOSED)


@pytest.mark.requirement("QB-A09-01", "QB-2.1.1-01")
@given(cuts=st.lists(st.integers(0, len(CONVERSATION)), max_size=40))
def test_segment_boundaries_do_not_matter(cuts: list[int]) -> None:
    whole, pieces = new_acceptor(), new_acceptor()
    whole.receive_data(CONVERSATION, now=1.0)
    for start, end in itertools.pairwise([0, *sorted(cuts), len(CONVERSATION)]):
        pieces.receive_data(CONVERSATION[start:end], now=1.0)
    assert outcome(pieces) == outcome(whole)


@pytest.mark.requirement("QB-A09-01")
def test_a_stream_may_come_byte_by_byte() -> None:
    short = CONVERSATION[: 572 + 32 + 2 * len(EXPRESS) + 36 + 16]
    whole, pieces = new_acceptor(), new_acceptor()
    whole.receive_data(short, now=1.0)
    for index in range(len(short)):
        pieces.receive_data(short[index : index + 1], now=1.0)
    assert outcome(pieces) == outcome(whole)


@pytest.mark.requirement("QB-3.1.5.1.3-01", "QB-3.1.5.1.2-02")
@given(
    initiator=st.booleans(),
    state=st.sampled_from(STATES),
    segments=st.lists(
        st.one_of(
            st.binary(max_size=80),
            st.sampled_from([EXPRESS, RECOVERABLE, session_ack(), request().encode()]),
            st.builds(
                lambda data, at, byte: data[:at] + bytes([byte]) + data[at + 1 :],
                st.sampled_from([EXPRESS, RECOVERABLE, session_ack(5, 1, 3)]),
                st.integers(0, 140),
                st.integers(0, 255),
            ),
        ),
        max_size=8,
    ),
)
def test_no_bytes_whatever_raise_out_of_a_session(
    initiator: bool, state: SessionState, segments: list[bytes]
) -> None:
    if state not in OF_SIDE[initiator] | {SessionState.OPEN, SessionState.CLOSED}:
        return
    session = in_state(initiator, state)
    for segment in segments:
        session.receive_data(segment, 1.0)
        session.handle_timer(2.0)
    with contextlib.suppress(StopIteration):
        next(event for event in session.events() if isinstance(event, MessageReceived))


def test_an_announced_size_reserves_no_memory() -> None:
    session = open_acceptor()
    header = BaseHeader(3, 0x400000).encode()
    tracemalloc.start()
    session.receive_data(header, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert_state(session, SessionState.OPEN)


# What is handed out


@pytest.mark.requirement("QB-3.1.5.5-02")
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_message_is_handed_out_as_the_store_keeps_it(size: int, split: bool) -> None:
    # given a message behind which a SessionHeader rides, and one without
    plain = user_message(b"x" * size)
    riding = user_message(b"x" * size, session=SessionHeader(0, 0, 0, 1, 0))
    session = open_acceptor()
    # when they come, in one segment or in two
    data = riding.encode() + plain.encode()
    middle = len(data) // 2 if split else 0
    session.receive_data(data[:middle], 1.0)
    session.receive_data(data[middle:], 1.0)
    # then both are the same: no SessionHeader, no flag that announces one
    first, second = session.events()
    assert isinstance(first, MessageReceived)
    assert isinstance(second, MessageReceived)
    for event in (first, second):
        assert bytes(event.data) == plain.encode()
        assert event.packet == UserMessage.decode(plain.encode())


def test_a_large_message_alone_in_its_buffer_is_not_copied() -> None:
    data = user_message(b"x" * 100_000).encode()
    session = open_acceptor()
    session.receive_data(data, 1.0)
    (event,) = session.events()
    assert isinstance(event, MessageReceived)
    assert isinstance(event.data, memoryview)
    assert event.data.obj is data


def test_a_small_message_does_not_keep_its_segment_alive() -> None:
    session = open_acceptor()
    receive(session, EXPRESS, EXPRESS)
    for event in session.events():
        assert isinstance(event, MessageReceived)
        assert isinstance(event.data, bytes)
        body = event.packet.properties.message_body
        assert isinstance(body, memoryview)
        assert body.obj is event.data


def test_totals_count_messages_and_bytes() -> None:
    session = open_initiator()
    sent, received = session.bytes_sent, session.bytes_received
    assert (sent, received) == (572 + 32, 572 + 32)
    (data,) = send(session, "a")
    session.data_to_send()
    receive(session, EXPRESS)
    assert session.bytes_sent - sent == len(data)
    assert session.bytes_received - received == len(EXPRESS)
    assert (session.messages_sent, session.messages_received, session.unsettled) == (1, 1, 1)
