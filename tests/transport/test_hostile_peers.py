"""Peers that break rules, lie, flood or fall silent: each costs its own session and no more."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from falconmq.manager.model import Queue
from falconmq.transport.counters import NUMBERS_MAX
from falconmq.transport.session import Session
from falconmq.wire.base_header import PACKET_SIZE_MAX
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import LABEL
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.user_message import UserMessage
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.raw_peer import ADDRESS, RawPeer, routed_estate
from tests.transport.session_helpers import session_ack

S1 = 7 << 32 | 1
FAR = rf"DIRECT=TCP:{ADDRESS}\private$\far"
REQUEST = EstablishConnection.request(bytes(range(16)), NULL_GUID, uptime_ms=1).encode()


class Scene:
    """B, whom the hostile peer attacks; and A, who sends to B all the time."""

    def __init__(self, **settings: Any) -> None:
        self.estate: Estate = routed_estate()
        self.node: Node = self.estate.node("B", 2, **settings)
        self.queue: Queue = self.node.queue("orders")
        self.bystander: Node = self.estate.node("A", 1)
        self.transferred = self.node.queue("transferred", transactional=True)
        self.sent = 0
        self.transfer()

    def transfer(self) -> None:
        self.bystander.send(direct(self.node, "transferred"), b"%d" % self.sent, transactional=True)
        self.sent += 1
        self.estate.settle()

    def peer(self, **properties: Any) -> RawPeer:
        return RawPeer(self.node, **properties)

    def check_bystander(self) -> None:
        """It goes on over the very session it had, and nothing is lost."""
        self.transfer()
        self.estate.advance(5)
        assert bodies(self.transferred) == [b"%d" % number for number in range(self.sent)]
        assert len(self.bystander.lines) == 1
        assert not self.bystander.lines[0].is_closed
        name = direct(self.node, "transferred")
        assert len(self.bystander.outgoing(name).positions) == 0


@contextmanager
def closing(scene: Scene, caplog: pytest.LogCaptureFixture, reason: str) -> Iterator[None]:
    """What happens in here closes one session, is counted once, and its reason is in the log."""
    closed = scene.node.transport.counters["sessions closed"]
    caplog.clear()
    with caplog.at_level(logging.INFO, "falconmq.transport"):
        yield
    lines = [r.getMessage() for r in caplog.records if "session closed" in r.getMessage()]
    assert len(lines) == 1, caplog.text
    assert f"peer={ADDRESS}" in lines[0]
    assert reason in lines[0]
    assert scene.node.transport.counters["sessions closed"] == closed + 1
    scene.check_bystander()


def with_bytes(packet: bytes, at: int, value: bytes) -> bytes:
    return packet[:at] + value + packet[at + len(value) :]


# Malformed


def malformed(peer: RawPeer, queue: Queue) -> dict[str, bytes]:
    """Packets that break a layout, each in its way."""
    message = peer.message(queue, b"body").encode()
    flags = int.from_bytes(message[60:64], "little")
    order_ack = peer.order_ack(S1, 1).encode()
    ack = session_ack()
    return {
        "version": with_bytes(message, 0, b"\x11"),
        "signature": with_bytes(message, 4, b"ROIL"),
        "size 0": with_bytes(message, 8, bytes(4)),
        "size 19": with_bytes(message, 8, b"\x13\0\0\0"),
        "size over the limit": with_bytes(message, 8, (PACKET_SIZE_MAX + 1).to_bytes(4, "little")),
        "size for less than the headers": with_bytes(message, 8, b"\x30\0\0\0"),
        "size for half of the body": with_bytes(
            message, 8, (len(message) - 3).to_bytes(4, "little")
        ),
        "a transaction header that is not there": with_bytes(
            message, 60, (flags | 1 << 20).to_bytes(4, "little")
        ),
        "a security header that is not there": with_bytes(
            message, 60, (flags | 1 << 19).to_bytes(4, "little")
        ),
        "a type of destination that nobody knows": with_bytes(
            message, 60, (flags & ~0x1C00 | 1 << 10).to_bytes(4, "little")
        ),
        "a name without end": with_bytes(message, 64, b"\xff\xff"),
        "an internal packet that nobody knows": with_bytes(ack, 18, b"\x07\0"),
        "an internal packet of the wrong size": with_bytes(REQUEST, 8, b"\x3b\x02\0\0"),
        "a session header and no message": with_bytes(ack, 2, b"\x10\0"),
        "no packet at all": b"GET / HTTP/1.1\r\nHost: b\r\n\r\n",
        "zeros": bytes(1000),
        "an order ack of number 0": order_ack.replace(
            order_ack[-36:], with_bytes(order_ack[-36:], 8, bytes(4))
        ),
        "an order ack without predecessor": order_ack.replace(
            order_ack[-36:], with_bytes(order_ack[-36:], 12, b"\xff" * 4)
        ),
    }


_KINDS = list(malformed(RawPeer(routed_estate().node("B", 2)), Scene().queue))


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("kind", _KINDS)
def test_a_malformed_packet_closes_its_own_session(
    kind: str, in_pieces: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # given an open session, over which a message has come
    scene = Scene()
    peer = scene.peer().open()
    packet = malformed(peer, scene.queue)[kind]
    peer.send(scene.queue, b"before")
    # when a packet comes that is none
    with closing(scene, caplog, "malformed packet"):
        for piece in [packet[i : i + 7] for i in range(0, 140, 7)] if in_pieces else [packet]:
            peer.write(piece)
        peer.write(packet[140:] if in_pieces else b"")
        peer.send(scene.queue, b"behind")
    # then the session is closed, and what came before it stays
    assert peer.is_closed
    assert bodies(scene.queue) == [b"before"]


@pytest.mark.parametrize("packet", [REQUEST, ConnectionParameters(500, 20_000).encode()])
def test_the_packets_of_the_opening_close_an_open_session(
    packet: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    peer = scene.peer().open()
    with closing(scene, caplog, "is not allowed in OPEN"):
        peer.write(packet)
    assert peer.is_closed


@pytest.mark.parametrize("number", [0, 0xFFFFFFFF])
def test_a_number_that_no_message_can_have_closes_the_session(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    # given a transactional message with number 0, or behind number 0xFFFFFFFF
    scene = Scene()
    peer = scene.peer().open()
    packet = peer.message(scene.transferred, transaction=(S1, 0x11223344, 0x55667788)).encode()
    if number:
        packet = packet.replace(b"\x88\x77\x66\x55", b"\xff" * 4)
    else:
        packet = packet.replace(b"\x44\x33\x22\x11", bytes(4))
    # when it comes, then the session is closed
    with closing(scene, caplog, "TransactionHeader"):
        peer.write(packet)


def test_the_last_number_of_a_sequence_is_followed_by_another_sequence() -> None:
    scene = Scene()
    queue = scene.node.queue("strict", transactional=True)
    peer = scene.peer().open()
    peer.send(queue, b"last", transaction=(S1, 0xFFFFFFFF, 0))
    peer.send(queue, b"again", transaction=(S1, 0xFFFFFFFF, 0))
    peer.send(queue, b"next", transaction=(S1 + 1, 1, 0))
    assert bodies(queue) == [b"last", b"next"]


# Large


def test_a_packet_of_exactly_four_mebibytes_is_taken() -> None:
    # given a message whose packet is as large as one may be
    scene = Scene()
    peer = scene.peer().open()
    overhead = len(peer.message(scene.queue, b"", message_id=1).encode())
    body = bytes(PACKET_SIZE_MAX - overhead)
    # when it comes in segments
    packet = peer.message(scene.queue, body, message_id=1).encode()
    assert len(packet) == PACKET_SIZE_MAX
    for start in range(0, len(packet), 1 << 20):
        peer.write(packet[start : start + (1 << 20)])
    # then it is there
    assert bodies(scene.queue) == [body]
    scene.check_bystander()


def test_one_byte_more_is_refused_before_it_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    peer = scene.peer().open()
    header = with_bytes(
        peer.message(scene.queue).encode()[:16], 8, (PACKET_SIZE_MAX + 1).to_bytes(4, "little")
    )
    with closing(scene, caplog, "PacketSize"):
        peer.write(header)
    assert peer.is_closed


def test_what_a_peer_announces_costs_nothing_until_it_comes() -> None:
    # given many peers that announce four mebibytes and send a header
    scene = Scene()
    peers = [scene.peer(address=f"10.0.1.{number}").open() for number in range(50)]
    for peer in peers:
        packet = peer.message(scene.queue).encode()
        peer.write(with_bytes(packet, 8, PACKET_SIZE_MAX.to_bytes(4, "little")))
    # then what waits is what came
    for peer in peers:
        assert peer.line.session is not None
        assert peer.line.session._splitter.pending < 300
    # and when nothing follows, the sessions are closed as idle
    scene.estate.advance(250)
    scene.transfer()
    scene.estate.advance(51)
    assert all(peer.is_closed for peer in peers)
    scene.check_bystander()


# Slow and half open


@pytest.mark.parametrize("said", [b"", REQUEST[:100], REQUEST])
def test_a_session_that_is_not_opened_in_a_minute_is_closed(
    said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    peer = scene.peer()
    peer.write(said)
    with closing(scene, caplog, "not open after 60 seconds"):
        scene.estate.advance(59)
        assert not peer.is_closed
        scene.estate.advance(2)


def test_one_byte_at_a_time_does_not_keep_a_session_from_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    peer = scene.peer()
    with closing(scene, caplog, "not open after 60 seconds"):
        for at in range(62):
            peer.write(REQUEST[at : at + 1])
            scene.estate.advance(1)


def test_a_flood_of_connections_is_bounded_and_passes() -> None:
    # given room for 20 sessions, one of which the bystander has
    scene = Scene(sessions_max=20)
    # when a hundred connections come that say nothing
    peers = [scene.peer(address=f"10.0.1.{number}") for number in range(100)]
    # then 19 are taken and a few more to be told no; all these others are counted
    taken = [peer for peer in peers if peer.line.session is not None]
    assert len(taken) == 19 + 64
    assert scene.node.transport.counters["connections refused"] == 81
    taken[-1].write(REQUEST)
    (answer,) = taken[-1].packets
    assert isinstance(answer, EstablishConnection)
    assert answer.refused
    assert taken[-1].is_closed
    scene.check_bystander()
    # and after a minute there is room for those who have something to say
    scene.estate.advance(61)
    assert all(peer.is_closed for peer in taken)
    scene.peer().open().send(scene.queue)
    assert bodies(scene.queue) == [b"hello"]


def test_a_flood_of_requests_ends_with_the_second(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    peer = scene.peer()
    with closing(scene, caplog, "is not allowed in WAITING_CP_MSG"):
        peer.write(REQUEST * 1000)
    assert len(peer.packets) == 1


# Acknowledgments of things that never were


@pytest.mark.parametrize(
    "ack",
    [
        pytest.param(session_ack(2), id="one too many"),
        pytest.param(session_ack(0x7FFF), id="from the future"),
        pytest.param(session_ack(1, 1, 0b11), id="two on disk"),
        pytest.param(session_ack(1, 0xFFFF, 0x80000000), id="the last bit"),
        pytest.param(session_ack(1, 7, 1), id="the seventh on disk"),
    ],
)
def test_acknowledging_what_was_never_sent_closes_the_session_and_frees_nothing(
    ack: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    # given one recoverable message that was sent
    scene = Scene()
    peer = scene.peer().open()
    scene.node.send(FAR, b"precious", recoverable=True)
    scene.estate.settle()
    assert len(peer.messages) == 1
    # when more than that is acknowledged
    with closing(scene, caplog, "malformed packet"):
        peer.write(ack)
    # then it is still there, and sent again on the next session
    assert len(scene.node.outgoing(FAR).positions) == 1
    again = scene.peer().open()
    scene.estate.advance(0)
    assert [bytes(m.properties.message_body) for m in again.messages] == [b"precious"]


def test_the_same_acknowledgment_twice_is_the_same() -> None:
    scene = Scene()
    peer = scene.peer().open()
    for _ in range(2):
        scene.node.send(FAR, b"x", recoverable=True)
    scene.estate.settle()
    for _ in range(3):
        peer.write(session_ack(1, 1, 1))
    assert not peer.is_closed
    assert len(scene.node.outgoing(FAR).positions) == 1
    scene.check_bystander()


def test_a_window_of_nothing_is_a_window_of_one() -> None:
    # given a peer that wants no messages at all
    scene = Scene()
    peer = scene.peer().open(window_size=0)
    for _ in range(5):
        scene.node.send(FAR, b"x")
    scene.estate.settle()
    assert len(peer.messages) == 1
    # when it says so again with each acknowledgment
    for number in range(1, 5):
        peer.write(session_ack(number, window_size=0))
        assert len(peer.messages) == number + 1
    # then it gets one at a time
    assert not peer.is_closed
    scene.check_bystander()


def test_a_peer_that_never_answers_gets_one_window_and_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # given more messages than a window, and a peer that does not even read
    scene = Scene()
    peer = scene.peer().open()
    for _ in range(200):
        scene.node.send(FAR, bytes(1000), recoverable=True)
    scene.estate.settle()
    assert len(peer.messages) == 64
    # when it is silent for two times the time-out: the first one has seen it open the session
    with closing(scene, caplog, "the peer is silent"):
        scene.estate.advance(81)
    # then nothing is lost
    assert len(peer.messages) == 64
    assert len(scene.node.outgoing(FAR).positions) == 200


# Streams of others


def given_stream(scene: Scene) -> tuple[RawPeer, UserMessage]:
    """A transactional message that B has sent to a peer, and keeps until it has been read."""
    peer = scene.peer().open()
    scene.node.send(FAR, b"precious", transactional=True, journal=0x3)
    scene.estate.settle()
    (message,) = peer.messages
    return peer, message


def kept(scene: Scene) -> tuple[int, int]:
    """Messages that wait in the outgoing queue, and those that have not arrived yet."""
    queue = scene.node.outgoing(FAR)
    return len(queue.positions), scene.node.transport.tables[queue].pending


@pytest.mark.requirement("QB-A34-01")
def test_an_order_ack_of_somebody_else_is_nobodys_news() -> None:
    # given a stream to one peer
    scene = Scene()
    _, message = given_stream(scene)
    assert message.transaction is not None
    # when another one acknowledges it, by its own name
    thief = scene.peer(address="10.0.0.98", guid=bytes(range(16))).open()
    thief.write(thief.order_ack(message.transaction.tx_sequence_id, 1).encode())
    # then it is as it was
    assert kept(scene) == (1, 1)
    assert not thief.is_closed
    scene.check_bystander()


@pytest.mark.requirement("QB-A34-01")
@pytest.mark.parametrize(
    ("sequence", "number"), [(0, 2), (0, 0xFFFFFFFF), (1, 1), (-1, 1), (1 << 40, 7)]
)
def test_an_order_ack_of_what_was_never_sent_frees_nothing(sequence: int, number: int) -> None:
    # given a stream with one message
    scene = Scene()
    peer, message = given_stream(scene)
    assert message.transaction is not None
    # when an OrderAck comes for a number that has no message, or for another sequence
    ack = peer.order_ack(message.transaction.tx_sequence_id + sequence, number)
    peer.write(replace(ack, session=SessionHeader(1, 1, 1, 1, 0, 64)).encode())
    # then the message is still on its way, and the next one as well
    scene.node.send(FAR, b"next", transactional=True)
    scene.estate.settle()
    assert kept(scene) == (2, 2)
    assert not peer.is_closed


@pytest.mark.requirement("QB-A40-01")
def test_a_final_ack_that_only_guesses_ends_nothing() -> None:
    # given a transactional message
    scene = Scene()
    peer, message = given_stream(scene)
    header = message.transaction
    assert header is not None
    # when FinalAcks come that know its number, but not its place; or its place, but not its source
    wrong_place = replace(message, transaction=replace(header, tx_sequence_id=S1))
    wrong_number = replace(message, transaction=replace(header, tx_sequence_number=77))
    wrong_id = replace(message, user=replace(message.user, message_id=4711))
    wrong_source = replace(message, user=replace(message.user, source_queue_manager=peer.guid))
    for about in (wrong_place, wrong_number, wrong_id, wrong_source):
        for message_class in (MessageClass.ACK_RECEIVE, MessageClass.NACK_Q_PURGED):
            peer.write(peer.final_ack(about, message_class).encode())
    # then it is as it was
    assert kept(scene) == (1, 1)
    assert len(scene.node.core.journal.positions) == 0
    # and the true one ends it
    peer.write(peer.final_ack(message, MessageClass.ACK_RECEIVE).encode())
    assert kept(scene) == (0, 0)
    assert len(scene.node.core.journal.positions) == 1


def test_an_ordering_ack_of_another_size_is_refused_as_a_message() -> None:
    scene = Scene()
    peer = scene.peer().open()
    peer.send(4, bytes(35), label=LABEL, message_class=MessageClass.ORDER_ACK)
    assert scene.node.transport.refusals[MessageClass.NACK_BAD_DST_Q] == 1
    assert not peer.is_closed


# Many


def test_twenty_thousand_tiny_messages_are_taken_and_leave_nothing_behind() -> None:
    # given a peer that sends as fast as it can, and reads nothing
    scene = Scene()
    peer = scene.peer().open()
    for _ in range(20):
        packets = [peer.message(4711, b"").encode() for _ in range(1000)]
        peer.write(*packets)
    # then all of them are counted, refused, and forgotten but for their numbers
    assert scene.node.transport.refusals[MessageClass.NACK_BAD_DST_Q] == 20_000
    assert len(scene.node.transport.history) <= 10_000
    assert peer.line.session is not None
    assert peer.line.session.unsettled == 0
    assert len(scene.node.core.timers.monotonic) < 100
    assert not peer.is_closed
    scene.check_bystander()


def test_a_peer_that_does_not_wait_for_the_disk_is_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # given a disk that does not answer
    scene = Scene()
    peer = scene.peer().open()
    scene.node.holds_commits = True
    packet = peer.message(scene.queue, b"", message_id=1, recoverable=True).encode()
    # when a peer sends on and on
    with caplog.at_level(logging.INFO, "falconmq.transport"):
        for _ in range(0, NUMBERS_MAX + 1, 4096):
            peer.write(packet * 4096)
    # then there is an end to it
    assert peer.is_closed
    assert "without waiting for an answer" in caplog.text
    scene.node.release_commits()
    scene.check_bystander()


def test_streams_to_queues_that_do_not_exist_are_bounded() -> None:
    # given a peer that invents queues
    scene = Scene()
    peer = scene.peer().open()
    before = len(list(scene.node.store.scan("incoming_streams")))
    for number in range(1500):
        name = rf"TCP:10.0.0.2\private$\no{number}"
        peer.write(peer.message(name, b"", transaction=(S1, 1, 0)).encode())
    # then a thousand of them are remembered, and none is on disk
    streams = scene.node.transport.incoming_streams
    assert len(streams._streams) <= 1000 + before
    assert len(list(scene.node.store.scan("incoming_streams"))) == before
    scene.check_bystander()


def test_a_session_that_lives_long_does_not_gather_timers() -> None:
    # given a session over which a message comes every twelve seconds, for an hour
    estate = routed_estate()
    node = estate.node("B", 2)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for _ in range(300):
        peer.send(queue)
        estate.advance(12)
    # then its timers are few
    assert len(node.core.timers.monotonic) < 60


def test_invented_identifiers_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a peer with a new identifier for each session
    monkeypatch.setattr("falconmq.transport.addresses._MANAGERS_MAX", 100)
    node = routed_estate().node("B", 2)
    for number in range(1, 300):
        RawPeer(node, guid=number.to_bytes(16, "big")).open().hang_up()
    # then not all of them are remembered
    assert len(node.transport.addresses) == 100


def test_invented_names_of_our_host_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a peer that has a new name for us in each message
    monkeypatch.setattr("falconmq.transport.receiving._NAMES_MAX", 100)
    node = routed_estate().node("B", 2)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for number in range(250):
        peer.send(rf"OS:host{number}\private$\orders")
    # then all of them arrive, and not all names are remembered
    assert len(queue.positions) == 250
    assert len(node.transport.known_names) <= 100


# Whom we call


class Called:
    """Somebody whom the node calls, and who answers with whatever the test says."""

    def __init__(self, node: Node, answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node, self.answer = node, answer
        self.peers: list[RawPeer] = []
        node.estate.names[ADDRESS] = [ADDRESS]
        monkeypatch.setattr(node, "connect", self._connect)

    def _connect(self, session: Session, address: str) -> None:
        self.node.estate.later(self.node, self._take, session)

    def _take(self, session: Session) -> None:
        peer = RawPeer(self.node, session=session)
        self.peers.append(peer)
        self.node.estate.later(self.node, self._reply, peer)

    def _reply(self, peer: RawPeer) -> None:
        peer.node.transport.data_received(_session(peer), self.answer)


def _session(peer: RawPeer) -> Session:
    assert peer.line.session is not None
    return peer.line.session


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another service"),
        pytest.param(ConnectionParameters(500, 20_000).encode(), id="the second packet first"),
        pytest.param(session_ack(), id="an acknowledgment"),
        pytest.param(REQUEST, id="the answer to another request"),
        pytest.param(REQUEST[:-1], id="half an answer"),
    ],
)
def test_somebody_who_answers_nonsense_is_called_again_after_a_pause(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a message for somebody who is no queue manager
    scene = Scene()
    called = Called(scene.node, answer, monkeypatch)
    scene.node.send(FAR, b"precious", recoverable=True)
    # when five minutes pass
    scene.estate.advance(300)
    # then there were tries, with pauses between them, and the message is where it was
    assert 3 <= len(called.peers) <= 61
    assert all(peer.is_closed for peer in called.peers[:-1])
    assert len(scene.node.outgoing(FAR).positions) == 1
    assert len(scene.node.transport.sessions) <= 2


def test_session_acks_one_by_one_are_no_reason_to_close() -> None:
    scene = Scene()
    peer = scene.peer().open()
    for _ in range(5000):
        peer.write(SessionAck(SessionHeader(0, 0, 0, 0, 0, 64)).encode())
    assert not peer.is_closed
    assert len(scene.node.core.timers.monotonic) < 100
    scene.check_bystander()


def test_a_peer_that_breaks_a_rule_is_counted_and_one_that_leaves_is_not() -> None:
    scene = Scene()
    scene.peer().open().hang_up()
    counted = "sessions closed for what a peer sent"
    assert scene.node.transport.counters[counted] == 0
    scene.peer().open().write(b"GET / HTTP/1.1\r\n\r\n")
    assert scene.node.transport.counters[counted] == 1
