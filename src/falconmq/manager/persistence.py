"""What the store keeps of queues, counters and the queue manager itself.

One record of JSON for each queue, under its number: everything that the tables of MQDMPR 3.1.1
call directory or persistent. A journal or subqueue names its queue by number; a subqueue has no
properties of its own. What is volatile is not in the record and starts anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from falconmq.errors import FalconMQError, MqStatus, StoreError
from falconmq.manager.core import Counter, QueueManagerCore, reserve_numbers
from falconmq.manager.model import OutgoingQueue, Queue, QueueProperties
from falconmq.manager.registry import qualified_computer_name, register
from falconmq.manager.states import OutgoingState, QueuePrivacy, QueueScope, QueueType
from falconmq.names import (
    DirectFormatName,
    MultipleElementFormatName,
    PathName,
    QueueKind,
    SingleFormatName,
    parse_format_name,
)
from falconmq.names.syntax import fold
from falconmq.store.interface import StoreReader, WriteBatch
from falconmq.wire.security_descriptor import SecurityDescriptor

VERSION: Final = 1
QUEUES: Final = "queues"
META: Final = "meta"
FIRST_QUEUE_NUMBER: Final = 16  # below: the queues that every queue manager has
_IDENTIFIER: Final = b"identifier"
_MANAGER: Final = b"queue_manager"
_DIRECT: Final = "DIRECT="


def store_queue(core: QueueManagerCore, queue: Queue) -> None:
    """Let the store have a queue as it is now."""
    record = json.dumps(_record(queue), separators=(",", ":")).encode()
    core.batch.put(QUEUES, _key(queue.number), record)


def forget_queue(core: QueueManagerCore, queue: Queue) -> None:
    """Take a queue out of the store; its messages are deleted one by one where they are."""
    core.batch.delete(QUEUES, _key(queue.number))


def load_queues(core: QueueManagerCore) -> None:
    """Build all queues from the store, without their messages. StoreError names a bad record."""
    parents: list[tuple[Queue, int]] = []
    for key, record in core.store.scan(QUEUES):
        number = int.from_bytes(key, "big")
        queue, parent = read_queue(core, number, record)
        if parent is None:
            register(core, queue)
        else:
            parents.append((queue, parent))
    for queue, parent in parents:
        attach(core, queue, parent)


def attach(core: QueueManagerCore, queue: Queue, parent_number: int) -> None:
    """Tie a journal or subqueue to the queue it belongs to."""
    parent = core.queues.get(parent_number)
    if parent is None:
        raise _damaged(queue.number, f"queue {parent_number} it belongs to is missing")
    queue.parent = parent
    if queue.path_name.subqueue is not None:
        queue.properties = parent.properties
        parent.subqueues[fold(queue.path_name.subqueue)] = queue
    else:
        parent.journal = queue
    register(core, queue)


def read_queue(core: QueueManagerCore, number: int, record: bytes) -> tuple[Queue, int | None]:
    """The queue of one record, and the number of the queue it belongs to."""
    try:
        fields = json.loads(record)
        if fields["version"] != VERSION:
            raise _damaged(number, f"version {fields['version']}, this FalconMQ writes {VERSION}")
        return _read(core, number, fields), fields["parent"]
    except StoreError:
        raise
    except (FalconMQError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(number, f"{type(error).__name__}: {error}") from error


def load_counters(core: QueueManagerCore) -> None:
    """Go on behind every number that may have been given out before the stop or crash."""
    for counter in counters(core):
        counter.ceiling = _stored_ceiling(core, counter)
        counter.value = max(counter.value, counter.ceiling)
    core.queue_number.value = max(core.queue_number.value, FIRST_QUEUE_NUMBER - 1)


def _stored_ceiling(core: QueueManagerCore, counter: Counter) -> int:
    stored = core.store.get(META, counter.name.encode())
    return 0 if stored is None else int.from_bytes(stored, "big")


def reserve_counters(core: QueueManagerCore) -> None:
    """At the start: cover the numbers that are given out next."""
    for counter in counters(core):
        reserve_numbers(core, counter)


def cover_counters(core: QueueManagerCore) -> None:
    """After a commit that failed: cover what was given out above the stored ceilings.

    Express messages keep their numbers through such a failure, and may leave for others.
    """
    for counter in counters(core):
        counter.ceiling = _stored_ceiling(core, counter)
        if counter.value > counter.ceiling:
            reserve_numbers(core, counter)


def store_counters(core: QueueManagerCore) -> None:
    """At an orderly stop the store gets the exact numbers, so that none is skipped."""
    for counter in counters(core):
        counter.ceiling = counter.value
        core.batch.put(META, counter.name.encode(), counter.value.to_bytes(8, "big"))


def skip_numbers(store: StoreReader, batch: WriteBatch, steps: Mapping[str, int]) -> None:
    """Let counters of a store that nobody uses go on further ahead: by name, how far."""
    for name, step in steps.items():
        stored = store.get(META, name.encode())
        ceiling = 0 if stored is None else int.from_bytes(stored, "big")
        batch.put(META, name.encode(), (ceiling + step).to_bytes(8, "big"))


def stored_destinations(store: StoreReader) -> Iterator[tuple[int, SingleFormatName]]:
    """The outgoing queues of a store: number and destination."""
    for key, record in store.scan(QUEUES):
        number = int.from_bytes(key, "big")
        try:
            destination = json.loads(record).get("destination")
            if destination is not None:
                yield number, _destination(destination)
        except (FalconMQError, ValueError, TypeError, AttributeError) as error:
            raise _damaged(number, f"{type(error).__name__}: {error}") from error


def counters(core: QueueManagerCore) -> tuple[Counter, ...]:
    return core.sequential_id, core.message_id, core.queue_number


def stored_identifier(store: StoreReader) -> UUID | None:
    """Whose data this is; None for a store that no queue manager has used."""
    stored = store.get(META, _IDENTIFIER)
    return None if stored is None else UUID(bytes=bytes(stored))


def check_identifier(core: QueueManagerCore) -> None:
    """A store belongs to one queue manager for good: peers know it by its identifier."""
    stored = stored_identifier(core.store)
    if stored is None:
        core.batch.put(META, _IDENTIFIER, core.identifier.bytes)
    elif stored != core.identifier:
        raise StoreError(
            f"these data belong to queue manager {stored}, not to {core.identifier}",
            status=MqStatus.GUID_NOT_MATCHING,
            hint="open them with their own identifier; two managers may not share one",
        )


def store_manager(core: QueueManagerCore) -> None:
    """Keep what belongs to the queue manager itself and is persistent (MQDMPR 3.1.1.1)."""
    record = {
        "version": VERSION,
        "last_domain": core.last_domain.hex,
        "directory_servers": core.directory_servers,
        "initialization_retry_seconds": core.initialization_retry_seconds,
        "sites": [site.hex for site in core.local.site_identifiers],
    }
    core.batch.put(META, _MANAGER, json.dumps(record).encode())


def load_manager(core: QueueManagerCore) -> None:
    stored = core.store.get(META, _MANAGER)
    if stored is None:
        return
    fields = json.loads(stored)
    core.last_domain = UUID(fields["last_domain"])
    core.directory_servers = list(fields["directory_servers"])
    core.initialization_retry_seconds = fields["initialization_retry_seconds"]
    core.local.site_identifiers = [UUID(site) for site in fields["sites"]]


def _record(queue: Queue) -> dict[str, Any]:
    path = queue.path_name
    record: dict[str, Any] = {
        "version": VERSION,
        "type": queue.queue_type.value,
        "parent": None if queue.parent is None else queue.parent.number,
        "kind": path.kind.value,
        "name": path.name,
        "subqueue": path.subqueue,
        "journal": path.journal,
        "identifier": queue.identifier.hex,
        "private_number": queue.private_queue_number,
        "create_time": queue.create_time,
        "modify_time": queue.modify_time,
        "scope": queue.scope.value,
        "full_path": queue.full_path,
        "directory_path": queue.directory_path,
    }
    if path.subqueue is None:
        record["properties"] = _properties_record(queue.properties)
    if isinstance(queue, OutgoingQueue):
        record["destination"] = str(queue.destination)
        record["multicast"] = queue.is_multicast
        record["locked"] = queue.state is OutgoingState.LOCKED
    return record


def _properties_record(properties: QueueProperties) -> dict[str, Any]:
    security = properties.security
    return {
        "label": properties.label,
        "type": properties.type.hex,
        "journaling": properties.journaling,
        "quota_kilobytes": properties.quota_kilobytes,
        "journal_quota_kilobytes": properties.journal_quota_kilobytes,
        "authentication": properties.authentication,
        "privacy_level": int(properties.privacy_level),
        "transactional": properties.transactional,
        "multicast_address": properties.multicast_address,
        "security": None if security is None else security.encode().hex(),
        "base_priority": properties.base_priority,
    }


def _read(core: QueueManagerCore, number: int, fields: dict[str, Any]) -> Queue:
    properties = QueueProperties()
    if "properties" in fields:
        properties = _read_properties(fields["properties"])
    queue: Queue
    if "destination" in fields:
        queue = OutgoingQueue(number, _destination(fields["destination"]), properties, core.fetch)
        queue.is_multicast = fields["multicast"]
        queue.state = OutgoingState.LOCKED if fields["locked"] else OutgoingState.INACTIVE
    else:
        computer, kind = core.settings.computer_name, QueueKind(fields["kind"])
        path = PathName(computer, kind, fields["name"], fields["subqueue"], fields["journal"])
        queue = Queue(number, path, QueueType(fields["type"]), properties, core.fetch)
        qualified = qualified_computer_name(core.settings)
        queue.qualified_path_name = str(path.with_computer(qualified))
    queue.identifier = UUID(fields["identifier"])
    queue.private_queue_number = fields["private_number"]
    queue.create_time = fields["create_time"]
    queue.modify_time = fields["modify_time"]
    queue.scope = QueueScope(fields["scope"])
    queue.full_path = fields["full_path"]
    queue.directory_path = fields["directory_path"]
    return queue


def _read_properties(fields: dict[str, Any]) -> QueueProperties:
    values = dict(fields)
    values["type"] = UUID(fields["type"])
    values["privacy_level"] = QueuePrivacy(fields["privacy_level"])
    if fields["security"] is not None:
        values["security"] = SecurityDescriptor.decode(bytes.fromhex(fields["security"]))
    return QueueProperties(**values)


def _destination(text: str) -> SingleFormatName:
    if text.startswith(_DIRECT):
        return DirectFormatName.from_wire(text[len(_DIRECT) :])  # also names of older versions
    name = parse_format_name(text)
    if isinstance(name, MultipleElementFormatName):
        raise ValueError(f"{text} is more than one destination")
    return name


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _damaged(number: int, problem: str) -> StoreError:
    return StoreError(
        f"the record of queue {number} cannot be read: {problem}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="nothing was changed; restore the data directory from a backup",
    )
