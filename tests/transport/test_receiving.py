"""Messages that come: into a queue, refused, or acknowledged when they are safe (MQQB 3.1.5.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from falconmq.manager.creation import NOTIFY_QUEUE_NUMBER
from falconmq.manager.model import Queue
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.queues import create_queue
from falconmq.manager.states import AccessType, QueuePrivacy
from falconmq.names import PathName, parse_format_name
from falconmq.transport.session import SessionState
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL, POSITIVE_ARRIVAL
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE
from falconmq.wire.user_message import UserMessage
from tests.transport.answers import PUBLIC_QUEUE
from tests.transport.estate import Estate, Node, bodies, direct, only
from tests.transport.raw_peer import ACKS, ADDRESS, RawPeer, routed_estate

SEQUENCE = 7 << 32 | 1
BAD_DST_Q = MessageClass.NACK_BAD_DST_Q
ASKING: dict[str, Any] = {"acknowledgements": NEGATIVE_ARRIVAL | POSITIVE_ARRIVAL, "admin": ACKS}


def given_node(**settings: bool | int) -> tuple[Estate, Node]:
    estate = routed_estate()
    return estate, estate.node("B", 2, **settings)


def given_sent(node: Node, peer: RawPeer, **properties: object) -> UserMessage:
    """A transactional message of the node's that the peer has got, and counted."""
    node.send(rf"DIRECT=TCP:{ADDRESS}\private$\far", b"order", transactional=True, **properties)
    peer.node.estate.settle()
    (sent,) = peer.messages
    return sent


def waiting(node: Node) -> int:
    """How many messages wait at the node to be sent, or for the news of their end."""
    return len(node.outgoing(rf"DIRECT=TCP:{ADDRESS}\private$\far").positions)


def acknowledge(sent: int, received: int, recoverable: int = 0) -> SessionHeader:
    """That `sent` recoverable messages of the node's are on disk, and what the peer has sent."""
    return SessionHeader(sent, 1 if sent else 0, (1 << sent) - 1, received, recoverable, 64)


# What it is


@pytest.mark.requirement("QB-3.1.5.1.1-04", "QB-A10-01", "QB-A11-01")
@pytest.mark.parametrize("flags", [0, 3])
def test_an_order_ack_is_known_by_queue_label_size_and_class(flags: int) -> None:
    # given a transactional message that was sent to a peer
    _, node = given_node()
    peer = RawPeer(node).open()
    sent = given_sent(node, peer)
    assert sent.transaction is not None
    # when its OrderAck comes, behind it the count of one message: its own
    packet = peer.order_ack(sent.transaction.tx_sequence_id, 1)
    base = replace(packet.base, flags=flags)
    peer.write(replace(packet, base=base, session=acknowledge(1, 1)).encode())
    # then the message is gone, and nothing came into a queue
    assert waiting(node) == 0
    assert not peer.is_closed
    assert len(node.core.private_numbers[4].positions) == 0


@pytest.mark.requirement("QB-3.1.5.1.1-05", "QB-A11-01", "QB-A35-01")
@pytest.mark.parametrize("message_class", [c for c in MessageClass if c >= 0x4000])
def test_a_final_ack_is_known_by_queue_label_and_any_class_from_4000(message_class: int) -> None:
    # given a transactional message of which the sender keeps what failed
    _, node = given_node()
    peer = RawPeer(node).open()
    sent = given_sent(node, peer, journal=JOURNAL_NEGATIVE >> 8)
    # when its FinalAck comes, and counts as one recoverable message
    packet = peer.final_ack(sent, message_class)
    peer.write(replace(packet, session=acknowledge(1, 1, 1)).encode())
    # then the message has ended
    assert not peer.is_closed
    assert waiting(node) == 0
    letters = len(node.core.transactional_dead_letter.positions)
    assert letters == (message_class != MessageClass.ACK_RECEIVE)


