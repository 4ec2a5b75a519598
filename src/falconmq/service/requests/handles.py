"""Handles and cursors that stay open between requests, and close when nobody uses them any more.

A handle is a queue as somebody opened it (`exclusive` keeps others from receiving), a cursor a
place in it. Each request that names one begins its idle time anew; while one uses it, it stays.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from falconmq import aio
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine
from falconmq.errors import MqStatus, QueueError, ReadError, ResourceError
from falconmq.manager import model
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.states import AccessType
from falconmq.service.requests.endings import OPEN_MAX
from falconmq.service.requests.expiring import Deadline, Expiring
from falconmq.service.requests.finding import find_local, open_queue
from falconmq.service.requests.leases import Leases
from falconmq.service.requests.reading import durable
from falconmq.service.web.problems import NotKnownError


@dataclass(slots=True, eq=False, kw_only=True)
class Opening:
    """Something that is kept open."""

    id: UUID
    queue: aio.Queue
    timeout: float
    deadline: Deadline | None = None
    users: int = 0  # requests that are using it


@dataclass(slots=True, eq=False, kw_only=True)
class Handle(Opening):
    """A queue as somebody opened it."""

    is_exclusive: bool


@dataclass(slots=True, eq=False, kw_only=True)
class OpenCursor(Opening):
    """A place in a queue."""

    cursor: model.Cursor
    is_for_peeking: bool
    handle: UUID | None  # that it was opened with; None: it has the queue open for itself


class UnknownHandleError(NotKnownError, QueueError):
    """No such handle or cursor."""


_Opening = TypeVar("_Opening", bound=Opening)


class _Registry(ABC, Generic[_Opening]):
    """What is open of one kind."""

    kind = ""

    def __init__(self, engine: Engine, expiring: Expiring, leases: Leases) -> None:
        self._engine = engine
        self._expiring = expiring
        self._leases = leases
        self._open: dict[UUID, _Opening] = {}
        self._closings: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def use(self, id: UUID, name: str) -> Iterator[_Opening]:
        """For one request about the queue of that name; UnknownHandleError if it is not open."""
        opening = self._find(id)
        self._engine.look(_check_name, opening.queue.opened, name)
        opening.users += 1
        try:
            yield opening
        finally:
            opening.users -= 1
            self._put_off(opening)

    def extend(self, id: UUID, timeout: float | None) -> dict[str, Any]:
        """Its idle time begins anew, as long as it was or as is said."""
        opening = self._find(id)
        opening.timeout = opening.timeout if timeout is None else timeout
        self._put_off(opening)
        return self.view(opening)

    async def close(self, id: UUID) -> None:
        """Close it; reads that wait end, messages that were leased through it are given back."""
        opening = self._find(id)
        del self._open[id]
        await self._close(opening)

    def view(self, opening: _Opening) -> dict[str, Any]:
        assert opening.deadline is not None
        return {
            "id": str(opening.id),
            "queue": opening.queue.name,
            "timeout": opening.timeout,
            "expires_at": opening.deadline.moment,
        }

    @abstractmethod
    async def _close(self, opening: _Opening) -> None:
        """Let go of it."""

    def _check_room(self) -> None:
        self._expiring.run()
        if len(self._open) >= OPEN_MAX:
            raise ResourceError(
                f"{OPEN_MAX} {self.kind}s are open",
                status=MqStatus.INSUFFICIENT_RESOURCES,
                hint="close some, or wait until those that nobody uses are closed",
            )

    def _add(self, opening: _Opening) -> dict[str, Any]:
        self._open[opening.id] = opening
        self._start(opening)
        return self.view(opening)

    def _find(self, id: UUID) -> _Opening:
        self._expiring.run()
        opening = self._open.get(id)
        if opening is None:
            raise UnknownHandleError(
                f"there is no open {self.kind} {id}",
                status=MqStatus.INVALID_HANDLE,
                hint="nobody used it for too long, it was closed, or the service was restarted",
            )
        return opening

    def _start(self, opening: _Opening) -> None:
        opening.deadline = self._expiring.start(opening.timeout, lambda: self._expire(opening))

    def _put_off(self, opening: _Opening) -> None:
        if opening.deadline is not None:
            opening.deadline.put_off(opening.timeout)

    def _expire(self, opening: _Opening) -> None:
        if opening.users:
            self._start(opening)
        elif self._open.pop(opening.id, None) is not None:
            closing = asyncio.ensure_future(self._close(opening))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)


class Handles(_Registry[Handle]):
    """The handles that callers have."""

    kind = "handle"

    async def open(self, name: str, timeout: float, *, exclusive: bool) -> dict[str, Any]:
        """Open a queue to receive from; QueueError SHARING_VIOLATION if others keep us out."""
        self._check_room()
        queue = await open_queue(self._engine, name, exclusive=exclusive)
        self._engine.run(actions.descriptor, queue.opened, AccessType.RECEIVE)
        return self._add(Handle(id=uuid4(), queue=queue, timeout=timeout, is_exclusive=exclusive))

    def view(self, opening: Handle) -> dict[str, Any]:
        return {**super().view(opening), "exclusive": opening.is_exclusive}

    async def _close(self, opening: Handle) -> None:
        if opening.deadline is not None:
            opening.deadline.cancel()
        await self._leases.release_of(opening.queue.opened)
        await opening.queue.close()


class Cursors(_Registry[OpenCursor]):
    """The cursors that callers have."""

    kind = "cursor"

    def __init__(
        self, engine: Engine, expiring: Expiring, leases: Leases, handles: Handles
    ) -> None:
        super().__init__(engine, expiring, leases)
        self._handles = handles

    async def open(
        self, name: str, timeout: float, *, peek: bool, handle: UUID | None
    ) -> dict[str, Any]:
        """A new one at the start of a queue."""
        self._check_room()
        if handle is not None:
            with self._handles.use(handle, name) as opened:
                return self._open_in(opened.queue, timeout, peek=peek, handle=handle)
        return self._open_in(await open_queue(self._engine, name), timeout, peek=peek, handle=None)

    @contextmanager
    def use(self, id: UUID, name: str, *, peek: bool = True) -> Iterator[OpenCursor]:
        """For one request; its handle is in use as well."""
        handle = self._find(id).handle
        with (
            nullcontext() if handle is None else self._handles.use(handle, name),
            super().use(id, name) as opening,
        ):
            if opening.is_for_peeking and not peek:
                raise ReadError(
                    f"the cursor {id} was opened to peek",
                    status=MqStatus.ACCESS_DENIED,
                    hint="open one without peek to receive with it",
                )
            yield opening

    def view(self, opening: OpenCursor) -> dict[str, Any]:
        return {**super().view(opening), "peek": opening.is_for_peeking}

    def _open_in(
        self, queue: aio.Queue, timeout: float, *, peek: bool, handle: UUID | None
    ) -> dict[str, Any]:
        access = AccessType.PEEK if peek else AccessType.RECEIVE
        cursor, _ = self._engine.run(actions.open_cursor, queue.opened, access)
        return self._add(
            OpenCursor(
                id=uuid4(),
                queue=queue,
                timeout=timeout,
                cursor=cursor,
                is_for_peeking=peek,
                handle=handle,
            )
        )

    async def _close(self, opening: OpenCursor) -> None:
        if opening.deadline is not None:
            opening.deadline.cancel()
        if opening.handle is None:
            await self._leases.release_of(opening.queue.opened)
            await opening.queue.close()
        elif not self._engine.is_closed:
            _, commit = self._engine.run(actions.close_cursor, opening.cursor)
            if commit is not None:
                await durable(self._engine, commit)


def _check_name(core: QueueManagerCore, opened: actions.Opened, name: str) -> None:
    """Whoever names a handle names its queue too: refuse what does not go together."""
    queue = actions.local(opened)
    if find_local(core, name) is not queue:
        raise QueueError(
            f"the handle or cursor is one of {opened}, not of {name}",
            status=MqStatus.INVALID_HANDLE,
            hint="each queue needs a handle of its own",
        )
