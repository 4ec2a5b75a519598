"""A few queue managers in one process, joined by lines that deliver when the test says so.

Time stands still until `advance`. Commits are durable at once, unless a node is told to hold them.
The simulator is for chaos; this is for looking closely at one thing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from falconmq.clock import VirtualClock
from falconmq.manager import lifecycle
from falconmq.manager.core import QueueManagerCore, Settings, next_message_id
from falconmq.manager.model import OutgoingQueue, Queue, QueueProperties
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import create_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, ConnectionStatus, EnqueueStatus
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import commit_transaction, create_transaction
from falconmq.message import Message, MessageTransaction
from falconmq.names import (
    MultipleElementFormatName,
    PathName,
    PrivateFormatName,
    parse_format_name,
)
from falconmq.serialization import to_user_message
from falconmq.store import WriteBatch
from falconmq.store.memory_engine import MemoryStore
from falconmq.transport.peers import Peer
from falconmq.transport.routing import StaticRouter
from falconmq.transport.session import Session
from falconmq.transport.settings import TransportSettings
from falconmq.transport.transport import Transport
from falconmq.transport.turns import Turn
from falconmq.wire.packet import decode_packet
from falconmq.wire.reader import Buffer
from falconmq.wire.splitter import PacketSplitter


class Line:
    """One end of a connection."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.session: Session | None = None
        self.other: Line | None = None
        self.outbox: deque[bytes] = deque()
        self.written = bytearray()  # everything that was ever sent from this end
        self.is_closed = False
        self.is_writable = True

    def write(self, data: Sequence[Buffer]) -> None:
        if not self.is_closed:
            whole = b"".join(data)
            self.outbox.append(whole)
            self.written += whole

    def close(self) -> None:
        self.is_closed = True

    @property
    def packets(self) -> list[Any]:
        """The packets that went out of this end, decoded."""
        splitter = PacketSplitter()
        splitter.feed(bytes(self.written))
        return [decode_packet(packet) for packet in splitter]


class Node:
    """A queue manager and its host. It is the `Network` of its transport too."""

    def __init__(
        self, estate: Estate, name: str, address: str, store: MemoryStore, **settings: Any
    ) -> None:
        self.estate = estate
        self.name = name
        self.address = address
        self.identifier = UUID(int=0x1111 * (int(address.rpartition(".")[2]) + 1), version=4)
        self.store = store
        self.settings = TransportSettings(**settings)
        self.lines: list[Line] = []
        self.lookups: list[str] = []  # names that were resolved
        self.datagrams: list[tuple[bytes, str, int]] = []
        self.holds_commits = False
        self._held: list[tuple[WriteBatch, list[MessagePosition], Turn | None]] = []
        self._begin()

    def _begin(self) -> None:
        names = frozenset({self.address})
        self.core = QueueManagerCore(
            self.identifier,
            self.store,
            self.estate.clock,
            Random(int.from_bytes(self.identifier.bytes, "big")),
            Settings(computer_name=self.name, local_names=names),
        )
        lifecycle.initialize(self.core)
        self.transport = Transport(self.core, self, self.estate.router, self.settings)
        self.run(self.transport.start)

    # Turns

    def run(self, event: Callable[..., Any], *args: Any) -> Any:
        result = event(*args)
        self.end_turn()
        return result

    def end_turn(self) -> None:
        turn = self.transport.end_turn()
        batch, positions, _ = self.core.take_batch()
        if batch.operations:
            if self.holds_commits:
                self._held.append((batch, positions, turn))
                return
            self.store.commit([batch])
            lifecycle.settle(self.core, positions)
        if turn is not None:
            self.run(self.transport.turn_done, turn)

    def release_commits(self) -> None:
        """The disk comes to an end with what it was given."""
        self.holds_commits = False
        held, self._held = self._held, []
        self.store.commit([batch for batch, _, _ in held])
        for _, positions, turn in held:
            lifecycle.settle(self.core, positions)
            if turn is not None:
                self.run(self.transport.turn_done, turn)

    def restart(self, *, holds_commits: bool = False) -> None:
        """The power fails and comes back; the lines are cut."""
        for line in list(self.lines):
            self.estate.cut(line)
        self.lines.clear()
        self._held.clear()
        self.holds_commits = holds_commits
        self.store.crash()
        self._begin()

    # Network

    def resolve(self, peer: Peer, host: str) -> None:
        self.lookups.append(host)
        found = self.estate.names.get(host.lower(), [])
        self.estate.later(self, self.transport.resolved, peer, found, "" if found else "unknown")

    def connect(self, session: Session, address: str) -> None:
        self.estate.later(self, self.estate.connect, self, session, address)

    def send_datagram(self, data: bytes, address: str, port: int) -> None:
        self.datagrams.append((data, address, port))

    # What users do

    def queue(self, name: str, **properties: Any) -> Queue:
        path = PathName.parse(rf".\private$\{name}")
        created: Queue = self.run(create_queue, self.core, path, QueueProperties(**properties))
        return created

    def build(self, destination: str, body: bytes = b"", **properties: Any) -> StoredMessage:
        transactional = properties.pop("transactional", False)
        journal = properties.pop("dead_letter_queue", "")
        message = Message(body, destination=destination, **properties)
        if transactional:
            message.transaction = MessageTransaction(sequence_id=1, sequence_number=1, id=1)
        packet = to_user_message(
            message,
            source_queue_manager=self.identifier,
            message_id=next_message_id(self.core),
            sent_time=int(self.core.clock.time()),
        )
        stored = StoredMessage.of(packet)
        stored.dead_letter_queue = journal
        return stored

    def send(self, destination: str, body: bytes = b"", **properties: Any) -> StoredMessage:
        """An application sends; a transactional message in a transaction of its own."""
        message = self.build(destination, body, **properties)
        name = parse_format_name(destination)
        self.run(self._send, name, [message])
        return message

    def send_transaction(self, destination: str, *bodies: bytes, **properties: Any) -> None:
        self.run(partial(self.send_transaction_now, destination, *bodies, **properties))

    def send_transaction_now(self, destination: str, *bodies: bytes, **properties: Any) -> None:
        """The same inside a turn."""
        messages = [self.build(destination, b, transactional=True, **properties) for b in bodies]
        self._send(parse_format_name(destination), messages)

    def _send(self, name: Any, messages: list[StoredMessage]) -> None:
        descriptor = open_queue(self.core, name, AccessType.SEND)
        assert descriptor.queue is not None
        is_transactional = messages[0].transaction is not None
        transaction = create_transaction(self.core) if is_transactional else None
        for message in messages:
            status = enqueue_message(self.core, descriptor.queue, message, transaction)
            assert status is EnqueueStatus.OK
        if transaction is not None:
            commit_transaction(self.core, transaction.identifier)
        close_queue(self.core, descriptor)

    def outgoing(self, destination: str) -> OutgoingQueue:
        name = parse_format_name(destination)
        assert not isinstance(name, MultipleElementFormatName)
        return self.core.outgoing[name]

    def private_name(self, queue: Queue) -> str:
        return str(PrivateFormatName(self.identifier, queue.private_queue_number))


