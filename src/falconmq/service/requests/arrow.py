"""Bulk reading and sending as Arrow streams, page by page.

Reading looks at the places of a page in one short turn; a thread reads the messages and writes them
down. Of a range, the next page is made while the caller takes this one: neither waits for the
other. So a queue of a million messages costs the memory of two pages, and messages come and go
meanwhile: what is read is what is there when the walk passes, in the order of the queue or, for a
range of them, of arrival numbers.

Sending checks every row before the first message is sent.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Final

from falconmq import aio
from falconmq.client import arrow
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError, MessageError
from falconmq.manager.arrivals import Piece, Span
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Transaction
from falconmq.manager.positions import START
from falconmq.manager.states import AccessType
from falconmq.message import Message, MessageId
from falconmq.service.requests import ranges
from falconmq.service.requests.reading import durable
from falconmq.service.requests.record_columns import records_to_batch
from falconmq.service.requests.records import Page, PageReader, page_of
from falconmq.service.requests.streaming import ahead, in_one_thread

PAGE_MESSAGES: Final = 10_000
PAGE_BYTES: Final = 16 << 20
TURN_MESSAGES: Final = 500  # that are sent without letting others work
END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"


# Reading


async def browse(
    engine: Engine,
    queue: aio.Queue,
    *,
    after: int = START,
    count: int | None = None,
    columns: Sequence[str] | None = None,
) -> AsyncIterator[bytes]:
    """An IPC stream of the messages behind a place, at most `count`; the schema comes always."""
    yield await asyncio.to_thread(_schema, columns)
    left = count
    while left is None or left > 0:
        wanted = PAGE_MESSAGES if left is None else min(PAGE_MESSAGES, left)
        page = await _page(engine, queue, wanted, after)
        if not page.span.pieces:
            break
        async for chunk in _batches(engine, page, queue.name, columns):
            yield chunk
        after = page.span.pieces[-1].lookup_ids[-1]
        left = None if left is None else left - len(page.span)
    yield END_OF_STREAM


async def read_range(
    engine: Engine,
    opened: actions.Opened,
    start: int,
    stop: int | None,
    columns: Sequence[str] | None = None,
) -> AsyncIterator[bytes]:
    """An IPC stream of the messages with arrival numbers from `start` on, below `stop`.

    In their order, and also those that a reader holds.
    """
    yield await asyncio.to_thread(_schema, columns)
    if stop is None:
        stop = await ranges.end_of(engine, opened)
    async for chunk in ahead(_range(engine, opened, start, stop, columns)):
        yield chunk
    yield END_OF_STREAM


async def _range(
    engine: Engine,
    opened: actions.Opened,
    start: int,
    stop: int,
    columns: Sequence[str] | None,
) -> AsyncGenerator[bytes]:
    async for page in ranges.pages(engine, opened, start, stop, PAGE_MESSAGES, None):
        async for chunk in _batches(engine, page, opened.path_name, columns):
            yield chunk


def _schema(columns: Sequence[str] | None) -> bytes:
    return bytes(arrow.schema_of(columns).serialize())


async def _batches(
    engine: Engine, page: Page, name: str, columns: Sequence[str] | None
) -> AsyncIterator[bytes]:
    reader = PageReader(engine.store, page, PAGE_BYTES)
    while not reader.is_done:
        chunk = await in_one_thread(_write, reader, page, name, columns)
        if chunk:
            yield chunk


def _write(reader: PageReader, page: Page, name: str, columns: Sequence[str] | None) -> bytes:
    """A record batch, as the stream has it; nothing if all its messages are gone."""
    rows = reader.read()
    if not rows:
        return b""
    locked = [False] * len(rows)
    if page.locked:
        locked = [lookup_id in page.locked for lookup_id in rows.lookup_ids]
    batch = records_to_batch(rows, name, locked=locked, columns=columns)
    return bytes(batch.serialize())


async def _page(engine: Engine, queue: aio.Queue, count: int, after: int) -> Page:
    """Some messages behind a place in the order of the queue, durable; none at the end."""
    engine.run(actions.descriptor, queue.opened, AccessType.PEEK)
    return await ranges.look_durably(engine, _look, queue.opened, count, after)


def _look(
    core: QueueManagerCore,  # noqa: ARG001 - a look at the core
    opened: actions.Opened,
    count: int,
    after: int,
) -> Page:
    """The places that a peek may see, without fetching them."""
    queue = actions.local(opened)
    positions = queue.positions
    found: list[int] = []
    while len(found) < count:
        following = positions.after(after, peek=True)
        if following is None:
            break
        found.append(following)
        after = following
    span = Span([Piece(0, found)] if found else [], after + 1)
    return page_of(queue, span, is_by_arrival=False)


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
