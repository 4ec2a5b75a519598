"""Messages out that only their receiver may read; and what becomes of those that cannot be so."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus
from falconmq.manager.events import EventKind, EventLog
from falconmq.manager.model import Queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import ConnectionStatus
from falconmq.message import Acknowledge, Journal
from falconmq.names import parse_format_name
from falconmq.security import rsa
from falconmq.security.caches import SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS
from falconmq.security.providers import ADVANCED, BASE, ENHANCED, Provider
from falconmq.transport.routing import StaticRouter
from falconmq.transport.sealing import privacy_level_of
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import (
    ENCRYPTION_AES256,
    ENCRYPTION_RC4,
    PRIVACY_ADVANCED,
    PRIVACY_BASE,
    PRIVACY_ENHANCED,
)
from falconmq.wire.security_header import ENCRYPTED_BODY, SENDER_ID_SID, SecurityHeader
from falconmq.wire.user_message import UserMessage
from tests.security import known
from tests.strategies.user_message import user_messages
from tests.transport.estate import Node, bodies, direct, only
from tests.transport.protected import (
    ANNA,
    PAIRS,
    PUBLIC,
    Registered,
    encrypted,
    protect,
    protection_of,
    signed,
    wishing,
)
from tests.transport.raw_peer import RawPeer, routed_estate

BODY = b"for your eyes only"
FAILED = MessageClass.NACK_COULD_NOT_ENCRYPT


@dataclass
class Pair:
    """Two queue managers that have each other's keys, and a queue at the second."""

    a: Node
    b: Node
    queue: Queue
    registry: Registered  # of the first

    @property
    def name(self) -> str:
        return self.b.private_name(self.queue)

    def send(self, body: bytes = BODY, level: int = PRIVACY_ADVANCED, **properties: Any) -> None:
        wishing(self.a, self.name, body, level, **properties)
        self.a.estate.settle()

    @property
    def sent(self) -> list[UserMessage]:
        """The messages that went over the wire from the first."""
        packets = [packet for line in self.a.lines for packet in line.packets]
        return [packet for packet in packets if isinstance(packet, UserMessage)]


def pair(settings: dict[str, Any] | None = None, **properties: Any) -> Pair:
    estate = routed_estate()
    a, b = estate.node("A", 1), estate.node("B", 2)
    registry = protect(a, **(settings or {}))
    protect(b)
    registry.keys[b.identifier] = PUBLIC
    a.core.events = EventLog(a.core.clock.time)
    return Pair(a, b, b.queue("orders", **properties), registry)


@pytest.mark.requirement("MQ-2.2.20.6-38")
@pytest.mark.requirement("MQ-2.2.20.6-11")
@pytest.mark.requirement(
    "QB-3.1.7.1.5-01",
    "QB-3.1.7.1.5-03",
    "QB-3.1.7.1.5-22",
    "DM-3.1.1.12-34",
    "DM-3.1.1.12-37",
    "DM-3.1.1.12-109",
)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_that_wishes_so_is_encrypted_on_its_way_and_nowhere_else(
    transactional: bool,
) -> None:
    on = pair(transactional=transactional)
    on.send(transactional=transactional, journal=Journal.JOURNAL)
    on.send(b"clear", 0, transactional=transactional)
    assert bodies(on.queue) == [BODY, b"clear"]
    first, second = on.sent[:2]
    assert BODY not in bytes(first.properties.message_body)
    assert first.properties.encryption_algorithm == ENCRYPTION_AES256
    assert first.security is not None
    assert first.security.flags & ENCRYPTED_BODY
    key = bytes(first.security.encryption_key)[12:][::-1]
    assert rsa.is_for(PAIRS[ADVANCED], key)
    assert not rsa.is_for(rsa.generate(1024, Random(3)), key)
    assert bytes(second.properties.message_body) == b"clear"
    assert second.security is None
    if not transactional:
        on.a.estate.advance(60)  # for the acknowledgement
        assert bodies(on.a.core.journal) == [BODY]  # ours, so that we can read it


