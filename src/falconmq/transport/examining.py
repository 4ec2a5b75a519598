"""May a message go into its queue? Every check between its arrival and its insertion (QB-A15).

First what costs nothing: its time, its queue, whether both are transactional. Then what it says
about itself is opened and verified (`unsealing`), and at last its sender needs the right to send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from falconmq.manager.access import Principal, grants, may_anyone_send
from falconmq.manager.model import Queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueueType
from falconmq.message import is_expired
from falconmq.security.body_encryption import needs_private_key
from falconmq.security.problems import RegistryAskedError, RegistryAwayError
from falconmq.transport.session import Session
from falconmq.transport.unsealing import Unsealed, unseal
from falconmq.wire.access_masks import MQSEC_WRITE_MESSAGE, ObjectKind
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


def examined(
    transport: Transport, session: Session, message: StoredMessage, queue: Queue | None
) -> StoredMessage | MessageClass | None:
    """The message as its queue keeps it, in the clear; or why it cannot be taken.

    None: it is not looked at now, and has to come again. RegistryAskedError: the directory is being
    asked about it.
    """
    refusal = _refusal(transport, message.packet, queue)
    if refusal is not None or queue is None:
        return refusal or MessageClass.NACK_BAD_DST_Q
    if queue.queue_type is QueueType.CONNECTOR:
        return message  # signed and encrypted for a foreign system: that opens it, and may refuse
    try:
        if not _may_open(transport, session, message.packet, queue):
            return None
        found = unseal(transport.protection, message, queue)
    except RegistryAskedError:
        raise  # there will be an answer soon: it waits for that
    except RegistryAwayError as error:
        _send_away(transport, session, error)
        return None
    if message.packet.security is not None and transport.protection is not None:
        transport.protection.arm(transport.after)
    if not isinstance(found, Unsealed):
        return found
    if not _may_send(transport, queue, found.sender):
        return MessageClass.NACK_ACCESS_DENIED  # QB-A18, QB-3.1.5.8.3-46
    return found.message


def _refusal(transport: Transport, packet: UserMessage, queue: Queue | None) -> MessageClass | None:
    """Why a message cannot be taken, whatever it says and whoever sent it."""
    user, now = packet.user, int(transport.core.clock.time())
    if is_expired(now, user.sent_time, packet.base.time_to_reach_queue):  # QB-A14
        return MessageClass.NACK_REACH_QUEUE_TIMEOUT
    if queue is None:
        return MessageClass.NACK_BAD_DST_Q  # QB-3.1.5.8.2-11
    properties = queue.properties
    if packet.transaction is not None:
        if not properties.transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_Q  # QB-3.1.5.8.2-15
    elif properties.transactional:
        return MessageClass.NACK_NOT_TRANSACTIONAL_MSG  # QB-3.1.5.8.2-19
    return None


def _may_open(transport: Transport, session: Session, packet: UserMessage, queue: Queue) -> bool:
    """Whether a peer may make us open one more new key; else its message has to come again."""
    protection = transport.protection
    if packet.security is None or protection is None:
        return True
    allow_weak = protection.allows_weak(packet.user.source_queue_manager, queue)
    if not needs_private_key(packet, protection.receiver, allow_weak=allow_weak):
        return True
    if protection.may_open(session.remote_address, transport.now):
        return True
    if not session.is_closed:  # by an earlier message of the same segment
        transport.counters["sessions closed for too many keys"] += 1
    transport.connections.close(session, "the peer encrypts with a new key for every message")
    return False


def _send_away(transport: Transport, session: Session, error: RegistryAwayError) -> None:
    """A message that nobody can judge now stays with its sender, who will connect again."""
    if not session.is_closed:  # by an earlier message of the same segment
        transport.counters["sessions closed while the directory was away"] += 1
    transport.connections.close(session, f"a signature cannot be verified now: {error}")


def _may_send(transport: Transport, queue: Queue, sender: Principal | None) -> bool:
    """The access check of a sender (QB-3.1.5.8.3-39, -43); who is not verified is anonymous."""
    if sender is None:
        return may_anyone_send(transport.core, queue)
    descriptor = (queue.parent or queue).properties.security
    is_granted = grants(descriptor, sender, MQSEC_WRITE_MESSAGE, ObjectKind.QUEUE)
    return is_granted or not transport.core.settings.access_control
