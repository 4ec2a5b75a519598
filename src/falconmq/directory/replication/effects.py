"""What the engine wants done: messages to other directory servers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from falconmq.wire.replication_messages import ReplicationMessage


class Profile(Enum):
    """How a message travels (MQDSRP guide 5)."""

    QUIET = "1200 s, priority 3, no acknowledgements"
    WATCHED = "1200 s, priority 3, negative arrival acknowledgements"
    URGENT = "10 s, priority 7, negative arrival acknowledgements"


@dataclass(frozen=True, slots=True)
class Send:
    """A message to the replication queue of a machine."""

    machine: str
    message: ReplicationMessage
    profile: Profile
