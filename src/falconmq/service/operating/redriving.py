"""Sending a dead letter again: one message, inside a turn.

The new message has the properties of the old one, its correlation too, but an id and a sent time of
its own, so its times to live begin anew. To its original destination it goes as it went before, in
a transaction or outside one. To a queue that somebody names instead it goes as that queue needs it.
"""

from __future__ import annotations

from falconmq.embedded import actions
from falconmq.embedded.actions import path_of
from falconmq.errors import MqStatus, QueueError, ReadError, ResourceError, TransactionError
from falconmq.manager.access import check_open
from falconmq.manager.core import KILOBYTE, QueueManagerCore
from falconmq.manager.events import EventKind
from falconmq.manager.model import UNLIMITED, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import remove_position
from falconmq.manager.states import AccessType, PositionState, ShareMode
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.message import Message, MessageClass, MessageId
from falconmq.names import FormatName, PublicFormatName
from falconmq.serialization import from_user_message
from falconmq.service.requests.finding import find_local
from falconmq.wire.message_class import is_custom


def destination_of(position: MessagePosition) -> str:
    """Where a message wanted to go; empty if its packet does not say so."""
    name = from_user_message(position.message.packet).destination
    return "" if name is None else str(name)


def redrive(core: QueueManagerCore, position: MessagePosition, target: str | None) -> MessageId:
    """Send a letter again and take it away; FalconMQError if it has to stay."""
    name, in_transaction = check(core, position, target)
    message = _new_message(position.message)
    opened = actions.find(core, name, ShareMode.DENY_NONE)
    try:
        id = _send(core, opened, message, in_transaction=in_transaction)
    finally:
        actions.close(core, opened)
    _remove(core, position, f"{message.destination} as {id}")
    return id


def check(
    core: QueueManagerCore, position: MessagePosition, target: str | None
) -> tuple[str | FormatName, bool]:
    """Where a letter would go, and whether in a transaction; FalconMQError if it has to stay.

    Nothing is changed. Only of a queue of ours it is known whether it would take the message.
    """
    check_open(core, position.queue, AccessType.RECEIVE)
    _check_free(position)
    name = _target(position, target)
    queue = _queue_here(core, name)
    was_transactional = position.message.transaction is not None
    if queue is None:
        return name, was_transactional
    is_transactional = queue.properties.transactional
    if target is None and is_transactional != was_transactional:
        raise _other_kind(queue, is_transactional=is_transactional)
    quota = queue.properties.quota_kilobytes
    if quota != UNLIMITED and queue.total_bytes + position.size > quota * KILOBYTE:
        raise ResourceError(
            f"{path_of(queue)} is full: its quota is {quota} KiB",
            status=MqStatus.INSUFFICIENT_RESOURCES,
        )
    return name, is_transactional


def _queue_here(core: QueueManagerCore, name: str | FormatName) -> Queue | None:
    """The queue of ours that is meant, None if it is elsewhere; QueueError if it does not exist."""
    try:
        return find_local(core, str(name))
    except QueueError as error:
        is_elsewhere = error.status is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
        if is_elsewhere or isinstance(name, PublicFormatName):  # the directory knows more
            return None
        raise


def _other_kind(queue: Queue, *, is_transactional: bool) -> TransactionError:
    name = path_of(queue)
    kinds = ("transactional", "is not") if is_transactional else ("not transactional", "is")
    return TransactionError(
        f"{name} is {kinds[0]}, and the message {kinds[1]}",
        status=MqStatus.TRANSACTION_USAGE,
        hint=f"to send it there all the same: --to '{name}'",
    )


def _check_free(position: MessagePosition) -> None:
    if position.state is not PositionState.AVAILABLE:
        raise ReadError("a reader holds it", status=MqStatus.TRANSACTION_USAGE)
    if not position.message.is_dead_letter:
        raise ReadError(
            "this is no dead letter, but a message that waits for its reader",
            status=MqStatus.INVALID_PARAMETER,
            hint="to send it elsewhere: falconmq queue move",
        )


def _target(position: MessagePosition, target: str | None) -> str | FormatName:
    if target is not None:
        return target
    name = from_user_message(position.message.packet).destination
    if name is None:
        raise QueueError(
            "its packet does not say where it wanted to go",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="name a queue: --to",
        )
    return name


def _new_message(stored: StoredMessage) -> Message:
    message = from_user_message(stored.packet)
    if not is_custom(message.message_class):
        message.message_class = MessageClass.NORMAL
    message.destinations = ()
    message.allow_peek_when_locked = stored.allow_peek_when_locked
    message.dead_letter_queue = stored.dead_letter_queue
    return message


def _send(
    core: QueueManagerCore, opened: actions.Opened, message: Message, *, in_transaction: bool
) -> MessageId:
    if not in_transaction:
        return actions.send(core, opened, message, None)
    transaction = create_transaction(core)
    try:
        id = actions.send(core, opened, message, transaction)
    except BaseException:
        abort_transaction(core, transaction.identifier)
        raise
    commit_transaction(core, transaction.identifier)
    return id


def _remove(core: QueueManagerCore, position: MessagePosition, detail: str) -> None:
    """The letter goes in silence: nobody read it and nobody lost it."""
    remove_position(core, position)
    if core.events is not None:
        source, ordinal = position.message.identity
        core.events.record(
            EventKind.MOVED,
            source,
            ordinal,
            position.queue,
            position.lookup_id,
            position.size,
            detail=detail,
            about=position.message,
        )
