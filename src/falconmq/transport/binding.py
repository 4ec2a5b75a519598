"""Sockets for the transport: TCP 1801, UDP 3527 and DNS on an asyncio event loop (MQQB 2.1).

No rule of the protocol is here. Bytes and news go to the transport, each in a turn of the host; the
transport's calls come back from inside such a turn, so nothing here may call the transport at once:
it answers from the loop, later.

What is guarded here, because only the owner of the sockets can:

    sessions_max      accepted connections in all
    OPENING_MAX       accepted connections from one address whose sessions are not open yet
    Callers           connections of one address, and bytes of packets that are not whole
    congestion        no byte is read from peers while too much waits for the disk
    CLOSING_SECONDS   how long a peer may take to read the last bytes of a closed connection
    _CONNECTING_MAX   connections that we ask for at a time: peers name whom answers go to
    Resolver          names that we look up at a time
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from falconmq.transport.callers import Callers
from falconmq.transport.datagrams import PingSockets
from falconmq.transport.links import CLOSING_SECONDS, TcpLink
from falconmq.transport.resolving import Resolver, is_any
from falconmq.transport.session import SessionState
from falconmq.transport.settings import PORT, TransportSettings
from falconmq.transport.socket_errors import (
    ListenError,
    cannot_listen,
    connection_failure,
    endpoint,
)

if TYPE_CHECKING:
    from falconmq.transport.peers import Peer
    from falconmq.transport.session import Session
    from falconmq.transport.transport import Transport

CONNECT_SECONDS: Final = 21.0  # what Windows waits for a connection
OPENING_MAX: Final = 64
_WARN_SECONDS: Final = 60.0  # between two lines about the same address and reason
_WARNED_MAX: Final = 1000  # addresses remembered for that
_CONNECTING_MAX: Final = 512  # connections that we ask for at a time; each is a socket
_TICKS_TO_ACCEPT: Final = 3  # turns of the loop from an accepted socket to its link
_T = TypeVar("_T")

_log = logging.getLogger("falconmq.transport")


class Host(Protocol):
    """What the sockets need of whoever runs the turns."""

    relieved: Callable[[], None]

    @property
    def is_congested(self) -> bool: ...

    def handle(self, event: Callable[..., _T], /, *args: Any) -> _T | None:
        """Run an event in a turn; None if it broke off."""
        ...


class AsyncioNetwork:
    """`Network` on the running event loop. `attach` it, `listen`, then `accept`.

    `hosts` are names that need no DNS, in lower case.
    """

    def __init__(
        self,
        settings: TransportSettings,
        bind: str,
        *,
        port: int = PORT,
        hosts: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.accepted = 0  # connections, since the start
        self.refused: Counter[str] = Counter()  # connections, by reason
        self._closed_received = 0  # bytes of connections that are gone
        self._closed_sent = 0
        self._settings = settings
        self._bind = bind
        self._port = port
        self.resolver = Resolver(bind, port, hosts or {})
        self._pings = PingSockets(settings, bind, self._datagram_received)
        self._loop = asyncio.get_running_loop()
        self._host: Host
        self._transport: Transport
        self._server: asyncio.Server | None = None
        self._links: set[TcpLink] = set()
        self._opening: Counter[str] = Counter()  # of those, by address: not open yet
        self._held: set[TcpLink] = set()  # not read from, for the disk is behind
        self._is_deaf = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._warned: dict[tuple[str, str], float] = {}
        self._callers = Callers(settings.sessions_max)
        self._connecting = asyncio.Semaphore(_CONNECTING_MAX)

    def attach(self, host: Host, transport: Transport) -> None:
        """Say where bytes and news go; the transport needs a network before it exists itself."""
        self._host = host
        self._transport = transport
        host.relieved = self._read_again

    @property
    def addresses(self) -> list[str]:
        """Where we listen, for people."""
        sockets = () if self._server is None else self._server.sockets
        return [endpoint(*listening.getsockname()[:2]) for listening in sockets]

    @property
    def open_links(self) -> list[TcpLink]:
        return list(self._links)

    @property
    def links(self) -> int:
        return len(self._links)

    @property
    def bytes_received(self) -> int:
        """From peers since the start; counted by the sessions, so a message costs nothing here."""
        return self._closed_received + sum(s.bytes_received for s in self._link_sessions())

    @property
    def bytes_sent(self) -> int:
        return self._closed_sent + sum(s.bytes_sent for s in self._link_sessions())

    def _link_sessions(self) -> list[Session]:
        return [link.session for link in self._links if link.session is not None]

    # Network, called by the transport inside a turn

    def resolve(self, peer: Peer, host: str) -> None:
        self._start(self._resolve(peer, host))

    def connect(self, session: Session, address: str) -> None:
        self._start(self._connect(session, address))

    def send_datagram(self, data: bytes, address: str, port: int) -> None:
        """A ping, or the answer to the one that is being heard."""
        self._pings.send(data, address, port)

    # the service

    async def listen(self) -> None:
        """Take the ports; ListenError if somebody has them. Nothing is accepted yet."""
        try:
            self._server = await self._loop.create_server(
                lambda: TcpLink(self, None),
                self._bind,
                self._port,
                reuse_address=True,  # old connections of ours may still be in TIME_WAIT
                start_serving=False,
            )
        except OSError as error:
            raise cannot_listen(error, "TCP", self._bind, self._port) from error
        try:
            await self._pings.listen()
        except ListenError:
            self.stop_accepting()
            raise

    async def accept(self) -> None:
        """Let peers in; the transport has started."""
        assert self._server is not None
        try:
            await self._server.start_serving()
        except OSError as error:
            raise cannot_listen(error, "TCP", self._bind, self._port) from error

    def stop_accepting(self) -> None:
        if self._server is not None:
            # asyncio loses a socket that it accepted just before its server is closed: first
            # nothing new, then, behind what the loop has under way already, the end.
            for listening in self._server.sockets:
                self._loop.remove_reader(listening.fileno())
            self._loop.call_soon(self._server.close)
        self._pings.close()

    def stop_reading(self) -> None:
        """Take nothing more from peers; what was taken can still be acknowledged."""
        self._is_deaf = True
        for link in self._links:
            link.pause_reading()

    async def close(self, seconds: float = CLOSING_SECONDS) -> None:
        """Let the last bytes of closed connections out, for a while; then cut all that is left."""
        self.stop_accepting()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _ in range(_TICKS_TO_ACCEPT):
            await asyncio.sleep(0)
        deadline = self._loop.time() + seconds
        while self._links and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        for link in list(self._links):
            link.abort()
        await asyncio.sleep(0)  # the loop tells the links
        self.resolver.close()

    # the links

    def link_made(self, link: TcpLink) -> None:
        self._links.add(link)
        if link.session is not None:
            self._host.handle(self._transport.connected, link.session, link)
            return
        self._callers.came(link)
        self._opening[link.address] += 1
        link.is_opening = True
        reason = self._reason_to_refuse(link.address)
        if not reason:
            link.session = self._host.handle(self._transport.accepted, link, link.address)
            reason = "" if link.session is not None else "too many sessions"
        if reason:
            self._refuse(link, reason)
        else:
            self.accepted += 1

    def link_received(self, link: TcpLink, data: bytes) -> None:
        session = link.session
        assert session is not None
        self._host.handle(self._transport.data_received, session, data)
        if link.is_opening and session.state is SessionState.OPEN:
            self._no_longer_opening(link)
        if self._host.is_congested:
            self._held.add(link)
            link.pause_reading()
        greedy = self._callers.keeps(link, session.pending)
        if greedy is not None and greedy.session is not None:
            reason = "too many bytes of packets that are not whole are waiting"
            self._host.handle(self._transport.connection_lost, greedy.session, reason)
            self._callers.keeps(greedy, 0)

    def link_lost(self, link: TcpLink, problem: str | None) -> None:
        """The connection is gone; `problem` is None if we closed it ourselves."""
        if link in self._links and link.session is not None:
            self._closed_received += link.session.bytes_received
            self._closed_sent += link.session.bytes_sent
        self._links.discard(link)
        self._held.discard(link)
        self._callers.left(link)
        if link.is_opening:
            self._no_longer_opening(link)
        if problem is not None and link.session is not None:
            self._host.handle(self._transport.connection_lost, link.session, problem)

    def link_writable(self, link: TcpLink) -> None:
        if link.session is not None and not link.is_closed:
            self._host.handle(self._transport.writable, link.session)

    def _datagram_received(self, data: bytes, address: str, port: int, is_answer: bool) -> None:
        event = partial(self._transport.datagram_received, is_answer=is_answer)
        self._host.handle(event, data, address, port)

    def _reason_to_refuse(self, address: str) -> str:
        if self._opening[address] > OPENING_MAX:
            return "too many connections of this address are not open yet"
        if self._callers.are_too_many(address):
            return "too many connections of this address"
        return ""

    def _refuse(self, link: TcpLink, reason: str) -> None:
        self.refused[reason] += 1
        link.abort()
        now = self._loop.time()
        key = link.address, reason
        if now - self._warned.get(key, -_WARN_SECONDS) >= _WARN_SECONDS:
            if len(self._warned) >= _WARNED_MAX:
                self._warned.clear()
            self._warned[key] = now
            _log.warning('connection refused peer=%s reason="%s"', link.address, reason)

    def _no_longer_opening(self, link: TcpLink) -> None:
        link.is_opening = False
        self._opening[link.address] -= 1
        if not self._opening[link.address]:
            del self._opening[link.address]

    def _read_again(self) -> None:
        held, self._held = self._held, set()
        for link in () if self._is_deaf else held:
            link.resume_reading()

    # what takes time

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, session: Session, address: str) -> None:
        link = TcpLink(self, session)
        local = None if is_any(self._bind) else (self._bind, 0)  # any port: QB-2.1.1-06
        try:
            async with self._connecting, asyncio.timeout(CONNECT_SECONDS):
                await self._loop.create_connection(
                    lambda: link,
                    address,
                    self._port,  # QB-2.1.1-05
                    local_addr=local,
                )
        except OSError as error:  # a TimeoutError is one
            if not link.is_made:  # else the transport hears of it as a lost connection
                status, problem = connection_failure(error)
                where = endpoint(address, self._port)
                self._host.handle(
                    self._transport.connect_failed, session, status, f"{where}: {problem}"
                )

    async def _resolve(self, peer: Peer, host: str) -> None:
        addresses, problem = await self.resolver.addresses_of(host)
        self._host.handle(self._transport.resolved, peer, addresses, problem)
