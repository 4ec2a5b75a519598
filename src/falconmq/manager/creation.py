"""How queues come to be (MQDMPR 3.1.7.1.3, 3.1.7.1.33), with their journals and subqueues."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.errors import MqStatus, NameSyntaxError, QueueError
from falconmq.manager.access import check_manager, check_queue
from falconmq.manager.core import QueueManagerCore, next_number
from falconmq.manager.default_security import default_security
from falconmq.manager.directory_objects import check_rights
from falconmq.manager.model import UNLIMITED, Queue, QueueProperties
from falconmq.manager.persistence import store_queue
from falconmq.manager.public_queues import publish
from falconmq.manager.queue_names import find_queue, queue_not_found
from falconmq.manager.registry import (
    THIS_COMPUTER,
    connector_path,
    is_local_computer,
    qualified_computer_name,
    register,
)
from falconmq.manager.states import QueuePrivacy, QueueType
from falconmq.names import (
    ConnectorFormatName,
    MulticastFormatName,
    PathName,
    QueueKind,
    parse_format_name,
)
from falconmq.names.syntax import fold
from falconmq.wire.access_masks import MQSEC_CREATE_QUEUE, MQSEC_RECEIVE_MESSAGE, ObjectKind

QUEUE_LABEL_MAX: Final = 124
BASE_PRIORITY_MIN, BASE_PRIORITY_MAX = -0x8000, 0x7FFF

# Queues that every computer has, with the private numbers that peers know them by.
DEAD_LETTER_NUMBER: Final = 5
TRANSACTIONAL_DEAD_LETTER_NUMBER: Final = 6
JOURNAL_NUMBER: Final = 7
NOTIFY_QUEUE_NUMBER: Final = 3  # DM-3.1.3-52
ORDER_QUEUE_NUMBER: Final = 4
RESERVED_PRIVATE_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {"mqis_queue$": 1, "notify_queue$": NOTIFY_QUEUE_NUMBER, "order_queue$": ORDER_QUEUE_NUMBER}
)
_TYPES: Final = {
    QueueKind.PRIVATE: QueueType.PRIVATE,  # DM-3.1.7.1.3-11
    QueueKind.SYSTEM: QueueType.SYSTEM,  # DM-3.1.7.1.3-12
    QueueKind.PUBLIC: QueueType.PUBLIC,  # DM-3.1.7.1.3-13
}


def set_queue_defaults(core: QueueManagerCore) -> QueueProperties:
    """The properties a creator starts from (Set Queue Defaults, MQDMPR 3.1.7.1.33)."""
    return QueueProperties(security=default_security(core, core.settings.computer_name))


def create_queue(
    core: QueueManagerCore,
    path_name: PathName,
    properties: QueueProperties | None = None,
    *,
    skip_directory: bool = False,
    identifier: UUID | None = None,
) -> Queue:
    """Create a queue of this computer (Create Queue, MQDMPR 3.1.7.1.3).

    A public queue is created in the directory first; `skip_directory` is for one that is there
    already, whose `identifier` a change notification gave.
    """
    path_name = check_path(core, path_name)
    check_manager(core, MQSEC_CREATE_QUEUE)
    if find_queue(core, path_name) is not None:  # DM-A13
        raise QueueError(
            f"there is a queue {path_name} already",
            status=MqStatus.QUEUE_EXISTS,
            hint=f"to use it: falconmq queue show '{path_name.with_computer(THIS_COMPUTER)}'",
        )
    if path_name.subqueue is not None:
        return _create_subqueue(core, path_name)
    chosen = dataclasses.replace(properties) if properties is not None else QueueProperties()
    check_properties(chosen)
    chosen.security = default_security(core, path_name.computer, chosen.security)
    queue = _build(core, path_name, _TYPES[path_name.kind], chosen)
    if queue.queue_type is QueueType.PUBLIC and not skip_directory:
        publish(core, queue)
    else:
        queue.identifier = new_identifier(core) if identifier is None else identifier
    if queue.queue_type is QueueType.PRIVATE:
        queue.private_queue_number = _private_number(core, queue)
    _add(core, queue)
    if queue.queue_type is not QueueType.SYSTEM:  # a system queue has no journal, by its grammar
        add_journal(core, queue)  # DM-3.1.7.1.3-04
    return queue


def open_subqueue(core: QueueManagerCore, queue: Queue, name: str) -> Queue:
    """The subqueue with this name; it comes to be when somebody first asks for it."""
    parent = queue if queue.parent is None else queue.parent
    subqueue = parent.subqueues.get(fold(name))
    if subqueue is not None:
        return subqueue
    if parent.queue_type not in (QueueType.PRIVATE, QueueType.PUBLIC):
        raise QueueError(
            f"{parent.path_name} cannot have subqueues",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        )
    check_queue(core, parent, MQSEC_RECEIVE_MESSAGE)  # that moving a message into it takes
    path_name = dataclasses.replace(parent.path_name, subqueue=name)
    subqueue = _build(core, path_name, parent.queue_type, parent.properties)
    subqueue.identifier = new_identifier(core)
    subqueue.parent = parent
    parent.subqueues[fold(name)] = subqueue
    _add(core, subqueue)
    return subqueue


def create_connector_queue(core: QueueManagerCore, name: ConnectorFormatName) -> Queue:
    """The queue through which a connector application takes messages to a foreign system."""
    path_name = connector_path(core.settings.computer_name, name)
    properties = QueueProperties(transactional=name.transactional)
    properties.security = default_security(core, path_name.computer)
    queue = _build(core, path_name, QueueType.CONNECTOR, properties)
    queue.identifier = new_identifier(core)
    _add(core, queue)
    return queue


def create_system_queue(
    core: QueueManagerCore, number: int, path_name: str, *, is_internal: bool = False
) -> Queue:
    """A queue that every queue manager has; its number is fixed, its place in the store too."""
    stored = core.queues.get(number)
    if stored is not None:
        stored.is_internal = is_internal
        return stored
    path = PathName.parse(path_name).with_computer(core.settings.computer_name)
    properties = QueueProperties(quota_kilobytes=_system_quota(core, number))
    properties.security = default_security(core, path.computer)
    properties.transactional = number == TRANSACTIONAL_DEAD_LETTER_NUMBER
    queue = _build(core, path, QueueType.SYSTEM, properties, number)
    queue.identifier = new_identifier(core)
    queue.is_internal = is_internal
    if path.kind is QueueKind.PRIVATE:
        queue.private_queue_number = number
    _add(core, queue)
    return queue


def add_journal(core: QueueManagerCore, queue: Queue) -> Queue:
    """The journal of a queue: a system queue with the journal quota, and no journal (DM-A12)."""
    path_name = dataclasses.replace(queue.path_name, journal=True)
    properties = QueueProperties(
        quota_kilobytes=queue.properties.journal_quota_kilobytes,
        transactional=queue.properties.transactional,
        security=queue.properties.security,
    )
    journal = _build(core, path_name, QueueType.SYSTEM, properties)
    journal.identifier = new_identifier(core)
    journal.parent = queue
    queue.journal = journal
    _add(core, journal)
    return journal


def new_identifier(core: QueueManagerCore) -> UUID:
    return UUID(int=core.random.getrandbits(128), version=4)


def check_path(core: QueueManagerCore, path_name: PathName) -> PathName:
    """A path name that a queue may be created with here, with this computer's own name."""
    if not is_local_computer(core, path_name.computer):
        hint = f"create it there, or as {path_name.with_computer(THIS_COMPUTER)} here"
        if path_name.kind is QueueKind.PUBLIC and core.directory.is_integrated:
            hint += f", or for its owner: falconmq directory create queue '{path_name}'"
        raise QueueError(
            f"{path_name} is on another computer",
            status=MqStatus.ILLEGAL_QUEUE_PATHNAME,
            hint=hint,
        )
    if path_name.journal:
        raise QueueError(
            f"{path_name} is created with its queue",
            status=MqStatus.ILLEGAL_QUEUE_PATHNAME,
            hint="create the queue itself, with journaling on",
        )
    return path_name.with_computer(core.settings.computer_name)


