"""The queue manager as a resource manager in two-phase commit (MQDMPR 3.1.4.6 to .11, MS-DTCO 3.5).

How to think about it. A database and a queue shall commit together. Somebody, the coordinator, asks
both to prepare. Who says yes has made sure that it can commit, whatever happens: the transaction
with all its messages is in the store, its places in the queues stay locked. Then the coordinator
decides, writes the decision down where it cannot be lost, and tells both. If one of them goes down
in between, it finds the prepared transaction again when it comes back, is in doubt, and asks.

    transaction = coordinator.enlist(core, create_transaction(core, identifier))
    ...                                                 # send and receive in it
    coordinator.prepare(core, identifier)               # and commit the batch: now it is a promise
    ...                                                 # the database commits, and so decides
    coordinator.commit_prepared(core, identifier)

    coordinator.resolve_in_doubt(core, outcome_of)      # after a restart

The events of the Distributed Transaction Coordinator carry the numbers of MS-DTCO, so that a wire
to one can be laid later; nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from falconmq.errors import MqStatus, TransactionError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Transaction
from falconmq.manager.prepared import recover, store_transaction
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    find_transaction,
    prepare_transaction,
)

__all__ = [
    "Answer",
    "EnlistmentMessage",
    "PrepareResult",
    "ReenlistmentMessage",
    "abort_prepared",
    "commit_prepared",
    "dtc_reenlistment",
    "dtc_transaction_abort",
    "dtc_transaction_commit",
    "dtc_transaction_prepare",
    "enlist",
    "in_doubt",
    "prepare",
    "recover",
    "resolve_in_doubt",
]


class EnlistmentMessage(IntEnum):
    """TXUSER_ENLISTMENT_MTAG_...: between coordinator and resource manager (MS-DTCO 2.2.10.2.2)."""

    PREPAREREQ = 0x1033
    ABORTREQ = 0x1034
    COMMITREQ = 0x1035
    PREPAREREQDONE = 0x1036
    ABORTREQDONE = 0x1037
    COMMITREQDONE = 0x1038


class ReenlistmentMessage(IntEnum):
    """TXUSER_REENLIST_MTAG_...: how a transaction in doubt ended (MS-DTCO 2.2.10.2.3)."""

    REENLIST = 0x1061  # the question
    REENLIST_ABORTED = 0x1062
    REENLIST_COMMITTED = 0x1063
    REENLIST_TIMEOUT = 0x1064  # nobody knows yet


class PrepareResult(IntEnum):
    """What PREPAREREQDONE says."""

    OK = 0
    ABORT = 1
    READONLY = 2
    SINGLEPHASE_COMMIT = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What the coordinator is told when the event's batch is durable."""

    message: EnlistmentMessage
    result: PrepareResult | None = None  # of PREPAREREQDONE


OutcomeOf = Callable[[UUID], ReenlistmentMessage]


def enlist(core: QueueManagerCore, transaction: Transaction) -> Transaction:
    """From now on an outside coordinator decides how this transaction ends (DM-A30)."""
    find_transaction(core, transaction.identifier)
    transaction.single_phase = False  # DM-3.1.7.1.8-03
    return transaction


def prepare(core: QueueManagerCore, identifier: UUID) -> None:
    """Promise to commit: write the transaction down, keep its places locked.

    The promise may be told when the batch is durable. TransactionError if there is no such
    transaction: then the coordinator must abort.
    """
    prepare_transaction(core, identifier, single_phase=False)  # DM-3.1.4.6-02
    store_transaction(core, find_transaction(core, identifier))  # DM-3.1.4.6-07


def commit_prepared(core: QueueManagerCore, identifier: UUID) -> None:
    """The coordinator decided to commit: all operations and the promise's end in one batch."""
    _require_prepared(core, identifier)
    commit_transaction(core, identifier)


def abort_prepared(core: QueueManagerCore, identifier: UUID) -> None:
    """The coordinator decided to abort."""
    _require_prepared(core, identifier)
    abort_transaction(core, identifier)


def in_doubt(core: QueueManagerCore) -> list[Transaction]:
    """The transactions that are prepared and wait for the coordinator's decision."""
    return [t for t in core.transactions.values() if t.is_prepared and not t.single_phase]


def resolve_in_doubt(core: QueueManagerCore, outcome_of: OutcomeOf) -> None:
    """Ask for each transaction in doubt how it ended, and end it so.

    TransactionError if nobody can say (REENLIST_TIMEOUT): that one and those behind it stay locked.
    """
    for transaction in in_doubt(core):
        dtc_reenlistment(core, transaction.identifier, outcome_of(transaction.identifier))


def dtc_transaction_prepare(
    core: QueueManagerCore, identifier: UUID, *, single_phase: bool = False
) -> Answer:
    """DTC Transaction Prepare, MQDMPR 3.1.4.6: PREPAREREQ came, with its fSinglePhase."""
    try:
        if not single_phase:
            prepare(core, identifier)
            return _prepared(PrepareResult.OK)  # DM-3.1.4.6-03
        prepare_transaction(core, identifier, single_phase=False)
    except TransactionError:
        return _prepared(PrepareResult.ABORT)  # DM-3.1.4.6-09: there is nothing to abort
    commit_transaction(core, identifier)  # DM-3.1.4.6-04
    return _prepared(PrepareResult.SINGLEPHASE_COMMIT)  # DM-3.1.4.6-08


def dtc_transaction_commit(core: QueueManagerCore, identifier: UUID) -> Answer:
    """DTC Transaction Commit, MQDMPR 3.1.4.7: COMMITREQ came."""
    commit_prepared(core, identifier)  # DM-3.1.4.7-02
    return Answer(EnlistmentMessage.COMMITREQDONE)  # DM-3.1.4.7-03


def dtc_transaction_abort(core: QueueManagerCore, identifier: UUID) -> Answer:
    """DTC Transaction Abort, MQDMPR 3.1.4.8: ABORTREQ came, prepared or not."""
    abort_transaction(core, identifier)  # DM-3.1.4.8-02
    return Answer(EnlistmentMessage.ABORTREQDONE)  # DM-3.1.4.8-03


def dtc_reenlistment(
    core: QueueManagerCore, identifier: UUID, outcome: ReenlistmentMessage
) -> None:
    """DTC Reenlistment Commit, Abort or Timeout, MQDMPR 3.1.4.9 to .11: the answer to REENLIST."""
    if outcome is ReenlistmentMessage.REENLIST_COMMITTED:
        commit_prepared(core, identifier)  # DM-3.1.4.9-02
    elif outcome is ReenlistmentMessage.REENLIST_ABORTED:
        abort_prepared(core, identifier)  # DM-3.1.4.10-02
    else:
        raise TransactionError(  # DM-3.1.4.11-02
            f"nobody knows yet how transaction {identifier} ended; its messages stay locked",
            status=MqStatus.DTC_CONNECT,
            hint="start again when its coordinator can be reached",
        )


def _prepared(result: PrepareResult) -> Answer:
    return Answer(EnlistmentMessage.PREPAREREQDONE, result)


def _require_prepared(core: QueueManagerCore, identifier: UUID) -> None:
    transaction = find_transaction(core, identifier)
    if not transaction.is_prepared or transaction.single_phase:
        raise TransactionError(
            f"transaction {identifier} was not prepared for a coordinator",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="prepare it first, and tell the coordinator when that is durable",
        )
