"""Transactions (MQDMPR 3.1.1.13, .14, 3.1.4.3 to .5, 3.1.7.1.8): operations that happen together.

How to think about it. An operation in a transaction locks a place in a queue and is noted down: a
message that was sent is not yet there for readers, one that was read or moved is not there any
more. Commit goes through the notes and does each for good, abort undoes each.

Internal transactions write nothing before their commit, and the commit is one batch of the store.
So a crash at any moment leaves all of it or nothing, and there is nothing to clean up. A
transaction that an outside coordinator decides is written when it is prepared, with its messages,
and waits until somebody says how it ended (see `prepared` and `coordinator`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import UUID

from falconmq.errors import MqStatus, ResourceError, TransactionError
from falconmq.manager.core import QueueManagerCore, message_key
from falconmq.manager.events import EventKind
from falconmq.manager.expiry import expire
from falconmq.manager.model import (
    OutgoingQueue,
    Queue,
    Transaction,
    TransactionalOperation,
)
from falconmq.manager.moving import complete_move
from falconmq.manager.placing import store_again
from falconmq.manager.positions import MessagePosition
from falconmq.manager.prepared import forget_transaction
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import message_position_deleted, remove_position
from falconmq.manager.states import OperationType, PositionState
from falconmq.manager.storing import message_position_available
from falconmq.manager.waiting import end_waits_of_transaction
from falconmq.wire.message_class import MessageClass

WIRE_ID_MAX: Final = 0xFFFFF  # 20 bits of the packet, DM-A32


def create_transaction(core: QueueManagerCore, identifier: UUID | None = None) -> Transaction:
    """Begin a transaction (Create Transaction, MQDMPR 3.1.7.1.8)."""
    if identifier is None:
        identifier = UUID(int=core.random.getrandbits(128), version=4)
    if identifier in core.transactions:
        raise TransactionError(
            f"there is a transaction {identifier} already",
            status=MqStatus.TRANSACTION_ENLIST,
            hint="commit or abort it first, or take another identifier",
        )
    transaction = Transaction(identifier, wire_id=_unused_wire_id(core))  # DM-3.1.7.1.8-01
    core.transactions[identifier] = transaction  # DM-3.1.7.1.8-02
    return transaction


def _unused_wire_id(core: QueueManagerCore) -> int:
    """20 bits that no live transaction has; from a counter, so that neighbours differ too."""
    used = {transaction.wire_id for transaction in core.transactions.values()}
    if len(used) >= WIRE_ID_MAX:
        raise ResourceError(
            f"{len(used)} transactions are open, and a packet can tell no more apart",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="commit or abort some",
        )
    while True:
        core.last_wire_id = (core.last_wire_id + 1) & WIRE_ID_MAX
        if core.last_wire_id and core.last_wire_id not in used:
            return core.last_wire_id


def prepare_transaction(
    core: QueueManagerCore, identifier: UUID, *, single_phase: bool = True
) -> None:
    """Close a transaction and mark its first and last messages (Transaction Prepare, 3.1.4.3).

    TransactionError (TRANSACTION_SEQUENCE) if there is no such transaction.
    """
    transaction = find_transaction(core, identifier)  # DM-3.1.4.3-03
    transaction.single_phase = single_phase  # DM-3.1.4.3-04
    if transaction.is_prepared:
        return
    transaction.is_prepared = True
    end_waits_of_transaction(core, transaction)
    _mark_first_and_last(transaction)


def _mark_first_and_last(transaction: Transaction) -> None:
    """FirstInTransaction and LastInTransaction, for each queue that got messages (DM-A27).

    The readers of a queue see only what came to it, and tell by the marks where a transaction
    begins and ends there: Windows documents the property so ("to a single queue").
    """
    first: dict[Queue, StoredMessage] = {}
    last: dict[Queue, StoredMessage] = {}
    for operation in transaction.operations:
        if operation.kind is OperationType.ENQUEUE:  # DM-3.1.4.3-09
            queue, message = operation.position.queue, operation.position.message
            first.setdefault(queue, message)
            last[queue] = message
    for message in first.values():
        message.mark_in_transaction(first=True)  # DM-3.1.4.3-05
    for message in last.values():
        message.mark_in_transaction(last=True)  # DM-3.1.4.3-06


def commit_transaction(core: QueueManagerCore, identifier: UUID) -> None:
    """Do all operations of a transaction for good, in one batch (Transaction Commit, 3.1.4.4).

    TransactionError (TRANSACTION_SEQUENCE) if there is no such transaction.
    """
    transaction = find_transaction(core, identifier)  # DM-3.1.4.4-02
    if not transaction.is_prepared:
        prepare_transaction(core, identifier)
    _close(core, transaction)
    while transaction.operations:
        operation = transaction.operations.popleft()  # DM-3.1.4.4-03, DM-3.1.4.4-09
        if operation.position.state is not PositionState.DELETED:
            _commit_operation(core, operation)
        elif operation.kind is OperationType.ENQUEUE and operation.position.queue.is_deleted:
            _lose_with_its_queue(core, operation.position)
        elif operation.kind is OperationType.DEQUEUE:
            _read_for_good(core, operation.position)


def _commit_operation(core: QueueManagerCore, operation: TransactionalOperation) -> None:
    position, target = operation.position, operation.target
    queue = position.queue
    if operation.kind is OperationType.ENQUEUE:
        message_position_available(core, queue, position)  # DM-3.1.4.4-04
    elif operation.kind is OperationType.DEQUEUE:
        if operation.reason == MessageClass.NACK_RECEIVE_TIMEOUT:
            expire(core, position)  # the queue says which class that is, and whether it is kept
        else:
            message_position_deleted(core, queue, position, operation.reason)  # DM-3.1.4.4-05
    elif target is None or target.is_deleted:
        message_position_available(core, queue, position)  # it has nowhere to go, and stays
    else:
        complete_move(core, position, target)  # DM-3.1.4.4-06, DM-3.1.4.4-07, DM-3.1.4.4-08


def _read_for_good(core: QueueManagerCore, position: MessagePosition) -> None:
    """A message that was read went with its queue. If that deletion fails, so must this commit:

    else the message would come back and be read again. So the batch is not empty.
    """
    if position.is_written:
        core.batch.delete("messages", message_key(position.queue.number, position.lookup_id))


def _lose_with_its_queue(core: QueueManagerCore, position: MessagePosition) -> None:
    """The queue was deleted before the message was sent for good: now its sender may know."""
    for subscriber in core.deleted_subscribers:
        subscriber(position.queue, position, MessageClass.NACK_Q_DELETED)


def abort_transaction(core: QueueManagerCore, identifier: UUID) -> None:
    """Undo all operations of a transaction (Transaction Abort, 3.1.4.5).

    What was read is back at its old place, with its abort count raised: whoever reads a message
    that always fails can see it by that. TransactionError (TRANSACTION_SEQUENCE) if there is no
    such transaction.
    """
    transaction = find_transaction(core, identifier)  # DM-3.1.4.5-02
    _close(core, transaction)
    while transaction.operations:
        operation = transaction.operations.popleft()  # DM-3.1.4.5-06
        if operation.position.state is not PositionState.DELETED:
            _abort_operation(core, operation)


def _abort_operation(core: QueueManagerCore, operation: TransactionalOperation) -> None:
    position = operation.position
    queue = position.queue
    if operation.kind is OperationType.ENQUEUE:
        remove_position(core, position)  # DM-3.1.4.5-05: and nobody is told
    elif position.state is PositionState.PURGE_PENDING:
        reason = MessageClass.NACK_Q_PURGED
        message_position_deleted(core, queue, position, reason)  # DM-3.1.4.5-03
    else:
        if operation.reason == MessageClass.ACK_RECEIVE:
            _count_abort(core, position)
        message_position_available(core, queue, position)  # DM-3.1.4.5-04


def _count_abort(core: QueueManagerCore, position: MessagePosition) -> None:
    """One more reader gave it back; in the store too, so that a restart forgets no failure."""
    if core.events is not None:
        core.events.record_position(EventKind.RETURNED, position)
    message = position.message
    position.message = replace(message, abort_count=message.abort_count + 1)
    store_again(core, position)


def _close(core: QueueManagerCore, transaction: Transaction) -> None:
    """It ends: nobody can add to it any more (DM-3.1.4.4-10, DM-3.1.4.5-07)."""
    end_waits_of_transaction(core, transaction)
    del core.transactions[transaction.identifier]
    if transaction.is_prepared and not transaction.single_phase:
        forget_transaction(core, transaction)


def find_transaction(core: QueueManagerCore, identifier: UUID) -> Transaction:
    """The open transaction with this identifier; TransactionError if there is none."""
    transaction = core.transactions.get(identifier)
    if transaction is None:
        raise TransactionError(
            f"no open transaction {identifier}",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="it was committed or aborted before, or a restart has aborted it",
        )
    return transaction


def check_usage(queue: Queue, transaction: Transaction | None, *, receiving: bool = False) -> None:
    """Refuse what a queue of this kind would only drop: TransactionError (TRANSACTION_USAGE).

    A transactional queue takes messages in transactions alone, any other queue takes and gives them
    outside alone. Only its own queue manager knows the kind of a queue elsewhere.
    """
    if isinstance(queue, OutgoingQueue):
        return
    is_transactional = queue.properties.transactional  # shared by its journal and subqueues
    if is_transactional and transaction is None and not receiving:
        raise TransactionError(
            f"{queue.path_name} is transactional, and the message is sent outside a transaction",
            status=MqStatus.TRANSACTION_USAGE,
            hint="with manager.transaction() as transaction: queue.send(message, transaction)",
        )
    if transaction is not None and not is_transactional:
        verb = "received from" if receiving else "sent to"
        raise TransactionError(
            f"{queue.path_name} is not transactional, but is {verb} in a transaction",
            status=MqStatus.TRANSACTION_USAGE,
            hint="leave the transaction out, or use a queue created with transactional=True",
        )
