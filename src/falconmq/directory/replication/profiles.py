"""How a replication message is sent: how long it lives, how urgent it is, whether nacks are wanted.

Section 5 of the guide. A write waits for its answer, so requests and replies live ten seconds and
go first; everything else is repaired by the next hello, and may take twenty minutes. Whoever has to
do something about a message that did not arrive asks for negative acknowledgements, which come back
to its own replication queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from falconmq.directory.replication.effects import Profile

REPLICATION_SECONDS: Final = 1200
WRITE_SECONDS: Final = 10
HIGHEST_PRIORITY: Final = 7  # the text asks for 8, and three bits end at 7: A-06


@dataclass(frozen=True, slots=True)
class SendProfile:
    """The properties of an MSMQ message that depend on what is replicated with it."""

    timeout_seconds: int  # TimeToReachQueue and TimeToBeReceived, RP-3.1.7.2.1-03
    priority: int
    wants_nacks: bool  # AckNackReachQueue, with our own queue for administration and response


PROFILES: Final[Mapping[Profile, SendProfile]] = MappingProxyType(
    {
        Profile.QUIET: SendProfile(REPLICATION_SECONDS, 3, wants_nacks=False),
        Profile.WATCHED: SendProfile(REPLICATION_SECONDS, 3, wants_nacks=True),
        Profile.URGENT: SendProfile(WRITE_SECONDS, HIGHEST_PRIORITY, wants_nacks=True),
    }
)
RESEND: Final = SendProfile(WRITE_SECONDS, 3, wants_nacks=True)  # RP-3.3.7.9-03
