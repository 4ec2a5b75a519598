"""Whoever connects to us, by address: how many connections, and how many bytes of half packets.

How to think about it. A packet is kept until it is whole, and one may have four mebibytes. A peer
that sends all but the last byte on each of a thousand connections would fill the memory without
breaking a rule. So what waits to become whole has a limit for all together; beyond it the address
that has most of it loses its largest. The same way one address may have a part of all sessions
only: others want to be served too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from falconmq.transport.links import TcpLink

PENDING_MAX: Final = 256 << 20  # bytes of packets that are not whole, of all connections
OF_ONE_ADDRESS_MIN: Final = 64  # connections that an address may have in any case
_SHARE: Final = 10  # and else this part of all sessions: a tenth


class Callers:
    """Connections by the address they come from."""

    def __init__(self, sessions_max: int) -> None:
        self.of_one_address_max = max(OF_ONE_ADDRESS_MIN, sessions_max // _SHARE)
        self._connections: Counter[str] = Counter()
        self._pending: dict[TcpLink, int] = {}
        self._pending_bytes = 0

    def came(self, link: TcpLink) -> None:
        self._connections[link.address] += 1

    def left(self, link: TcpLink) -> None:
        self.keeps(link, 0)
        if link.is_accepted:
            self._connections[link.address] -= 1
            if not self._connections[link.address]:
                del self._connections[link.address]

    def are_too_many(self, address: str) -> bool:
        return self._connections[address] > self.of_one_address_max

    def keeps(self, link: TcpLink, size: int) -> TcpLink | None:
        """So many bytes of a packet of this link are here; the link to close if that is too much.

        Nearly every call finds nothing before and nothing now.
        """
        if not size and link not in self._pending:
            return None
        self._pending_bytes += size - self._pending.pop(link, 0)
        if size:
            self._pending[link] = size
        return self._largest() if self._pending_bytes > PENDING_MAX else None

    def _largest(self) -> TcpLink:
        """The largest half packet of the address that has most of them."""
        of_address: Counter[str] = Counter()
        for link, size in self._pending.items():
            of_address[link.address] += size
        heaviest = max(of_address, key=of_address.__getitem__)
        links = (link for link in self._pending if link.address == heaviest)
        return max(links, key=self._pending.__getitem__)
