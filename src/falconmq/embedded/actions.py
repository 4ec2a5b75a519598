"""What the API asks of the core, one function a turn: shared by the blocking and the asyncio API.

Every function takes the core first and runs under the lock of the engine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

from falconmq.embedded.messages import Sequence, to_stored
from falconmq.embedded.refusals import check_same_kind, deleted, not_found, read_error, refused
from falconmq.embedded.signing import check_privacy, meet_demands
from falconmq.errors import MqStatus, QueueError
from falconmq.manager import coordinator, cursors, queues, reading, transactions
from falconmq.manager.access import check_move
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.distributing import enqueue_message_to_open_queue
from falconmq.manager.model import (
    Cursor,
    OpenQueueDescriptor,
    OutgoingQueue,
    Queue,
    QueueProperties,
    ReadResult,
    Transaction,
    WaitingRead,
)
from falconmq.manager.moving import move_message
from falconmq.manager.public_queues import public_host
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import (
    AccessType,
    EnqueueStatus,
    PositionState,
    QueueType,
    SeekAction,
    ShareMode,
)
from falconmq.manager.storing import enqueue_message
from falconmq.message import Message, MessageId
from falconmq.names import (
    FormatName,
    MultipleElementFormatName,
    PathName,
    PublicFormatName,
    SingleFormatName,
    parse_queue_name,
)


@dataclass(slots=True, eq=False)
class Opened:
    """A queue as the API holds it: its names, and the descriptors that were needed so far."""

    format_name: FormatName
    path_name: str  # "" for a queue of another computer
    share: ShareMode = ShareMode.DENY_NONE
    queue: Queue | None = None  # None: on another computer, or several queues at once
    descriptors: dict[AccessType, OpenQueueDescriptor] = field(default_factory=dict)
    sequences: dict[int, Sequence] = field(default_factory=dict)  # by queue number
    hosts: dict[int, UUID] = field(default_factory=dict)  # of public queues, by queue number
    is_closed: bool = False
    left_open: deque[OpenQueueDescriptor] | None = None  # of the engine that has it open

    def __del__(self) -> None:
        if self.descriptors and self.left_open is not None:
            self.left_open.extend(self.descriptors.values())

    def __str__(self) -> str:
        return self.path_name or str(self.format_name)


def find(core: QueueManagerCore, name: str | PathName | FormatName, share: ShareMode) -> Opened:
    """An existing local queue by any of its names, or one elsewhere, which is opened for sending.

    The path name of a queue on another computer is looked up in the directory, if there is one.
    """
    parsed = parse_queue_name(name) if isinstance(name, str) else name
    if isinstance(parsed, PathName):
        queue = queues.find_queue(core, parsed)
        if queue is not None:
            return opened_queue(core, queue, share)
        parsed = resolved(core, parsed)
    if isinstance(parsed, MultipleElementFormatName):
        opened = Opened(parsed, "", share)
        descriptor(core, opened, AccessType.SEND)
        return opened
    queue = queues.find_queue(core, parsed)
    if queue is not None and not isinstance(queue, OutgoingQueue):
        return Opened(parsed, path_of(queue), share, queue)
    opened = Opened(parsed, "", share)
    descriptor(core, opened, AccessType.SEND)  # refuses a local queue that is not there
    return opened


def resolved(core: QueueManagerCore, path_name: PathName) -> SingleFormatName:
    """The format name of a queue on another computer; refuses what neither we nor others have."""
    if queues.is_local_computer(core, path_name.computer):
        raise not_found(core, path_name)
    return queues.resolve_path_name(core, path_name)


def opened_queue(
    core: QueueManagerCore, queue: Queue, share: ShareMode = ShareMode.DENY_NONE
) -> Opened:
    return Opened(queues.format_name_of(core, queue), path_of(queue), share, queue)


def created_queues(core: QueueManagerCore) -> list[Opened]:
    """The queues that applications created: no journals, subqueues, outgoing or system queues."""
    found = [
        queue
        for queue in core.queues.values()
        if queue.parent is None and queue.queue_type in (QueueType.PRIVATE, QueueType.PUBLIC)
    ]
    return [opened_queue(core, queue) for queue in sorted(found, key=path_of)]


def system_queue(core: QueueManagerCore, name: str) -> Opened:
    found = {
        "dead_letter": core.dead_letter,
        "transactional_dead_letter": core.transactional_dead_letter,
        "journal": core.journal,
    }
    return opened_queue(core, found[name])


def create(core: QueueManagerCore, name: str | PathName, properties: QueueProperties) -> Opened:
    path_name = PathName.parse(name) if isinstance(name, str) else name
    return opened_queue(core, queues.create_queue(core, path_name, properties))


def delete(core: QueueManagerCore, opened: Opened) -> None:
    queues.delete_queue(core, local(opened))


def purge(core: QueueManagerCore, opened: Opened) -> int:
    return queues.purge_queue(core, local(opened))


def update(core: QueueManagerCore, opened: Opened, changes: dict[str, object]) -> None:
    queues.set_queue_properties(core, local(opened), **changes)


def subqueue(core: QueueManagerCore, opened: Opened, name: str) -> Opened:
    return opened_queue(core, queues.open_subqueue(core, local(opened), name))


def journal(core: QueueManagerCore, opened: Opened) -> Opened:
    queue = local(opened).journal
    if queue is None:
        raise QueueError(
            f"{opened} has no journal",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="subqueues and system queues have none; ask the queue itself",
        )
    return opened_queue(core, queue)


def close(core: QueueManagerCore, opened: Opened) -> None:
    opened.is_closed = True
    while opened.descriptors:
        _, found = opened.descriptors.popitem()
        queues.close_queue(core, found)


def descriptor(core: QueueManagerCore, opened: Opened, access: AccessType) -> OpenQueueDescriptor:
    """The descriptor of a queue for one kind of access, opened when it is first needed."""
    found = opened.descriptors.get(access)
    if found is None:
        if opened.is_closed:
            raise QueueError(
                f"{opened} was closed here",
                status=MqStatus.INVALID_HANDLE,
                hint="open it again: manager.queue(...)",
            )
        found = queues.open_queue(core, opened.format_name, access, _share(opened, access))
        opened.descriptors[access] = found
    return found


def send(
    core: QueueManagerCore, opened: Opened, message: Message, transaction: Transaction | None
) -> MessageId:
    """Put a message into the queue or queues that were opened."""
    target = opened.descriptors.get(AccessType.SEND) or descriptor(core, opened, AccessType.SEND)
    if target.is_multiple:
        return _send_to_several(core, opened, target, message, transaction)
    queue = target.queue
    if queue is None:
        raise deleted(opened)
    message.destinations = ()
    stored = _to_stored(core, opened, target, message, transaction)
    status = enqueue_message(core, queue, stored, transaction)
    if status is not EnqueueStatus.OK:
        raise refused(core, opened, [target], stored.size, status)
    assert message.id is not None
    return message.id


def send_many(
    core: QueueManagerCore,
    opened: Opened,
    messages: Iterable[Message],
    transaction: Transaction | None,
) -> list[MessageId]:
    return [send(core, opened, message, transaction) for message in messages]


def _send_to_several(
    core: QueueManagerCore,
    opened: Opened,
    target: OpenQueueDescriptor,
    message: Message,
    transaction: Transaction | None,
) -> MessageId:
    assert isinstance(target.format_name, MultipleElementFormatName)
    message.destinations = target.format_name.elements
    children = target.children
    copies = [_to_stored(core, opened, child, message, transaction) for child in children]
    status = enqueue_message_to_open_queue(core, target, copies, transaction)
    if status is not EnqueueStatus.OK:
        raise refused(core, opened, children, copies[0].size, status)
    assert message.id is not None
    return message.id


def _to_stored(
    core: QueueManagerCore,
    opened: Opened,
    target: OpenQueueDescriptor,
    message: Message,
    transaction: Transaction | None,
) -> StoredMessage:
    queue, name = target.queue, target.format_name
    if queue is None:
        raise deleted(opened)
    assert not isinstance(name, MultipleElementFormatName)
    transactions.check_usage(queue, transaction)
    place = None
    if transaction is not None:
        sequence = opened.sequences.get(queue.number)
        if sequence is None:
            sequence = opened.sequences[queue.number] = Sequence(_sequence_id(core))
        place = sequence.next(transaction)
    if message.privacy_level and isinstance(queue, OutgoingQueue):
        check_privacy(core, message, name)
    stored = to_stored(core, message, name, _host(core, opened, queue, name), place)
    is_signed_here = message.authentication_level and message.wants_signature
    meet_demands(core, queue, stored, message.authentication_level if is_signed_here else 0)
    return stored


def receive(
    core: QueueManagerCore,
    opened: Opened,
    timeout: float | None,
    cursor: Cursor | None,
    transaction: Transaction | None,
    tag: object,
) -> ReadResult | WaitingRead:
    if transaction is not None:
        transactions.check_usage(local(opened), transaction, receiving=True)
    access = descriptor(core, opened, AccessType.RECEIVE)
    return reading.dequeue_message(
        core, access, timeout=timeout, cursor=cursor, transaction=transaction, tag=tag
    )


def peek(
    core: QueueManagerCore,
    opened: Opened,
    timeout: float | None,
    cursor: Cursor | None,
    tag: object,
) -> ReadResult | WaitingRead:
    access = descriptor(core, opened, AccessType.PEEK) if cursor is None else cursor.descriptor
    return reading.peek_message(core, access, timeout=timeout, cursor=cursor, tag=tag)


def peek_next(
    core: QueueManagerCore, cursor: Cursor, timeout: float | None, tag: object
) -> ReadResult | WaitingRead:
    return reading.peek_next_message(core, cursor.descriptor, cursor, timeout=timeout, tag=tag)


def read_by_lookup_id(
    core: QueueManagerCore,
    opened: Opened,
    lookup_id: int,
    seek: SeekAction,
    transaction: Transaction | None,
    *,
    peek: bool,
) -> ReadResult | WaitingRead:
    if transaction is not None:
        transactions.check_usage(local(opened), transaction, receiving=True)
    access = descriptor(core, opened, AccessType.PEEK if peek else AccessType.RECEIVE)
    return reading.read_message_by_lookup_identifier(
        core, access, lookup_id, seek, peek=peek, transaction=transaction
    )


def move(
    core: QueueManagerCore,
    opened: Opened,
    lookup_id: int,
    target: Opened,
    transaction: Transaction | None,
) -> None:
    source, destination = local(opened), local(target)
    check_move(core, source, destination)
    if transaction is not None:
        transactions.check_usage(source, transaction, receiving=True)
    if (source.parent or source) is not (destination.parent or destination):
        check_same_kind(source, destination, opened, target)
    position = source.positions.find(lookup_id)
    if position is None:
        raise read_error(opened, MqStatus.MESSAGE_NOT_FOUND, None)
    if position.state is not PositionState.AVAILABLE:
        raise read_error(opened, MqStatus.TRANSACTION_USAGE, None)
    if source is not destination:
        move_message(core, position, destination, transaction)


def open_cursor(core: QueueManagerCore, opened: Opened, access: AccessType) -> Cursor:
    cursor = cursors.open_cursor(core, descriptor(core, opened, access))
    if cursor is None:
        raise deleted(opened)
    return cursor


def prepare(core: QueueManagerCore, transaction: Transaction) -> None:
    """The first phase: write the transaction down, and keep its messages locked."""
    coordinator.enlist(core, transaction)
    coordinator.prepare(core, transaction.identifier)


def commit(core: QueueManagerCore, transaction: Transaction) -> None:
    """The second phase, or both: an internal transaction is prepared in the same turn."""
    transactions.commit_transaction(core, transaction.identifier)


def in_doubt(core: QueueManagerCore) -> list[Transaction]:
    return coordinator.in_doubt(core)


def abort(core: QueueManagerCore, transaction: Transaction) -> None:
    transactions.abort_transaction(core, transaction.identifier)


def close_cursor(core: QueueManagerCore, cursor: Cursor) -> None:
    if cursor.handle in core.cursors:
        cursors.close_cursor(core, cursor)


def local(opened: Opened) -> Queue:
    """The queue of this queue manager, or the reason why there is none."""
    queue = opened.queue
    if queue is None:
        raise QueueError(
            f"{opened} is on another computer: it can be sent to, not read or managed from here",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
            hint="read it through its own queue manager",
        )
    if queue.is_deleted:
        raise deleted(opened)
    return queue


def _share(opened: Opened, access: AccessType) -> ShareMode:
    return ShareMode.DENY_NONE if access is AccessType.SEND else opened.share


def path_of(queue: Queue) -> str:
    return str(queue.path_name.with_computer("."))


def _host(
    core: QueueManagerCore, opened: Opened, queue: Queue, name: SingleFormatName
) -> UUID | None:
    """The queue manager of a public queue; asked for once, a queue does not change its computer."""
    if not isinstance(name, PublicFormatName):
        return None
    host = opened.hosts.get(queue.number)
    if host is None:
        host = opened.hosts[queue.number] = public_host(core, name)
    return host


def _sequence_id(core: QueueManagerCore) -> int:
    return int(core.clock.time()) << 32 | core.message_id.value & 0xFFFFFFFF


@lru_cache(maxsize=1)
def default_computer_name() -> str:
    import socket  # noqa: PLC0415 - only a manager that is not told its name asks for it

    return socket.gethostname().split(".")[0] or "localhost"