@pytest.mark.requirement("QB-3.1.7.1.5-14", "QB-3.1.7.1.5-15", "QB-3.1.7.1.5-19", "QB-3.1.2.11-01")
def test_one_key_does_for_many_messages_until_it_is_too_old_or_the_peer_has_others() -> None:
    on = pair()
    keys = []

    def send() -> bytes:
        on.send()
        security = on.sent[-1].security
        assert security is not None
        keys.append(bytes(security.encryption_key))
        return keys[-1]

    assert send() == send()
    on.a.estate.advance(SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS + 100)
    assert not protection_of(on.a).sender.cache  # by its timer
    assert send() != keys[0]
    assert send() == keys[2]
    on.registry.version += 1  # somebody imported keys
    assert send() != keys[2]
    assert bodies(on.queue) == [BODY] * 5


def test_a_message_that_is_sent_again_is_encrypted_again() -> None:
    on = pair(transactional=True)
    on.a.estate.refusing.add(on.b.address)
    on.send(transactional=True)
    on.a.restart()
    registry = protect(on.a)
    registry.keys[on.b.identifier] = PUBLIC
    on.a.estate.refusing.clear()
    on.a.estate.advance(60)
    assert bodies(on.queue) == [BODY]


def test_a_signed_message_is_verified_behind_the_encryption() -> None:
    on = pair(authentication=True)
    receiver = protect(on.b)
    receiver.users[ANNA] = [known.CERTIFICATE]
    message = on.a.build(on.name, BODY)
    wanted = replace(
        message.packet.properties,
        privacy_level=PRIVACY_ADVANCED,
        encryption_algorithm=ENCRYPTION_AES256,
    )
    stored = StoredMessage.of(signed(replace(message.packet, properties=wanted)))
    on.a.run(on.a._send, parse_format_name(on.name), [stored])
    on.a.estate.settle()
    assert bodies(on.queue) == [BODY]
    assert only(on.queue).authentication_level == 3


def test_what_an_application_has_encrypted_itself_goes_as_it_is() -> None:
    on = pair()
    packet = encrypted(on.a.build(on.name, BODY).packet)
    on.a.run(on.a._send, parse_format_name(on.name), [StoredMessage.of(packet)])
    on.a.estate.settle()
    assert on.sent[0].security == packet.security
    assert bodies(on.queue) == [BODY]


def test_over_a_router_it_is_encrypted_for_the_receiver_and_not_for_the_router() -> None:
    on = pair()
    router = on.a.estate.node("R", 3)
    protect(router).keys[on.b.identifier] = PUBLIC
    routes = {on.b.identifier: [router.identifier]}
    on.a.transport.router = StaticRouter(on.a.estate.hosts, routes)
    on.registry.keys[router.identifier] = {ADVANCED: rsa.generate(1024, Random(3)).public}
    on.send()
    assert bodies(on.queue) == [BODY]
    assert router.transport.counters["passed on"] == 1
    assert router.transport.counters["messages encrypted"] == 0


def test_what_is_passed_on_for_others_is_not_touched() -> None:
    on = pair()
    peer = RawPeer(on.a).open(direct=False)
    packet = peer.message(on.queue.private_queue_number, BODY, address=on.b.transport.guid)
    wanted = replace(
        packet.properties, privacy_level=PRIVACY_ADVANCED, encryption_algorithm=ENCRYPTION_AES256
    )
    peer.write(replace(packet, properties=wanted).encode())  # its sender forgot to encrypt
    on.a.estate.settle()
    assert bodies(on.queue) == [BODY]
    assert on.a.transport.counters["passed on"] == 1
    assert on.a.transport.counters["messages encrypted"] == 0


# What cannot be encrypted


