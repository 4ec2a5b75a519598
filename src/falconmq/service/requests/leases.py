"""Leases: messages that a caller holds between requests, until it commits, aborts or is too late.

A lease is the two-phase read of `reading`, with the second phase in the caller's hands: the
messages are locked, the caller works, and commits: now they are deleted. Abort, time-out, a closed
handle and a restart give them back, to their old places. It needs no transactional queue.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from falconmq import aio
from falconmq.embedded import actions
from falconmq.errors import MqStatus, TransactionError
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import PositionState
from falconmq.service.requests.endings import End, Json, Registry, Work
from falconmq.service.requests.reading import Hold
from falconmq.service.state_schemas import State


@dataclass(slots=True, eq=False, kw_only=True)
class OpenLease(Work):
    """Messages that a caller holds."""

    hold: Hold
    queue: aio.Queue
    is_owner: bool  # of the queue object: it is closed with the lease
    count: int


class Leases(Registry[OpenLease]):
    """The leases that callers have."""

    kind = "lease"
    unknown = MqStatus.STALE_HANDLE

    def check_room(self, lease_id: UUID | None = None) -> None:
        """Refuse one more, or one whose id is taken, before any message is locked."""
        self._check_room()
        if lease_id in self._open or lease_id in self._ended:
            raise TransactionError(
                f"there was a lease {lease_id} already",
                status=MqStatus.TRANSACTION_ENLIST,
                hint="each lease needs an id of its own",
            )

    def grant(
        self, id: UUID, hold: Hold, queue: aio.Queue, timeout: float, *, is_owner: bool
    ) -> None:
        """Keep what a request has locked; it takes the hold over, and the queue if it owns that."""
        self.check_room(id)  # again: another request may have come first while this one waited
        count = len(hold.positions)
        work = OpenLease(
            id, timeout, hold=hold.hand_over(), queue=queue, is_owner=is_owner, count=count
        )
        self._add(work, timeout)

    async def release_of(self, opened: actions.Opened) -> None:
        """The queue is closed that these messages were taken from."""
        concerned = [work for work in self._open.values() if work.queue.opened is opened]
        for work in concerned:
            if work.ending is None:
                self._begin_end(work, State.ABORTED, "its handle or cursor was closed")
        endings = [work.ending for work in concerned if work.ending is not None]
        await asyncio.gather(*endings, return_exceptions=True)

    def holders(self) -> dict[MessagePosition, UUID]:
        """Which lease holds which place."""
        return {place: work.id for work in self._open.values() for place in work.hold.positions}

    def view(self, work: OpenLease) -> Json:
        assert work.deadline is not None
        return {
            "id": str(work.id),
            "state": State.ACTIVE,
            "queue": work.queue.name,
            "messages": work.count,
            "purged": 0,
            "timeout": work.timeout,
            "expires_at": work.deadline.moment,
            "reason": "",
        }

    async def _finish(self, work: OpenLease, wanted: State) -> End:
        purged = 0
        try:
            if wanted is State.COMMITTED:
                states = [position.state for position in work.hold.positions]
                purged = states.count(PositionState.PURGE_PENDING)
                await work.hold.keep()
            else:
                work.hold.release()
        finally:
            if work.is_owner:
                await work.queue.close()
        return End(wanted, {"purged": purged})