@pytest.mark.requirement("QB-3.1.5.1.1-06", "QB-A10-01", "QB-3.1.5.11-02")
@pytest.mark.parametrize("message_class", [0, 1, 2, 0x00FF, 0x4000, 0x8000, 0xC004, 0x0100])
def test_whatever_else_comes_is_a_message_for_its_queue(message_class: int) -> None:
    # given a queue that is not the order queue
    _, node = given_node()
    queue = node.queue("acks")
    # when a message of any class comes for it, with the label of an ordering acknowledgment even
    RawPeer(node).open().send(
        queue, bytes(36), message_class=message_class, label="QM Ordering Ack"
    )
    # then it is there
    assert only(queue).packet.properties.message_class == message_class


@pytest.mark.requirement("QB-A10-01")
def test_an_ordinary_message_does_not_come_into_the_order_queue() -> None:
    _, node = given_node()
    peer = RawPeer(node).open()
    peer.send(4, b"nothing of yours")
    peer.send(rf"TCP:{node.address}\private$\order_queue$", b"nothing of yours")
    assert len(node.core.private_numbers[4].positions) == 0
    assert node.transport.refusals[BAD_DST_Q] == 2
    assert not peer.is_closed


@pytest.mark.requirement("QB-3.1.5.6-01", "QB-3.1.5.7-01", "QB-3.1.5.8-01")
@pytest.mark.parametrize("kind", ["user message", "order ack", "final ack"])
@pytest.mark.parametrize("state", [SessionState.WAITING_EC_MSG, SessionState.WAITING_CP_MSG])
def test_before_the_session_is_open_a_message_closes_it(state: SessionState, kind: str) -> None:
    # given a session that is not open yet
    _, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node)
    if state is SessionState.WAITING_CP_MSG:
        peer.write(EstablishConnection.request(peer.guid, NULL_GUID, uptime_ms=1).encode())
    # when a message comes
    message = peer.message(queue, transaction=(SEQUENCE, 1, 0))
    packets = {
        "user message": message,
        "order ack": peer.order_ack(SEQUENCE, 1),
        "final ack": peer.final_ack(message, MessageClass.ACK_RECEIVE),
    }
    peer.write(packets[kind].encode())
    # then the session is closed, and nothing was taken
    assert peer.is_closed
    assert bodies(queue) == []
    assert node.transport.sessions == []


# Counting


@pytest.mark.requirement("QB-3.1.5.8.2-02", "QB-3.1.5.8.2-03", "QB-3.1.5.8.2-09", "QB-A15-01")
def test_every_message_is_counted_also_one_that_is_refused() -> None:
    # given a session, one message for a queue and two for nobody
    estate, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    peer.send(queue)
    peer.send(4711, b"for nobody")
    peer.send("TCP:10.0.0.2\\private$\\nowhere")
    # when half of AckWaitTimeout has passed, and not earlier
    estate.advance(9.9)
    assert peer.session_acks == []
    estate.advance(0.2)
    # then all three are acknowledged
    assert [ack.ack_sequence_number for ack in peer.session_acks] == [3]


@pytest.mark.requirement("QB-3.1.5.8.2-04")
def test_a_direct_name_makes_the_session_direct() -> None:
    _, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open(direct=False)
    session = peer.line.session
    assert session is not None
    peer.send(queue.private_queue_number)
    assert not session.direct_format_session
    peer.send(queue)
    assert session.direct_format_session


@pytest.mark.requirement("QB-3.1.5.8.2-10")
def test_a_message_keeps_the_session_from_being_idle() -> None:
    # given a session that nobody uses for almost the cleanup interval
    estate, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    estate.advance(299)
    # when a message comes
    peer.send(queue)
    # then the session lives on, until it has been idle for a whole interval
    estate.advance(300)
    assert not peer.is_closed
    estate.advance(2)
    assert peer.is_closed


@pytest.mark.requirement("QB-3.1.5.8.2-26")
def test_a_recoverable_message_has_one_bit() -> None:
    # given express and recoverable messages (the guide's scenario 16)
    estate, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for recoverable in (False, True, True, False, True):
        peer.send(queue, recoverable=recoverable)
    # when they are acknowledged
    estate.advance(1)
    # then there are three bits for five messages
    (ack,) = peer.session_acks
    assert ack.ack_sequence_number == 5
    assert (ack.recoverable_msg_ack_seq_number, ack.recoverable_msg_ack_flags) == (1, 0b111)


