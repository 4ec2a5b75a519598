"""Applications that work in transactions: several steps with time between them, then the end.

They live in one life of their node. If that ends in between, so does what they had begun; the same
if a commit fails, for then the queue manager has forgotten their transaction. Only what was
prepared for a coordinator outlives both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from falconmq.errors import TransactionError
from falconmq.manager import coordinator
from falconmq.manager.model import ReadResult, Transaction
from falconmq.manager.positions import MessagePosition
from falconmq.manager.reading import dequeue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.simulation.copies import Copy, Kind
from falconmq.simulation.life import Decision, Life

if TYPE_CHECKING:
    from falconmq.simulation.workload import Workload


def read_orders(workload: Workload, life: Life, transaction: Transaction) -> list[MessagePosition]:
    """Read some transactional messages, as many as there are."""
    descriptor = workload.open(life, "orders")
    found: list[MessagePosition] = []
    for _ in range(workload.world.random.randint(1, 3) if descriptor is not None else 0):
        assert descriptor is not None
        result = dequeue_message(life.core, descriptor, timeout=0, transaction=transaction)
        assert isinstance(result, ReadResult)
        if result.position is not None:
            found.append(result.position)
    return found


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
        letters = self.workload.letters(self.life.node, Kind.TRANSACTIONAL)
        self.copies += self.workload.post(self.life, letters, self.transaction)

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
        self.found += read_orders(self.workload, self.life, transaction)
        if self.found and self.world.chance(0.3):
            letters = self.workload.letters(self.life.node, Kind.TRANSACTIONAL)
            self.copies += self.workload.post(self.life, letters, transaction)
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


class CoordinatedTransaction:
    """An application whose transaction an outside coordinator decides (two-phase commit).

    The coordinator survives whatever happens to the node. It decides to commit only if it was told
    that everything is prepared, and then does not rest until the queue manager has done so.
    """

    def __init__(self, workload: Workload, life: Life) -> None:
        self.workload = workload
        self.life = life
        self.node = life.node
        self.world = workload.world
        self.identifier = UUID(int=self.world.random.getrandbits(128), version=4)
        self.found: list[MessagePosition] = []
        self.copies: list[Copy] = []
        self.decision: Decision  # when everything is prepared

    def begin(self) -> None:
        self.world.counts["two-phase transaction"] += 1
        self.life.turn(self._work)
        self.world.after(self.world.random.uniform(0.0, 2.0), self._prepare)

    def _work(self) -> None:
        life, workload = self.life, self.workload
        transaction = coordinator.enlist(life.core, create_transaction(life.core, self.identifier))
        if self.world.chance(0.3):
            self.found += read_orders(workload, life, transaction)
        for _ in range(self.world.random.randint(1, 3)):
            letters = workload.letters(life.node, Kind.TRANSACTIONAL)
            self.copies += workload.post(life, letters, transaction)

    def _prepare(self) -> None:
        life = self.life
        if life.is_over or self.identifier not in life.core.transactions:
            self.workload.ledger.gone(self.copies)
            return
        life.turn(lambda: coordinator.prepare(life.core, self.identifier), self._prepared)

    def _prepared(self, is_durable: bool) -> None:
        if not is_durable:
            self.workload.ledger.gone(self.copies)
            return
        has_heard = not self.life.is_over  # else nobody could tell the coordinator
        is_commit = has_heard and self.world.chance(0.75)
        self.decision = self.node.decisions[self.identifier] = Decision(is_commit, self._ended)
        self.world.after(self.world.random.choice((0.0, 0.5, 10.0, 100.0)), self._tell)

    def _tell(self) -> None:
        """Tell the queue manager, in whatever life it is; again, until that is durable."""
        node, life, decision = self.node, self.node.life, self.decision
        if decision.is_told:
            return  # it has asked, when it started
        if life is None:
            self.world.after(5.0, self._tell)
            return
        if self.identifier not in life.core.transactions:
            ledger = self.workload.ledger
            raise ledger.fail(f"{node.name} has forgotten what it prepared", *self.copies[:1])
        decision.is_told = True
        end = coordinator.commit_prepared if decision.is_commit else coordinator.abort_prepared
        life.turn(lambda: end(life.core, self.identifier), partial(self._ended, life))

    def _ended(self, life: Life, is_durable: bool) -> None:
        ledger = self.workload.ledger
        if not is_durable:
            self.decision.is_told = False
            self.world.after(1.0, self._tell)
            return
        self.world.counts["left in doubt"] += life is not self.life
        if not self.decision.is_commit:
            ledger.gone(self.copies)
            return
        ledger.accepted(self.copies)
        for position in self.found:
            self.workload.consumed(life, position)
