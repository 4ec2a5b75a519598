"""Notifications as they arrive, and a queue manager that listens to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from falconmq.directory.notification import ReceivingSettings
from falconmq.directory.notification_receiving import ChangeNotificationServer
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.creation import NOTIFY_QUEUE_NUMBER
from falconmq.manager.directory_objects import QueueManager
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.model import Queue, QueueProperties
from falconmq.manager.queue_rows import queue_row
from falconmq.manager.queues import create_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import EnqueueStatus
from falconmq.manager.storing import enqueue_message
from falconmq.names import PathName
from falconmq.wire.change_notification import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationEvent,
)
from falconmq.wire.directory_change import CREATE, DELETE, UPDATE, NotificationUpdate
from falconmq.wire.security_header import SENDER_ID_QUEUE_MANAGER, SecurityHeader
from falconmq.wire.variant import Value
from tests.directory.enterprises import guid
from tests.manager.directories import SITE, make_directory, make_integrated_core
from tests.manager.helpers import COMPUTER, commit, message, pass_time

QUEUE = UUID("0ffeed00-0000-4000-8000-000000000007")
MASTER = guid("DS")  # a directory server
OTHER = guid("OTHER")  # a queue manager that serves no directory
IMMEDIATE = ReceivingSettings(is_immediate=True)


@dataclass
class Listener:
    """A queue manager in a directory that hears notifications."""

    core: QueueManagerCore
    directory: MemoryDirectory
    server: ChangeNotificationServer

    def hear(self, told: StoredMessage) -> None:
        """A message comes into the notification queue."""
        queue = self.core.private_numbers[NOTIFY_QUEUE_NUMBER]
        assert enqueue_message(self.core, queue, told) is EnqueueStatus.OK
        commit(self.core)
        self.core.run_timers()
        commit(self.core)

    def wait(self, seconds: float) -> None:
        pass_time(self.core, seconds)
        commit(self.core)

    def queue(self, identifier: UUID = QUEUE) -> Queue | None:
        return self.core.public.get(identifier)

    def known(self, identifier: UUID = QUEUE) -> Queue:
        found = self.queue(identifier)
        assert found is not None
        return found

    def refusals(self) -> dict[str, int]:
        """What was refused, by reason; and nothing was done."""
        done = {"received", "runs", "reloads", "created", "changed", "deleted", "manager changed"}
        counters = self.server.counters
        return {reason: count for reason, count in counters.items() if reason not in done}


def make_listener(settings: ReceivingSettings = IMMEDIATE, **parts: Any) -> Listener:
    directory = make_directory()
    for name, serves in (("DS", True), ("OTHER", False)):
        row = QueueManager(guid(name), computer_name=name, site_identifiers=[SITE]).row()
        directory.create("QueueManager", {**row, "directory_server": serves})
    core, _, _ = make_integrated_core(directory)
    core.change_notifier = None
    server = ChangeNotificationServer(core, settings, **parts)
    server.start()
    core.run_timers()
    directory.calls.clear()
    return Listener(core, directory, server)


def make_row(name: str = rf"{COMPUTER}\orders", identifier: UUID = QUEUE, **values: object) -> Any:
    """A queue as the directory has it."""
    core, _, _ = make_integrated_core()
    queue = create_queue(core, PathName.parse(r".\x"), QueueProperties())
    row = queue_row(queue)
    computer = name.partition("\\")[0]
    names = {"path_name": name, "computer_name": computer, "identifier": identifier}
    return {**row, **names, **values}


def add_queue(listener: Listener, name: str = rf"{COMPUTER}\orders", **values: object) -> Queue:
    """A public queue that both have, the directory and the queue manager."""
    properties = QueueProperties(**values)  # type: ignore[arg-type]
    queue = create_queue(
        listener.core, PathName.parse(name), properties, skip_directory=True, identifier=QUEUE
    )
    listener.directory.create("Queue", queue_row(queue))
    commit(listener.core)
    listener.directory.calls.clear()
    return queue


def text(
    event: NotificationEvent, identifier: UUID = QUEUE, server: str = "dc1.example.com"
) -> StoredMessage:
    """Version 2."""
    body = NotificationBody(event, identifier.bytes_le, server)
    return raw(ChangeNotificationMessage(body).encode())


def updates(
    *told: NotificationUpdate, sender: UUID = MASTER, level: int = 3, sender_type: int = 2
) -> StoredMessage:
    """Version 1, as it is in the queue when its signature has been verified."""
    stored = raw(ChangeNotificationMessage(list(told)).encode())
    identifier = sender.bytes_le
    assert sender_type == SENDER_ID_QUEUE_MANAGER or identifier
    security = SecurityHeader(sender_type, security_id=identifier)
    stored = StoredMessage.of(replace(stored.packet, security=security))
    stored.authentication_level = level
    return stored


def raw(body: bytes) -> StoredMessage:
    return message(body, recoverable=False)


def creation(
    *properties: tuple[int, Value], name: str = rf"{COMPUTER}\orders"
) -> NotificationUpdate:
    return NotificationUpdate(CREATE, name, MASTER.bytes_le, list(properties))


def change(*properties: tuple[int, Value], identifier: UUID = QUEUE) -> NotificationUpdate:
    return NotificationUpdate(UPDATE, identifier.bytes_le, MASTER.bytes_le, list(properties))


def deletion(kind: int = 1, identifier: UUID = QUEUE) -> NotificationUpdate:
    properties: Iterable[tuple[int, Value]] = [(1403, 1), (1404, kind)]
    return NotificationUpdate(DELETE, identifier.bytes_le, MASTER.bytes_le, list(properties))
