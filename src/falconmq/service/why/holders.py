"""Who holds messages that nobody else can read.

A message is held by a transaction that sends, receives or moves it, or by a reader who has locked
it and not said yet how it went: one request, or a lease. The core knows transactions; leases have
their names in the service, which is asked for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from falconmq.manager.model import Queue, Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.service.why.queue_facts import Holding


class Holders:
    """Names for those who hold messages."""

    def __init__(self, leases: Mapping[MessagePosition, UUID] | None = None) -> None:
        self._leases = leases or {}  # by the places that they hold

    def name(self, position: MessagePosition) -> str:
        """Who holds a place, as people read it."""
        if position.transaction is not None:
            return f"transaction {position.transaction.identifier}"
        lease = self._leases.get(position)
        return "a reader" if lease is None else f"lease {lease}"

    def of_queue(self, queue: Queue, now: float) -> tuple[Holding, ...]:
        """All who hold messages of a queue, and how many."""
        counts: Counter[tuple[str, bool, bool]] = Counter()
        oldest: dict[tuple[str, bool, bool], float] = {}
        for position in queue.positions.held.values():
            key = self.name(position), is_being_sent(position), is_prepared(position.transaction)
            counts[key] += 1
            arrived = position.message.arrival_time
            oldest[key] = min(arrived, oldest.get(key, arrived))
        return tuple(
            Holding(
                name,
                count,
                is_sender=sends,
                is_prepared=prepared,
                since_seconds=max(0.0, now - oldest[name, sends, prepared]) if sends else None,
            )
            for (name, sends, prepared), count in counts.most_common()
        )


def is_being_sent(position: MessagePosition) -> bool:
    """Whether nobody could read it yet: the transaction of its sender is open."""
    return position.message.arrival_number == 0


def is_prepared(transaction: Transaction | None) -> bool:
    """Whether an outside coordinator has to say how it ends."""
    is_outside = transaction is not None and not transaction.single_phase
    return is_outside and transaction is not None and transaction.is_prepared
