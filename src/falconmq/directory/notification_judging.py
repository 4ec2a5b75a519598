"""What a notification asks for, or why it is refused (MQCN 3.2.5, guide 4 and 11).

A message is judged as a whole before anything is done: a bad update in it refuses all of it (A11).
The answer is a list of steps in their order; nothing is changed and nobody is asked here. Version 1
brings its values along and must be signed by a queue manager; who that may be is asked later.
Version 2 brings none: its steps say what to read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from falconmq.directory.notification import ReceivingSettings, Refusal, Refused
from falconmq.directory.notification_values import (
    MACHINE_CHANGES,
    QUEUE_CHANGES,
    QUEUE_CREATION,
    values_of,
)
from falconmq.errors import NameSyntaxError, WireError
from falconmq.manager.directory_objects import Row
from falconmq.manager.record import StoredMessage
from falconmq.names import PathName, QueueKind
from falconmq.security.manager_signatures import signing_manager
from falconmq.wire.change_notification import (
    VERSION_DIRECTORY_SERVICE,
    ChangeNotificationMessage,
    NotificationBody,
    NotificationEvent,
)
from falconmq.wire.directory_change import CREATE, DELETE, NotificationUpdate
from falconmq.wire.property_ids import ObjectType, object_type_of

_BODY_MIN: Final = 2

ObjectName = UUID | PathName
"""Which object: by its GUID, or by the path name that an update may have instead."""


@dataclass(frozen=True, slots=True)
class CreateQueue:
    """Create a queue with these values; what is not among them has its default."""

    path_name: PathName
    identifier: UUID
    values: Row


@dataclass(frozen=True, slots=True)
class ChangeQueue:
    name: ObjectName
    values: Row


@dataclass(frozen=True, slots=True)
class DeleteQueue:
    name: ObjectName
    is_certain: bool  # a signed one; otherwise the directory is asked first


@dataclass(frozen=True, slots=True)
class ChangeManager:
    values: Row


@dataclass(frozen=True, slots=True)
class ReadQueue:
    """Read a queue from the directory and take over what it says; create it if it is not here."""

    identifier: UUID
    server: str


@dataclass(frozen=True, slots=True)
class ReadManager:
    """Read this queue manager's own object."""

    server: str


Step = CreateQueue | ChangeQueue | DeleteQueue | ChangeManager | ReadQueue | ReadManager


