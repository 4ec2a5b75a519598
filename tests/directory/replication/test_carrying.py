"""The replication queue, its loop, and what becomes of what comes (scenarios 7, 17, 47, 52)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from falconmq.directory.replication.carrying import RESENDS_MAX, ReplicationCarrier
from falconmq.directory.replication.effects import Profile, Send
from falconmq.directory.replication.replication_queue import (
    QUEUE_PATH,
    REPLICATION_QUEUE_NUMBER,
    create_replication_queue,
)
from falconmq.errors import FalconMQError, QueueError, StoreError
from falconmq.manager.opening import open_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType
from falconmq.message import MessageId
from falconmq.names import parse_format_name
from falconmq.security import rsa
from falconmq.security.hashes import hash_of
from falconmq.security.manager_signatures import sign_as_manager
from falconmq.security.providers import ADVANCED
from falconmq.security.rsa import RsaKeyPair
from falconmq.security.signature_input import SignatureVersion, signature_input
from falconmq.serialization import from_user_message
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import HASH_MD5
from falconmq.wire.replication_messages import ReplicationMessage
from falconmq.wire.user_message import UserMessage
from tests.directory.replication.carried import (
    PlayedEngine,
    Server,
    introduce,
    make_server,
    purged,
    quiet,
    two_servers,
)
from tests.security import known
from tests.transport.estate import Estate, direct
from tests.transport.protected import KEYS
from tests.wire.test_replication_messages import ALL, BSC_ACK, PROPAGATION, REQUEST, SYNC_REQUEST

OWN_QUEUE = r"DIRECT=OS:PEC0\private$\mqis_queue$"
THEIR_QUEUE = r"DIRECT=OS:PSC1\private$\mqis_queue$"


# The queue


@pytest.mark.requirement("RP-2.1-02", "RP-3.1.3.3-01", "RP-3.1.3.3-03")
def test_a_directory_server_has_queue_1_and_listens_to_it() -> None:
    estate = Estate()
    assert REPLICATION_QUEUE_NUMBER not in estate.node("PLAIN", 9).core.private_numbers
    server = make_server(estate, "PEC0", 1)
    assert server.queue is server.node.core.queues[1]
    assert str(server.queue.path_name) == r"PEC0\private$\mqis_queue$"
    (descriptor,) = server.queue.descriptors
    assert (descriptor.access, descriptor.share.name) == (AccessType.RECEIVE, "DENY_NONE")
    assert descriptor.format_name == parse_format_name(rf"PRIVATE={server.node.identifier}\1")
    assert len(server.queue.waiting) == 1
    assert server.engine.is_started


def test_applications_do_not_get_at_it() -> None:
    server = make_server(Estate(), "PEC0", 1)
    for access in (AccessType.RECEIVE, AccessType.SEND):
        with pytest.raises(QueueError, match="for the queue manager alone"):
            open_queue(server.node.core, parse_format_name(OWN_QUEUE), access)


def test_it_is_there_after_a_restart() -> None:
    server = make_server(Estate(), "PEC0", 1)
    server.node.restart()
    assert server.node.run(create_replication_queue, server.node.core) is server.queue
    assert server.queue.is_internal


@pytest.mark.requirement("RP-3.1.3.3-02")
def test_a_queue_of_an_application_with_that_name_is_an_error_that_says_so() -> None:
    node = Estate().node("PEC0", 1)
    node.queue("mqis_queue$")
    engine = PlayedEngine()
    carrier = ReplicationCarrier(node.core, engine, lambda: KEYS)
    with pytest.raises(QueueError, match="queue of an application") as error:
        node.run(carrier.start)
    assert QUEUE_PATH in error.value.hint
    assert not engine.is_started


def test_a_server_that_stopped_takes_nothing_and_sends_nothing() -> None:
    estate, one, two = two_servers()
    two.node.run(two.carrier.stop)
    assert not two.engine.is_started
    one.send("PSC1", purged())
    estate.advance(1)
    assert two.engine.received == []
    two.send("PEC0", purged())
    assert two.waiting("PEC0") == []
    assert two.engine.on_effects is None
    # and begins again
    two.node.run(two.carrier.start)
    one.send("PSC1", purged(8))
    estate.advance(1)
    assert two.messages == [purged(8)]


# Messages


def signed(server: Server, body: bytes, message_class: int = MessageClass.NORMAL) -> UserMessage:
    """A message of a server as it leaves it, with any body."""
    packet = server.node.build(THEIR_QUEUE, body).packet
    properties = replace(packet.properties, message_class=message_class)
    return sign_as_manager(
        replace(packet, properties=properties),
        KEYS.signing[ADVANCED],
        server.node.identifier,
        hash_algorithm=HASH_MD5,
        allow_weak=True,
    )


def hear(server: Server, packet: UserMessage, level: int = 1) -> None:
    stored = StoredMessage.of(packet)
    stored.authentication_level = level
    server.hear(stored)


@pytest.mark.requirement(
    "RP-3.1.5.1-03",
    "RP-3.1.5.1-04",
    "RP-3.1.5.1-05",
    "RP-3.1.5.1-06",
    "RP-3.1.5.1-07",
    "RP-3.1.5.1-08",
    "RP-3.1.5.1-09",
    "RP-3.1.5.1-10",
    "RP-3.1.5.1-17",
)
def test_the_engine_gets_each_of_the_eight_messages_as_it_came() -> None:
    _, one, two = two_servers()
    for message, data in ALL:
        hear(two, signed(one, data + b"\0"))  # a byte behind the end is nobody's business
        assert two.engine.received[-1] == (message, one.node.identifier)
    assert two.drops == {}


@pytest.mark.requirement(
    "RP-3.1.5.1-01", "RP-3.1.5.1-02", "RP-3.1.5.1-11", "RP-3.1.5.1-15", "RP-3.1.5.1-16"
)
@pytest.mark.parametrize(
    ("body", "message_class", "reason"),
    [
        (b"", 0, "empty body"),
        (b"\1" + bytes(30), 0, "unknown version"),
        (bytes(17) + b"\x08" + bytes(30), 0, "unknown operation"),
        (bytes(17) + b"\x08" + bytes(30), MessageClass.NACK_BAD_SIGNATURE, "unknown operation"),
        (bytes(10), 0, "malformed"),
        (purged().encode()[:-1], 0, "malformed"),
        (purged().encode(), MessageClass.ACK_REACH_QUEUE, "neither a message nor a nack"),
        (purged().encode(), MessageClass.REPORT, "neither a message nor a nack"),
        (purged().encode(), MessageClass.NACK_RECEIVE_REJECTED, "neither a message nor a nack"),
    ],
)
def test_a_bad_message_is_dropped_and_counted_and_the_loop_lives(
    body: bytes, message_class: int, reason: str
) -> None:
    _, one, two = two_servers()
    hear(two, signed(one, body, message_class))
    assert two.drops == {reason: 1}
    assert two.engine.received == []
    hear(two, signed(one, purged().encode()))
    assert two.messages == [purged()]


def test_many_bad_messages_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    _, one, two = two_servers()
    for _ in range(5):
        hear(two, signed(one, b""))
    assert two.drops == {"empty body": 5}
    assert len(caplog.records) == 1


def test_an_engine_that_fails_does_not_end_the_loop() -> None:
    def fail(message: object) -> list[Send]:
        raise StoreError("the disk is full")

    _, one, two = two_servers()
    two.engine.answer = fail
    hear(two, signed(one, purged().encode()))
    two.engine.answer = lambda _: [quiet("PEC0", purged(9))]
    hear(two, signed(one, purged().encode()))
    assert len(two.messages) == 2
    assert len(two.waiting("PEC0")) == 1


def test_what_the_engine_answers_goes_out() -> None:
    estate, one, two = two_servers()
    two.engine.answer = lambda _: [quiet("PEC0", BSC_ACK), quiet("PEC0", purged(9))]
    one.send("PSC1", SYNC_REQUEST)
    estate.advance(1)
    assert one.messages == [BSC_ACK, purged(9)]


def test_the_loop_does_not_wait_for_the_engine() -> None:
    # given a host that does the engine's work later, in a thread say
    later: list[tuple[Any, Any]] = []
    estate = Estate()
    one, two = make_server(estate, "PEC0", 1), make_server(estate, "PSC1", 2)
    introduce(one, two)
    carrier = two.carrier
    carrier._run_beside = lambda work, done: later.append((work, done))
    # when two messages come before it is done
    for _ in range(2):
        hear(two, signed(one, purged().encode()))
    # then both were taken, and their answers go out when they are there
    assert len(later) == 2
    two.engine.answer = lambda _: [quiet("PEC0", BSC_ACK)]
    for work, done in later:
        two.node.run(done, work())
    assert len(two.waiting("PEC0")) == 2


# Who sent it


def test_unsigned_messages_are_dropped() -> None:
    estate, one, two = two_servers()
    packet = one.node.build(THEIR_QUEUE, PROPAGATION.encode()).packet
    hear(two, packet)
    assert two.drops == {"not from a queue manager": 1}
    # that it says so itself proves nothing: nobody here has verified it
    hear(two, signed(one, PROPAGATION.encode()), level=0)
    assert two.drops == {"not from a queue manager": 1, "not authenticated": 1}
    # the whole way as well: an application of another queue manager sends to the queue
    one.node.send(direct(two.node, "mqis_queue$"), PROPAGATION.encode())
    estate.advance(1)
    assert two.drops["not from a queue manager"] == 2
    assert two.engine.received == []


def test_a_message_of_a_server_whose_keys_nobody_knows_does_not_get_into_the_queue() -> None:
    estate, one, two = two_servers()
    two.registry.keys.clear()
    one.send("PSC1", PROPAGATION)
    estate.advance(1)
    assert two.carrier.counters == {}
    assert two.engine.received == []


def test_a_signature_with_a_key_of_512_bits_proves_nothing() -> None:
    # the transport takes it, for MD5 is weak as well and has to be taken here
    estate, one, two = two_servers()
    short = known.PAIR_512.public
    packet = signed(one, PROPAGATION.encode())
    assert packet.security is not None
    hash_used = hash_of(HASH_MD5, allow_weak=True)
    data = signature_input(SignatureVersion.MSMQ_1_0, packet)
    forged = short_signature(known.PAIR_512, hash_used.digest_info(data))
    assert rsa.verify(short, hash_used, data, forged)
    packet = replace(packet, security=replace(packet.security, signature=forged[::-1]))
    one.node.run(one.node._send, parse_format_name(THEIR_QUEUE), [StoredMessage.of(packet)])
    estate.advance(1)
    assert two.carrier.counters["received"] == 1
    assert two.drops == {"signed with a key that is too short": 1}
    assert two.engine.received == []


def short_signature(pair: RsaKeyPair, digest_info: bytes) -> bytes:
    """PKCS #1 v1.5 by hand: the library refuses keys as short as this."""
    padding = b"\xff" * (pair.public.size - len(digest_info) - 3)
    block = b"\0\1" + padding + b"\0" + digest_info
    number = pow(int.from_bytes(block, "big"), pair.private_exponent, pair.public.modulus)
    return number.to_bytes(pair.public.size, "big")


