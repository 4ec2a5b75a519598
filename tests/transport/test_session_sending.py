"""How a session sends: MQQB 3.1.5.5, 3.1.7.1, 3.1.7.1.3, 3.1.7.11."""

from __future__ import annotations

import pytest

from falconmq.transport.session import MessagesAcknowledged, Session
from falconmq.transport.settings import TransportSettings
from falconmq.wire.base_header import SESSION_HEADER, BaseHeader
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.user_message import UserMessage
from tests.transport.session_helpers import (
    EXPRESS,
    RECOVERABLE,
    acknowledged,
    assert_open,
    close_reason,
    joined,
    open_acceptor,
    open_initiator,
    receive,
    received_bodies,
    send,
    sent_data,
    sent_header,
    sent_packets,
    session_ack,
    user_message,
)


def with_something_to_acknowledge(now: float = 0.0) -> Session:
    """Three recoverable messages came and are on disk; the timer ends 0.5 seconds later."""
    session = open_acceptor()
    receive(session, RECOVERABLE, EXPRESS, RECOVERABLE, now=now)
    session.settle(3, now)
    session.events()
    return session


@pytest.mark.requirement("QB-3.1.1.4-03", "QB-2.1.1-01")
def test_a_message_goes_out_as_it_is() -> None:
    session = open_initiator()
    data = user_message(b"x" * 1000).encode()
    session.send([data[:16], data[16:500], data[500:]], entry=1, recoverable=False, now=1.0)
    assert sent_data(session) == data


@pytest.mark.requirement(
    "MQ-2.2.20.4-02",
    "MQ-2.2.20.4-03",
    "MQ-2.2.20.4-04",
    "MQ-2.2.20.4-13",
    "MQ-2.2.20.4-16",
)
@pytest.mark.requirement(
    "QB-3.1.7.1.3-09",
    "QB-3.1.7.1.3-10",
    "QB-3.1.1.4-01",
    "QB-3.1.1.4-02",
    "QB-3.1.1.3.1-05",
    "QB-3.1.1.3.1-06",
    "QB-3.1.3.2-01",
    "QB-3.1.3.2-02",
)
def test_messages_and_recoverable_messages_are_counted_from_one() -> None:
    session = open_initiator()
    seen = []
    for entry, recoverable in enumerate([False, True, False, True]):
        session.pause(1.0)
        header = sent_header(session)
        seen.append((header.user_msg_sequence_number, header.recoverable_msg_seq_number))
        send(session, entry, recoverable=recoverable)
        session.data_to_send()
    session.pause(1.0)
    header = sent_header(session)
    seen.append((header.user_msg_sequence_number, header.recoverable_msg_seq_number))
    assert seen == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]


@pytest.mark.requirement("QB-3.1.7.1-03", "QB-3.1.7.1.3-11", "QB-A29-01", "QB-3.1.1.3.1-29")
def test_no_more_than_a_window_is_on_its_way() -> None:
    # given 100 messages that wait
    session = open_initiator()
    waiting = list(range(100))
    assert session.unacked == 0

    def pump() -> int:
        while session.can_send and waiting:
            send(session, waiting.pop(0))
        return len(sent_packets(session, UserMessage))

    # then 64 go out, 32 more after an acknowledgement, and one at a time when the peer says so
    assert pump() == 64
    assert session.unacked == 64
    receive(session, session_ack(32))
    assert session.unacked == 32
    assert pump() == 32
    receive(session, session_ack(95, window_size=1))
    assert session.unacked == 1
    assert pump() == 0
    receive(session, session_ack(96, window_size=1))
    assert pump() == 1
    assert pump() == 0


@pytest.mark.requirement("MQ-2.2.20.4-19")
@pytest.mark.requirement("QB-A30-01")
def test_a_shrunk_window_doubles_every_30_seconds() -> None:
    session = open_initiator()
    send(session, *range(64), now=0.0)
    receive(session, session_ack(0, window_size=1), now=1.0)
    sizes = []
    for step in range(1, 8):
        receive(session, EXPRESS, now=step * 30.0)  # the peer lives, but it acknowledges nothing
        session.handle_timer(1.0 + step * 30.0)
        sizes.append(session.window)
    assert sizes == [2, 4, 8, 16, 32, 64, 64]
    assert_open(session)


