"""How a session acknowledges what it receives: MQQB 3.1.5.8.2, 3.1.5.8.7, 3.1.6.4, 3.1.7.13."""

from __future__ import annotations

import pytest

from falconmq.transport.session import MessageReceived, SessionClosed, SessionState
from falconmq.transport.settings import TransportSettings
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.internal_header import SESSION_ACK
from falconmq.wire.ordering_acks import FinalAck, FinalAckBody, OrderAck, OrderAckBody
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.transport.session_helpers import (
    ADDRESS,
    EXPRESS,
    PEER,
    RECOVERABLE,
    US,
    assert_open,
    close_reason,
    joined,
    open_acceptor,
    open_initiator,
    receive,
    run_timers,
    send,
    sent_data,
    sent_header,
    sent_packets,
    session_ack,
    user_message,
)

# A window so large that the half-window rule (QB-A31) keeps silent.
WIDE = TransportSettings(window_size=200)
WIDE_PARAMETERS = ConnectionParameters(500, 20_000, 200)


@pytest.mark.requirement("QB-3.1.1.7.2-02")
@pytest.mark.requirement(
    "QB-3.1.5.8.2-02",
    "QB-3.1.5.8.2-03",
    "QB-3.1.5.8.2-09",
    "QB-3.1.6.4-01",
    "QB-3.1.6.4-02",
    "QB-3.1.6.4-03",
    "QB-3.1.1.6.1-01",
    "QB-3.1.1.6.1-05",
    "QB-3.1.1.3.1-07",
    "QB-3.1.1.3.1-11",
    "QB-3.1.2.5-01",
    "QB-2.2.6-01",
    "QB-2.2.6-02",
    "QB-2.2.6-03",
    "QB-3.1.3.2-03",
    "QB-3.1.3.2-07",
    "QB-3.1.3.2-09",
)
def test_three_express_messages_are_acknowledged_in_half_the_ack_timeout() -> None:
    session = open_acceptor()
    assert session.deadline == 300.0  # nothing but the cleanup timer runs
    # given three express messages that came and are done with
    receive(session, EXPRESS, now=1.0)
    receive(session, EXPRESS, EXPRESS, now=4.0)
    session.settle(3, 4.0)
    assert session.data_to_send() == []
    # when half of AckTimeout has passed since the first
    assert session.deadline == 11.0
    session.handle_timer(10.9)
    assert session.data_to_send() == []
    session.handle_timer(11.0)
    # then one SessionAck covers them
    data = sent_data(session)
    assert len(data) == 36
    packet = SessionAck.decode(data)
    assert packet.base.flags & 0x18 == 0x18
    assert packet.internal.flags == SESSION_ACK
    assert packet.session == SessionHeader(3, 0, 0, 0, 0, 64)


@pytest.mark.requirement("QB-A32-01", "QB-3.1.2.5-02", "QB-3.1.6.4-10", "QB-3.1.6.4-01")
def test_the_ack_send_timer_rests_until_the_next_message() -> None:
    session = open_acceptor()
    receive(session, EXPRESS, now=1.0)
    session.settle(1, 1.0)
    session.handle_timer(11.0)
    sent_header(session)
    # then nothing waits to be acknowledged, and no timer runs for it
    assert session.deadline == 300.0
    # and the next message starts it again
    receive(session, EXPRESS, now=50.0)
    assert session.deadline == 60.0


