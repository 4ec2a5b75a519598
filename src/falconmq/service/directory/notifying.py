"""After a change through the HTTP API: our own cache forgets, and the owner is told (MQCN 3.3).

Whoever changes an entry of somebody else's queue, or of another queue manager, tells its owner; the
owner does not look by itself. What is our own counts at once (`own_changes`). Notifications go out
only from a queue manager that has joined a directory: in a workgroup nobody listens to them. Those
of queue managers have one sort, that they changed: a new one reads its entry when it starts, and
one that is deleted has nobody left to tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from falconmq.directory.notification_sending import Told
from falconmq.directory.schema import ObjectTable
from falconmq.directory.tables import QUEUE, QUEUE_MANAGER
from falconmq.embedded.blocking import finish
from falconmq.errors import DirectoryError
from falconmq.manager.access import acting_as
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import QueueManager, Row
from falconmq.manager.model import Queue, QueueProperties
from falconmq.manager.queue_rows import update_queue
from falconmq.manager.states import ChangeOperation, QueueType
from falconmq.names import PathName
from falconmq.service.directory.own_changes import apply_own_change

if TYPE_CHECKING:
    from falconmq.service.api.context import Control


def notice(
    control: Control,
    table: ObjectTable,
    operation: ChangeOperation,
    row: Row,
    changed: Collection[str] | None = None,
) -> Told | None:
    """An object was created, changed or deleted; `changed` names what. Not for the loop's thread.

    `operation` is what a queue would be told of. None: there is nobody to tell.
    """
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    forget(control, table, identifier)
    hub = control.hub
    notifier = None if hub is None else hub.notifier
    entry = _entry(control.engine.core, table, operation, row)
    if hub is None or notifier is None or entry is None:
        return None
    if isinstance(entry, Queue):  # so that the turn finds its owner without waiting for anybody
        by_name = equals("computer_name", entry.path_name.computer)
        with contextlib.suppress(DirectoryError):  # then nobody knows whom to tell, and says so
            if hub.directory is not None:
                hub.directory.fetch(QUEUE_MANAGER, by_name)
    else:
        operation = ChangeOperation.QUEUE_MANAGER_UPDATE

    def tell(core: QueueManagerCore) -> Told:
        apply_own_change(core, operation, entry, row)
        return notifier.tell(operation, entry, changed)

    with acting_as(None):  # whether the caller may change the entry, the directory has decided
        told, commit = control.engine.run(tell)
    if commit is not None:
        finish(control.engine, commit)
    return told


def forget(control: Control, table: ObjectTable, identifier: UUID) -> None:
    """What we remember of an object, and of those that were not there, is to be asked for again."""
    if control.hub is not None and control.hub.directory is not None:
        control.hub.directory.forget(table.type_name, identifier)


def _entry(
    core: QueueManagerCore, table: ObjectTable, operation: ChangeOperation, row: Row
) -> Queue | QueueManager | None:
    """What the notification is about; None: no owner is told of such a change."""
    if table.type_name == QUEUE:
        return _queue(core, row)
    if table.type_name == QUEUE_MANAGER and operation is ChangeOperation.QUEUE_UPDATE:
        machine = QueueManager(UUID(str(row["identifier"])))
        machine.update(row)
        return machine
    return None


def _queue(core: QueueManagerCore, row: Row) -> Queue:
    """A queue of another queue manager, as far as a notification speaks of it."""
    properties = QueueProperties(transactional=bool(row["transactional"]))
    path_name = PathName.parse(str(row["path_name"]))
    queue = Queue(0, path_name, QueueType.PUBLIC, properties, core.fetch)
    queue.identifier = UUID(str(row["identifier"]))
    queue.create_time = int(str(row["create_time"]))
    queue.qualified_path_name = str(row["qualified_path_name"])
    update_queue(queue, row)
    return queue
