"""The binary protocol of one queue manager: its sessions, peers and tables, without a socket.

How to think about it. The transport runs inside the turns of whoever hosts the core. What it is
told (a connection, bytes, a timer, a message in an outgoing queue) changes memory and the batch.
What must not be said before the batch is durable goes into a `Turn`: which received messages may be
acknowledged, which streams have come so far, which new messages may be sent. `turn_done` lets it
go. Turns are done in the order they were taken, whatever the host does.

Here is what the host sees of it. Behind that:

    connections             sessions: what they say is heard, what they send is written
    receiving, sending      one message in, one message out
    peers, tables           where messages want to go, and how far they are
    listening               what the core tells
    turns                   what waits for the disk
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.states import ConnectionStatus, PositionState
from falconmq.transport import idling, loading, ordering, pausing, peers
from falconmq.transport.acceptor import AcceptorSession
from falconmq.transport.addresses import Addresses
from falconmq.transport.connections import Connections
from falconmq.transport.history import MessageIdHistory
from falconmq.transport.incoming_streams import IncomingStreams
from falconmq.transport.initiator import InitiatorSession
from falconmq.transport.listening import CoreListener
from falconmq.transport.network import Link, Network
from falconmq.transport.noting import log_failure, note_refusal
from falconmq.transport.outgoing import Entry, OutgoingTable
from falconmq.transport.outgoing_streams import OutgoingStreams
from falconmq.transport.peers import Peer, PeerKey
from falconmq.transport.pinging import Pings
from falconmq.transport.protection import Protection
from falconmq.transport.routing import Router
from falconmq.transport.session import Session, SessionState
from falconmq.transport.settings import TransportSettings
from falconmq.transport.situations import Situation, Whereabouts, situation_of, whereabouts_of
from falconmq.transport.turns import Turn, Turns
from falconmq.transport.undecided import Undecided
from falconmq.wire.user_message import UserMessage

_REFUSALS_MAX: Final = 64  # peers above the limit that are told so at a time


class Transport:
    """MS-MQQB for one queue manager. The host's part is described in `network`."""

    def __init__(
        self,
        core: QueueManagerCore,
        network: Network,
        router: Router,
        settings: TransportSettings,
        protection: Protection | None = None,
    ) -> None:
        self.core = core
        self.network = network
        self.router = router
        self.settings = settings
        self.protection = protection  # None: nothing can be encrypted, decrypted or verified
        self.guid = core.identifier.bytes_le
        self.counters: Counter[str] = Counter()
        self.refusals: Counter[int] = Counter()  # messages that we refused, by class
        self.outgoing_streams = OutgoingStreams(core, settings)
        self.incoming_streams = IncomingStreams(core, settings)
        self.history = MessageIdHistory(core, settings)
        self.connections = Connections(self)
        self.turns = Turns()
        self.undecided = Undecided(self.turns)
        self.pings = Pings(self)
        self.addresses = Addresses(self.guid, self.counters)
        self.peers: dict[PeerKey, Peer] = {}
        self.tables: dict[OutgoingQueue, OutgoingTable] = {}
        self.awaiting: dict[int, Entry] = {}  # transactional messages of ours, by MessageID
        self.last_numbered: dict[Queue, int] = {}  # the latest place in each stream
        self.known_names: dict[str, Queue] = {}
        self.timers_started = 0
        self.is_running = False
        self._listener = CoreListener(self)

    @property
    def now(self) -> float:
        return self.core.clock.monotonic()

    @property
    def sessions(self) -> list[Session]:
        return self.connections.sessions

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Start a timer; it ends in a turn of its own."""
        self.core.timers.after(self.now, seconds, partial(self._timer, action))

    def _timer(self, action: Callable[[], None]) -> None:
        if self.is_running:
            action()
            self.connections.flush()

    def count_refusal(
        self, packet: UserMessage, message_class: int, queue: Queue | None = None
    ) -> None:
        """A message of a peer was not taken; `queue` is the one of ours that it was for."""
        self.refusals[message_class] += 1
        note_refusal(self.core, packet, message_class, queue)

    # Life

    def start(self) -> None:
        """Begin: read what is durable, listen to the core, send what waits (QB-3.1.4.1-01, -02)."""
        self._listener.listen()
        self.is_running = True
        self._load()
        idling.keep_clean(self)

    def stop(self) -> None:
        """Acknowledge what is durable, and close all sessions (QB-3.1.4.2-01)."""
        self.is_running = False
        for session in self.sessions:
            session.acknowledge_now(self.now)
            self.connections.write(session)
            self.connections.close(session, "the queue manager stops")
        self.outgoing_streams.give_back()
        self.connections.flush()

    def restored(self) -> None:
        """A commit failed and the core went back to what the store has: so do we.

        What was received since then is not acknowledged: its senders will send it again. Express
        messages live on; they go when the numbers they have are durable, which the next batch sees
        to, or a crash could give their identifiers to others.
        """
        self.turns.forget()
        is_running, self.is_running = self.is_running, False  # nobody reconnects at this moment
        for session in self.sessions:
            self.connections.close(session, "the store could not write")
        self.connections.flush()
        self.is_running = is_running
        self._load()

    def _load(self) -> None:
        """Read what the store has. Nothing is sent until what that writes is durable."""
        loading.load(self)
        self.connections.is_held = self.turns.current.releases = True

    # The host calls these

    def accepted(self, link: Link, address: str) -> Session | None:
        """A peer has connected (MQQB 3.1.5.10); None if it is one too many, or nobody may come."""
        if self.core.settings.hardened_security:  # DM-3.1.1.1-42
            self.counters["connections refused"] += 1
            return None
        excess = len(self.connections) - self.settings.sessions_max
        if excess >= 0:
            self.counters["connections refused"] += 1
        if not self.is_running or excess >= _REFUSALS_MAX:
            return None
        is_refused = excess >= 0  # it is told so, QB-A07
        session = AcceptorSession(self.settings, self.guid, address, self.now, refused=is_refused)
        self.connections.add(session, link)
        self.connections.touch(session)
        self.connections.flush()
        return session

    def connected(self, session: Session, link: Link) -> None:
        """The connection that was asked for is there (MQQB 3.1.5.2.3)."""
        connection = self.connections.find(session)
        if connection is None or not isinstance(session, InitiatorSession):
            link.close()
            return
        connection.link = link
        session.connected(self.now)
        for peer in connection.peers:
            peers.request_sent(self, peer)
        self.connections.touch(session)
        self.connections.flush()

    def connect_failed(self, session: Session, status: ConnectionStatus, problem: str) -> None:
        """The connection that was asked for cannot be had."""
        connection = self.connections.drop(session)
        if connection is None:
            return
        session.close(problem)
        for peer in connection.peers:
            log_failure(peer, problem)
            peers.lost(self, peer, status, problem)
        self.connections.flush()

    def data_received(self, session: Session, data: bytes) -> None:
        """Bytes from a peer."""
        connection = self.connections.find(session)
        if connection is None:
            return
        was_waiting = session.state is SessionState.WAITING_ECR_MSG
        session.receive_data(data, self.now)
        if session.state is SessionState.CLOSED:
            self.counters["sessions closed for what a peer sent"] += 1
        if was_waiting and session.state not in (SessionState.WAITING_ECR_MSG, SessionState.CLOSED):
            for peer in connection.peers:
                peers.record(self, peer, ConnectionStatus.ESTABLISH_PACKET_RECEIVED)
        self.connections.touch(session)
        self.connections.flush()

    def connection_lost(self, session: Session, problem: str) -> None:
        """The connection is gone (MQQB 3.1.7.3)."""
        if session in self.connections:
            self.connections.close(session, problem or "the peer closed the connection")
            self.connections.flush()

    def writable(self, session: Session) -> None:
        """The peer reads again."""
        if session in self.connections:
            self.connections.pump(session)
            self.connections.flush()

    def resolved(self, peer: Peer, addresses: Sequence[str], problem: str = "") -> None:
        """The addresses of a host name, or why there are none."""
        if self.peers.get(peer.key) is peer and self.is_running:
            peers.resolved(self, peer, addresses, problem)
            self.connections.flush()

    def datagram_received(self, data: bytes, address: str, port: int, *, is_answer: bool) -> None:
        """A ping, or an answer to one of ours (MQQB 3.1.7.7, 3.1.7.8).

        They look alike: the socket that it came to tells which it is (`pinging`).
        """
        if is_answer:
            self.pings.answered(data, address)
            self.connections.flush()
        else:
            self.pings.asked(data, address, port)

    # Turns

    def end_turn(self) -> Turn | None:
        """Put into the batch what it has to carry; what waits for it, None if nothing does."""
        self.outgoing_streams.flush()
        self.turns.current.streams = self.incoming_streams.taken()
        self.incoming_streams.flush()
        self.history.flush()
        return self.turns.end()

    def turn_done(self, turn: Turn) -> None:
        """The batch of a turn is durable."""
        for durable in self.turns.done(turn):
            self._let_go(durable)
        self.connections.flush()

    def _let_go(self, turn: Turn) -> None:
        now, connections = self.now, self.connections
        for session, count in turn.received.items():
            session.settle(count, now)
            connections.touch(session)
        for stream, sequence_id, number in turn.streams:
            ordering.settled(self, stream, sequence_id, number)
        woken: dict[Peer, None] = {}
        if turn.releases:
            connections.is_held = False
            woken = dict.fromkeys(self.peers.values())
        for table, position in turn.fresh:
            is_there = position.state is not PositionState.DELETED
            if is_there and self.tables.get(table.queue) is table and table.add(position):
                woken[table.peer] = None
        for peer in woken:
            if peer.session is None:
                peers.wake(self, peer)
            else:
                connections.pump(peer.session)

    # Operators ask and say these

    def situation(self, queue: OutgoingQueue) -> Situation:
        """How things stand with an outgoing queue at this moment."""
        table = self.tables.get(queue)
        if table is not None:
            table.describe(self.outgoing_streams)
        return situation_of(self, queue)

    def whereabouts(self, queue: OutgoingQueue, lookup_id: int) -> Whereabouts:
        """How far a message in an outgoing queue is."""
        return whereabouts_of(self, queue, lookup_id)

    def pause(self, queue: OutgoingQueue) -> None:
        """Hold the messages of an outgoing queue back (Pause Queue, MQQB 3.1.7.13)."""
        pausing.pause(self, queue)
        self.connections.flush()

    def resume(self, queue: OutgoingQueue) -> None:
        """Let them go again (Resume Queue, MQQB 3.1.7.14)."""
        pausing.resume(self, queue)
        self.connections.flush()
