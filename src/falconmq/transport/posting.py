"""How the queue manager itself sends a message: acknowledgements and reports.

Open Queue, Enqueue Message To An Open Queue, Close Queue; the queue may be one of this computer or
an outgoing one. Nobody waits for such a message: if it cannot be sent, it is discarded, for whom
should it be returned to (QB-3.1.7.15-42, QB-3.1.7.17-39, QB-3.1.5.8.9-13)?
"""

from __future__ import annotations

import logging

from falconmq.errors import DirectoryError, MessageError, QueueError, ResourceError, WireError
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.model import NULL_UUID, OpenQueueDescriptor, OutgoingQueue
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.public_queues import host_of
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.message import Message
from falconmq.names import (
    DirectFormatName,
    PrivateFormatName,
    Protocol,
    PublicFormatName,
    SingleFormatName,
)
from falconmq.serialization import to_user_message
from falconmq.wire.user_message import UserMessage

_log = logging.getLogger("falconmq.transport")


def post(
    core: QueueManagerCore,
    name: SingleFormatName,
    packet: UserMessage,
    *,
    unlimited: bool = False,
) -> bool:
    """Send a packet of our own; False if it was discarded. `unlimited`: no quota stops it."""
    try:
        stored = StoredMessage.of(packet)
        if not _names_a_queue(name):
            return _discarded(name, "no queue has this name")
        descriptor = open_queue(
            core, name, AccessType.SEND, ShareMode.DENY_NONE, internal=True
        )  # QB-3.1.7.15-41, QB-3.1.7.17-38, QB-3.1.5.8.9-12
    except (QueueError, DirectoryError, ResourceError, WireError) as error:
        return _discarded(name, str(error))  # QB-3.1.7.15-42, QB-3.1.7.17-39, QB-3.1.5.8.9-13
    try:
        return _enqueue(core, descriptor, name, stored, unlimited)
    finally:
        close_queue(core, descriptor)


def post_message(core: QueueManagerCore, name: SingleFormatName, message: Message) -> bool:
    """Send a message of our own to this queue; False if it was discarded."""
    message.destination = name
    host = host_of(core, name) if isinstance(name, PublicFormatName) else None  # others say it
    try:
        packet = to_user_message(
            message,
            source_queue_manager=core.identifier,
            message_id=next_message_id(core),
            sent_time=int(core.clock.time()),
            destination_queue_manager=host,
            default_time_to_reach_queue=core.settings.default_time_to_reach_queue,
        )
    except MessageError as error:  # a name of a peer's that no message can be sent to
        return _discarded(name, str(error))
    return post(core, name, packet)


def _enqueue(
    core: QueueManagerCore,
    descriptor: OpenQueueDescriptor,
    name: SingleFormatName,
    stored: StoredMessage,
    unlimited: bool,
) -> bool:
    queue = descriptor.queue
    assert queue is not None, "a single name was opened"
    is_outgoing = isinstance(queue, OutgoingQueue)
    if not is_outgoing and queue.properties.transactional != stored.packet.is_transactional:
        return _discarded(name, "only one of queue and message is transactional")
    status = enqueue_message(
        core, queue, stored, unlimited=unlimited
    )  # QB-3.1.7.15-43, QB-3.1.7.17-40, QB-3.1.5.8.9-14
    if status is not EnqueueStatus.OK:
        return _discarded(name, status.name)
    return True


def _names_a_queue(name: SingleFormatName) -> bool:
    """Whether a name of a peer's can lead to a queue: not a garbled one, not one without host."""
    match name:
        case DirectFormatName():
            return name.protocol is not Protocol.OTHER
        case PrivateFormatName():
            return name.computer != NULL_UUID
        case _:
            return True


def _discarded(name: SingleFormatName, problem: str) -> bool:
    _log.debug('own message discarded queue="%s" reason="%s"', name, problem)
    return False
