"""The objects of a remote queue manager for asyncio; `falconmq.aio.connect` makes them.

They are those of `falconmq.aio` with one difference: a network is in between, and a loop must not
be blocked. So what an embedded queue manager tells at once is awaited or remembered.

    await manager.queues()  await manager.in_doubt()  await manager.status()
    queue.count, queue.label ...    as they were when the queue was opened, updated or refreshed
    await queue.refresh()           looks again
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from functools import partial
from types import TracebackType
from typing import Self, Unpack
from uuid import UUID

from falconmq.client import places, reading, sending, transactions, walking
from falconmq.client.aio_channel import AsyncChannel
from falconmq.client.channel import tls_context
from falconmq.client.doors import chosen
from falconmq.client.manager import new_session
from falconmq.client.places import Place
from falconmq.client.session import Json, Session, greet
from falconmq.client.transactions import Work
from falconmq.client.views import ManagerNames, QueueFacts, TransactionView, work_of
from falconmq.client.walking import Walk
from falconmq.closing import AsyncClosing
from falconmq.embedded.manager import ManagerStatus
from falconmq.embedded.queue import QueueChanges, lookup_id_of
from falconmq.errors import MqStatus, ReadError
from falconmq.manager.states import SeekAction
from falconmq.message import Message, MessageId
from falconmq.names import FormatName, PathName


class Transaction(TransactionView):
    """`falconmq.client.Transaction` for asyncio. The service hears of it with its first use."""

    def __init__(self, channel: AsyncChannel, work: Work) -> None:
        super().__init__(work)
        self._channel = channel

    async def prepare(self) -> None:
        """Promise to commit, durably."""
        await self._channel.run(transactions.prepare(self.work))

    async def commit(self) -> None:
        """Make it true. It is asked for until the answer is known."""
        await self._channel.run(transactions.commit(self.work))

    async def abort(self) -> None:
        """Take it back."""
        await self._channel.run(transactions.abort(self.work))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._channel.run(transactions.leave(self.work, is_well=kind is None))


class Cursor(AsyncClosing):
    """`falconmq.client.Cursor` for asyncio."""

    def __init__(self, channel: AsyncChannel, walk: Walk) -> None:
        self._channel = channel
        self._walk = walk

    async def peek(self, *, timeout: float | None = None) -> Message:
        """The current message; waits for one at the end of the queue."""
        return await self._channel.run(walking.peek(self._walk, timeout))

    async def peek_next(self, *, timeout: float | None = None) -> Message:
        """The message behind the current one, which becomes the current one."""
        return await self._channel.run(walking.peek_next(self._walk, timeout))

    async def receive(
        self, transaction: Transaction | None = None, *, timeout: float | None = None
    ) -> Message:
        """Take the current message out of the queue."""
        work = work_of(transaction)
        return await self._channel.run(walking.receive(self._walk, timeout, work))

    async def close(self) -> None:
        """Give the place up."""
        await self._channel.run(walking.close(self._walk))

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages from here to the end, each peeked; it does not wait for more."""
        step = self.peek
        while True:
            try:
                message = await step(timeout=0)
            except ReadError as error:
                if error.status is MqStatus.IO_TIMEOUT:
                    return
                if error.status is not MqStatus.MESSAGE_ALREADY_RECEIVED:
                    raise
            else:
                yield message
            step = self.peek_next


