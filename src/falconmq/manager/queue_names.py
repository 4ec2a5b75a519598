"""From names to queues: which computer is meant, which queue, and what to say when there is none.

"." and every name and address of this computer mean this queue manager (DM-A08). Inside, a path
name is kept and looked up with the computer ".", so that all of them find the same queue.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from falconmq.errors import DirectoryError, MqStatus, NameSyntaxError, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import equals
from falconmq.manager.model import Queue
from falconmq.manager.registry import THIS_COMPUTER, is_local_computer
from falconmq.manager.states import DirectoryResult
from falconmq.names import (
    ConnectorFormatName,
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MultipleElementFormatName,
    PathName,
    PrivateFormatName,
    Protocol,
    PublicFormatName,
    QueueKind,
    SingleFormatName,
    Suffix,
)
from falconmq.names.syntax import fold

_HINTS: Final = 200  # queues among which a misspelt name is looked for


def find_queue(core: QueueManagerCore, name: PathName | FormatName) -> Queue | None:
    """The local queue with this name, whatever kind of name it is (DM-3.1.7.1.5-39)."""
    match name:
        case PathName():
            is_local = is_local_computer(core, name.computer)
            return core.paths.get(name.with_computer(THIS_COMPUTER)) if is_local else None
        case DirectFormatName():
            return _find_direct(core, name)
        case PublicFormatName(identifier, suffix):
            return _with_suffix(core.public.get(identifier), suffix)
        case PrivateFormatName(computer, number, suffix):
            if computer != core.identifier:
                return None
            return _with_suffix(core.private_numbers.get(number), suffix)
        case MachineFormatName(computer, suffix):
            return _machine_queue(core, suffix) if computer == core.identifier else None
        case ConnectorFormatName():
            return core.connectors.get(name)
        case _:
            return None


def direct_path(name: DirectFormatName) -> PathName | None:
    """The path name that a direct name of a queue stands for, on its own computer."""
    if name.protocol is Protocol.OTHER or name.kind is QueueKind.SYSTEM:
        return None
    journal = name.suffix is Suffix.JOURNAL
    return PathName(THIS_COMPUTER, name.kind, name.queue, name.subqueue, journal)


def _find_direct(core: QueueManagerCore, name: DirectFormatName) -> Queue | None:
    if name.protocol is Protocol.OTHER or not is_local_computer(core, name.address):
        return None
    path = direct_path(name)
    return _machine_queue(core, name.suffix) if path is None else core.paths.get(path)


def _machine_queue(core: QueueManagerCore, suffix: Suffix) -> Queue | None:
    queues = {
        Suffix.JOURNAL: core.journal,
        Suffix.DEADLETTER: core.dead_letter,
        Suffix.DEADXACT: core.transactional_dead_letter,
    }
    return queues.get(suffix)


def _with_suffix(queue: Queue | None, suffix: Suffix) -> Queue | None:
    return queue.journal if queue is not None and suffix is Suffix.JOURNAL else queue


def get_queue_path(core: QueueManagerCore, format_name: FormatName) -> tuple[str, str]:
    """The path name and the computer that a format name leads to; "" for what nobody knows.

    Get Queue Path, MQDMPR 3.1.7.1.26; NameSyntaxError with ILLEGAL_FORMATNAME if the directory
    does not know the queue or the computer.
    """
    match format_name:
        case DirectFormatName() if format_name.protocol.is_url:
            return "", format_name.address  # DM-3.1.7.1.26-03
        case DirectFormatName():
            colon = format_name.wire_text.find(":")
            return format_name.wire_text[colon + 1 :], format_name.address  # DM-3.1.7.1.26-04
        case PublicFormatName(identifier):
            result, row = read_directory(core, "Queue", equals("identifier", identifier))
            if result is not DirectoryResult.SUCCESS:  # DM-3.1.7.1.26-05
                raise _unknown_to_directory(format_name)
            return str(row["path_name"]), str(row["computer_name"])  # DM-3.1.7.1.26-06
        case PrivateFormatName(computer, number):
            result, row = read_directory(core, "QueueManager", equals("identifier", computer))
            if result is not DirectoryResult.SUCCESS:  # DM-3.1.7.1.26-07
                raise _unknown_to_directory(format_name)
            is_ours = computer == core.identifier
            queue = core.private_numbers.get(number) if is_ours else None  # DM-3.1.7.1.26-09
            return "" if queue is None else str(queue.path_name), str(row["computer_name"])
        case _:
            return "", ""  # DM-3.1.7.1.26-10


def expand_format_name(core: QueueManagerCore, format_name: FormatName) -> FormatName:
    """Replace distribution lists by their queues, sort, and drop doubles.

    Expand Format Name, MQDMPR 3.1.7.3.8; DirectoryError when a list cannot be resolved.
    """
    if isinstance(format_name, MultipleElementFormatName):
        work: list[SingleFormatName] = list(format_name.elements)
    elif isinstance(format_name, DistributionListFormatName):
        work = [format_name]
    else:
        return format_name  # DM-3.1.7.3.8-02
    found: dict[str, SingleFormatName] = {}
    visited: set[DistributionListFormatName] = set()  # a list may hold itself: DM-3.1.7.3.8-16
    for element in work:  # grows while it is walked: DM-3.1.7.3.8-05
        if not isinstance(element, DistributionListFormatName):
            found.setdefault(fold(str(element)), element)  # DM-3.1.7.3.8-06
        elif element not in visited:
            visited.add(element)
            work.extend(_resolve(core, element))
    if not found:
        raise QueueError(
            f"{format_name} has no queue in it",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
            hint="add queues to the distribution list",
        )
    elements = tuple(found[key] for key in sorted(found))
    return elements[0] if len(elements) == 1 else MultipleElementFormatName(elements)


def _resolve(
    core: QueueManagerCore, name: DistributionListFormatName
) -> Iterable[SingleFormatName]:
    result, members = core.directory.resolve_distribution_list(name)
    if result is DirectoryResult.SUCCESS:
        return members
    if result is DirectoryResult.DIRECTORY_NOT_CONNECTED:  # DM-A10
        raise DirectoryError(
            f"{name} cannot be resolved: no directory can be reached",
            status=MqStatus.NO_DS,
            hint="name the queues themselves, joined by commas",
        )
    raise DirectoryError(
        f"{name} cannot be resolved: {result.value}",
        status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
    )


def _unknown_to_directory(name: FormatName) -> NameSyntaxError:
    return NameSyntaxError(
        str(name),
        0,
        "the directory does not know this name",
        status=MqStatus.ILLEGAL_FORMATNAME,
        hint="in a workgroup use a direct name: DIRECT=OS:computer\\private$\\queue",
    )


def queue_not_found(core: QueueManagerCore, name: PathName | FormatName) -> QueueError:
    """The error for a queue of this computer that is not there, with the nearest one that is."""
    path = direct_path(name) if isinstance(name, DirectFormatName) else name
    hint = "to see all queues: falconmq queue list"
    if isinstance(path, PathName):
        path = path.with_computer(THIS_COMPUTER)
        hint = f"to create it: falconmq queue create '{path}'"
        near = _nearest(core, path)
        if near is not None:
            hint = f"did you mean {near}? {hint}"
    computer = core.settings.computer_name
    shown = path if isinstance(path, PathName) else name
    return QueueError(f"no queue {shown} on {computer}", status=MqStatus.QUEUE_NOT_FOUND, hint=hint)


def _nearest(core: QueueManagerCore, path: PathName) -> str | None:
    """The existing queue whose name looks most like a misspelt one; also one of another kind."""
    known: dict[str, str] = {}
    for candidate, queue in core.paths.items():
        if candidate.kind is not QueueKind.SYSTEM and not (candidate.journal or queue.is_internal):
            known.setdefault(fold(candidate.name), str(candidate))
        if len(known) >= _HINTS:
            break
    close = difflib.get_close_matches(fold(path.name), known, 1)
    return known[close[0]] if close else None
