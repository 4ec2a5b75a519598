"""What is written down of messages that are in none of our queues, and of peers out of reach."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind
from falconmq.message import MessageId
from falconmq.wire.message_class import MessageClass, is_custom

if TYPE_CHECKING:
    from falconmq.manager.model import Queue
    from falconmq.transport.peers import Peer
    from falconmq.wire.user_message import UserMessage

_log = logging.getLogger("falconmq.transport")


def note(
    core: QueueManagerCore,
    kind: EventKind,
    packet: UserMessage,
    detail: str = "",
    *,
    reason: int = 0,
    queue: Queue | None = None,
) -> None:
    """Record what happened to a message that is in none of our queues."""
    events, user = core.events, packet.user
    if events is not None:
        size = packet.base.packet_size
        source, number = user.source_queue_manager, user.message_id
        events.record(kind, source, number, queue, 0, size, reason, detail, packet)


def note_refusal(
    core: QueueManagerCore, packet: UserMessage, message_class: int, queue: Queue | None
) -> None:
    """A message of a peer was not taken; `queue` is the one of ours that it was for."""
    where = _destination_text(packet)
    note(core, EventKind.REFUSED, packet, where, reason=message_class, queue=queue)
    user = packet.user
    _log.debug(
        "message refused class=%#06x source=%s id=%d",
        message_class,
        UUID(bytes_le=user.source_queue_manager),
        user.message_id,
    )


def note_answer(core: QueueManagerCore, packet: UserMessage) -> None:
    """An acknowledgement came into an administration queue: it tells of another message."""
    events, properties = core.events, packet.properties
    is_answer = properties.message_class not in (MessageClass.NORMAL, MessageClass.REPORT)
    if events is None or not is_answer or is_custom(properties.message_class):
        return
    about = MessageId(properties.correlation_id)
    source, number = about.queue_manager.bytes_le, about.ordinal
    events.record(EventKind.TOLD, source, number, None, 0, 0, properties.message_class)


def log_failure(peer: Peer, problem: str) -> None:
    """Say once why a peer cannot be reached, not at every try."""
    if problem != peer.problem:
        _log.warning('cannot reach peer=%s reason="%s"', peer.host_name or peer.key, problem)


def _destination_text(packet: UserMessage) -> str:
    """Where a message was to go, as far as its packet says it in words."""
    destination = packet.user.destination_queue
    if isinstance(destination, str):
        return f"DIRECT={destination}"
    return f"private queue {destination}" if isinstance(destination, int) else "a public queue"
