"""QueueManager of a service elsewhere: `falconmq.connect`."""

from __future__ import annotations

import os
import time
from typing import Unpack
from uuid import UUID

from falconmq.client import places, transactions
from falconmq.client.channel import Channel, tls_context
from falconmq.client.doors import Door, chosen
from falconmq.client.queue import Queue
from falconmq.client.session import Session, greet
from falconmq.client.transaction import Transaction
from falconmq.client.views import ManagerNames
from falconmq.closing import Closing
from falconmq.embedded.manager import ManagerStatus
from falconmq.embedded.queue import QueueChanges
from falconmq.names import FormatName, PathName


class QueueManager(ManagerNames, Closing):
    """`falconmq.QueueManager` at a service; made by `falconmq.connect`.

    Any number of threads may use it at once; each has a connection of its own. `close`, or the end
    of its `with` block, ends the reads that wait; the queue manager itself goes on.
    """

    def __init__(self, channel: Channel, session: Session) -> None:
        self._channel = channel
        self.session = session

    def status(self) -> ManagerStatus:
        """Durability, space and messages, at this moment."""
        return self._channel.run(places.manager_status(self.session))

    def create_queue(
        self,
        name: str | PathName,
        *,
        transactional: bool = False,
        **properties: Unpack[QueueChanges],
    ) -> Queue:
        r"""Create a queue, `.\private$\orders`. QueueError QUEUE_EXISTS if it is there already."""
        chosen = dict(properties)
        making = places.create(self.session, name, chosen, transactional=transactional)
        return Queue(self._channel, self._channel.run(making))

    def queue(self, name: str | PathName | FormatName, *, exclusive: bool = False) -> Queue:
        """An existing queue, by its path name or format name.

        `exclusive` keeps others from receiving, from the first read until the queue is closed or
        nobody has read from it for 300 seconds.
        """
        finding = places.find(self.session, name, exclusive=exclusive)
        return Queue(self._channel, self._channel.run(finding))

    def queues(self) -> list[Queue]:
        """All queues that were created there, in the order of their names."""
        found = self._channel.run(places.all_queues(self.session))
        return [Queue(self._channel, place) for place in found]

    def delete_queue(self, queue: Queue | str | PathName) -> None:
        """Delete a queue with all its messages."""
        if not isinstance(queue, Queue):
            queue = self.queue(queue)
        self._channel.run(places.delete(queue.place))

    def transaction(self, id: UUID | None = None) -> Transaction:
        """A new transaction, for a `with` block; `id` if a coordinator has named it."""
        work = transactions.new(self.session, id)
        self._channel.run(transactions.begin(work))
        return Transaction(self._channel, work)

    def in_doubt(self) -> list[Transaction]:
        """Prepared transactions that wait for `commit` or `abort`, of earlier runs too."""
        found = self._channel.run(transactions.in_doubt(self.session))
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

    def close(self) -> None:
        """End the reads that wait, and close the connections."""
        self.session.is_closed = True
        self._channel.close()


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
) -> QueueManager:
    """What `falconmq.connect` does; it says what the options are."""
    door, secret = chosen(url, token)
    tls = tls_context(ca_file, certificate_file, key_file) if door.is_tls else None
    channel = Channel(door, secret, answer_seconds=timeout, tls=tls)
    session = new_session(door, retry_seconds, transaction_timeout)
    try:
        channel.run(greet(session, patience=0))
    except BaseException:
        channel.close()
        raise
    return QueueManager(channel, session)


def new_session(door: Door, retry_seconds: float, transaction_timeout: float) -> Session:
    return Session(door, time.monotonic, retry_seconds, transaction_timeout)
