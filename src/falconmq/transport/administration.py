"""Administration acknowledgements: telling an application what became of its message.

Send Administration Acknowledgment, MQQB 3.1.7.15. The answer goes to the administration queue that
the message names, if it names one; whether the sender asked for this very answer is for the caller
to see. A message keeps its packet wherever it is, so the two arguments of the specification,
iReceivedMessage and iReceivedUserMessagePacket, are one here: QB-3.1.7.15-02 and -03, -22 and -23
to -27, -29 and -30 to -32, -39 and -40 come to the same.

An acknowledgement is never acknowledged. Nor is a report, or a message to one of the queue
manager's own queues: else two queue managers could keep each other busy for ever.
"""

from __future__ import annotations

from typing import Final

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.queue_names import find_queue
from falconmq.message import INFINITE, Acknowledge, Journal, Message, PrivacyLevel
from falconmq.names import DirectFormatName, SingleFormatName
from falconmq.serialization import from_user_message
from falconmq.transport.posting import post_message
from falconmq.transport.settings import TransportSettings
from falconmq.wire.message_class import MessageClass, is_custom
from falconmq.wire.security_header import ENCRYPTED_BODY
from falconmq.wire.user_message import UserMessage

# Whoever sends to a queue at random could learn from these what is there and what is allowed.
INSECURE_NACKS: Final[frozenset[int]] = frozenset(
    {
        MessageClass.NACK_BAD_DST_Q,
        MessageClass.NACK_ACCESS_DENIED,
        MessageClass.NACK_BAD_SIGNATURE,
        MessageClass.NACK_BAD_ENCRYPTION,
        MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
# NACK_MESSAGE_TOO_LARGE, which the text names too, has no value: QB-A41-01.
_WITHOUT_BODY: Final = frozenset({MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE})


def send_administration_acknowledgment(
    core: QueueManagerCore, settings: TransportSettings, packet: UserMessage, message_class: int
) -> bool:
    """Tell the sender of a message, by `message_class`, what became of it; False if nobody is told.

    Send Administration Acknowledgment, MQQB 3.1.7.15.
    """
    if not packet.user.admin_queue_type:  # QB-3.1.7.15-02, QB-3.1.7.15-03
        return False
    if message_class in INSECURE_NACKS and not settings.send_insecure_nacks:
        return False  # QB-3.1.7.15-04, QB-3.1.1.3-26
    original = from_user_message(packet)
    if _is_never_acknowledged(core, original):
        return False
    name = original.administration_queue
    assert name is not None, "its type says that there is one"
    return post_message(core, name, _acknowledgement(packet, original, message_class))


def _is_never_acknowledged(core: QueueManagerCore, original: Message) -> bool:
    """Whether a message is itself an answer, or went to a queue of the queue manager's own."""
    message_class = original.message_class
    if message_class != MessageClass.NORMAL and not is_custom(message_class):
        return True
    queue = None if original.destination is None else find_queue(core, original.destination)
    return queue is not None and queue.is_internal  # QB-3.1.5.8.10-02


def _acknowledgement(packet: UserMessage, original: Message, message_class: int) -> Message:
    """The Message adminAcknowledgment; what the specification does not name has its default."""
    assert original.id is not None, "every packet has a MessageID"
    return Message(
        _returned_body(packet, message_class),
        message_class=message_class,  # QB-3.1.7.15-05 and the table there, QB-A41-01
        correlation_id=original.id,  # QB-3.1.7.15-28
        response_queue=_response_queue(original.destination),
        delivery=original.delivery,  # QB-3.1.7.15-33, QB-3.1.7.2.1-01
        acknowledgements=Acknowledge.NONE,  # QB-3.1.7.15-34
        time_to_reach_queue=INFINITE,  # QB-3.1.7.15-35
        time_to_be_received=INFINITE,  # QB-3.1.7.15-36
        journal=Journal.NONE,  # QB-3.1.7.15-37
        privacy_level=PrivacyLevel.NONE,  # QB-3.1.7.15-38
    )


def _response_queue(destination: SingleFormatName | None) -> SingleFormatName | None:
    """The queue that the original was sent to (QB-3.1.7.15-29).

    A peer may have named one that no answer can be sent to; the acknowledgement goes without then.
    """
    if destination is None or destination.is_read_only:
        return None
    if isinstance(destination, DirectFormatName) and destination.subqueue is not None:
        return None
    return destination


def _returned_body(packet: UserMessage, message_class: int) -> bytes:
    """The body of the original, for a sender who has to do something about it."""
    if message_class in _WITHOUT_BODY:
        return b""
    properties, security = packet.properties, packet.security
    is_encrypted = security is not None and bool(security.flags & ENCRYPTED_BODY)
    # Either sign will do: what was meant to be private is not sent back in the clear.
    if is_encrypted or properties.privacy_level != PrivacyLevel.NONE:
        return b""  # QB-3.1.7.15-39, QB-3.1.7.15-40
    return bytes(properties.message_body)