class Estate:
    """Queue managers, names and lines."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.nodes: dict[str, Node] = {}
        self.names: dict[str, list[str]] = {}
        self.hosts: dict[UUID, str] = {}
        self.routes: dict[UUID, Sequence[UUID]] = {}
        self.router = StaticRouter(self.hosts, self.routes)
        self.refusing: set[str] = set()  # addresses where nobody listens
        self._later: deque[tuple[Node, Callable[..., Any], tuple[Any, ...]]] = deque()

    def node(self, name: str, number: int, **settings: Any) -> Node:
        address = f"10.0.0.{number}"
        node = Node(self, name, address, MemoryStore(), **settings)
        self.nodes[address] = node
        self.names[name.lower()] = self.names[address] = [address]
        self.hosts[node.identifier] = name
        return node

    def later(self, node: Node, event: Callable[..., Any], *args: Any) -> None:
        self._later.append((node, event, args))

    def connect(self, node: Node, session: Session, address: str) -> None:
        target = self.nodes.get(address)
        if target is None or address in self.refusing:
            status = ConnectionStatus.CONNECTION_REFUSED
            node.transport.connect_failed(session, status, "connection refused")
            return
        here, there = Line(node), Line(target)
        here.other, there.other = there, here
        here.session = session
        there.session = target.run(target.transport.accepted, there, node.address)
        node.lines.append(here)
        target.lines.append(there)
        node.transport.connected(session, here)

    def cut(self, line: Line) -> None:
        """The connection breaks; what was on the line is lost, and both ends see it."""
        for end in (line, line.other):
            assert end is not None
            end.outbox.clear()
            if not end.is_closed:
                end.is_closed = True
                if end.session is not None:
                    end.node.run(end.node.transport.connection_lost, end.session, "cut")

    def settle(self) -> None:
        """Deliver everything that is on its way, and what comes of it; no time passes."""
        while self._later or any(line.outbox for line in self._lines()):
            while self._later:
                node, event, args = self._later.popleft()
                node.run(event, *args)
            for line in self._lines():
                while line.outbox:
                    self.deliver(line)
        for line in self._lines():
            other = line.other
            if line.is_closed and other is not None and not other.is_closed:
                other.is_closed = True
                if other.session is not None:
                    other.node.run(other.node.transport.connection_lost, other.session, "")

    def deliver(self, line: Line) -> None:
        """Deliver one piece that was written at this end."""
        data, other = line.outbox.popleft(), line.other
        assert other is not None
        if not other.is_closed and other.session is not None:
            other.node.run(other.node.transport.data_received, other.session, data)

    def advance(self, seconds: float) -> None:
        """Let time pass, timer by timer, and deliver what comes of it."""
        end = self.clock.monotonic() + seconds
        self.settle()
        while True:
            waits = [w for n in self.nodes.values() if (w := n.core.next_deadline()) is not None]
            now = self.clock.monotonic()
            step = min([*waits, end - now])
            if now + step >= end:
                self.clock.advance(end - now)
                self._run_timers()
                return
            self.clock.advance(step)
            self._run_timers()

    def _run_timers(self) -> None:
        for node in self.nodes.values():
            node.run(node.core.run_timers)
        self.settle()

    def _lines(self) -> list[Line]:
        return [line for node in self.nodes.values() for line in node.lines]


def direct(node: Node, queue: str) -> str:
    return rf"DIRECT=TCP:{node.address}\private$\{queue}"


def bodies(queue: Queue) -> list[bytes]:
    """The bodies of the messages a reader would get, in order."""
    found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.available]
    return [bytes(p.message.packet.properties.message_body) for p in found if p is not None]


def only(queue: Queue) -> StoredMessage:
    """The only message of a queue."""
    (lookup_id,) = queue.positions.available
    position = queue.positions.find(lookup_id)
    assert position is not None
    return position.message
