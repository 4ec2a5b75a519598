"""Transaction: messages that are sent and received together or not at all."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import UUID

from falconmq.embedded import actions, blocking
from falconmq.embedded.engine import Engine
from falconmq.errors import MqStatus, TransactionError
from falconmq.manager import model


class TransactionState:
    """What the blocking and the asyncio transaction have in common."""

    def __init__(self, engine: Engine, transaction: model.Transaction) -> None:
        self._engine = engine
        self._transaction = transaction
        self._end = ""  # how it ended: committed or aborted

    @property
    def id(self) -> UUID:
        """Names it, for coordinators."""
        return self._transaction.identifier

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return not self._end and self.id in self._engine.core.transactions

    @property
    def is_prepared(self) -> bool:
        """Whether it was promised to a coordinator: it takes no more operations."""
        return self.is_active and self._transaction.is_prepared

    def use(self) -> model.Transaction:
        """The transaction for one more operation; TransactionError if it has ended."""
        if not self.is_active:
            raise self._ended()
        return self._transaction

    def __repr__(self) -> str:
        state = "prepared" if self.is_prepared else "active"
        return f"<Transaction {self.id}: {state if self.is_active else self._end or 'aborted'}>"

    def _finish(self, end: str) -> model.Transaction:
        transaction = self.use()
        self._end = end
        return transaction

    def _ended(self) -> TransactionError:
        how = self._end or "aborted, because the store could not write or a call was torn"
        return TransactionError(
            f"the transaction was {how}: it cannot be used again",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="begin another one: manager.transaction()",
        )


class Transaction(TransactionState):
    """Messages sent and received together or not at all; made by `QueueManager.transaction`.

    As a context manager it commits when the block ends well and aborts when it ends with an
    exception. An abort takes back what was sent and puts what was received into its old place.

        with manager.transaction() as transaction:
            order = orders.receive(transaction, timeout=5)
            invoices.send(falconmq.Message(order.body), transaction)

    After a commit has returned, it survives a crash. If the process ends before, nothing of the
    transaction happened.

    To commit together with a database, `prepare` first: then the transaction survives a crash as a
    promise, and waits for `commit` or `abort`, in this process or, from `QueueManager.in_doubt`, in
    the next one. A `with` block leaves a prepared transaction alone.
    """

    def prepare(self) -> None:
        """Promise to commit, durably. Its messages stay locked until `commit` or `abort`."""
        blocking.call(self._engine, actions.prepare, self.use())

    def commit(self) -> None:
        """Make it true. ResourceError if the disk is full: then nothing of it happened."""
        blocking.call(self._engine, actions.commit, self._finish("committed"))

    def abort(self) -> None:
        """Take it back."""
        blocking.call(self._engine, actions.abort, self._finish("aborted"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._end or self.is_prepared:
            return
        if kind is None:
            self.commit()
        elif self.is_active and not self._engine.is_closed:
            self.abort()


def active(transaction: TransactionState | None, engine: Engine) -> model.Transaction | None:
    """The transaction of a call, if it was given one of the same queue manager."""
    if transaction is None:
        return None
    if transaction._engine is not engine:  # noqa: SLF001
        raise TransactionError(
            "the transaction belongs to another queue manager",
            status=MqStatus.TRANSACTION_ENLIST,
            hint="begin it with the manager whose queues take part",
        )
    return transaction.use()