@pytest.mark.requirement(
    "QB-3.1.6.4-03",
    "QB-3.1.6.4-04",
    "QB-3.1.6.4-05",
    "QB-3.1.6.4-06",
    "QB-3.1.6.4-07",
    "QB-3.1.6.4-08",
    "QB-3.1.6.4-09",
    "QB-3.1.6.4-11",
    "QB-A23-01",
    "QB-A24-01",
    "QB-3.1.1.4-02",
    "QB-3.1.1.3.1-08",
    "QB-3.1.1.3.1-09",
    "QB-3.1.1.3.1-10",
    "QB-3.1.3.2-04",
    "QB-3.1.3.2-05",
    "QB-3.1.3.2-06",
)
def test_a_timed_ack_tells_all_counts() -> None:
    # given E, R, R, E, R received, and two messages sent of which one is recoverable
    session = open_acceptor(WIDE, parameters=WIDE_PARAMETERS)
    receive(session, EXPRESS, RECOVERABLE, RECOVERABLE, EXPRESS, RECOVERABLE, now=1.0)
    session.settle(5, 1.0)
    send(session, "a", now=1.0)
    send(session, "b", recoverable=True, now=1.0)
    session.data_to_send()
    # when the timer ends
    session.handle_timer(1.5)
    # then all is told
    assert sent_header(session) == SessionHeader(5, 1, 0b111, 2, 1, 200)
    # and after one more express message only the number is new
    receive(session, EXPRESS, now=2.0)
    session.settle(1, 2.0)
    session.handle_timer(12.0)
    assert sent_header(session) == SessionHeader(6, 0, 0, 2, 1, 200)
    # and the bits of the next recoverable one begin behind those that were told
    receive(session, RECOVERABLE, now=20.0)
    session.settle(1, 20.0)
    session.handle_timer(20.5)
    assert sent_header(session) == SessionHeader(7, 4, 0b1, 2, 1, 200)


@pytest.mark.requirement("QB-3.1.5.8.7-13", "QB-3.1.2.5-01")
def test_the_first_recoverable_message_brings_the_timer_forward() -> None:
    session = open_acceptor(WIDE, parameters=WIDE_PARAMETERS)
    receive(session, EXPRESS, now=1.0)
    session.settle(1, 1.0)
    assert session.deadline == 11.0
    # when the first recoverable message is on disk
    receive(session, RECOVERABLE, now=2.0)
    assert session.deadline == 11.0
    session.settle(1, 3.0)
    # then it is acknowledged RecoverableAckTimeout later; the second changes nothing
    assert session.deadline == 3.5
    receive(session, RECOVERABLE, now=3.25)
    session.settle(1, 3.25)
    assert session.deadline == 3.5
    session.handle_timer(3.5)
    assert sent_header(session).recoverable_msg_ack_flags == 0b11


@pytest.mark.requirement("QB-3.1.5.3.2-04", "QB-3.1.5.8.7-13")
def test_an_initiator_acknowledges_recoverable_messages_within_eight_round_trips() -> None:
    session = open_initiator(WIDE, window_size=200, round_trip=0.25)
    receive(session, RECOVERABLE, now=2.0)
    session.settle(1, 3.0)
    assert session.deadline == 5.0


def test_on_a_slow_line_acknowledgements_are_not_later_than_the_peer_waits() -> None:
    session = open_initiator(WIDE, window_size=200, round_trip=15.0)
    receive(session, RECOVERABLE, now=20.0)
    session.settle(1, 21.0)
    assert session.deadline == 31.0


@pytest.mark.requirement(
    "QB-3.1.5.8.7-02",
    "QB-3.1.5.8.7-03",
    "QB-3.1.5.8.7-04",
    "QB-3.1.5.8.7-05",
    "QB-3.1.5.8.7-06",
    "QB-3.1.5.8.7-07",
    "QB-3.1.5.8.7-08",
    "QB-3.1.5.8.7-09",
    "QB-3.1.5.8.7-10",
    "QB-3.1.5.8.7-12",
    "QB-3.1.5.8.7-13",
    "QB-3.1.5.8.7-14",
    "QB-A24-01",
)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_33rd_recoverable_message_is_acknowledged_without_a_timer(at_once: bool) -> None:
    # given a session with a large window that has sent E, R
    session = open_acceptor(WIDE, parameters=WIDE_PARAMETERS)
    send(session, "a")
    send(session, "b", recoverable=True)
    session.data_to_send()
    # when 33 recoverable messages are on disk, together or one by one
    for _ in range(33):
        receive(session, RECOVERABLE)
        if not at_once:
            session.settle(1, 1.0)
    if at_once:
        session.settle(33, 1.0)
    # then one SessionAck has 32 bits and the number of the 33rd
    (packet,) = sent_packets(session, SessionAck)
    assert packet.base.flags & 0x18 == 0x18
    assert packet.internal.flags == SESSION_ACK
    assert packet.session == SessionHeader(33, 1, 0xFFFFFFFF, 2, 1, 200)
    # and the bit of the 33rd follows by the timer of a first recoverable message
    assert session.deadline == 1.5
    session.handle_timer(1.5)
    assert sent_header(session) == SessionHeader(33, 33, 0b1, 2, 1, 200)


