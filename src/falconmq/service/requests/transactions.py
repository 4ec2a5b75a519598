"""Transactions over HTTP: begun with one request, used and ended with others.

Everything is in memory. After a restart an active transaction never was, its messages are back;
one that was prepared is in doubt, and is found here by its id again.

A read in a transaction whose caller never got the answer: the message belongs to the transaction,
and its commit deletes it unseen. So a caller that missed an answer must abort; then it is back.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

from falconmq import aio
from falconmq.errors import MqStatus, TransactionError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.service.requests.endings import End, Json, Registry, Work
from falconmq.service.requests.expiring import Expiring
from falconmq.service.state_schemas import State

LOST = "the store could not write, and everything that was not durable is undone"


@dataclass(slots=True, eq=False, kw_only=True)
class OpenTransaction(Work):
    """A transaction that has not ended."""

    transaction: aio.Transaction


class Transactions(Registry[OpenTransaction]):
    """The transactions that callers have open, and those that are in doubt."""

    kind = "transaction"

    def __init__(self, manager: aio.QueueManager, expiring: Expiring) -> None:
        super().__init__(expiring)
        self._manager = manager

    def begin(self, timeout: float, id: UUID | None = None) -> Json:
        """A new one; it is aborted when its time is over."""
        self._check_room()
        if id == NULL_UUID:  # the core takes it for no transaction at all, DM-A16
            raise TransactionError(
                f"{id} names no transaction",
                status=MqStatus.TRANSACTION_ENLIST,
                hint="take another id, or leave it out",
            )
        if id is not None and id in self._ended:
            raise TransactionError(
                f"there was a transaction {id} already",
                status=MqStatus.TRANSACTION_ENLIST,
                hint="take another id: how that one ended is still remembered",
            )
        transaction = self._manager.transaction(uuid4() if id is None else id)
        work = OpenTransaction(transaction.id, timeout, transaction=transaction)
        self._add(work, timeout)
        return self.view(work)

    def use(self, id: UUID) -> aio.Transaction:
        """For one operation, to be done before anything is awaited; refused if it has ended."""
        return self._usable(id).transaction

    def all(self) -> list[Json]:
        for transaction in self._manager.in_doubt():
            self._adopt(transaction)
        return super().all()

    async def prepare(self, id: UUID) -> Json:
        """Promise to commit, durably; from now on it has no time-out."""
        work = self._usable(id)
        if work.deadline is not None:
            work.deadline.cancel()
            work.deadline = None
        await work.transaction.prepare()
        return self.get(id)

    def view(self, work: OpenTransaction) -> Json:
        transaction = work.transaction
        is_timed = work.deadline is not None and not work.deadline.is_cancelled
        return {
            "id": str(work.id),
            "state": State.PREPARED if transaction.is_prepared else State.ACTIVE,
            "timeout": work.timeout if is_timed else None,
            "expires_at": work.deadline.moment if is_timed and work.deadline is not None else None,
            "operations": self._operations(work),
            "reason": "",
        }

    def _operations(self, work: OpenTransaction) -> int:
        return self._manager._engine.look(_operations, work.id)  # noqa: SLF001

    async def _finish(self, work: OpenTransaction, wanted: State) -> End:
        operations = self._operations(work)
        if wanted is State.COMMITTED:
            await work.transaction.commit()
        else:
            await work.transaction.abort()
        return End(wanted, {"timeout": work.timeout, "operations": operations})

    def _is_open_again(self, work: OpenTransaction) -> bool:
        """Its end could not be written, but its promise is in the store still."""
        for transaction in self._manager.in_doubt():
            if transaction.id == work.id:
                work.transaction = transaction
                return True
        return False

    def _is_open(self, work: OpenTransaction) -> bool:
        if work.ending is None and not work.transaction.is_active:
            self._note(work, State.ABORTED, LOST)
        return work.id in self._open

    def _may_expire(self, work: OpenTransaction) -> bool:
        return work.transaction.is_active and not work.transaction.is_prepared

    def _find(self, id: UUID) -> OpenTransaction | None:
        if id not in self._open and id not in self._ended:
            for transaction in self._manager.in_doubt():
                if transaction.id == id:
                    self._adopt(transaction)
        return super()._find(id)

    def _adopt(self, transaction: aio.Transaction) -> None:
        """Take up a transaction that an earlier run, or a program beside us, has prepared."""
        if transaction.id not in self._open:
            self._add(OpenTransaction(transaction.id, None, transaction=transaction), None)


def _operations(core: QueueManagerCore, id: UUID) -> int:
    transaction = core.transactions.get(id)
    return 0 if transaction is None else len(transaction.operations)
