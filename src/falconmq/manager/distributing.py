"""One message to the queues of an open descriptor, one copy each (MQDMPR 3.1.7.1.27)."""

from __future__ import annotations

import copy
from typing import cast

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor, Transaction
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import EnqueueStatus
from falconmq.manager.storing import enqueue_message
from falconmq.message import Message
from falconmq.names import MultipleElementFormatName, SingleFormatName


def enqueue_message_to_open_queue(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    messages: list[StoredMessage],
    transaction: Transaction | None = None,
) -> EnqueueStatus:
    """Put a message into the queue, or one copy each into the queues, of a descriptor.

    Enqueue Message To An Open Queue, MQDMPR 3.1.7.1.27. `messages` are the copies, in the order of
    the elements, each with its own destination (`address_copies`); a single queue takes the only
    one. The first refusal ends it: copies that went before stay, unless a transaction takes them
    back.
    """
    targets = descriptor.children if descriptor.is_multiple else [descriptor]
    for target, message in zip(targets, messages, strict=True):
        if target.queue is None:
            raise QueueError(
                f"{target.format_name} was deleted while it was open",
                status=MqStatus.QUEUE_DELETED,
                hint="close it, and open the queue again if it was created anew",
            )
        status = enqueue_message(core, target.queue, message, transaction)
        if status is not EnqueueStatus.OK:
            return status  # DM-3.1.7.1.27-05
    return EnqueueStatus.OK  # DM-3.1.7.1.27-06


def address_copies(descriptor: OpenQueueDescriptor, message: Message) -> list[Message]:
    """The copies of a message that go to the queues of a descriptor, each with its destination."""
    if not descriptor.is_multiple:
        return [_addressed(message, descriptor, message.destinations)]
    name = descriptor.format_name
    assert isinstance(name, MultipleElementFormatName)
    names = name.elements  # DM-3.1.7.1.27-03
    return [_addressed(message, child, names) for child in descriptor.children]


def _addressed(
    message: Message, target: OpenQueueDescriptor, destinations: tuple[SingleFormatName, ...]
) -> Message:
    addressed = copy.copy(message)
    addressed.destination = cast("SingleFormatName", target.format_name)  # DM-3.1.7.1.27-04
    addressed.destinations = destinations
    return addressed
