"""What a message of the replication queue is, or why it is dropped (MQDSRP 3.1.5.1, guide 8).

Nothing is changed and nobody is asked here. Two kinds are worth anything: a replication message
that another queue manager has signed, and the negative acknowledgement of one of our own, which is
unsigned and brings back the body that we sent. Everything else is dropped, and counted by its
reason: nothing in the protocol answers a bad message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from falconmq.errors import WireError
from falconmq.manager.record import StoredMessage
from falconmq.names import SingleFormatName
from falconmq.security.manager_signatures import signing_manager, verify_manager
from falconmq.security.problems import SecurityError
from falconmq.security.rsa import RsaPublicKey
from falconmq.serialization import from_user_message
from falconmq.wire.base_replication_header import BSC_ACK, SIZE, VERSION
from falconmq.wire.message_class import MessageClass
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.replication_messages import ReplicationMessage, decode_replication_message

_NACKS: Final = range(
    MessageClass.NACK_BAD_DST_Q, MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER + 1
)  # RP-3.1.5.1-12
_OPERATION: Final = SIZE - 1  # where it stands in the body


class Dropped(Enum):
    """Why a message was dropped; the value names its counter."""

    EMPTY = "empty body"
    UNKNOWN_VERSION = "unknown version"
    UNKNOWN_OPERATION = "unknown operation"
    UNKNOWN_CLASS = "neither a message nor a nack"
    NOT_FROM_MANAGER = "not from a queue manager"
    NOT_AUTHENTICATED = "not authenticated"
    SHORT_KEY = "signed with a key that is too short"
    MALFORMED = "malformed"
    NOT_OUR_MESSAGE = "nack of a message that we did not send"
    NACK = "nack that changes nothing"
    RESENT_TOO_OFTEN = "signature refused again and again"


@dataclass(frozen=True, slots=True)
class Refused:
    """A message that is dropped, with what people may want to know about it."""

    reason: Dropped
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Received:
    """A message of another directory server. `sender`: who signed it; None: nobody proved it."""

    message: ReplicationMessage
    sender: UUID | None


@dataclass(frozen=True, slots=True)
class Nacked:
    """One of our own messages that did not get where it should."""

    body: bytes
    message: ReplicationMessage
    message_class: int
    about: bytes  # the id of the message
    destination: SingleFormatName | None  # where it was sent to, A-30


SigningKeysOf = Callable[[UUID], PublicKeys | None]
"""What a queue manager signs with; None if nobody has told us."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Knows whose word counts.

    MD5 has to be taken, for the protocol has nothing else, and that lets the transport take the
    keys of 512 bits too which every queue manager publishes for old peers. Such a key can be
    broken; with `signing_keys_of` a signature made with it does not count here.
    """

    requires_signature: bool = True
    signing_keys_of: SigningKeysOf | None = None

    def judge(self, stored: StoredMessage) -> Received | Nacked | Refused:
        """What has been dequeued."""
        body = bytes(stored.packet.properties.message_body)
        message_class = stored.packet.properties.message_class
        if not body:  # RP-3.1.5.1-01
            return Refused(Dropped.EMPTY)
        if body[0] != VERSION:  # RP-3.1.5.1-02
            return Refused(Dropped.UNKNOWN_VERSION, str(body[0]))
        is_normal = message_class == MessageClass.NORMAL
        if not is_normal and message_class not in _NACKS:  # RP-3.1.5.1-16
            return Refused(Dropped.UNKNOWN_CLASS, f"{message_class:#06x}")
        if is_normal and self.requires_signature:  # before more of it is read: A-33
            refused = self._check_sender(stored)
            if refused is not None:
                return refused
        message = _decoded(body)
        if isinstance(message, Refused):
            return message
        if is_normal:
            sender = signing_manager(stored.packet) if stored.authentication_level else None
            return Received(message, sender)
        nack = from_user_message(stored.packet)
        about = bytes(nack.correlation_id)
        return Nacked(body, message, message_class, about, nack.response_queue)

    def _check_sender(self, stored: StoredMessage) -> Refused | None:
        """Replication carries data: only a queue manager may send it, and only signed (A-33)."""
        manager = signing_manager(stored.packet)
        if manager is None:
            return Refused(Dropped.NOT_FROM_MANAGER)
        if not stored.authentication_level:  # what our own check found, never the wire's word
            return Refused(Dropped.NOT_AUTHENTICATED)
        if self.signing_keys_of is not None:
            try:
                published = self.signing_keys_of(manager) or PublicKeys([])
                verify_manager(stored.packet, _long_enough(published), allow_weak=True)
            except SecurityError as error:
                return Refused(Dropped.SHORT_KEY, str(error))
        return None


def _decoded(body: bytes) -> ReplicationMessage | Refused:
    if len(body) > _OPERATION and body[_OPERATION] > BSC_ACK:  # RP-3.1.5.1-11, RP-3.1.5.1-15
        return Refused(Dropped.UNKNOWN_OPERATION, str(body[_OPERATION]))
    try:
        return decode_replication_message(body)
    except WireError as error:
        return Refused(Dropped.MALFORMED, str(error))


def _long_enough(published: PublicKeys) -> PublicKeys:
    blobs = [(each, each.public_key) for each in published.keys]
    return PublicKeys(
        [
            each
            for each, blob in blobs
            if not RsaPublicKey(blob.modulus, blob.public_exponent).is_legacy
        ]
    )
