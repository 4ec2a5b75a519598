"""The lines of the ledger: what is known of one message on its way to one queue.

Nothing here is a guess. A copy is promised when its sender's commit is durable; it was put into its
queue, left it, or came to an end elsewhere when the batch that says so is durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from falconmq.message import Acknowledge, Journal
from falconmq.names import SingleFormatName
from falconmq.wire.message_class import MessageClass

if TYPE_CHECKING:
    from falconmq.simulation.node import Node

Key = tuple[bytes, int]
"""SourceQueueManager and MessageID."""

RECEIVED: Final = int(MessageClass.ACK_RECEIVE)
OWN_DEAD_LETTERS: Final = ("lost", "lost_orders")  # queues of applications, at each node


class Kind(Enum):
    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class State(Enum):
    PENDING = "pending"  # asked for, nobody was promised anything
    ACCEPTED = "accepted"  # the sender's commit is durable
    GONE = "gone"  # aborted, refused, or its commit failed


class Place(Enum):
    """Where a message ends that does not end in its queue."""

    WAY = "in an outgoing queue"  # of its sender, or of a queue manager that passes it on
    DOOR = "at the door"  # a queue manager refused it


@dataclass(frozen=True, slots=True)
class End:
    """One end of a message on its way. There may be several, if it was sent more than once."""

    node: Node
    place: Place
    reason: int  # a message class; of a queue that was purged NACK_Q_PURGED

    @property
    def message_class(self) -> int:
        """What the sender is told of it."""
        if self.place is Place.WAY and self.reason == MessageClass.NACK_Q_PURGED:
            return MessageClass.NACK_DELETED  # it never reached its queue
        return self.reason


@dataclass(slots=True, eq=False)
class Copy:
    """One message to one queue."""

    key: Key
    number: int  # counts all copies of a run
    kind: Kind
    sender: Node
    target: Node
    queue: str  # the name of the queue there
    name: str  # the format name it was sent to
    body: bytes
    journal: Journal
    acknowledgements: Acknowledge
    may_expire: bool  # its time to reach the queue or to be received is short
    rejection: int  # the class of the nack that must come of it; 0: none
    destinations: tuple[SingleFormatName, ...] = ()  # all of them, if it goes to several queues
    own_dead_letter_queue: str = ""  # of the application, if it is one that takes the message
    state: State = State.PENDING
    place: int = 0  # in its stream, counted from 1 as transactions commit
    inserted: list[int] = field(default_factory=list)  # lookup identifiers at the destination
    left: list[int] = field(default_factory=list)  # reasons
    ends: list[End] = field(default_factory=list)  # elsewhere than in its queue
    is_dropped: bool = False  # its queue was deleted before the transaction that sends it ended
    consumed: int = 0
    acks: list[int] = field(default_factory=list)  # classes of administration acknowledgements

    @property
    def is_local(self) -> bool:
        return self.sender is self.target

    @property
    def stream(self) -> tuple[str, str]:
        return self.sender.name, self.name

    @property
    def ended_at_sender(self) -> bool:
        """Whether its sender gave it up, before anybody said that it had arrived."""
        return any(end.node is self.sender and end.place is Place.WAY for end in self.ends)

    @property
    def was_refused(self) -> bool:
        return any(end.place is Place.DOOR for end in self.ends)

    def __str__(self) -> str:
        return f"#{self.number} ({self.kind.value}, {self.sender.name} to {self.name})"
