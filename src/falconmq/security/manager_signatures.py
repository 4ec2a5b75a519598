"""Messages that a queue manager signs in its own name: notifications, replication (MQCN A4, A18).

A user shows a certificate; a queue manager shows none. The SecurityHeader says "a queue manager"
(ST 2) and its GUID, and the receiver looks in the directory for the keys that queue manager has
published to sign with (PublicSigningKeyList). Any of them will do: the packet does not say which.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

from falconmq.security import rsa
from falconmq.security.hashes import hash_of
from falconmq.security.problems import SignatureError
from falconmq.security.providers import BY_NAME
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.security.signature_input import SignatureVersion, signature_input
from falconmq.wire.message_properties_header import HASH_SHA512
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.security_header import (
    DEFAULT_PROVIDER,
    SECURITY_DATA,
    SENDER_ID_QUEUE_MANAGER,
    SENDER_ID_TYPE,
    SecurityHeader,
)
from falconmq.wire.user_message import UserMessage

_VERSIONS: Final = (SignatureVersion.MSMQ_2_0, SignatureVersion.MSMQ_1_0)


def sign_as_manager(
    packet: UserMessage,
    pair: RsaKeyPair,
    manager: UUID,
    *,
    version: SignatureVersion = SignatureVersion.MSMQ_2_0,
    hash_algorithm: int = HASH_SHA512,
    allow_weak: bool = False,
) -> UserMessage:
    """The packet with the signature of a queue manager, made with one of its published keys."""
    used = hash_of(hash_algorithm, allow_weak=allow_weak)
    properties = replace(packet.properties, hash_algorithm=hash_algorithm)
    packet = replace(packet, properties=properties)
    old = SecurityHeader(0) if packet.security is None else packet.security
    security = replace(
        old,
        flags=old.flags & ~SENDER_ID_TYPE
        | SENDER_ID_QUEUE_MANAGER
        | DEFAULT_PROVIDER
        | SECURITY_DATA,
        security_id=manager.bytes_le,  # MQ-2.2.20.6-07
        sender_cert=b"",
        signature=rsa.sign(pair, used, signature_input(version, packet))[::-1],
        provider_info=None,
    )
    return replace(packet, security=security)


def signing_manager(packet: UserMessage) -> UUID | None:
    """The queue manager in whose name a packet is signed; None if it is in nobody's or a user's."""
    security = packet.security
    if security is None or security.flags & SENDER_ID_TYPE != SENDER_ID_QUEUE_MANAGER:
        return None
    identifier = bytes(security.security_id)
    return UUID(bytes_le=identifier) if len(identifier) == 16 else None


def verify_manager(
    packet: UserMessage, published: PublicKeys, *, allow_weak: bool = False
) -> SignatureVersion:
    """Which list the signature of a decrypted packet is of, made with one of these keys.

    SignatureError or WeakAlgorithmError if none of them fits; keys that are too short do not count
    unless `allow_weak` says so.
    """
    security = packet.security
    if security is None or not security.signature:
        raise SignatureError("the message is not signed")
    used = hash_of(packet.properties.hash_algorithm, allow_weak=allow_weak)
    signature = bytes(security.signature)[::-1]
    keys = [key for key in _keys(published) if allow_weak or not key.is_legacy]
    for version in _VERSIONS:
        data = signature_input(version, packet)
        if any(rsa.verify(key, used, data, signature) for key in keys):
            return version
    raise SignatureError("no published key of the queue manager fits the signature")


def _keys(published: PublicKeys) -> list[RsaPublicKey]:
    """Those of providers that we know, and that can be keys at all; there may be several of one."""
    known = [each.public_key for each in published.keys if each.provider_name in BY_NAME]
    keys = [RsaPublicKey(blob.modulus, blob.public_exponent) for blob in known]
    return [key for key in keys if key.is_valid]
