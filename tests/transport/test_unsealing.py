"""Encrypted messages in: what a queue gets, what is refused, and who is told (MQQB 3.1.5.8.3)."""

from __future__ import annotations

import logging
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest

from falconmq.manager.states import QueuePrivacy
from falconmq.security import rsa
from falconmq.security.body_encryption import RC2_BODY_MAX
from falconmq.security.keys import FormerKeys, ManagerKeys
from falconmq.security.providers import ADVANCED
from falconmq.security.session_keys import EncryptionSettings
from falconmq.transport.protection import NEW_KEYS_MAX
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import (
    PRIVACY_ADVANCED,
    PRIVACY_BASE,
    PRIVACY_ENHANCED,
)
from falconmq.wire.simple_blob import CALG_RC2, CALG_RC4
from falconmq.wire.user_message import UserMessage
from tests.transport.estate import bodies, only
from tests.transport.protected import (
    ASKING,
    BODY,
    KEYS,
    PAIRS,
    SEQUENCE,
    Change,
    encrypted,
    plain,
    protect,
    protection_of,
    scene,
    signed,
)
from tests.transport.raw_peer import RawPeer, routed_estate

BAD = MessageClass.NACK_BAD_ENCRYPTION
WEAK = {"weak": frozenset({r".\private$\orders"})}


# Clear text for the queue


@pytest.mark.requirement("QB-3.1.5.8.3-19", "QB-3.1.5.8.3-31", "DM-3.1.1.2-15")
def test_a_queue_gets_the_clear_text_and_nothing_of_the_key() -> None:
    on = scene()
    on.send(encrypted, label="secret plan")
    on.send(plain)
    (first, _) = (on.queue.positions.find(each) for each in on.queue.positions.available)
    assert first is not None
    packet = first.message.decode_packet()  # what the store has, not what we remember
    assert bytes(packet.properties.message_body) == BODY
    assert packet.properties.allocation_body_size == len(BODY)
    assert packet.properties.label == "secret plan"
    assert packet.properties.privacy_level == PRIVACY_ADVANCED  # readers see how it came
    assert packet.security is None
    assert on.taken == [BODY, BODY]
    assert on.peer.classes == []


@pytest.mark.requirement("QB-3.1.5.8.3-24", "QB-3.1.5.8.3-25", "QB-3.1.5.8.3-28")
def test_a_key_is_opened_once_for_many_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    decrypt = rsa.decrypt

    def counted(*given: Any) -> bytes:
        opened.append(1)
        return decrypt(*given)

    monkeypatch.setattr(rsa, "decrypt", counted)
    on = scene()
    for _ in range(3):
        on.send(encrypted)
    assert (on.taken, len(opened)) == ([BODY] * 3, 1)
    on.send(lambda packet: encrypted(packet, seed=6))  # another key
    assert len(opened) == 2


def test_a_transactional_message_is_decrypted_too() -> None:
    on = scene(transactional=True)
    on.send(encrypted, transaction=(SEQUENCE, 1, 0))
    assert on.taken == [BODY]
    assert only(on.queue).packet.transaction is not None


@pytest.mark.requirement("QB-3.1.5.8.3-01")
def test_a_message_for_another_queue_manager_is_passed_on_as_it_is() -> None:
    estate = routed_estate()
    router, target = estate.node("R", 3), estate.node("B", 2)
    protect(router)
    protect(target)
    queue = target.queue("orders")
    peer = RawPeer(router).open(direct=False)
    number, address = queue.private_queue_number, target.transport.guid
    packet = encrypted(peer.message(number, BODY, address=address))
    peer.write(packet.encode())
    estate.settle()
    assert bodies(queue) == [BODY]
    (line,) = [each for each in router.lines if each.node is router and each.packets]
    (passed,) = [each for each in line.packets if isinstance(each, UserMessage)]
    assert passed.properties.message_body == packet.properties.message_body
    assert passed.security == packet.security


# Who is told


def damaged_key(packet: UserMessage) -> UserMessage:
    packet = encrypted(packet)
    assert packet.security is not None
    key = bytearray(packet.security.encryption_key)
    key[-1] ^= 1
    return replace(packet, security=replace(packet.security, encryption_key=bytes(key)))


def no_blob(packet: UserMessage) -> UserMessage:
    packet = encrypted(packet)
    assert packet.security is not None
    return replace(packet, security=replace(packet.security, encryption_key=b"\1\2\3\4"))


def damaged_body(packet: UserMessage) -> UserMessage:
    packet = encrypted(packet)
    body = bytearray(packet.properties.message_body)
    body[-1] ^= 1
    return replace(packet, properties=replace(packet.properties, message_body=bytes(body)))


def cut_body(packet: UserMessage) -> UserMessage:
    packet = encrypted(packet)
    body = bytes(packet.properties.message_body)[:-1]
    return replace(packet, properties=replace(packet.properties, message_body=body))


