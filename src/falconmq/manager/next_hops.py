"""What somebody who knows the ways says of them: where a queue is, and who is next (MQQB 3.1.7.4).

The transport asks, a table in the configuration or the directory answers; all three know these two.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from falconmq.names import DirectFormatName, Protocol


@dataclass(frozen=True, slots=True)
class Destination:
    """What Get Destination Info finds: a host for a direct name, else a queue manager."""

    host_name: str
    queue_manager: UUID | None = None  # None: the name is direct, QB-3.1.7.4-02


@dataclass(frozen=True, slots=True)
class NextHopName:
    """A queue manager that takes the message a step further, before its name is resolved."""

    queue_manager: UUID
    host_name: str


def direct_destination(name: DirectFormatName) -> Destination | None:
    """The host that a direct name says itself; nobody is asked (QB-3.1.7.4-02, QB-3.1.7.4-07)."""
    if name.protocol not in (Protocol.TCP, Protocol.OS):
        return None  # HTTP goes another way, IPX and SPX none
    return Destination(name.address)
