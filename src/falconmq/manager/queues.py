"""The life of queues (MQDMPR 3.1.7.1.3 to .7, 3.1.7.2.3, 3.1.7.2.4); the door to its neighbours.

Creating is in `creation`, opening in `opening`, names in `queue_names`. All of it can be imported
from here.
"""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.access import check_open, check_queue
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.creation import (
    check_properties,
    create_connector_queue,
    create_queue,
    open_subqueue,
    set_queue_defaults,
)
from falconmq.manager.directory import delete_directory_object, write_directory
from falconmq.manager.model import OutgoingQueue, Queue, QueueProperties, Transaction
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.path_names import format_name_of, resolve_path_name
from falconmq.manager.persistence import forget_queue, store_queue
from falconmq.manager.prepared import store_transaction
from falconmq.manager.public_queues import directory_error, left_in_directory
from falconmq.manager.queue_names import (
    expand_format_name,
    find_queue,
    get_queue_path,
    queue_not_found,
)
from falconmq.manager.registry import is_local_computer, unregister
from falconmq.manager.removing import message_position_deleted, remove_position
from falconmq.manager.states import (
    AccessType,
    DirectoryResult,
    OutgoingState,
    PositionState,
    QueueType,
)
from falconmq.manager.waiting import end_waiting_read
from falconmq.names.syntax import fold
from falconmq.wire.access_masks import (
    MQSEC_CHANGE_QUEUE_PERMISSIONS,
    MQSEC_DELETE_QUEUE,
    MQSEC_SET_QUEUE_PROPERTIES,
    MQSEC_TAKE_QUEUE_OWNERSHIP,
)
from falconmq.wire.message_class import MessageClass

__all__ = [
    "close_queue",
    "create_connector_queue",
    "create_queue",
    "delete_queue",
    "expand_format_name",
    "find_queue",
    "format_name_of",
    "get_queue_path",
    "is_local_computer",
    "open_queue",
    "open_subqueue",
    "pause_queue",
    "purge_queue",
    "queue_not_found",
    "resolve_path_name",
    "resume_queue",
    "set_queue_defaults",
    "set_queue_properties",
]


def delete_queue(core: QueueManagerCore, queue: Queue, *, skip_directory: bool = False) -> None:
    """Delete a queue with its journal, its subqueues and all their messages.

    Delete Queue, MQDMPR 3.1.7.1.4. If the directory refuses, DirectoryError says so, but the queue
    is gone here all the same. A directory that has lost it has nothing to refuse.
    """
    if queue.queue_type is QueueType.SYSTEM:
        raise QueueError(
            f"{queue.path_name} belongs to the queue manager",
            status=MqStatus.ACCESS_DENIED,
            hint="a journal goes with its queue; to empty it: falconmq queue purge",
        )
    check_queue(core, queue, MQSEC_DELETE_QUEUE)
    for subqueue in list(queue.subqueues.values()):
        _delete_here(core, subqueue)
    if queue.journal is not None:
        _drop_copies(core, queue.journal)
        _delete_here(core, queue.journal)
    _delete_here(core, queue)
    if queue.parent is not None:
        queue.parent.subqueues.pop(fold(queue.path_name.subqueue or ""), None)
        return
    is_published = queue.queue_type is QueueType.PUBLIC and core.directory.is_integrated
    if is_published and not skip_directory:  # DM-3.1.7.1.4-05
        result = delete_directory_object(core, queue)
        if result not in (DirectoryResult.SUCCESS, DirectoryResult.OBJECT_NOT_FOUND):
            raise left_in_directory(core, queue, result)  # DM-3.1.7.1.4-06


def purge_queue(core: QueueManagerCore, queue: Queue) -> int:
    """Delete every message that no reader holds; the held ones go when their reader lets go.

    Purge Queue, MQDMPR 3.1.7.1.7. Returns how many messages were deleted now.
    """
    check_open(core, queue, AccessType.RECEIVE)  # to receive is to purge: DM-3.1.1.17-16
    deleted = 0
    prepared: dict[UUID, Transaction] = {}
    for lookup_id in queue.positions.lookup_ids():
        position = queue.positions.find(lookup_id)
        if position is None:
            continue  # a subscriber took it away meanwhile
        if position.state is PositionState.AVAILABLE:
            reason = MessageClass.NACK_Q_PURGED
            message_position_deleted(core, queue, position, reason)  # DM-3.1.7.1.7-03
            deleted += 1
        else:
            # A transaction or a two-phase read owns it: its commit or abort decides when it goes.
            position.state = PositionState.PURGE_PENDING  # DM-3.1.7.1.7-02
            if position.transaction is not None and position.transaction.is_prepared:
                prepared[position.transaction.identifier] = position.transaction
    for transaction in prepared.values():  # so that a restart does not forget the purge
        store_transaction(core, transaction)
    return deleted


