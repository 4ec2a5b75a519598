"""Why the API says no, and what to do about it: one sentence each."""

from __future__ import annotations

import difflib
from typing import Final

from falconmq.errors import (
    FalconMQError,
    MessageError,
    MqStatus,
    QueueError,
    ReadError,
    ResourceError,
    TransactionError,
)
from falconmq.manager.core import KILOBYTE, QueueManagerCore
from falconmq.manager.directory_objects import UNLIMITED
from falconmq.manager.model import (
    OpenQueueDescriptor,
    OutgoingQueue,
    Queue,
)
from falconmq.manager.states import EnqueueStatus
from falconmq.names import PathName

_READ_TEXTS: Final = {
    MqStatus.MESSAGE_NOT_FOUND: "there is no such message",
    MqStatus.MESSAGE_ALREADY_RECEIVED: "the message at the cursor was received by someone else",
    MqStatus.ILLEGAL_CURSOR_ACTION: "the cursor has no current message to go on from",
    MqStatus.OPERATION_CANCELLED: "the read was ended because its queue or manager was closed",
    MqStatus.TRANSACTION_USAGE: "a transaction holds the message",
}
_READ_HINTS: Final = {
    MqStatus.MESSAGE_NOT_FOUND: "it may have been received, purged or moved, or its time ran out",
    MqStatus.MESSAGE_ALREADY_RECEIVED: "go on with cursor.peek_next()",
    MqStatus.ILLEGAL_CURSOR_ACTION: "call cursor.peek() first",
    MqStatus.TRANSACTION_USAGE: "wait until the transaction ends, or let its sender set "
    "allow_peek_when_locked",
}


def read_error(name: object, status: MqStatus, timeout: float | None) -> FalconMQError:
    """Why a read ended without a message."""
    if status is MqStatus.IO_TIMEOUT:
        waited = f" within {timeout:g} seconds" if timeout else ""
        hint = "" if timeout else "to wait for one: timeout=5, or no timeout to wait for ever"
        return ReadError(f"no message came to {name}{waited}", status=status, hint=hint)
    if status in (MqStatus.QUEUE_NOT_AVAILABLE, MqStatus.QUEUE_DELETED):
        return deleted(name, status)
    text = _READ_TEXTS.get(status, status.meaning)
    return ReadError(f"{name}: {text}", status=status, hint=_READ_HINTS.get(status, ""))


def not_found(core: QueueManagerCore, path_name: PathName) -> QueueError:
    """No queue of that name on this computer, and which one may have been meant."""
    shown = str(path_name.with_computer("."))
    known = [
        str(queue.path_name.with_computer("."))
        for queue in core.queues.values()
        if not isinstance(queue, OutgoingQueue) and queue.parent is None
    ]
    close = difflib.get_close_matches(shown.lower(), [name.lower() for name in known], 1)
    hint = f"to create it: manager.create_queue(r'{shown}')"
    if close:
        meant = next(name for name in known if name.lower() == close[0])
        hint = f"did you mean {meant}? {hint}"
    return QueueError(
        f"no queue {path_name} on {core.settings.computer_name}",
        status=MqStatus.QUEUE_NOT_FOUND,
        hint=hint,
    )


def deleted(name: object, status: MqStatus = MqStatus.QUEUE_DELETED) -> QueueError:
    return QueueError(
        f"{name} was deleted", status=status, hint="create it again, or open another queue"
    )


def check_same_kind(source: Queue, destination: Queue, name: object, other: object) -> None:
    kinds = [(queue.parent or queue).properties.transactional for queue in (source, destination)]
    if kinds[0] != kinds[1]:
        raise TransactionError(
            f"{name} and {other}: one is transactional, the other is not",
            status=MqStatus.TRANSACTION_USAGE,
            hint="receive the message and send it again",
        )


def refused(
    core: QueueManagerCore,
    name: object,
    children: list[OpenQueueDescriptor],
    size: int,
    status: EnqueueStatus,
) -> FalconMQError:
    if status is EnqueueStatus.TIMED_OUT:
        return MessageError("time_to_reach_queue", "it ran out before the message was sent")
    if status is EnqueueStatus.MANAGER_QUOTA:
        if core.is_throttled:
            return ResourceError(
                "the queue manager takes no messages at the moment",
                status=MqStatus.INSUFFICIENT_RESOURCES,
                hint="it is throttled; try again later",
            )
        return ResourceError(
            f"the queue manager is full: {core.used_bytes} of its "
            f"{core.settings.quota_kilobytes} KiB are used, the message needs {size} bytes",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="receive or purge messages, or open with a greater quota_kilobytes",
        )
    full = next(
        (c.queue for c in children if c.queue is not None and _is_full(c.queue, size)), None
    )
    quota = UNLIMITED if full is None else full.properties.quota_kilobytes
    return ResourceError(
        f"{name} is full: its quota is {quota} KiB, the message needs {size} bytes",
        status=MqStatus.INSUFFICIENT_RESOURCES,
        hint="receive or purge messages, or queue.update(quota_kilobytes=...)",
    )


def _is_full(queue: Queue, size: int) -> bool:
    quota = queue.properties.quota_kilobytes
    return quota != UNLIMITED and queue.total_bytes + size > quota * KILOBYTE