@dataclass(frozen=True, slots=True)
class Judged:
    """What to do. `sender` has to be a directory server; None: anybody may send this."""

    steps: list[Step]
    sender: UUID | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """Knows this queue manager: its GUID and which computer names are its own."""

    identifier: UUID
    is_local_computer: Callable[[str], bool]
    settings: ReceivingSettings

    def judge(self, message: StoredMessage) -> Judged | Refused:
        """What a message of the notification queue asks for."""
        body = bytes(message.packet.properties.message_body)
        if len(body) < _BODY_MIN:
            return Refused(Refusal.TOO_SHORT, f"{len(body)} bytes")
        version = body[0]
        if version not in self.settings.versions:  # CN-3.2.5-06
            return Refused(Refusal.UNKNOWN_VERSION, str(version))
        if version == VERSION_DIRECTORY_SERVICE:  # before a byte of it is read: pitfall 5
            refused = _check_sender(message)
            if refused is not None:
                return refused
        try:
            data = ChangeNotificationMessage.decode(body).data  # CN-3.2.5-02
        except WireError as error:
            return Refused(Refusal.MALFORMED, str(error))
        if isinstance(data, NotificationBody):
            return self._judge_text(data)  # CN-3.2.5-05
        return self._judge_updates(message, data)  # CN-3.2.5-03

    # Version 2

    def _judge_text(self, body: NotificationBody) -> Judged | Refused:
        identifier, server = UUID(bytes_le=body.object_guid), body.domain_controller
        step: Step
        if body.event is NotificationEvent.MACHINE_CHANGED:
            if identifier != self.identifier:
                return Refused(Refusal.NOT_OURS, f"queue manager {identifier}")
            step = ReadManager(server)
        elif body.event is NotificationEvent.QUEUE_DELETED:
            step = DeleteQueue(identifier, is_certain=False)
        else:
            step = ReadQueue(identifier, server)
        return Judged([step])

    # Version 1

    def _judge_updates(
        self, message: StoredMessage, updates: list[NotificationUpdate]
    ) -> Judged | Refused:
        steps: list[Step] = []
        for update in updates:
            judged = self._judge_update(update)
            if isinstance(judged, Refused):
                return judged
            if judged is not None:
                steps.append(judged)
        return Judged(steps, signing_manager(message.packet))

    def _judge_update(self, update: NotificationUpdate) -> Step | Refused | None:
        if update.command == DELETE:
            kind = update.properties[1][1]  # the value, whatever its id: CN-3.2.5.1-42
            if kind != ObjectType.MQDS_QUEUE:  # CN-3.2.5.1-43
                return Refused(Refusal.WRONG_TYPE, f"deletion of type {kind!r}")
            name = self._object_name(update)
            return name if isinstance(name, Refused) else DeleteQueue(name, is_certain=True)
        kind = object_type_of(update.properties[0][0])  # CN-3.2.5.1-05, -06
        if kind == ObjectType.MQDS_QUEUE:
            return self._judge_queue(update)
        if kind == ObjectType.MQDS_MACHINE:
            return None if update.command == CREATE else self._judge_machine(update)  # -27
        return Refused(Refusal.WRONG_TYPE, f"type {kind}")  # CN-3.2.5.1-07

    def _judge_queue(self, update: NotificationUpdate) -> Step | Refused:
        values = values_of(update, QUEUE_CREATION if update.command == CREATE else QUEUE_CHANGES)
        if isinstance(values, Refused):
            return values
        if update.command != CREATE:
            name = self._object_name(update)
            return name if isinstance(name, Refused) else ChangeQueue(name, values)
        named, identifier = values.pop("path_name", None), values.pop("identifier", None)
        if not isinstance(identifier, UUID):
            return Refused(Refusal.MALFORMED, "a new queue without Q_INSTANCE")
        path_name: PathName | Refused = Refused(Refusal.MALFORMED, "a new queue without a name")
        for text in (update.path_name, named):  # both have to be right; the property counts
            if text is not None:
                path_name = self._path_name(str(text))
                if isinstance(path_name, Refused):
                    break
        if isinstance(path_name, Refused):
            return path_name
        return CreateQueue(path_name, identifier, values)

    def _judge_machine(self, update: NotificationUpdate) -> Step | Refused:
        guid, name = update.guid_identifier, update.path_name
        is_ours = guid == self.identifier.bytes_le
        if not is_ours and not (name is not None and self.is_local_computer(name)):
            return Refused(Refusal.NOT_OURS, "another queue manager")
        values = values_of(update, MACHINE_CHANGES)
        return values if isinstance(values, Refused) else ChangeManager(values)

    def _object_name(self, update: NotificationUpdate) -> ObjectName | Refused:
        guid = update.guid_identifier
        return self._path_name(update.path_name or "") if guid is None else UUID(bytes_le=guid)

    def _path_name(self, text: str) -> PathName | Refused:
        """A public queue of this computer, or why it is none."""
        try:
            name = PathName.parse(text)
        except NameSyntaxError as error:
            return Refused(Refusal.MALFORMED, str(error))
        if not self.is_local_computer(name.computer):
            return Refused(Refusal.NOT_OURS, str(name))
        if name.kind is not QueueKind.PUBLIC or name.journal or name.subqueue is not None:
            return Refused(Refusal.NOT_PUBLIC, str(name))
        return name


def _check_sender(message: StoredMessage) -> Refused | None:
    """Version 1 carries data: only a queue manager may send it, and only signed."""
    if signing_manager(message.packet) is None:  # CN-3.2.5.1-03
        return Refused(Refusal.NOT_FROM_MANAGER)
    if not message.authentication_level:  # what our own check found, never the wire's word: A5
        return Refused(Refusal.NOT_AUTHENTICATED)  # CN-3.2.5.1-02, -04
    return None
