"""The queue manager for asyncio: the same objects, the same names, awaited.

    import asyncio
    import falconmq
    from falconmq import aio

    async def main():
        async with aio.open("./data") as manager:
            orders = await manager.create_queue(r".\\private$\\orders")
            await orders.send(falconmq.Message("hello"))
            message = await orders.receive(timeout=5)

Commits and waits never block the event loop. Tasks share commits: a hundred tasks that send at once
wait for one or two syncs. Cancelling a task that waits in `receive` loses nothing: a message that
came in the same moment goes back to its place in the queue. One manager may be used by several
event loops, and by threads through `manager.blocking`.

`connect` gives the same objects of a running service; `falconmq.client.aio` says what differs.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypedDict, TypeVar, Unpack
from uuid import UUID

from falconmq.closing import AsyncClosing
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Event, Wait
from falconmq.embedded.manager import DEFAULT_QUOTA_KILOBYTES, ManagerView, open_engine
from falconmq.embedded.manager import QueueManager as BlockingQueueManager
from falconmq.embedded.messages import from_position
from falconmq.embedded.queue import QueueChanges, QueueView, lookup_id_of
from falconmq.embedded.refusals import read_error
from falconmq.embedded.transaction import TransactionState, active
from falconmq.errors import MqStatus, ReadError
from falconmq.manager import model
from falconmq.manager.access import Principal
from falconmq.manager.model import QueueProperties, ReadResult, WaitingRead
from falconmq.manager.states import AccessType, SeekAction, ShareMode
from falconmq.manager.transactions import create_transaction
from falconmq.message import Message, MessageId
from falconmq.names import FormatName, PathName
from falconmq.store import Commit, Durability
from falconmq.store.lmdb_engine import DEFAULT_MAP_SIZE

if TYPE_CHECKING:
    from falconmq.client.aio import Connecting

__all__ = ["Cursor", "Queue", "QueueManager", "Transaction", "connect", "open"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Bell:
    """Wakes the tasks of one event loop from other threads, many with one call into the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_rung = False
        self._lock = threading.Lock()

    def ring(self, future: asyncio.Future[None]) -> None:
        with self._lock:
            self._done.append(future)
            if self._is_rung:
                return
            self._is_rung = True
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed: nobody waits there any more
            self._done.clear()

    def _wake(self) -> None:
        with self._lock:
            self._is_rung = False
            done, self._done = self._done, deque()
        for future in done:
            if not future.done():
                future.set_result(None)


_BELLS: dict[asyncio.AbstractEventLoop, _Bell] = {}


def _bell() -> tuple[asyncio.Future[None], _Bell]:
    loop = asyncio.get_running_loop()
    bell = _BELLS.get(loop)
    if bell is None:
        for closed in [known for known in _BELLS if known.is_closed()]:
            del _BELLS[closed]
        bell = _BELLS[loop] = _Bell(loop)
    return loop.create_future(), bell


