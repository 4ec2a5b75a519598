"""Path names for people, format names for messages, and the way from one to the other.

`resolve_path_name` does what MQPathNameToFormatName does: a queue of ours is known, a public one of
another computer is looked up in the directory, a private one there is addressed by its computer. In
a workgroup nobody can be asked, so there the direct name of a queue elsewhere has to be given.
"""

from __future__ import annotations

from uuid import UUID

from falconmq.errors import DirectoryError, MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import Filters, equals, remembered
from falconmq.manager.directory_objects import Row
from falconmq.manager.model import Queue
from falconmq.manager.queue_names import find_queue, queue_not_found
from falconmq.manager.registry import THIS_COMPUTER, connector_name, is_local_computer
from falconmq.manager.states import DirectoryResult, QueueType
from falconmq.names import (
    DirectFormatName,
    MachineFormatName,
    PathName,
    PrivateFormatName,
    Protocol,
    PublicFormatName,
    QueueKind,
    SingleFormatName,
    Suffix,
    parse_format_name,
)
from falconmq.names.syntax import fold


def resolve_path_name(core: QueueManagerCore, path_name: PathName) -> SingleFormatName:
    """The format name of a queue that somebody named by its path, here or on another computer.

    What MQPathNameToFormatName does. QueueError QUEUE_NOT_FOUND if there is none, DirectoryError
    NO_DS if only a directory that is away could know it.
    """
    queue = find_queue(core, path_name)
    if queue is not None:
        return format_name_of(core, queue)
    if is_local_computer(core, path_name.computer):
        raise queue_not_found(core, path_name)
    if not core.directory.is_integrated:
        raise QueueError(
            f"{path_name} is on another computer",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint=f"to send to it, name it DIRECT=OS:{path_name}",
        )
    if path_name.kind is not QueueKind.PUBLIC or path_name.subqueue is not None:
        return _direct_name(path_name)  # the number of a private queue only its computer knows
    row = _read_public(core, path_name)
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    return PublicFormatName(identifier, Suffix.JOURNAL if path_name.journal else Suffix.NONE)


def format_name_of(core: QueueManagerCore, queue: Queue) -> SingleFormatName:
    """How messages name a queue of this queue manager."""
    if queue is core.dead_letter:
        return MachineFormatName(core.identifier, Suffix.DEADLETTER)
    if queue is core.transactional_dead_letter:
        return MachineFormatName(core.identifier, Suffix.DEADXACT)
    if queue is core.journal:
        return MachineFormatName(core.identifier, Suffix.JOURNAL)
    path_name, suffix = queue.path_name, Suffix.NONE
    if path_name.subqueue is not None:
        computer = core.settings.computer_name
        kind, name = path_name.kind, path_name.name
        return DirectFormatName(Protocol.OS, computer, kind, name, path_name.subqueue)
    if path_name.journal and queue.parent is not None:
        queue, suffix = queue.parent, Suffix.JOURNAL
    if queue.queue_type is QueueType.PUBLIC:
        return PublicFormatName(queue.identifier, suffix)
    if queue.queue_type is QueueType.CONNECTOR:
        return connector_name(queue)
    return PrivateFormatName(core.identifier, queue.private_queue_number, suffix)


def known_path(core: QueueManagerCore, name: SingleFormatName) -> str:
    """The path name of a public queue as far as it is known here; "" for others.

    For people who look at GUIDs: nobody is asked.
    """
    if not isinstance(name, PublicFormatName):
        return ""
    queue = core.public.get(name.queue)
    if queue is not None:
        return str(queue.path_name)
    row = remembered(core.directory, "Queue", equals("identifier", name.queue))
    return "" if row is None else str(row["path_name"])


def in_full(text: str) -> str:
    r"""The path name that a plain word stands for: `orders` is `.\orders`, public and of ours.

    What may be a path name that a shell took the backslashes from is left as it is.
    """
    is_plain = not text.startswith(".") and not any(mark in text for mark in "\\/$=;:,")
    return f"{THIS_COMPUTER}\\{text}" if text and is_plain else text


def path_question(path_name: PathName) -> Filters:
    """What to ask the directory for, to find the public queue with this path name."""
    plain = PathName(path_name.computer, path_name.kind, path_name.name)
    return equals("path_name", str(plain).lower())  # as directories keep it


def short_path(path_name: PathName) -> PathName | None:
    """The path with the first part of a host name: a directory knows a computer by that."""
    computer, dot, _ = path_name.computer.partition(".")
    return path_name.with_computer(computer) if dot and computer else None


def look_up(
    core: QueueManagerCore, type_name: str, filters: Filters
) -> tuple[DirectoryResult, Row]:
    """Read Directory; of one that is found to be away just now, what it said before."""
    result, row = read_directory(core, type_name, filters)
    if result is DirectoryResult.DIRECTORY_NOT_CONNECTED and is_directory_away(core):
        return read_directory(core, type_name, filters)
    return result, row


def is_directory_away(core: QueueManagerCore) -> bool:
    """Whether there is a directory, and it cannot be asked at the moment."""
    return core.directory.is_integrated and core.is_directory_offline


def _is_of_host(row: Row, host: str) -> bool:
    """Whether a queue is on the computer with this host name, and not on its namesake."""
    qualified = str(row.get("qualified_path_name", ""))
    return fold(qualified.partition("\\")[0]) == fold(host)


def _direct_name(path_name: PathName) -> DirectFormatName:
    name = parse_format_name(f"DIRECT=OS:{path_name}")
    assert isinstance(name, DirectFormatName)
    return name


def _read_public(core: QueueManagerCore, path_name: PathName) -> Row:
    result, row = look_up(core, "Queue", path_question(path_name))
    is_missing = result is DirectoryResult.OBJECT_NOT_FOUND
    if is_missing and (short := short_path(path_name)) is not None:
        result, row = look_up(core, "Queue", path_question(short))
        if result is DirectoryResult.SUCCESS and not _is_of_host(row, path_name.computer):
            result = DirectoryResult.OBJECT_NOT_FOUND
    if result is DirectoryResult.SUCCESS:
        return row
    if is_directory_away(core):
        raise DirectoryError(
            f"{path_name} cannot be looked up: the directory is away",
            status=MqStatus.NO_DS,
            hint="try again when it is back, or go without it: name the queue "
            f"DIRECT=OS:{path_name}",
        )
    if result is not DirectoryResult.OBJECT_NOT_FOUND:
        raise DirectoryError(
            f"{path_name} cannot be looked up: {result.value}", status=MqStatus.DS_ERROR
        )
    private = PathName(path_name.computer, QueueKind.PRIVATE, path_name.name)
    raise QueueError(
        f"the directory knows no queue {path_name}",
        status=MqStatus.QUEUE_NOT_FOUND,
        hint=f"public queues are created on their computer; a private one is named {private}",
    )
