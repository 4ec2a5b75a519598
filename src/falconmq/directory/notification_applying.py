"""What a notification changes in this queue manager (MQCN 3.2.5.1, 3.2.5.2).

Everything here passes by the directory: it is the directory that told us. So no notification can
follow from a notification, and no two queue managers can keep each other busy (guide 9).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final
from uuid import UUID

from falconmq.directory.notification import Refusal, Refused
from falconmq.errors import FalconMQError, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.creation import check_properties, create_queue, set_queue_defaults
from falconmq.manager.directory import update_local_queue_manager
from falconmq.manager.directory_objects import Row
from falconmq.manager.model import Queue, QueueProperties
from falconmq.manager.persistence import store_manager, store_queue
from falconmq.manager.queue_names import find_queue
from falconmq.manager.queues import delete_queue
from falconmq.names import PathName

_PROPERTIES: Final = frozenset(f.name for f in dataclasses.fields(QueueProperties))
# What the directory says of a queue besides its properties (A8: Create Queue would not copy them).
_FACTS: Final = ("create_time", "modify_time", "scope", "full_path", "directory_path")


def find_public_queue(core: QueueManagerCore, name: UUID | PathName) -> Queue | None:
    """The public queue of this computer that a notification means; private ones are not told of."""
    return core.public.get(name) if isinstance(name, UUID) else find_queue(core, name)


def create_told_queue(
    core: QueueManagerCore, path_name: PathName, identifier: UUID, values: Row
) -> Refused | None:
    """Create a queue that the directory has already (Create Queue with iSkipDirectory True)."""
    if find_queue(core, path_name) is not None:
        return Refused(Refusal.NAME_TAKEN, f"{path_name} {identifier}")
    properties = dataclasses.replace(set_queue_defaults(core), **_chosen(values))
    try:
        queue = create_queue(
            core, path_name, properties, skip_directory=True, identifier=identifier
        )
    except FalconMQError as error:
        return Refused(Refusal.REFUSED_HERE, str(error))
    # Create Queue makes the creator the owner; of this one the directory knows who it is.
    return change_told_queue(core, queue, values)


def change_told_queue(core: QueueManagerCore, queue: Queue, values: Row) -> Refused | None:
    """Take over attributes of a queue; its name, number and nature stay."""
    chosen = _chosen(values)
    chosen.pop("transactional", None)
    after = dataclasses.replace(queue.properties, **chosen)
    try:
        check_properties(after)
    except QueueError as error:
        return Refused(Refusal.BAD_VALUE, str(error))
    queue.properties = after
    for subqueue in queue.subqueues.values():
        subqueue.properties = after
    _take_over(queue, values)
    store_queue(core, queue)
    if queue.journal is not None:
        queue.journal.properties.quota_kilobytes = after.journal_quota_kilobytes
        queue.journal.properties.security = after.security
        store_queue(core, queue.journal)
    return None


def delete_told_queue(core: QueueManagerCore, queue: Queue) -> Refused | None:
    """Delete a queue that the directory has no more (Delete Queue with iSkipDirectory True)."""
    try:
        delete_queue(core, queue, skip_directory=True)
    except FalconMQError as error:
        return Refused(Refusal.REFUSED_HERE, str(error))
    return None


def change_manager(core: QueueManagerCore, values: Row) -> None:
    """Take over quotas and permissions of this queue manager."""
    update_local_queue_manager(core, values)
    store_manager(core)


def _chosen(values: Row) -> dict[str, Any]:
    """Those of the values that are properties; a descriptor that is missing leaves the old one."""
    return {
        name: value
        for name, value in values.items()
        if name in _PROPERTIES and not (name == "security" and value is None)
    }


def _take_over(queue: Queue, values: Row) -> None:
    for name in _FACTS:
        if name in values:
            setattr(queue, name, values[name])
