"""Changes of our own entries, made through the HTTP API: they count here at once.

Others are told of what changes about them. We need no message for that: what would be in it is
applied in a turn, as if a notification had come.
"""

from __future__ import annotations

import logging

from falconmq.directory.notification import Refused
from falconmq.directory.notification_applying import (
    change_manager,
    change_told_queue,
    create_told_queue,
    delete_told_queue,
)
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_objects import QueueManager, Row
from falconmq.manager.model import Queue
from falconmq.manager.registry import is_local_computer
from falconmq.manager.states import ChangeOperation

_log = logging.getLogger("falconmq.directory")


def apply_own_change(
    core: QueueManagerCore, operation: ChangeOperation, entry: Queue | QueueManager, row: Row
) -> None:
    """Let the queue, or the queue manager, be what its entry says now; others are left alone."""
    if isinstance(entry, QueueManager):
        if entry.identifier == core.identifier:
            change_manager(core, row)
        return
    if not is_local_computer(core, entry.path_name.computer):
        return
    refused = _apply(core, operation, entry, row)
    if refused is not None:
        _log.warning("change not applied queue=%s problem=%s", entry.path_name, refused)


def _apply(
    core: QueueManagerCore, operation: ChangeOperation, entry: Queue, row: Row
) -> Refused | None:
    queue = core.public.get(entry.identifier)
    if queue is None:
        if operation is not ChangeOperation.QUEUE_CREATION:
            return None  # it was never here
        return create_told_queue(core, entry.path_name, entry.identifier, row)
    if operation is ChangeOperation.QUEUE_DELETION:
        return delete_told_queue(core, queue)
    return change_told_queue(core, queue, row)