async def _call(engine: Engine, event: Event[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """One turn, and the wait until what it did is durable."""
    result, commit = engine.run(event, *args, **kwargs)
    if commit is not None:
        await _finish(engine, commit)
    return result


async def _finish(engine: Engine, commit: Commit) -> None:
    if not commit.is_done:
        future, bell = _bell()
        commit.add_done_callback(lambda _: bell.ring(future))
        await future
    if commit.error is not None:
        raise engine.failure(commit) from None


class _Read:
    """One read of a task: it may wait for a message, and for the commit that covers it."""

    __slots__ = ("_engine", "_future", "_peek", "_timeout", "_transaction", "opened", "wait")

    def __init__(
        self,
        engine: Engine,
        opened: actions.Opened,
        *,
        timeout: float | None = None,
        transaction: model.Transaction | None = None,
        peek: bool = False,
    ) -> None:
        self._engine = engine
        self.opened = opened
        self._timeout = timeout
        self._transaction = transaction
        self._peek = peek
        future, bell = _bell()
        self._future = future
        self.wait = Wait(lambda: bell.ring(future))

    async def run(
        self, event: Event[_P, ReadResult | WaitingRead], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Message:
        engine, wait = self._engine, self.wait
        outcome, commit = engine.begin_read(wait, event, *args, **kwargs)
        try:
            result = outcome
            if isinstance(result, WaitingRead):
                await self._future
                result, commit = engine.result_of(wait, result)
            if commit is not None:
                await _finish(engine, commit)
            if result.position is None:
                raise read_error(self.opened, result.status, self._timeout)
            return from_position(result.position)
        except Exception:
            raise
        except BaseException:  # cancelled
            engine.give_up(outcome, self._transaction, peek=self._peek)
            raise
        finally:
            engine.end_read(wait)


class Transaction(TransactionState):
    """`falconmq.Transaction` for asyncio: `async with manager.transaction() as transaction`."""

    async def prepare(self) -> None:
        """Promise to commit, durably."""
        await _call(self._engine, actions.prepare, self.use())

    async def commit(self) -> None:
        """Make it true."""
        await _call(self._engine, actions.commit, self._finish("committed"))

    async def abort(self) -> None:
        """Take it back."""
        await _call(self._engine, actions.abort, self._finish("aborted"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._end or self.is_prepared:
            return
        if kind is None:
            await self.commit()
        elif self.is_active and not self._engine.is_closed:
            await self.abort()


class Cursor(AsyncClosing):
    """`falconmq.Cursor` for asyncio."""

    def __init__(self, engine: Engine, opened: actions.Opened, cursor: model.Cursor) -> None:
        self._engine = engine
        self.opened = opened
        self._cursor = cursor

    async def peek(self, *, timeout: float | None = None) -> Message:
        """The current message; waits for one at the end of the queue."""
        read = _Read(self._engine, self.opened, timeout=timeout, peek=True)
        return await read.run(actions.peek, self.opened, timeout, self._cursor, read.wait)

    async def peek_next(self, *, timeout: float | None = None) -> Message:
        """The message behind the current one, which becomes the current one."""
        read = _Read(self._engine, self.opened, timeout=timeout, peek=True)
        return await read.run(actions.peek_next, self._cursor, timeout, read.wait)

    async def receive(
        self,
        transaction: Transaction | None = None,
        *,
        timeout: float | None = None,
    ) -> Message:
        """Take the current message out of the queue."""
        taken = active(transaction, self._engine)
        read = _Read(self._engine, self.opened, timeout=timeout, transaction=taken)
        return await read.run(actions.receive, self.opened, timeout, self._cursor, taken, read.wait)

    async def close(self) -> None:
        """Give the place up."""
        if not self._engine.is_closed:
            await _call(self._engine, actions.close_cursor, self._cursor)

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


class Queue(QueueView, AsyncClosing):
    """`falconmq.Queue` for asyncio."""

    async def send(self, message: Message, transaction: Transaction | None = None) -> MessageId:
        """Send a message; its id."""
        taken = active(transaction, self._engine)
        return await _call(self._engine, actions.send, self.opened, message, taken)

    async def send_many(
        self, messages: Iterable[Message], transaction: Transaction | None = None
    ) -> list[MessageId]:
        """Send messages with one commit for all; their ids."""
        taken = active(transaction, self._engine)
        return await _call(self._engine, actions.send_many, self.opened, messages, taken)

    async def receive(
        self,
        transaction: Transaction | None = None,
        *,
        timeout: float | None = None,
    ) -> Message:
        """Take the first message out of the queue."""
        taken = active(transaction, self._engine)
        read = _Read(self._engine, self.opened, timeout=timeout, transaction=taken)
        return await read.run(actions.receive, self.opened, timeout, None, taken, read.wait)

    async def peek(self, *, timeout: float | None = None) -> Message:
        """The first message; it stays in the queue."""
        read = _Read(self._engine, self.opened, timeout=timeout, peek=True)
        return await read.run(actions.peek, self.opened, timeout, None, read.wait)

    async def receive_by_lookup_id(
        self,
        lookup_id: int,
        transaction: Transaction | None = None,
        *,
        seek: SeekAction = SeekAction.CURRENT,
    ) -> Message:
        """Take the message with this lookup id, or the one before or behind it."""
        taken = active(transaction, self._engine)
        read = _Read(self._engine, self.opened, transaction=taken)
        return await read.run(
            actions.read_by_lookup_id, self.opened, lookup_id, seek, taken, peek=False
        )

    async def peek_by_lookup_id(
        self, lookup_id: int, *, seek: SeekAction = SeekAction.CURRENT
    ) -> Message:
        """The message with this lookup id, or the one before or behind it; it stays."""
        read = _Read(self._engine, self.opened, peek=True)
        return await read.run(
            actions.read_by_lookup_id, self.opened, lookup_id, seek, None, peek=True
        )

    async def cursor(self) -> Cursor:
        """A place in the queue, at its start."""
        access = AccessType.RECEIVE
        cursor = await _call(self._engine, actions.open_cursor, self.opened, access)
        return Cursor(self._engine, self.opened, cursor)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages that are there, in order; they stay, and it does not wait for more."""
        cursor = await _call(self._engine, actions.open_cursor, self.opened, AccessType.PEEK)
        async with Cursor(self._engine, self.opened, cursor) as walk:
            async for message in walk:
                yield message

    async def subqueue(self, name: str) -> Queue:
        """A subqueue, made when it is first used; messages get there by `move`."""
        return Queue(self._engine, await _call(self._engine, actions.subqueue, self.opened, name))

    @property
    def journal(self) -> Queue:
        """The copies of received messages, if `journaling` is on."""
        return Queue(self._engine, self._engine.look(actions.journal, self.opened))

    async def move(
        self, message: Message | int, target: Queue, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with this lookup id, to another queue of this manager."""
        taken = active(transaction, self._engine)
        lookup_id = lookup_id_of(message)
        await _call(self._engine, actions.move, self.opened, lookup_id, target.opened, taken)

    async def purge(self) -> int:
        """Delete all messages; how many."""
        return await _call(self._engine, actions.purge, self.opened)

    async def update(self, **changes: Unpack[QueueChanges]) -> None:
        """Change properties."""
        await _call(self._engine, actions.update, self.opened, dict(changes))

    async def close(self) -> None:
        """Give up what this object has open; reads that wait end."""
        if not self._engine.is_closed:
            await _call(self._engine, actions.close, self.opened)


class QueueManager(ManagerView, AsyncClosing):
    """`falconmq.QueueManager` for asyncio; made by `open`."""

    @property
    def blocking(self) -> BlockingQueueManager:
        """The same queue manager for threads. Do not use it on an event loop: it blocks."""
        return BlockingQueueManager(self._engine)

    async def create_queue(
        self,
        name: str | PathName,
        *,
        transactional: bool = False,
        **properties: Unpack[QueueChanges],
    ) -> Queue:
        """Create a queue."""
        chosen = QueueProperties(transactional=transactional, **properties)
        return Queue(self._engine, await _call(self._engine, actions.create, name, chosen))

    async def queue(self, name: str | PathName | FormatName, *, exclusive: bool = False) -> Queue:
        """An existing queue, by its path name or format name."""
        share = ShareMode.DENY_RECEIVE if exclusive else ShareMode.DENY_NONE
        return Queue(self._engine, await _call(self._engine, actions.find, name, share))

    def queues(self) -> list[Queue]:
        """All queues that were created here, in the order of their names."""
        return [Queue(self._engine, opened) for opened in self._engine.look(actions.created_queues)]

    async def delete_queue(self, queue: Queue | str | PathName) -> None:
        """Delete a queue with all its messages."""
        if not isinstance(queue, Queue):
            queue = await self.queue(queue)
        await _call(self._engine, actions.delete, queue.opened)

    def transaction(self, id: UUID | None = None) -> Transaction:
        """A new transaction, for an `async with` block; `id` if a coordinator has named it."""
        return Transaction(self._engine, self._engine.run(create_transaction, id)[0])

    def in_doubt(self) -> list[Transaction]:
        """Prepared transactions that wait for `commit` or `abort`, of earlier runs too."""
        found = self._engine.look(actions.in_doubt)
        return [Transaction(self._engine, transaction) for transaction in found]

    @property
    def dead_letter(self) -> Queue:
        """Messages that could not be delivered, and whose senders asked to keep them."""
        return Queue(self._engine, self._engine.look(actions.system_queue, "dead_letter"))

    @property
    def transactional_dead_letter(self) -> Queue:
        """The same for transactional messages."""
        name = "transactional_dead_letter"
        return Queue(self._engine, self._engine.look(actions.system_queue, name))

    @property
    def journal(self) -> Queue:
        """Copies of sent messages that asked for `Journal.JOURNAL`."""
        return Queue(self._engine, self._engine.look(actions.system_queue, "journal"))

    async def close(self) -> None:
        """End the reads that wait, let commits finish, close the data directory."""
        await asyncio.to_thread(self._engine.close)


class _Options(TypedDict):
    computer_name: str | None
    durability: Durability
    quota_kilobytes: int
    map_size: int
    principal: Principal | None


class Opening:
    """What `open` returns: `async with open(...) as manager`, or `manager = await open(...)`."""

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[_Options]) -> None:
        self._path = path
        self._options = options
        self._manager: QueueManager | None = None

    def __await__(self) -> Generator[object, None, QueueManager]:
        return self._open().__await__()

    async def __aenter__(self) -> QueueManager:
        self._manager = await self._open()
        return self._manager

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._manager is not None:
            await self._manager.close()

    async def _open(self) -> QueueManager:
        opening = asyncio.ensure_future(asyncio.to_thread(open_engine, self._path, **self._options))
        try:
            return QueueManager(await asyncio.shield(opening))
        except asyncio.CancelledError:  # nobody would close it
            await asyncio.to_thread((await opening).close)
            raise


def open(  # noqa: A001 - `aio.open` is what people look for
    path: str | os.PathLike[str],
    *,
    computer_name: str | None = None,
    durability: Durability = Durability.SYNC,
    quota_kilobytes: int = DEFAULT_QUOTA_KILOBYTES,
    map_size: int = DEFAULT_MAP_SIZE,
    principal: Principal | None = None,
) -> Opening:
    """`falconmq.open` for asyncio: `async with aio.open("./data") as manager`."""
    return Opening(
        path,
        computer_name=computer_name,
        durability=durability,
        quota_kilobytes=quota_kilobytes,
        map_size=map_size,
        principal=principal,
    )


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    timeout: float = 30.0,
    ca_file: str | os.PathLike[str] | None = None,
    certificate_file: str | os.PathLike[str] | None = None,
    key_file: str | os.PathLike[str] | None = None,
    retry_seconds: float = 30.0,
    transaction_timeout: float = 60.0,
) -> Connecting:
    """`falconmq.connect` for asyncio: `async with aio.connect("http://host:8018") as manager`."""
    from falconmq.client import aio as client  # noqa: PLC0415 - embedded programs need none of it

    return client.connect(
        url,
        token,
        timeout=timeout,
        ca_file=ca_file,
        certificate_file=certificate_file,
        key_file=key_file,
        retry_seconds=retry_seconds,
        transaction_timeout=transaction_timeout,
    )
