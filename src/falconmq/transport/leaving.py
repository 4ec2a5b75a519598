"""A message leaves its destination queue: who has to know (MQQB 3.1.7.2)?

The administration queue, if the sender asked to hear of this end; and the sender's queue manager,
if it keeps a transactional message until it knows how that ended. Queues on the way, journals and
the queue manager's own queues are no destinations: what leaves them was read by nobody. Neither is
a dead letter acknowledged again, whose sender has been told why it died.
"""

from __future__ import annotations

from typing import Final

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queue_names import find_queue
from falconmq.manager.states import QueueType
from falconmq.serialization import from_user_message
from falconmq.transport.administration import send_administration_acknowledgment
from falconmq.transport.settings import TransportSettings
from falconmq.transport.transactional_acks import send_final_ack
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_RECEIVE, POSITIVE_RECEIVE
from falconmq.wire.ordering_acks import needs_final_ack
from falconmq.wire.user_message import UserMessage

_DESTINATIONS: Final = frozenset({QueueType.PRIVATE, QueueType.PUBLIC})  # subqueues are too
_ENDS: Final = _DESTINATIONS | {QueueType.CONNECTOR}
_ASKED_BY: Final[dict[int, int]] = {  # reason to the flag that asks for it: it is iReason, QB-A42
    MessageClass.ACK_RECEIVE: POSITIVE_RECEIVE,  # QB-3.1.7.2.1-02, -04
    MessageClass.NACK_Q_DELETED: NEGATIVE_RECEIVE,  # QB-3.1.7.2.1-03, -05
    MessageClass.NACK_Q_PURGED: NEGATIVE_RECEIVE,  # QB-3.1.7.2.1-03, -06
    MessageClass.NACK_RECEIVE_TIMEOUT: NEGATIVE_RECEIVE,  # QB-3.1.7.2.1-03, -07
    MessageClass.NACK_RECEIVE_REJECTED: NEGATIVE_RECEIVE,  # QB-3.1.7.2.1-03, -08
}


def message_left(
    core: QueueManagerCore,
    settings: TransportSettings,
    queue: Queue,
    position: MessagePosition,
    reason: int,
    *,
    reply_address: str,
) -> None:
    """Send the acknowledgements that are due when a message leaves a queue for `reason`.

    A subscriber of Message Position Deleted; MQQB 3.1.7.2. `reply_address` is that of
    `send_final_ack`.
    """
    if queue.queue_type not in _ENDS:  # QB-3.1.7.2-01
        return
    if reason not in _ASKED_BY or position.message.is_dead_letter:
        return
    packet = position.message.packet
    if _is_asked(queue, packet, reason) and not _answers_to(core, packet, queue, reason):
        send_administration_acknowledgment(core, settings, packet, reason)
    is_ours = packet.user.source_queue_manager == core.identifier.bytes_le
    if not is_ours and needs_final_ack(packet, rejected=False):  # QB-3.1.7.2.2-01, QB-A40-01
        send_final_ack(core, packet, reason, reply_address=reply_address)


def _is_asked(queue: Queue, packet: UserMessage, reason: int) -> bool:
    """Whether the sender wants to hear it, and we know: who reads at last, a connector knows."""
    is_known = queue.queue_type in _DESTINATIONS or reason != MessageClass.ACK_RECEIVE
    return is_known and bool(packet.properties.flags & _ASKED_BY[reason])


def _answers_to(core: QueueManagerCore, packet: UserMessage, queue: Queue, reason: int) -> bool:
    """Whether the answer would go into the very queue that is being deleted."""
    if reason != MessageClass.NACK_Q_DELETED:
        return False
    name = from_user_message(packet).administration_queue
    return name is not None and find_queue(core, name) is queue
