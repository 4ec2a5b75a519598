"""What the protocol asks of whoever owns the sockets: the service's event loop, or the simulator.

The transport never waits. It asks; the host answers later by calling the transport:

    resolve(peer, host)        ->  transport.resolved(peer, addresses, problem)
    connect(session, address)  ->  transport.connected(session, link)
                               or  transport.connect_failed(session, status, problem)
    link.write, link.close     ->  transport.connection_lost(session, problem), when it ends
    link.is_writable again     ->  transport.writable(session)
    send_datagram              ->  transport.datagram_received(data, address, port, is_answer=),
                                   maybe: True for what came to the socket that asked
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from falconmq.wire.reader import Buffer

if TYPE_CHECKING:
    from falconmq.transport.peers import Peer
    from falconmq.transport.session import Session


class Link(Protocol):
    """One TCP connection."""

    @property
    def is_writable(self) -> bool:
        """False while the peer does not read what was written; then `transport.writable`."""
        ...

    def write(self, data: Sequence[Buffer]) -> None:
        """Send these bytes in order, some time; the buffers do not change afterwards."""
        ...

    def close(self) -> None:
        """Send what was written, then close. No `connection_lost` has to follow."""
        ...


class Network(Protocol):
    """Names, connections and datagrams."""

    def resolve(self, peer: Peer, host: str) -> None:
        """Find the IP addresses of a host name."""
        ...

    def connect(self, session: Session, address: str) -> None:
        """Open a TCP connection to port 1801 of an IP address."""
        ...

    def send_datagram(self, data: bytes, address: str, port: int) -> None: ...
