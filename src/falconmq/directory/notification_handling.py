"""Doing what notifications ask for, with the directory's help (MQCN 3.2.5, guide 4 and 11)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final, assert_never
from uuid import UUID

from falconmq.directory.notification import ReceivingSettings, Refusal, Refused
from falconmq.directory.notification_applying import (
    change_manager,
    change_told_queue,
    create_told_queue,
    delete_told_queue,
    find_public_queue,
)
from falconmq.directory.notification_judging import (
    ChangeManager,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    Judge,
    Judged,
    ReadManager,
    ReadQueue,
    Step,
)
from falconmq.errors import NameSyntaxError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import DirectoryBackend, equals, forget
from falconmq.manager.directory_objects import Row
from falconmq.manager.record import StoredMessage
from falconmq.manager.registry import is_local_computer
from falconmq.manager.states import DirectoryResult
from falconmq.names import PathName
from falconmq.names.syntax import fold

# CN-3.2.5.2-05: Type, Identifier, BasePriority, Journaling, and so on.
QUEUE_ATTRIBUTES: Final = (
    "type",
    "identifier",
    "base_priority",
    "journaling",
    "quota_kilobytes",
    "journal_quota_kilobytes",
    "create_time",
    "modify_time",
    "security",
    "path_name",
    "label",
    "authentication",
    "privacy_level",
    "transactional",
    "multicast_address",
    "directory_path",
)
MANAGER_ATTRIBUTES: Final = ("quota_kilobytes", "journal_quota_kilobytes", "security")  # -14
_AWAY: Final = DirectoryResult.DIRECTORY_NOT_CONNECTED

_log = logging.getLogger("falconmq.directory")


class DirectoryAwayError(Exception):
    """Nothing can be decided now; it is worth while to come again."""


class Handler:
    """Handles notifications of one queue manager, one after the other, and counts what came of it.

    `directories` are those that a notification may name by their servers; any other name is not
    gone to: the queue manager's own directory is asked instead (guide 11).
    """

    def __init__(
        self,
        core: QueueManagerCore,
        settings: ReceivingSettings,
        directories: Mapping[str, DirectoryBackend],
    ) -> None:
        self.core = core
        self.counters: Counter[str] = Counter()
        self._settings = settings
        self._directories = {fold(name): found for name, found in directories.items()}
        self._judge = Judge(core.identifier, partial(is_local_computer, core), settings)

    def handle(self, message: StoredMessage) -> None:
        """Judge one message and do what it asks for; DirectoryAwayError if that cannot be now."""
        judged = self._judge.judge(message)
        if not isinstance(judged, Refused):
            refused = self._check_sender(judged)
            if refused is None:
                for step in judged.steps:
                    self._do(step)
                return
            judged = refused
        self._refuse(judged)

    def reload(self) -> None:
        """Read every public queue of ours, as if each had changed (CN-1.6-11, -12)."""
        self.counters["reloads"] += 1
        for identifier in list(self.core.public):
            self._look_at_queue(ReadQueue(identifier, ""))

    def _check_sender(self, judged: Judged) -> Refused | None:
        """Version 1 changes us without another word: its sender has to be a directory server."""
        if judged.sender is None or not self._settings.is_strict:
            return None
        result, row = self._read("QueueManager", judged.sender, ("directory_server",), "")
        if result is not DirectoryResult.SUCCESS or not row.get("directory_server"):
            return Refused(Refusal.NOT_FROM_DIRECTORY_SERVER, str(judged.sender))
        return None

    def _do(self, step: Step) -> None:
        match step:
            case CreateQueue():
                self._create(step.path_name, step.identifier, step.values)
            case ChangeQueue():
                self._change(step)
            case DeleteQueue():
                self._delete(step)
            case ChangeManager():
                change_manager(self.core, step.values)
                self.counters["manager changed"] += 1
            case ReadQueue():
                forget(self.core.directory, "Queue", step.identifier)
                self._look_at_queue(step)
            case ReadManager():
                forget(self.core.directory, "QueueManager", self.core.identifier)
                self._look_at_manager(step)
            case _:
                assert_never(step)

    def _create(self, path_name: PathName, identifier: UUID, values: Row) -> None:
        queue = find_public_queue(self.core, identifier)
        if queue is not None:  # it is here already: A12
            self._count("changed", change_told_queue(self.core, queue, values))
        else:
            refused = create_told_queue(self.core, path_name, identifier, values)
            self._count("created", refused)

    def _change(self, step: ChangeQueue) -> None:
        queue = find_public_queue(self.core, step.name)
        if queue is None:  # A12
            self._refuse(Refused(Refusal.NOT_HERE, str(step.name)))
        else:
            self._count("changed", change_told_queue(self.core, queue, step.values))

    def _delete(self, step: DeleteQueue) -> None:
        queue = find_public_queue(self.core, step.name)
        if queue is None:  # A12
            self._refuse(Refused(Refusal.NOT_HERE, str(step.name)))
            return
        if not step.is_certain and self._settings.checks_deletions:
            forget(self.core.directory, "Queue", queue.identifier)
            result, _ = self._read("Queue", queue.identifier, QUEUE_ATTRIBUTES, "")
            if result is not DirectoryResult.OBJECT_NOT_FOUND:  # anybody could say that it is gone
                self._refuse(Refused(Refusal.STILL_IN_DIRECTORY, str(queue.path_name)))
                self._look_at_queue(ReadQueue(queue.identifier, ""))
                return
        self._count("deleted", delete_told_queue(self.core, queue))

    def _look_at_queue(self, step: ReadQueue) -> None:
        """Read Directory for a queue, and take over what it says (CN-3.2.5.2-03 to -10)."""
        result, row = self._read("Queue", step.identifier, QUEUE_ATTRIBUTES, step.server)
        if result is not DirectoryResult.SUCCESS:  # A15
            detail = f"queue {step.identifier}: {result.value}"
            self._refuse(Refused(Refusal.NOT_IN_DIRECTORY, detail))
            return
        try:
            path_name = PathName.parse(str(row.get("path_name", "")))
        except NameSyntaxError as error:
            self._refuse(Refused(Refusal.BAD_VALUE, str(error)))
            return
        if not is_local_computer(self.core, path_name.computer):
            self._refuse(Refused(Refusal.NOT_OURS, str(path_name)))
            return
        self._create(path_name, step.identifier, row)

    def _look_at_manager(self, step: ReadManager) -> None:
        own = self.core.identifier
        result, row = self._read("QueueManager", own, MANAGER_ATTRIBUTES, step.server)
        if result is not DirectoryResult.SUCCESS:
            self._refuse(Refused(Refusal.NOT_IN_DIRECTORY, f"queue manager {own}: {result.value}"))
            return
        known = {name: row[name] for name in MANAGER_ATTRIBUTES if row.get(name) is not None}
        change_manager(self.core, known)
        self.counters["manager changed"] += 1

    def _read(
        self, type_name: str, identifier: UUID, attributes: tuple[str, ...], server: str
    ) -> tuple[DirectoryResult, Row]:
        """Read Directory, from the server that a notification names if we know it.

        An object that lacks one of the attributes is read as it is: what it has still counts.
        """
        result, row = self._ask(type_name, identifier, attributes, server)
        if result is DirectoryResult.ATTRIBUTE_NOT_FOUND:
            result, row = self._ask(type_name, identifier, None, server)
        if result is _AWAY:
            raise DirectoryAwayError
        return result, row

    def _ask(
        self, type_name: str, identifier: UUID, attributes: tuple[str, ...] | None, server: str
    ) -> tuple[DirectoryResult, Row]:
        filters = equals("identifier", identifier)
        named = self._directories.get(fold(server)) if server else None
        if named is not None:
            return named.read(type_name, filters, attributes)  # CN-3.2.5.2-02
        if self.core.is_directory_offline:  # we would only hear what we know ourselves
            return _AWAY, {}
        return read_directory(self.core, type_name, filters, attributes)

    def _count(self, what: str, refused: Refused | None) -> None:
        if refused is None:
            self.counters[what] += 1
        else:
            self._refuse(refused)

    def _refuse(self, refused: Refused) -> None:
        self.counters[refused.reason.value] += 1
        _log.warning(
            'change notification refused reason="%s" detail=%r',
            refused.reason.value,
            refused.detail,
        )
