"""What the carrier remembers for people: when each server was last heard, and who owes an answer.

The protocol does not need it: a message that is lost is asked for again. Whoever looks for a change
that has not arrived does. It begins anew with each start.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from falconmq.clock import Clock
from falconmq.directory.replication.effects import Send
from falconmq.wire.replication_messages import (
    AlreadyPurgedMessage,
    ReplicationMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for changes that has no answer yet."""

    machine: str
    since: float  # seconds since 1970
    times: int = 1


class Notes:
    """Written in the turns of the queue manager, and read from any thread."""

    def __init__(self, clock: Clock) -> None:
        self.heard: dict[UUID, float] = {}  # when a queue manager last said something, since 1970
        self.asked: dict[UUID, Asked] = {}  # by partition
        self.since = clock.time()
        self._clock = clock

    def sent(self, send: Send) -> None:
        """A request that is repeated waits since it was first made."""
        if isinstance(send.message, SyncRequestMessage):
            partition = UUID(bytes_le=send.message.partition_id)
            known = self.asked.get(partition)
            if known is None or known.machine.lower() != send.machine.lower():
                self.asked[partition] = Asked(send.machine, self._clock.time())
            else:
                self.asked[partition] = Asked(known.machine, known.since, known.times + 1)

    def received(self, message: ReplicationMessage, sender: UUID | None) -> None:
        """Whoever is not proven to have sent it was not heard; an answer is one all the same."""
        if sender is not None:
            self.heard[sender] = self._clock.time()
        if isinstance(message, SyncReplyMessage | AlreadyPurgedMessage):
            self.asked.pop(UUID(bytes_le=message.partition_id), None)
