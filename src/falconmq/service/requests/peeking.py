"""Looking at messages: nothing is locked, and nothing is decoded that only passes through."""

from __future__ import annotations

from typing import Final

from falconmq import aio
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Wait
from falconmq.embedded.refusals import read_error
from falconmq.errors import MqStatus, ReadError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Cursor, ReadResult
from falconmq.manager.positions import START, MessagePosition
from falconmq.manager.states import AccessType, SeekAction
from falconmq.service.requests.reading import (
    Begun,
    Outcome,
    durable,
    never_told,
    read_one,
    unwritten,
)
from falconmq.service.schemas import ReceiveRequest

ANSWER_BYTES: Final = 8 * 1024 * 1024  # an answer takes no more messages beyond this


async def look(engine: Engine, queue: aio.Queue, given: ReceiveRequest) -> list[MessagePosition]:
    """The messages that a request wants to see; none if none came in time."""
    if not given.has_place and given.after is None and given.timeout:
        try:
            await queue.peek(timeout=given.timeout)
        except ReadError as error:
            if error.status is MqStatus.IO_TIMEOUT:
                return []
            raise
    seen: list[MessagePosition] = []
    wait = Wait(never_told)
    if given.has_place:
        lookup_id, seek = place_of(given)
        result, commit = engine.begin_read(wait, _look_by_id, queue.opened, lookup_id, seek)
    else:
        after = START if given.after is None else int(given.after)
        result, commit = engine.begin_read(wait, _look, queue.opened, given.count, after, seen)
    engine.end_read(wait)
    assert isinstance(result, ReadResult)
    if result.status is not MqStatus.OK:
        raise read_error(queue.opened, result.status, None)
    if commit is not None:
        await durable(engine, commit)
    return [result.position] if given.has_place and result.position else seen


async def look_at(
    engine: Engine, queue: aio.Queue, cursor: Cursor, given: ReceiveRequest
) -> list[MessagePosition]:
    """The message at a cursor, or the one behind it; none if none came in time."""
    opened, timeout = queue.opened, given.timeout

    def begin(wait: Wait) -> Begun:
        if given.next:
            return engine.begin_read(wait, actions.peek_next, cursor, timeout, wait)
        return engine.begin_read(wait, actions.peek, opened, timeout, cursor, wait)

    def give_up(outcome: Outcome) -> None:
        engine.give_up(outcome, None, peek=True)

    position = await read_one(engine, opened, timeout, begin, give_up)
    return [] if position is None else [position]


def place_of(given: ReceiveRequest) -> tuple[int, SeekAction]:
    """Which message a request names."""
    seek = SeekAction.CURRENT if given.seek is None else SeekAction[given.seek.upper()]
    return int(given.lookup_id or 0), seek


def _look(
    core: QueueManagerCore,
    opened: actions.Opened,
    count: int,
    after: int,
    seen: list[MessagePosition],
) -> ReadResult:
    """Peek at the messages behind a place; `seen` gets them, not decoded.

    The position of the result is one that is still being written, if there is any.
    """
    queue = actions.local(opened)
    actions.descriptor(core, opened, AccessType.PEEK)
    positions, size = queue.positions, 0
    while len(seen) < count and size < ANSWER_BYTES:
        lookup_id = positions.after(after, peek=True)
        position = None if lookup_id is None else positions.find(lookup_id, decode=False)
        if position is None:
            break
        seen.append(position)
        after = position.lookup_id
        size += position.size
    return ReadResult(MqStatus.OK, unwritten(seen))


def _look_by_id(
    core: QueueManagerCore, opened: actions.Opened, lookup_id: int, seek: SeekAction
) -> Outcome:
    actions.local(opened)
    return actions.read_by_lookup_id(core, opened, lookup_id, seek, None, peek=True)
