"""The way to one destination host: names, next hops, tries and retries (MQQB 3.1.5.2, 3.1.6.1).

How to think about it. A `Peer` is where messages want to go: a host named in direct format names,
or a queue manager. It has the outgoing queues that lead there. When one of them has work, the peer
finds its next hops, resolves their names, and tries one address after the other until a session is
open; after the last one, and a pause, it begins anew with the names.

Sessions belong to addresses, not to peers: whoever wants the same address in the same way (direct
or not) shares one session (QB-A56), whichever side has opened it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.errors import MqStatus
from falconmq.manager.model import ConnectionAttempt, OutgoingQueue
from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.transport.connecting_foreign import hand_over
from falconmq.transport.initiator import InitiatorSession
from falconmq.transport.noting import log_failure
from falconmq.transport.outgoing import OutgoingTable
from falconmq.transport.session import Session, SessionState

if TYPE_CHECKING:
    from falconmq.transport.routing import NextHopName
    from falconmq.transport.transport import Transport

HISTORY_MAX: Final = 32  # attempts that an operator can look back on
KEPT_STATES: Final = frozenset({OutgoingState.ON_HOLD, OutgoingState.LOCKED})
_REQUESTED: Final = frozenset({SessionState.WAITING_ECR_MSG, SessionState.WAITING_CPR_MSG})
_ERRORS: Final = {
    ConnectionStatus.DNS_FAILURE: MqStatus.MACHINE_NOT_FOUND,
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: MqStatus.MACHINE_NOT_FOUND,
    ConnectionStatus.CONNECTION_REFUSED: MqStatus.SERVICE_NOT_AVAILABLE,
    ConnectionStatus.SOCKET_CONNECT_FAILURE: MqStatus.SERVICE_NOT_AVAILABLE,
    ConnectionStatus.PING_FAILURE: MqStatus.SERVICE_NOT_AVAILABLE,
}
_PROGRESS: Final = frozenset(
    {
        ConnectionStatus.IN_PROCESS,
        ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
        ConnectionStatus.ESTABLISHED,
    }
)

PeerKey = str | UUID
"""A folded host name for direct names, else the queue manager of the destination."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """An address to try (MQQB 3.1.1.3.1.3)."""

    queue_manager: UUID | None  # None: unknown, the name was direct
    host_name: str
    address: str


class Peer:
    """One destination host, with the outgoing queues that lead to it."""

    def __init__(self, key: PeerKey, host_name: str) -> None:
        self.key = key
        self.host_name = host_name
        self.queue_manager = None if isinstance(key, str) else key
        self.tables: dict[OutgoingQueue, OutgoingTable] = {}
        self.hops: list[NextHop] = []  # NextHopCollection
        self.hop_index = 0  # NextHopIndexer
        self.names: list[NextHopName | None] = []  # still to be resolved; None: the host itself
        self.resolved: list[NextHop] = []
        self.session: Session | None = None
        self.is_busy = False  # resolving, pinging or waiting to try again
        self.is_retrying = False  # no ping is sent in a retry, QB-3.1.5.2.2-01
        self.retry = 0  # the number of the Session Retry Connect Timer that counts
        self.retry_at: float | None = None
        self.problem = ""  # why the last try failed, in words

    @property
    def is_direct(self) -> bool:
        return self.queue_manager is None

    @property
    def has_work(self) -> bool:
        """Whether messages wait that may be sent: not those of queues on hold."""
        return any(t.has_work and t.queue.state not in KEPT_STATES for t in self.tables.values())


def wake(transport: Transport, peer: Peer) -> None:
    """Open a session if there is work and no way open yet (QB-A43)."""
    if peer.session is None and not peer.is_busy and peer.has_work:
        establish(transport, peer)


def look_again(transport: Transport, *, is_new_map: bool = True) -> None:
    """More is known of the ways than before: whoever waits for one does not wait for its timer.

    Without a new map that concerns those alone whose queue manager nobody knew until now.
    """
    for peer in list(transport.peers.values()):
        has_no_way = any(queue.state is OutgoingState.NEED_VALIDATION for queue in peer.tables)
        may_try = has_no_way and peer.retry_at is not None and peer.has_work
        if may_try and (is_new_map or _is_found(transport, peer)):
            establish(transport, peer, is_retry=True)


def _is_found(transport: Transport, peer: Peer) -> bool:
    if peer.queue_manager is not None:
        return False
    found = transport.router.get_destination_info(next(iter(peer.tables)).destination)
    return found is not None and found.queue_manager is not None


def establish(transport: Transport, peer: Peer, *, is_retry: bool = False) -> None:
    """Begin at the beginning: find the next hops and resolve them (QB-3.1.5.2.1)."""
    _stop_retry(peer)
    peer.is_retrying = is_retry
    peer.is_busy = True
    peer.hops, peer.resolved, peer.hop_index = [], [], 0
    queue = next(iter(peer.tables))
    destination = transport.router.get_destination_info(queue.destination)
    if destination is None:  # QB-3.1.5.2.1-04
        _no_way(transport, peer, f"nobody knows where {queue.destination} is")
        return
    peer.queue_manager = destination.queue_manager  # it may have been unknown until now
    if destination.queue_manager is None:
        peer.host_name = destination.host_name
        peer.names = [None]
    else:
        site = transport.router.connector_site(destination.queue_manager)
        if site is not None:
            _end_here(transport, peer, site)
            return
        peer.names = list(transport.router.get_next_hops(destination.queue_manager))
        if not peer.names:  # QB-3.1.5.2.1-08
            manager = destination.queue_manager
            _no_way(transport, peer, f"no way to queue manager {manager} is known")
            return
    _resolve_next(transport, peer)


def _end_here(transport: Transport, peer: Peer, site: UUID) -> None:
    """The destination is foreign, and we are the last on the way: a connector takes it on."""
    peer.is_busy, peer.problem = False, ""
    _set_state(peer, OutgoingState.INACTIVE)
    for table in list(peer.tables.values()):
        if table.queue.state not in KEPT_STATES:
            hand_over(transport, table, site)


def resolved(transport: Transport, peer: Peer, addresses: Sequence[str], problem: str) -> None:
    """The host answered a `resolve`: one more name has its addresses (QB-3.1.5.2.1-11)."""
    if not peer.names:
        return  # from before a restart of the whole
    name = peer.names.pop(0)
    manager = None if name is None else name.queue_manager
    host_name = peer.host_name if name is None else name.host_name
    peer.resolved += [NextHop(manager, host_name, address) for address in addresses]
    if not addresses:
        peer.problem = problem or f"the name {host_name} cannot be resolved"
    _resolve_next(transport, peer)


def _resolve_next(transport: Transport, peer: Peer) -> None:
    if peer.names:
        name = peer.names[0]
        transport.network.resolve(peer, peer.host_name if name is None else name.host_name)
        return
    if not peer.resolved:
        _fail(transport, peer, ConnectionStatus.DNS_FAILURE, peer.problem)
        _set_state(peer, OutgoingState.NEED_VALIDATION)
        return
    peer.hops, peer.hop_index = peer.resolved, 0  # QB-3.1.5.2.1-13, QB-3.1.5.2.1-14
    for queue in peer.tables:
        queue.next_hops = [format_hop(hop.address) for hop in peer.hops]  # QB-3.1.5.2.1-10, -12
    _try_hop(transport, peer, is_retry=peer.is_retrying)


def _try_hop(transport: Transport, peer: Peer, *, is_retry: bool) -> None:
    """Connect to the hop that is next, or share the session that leads there (QB-A56)."""
    hop = peer.hops[peer.hop_index]
    shared = _find_session(transport, peer, hop)
    if shared is not None:
        attach(transport, peer, shared)
    elif transport.settings.ping_enabled and not is_retry:  # QB-3.1.5.2.2-01
        transport.pings.ask(hop.address, partial(_pinged, transport, peer, hop))
    else:
        _connect(transport, peer, hop, pinged=False)


def _find_session(transport: Transport, peer: Peer, hop: NextHop) -> Session | None:
    """A session to a hop that others may share: open, or about to be opened by us (QB-A56)."""
    guid = None if hop.queue_manager is None else hop.queue_manager.bytes_le
    for session in transport.sessions:
        if session.remote_address != hop.address or session.is_direct != peer.is_direct:
            continue
        is_ours = session.is_initiator and not session.is_closed
        if not is_ours and session.state is not SessionState.OPEN:
            continue
        if guid is None or session.remote_guid == guid:
            return session
    return None


def _pinged(transport: Transport, peer: Peer, hop: NextHop, is_welcome: bool) -> None:
    if peer.session is not None:
        return  # the other side has opened one meanwhile
    if is_welcome:
        shared = _find_session(transport, peer, hop)  # another may have been told so just before
        if shared is None:
            _connect(transport, peer, hop, pinged=True)  # QB-3.1.5.2.2-03
        else:
            attach(transport, peer, shared)
    else:  # QB-3.1.5.2.2-04, QB-3.1.5.2.2-05
        _fail(transport, peer, ConnectionStatus.PING_FAILURE, f"{hop.address} refuses the ping")


def _connect(transport: Transport, peer: Peer, hop: NextHop, *, pinged: bool) -> None:
    manager = None if hop.queue_manager is None else hop.queue_manager.bytes_le
    session = InitiatorSession(
        transport.settings,
        transport.core.identifier.bytes_le,
        remote_guid=manager,
        remote_address=hop.address,
        is_direct=peer.is_direct,
        pinged=pinged,
    )
    transport.connections.add(session)
    attach(transport, peer, session)
    transport.network.connect(session, hop.address)


def attach(transport: Transport, peer: Peer, session: Session) -> None:
    """Let a session carry the messages of a peer; it may still be opening."""
    _stop_retry(peer)
    peer.session, peer.is_busy = session, False
    transport.connections.peers_of(session).append(peer)
    if session.state is SessionState.OPEN:
        opened(transport, peer, session)
        transport.connections.pump(session)
    elif session.state in _REQUESTED:
        request_sent(transport, peer)


def leads_to(session: Session, peer: Peer) -> bool:
    """Whether a session that a peer opened is a way to send what waits for it."""
    if peer.is_direct is not session.is_direct or not peer.has_work:
        return False
    return any(
        hop.address == session.remote_address
        and (hop.queue_manager is None or hop.queue_manager.bytes_le == session.remote_guid)
        for hop in peer.hops
    )


def request_sent(transport: Transport, peer: Peer) -> None:
    """The EstablishConnection request is on its way (QB-3.1.5.2.3-12, QB-3.1.5.2.3-14)."""
    record(transport, peer, ConnectionStatus.IN_PROCESS)
    _set_state(peer, OutgoingState.WAITING)


def opened(transport: Transport, peer: Peer, session: Session) -> None:
    """The session is open: messages may go (QB-3.1.5.4.2-03, -06, -07)."""
    peer.problem = ""
    record(transport, peer, ConnectionStatus.ESTABLISHED)
    for queue in peer.tables:
        queue.next_hops = [format_hop(session.remote_address)]
    _set_state(peer, OutgoingState.CONNECTED)


def lost(transport: Transport, peer: Peer, status: ConnectionStatus | None, problem: str) -> None:
    """The session is over; if messages wait, try again after a while (QB-3.1.5.9-02, -06, -07).

    `status` is None for a session that ended in order.
    """
    peer.session = None
    peer.problem = problem
    _set_state(peer, OutgoingState.DISCONNECTING)
    if status is not None:
        record(transport, peer, status)
    _set_state(peer, OutgoingState.DISCONNECTED)
    if peer.has_work:
        _retry_later(transport, peer)


def _fail(transport: Transport, peer: Peer, status: ConnectionStatus, problem: str) -> None:
    """A step before the session failed (QB-3.1.5.2-03)."""
    log_failure(peer, problem)
    peer.problem = problem
    record(transport, peer, status)
    _retry_later(transport, peer)


def _no_way(transport: Transport, peer: Peer, problem: str) -> None:
    _fail(transport, peer, ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, problem)
    _set_state(peer, OutgoingState.NEED_VALIDATION)


def _retry_later(transport: Transport, peer: Peer) -> None:
    """Start the Session Retry Connect Timer (QB-3.1.2.3-01)."""
    settings = transport.settings
    seconds = settings.try_connect_interval + settings.round_trip_delay
    peer.is_busy = True
    peer.retry += 1
    peer.retry_at = transport.now + seconds
    transport.after(seconds, partial(_retry, transport, peer, peer.retry))


def _retry(transport: Transport, peer: Peer, number: int) -> None:
    """Session Retry Connect Timer event, MQQB 3.1.6.1."""
    if peer.retry != number or peer.session is not None:
        return
    peer.is_busy, peer.retry_at = False, None
    if not peer.has_work:  # QB-3.1.6.1-01
        return
    peer.is_busy = True
    if peer.hop_index + 1 < len(peer.hops):
        peer.hop_index += 1  # QB-3.1.6.1-03
        _try_hop(transport, peer, is_retry=True)  # QB-3.1.6.1-04
    else:
        establish(transport, peer, is_retry=True)  # QB-3.1.6.1-02


def _stop_retry(peer: Peer) -> None:
    peer.retry += 1
    peer.retry_at = None


def joined(transport: Transport, peer: Peer, queue: OutgoingQueue) -> None:
    """One more outgoing queue shares a session that is open."""
    assert peer.session is not None
    queue.next_hops = [format_hop(peer.session.remote_address)]
    queue.state = OutgoingState.CONNECTED
    queue.connection_history.append(_attempt(transport, peer, ConnectionStatus.ESTABLISHED))


def record(transport: Transport, peer: Peer, status: ConnectionStatus) -> None:
    """Add a line to the connection history of the queues (QB-3.1.5.2-03, QB-3.1.5.2-05)."""
    attempt = _attempt(transport, peer, status)
    for queue in peer.tables:
        queue.connection_history.append(attempt)
        queue.connection_failures += status not in _PROGRESS
        del queue.connection_history[:-HISTORY_MAX]


def _attempt(transport: Transport, peer: Peer, status: ConnectionStatus) -> ConnectionAttempt:
    error = MqStatus.OK if status in _PROGRESS else _ERRORS.get(status, MqStatus.ERROR)
    hops = peer.hops
    addresses = (hops[peer.hop_index].address,) if hops else ()
    if peer.session is not None:
        addresses = (peer.session.remote_address,)
    return ConnectionAttempt(status, transport.core.clock.time(), error, addresses)


def _set_state(peer: Peer, state: OutgoingState) -> None:
    for queue in peer.tables:
        if queue.state not in KEPT_STATES:
            queue.state = state


def format_hop(address: str) -> str:
    """An address as a queue's NextHops have it (MQMQ 2.3.12.12)."""
    kind = "IPv6" if isinstance(ip_address(address), IPv6Address) else "IP"
    return f"{kind}={address}"
