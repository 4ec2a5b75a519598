"""Sessions and the connections they speak over (MQQB 3.1.5.9, 3.1.6).

How to think about it. A session is a state machine without a socket. Whoever tells it something
touches it; when the event is over, `flush` hears what the touched sessions have to say, writes what
they have to send, and starts the timers they ask for. So whatever happens in one event goes out in
one write, and no session is called while it calls somebody else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from falconmq.manager.dispatch import remove_messages_by_queue
from falconmq.manager.states import ConnectionStatus
from falconmq.transport import peers, sending
from falconmq.transport.network import Link
from falconmq.transport.peers import Peer
from falconmq.transport.receiving import receive
from falconmq.transport.session import (
    MessageReceived,
    MessagesAcknowledged,
    Session,
    SessionClosed,
    SessionOpened,
)

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_log = logging.getLogger("falconmq.transport")


@dataclass(slots=True, eq=False, weakref_slot=True)
class Connection:
    """A session and what hangs on it."""

    session: Session
    link: Link | None = None  # None while it is being connected
    peers: list[Peer] = field(default_factory=list)
    armed: float | None = None  # when its earliest timer fires


class Connections:
    """All sessions of a transport."""

    def __init__(self, transport: Transport) -> None:
        self.is_held = False  # nothing is sent until a certain turn is durable
        self._transport = transport
        self._connections: dict[Session, Connection] = {}
        self._touched: dict[Session, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def __contains__(self, session: Session) -> bool:
        return session in self._connections

    @property
    def sessions(self) -> list[Session]:
        return list(self._connections)

    def add(self, session: Session, link: Link | None = None) -> None:
        """Take a new session; without a link it is being connected."""
        self._connections[session] = Connection(session, link)

    def find(self, session: Session) -> Connection | None:
        return self._connections.get(session)

    def drop(self, session: Session) -> Connection | None:
        """Forget a session that never had a link."""
        return self._connections.pop(session, None)

    def peers_of(self, session: Session) -> list[Peer]:
        connection = self._connections.get(session)
        return [] if connection is None else connection.peers

    def can_send(self, session: Session) -> bool:
        """Whether the window has room and the peer reads: nothing piles up in between."""
        if self.is_held or not session.can_send:
            return False
        connection = self._connections.get(session)
        link = None if connection is None else connection.link
        return link is not None and link.is_writable

    def is_peer_reading(self, session: Session) -> bool:
        """Whether a peer takes what is written; True while it is being connected."""
        connection = self._connections.get(session)
        link = None if connection is None else connection.link
        return link is None or link.is_writable

    def touch(self, session: Session) -> None:
        """A session may have something to say; `flush` will ask it."""
        self._touched[session] = None

    def pump(self, session: Session) -> None:
        """Send what the window of a session allows."""
        sending.pump(self._transport, session)
        self._touched[session] = None

    def close(self, session: Session, reason: str) -> None:
        """Close a session (MQQB 3.1.5.9)."""
        session.close(reason)
        self._touched[session] = None

    def flush(self) -> None:
        """Hear what the sessions have to say, send what they have to send, arm their timers."""
        while self._touched:
            session = next(iter(self._touched))
            del self._touched[session]
            connection = self._connections.get(session)
            if connection is not None:
                self._serve(connection)

    def write(self, session: Session) -> None:
        """Write what a session has to send, without waiting for the end of the event."""
        connection = self._connections.get(session)
        data = session.data_to_send()
        if data and connection is not None and connection.link is not None:
            connection.link.write(data)

    def _serve(self, connection: Connection) -> None:
        session, transport = connection.session, self._transport
        while events := session.events():
            for event in events:
                match event:
                    case MessageReceived(packet, data):
                        transport.turns.count_received(session)
                        receive(transport, session, packet, data)
                    case MessagesAcknowledged(received_entries, stored):
                        sending.acknowledged(transport, received_entries, stored)
                        sending.pump(transport, session)
                    case SessionOpened():
                        self._opened(connection)
                    case SessionClosed(reason):
                        self._closed(connection, reason)
                        return
        self.write(session)
        self._arm(connection)

    # Timers

    def _arm(self, connection: Connection) -> None:
        deadline = connection.session.deadline
        if deadline is None or (connection.armed is not None and connection.armed <= deadline):
            return
        connection.armed = deadline
        # A timer outlives its session: it must not keep what is closed until it ends.
        timer = partial(self._timer_ended, ref(connection), deadline)
        self._transport.after(max(0.0, deadline - self._transport.now), timer)

    def _timer_ended(self, to: ref[Connection], deadline: float) -> None:
        connection = to()
        if connection is None or connection.armed != deadline:
            return  # an earlier one has taken its place
        connection.armed = None
        session = connection.session
        if session in self._connections:
            session.handle_timer(self._transport.now)
            if session.can_send:
                sending.pump(self._transport, session)  # the window may have grown
            self.touch(session)

    # Beginning and end

    def _opened(self, connection: Connection) -> None:
        session, transport = connection.session, self._transport
        _log.info("session open peer=%s direct=%s", session.remote_address, session.is_direct)
        transport.counters["sessions opened"] += 1
        if session.remote_guid is not None:
            transport.addresses.note(session.remote_guid, session.remote_address)
        for peer in connection.peers:
            peers.opened(transport, peer, session)
        for peer in list(transport.peers.values()):
            if peer.session is None and peers.leads_to(session, peer):
                peers.attach(transport, peer, session)
        self.pump(session)

    def _closed(self, connection: Connection, reason: str) -> None:
        session, transport = connection.session, self._transport
        self.write(session)  # a refusal is said before the door closes, QB-A07
        if connection.link is not None:
            connection.link.close()  # QB-3.1.5.9-03
        del self._connections[session]
        transport.counters["sessions closed"] += 1
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
                remove_messages_by_queue(transport.core, table.queue)  # QB-3.1.7.1.6-03
                sending.session_ended(transport, table)
            if transport.is_running:
                peers.lost(transport, peer, status, reason)
            else:
                peer.session, peer.is_busy = None, False
