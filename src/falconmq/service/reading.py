"""Receiving for a caller who may go away: lock first, delete when the answer is ready.

How to think about it. A reader at the other end of a connection can vanish at any moment. So a
request locks its messages (Dequeue Message Begin, MQDMPR 3.1.7.1.11), the answer is built from
them, and only if the caller is still there they are deleted for good (Dequeue Message End). In all
other cases they are available again, in their old places; so they are after a crash, because a
lock is nothing the store knows.

Between the deletion and the caller's reading of the answer a message can still be lost with the
caller. Whoever cannot afford that peeks, works, and then receives by the lookup id.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Self

from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Wait
from falconmq.embedded.messages import from_position
from falconmq.embedded.refusals import read_error
from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor, ReadResult, WaitingRead
from falconmq.manager.positions import MessagePosition
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


class Hold:
    """Messages that one request has locked: `async with Hold(...) as hold`.

    At the end of the block what was not kept is released.
    """

    def __init__(self, engine: Engine, opened: actions.Opened) -> None:
        self._engine = engine
        self._opened = opened
        self._positions: list[MessagePosition] = []
        self.messages: list[Message] = []

    async def take(self, count: int, timeout: float) -> None:
        """Lock up to `count` messages; wait for the first, take the others if they are there."""
        size = 0
        while len(self.messages) < count and size < ANSWER_BYTES:
            if not await self._take_one(0 if self.messages else timeout):
                return
            size += self._positions[-1].size

    async def take_by_lookup_id(self, lookup_id: int) -> None:
        """Lock this message; ReadError MESSAGE_NOT_FOUND if it is not there."""
        wait = Wait(_nothing)
        result, commit = self._engine.begin_read(wait, _begin_by_id, self._opened, lookup_id)
        self._engine.end_read(wait)
        assert isinstance(result, ReadResult)
        if result.position is None:
            raise read_error(self._opened, result.status, None)
        await self._hold(result.position, commit)

    async def keep(self) -> None:
        """Delete the messages for good; durable when this returns."""
        positions, self._positions = self._positions, []
        status, commit = self._engine.run(_end, self._opened, positions, delete=True)
        if commit is not None:
            await _durable(self._engine, commit)
        if status is not MqStatus.OK:
            raise read_error(self._opened, status, None)

    def release(self) -> None:
        """Give the messages back, to their old places."""
        positions, self._positions = self._positions, []
        self.messages.clear()
        if positions and not self._engine.is_closed:
            self._engine.run(_end, self._opened, positions, delete=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    async def _take_one(self, timeout: float) -> bool:
        engine, loop = self._engine, asyncio.get_running_loop()
        told = loop.create_future()
        wait = Wait(lambda: _ring(loop, told))
        outcome, commit = engine.begin_read(wait, _begin, self._opened, timeout, wait)
        result = outcome
        try:
            if isinstance(result, WaitingRead):
                await told
                result, commit = engine.result_of(wait, result)
        except BaseException:
            if isinstance(outcome, WaitingRead) and not engine.is_closed:
                engine.run(_give_up, self._opened, outcome)
            raise
        finally:
            engine.end_read(wait)
        if result.position is None:
            if result.status is MqStatus.IO_TIMEOUT:
                return False
            raise read_error(self._opened, result.status, timeout)
        await self._hold(result.position, commit)
        return True

    async def _hold(self, position: MessagePosition, commit: Commit | None) -> None:
        self._positions.append(position)
        if commit is not None:  # the message itself is still being written
            await _durable(self._engine, commit)
        self.messages.append(from_position(position))


def _begin(
    core: QueueManagerCore, opened: actions.Opened, timeout: float, wait: Wait
) -> ReadResult | WaitingRead:
    actions.local(opened)
    access = actions.descriptor(core, opened, AccessType.RECEIVE)
    return dequeue_message_begin(core, access, timeout=timeout, tag=wait)


def _begin_by_id(
    core: QueueManagerCore, opened: actions.Opened, lookup_id: int
) -> ReadResult | WaitingRead:
    actions.local(opened)
    access = actions.descriptor(core, opened, AccessType.RECEIVE)
    return read_message_by_lookup_identifier(
        core, access, lookup_id, SeekAction.CURRENT, peek=False, two_phase=True
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


def _give_up(core: QueueManagerCore, opened: actions.Opened, read: WaitingRead) -> None:
    """Nobody waits any more; a message that came in the same moment is available again."""
    end_waiting_read(core, read, MqStatus.OPERATION_CANCELLED)
    if read.result is not None and read.result.position is not None:
        _end(core, opened, [read.result.position], delete=False)


async def _durable(engine: Engine, commit: Commit) -> None:
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


def _nothing() -> None:
    """A read by lookup id never waits."""
