"""Protected messages between queue managers of a test: keys, certificates, who has registered what.

The registry is a dictionary, the keys are those of `tests.security.known`: nothing is made here
that takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from uuid import UUID

from falconmq.manager.access import Principal
from falconmq.manager.model import Queue
from falconmq.manager.record import StoredMessage
from falconmq.names import parse_format_name
from falconmq.security.body_encryption import Sender, encrypt_body
from falconmq.security.caches import SendSymmetricKeyCache
from falconmq.security.certificates import registered_as, sign_certs
from falconmq.security.keys import ManagerKeys, public_keys
from falconmq.security.problems import RegistryAwayError
from falconmq.security.providers import ADVANCED, BASE, ENHANCED, Provider
from falconmq.security.rsa import RsaKeyPair, RsaPublicKey
from falconmq.security.session_keys import EncryptionSettings
from falconmq.security.signature_input import SignatureVersion
from falconmq.security.signatures import sign
from falconmq.transport.protection import Protection, ProtectionSettings
from falconmq.wire.message_properties_header import (
    ENCRYPTION_AES256,
    ENCRYPTION_RC4,
    HASH_SHA512,
    NEGATIVE_ARRIVAL,
    PRIVACY_ADVANCED,
    MessagePropertiesHeader,
)
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.sid import Sid
from falconmq.wire.user_message import UserMessage
from falconmq.wire.user_sign_certs import UserSignCert
from tests.security import known
from tests.transport.estate import Node, bodies
from tests.transport.raw_peer import ACKS, RawPeer, routed_estate

BODY = b"for your eyes only"
SEQUENCE = 7 << 32 | 1
ASKING: dict[str, Any] = {"acknowledgements": NEGATIVE_ARRIVAL, "admin": ACKS}
Change = Callable[[UserMessage], UserMessage]
ANNA = Sid.parse("S-1-5-21-7-8-9-1001")
PAIRS: Mapping[Provider, RsaKeyPair] = {
    BASE: known.PAIR_512,
    ENHANCED: known.PAIR_1024,
    ADVANCED: known.PAIR_1024,
}
PUBLIC = {provider: pair.public for provider, pair in PAIRS.items()}
KEYS = ManagerKeys(PAIRS, PAIRS)


@dataclass
class Registered:
    """A registry that a test writes into; `asked` counts how often users were looked up."""

    keys: dict[UUID, Mapping[Provider, RsaPublicKey]] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)
    users: dict[Sid, list[bytes]] = field(default_factory=dict)
    principals: dict[Sid, Principal] = field(default_factory=dict)
    asked: int = 0
    away: RegistryAwayError | None = None  # nobody can say anything now
    renewed: PublicKeys | None = None  # what queue managers sign with since lately
    version: int = 0

    def keys_of(self, queue_manager: UUID) -> Mapping[Provider, RsaPublicKey] | None:
        if self.away is not None:
            raise self.away
        return self.keys.get(queue_manager)

    def signing_keys_of(self, queue_manager: UUID, *, again: bool = False) -> PublicKeys | None:
        if self.away is not None:
            raise self.away
        if again:
            return self.renewed
        return public_keys(PUBLIC) if queue_manager in self.keys else None

    def name_of(self, queue_manager: UUID) -> str:
        return self.names.get(queue_manager, "")

    def find_certificate(self, user: Sid, certificate: bytes) -> UserSignCert | None:
        self.asked += 1
        if self.away is not None:
            raise self.away
        registered = sign_certs((bytes(16), data) for data in self.users.get(user, ()))
        return registered_as(certificate, registered)

    def principal_of(self, user: Sid) -> Principal:
        return self.principals.get(user) or Principal(str(user), user)

    def peers_version(self) -> object:
        return self.version

    def users_version(self) -> object:
        return self.version


def protect(node: Node, **settings: Any) -> Registered:
    """Give a queue manager its private keys; what it knows of others is in the registry."""
    registry = Registered()
    chosen = ProtectionSettings(**settings)
    protection = Protection(registry, node.core.clock.time, chosen)
    protection.use_keys(KEYS)
    node.transport.protection = protection
    return registry


def protection_of(node: Node) -> Protection:
    assert node.transport.protection is not None
    return node.transport.protection


def encrypted(
    packet: UserMessage,
    level: int = PRIVACY_ADVANCED,
    *,
    seed: int = 5,
    keys: Mapping[Provider, RsaPublicKey] | None = None,
    **settings: Any,
) -> UserMessage:
    """A packet as a peer encrypts it, with a key of its own for each seed."""
    sender = Sender(
        SendSymmetricKeyCache(lambda: 0.0), EncryptionSettings(**settings), Random(seed)
    )
    if keys is None:
        keys = {p: key for p, key in PUBLIC.items() if p.privacy_level == level}
    properties = replace(packet.properties, privacy_level=level, encryption_algorithm=0)
    packet = replace(packet, properties=properties)
    return encrypt_body(packet, sender, bytes(16), keys, allow_weak=True)


def signed(
    packet: UserMessage,
    user: Sid = ANNA,
    *,
    version: SignatureVersion = SignatureVersion.MSMQ_2_0,
    hash_algorithm: int = HASH_SHA512,
) -> UserMessage:
    """A packet as the owner of `known.CERTIFICATE` signs it."""
    return sign(
        packet,
        known.PAIR_1024,
        known.CERTIFICATE,
        user,
        version=version,
        hash_algorithm=hash_algorithm,
        allow_weak=True,
    )


def wishing(
    node: Node, destination: str, body: bytes, level: int = PRIVACY_ADVANCED, **properties: Any
) -> StoredMessage:
    """A message of an application that asks for encryption, as it waits to be sent."""
    message = node.build(destination, body, **properties)
    old: MessagePropertiesHeader = message.packet.properties
    algorithm = ENCRYPTION_AES256 if level == PRIVACY_ADVANCED else ENCRYPTION_RC4
    wanted = replace(old, privacy_level=level, encryption_algorithm=algorithm)
    stored = StoredMessage.of(replace(message.packet, properties=wanted))
    node.run(node._send, parse_format_name(destination), [stored])
    return stored


@dataclass
class Scene:
    """A queue manager with keys, a queue, and a peer that writes whatever it likes."""

    node: Node
    queue: Queue
    peer: RawPeer
    registry: Registered

    def send(self, change: Change, body: bytes = BODY, **properties: Any) -> None:
        packet = self.peer.message(self.queue, body, **(ASKING | properties))
        self.peer.write(change(packet).encode())

    @property
    def taken(self) -> list[bytes]:
        return bodies(self.queue)


def scene(
    *, insecure: bool = True, settings: dict[str, Any] | None = None, **properties: Any
) -> Scene:
    node = routed_estate().node("B", 2, send_insecure_nacks=insecure)
    registry = protect(node, **(settings or {}))
    registry.users[ANNA] = [known.CERTIFICATE]
    return Scene(node, node.queue("orders", **properties), RawPeer(node).open(), registry)


def plain(packet: UserMessage) -> UserMessage:
    return packet
