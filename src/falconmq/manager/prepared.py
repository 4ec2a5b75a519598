"""Prepared transactions in the store: written with their messages, taken up after a restart.

A transaction that an outside coordinator decides may be in doubt for longer than we live. So what
it holds is written when it is prepared, and `recover` locks the same places again, until somebody
says how it ended (see `coordinator`).
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import MqStatus, StoreError, WireError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.expiry import start_time_to_be_received_timer
from falconmq.manager.model import (
    Queue,
    QueueProperties,
    Transaction,
    TransactionalOperation,
)
from falconmq.manager.placing import link_position
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import OperationType, PositionState, QueueType
from falconmq.names import PathName, QueueKind
from falconmq.wire.reader import Buffer, Layout, Reader

TABLE: Final = "transactions"
VERSION: Final = 1
PURGE_PENDING: Final = 0x01

_KINDS: Final = (OperationType.ENQUEUE, OperationType.DEQUEUE, OperationType.MOVE)
_HEAD: Final = Layout("Transaction", "BBHII", "Version", "Flags", "Reserved", "WireId", "Count")
_OPERATION: Final = Layout(
    "TransactionalOperation",
    "BBHQQQI",
    "Kind",
    "Flags",
    "Reason",
    "QueueNumber",
    "LookupIdentifier",
    "TargetNumber",
    "MessageSize",
)


def store_transaction(core: QueueManagerCore, transaction: Transaction) -> None:
    """Write a prepared transaction, its operations and its messages (DM-3.1.4.6-07)."""
    core.batch.put(TABLE, transaction.identifier.bytes, _encode(transaction))


def forget_transaction(core: QueueManagerCore, transaction: Transaction) -> None:
    """It is decided: the store need not know of it any more."""
    core.batch.delete(TABLE, transaction.identifier.bytes)


def recover(core: QueueManagerCore) -> list[Transaction]:
    """Take up the prepared transactions of the store: lock their places, list who is in doubt.

    Called when the queues and their messages have been loaded. What an internal transaction did is
    not in the store, so those have been aborted already (3.1.3).
    """
    in_doubt = []
    for key, record in core.store.scan(TABLE):
        identifier = UUID(bytes=key)
        if identifier in core.transactions:
            continue
        try:
            transaction = _decode(core, identifier, record)
        except WireError as error:
            raise StoreError(
                f"prepared transaction {identifier} cannot be read: {error}",
                status=MqStatus.MESSAGE_STORAGE_FAILED,
                hint="nothing was changed; restore the data directory from a backup",
            ) from error
        core.transactions[identifier] = transaction
        in_doubt.append(transaction)
    return in_doubt


def _encode(transaction: Transaction) -> bytes:
    operations = transaction.operations
    parts: list[Buffer] = [_HEAD.pack(VERSION, 0, 0, transaction.wire_id, len(operations))]
    for operation in operations:
        position, target = operation.position, operation.target
        is_new = operation.kind is OperationType.ENQUEUE
        message = position.message.encode() if is_new else b""
        is_purged = position.state is PositionState.PURGE_PENDING
        head = _OPERATION.pack(
            _KINDS.index(operation.kind),
            PURGE_PENDING if is_purged else 0,
            operation.reason,
            position.queue.number,
            position.lookup_id,
            0 if target is None else target.number,
            len(message),
        )
        parts += head, message
    return b"".join(parts)


def _decode(core: QueueManagerCore, identifier: UUID, record: Buffer) -> Transaction:
    reader = Reader(record)
    reader.enter("Transaction")
    version, _, _, wire_id, count = reader.fixed(_HEAD)
    if version != VERSION:
        raise reader.refuse(_HEAD, "Version", f"{version}, this FalconMQ writes {VERSION}")
    transaction = Transaction(identifier, single_phase=False, is_prepared=True, wire_id=wire_id)
    for _ in range(count):
        operation = _decode_operation(core, transaction, reader)
        if operation is not None:
            transaction.operations.append(operation)
    return transaction


def _decode_operation(
    core: QueueManagerCore, transaction: Transaction, reader: Reader
) -> TransactionalOperation | None:
    """One operation with its place locked; None if the message is gone, or the queue it was in.

    An express message that was read is gone with the memory it lived in (DM-3.1.1.12-46).
    """
    kind, flags, reason, number, lookup_id, target, size = reader.fixed(_OPERATION)
    record = reader.take(size, "Message")
    if kind >= len(_KINDS):
        raise reader.refuse(_OPERATION, "Kind", f"{kind} is no kind of operation")
    queue = core.queues.get(number)
    if queue is None:
        if _KINDS[kind] is not OperationType.ENQUEUE:
            return None
        lost = _lost_position(core, number, lookup_id, StoredMessage.decode(record))
        return TransactionalOperation(OperationType.ENQUEUE, lost)
    if _KINDS[kind] is OperationType.ENQUEUE:
        message = StoredMessage.decode(record)
        found = link_position(core, MessagePosition(queue, lookup_id, message))
        start_time_to_be_received_timer(core, found)
    else:
        position = queue.positions.find(lookup_id)
        if position is None:
            return None
        found = position
        if found.state is PositionState.AVAILABLE:
            queue.positions.hold(found)
    if flags & PURGE_PENDING:
        found.state = PositionState.PURGE_PENDING
    found.transaction = transaction
    return TransactionalOperation(_KINDS[kind], found, core.queues.get(target), reason)


def _lost_position(
    core: QueueManagerCore, number: int, lookup_id: int, message: StoredMessage
) -> MessagePosition:
    """The place of a message whose queue was deleted; its commit will tell its sender."""
    path = PathName(core.settings.computer_name, QueueKind.PRIVATE, f"deleted{number}")
    queue = Queue(number, path, QueueType.PRIVATE, QueueProperties(), core.fetch)
    queue.is_deleted = True
    return MessagePosition(queue, lookup_id, message, PositionState.DELETED)
