"""A protected message in: decrypted, verified, its sender known (MQQB 3.1.5.8.3).

The order is the sender's, back to front: it signed the clear text and encrypted then, so the body
is decrypted before the signature is verified (QB-A17). A signature says that the owner of a
certificate signed; whose certificate that is, is looked up. Only who is verified so has rights of
its own: everybody can write a SID into a packet.

While the directory is away, nobody can say whose a certificate is. Such a message is not refused: a
refusal is for good. It has to come again (RegistryAwayError), for as long as `may_wait` says.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.errors import FalconMQError, WireError
from falconmq.manager.access import Principal
from falconmq.manager.model import Queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueuePrivacy
from falconmq.security.body_encryption import decrypt_body
from falconmq.security.caches import CachedUserCert
from falconmq.security.manager_signatures import signing_manager, verify_manager
from falconmq.security.problems import RegistryAwayError, SecurityError, SignatureError
from falconmq.security.signature_input import SignatureVersion
from falconmq.security.signatures import is_signed, verify
from falconmq.wire.message_class import MessageClass
from falconmq.wire.security_header import (
    ENCRYPTED_BODY,
    SENDER_ID_NONE,
    SENDER_ID_QUEUE_MANAGER,
    SENDER_ID_TYPE,
)
from falconmq.wire.sid import EVERYONE, Sid
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.transport.protection import Protection

# Queue managers have no accounts: a verified one has the rights of everybody, QB-3.1.5.8.3-41.
A_QUEUE_MANAGER: Final = Principal("a queue manager", EVERYONE, is_authenticated=False)

_log = logging.getLogger("falconmq.transport")


@dataclass(slots=True)
class Unsealed:
    """A message as its queue keeps it: in the clear, with what was found out about it."""

    message: StoredMessage
    sender: Principal | None = None  # None: nobody is verified


def is_protected(packet: UserMessage) -> bool:
    """Whether there is anything to decrypt or to verify: in most packets there is not."""
    return packet.security is not None and (is_encrypted(packet) or is_signed(packet))


def is_encrypted(packet: UserMessage) -> bool:
    security = packet.security
    return security is not None and bool(security.flags & ENCRYPTED_BODY)


def unseal(
    protection: Protection | None, message: StoredMessage, queue: Queue
) -> Unsealed | MessageClass:
    """The message for its queue; or the class that says why it cannot be taken.

    RegistryAwayError: nobody can say that now, and the message is to come again. Or wait, if that
    is RegistryAskedError.
    """
    packet, privacy = message.packet, queue.properties.privacy_level
    sealed = is_encrypted(packet)
    if sealed and (protection is None or privacy is QueuePrivacy.NONE):  # DM-3.1.1.2-14
        return MessageClass.NACK_BAD_ENCRYPTION
    if not sealed and privacy is QueuePrivacy.BODY:  # QB-A59
        return MessageClass.NACK_BAD_ENCRYPTION
    found = Unsealed(message)
    if protection is not None and is_protected(packet):
        opened = _opened(protection, message, queue)
        if not isinstance(opened, Unsealed):
            return opened
        found = opened
    if queue.properties.authentication and found.sender is None:  # QB-A59
        return MessageClass.NACK_BAD_SIGNATURE
    return found


def _opened(
    protection: Protection, message: StoredMessage, queue: Queue
) -> Unsealed | MessageClass:
    packet = message.packet
    allow_weak = protection.allows_weak(packet.user.source_queue_manager, queue)
    if is_encrypted(packet):
        try:
            clear = replace(
                decrypt_body(packet, protection.receiver, allow_weak=allow_weak), session=None
            )
            message = StoredMessage(clear.encode())
        except (SecurityError, WireError) as error:  # QB-3.1.5.8.3-21 to -23, -32 to -38
            _tell(protection, packet, error)
            return MessageClass.NACK_BAD_ENCRYPTION
        packet = message.packet
    if not is_signed(packet):
        return Unsealed(message)
    try:
        version, sender = _verified(protection, packet, allow_weak=allow_weak)
    except SecurityError as error:  # QB-3.1.5.8.3-07 to -09, -16 to -18
        if isinstance(error, RegistryAwayError) and protection.may_wait(error):
            raise
        _tell(protection, packet, error)
        return MessageClass.NACK_BAD_SIGNATURE
    return Unsealed(replace(message, authentication_level=version), sender)


def _verified(
    protection: Protection, packet: UserMessage, *, allow_weak: bool
) -> tuple[SignatureVersion, Principal | None]:
    """Which signature fits, and who made it; None for a signature in nobody's name."""
    security = packet.security
    assert security is not None
    kind = security.flags & SENDER_ID_TYPE
    if kind == SENDER_ID_QUEUE_MANAGER:
        return _verified_manager(protection, packet, allow_weak=allow_weak), A_QUEUE_MANAGER
    if kind == SENDER_ID_NONE:
        return verify(packet, allow_weak=allow_weak), None
    # Whose certificate it is comes first: that is cheap, and strangers do not keep us busy.
    user = _registered_user(protection, bytes(security.sender_cert), bytes(security.security_id))
    return verify(packet, allow_weak=allow_weak), protection.registry.principal_of(user)


def _registered_user(protection: Protection, certificate: bytes, security_id: bytes) -> Sid:
    """The user that a certificate is registered for (QB-3.1.5.8.3-10 to -15)."""
    protection.look_at_users()
    cache = protection.user_certs
    try:
        user = Sid.decode(security_id)
    except WireError as error:
        raise SignatureError("the sender is no SID") from error
    if user.encode() != security_id:
        raise SignatureError("the sender is no SID alone")
    if cache.find(certificate, security_id) is not None:
        return user
    registered = protection.registry.find_certificate(user, certificate)
    protection.look_at_users()  # asking may be how it is found that something has changed
    if registered is None:
        raise SignatureError(
            f"the certificate is not registered for {user}",
            hint=f"if you trust it: falconmq certificate register {user} FILE",
        )
    cache.add(CachedUserCert(registered, security_id, cache.time()))
    return user


def _verified_manager(
    protection: Protection, packet: UserMessage, *, allow_weak: bool
) -> SignatureVersion:
    """Queue managers have no certificates; they publish the keys that they sign with."""
    manager = signing_manager(packet)
    if manager is None:
        raise SignatureError("the sender is no queue manager")
    registry = protection.registry
    published = registry.signing_keys_of(manager)
    if published is None:
        raise SignatureError(
            f"the keys of queue manager {manager} are not known",
            hint="import its keys: falconmq key import FILE",
        )
    try:
        return verify_manager(packet, published, allow_weak=allow_weak)
    except SignatureError:
        renewed = registry.signing_keys_of(manager, again=True)
        if renewed is None or renewed == published:
            raise
    return verify_manager(packet, renewed, allow_weak=allow_weak)


def _tell(protection: Protection, packet: UserMessage, error: FalconMQError) -> None:
    """Explain a refusal to the administrator here; the sender hears a class at most."""
    source, problem = packet.user.source_queue_manager, str(error)
    if protection.is_news(source, problem):
        _log.warning(
            'message refused source=%s id=%d reason="%s" hint="%s"',
            UUID(bytes_le=source),
            packet.user.message_id,
            problem,
            error.hint,
        )