@pytest.mark.requirement("QB-3.1.1.1.1.4-02")
def test_three_express_messages_have_one_acknowledgment() -> None:
    """The guide's scenario 14, at the receiver."""
    estate, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for number in range(3):
        peer.send(queue, b"%d" % number)
    estate.advance(30)
    assert bodies(queue) == [b"0", b"1", b"2"]
    assert [ack.ack_sequence_number for ack in peer.session_acks] == [3]


def test_the_33rd_recoverable_message_is_acknowledged_at_once() -> None:
    """The guide's scenario 15."""
    # given windows of 200 on both sides, so that half a window is no reason to acknowledge
    _, node = given_node(window_size=200)
    queue = node.queue("orders")
    peer = RawPeer(node).open(window_size=200)
    # when 32 recoverable messages have come and no time has passed, then there is no answer
    for _ in range(32):
        peer.send(queue, recoverable=True)
    assert peer.session_acks == []
    # when the 33rd comes, then there is one, with all its bits
    peer.send(queue, recoverable=True)
    (ack,) = peer.session_acks
    assert ack.ack_sequence_number == 33
    assert (ack.recoverable_msg_ack_seq_number, ack.recoverable_msg_ack_flags) == (1, 0xFFFFFFFF)


# SessionHeader


@pytest.mark.requirement("QB-3.1.5.8.4-01", "QB-3.1.5.8.4-02")
def test_a_session_header_behind_a_message_acknowledges_the_other_direction() -> None:
    # given two recoverable messages that the node has sent
    _, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for _ in range(2):
        node.send(rf"DIRECT=TCP:{ADDRESS}\private$\far", b"x", recoverable=True)
    peer.node.estate.settle()
    assert waiting(node) == 2
    # when an express message comes with a SessionHeader for the first of them
    peer.send(queue, session=acknowledge(1, 1))
    # then that one is gone, and the message is in its queue
    assert waiting(node) == 1
    assert bodies(queue) == [b"hello"]


@pytest.mark.requirement("QB-A15-01")
def test_a_session_header_counts_also_behind_a_message_that_is_refused() -> None:
    _, node = given_node()
    peer = RawPeer(node).open()
    node.send(rf"DIRECT=TCP:{ADDRESS}\private$\far", b"x", recoverable=True)
    peer.node.estate.settle()
    assert waiting(node) == 1
    peer.send(4711, session=acknowledge(1, 1))
    assert waiting(node) == 0


def test_a_wrong_count_behind_a_message_delivers_it_and_closes_the_session() -> None:
    """The guide's scenario 22: Windows can send a wrong UserMsgSequenceNumber."""
    _, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    peer.send(queue, session=acknowledge(0, 17))
    assert peer.is_closed
    assert bodies(queue) == [b"hello"]


# Saved before it is acknowledged


@pytest.mark.requirement("QB-3.1.5.8.7-11", "QB-3.1.1.1.1.6-01")
@pytest.mark.parametrize("recoverable", [True, False])
def test_a_message_that_is_being_written_is_not_acknowledged(recoverable: bool) -> None:
    # given a disk that is slow
    estate, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    node.holds_commits = True
    # when a recoverable message comes, and perhaps an express one behind it
    peer.send(queue, b"first", recoverable=True)
    peer.send(queue, b"second", recoverable=recoverable)
    estate.advance(15)
    # then what is acknowledged meanwhile are no messages
    assert {(a.ack_sequence_number, a.recoverable_msg_ack_flags) for a in peer.session_acks} <= {
        (0, 0)
    }
    # when the disk is done
    node.release_commits()
    estate.advance(11)
    # then both are
    assert peer.session_acks[-1].ack_sequence_number == 2
    bits = [ack.recoverable_msg_ack_flags for ack in peer.session_acks if ack.ack_sequence_number]
    assert bits == [0b11 if recoverable else 0b1]


