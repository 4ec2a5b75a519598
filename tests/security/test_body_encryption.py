"""Bodies that only their receiver can read: all privacy levels, and everything that goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.errors import MqStatus
from falconmq.security import rsa
from falconmq.security.body_encryption import (
    RC2_BODY_MAX,
    Receiver,
    Sender,
    decrypt_body,
    encrypt_body,
    needs_private_key,
)
from falconmq.security.caches import ReceiveSymmetricKeyCache, SendSymmetricKeyCache
from falconmq.security.keys import FormerKeys
from falconmq.security.problems import DecryptionError, EncryptionError, WeakAlgorithmError
from falconmq.security.providers import ADVANCED, BASE, ENHANCED, PROVIDERS, Provider
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.security.session_keys import (
    Choice,
    EncryptionSettings,
    choose,
    make_key,
    pair_for,
    unwrap_key,
)
from falconmq.wire.message_properties_header import (
    PRIVACY_ADVANCED,
    PRIVACY_BASE,
    PRIVACY_ENHANCED,
    PRIVACY_NONE,
)
from falconmq.wire.security_header import (
    DEFAULT_PROVIDER,
    ENCRYPTED_BODY,
    SENDER_ID_SID,
    SecurityHeader,
)
from falconmq.wire.simple_blob import (
    CALG_AES_128,
    CALG_AES_192,
    CALG_AES_256,
    CALG_RC2,
    CALG_RC4,
    SimpleBlob,
)
from falconmq.wire.user_message import UserMessage
from tests.security import known
from tests.security.packets import ANNA, REMOTE, SOURCE, make_packet

PRIVATE: Mapping[Provider, RsaKeyPair] = {
    BASE: known.PAIR_512,
    ENHANCED: known.PAIR_1024,
    ADVANCED: known.PAIR_1024,
}
PUBLIC = {provider: pair.public for provider, pair in PRIVATE.items()}
BODY = b"the body " * 5
LEVELS = {PRIVACY_BASE: BASE, PRIVACY_ENHANCED: ENHANCED, PRIVACY_ADVANCED: ADVANCED}


class Time:
    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


def sender(**settings: Any) -> Sender:
    return Sender(SendSymmetricKeyCache(Time()), EncryptionSettings(**settings), Random(5))


def receiver(**settings: Any) -> Receiver:
    return Receiver(ReceiveSymmetricKeyCache(Time()), PRIVATE, EncryptionSettings(**settings))


def sealed(level: int = PRIVACY_ADVANCED, **settings: Any) -> UserMessage:
    """A packet whose receiver has a key for that level and no better one."""
    packet = make_packet(message_body=BODY, privacy_level=level, encryption_algorithm=CALG_RC4)
    packet.properties.allocation_body_size = len(BODY)
    keys = {LEVELS[level]: PUBLIC[LEVELS[level]]}
    return encrypt_body(packet, sender(**settings), REMOTE, keys, allow_weak=True)


def algorithm_settings(algorithm: int) -> dict[str, int]:
    return {
        "preferred_advanced_algorithm": algorithm,
        "preferred_enhanced_algorithm": algorithm,
        "preferred_base_algorithm": algorithm,
    }


@pytest.mark.requirement(
    "QB-3.1.5.8.3-20",
    "QB-3.1.5.8.3-26",
    "QB-3.1.5.8.3-27",
    "QB-3.1.5.8.3-35",
    "QB-3.1.7.1.5-23",
    "QB-3.1.7.1.5-24",
    "QB-3.1.7.1.5-26",
    "QB-3.1.7.1.5-27",
    "QB-3.1.7.1.5-28",
    "QB-3.1.7.1.5-18",
    "MQ-2.2.19.3-26",
)
@pytest.mark.parametrize(
    ("level", "algorithm", "key_bytes"),
    [
        (PRIVACY_BASE, CALG_RC4, 5),
        (PRIVACY_BASE, CALG_RC2, 5),
        (PRIVACY_ENHANCED, CALG_RC4, 16),
        (PRIVACY_ENHANCED, CALG_RC2, 16),
        (PRIVACY_ADVANCED, CALG_AES_128, 16),
        (PRIVACY_ADVANCED, CALG_AES_192, 24),
        (PRIVACY_ADVANCED, CALG_AES_256, 32),
    ],
)
def test_a_body_is_read_by_its_receiver_and_nobody_on_the_way(
    level: int, algorithm: int, key_bytes: int
) -> None:
    # given a packet that went over the wire
    packet = sealed(level, **algorithm_settings(algorithm))
    packet = UserMessage.decode(packet.encode())
    security, properties = packet.security, packet.properties
    assert security is not None
    # then it says how to read it, to those who have the key
    assert security.flags & ENCRYPTED_BODY
    assert bytes(properties.message_body) != BODY
    assert properties.allocation_body_size == len(properties.message_body)
    assert (properties.privacy_level, properties.encryption_algorithm) == (level, algorithm)
    provider, info = LEVELS[level], security.provider_info
    assert info is not None
    assert (info.provider_name, info.provider_type) == (provider.name, provider.provider_type)
    blob = bytes(security.encryption_key)
    key = unwrap_key(PRIVATE[provider], algorithm, blob, allow_weak=True)
    assert len(key) == key_bytes
    assert SimpleBlob.decode(blob).session_key_algorithm == algorithm
    # and the receiver has the body again, and nothing is left of the encryption
    opened = decrypt_body(packet, receiver(), allow_weak=True)
    assert opened.properties.message_body == BODY
    assert opened.properties.allocation_body_size == len(BODY)
    assert opened.security is None
    assert bytes(packet.properties.message_body) != BODY  # the packet itself stays as it is


def test_a_blob_of_openssl_is_read() -> None:
    blob = SimpleBlob(CALG_AES_256, known.WRAPPED_1024).encode()
    assert blob[12:] == known.WRAPPED_1024[::-1]  # back to front, as CryptoAPI has it
    assert unwrap_key(known.PAIR_1024, CALG_AES_256, blob) == known.KEY
    blob = SimpleBlob(CALG_RC4, known.WRAPPED_512).encode()
    assert unwrap_key(known.PAIR_512, CALG_RC4, blob, allow_weak=True) == known.KEY[:5]


@pytest.mark.parametrize("level", LEVELS)
def test_the_best_key_of_the_receiver_is_taken_whatever_the_level(level: int) -> None:
    choice = choose(PUBLIC, level, EncryptionSettings())
    assert (choice.provider, choice.algorithm, choice.key_bits) == (ADVANCED, CALG_AES_256, 256)
    packet = make_packet(message_body=BODY, privacy_level=level, encryption_algorithm=CALG_RC4)
    if level == PRIVACY_ADVANCED:
        packet.properties.encryption_algorithm = CALG_AES_128
    made = encrypt_body(packet, sender(), REMOTE, PUBLIC)
    # the level goes up with it, or the receiver would take another key
    assert made.properties.privacy_level == PRIVACY_ADVANCED
    assert decrypt_body(made, receiver()).properties.message_body == BODY


@pytest.mark.requirement(
    "QB-3.1.3.1-13",
    "QB-3.1.3.1-14",
    "QB-3.1.3.1-15",
    "QB-3.1.3.1-16",
    "QB-3.1.3.1-17",
    "QB-3.1.7.1.5-06",
    "QB-3.1.7.1.5-08",
    "QB-3.1.7.1.5-10",
)
def test_without_settings_the_algorithms_are_those_of_the_specification() -> None:
    expected = {
        PRIVACY_ADVANCED: (CALG_AES_256, 256),
        PRIVACY_ENHANCED: (CALG_RC4, 128),
        PRIVACY_BASE: (CALG_RC4, 40),
    }
    settings = EncryptionSettings()
    for level, (algorithm, bits) in expected.items():
        keys = {LEVELS[level]: PUBLIC[LEVELS[level]]}
        choice = choose(keys, level, settings, allow_weak=True)
        assert (choice.algorithm, choice.key_bits) == (algorithm, bits)
    assert not settings.send_enhanced_rc2_using_40_bit_keys
    assert not settings.reject_enhanced_rc2_using_40_bit_keys


@pytest.mark.parametrize(
    ("level", "providers"),
    [
        (PRIVACY_ADVANCED, (ENHANCED, BASE)),
        (PRIVACY_ENHANCED, (BASE,)),
        (PRIVACY_BASE, ()),
    ],
)
def test_less_than_the_level_is_never_taken(level: int, providers: tuple[Provider, ...]) -> None:
    keys = {provider: PUBLIC[provider] for provider in providers}
    with pytest.raises(EncryptionError) as refused:
        choose(keys, level, EncryptionSettings(), allow_weak=True)
    assert refused.value.status is MqStatus.PUBLIC_KEY_NOT_FOUND
    assert "falconmq key import" in refused.value.hint


@pytest.mark.parametrize("level", [PRIVACY_NONE, 2, 4])
def test_a_level_that_does_not_encrypt_is_refused(level: int) -> None:
    with pytest.raises(EncryptionError, match="no privacy level"):
        choose(PUBLIC, level, EncryptionSettings())


def test_weak_providers_and_keys_are_for_administrators_to_allow() -> None:
    for provider in (BASE, ENHANCED):
        with pytest.raises(WeakAlgorithmError):
            choose({provider: PUBLIC[provider]}, PRIVACY_BASE, EncryptionSettings())
    short = {ADVANCED: known.PAIR_512.public}  # a name that promises more than the key holds
    with pytest.raises(WeakAlgorithmError, match="512 bits"):
        choose(short, PRIVACY_ADVANCED, EncryptionSettings())
    for level in (PRIVACY_BASE, PRIVACY_ENHANCED):
        with pytest.raises(WeakAlgorithmError):
            decrypt_body(sealed(level), receiver())
        with pytest.raises(WeakAlgorithmError):  # and no private key is touched
            decrypt_body(sealed(level), Receiver(ReceiveSymmetricKeyCache(Time()), {}))
    blob = SimpleBlob(CALG_RC4, known.WRAPPED_512).encode()
    with pytest.raises(WeakAlgorithmError, match="512 bits"):
        unwrap_key(known.PAIR_512, CALG_RC4, blob)


@pytest.mark.requirement("QB-3.1.7.1.5-16")
@pytest.mark.parametrize("algorithm", [CALG_AES_128, CALG_AES_192, CALG_AES_256, CALG_RC4])
def test_keys_are_of_chance_and_of_the_chosen_length(algorithm: int) -> None:
    bits = {CALG_AES_128: 128, CALG_AES_192: 192, CALG_AES_256: 256, CALG_RC4: 40}[algorithm]
    choice = Choice(ADVANCED, algorithm, bits, known.PAIR_1024.public)
    first, second = make_key(choice), make_key(choice)
    assert len(first) * 8 == bits
    assert first != second
    assert make_key(choice, Random(1)) == make_key(choice, Random(1))


@pytest.mark.requirement("QB-A21-01")
@pytest.mark.requirement("QB-3.1.1.3-13", "QB-3.1.1.3-14", "QB-3.1.7.1.5-17")
def test_an_enhanced_rc2_key_can_be_reduced_and_such_keys_can_be_rejected() -> None:
    # given a sender that reduces its keys
    reducing = {
        "preferred_enhanced_algorithm": CALG_RC2,
        "send_enhanced_rc2_using_40_bit_keys": True,
    }
    packet = sealed(PRIVACY_ENHANCED, **reducing)
    assert packet.security is not None
    blob = bytes(packet.security.encryption_key)
    key = unwrap_key(known.PAIR_1024, CALG_RC2, blob, allow_weak=True)
    assert len(key) == 16
    assert key[5:] == bytes(11)
    assert key[:5] != bytes(5)
    # then a receiver reads it, unless it rejects such keys
    opened = decrypt_body(packet, receiver(), allow_weak=True)
    assert opened.properties.message_body == BODY
    strict = receiver(reject_enhanced_rc2_using_40_bit_keys=True)
    with pytest.raises(DecryptionError, match="40 bits"):
        decrypt_body(packet, strict, allow_weak=True)
    # and whole keys are never rejected
    whole = sealed(PRIVACY_ENHANCED, preferred_enhanced_algorithm=CALG_RC2)
    assert decrypt_body(whole, strict, allow_weak=True).properties.message_body == BODY


@pytest.mark.requirement("QB-3.1.7.1.5-15", "QB-3.1.7.1.5-19", "QB-3.1.7.1.5-22")
def test_a_sender_uses_a_key_until_it_is_forgotten() -> None:
    ours = sender()
    packet = make_packet(message_body=BODY, privacy_level=PRIVACY_ADVANCED)
    packet.properties.encryption_algorithm = CALG_AES_256
    made = [encrypt_body(packet, ours, remote, PUBLIC) for remote in (REMOTE, REMOTE, SOURCE)]
    blobs = [bytes(each.security.encryption_key) for each in made if each.security is not None]
    assert blobs[0] == blobs[1] != blobs[2]
    (entry,) = [each for each in ours.cache._entries if each.remote_qm_guid == REMOTE]
    assert entry.cached_time == 500.0
    assert entry.encrypted_symmetric_key == blobs[0]
    assert (entry.crypto_service_provider, entry.crypto_algorithm) == (ADVANCED, CALG_AES_256)
    ours.cache.time.now += 10_000.0  # type: ignore[attr-defined]
    ours.cache.clean_up()
    again = encrypt_body(packet, ours, REMOTE, PUBLIC)
    assert again.security is not None
    assert bytes(again.security.encryption_key) != blobs[0]


@pytest.mark.requirement("QB-3.1.5.8.3-25", "QB-3.1.5.8.3-28", "QB-3.1.5.8.3-31")
def test_a_receiver_works_out_a_key_once() -> None:
    ours, packet = receiver(), sealed()
    assert packet.security is not None
    decrypt_body(packet, ours)
    (entry,) = ours.cache._entries
    assert entry.remote_qm_guid == SOURCE
    assert (entry.crypto_service_provider, entry.crypto_algorithm) == (ADVANCED, CALG_AES_256)
    assert entry.encrypted_symmetric_key == packet.security.encryption_key
    assert entry.cached_time == 500.0
    # and needs no private key the second time
    ours.keys = {}
    assert decrypt_body(packet, ours).properties.message_body == BODY
    assert len(ours.cache) == 1


def test_keys_that_open_nothing_are_not_remembered() -> None:
    ours, packet = receiver(), sealed()
    damaged = replace(packet, properties=replace(packet.properties, message_body=b"x" * 32))
    with pytest.raises(DecryptionError):
        decrypt_body(damaged, ours)
    assert len(ours.cache) == 0


def with_header(packet: UserMessage, **changes: Any) -> UserMessage:
    assert packet.security is not None
    return replace(packet, security=replace(packet.security, **changes))


def with_properties(packet: UserMessage, **changes: Any) -> UserMessage:
    return replace(packet, properties=replace(packet.properties, **changes))


@pytest.mark.requirement("MQ-2.2.19.3-39")
@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(
            with_properties(sealed(), privacy_level=2),
            marks=pytest.mark.requirement("MQ-2.2.19.3-29"),
        ),
        with_properties(sealed(), privacy_level=0),
        with_properties(sealed(), encryption_algorithm=CALG_RC4),
        with_properties(sealed(), encryption_algorithm=0x6603),
        with_properties(sealed(), encryption_algorithm=CALG_AES_128),
        with_properties(sealed(), message_body=b"short"),
        with_properties(sealed(), message_body=b""),
        with_header(sealed(), encryption_key=b""),
        with_header(sealed(), encryption_key=b"\x01\x02" + bytes(138)),
        with_header(sealed(), encryption_key=SimpleBlob(CALG_AES_256, b"short").encode()),
        with_header(sealed(), encryption_key=SimpleBlob(CALG_AES_256, bytes(128)).encode()),
    ],
)
def test_what_cannot_be_decrypted_is_refused(packet: UserMessage) -> None:
    ours = receiver()
    with pytest.raises(DecryptionError) as refused:
        decrypt_body(packet, ours, allow_weak=True)
    assert refused.value.status is MqStatus.CORRUPTED_SECURITY_DATA
    assert len(ours.cache) == 0


def test_a_key_for_another_algorithm_is_refused() -> None:
    packet = with_properties(sealed(PRIVACY_ENHANCED), encryption_algorithm=CALG_RC2)
    with pytest.raises(DecryptionError):
        decrypt_body(with_properties(packet, message_body=bytes(16)), receiver(), allow_weak=True)
    assert packet.security is not None
    with pytest.raises(DecryptionError):
        unwrap_key(known.PAIR_1024, CALG_RC2, bytes(packet.security.encryption_key))


def test_a_receiver_without_the_key_of_a_provider_refuses() -> None:
    ours = receiver()
    ours.keys = {BASE: known.PAIR_512}
    with pytest.raises(DecryptionError):
        decrypt_body(sealed(), ours)


def test_what_is_not_encrypted_stays_as_it_is() -> None:
    for security in (None, SecurityHeader(SENDER_ID_SID, ANNA.encode())):
        packet = replace(make_packet(), security=security)
        assert decrypt_body(packet, receiver()) is packet


def test_signature_and_sender_survive_the_encryption() -> None:
    header = SecurityHeader(
        SENDER_ID_SID | DEFAULT_PROVIDER, ANNA.encode(), b"", b"signature", b"certificate"
    )
    packet = make_packet(message_body=BODY, privacy_level=PRIVACY_ADVANCED)
    packet = replace(packet, security=header)
    packet.properties.encryption_algorithm = CALG_AES_256
    made = UserMessage.decode(encrypt_body(packet, sender(), REMOTE, PUBLIC).encode())
    opened = decrypt_body(made, receiver())
    assert opened.security is not None
    assert not opened.security.flags & ENCRYPTED_BODY
    assert bytes(opened.security.signature) == b"signature"
    assert bytes(opened.security.sender_cert) == b"certificate"
    assert bytes(opened.security.security_id) == ANNA.encode()
    assert opened.security.encryption_key == b""
    assert UserMessage.decode(opened.encode()).properties.message_body == BODY


@settings(max_examples=40, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=4)
)
def test_damaged_keys_never_open_a_body(changes: list[tuple[int, int]]) -> None:
    packet = sealed()
    assert packet.security is not None
    blob = bytearray(packet.security.encryption_key)
    for place, change in changes:
        blob[place % len(blob)] ^= change
    if blob == packet.security.encryption_key:
        return
    try:
        opened = decrypt_body(with_header(packet, encryption_key=bytes(blob)), receiver())
    except DecryptionError:
        return
    # the library gives a key of chance for a damaged one, and one in thousands seems to fit
    assert opened.properties.message_body != BODY


def test_providers_are_those_of_the_specification() -> None:
    assert [provider.rsa_bits for provider in PROVIDERS] == [512, 1024, 1024]
    assert [provider.provider_type for provider in PROVIDERS] == [1, 1, 0x18]
    assert [provider.is_weak for provider in PROVIDERS] == [True, True, False]
    assert isinstance(PUBLIC[BASE], RsaPublicKey)


def test_of_several_pairs_the_one_it_was_made_for_opens_a_key() -> None:
    older = rsa.generate(1024, Random(3))
    packet = sealed()
    assert packet.security is not None
    blob = bytes(packet.security.encryption_key)
    assert pair_for([older, known.PAIR_1024], CALG_AES_256, blob) is known.PAIR_1024
    for nobody in ([], [older, older]):
        with pytest.raises(DecryptionError):
            pair_for(nobody, CALG_AES_256, blob)
    with pytest.raises(DecryptionError):
        pair_for([older, older], CALG_AES_256, b"no blob")
    with pytest.raises(DecryptionError):
        pair_for([older, known.PAIR_1024], 0x1234, blob)


def test_a_key_that_another_pair_makes_up_is_not_taken_for_the_real_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = rsa.generate(1024, Random(3))
    packet = sealed()
    assert packet.security is not None
    blob = bytes(packet.security.encryption_key)
    monkeypatch.setattr(rsa, "decrypt", lambda *_: bytes(32))  # as long as a real one
    assert pair_for([older, known.PAIR_1024], CALG_AES_256, blob) is known.PAIR_1024
    assert pair_for([known.PAIR_1024, older], CALG_AES_256, blob) is known.PAIR_1024


def test_former_keys_open_until_their_time_is_over() -> None:
    newer = rsa.generate(1024, Random(3))
    reader = receiver()
    reader.keys = {ADVANCED: newer}
    reader.former = (FormerKeys(PRIVATE, until=501.0),)
    assert decrypt_body(sealed(), reader).properties.message_body == BODY
    reader = receiver()
    reader.keys = {ADVANCED: newer}
    reader.former = (FormerKeys(PRIVATE, until=500.0),)  # it is 500 now
    with pytest.raises(DecryptionError):
        decrypt_body(sealed(), reader)


def test_long_bodies_are_not_encrypted_with_rc2() -> None:
    settings = algorithm_settings(CALG_RC2)
    long = make_packet(message_body=bytes(RC2_BODY_MAX + 1), privacy_level=PRIVACY_ENHANCED)
    with pytest.raises(EncryptionError, match="too long for RC2"):
        encrypt_body(
            long, sender(**settings), REMOTE, {ENHANCED: PUBLIC[ENHANCED]}, allow_weak=True
        )


def test_keys_that_nobody_can_open_do_not_fill_the_memory() -> None:
    reader = receiver()
    for number in range(5000):
        reader.give_up(str(number).encode())
        assert len(reader.hopeless) <= 1024


def test_a_private_key_is_needed_for_new_keys_only() -> None:
    reader, packet = receiver(), sealed()
    assert needs_private_key(packet, reader)
    decrypt_body(packet, reader)
    assert not needs_private_key(packet, reader)
    assert not needs_private_key(make_packet(), reader)
    weak = sealed(PRIVACY_BASE)
    assert not needs_private_key(weak, reader)  # it is refused anyway
    assert needs_private_key(weak, reader, allow_weak=True)
