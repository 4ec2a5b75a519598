"""Signed messages in: the signature is verified, its owner looked up, its rights asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.manager.access import Principal
from falconmq.manager.queues import set_queue_properties
from falconmq.security.caches import USER_CERT_LIFETIME_SECONDS
from falconmq.security.manager_signatures import sign_as_manager
from falconmq.security.signature_input import SignatureVersion
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import HASH_MD5, HASH_SHA1
from falconmq.wire.multi_queue_format_header import (
    DESTINATION_ID,
    DIRECT,
    MQFAddressHeader,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.security_header import (
    AUTHENTICATED,
    AUTHENTICATION_SIGNATURE,
    SENDER_ID_NONE,
    SENDER_ID_SID,
    SENDER_ID_TYPE,
    SecurityHeader,
)
from falconmq.wire.sid import Sid
from falconmq.wire.user_message import UserMessage
from tests.security import known
from tests.strategies.user_message import mutated
from tests.transport.estate import only
from tests.transport.protected import (
    ANNA,
    BODY,
    PUBLIC,
    SEQUENCE,
    Change,
    Scene,
    encrypted,
    plain,
    protection_of,
    scene,
    signed,
)
from tests.transport.raw_peer import RawPeer

BAD = MessageClass.NACK_BAD_SIGNATURE
DENIED = MessageClass.NACK_ACCESS_DENIED
MANAGER = UUID("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0")
BEN = Sid.parse("S-1-5-21-7-8-9-1002")
STAFF = Sid.parse("S-1-5-21-7-8-9-513")
FOR_ANNA = f"D:(A;;0x4;;;{ANNA})"
ONE, TWO, THREE = SignatureVersion.MSMQ_1_0, SignatureVersion.MSMQ_2_0, SignatureVersion.MSMQ_3_0


def only_for(sddl: str, **given: Any) -> Scene:
    on = scene(**given)
    on.node.run(lambda: set_queue_properties(on.node.core, on.queue, security=parse_sddl(sddl)))
    return on


def old(packet: UserMessage) -> UserMessage:
    return signed(packet, version=ONE)


def to_several(packet: UserMessage) -> UserMessage:
    name = packet.user.destination_queue
    assert isinstance(name, str)
    listed = MQFAddressHeader(DESTINATION_ID, (MQFFormatNameElement(DIRECT, name),))
    return signed(replace(packet, multi_queue_format=MultiQueueFormatHeader(listed)))


def both(packet: UserMessage) -> UserMessage:
    return encrypted(signed(packet))


@pytest.mark.requirement(
    "QB-3.1.5.8.3-02",
    "QB-3.1.5.8.3-03",
    "QB-3.1.5.8.3-04",
    "QB-3.1.5.8.3-05",
    "QB-3.1.5.8.3-06",
    "QB-A17-01",
)
@pytest.mark.parametrize(
    ("change", "version"), [(old, ONE), (signed, TWO), (to_several, THREE), (both, TWO)]
)
def test_a_signature_that_fits_is_noted_and_kept(change: Change, version: int) -> None:
    on = scene(authentication=True)
    on.send(change)
    message = only(on.queue)
    assert message.authentication_level == version
    packet = message.decode_packet()
    assert bytes(packet.properties.message_body) == BODY
    # readers can see who signed, and look at it again
    assert packet.security is not None
    assert bytes(packet.security.security_id) == ANNA.encode()
    assert bytes(packet.security.sender_cert) == known.CERTIFICATE
    assert packet.security.signature or change is to_several
    assert on.peer.classes == []


def test_what_a_sender_notes_about_its_own_signature_means_nothing() -> None:
    def boasting(packet: UserMessage) -> bytes:
        sealed = encrypted(replace(packet, security=claimed()))
        assert sealed.security is not None
        honest = sealed.security.encode()
        flags = sealed.security.flags | AUTHENTICATED | AUTHENTICATION_SIGNATURE
        return sealed.encode().replace(honest, flags.to_bytes(2, "little") + honest[2:])

    on = scene()
    on.peer.write(boasting(on.peer.message(on.queue, BODY)))
    message = only(on.queue)
    assert message.authentication_level == 0
    security = message.decode_packet().security
    assert security is not None
    assert not security.flags & (AUTHENTICATED | AUTHENTICATION_SIGNATURE)


def claimed() -> SecurityHeader:
    return SecurityHeader(SENDER_ID_SID, ANNA.encode())


# Signatures that are none


def changed_label(packet: UserMessage) -> UserMessage:
    packet = signed(packet)
    return replace(packet, properties=replace(packet.properties, label="other"))


def changed_body(packet: UserMessage) -> UserMessage:
    packet = signed(packet)
    return encrypted(replace(packet, properties=replace(packet.properties, message_body=b"x")))


def another_hash(packet: UserMessage) -> UserMessage:
    packet = signed(packet)
    return replace(packet, properties=replace(packet.properties, hash_algorithm=0x800C))


def no_hash(packet: UserMessage) -> UserMessage:
    packet = signed(packet)
    return replace(packet, properties=replace(packet.properties, hash_algorithm=0x1234))


def no_certificate(packet: UserMessage) -> UserMessage:
    packet = signed(packet)
    assert packet.security is not None
    return replace(packet, security=replace(packet.security, sender_cert=b"hello"))


def in_nobodys_name(packet: UserMessage) -> UserMessage:
    packet = signed(packet)
    assert packet.security is not None
    flags = packet.security.flags & ~SENDER_ID_TYPE | SENDER_ID_NONE
    return replace(packet, security=replace(packet.security, flags=flags, security_id=b""))


def forged_in_nobodys_name(packet: UserMessage) -> UserMessage:
    packet = in_nobodys_name(packet)
    return replace(packet, properties=replace(packet.properties, label="other"))


FORGED = {
    "label": changed_label,
    "body": changed_body,
    "hash": another_hash,
    "no hash": no_hash,
    "no certificate": no_certificate,
    "in nobody's name": forged_in_nobodys_name,
}


@pytest.mark.requirement("QB-3.1.5.8.3-07", "QB-3.1.5.8.3-09")
@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_signature_that_does_not_fit_is_refused_by_every_queue(change: Change) -> None:
    on = scene()
    on.send(change)
    on.send(change, acknowledgements=0)
    assert (on.taken, on.peer.classes) == ([], [BAD])
    on.send(signed)
    assert on.taken == [BODY]


@pytest.mark.requirement("QB-3.1.5.8.3-08")
def test_its_sender_is_told_by_a_final_ack() -> None:
    on = scene(transactional=True)
    on.send(changed_label, transaction=(SEQUENCE, 1, 0))
    assert (on.taken, [ack.message_class for ack in on.peer.final_acks]) == ([], [BAD])


# Whose certificate it is


@pytest.mark.requirement("QB-3.1.5.8.3-11", "QB-3.1.5.8.3-12", "QB-3.1.5.8.3-16", "QB-3.1.5.8.3-18")
def test_a_certificate_must_be_registered_for_the_sender() -> None:
    on = scene()
    on.registry.users = {BEN: [known.CERTIFICATE]}
    on.send(signed)  # by Anna
    assert (on.taken, on.peer.classes) == ([], [BAD])
    on.send(lambda packet: signed(packet, BEN))
    assert on.taken == [BODY]


@pytest.mark.requirement("QB-3.1.5.8.3-17")
def test_else_the_sender_of_a_transactional_message_is_told() -> None:
    on = scene(transactional=True)
    on.registry.users.clear()
    on.send(signed, transaction=(SEQUENCE, 1, 0))
    assert (on.taken, [ack.message_class for ack in on.peer.final_acks]) == ([], [BAD])


@pytest.mark.requirement("QB-3.1.1.3-01", "QB-3.1.5.8.3-10", "QB-3.1.5.8.3-13", "QB-3.1.5.8.3-15")
def test_what_is_registered_is_asked_once_until_it_is_too_old_or_has_changed() -> None:
    on = scene()
    for _ in range(3):
        on.send(signed)
    assert on.registry.asked == 1
    assert len(protection_of(on.node).user_certs) == 1
    # a certificate that is cached for one user is none of another
    on.send(lambda packet: signed(packet, BEN))
    assert on.registry.asked == 2
    on.node.estate.advance(USER_CERT_LIFETIME_SECONDS + 100)
    assert len(protection_of(on.node).user_certs) == 0
    on.peer = RawPeer(on.node).open()
    on.send(signed, message_id=100)
    assert on.registry.asked == 3
    # when it is removed, that counts at once
    on.registry.users.clear()
    on.registry.version += 1
    on.send(signed, message_id=101)
    assert on.registry.asked == 4
    assert on.peer.classes[-1] == BAD


# What a queue demands, and what a sender may


@pytest.mark.requirement("QB-A59-01")
def test_a_queue_for_signed_messages_takes_no_others() -> None:
    on = scene(authentication=True)
    on.send(plain)
    on.send(lambda packet: replace(packet, security=claimed()))
    on.send(encrypted)
    on.send(in_nobodys_name)  # anybody can make such a one
    assert (on.taken, on.peer.classes) == ([], [BAD] * 4)
    on.send(signed)
    assert on.taken == [BODY]


def test_a_signature_in_nobodys_name_makes_nobody_known() -> None:
    on = only_for(FOR_ANNA)
    on.send(in_nobodys_name)
    assert (on.taken, on.peer.classes) == ([], [DENIED])


@pytest.mark.requirement(
    "QB-3.1.5.8.3-39",
    "QB-3.1.5.8.3-42",
    "QB-3.1.5.8.3-43",
    "QB-3.1.5.8.3-46",
    "QB-3.1.5.8.3-48",
    "QB-A18-01",
)
def test_a_verified_sender_has_its_rights_and_nobody_else_has_them() -> None:
    on = only_for(FOR_ANNA)
    on.registry.users[BEN] = [known.CERTIFICATE]
    on.send(plain)
    on.send(lambda packet: replace(packet, security=claimed()))
    on.send(lambda packet: signed(packet, BEN))
    assert (on.taken, on.peer.classes) == ([], [DENIED] * 3)
    on.send(signed)
    on.send(both)
    assert on.taken == [BODY, BODY]


@pytest.mark.requirement("QB-3.1.5.8.3-47")
def test_a_sender_without_rights_is_told_by_a_final_ack() -> None:
    on = only_for("D:", transactional=True)
    on.send(signed, transaction=(SEQUENCE, 1, 0))
    assert (on.taken, [ack.message_class for ack in on.peer.final_acks]) == ([], [DENIED])


@pytest.mark.requirement("QB-3.1.5.8.3-41")
def test_a_verified_queue_manager_has_the_rights_of_everybody() -> None:
    def by_manager(packet: UserMessage) -> UserMessage:
        return sign_as_manager(packet, known.PAIR_1024, MANAGER)

    on = only_for("D:(A;;0x4;;;WD)", authentication=True)
    on.send(by_manager)  # nobody knows its keys
    assert (on.taken, on.peer.classes) == ([], [BAD])
    on.registry.keys[MANAGER] = PUBLIC
    on.send(by_manager)
    assert on.taken == [BODY]
    assert only(on.queue).authentication_level == TWO
    forged = sign_as_manager(on.peer.message(on.queue, BODY), known.PAIR_1024, MANAGER)
    on.send(lambda _: replace(forged, properties=replace(forged.properties, label="other")))
    assert on.taken == [BODY]
    on = only_for("D:(A;;0x4;;;AU)")
    on.registry.keys[MANAGER] = PUBLIC
    on.send(by_manager)
    assert (on.taken, on.peer.classes) == ([], [DENIED])


def test_the_groups_of_a_sender_count() -> None:
    on = only_for(f"D:(A;;0x4;;;{STAFF})")
    on.send(signed)
    on.registry.principals[ANNA] = Principal("anna", ANNA, frozenset({STAFF}))
    on.send(signed)
    assert (on.taken, on.peer.classes) == ([BODY], [DENIED])


def test_rights_are_not_asked_for_where_access_control_is_off() -> None:
    on = only_for("D:")
    on.node.core.settings.access_control = False
    on.send(signed)
    on.send(changed_label)  # but signatures are verified
    assert (on.taken, on.peer.classes) == ([BODY], [BAD])


@pytest.mark.parametrize("algorithm", [HASH_MD5, HASH_SHA1])
def test_weak_hashes_are_for_queues_and_peers_that_the_administrator_named(algorithm: int) -> None:
    def weakly(packet: UserMessage) -> UserMessage:
        return signed(packet, hash_algorithm=algorithm)

    on = scene()
    on.send(weakly)
    assert (on.taken, on.peer.classes) == ([], [BAD])
    on = scene(settings={"weak": frozenset({r".\private$\orders"})})
    on.send(weakly)
    assert on.taken == [BODY]


@given(data=st.data(), change=st.sampled_from([signed, both, to_several]))
def test_whatever_happens_to_a_message_on_its_way_nobody_vouches_for_it(
    data: st.DataObject, change: Change
) -> None:
    on = scene()
    whole = change(on.peer.message(on.queue, BODY, message_id=1)).encode()
    changed = data.draw(mutated(st.just(whole)))
    on.peer.write(changed)
    for lookup_id in on.queue.positions.available:
        position = on.queue.positions.find(lookup_id)
        assert position is not None
        if position.message.authentication_level:
            packet = position.message.packet
            assert bytes(packet.properties.message_body) == BODY
            assert packet.properties.label == ""
            assert packet.user.source_queue_manager == on.peer.guid
