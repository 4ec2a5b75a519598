"""Cursor of a remote queue manager, and the walk along a queue."""

from __future__ import annotations

from collections.abc import Iterator

from falconmq.client import walking
from falconmq.client.channel import Channel
from falconmq.client.transaction import Transaction
from falconmq.client.views import work_of
from falconmq.client.walking import Walk
from falconmq.closing import Closing
from falconmq.errors import MqStatus, ReadError
from falconmq.message import Message


class Cursor(Closing):
    """`falconmq.Cursor` at a service; made by `Queue.cursor`, closed by `with` or `close`.

    The service forgets a place that nobody uses for 300 seconds. If the connection breaks in the
    middle of `peek_next` or `receive`, UnreachableError says that the place may have changed.
    """

    def __init__(self, channel: Channel, walk: Walk) -> None:
        self._channel = channel
        self._walk = walk

    def peek(self, *, timeout: float | None = None) -> Message:
        """The current message; waits for one at the end of the queue."""
        return self._channel.run(walking.peek(self._walk, timeout))

    def peek_next(self, *, timeout: float | None = None) -> Message:
        """The message behind the current one, which becomes the current one."""
        return self._channel.run(walking.peek_next(self._walk, timeout))

    def receive(
        self, transaction: Transaction | None = None, *, timeout: float | None = None
    ) -> Message:
        """Take the current message out of the queue."""
        work = work_of(transaction)
        return self._channel.run(walking.receive(self._walk, timeout, work))

    def close(self) -> None:
        """Give the place up."""
        self._channel.run(walking.close(self._walk))

    def __iter__(self) -> Iterator[Message]:
        """The messages from here to the end, each peeked; it does not wait for more."""
        step = self.peek
        while True:
            try:
                message = step(timeout=0)
            except ReadError as error:
                if error.status is MqStatus.IO_TIMEOUT:
                    return
                if error.status is not MqStatus.MESSAGE_ALREADY_RECEIVED:
                    raise
            else:
                yield message
            step = self.peek_next
