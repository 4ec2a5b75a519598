"""Reading messages (MQDMPR 3.1.7.1.10 to .15, .17 and 3.1.7.3.2, .3).

How to think about it. A read looks for a place, through a cursor or from the front. If there is a
message, `take` does with it what this read wants: show it, lock it, or delete it. If there is none,
the read goes into the queue's line with the same `take`, and the message that comes is taken in the
very step that made it available: nobody can come between (DM-A20).

Outcomes are returned, with the status the documents give them; what the caller may not do at all
(receive through a handle opened to peek, read in a transaction that is over) is raised. A message
may be handed to the user when the batch of the event is durable.

| situation                        | without a cursor    | with a cursor                       |
|----------------------------------|---------------------|-------------------------------------|
| receive, nothing there, 0 s      | IO_TIMEOUT          | MESSAGE_NOT_FOUND                   |
| receive, nothing came in time    | IO_TIMEOUT          | IO_TIMEOUT, cursor at the end       |
| peek, nothing there or came      | IO_TIMEOUT          | IO_TIMEOUT, cursor unread           |
| another reader took the message  |                     | MESSAGE_ALREADY_RECEIVED            |
| peek next before any peek        |                     | ILLEGAL_CURSOR_ACTION               |
| the queue was deleted            | QUEUE_NOT_AVAILABLE | QUEUE_NOT_AVAILABLE                 |
| closed while it waited           | OPERATION_CANCELLED | OPERATION_CANCELLED                 |
| its transaction ended meanwhile  | TRANSACTION_SEQUENCE| TRANSACTION_SEQUENCE                |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from falconmq.errors import MqStatus, ReadError, TransactionError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.cursors import (
    CursorStatus,
    Looked,
    get_message_for_peek,
    get_next_message_for_dequeue,
    get_next_message_for_peek,
    message_available,
    require_open_cursor,
    require_peek_access,
    wait_time_expired,
)
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.manager.model import (
    Cursor,
    OpenQueueDescriptor,
    Queue,
    ReadResult,
    Transaction,
    TransactionalOperation,
    WaitingRead,
)
from falconmq.manager.positions import END, START, MessagePosition
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import AccessType, OperationType, PositionState, SeekAction
from falconmq.manager.storing import message_position_available
from falconmq.manager.waiting import WaitInTransaction, end_waiting_read, wait_for_new_message
from falconmq.wire.message_class import MessageClass

Take = Callable[[MessagePosition], ReadResult]

MAY_RECEIVE: Final = frozenset({AccessType.RECEIVE, AccessType.RECEIVE_ADMIN})  # DM-3.1.1.17-16
_STATUS_OF: Final[Mapping[CursorStatus, MqStatus]] = {
    CursorStatus.ALREADY_RECEIVED: MqStatus.MESSAGE_ALREADY_RECEIVED,  # DM-3.1.7.1.10-09
    CursorStatus.NOT_FOUND: MqStatus.MESSAGE_NOT_FOUND,  # DM-3.1.7.1.10-10
    CursorStatus.ILLEGAL_CURSOR_ACTION: MqStatus.ILLEGAL_CURSOR_ACTION,  # DM-3.1.7.1.14-05
}


class SeekDirection(Enum):
    FORWARD = "forward"
    BACKWARD = "backward"


def dequeue_message(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    *,
    timeout: float | None = None,
    cursor: Cursor | None = None,
    transaction: Transaction | None = None,
    tag: object = None,
    two_phase: bool = False,
) -> ReadResult | WaitingRead:
    """Take a message out of a queue; wait for one if there is none.

    Dequeue Message, MQDMPR 3.1.7.1.10. `timeout` in seconds, None for ever, 0 not at all. In a
    transaction the message is locked until the commit, with `two_phase` until Dequeue Message End.
    """
    queue = descriptor.queue
    if queue is None:
        return ReadResult(MqStatus.QUEUE_NOT_AVAILABLE)  # DM-3.1.7.1.10-05
    _require_receive_access(descriptor)
    owner = _live_transaction(core, transaction)
    if cursor is None:
        status, position = _look_from_start(queue, peek=False)
    else:
        require_open_cursor(core, descriptor, cursor)
        no_wait = timeout is not None and timeout <= 0  # DM-3.1.7.1.10-07
        status, position = get_next_message_for_dequeue(cursor, no_wait=no_wait)
    if position is not None:
        return _dequeue(core, position, owner, two_phase=two_phase)
    if status is not CursorStatus.WAITING:
        return ReadResult(_STATUS_OF[status])

    def take(came: MessagePosition) -> ReadResult:
        return _dequeue(core, came, owner, two_phase=two_phase)

    wait = _wait(core, descriptor, take, cursor=cursor, tag=tag, transaction=owner)
    wait.is_destructive = True  # DM-3.1.7.1.10-11, -16
    return wait_for_new_message(core, wait, timeout)


def dequeue_message_begin(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    *,
    timeout: float | None = None,
    cursor: Cursor | None = None,
    transaction: Transaction | None = None,
    tag: object = None,
) -> ReadResult | WaitingRead:
    """Lock a message for a reader elsewhere, who says how it went with Dequeue Message End.

    Dequeue Message Begin, MQDMPR 3.1.7.1.11. A transaction, if there is one, decides instead.
    """
    return dequeue_message(
        core,
        descriptor,
        timeout=timeout,
        cursor=cursor,
        transaction=transaction,
        tag=tag,
        two_phase=True,  # DM-3.1.7.1.11-04
    )


def dequeue_message_end(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    position: MessagePosition,
    *,
    delete: bool,
    transactional: bool = False,
) -> MqStatus:
    """The reader of a locked message has it (`delete`), or gives it back.

    Dequeue Message End, MQDMPR 3.1.7.1.12. TRANSACTION_SEQUENCE if no read of this message is open:
    it is available or gone, or a transaction has it and the caller does not know.
    """
    queue = descriptor.queue
    if queue is None:
        return MqStatus.QUEUE_NOT_AVAILABLE  # DM-3.1.7.1.12-03
    _require_receive_access(descriptor)
    is_open = position.state in (PositionState.LOCKED, PositionState.PURGE_PENDING)
    if not is_open or position.queue is not queue:
        return MqStatus.TRANSACTION_SEQUENCE  # DM-3.1.7.1.12-04
    if transactional:
        return MqStatus.OK  # DM-3.1.7.1.12-05
    if position.transaction is not None:
        return MqStatus.TRANSACTION_SEQUENCE
    if position.state is PositionState.PURGE_PENDING:
        message_position_deleted(core, queue, position, MessageClass.NACK_Q_PURGED)  # DM-A34
    elif delete:
        message_position_deleted(core, queue, position, MessageClass.ACK_RECEIVE)  # -06
    else:
        message_position_available(core, queue, position)  # DM-3.1.7.1.12-08
    return MqStatus.OK


def read_message_by_lookup_identifier(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    lookup_id: int,
    action: SeekAction,
    *,
    peek: bool,
    transaction: Transaction | None = None,
    two_phase: bool = False,
) -> ReadResult:
    """Read the message with this lookup identifier, or one near it; this never waits.

    Read Message By Lookup Identifier, MQDMPR 3.1.7.1.13.
    """
    queue = descriptor.queue
    if queue is None:
        return ReadResult(MqStatus.QUEUE_NOT_AVAILABLE)  # DM-3.1.7.1.13-04
    if peek:
        require_peek_access(descriptor)
        _refuse_peek_in_transaction(transaction)
    else:
        _require_receive_access(descriptor)
    owner = _live_transaction(core, transaction)
    status, position = seek_with_id(queue, lookup_id, action, peek=peek)  # DM-3.1.7.1.13-05
    if position is None:
        return ReadResult(status)  # DM-3.1.7.1.13-06
    if peek:
        return ReadResult(status, position)  # DM-3.1.7.1.13-07
    return _dequeue(core, position, owner, two_phase=two_phase)


def peek_message(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    *,
    timeout: float | None = None,
    cursor: Cursor | None = None,
    tag: object = None,
) -> ReadResult | WaitingRead:
    """Look at the first message, or at the one a cursor is at; wait for one if there is none.

    Peek Message, MQDMPR 3.1.7.1.15. The documents give a peek no tag; ours may have one, so that
    it can be cancelled.
    """
    queue = descriptor.queue
    if queue is None:
        return ReadResult(MqStatus.QUEUE_NOT_AVAILABLE)  # DM-3.1.7.1.15-03
    require_peek_access(descriptor)
    if cursor is None:
        looked = _look_from_start(queue, peek=True)
    else:
        require_open_cursor(core, descriptor, cursor)
        looked = get_message_for_peek(cursor)  # DM-3.1.7.1.15-04
    return _peek(core, descriptor, looked, timeout=timeout, cursor=cursor, tag=tag)


def peek_next_message(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    cursor: Cursor,
    *,
    timeout: float | None = None,
    tag: object = None,
) -> ReadResult | WaitingRead:
    """Look at the message behind the one that the cursor showed; wait for one if there is none.

    Peek Next Message, MQDMPR 3.1.7.1.14.
    """
    if descriptor.queue is None:
        return ReadResult(MqStatus.QUEUE_NOT_AVAILABLE)  # DM-3.1.7.1.14-03
    require_peek_access(descriptor)
    require_open_cursor(core, descriptor, cursor)
    looked = get_next_message_for_peek(cursor)  # DM-3.1.7.1.14-04
    return _peek(core, descriptor, looked, timeout=timeout, cursor=cursor, tag=tag)


def cancel_waiting_message_read_request(
    core: QueueManagerCore, queue: Queue, tag: object, status: MqStatus
) -> bool:
    """End the oldest waiting read with this tag; the reader gets `status` as its own.

    Cancel Waiting Message Read Request, MQDMPR 3.1.7.1.17. False is STATUS_NOT_FOUND (0xC0000225),
    which is no status of MSMQ.
    """
    for read in queue.waiting:
        if read.tag is not None and read.tag == tag:  # DM-3.1.7.1.17-02
            return end_waiting_read(core, read, status)  # DM-3.1.7.1.17-03
    return False  # DM-3.1.7.1.17-05


def seek(
    queue: Queue,
    initial: int,
    *,
    peek: bool,
    direction: SeekDirection = SeekDirection.FORWARD,
) -> MessagePosition | None:
    """The next message from a place (a lookup identifier, START or END); None at either end.

    Seek Available Message Position, MQDMPR 3.1.7.3.2. The place itself is no candidate, and need
    not be in the queue any more.
    """
    if direction is SeekDirection.FORWARD:
        found = queue.positions.after(initial, peek=peek)  # DM-3.1.7.3.2-04
    else:
        found = queue.positions.before(initial, peek=peek)  # DM-3.1.7.3.2-07
    return None if found is None else queue.positions.find(found)


def seek_with_id(
    queue: Queue, lookup_id: int, action: SeekAction, *, peek: bool
) -> tuple[MqStatus, MessagePosition | None]:
    """The message that an action means, and the status (with no message, why there is none).

    Seek Available Message Position With Id, MQDMPR 3.1.7.3.3. The first and the last message need
    no lookup identifier (DM-A22).
    """
    if action is SeekAction.CURRENT:
        current = queue.positions.find(lookup_id)
        if current is None:
            return MqStatus.MESSAGE_NOT_FOUND, None  # DM-3.1.7.3.3-14
        status = status_of_current(queue, current, peek=peek)
        return status, current if status is MqStatus.OK else None
    if action is SeekAction.FIRST:
        found = seek(queue, START, peek=peek)  # DM-3.1.7.3.3-04
    elif action is SeekAction.LAST:
        found = seek(queue, END, peek=peek, direction=SeekDirection.BACKWARD)  # -05
    elif lookup_id not in queue.positions:
        found = None  # DM-3.1.7.3.3-03
    elif action is SeekAction.NEXT:
        found = seek(queue, lookup_id, peek=peek)  # DM-3.1.7.3.3-06
    else:
        found = seek(queue, lookup_id, peek=peek, direction=SeekDirection.BACKWARD)  # -07
    return (MqStatus.MESSAGE_NOT_FOUND if found is None else MqStatus.OK), found  # -08


def status_of_current(queue: Queue, position: MessagePosition, *, peek: bool) -> MqStatus:
    """Whether a reader may have the message at a place he named (MQDMPR 3.1.7.3.3)."""
    if position.state is PositionState.AVAILABLE:
        return MqStatus.OK  # DM-3.1.7.3.3-09
    if not peek:
        return MqStatus.MESSAGE_NOT_FOUND  # DM-3.1.7.3.3-13
    if position.state is not PositionState.LOCKED:
        return MqStatus.MESSAGE_ALREADY_RECEIVED  # DM-3.1.7.3.3-12, DM-3.1.7.3.3-15
    if queue.positions.may_peek(position):
        return MqStatus.OK  # DM-3.1.7.3.3-10
    return MqStatus.TRANSACTION_USAGE  # DM-3.1.7.3.3-11


def _look_from_start(queue: Queue, *, peek: bool) -> Looked:
    position = seek(queue, START, peek=peek)  # DM-A01
    return (CursorStatus.WAITING if position is None else CursorStatus.SUCCEEDED), position


def _peek(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    looked: Looked,
    *,
    timeout: float | None,
    cursor: Cursor | None,
    tag: object,
) -> ReadResult | WaitingRead:
    status, position = looked
    if position is not None:
        return _show(position)
    if status is not CursorStatus.WAITING:
        return ReadResult(_STATUS_OF[status])
    wait = _wait(core, descriptor, _show, cursor=cursor, tag=tag)
    return wait_for_new_message(core, wait, timeout)


def _wait(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    take: Take,
    *,
    cursor: Cursor | None,
    tag: object,
    transaction: Transaction | None = None,
) -> WaitingRead:
    """The wait of a read, should it have to wait: the same `take`, and the cursor is told."""

    def complete(position: MessagePosition) -> ReadResult:
        if transaction is not None and not _is_live(core, transaction):
            failed()
            return ReadResult(MqStatus.TRANSACTION_SEQUENCE)
        if cursor is not None:
            message_available(cursor, position)  # DM-3.1.7.1.10-12
        return take(position)

    def failed() -> None:
        if cursor is not None:
            wait_time_expired(cursor)  # DM-3.1.7.1.10-13

    return WaitInTransaction(
        descriptor,
        is_destructive=False,
        complete=complete,
        failed=failed,
        tag=tag,
        cursor=cursor,
        transaction=transaction,
    )


def _show(position: MessagePosition) -> ReadResult:
    return ReadResult(MqStatus.OK, position)  # DM-3.1.7.1.15-12: and nothing else


def _dequeue(
    core: QueueManagerCore,
    position: MessagePosition,
    transaction: Transaction | None,
    *,
    two_phase: bool,
) -> ReadResult:
    queue = position.queue
    if transaction is not None:  # DM-3.1.7.1.10-18; it wins over two_phase, DM-A17
        queue.positions.hold(position)
        position.transaction = transaction
        operation = TransactionalOperation(
            OperationType.DEQUEUE, position, reason=MessageClass.ACK_RECEIVE
        )
        transaction.operations.append(operation)
    elif two_phase:
        queue.positions.hold(position)  # DM-3.1.7.1.10-19
    else:
        message_position_deleted(core, queue, position, MessageClass.ACK_RECEIVE)  # -20
    return ReadResult(MqStatus.OK, position)


def _live_transaction(
    core: QueueManagerCore, transaction: Transaction | None
) -> Transaction | None:
    if transaction is None or transaction.identifier == NULL_UUID:  # DM-A16
        return None
    if not _is_live(core, transaction):
        raise TransactionError(
            f"transaction {transaction.identifier} is over or being committed",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="read in a new transaction",
        )
    return transaction


def _is_live(core: QueueManagerCore, transaction: Transaction) -> bool:
    known = core.transactions.get(transaction.identifier)
    return known is transaction and not transaction.is_prepared


def _require_receive_access(descriptor: OpenQueueDescriptor) -> None:
    if descriptor.access not in MAY_RECEIVE:
        raise ReadError(
            f"the queue was opened with {descriptor.access.name} access, not to receive from it",
            status=MqStatus.ACCESS_DENIED,
            hint="open the queue with RECEIVE access",
        )


def _refuse_peek_in_transaction(transaction: Transaction | None) -> None:
    if transaction is not None:  # DM-3.1.7.1.13-02
        raise TransactionError(
            "a peek changes nothing, so it cannot be part of a transaction",
            status=MqStatus.TRANSACTION_USAGE,
            hint="leave the transaction out, or receive the message",
        )
