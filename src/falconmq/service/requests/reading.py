"""Receiving for a caller who may go away: lock first, delete when the answer is ready.

How to think about it. A reader at the other end of a connection can vanish at any moment. So a
request locks its messages (Dequeue Message Begin, MQDMPR 3.1.7.1.11), the answer is built from
them, and only if the caller is still there they are deleted for good (Dequeue Message End). In all
other cases they are available again, in their old places; so they are after a crash, because a
lock is nothing the store knows.

Between the deletion and the caller's reading of the answer a message can still be lost with the
caller. Whoever cannot afford that takes a lease (`requests.leases`): then the deletion is a request
of its own, and the lock lives until then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, Self

from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Event, Wait
from falconmq.embedded.messages import from_position
from falconmq.embedded.refusals import read_error
from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Cursor, OpenQueueDescriptor, ReadResult, WaitingRead
from falconmq.manager.positions import START, MessagePosition
from falconmq.manager.reading import (
    dequeue_message_begin,
    dequeue_message_end,
    read_message_by_lookup_identifier,
)
from falconmq.manager.states import AccessType, SeekAction
from falconmq.manager.waiting import end_waiting_read
from falconmq.message import Message
from falconmq.store import Commit

ANSWER_BYTES: Final = 8 * 1024 * 1024  # an answer takes no more messages beyond this
_P = ParamSpec("_P")

Outcome = ReadResult | WaitingRead
Begun = tuple[Outcome, Commit | None]


class Hold:
    """Messages that one request has locked: `async with Hold(...) as hold`.

    At the end of the block what was not kept is released.
    """

    def __init__(self, engine: Engine, opened: actions.Opened) -> None:
        self._engine = engine
        self._opened = opened
        self.positions: list[MessagePosition] = []

    @property
    def messages(self) -> list[Message]:
        """The locked messages, made anew with every look."""
        return [from_position(position) for position in self.positions]

    def take_now(self, count: int) -> bool:
        """Lock up to `count` messages that are there; False if `take` has to see to the rest.

        So it has if there is none, and if one of them is still being written.
        """
        return self._lock_what_is_there(count) is None and bool(self.positions)

    async def take(self, count: int, timeout: float) -> None:
        """Lock up to `count` messages; wait for the first, take the others if they are there."""
        await self._until_durable(self._lock_what_is_there(count))
        if self.positions or timeout <= 0:
            return
        await self._read_one(timeout, _begin, timeout, None)
        if self.positions and count > 1:
            await self._until_durable(self._lock_what_is_there(count))

    async def take_by_lookup_id(
        self, lookup_id: int, seek: SeekAction = SeekAction.CURRENT
    ) -> None:
        """Lock this message, or one near it; ReadError MESSAGE_NOT_FOUND if it is not there."""
        await self._read_one(None, _begin_by_id, lookup_id, seek)

    async def take_at(self, cursor: Cursor, timeout: float) -> None:
        """Lock the message at a cursor, or the next one; wait for one at the end of the queue."""
        await self._read_one(timeout, _begin, timeout, cursor)

    def hand_over(self) -> Hold:
        """The same messages for somebody who keeps them longer; this one lets go of them."""
        other = Hold(self._engine, self._opened)
        other.positions, self.positions = self.positions, []
        return other

    async def keep(self) -> None:
        """Delete the messages for good; durable when this returns."""
        positions, self.positions = self.positions, []
        status, commit = self._engine.run(_end, self._opened, positions, delete=True)
        if commit is not None:
            await durable(self._engine, commit)
        if status is not MqStatus.OK:
            raise read_error(self._opened, status, None)

    def release(self) -> None:
        """Give the messages back, to their old places."""
        positions, self.positions = self.positions, []
        if positions and not self._engine.is_closed:
            self._engine.run(_end, self._opened, positions, delete=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def _lock_what_is_there(self, count: int) -> Commit | None:
        """Lock it in one turn; what has to be durable before anybody may see it."""
        wait = Wait(never_told)
        result, commit = self._engine.begin_read(
            wait, _begin_all, self._opened, count, self.positions
        )
        self._engine.end_read(wait)
        assert isinstance(result, ReadResult)
        if result.status is not MqStatus.OK:
            raise read_error(self._opened, result.status, None)
        return commit

    async def _read_one(
        self,
        timeout: float | None,
        event: Event[Concatenate[actions.Opened, Wait, _P], Outcome],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> None:
        engine, opened = self._engine, self._opened

        def begin(wait: Wait) -> Begun:
            return engine.begin_read(wait, event, opened, wait, *args, **kwargs)

        def give_up(outcome: Outcome) -> None:
            if not engine.is_closed:
                engine.run(_give_up, opened, outcome)

        position = await read_one(engine, opened, timeout, begin, give_up)
        if position is not None:
            self.positions.append(position)

    async def _until_durable(self, commit: Commit | None) -> None:
        if commit is not None:  # the messages themselves are still being written
            await durable(self._engine, commit)


async def read_one(
    engine: Engine,
    opened: actions.Opened,
    timeout: float | None,
    begin: Callable[[Wait], Begun],
    give_up: Callable[[Outcome], None],
) -> MessagePosition | None:
    """One read, which may wait; None if nothing came in time. ReadError if it is refused.

    `give_up` undoes it if the caller goes away before it has what it wanted.
    """
    loop = asyncio.get_running_loop()
    told = loop.create_future()
    wait = Wait(lambda: _ring(loop, told))
    outcome, commit = begin(wait)
    result = outcome
    try:
        if isinstance(result, WaitingRead):
            await told
            result, commit = engine.result_of(wait, result)
        if commit is not None:  # the message itself is still being written
            await durable(engine, commit)
    except Exception:
        raise
    except BaseException:  # cancelled
        give_up(outcome)
        raise
    finally:
        engine.end_read(wait)
    if result.position is None and result.status is not MqStatus.IO_TIMEOUT:
        raise read_error(opened, result.status, timeout)
    return result.position


def unwritten(positions: list[MessagePosition]) -> MessagePosition | None:
    """One of them that is still being written."""
    return next((each for each in positions if each.is_written and not each.is_stored), None)


def _begin(
    core: QueueManagerCore,
    opened: actions.Opened,
    wait: Wait,
    timeout: float,
    cursor: Cursor | None,
) -> Outcome:
    actions.local(opened)
    access = actions.descriptor(core, opened, AccessType.RECEIVE)
    return dequeue_message_begin(core, access, timeout=timeout, cursor=cursor, tag=wait)


def _begin_all(
    core: QueueManagerCore, opened: actions.Opened, count: int, held: list[MessagePosition]
) -> ReadResult:
    """Dequeue Message Begin for as many messages as are there; `held` gets them, not decoded.

    The position of the result is one that is still being written, if there is any: what covers
    the last write covers them all.
    """
    queue = actions.local(opened)
    access = actions.descriptor(core, opened, AccessType.RECEIVE)
    if access.queue is not queue:
        return ReadResult(MqStatus.QUEUE_NOT_AVAILABLE)
    positions, size = queue.positions, sum(position.size for position in held)
    while len(held) < count and size < ANSWER_BYTES:
        lookup_id = positions.after(START, peek=False)
        position = None if lookup_id is None else positions.find(lookup_id, decode=False)
        if position is None:
            break
        positions.hold(position)
        held.append(position)
        size += position.size
    return ReadResult(MqStatus.OK, unwritten(held))


def _begin_by_id(
    core: QueueManagerCore, opened: actions.Opened, _: Wait, lookup_id: int, seek: SeekAction
) -> Outcome:
    actions.local(opened)
    access = actions.descriptor(core, opened, AccessType.RECEIVE)
    return read_message_by_lookup_identifier(
        core, access, lookup_id, seek, peek=False, two_phase=True
    )


def _end(
    core: QueueManagerCore,
    opened: actions.Opened,
    positions: list[MessagePosition],
    *,
    delete: bool,
) -> MqStatus:
    """All of them; the first status that is not OK tells why one could not."""
    access = actions.descriptor(core, opened, AccessType.RECEIVE)
    ended = [_end_one(core, access, position, delete=delete) for position in positions]
    return next((status for status in ended if status is not MqStatus.OK), MqStatus.OK)


def _end_one(
    core: QueueManagerCore, access: OpenQueueDescriptor, position: MessagePosition, *, delete: bool
) -> MqStatus:
    if position.queue.positions.held.get(position.lookup_id) is not position:
        # A write failed, and memory was read from the store again: nobody holds it any more.
        return MqStatus.QUEUE_NOT_AVAILABLE if access.queue is None else MqStatus.STALE_HANDLE
    return dequeue_message_end(core, access, position, delete=delete)


def _give_up(core: QueueManagerCore, opened: actions.Opened, outcome: Outcome) -> None:
    """Nobody waits any more; a message that came in the same moment is available again."""
    if isinstance(outcome, WaitingRead):
        end_waiting_read(core, outcome, MqStatus.OPERATION_CANCELLED)
    result = outcome.result if isinstance(outcome, WaitingRead) else outcome
    if result is not None and result.position is not None:
        _end(core, opened, [result.position], delete=False)


async def durable(engine: Engine, commit: Commit) -> None:
    """Wait until a commit is on disk; raises why it is not."""
    if not commit.is_done:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        commit.add_done_callback(lambda _: _ring(loop, done))
        await done
    if commit.error is not None:
        raise engine.failure(commit) from None


def _ring(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    """Wake a task from any thread."""
    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits there any more
        loop.call_soon_threadsafe(_wake, future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def never_told() -> None:
    """A read of what is there never waits."""