@pytest.mark.requirement("QB-3.1.5.8.7-11", "QB-3.1.1.1.1.6-01")
def test_what_was_acknowledged_survives_a_power_failure() -> None:
    # given recoverable messages that were acknowledged, and one whose write was not done
    estate, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    peer.send(queue, b"safe", recoverable=True)
    estate.advance(1)
    node.holds_commits = True
    peer.send(queue, b"unsafe", recoverable=True)
    estate.advance(1)
    assert [ack.ack_sequence_number for ack in peer.session_acks] == [1]
    # when the power fails
    node.restart()
    # then the first is still there; the other was never acknowledged
    assert bodies(node.core.paths[queue.path_name.with_computer(".")]) == [b"safe"]


def test_a_restart_between_saving_and_acknowledging_does_not_double_a_message() -> None:
    """The guide's scenario 19."""
    # given a recoverable message that is saved and not yet acknowledged
    estate = routed_estate()
    sender, receiver = estate.node("A", 1), estate.node("B", 2)
    queue = receiver.queue("orders")
    sender.send(direct(receiver, "orders"), b"once", recoverable=True)
    estate.settle()
    assert bodies(queue) == [b"once"]
    assert len(sender.outgoing(direct(receiver, "orders")).positions) == 1
    # when the receiver loses its power, and the message comes again
    receiver.restart()
    estate.advance(20)
    # then it is there once, and the sender is rid of it
    assert bodies(receiver.core.paths[queue.path_name.with_computer(".")]) == [b"once"]
    assert len(sender.outgoing(direct(receiver, "orders")).positions) == 0
    assert receiver.transport.counters["duplicates"] == 1


# Into the queue


@pytest.mark.requirement("QB-3.1.5.8.5-02", "QB-A13-01", "QB-3.1.5.8.8-01", "QB-3.1.5.8.8-02")
@pytest.mark.requirement("QB-3.1.7.10-01")
@pytest.mark.parametrize("own_address", [True, False])
def test_our_own_address_and_none_both_mean_here(own_address: bool) -> None:
    # given private, public and direct names of queues
    _, node = given_node()
    private = node.queue("orders")
    path = PathName.parse(r".\letters")
    public: Queue = node.run(
        lambda: create_queue(node.core, path, skip_directory=True, identifier=PUBLIC_QUEUE)
    )
    peer = RawPeer(node).open()
    address = node.transport.guid if own_address else NULL_GUID
    # when messages come for them
    peer.send(private.private_queue_number, b"by number", address=address, label="whole")
    peer.send(private, b"by name")
    peer.send(PUBLIC_QUEUE.bytes_le, b"by GUID", address=address)
    # then they are there as they were sent, and no hop was counted
    assert bodies(private) == [b"by number", b"by name"]
    assert bodies(public) == [b"by GUID"]
    first = private.positions.find(next(iter(private.positions.available)))
    assert first is not None
    packet = first.message.packet
    assert packet.properties.label == "whole"
    assert packet.user.flags & 0x1F == 0
    assert packet.user.source_queue_manager == peer.guid


REFUSALS = [
    pytest.param(False, None, MessageClass.NACK_BAD_DST_Q, id="no queue"),
    pytest.param(True, None, MessageClass.NACK_BAD_DST_Q, id="no queue, transactional"),
    pytest.param(True, False, MessageClass.NACK_NOT_TRANSACTIONAL_Q, id="to a plain queue"),
    pytest.param(False, True, MessageClass.NACK_NOT_TRANSACTIONAL_MSG, id="to a strict queue"),
]


@pytest.mark.requirement(
    *(f"QB-3.1.5.8.2-{number}" for number in (11, 12, 13, 14, 15, 16, 17, 18, 19, 20)),
    "QB-3.1.1.1.1.8-01",
    "QB-3.1.7.15-08",
    "QB-3.1.7.15-15",
    "QB-3.1.7.15-16",
    "QB-3.1.7.17-05",
    "QB-3.1.7.17-13",
)
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(("transactional", "queue_is", "message_class"), REFUSALS)
def test_a_message_that_does_not_fit_is_refused(
    transactional: bool, queue_is: bool | None, message_class: MessageClass, asked: bool
) -> None:
    # given a receiver that tells everything, and perhaps a queue of the wrong kind
    _, node = given_node(send_insecure_nacks=True)
    queue = None if queue_is is None else node.queue("orders", transactional=queue_is)
    peer = RawPeer(node).open()
    # when a message comes for it, and perhaps asks for nacks
    peer.send(
        rf"TCP:{node.address}\private$\orders",
        b"body",
        transaction=(SEQUENCE, 1, 0) if transactional else None,
        admin=ACKS,
        acknowledgements=NEGATIVE_ARRIVAL if asked else 0,
    )
    # then it is nowhere, its sender is told if it asked, its queue manager if it is transactional
    assert queue is None or len(queue.positions) == 0
    assert len(node.core.dead_letter.positions) == 0
    assert peer.classes == [message_class] * asked
    assert [ack.message_class for ack in peer.final_acks] == [message_class] * transactional
    assert not peer.is_closed
    assert node.transport.refusals[message_class] == 1


