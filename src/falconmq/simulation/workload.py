"""What applications do in a world: send, receive, commit, abort, purge; drawn from the seed.

Every node has the same queues. Applications die with their node and go on when it is back; what
they had begun is over then.

    plain     takes messages outside transactions; has its own journal
    orders    transactional
    small     as plain, but soon full
    admin     where acknowledgements go
    missing   does not exist
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from falconmq.embedded.messages import to_stored
from falconmq.errors import MqStatus
from falconmq.manager.model import (
    OpenQueueDescriptor,
    Queue,
    QueueProperties,
    ReadResult,
    Transaction,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import close_queue, create_queue, open_queue, purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType, EnqueueStatus
from falconmq.manager.storing import enqueue_message
from falconmq.message import Acknowledge, Delivery, Journal, Message, MessageTransaction
from falconmq.names import (
    MultipleElementFormatName,
    PathName,
    SingleFormatName,
    parse_format_name,
)
from falconmq.simulation.applications import ReceivingTransaction, SendingTransaction
from falconmq.simulation.ledger import Copy, Kind, Ledger
from falconmq.simulation.node import Life, Node, Reader
from falconmq.simulation.world import World
from falconmq.wire.message_class import MessageClass

QUEUES: Final = {
    "plain": QueueProperties(journaling=True),
    "orders": QueueProperties(transactional=True),
    "small": QueueProperties(quota_kilobytes=2),
    "admin": QueueProperties(),
}
_PATHS: Final = {name: PathName.parse(rf".\private$\{name}") for name in QUEUES}
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


@dataclass(eq=False)
class Workload:
    """All applications of a world."""

    world: World
    nodes: list[Node]
    ledger: Ledger
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)  # private queue numbers
    opened: dict[tuple[Life, str], OpenQueueDescriptor] = field(default_factory=dict)

    # Before anything goes wrong

    def create_queues(self, node: Node) -> None:
        life = node.life
        assert life is not None

        def create() -> None:
            for name, properties in QUEUES.items():
                queue = create_queue(life.core, _PATHS[name], properties)
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
            SendingTransaction(self, life).begin()
            return
        several = random.random() < 0.1
        letters = [self.letter(node, kind) for _ in range(random.randint(2, 3) if several else 1)]
        if several:
            for letter in letters[1:]:
                letter.message = letters[0].message
                letter.may_expire = letters[0].may_expire
                letter.may_time_out = letters[0].may_time_out
        copies: list[Copy] = []

        def done(is_durable: bool) -> None:
            self.ledger.accepted(copies) if is_durable else self.ledger.gone(copies)

        life.turn(lambda: self._post_all(life, letters, copies), done)

    def _post_all(self, life: Life, letters: list[Letter], copies: list[Copy]) -> None:
        """Copies to several queues at once: the first refusal ends it, as in 3.1.7.1.27."""
        for letter in letters:
            copy = self.post(life, letter)
            if copy is None:
                return
            copies.append(copy)

    def letter(self, node: Node, kind: Kind) -> Letter:
        """Draw a message and where it goes."""
        random = self.world.random
        target = random.choice(self.nodes)
        right = "orders" if kind is Kind.TRANSACTIONAL else "plain"
        wrong = "plain" if kind is Kind.TRANSACTIONAL else "orders"
        queue = right
        lot = random.random()
        if target is not node and lot < 0.05:
            queue = "missing"
        elif target is not node and lot < 0.1:
            queue = wrong
        elif lot < 0.2 and kind is not Kind.TRANSACTIONAL:
            queue = "small"
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
        return Letter(kind, target, queue, name, message, may_expire, may_time_out)

    def _size(self) -> int:
        lot = self.world.random.random()
        if lot < 0.03:
            return self.world.random.randrange(10_000, 60_000)
        return self.world.random.randrange(0, 40 if lot < 0.5 else 900)

    def name(self, node: Node, queue: str) -> SingleFormatName:
        """One of the names of a queue."""
        number = self.numbers.get((node.name, queue), 0x7FFF)
        texts = (
            rf"DIRECT=TCP:{node.address}\private$\{queue}",
            rf"DIRECT=OS:{node.name}\private$\{queue}",
            rf"PRIVATE={node.identifier}\{number:08x}",
        )
        return _parse(self.world.random.choice(texts))

    def post(
        self, life: Life, letter: Letter, transaction: Transaction | None = None
    ) -> Copy | None:
        """Put one message into its queue, here or outgoing; None if it is refused."""
        core, message = life.core, letter.message
        # The numbers of a stream are given when the transaction commits.
        place = None if transaction is None else MessageTransaction(1, 1, 0, transaction.wire_id)
        descriptor = open_queue(core, letter.name, AccessType.SEND)
        queue = descriptor.queue
        assert queue is not None
        stored = to_stored(core, message, letter.name, None, place)
        user = stored.packet.user
        copy = Copy(
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
        )
        self.ledger.asked(copy)
        status = enqueue_message(core, queue, stored, transaction)
        close_queue(core, descriptor)
        if status is not EnqueueStatus.OK:
            self.ledger.gone([copy])
            return None
        return copy

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
        result = dequeue_message(life.core, self.open(life, queue), timeout=0)
        assert isinstance(result, ReadResult)
        if result.position is not None:
            found.append(result.position)

    def _consumed(self, life: Life, found: list[MessagePosition], is_durable: bool) -> None:
        if is_durable:
            for position in found:
                self.consumed(life, position)

    def _receive_waiting(self, life: Life, queue: str) -> None:
        descriptor = self.open(life, queue)

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

    def open(self, life: Life, queue: str) -> OpenQueueDescriptor:
        """The queue as the readers of a node have it open, from one life to the next."""
        descriptor = self.opened.get((life, queue))
        if descriptor is None:
            name = rf"DIRECT=OS:{life.node.name}\private$\{queue}"
            descriptor = open_queue(life.core, _parse(name), AccessType.RECEIVE)
            self.opened[life, queue] = descriptor
        return descriptor

    def purge(self, node: Node) -> None:
        life = node.life
        if life is None:
            return
        name = self.world.random.choice(("plain", "orders"))
        self.world.counts["purge"] += 1
        self.world.note(node.name, "purges %s", name)
        life.turn(lambda: purge_queue(life.core, queue_of(life, name)))

    def drain(self, node: Node) -> None:
        """Read everything that is left."""
        for queue in QUEUES:
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
    return life.core.paths[_PATHS[name]]


def _rejection(letter: Letter) -> int:
    if letter.queue == "missing":
        return MessageClass.NACK_BAD_DST_Q
    if letter.kind is Kind.TRANSACTIONAL:
        wrong = letter.queue != "orders"
        return MessageClass.NACK_NOT_TRANSACTIONAL_Q if wrong else 0
    return MessageClass.NACK_NOT_TRANSACTIONAL_MSG if letter.queue == "orders" else 0
