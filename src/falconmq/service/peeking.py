"""Looking at a queue page by page."""

from __future__ import annotations

import asyncio
from typing import Final

from falconmq import aio
from falconmq.errors import MqStatus, ReadError
from falconmq.manager.states import SeekAction
from falconmq.message import Message
from falconmq.service.reading import ANSWER_BYTES
from falconmq.service.schemas import ReceiveRequest

_PAUSE: Final = 64  # messages after which a long walk lets others work


async def peek(queue: aio.Queue, given: ReceiveRequest) -> list[Message]:
    """The messages that a request wants to see; none if none came in time."""
    try:
        if given.lookup_id is not None:
            return [await queue.peek_by_lookup_id(int(given.lookup_id))]
        if given.after is not None:
            return await _peek_behind(queue, int(given.after), given.count)
        await queue.peek(timeout=given.timeout)
        return await _walk(queue, 0, given.count)
    except ReadError as error:
        if error.status is MqStatus.IO_TIMEOUT:
            return []
        raise


async def _peek_behind(queue: aio.Queue, after: int, count: int) -> list[Message]:
    """The page behind a message. If that was received meanwhile, its place is looked for."""
    found: list[Message] = []
    size, place = 0, after
    while len(found) < count and size < ANSWER_BYTES:
        try:
            message = await queue.peek_by_lookup_id(place, seek=SeekAction.NEXT)
        except ReadError as error:
            if error.status is not MqStatus.MESSAGE_NOT_FOUND:
                raise
            return [*found, *await _walk(queue, place, count - len(found))]
        assert message.lookup_id is not None
        place = message.lookup_id
        size += len(message.body)
        found.append(message)
    return found


async def _walk(queue: aio.Queue, after: int, count: int) -> list[Message]:
    """From the start; lookup ids rise in the order of the queue."""
    found: list[Message] = []
    size = seen = 0
    async for message in queue:
        seen += 1
        if seen % _PAUSE == 0:
            await asyncio.sleep(0)
        if (message.lookup_id or 0) > after:
            found.append(message)
            size += len(message.body)
        if len(found) >= count or size >= ANSWER_BYTES:
            break
    return found
