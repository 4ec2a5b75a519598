"""What a queue manager adds to a message to say who sent it: the sender's SID and a signature.

How to think about it. Both are added once, when a message goes into its queue: all that a signature
covers is final then. The SID is that of whoever sends, if the core knows it. The signature is made
with a key of the data directory, and a key belongs to a user: a caller signs with its own. Whoever
owns the process may use them all, and so may those who administer a service
(`signing_for_others`).

A queue may demand signed messages, or private ones. Messages from other computers are looked at
when they come; those that are sent here, here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.access import sender_of
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueuePrivacy
from falconmq.message import Message, SenderIdType
from falconmq.names import DirectFormatName, PrivateFormatName, SingleFormatName
from falconmq.names.syntax import fold
from falconmq.security import signatures
from falconmq.security.certificate_store import Registered
from falconmq.security.problems import CertificateError, SecurityError, SignatureError
from falconmq.security.signature_input import SignatureVersion
from falconmq.security.signing_keys import SigningKeys
from falconmq.wire.security_header import SENDER_ID_SID, SENDER_ID_TYPE, SecurityHeader
from falconmq.wire.sid import Sid
from falconmq.wire.user_header import SECURITY_HEADER
from falconmq.wire.user_message import UserMessage

_for_others: ContextVar[bool] = ContextVar("falconmq signing for others", default=True)


@contextmanager
def signing_for_others(is_allowed: bool) -> Iterator[None]:
    """Whether messages may be signed for users that the caller is not."""
    token = _for_others.set(is_allowed)
    try:
        yield
    finally:
        _for_others.reset(token)


def signed(core: QueueManagerCore, message: Message, packet: UserMessage) -> UserMessage:
    """The packet, which was just built, with what its sender wants said (MQQB 3.1.7.1.4)."""
    if message.authentication_level and message.wants_signature:  # QB-3.1.7.1.4-01
        return _with_signature(core, message, packet)
    sender = sender_of(core)
    if sender is None or message.is_signed:
        return packet
    if message.sender_id:
        if _for_others.get():
            return packet
    elif message.sender_id_type != SenderIdType.SID:
        return packet  # it is not to say who sent it: DM-3.1.1.12-102
    _add_sender(packet, sender)
    return packet


def name_sender(core: QueueManagerCore, message: StoredMessage) -> None:
    """Say who sends a packet that came as it is, unless it says so already and may."""
    sender = sender_of(core)
    if sender is None:
        return
    packet = message.packet
    if signatures.is_signed(packet):
        return
    if packet.security is not None and packet.security.security_id and _for_others.get():
        return
    _add_sender(packet, sender)
    message.data = bytearray(packet.encode())


def _add_sender(packet: UserMessage, sender: Sid) -> None:
    """Write the SID of whoever sends it into a packet, over what it claimed before."""
    security = packet.security
    if security is None:
        packet.security = SecurityHeader(SENDER_ID_SID, sender.encode())  # DM-3.1.1.12-99
        packet.user.flags |= SECURITY_HEADER
        return
    security.flags = security.flags & ~SENDER_ID_TYPE | SENDER_ID_SID
    security.security_id = sender.encode()


def meet_demands(
    core: QueueManagerCore, queue: Queue, message: StoredMessage, signed_as: int = 0
) -> None:
    """Refuse what a queue of ours does not take; `signed_as` if the message was just signed here.

    A private message stays in the clear here, where nothing travels. What counts is its wish: it
    would have been encrypted.
    """
    if isinstance(queue, OutgoingQueue):
        return
    demands = (queue.parent or queue).properties
    if signed_as:  # several destinations always have the third signature
        several = message.packet.multi_queue_format is not None
        message.authentication_level = SignatureVersion.MSMQ_3_0 if several else signed_as
    if demands.authentication and not message.authentication_level:
        message.authentication_level = _verified(core, queue, message.packet)
    if demands.privacy_level is QueuePrivacy.OPTIONAL:  # DM-3.1.1.2-15; packets stay undecoded
        return
    is_private = bool(message.packet.properties.privacy_level)
    if demands.privacy_level is QueuePrivacy.BODY and not is_private:  # DM-3.1.1.2-16
        raise QueueError(
            f"{queue.path_name} takes only messages that are encrypted on their way",
            status=MqStatus.PROPERTIES_CONFLICT,
            hint="send it with: falconmq send --encrypt advanced",
        )
    if demands.privacy_level is QueuePrivacy.NONE and is_private:  # DM-3.1.1.2-14
        raise QueueError(
            f"{queue.path_name} takes no messages that are encrypted on their way",
            status=MqStatus.PROPERTIES_CONFLICT,
            hint="send it without --encrypt, with privacy_level NONE",
        )


def check_privacy(core: QueueManagerCore, message: Message, name: SingleFormatName) -> None:
    """Refuse at once what could only be given up when it is to leave (QB-3.1.7.1.5-02)."""
    if core.settings.encrypt_direct or message.symmetric_key:
        return
    if isinstance(name, DirectFormatName):
        raise QueueError(
            f"a message to {name} cannot be encrypted: "
            "a direct name does not say for which queue manager",
            status=MqStatus.PUBLIC_KEY_NOT_FOUND,
            hint="send to a private or public format name, or set encrypt_direct in [security]",
        )


def _verified(core: QueueManagerCore, queue: Queue, packet: UserMessage) -> int:
    """The kind of a signature that came with a message, of a user whose certificate is known."""
    try:
        version = signatures.verify(packet)
        _check_registered(core, packet)
        return int(version)
    except SecurityError as error:
        raise QueueError(
            f"{queue.path_name} takes only signed messages: {error}",
            status=MqStatus.MESSAGE_NOT_AUTHENTICATED,
            hint="send it with: falconmq send --sign",
        ) from error


def _check_registered(core: QueueManagerCore, packet: UserMessage) -> None:
    """Anybody can make a certificate: it counts if it is registered for whom the message names."""
    security, keys = packet.security, core.signing_keys
    assert security is not None
    owner, certificate = bytes(security.security_id), bytes(security.sender_cert)
    if keys is None or not keys.is_registered(owner, certificate):
        raise SignatureError("its certificate is not registered for the sender that it names")


# Signing


def _with_signature(core: QueueManagerCore, message: Message, packet: UserMessage) -> UserMessage:
    keys = core.signing_keys
    if keys is None:
        raise CertificateError(
            "this queue manager keeps no certificates to sign with",
            status=MqStatus.NO_INTERNAL_USER_CERT,
            hint="certificates are in a data directory: falconmq certificate create SID",
        )
    chosen = _chosen(core, keys, message.sender_certificate)
    _check_dates(chosen, core.clock.time())
    assert chosen.pair is not None
    made = signatures.sign(
        packet,
        chosen.pair,
        chosen.certificate.data,
        chosen.owner,
        version=SignatureVersion(message.authentication_level),  # QB-3.1.7.1.4-04
        hash_algorithm=message.hash_algorithm,
        allow_weak=_allows_weak(core, message.destination),
    )
    made.user.flags |= SECURITY_HEADER
    return made


def _allows_weak(core: QueueManagerCore, destination: SingleFormatName | None) -> bool:
    """Whether an administrator lets the computer that this is for have weak signatures."""
    match destination:
        case DirectFormatName():
            name = destination.address
        case PrivateFormatName():
            name = str(destination.computer)
        case _:
            return False
    return fold(name) in core.settings.weak_algorithms


def _chosen(core: QueueManagerCore, keys: SigningKeys, shown: bytes) -> Registered:
    """The certificate that is meant, if the caller may sign with it."""
    sender, may_use_all = sender_of(core), _for_others.get()
    if shown:
        found = keys.with_certificate(shown)
        if found is None:
            raise CertificateError(
                "the key of this certificate is not here",
                hint="falconmq certificate list shows which can sign; a key comes with: "
                "falconmq certificate register USER FILE --key KEYFILE",
            )
        if found.owner != sender and not may_use_all:
            raise _not_yours(found.owner)
        return found
    if sender is not None:
        return _own(keys, sender)
    if not may_use_all:
        raise CertificateError(
            "there is nobody to sign for: the caller is no principal",
            status=MqStatus.ACCESS_DENIED,
            hint="let [[principals]] of the configuration say whose token or certificate it is",
        )
    return _only(keys)


def _own(keys: SigningKeys, sender: Sid) -> Registered:
    found = keys.of(sender)
    if found is None:
        raise CertificateError(
            f"{sender} has no certificate to sign with",
            status=MqStatus.NO_INTERNAL_USER_CERT,
            hint=f"make one: falconmq certificate create {sender}",
        )
    return found


def _only(keys: SigningKeys) -> Registered:
    """The owner of the process is nobody in particular: one key is clear, several are not."""
    found = keys.all()
    if len(found) == 1:
        return found[0]
    if found:
        raise CertificateError(
            f"there are {len(found)} certificates to sign with",
            status=MqStatus.CERTIFICATE_NOT_PROVIDED,
            hint="say which: falconmq send --certificate, or Message(sender_certificate=...)",
        )
    raise CertificateError(
        "there is no certificate to sign with",
        status=MqStatus.NO_INTERNAL_USER_CERT,
        hint="make one: falconmq certificate create SID",
    )


def _not_yours(owner: Sid) -> CertificateError:
    return CertificateError(
        f"the caller may not sign for {owner}",
        status=MqStatus.ACCESS_DENIED,
        hint="sign with your own certificate: leave the name out",
    )


def _check_dates(chosen: Registered, now: float) -> None:
    certificate = chosen.certificate
    if not certificate.not_before.timestamp() <= now < certificate.not_after.timestamp():
        raise CertificateError(
            f"the certificate of {chosen.owner} is good from {certificate.not_before:%Y-%m-%d} "
            f"to {certificate.not_after:%Y-%m-%d}, not now",
            hint=f"falconmq certificate remove {chosen.identifier}, then make a new one",
        )