@pytest.mark.requirement("QB-A31-01", "QB-3.1.1.6.1-05", "QB-3.1.1.3.1-21")
@pytest.mark.parametrize(
    ("own", "peer", "half"), [(64, 64, 32), (64, 10, 5), (10, 64, 5), (64, 1, 1), (3, 64, 1)]
)
def test_half_a_window_is_acknowledged_at_once(own: int, peer: int, half: int) -> None:
    parameters = ConnectionParameters(500, 20_000, peer)
    session = open_acceptor(TransportSettings(window_size=own), parameters=parameters)
    for _ in range(half):
        assert session.data_to_send() == []
        receive(session, EXPRESS)
        session.settle(1, 1.0)
    assert sent_header(session).ack_sequence_number == half


@pytest.mark.requirement("QB-A31-01", "QB-A24-01")
def test_with_the_usual_window_32_recoverable_messages_are_acknowledged_together() -> None:
    session = open_acceptor()
    for _ in range(32):
        receive(session, RECOVERABLE)
        session.settle(1, 1.0)
    assert sent_header(session) == SessionHeader(32, 1, 0xFFFFFFFF, 0, 0)


@pytest.mark.requirement("QB-A31-01")
def test_with_a_window_of_one_nothing_is_still_nothing() -> None:
    session = open_acceptor(parameters=ConnectionParameters(500, 20_000, 1))
    session.settle(0, 1.0)
    assert session.data_to_send() == []


def test_a_whole_batch_is_acknowledged_once() -> None:
    session = open_acceptor()
    receive(session, *[EXPRESS] * 64)
    session.settle(64, 1.0)
    assert sent_header(session).ack_sequence_number == 64


# Not settled, not acknowledged


def test_a_message_is_acknowledged_only_when_it_is_settled() -> None:
    # given 64 recoverable messages of which 10 are on disk
    session = open_acceptor()
    receive(session, *[RECOVERABLE] * 64)
    session.settle(10, 1.0)
    session.handle_timer(1.5)
    # then the ack covers ten of them
    assert sent_header(session) == SessionHeader(10, 1, 0x3FF, 0, 0)
    assert session.unsettled == 54


@pytest.mark.requirement("QB-3.1.6.4-12", "QB-A32-01")
def test_a_peer_hears_from_us_while_the_disk_is_slow() -> None:
    # given an acceptor whose disk takes a minute, and a peer that waits 20 seconds for an answer
    sender, receiver = joined()
    send(sender, "a", recoverable=True, now=0.0)
    receiver.receive_data(sent_data(sender), 0.0)
    # when nothing is settled
    for second in range(1, 61):
        run_timers([sender, receiver], float(second))
        sender.receive_data(sent_data(receiver), float(second))
        receiver.receive_data(sent_data(sender), float(second))
    # then the session is still there, and nothing was acknowledged
    assert_open(sender, receiver)
    assert sender.events() == []
    receiver.settle(1, 60.0)
    receiver.acknowledge_now(60.0)
    assert sent_header(receiver) == SessionHeader(1, 1, 0b1, 0, 0)


