"""What was promised and what was seen: the book that the checkers keep while a world runs.

A line of the book is a *copy* (`copies`): one message on its way to one queue, known by the queue
manager it came from and its MessageID. The ledger hears the truth about every turn (its batch is
durable, or never will be), even when the process that asked died before it was told. So nothing in
it is a guess, and what must not happen is noticed in the moment it happens:

- a message is seen that nobody sent, or whose sender's commit is not durable;
- a transactional message is put into its queue twice, or out of order, or read twice;
- a recoverable message is put into its queue twice;
- an express message is put into its queue twice although nobody crashed;
- a message ends on its way, or is refused, without a reason for it;
- a MessageID is given a second time;
- a body has changed on its way, or who else got the message.

What must happen in the end is checked by `checkers`, when the world is quiet.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import QueueType
from falconmq.serialization import from_user_message
from falconmq.simulation.copies import OWN_DEAD_LETTERS, Copy, End, Key, Kind, Place, State
from falconmq.simulation.world import SimulationError, World
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.simulation.node import Node

FORGETFUL_JUMP: Final = 1500.0  # a clock set forward by more may age the duplicate history
SMALL: Final = "small"  # a queue that is soon full
MISSING: Final = "missing"  # a queue that is not there
NOWHERE: Final = "nowhere"  # a queue of a queue manager to which all ways go in a circle


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
        """Somebody wants to send a message; no number is ever given twice, whatever happened."""
        before = self.copies.get(copy.key)
        if before is not None:
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
        """The documented limits: lost memory, a history that a clock has aged."""
        if copy.kind is Kind.EXPRESS:
            return self.is_troubled
        if copy.kind is Kind.TRANSACTIONAL:
            return False
        return node.clock.jumped_forward > FORGETFUL_JUMP

    def _check_order(self, copy: Copy) -> None:
        """Readers may commit in any order, so it is the order in the queue that counts."""
        before = self._inserted.get(copy.stream)
        is_out_of_order = before is not None and before.place >= copy.place
        if is_out_of_order and not self._may_double(copy.target, copy):
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
        if packet.properties.message_class != MessageClass.NORMAL:
            return
        if isinstance(queue, OutgoingQueue):
            self._ended(self._known(node, packet), End(node, Place.WAY, reason))
            return
        if not _is_destination(queue):
            return
        copy = self._known(node, packet)
        self.world.note(node.name, "lost #%d from its queue for %#06x", copy.number, reason)
        is_deletion = reason == MessageClass.NACK_Q_DELETED
        if is_deletion and not position.message.arrival_number:
            copy.is_dropped = True  # nobody could see it yet
            return
        self.available(node, queue, position)  # its time may have been over when it came
        copy.left.append(reason)
        if len(copy.left) > len(copy.inserted) and not self._may_double(node, copy):
            raise self.fail(f"it left the queue of {node.name} a second time", copy)

    def refused(self, node: Node, packet: UserMessage, message_class: int) -> None:
        """A queue manager did not take a message that came."""
        if packet.properties.message_class != MessageClass.NORMAL:
            raise self.fail(f"{node.name} refused an acknowledgement for {message_class:#06x}")
        self._ended(self._known(node, packet), End(node, Place.DOOR, message_class))

    def _ended(self, copy: Copy, end: End) -> None:
        """It came to an end on its way, and there must be a reason for it."""
        reason = end.reason
        self.world.note(end.node.name, "ended #%d %s: %#06x", copy.number, end.place.value, reason)
        copy.ends.append(end)
        if reason not in _possible_reasons(copy, end):
            raise self.fail(f"it ended {end.place.value} of {end.node.name}: {reason:#06x}", copy)
        is_lasting = copy.kind is not Kind.EXPRESS and end.place is Place.DOOR
        if is_lasting and copy.ends.count(end) > 1 and not self._may_refuse_again(copy, end):
            raise self.fail(f"{end.node.name} refused it a second time: {reason:#06x}", copy)

    def _may_refuse_again(self, copy: Copy, end: End) -> bool:
        """Only its destination knows that it came before, and only as long as it has a queue."""
        if end.node is not copy.target or copy.queue == NOWHERE:
            return True
        if copy.kind is Kind.TRANSACTIONAL:
            return copy.queue == MISSING or copy.queue in end.node.deleted_queues
        return end.node.clock.jumped_forward > FORGETFUL_JUMP

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
        self._check_destinations(copy, packet)
        if copy.consumed > len(copy.inserted) and not self._may_double(node, copy):
            raise self.fail(f"it was received {copy.consumed} times", copy)

    def _check_destinations(self, copy: Copy, packet: UserMessage) -> None:
        """Who gets one of several copies is told who else got one."""
        if not copy.destinations and packet.multi_queue_format is None:
            return
        found = from_user_message(packet).destinations
        if found != copy.destinations:
            names = ", ".join(map(str, found))
            raise self.fail(f"it says that it was sent to {names or 'one queue'}", copy)

    def _known(self, node: Node, packet: UserMessage) -> Copy:
        copy = self.copies.get((packet.user.source_queue_manager, packet.user.message_id))
        if copy is None:
            raise self.fail(f"{node.name} has message {packet.user.message_id} that nobody sent")
        return copy


def _is_destination(queue: Queue) -> bool:
    if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
        return False
    return queue.path_name.name not in OWN_DEAD_LETTERS


def _possible_reasons(copy: Copy, end: End) -> set[int]:
    """Why a message may end there."""
    reasons: set[int] = set()
    if copy.may_expire:
        reasons.add(MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    if end.place is Place.WAY:
        if end.node.purged_outgoing_queues:
            reasons.add(MessageClass.NACK_Q_PURGED)
        return reasons
    if copy.queue == NOWHERE:
        reasons.add(MessageClass.NACK_HOP_COUNT_EXCEEDED)
    elif end.node is copy.target:
        reasons.add(copy.rejection)
        if copy.queue == SMALL:
            reasons.add(MessageClass.NACK_Q_EXCEED_QUOTA)
        if copy.queue in end.node.deleted_queues:
            reasons.add(MessageClass.NACK_BAD_DST_Q)
    return reasons
