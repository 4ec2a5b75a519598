"""Queue of a remote queue manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Unpack

from falconmq.client import places, reading, sending, transactions, walking
from falconmq.client.channel import Channel
from falconmq.client.cursor import Cursor
from falconmq.client.places import Place
from falconmq.client.session import Json
from falconmq.client.transaction import Transaction
from falconmq.client.transactions import Work
from falconmq.client.views import QueueFacts, work_of
from falconmq.closing import Closing
from falconmq.embedded.queue import QueueChanges, lookup_id_of
from falconmq.manager.states import SeekAction
from falconmq.message import Message, MessageId


class Queue(QueueFacts, Closing):
    """`falconmq.Queue` at a service; made by `QueueManager.create_queue` and `queue`.

    Properties are asked for when they are read. `receive` takes a message under a lease and
    confirms it: if the connection breaks, it is in its queue again or in the caller's hands.
    """

    def __init__(self, channel: Channel, place: Place) -> None:
        self._channel = channel
        self.place = place

    @property
    def _row(self) -> Json:
        return self._channel.run(places.look(self.place))

    @property
    def _sizes(self) -> Json:
        return self._channel.run(places.look_at_size(self.place))

    def send(self, message: Message, transaction: Transaction | None = None) -> MessageId:
        """Send a message; its id.

        UnreachableError if the connection broke and the service was restarted: then it may have
        been sent.
        """
        work = self._active(transaction)
        return self._channel.run(sending.send(self.place, message, work))

    def send_many(
        self, messages: Iterable[Message], transaction: Transaction | None = None
    ) -> list[MessageId]:
        """Send messages, up to a thousand with one request; their ids.

        Outside a transaction, messages before a refused one are sent.
        """
        work = self._active(transaction)
        return self._channel.run(sending.send_many(self.place, messages, work))

    def receive(
        self, transaction: Transaction | None = None, *, timeout: float | None = None
    ) -> Message:
        """Take the first message out of the queue."""
        work = self._active(transaction)
        return self._channel.run(reading.receive(self.place, {}, timeout, work))

    def peek(self, *, timeout: float | None = None) -> Message:
        """The first message; it stays in the queue."""
        return self._channel.run(reading.peek(self.place, {}, timeout))

    def receive_by_lookup_id(
        self,
        lookup_id: int,
        transaction: Transaction | None = None,
        *,
        seek: SeekAction = SeekAction.CURRENT,
    ) -> Message:
        """Take the message with this lookup id, or the one before or behind it."""
        work, wanted = self._active(transaction), reading.sought(lookup_id, seek)
        return self._channel.run(reading.receive(self.place, wanted, 0, work))

    def peek_by_lookup_id(
        self, lookup_id: int, *, seek: SeekAction = SeekAction.CURRENT
    ) -> Message:
        """The message with this lookup id, or the one before or behind it; it stays."""
        wanted = reading.sought(lookup_id, seek)
        return self._channel.run(reading.peek(self.place, wanted, 0))

    def cursor(self) -> Cursor:
        """A place in the queue, at its start."""
        return Cursor(self._channel, self._channel.run(walking.begin(self.place)))

    def __iter__(self) -> Iterator[Message]:
        """The messages that are there, in order; they stay, and it does not wait for more."""
        after: int | None = None
        while found := self._channel.run(reading.page(self.place, after)):
            yield from found
            after = found[-1].lookup_id

    def subqueue(self, name: str) -> Queue:
        """A subqueue, made when it is first used; messages get there by `move`."""
        return Queue(self._channel, self._channel.run(places.subqueue(self.place, name)))

    @property
    def journal(self) -> Queue:
        """The copies of received messages, if `journaling` is on."""
        return Queue(self._channel, places.journal_of(self.place))

    def move(
        self, message: Message | int, target: Queue, transaction: Transaction | None = None
    ) -> None:
        """Move a message, or the one with this lookup id, to another queue of this manager."""
        work, lookup_id = self._active(transaction), lookup_id_of(message)
        self._channel.run(places.move(self.place, lookup_id, target.place, work))

    def purge(self) -> int:
        """Delete all messages; how many. What a transaction holds goes when it ends."""
        return self._channel.run(places.purge(self.place))

    def update(self, **changes: Unpack[QueueChanges]) -> None:
        """Change properties: `queue.update(label="orders of today", quota_kilobytes=1024)`."""
        self._channel.run(places.update(self.place, dict(changes)))

    def close(self) -> None:
        """Give up what this object has open; reads that wait end."""
        self.place.is_closed = True
        self._channel.stop(self.place)
        self._channel.run(places.close(self.place))

    def _active(self, transaction: Transaction | None) -> Work | None:
        return transactions.active(self.place.session, work_of(transaction))
