"""Can another queue manager be reached? A ping and a connection, each with its time.

The ping is MSMQ's own (UDP 3527, MQQB 3.1.7.6), from a socket of its own: the answer comes to the
port it left from. Many hosts do not answer it, so the connection to TCP 1801 is what counts.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from uuid import UUID

from falconmq.transport.pinging import Pinger
from falconmq.transport.settings import PING_PORT, PORT
from falconmq.transport.socket_errors import connection_failure

WELCOME: Final = "welcome"
REFUSED: Final = "refused"
SILENT: Final = "no answer"
NOT_ASKED: Final = "not asked"
_ADDRESSES_MAX: Final = 8  # of one host


@dataclass(frozen=True, slots=True)
class Reached:
    """How one address answered."""

    address: str
    ping: str
    ping_seconds: float | None
    tcp: str  # "connected", or why not
    tcp_seconds: float | None


@dataclass(frozen=True, slots=True)
class Where:
    """From where and to which ports; the service knows its own."""

    identifier: UUID
    bind: str = ""  # our address; "": whatever the system takes
    port: int = PORT
    ping_port: int = PING_PORT
    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names in lower case


async def reach(host: str, where: Where, timeout: float) -> tuple[list[Reached], str]:
    """Ask every address of a host; and why it has none."""
    addresses, problem = await _resolve(host, where)
    asked = [_reach_one(address, where, timeout) for address in addresses[:_ADDRESSES_MAX]]
    return list(await asyncio.gather(*asked)), problem


async def answer(host: str, where: Where, timeout: float) -> dict[str, Any]:
    """The same as `PingAnswer` describes it."""
    found, problem = await reach(host.strip(), where, timeout)
    return {
        "host": host.strip(),
        "is_reachable": any(reached.tcp_seconds is not None for reached in found),
        "problem": problem,
        "port": where.port,
        "ping_port": where.ping_port,
        "addresses": [asdict(reached) for reached in found],
    }


async def _reach_one(address: str, where: Where, timeout: float) -> Reached:
    (ping, ping_seconds), (tcp, tcp_seconds) = await asyncio.gather(
        _ping(address, where, timeout), _connect(address, where, timeout)
    )
    return Reached(address, ping, ping_seconds, tcp, tcp_seconds)


async def _resolve(host: str, where: Where) -> tuple[list[str], str]:
    known = where.hosts.get(host.lower())
    if known:
        return list(known), ""
    try:
        return [str(ipaddress.ip_address(host))], ""
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, where.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no name for DNS"
        return [], f"the name {host} cannot be resolved: {reason}"
    return list(dict.fromkeys(str(info[4][0]) for info in found)), ""


class _Answers(asyncio.DatagramProtocol):
    """Waits for the answer of one address."""

    def __init__(self, pinger: Pinger, answered: asyncio.Future[bool]) -> None:
        self._pinger = pinger
        self._answered = answered

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:
        is_welcome = self._pinger.received(data, address[0])
        if is_welcome is not None and not self._answered.done():
            self._answered.set_result(is_welcome)

    def error_received(self, error: Exception) -> None:
        """Nobody listens there, says its computer."""
        if not self._answered.done():
            self._answered.set_exception(error)


async def _ping(address: str, where: Where, timeout: float) -> tuple[str, float | None]:
    loop = asyncio.get_running_loop()
    pinger, answered = Pinger(where.identifier.bytes_le), loop.create_future()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Answers(pinger, answered),
            local_addr=_local(address, where),
            family=_family(address),
        )
    except OSError:
        return NOT_ASKED, None
    begun = time.perf_counter()
    try:
        transport.sendto(pinger.request(address, 0.0), (address, where.ping_port))
        async with asyncio.timeout(timeout):
            is_welcome = await answered
    except OSError:  # a TimeoutError is one
        return SILENT, None
    finally:
        transport.close()
    return WELCOME if is_welcome else REFUSED, time.perf_counter() - begun


async def _connect(address: str, where: Where, timeout: float) -> tuple[str, float | None]:
    begun = time.perf_counter()
    local = _local(address, where)
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(address, where.port, local_addr=local)
    except OSError as error:
        return connection_failure(error)[1], None
    seconds = time.perf_counter() - begun
    writer.close()
    return "connected", seconds


def _local(address: str, where: Where) -> tuple[str, int] | None:
    """Our own end, if it has an address of its own and that is of the same family."""
    if not where.bind:
        return None
    bind = ipaddress.ip_address(where.bind)
    if bind.is_unspecified or bind.version != ipaddress.ip_address(address).version:
        return None
    return where.bind, 0


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET if ipaddress.ip_address(address).version == 4 else socket.AF_INET6