def test_signatures_can_be_done_without_and_then_nobody_is_the_sender() -> None:
    _, one, two = two_servers(requires_signature=False)
    hear(two, one.node.build(THEIR_QUEUE, PROPAGATION.encode()).packet, level=0)
    hear(two, signed(one, PROPAGATION.encode()), level=0)
    hear(two, signed(one, PROPAGATION.encode()))
    senders = [sender for _, sender in two.engine.received]
    assert senders == [None, None, one.node.identifier]


# Nacks


def nack(
    server: Server,
    message_class: int,
    *,
    about: StoredMessage | None = None,
    body: bytes | None = None,
    response: str = THEIR_QUEUE,
) -> None:
    """A negative acknowledgement comes, about what the server sent last if nothing is said."""
    if about is None:
        (about,) = server.waiting("PSC1")[-1:]
    identifier = MessageId.of(server.node.identifier, about.packet.user.message_id)
    returned = bytes(about.packet.properties.message_body) if body is None else body
    packet = server.node.build(
        OWN_QUEUE,
        returned,
        message_class=message_class,
        correlation_id=identifier,
        response_queue=response,
    ).packet
    server.hear(StoredMessage.of(packet))


@pytest.mark.requirement("RP-3.1.5.1-13", "RP-3.1.5.1-12")
@pytest.mark.parametrize("message_class", [0x8000, 0x8002, 0x8006, 0xC003])
def test_the_nack_of_a_change_request_fails_the_write(message_class: int) -> None:
    _, one, _ = two_servers()
    one.send("PSC1", REQUEST)
    nack(one, message_class)
    assert one.engine.nacked == [REQUEST]
    assert one.carrier.counters["resent"] == 0


