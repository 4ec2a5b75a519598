"""What somebody asks about, from the text he typed."""

from __future__ import annotations

from dataclasses import dataclass

from falconmq.embedded.actions import resolved
from falconmq.errors import MqStatus, NameSyntaxError, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.queue_names import find_queue
from falconmq.message import MessageId
from falconmq.names import (
    MultipleElementFormatName,
    PathName,
    SingleFormatName,
    parse_queue_name,
)


@dataclass(frozen=True, slots=True)
class NothingWaits:
    """A queue elsewhere that nothing is on its way to."""

    destination: SingleFormatName


Subject = MessageId | Queue | NothingWaits


def find_subject(core: QueueManagerCore, text: str) -> Subject:
    """The message, queue or outgoing queue that is meant; QueueError if there is none.

    A message by its id, an outgoing queue by its number or its destination, a queue by its path
    name or any of its format names.
    """
    text = text.strip()
    if _is_message_id(text):
        return MessageId.parse(text)
    if text.isdecimal():
        return _by_number(core, int(text))
    name = parse_queue_name(text)
    if isinstance(name, MultipleElementFormatName):
        raise NameSyntaxError(
            text,
            0,
            "several queues",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
            hint="ask about one of them",
        )
    return _by_name(core, name)


def _is_message_id(text: str) -> bool:
    """A guid and a number behind it; a private queue has a word in front of that."""
    front, _, number = text.rpartition("\\")
    guid = front.strip("{}")
    return number.isdecimal() and len(guid) == 36 and guid.count("-") == 4


def _by_number(core: QueueManagerCore, number: int) -> Queue:
    queue = core.queues.get(number)
    if isinstance(queue, OutgoingQueue):
        return queue
    raise QueueError(
        f"there is no outgoing queue {number}",
        status=MqStatus.QUEUE_NOT_FOUND,
        hint="falconmq outgoing list shows them with their numbers",
    )


def _by_name(core: QueueManagerCore, name: PathName | SingleFormatName) -> Subject:
    queue = find_queue(core, name)
    if queue is not None:
        return queue
    if isinstance(name, PathName):
        name = resolved(core, name)
    outgoing = core.outgoing.get(name)
    return NothingWaits(name) if outgoing is None else outgoing