def set_queue_properties(core: QueueManagerCore, queue: Queue, **changes: Any) -> None:
    """Change properties of a queue, all or none of them; a public queue in the directory too."""
    if queue.path_name.subqueue is not None and queue.parent is not None:
        queue = queue.parent  # a subqueue has the properties of its queue
    unknown = changes.keys() - {f.name for f in dataclasses.fields(QueueProperties)}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise QueueError(f"a queue has no property {names}", status=MqStatus.ILLEGAL_PROPID)
    before = queue.properties
    if changes.get("transactional", before.transactional) != before.transactional:
        raise QueueError(
            f"{queue.path_name} was created {'' if before.transactional else 'non-'}transactional",
            status=MqStatus.PROPERTY_NOTALLOWED,
            hint="create another queue and move the messages",
        )
    after = dataclasses.replace(before, **changes)
    check_properties(after)
    check_queue(core, queue, _rights_to_change(before, after, changes))
    _apply(queue, after)
    modified, queue.modify_time = queue.modify_time, int(core.clock.time())
    if queue.queue_type is QueueType.PUBLIC and core.directory.is_integrated:
        result = write_directory(core, queue)
        if result is not DirectoryResult.SUCCESS:
            _apply(queue, before)
            queue.modify_time = modified
            raise directory_error(core, queue, "changed", result)
    store_queue(core, queue)
    if queue.journal is not None:
        store_queue(core, queue.journal)


def pause_queue(core: QueueManagerCore, outgoing: OutgoingQueue) -> None:  # noqa: ARG001
    """Hold back the messages of an outgoing queue (Pause Queue, MQDMPR 3.1.7.2.3)."""
    outgoing.state = OutgoingState.ON_HOLD  # DM-3.1.7.2.3-01


def resume_queue(core: QueueManagerCore, outgoing: OutgoingQueue) -> None:
    """Let them go again (Resume Queue, MQDMPR 3.1.7.2.4); hardened mode still keeps its lock."""
    is_locked = core.settings.hardened_security and not outgoing.is_http  # DM-A56
    outgoing.state = OutgoingState.LOCKED if is_locked else OutgoingState.INACTIVE


def _delete_here(core: QueueManagerCore, queue: Queue) -> None:
    """Take a queue and its messages out of this queue manager."""
    for read in list(queue.waiting):
        end_waiting_read(core, read, MqStatus.QUEUE_NOT_AVAILABLE)
    for lookup_id in queue.positions.lookup_ids():  # a copy: deleting unlinks
        position = queue.positions.find(lookup_id)
        if position is None:
            continue
        if position.message.arrival_number == 0:
            remove_position(core, position)  # nobody has sent it yet; its commit will tell
        else:
            reason = MessageClass.NACK_Q_DELETED
            message_position_deleted(core, queue, position, reason)  # DM-3.1.7.1.4-02
    for descriptor in queue.descriptors:
        descriptor.queue = None  # DM-3.1.7.1.4-03
    queue.descriptors.clear()
    unregister(core, queue)  # DM-3.1.7.1.4-04
    forget_queue(core, queue)


def _drop_copies(core: QueueManagerCore, journal: Queue) -> None:
    """Journal copies go in silence: their messages were read, no sender may hear otherwise."""
    for lookup_id in journal.positions.lookup_ids():
        position = journal.positions.find(lookup_id)
        if position is not None:
            remove_position(core, position)


def _rights_to_change(
    before: QueueProperties, after: QueueProperties, changes: dict[str, Any]
) -> int:
    """The owner, the permissions and everything else have a right of their own."""
    rights = 0
    if changes.keys() - {"security"}:
        rights |= MQSEC_SET_QUEUE_PROPERTIES
    if before.security != after.security:
        old, new = before.security, after.security
        is_other_owner = old is None or new is None or old.owner != new.owner
        if is_other_owner:
            rights |= MQSEC_TAKE_QUEUE_OWNERSHIP
        if old is None or new is None or dataclasses.replace(old, owner=new.owner) != new:
            rights |= MQSEC_CHANGE_QUEUE_PERMISSIONS
    return rights


def _apply(queue: Queue, properties: QueueProperties) -> None:
    queue.properties = properties
    for subqueue in queue.subqueues.values():
        subqueue.properties = properties
    if queue.journal is not None:
        queue.journal.properties.quota_kilobytes = properties.journal_quota_kilobytes
        queue.journal.properties.security = properties.security