def test_insecure_nacks_are_kept_back_but_the_final_ack_is_not() -> None:
    """The guide's scenarios 33 and 37."""
    _, node = given_node()
    node.queue("plain")
    peer = RawPeer(node).open()
    for name in ("plain", "nowhere"):
        peer.send(
            rf"TCP:{node.address}\private$\{name}", b"x", transaction=(SEQUENCE, 1, 0), **ASKING
        )
    assert peer.classes == [MessageClass.NACK_NOT_TRANSACTIONAL_Q]
    classes = [ack.message_class for ack in peer.final_acks]
    assert classes == [MessageClass.NACK_NOT_TRANSACTIONAL_Q, MessageClass.NACK_BAD_DST_Q]


def test_without_an_administration_queue_all_flags_mean_nothing() -> None:
    """The guide's scenario 38: FRAME 7 has all four flags and no queue."""
    _, node = given_node(send_insecure_nacks=True)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    peer.send(queue, acknowledgements=0x0F)
    peer.send(4711, acknowledgements=0x0F)
    assert peer.messages == []


# Expiry


@pytest.mark.requirement("MQ-2.2.19.1-39")
@pytest.mark.requirement(
    "QB-A14-01",
    "QB-3.1.5.8-02",
    "QB-3.1.1.1.1.4-01",
    "QB-A55-01",
    "QB-3.1.7.15-10",
    "QB-3.1.7.17-07",
)
@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("name", ["orders", "nowhere"])
def test_a_message_that_took_too_long_is_refused_before_its_queue_is_looked_for(
    name: str, transactional: bool
) -> None:
    # given a message that was to arrive within 60 seconds and is on its way for longer
    estate, node = given_node(send_insecure_nacks=True)
    queue = node.queue("orders", transactional=transactional)
    peer = RawPeer(node).open()
    # when it comes
    peer.send(
        rf"TCP:{node.address}\private$\{name}",
        transaction=(SEQUENCE, 1, 0) if transactional else None,
        time_to_reach_queue=60,
        age=62,
        **ASKING,
    )
    # then it is not queued, and that is why
    assert bodies(queue) == []
    assert peer.classes == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]
    classes = [ack.message_class for ack in peer.final_acks]
    assert classes == [MessageClass.NACK_REACH_QUEUE_TIMEOUT] * transactional
    # and its stream goes on
    estate.advance(1)
    assert [ack.body.tx_sequence_number for ack in peer.order_acks] == [1] * transactional


@pytest.mark.requirement("QB-A14-01")
def test_a_message_within_its_time_or_without_one_is_taken() -> None:
    _, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    peer.send(queue, b"in time", time_to_reach_queue=60, age=59)
    peer.send(queue, b"no limit", age=100_000)
    assert bodies(queue) == [b"in time", b"no limit"]


# Quotas