def test_what_is_settled_can_be_acknowledged_at_once() -> None:
    session = open_acceptor()
    session.acknowledge_now(1.0)
    receive(session, RECOVERABLE, RECOVERABLE)
    session.acknowledge_now(1.0)
    assert session.data_to_send() == []  # nothing is settled
    session.settle(1, 1.0)
    session.acknowledge_now(1.0)
    assert sent_header(session) == SessionHeader(1, 1, 0b1, 0, 0)
    session.acknowledge_now(1.0)
    assert session.data_to_send() == []


@pytest.mark.requirement("QB-3.1.5.5.5-01", "QB-3.1.5.5.5-02")
def test_the_counts_of_the_peer_are_compared_with_what_came_not_with_what_is_on_disk() -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE, EXPRESS, session_ack(sent=2, recoverable_sent=1))
    assert_open(session)


# Counting


@pytest.mark.requirement(
    "QB-3.1.5.5.5-01",
    "QB-3.1.5.5.5-02",
    "QB-3.1.3.2-03",
    "QB-3.1.3.2-04",
    "QB-3.1.1.1.1.1-04",
    "QB-3.1.1.1.1.2-03",
)
@pytest.mark.parametrize(
    ("sent", "recoverable_sent", "reason"),
    [
        (1, 1, "UserMsgSequenceNumber 1, but 2 messages came"),
        (3, 1, "UserMsgSequenceNumber 3, but 2 messages came"),
        (2, 2, "RecoverableMsgSeqNumber 2, but 1 recoverable messages came"),
        (2, 0, "RecoverableMsgSeqNumber 0, but 1 recoverable messages came"),
    ],
)
@pytest.mark.parametrize("initiator", [True, False])
def test_counts_that_differ_close_the_session(
    sent: int, recoverable_sent: int, reason: str, initiator: bool
) -> None:
    session = open_initiator() if initiator else open_acceptor()
    receive(session, EXPRESS, RECOVERABLE)
    receive(session, session_ack(sent=sent, recoverable_sent=recoverable_sent))
    assert close_reason(session) == reason


@pytest.mark.requirement("MQ-2.2.20.4-14")
@pytest.mark.requirement("QB-3.1.5.8.4-02", "QB-3.1.5.5.5-01", "QB-3.1.5.8.4-01")
def test_a_message_with_a_wrong_count_is_delivered_before_the_session_closes() -> None:
    session = open_acceptor()
    receive(session, user_message(b"kept", session=SessionHeader(0, 0, 0, 2, 0)).encode())
    first, second = session.events()
    assert isinstance(first, MessageReceived)
    assert first.packet.properties.message_body == b"kept"
    assert isinstance(second, SessionClosed)


@pytest.mark.requirement("QB-A11-01")
def test_order_acks_and_final_acks_count_as_messages() -> None:
    # given an OrderAck (express) and a FinalAck (recoverable)
    order = OrderAck(OrderAckBody(1, 1, 0)).to_user_message(
        source_queue_manager=PEER, destination=US, sent_time=0, message_id=1
    )
    final = FinalAck(FinalAckBody(1, 1, 0, US, 1)).to_user_message(
        source_queue_manager=PEER, destination=ADDRESS, sent_time=0, message_id=2
    )
    session = open_acceptor()
    # when they come, the same one twice
    receive(session, order.encode(), final.encode(), final.encode())
    receive(session, session_ack(sent=3, recoverable_sent=2))
    assert len(session.events()) == 3
    # then they count and are acknowledged like any other
    session.settle(3, 1.0)
    session.handle_timer(1.5)
    assert sent_header(session) == SessionHeader(3, 1, 0b11, 0, 0)


@pytest.mark.requirement("QB-3.1.5.8.7-01")
@pytest.mark.parametrize(("delivery_mode", "recoverable"), [(0, 0), (1, 1), (2, 0), (3, 0)])
def test_only_delivery_mode_1_counts_as_recoverable(delivery_mode: int, recoverable: int) -> None:
    data = bytearray(EXPRESS)
    data[60] |= delivery_mode << 5
    session = open_acceptor()
    receive(session, bytes(data), session_ack(sent=1, recoverable_sent=recoverable))
    assert_open(session)