class Queue(QueueFacts, AsyncClosing):
    """`falconmq.client.Queue` for asyncio."""

    def __init__(self, channel: AsyncChannel, place: Place) -> None:
        self._channel = channel
        self.place = place

    @property
    def _row(self) -> Json:
        return places.facts(self.place)

    @property
    def _sizes(self) -> Json:
        return places.sizes(self.place)

    async def refresh(self) -> None:
        """Look at the properties again, and at how many messages there are."""
        await self._channel.run(places.look_at_size(self.place))

    async def send(self, message: Message, transaction: Transaction | None = None) -> MessageId:
        """Send a message; its id.

        UnreachableError if the connection broke and the service was restarted: then it may have
        been sent.
        """
        work = self._active(transaction)
        return await self._channel.run(sending.send(self.place, message, work))

    async def send_many(
        self, messages: Iterable[Message], transaction: Transaction | None = None
    ) -> list[MessageId]:
        """Send messages, up to a thousand with one request; their ids.

        Outside a transaction, messages before a refused one are sent.
        """
        work = self._active(transaction)
        return await self._channel.run(sending.send_many(self.place, messages, work))

    async def receive(
        self, transaction: Transaction | None = None, *, timeout: float | None = None
    ) -> Message:
        """Take the first message out of the queue."""
        work = self._active(transaction)
        return await self._channel.run(reading.receive(self.place, {}, timeout, work))

    async def peek(self, *, timeout: float | None = None) -> Message:
        """The first message; it stays in the queue."""
        return await self._channel.run(reading.peek(self.place, {}, timeout))

    async def receive_by_lookup_id(
        self,
        lookup_id: int,
        transaction: Transaction | None = None,
        *,
        seek: SeekAction = SeekAction.CURRENT,
    ) -> Message:
        """Take the message with this lookup id, or the one before or behind it."""
        work, wanted = self._active(transaction), reading.sought(lookup_id, seek)
        return await self._channel.run(reading.receive(self.place, wanted, 0, work))

    async def peek_by_lookup_id(
        self, lookup_id: int, *, seek: SeekAction = SeekAction.CURRENT
    ) -> Message:
        """The message with this lookup id, or the one before or behind it; it stays."""
        wanted = reading.sought(lookup_id, seek)
        return await self._channel.run(reading.peek(self.place, wanted, 0))

    async def cursor(self) -> Cursor:
        """A place in the queue, at its start."""
        return Cursor(self._channel, await self._channel.run(walking.begin(self.place)))

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages that are there, in order; they stay, and it does not wait for more."""
        after: int | None = None
        while found := await self._channel.run(reading.page(self.place, after)):
            for message in found:
                yield message
            after = found[-1].lookup_id

    async def subqueue(self, name: str) -> Queue:
        """A subqueue, made when it is first used; messages get there by `move`."""
        return Queue(self._channel, await self._channel.run(places.subqueue(self.place, name)))

    @property
    def journal(self) -> Queue:
        """The copies of received messages, if `journaling` is on."""
        return Queue(self._channel, places.journal_of(self.place))

    async def move(
        self, message: Message | int, target: Queue, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with this lookup id, to another queue of this manager."""
        work, lookup_id = self._active(transaction), lookup_id_of(message)
        await self._channel.run(places.move(self.place, lookup_id, target.place, work))

    async def purge(self) -> int:
        """Delete all messages; how many. What a transaction holds goes when it ends."""
        return await self._channel.run(places.purge(self.place))

    async def update(self, **changes: Unpack[QueueChanges]) -> None:
        """Change properties: `queue.update(label="orders of today", quota_kilobytes=1024)`."""
        await self._channel.run(places.update(self.place, dict(changes)))

    async def close(self) -> None:
        """Give up what this object has open; reads that wait end."""
        self.place.is_closed = True
        self._channel.stop(self.place)
        await self._channel.run(places.close(self.place))

    def _active(self, transaction: Transaction | None) -> Work | None:
        return transactions.active(self.place.session, work_of(transaction))


