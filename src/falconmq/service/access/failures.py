"""Wrong tokens, counted by the address they come from.

A secret cannot be guessed; the limit spares the log and the processor, and shows whoever tries that
it is of no use. A right token is never turned away: behind one proxy or one NAT there are many, and
one of them with an old token must not lock out the others.
"""

from __future__ import annotations

import ipaddress
import time
from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 10
WINDOW_SECONDS: Final = 60.0
_ADDRESSES: Final = 10_000  # remembered; the one that failed longest ago makes room
_IPV6_PREFIX: Final = 64  # one customer has that many bits for himself


class Failures:
    """How often an address showed wrong tokens lately. Memory is bounded, time is handed in."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        most: int = MOST,
        window_seconds: float = WINDOW_SECONDS,
        addresses: int = _ADDRESSES,
    ) -> None:
        self._clock = clock
        self._most = most
        self._window = window_seconds
        self._addresses = addresses
        self._failed: dict[str, deque[float]] = {}  # by address, the latest failure last

    def __len__(self) -> int:
        return len(self._failed)

    def add(self, address: str) -> float:
        """One more: 0, or after how many seconds this address may fail again."""
        now, key = self._clock(), _network(address)
        times = self._failed.pop(key, None) or deque(maxlen=self._most)
        while times and times[0] <= now - self._window:
            times.popleft()
        wait = times[0] + self._window - now if len(times) == self._most else 0.0
        if not wait:  # tries during the wait do not prolong it
            times.append(now)
        if len(self._failed) >= self._addresses:
            del self._failed[next(iter(self._failed))]
        self._failed[key] = times
        return wait


def _network(address: str) -> str:
    """Whom an address belongs to."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