@pytest.mark.requirement("QB-3.1.5.1.1-06")
@pytest.mark.parametrize("message_class", [0x0000, 0x0001, 0x0002, 0x00FF, 0x4000, 0x8003, 0xC001])
def test_a_message_of_any_class_is_a_user_message(message_class: int) -> None:
    message = user_message()
    message.properties.message_class = message_class
    session = open_acceptor()
    receive(session, message.encode(), session_ack(sent=1))
    (event,) = session.events()
    assert isinstance(event, MessageReceived)
    assert event.packet.properties.message_class == message_class
    assert_open(session)


@pytest.mark.requirement("QB-3.1.5.8.2-04", "QB-3.1.3.2-28", "QB-3.1.1.3.1-33")
def test_a_direct_destination_makes_a_direct_format_session() -> None:
    session = open_acceptor()
    receive(session, EXPRESS)
    assert not session.direct_format_session
    receive(session, user_message(direct=True).encode(), EXPRESS)
    assert session.direct_format_session


@pytest.mark.requirement("QB-A28-01")
def test_a_peer_that_never_waits_is_stopped() -> None:
    # given a peer that sends on and on without an acknowledgement
    session = open_acceptor()
    receive(session, *[EXPRESS] * 32767)
    assert_open(session)
    receive(session, EXPRESS)
    assert session.state is SessionState.CLOSED
    assert "without waiting for an answer" in close_reason(session)


# Pause


@pytest.mark.requirement("MQ-2.2.20.4-19")
@pytest.mark.requirement(
    "QB-3.1.7.13-01",
    "QB-3.1.7.13-02",
    "QB-3.1.7.13-03",
    "QB-3.1.7.13-04",
    "QB-3.1.7.13-05",
    "QB-3.1.7.13-06",
    "QB-3.1.7.13-07",
    "QB-3.1.7.13-08",
    "QB-3.1.7.13-09",
)
def test_pausing_asks_the_peer_for_one_message_at_a_time() -> None:
    # given a session that has received E, R, R and sent E, R
    session = open_acceptor()
    receive(session, EXPRESS, RECOVERABLE, RECOVERABLE, now=1.0)
    session.settle(3, 1.0)
    send(session, "a", now=1.0)
    send(session, "b", recoverable=True, now=1.0)
    session.data_to_send()
    assert session.deadline == 1.5
    # when it is paused
    session.pause(1.25)
    # then all is acknowledged, with a window of one, and the timer of acknowledgements stands
    assert sent_header(session) == SessionHeader(3, 1, 0b11, 2, 1, 1)
    assert session.deadline == 21.0
    # and what was acknowledged is not acknowledged again
    receive(session, RECOVERABLE, now=2.0)
    session.settle(1, 2.0)
    session.handle_timer(2.5)
    assert sent_header(session) == SessionHeader(4, 3, 0b1, 2, 1, 64)


@pytest.mark.requirement("QB-3.1.7.13-02")
def test_pausing_tells_the_peer_even_if_nothing_is_to_be_acknowledged() -> None:
    session = open_initiator()
    session.pause(1.0)
    assert sent_header(session) == SessionHeader(0, 0, 0, 0, 0, 1)


@pytest.mark.requirement("QB-3.1.7.13-10")
def test_a_paused_session_counts_as_idle() -> None:
    session = open_acceptor()
    receive(session, EXPRESS, now=1.0)
    session.settle(1, 1.0)
    session.pause(2.0)
    session.handle_timer(300.0)
    assert close_reason(session) == "no message in 300 seconds"


def test_messages_settled_after_a_pause_are_acknowledged_by_the_timer() -> None:
    session = open_acceptor()
    receive(session, EXPRESS, now=1.0)
    session.pause(2.0)
    assert sent_header(session).ack_sequence_number == 0
    session.settle(1, 3.0)
    session.handle_timer(12.0)
    assert sent_header(session) == SessionHeader(1, 0, 0, 0, 0, 64)
