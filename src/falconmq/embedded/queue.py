"""Queue: where messages are sent to and received from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TypedDict, Unpack

from falconmq.closing import Closing
from falconmq.embedded import actions, blocking
from falconmq.embedded.cursor import Cursor
from falconmq.embedded.engine import Engine
from falconmq.embedded.transaction import Transaction, active
from falconmq.errors import MessageError
from falconmq.manager import model
from falconmq.manager.states import AccessType, QueuePrivacy, SeekAction
from falconmq.message import Message, MessageId


class QueueChanges(TypedDict, total=False):
    """The properties of a queue that can be changed."""

    label: str
    journaling: bool
    quota_kilobytes: int
    journal_quota_kilobytes: int
    authentication: bool
    privacy_level: QueuePrivacy
    base_priority: int


class QueueView:
    """Names and properties, which the blocking and the asyncio queue have in common."""

    def __init__(self, engine: Engine, opened: actions.Opened) -> None:
        self._engine = engine
        self.opened = opened
        opened.left_open = engine.left_open

    @property
    def name(self) -> str:
        r"""The path name, `.\private$\orders`; the format name of a queue on another computer."""
        return str(self.opened)

    @property
    def format_name(self) -> str:
        """How other programs and other computers address it."""
        return str(self.opened.format_name)

    @property
    def is_local(self) -> bool:
        """Whether it belongs to this queue manager; others can only be sent to."""
        return self.opened.queue is not None

    @property
    def label(self) -> str:
        return self._properties.label

    @property
    def is_transactional(self) -> bool:
        queue = actions.local(self.opened)
        return (queue.parent or queue).properties.transactional

    @property
    def journaling(self) -> bool:
        """Whether received messages leave a copy in `journal`."""
        return self._properties.journaling

    @property
    def quota_kilobytes(self) -> int:
        """KiB that its messages may take; 0xFFFFFFFF is no limit."""
        return self._properties.quota_kilobytes

    @property
    def journal_quota_kilobytes(self) -> int:
        return self._properties.journal_quota_kilobytes

    @property
    def authentication(self) -> bool:
        """Whether it takes signed messages only."""
        return self._properties.authentication

    @property
    def privacy_level(self) -> QueuePrivacy:
        return self._properties.privacy_level

    @property
    def base_priority(self) -> int:
        return self._properties.base_priority

    @property
    def created_at(self) -> datetime:
        return datetime.fromtimestamp(actions.local(self.opened).create_time, UTC)

    @property
    def modified_at(self) -> datetime:
        return datetime.fromtimestamp(actions.local(self.opened).modify_time, UTC)

    @property
    def count(self) -> int:
        """How many messages are in it, those that a transaction holds included."""
        return len(self._any_queue.positions)

    @property
    def size_bytes(self) -> int:
        """How many bytes its messages take, against the quota."""
        return self._any_queue.total_bytes

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    @property
    def _properties(self) -> model.QueueProperties:
        return actions.local(self.opened).properties

    @property
    def _any_queue(self) -> model.Queue:
        """The local queue, or the outgoing queue of a remote one."""
        sending = self.opened.descriptors.get(AccessType.SEND)
        if self.opened.queue is None and sending is not None and sending.queue is not None:
            return sending.queue
        return actions.local(self.opened)


class Queue(QueueView, Closing):
    """A queue, made by `QueueManager.create_queue` and `QueueManager.queue`.

    Nothing returns before what it did is durable. Any number of threads may use one object.

    `timeout` is in seconds: None waits for ever, 0 does not wait. When no message comes, ReadError
    is raised, with the status IO_TIMEOUT. Ctrl-C while a read waits loses nothing: a message that
    came in the same moment is back in its place.
    """

    def send(self, message: Message, transaction: Transaction | None = None) -> MessageId:
        """Send a message; its id.

        A transactional queue needs a transaction, others take none. The message is recoverable
        unless it was made with `recoverable=False`. The queue manager fills in its id, destination
        and time. ResourceError if the disk or a quota is full: then it was not sent.
        """
        taken = None if transaction is None else active(transaction, self._engine)
        return blocking.call(self._engine, actions.send, self.opened, message, taken)

    def send_many(
        self, messages: Iterable[Message], transaction: Transaction | None = None
    ) -> list[MessageId]:
        """Send messages with one commit for all; their ids.

        Much faster than one by one. Outside a transaction, messages before a refused one are sent.
        """
        taken = active(transaction, self._engine)
        return blocking.call(self._engine, actions.send_many, self.opened, messages, taken)

    def receive(
        self, transaction: Transaction | None = None, *, timeout: float | None = None
    ) -> Message:
        """Take the first message out of the queue.

        Without a transaction it is gone when the call returns; with one when that commits.
        """
        taken = active(transaction, self._engine)
        read = blocking.Read(self._engine, self.opened, timeout=timeout, transaction=taken)
        return read.run(actions.receive, self.opened, timeout, None, taken, read.wait)

    def peek(self, *, timeout: float | None = None) -> Message:
        """The first message; it stays in the queue."""
        read = blocking.Read(self._engine, self.opened, timeout=timeout, peek=True)
        return read.run(actions.peek, self.opened, timeout, None, read.wait)

    def receive_by_lookup_id(
        self,
        lookup_id: int,
        transaction: Transaction | None = None,
        *,
        seek: SeekAction = SeekAction.CURRENT,
    ) -> Message:
        """Take the message with this lookup id, or the one before or behind it."""
        taken = active(transaction, self._engine)
        read = blocking.Read(self._engine, self.opened, transaction=taken)
        return read.run(actions.read_by_lookup_id, self.opened, lookup_id, seek, taken, peek=False)

    def peek_by_lookup_id(
        self, lookup_id: int, *, seek: SeekAction = SeekAction.CURRENT
    ) -> Message:
        """The message with this lookup id, or the one before or behind it; it stays."""
        read = blocking.Read(self._engine, self.opened, peek=True)
        return read.run(actions.read_by_lookup_id, self.opened, lookup_id, seek, None, peek=True)

    def cursor(self) -> Cursor:
        """A place in the queue, at its start."""
        cursor = blocking.call(self._engine, actions.open_cursor, self.opened, AccessType.RECEIVE)
        return Cursor(self._engine, self.opened, cursor)

    def __iter__(self) -> Iterator[Message]:
        """The messages that are there, in order; they stay, and it does not wait for more."""
        cursor = blocking.call(self._engine, actions.open_cursor, self.opened, AccessType.PEEK)
        with Cursor(self._engine, self.opened, cursor) as walk:
            yield from walk

    def subqueue(self, name: str) -> Queue:
        """A subqueue, made when it is first used; messages get there by `move`."""
        opened = blocking.call(self._engine, actions.subqueue, self.opened, name)
        return Queue(self._engine, opened)

    @property
    def journal(self) -> Queue:
        """The copies of received messages, if `journaling` is on."""
        return Queue(self._engine, blocking.call(self._engine, actions.journal, self.opened))

    def move(
        self, message: Message | int, target: Queue, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with this lookup id, to another queue of this manager.

        A subqueue keeps its lookup id and so its place in the order; other queues give a new one.
        """
        taken = active(transaction, self._engine)
        lookup_id = lookup_id_of(message)
        blocking.call(self._engine, actions.move, self.opened, lookup_id, target.opened, taken)

    def purge(self) -> int:
        """Delete all messages; how many. What a transaction holds goes when it ends."""
        return blocking.call(self._engine, actions.purge, self.opened)

    def update(self, **changes: Unpack[QueueChanges]) -> None:
        """Change properties: `queue.update(label="orders of today", quota_kilobytes=1024)`."""
        blocking.call(self._engine, actions.update, self.opened, dict(changes))

    def close(self) -> None:
        """Give up what this object has open; reads that wait end. The manager closes it too."""
        if not self._engine.is_closed:
            blocking.call(self._engine, actions.close, self.opened)


def lookup_id_of(message: Message | int) -> int:
    """The lookup id that a caller means."""
    if isinstance(message, int):
        return message
    if message.lookup_id is None:
        raise MessageError("lookup_id", "the message has none", hint="peek or receive it first")
    return message.lookup_id