class QueueManager(ManagerNames, AsyncClosing):
    """`falconmq.client.QueueManager` for the tasks of one event loop; made by `aio.connect`."""

    def __init__(self, channel: AsyncChannel, session: Session) -> None:
        self._channel = channel
        self.session = session

    async def status(self) -> ManagerStatus:
        """Durability, space and messages, at this moment."""
        return await self._channel.run(places.manager_status(self.session))

    async def create_queue(
        self,
        name: str | PathName,
        *,
        transactional: bool = False,
        **properties: Unpack[QueueChanges],
    ) -> Queue:
        r"""Create a queue, `.\private$\orders`. QueueError QUEUE_EXISTS if it is there already."""
        chosen = dict(properties)
        making = places.create(self.session, name, chosen, transactional=transactional)
        return Queue(self._channel, await self._channel.run(making))

    async def queue(self, name: str | PathName | FormatName, *, exclusive: bool = False) -> Queue:
        """An existing queue, by its path name or format name.

        `exclusive` keeps others from receiving, from the first read until the queue is closed or
        nobody has read from it for 300 seconds.
        """
        finding = places.find(self.session, name, exclusive=exclusive)
        return Queue(self._channel, await self._channel.run(finding))

    async def queues(self) -> list[Queue]:
        """All queues that were created there, in the order of their names."""
        found = await self._channel.run(places.all_queues(self.session))
        return [Queue(self._channel, place) for place in found]

    async def delete_queue(self, queue: Queue | str | PathName) -> None:
        """Delete a queue with all its messages."""
        if not isinstance(queue, Queue):
            queue = await self.queue(queue)
        await self._channel.run(places.delete(queue.place))

    def transaction(self, id: UUID | None = None) -> Transaction:
        """A new transaction, for a `with` block; `id` if a coordinator has named it."""
        work = transactions.new(self.session, id)
        return Transaction(self._channel, work)

    async def in_doubt(self) -> list[Transaction]:
        """Prepared transactions that wait for `commit` or `abort`, of earlier runs too."""
        found = await self._channel.run(transactions.in_doubt(self.session))
        return [Transaction(self._channel, work) for work in found]

    @property
    def dead_letter(self) -> Queue:
        """Messages that could not be delivered, and whose senders asked to keep them."""
        return Queue(self._channel, places.system_place(self.session, "dead_letter"))

    @property
    def transactional_dead_letter(self) -> Queue:
        """The same for transactional messages."""
        return Queue(self._channel, places.system_place(self.session, "transactional_dead_letter"))

    @property
    def journal(self) -> Queue:
        """Copies of sent messages that asked for `Journal.JOURNAL`."""
        return Queue(self._channel, places.system_place(self.session, "journal"))

    async def close(self) -> None:
        """End the reads that wait, and close the connections."""
        self.session.is_closed = True
        await self._channel.close()


class Connecting:
    """What `aio.connect` returns: `async with connect(...)`, or `manager = await connect(...)`."""

    def __init__(self, session: Session, make_channel: Callable[[], AsyncChannel]) -> None:
        self._session = session
        self._make_channel = make_channel
        self._manager: QueueManager | None = None

    def __await__(self) -> Generator[object, None, QueueManager]:
        return self._connect().__await__()

    async def __aenter__(self) -> QueueManager:
        self._manager = await self._connect()
        return self._manager

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._manager is not None:
            await self._manager.close()

    async def _connect(self) -> QueueManager:
        channel = self._make_channel()
        try:
            await channel.run(greet(self._session, patience=0))
        except BaseException:
            await channel.close()
            raise
        return QueueManager(channel, self._session)


def connect(
    url: str | None,
    token: str | None,
    *,
    timeout: float,
    ca_file: str | os.PathLike[str] | None,
    certificate_file: str | os.PathLike[str] | None,
    key_file: str | os.PathLike[str] | None,
    retry_seconds: float,
    transaction_timeout: float,
) -> Connecting:
    """`falconmq.connect` for asyncio."""
    door, secret = chosen(url, token)
    tls = tls_context(ca_file, certificate_file, key_file) if door.is_tls else None
    session = new_session(door, retry_seconds, transaction_timeout)
    make = partial(AsyncChannel, door, secret, answer_seconds=timeout, tls=tls)
    return Connecting(session, make)
