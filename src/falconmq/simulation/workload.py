"""What applications do in a world: send, receive, commit, abort, purge; drawn from the seed.

Every node has the same queues. Applications die with their node and go on when it is back; what
they had begun is over then.

    plain           takes messages outside transactions; has its own journal
    orders          transactional
    small           as plain, but soon full
    admin           where acknowledgements go
    lost            where some applications want their dead letters
    lost_orders     the same for transactional ones
    missing         does not exist
    nowhere         at a queue manager that does not exist; the ways to it go in a circle
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from uuid import UUID

from falconmq.embedded.messages import to_stored
from falconmq.errors import MqStatus, QueueError
from falconmq.manager.distributing import address_copies, enqueue_message_to_open_queue
from falconmq.manager.model import (
    OpenQueueDescriptor,
    Queue,
    QueueProperties,
    ReadResult,
    Transaction,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import (
    close_queue,
    create_queue,
    open_queue,
)
from falconmq.manager.reading import dequeue_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType
from falconmq.message import Acknowledge, Delivery, Journal, Message, MessageTransaction
from falconmq.names import (
    FormatName,
    MultipleElementFormatName,
    PathName,
    SingleFormatName,
    parse_format_name,
)
from falconmq.simulation.applications import (
    CoordinatedTransaction,
    ReceivingTransaction,
    SendingTransaction,
)
from falconmq.simulation.copies import OWN_DEAD_LETTERS, Copy, Kind
from falconmq.simulation.ledger import MISSING, NOWHERE, SMALL, Ledger
from falconmq.simulation.life import Life, Reader
from falconmq.simulation.node import Node
from falconmq.simulation.world import World
from falconmq.wire.message_class import MessageClass

QUEUES: Final = {
    "plain": QueueProperties(journaling=True),
    "orders": QueueProperties(transactional=True),
    "small": QueueProperties(quota_kilobytes=2),
    "admin": QueueProperties(),
    "lost": QueueProperties(),
    "lost_orders": QueueProperties(transactional=True),
}
PATHS: Final = {name: PathName.parse(rf".\private$\{name}") for name in QUEUES}
_READ: Final = tuple(name for name in QUEUES if name not in OWN_DEAD_LETTERS)
_NO_QUEUE: Final = 0x7FFF  # a number that no queue has
_KINDS: Final = (Kind.EXPRESS, Kind.RECOVERABLE, Kind.TRANSACTIONAL, Kind.TRANSACTIONAL)
_SECONDS_TO_REACH: Final = (2, 20, 60)
_SECONDS_TO_BE_RECEIVED: Final = (5, 60, 300)
_FLAGS: Final = (
    Acknowledge.NONE,
    Acknowledge.NONE,
    Acknowledge.FULL_REACH_QUEUE,
    Acknowledge.FULL_RECEIVE,
    Acknowledge.NACK_RECEIVE,
    Acknowledge.FULL_REACH_QUEUE | Acknowledge.FULL_RECEIVE,
)


@dataclass(slots=True)
class Letter:
    """A message that an application has decided to send."""

    kind: Kind
    target: Node
    queue: str
    name: SingleFormatName
    message: Message
    may_expire: bool
    may_time_out: bool
    own_dead_letter_queue: str = ""  # of the application, if it takes the message


@dataclass(eq=False)
class Workload:
    """All applications of a world."""

    world: World
    nodes: list[Node]
    ledger: Ledger
    ghost: UUID | None = None  # a queue manager that is nowhere
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)  # private queue numbers
    opened: dict[tuple[Life, str], OpenQueueDescriptor] = field(default_factory=dict)

    # Before anything goes wrong

    def create_queues(self, node: Node) -> None:
        life = node.life
        assert life is not None

        def create() -> None:
            for name, properties in QUEUES.items():
                queue = create_queue(life.core, PATHS[name], replace(properties))
                self.numbers[node.name, name] = queue.private_queue_number

        life.turn(create)
        node.disk.flush()

    # Sending

    def send(self, node: Node) -> None:
        """One application sends something, if its node is up."""
        life, random = node.life, self.world.random
        if life is None:
            return
        kind = random.choice(_KINDS)
        if kind is Kind.TRANSACTIONAL:
            application = CoordinatedTransaction if random.random() < 0.2 else SendingTransaction
            application(self, life).begin()
            return
        letters = self.letters(node, kind)
        copies: list[Copy] = []

        def done(is_durable: bool) -> None:
            self.ledger.accepted(copies) if is_durable else self.ledger.gone(copies)

        life.turn(lambda: copies.extend(self.post(life, letters)), done)

    def letters(self, node: Node, kind: Kind) -> list[Letter]:
        """Draw a message and its destinations: most have one."""
        random = self.world.random
        several = random.random() < 0.1
        letters = [self.letter(node, kind) for _ in range(random.randint(2, 3) if several else 1)]
        first = letters[0]
        for letter in letters[1:]:
            letter.message = first.message
            letter.may_expire, letter.may_time_out = first.may_expire, first.may_time_out
            letter.own_dead_letter_queue = first.own_dead_letter_queue
        return letters

    def letter(self, node: Node, kind: Kind) -> Letter:
        """Draw a message and where it goes."""
        random = self.world.random
        target = random.choice(self.nodes)
        right = "orders" if kind is Kind.TRANSACTIONAL else "plain"
        wrong = "plain" if kind is Kind.TRANSACTIONAL else "orders"
        queue = right
        lot = random.random()
        if target is not node and lot < 0.05:
            queue = MISSING
        elif target is not node and lot < 0.1:
            queue = wrong
        elif self.ghost is not None and lot < 0.2:
            target = next(other for other in self.nodes if other is not node)  # in the circle
            queue = NOWHERE
        elif lot < 0.2 and kind is not Kind.TRANSACTIONAL:
            queue = SMALL
        may_expire, may_time_out = random.random() < 0.1, random.random() < 0.1
        acknowledgements = random.choice(_FLAGS)
        message = Message(
            random.randbytes(self._size()),
            priority=0 if kind is Kind.TRANSACTIONAL else random.choice((0, 3, 3, 3, 7)),
            delivery=Delivery.EXPRESS if kind is Kind.EXPRESS else Delivery.RECOVERABLE,
            recoverable=kind is not Kind.EXPRESS,
            journal=Journal(random.choice((0, 0, 1, 2, 3))),
            acknowledgements=acknowledgements,
        )
        if may_expire:
            message.time_to_reach_queue = random.choice(_SECONDS_TO_REACH)
        if may_time_out:
            message.time_to_be_received = random.choice(_SECONDS_TO_BE_RECEIVED)
        if acknowledgements:
            message.administration_queue = self.name(node, "admin")
        name = self.name(target, queue)
        letter = Letter(kind, target, queue, name, message, may_expire, may_time_out)
        if random.random() < 0.3:
            self._name_dead_letter_queue(node, letter)
        return letter

    def _name_dead_letter_queue(self, node: Node, letter: Letter) -> None:
        """The application has a dead-letter queue; some name one that does not take the message."""
        right, wrong = OWN_DEAD_LETTERS
        if letter.kind is Kind.TRANSACTIONAL:
            right, wrong = wrong, right
        name = wrong if self.world.chance(0.2) else right
        letter.message.dead_letter_queue = rf"{node.name}\private$\{name}"
        letter.own_dead_letter_queue = name if name == right else ""

    def _size(self) -> int:
        lot = self.world.random.random()
        if lot < 0.03:
            return self.world.random.randrange(10_000, 60_000)
        return self.world.random.randrange(0, 40 if lot < 0.5 else 900)

    def name(self, node: Node, queue: str) -> SingleFormatName:
        """One of the names of a queue."""
        if queue == NOWHERE:
            return _parse(rf"PRIVATE={self.ghost}\{_NO_QUEUE:08x}")
        number = self._number(node, queue)
        texts = (
            rf"DIRECT=TCP:{node.address}\private$\{queue}",
            rf"DIRECT=OS:{node.name}\private$\{queue}",
            rf"PRIVATE={node.identifier}\{number:08x}",
        )
        return _parse(self.world.random.choice(texts))

    def _number(self, node: Node, queue: str) -> int:
        """The number of a private queue as its senders know it: as it was when they last asked."""
        life = node.life
        found = None if life is None or queue not in PATHS else life.core.paths.get(PATHS[queue])
        if found is not None:
            self.numbers[node.name, queue] = found.private_queue_number
        return self.numbers.get((node.name, queue), _NO_QUEUE)

    def post(
        self, life: Life, letters: list[Letter], transaction: Transaction | None = None
    ) -> list[Copy]:
        """Put a message into its queue or queues, here or outgoing; those copies that were taken.

        The first refusal ends it, as in 3.1.7.1.27.
        """
        core, letter = life.core, letters[0]
        # The numbers of a stream are given when the transaction commits.
        place = None if transaction is None else MessageTransaction(1, 1, 0, transaction.wire_id)
        names = tuple(letter.name for letter in letters)
        name: FormatName = letter.name if len(names) == 1 else MultipleElementFormatName(names)
        letter.message.destinations = ()
        try:
            descriptor = open_queue(core, name, AccessType.SEND)
        except QueueError:  # a queue of ours that is not there
            return []
        by_name = {letter.name: letter for letter in letters}  # opening leaves doubles out
        opened = descriptor.format_name
        several = opened.elements if isinstance(opened, MultipleElementFormatName) else ()
        stored, copies = [], []
        for message in address_copies(descriptor, letter.message):
            assert message.destination is not None
            stored.append(to_stored(core, message, message.destination, None, place))
            addressee = by_name[message.destination]
            copies.append(self._copy(life, addressee, stored[-1], several))
            self.ledger.asked(copies[-1])
        enqueue_message_to_open_queue(core, descriptor, stored, transaction)
        close_queue(core, descriptor)
        taken = [copy for copy, each in zip(copies, stored, strict=True) if each.arrival_time]
        self.ledger.gone(copies[len(taken) :])
        return taken

    def _copy(
        self,
        life: Life,
        letter: Letter,
        stored: StoredMessage,
        destinations: tuple[SingleFormatName, ...],
    ) -> Copy:
        user, message = stored.packet.user, letter.message
        return Copy(
            (user.source_queue_manager, user.message_id),
            self.ledger.next_number(),
            letter.kind,
            life.node,
            letter.target,
            letter.queue,
            str(letter.name),
            message.body,
            Journal(message.journal),
            Acknowledge(message.acknowledgements),
            letter.may_expire or letter.may_time_out,  # on its way both count: QB-A44
            _rejection(letter),
            destinations,
            letter.own_dead_letter_queue,
        )

    # Receiving

    def receive(self, node: Node) -> None:
        """One application reads from one of the queues, if its node is up."""
        life, random = node.life, self.world.random
        if life is None:
            return
        queue = random.choice(("plain", "plain", "orders", "orders", "orders", "small", "admin"))
        if queue == "orders" and random.random() < 0.7:
            ReceivingTransaction(self, life).begin()
        elif random.random() < 0.3:
            self._receive_waiting(life, queue)
        else:
            self.receive_now(life, queue)

    def receive_now(self, life: Life, queue: str) -> bool:
        """Read one message outside a transaction; False if there was none."""
        found: list[MessagePosition] = []
        life.turn(
            lambda: self._take(life, queue, found), lambda ok: self._consumed(life, found, ok)
        )
        return bool(found)

    def _take(self, life: Life, queue: str, found: list[MessagePosition]) -> None:
        descriptor = self.open(life, queue)
        if descriptor is None:
            return
        result = dequeue_message(life.core, descriptor, timeout=0)
        assert isinstance(result, ReadResult)
        if result.position is not None:
            found.append(result.position)

    def _consumed(self, life: Life, found: list[MessagePosition], is_durable: bool) -> None:
        if is_durable:
            for position in found:
                self.consumed(life, position)

    def _receive_waiting(self, life: Life, queue: str) -> None:
        descriptor = self.open(life, queue)
        if descriptor is None:
            return

        def ended(result: ReadResult | None) -> None:
            if result is not None and result.status is MqStatus.OK and result.position is not None:
                self.consumed(life, result.position)

        def begin() -> None:
            reader = Reader(ended)
            timeout = self.world.random.uniform(0.1, 20.0)
            result = dequeue_message(life.core, descriptor, timeout=timeout, tag=reader)
            if isinstance(result, ReadResult):
                found.append(result)

        found: list[ReadResult] = []
        life.turn(begin, lambda ok: ended(found[0] if ok else None) if found else None)

    def consumed(self, life: Life, position: MessagePosition) -> None:
        """When everything that was observed in the same turn is in the book too."""
        self.ledger.consumed(life.node, position.message.packet)

    def open(self, life: Life, queue: str) -> OpenQueueDescriptor | None:
        """The queue as the readers of a node have it open; None if it is not there."""
        descriptor = self.opened.get((life, queue))
        if descriptor is None or descriptor.queue is None:
            name = rf"DIRECT=OS:{life.node.name}\private$\{queue}"
            try:
                descriptor = open_queue(life.core, _parse(name), AccessType.RECEIVE)
            except QueueError:
                return None
            self.opened[life, queue] = descriptor
        return descriptor

    def drain(self, node: Node) -> None:
        """Read everything that is left."""
        for queue in _READ:
            life = node.life
            assert life is not None
            while len(queue_of(life, queue).positions) and self.receive_now(life, queue):
                node.disk.flush()


@lru_cache(maxsize=4096)
def _parse(text: str) -> SingleFormatName:
    name = parse_format_name(text)
    assert not isinstance(name, MultipleElementFormatName)
    return name


def queue_of(life: Life, name: str) -> Queue:
    """The queue with this name in the present life of a node."""
    return life.core.paths[PATHS[name]]


def _rejection(letter: Letter) -> int:
    if letter.queue == MISSING:
        return MessageClass.NACK_BAD_DST_Q
    if letter.queue == NOWHERE:
        return MessageClass.NACK_HOP_COUNT_EXCEEDED
    if letter.kind is Kind.TRANSACTIONAL:
        wrong = letter.queue != "orders"
        return MessageClass.NACK_NOT_TRANSACTIONAL_Q if wrong else 0
    return MessageClass.NACK_NOT_TRANSACTIONAL_MSG if letter.queue == "orders" else 0