BROKEN = {"key": damaged_key, "no blob": no_blob, "body": damaged_body, "cut body": cut_body}


@pytest.mark.requirement("QB-3.1.5.8.3-36", "QB-3.1.5.8.3-38")
@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_decrypted_is_refused(change: Change) -> None:
    on = scene()
    on.send(change)
    on.send(change, acknowledgements=0)  # who does not ask is not told
    assert (on.taken, on.peer.classes) == ([], [BAD])
    assert on.node.transport.refusals[BAD] == 2
    assert not on.peer.is_closed
    on.send(encrypted)
    assert on.taken == [BODY]


@pytest.mark.requirement("QB-3.1.5.8.3-37")
@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_the_sender_of_a_transactional_message_that_cannot_be_decrypted_is_told(
    change: Change,
) -> None:
    on = scene(transactional=True)
    on.send(change, transaction=(SEQUENCE, 1, 0))
    assert on.taken == []
    assert [ack.message_class for ack in on.peer.final_acks] == [BAD]
    on.send(encrypted, transaction=(SEQUENCE, 2, 1))  # its stream goes on
    assert on.taken == [BODY]


def test_nothing_leaks_while_insecure_nacks_are_off() -> None:
    on = scene(insecure=False, authentication=True)
    on.send(damaged_key)
    on.send(encrypted)
    assert (on.taken, on.peer.classes) == ([], [])
    assert sum(on.node.transport.refusals.values()) == 2


def unknown_level(packet: UserMessage) -> bytes:
    """PrivacyLevel 2 on the wire: no encoder of ours writes it."""
    data = bytearray(encrypted(packet).encode())
    body = bytes(encrypted(packet).properties.message_body)
    at = data.index(body) - 16  # a label is not there: PrivacyLevel is the fourth from the end
    assert data[at] == PRIVACY_ADVANCED
    data[at] = 2
    return bytes(data)


@pytest.mark.requirement("MQ-2.2.19.3-29")
@pytest.mark.requirement("QB-3.1.5.8.3-21", "QB-3.1.5.8.3-23")
def test_a_privacy_level_that_nobody_knows_is_refused() -> None:
    on = scene()
    on.peer.write(unknown_level(on.peer.message(on.queue, BODY, **ASKING)))
    assert (on.taken, on.peer.classes) == ([], [BAD])


@pytest.mark.requirement("QB-3.1.5.8.3-22")
def test_so_is_a_transactional_message_of_such_a_level() -> None:
    on = scene(transactional=True)
    packet = on.peer.message(on.queue, BODY, transaction=(SEQUENCE, 1, 0))
    on.peer.write(unknown_level(packet))
    assert (on.taken, [ack.message_class for ack in on.peer.final_acks]) == ([], [BAD])


def test_the_log_says_once_why_a_message_was_refused(caplog: pytest.LogCaptureFixture) -> None:
    on = scene()
    with caplog.at_level(logging.WARNING, "falconmq.transport"):
        for _ in range(5):
            on.send(lambda packet: encrypted(packet, PRIVACY_BASE))
    (line,) = [each for each in caplog.messages if "message refused" in each]
    assert "is weak" in line
    assert "an administrator can allow" in line
    assert BODY.decode() not in caplog.text


# What a queue demands


@pytest.mark.requirement("DM-3.1.1.2-16", "QB-A59-01")
def test_a_queue_for_private_messages_takes_no_clear_ones() -> None:
    on = scene(privacy_level=QueuePrivacy.BODY)
    on.send(plain)
    on.send(signed)
    assert (on.taken, on.peer.classes) == ([], [BAD, BAD])
    on.send(encrypted)
    assert on.taken == [BODY]


@pytest.mark.requirement("DM-3.1.1.2-14")
def test_a_queue_for_clear_messages_takes_no_private_ones() -> None:
    on = scene(privacy_level=QueuePrivacy.NONE)
    on.send(encrypted)
    assert (on.taken, on.peer.classes) == ([], [BAD])
    on.send(plain)
    assert on.taken == [BODY]


def test_without_keys_nothing_can_be_decrypted() -> None:
    on = scene()
    on.node.transport.protection = None
    on.send(encrypted)
    on.send(signed)  # nobody can verify it: its sender is anonymous
    assert (on.taken, on.peer.classes) == ([BODY], [BAD])
    assert only(on.queue).authentication_level == 0


# What can be broken


