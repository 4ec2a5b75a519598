"""Cursor: a place in a queue, to walk along its messages."""

from __future__ import annotations

from collections.abc import Iterator

from falconmq.closing import Closing
from falconmq.embedded import actions, blocking
from falconmq.embedded.engine import Engine
from falconmq.embedded.transaction import Transaction, active
from falconmq.errors import MqStatus, ReadError
from falconmq.manager import model
from falconmq.message import Message


class Cursor(Closing):
    """A place in a queue; made by `Queue.cursor`, closed by `with` or `close`.

        with orders.cursor() as cursor:
            message = cursor.peek(timeout=0)
            while message.label != "urgent":
                message = cursor.peek_next(timeout=0)
            cursor.receive()

    `peek` shows the current message, `peek_next` goes on to the next, `receive` takes the current
    one; after that `peek` shows what followed it. Messages that others take do not disturb it.
    """

    def __init__(self, engine: Engine, opened: actions.Opened, cursor: model.Cursor) -> None:
        self._engine = engine
        self.opened = opened
        self._cursor = cursor

    def peek(self, *, timeout: float | None = None) -> Message:
        """The current message; waits for one at the end of the queue."""
        read = blocking.Read(self._engine, self.opened, timeout=timeout, peek=True)
        return read.run(actions.peek, self.opened, timeout, self._cursor, read.wait)

    def peek_next(self, *, timeout: float | None = None) -> Message:
        """The message behind the current one, which becomes the current one."""
        read = blocking.Read(self._engine, self.opened, timeout=timeout, peek=True)
        return read.run(actions.peek_next, self._cursor, timeout, read.wait)

    def receive(
        self, transaction: Transaction | None = None, *, timeout: float | None = None
    ) -> Message:
        """Take the current message out of the queue."""
        taken = active(transaction, self._engine)
        read = blocking.Read(self._engine, self.opened, timeout=timeout, transaction=taken)
        return read.run(actions.receive, self.opened, timeout, self._cursor, taken, read.wait)

    def close(self) -> None:
        """Give the place up."""
        if not self._engine.is_closed:
            blocking.call(self._engine, actions.close_cursor, self._cursor)

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
