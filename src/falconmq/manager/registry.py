"""Which queues there are, under which names, and which computer names are ours (DM-A08)."""

from __future__ import annotations

import ipaddress
from typing import Final
from uuid import UUID

from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.states import QueueType
from falconmq.names import ConnectorFormatName, PathName, QueueKind
from falconmq.names.syntax import fold

THIS_COMPUTER: Final = "."
CONNECTOR: Final = "connector$"
CONNECTOR_XACT: Final = "connector_xact$"
_NAMES_OF_ALL: Final = frozenset({".", "localhost"})
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})


def is_local_computer(core: QueueManagerCore, host: str) -> bool:
    """Whether a computer name or address is one of ours (DM-3.1.7.1.5-38)."""
    name = fold(host)
    if name in _NAMES_OF_ALL or name == fold(core.settings.computer_name):
        return True
    return (_address(name) or name) in _local_names(core.settings)


def _local_names(settings: Settings) -> frozenset[str]:
    given = {fold(name) for name in settings.local_names}
    addresses = {address for name in given if (address := _address(name)) is not None}
    names = given | addresses | {fold(qualified_computer_name(settings))}
    # Several queue managers may share a computer, each with its own loopback address.
    return frozenset(names if addresses else names | _LOOPBACK)


def qualified_computer_name(settings: Settings) -> str:
    """ComputerName and domain, unless the configuration says otherwise (DM-3.1.3-09)."""
    if settings.qualified_computer_name or not settings.domain_name:
        return settings.qualified_computer_name or settings.computer_name
    return f"{settings.computer_name}.{settings.domain_name}"


def _address(text: str) -> str | None:
    """An IP address in its one canonical notation; None for anything else."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def register(core: QueueManagerCore, queue: Queue) -> None:
    """Put a queue into QueueCollection and under all its names."""
    core.queues[queue.number] = queue
    if isinstance(queue, OutgoingQueue):
        core.outgoing[queue.destination] = queue
        return
    core.paths[queue.path_name.with_computer(THIS_COMPUTER)] = queue
    if queue.parent is not None:
        return
    if queue.private_queue_number:
        core.private_numbers[queue.private_queue_number] = queue
    if queue.queue_type is QueueType.PUBLIC:
        core.public[queue.identifier] = queue
    if queue.queue_type is QueueType.CONNECTOR:
        core.connectors[connector_name(queue)] = queue


def unregister(core: QueueManagerCore, queue: Queue) -> None:
    """Take a queue out of QueueCollection; whoever still holds it sees that it is deleted."""
    queue.is_deleted = True
    core.queues.pop(queue.number, None)
    if core.events is not None:
        core.events.forget_queue(queue.number)
    if isinstance(queue, OutgoingQueue):
        core.outgoing.pop(queue.destination, None)
        return
    core.paths.pop(queue.path_name.with_computer(THIS_COMPUTER), None)
    if queue.parent is None:
        core.private_numbers.pop(queue.private_queue_number, None)
        core.public.pop(queue.identifier, None)
    if queue.queue_type is QueueType.CONNECTOR:
        core.connectors.pop(connector_name(queue), None)


def connector_path(computer: str, name: ConnectorFormatName) -> PathName:
    """The path name of a connector queue; only we use it, others say CONNECTOR=."""
    prefix = CONNECTOR_XACT if name.transactional else CONNECTOR
    return PathName(computer, QueueKind.SYSTEM, f"{prefix}{name.connector}")


def connector_name(queue: Queue) -> ConnectorFormatName:
    """What others call a connector queue."""
    name = queue.path_name.name
    is_transactional = name.startswith(CONNECTOR_XACT)
    guid = name.removeprefix(CONNECTOR_XACT if is_transactional else CONNECTOR)
    return ConnectorFormatName(UUID(guid), is_transactional)
