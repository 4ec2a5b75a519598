"""The directory, as every part of the queue manager reaches it (MQDMPR 3.1.7.1.18 to .25, 3.1.6).

Nobody talks to a directory but through these events (DM-2.3-01). When it cannot be reached, an
integrated queue manager goes offline: it answers from what it knows itself, and asks again every
minute until the directory is back. A workgroup has no directory; it answers from what it knows as
well, but is never "offline", for nothing will come back (DM-3.1.1.1-38).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_backend import (
    NO_ROW,
    AttributeFilter,
    DirectoryBackend,
    FilterOperator,
    Filters,
    NoDirectory,
    SortKey,
    equals,
    matches_all,
    remembered,
)
from falconmq.manager.directory_objects import (
    NULL_UUID,
    DirectoryObject,
    QueueManager,
    Row,
)
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.persistence import store_queue
from falconmq.manager.queue_rows import queue_row, update_queue
from falconmq.manager.states import ChangeOperation, DirectoryResult, QueueType

__all__ = [
    "AttributeFilter",
    "DirectoryBackend",
    "DirectoryEntry",
    "FilterOperator",
    "NoDirectory",
    "SortKey",
    "check_directory_online",
    "create_directory_object",
    "delete_directory_object",
    "directory_server_list_update",
    "directory_site_gates_update",
    "directory_sites_update",
    "equals",
    "raise_beside",
    "read_directory",
    "read_directory_begin",
    "read_directory_end",
    "read_directory_next",
    "start_directory_timers",
    "update_local_queue_manager",
    "write_directory",
]

ONLINE_TIMER_SECONDS: Final = 60  # DM-3.1.2.5-01
QUEUE: Final = "Queue"
QUEUE_MANAGER: Final = "QueueManager"
DirectoryEntry = Queue | DirectoryObject


def create_directory_object(
    core: QueueManagerCore, entry: DirectoryEntry, attributes: Collection[str] | None = None
) -> tuple[DirectoryResult, UUID]:
    """Create Directory Object, MQDMPR 3.1.7.1.18; the GUID counts only on success."""
    if _is_public_queue(entry):
        _notify(core, ChangeOperation.QUEUE_CREATION, entry)  # before: DM-3.1.7.1.18-03, DM-A35
    result, identifier = core.directory.create(_type_name(entry), _row(entry, attributes))
    if result is not DirectoryResult.SUCCESS:
        return _noticed(core, result), NULL_UUID  # DM-3.1.7.1.18-02, -06
    return result, identifier


def delete_directory_object(core: QueueManagerCore, entry: DirectoryEntry) -> DirectoryResult:
    """Delete Directory Object, MQDMPR 3.1.7.1.19."""
    if _is_public_queue(entry):
        _notify(core, ChangeOperation.QUEUE_DELETION, entry)  # before: DM-3.1.7.1.19-02
    return _noticed(core, core.directory.delete(_type_name(entry), entry.identifier))


def write_directory(
    core: QueueManagerCore, entry: DirectoryEntry, attributes: Collection[str] | None = None
) -> DirectoryResult:
    """Write Directory, MQDMPR 3.1.7.1.24."""
    result = core.directory.write(_type_name(entry), _row(entry, attributes))
    if result is DirectoryResult.SUCCESS:  # after, and only then: DM-3.1.7.1.24-07
        if _is_public_queue(entry):
            _notify(core, ChangeOperation.QUEUE_UPDATE, entry)  # DM-3.1.7.1.24-05
        elif isinstance(entry, QueueManager):
            _notify(core, ChangeOperation.QUEUE_MANAGER_UPDATE, entry)  # DM-3.1.7.1.24-06
    return _noticed(core, result)


def read_directory(
    core: QueueManagerCore,
    type_name: str,
    filters: Filters = (),
    attributes: Collection[str] | None = None,
    *,
    force: bool = False,
) -> tuple[DirectoryResult, Row]:
    """Read Directory, MQDMPR 3.1.7.1.20: the first object of a type that passes all filters."""
    is_alone = core.is_directory_offline or not core.directory.is_integrated
    if is_alone and not force:
        return _read_local(core, type_name, filters)
    result, row = core.directory.read(type_name, filters, attributes)
    if result is not DirectoryResult.SUCCESS:
        return (result if force else _noticed(core, result)), NO_ROW  # DM-3.1.7.1.20-11, -12
    return result, row


def read_directory_begin(
    core: QueueManagerCore,
    type_name: str,
    filters: Filters = (),
    attributes: Sequence[str] | None = None,
    sort_order: Sequence[SortKey] | None = None,
) -> tuple[DirectoryResult, int]:
    """Read Directory Begin, MQDMPR 3.1.7.1.21: a query with many answers, in order."""
    return core.directory.begin(type_name, filters, attributes, sort_order)


def read_directory_next(core: QueueManagerCore, handle: int) -> tuple[DirectoryResult, Row]:
    """Read Directory Next, MQDMPR 3.1.7.1.22: END_OF_DATA behind the last object."""
    return core.directory.next(handle)


def read_directory_end(core: QueueManagerCore, handle: int) -> DirectoryResult:
    """Read Directory End, MQDMPR 3.1.7.1.23."""
    return core.directory.end(handle)


def check_directory_online(core: QueueManagerCore) -> None:
    """Check Directory Online, MQDMPR 3.1.7.1.25: is it back? Then catch up with it."""
    filters = equals("identifier", core.identifier)
    result, row = read_directory(core, QUEUE_MANAGER, filters, force=True)  # DM-3.1.7.1.25-01
    if result is not DirectoryResult.SUCCESS:
        _start_online_timer(core)  # DM-3.1.7.1.25-04
        return
    update_local_queue_manager(core, row)
    core.is_directory_offline = False  # DM-3.1.7.1.25-02
    for queue in list(core.public.values()):  # DM-3.1.7.1.25-03
        result, row = read_directory(core, QUEUE, equals("identifier", queue.identifier))
        if result is DirectoryResult.SUCCESS:  # one that it no longer knows stays: DM-A37
            update_queue(queue, row)
            store_queue(core, queue)


def directory_sites_update(core: QueueManagerCore) -> None:
    """Directory Sites Update, MQDMPR 3.1.6.1: read again what may have changed."""
    _refresh(core, core.sites)


def directory_site_gates_update(core: QueueManagerCore) -> None:
    """Directory Site Gates Update, MQDMPR 3.1.6.2."""
    for site in core.sites:
        _refresh(core, site.site_gates)


def directory_server_list_update(core: QueueManagerCore) -> None:
    """Directory Server List Update: who serves the directory now; nobody: the list stays."""
    servers = list(core.directory.find_servers(core.settings.domain_name))
    if servers:
        core.directory_servers = servers


def start_directory_timers(core: QueueManagerCore, *, provisioning: bool = False) -> None:
    """Start the timers that read sites and site gates again, and again (DM-3.1.3-41).

    They belong to the directory that is there now: with another one they end.
    """
    settings = core.settings
    events = [
        (directory_sites_update, settings.directory_sites_update_seconds),
        (directory_site_gates_update, settings.directory_site_gates_update_seconds),
    ]
    if provisioning:  # DM-3.1.3-16
        events.append((directory_server_list_update, settings.directory_server_list_update_seconds))
    for event, seconds in events:
        _start_timer(core, core.directory, event, seconds)


def _start_timer(
    core: QueueManagerCore,
    directory: DirectoryBackend,
    event: Callable[[QueueManagerCore], None],
    seconds: float,
) -> None:
    def expired() -> None:
        if core.directory is directory:
            raise_beside(core, event)
            _start_timer(core, directory, event, seconds)

    core.timers.after(core.clock.monotonic(), seconds, expired)


def raise_beside(core: QueueManagerCore, event: Callable[[QueueManagerCore], None]) -> None:
    """Raise an event that asks the directory; a host may ask first, where nobody has to wait."""
    if core.directory_beside is None:
        event(core)
    else:
        core.directory_beside(event)


def update_local_queue_manager(core: QueueManagerCore, row: Row) -> None:
    """Take over what the directory says about this queue manager; its quotas count at once."""
    known = dict(row)
    if known.get("security") is None:  # then it says nothing about who may do what here
        known.pop("security", None)
    core.local.update(known)
    core.settings.quota_kilobytes = core.local.quota_kilobytes
    core.settings.journal_quota_kilobytes = core.local.journal_quota_kilobytes


def _read_local(
    core: QueueManagerCore, type_name: str, filters: Filters
) -> tuple[DirectoryResult, Row]:
    """What this queue manager knows without a directory; copies, never live objects (DM-A36)."""
    if type_name == QUEUE:
        for queue in core.queues.values():
            row = queue_row(queue)
            if not isinstance(queue, OutgoingQueue) and matches_all(row, filters):
                return DirectoryResult.SUCCESS, row  # DM-3.1.7.1.20-07
    elif type_name == QUEUE_MANAGER and matches_all(core.local.row(), filters):
        return DirectoryResult.SUCCESS, core.local.row()  # DM-3.1.7.1.20-08
    known = remembered(core.directory, type_name, filters)  # of the days when it was there
    if known is not None:
        return DirectoryResult.SUCCESS, known
    if type_name == QUEUE:
        return DirectoryResult.OBJECT_NOT_FOUND, NO_ROW
    return DirectoryResult.DIRECTORY_NOT_CONNECTED, NO_ROW  # DM-3.1.7.1.20-09


def _noticed(core: QueueManagerCore, result: DirectoryResult) -> DirectoryResult:
    """Pass a result on; one that says "not connected" takes an integrated manager offline."""
    not_connected = result is DirectoryResult.DIRECTORY_NOT_CONNECTED
    if not_connected and core.directory.is_integrated:
        core.is_directory_offline = True
        _start_online_timer(core)
    return result


def _start_online_timer(core: QueueManagerCore) -> None:
    """Directory Online Timer, MQDMPR 3.1.2.5: one at a time (DM-A58)."""

    directory = core.directory

    def expired() -> None:
        if core.directory is directory:  # else it was left meanwhile
            core.is_directory_online_timer_active = False
            raise_beside(core, check_directory_online)

    if not core.is_directory_online_timer_active and core.directory.is_integrated:
        core.is_directory_online_timer_active = True
        core.timers.after(core.clock.monotonic(), ONLINE_TIMER_SECONDS, expired)


def _refresh(core: QueueManagerCore, entries: Iterable[DirectoryObject]) -> None:
    for entry in entries:
        filters = equals("identifier", entry.identifier)
        result, row = read_directory(core, entry.type_name, filters)
        if result is DirectoryResult.SUCCESS:  # else it stays as it was: DM-3.1.6.1-02, 3.1.6.2-02
            entry.update(row)


def _notify(core: QueueManagerCore, operation: ChangeOperation, entry: DirectoryEntry) -> None:
    if core.change_notifier is not None:
        core.change_notifier(operation, entry)


def _is_public_queue(entry: DirectoryEntry) -> bool:
    return isinstance(entry, Queue) and entry.queue_type is QueueType.PUBLIC


def _type_name(entry: DirectoryEntry) -> str:
    return QUEUE if isinstance(entry, Queue) else entry.type_name


def _row(entry: DirectoryEntry, attributes: Collection[str] | None) -> Row:
    row = queue_row(entry) if isinstance(entry, Queue) else entry.row()
    if attributes is None:
        return row
    return {name: row[name] for name in ("identifier", *attributes)}
