"""Moving messages from queue to queue (Move Message, MQDMPR 3.1.7.1.16).

Nobody is told that the message left: it was neither read nor lost, so no acknowledgement may go
out. Its new queue tells of it as of any message that came; journals and dead-letter queues do not.
"""

from __future__ import annotations

from dataclasses import replace

from falconmq.errors import MqStatus, TransactionError
from falconmq.manager.arrivals import SEQUENCE
from falconmq.manager.core import QueueManagerCore, next_number
from falconmq.manager.events import EventKind
from falconmq.manager.expiry import start_time_to_be_received_timer
from falconmq.manager.journaling import deliver_unnoticed
from falconmq.manager.model import Queue, Transaction, TransactionalOperation
from falconmq.manager.placing import link_message, link_position
from falconmq.manager.positions import MessagePosition
from falconmq.manager.quotas import has_room
from falconmq.manager.removing import remove_position
from falconmq.manager.states import OperationType, PositionState, QueueType
from falconmq.manager.storing import check_not_prepared, message_position_available


def move_message(
    core: QueueManagerCore,
    position: MessagePosition,
    target: Queue,
    transaction: Transaction | None = None,
) -> None:
    """Move a message to another queue of this queue manager, now or when a transaction commits.

    A subqueue keeps the lookup identifier, any other queue gives a new one (DM-A33).
    """
    if transaction is None:
        complete_move(core, position, target)
        return
    check_not_prepared(transaction)
    if target.queue_type is QueueType.SYSTEM:  # DM-3.1.7.1.16-02
        raise TransactionError(
            f"a transaction cannot move messages to {target.path_name}",
            status=MqStatus.TRANSACTION_USAGE,
            hint="journals and dead-letter queues are filled by the queue manager alone",
        )
    if position.state is PositionState.AVAILABLE:
        position.queue.positions.hold(position)  # DM-3.1.7.1.16-07
    position.transaction = transaction
    operation = TransactionalOperation(OperationType.MOVE, position, target)
    transaction.operations.append(operation)


def complete_move(core: QueueManagerCore, position: MessagePosition, target: Queue) -> None:
    """The move itself, now or when its transaction commits."""
    source, message = position.queue, position.message
    is_system = target.queue_type is QueueType.SYSTEM
    remove_position(core, position)  # DM-3.1.7.1.16-03
    if is_system and not has_room(target, message):
        return  # DM-3.1.1.12-53, DM-3.1.1.12-57
    message = replace(message, move_count=message.move_count + 1)
    if core.events is not None:
        name = str(target.path_name.with_computer("."))
        core.events.record_position(EventKind.MOVED, position, name)
    if _same_family(source, target):
        message.arrival_number = 0
        target.moved_in += 1
        if position.lookup_id & SEQUENCE == core.sequential_id.value & SEQUENCE:
            next_number(core, core.sequential_id)  # or it would have its old arrival number again
        moved = link_position(core, MessagePosition(target, position.lookup_id, message))
    else:
        moved = link_message(core, target, message)
    if is_system:
        deliver_unnoticed(core, moved)
    else:
        start_time_to_be_received_timer(core, moved)
        message_position_available(core, target, moved)


def _same_family(source: Queue, target: Queue) -> bool:
    """A queue and its subqueues; its journal is no relative (DM-3.1.7.1.16-10)."""
    if QueueType.SYSTEM in (source.queue_type, target.queue_type):
        return False
    return (source.parent or source) is (target.parent or target)
