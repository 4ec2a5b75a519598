"""Valid conversations, damaged at random: nothing gets out of the transport, nothing gets lost."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.manager.model import Queue
from falconmq.names import PathName
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_class import MessageClass
from falconmq.wire.session_header import SessionHeader
from tests.transport.answers import PUBLIC_QUEUE
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.raw_peer import ACKS, ADDRESS, RawPeer, routed_estate
from tests.transport.session_helpers import session_ack

S1 = 7 << 32 | 1
SAFE = [b"safe %d" % number for number in range(3)]
FAR = rf"DIRECT=TCP:{ADDRESS}\private$\far"


@dataclass
class Scene:
    estate: Estate
    node: Node
    queue: Queue
    strict: Queue
    bystander: Node
    peer: RawPeer


def given_scene() -> Scene:
    """A node with messages that a peer has sent, and messages of its own for that peer."""
    estate = routed_estate()
    node = estate.node("B", 2, send_insecure_nacks=True, send_reports=True)
    queue, strict = node.queue("orders"), node.queue("strict", transactional=True)
    bystander = estate.node("A", 1)
    bystander.send(direct(node, "strict"), b"0", transactional=True)
    peer = RawPeer(node).open()
    for body in SAFE:
        peer.send(queue, body, recoverable=True)
    node.send(FAR, b"express")
    node.send(FAR, b"recoverable", recoverable=True, trace=True, report_queue=PUBLIC_QUEUE)
    node.send(FAR, b"transactional", transactional=True, journal=0x3)
    estate.advance(1)
    assert peer.session_acks[-1].recoverable_msg_ack_flags == 0b111
    return Scene(estate, node, queue, strict, bystander, peer)


def packets(scene: Scene) -> list[bytes]:
    """What a peer of every talent might say next."""
    peer, queue, strict = scene.peer, scene.queue, scene.strict
    sent = [message for message in peer.messages if message.transaction is not None]
    assert sent[0].transaction is not None
    sequence = sent[0].transaction.tx_sequence_id
    far = scene.bystander.transport.guid
    public = PUBLIC_QUEUE.bytes_le
    header = SessionHeader(3, 1, 0b11, 4, 3, 64)
    said = [
        peer.message(queue, b"express", session=header),
        peer.message(queue, b"recoverable", recoverable=True, acknowledgements=15, admin=ACKS),
        peer.message(strict, b"first", transaction=(S1, 1, 0), flags=0x300, admin=7),
        peer.message(strict, b"second", transaction=(S1, 2, 1), acknowledgements=15, admin=ACKS),
        peer.message(queue.private_queue_number, b"traced", report_queue=public),
        peer.message(4711, b"for nobody", acknowledgements=15, admin=public),
        peer.message(12, b"for another", address=far, flags=5, recoverable=True),
        peer.message(public, b"public", address=far, transaction=(S1, 1, 0)),
        peer.order_ack(sequence, 1),
        peer.final_ack(sent[0], MessageClass.ACK_RECEIVE),
    ]
    return [
        *(message.encode() for message in said),
        session_ack(3, 1, 0b11, 3, 3),
        session_ack(0, 0, 0, 3, 3, 0),
        ConnectionParameters(500, 20_000).encode(),
        EstablishConnection.request(peer.guid, NULL_GUID, uptime_ms=1).encode(),
    ]


@dataclass(frozen=True)
class Damage:
    at: int  # in thousandths of the conversation
    cut: int  # bytes that get lost
    put: bytes


damages = st.lists(
    st.builds(Damage, st.integers(0, 999), st.integers(0, 6), st.binary(max_size=6)),
    max_size=6,
)


def damaged(data: bytes, changes: list[Damage]) -> bytes:
    for change in changes:
        at = len(data) * change.at // 1000
        data = data[:at] + change.put + data[at + change.cut :]
    return data


@settings(max_examples=150, deadline=None)
@given(
    order=st.lists(st.integers(0, 13), min_size=1, max_size=25),
    changes=damages,
    same_length=st.booleans(),
    segment=st.sampled_from([1, 7, 64, 1000, 100_000]),
    hold_after=st.integers(0, 400),
)
def test_a_damaged_conversation_raises_nothing_and_loses_nothing(
    order: list[int],
    changes: list[Damage],
    same_length: bool,
    segment: int,
    hold_after: int,
) -> None:
    # given a conversation of legal packets in any order, damaged here and there
    scene = given_scene()
    node, peer = scene.node, scene.peer
    choice = packets(scene)
    if same_length:  # so that the packets behind the damage are still packets
        changes = [Damage(c.at, len(c.put), c.put) for c in changes]
    data = damaged(b"".join(choice[number] for number in order), changes)
    # when it comes in segments of any size, and the disk is slow in between
    for number, start in enumerate(range(0, len(data), segment)):
        if number == hold_after:
            node.holds_commits = True
        peer.write(data[start : start + segment])
    scene.estate.advance(2)
    # then others are served all the time
    node.release_commits()
    scene.bystander.send(direct(node, "strict"), b"1", transactional=True)
    scene.estate.advance(40)
    from_bystander = [body for body in bodies(scene.strict) if len(body) == 1]
    assert from_bystander == [b"0", b"1"]
    # and what was acknowledged is there, also when the power fails
    assert bodies(scene.queue)[:3] == SAFE
    recoverable = bodies(scene.queue).count(b"recoverable")
    node.restart()
    scene.estate.advance(40)
    after = bodies(node.core.queues[scene.queue.number])
    assert after[:3] == SAFE
    assert after.count(b"recoverable") == recoverable


@settings(max_examples=100, deadline=None)
@given(changes=damages, same_length=st.booleans(), which=st.integers(0, 13))
def test_a_power_failure_in_the_middle_keeps_what_was_acknowledged(
    changes: list[Damage], same_length: bool, which: int
) -> None:
    # given recoverable messages, the last of them with a damaged packet behind it
    scene = given_scene()
    node, peer = scene.node, scene.peer
    for number in range(3, 40):
        node.holds_commits = number % 5 == 4
        peer.send(scene.queue, b"safe %d" % number, recoverable=True)
        if node.holds_commits:
            node.release_commits()
        scene.estate.settle()
    node.holds_commits = True
    peer.send(scene.queue, b"unsafe", recoverable=True)
    if same_length:
        changes = [Damage(c.at, len(c.put), c.put) for c in changes]
    peer.write(damaged(packets(scene)[which], changes))
    # when the power fails
    acknowledged = max(ack.ack_sequence_number for ack in peer.session_acks)
    node.restart()
    # then at least what was acknowledged is there, in order, once
    found = bodies(node.core.queues[scene.queue.number])
    expected = [b"safe %d" % number for number in range(40)]
    assert acknowledged <= 40
    assert found[:40] == expected


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200), is_open=st.booleans())
def test_any_bytes_at_all_raise_nothing(data: bytes, is_open: bool) -> None:
    node = routed_estate().node("B", 2)
    peer = RawPeer(node)
    if is_open:
        peer.open()
    peer.write(data)
    peer.write(b"LIOR" * 5)
    node.estate.advance(700)
    assert peer.is_closed
    assert node.transport.sessions == []


def test_every_byte_of_every_packet_may_be_wrong() -> None:
    """Each session sees one packet with one wrong byte."""
    for number in range(12):  # the two packets of the opening close an open session anyway
        scene = given_scene()
        data = packets(scene)[number]
        for at in range(len(data)):
            for value in {0, 0xFF, data[at] ^ 1, data[at] ^ 0x10} - {data[at]}:
                if scene.peer.is_closed:
                    scene.peer = RawPeer(scene.node).open()
                scene.peer.write(data[:at] + bytes([value]) + data[at + 1 :])
        assert bodies(scene.queue)[:3] == SAFE
        assert len(scene.node.transport.sessions) <= 3


pieces = st.sampled_from(
    [
        *("TCP:", "OS:", "HTTP://", "IPX:", "\\", "private$\\", "order_queue$", "orders", "strict"),
        *(";journal", ";x", "system$;deadletter", "10.0.0.2", "10.0.0.1", ADDRESS, "B", ".", "::1"),
        *("\ud800", " ", "/msmq/", "?", "+", "a" * 200),
    ]
)
names = st.lists(pieces, min_size=1, max_size=6).map("".join) | st.text(max_size=30)


@settings(max_examples=150, deadline=None)
@given(
    destination=names,
    admin=st.none() | names,
    is_transactional=st.booleans(),
    message_class=st.sampled_from([0, 1, 2, 0xFF, 0x4000, 0x8000]),
)
def test_any_name_at_all_raises_nothing(
    destination: str, admin: str | None, is_transactional: bool, message_class: int
) -> None:
    # given a message to a queue of any name, and with answers to any other
    estate = routed_estate()
    node = estate.node("B", 2, send_insecure_nacks=True)
    node.queue("orders")
    node.queue("strict", transactional=True)
    peer = RawPeer(node).open()
    message = peer.message(
        destination,
        bytes(range(36)),
        transaction=(S1, 1, 0) if is_transactional else None,
        flags=0x300,
        acknowledgements=15,
        admin=admin,
        message_class=message_class,
        label="QM Ordering Ack",
    )
    try:
        data = message.encode()
    except WireError:
        return  # no packet can hold such a name
    # when it comes, and the queue manager starts anew with what came of it
    peer.write(data)
    estate.advance(10)
    node.restart()
    # then it works
    queue = node.core.paths[PathName.parse(r".\private$\orders")]
    before = len(bodies(queue))
    RawPeer(node).open().send(queue, message_id=4711)
    assert len(bodies(queue)) == before + 1
