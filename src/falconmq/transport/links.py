"""One TCP connection on the event loop: a link for the transport, a protocol for asyncio."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from falconmq.wire.reader import Buffer

if TYPE_CHECKING:
    from falconmq.transport.session import Session

CLOSING_SECONDS: Final = 5.0
_KEEPALIVE_SECONDS: Final = 120
_WRITE_BUFFER_MAX: Final = 1 << 20  # bytes for a peer that does not read; then nothing more is sent


class LinkOwner(Protocol):
    """Who hears what happens to a connection."""

    def link_made(self, link: TcpLink) -> None: ...

    def link_received(self, link: TcpLink, data: bytes) -> None: ...

    def link_lost(self, link: TcpLink, problem: str | None) -> None: ...

    def link_writable(self, link: TcpLink) -> None: ...


class TcpLink(asyncio.Protocol):
    """One TCP connection; a `Link` for the transport, a protocol for the loop."""

    def __init__(self, owner: LinkOwner, session: Session | None) -> None:
        self.session = session  # None: the peer connects, and the transport was not asked yet
        self.is_accepted = session is None
        self.address = ""
        self.is_made = False
        self.is_opening = False  # accepted, and its session is not open yet
        self.is_writable = True  # False: the peer does not read as fast as we write
        self._owner = owner
        self._is_closed = False
        self._transport: asyncio.Transport

    # Link, called by the transport inside a turn

    def write(self, data: Sequence[Buffer]) -> None:
        if not self._is_closed:
            self._transport.writelines(data)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._transport.close()
            # A peer that reads nothing more must not keep the socket.
            loop = asyncio.get_running_loop()
            loop.call_later(CLOSING_SECONDS, self._transport.abort)

    # asyncio.Protocol, called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_made = True
        self._transport = cast("asyncio.Transport", transport)
        _set_options(self._transport.get_extra_info("socket"))
        self._transport.set_write_buffer_limits(high=_WRITE_BUFFER_MAX)
        name = self._transport.get_extra_info("peername")
        self.address = name[0] if name else ""
        self._owner.link_made(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_closed:
            self._owner.link_received(self, data)

    def connection_lost(self, error: Exception | None) -> None:
        was_closed, self._is_closed = self._is_closed, True
        problem = "the peer closed the connection" if error is None else str(error)
        self._owner.link_lost(self, None if was_closed else problem)

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        self._owner.link_writable(self)

    # for its owner

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def abort(self) -> None:
        self._is_closed = True
        self._transport.abort()

    def pause_reading(self) -> None:
        if not self._is_closed:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_closed:
            self._transport.resume_reading()


def _set_options(connection: socket.socket | None) -> None:
    if connection is None:
        return
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
