"""What was promised and what was seen: the book that the checkers keep while a world runs.

A line of the book is a *copy*: one message on its way to one queue, known by the queue manager it
came from and its MessageID. The ledger hears the truth about every turn (its batch is durable, or
never will be), even when the process that asked died before it was told. So nothing in it is a
guess, and what must not happen is noticed in the moment it happens:

- a message is seen that nobody sent, or whose sender's commit is not durable;
- a transactional message is put into its queue twice, or out of order, or read twice;
- a recoverable message is put into its queue twice;
- an express message is put into its queue twice although nobody crashed;
- a body has changed on its way.

What must happen in the end is checked by `checkers`, when the world is quiet.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import QueueType
from falconmq.message import Acknowledge, Journal
from falconmq.simulation.world import SimulationError, World
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.simulation.node import Node

Key = tuple[bytes, int]
"""SourceQueueManager and MessageID."""

FORGETFUL_JUMP: Final = 1500.0  # a clock set forward by more may age the duplicate history


class Kind(Enum):
    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class State(Enum):
    PENDING = "pending"  # asked for, nobody was promised anything
    ACCEPTED = "accepted"  # the sender's commit is durable
    GONE = "gone"  # aborted, refused, or its commit failed


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
    state: State = State.PENDING
    place: int = 0  # in its stream, counted from 1 as transactions commit
    inserted: list[int] = field(default_factory=list)  # lookup identifiers at the destination
    left: list[int] = field(default_factory=list)  # reasons
    consumed: int = 0
    acks: list[int] = field(default_factory=list)  # classes of administration acknowledgements

    @property
    def is_local(self) -> bool:
        return self.sender is self.target

    @property
    def stream(self) -> tuple[str, str]:
        return self.sender.name, self.name

    def __str__(self) -> str:
        return f"#{self.number} ({self.kind.value}, {self.sender.name} to {self.name})"


class Ledger:
    """See the module."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.copies: dict[Key, Copy] = {}
        self.nodes: list[Node] = []
        self._committed: dict[tuple[str, str], int] = defaultdict(int)
        self._inserted: dict[tuple[str, str], Copy] = {}
        self._numbers = 0

    @property
    def is_troubled(self) -> bool:
        """Whether anybody lost the memory that express messages live in."""
        return any(node.crashes or node.restores or node.stops for node in self.nodes)

    def fail(self, problem: str, copy: Copy | None = None) -> SimulationError:
        error = SimulationError(problem if copy is None else f"{copy}: {problem}")
        error.add_note("" if copy is None else f"#{copy.number} ")
        return error

    # Sending

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def asked(self, copy: Copy) -> None:
        """Somebody wants to send a message."""
        before = self.copies.get(copy.key)
        is_known = before is not None and before.state is State.ACCEPTED
        # The number of an express message may die with the memory it lived in.
        if is_known and before is not None and before.kind is not Kind.EXPRESS:
            raise self.fail(f"its MessageID was given before, to {before}", copy)
        self.copies[copy.key] = copy

    def accepted(self, copies: list[Copy]) -> None:
        """The sender's commit is durable: from now on the messages must not get lost."""
        for copy in copies:
            if copy.kind is Kind.TRANSACTIONAL:
                self._committed[copy.stream] += 1
                copy.place = self._committed[copy.stream]
            copy.state = State.ACCEPTED
            self.world.note(copy.sender.name, "sent #%d to %s", copy.number, copy.name)

    def gone(self, copies: list[Copy]) -> None:
        for copy in copies:
            copy.state = State.GONE

    # What the subscribers of a core hear

    def seen(self, node: Node, queue: Queue, position: MessagePosition) -> None:
        """A message is readable, in a turn that may not be durable yet."""
        if not _is_destination(queue):
            return
        packet = position.message.packet
        if packet.properties.message_class != MessageClass.NORMAL:
            return
        copy = self._known(node, packet)
        is_promised = copy.state is State.ACCEPTED or (
            copy.kind is Kind.EXPRESS and copy.state is State.GONE
        )  # a commit that fails takes no express message out of memory
        if not is_promised and copy.sender is not node:
            raise self.fail(f"{node.name} has it, and its sender's commit is not durable", copy)
        if copy.target is not node or queue.path_name.name != copy.queue:
            raise self.fail(f"it came to {queue.path_name} of {node.name}", copy)

    def available(self, node: Node, queue: Queue, position: MessagePosition) -> None:
        """A message is readable, and that is durable (or an express message, and that is so)."""
        if not _is_destination(queue):
            return
        packet = position.message.packet
        if packet.properties.message_class != MessageClass.NORMAL:
            self._acknowledged(node, position)
            return
        copy = self._known(node, packet)
        if position.lookup_id in copy.inserted:
            return  # a reader gave it back
        copy.inserted.append(position.lookup_id)
        self.world.note(node.name, "has #%d in %s", copy.number, copy.queue)
        if len(copy.inserted) > 1 and not self._may_double(node, copy):
            raise self.fail(f"{node.name} put it into its queue a second time", copy)
        if copy.kind is Kind.TRANSACTIONAL:
            self._check_order(copy)

    def _may_double(self, node: Node, copy: Copy) -> bool:
        """The documented limits: memory that was lost, a history that a clock has aged."""
        if copy.kind is Kind.EXPRESS:
            return self.is_troubled
        return copy.kind is Kind.RECOVERABLE and node.clock.jumped_forward > FORGETFUL_JUMP

    def _check_order(self, copy: Copy) -> None:
        """Readers may commit in any order, so it is the order in the queue that counts."""
        before = self._inserted.get(copy.stream)
        if before is not None and before.place >= copy.place:
            raise self.fail(f"it was put into its queue after {before}: out of order", copy)
        self._inserted[copy.stream] = copy

    def _acknowledged(self, node: Node, position: MessagePosition) -> None:
        properties = position.message.packet.properties
        correlation = bytes(properties.correlation_id)
        copy = self.copies.get((correlation[:16], int.from_bytes(correlation[16:], "little")))
        if copy is None:
            raise self.fail(f"{node.name} got an acknowledgement for a message nobody sent")
        if position.lookup_id not in node.acknowledgements_seen:
            node.acknowledgements_seen.add(position.lookup_id)
            copy.acks.append(properties.message_class)
            text = "has acknowledgement %#06x of #%d"
            self.world.note(node.name, text, properties.message_class, copy.number)

    def deleted(self, node: Node, queue: Queue, position: MessagePosition, reason: int) -> None:
        """A message left a queue for good."""
        packet = position.message.packet
        if not _is_destination(queue) or packet.properties.message_class != MessageClass.NORMAL:
            return
        self.available(node, queue, position)  # its time may have been over when it came
        copy = self._known(node, packet)
        copy.left.append(reason)
        self.world.note(node.name, "lost #%d from its queue for %#06x", copy.number, reason)
        if len(copy.left) > len(copy.inserted) and not self._may_double(node, copy):
            raise self.fail(f"it left the queue of {node.name} a second time", copy)

    # Receiving

    def consumed(self, node: Node, packet: UserMessage) -> None:
        """An application has a message, and that is durable."""
        if packet.properties.message_class != MessageClass.NORMAL:
            return
        copy = self._known(node, packet)
        copy.consumed += 1
        self.world.note(node.name, "consumed #%d", copy.number)
        if bytes(packet.properties.message_body) != copy.body:
            raise self.fail("its body is not the one that was sent", copy)
        if copy.consumed > len(copy.inserted) and not self._may_double(node, copy):
            raise self.fail(f"it was received {copy.consumed} times", copy)

    def _known(self, node: Node, packet: UserMessage) -> Copy:
        copy = self.copies.get((packet.user.source_queue_manager, packet.user.message_id))
        if copy is None:
            raise self.fail(f"{node.name} has message {packet.user.message_id} that nobody sent")
        return copy


def _is_destination(queue: Queue) -> bool:
    return not isinstance(queue, OutgoingQueue) and queue.queue_type is not QueueType.SYSTEM
