"""Transaction of a remote queue manager."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from falconmq.client import transactions
from falconmq.client.channel import Channel
from falconmq.client.transactions import Work
from falconmq.client.views import TransactionView


class Transaction(TransactionView):
    """`falconmq.Transaction` at a service; made by `QueueManager.transaction`.

    It lives there, and is aborted if nobody uses it for `transaction_timeout` seconds, or if the
    connection breaks in the middle of a read.
    """

    def __init__(self, channel: Channel, work: Work) -> None:
        super().__init__(work)
        self._channel = channel

    def prepare(self) -> None:
        """Promise to commit, durably. Its messages stay locked until `commit` or `abort`."""
        self._channel.run(transactions.prepare(self.work))

    def commit(self) -> None:
        """Make it true. It is asked for until the answer is known.

        TransactionError if it was aborted meanwhile, or if nobody can tell any more.
        """
        self._channel.run(transactions.commit(self.work))

    def abort(self) -> None:
        """Take it back."""
        self._channel.run(transactions.abort(self.work))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._channel.run(transactions.leave(self.work, is_well=kind is None))
