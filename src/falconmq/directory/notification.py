r"""Change notifications: "the directory changed, look again" (MQCN).

How to think about it. A public queue exists twice, in the directory and in the queue manager that
owns it. Whoever changes the directory's copy tells the owner, with an ordinary message to queue 3
of the owner, notify_queue$. A queue manager tells only which object it was (version 2); a directory
service says what is new as well, and signs it (version 1).

    notification_sending     who is told what: the client's side
    notification_building    the messages
    notification_judging     what a message asks for, or why it is refused
    notification_throttle    when it is done: together with others, once a minute at most
    notification_handling    what has to be asked for first, and what becomes of it
    notification_applying    what changes in this queue manager
    notification_receiving   the server's side, which holds these together

Nothing here knows a socket: messages come from a queue and go into one. This module has the names
that all of them share.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from falconmq.manager.creation import NOTIFY_QUEUE_NUMBER
from falconmq.names import PrivateFormatName
from falconmq.names.syntax import MsmqVersion
from falconmq.security.signature_input import SignatureVersion
from falconmq.wire.message_properties_header import HASH_MD5, HASH_SHA1, HASH_SHA512

TIME_TO_REACH_QUEUE_SECONDS: Final = 300  # CN-3.3.5.3-02


def notify_queue(queue_manager: UUID) -> PrivateFormatName:
    """NOTIFY_QUEUE_PRIVATE: where a queue manager hears of changes (CN-1.9-01)."""
    return PrivateFormatName(queue_manager, NOTIFY_QUEUE_NUMBER)


def default_hash(version: MsmqVersion) -> int:
    """The hash that a version of MSMQ signs with (CN-3.3.5.3-05, MQCN A6)."""
    if version <= MsmqVersion.MSMQ_2_0:
        return HASH_MD5
    return HASH_SHA1 if version <= MsmqVersion.MSMQ_4_0 else HASH_SHA512


def signature_version(version: MsmqVersion) -> SignatureVersion:
    """The kind of signature that a version of MSMQ makes (CN-3.3.5.3-06)."""
    is_first = version is MsmqVersion.MSMQ_1_0
    return SignatureVersion.MSMQ_1_0 if is_first else SignatureVersion.MSMQ_2_0


@dataclass(frozen=True, slots=True)
class ReceivingSettings:
    """How notifications are received; the defaults are those of Windows since XP."""

    is_immediate: bool = False  # as NT 4.0 and 2000 did: no throttle at all
    collect_seconds: float = 60  # after a long quiet
    quiet_seconds: float = 840  # what is a long quiet
    longest_seconds: float = 900  # nothing waits longer since the last run
    flood: int = 100  # so many messages are not read one by one any more
    versions: frozenset[int] = frozenset({1, 2})  # NT 4.0 and 2000: only 1
    is_strict: bool = True  # version 1 from directory servers only
    checks_deletions: bool = True  # ask the directory before believing that a queue is gone


class Refusal(Enum):
    """Why a notification was not obeyed; the value names its counter."""

    TOO_SHORT = "too short"
    UNKNOWN_VERSION = "unknown version"
    MALFORMED = "malformed"
    NOT_FROM_MANAGER = "not from a queue manager"
    NOT_AUTHENTICATED = "not authenticated"
    NOT_FROM_DIRECTORY_SERVER = "not from a directory server"
    WRONG_TYPE = "neither queue nor queue manager"
    NOT_OURS = "about another computer"
    NOT_PUBLIC = "not about a public queue"
    BAD_VALUE = "value out of range"
    NOT_HERE = "queue not here"
    NOT_IN_DIRECTORY = "not in the directory"
    STILL_IN_DIRECTORY = "deleted queue still in the directory"
    NAME_TAKEN = "another queue has the name"
    REFUSED_HERE = "refused by the queue manager"


@dataclass(frozen=True, slots=True)
class Refused:
    """A notification, or a part of one, that is not obeyed."""

    reason: Refusal
    detail: str = ""