@pytest.mark.requirement("QB-A30-01")
def test_the_window_opens_again_by_the_timer_alone() -> None:
    session = open_initiator()
    receive(session, session_ack(window_size=1), now=1.0)
    send(session, "a", now=2.0)
    assert not session.can_send
    # when the peer has not acknowledged it for 30 seconds, but lives
    receive(session, EXPRESS, now=15.0)
    session.settle(1, 15.0)
    for now in (22.0, 25.0, 30.9):
        session.handle_timer(now)
    assert not session.can_send
    session.handle_timer(31.0)
    assert session.can_send


@pytest.mark.requirement("QB-A30-01")
def test_a_small_window_that_the_peer_repeats_stays_small() -> None:
    session = open_initiator()
    for now in range(1, 100, 20):
        receive(session, session_ack(window_size=2), now=float(now))
        session.handle_timer(float(now) + 19.0)
        assert session.window == 2
    receive(session, session_ack(window_size=64), now=101.0)
    assert session.window == 64


# Acknowledged


@pytest.mark.requirement(
    "QB-3.1.5.5.1-01",
    "QB-3.1.5.5.1-02",
    "QB-3.1.5.5.2-01",
    "QB-3.1.5.5.3-02",
    "QB-3.1.1.6.1-02",
    "QB-3.1.1.6.1-03",
    "QB-A26-01",
)
def test_express_messages_are_done_when_received_and_recoverable_ones_when_stored() -> None:
    # given E1, R2, R3, E4 sent
    session = open_initiator()
    for entry, recoverable in (("E1", False), ("R2", True), ("R3", True), ("E4", False)):
        send(session, entry, recoverable=recoverable)
    # when three are received and the first recoverable one is on disk
    receive(session, session_ack(3, 1, 0b1))
    assert acknowledged(session) == (["E1", "R2", "R3"], ["R2"])
    # then the rest follows, each once
    receive(session, session_ack(3, 0, 0))
    assert session.events() == []
    receive(session, session_ack(4, 2, 0b1))
    assert acknowledged(session) == (["E4"], ["R3"])
    receive(session, session_ack(4, 2, 0b1))
    assert session.events() == []


@pytest.mark.requirement("QB-3.1.5.5-02", "QB-3.1.5.8.4-01", "QB-3.1.5.8.4-02", "QB-2.2.6-04")
def test_an_acknowledgement_may_ride_on_a_message() -> None:
    session = open_initiator()
    send(session, "a", "b", recoverable=True)
    receive(session, user_message(b"x", session=SessionHeader(1, 1, 0b1, 1, 0)).encode())
    _, acks = session.events()
    assert isinstance(acks, MessagesAcknowledged)
    assert (acks.received, acks.stored) == (["a"], ["a"])
    assert_open(session)


@pytest.mark.requirement("QB-3.1.5.5-03")
def test_an_acknowledgement_with_wrong_counts_counts_before_the_session_closes() -> None:
    session = open_initiator()
    send(session, "a")
    receive(session, session_ack(1, sent=1))
    acks, _ = session.events()
    assert isinstance(acks, MessagesAcknowledged)
    assert acks.received == ["a"]


@pytest.mark.parametrize("bad", [session_ack(3), session_ack(2, 1, 0b100), session_ack(2, 3, 0b1)])
def test_acknowledging_what_was_never_sent_closes_the_session(bad: bytes) -> None:
    session = open_initiator()
    send(session, "a", "b", recoverable=True)
    receive(session, bad)
    events = session.events()
    assert len(events) == 1
    assert "the last one sent is 2" in str(events[0])


# Piggy-backed acknowledgements


