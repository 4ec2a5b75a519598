"""The client's side of change notification: telling the owner of an object (MQCN 3.3).

The queue manager calls its `change_notifier` when it has changed something in the directory. The
owner of the object is told, if it is another queue manager, and if there is anything to tell: about
public queues and about queue managers. Nobody waits for the message; it lives five minutes.

As a queue manager we tell only what to look at (version 2). As an MSMQ directory service
(`is_directory_service`) we say what is new, and sign it (version 1). Queue managers of NT 4.0 and
Windows 2000 understand version 1 alone: in an enterprise that still has some, nobody else can tell
them (MQDMPR notes 21 to 31).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final
from uuid import UUID

from falconmq.directory.notification import (
    TIME_TO_REACH_QUEUE_SECONDS,
    default_hash,
    notify_queue,
    signature_version,
)
from falconmq.directory.notification_building import build_text, build_update, build_updates
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import NULL_UUID, DirectoryObject, QueueManager
from falconmq.manager.model import OpenQueueDescriptor, Queue
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.registry import is_local_computer, qualified_computer_name
from falconmq.manager.states import (
    AccessType,
    ChangeOperation,
    DirectoryResult,
    EnqueueStatus,
    QueueType,
    ShareMode,
)
from falconmq.manager.storing import enqueue_message
from falconmq.message import Delivery, Message
from falconmq.names.syntax import NEWEST, MsmqVersion
from falconmq.security.keys import ManagerKeys
from falconmq.security.manager_signatures import sign_as_manager
from falconmq.security.providers import ADVANCED
from falconmq.serialization import to_user_message
from falconmq.wire.change_notification import VERSION_DIRECTORY_SERVICE, ChangeNotificationMessage
from falconmq.wire.user_message import UserMessage

IDLE_SECONDS: Final = 300.0  # after which the way to an owner is closed again
_OLD_SYSTEMS: Final = ("4.0", "5.0")  # NT 4.0 and Windows 2000

_log = logging.getLogger("falconmq.directory")


@dataclass(frozen=True, slots=True)
class SendingSettings:
    """How notifications are sent."""

    is_directory_service: bool = False  # version 1
    server: str = ""  # the directory server that owners should ask; "": the first we know
    version: MsmqVersion = NEWEST  # whose way of signing is used


class Told(Enum):
    """What became of a change; the value names its counter."""

    SENT = "sent"
    OWN = "an object of our own"
    NOTHING_TO_TELL = "nothing to tell"
    LATER = "told when it is there"
    NO_IDENTIFIER = "object without identifier"
    FOREIGN = "owner is a foreign system"
    OWNER_UNKNOWN = "owner unknown"
    OWNER_TOO_OLD = "owner understands version 1 only"
    NO_KEYS = "no keys to sign with"
    NOT_SENT = "cannot be sent"


_QUIET: Final = frozenset({Told.SENT, Told.OWN, Told.NOTHING_TO_TELL, Told.LATER, Told.FOREIGN})


@dataclass(frozen=True, slots=True)
class _Owner:
    """The queue manager that is to be told."""

    identifier: UUID
    system: str  # the version of its operating system
    is_foreign: bool  # another messaging system, behind a connector


@dataclass(slots=True)
class _Way:
    """An open outgoing queue to an owner."""

    descriptor: OpenQueueDescriptor
    used_at: float


class ChangeNotificationClient:
    """Tells owners of changes. An instance is the `change_notifier` of a core."""

    def __init__(
        self,
        core: QueueManagerCore,
        settings: SendingSettings | None = None,
        keys: Callable[[], ManagerKeys] | None = None,
    ) -> None:
        self.core = core
        self.settings = SendingSettings() if settings is None else settings
        self.counters: Counter[str] = Counter()
        self._keys = core.key_source if keys is None else keys
        self._ways: dict[UUID, _Way] = {}
        self._is_watching = False

    def __call__(self, operation: ChangeOperation, entry: Queue | DirectoryObject) -> None:
        """Send Change Notification, MQCN 3.3.4.1."""
        self.tell(operation, entry)

    def tell(
        self,
        operation: ChangeOperation,
        entry: Queue | DirectoryObject,
        changed: Collection[str] | None = None,
    ) -> Told:
        """Tell the owner of an object that it changed; `changed` names what, if that is known."""
        told = self._tell(operation, entry, changed)
        self.counters[told.value] += 1
        if told not in _QUIET:
            name = entry.path_name if isinstance(entry, Queue) else entry.identifier
            _log.warning("change notification not sent object=%s reason=%r", name, told.value)
        return told

    def close(self) -> None:
        """Close the ways to all owners."""
        for way in self._ways.values():
            close_queue(self.core, way.descriptor)
        self._ways.clear()

    def _tell(
        self,
        operation: ChangeOperation,
        entry: Queue | DirectoryObject,
        changed: Collection[str] | None,
    ) -> Told:
        if isinstance(entry, Queue):
            if entry.queue_type is not QueueType.PUBLIC:
                return Told.NOTHING_TO_TELL  # CN-1.6-01
            if is_local_computer(self.core, entry.path_name.computer):
                return Told.OWN
        elif not isinstance(entry, QueueManager):
            return Told.NOTHING_TO_TELL
        elif entry.identifier == self.core.identifier:
            return Told.OWN
        if entry.identifier == NULL_UUID:
            return self._without_identifier(operation, entry)
        owner = self._owner_of(entry)
        if owner is None:
            return Told.OWNER_UNKNOWN
        if owner.is_foreign:  # its connector would get what nobody there understands
            return Told.FOREIGN
        if self.settings.is_directory_service:  # CN-3.3.4.1-04
            master = self.core.identifier
            update = build_update(operation, entry, owner.identifier, master, changed)
            return self._send(owner.identifier, build_updates([update]))
        if self._is_old(owner.system):
            return Told.OWNER_TOO_OLD
        return self._send(owner.identifier, build_text(operation, entry.identifier, self._server()))

    def _without_identifier(self, operation: ChangeOperation, entry: Queue | QueueManager) -> Told:
        """Creations are told of before the directory gives a GUID (DM-A35), which it then has (A7).

        So the telling waits until the event is over, and looks whether the queue has come to be.
        """
        if operation is not ChangeOperation.QUEUE_CREATION or not isinstance(entry, Queue):
            return Told.NO_IDENTIFIER
        now = self.core.clock.monotonic()
        self.core.timers.after(now, 0, partial(self._tell_of_created, entry))
        return Told.LATER

    def _tell_of_created(self, queue: Queue) -> None:
        by_path = equals("path_name", str(queue.path_name))
        _, row = read_directory(self.core, "Queue", by_path, ("path_name",))
        found = row.get("identifier")  # none if it was refused, or cannot be read
        if isinstance(found, UUID):
            queue.identifier = found
            self.tell(ChangeOperation.QUEUE_CREATION, queue)
        else:
            self.counters[Told.NO_IDENTIFIER.value] += 1

    def _owner_of(self, entry: Queue | QueueManager) -> _Owner | None:
        """The queue manager that an object belongs to."""
        if isinstance(entry, QueueManager):
            system, is_foreign = entry.operating_system_version, entry.foreign_system
            return _Owner(entry.identifier, system, is_foreign=is_foreign)
        by_name = equals("computer_name", entry.path_name.computer)
        wanted = ("operating_system_version", "foreign_system")
        result, row = read_directory(self.core, "QueueManager", by_name, wanted)
        if result is not DirectoryResult.SUCCESS:
            return None
        owner = row["identifier"]
        assert isinstance(owner, UUID)
        system = str(row.get("operating_system_version", ""))
        return _Owner(owner, system, is_foreign=row.get("foreign_system") is True)

    def _is_old(self, system: str) -> bool:
        enterprise = self.core.enterprise
        has_old = enterprise is None or enterprise.non_ldap_capable_queue_manager_notification
        return has_old and system.startswith(_OLD_SYSTEMS)

    def _server(self) -> str:
        """The directory server through which the change was made; our own, if we are it."""
        known = [self.settings.server, *self.core.directory_servers]
        return next(filter(None, known), "") or qualified_computer_name(self.core.settings)

    def _send(self, owner: UUID, notification: ChangeNotificationMessage) -> Told:
        """Sending, MQCN 3.3.5.3. Without keys nothing is signed, and version 1 is not sent."""
        if self._keys is None and notification.version == VERSION_DIRECTORY_SERVICE:
            return Told.NO_KEYS
        try:
            stored = StoredMessage.of(self._packet(owner, notification))
            descriptor = self._open(owner)
            assert descriptor.queue is not None, "a closed way is not kept"
            status = enqueue_message(self.core, descriptor.queue, stored)  # CN-3.3.5.3-14, -15
        except FalconMQError as error:  # CN-3.3.3-07
            _log.warning("change notification not sent owner=%s problem=%s", owner, error)
            return Told.NOT_SENT
        return Told.SENT if status is EnqueueStatus.OK else Told.NOT_SENT

    def _packet(self, owner: UUID, notification: ChangeNotificationMessage) -> UserMessage:
        core, version = self.core, self.settings.version
        message = Message(
            notification.encode(),  # with its one unused byte: CN-3.3.5.3-07 to -10
            time_to_reach_queue=TIME_TO_REACH_QUEUE_SECONDS,
            delivery=Delivery.EXPRESS,  # CN-3.3.5.3-03
            destination=notify_queue(owner),
            hash_algorithm=default_hash(version),
        )
        packet = to_user_message(
            message,
            source_queue_manager=core.identifier,
            message_id=next_message_id(core),
            sent_time=int(core.clock.time()),
        )
        if self._keys is None:
            return packet
        return sign_as_manager(  # A18: both versions, as a queue manager
            packet,
            self._keys().signing[ADVANCED],
            core.identifier,  # of the one who signs, not of the object: A3
            version=signature_version(version),
            hash_algorithm=default_hash(version),
            allow_weak=True,  # an administrator chose the version
        )

    # Ways

    def _open(self, owner: UUID) -> OpenQueueDescriptor:
        """The open outgoing queue to an owner, opened when it is first needed (A10)."""
        now = self.core.clock.monotonic()
        way = self._ways.get(owner)
        if way is None or way.descriptor.queue is None:
            descriptor = open_queue(
                self.core,
                notify_queue(owner),  # CN-3.3.3-02
                AccessType.SEND,  # CN-3.3.3-04
                ShareMode.DENY_NONE,  # CN-3.3.3-05
                internal=True,
            )
            way = self._ways[owner] = _Way(descriptor, now)
        way.used_at = now
        if not self._is_watching:
            self._is_watching = True
            self.core.timers.after(now, IDLE_SECONDS, self._close_idle)
        return way.descriptor

    def _close_idle(self) -> None:
        now = self.core.clock.monotonic()
        for owner, way in list(self._ways.items()):
            if now >= way.used_at + IDLE_SECONDS:
                close_queue(self.core, way.descriptor)
                del self._ways[owner]
        self._is_watching = bool(self._ways)
        if self._ways:
            self.core.timers.after(now, IDLE_SECONDS, self._close_idle)