@pytest.mark.requirement(
    "QB-3.1.5.8.8-03",
    "QB-3.1.5.8.8-04",
    "QB-3.1.5.8.8-05",
    "QB-3.1.5.8.8-06",
    "QB-A49-01",
    "QB-3.1.7.15-11",
    "QB-3.1.7.17-08",
)
@pytest.mark.parametrize("journal", [0, JOURNAL_NEGATIVE, JOURNAL_POSITIVE])
@pytest.mark.parametrize("transactional", [True, False])
def test_a_full_queue_refuses_what_it_has_no_room_for(transactional: bool, journal: int) -> None:
    # given a queue with a quota of 1 KiB
    _, node = given_node()
    queue = node.queue("orders", transactional=transactional, quota_kilobytes=1)
    peer = RawPeer(node).open()
    # when 2 KiB come
    peer.send(
        queue,
        bytes(2048),
        transaction=(SEQUENCE, 1, 0) if transactional else None,
        flags=journal,
        recoverable=True,
        **ASKING,
    )
    # then they are refused; a plain message that is to be kept is in the dead-letter queue here
    assert bodies(queue) == []
    assert not peer.is_closed
    assert peer.classes == [MessageClass.NACK_Q_EXCEED_QUOTA]
    classes = [ack.message_class for ack in peer.final_acks]
    assert classes == [MessageClass.NACK_Q_EXCEED_QUOTA] * transactional
    is_kept = journal == JOURNAL_NEGATIVE and not transactional
    assert len(node.core.dead_letter.positions) == is_kept
    assert len(node.core.transactional_dead_letter.positions) == 0


@pytest.mark.requirement("QB-3.1.5.8.8-07", "QB-3.1.5.8.8-08", "QB-A49-01")
@pytest.mark.parametrize("transactional", [True, False])
def test_a_full_queue_manager_closes_the_session_and_the_message_stays_where_it_is(
    transactional: bool,
) -> None:
    # given a receiver whose quota is used up
    estate = routed_estate()
    sender, receiver = estate.node("A", 1), estate.node("B", 2)
    queue = receiver.queue("orders", transactional=transactional)
    receiver.core.settings.quota_kilobytes = 1
    name = direct(receiver, "orders")
    # when a message comes that is too much
    sender.send(name, bytes(2048), transactional=transactional, recoverable=True)
    estate.settle()
    # then the session is closed, nobody is told of a refusal, and the sender keeps the message
    assert receiver.transport.sessions == []
    assert bodies(queue) == []
    assert receiver.transport.refusals.total() == 0
    assert len(sender.outgoing(name).positions) == 1
    # and when there is room again, it arrives
    receiver.core.settings.quota_kilobytes = 1000
    estate.advance(60)
    assert len(bodies(queue)) == 1
    assert len(sender.outgoing(name).positions) == 0


# Protection


@pytest.mark.parametrize("kind", ["direct", "private"])
def test_a_queue_of_the_queue_manager_itself_takes_messages_while_somebody_listens(
    kind: str,
) -> None:
    node = routed_estate().node("B", 2, send_insecure_nacks=True)
    peer = RawPeer(node).open(direct=kind == "direct")
    queue = node.core.private_numbers[NOTIFY_QUEUE_NUMBER]
    to = queue if kind == "direct" else NOTIFY_QUEUE_NUMBER
    peer.send(to, b"nobody listens")
    assert bodies(queue) == []
    assert node.transport.refusals[MessageClass.NACK_BAD_DST_Q] == 1
    name = parse_format_name(node.private_name(queue))
    descriptor = open_queue(node.core, name, AccessType.RECEIVE, internal=True)
    peer.send(to, b"news")
    assert bodies(queue) == [b"news"]
    close_queue(node.core, descriptor)
    peer.send(to, b"too late")
    assert bodies(queue) == [b"news"]


@pytest.mark.requirement("QB-A59-01", "QB-3.1.7.15-13", "QB-3.1.7.15-14")
def test_a_queue_that_wants_authentication_or_privacy_refuses_plain_messages() -> None:
    _, node = given_node(send_insecure_nacks=True)
    signed = node.queue("signed", authentication=True)
    private = node.queue("private", privacy_level=QueuePrivacy.BODY)
    peer = RawPeer(node).open()
    peer.send(signed, **ASKING)
    peer.send(private, **ASKING)
    assert bodies(signed) == []
    assert bodies(private) == []
    assert peer.classes == [MessageClass.NACK_BAD_SIGNATURE, MessageClass.NACK_BAD_ENCRYPTION]


def test_a_damaged_conversation_leaves_what_came_before_it() -> None:
    _, node = given_node()
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    whole = peer.message(queue, b"whole").encode()
    peer.write(whole, whole[:-3] + b"???", ConnectionParameters(500, 20_000).encode())
    assert peer.is_closed
    assert bodies(queue)[0] == b"whole"
