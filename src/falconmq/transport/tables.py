"""The table and the peer of an outgoing queue: found, or made when its first message comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falconmq.manager.model import OutgoingQueue
from falconmq.names import SingleFormatName
from falconmq.names.syntax import fold
from falconmq.transport import peers
from falconmq.transport.outgoing import OutgoingTable
from falconmq.transport.peers import Peer, PeerKey
from falconmq.transport.session import SessionState

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


def table_of(transport: Transport, queue: OutgoingQueue) -> OutgoingTable:
    """The table of an outgoing queue. It shares the session that is open to its peer, if any."""
    table = transport.tables.get(queue)
    if table is None:
        peer = _peer_of(transport, queue.destination)
        table = transport.tables[queue] = peer.tables[queue] = OutgoingTable(queue, peer)
        session = peer.session
        is_open = session is not None and session.state is SessionState.OPEN
        if is_open and queue.state not in peers.KEPT_STATES:
            peers.joined(transport, peer, queue)
    return table


def table_for(transport: Transport, destination: SingleFormatName) -> OutgoingTable | None:
    """The table of the messages to a destination; None if there are none."""
    queue = transport.core.outgoing.get(destination)
    return None if queue is None else transport.tables.get(queue)


def _peer_of(transport: Transport, destination: SingleFormatName) -> Peer:
    info = transport.router.get_destination_info(destination)
    key: PeerKey
    if info is None:
        key, host_name = str(destination), ""  # nobody knows yet where that is
    elif info.queue_manager is None:
        key, host_name = fold(info.host_name), info.host_name
    else:
        key, host_name = info.queue_manager, info.host_name
    peer = transport.peers.get(key)
    if peer is None:
        peer = transport.peers[key] = Peer(key, host_name)
    return peer