@pytest.mark.requirement(
    "QB-3.1.7.1.5-04",
    "QB-3.1.7.1.5.1-01",
    "QB-3.1.7.1.5.1-02",
    "QB-3.1.7.1.5.1-04",
    "QB-3.1.7.1.5.1-05",
)
def test_without_the_keys_of_the_receiver_a_message_becomes_a_dead_letter(
    caplog: pytest.LogCaptureFixture,
) -> None:
    on = pair()
    on.registry.keys.clear()
    with caplog.at_level(logging.WARNING, "falconmq.transport"):
        on.send(journal=Journal.DEAD_LETTER)
        on.send(b"not kept")
        on.send(b"clear", 0)
    assert bodies(on.queue) == [b"clear"]  # nothing waits behind it
    assert len(on.sent) == 1
    at = on.a.core.clock.time()
    on.a.estate.advance(60)  # for the acknowledgement
    outgoing = on.a.outgoing(on.name)
    assert len(outgoing.positions) == 0
    letter = only(on.a.core.dead_letter)
    assert letter.dead_letter_reason == FAILED
    assert bytes(letter.packet.properties.message_body) == BODY
    # operators can see why
    attempt = outgoing.connection_history[-1]
    assert attempt.status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE
    assert attempt.error is not MqStatus.OK
    assert attempt.addresses == (on.b.address,)
    assert attempt.time == at
    assert "are not known" in on.a.transport.situation(outgoing).encryption_problem
    (line,) = [each for each in caplog.messages if "cannot be encrypted" in each]
    assert "falconmq key import" in line
    assert on.a.core.events is not None
    refused = [e for e in on.a.core.events.newest_first() if e.kind is EventKind.REFUSED]
    assert [event.reason for event in refused] == [FAILED, FAILED]
    # and that it is over
    on.registry.keys[on.b.identifier] = PUBLIC
    on.send()
    assert on.a.transport.situation(outgoing).encryption_problem == ""
    assert bodies(on.queue) == [b"clear", BODY]


@pytest.mark.requirement("QB-3.1.7.1.5.1-03")
def test_a_transactional_one_goes_to_the_transactional_dead_letters_and_its_stream_on() -> None:
    on = pair(transactional=True)
    on.registry.keys.clear()
    on.send(transactional=True, journal=Journal.DEAD_LETTER)
    assert only(on.a.core.transactional_dead_letter).dead_letter_reason == FAILED
    on.registry.keys[on.b.identifier] = PUBLIC
    on.send(b"next", transactional=True)
    on.a.estate.advance(30)
    assert bodies(on.queue) == [b"next"]


def test_who_asked_to_hear_of_failures_is_told() -> None:
    on = pair()
    on.registry.keys.clear()
    told = on.a.queue("told")
    on.send(
        acknowledgements=Acknowledge.NACK_REACH_QUEUE,
        administration_queue=on.a.private_name(told),
    )
    assert [only(told).packet.properties.message_class] == [FAILED]
    assert bodies(told) == [b""]  # the body was meant to be private


@pytest.mark.requirement("QB-3.1.7.1.5-02")
def test_a_direct_name_does_not_say_for_whom_to_encrypt() -> None:
    on = pair()
    wishing(on.a, direct(on.b, "orders"), BODY, journal=Journal.DEAD_LETTER)
    on.a.estate.settle()
    assert (bodies(on.queue), bodies(on.a.core.dead_letter)) == ([], [BODY])


def test_an_administrator_may_let_messages_to_direct_names_be_encrypted() -> None:
    on = pair({"encrypt_direct": True})
    wishing(on.a, direct(on.b, "orders"), BODY)
    on.a.estate.settle()
    assert bodies(on.queue) == [BODY]
    assert BODY not in bytes(on.sent[0].properties.message_body)
    # but only for a queue manager whose keys are known
    on.registry.keys.clear()
    wishing(on.a, direct(on.b, "orders"), b"other", journal=Journal.DEAD_LETTER)
    on.a.estate.settle()
    assert bodies(on.a.core.dead_letter) == [b"other"]


def test_without_keys_of_our_own_nothing_goes_out_in_the_clear() -> None:
    on = pair()
    on.a.transport.protection = None
    on.send(journal=Journal.DEAD_LETTER)
    assert (bodies(on.queue), bodies(on.a.core.dead_letter)) == ([], [BODY])


