"""Replication messages out: each in a signed MSMQ message to queue 1 of another server (3.1.7.2.1).

Nobody waits for one, and none is acknowledged; what is lost, the next hello or synchronisation
makes good. A message that a peer cannot take comes back as a negative acknowledgement. Anybody
could write such a nack, and we would sign its body once more for him: so we remember, by digest,
what we sent to whom, and believe a nack only about that.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from falconmq.directory.replication.profiles import SendProfile
from falconmq.directory.replication.replication_queue import replication_queue, replication_queue_of
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.model import OpenQueueDescriptor
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.message import Acknowledge, Delivery, Message, MessageId
from falconmq.names import DirectFormatName
from falconmq.names.syntax import fold
from falconmq.security.keys import ManagerKeys
from falconmq.security.manager_signatures import sign_as_manager
from falconmq.security.providers import ADVANCED
from falconmq.security.signature_input import SignatureVersion
from falconmq.serialization import to_user_message
from falconmq.wire.message_properties_header import HASH_MD5
from falconmq.wire.user_message import UserMessage

OPEN_MAX: Final = 64  # servers that a queue is kept open to
SENT_MAX: Final = 4096  # messages that a nack is believed about

_log = logging.getLogger("falconmq.directory")


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is on its way, or was."""

    machine: str
    digest: bytes
    resends: int  # how often this body was sent before


class ReplicationSender:
    """Sends for one queue manager. The open queues are kept: the neighbours are always the same."""

    def __init__(
        self, core: QueueManagerCore, keys: Callable[[], ManagerKeys], counters: Counter[str]
    ) -> None:
        self.core = core
        self.counters = counters
        self._keys = keys
        self._open: OrderedDict[str, OpenQueueDescriptor] = OrderedDict()  # the last used last
        self._sent: OrderedDict[bytes, Sent] = OrderedDict()

    def send(self, machine: str, body: bytes, profile: SendProfile, *, resends: int = 0) -> bool:
        """Sending a replication message, MQDSRP 3.1.7.2.1; False if it cannot be sent at all."""
        try:
            name = replication_queue_of(machine)  # RP-3.1.7.2.1-14
            packet = self._packet(name, body, profile)
            descriptor = self._descriptor(machine, name)
            assert descriptor.queue is not None, "a closed queue is not kept"
            status = enqueue_message(self.core, descriptor.queue, StoredMessage.of(packet))
        except FalconMQError as error:
            return self._not_sent(machine, str(error))
        if status is not EnqueueStatus.OK:
            return self._not_sent(machine, status.name)
        about = MessageId.of(self.core.identifier, packet.user.message_id)
        self._sent[about] = Sent(machine, _digest(body), resends)
        if len(self._sent) > SENT_MAX:
            self._sent.popitem(last=False)
        self.counters["sent"] += 1
        return True

    def take_sent(self, about: bytes, body: bytes) -> Sent | None:
        """What we sent, if this is its body; one message is nacked once."""
        sent = self._sent.get(about)
        if sent is None or sent.digest != _digest(body):
            return None
        del self._sent[about]
        return sent

    def close(self) -> None:
        """Close the queues to all servers; what waits in them is sent all the same."""
        for descriptor in self._open.values():
            close_queue(self.core, descriptor)
        self._open.clear()

    def _packet(self, name: DirectFormatName, body: bytes, profile: SendProfile) -> UserMessage:
        core = self.core
        own = replication_queue(core.identifier) if profile.wants_nacks else None
        wanted = Acknowledge.NACK_REACH_QUEUE if profile.wants_nacks else Acknowledge.NONE
        message = Message(
            body,  # RP-3.1.7.2.1-10
            destination=name,
            priority=profile.priority,  # RP-3.1.7.2.1-04
            delivery=Delivery.EXPRESS,  # RP-3.1.7.2.1-05
            time_to_reach_queue=profile.timeout_seconds,  # RP-3.1.7.2.1-03
            time_to_be_received=profile.timeout_seconds,
            acknowledgements=wanted,  # RP-3.1.7.2.1-06
            administration_queue=own,  # RP-3.1.7.2.1-08
            response_queue=own,  # RP-3.1.7.2.1-09
            hash_algorithm=HASH_MD5,
        )
        packet = to_user_message(
            message,
            source_queue_manager=core.identifier,
            message_id=next_message_id(core),
            sent_time=int(core.clock.time()),
        )
        return sign_as_manager(  # RP-3.1.7.2.1-11, RP-3.1.7.2.1-12
            packet,
            self._keys().signing[ADVANCED],
            core.identifier,
            version=SignatureVersion.MSMQ_1_0,  # NT 4.0 knows no other: A-07
            hash_algorithm=HASH_MD5,
            allow_weak=True,  # the protocol has nothing else
        )

    def _descriptor(self, machine: str, name: DirectFormatName) -> OpenQueueDescriptor:
        """The open outgoing queue to a server (RP-3.1.7.2.1-15), or a new one."""
        key = fold(machine)
        descriptor = self._open.get(key)
        if descriptor is None or descriptor.queue is None:
            descriptor = open_queue(
                self.core, name, AccessType.SEND, ShareMode.DENY_NONE, internal=True
            )  # RP-3.1.7.2.1-16
            self._open[key] = descriptor
        self._open.move_to_end(key)
        if len(self._open) > OPEN_MAX:
            _, unused = self._open.popitem(last=False)
            close_queue(self.core, unused)
        return descriptor

    def _not_sent(self, machine: str, problem: str) -> bool:
        self.counters["not sent"] += 1
        _log.warning('replication message not sent machine="%s" problem="%s"', machine, problem)
        return False


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
