"""What the tests of reading share: handles, messages by their body, results by their body."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.cursors import open_cursor
from falconmq.manager.model import (
    Cursor,
    OpenQueueDescriptor,
    Queue,
    ReadResult,
    Transaction,
    WaitingRead,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import AccessType, EnqueueStatus, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.names import parse_format_name
from tests.manager.helpers import COMPUTER, message


def given_reader(
    core: QueueManagerCore, queue: Queue, access: AccessType = AccessType.RECEIVE
) -> OpenQueueDescriptor:
    """The queue as somebody opened it to read from it."""
    handle = core.next_handle()
    name = parse_format_name(rf"DIRECT=OS:{COMPUTER}\private$\{queue.number}")
    descriptor = OpenQueueDescriptor(handle, handle, access, ShareMode.DENY_NONE, name, queue)
    core.descriptors[handle] = descriptor
    queue.descriptors.append(descriptor)
    return descriptor


def given_cursor(core: QueueManagerCore, descriptor: OpenQueueDescriptor) -> Cursor:
    cursor = open_cursor(core, descriptor)
    assert cursor is not None
    return cursor


def given_transaction(core: QueueManagerCore, number: int = 1) -> Transaction:
    transaction = Transaction(UUID(int=number))
    core.transactions[transaction.identifier] = transaction
    return transaction


def send(core: QueueManagerCore, queue: Queue, *bodies: str, **properties: Any) -> list[int]:
    """Put one message per body into a queue; their lookup identifiers."""
    sent = []
    for body in bodies:
        stored = message(body.encode(), **properties)
        assert enqueue_message(core, queue, stored) is EnqueueStatus.OK
        found = [i for i in queue.positions.lookup_ids() if _is(queue, i, stored)]
        sent.extend(found)
    return sent


def body(result: ReadResult | WaitingRead | None) -> str:
    """The body of the message that a read ended with."""
    position = position_of(result)
    return bytes(position.message.packet.properties.message_body).decode()


def position_of(result: ReadResult | WaitingRead | None) -> MessagePosition:
    if isinstance(result, WaitingRead):
        result = result.result
    assert result is not None, "the read still waits"
    assert result.status is MqStatus.OK
    assert result.position is not None
    return result.position


def status(result: ReadResult | WaitingRead) -> MqStatus:
    """How a read ended without a message."""
    ended = result.result if isinstance(result, WaitingRead) else result
    assert ended is not None, "the read still waits"
    assert ended.position is None
    return ended.status


def waits(result: ReadResult | WaitingRead) -> WaitingRead:
    """A read that still waits."""
    assert isinstance(result, WaitingRead)
    assert result.result is None
    return result


def _is(queue: Queue, lookup_id: int, stored: object) -> bool:
    position = queue.positions.find(lookup_id)
    return position is not None and position.message is stored
