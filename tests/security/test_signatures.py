"""What a signature covers, and who made it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings

from falconmq.errors import MqStatus
from falconmq.security import rsa
from falconmq.security.certificates import (
    create_certificate,
    read_certificate,
    registered_as,
    sign_certs,
)
from falconmq.security.hashes import HASHES
from falconmq.security.manager_signatures import sign_as_manager
from falconmq.security.problems import CertificateError, SignatureError, WeakAlgorithmError
from falconmq.security.rsa import RsaPublicKey
from falconmq.security.signature_input import SignatureVersion, signature_input
from falconmq.security.signatures import is_signed, sign, verify
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.message_properties_header import (
    HASH_MD2,
    HASH_MD4,
    HASH_SHA1,
    HASH_SHA256,
    HASH_SHA512,
)
from falconmq.wire.multi_queue_format_header import MQFSignatureHeader
from falconmq.wire.security_header import (
    DEFAULT_PROVIDER,
    SENDER_ID_SID,
    SENDER_ID_TYPE,
    SecurityHeader,
)
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.security import known
from tests.security.packets import (
    ANNA,
    CONNECTOR,
    CORRELATION,
    LISTED,
    SOURCE,
    make_packet,
    several_destinations,
)
from tests.strategies.user_message import user_messages

MANAGER = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
V1, V2, V3 = SignatureVersion.MSMQ_1_0, SignatureVersion.MSMQ_2_0, SignatureVersion.MSMQ_3_0

COMMON = [
    CORRELATION,
    bytes.fromhex("0d0c0b0a"),  # ApplicationTag
    b"body",
    "La\0".encode("utf-16-le"),
    LISTED,  # ResponseQueue
    bytes.fromhex("04030201"),  # AdminQueue
]
SHARED = [
    SOURCE,
    b"\x01",  # DM
    b"\x05",  # PR
    b"\x02",  # JP, no JN
    b"\x05",  # Flags & 0x0F
    b"\x02\x00",  # MessageClass
    b"\x34\x12\x00\x00",  # BodyType
    CONNECTOR,
]
DESTINATION = b"\x0e\x00" + "OS:b\\q\0".encode("utf-16-le")
# the second name begins between two boundaries of 4, so that its GUID is on one
LIST = b"\x03\x00" + "OS:x\\yz\0".encode("utf-16-le") + b"\x01\x00" + LISTED


@pytest.mark.requirement("QB-3.1.7.1.4-06")
@pytest.mark.requirement(*[f"MQ-2.5.1-0{number}" for number in range(1, 8)])
def test_the_first_list_has_six_fields() -> None:
    assert signature_input(V1, make_packet()) == b"".join(COMMON)


@pytest.mark.requirement("QB-3.1.7.1.4-07")
@pytest.mark.requirement(*[f"MQ-2.5.2-{number:02}" for number in range(1, 17)])
def test_the_second_list_has_fifteen_fields() -> None:
    assert signature_input(V2, make_packet()) == b"".join([*COMMON, *SHARED, DESTINATION])


@pytest.mark.requirement("QB-3.1.7.1.4-08")
@pytest.mark.requirement(*[f"MQ-2.5.3-{number:02}" for number in range(1, 19)])
def test_the_third_list_has_sixteen_fields() -> None:
    packet = replace(make_packet(), multi_queue_format=several_destinations())
    assert signature_input(V3, packet) == b"".join([*COMMON, b"ext", LIST, *SHARED])


def test_what_is_absent_adds_nothing() -> None:
    packet = make_packet(label="", extension_data=b"")
    flags = packet.user.flags & ~0x0007E000  # no administration queue, no response queue
    user = replace(
        packet.user, flags=flags, admin_queue=None, response_queue=None, connector_type=None
    )
    packet = replace(packet, user=user)
    assert signature_input(V1, packet) == b"".join(COMMON[:3])
    assert signature_input(V3, packet) == b"".join([*COMMON[:3], *SHARED[:-1]])


def test_a_direct_name_is_hashed_without_its_padding() -> None:
    packet = make_packet()
    packet = replace(packet, user=replace(packet.user, destination_queue="OS:b\\qq"))
    expected = b"\x10\x00" + "OS:b\\qq\0".encode("utf-16-le")
    assert signature_input(V2, packet) == b"".join([*COMMON, *SHARED, expected])


def test_the_journal_byte_has_both_bits() -> None:
    packet = make_packet()
    place = len(b"".join(COMMON)) + 18
    for flags, expected in ((0x000, 0), (0x100, 1), (0x200, 2), (0x300, 3)):
        user = replace(packet.user, flags=packet.user.flags & ~0x300 | flags)
        assert signature_input(V2, replace(packet, user=user))[place] == expected


def test_what_changes_on_the_way_is_not_covered() -> None:
    packet = make_packet()
    changed = replace(
        packet,
        base=BaseHeader(packet.base.flags, 999, 7),
        user=replace(
            packet.user,
            time_to_be_received=1,
            sent_time=2,
            message_id=3,
            flags=packet.user.flags | 0x1D,
        ),
        transaction=TransactionHeader(0, 1, 2, 3),
    )
    for version in SignatureVersion:
        assert signature_input(version, changed) == signature_input(version, packet)


@settings(max_examples=60, deadline=None)
@given(packet=user_messages())
def test_a_packet_from_the_wire_is_hashed_as_the_one_that_was_sent(packet: UserMessage) -> None:
    received = UserMessage.decode(packet.encode())
    for version in SignatureVersion:
        assert signature_input(version, received) == signature_input(version, packet)


def test_a_packet_that_cannot_be_written_cannot_be_signed() -> None:
    packet = make_packet()
    user = replace(packet.user, admin_queue="no number")
    with pytest.raises(SignatureError):
        signature_input(V1, replace(packet, user=user))


def signed(packet: UserMessage | None = None, **options: Any) -> UserMessage:
    packet = make_packet() if packet is None else packet
    return sign(packet, known.PAIR_1024, known.CERTIFICATE, ANNA, **options)


@pytest.mark.requirement("MQ-2.2.20.6-44")
@pytest.mark.requirement("QB-3.1.7.1.4-04", "QB-3.1.7.1.4-05", "MQ-2.2.19.3-34")
def test_a_signature_is_that_of_openssl_back_to_front() -> None:
    packet = UserMessage.decode(signed().encode())
    security = packet.security
    assert security is not None
    assert bytes(security.signature) == known.SIGNATURES[HASH_SHA512][::-1]
    assert packet.properties.hash_algorithm == HASH_SHA512
    assert bytes(security.sender_cert) == known.CERTIFICATE
    assert bytes(security.security_id) == ANNA.encode()
    assert security.flags & SENDER_ID_TYPE == SENDER_ID_SID
    assert security.flags & DEFAULT_PROVIDER
    assert is_signed(packet)
    assert verify(packet) is V2


@pytest.mark.requirement("QB-3.1.5.8.3-03", "QB-3.1.5.8.3-04", "QB-3.1.5.8.3-05")
@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("algorithm", HASHES, ids=hex)
def test_a_receiver_finds_out_which_list_was_signed(
    version: SignatureVersion, algorithm: int
) -> None:
    packet = signed(version=version, hash_algorithm=algorithm, allow_weak=True)
    found = verify(UserMessage.decode(packet.encode()), allow_weak=True)
    assert found is version
    assert found == {V1: 0x1, V2: 0x3}[version]  # what Flags.AS says


@pytest.mark.requirement("MQ-2.2.20.6-39", "MQ-2.2.20.6-43")
@pytest.mark.parametrize("algorithm", [HASH_SHA256, HASH_SHA512], ids=hex)
@pytest.mark.parametrize(
    ("version", "fields"),
    [
        pytest.param(V1, COMMON, marks=pytest.mark.requirement("MQ-2.2.20.6-40")),
        pytest.param(
            V2, [*COMMON, *SHARED, DESTINATION], marks=pytest.mark.requirement("MQ-2.2.20.6-41")
        ),
        pytest.param(
            V3, [*COMMON, b"ext", *SHARED], marks=pytest.mark.requirement("MQ-2.2.20.6-42")
        ),
    ],
)
def test_users_and_queue_managers_sign_the_fields_of_the_version(
    version: SignatureVersion, fields: list[bytes], algorithm: int
) -> None:
    by_user = signed(version=version, hash_algorithm=algorithm)
    by_manager = sign_as_manager(
        make_packet(), known.PAIR_1024, MANAGER, version=version, hash_algorithm=algorithm
    )
    for packet in (by_user, by_manager):
        assert packet.security is not None
        assert packet.properties.hash_algorithm == algorithm
        signature = bytes(packet.security.signature)[::-1]
        used = HASHES[algorithm]
        assert rsa.verify(known.PAIR_1024.public, used, b"".join(fields), signature)


@pytest.mark.requirement("DM-3.1.1.12-103", "DM-3.1.1.12-104")
@pytest.mark.requirement("MQ-2.2.20.6-37", "MQ-2.2.20.6-40")
def test_the_security_id_is_the_sid_of_a_user_or_the_guid_of_a_queue_manager() -> None:
    by_user = signed(version=V1).security
    by_manager = sign_as_manager(make_packet(), known.PAIR_1024, MANAGER, version=V1).security
    assert by_user is not None
    assert by_manager is not None
    assert by_user.flags & SENDER_ID_TYPE == 1
    assert by_user.security_id == ANNA.encode()
    assert by_manager.flags & SENDER_ID_TYPE == 2
    assert by_manager.security_id == MANAGER.bytes_le


@pytest.mark.requirement("MQ-2.2.20.3-10")
@pytest.mark.requirement("QB-3.1.7.1.4-02", "QB-3.1.7.1.4-03", "QB-3.1.5.8.3-06")
@pytest.mark.parametrize("version", SignatureVersion)
def test_a_message_to_several_queues_is_signed_beside_their_list(
    version: SignatureVersion,
) -> None:
    several = replace(make_packet(), multi_queue_format=several_destinations())
    packet = UserMessage.decode(signed(several, version=version).encode())
    assert packet.security is not None
    assert packet.multi_queue_format is not None
    assert packet.security.signature == b""
    signature = bytes(packet.multi_queue_format.signature.signature)[::-1]
    third = b"".join([*COMMON, b"ext", LIST, *SHARED])
    assert rsa.verify(known.PAIR_1024.public, HASHES[HASH_SHA512], third, signature)
    assert verify(packet) is V3
    assert verify(packet) == 0x5
    # each copy goes to another queue under the same signature
    user = replace(packet.user, destination_queue="OS:elsewhere\\q")
    assert verify(replace(packet, user=user)) is V3


def test_a_third_list_alone_is_signed_where_the_others_are() -> None:
    packet = signed(version=V3)
    assert packet.security is not None
    signature = bytes(packet.security.signature)[::-1]
    used = HASHES[HASH_SHA512]
    assert rsa.verify(known.PAIR_1024.public, used, signature_input(V3, packet), signature)
    # a receiver tries only the first two lists there (MQQB 3.1.5.8.3)
    with pytest.raises(SignatureError):
        verify(packet)


def test_a_first_signature_covers_less_than_a_second() -> None:
    first, second = signed(version=V1), signed(version=V2)
    for packet in (first, second):
        packet.properties = replace(packet.properties, body_type=9)
    assert verify(first) is V1
    with pytest.raises(SignatureError, match="does not fit"):
        verify(second)


@pytest.mark.parametrize(
    "change",
    [
        {"message_body": b"Body"},
        {"label": "Lb"},
        {"application_tag": 1},
        {"correlation_id": bytes(20)},
        {"hash_algorithm": HASH_SHA256},
    ],
)
def test_a_changed_message_is_not_believed(change: dict[str, Any]) -> None:
    packet = signed()
    packet.properties = replace(packet.properties, **change)
    with pytest.raises(SignatureError) as refused:
        verify(packet)
    assert refused.value.status is MqStatus.FAIL_VERIFY_SIGNATURE_EX


def header_of(packet: UserMessage) -> SecurityHeader:
    assert packet.security is not None
    return packet.security


def test_a_certificate_of_somebody_else_does_not_fit() -> None:
    other = create_certificate(ANNA, rsa.generate(1024), 1.7e9, 86_400, 5)
    packet = signed()
    packet.security = replace(header_of(packet), sender_cert=other)
    with pytest.raises(SignatureError):
        verify(packet)
    with pytest.raises(SignatureError, match="not that of the key"):
        sign(make_packet(), known.PAIR_1024, other, ANNA)


def test_without_a_certificate_nothing_can_be_verified() -> None:
    packet = signed()
    packet.security = replace(header_of(packet), sender_cert=b"")
    with pytest.raises(CertificateError):
        verify(packet)


def test_what_is_not_signed_is_not_verified() -> None:
    unsigned = replace(make_packet(), security=SecurityHeader(SENDER_ID_SID, ANNA.encode()))
    several = replace(unsigned, multi_queue_format=several_destinations())
    for packet in (make_packet(), unsigned, several):
        assert not is_signed(packet)
        with pytest.raises(SignatureError, match="is not signed"):
            verify(packet)
    assert several.multi_queue_format is not None
    beside = replace(several.multi_queue_format, signature=MQFSignatureHeader(b"x"))
    assert is_signed(replace(several, multi_queue_format=beside))
    assert not is_signed(replace(several, multi_queue_format=beside, security=None))


@pytest.mark.requirement("MQ-2.2.19.3-33")
def test_hashes_that_are_not_for_use_are_refused_on_both_sides() -> None:
    with pytest.raises(WeakAlgorithmError):
        signed(hash_algorithm=HASH_SHA1)
    packet = signed(hash_algorithm=HASH_SHA1, allow_weak=True)
    with pytest.raises(WeakAlgorithmError):
        verify(packet)
    assert verify(packet, allow_weak=True) is V2
    packet.properties = replace(packet.properties, hash_algorithm=0x800D)
    with pytest.raises(SignatureError):
        verify(packet, allow_weak=True)


@pytest.mark.parametrize("algorithm", [HASH_MD2, HASH_MD4])
def test_the_oldest_hashes_sign_small_messages_where_they_are_allowed(algorithm: int) -> None:
    packet = signed(hash_algorithm=algorithm, allow_weak=True)
    with pytest.raises(WeakAlgorithmError):
        verify(packet)
    assert verify(packet, allow_weak=True) is V2
    changed = replace(packet, properties=replace(packet.properties, message_body=b"another body"))
    with pytest.raises(SignatureError):
        verify(changed, allow_weak=True)
    long = replace(packet, properties=replace(packet.properties, message_body=bytes(9000)))
    with pytest.raises(SignatureError, match="too many for"):
        verify(long, allow_weak=True)


def test_a_short_key_is_believed_only_where_weak_algorithms_are_allowed() -> None:
    header = SecurityHeader(
        SENDER_ID_SID | DEFAULT_PROVIDER,
        ANNA.encode(),
        b"",
        known.SIGNATURE_512_SHA256[::-1],
        known.CERTIFICATE_512,
    )
    packet = replace(make_packet(hash_algorithm=HASH_SHA256), security=header)
    with pytest.raises(WeakAlgorithmError, match="512 bits"):
        verify(packet)
    assert verify(packet, allow_weak=True) is V2


@pytest.mark.requirement("QB-3.1.5.8.3-12")
def test_a_certificate_is_registered_if_it_is_the_same_byte_for_byte() -> None:
    other = create_certificate(ANNA, known.PAIR_1024, 1.7e9, 86_400, 5)
    listed = sign_certs([(bytes(16), other), (SOURCE, known.CERTIFICATE)])
    found = registered_as(known.CERTIFICATE, listed)
    assert found is not None
    assert (found.identifier, found.is_digest_right) == (SOURCE, True)
    assert registered_as(known.CERTIFICATE + b"\0", listed) is None
    # the digest is not asked
    listed.certificates[1].digest = bytes(16)
    assert registered_as(known.CERTIFICATE, listed) is not None
    assert read_certificate(known.CERTIFICATE).subject == "CN=Anna"


@pytest.mark.parametrize(
    "key",
    [
        RsaPublicKey((1 << 16383) + 1, 65537),
        RsaPublicKey(known.PAIR_1024.modulus, (1 << 1000) + 1),
    ],
)
def test_a_key_that_would_keep_us_busy_for_seconds_verifies_nothing(
    monkeypatch: pytest.MonkeyPatch, key: RsaPublicKey
) -> None:
    packet = sign(make_packet(), known.PAIR_1024, known.CERTIFICATE, ANNA)
    monkeypatch.setattr("falconmq.security.signatures.public_key_of", lambda _: key)
    monkeypatch.delattr("falconmq.security.rsa.verify")  # it is not even asked
    with pytest.raises(SignatureError, match="takes too long"):
        verify(packet)