def check_properties(properties: QueueProperties) -> None:
    """Refuse values that MSMQ does not allow."""
    if len(properties.label) > QUEUE_LABEL_MAX:
        problem = f"a queue label has at most {QUEUE_LABEL_MAX} characters"
        raise illegal_property("label", f"{problem}, this one has {len(properties.label)}")
    for name in ("quota_kilobytes", "journal_quota_kilobytes"):
        if not 0 <= getattr(properties, name) <= UNLIMITED:
            problem = f"{getattr(properties, name)} is not in 0..{UNLIMITED} (no limit)"
            raise illegal_property(name, problem)
    if not BASE_PRIORITY_MIN <= properties.base_priority <= BASE_PRIORITY_MAX:
        problem = f"{properties.base_priority} is not in {BASE_PRIORITY_MIN}..{BASE_PRIORITY_MAX}"
        raise illegal_property("base_priority", problem)
    try:
        properties.privacy_level = QueuePrivacy(properties.privacy_level)  # DM-3.1.1.2-13
    except ValueError as error:
        raise illegal_property("privacy_level", str(error)) from error
    if properties.multicast_address is not None:
        _check_multicast(properties.multicast_address)
    if properties.security is not None:
        check_rights(properties.security, ObjectKind.QUEUE)  # DM-3.1.1.2-19


