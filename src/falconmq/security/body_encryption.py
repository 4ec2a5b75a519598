"""Bodies that only their receiver can read (MQQB 3.1.7.1.5, 3.1.5.8.3).

The sender signs first and encrypts then; the receiver decrypts first and verifies then (QB-A17).
Both functions return a new packet and leave theirs as it is: what a queue keeps is the clear text,
what the wire sees is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from falconmq.security import ciphers
from falconmq.security.caches import (
    CachedSymmetricKey,
    ReceiveSymmetricKeyCache,
    SendSymmetricKeyCache,
)
from falconmq.security.keys import FormerKeys
from falconmq.security.problems import DecryptionError, EncryptionError, WeakAlgorithmError
from falconmq.security.providers import BY_PRIVACY_LEVEL, Provider
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.security.session_keys import (
    Choice,
    EncryptionSettings,
    choose,
    is_reduced,
    make_key,
    pair_for,
    unwrap_key,
    wrap_key,
)
from falconmq.wire.security_header import (
    AUTHENTICATED,
    AUTHENTICATION_SIGNATURE,
    DEFAULT_PROVIDER,
    ENCRYPTED_BODY,
    SECURITY_DATA,
    ProviderInfo,
    SecurityHeader,
)
from falconmq.wire.simple_blob import CALG_RC2
from falconmq.wire.user_message import UserMessage

RC2_BODY_MAX: Final = 32 << 10  # bytes; our RC2 does 250 of them in a millisecond
_HOPELESS_MAX: Final = 1024


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
    former: tuple[FormerKeys, ...] = ()
    hopeless: set[bytes] = field(default_factory=set, repr=False)  # keys that are none for us

    def pairs(self, provider: Provider) -> list[RsaKeyPair]:
        """Those that a sender may have encrypted for, the one in use first."""
        now = self.cache.time()
        held = [self.keys, *(each.encryption for each in self.former if each.until > now)]
        return [keys[provider] for keys in held if provider in keys]

    def give_up(self, key: bytes) -> None:
        """Remember that a key cannot be read: the next message with it costs nothing."""
        if len(self.hopeless) >= _HOPELESS_MAX:
            self.hopeless.clear()
        self.hopeless.add(key)


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
    if choice.algorithm == CALG_RC2 and len(packet.properties.message_body) > RC2_BODY_MAX:
        raise EncryptionError(f"a body of more than {RC2_BODY_MAX} bytes is too long for RC2")
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
    if algorithm == CALG_RC2 and len(properties.message_body) > RC2_BODY_MAX:
        raise DecryptionError(f"a body of more than {RC2_BODY_MAX} bytes is too long for RC2")
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


def needs_private_key(packet: UserMessage, receiver: Receiver, *, allow_weak: bool = False) -> bool:
    """Whether decrypting a packet takes an RSA operation, which is slow: its key is new to us."""
    security, level = packet.security, packet.properties.privacy_level
    if security is None or not security.flags & ENCRYPTED_BODY:
        return False
    provider = BY_PRIVACY_LEVEL.get(level)
    if provider is None or (provider.is_weak and not allow_weak):
        return False
    if _hopeless_key(packet, security) in receiver.hopeless:
        return False
    return _known_key(packet, security, receiver, provider) is None


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
    found = _known_key(packet, security, receiver, provider)
    if found is not None:
        return found, False
    hopeless = _hopeless_key(packet, security)
    if hopeless in receiver.hopeless:
        raise DecryptionError
    algorithm = packet.properties.encryption_algorithm
    remote, blob = packet.user.source_queue_manager, bytes(security.encryption_key)
    try:
        pair = pair_for(receiver.pairs(provider), algorithm, blob)
        key = unwrap_key(pair, algorithm, blob, allow_weak=allow_weak)
    except DecryptionError:
        receiver.give_up(hopeless)
        raise
    now = receiver.cache.time()  # QB-3.1.5.8.3-25
    return CachedSymmetricKey(remote, provider, algorithm, blob, key, now), True


def _known_key(
    packet: UserMessage, security: SecurityHeader, receiver: Receiver, provider: Provider
) -> CachedSymmetricKey | None:
    remote, algorithm = packet.user.source_queue_manager, packet.properties.encryption_algorithm
    blob = bytes(security.encryption_key)
    return receiver.cache.find(remote, provider, algorithm, blob)  # QB-3.1.5.8.3-24


def _hopeless_key(packet: UserMessage, security: SecurityHeader) -> bytes:
    """What decides whether the key of a packet can be read, in a few bytes."""
    properties = packet.properties
    named = f"{properties.privacy_level} {properties.encryption_algorithm} ".encode()
    return hashlib.sha256(named + bytes(security.encryption_key)).digest()


def _without_key(security: SecurityHeader) -> SecurityHeader | None:
    """What is left of a SecurityHeader when the body is in the clear; None if nothing is."""
    # AU and AS are notes of receivers: what a sender wrote there means nothing.
    flags = security.flags & ~(ENCRYPTED_BODY | AUTHENTICATED | AUTHENTICATION_SIGNATURE)
    if not security.security_id and not security.signature and not security.sender_cert:
        return None
    info = security.provider_info if security.signature else None
    return replace(security, flags=flags, encryption_key=b"", provider_info=info)
