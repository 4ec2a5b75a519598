"""Public queues and the directory: how one gets there, and who has one that is elsewhere.

The directory and the store cannot be changed in one step, so the directory comes first. What breaks
off between the two leaves an object of a queue that nobody has; creating the queue again takes it
over. So an attempt may be repeated until it works, and nothing has to be cleaned up by hand.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import DirectoryError, FalconMQError, MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import (
    create_directory_object,
    delete_directory_object,
    read_directory,
    write_directory,
)
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.manager.model import Queue, QueueProperties
from falconmq.manager.path_names import is_directory_away, look_up, path_question
from falconmq.manager.states import DirectoryResult
from falconmq.names import PublicFormatName

_STATUS: Final = {
    DirectoryResult.DIRECTORY_NOT_CONNECTED: MqStatus.NO_DS,
    DirectoryResult.OBJECT_ALREADY_EXISTS: MqStatus.QUEUE_EXISTS,
}


def publish(core: QueueManagerCore, queue: Queue) -> None:
    """Create a public queue in the directory and take over the names it has there."""
    if not core.directory.is_integrated:
        raise directory_error(core, queue, "created", DirectoryResult.DIRECTORY_NOT_CONNECTED)
    result, identifier = create_directory_object(core, queue)  # DM-3.1.7.1.3-23
    if result is DirectoryResult.OBJECT_ALREADY_EXISTS:
        result, identifier = _adopt(core, queue)
    if result is not DirectoryResult.SUCCESS:
        raise directory_error(core, queue, "created", result)  # DM-A11
    queue.identifier = identifier  # DM-3.1.7.1.3-24
    attributes = ("full_path", "directory_path")
    made = equals("identifier", identifier)
    result, row = read_directory(core, "Queue", made, attributes, force=True)  # it is there now
    if result is DirectoryResult.SUCCESS:  # DM-3.1.7.1.3-25
        queue.full_path, queue.directory_path = str(row["full_path"]), str(row["directory_path"])


def directory_error(
    core: QueueManagerCore, queue: Queue, action: str, result: DirectoryResult
) -> FalconMQError:
    """What to raise when the directory did not do what was asked."""
    if not core.directory.is_integrated:
        private = f".\\private$\\{queue.path_name.name}"
        return DirectoryError(
            f"{queue.path_name} cannot be {action}: this queue manager is in no directory",
            status=MqStatus.UNSUPPORTED_OPERATION,
            hint=f"use a private queue: '{private}'",
        )
    problem, hint = _in_words(core, result)
    status = _STATUS.get(result, MqStatus.DS_ERROR)
    problem = f"{queue.path_name} was not {action}: {problem}"
    return DirectoryError(problem, status=status, hint=hint)


def left_in_directory(
    core: QueueManagerCore, queue: Queue, result: DirectoryResult
) -> DirectoryError:
    """A queue was deleted, and the directory still has it."""
    problem, _ = _in_words(core, result)
    return DirectoryError(
        f"{queue.path_name} is deleted here, but not in the directory: {problem}",
        status=_STATUS.get(result, MqStatus.DS_ERROR),
        hint=f"later: falconmq directory delete queue '{queue.path_name}'; to create the queue "
        "again uses what the directory has",
    )


def host_of(core: QueueManagerCore, name: PublicFormatName) -> UUID | None:
    """The queue manager of a public queue, ours or one that the directory knows."""
    if name.queue in core.public:
        return core.identifier
    result, row = look_up(core, "Queue", equals("identifier", name.queue))
    if result is not DirectoryResult.SUCCESS:
        return None
    host = row.get("queue_manager_identifier")
    if host is None or host == NULL_UUID:
        by_name = equals("computer_name", row["computer_name"])
        _, machine = look_up(core, "QueueManager", by_name)
        host = machine.get("identifier")
    return host if isinstance(host, UUID) else None


def public_host(core: QueueManagerCore, name: PublicFormatName) -> UUID:
    """`host_of` for those who cannot go on without it: a packet names the queue manager."""
    host = host_of(core, name)
    if host is None:
        raise unknown_to_directory(core, name, DirectoryResult.OBJECT_NOT_FOUND)
    return host


def unknown_to_directory(
    core: QueueManagerCore, name: PublicFormatName, result: DirectoryResult
) -> QueueError:
    """A public queue elsewhere of which nobody says where it is (DM-3.1.7.1.5-19, DM-A09)."""
    problem, hint = f"the directory does not know {name}: {result.value}", ""
    if not core.directory.is_integrated:
        hint = "in a workgroup use a direct name"
    elif is_directory_away(core):
        problem = f"{name} cannot be looked up: the directory is away"
        hint = "try again when it is back, or use a direct name: DIRECT=OS:computer\\queue"
    status = MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    return QueueError(problem, status=status, hint=hint)


def _in_words(core: QueueManagerCore, result: DirectoryResult) -> tuple[str, str]:
    """Why the directory did not do it, and a hint."""
    if result is DirectoryResult.DIRECTORY_NOT_CONNECTED:
        hint = "try again when it is back; private queues need no directory"
        return "the directory is away", hint
    told = getattr(core.directory, "last_problem", None)  # back ends may say it in words
    return (str(told), told.hint) if isinstance(told, DirectoryError) else (result.value, "")


def _adopt(core: QueueManagerCore, queue: Queue) -> tuple[DirectoryResult, UUID]:
    """Take over the object that the directory has of a queue of ours which is not here.

    Others may know its GUID, so that stays. Whether a queue is transactional cannot be written: an
    object of the other kind makes room for a new one.
    """
    result, row = read_directory(core, "Queue", path_question(queue.path_name), force=True)
    if result is not DirectoryResult.SUCCESS:
        is_away = result is DirectoryResult.DIRECTORY_NOT_CONNECTED
        return (result if is_away else DirectoryResult.OBJECT_ALREADY_EXISTS), NULL_UUID
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    if row["transactional"] == queue.properties.transactional:
        queue.identifier = identifier
        return write_directory(core, queue), identifier
    left = Queue(0, queue.path_name, queue.queue_type, QueueProperties(), core.fetch)
    left.identifier = identifier
    result = delete_directory_object(core, left)
    if result is not DirectoryResult.SUCCESS:
        return result, NULL_UUID
    return create_directory_object(core, queue)