def test_a_change_request_that_finds_no_way_comes_back_by_itself() -> None:
    # scenario 17: the owner cannot be reached
    estate, one, two = two_servers()
    estate.refusing.add(two.node.address)
    one.send("PSC1", REQUEST, Profile.URGENT)
    estate.advance(9)
    assert one.engine.nacked == []
    estate.advance(3)
    assert one.engine.nacked == [REQUEST]
    assert one.drops == {}


@pytest.mark.requirement("RP-3.1.5.1-14", "RP-3.3.7.9-03")
@pytest.mark.parametrize("message", [message for message, _ in ALL if message is not REQUEST])
def test_a_refused_signature_is_tried_again_at_the_same_server_three_times(
    message: ReplicationMessage,
) -> None:
    _, one, _ = two_servers()
    one.send("PSC1", message)
    for sent_so_far in range(2, RESENDS_MAX + 2):
        nack(one, MessageClass.NACK_BAD_SIGNATURE)
        *_, again = one.waiting("PSC1")
        assert len(one.waiting("PSC1")) == sent_so_far
        resent = from_user_message(again.packet)
        assert bytes(resent.body) == message.encode()
        assert resent.destination == parse_format_name(THEIR_QUEUE)
        assert (resent.time_to_reach_queue, resent.priority) == (10, 3)
        assert resent.administration_queue == resent.response_queue is not None
    nack(one, MessageClass.NACK_BAD_SIGNATURE)
    assert len(one.waiting("PSC1")) == RESENDS_MAX + 1
    assert one.drops == {"signature refused again and again": 1}


