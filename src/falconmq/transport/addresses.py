"""Where each queue manager was seen: two addresses for one identifier are worth a word.

A copied data directory gives two queue managers one identifier, and their peers cannot tell them
apart: acknowledgements go to the wrong one. A network in between, or a computer with two addresses,
looks the same and does no harm, so it is a warning and not more.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from typing import Final
from uuid import UUID

_MANAGERS_MAX: Final = 10_000  # whose addresses are remembered
_ADDRESSES_MAX: Final = 8  # of each

_log = logging.getLogger("falconmq.transport")


class Addresses:
    """The addresses of the queue managers that had a session with us."""

    def __init__(self, own: bytes, counters: Counter[str]) -> None:
        self._own = own  # our identifier: nobody else should have it
        self._counters = counters
        self._seen: dict[bytes, set[str]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def of(self, queue_manager: bytes) -> Collection[str]:
        """Where a queue manager was seen."""
        return self._seen.get(queue_manager, ())

    def note(self, queue_manager: bytes, address: str) -> None:
        """A queue manager has opened a session, or taken one of ours."""
        if queue_manager not in self._seen and len(self._seen) >= _MANAGERS_MAX:
            del self._seen[next(iter(self._seen))]  # the one seen first
        seen = self._seen.setdefault(queue_manager, set())
        is_new = address not in seen and len(seen) < _ADDRESSES_MAX
        if is_new:
            seen.add(address)
        if queue_manager == self._own:
            seen.add("here")
        if is_new and len(seen) > 1:
            self._counters["managers with two addresses"] += 1
            _log.warning(
                "one queue manager at two addresses id=%s addresses=%s: "
                "it has several, or its data directory was copied",
                UUID(bytes_le=queue_manager),
                ", ".join(sorted(seen)),
            )
