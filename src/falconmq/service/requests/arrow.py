"""Bulk reading and sending as Arrow streams, page by page.

Reading looks at a page of messages in one short turn and writes it down in a thread; the next page
is looked at when the caller has taken this one. So a queue of a million messages costs the memory
of one page, and messages come and go meanwhile: what is read is what is there when the walk passes.

Sending checks every row before the first message is sent.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any, Final

from falconmq import aio
from falconmq.client import arrow
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Wait
from falconmq.embedded.messages import from_position
from falconmq.embedded.refusals import read_error
from falconmq.errors import FalconMQError, MessageError, MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import ReadResult, Transaction
from falconmq.manager.positions import START, MessagePosition
from falconmq.manager.states import AccessType
from falconmq.message import Message, MessageId
from falconmq.service.requests.reading import durable

PAGE_MESSAGES: Final = 2000
PAGE_BYTES: Final = 4 << 20
TURN_MESSAGES: Final = 500  # that are sent without letting others work
END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"


# Reading


async def browse(
    engine: Engine, queue: aio.Queue, *, after: int = START, count: int | None = None
) -> AsyncIterator[bytes]:
    """An IPC stream of the messages behind a place, at most `count`; the schema comes always."""
    schema = await asyncio.to_thread(arrow.schema)
    yield schema.serialize().to_pybytes()
    left = count
    while left is None or left > 0:
        page = PAGE_MESSAGES if left is None else min(PAGE_MESSAGES, left)
        positions = await _page(engine, queue, page, after)
        if not positions:
            break
        yield await asyncio.to_thread(_write, positions, queue.name)
        after = positions[-1].lookup_id
        left = None if left is None else left - len(positions)
    yield END_OF_STREAM


async def _page(engine: Engine, queue: aio.Queue, count: int, after: int) -> list[MessagePosition]:
    """Some messages behind a place, durable; none at the end."""
    seen: list[MessagePosition] = []
    wait = Wait(_nothing)
    result, commit = engine.begin_read(wait, _look, queue.opened, count, after, seen)
    engine.end_read(wait)
    assert isinstance(result, ReadResult)
    if result.status is not MqStatus.OK:
        raise read_error(queue.opened, result.status, None)
    if commit is not None:
        await durable(engine, commit)
    return seen


def _look(
    core: QueueManagerCore,
    opened: actions.Opened,
    count: int,
    after: int,
    seen: list[MessagePosition],
) -> ReadResult:
    """Peek, without decoding; the position of the result is one that is still being written."""
    queue = actions.local(opened)
    actions.descriptor(core, opened, AccessType.PEEK)
    positions, size = queue.positions, 0
    unwritten = None
    while len(seen) < count and size < PAGE_BYTES:
        lookup_id = positions.after(after, peek=True)
        position = None if lookup_id is None else positions.find(lookup_id, decode=False)
        if position is None:
            break
        seen.append(position)
        after = position.lookup_id
        size += position.size
        if position.is_written and not position.is_stored:
            unwritten = position
    return ReadResult(MqStatus.OK, unwritten)


def _write(positions: list[MessagePosition], queue: str) -> bytes:
    """A record batch, as the stream has it."""
    messages = [from_position(position) for position in positions]
    stored = [position.message for position in positions]
    beside = {
        "arrival_number": [message.arrival_number for message in stored],
        "arrived_at": [int(message.arrival_time * 1_000_000) for message in stored],
        "size": [message.size for message in stored],
    }
    batch = arrow.messages_to_batch(messages, queue, beside=beside)
    return bytes(batch.serialize())


def _nothing() -> None:
    """A read of what is there never waits."""


# Sending


async def take(body: bytes) -> list[Message]:
    """The messages of a stream, all of them checked; MessageError names column and row."""
    return await asyncio.to_thread(_take, body)


def _take(body: bytes) -> list[Message]:
    pa = arrow.load()
    _refuse_compression(pa, body)
    messages: list[Message] = []
    try:
        with pa.ipc.open_stream(body) as reader:
            arrow.check_columns(reader.schema)
            for batch in reader:
                batch.validate(full=True)  # offsets that lie would read what is not theirs
                messages += arrow.table_to_messages(batch, len(messages))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MessageError("stream", f"no Arrow stream: {error}") from error
    return messages


def _refuse_compression(pa: Any, body: bytes) -> None:
    """A few compressed kilobytes can become gigabytes, so batches come as they are."""
    try:
        for message in pa.ipc.MessageReader.open_stream(body):
            if message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()):
                raise MessageError(
                    "stream", "its batches are compressed", hint="write it without compression"
                )
    except (pa.ArrowException, OSError, struct.error) as error:
        raise MessageError("stream", f"no Arrow stream: {error}") from error


def _is_compressed(metadata: bytes) -> bool:
    """Whether a RecordBatch of Message.fbs has its field `compression`.

    The flatbuffer was verified by the reader. A table begins with the distance back to its vtable;
    that has two lengths and then the place of each field, 0 if it is not there.
    """
    message = _u32(metadata, 0)
    header = message + _field(metadata, message, 2)
    return _field(metadata, header + _u32(metadata, header), 3) != 0


def _field(data: bytes, table: int, number: int) -> int:
    vtable = table - struct.unpack_from("<i", data, table)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    found: int = struct.unpack_from("<H", data, vtable + place)[0]
    return found


def _u32(data: bytes, offset: int) -> int:
    found: int = struct.unpack_from("<I", data, offset)[0]
    return found


async def send(
    manager: aio.QueueManager,
    queue: aio.Queue,
    messages: list[Message],
    transaction: bool | aio.Transaction | None,
    sent: list[MessageId],
) -> None:
    """Send what was taken; `sent` has what is sent for good, even if a later one is refused.

    In a transaction of its own all or none; None: if the queue is ours and needs one. In a
    transaction of the caller's, and outside one, those before a refused message are sent.
    """
    engine = manager._engine  # noqa: SLF001  # its turns are not in the Python API
    if transaction is None:
        transaction = queue.is_local and queue.is_transactional
    if transaction is True:
        ids: list[MessageId] = []
        async with manager.transaction() as whole:
            await _send_all(engine, queue, messages, whole, ids)
        sent += ids
    else:
        await _send_all(engine, queue, messages, transaction or None, sent)


async def _send_all(
    engine: Engine,
    queue: aio.Queue,
    messages: list[Message],
    transaction: aio.Transaction | None,
    sent: list[MessageId],
) -> None:
    for start in range(0, len(messages), TURN_MESSAGES):
        used = None if transaction is None else transaction.use()
        some, ids = messages[start : start + TURN_MESSAGES], list[MessageId]()
        try:
            _, commit = engine.run(_send_some, queue.opened, some, used, ids)
        except FalconMQError:
            sent += ids
            raise
        if commit is not None:
            await durable(engine, commit)  # if it cannot be written, nothing of it was sent
        sent += ids


def _send_some(
    core: QueueManagerCore,
    opened: actions.Opened,
    messages: list[Message],
    transaction: Transaction | None,
    sent: list[MessageId],
) -> None:
    for message in messages:  # one by one: a refusal leaves those before it in the list
        sent.append(actions.send(core, opened, message, transaction))  # noqa: PERF401