@pytest.mark.requirement("RP-3.3.7.9-02")
@pytest.mark.parametrize("message_class", [0x8000, 0x8002, 0x8004, 0x8007, 0xC000, 0xC003])
def test_other_nacks_change_nothing(message_class: int) -> None:
    _, one, _ = two_servers()
    one.send("PSC1", SYNC_REQUEST)
    nack(one, message_class)
    assert len(one.waiting("PSC1")) == 1
    assert one.drops == {"nack that changes nothing": 1}


def test_nobody_gets_our_signature_under_what_we_did_not_send() -> None:
    _, one, _ = two_servers()
    one.send("PSC1", SYNC_REQUEST)
    (sent,) = one.waiting("PSC1")
    stranger = one.node.build(THEIR_QUEUE)
    bad = MessageClass.NACK_BAD_SIGNATURE
    nack(one, bad, body=purged().encode())  # another body
    nack(one, bad, about=stranger, body=SYNC_REQUEST.encode())  # a message that nobody sent
    assert one.drops == {"nack of a message that we did not send": 2}
    # to another server
    nack(one, bad, response=r"DIRECT=OS:EVIL\private$\mqis_queue$")
    assert one.drops["nack that changes nothing"] == 1
    # the same nack once more
    nack(one, bad, about=sent)
    assert one.drops["nack of a message that we did not send"] == 3
    assert one.carrier.counters["resent"] == 0
    # nor can a stranger fail a write of ours
    one.send("PSC1", REQUEST)
    nack(one, 0x8002, about=stranger, body=REQUEST.encode())
    assert one.engine.nacked == []


# Timers and writes of our own


def test_the_engine_is_called_when_it_is_due() -> None:
    estate, one, _ = two_servers()
    one.engine.due = estate.clock.monotonic() + 30
    one.node.run(one.carrier.carry, [])
    estate.advance(29)
    assert one.engine.runs == 0
    estate.advance(2)
    assert one.engine.runs == 1
    # an earlier wish counts, and the later one stays
    one.engine.due = estate.clock.monotonic() + 30
    one.node.run(one.carrier.carry, [])
    one.engine.due = estate.clock.monotonic() + 10
    one.node.run(one.carrier.carry, [])
    estate.advance(11)
    assert one.engine.runs == 2
    # nobody is called after the end
    one.engine.due = estate.clock.monotonic() + 10
    one.node.run(one.carrier.carry, [])
    one.node.run(one.carrier.stop)
    estate.advance(60)
    assert one.engine.runs == 2


def test_an_engine_that_is_always_late_does_not_stop_the_turn() -> None:
    estate, one, _ = two_servers()
    runs = 0

    def failing() -> list[Send]:
        nonlocal runs
        runs += 1
        raise FalconMQError("not now")

    one.engine.run_due = failing  # type: ignore[method-assign]
    one.engine.due = estate.clock.monotonic()
    one.node.run(one.carrier.carry, [])
    estate.advance(1)
    assert 1 <= runs <= 101


def test_what_a_write_here_leaves_to_send_goes_out() -> None:
    estate, one, two = two_servers()
    one.node.run(one.engine.write, quiet("PSC1", PROPAGATION))
    estate.advance(1)
    assert two.messages == [PROPAGATION]
