"""Bodies that only their receiver can read (MQQB 3.1.7.1.5, 3.1.5.8.3).

The sender signs first and encrypts then; the receiver decrypts first and verifies then (QB-A17).
Both functions return a new packet and leave theirs as it is: what a queue keeps is the clear text,
what the wire sees is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from falconmq.security import ciphers
from falconmq.security.caches import (
    CachedSymmetricKey,
    ReceiveSymmetricKeyCache,
    SendSymmetricKeyCache,
)
from falconmq.security.problems import DecryptionError, WeakAlgorithmError
from falconmq.security.providers import BY_PRIVACY_LEVEL, Provider
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.security.session_keys import (
    Choice,
    EncryptionSettings,
    choose,
    is_reduced,
    make_key,
    unwrap_key,
    wrap_key,
)
from falconmq.wire.security_header import (
    DEFAULT_PROVIDER,
    ENCRYPTED_BODY,
    SECURITY_DATA,
    ProviderInfo,
    SecurityHeader,
)
from falconmq.wire.user_message import UserMessage


@dataclass(slots=True)
class Sender:
    """What a sender needs for many messages; `random` is for tests and simulations."""

    cache: SendSymmetricKeyCache
    settings: EncryptionSettings = field(default_factory=EncryptionSettings)
    random: Random | None = None


@dataclass(slots=True)
class Receiver:
    """What a receiver needs for many messages: its private keys, and those it has seen."""

    cache: ReceiveSymmetricKeyCache
    keys: Mapping[Provider, RsaKeyPair] = field(repr=False)
    settings: EncryptionSettings = field(default_factory=EncryptionSettings)


def encrypt_body(
    packet: UserMessage,
    sender: Sender,
    remote: bytes,
    keys: Mapping[Provider, RsaPublicKey],
    *,
    allow_weak: bool = False,
) -> UserMessage:
    """The packet for the queue manager `remote`, which published `keys`.

    EncryptionError or WeakAlgorithmError if its privacy level cannot be had.
    """
    privacy_level = packet.properties.privacy_level
    choice = choose(keys, privacy_level, sender.settings, allow_weak=allow_weak)
    key = _sending_key(sender, remote, choice)
    body = ciphers.encrypt(
        choice.algorithm,
        key.symmetric_key,
        bytes(packet.properties.message_body),
        allow_weak=allow_weak,
    )
    properties = replace(
        packet.properties,
        message_body=body,
        allocation_body_size=len(body),  # QB-3.1.7.1.5-24
        encryption_algorithm=choice.algorithm,  # QB-3.1.7.1.5-26
        privacy_level=choice.provider.privacy_level,  # or the receiver takes another key: QB-A20
    )
    security = SecurityHeader(0) if packet.security is None else packet.security
    flags = security.flags & ~DEFAULT_PROVIDER | ENCRYPTED_BODY | SECURITY_DATA
    provider = ProviderInfo(choice.provider.provider_type, choice.provider.name)
    security = replace(
        security,
        flags=flags,
        encryption_key=key.encrypted_symmetric_key,  # QB-3.1.7.1.5-28
        provider_info=provider,  # QB-3.1.7.1.5-27
    )
    return replace(packet, properties=properties, security=security)


def decrypt_body(
    packet: UserMessage, receiver: Receiver, *, allow_weak: bool = False
) -> UserMessage:
    """The packet with its body in the clear; as it is if nothing is encrypted.

    DecryptionError or WeakAlgorithmError otherwise: the answer to both is NACK_BAD_ENCRYPTION.
    """
    security, properties = packet.security, packet.properties
    if security is None or not security.flags & ENCRYPTED_BODY:  # QB-3.1.5.8.3-19
        return packet
    provider = BY_PRIVACY_LEVEL.get(properties.privacy_level)  # QB-3.1.5.8.3-20
    if provider is None:
        raise DecryptionError(f"{properties.privacy_level} is no privacy level that encrypts")
    algorithm = properties.encryption_algorithm
    if algorithm not in provider.algorithms:
        raise DecryptionError(f"the {provider.name} does not know algorithm {algorithm:#x}")
    if provider.is_weak and not allow_weak:
        raise WeakAlgorithmError(f"the {provider.name}")
    key, is_new = _receiving_key(packet, security, receiver, provider, allow_weak=allow_weak)
    rejects = receiver.settings.reject_enhanced_rc2_using_40_bit_keys
    if rejects and is_reduced(provider, algorithm, key.symmetric_key):  # QB-3.1.1.3-14
        raise DecryptionError("the key of the body has 40 bits, filled up with zeros")
    sealed = bytes(properties.message_body)
    body = ciphers.decrypt(algorithm, key.symmetric_key, sealed, allow_weak=allow_weak)
    if is_new:  # only now: keys that open nothing would push out those that do
        receiver.cache.add(key)  # QB-3.1.5.8.3-28
    clear = replace(properties, message_body=body, allocation_body_size=len(body))
    return replace(packet, properties=clear, security=_without_key(security))


def _sending_key(sender: Sender, remote: bytes, choice: Choice) -> CachedSymmetricKey:
    cache, provider, algorithm = sender.cache, choice.provider, choice.algorithm
    found = cache.find(remote, provider, algorithm)
    if found is not None:
        return found
    key = make_key(choice, sender.random)
    blob = wrap_key(choice, key, sender.random)
    made = CachedSymmetricKey(remote, provider, algorithm, blob, key, cache.time())
    cache.add(made)  # QB-3.1.7.1.5-19
    return made


def _receiving_key(
    packet: UserMessage,
    security: SecurityHeader,
    receiver: Receiver,
    provider: Provider,
    *,
    allow_weak: bool,
) -> tuple[CachedSymmetricKey, bool]:
    """The key of a packet, and whether it is new."""
    cache, algorithm = receiver.cache, packet.properties.encryption_algorithm
    remote, blob = packet.user.source_queue_manager, bytes(security.encryption_key)
    found = cache.find(remote, provider, algorithm, blob)  # QB-3.1.5.8.3-24
    if found is not None:
        return found, False
    pair = receiver.keys.get(provider)
    if pair is None:
        raise DecryptionError
    key = unwrap_key(pair, algorithm, blob, allow_weak=allow_weak)
    # QB-3.1.5.8.3-25
    return CachedSymmetricKey(remote, provider, algorithm, blob, key, cache.time()), True


def _without_key(security: SecurityHeader) -> SecurityHeader | None:
    """What is left of a SecurityHeader when the body is in the clear; None if nothing is."""
    flags = security.flags & ~ENCRYPTED_BODY
    if not security.security_id and not security.signature and not security.sender_cert:
        return None
    info = security.provider_info if security.signature else None
    return replace(security, flags=flags, encryption_key=b"", provider_info=info)
