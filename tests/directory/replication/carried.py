"""Directory servers of a test: queue managers joined by the real transport, each with a carrier.

The engine is played: it notes what it is given and answers what the test says. Time stands still
until the estate advances it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from falconmq.directory.replication.carrying import ReplicationCarrier
from falconmq.directory.replication.carrying_judging import Judge
from falconmq.directory.replication.effects import Profile, Send
from falconmq.directory.replication.replication_queue import (
    QUEUE_PATH,
    REPLICATION_QUEUE_NUMBER,
    replication_queue_of,
)
from falconmq.manager.model import Queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.storing import enqueue_message
from falconmq.wire.replication_messages import (
    AlreadyPurgedMessage,
    ChangeRequestMessage,
    ReplicationMessage,
)
from tests.directory.enterprises import guid
from tests.transport.estate import Estate, Node
from tests.transport.protected import KEYS, PUBLIC, Registered, protect

SITE = guid("site").bytes_le


@dataclass
class PlayedEngine:
    """Notes what comes, answers what `answer` says."""

    received: list[tuple[ReplicationMessage, UUID | None]] = field(default_factory=list)
    nacked: list[ChangeRequestMessage] = field(default_factory=list)
    runs: int = 0
    due: float | None = None
    is_started: bool = False
    written: list[Send] = field(default_factory=list)
    answer: Callable[[ReplicationMessage], Sequence[Send]] = lambda _: ()
    on_effects: Callable[[], None] | None = None

    def start(self) -> Sequence[Send]:
        self.is_started = True
        return ()

    def stop(self) -> None:
        self.is_started = False

    def receive(self, message: ReplicationMessage, sender: UUID | None) -> Sequence[Send]:
        self.received.append((message, sender))
        return self.answer(message)

    def change_request_nacked(self, message: ChangeRequestMessage) -> Sequence[Send]:
        self.nacked.append(message)
        return ()

    def take_effects(self) -> Sequence[Send]:
        written, self.written = self.written, []
        return written

    def run_due(self) -> Sequence[Send]:
        self.runs += 1
        self.due = None
        return ()

    def next_due(self) -> float | None:
        return self.due

    def write(self, *sends: Send) -> None:
        """Somebody changes the directory of this server."""
        self.written += sends
        if self.on_effects is not None:
            self.on_effects()


@dataclass
class Server:
    """A directory server."""

    node: Node
    engine: PlayedEngine
    carrier: ReplicationCarrier
    registry: Registered

    @property
    def queue(self) -> Queue:
        return self.node.core.private_numbers[REPLICATION_QUEUE_NUMBER]

    @property
    def messages(self) -> list[ReplicationMessage]:
        return [message for message, _ in self.engine.received]

    @property
    def drops(self) -> dict[str, int]:
        """What was dropped, by reason."""
        kept = {"received", "sent", "not sent", "nacks", "resent"}
        names = {kind.__name__ for kind in ReplicationMessage.__args__}
        counters = self.carrier.counters
        return {name: n for name, n in counters.items() if name not in kept | names}

    def send(
        self, machine: str, message: ReplicationMessage, profile: Profile = Profile.WATCHED
    ) -> None:
        self.node.run(self.carrier.ask, lambda: [Send(machine, message, profile)])

    def waiting(self, machine: str) -> list[StoredMessage]:
        """What waits to be sent to another server."""
        queue = self.node.core.outgoing.get(replication_queue_of(machine))
        ids = [] if queue is None else queue.positions.lookup_ids()
        found = [] if queue is None else [queue.positions.find(lookup_id) for lookup_id in ids]
        return [position.message for position in found if position is not None]

    def hear(self, stored: StoredMessage) -> None:
        """A message comes into the queue, as if it had been on the way."""
        self.node.run(enqueue_message, self.node.core, self.queue, stored)
        self.node.run(self.node.core.run_timers)


def make_server(
    estate: Estate, name: str, number: int, *, requires_signature: bool = True
) -> Server:
    node = estate.node(name, number, send_insecure_nacks=True)
    registry = protect(node, weak=frozenset({QUEUE_PATH}))
    engine = PlayedEngine()
    judge = Judge(requires_signature, registry.signing_keys_of)
    carrier = ReplicationCarrier(node.core, engine, lambda: KEYS, judge)
    node.run(carrier.start)
    return Server(node, engine, carrier, registry)


def introduce(*servers: Server) -> None:
    """Let servers know each other's keys."""
    for server in servers:
        for other in servers:
            server.registry.keys[other.node.identifier] = PUBLIC


def two_servers(**chosen: bool) -> tuple[Estate, Server, Server]:
    estate = Estate()
    one, two = make_server(estate, "PEC0", 1), make_server(estate, "PSC1", 2, **chosen)
    introduce(one, two)
    return estate, one, two


def purged(number: int = 7) -> AlreadyPurgedMessage:
    return AlreadyPurgedMessage(SITE, bytes(16), number)


def quiet(machine: str, message: ReplicationMessage) -> Send:
    return Send(machine, message, Profile.QUIET)