@pytest.mark.requirement(
    "QB-3.1.7.11-02",
    "QB-3.1.7.11-03",
    "QB-3.1.7.11-04",
    "QB-3.1.7.11-05",
    "QB-3.1.7.11-06",
    "QB-3.1.7.11-07",
    "QB-3.1.7.11-08",
    "QB-3.1.7.11-09",
    "QB-3.1.7.11-10",
    "QB-3.1.7.1.3-12",
    "QB-3.1.7.1.3-13",
    "QB-3.1.7.1.3-14",
    "QB-3.1.7.1.3-15",
    "QB-3.1.7.1.3-16",
    "QB-3.1.7.1.3-17",
    "QB-3.1.7.1.3-18",
    "QB-A25-01",
    "QB-A09-01",
    "QB-2.2.6-04",
)
@pytest.mark.parametrize("pieces", [1, 3])
def test_late_in_the_ack_send_timer_a_message_carries_the_acknowledgement(pieces: int) -> None:
    # given R, E, R on disk since 0, to be acknowledged within 0.5 seconds
    session = with_something_to_acknowledge()
    plain = user_message(b"x" * 100, recoverable=True).encode()
    cuts = [plain] if pieces == 1 else [plain[:16], plain[16:40], plain[40:]]
    # when a recoverable message is sent after 76 percent of that
    session.send(cuts, entry=1, recoverable=True, now=0.38)
    # then 16 bytes ride behind it that PacketSize does not count
    data = sent_data(session)
    assert len(data) == len(plain) + 16
    base = BaseHeader.decode(data)
    assert base.flags == BaseHeader.decode(plain).flags | SESSION_HEADER
    assert base.packet_size == len(plain)
    assert data[3 : len(plain)] == plain[3:]
    # and tell all there is, this message included
    assert SessionHeader.decode(data, len(plain)) == SessionHeader(3, 1, 0b11, 1, 1, 64)
    # and what was told is not told again
    session.send([plain], entry=2, recoverable=True, now=20.0)
    assert sent_data(session) == plain
    receive(session, EXPRESS, RECOVERABLE, now=30.0)
    session.settle(2, 30.0)
    session.acknowledge_now(30.0)
    assert sent_header(session) == SessionHeader(5, 3, 0b1, 2, 2, 64)


@pytest.mark.requirement("QB-3.1.7.11-02")
@pytest.mark.parametrize("now", [0.0, 0.1, 0.37, 0.375])
def test_early_in_the_ack_send_timer_a_message_goes_alone(now: float) -> None:
    session = with_something_to_acknowledge()
    (data,) = send(session, "a", now=now)
    assert sent_data(session) == data
    # and the timer goes on
    session.handle_timer(0.5)
    assert sent_header(session) == SessionHeader(3, 1, 0b11, 1, 0, 64)


@pytest.mark.requirement("QB-3.1.7.11-02")
def test_without_anything_to_acknowledge_a_message_goes_alone() -> None:
    # given a message that came but is not settled, 76 percent of the timer ago
    session = open_acceptor()
    receive(session, EXPRESS, now=0.0)
    (data,) = send(session, "a", now=7.6)
    assert sent_data(session) == data
    # and a session without any message
    idle = open_acceptor()
    (data,) = send(idle, "a", now=100.0)
    assert sent_data(idle) == data


@pytest.mark.requirement("QB-3.1.7.11-11")
def test_the_ack_send_timer_starts_again_after_a_piggy_backed_acknowledgement() -> None:
    session = with_something_to_acknowledge()
    send(session, "a", now=0.4)
    assert session.deadline == 10.4
    # and when it ends with nothing new, nothing is sent
    session.data_to_send()
    session.handle_timer(10.4)
    assert session.data_to_send() == []
    # and it rests: what is left is to wait for the acknowledgement of the message
    assert session.deadline == 20.4


def test_the_peer_understands_a_piggy_backed_acknowledgement() -> None:
    one, two = joined()
    send(one, "a", "b", recoverable=True, now=0.0)
    two.receive_data(sent_data(one), 0.0)
    two.settle(2, 0.0)
    assert received_bodies(two) == [b"a", b"b"]
    send(two, "answer", now=0.45)
    one.receive_data(sent_data(two), 0.45)
    _, acks = one.events()
    assert isinstance(acks, MessagesAcknowledged)
    assert (acks.received, acks.stored) == (["a", "b"], ["a", "b"])
    assert_open(one, two)


# The Session Ack Wait Timer


@pytest.mark.requirement(
    "QB-3.1.7.1.3-19",
    "QB-3.1.7.1.3-20",
    "QB-3.1.6.3-02",
    "QB-3.1.2.4-01",
    "QB-3.1.2.4-02",
    "QB-3.1.3.2-08",
    "QB-3.1.3.2-25",
    "QB-3.1.1.1.1.1-04",
)
@pytest.mark.parametrize(("is_direct", "wait"), [(False, 20.0), (True, 40.0)])
def test_a_silent_peer_is_given_up(is_direct: bool, wait: float) -> None:
    session = open_initiator(is_direct=is_direct)
    session.handle_timer(50.0)
    # given a message sent at 100, and another later
    send(session, "a", now=100.0)
    assert session.deadline == 100.0 + wait
    send(session, "b", now=110.0)
    assert session.deadline == 100.0 + wait
    # when nothing comes; the packets of the opening count for the first round
    session.handle_timer(100.0 + wait)
    assert_open(session)
    session.handle_timer(100.0 + 2 * wait)
    # then the session closes
    assert close_reason(session) == "2 messages are not acknowledged, the peer is silent"