def illegal_property(name: str, problem: str) -> QueueError:
    return QueueError(f"{name}: {problem}", status=MqStatus.ILLEGAL_PROPERTY_VALUE)


def _build(
    core: QueueManagerCore,
    path_name: PathName,
    queue_type: QueueType,
    properties: QueueProperties,
    number: int | None = None,
) -> Queue:
    if number is None:
        number = next_number(core, core.queue_number)
    queue = Queue(number, path_name, queue_type, properties, core.fetch)
    queue.create_time = queue.modify_time = int(core.clock.time())  # DM-3.1.7.1.3-18
    qualified = qualified_computer_name(core.settings)
    queue.qualified_path_name = str(path_name.with_computer(qualified))  # DM-3.1.7.1.3-19
    return queue


def _add(core: QueueManagerCore, queue: Queue) -> None:
    register(core, queue)  # DM-3.1.7.1.3-28
    store_queue(core, queue)


def _create_subqueue(core: QueueManagerCore, path_name: PathName) -> Queue:
    assert path_name.subqueue is not None
    parent = find_queue(core, dataclasses.replace(path_name, subqueue=None))
    if parent is None:
        raise queue_not_found(core, dataclasses.replace(path_name, subqueue=None))
    return open_subqueue(core, parent, path_name.subqueue)


def _private_number(core: QueueManagerCore, queue: Queue) -> int:
    """A number no private queue has; our own is never given again, so neither is this one."""
    reserved = RESERVED_PRIVATE_NUMBERS.get(fold(queue.path_name.name))
    if reserved is not None:
        return reserved
    number = queue.number & 0xFFFFFFFF
    while number in core.private_numbers or number <= JOURNAL_NUMBER:  # DM-3.1.7.1.3-22
        number = (number + 1) & 0xFFFFFFFF
    return number


def _system_quota(core: QueueManagerCore, number: int) -> int:
    return core.settings.journal_quota_kilobytes if number == JOURNAL_NUMBER else UNLIMITED


def _check_multicast(address: str) -> None:
    with contextlib.suppress(NameSyntaxError):
        if isinstance(parse_format_name(f"MULTICAST={address}"), MulticastFormatName):
            return
    raise illegal_property("multicast_address", f"{address!r} is no address:port of a multicast")
