"""The notifications that go out (MQCN 3.3.5.1, 3.3.5.2).

Version 2 is one text for one object. Version 1 is for a directory service: it says what a new queue
is like, or what of an object is new; several changes may go in one message.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.directory.notification_values import (
    ATTRIBUTES,
    MACHINE_CHANGES,
    QUEUE_CHANGES,
    QUEUE_CREATION,
    properties_of,
)
from falconmq.manager.directory_objects import QueueManager
from falconmq.manager.model import Queue
from falconmq.manager.queue_rows import queue_row
from falconmq.manager.states import ChangeOperation, QueueScope
from falconmq.wire.change_notification import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationEvent,
)
from falconmq.wire.directory_change import CREATE, DELETE, UPDATE, NotificationUpdate
from falconmq.wire.property_ids import (
    DeletionProperty,
    MachineProperty,
    ObjectType,
    Property,
    QueueProperty,
)
from falconmq.wire.variant import Value

EVENTS: Final[Mapping[ChangeOperation, NotificationEvent]] = MappingProxyType(
    {
        ChangeOperation.QUEUE_CREATION: NotificationEvent.QUEUE_CREATED,  # CN-3.3.5.1-03
        ChangeOperation.QUEUE_UPDATE: NotificationEvent.QUEUE_CHANGED,  # CN-3.3.5.1-04
        ChangeOperation.QUEUE_DELETION: NotificationEvent.QUEUE_DELETED,  # CN-3.3.5.1-05
        ChangeOperation.QUEUE_MANAGER_UPDATE: NotificationEvent.MACHINE_CHANGED,  # CN-3.3.5.1-06
    }
)


def build_text(
    operation: ChangeOperation, identifier: UUID, server: str
) -> ChangeNotificationMessage:
    """A version 2 notification: which object changed, through which directory server."""
    body = NotificationBody(EVENTS[operation], identifier.bytes_le, server)  # CN-3.3.5.1-08, -09
    return ChangeNotificationMessage(body)


def build_updates(updates: Sequence[NotificationUpdate]) -> ChangeNotificationMessage:
    """A version 1 notification of up to 255 changes (CN-3.3.5.2-47)."""
    return ChangeNotificationMessage(list(updates))


def build_update(
    operation: ChangeOperation,
    entry: Queue | QueueManager,
    owner: UUID,
    master: UUID,
    changed: Collection[str] | None = None,
) -> NotificationUpdate:
    """One change for a version 1 notification, from the directory server `master`.

    `changed` are the names of the attributes that were written; None: all that can change.
    """
    identifier, properties = (
        entry.identifier.bytes_le,
        _properties(operation, entry, owner, changed),
    )
    match operation:
        case ChangeOperation.QUEUE_CREATION:  # by its path: CN-3.3.5.2-02, -06
            assert isinstance(entry, Queue)
            path_name = str(entry.path_name)
            return NotificationUpdate(CREATE, path_name, master.bytes_le, properties)
        case ChangeOperation.QUEUE_DELETION:  # CN-3.3.5.2-04, -07
            return NotificationUpdate(DELETE, identifier, master.bytes_le, properties)
        case ChangeOperation.QUEUE_UPDATE | ChangeOperation.QUEUE_MANAGER_UPDATE:
            return NotificationUpdate(UPDATE, identifier, master.bytes_le, properties)  # -03


def _properties(
    operation: ChangeOperation,
    entry: Queue | QueueManager,
    owner: UUID,
    changed: Collection[str] | None,
) -> list[tuple[int, Value]]:
    if operation is ChangeOperation.QUEUE_DELETION:  # CN-3.3.5.2-40, -41, -43, -44
        return [
            (int(DeletionProperty.PROPID_D_SCOPE), int(QueueScope.ENTERPRISE)),
            (int(DeletionProperty.PROPID_D_OBJTYPE), int(ObjectType.MQDS_QUEUE)),
        ]
    if isinstance(entry, QueueManager):  # CN-3.3.5.2-34, -35, -36
        always = (MachineProperty.PROPID_QM_MACHINE_ID, MachineProperty.PROPID_QM_FOREIGN)
        return properties_of(entry.row(), (*always, *_only(MACHINE_CHANGES, changed)))
    row = queue_row(entry)
    if operation is ChangeOperation.QUEUE_CREATION:  # CN-3.3.5.2-14 to -29
        return properties_of(row, QUEUE_CREATION)
    of_owner = (int(QueueProperty.PROPID_Q_QMID), owner.bytes_le)  # CN-3.3.5.2-31
    return [of_owner, *properties_of(row, _only(QUEUE_CHANGES, changed))]  # CN-3.3.5.2-32


def _only(properties: Sequence[Property], changed: Collection[str] | None) -> list[Property]:
    return [p for p in properties if changed is None or ATTRIBUTES[p].name in changed]