@pytest.mark.requirement("QB-3.1.6.3-03", "QB-3.1.5.1-01", "QB-3.1.1.3.1-25")
@pytest.mark.parametrize("packet", [EXPRESS, session_ack()])
def test_any_packet_keeps_the_session(packet: bytes) -> None:
    session = open_initiator()
    send(session, "a", now=0.0)
    session.handle_timer(20.0)
    for now in (39.0, 59.0, 79.0):
        # when one packet comes in each round, though it acknowledges nothing
        session.receive_data(packet, now)
        session.handle_timer(now + 19.0)
        assert_open(session)
    # then it lives, until no more comes
    session.handle_timer(200.0)
    session.handle_timer(300.0)
    assert "the peer is silent" in close_reason(session)


@pytest.mark.requirement("QB-3.1.6.3-01")
def test_the_ack_wait_timer_stops_when_everything_is_acknowledged() -> None:
    session = open_initiator()
    send(session, "a", now=0.0)
    receive(session, session_ack(1), now=1.0)
    session.handle_timer(20.0)
    assert session.deadline == 300.0
    # and what came before does not count for the next message
    send(session, "b", now=100.0)
    session.handle_timer(120.0)
    assert "the peer is silent" in close_reason(session)


@pytest.mark.requirement("QB-3.1.5.5.5-03")
def test_an_acknowledgement_gives_the_rest_new_time() -> None:
    session = open_initiator()
    send(session, "a", "b", now=0.0)
    receive(session, session_ack(1), now=15.0)
    assert session.deadline == 35.0


def test_the_factor_of_direct_sessions_can_be_set() -> None:
    session = open_initiator(TransportSettings(direct_ack_wait_factor=5), is_direct=True)
    send(session, "a", now=0.0)
    assert session.deadline == 100.0


# The Session Cleanup Timer


@pytest.mark.requirement("QB-3.1.1.7.2-01")
@pytest.mark.requirement(
    "QB-3.1.6.2-01",
    "QB-3.1.2.2-01",
    "QB-3.1.2.2-02",
    "QB-3.1.3.2-12",
    "QB-3.1.3.2-24",
    "QB-3.1.5.9-01",
    "QB-3.1.1.1.1.1-04",
    "QB-3.1.1.1.1.2-03",
)
@pytest.mark.parametrize("initiator", [True, False])
def test_an_idle_session_closes_without_a_word(initiator: bool) -> None:
    session = open_initiator() if initiator else open_acceptor()
    assert session.deadline == 300.0
    # packets that are no messages do not count
    receive(session, session_ack(), now=200.0)
    session.handle_timer(299.0)
    assert_open(session)
    session.handle_timer(300.0)
    assert close_reason(session) == "no message in 300 seconds"
    assert session.data_to_send() == []


@pytest.mark.requirement(
    "QB-3.1.6.2-02", "QB-3.1.2.2-02", "QB-3.1.1.3.1-24", "QB-3.1.7.1.3-21", "QB-3.1.5.8.2-10"
)
@pytest.mark.parametrize("sending", [True, False])
def test_a_message_keeps_a_session_for_another_interval(sending: bool) -> None:
    session = open_initiator()
    if sending:
        send(session, "a", now=1.0)
        receive(session, session_ack(1), now=1.0)
    else:
        receive(session, EXPRESS, now=1.0)
        session.settle(1, 1.0)
        session.acknowledge_now(1.0)
    session.events()
    session.handle_timer(300.0)
    assert_open(session)
    assert session.deadline == 600.0
    session.handle_timer(600.0)
    assert close_reason(session) == "no message in 300 seconds"


@pytest.mark.requirement("QB-3.1.2.2-01")
def test_the_cleanup_interval_can_be_set() -> None:
    assert open_acceptor(TransportSettings(cleanup_interval=120.0)).deadline == 120.0
