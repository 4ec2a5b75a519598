"""The addresses of a host name: from a table, from the name itself, or from DNS."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

_RESOLVERS: Final = 16  # names that are looked up at a time


class Resolver:
    """Looks names up on threads that nobody else waits for.

    `bind` is our own address: only what it can reach is of use. `hosts` are names that need no DNS,
    in lower case.
    """

    def __init__(self, bind: str, port: int, hosts: Mapping[str, Sequence[str]]) -> None:
        self.hosts = hosts  # may be replaced
        self._bind = bind
        self._port = port
        self._threads = ThreadPoolExecutor(_RESOLVERS, "falconmq-names")

    async def addresses_of(self, host: str) -> tuple[Sequence[str], str]:
        """The addresses of a name; without any, why."""
        known = self.hosts.get(host.lower())
        if known:
            return known, ""
        try:
            return [str(ipaddress.ip_address(host))], ""
        except ValueError:
            pass
        try:
            loop = asyncio.get_running_loop()
            family = _family(self._bind)
            found = await loop.run_in_executor(self._threads, self._look_up, host, family)
        except (OSError, UnicodeError) as error:  # a label may be too long for DNS
            reason = error.strerror if isinstance(error, OSError) else "it is no name for DNS"
            return (), f"the name {host} cannot be resolved: {reason}"
        return list(dict.fromkeys(str(info[4][0]) for info in found)), ""

    def _look_up(self, host: str, family: socket.AddressFamily) -> list[Any]:
        """Ask the resolver of the system; it may take its time."""
        return socket.getaddrinfo(host, self._port, family=family, type=socket.SOCK_STREAM)

    def close(self) -> None:
        """Wait for nobody; what is looked up now is of no use any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def is_any(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified


def _family(bind: str) -> socket.AddressFamily:
    """The addresses that a socket bound to ours can reach."""
    if is_any(bind):
        return socket.AF_UNSPEC
    return socket.AF_INET if ipaddress.ip_address(bind).version == 4 else socket.AF_INET6
