"""The binary protocol of one queue manager: its sessions, peers and tables, without a socket.

How to think about it. The transport runs inside the turns of whoever hosts the core. What it is
told (a connection, bytes, a timer, a message in an outgoing queue) changes memory and the batch.
What must not be said before the batch is durable goes into a `Turn`: which received messages may be
acknowledged, which streams have come so far, which new messages may be sent. `turn_done` lets it
go. Turns are done in the order they were taken, whatever the host does.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID
from weakref import ref

from falconmq.manager.core import QueueManagerCore, next_number
from falconmq.manager.dispatch import remove_messages_by_queue, set_senders
from falconmq.manager.events import EventKind
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import pause_queue, resume_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import ConnectionStatus, OutgoingState, PositionState
from falconmq.manager.storing import PRIORITY_MAX, PRIORITY_SHIFT, dead_letter
from falconmq.message import MessageId
from falconmq.names import SingleFormatName
from falconmq.names.syntax import fold
from falconmq.transport import idling, loading, numbering, ordering, peers, sending
from falconmq.transport.acceptor import AcceptorSession
from falconmq.transport.administration import send_administration_acknowledgment
from falconmq.transport.history import MessageIdHistory
from falconmq.transport.incoming_streams import IncomingStream, IncomingStreams
from falconmq.transport.initiator import InitiatorSession
from falconmq.transport.leaving import message_left
from falconmq.transport.network import Link, Network
from falconmq.transport.outgoing import Entry, OutgoingTable
from falconmq.transport.outgoing_streams import OutgoingStreams
from falconmq.transport.peers import Peer, PeerKey
from falconmq.transport.pinging import Pinger, answer
from falconmq.transport.protection import Protection
from falconmq.transport.receiving import receive
from falconmq.transport.routing import Router
from falconmq.transport.session import (
    MessageReceived,
    MessagesAcknowledged,
    Session,
    SessionClosed,
    SessionOpened,
    SessionState,
)
from falconmq.transport.settings import TransportSettings
from falconmq.transport.situations import Situation, Whereabouts, situation_of, whereabouts_of
from falconmq.wire.message_class import MessageClass, is_custom
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL, POSITIVE_ARRIVAL
from falconmq.wire.user_header import ADMIN_QUEUE_TYPE, JOURNAL_NEGATIVE, TRANSACTION_HEADER
from falconmq.wire.user_message import UserMessage

_NAMES_MAX: Final = 4096  # direct names whose queues are remembered
_MAY_BE_TOLD: Final = ADMIN_QUEUE_TYPE | TRANSACTION_HEADER  # of UserHeader.Flags
_REFUSALS_MAX: Final = 64  # peers above the limit that are told so at a time
_MANAGERS_MAX: Final = 10_000  # whose addresses are remembered
_ADDRESSES_MAX: Final = 8  # of each
_CLEAN_UP_SECONDS: Final = 3600.0
_CROWDED: Final = 500  # outgoing queues: then those without messages go every minute
_CROWDED_SECONDS: Final = 60.0

_log = logging.getLogger("falconmq.transport")


@dataclass(slots=True, eq=False)
class Turn:
    """What may be told when the batch of a turn is durable."""

    received: dict[Session, int] = field(default_factory=dict)  # messages to acknowledge
    fresh: list[tuple[OutgoingTable, MessagePosition]] = field(default_factory=list)
    streams: list[tuple[IncomingStream, int, int]] = field(default_factory=list)
    releases: bool = False  # sending was held until this is durable
    is_done: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.received or self.fresh or self.streams or self.releases)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Connection:
    """A session and what hangs on it."""

    session: Session
    link: Link | None = None  # None while it is being connected
    peers: list[Peer] = field(default_factory=list)
    armed: float | None = None  # when its earliest timer fires


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
        self.peers: dict[PeerKey, Peer] = {}
        self.tables: dict[OutgoingQueue, OutgoingTable] = {}
        self.awaiting: dict[int, Entry] = {}  # transactional messages of ours, by MessageID
        self.last_numbered: dict[Queue, int] = {}  # the latest place in each stream
        self.known_names: dict[str, Queue] = {}
        self.addresses: dict[bytes, set[str]] = {}  # where each queue manager was seen
        self.timers_started = 0
        self.is_running = False
        self._is_held = False  # nothing is sent until a certain turn is durable
        self._connections: dict[Session, Connection] = {}
        self._touched: dict[Session, None] = {}
        self._turn = Turn()
        self._pending: deque[Turn] = deque()
        self._pinger = Pinger(self.guid)
        self._pings: dict[str, list[Callable[[bool], None]]] = {}

    @property
    def now(self) -> float:
        return self.core.clock.monotonic()

    @property
    def sessions(self) -> list[Session]:
        return list(self._connections)

    # Life

    def start(self) -> None:
        """Begin: read what is durable, listen to the core, send what waits (QB-3.1.4.1-01, -02)."""
        core = self.core
        core.outgoing_agent = self
        set_senders(core, binary=partial(sending.send_user_message_wrapper, self))
        core.available_subscribers.append(self._message_position_available)
        core.deleted_subscribers.append(self._message_position_deleted)
        core.arrived_subscribers.append(self._message_arrived)
        self.is_running = True
        self._load()
        self._is_held = self._turn.releases = True  # until what loading wrote is durable
        self._clean_up()
        self._clear_crowd()

    def stop(self) -> None:
        """Acknowledge what is durable, and close all sessions (QB-3.1.4.2-01)."""
        self.is_running = False
        for session in self.sessions:
            session.acknowledge_now(self.now)
            self._write(session)
            self.close(session, "the queue manager stops")
        self.outgoing_streams.give_back()
        self._flush()

    def restored(self) -> None:
        """A commit failed and the core went back to what the store has: so do we.

        What was received since then is not acknowledged: its senders will send it again. Express
        messages live on; they go when the numbers they have are durable, which the next batch sees
        to, or a crash could give their identifiers to others.
        """
        self._turn = Turn()
        self._pending.clear()
        is_running, self.is_running = self.is_running, False  # nobody reconnects at this moment
        for session in self.sessions:
            self.close(session, "the store could not write")
        self._flush()
        self.is_running = is_running
        self._load()
        self._is_held = self._turn.releases = True

    def _load(self) -> None:
        self.outgoing_streams.load()
        self.incoming_streams.load()
        self.history.load()
        self.tables.clear()
        self.awaiting.clear()
        self.last_numbered.clear()
        for peer in self.peers.values():
            peer.tables.clear()
        for queue in self.core.outgoing.values():
            loading.load_queue(self, queue)

    def _clean_up(self) -> None:
        if self.is_running:
            self.incoming_streams.clean_up(self.now)
            idling.clean_up(self)
            self.after(_CLEAN_UP_SECONDS, self._clean_up)

    def _clear_crowd(self) -> None:
        """Somebody invents destinations: let go sooner of those that have no messages."""
        if self.is_running:
            if len(self.core.outgoing) > _CROWDED:
                idling.clean_up(self)
            self.after(_CROWDED_SECONDS, self._clear_crowd)

    # The host calls these

    def accepted(self, link: Link, address: str) -> Session | None:
        """A peer has connected (MQQB 3.1.5.10); None if it is one too many, or nobody may come."""
        if self.core.settings.hardened_security:  # DM-3.1.1.1-42
            self.counters["connections refused"] += 1
            return None
        excess = len(self._connections) - self.settings.sessions_max
        if excess >= 0:
            self.counters["connections refused"] += 1
        if not self.is_running or excess >= _REFUSALS_MAX:
            return None
        is_refused = excess >= 0  # it is told so, QB-A07
        session = AcceptorSession(self.settings, self.guid, address, self.now, refused=is_refused)
        self.add_session(session).link = link
        self._touch(session)
        self._flush()
        return session

    def connected(self, session: Session, link: Link) -> None:
        """The connection that was asked for is there (MQQB 3.1.5.2.3)."""
        connection = self._connections.get(session)
        if connection is None or not isinstance(session, InitiatorSession):
            link.close()
            return
        connection.link = link
        session.connected(self.now)
        for peer in connection.peers:
            peers.request_sent(self, peer)
        self._touch(session)
        self._flush()

    def connect_failed(self, session: Session, status: ConnectionStatus, problem: str) -> None:
        """The connection that was asked for cannot be had."""
        connection = self._connections.pop(session, None)
        if connection is None:
            return
        session.close(problem)
        for peer in connection.peers:
            self.log_failure(peer, problem)
            peers.lost(self, peer, status, problem)
        self._flush()

    def data_received(self, session: Session, data: bytes) -> None:
        """Bytes from a peer."""
        connection = self._connections.get(session)
        if connection is None:
            return
        was_waiting = session.state is SessionState.WAITING_ECR_MSG
        session.receive_data(data, self.now)
        if session.state is SessionState.CLOSED:
            self.counters["sessions closed for what a peer sent"] += 1
        if was_waiting and session.state not in (SessionState.WAITING_ECR_MSG, SessionState.CLOSED):
            for peer in connection.peers:
                peers.record(self, peer, ConnectionStatus.ESTABLISH_PACKET_RECEIVED)
        self._touch(session)
        self._flush()

    def connection_lost(self, session: Session, problem: str) -> None:
        """The connection is gone (MQQB 3.1.7.3)."""
        if session in self._connections:
            self.close(session, problem or "the peer closed the connection")
            self._flush()

    def writable(self, session: Session) -> None:
        """The peer reads again."""
        if session in self._connections:
            self.pump(session)
            self._flush()

    def resolved(self, peer: Peer, addresses: Sequence[str], problem: str = "") -> None:
        """The addresses of a host name, or why there are none."""
        if self.peers.get(peer.key) is peer and self.is_running:
            peers.resolved(self, peer, addresses, problem)
            self._flush()

    def datagram_received(self, data: bytes, address: str, port: int, *, is_answer: bool) -> None:
        """A ping, or an answer to one of ours (MQQB 3.1.7.7, 3.1.7.8).

        They look alike: the socket that it came to tells which it is (`pinging`).
        """
        if is_answer:
            is_welcome = self._pinger.received(data, address)
            if is_welcome is not None:
                self._ping_ended(address, is_welcome)
                self._flush()
        elif self.settings.ping_answered:
            is_full = len(self._connections) >= self.settings.sessions_max
            response = answer(data, self.guid, refused=is_full)
            if response is not None:
                self.network.send_datagram(response, address, port)

    def pause(self, queue: OutgoingQueue) -> None:
        """Hold the messages of an outgoing queue back (Pause Queue, MQQB 3.1.7.13)."""
        table = self.tables.get(queue)
        session = None if table is None else table.peer.session
        if session is not None:
            session.pause(self.now)
            self._touch(session)
        pause_queue(self.core, queue)  # QB-3.1.7.13-11
        remove_messages_by_queue(self.core, queue)  # QB-3.1.7.13-12
        if table is not None:
            table.offered = None
        self._flush()

    def resume(self, queue: OutgoingQueue) -> None:
        """Let them go again (Resume Queue, MQQB 3.1.7.14)."""
        resume_queue(self.core, queue)
        if queue.state is OutgoingState.LOCKED:
            return
        table = self.table_of(queue)
        session = table.peer.session
        if session is not None and session.state is SessionState.OPEN:
            queue.state = OutgoingState.CONNECTED
            self.pump(session)
        else:
            peers.wake(self, table.peer)  # QB-3.1.7.14-01, QB-3.1.7.14-02
        self._flush()

    # Turns

    def end_turn(self) -> Turn | None:
        """Put into the batch what it has to carry; what waits for it, None if nothing does."""
        self.outgoing_streams.flush()
        self._turn.streams = self.incoming_streams.taken()
        self.incoming_streams.flush()
        self.history.flush()
        if self._turn.is_empty:
            return None
        turn, self._turn = self._turn, Turn()
        self._pending.append(turn)
        return turn

    def turn_done(self, turn: Turn) -> None:
        """The batch of a turn is durable."""
        turn.is_done = True
        while self._pending and self._pending[0].is_done:
            self._let_go(self._pending.popleft())
        self._flush()

    def _let_go(self, turn: Turn) -> None:
        now = self.now
        for session, count in turn.received.items():
            session.settle(count, now)
            self._touch(session)
        for stream, sequence_id, number in turn.streams:
            ordering.settled(self, stream, sequence_id, number)
        woken: dict[Peer, None] = {}
        if turn.releases:
            self._is_held = False
            woken = dict.fromkeys(self.peers.values())
        for table, position in turn.fresh:
            is_there = position.state is not PositionState.DELETED
            if is_there and self.tables.get(table.queue) is table and table.add(position):
                woken[table.peer] = None
        for peer in woken:
            if peer.session is None:
                peers.wake(self, peer)
            else:
                self.pump(peer.session)

    # For the other modules of the transport

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Start a timer; it ends in a turn of its own."""
        self.core.timers.after(self.now, seconds, partial(self._timer, action))

    def _timer(self, action: Callable[[], None]) -> None:
        if self.is_running:
            action()
            self._flush()

    def table_of(self, queue: OutgoingQueue) -> OutgoingTable:
        """The table of an outgoing queue, made when its first message comes."""
        table = self.tables.get(queue)
        if table is None:
            peer = self._peer_of(queue.destination)
            stream = None
            table = self.tables[queue] = peer.tables[queue] = OutgoingTable(queue, peer, stream)
            session = peer.session
            is_open = session is not None and session.state is SessionState.OPEN
            if is_open and queue.state not in peers.KEPT_STATES:
                peers.joined(self, peer, queue)
        return table

    def table_for(self, destination: SingleFormatName) -> OutgoingTable | None:
        queue = self.core.outgoing.get(destination)
        return None if queue is None else self.tables.get(queue)

    def _peer_of(self, destination: SingleFormatName) -> Peer:
        info = self.router.get_destination_info(destination)
        key: PeerKey
        if info is None:
            key, host_name = str(destination), ""  # nobody knows yet where that is
        elif info.queue_manager is None:
            key, host_name = fold(info.host_name), info.host_name
        else:
            key, host_name = info.queue_manager, info.host_name
        peer = self.peers.get(key)
        if peer is None:
            peer = self.peers[key] = Peer(key, host_name)
        return peer

    def add_session(self, session: Session) -> Connection:
        connection = self._connections[session] = Connection(session)
        return connection

    def peers_of(self, session: Session) -> list[Peer]:
        connection = self._connections.get(session)
        return [] if connection is None else connection.peers

    def can_send(self, session: Session) -> bool:
        """Whether the window has room and the peer reads: nothing piles up in between."""
        if self._is_held or not session.can_send:
            return False
        connection = self._connections.get(session)
        link = None if connection is None else connection.link
        return link is not None and link.is_writable

    def is_peer_reading(self, session: Session) -> bool:
        """Whether a peer takes what is written; True while it is being connected."""
        connection = self._connections.get(session)
        link = None if connection is None else connection.link
        return link is None or link.is_writable

    def close(self, session: Session, reason: str) -> None:
        """Close a session (MQQB 3.1.5.9)."""
        session.close(reason)
        self._touch(session)

    def pump(self, session: Session) -> None:
        """Send what the window of a session allows."""
        sending.pump(self, session)
        self._touch(session)

    def ping(self, address: str, done: Callable[[bool], None]) -> None:
        """Send Ping Request, MQQB 3.1.7.6; one for all who ask for the same address."""
        waiting = self._pings.setdefault(address, [])
        waiting.append(done)
        if len(waiting) == 1:
            datagram = self._pinger.request(address, self.now)
            self.network.send_datagram(datagram, address, self.settings.ping_port)
            self.after(1.0, self._pings_expired)

    def _pings_expired(self) -> None:
        for address in self._pinger.expired(self.now):
            self._ping_ended(address, False)

    def _ping_ended(self, address: str, is_welcome: bool) -> None:
        for done in self._pings.pop(address, []):
            done(is_welcome)

    def is_source(self, packet: UserMessage) -> bool:
        return packet.user.source_queue_manager == self.guid

    def next_lookup_id(self, message: StoredMessage) -> int:
        sequence = next_number(self.core, self.core.sequential_id)
        return (PRIORITY_MAX - message.priority) << PRIORITY_SHIFT | sequence

    def remember_name(self, text: str, queue: Queue) -> None:
        if len(self.known_names) >= _NAMES_MAX:
            self.known_names.clear()
        self.known_names[text] = queue

    def describe(self, table: OutgoingTable) -> None:
        """Keep what operators read about a stream (QB-3.1.5.6-11 to -20)."""
        if table.stream is not None:
            unacked = [(e.tx_sequence_number, e.previous_number) for e in table.transactional]
            self.outgoing_streams.describe(
                table.stream,
                table.queue.transfer_info,
                unacked=unacked,
                unread=len(table.arrived),
            )

    def situation(self, queue: OutgoingQueue) -> Situation:
        """How things stand with an outgoing queue at this moment."""
        table = self.tables.get(queue)
        if table is not None:
            self.describe(table)
        return situation_of(self, queue)

    def whereabouts(self, queue: OutgoingQueue, lookup_id: int) -> Whereabouts:
        """How far a message in an outgoing queue is."""
        return whereabouts_of(self, queue, lookup_id)

    def count_refusal(
        self, packet: UserMessage, message_class: int, queue: Queue | None = None
    ) -> None:
        """A message of a peer was not taken; `queue` is the one of ours that it was for."""
        self.refusals[message_class] += 1
        where = _destination_text(packet)
        self.note(EventKind.REFUSED, packet, where, reason=message_class, queue=queue)
        user = packet.user
        _log.debug(
            "message refused class=%#06x source=%s id=%d",
            message_class,
            UUID(bytes_le=user.source_queue_manager),
            user.message_id,
        )

    def note(
        self,
        kind: EventKind,
        packet: UserMessage,
        detail: str = "",
        *,
        reason: int = 0,
        queue: Queue | None = None,
    ) -> None:
        """Record what happened to a message that is in none of our queues."""
        events, user = self.core.events, packet.user
        if events is not None:
            size = packet.base.packet_size
            source, number = user.source_queue_manager, user.message_id
            events.record(kind, source, number, queue, 0, size, reason, detail, packet)

    def note_answer(self, packet: UserMessage) -> None:
        """An acknowledgement came into an administration queue: it tells of another message."""
        events, properties = self.core.events, packet.properties
        is_answer = properties.message_class not in (MessageClass.NORMAL, MessageClass.REPORT)
        if events is None or not is_answer or is_custom(properties.message_class):
            return
        about = MessageId(properties.correlation_id)
        source, number = about.queue_manager.bytes_le, about.ordinal
        events.record(EventKind.TOLD, source, number, None, 0, 0, properties.message_class)

    def log_failure(self, peer: Peer, problem: str) -> None:
        """Say once why a peer cannot be reached, not at every try."""
        if problem != peer.problem:
            _log.warning('cannot reach peer=%s reason="%s"', peer.host_name or peer.key, problem)

    # OutgoingAgent of the core

    def number(self, queue: OutgoingQueue, position: MessagePosition) -> None:
        numbering.number(self, queue, position)

    def has_arrived(self, queue: OutgoingQueue, lookup_id: int) -> bool:
        table = self.tables.get(queue)
        return table is not None and lookup_id in table.arrived

    # Subscribers of the core

    def _message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """A message can be sent as soon as it is durable (MQQB 3.1.7.12)."""
        if not isinstance(queue, OutgoingQueue):  # QB-3.1.7.12-01
            return
        if queue.is_multicast or queue.is_http:  # QB-3.1.7.12-02, QB-3.1.7.12-04
            return
        self._turn.fresh.append((self.table_of(queue), position))

    def _message_position_deleted(
        self, queue: Queue, position: MessagePosition, reason: int
    ) -> None:
        if isinstance(queue, OutgoingQueue):
            self._outgoing_deleted(queue, position, reason)
            return
        if reason == MessageClass.NACK_Q_DELETED and not queue.positions:
            self.incoming_streams.forget_queue(queue)
        if not position.message.head.flags & _MAY_BE_TOLD:
            return  # nobody wants to know, and most messages need not be decoded for that
        packet = position.message.packet
        stream = None if packet.transaction is None else self.incoming_streams.find(packet)
        reply_address = "" if stream is None else stream.reply_address
        message_left(self.core, self.settings, queue, position, reason, reply_address=reply_address)

    def _outgoing_deleted(
        self, queue: OutgoingQueue, position: MessagePosition, reason: int
    ) -> None:
        """A message expired on its way, or somebody purged the outgoing queue."""
        packet = position.message.packet
        table = self.tables.get(queue)
        if table is not None:
            had_arrived = position.lookup_id in table.arrived
            entry = table.drop(position.lookup_id)
            if packet.transaction is not None and self.is_source(packet):
                self.awaiting.pop(packet.user.message_id, None)
                is_pending = not (had_arrived or (entry is not None and entry.received_order_ack))
                table.pending -= is_pending
                sending.renew_if_done(self, table)
        message_class = reason
        if reason in (MessageClass.NACK_Q_PURGED, MessageClass.NACK_Q_DELETED):
            message_class = MessageClass.NACK_DELETED  # it never reached its queue
            if packet.user.flags & JOURNAL_NEGATIVE:
                dead_letter(self.core, queue, position.message, message_class)
        if packet.properties.flags & NEGATIVE_ARRIVAL:  # QB-3.1.7.1.2-04
            send_administration_acknowledgment(self.core, self.settings, packet, message_class)

    def _message_arrived(self, queue: Queue, position: MessagePosition) -> None:  # noqa: ARG002
        """A message that was sent on this computer has reached its queue."""
        message = position.message
        packet = message.packet
        is_asked = packet.properties.flags & POSITIVE_ARRIVAL
        if is_asked and self.is_source(packet) and not message.move_count:
            reached = MessageClass.ACK_REACH_QUEUE
            send_administration_acknowledgment(self.core, self.settings, packet, reached)

    # Sessions

    def _touch(self, session: Session) -> None:
        self._touched[session] = None

    def _flush(self) -> None:
        """Hear what the sessions have to say, send what they have to send, arm their timers."""
        while self._touched:
            session = next(iter(self._touched))
            del self._touched[session]
            connection = self._connections.get(session)
            if connection is not None:
                self._serve(connection)

    def _serve(self, connection: Connection) -> None:
        session = connection.session
        while events := session.events():
            for event in events:
                match event:
                    case MessageReceived(packet, data):
                        received = self._turn.received
                        received[session] = received.get(session, 0) + 1
                        receive(self, session, packet, data)
                    case MessagesAcknowledged(received_entries, stored):
                        sending.acknowledged(self, received_entries, stored)
                        sending.pump(self, session)
                    case SessionOpened():
                        self._opened(connection)
                    case SessionClosed(reason):
                        self._closed(connection, reason)
                        return
        self._write(session)
        self._arm(connection)

    def _write(self, session: Session) -> None:
        connection = self._connections.get(session)
        data = session.data_to_send()
        if data and connection is not None and connection.link is not None:
            connection.link.write(data)

    def _arm(self, connection: Connection) -> None:
        deadline = connection.session.deadline
        if deadline is None or (connection.armed is not None and connection.armed <= deadline):
            return
        connection.armed = deadline
        # A timer outlives its session: it must not keep what is closed until it ends.
        timer = partial(self._session_timer, ref(connection), deadline)
        self.after(max(0.0, deadline - self.now), timer)

    def _session_timer(self, to: ref[Connection], deadline: float) -> None:
        connection = to()
        if connection is None or connection.armed != deadline:
            return  # an earlier one has taken its place
        connection.armed = None
        session = connection.session
        if session in self._connections:
            session.handle_timer(self.now)
            if session.can_send:
                sending.pump(self, session)  # the window may have grown
            self._touch(session)

    def _opened(self, connection: Connection) -> None:
        session = connection.session
        _log.info("session open peer=%s direct=%s", session.remote_address, session.is_direct)
        self.counters["sessions opened"] += 1
        self._note_address(session)
        for peer in connection.peers:
            peers.opened(self, peer, session)
        for peer in list(self.peers.values()):
            if peer.session is None and self._leads_to(session, peer):
                peers.attach(self, peer, session)
        self.pump(session)

    def _leads_to(self, session: Session, peer: Peer) -> bool:
        """Whether a session that a peer opened is a way to send what waits for it."""
        if peer.is_direct is not session.is_direct or not peer.has_work:
            return False
        return any(
            hop.address == session.remote_address
            and (hop.queue_manager is None or hop.queue_manager.bytes_le == session.remote_guid)
            for hop in peer.hops
        )

    def _note_address(self, session: Session) -> None:
        """Two addresses for one identifier: a copied data directory, or a network in between."""
        guid = session.remote_guid
        if guid is None:
            return
        if guid not in self.addresses and len(self.addresses) >= _MANAGERS_MAX:
            del self.addresses[next(iter(self.addresses))]  # the one seen first
        seen = self.addresses.setdefault(guid, set())
        is_new = session.remote_address not in seen and len(seen) < _ADDRESSES_MAX
        if is_new:
            seen.add(session.remote_address)
        if guid == self.guid:
            seen.add("here")
        if is_new and len(seen) > 1:
            self.counters["managers with two addresses"] += 1
            _log.warning(
                "one queue manager at two addresses id=%s addresses=%s: "
                "it has several, or its data directory was copied",
                UUID(bytes_le=guid),
                ", ".join(sorted(seen)),
            )

    def _closed(self, connection: Connection, reason: str) -> None:
        session = connection.session
        self._write(session)  # a refusal is said before the door closes, QB-A07
        if connection.link is not None:
            connection.link.close()  # QB-3.1.5.9-03
        del self._connections[session]
        self.counters["sessions closed"] += 1
        _log.info(
            'session closed peer=%s sent=%d received=%d reason="%s"',
            session.remote_address,
            session.messages_sent,
            session.messages_received,
            reason,
        )
        was_open = session.opened_at is not None
        status = None if was_open else ConnectionStatus.CONNECTION_NOT_READY
        for peer in connection.peers:
            for table in peer.tables.values():
                remove_messages_by_queue(self.core, table.queue)  # QB-3.1.7.1.6-03
                sending.session_ended(self, table)
            if self.is_running:
                peers.lost(self, peer, status, reason)
            else:
                peer.session, peer.is_busy = None, False


def _destination_text(packet: UserMessage) -> str:
    """Where a message was to go, as far as its packet says it in words."""
    destination = packet.user.destination_queue
    if isinstance(destination, str):
        return f"DIRECT={destination}"
    return f"private queue {destination}" if isinstance(destination, int) else "a public queue"
