"""Applications that work in transactions: several steps with time between them, then the end.

They live in one life of their node. If that ends in between, so does what they had begun; the same
if a commit fails, for then the queue manager has forgotten their transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from falconmq.errors import TransactionError
from falconmq.manager.model import ReadResult, Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.manager.reading import dequeue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.simulation.ledger import Copy, Kind
from falconmq.simulation.node import Life

if TYPE_CHECKING:
    from falconmq.simulation.workload import Workload


class SendingTransaction:
    """An application that sends several messages in one transaction, then commits or not."""

    def __init__(self, workload: Workload, life: Life) -> None:
        self.workload = workload
        self.life = life
        self.world = workload.world
        self.copies: list[Copy] = []
        self.left = self.world.random.randint(1, 4)

    def begin(self) -> None:
        core = self.life.core
        self.transaction = self.life.turn(lambda: create_transaction(core))
        self._step()

    def _step(self) -> None:
        """Send one more, or end; some applications take their time between two messages."""
        while self.left and not self.life.is_over:
            self.left -= 1
            if self.transaction.identifier not in self.life.core.transactions:
                break  # a commit failed meanwhile, and it is over
            self.life.turn(self._post)
            if self.world.chance(0.3):
                self.world.after(self.world.random.uniform(0.0, 2.0), self._step)
                return
        self._end()

    def _post(self) -> None:
        letter = self.workload.letter(self.life.node, Kind.TRANSACTIONAL)
        copy = self.workload.post(self.life, letter, self.transaction)
        if copy is not None:
            self.copies.append(copy)

    def _end(self) -> None:
        ledger, life, copies = self.workload.ledger, self.life, self.copies
        if life.is_over or self.transaction.identifier not in life.core.transactions:
            ledger.gone(copies)
            return
        is_abort = self.world.chance(0.2)
        end: Callable[..., None] = abort_transaction if is_abort else commit_transaction

        def done(is_durable: bool) -> None:
            ledger.accepted(copies) if is_durable and not is_abort else ledger.gone(copies)

        life.turn(lambda: end(life.core, self.transaction.identifier), done)


class ReceivingTransaction:
    """An application that reads in a transaction, thinks, and commits or not."""

    def __init__(self, workload: Workload, life: Life) -> None:
        self.workload = workload
        self.life = life
        self.world = workload.world
        self.found: list[MessagePosition] = []
        self.copies: list[Copy] = []  # some applications send what they make of it, all or nothing

    def begin(self) -> None:
        self.transaction = self.life.turn(self._read)
        self.world.after(self.world.random.uniform(0.0, 3.0), self._end)

    def _read(self) -> Transaction:
        core = self.life.core
        transaction = create_transaction(core)
        descriptor = self.workload.open(self.life, "orders")
        for _ in range(self.world.random.randint(1, 3)):
            result = dequeue_message(core, descriptor, timeout=0, transaction=transaction)
            assert isinstance(result, ReadResult)
            if result.position is not None:
                self.found.append(result.position)
        if self.found and self.world.chance(0.3):
            letter = self.workload.letter(self.life.node, Kind.TRANSACTIONAL)
            copy = self.workload.post(self.life, letter, transaction)
            if copy is not None:
                self.copies.append(copy)
        return transaction

    def _end(self) -> None:
        life, transaction = self.life, self.transaction
        if life.is_over:
            self.workload.ledger.gone(self.copies)
            return
        is_abort = self.world.chance(0.25)
        end: Callable[..., None] = abort_transaction if is_abort else commit_transaction

        def finish() -> bool:
            try:
                end(life.core, transaction.identifier)
            except TransactionError:  # a commit failed meanwhile, and it is over
                return False
            return True

        ended: list[bool] = []
        life.turn(lambda: ended.append(finish()), lambda ok: self._consumed(ok, is_abort, ended))

    def _consumed(self, is_durable: bool, is_abort: bool, ended: list[bool]) -> None:
        ledger = self.workload.ledger
        if not is_durable or is_abort or ended != [True]:
            ledger.gone(self.copies)
            return
        ledger.accepted(self.copies)
        for position in self.found:
            self.workload.consumed(self.life, position)
