"""Consumers: those who read queues by arrival numbers and say how far they are done.

How to think about it. A consumer is a name that lasts: how far it is in each queue is in the store.
A run of it claims queues, and has them for itself while its lease lives: nobody else may receive
there. It reads ranges, which takes nothing away, and acknowledges: every message below a number is
removed as received, in the same write as the number itself. So after a crash of anybody the store
tells where to go on, and what was acknowledged is gone, no more and no less.

Each claim gets a fence, one more than the last. A run that was thought dead and wakes up shows an
old fence, and is refused: a newer run has the queues. The lease is in memory alone. When it is
over, or the service was restarted, the newest fence may take it again, if nobody else came first.

One request of a consumer at a time: each begins when all writes before it are done, so what the
store says is what is true.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from falconmq.embedded import actions
from falconmq.embedded.engine import Engine
from falconmq.errors import MqStatus, QueueError, TransactionError
from falconmq.manager.arrivals import count_from
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.states import AccessType, ShareMode
from falconmq.service.requests.acknowledging import Progress, check_offsets, remove_some
from falconmq.service.requests.consumer_records import (
    Place,
    Record,
    all_records,
    check_name,
    forget_record,
    read_record,
    write_record,
)
from falconmq.service.requests.expiring import Deadline, Expiring
from falconmq.service.requests.finding import open_local
from falconmq.service.requests.ranges import settled
from falconmq.service.requests.reading import durable
from falconmq.service.web.problems import NotKnownError
from falconmq.store import Commit

Json = dict[str, Any]


class UnknownConsumerError(NotKnownError, QueueError):
    """No such consumer."""


@dataclass(slots=True, eq=False)
class Lease:
    """Queues that a run of a consumer has for itself."""

    consumer: str
    opened: dict[int, actions.Opened]  # by queue number
    deadline: Deadline


class Consumers:
    """All consumers of a queue manager; on the event loop only."""

    def __init__(self, engine: Engine, expiring: Expiring) -> None:
        self._engine = engine
        self._expiring = expiring
        self._leases: dict[str, Lease] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # What a run does

    async def claim(self, name: str, queues: list[str], seconds: float) -> Json:
        """Take queues over from the last run of this consumer, or for the first time."""
        check_name(name)
        async with self._alone(name):
            (lease, record), commit = self._engine.run(self._claim, name, queues, seconds)
            try:
                await self._durable(commit)
            except BaseException:
                self._end(lease)
                raise
            return {
                "consumer": name,
                "fence": record.fence,
                "expires_at": lease.deadline.moment,
                "queues": {
                    opened.path_name: {"next": record.places[number].next}
                    for number, opened in lease.opened.items()
                },
            }

    async def acknowledge(
        self, name: str, fence: int, queues: dict[str, int], seconds: float
    ) -> Json:
        """Remove every message below a number from each queue; durable when this returns."""
        async with self._alone(name):
            (record, lease), _ = self._engine.run(self._resume, name, fence, seconds)
            numbers = self._engine.look(check_offsets, name, lease.opened, queues)
            progress = Progress()
            for number, stop in numbers.items():
                async for _ in self._remove(lease, record, number, stop, progress):
                    lease.deadline.put_off(seconds)
            await self._durable(progress.commit)
            lease.deadline.put_off(seconds)
            return {
                "removed": progress.removed,
                "locked": progress.locked,
                "expires_at": lease.deadline.moment,
            }

    async def renew(self, name: str, fence: int, seconds: float) -> Json:
        """Keep the queues longer, from now on."""
        async with self._alone(name):
            (_, lease), _ = self._engine.run(self._resume, name, fence, seconds)
            return {"expires_at": lease.deadline.moment}

    async def release(self, name: str, fence: int) -> None:
        """Let go of the queues; the fence stays the newest."""
        async with self._alone(name):
            self._engine.look(_check_fence, name, fence)
            lease = self._leases.get(name)
            if lease is not None:
                self._end(lease)

    # What others see

    async def forget(self, name: str) -> None:
        """Forget a consumer and how far it was; who runs as it is refused from now on."""
        async with self._alone(name):
            _, commit = self._engine.run(_forget, name)
            await self._durable(commit)
            lease = self._leases.get(name)
            if lease is not None:
                self._end(lease)

    def all(self) -> list[Json]:
        """All consumers with their queues, in the order of their names."""
        self._expiring.run()
        return self._engine.look(self._all)

    def _all(self, core: QueueManagerCore) -> list[Json]:
        return [self._view(core, name, record) for name, record in all_records(core)]

    def _view(self, core: QueueManagerCore, name: str, record: Record) -> Json:
        lease = self._leases.get(name)
        places = [(core.queues[number], place) for number, place in record.places.items()]
        return {
            "name": name,
            "fence": record.fence,
            "is_live": lease is not None,
            "expires_at": None if lease is None else lease.deadline.moment,
            "queues": [
                {
                    "queue": actions.path_of(queue),
                    "next": place.next,
                    "behind": count_from(queue, place.next),
                    "updated_at": _moment(place.updated),
                }
                for queue, place in places
            ],
        }

    # Leases

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """For one request of a consumer, when the writes of those before it are done."""
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            await settled(self._engine)
            self._expiring.run()
            yield

    def _claim(
        self, core: QueueManagerCore, name: str, names: list[str], seconds: float
    ) -> tuple[Lease, Record]:
        record = read_record(core, name) or Record()
        queues = {queue.number: queue for queue in (_find(core, each) for each in names)}
        lease = self._take(core, name, queues.values(), seconds)
        record.fence += 1
        record.claimed = list(queues)
        for number in queues:
            record.places.setdefault(number, Place())
        write_record(core, name, record)
        return lease, record

    def _resume(
        self, core: QueueManagerCore, name: str, fence: int, seconds: float
    ) -> tuple[Record, Lease]:
        """The lease of the newest run, taken again if it was over."""
        record = _check_fence(core, name, fence)
        lease = self._leases.get(name)
        if lease is None:
            queues = [core.queues[number] for number in record.claimed]
            lease = self._take(core, name, queues, seconds)
        lease.deadline.put_off(seconds)
        return record, lease

    def _take(
        self, core: QueueManagerCore, name: str, queues: Iterable[Queue], seconds: float
    ) -> Lease:
        """Have queues for one consumer alone, all or none; what its last run had is used again."""
        before = self._leases.get(name)
        had = {} if before is None else before.opened
        opened: dict[int, actions.Opened] = {}
        try:
            for queue in queues:
                self._refuse_if_taken(queue, name)
                opened[queue.number] = had.get(queue.number) or _open(core, queue)
        except QueueError:
            _close(core, [each for number, each in opened.items() if number not in had])
            raise
        _close(core, [each for number, each in had.items() if number not in opened])
        if before is not None:
            before.deadline.cancel()
        deadline = self._expiring.start(seconds, lambda: self._end(lease))
        lease = self._leases[name] = Lease(name, opened, deadline)
        return lease

    def _refuse_if_taken(self, queue: Queue, name: str) -> None:
        for lease in self._leases.values():
            if lease.consumer != name and queue.number in lease.opened:
                raise QueueError(
                    f"consumer {lease.consumer} has {actions.path_of(queue)} for itself until "
                    f"{lease.deadline.moment}",
                    status=MqStatus.SHARING_VIOLATION,
                    hint="stop it, or wait; to see them all: falconmq consumer list",
                )

    def _end(self, lease: Lease) -> None:
        """Others may have the queues."""
        lease.deadline.cancel()
        if self._leases.get(lease.consumer) is lease:
            del self._leases[lease.consumer]
            if not self._engine.is_closed:
                self._engine.run(_close, list(lease.opened.values()))

    # Acknowledging

    async def _remove(
        self, lease: Lease, record: Record, number: int, stop: int, progress: Progress
    ) -> AsyncIterator[None]:
        """Remove what is below a number, some messages a turn; the disk is one turn behind."""
        reached = 0
        while reached < stop:
            before = progress.commit
            opened = lease.opened[number]
            reached, commit = self._engine.run(
                remove_some, lease.consumer, record, opened, reached, stop, progress
            )
            progress.commit = commit or before
            if before is not None and commit is not None:
                await self._durable(before)
            await asyncio.sleep(0)
            yield

    async def _durable(self, commit: Commit | None) -> None:
        if commit is not None:
            await durable(self._engine, commit)


def _check_fence(core: QueueManagerCore, name: str, fence: int) -> Record:
    record = read_record(core, name)
    if record is None:
        raise _unknown(name)
    if fence != record.fence:
        raise TransactionError(
            f"another run of consumer {name} took over: its fence is {record.fence}, not {fence}",
            status=MqStatus.STALE_HANDLE,
            hint="end this run; only the newest one may go on",
        )
    return record


def _forget(core: QueueManagerCore, name: str) -> None:
    if not forget_record(core, name):
        raise _unknown(name)


def _unknown(name: str) -> UnknownConsumerError:
    return UnknownConsumerError(
        f"there is no consumer {name}",
        status=MqStatus.INVALID_HANDLE,
        hint="it begins with a claim; to see them all: falconmq consumer list",
    )


def _find(core: QueueManagerCore, name: str) -> Queue:
    return actions.local(open_local(core, name))


def _open(core: QueueManagerCore, queue: Queue) -> actions.Opened:
    """A queue for one reader alone."""
    opened = actions.opened_queue(core, queue, ShareMode.DENY_RECEIVE)
    try:
        actions.descriptor(core, opened, AccessType.RECEIVE)
    except QueueError as error:
        if error.status is not MqStatus.SHARING_VIOLATION:
            raise
        raise QueueError(
            f"{opened} is open to receive elsewhere",
            status=MqStatus.SHARING_VIOLATION,
            hint="a consumer needs its queues for itself: stop the other reader first",
        ) from error
    return opened


def _close(core: QueueManagerCore, opened: list[actions.Opened]) -> None:
    for each in opened:
        actions.close(core, each)


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