@pytest.mark.parametrize("level", [PRIVACY_BASE, PRIVACY_ENHANCED])
@pytest.mark.parametrize("algorithm", [CALG_RC2, CALG_RC4])
def test_weak_ciphers_are_for_queues_and_peers_that_the_administrator_named(
    level: int, algorithm: int
) -> None:
    chosen: dict[str, Any] = {
        "preferred_base_algorithm": algorithm,
        "preferred_enhanced_algorithm": algorithm,
    }

    def weakly(packet: UserMessage) -> UserMessage:
        return encrypted(packet, level, **chosen)

    on = scene()
    source = UUID(bytes_le=on.peer.guid)
    on.send(weakly)
    assert (on.taken, on.peer.classes) == ([], [BAD])
    for name in (r".\private$\orders", str(source), "oldpc"):
        on = scene(settings={"weak": frozenset({name})})
        on.registry.names[source] = "OldPC"
        on.send(weakly)
        assert on.taken == [BODY], name
    on = scene(settings={"weak": frozenset({r".\private$\others", "newpc"})})
    on.send(weakly)
    assert on.taken == []


def test_a_long_body_under_rc2_is_refused_before_it_keeps_us_busy() -> None:
    def weakly(packet: UserMessage) -> UserMessage:
        short = replace(packet, properties=replace(packet.properties, message_body=b""))
        made = encrypted(short, PRIVACY_ENHANCED, preferred_enhanced_algorithm=CALG_RC2)
        body = bytes(RC2_BODY_MAX + 8)
        properties = replace(made.properties, message_body=body, allocation_body_size=len(body))
        return replace(made, properties=properties)

    on = scene(settings=WEAK)
    on.send(weakly)
    assert (on.taken, on.peer.classes) == ([], [BAD])
    assert not protection_of(on.node).receiver.cache  # the key was not even looked at


def reduced(packet: UserMessage) -> UserMessage:
    return encrypted(
        packet,
        PRIVACY_ENHANCED,
        preferred_enhanced_algorithm=CALG_RC2,
        send_enhanced_rc2_using_40_bit_keys=True,
    )


@pytest.mark.requirement("QB-3.1.5.8.3-32", "QB-3.1.5.8.3-34")
def test_keys_of_forty_bits_can_be_rejected() -> None:
    on = scene(settings=WEAK)
    on.send(reduced)
    assert on.taken == [BODY]
    settings = EncryptionSettings(reject_enhanced_rc2_using_40_bit_keys=True)
    protection_of(on.node).receiver.settings = settings
    on.send(reduced)
    assert (on.taken, on.peer.classes) == ([BODY], [BAD])


@pytest.mark.requirement("QB-3.1.5.8.3-33")
def test_and_the_sender_of_a_transactional_message_is_told() -> None:
    on = scene(settings=WEAK, transactional=True)
    settings = EncryptionSettings(reject_enhanced_rc2_using_40_bit_keys=True)
    protection_of(on.node).receiver.settings = settings
    on.send(reduced, transaction=(SEQUENCE, 1, 0))
    assert (on.taken, [ack.message_class for ack in on.peer.final_acks]) == ([], [BAD])


# Keys that change, keys without end


def test_former_keys_open_what_was_encrypted_for_them_until_their_time_is_over() -> None:
    on = scene()
    newer = rsa.generate(1024, Random(3))
    pairs = {**PAIRS, ADVANCED: newer}
    end = on.node.core.clock.time() + 100
    protection_of(on.node).use_keys(ManagerKeys(pairs, pairs, (FormerKeys(PAIRS, end),)))
    on.send(encrypted)
    on.send(lambda packet: encrypted(packet, keys={ADVANCED: newer.public}))
    assert on.taken == [BODY, BODY]
    on.node.estate.advance(101)
    on.send(lambda packet: encrypted(packet, seed=6))
    assert (on.taken, on.peer.classes) == ([BODY, BODY], [BAD])


def test_a_key_that_is_not_for_us_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    on = scene()
    on.send(no_blob)
    tried: list[object] = []
    monkeypatch.setattr("falconmq.security.body_encryption.unwrap_key", tried.append)
    on.send(no_blob)
    assert (on.peer.classes, tried) == ([BAD, BAD], [])
    monkeypatch.undo()
    protection_of(on.node).use_keys(KEYS)  # it may be for these
    assert not protection_of(on.node).receiver.hopeless


def test_a_peer_with_a_new_key_for_every_message_has_to_come_again_later() -> None:
    on = scene()
    for seed in range(NEW_KEYS_MAX):
        on.send(lambda packet, seed=seed: encrypted(packet, seed=seed))  # type: ignore[misc]
    assert on.taken == [BODY] * NEW_KEYS_MAX
    on.send(encrypted)  # a known one
    assert len(on.taken) == NEW_KEYS_MAX + 1
    late = encrypted(on.peer.message(on.queue, b"late"), seed=1000).encode()
    on.peer.write(late)
    assert on.peer.is_closed
    assert b"late" not in on.taken
    # others are not concerned, and it may come again
    on.peer = RawPeer(on.node, address="10.0.0.98").open()
    on.send(lambda packet: encrypted(packet, seed=1001))
    on.node.estate.advance(2)
    on.peer = RawPeer(on.node).open()
    on.peer.write(late)  # no duplicate: it was never taken
    assert on.taken[-1] == b"late"
    assert on.node.transport.counters["sessions closed for too many keys"] == 1
