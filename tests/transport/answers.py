"""What the tests of acknowledgements and reports share: messages that came, answers that wait."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.queues import create_queue
from falconmq.manager.record import StoredMessage
from falconmq.message import Acknowledge, Message
from falconmq.names import PathName, parse_format_name
from falconmq.serialization import from_user_message
from falconmq.transport.settings import TransportSettings
from falconmq.wire.message_class import MessageClass
from falconmq.wire.packet import decode_packet
from falconmq.wire.user_message import UserMessage
from tests.manager.helpers import STRANGER, commit, message, positions

SETTINGS: Final = TransportSettings()
OPEN_HANDED: Final = TransportSettings(send_insecure_nacks=True)
THIRD: Final = UUID("c0ffee00-1111-4222-8333-444455556666")  # neither sender nor receiver
PUBLIC_QUEUE: Final = UUID("9b3f0a52-77d1-4f2e-8f0c-b7a4a1d2c3e4")
FAR_QUEUE: Final = r"DIRECT=TCP:10.0.0.9\private$\acks"  # on another computer
ALL_ACKS: Final = Acknowledge.FULL_REACH_QUEUE | Acknowledge.FULL_RECEIVE
NACKS: Final = tuple(member for member in MessageClass if member.is_negative)


def arrived(
    body: bytes = b"order 7", *, administration_queue: str | None = FAR_QUEUE, **properties: Any
) -> StoredMessage:
    """A message of another queue manager's, with all acknowledgements asked for."""
    properties.setdefault("source", STRANGER)
    if administration_queue is not None:
        properties.setdefault("acknowledgements", ALL_ACKS)
        properties["administration_queue"] = administration_queue
    return message(body, **properties)


def given_public_queue(core: QueueManagerCore, name: str = "acks") -> Queue:
    """A public queue of ours that a directory once gave its identifier."""
    path_name = PathName.parse(rf".\{name}")
    queue = create_queue(core, path_name, skip_directory=True, identifier=PUBLIC_QUEUE)
    commit(core)
    return queue


def packets_in(queue: Queue) -> list[UserMessage]:
    """The packets that wait in a queue, decoded from the very bytes that would be sent."""
    packets = [decode_packet(position.message.data) for position in positions(queue)]
    return [packet for packet in packets if isinstance(packet, UserMessage)]


def only_packet(core: QueueManagerCore, name: str | Queue) -> UserMessage:
    """The only packet in a queue of ours, or on its way to the queue with this format name."""
    (packet,) = packets_in(name if isinstance(name, Queue) else queue_to(core, name))
    return packet


def only_message(core: QueueManagerCore, name: str | Queue) -> Message:
    return from_user_message(only_packet(core, name))


def queue_to(core: QueueManagerCore, name: str) -> Queue:
    """The outgoing queue to the queue with this format name."""
    (queue,) = (q for known, q in core.outgoing.items() if known == parse_format_name(name))
    return queue


def assert_silence(core: QueueManagerCore) -> None:
    """Nothing was sent: no message waits anywhere, no outgoing queue came to be."""
    assert not core.outgoing
    assert [queue.path_name for queue in core.queues.values() if len(queue.positions)] == []
