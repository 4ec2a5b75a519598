"""The IP addresses of this computer, as the kernel lists them."""

from __future__ import annotations

import socket
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

_IPV4_TABLE: Final = Path("/proc/net/fib_trie")
_IPV6_TABLE: Final = Path("/proc/net/if_inet6")


def local_addresses(ipv4: Path = _IPV4_TABLE, ipv6: Path = _IPV6_TABLE) -> frozenset[str]:
    """Every address under which a message could mean us; loopback among them."""
    found = {"127.0.0.1", "::1", *_ipv4(ipv4), *_ipv6(ipv6)}
    return frozenset(found)


def _ipv4(table: Path) -> set[str]:
    """A leaf of the routing table that says `/32 host LOCAL` is an address of ours."""
    addresses: set[str] = set()
    leaf = ""
    for line in _lines(table) or _asked():
        word, _, rest = line.strip().partition(" ")
        if word == "|--":
            leaf = rest
        elif word == "/32" and rest == "host LOCAL":
            addresses.add(leaf)
    return addresses


def _ipv6(table: Path) -> set[str]:
    return {str(IPv6Address(bytes.fromhex(line.split()[0]))) for line in _lines(table)}


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text("ascii").splitlines()
    except OSError:
        return []


def _asked() -> list[str]:
    """Without the table: what the name of this computer leads to, in the same form."""
    try:
        infos = socket.getaddrinfo(socket.gethostname(), None, family=socket.AF_INET)
    except OSError:
        return []
    return [line for info in infos for line in (f"|-- {info[4][0]}", "/32 host LOCAL")]