@pytest.mark.requirement("QB-3.1.7.1.5-25")
def test_a_body_that_is_too_long_once_it_is_encrypted_becomes_a_dead_letter() -> None:
    on = pair()
    room = 4 * 1024 * 1024 - len(on.a.build(on.name).data) - 8
    on.send(bytes(room), journal=Journal.DEAD_LETTER)
    assert bodies(on.queue) == []
    assert only(on.a.core.dead_letter).dead_letter_reason == FAILED
    on.send(b"next")
    assert bodies(on.queue) == [b"next"]


@pytest.mark.requirement("DM-3.1.1.12-35", "DM-3.1.1.12-36")
@pytest.mark.parametrize("provider", [BASE, ENHANCED])
def test_peers_that_know_weak_ciphers_only_get_nothing_unless_the_administrator_named_them(
    provider: Provider,
) -> None:
    on, level = pair(), provider.privacy_level
    on.registry.keys[on.b.identifier] = {provider: PUBLIC[provider]}
    on.send(level=level, journal=Journal.DEAD_LETTER)
    assert (on.sent, bodies(on.a.core.dead_letter)) == ([], [BODY])
    on = pair({"weak": frozenset({"oldpc"})})
    on.registry.keys[on.b.identifier] = {provider: PUBLIC[provider]}
    on.registry.names[on.b.identifier] = "OLDPC"
    protect(on.b, weak=frozenset({r".\private$\orders"}))
    on.send(level=level)
    assert bodies(on.queue) == [BODY]
    (packet,) = on.sent
    assert packet.properties.encryption_algorithm == ENCRYPTION_RC4
    assert packet.security is not None
    key = packet.security.encryption_key
    pairs = protection_of(on.b).receiver.keys
    opened = rsa.decrypt(pairs[provider], bytes(key)[12:][::-1])
    assert len(opened) == {BASE: 5, ENHANCED: 16}[provider]  # 40 and 128 bits


@pytest.mark.requirement("QB-3.1.7.1.5-07", "QB-3.1.7.1.5-09")
@pytest.mark.requirement("QB-3.1.7.1.5-11")
@pytest.mark.parametrize(
    ("level", "provider"),
    [(PRIVACY_ADVANCED, ENHANCED), (PRIVACY_ADVANCED, BASE), (PRIVACY_ENHANCED, BASE)],
)
def test_a_message_never_gets_less_than_it_asked_for(level: int, provider: Provider) -> None:
    on = pair({"weak": frozenset({"oldpc"})})
    on.registry.keys[on.b.identifier] = {provider: PUBLIC[provider]}
    on.registry.names[on.b.identifier] = "OLDPC"
    on.send(level=level, journal=Journal.DEAD_LETTER)
    assert (on.sent, bodies(on.a.core.dead_letter)) == ([], [BODY])


@pytest.mark.requirement("QB-A20-01")
def test_a_peer_that_knows_aes_gets_aes_whatever_was_asked_for() -> None:
    on = pair()
    on.send(level=PRIVACY_BASE)
    assert on.sent[0].properties.privacy_level == ADVANCED.privacy_level
    assert bodies(on.queue) == [BODY]


# The field that every message is asked for


@given(packet=user_messages(), level=st.sampled_from([0, 1, 3, 5]))
def test_the_wish_is_found_without_decoding(packet: UserMessage, level: int) -> None:
    algorithm = ENCRYPTION_AES256 if level == PRIVACY_ADVANCED else ENCRYPTION_RC4
    wanted = replace(packet.properties, privacy_level=level, encryption_algorithm=algorithm)
    data = replace(packet, properties=wanted).encode()
    message = StoredMessage(data)
    assert privacy_level_of(message, message.head.flags) == level
    assert message.decoded is None
    assert message.packet.properties.privacy_level == level
    assert privacy_level_of(message, message.head.flags) == level


def test_a_security_header_in_front_is_stepped_over() -> None:
    node = routed_estate().node("A", 1)
    packet = node.build(direct(node, "orders"), BODY).packet
    header = SecurityHeader(SENDER_ID_SID, ANNA.encode(), b"123", b"", b"12345")
    message = StoredMessage(replace(packet, security=header).encode())
    assert privacy_level_of(message, message.head.flags) == 0
