"""Messages in: from the session to a queue, or on to the next hop (MQQB 3.1.5.8, the guide's 6.4).

How to think about it. The session has counted the message; here it finds its place or its end. The
order of the checks is QB-A15's: duplicate, expiry, destination, security, order, insertion. What is
decided goes into the batch of this turn, and the session acknowledges the message when that is
durable. So a message is acknowledged when its fate cannot be forgotten any more, not earlier. One
that nobody can judge before a directory has answered waits for that (`undecided`).

A transactional message that is refused has still arrived: its stream goes on, and a negative
FinalAck tells its sender (QB-A55).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.errors import FalconMQError, NameSyntaxError, ResourceError, WireError
from falconmq.manager.events import EventKind
from falconmq.manager.journaling import store_copy
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.queue_names import direct_path
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus, QueueType
from falconmq.manager.storing import enqueue_message
from falconmq.message import is_expired
from falconmq.names import (
    DirectFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)
from falconmq.security.problems import RegistryAskedError
from falconmq.transport.administration import send_administration_acknowledgment
from falconmq.transport.connecting_foreign import find_connector, is_for_another
from falconmq.transport.examining import examined
from falconmq.transport.noting import note, note_answer
from falconmq.transport.ordering import (
    final_ack_received,
    order_ack_received,
    schedule_order_ack,
)
from falconmq.transport.reports import send_report
from falconmq.transport.session import Session
from falconmq.transport.transactional_acks import send_final_ack
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.base_header import TRACE
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL, POSITIVE_ARRIVAL
from falconmq.wire.ordering_acks import FinalAckBody, OrderAck, from_user_message
from falconmq.wire.queue_name import DIRECT, PRIVATE_ON_DESTINATION, PUBLIC
from falconmq.wire.reader import Buffer
from falconmq.wire.user_header import HOP_COUNT, HOP_COUNT_MAX, JOURNAL_NEGATIVE
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_FLAGS_AT: Final = BASE_HEADER_SIZE + 44  # UserHeader.Flags in a packet
_NAMES_MAX: Final = 4096  # direct names whose queues are remembered
_RECEIVING: Final = frozenset({QueueType.PRIVATE, QueueType.PUBLIC, QueueType.CONNECTOR})


def receive(transport: Transport, session: Session, packet: UserMessage, data: Buffer) -> None:
    """One UserMessage that a session has counted."""
    if session in transport.undecided:  # and so is all that comes behind
        _decide_later(transport, session, packet, data)
        return
    try:
        _receive(transport, session, packet, data)
    except RegistryAskedError:
        _decide_later(transport, session, packet, data)


def decide_again(transport: Transport) -> None:
    """The directory has answered something: look again at the messages that wait for that."""
    for session, messages in transport.undecided.take():
        for packet, data in messages:
            if not session.is_closed:
                transport.turns.count_received(session)
                receive(transport, session, packet, data)


def _decide_later(
    transport: Transport, session: Session, packet: UserMessage, data: Buffer
) -> None:
    transport.counters["messages that waited for the directory"] += 1
    if not transport.undecided.put(session, packet, data):
        transport.connections.close(session, "too many messages wait for the directory")


def _receive(transport: Transport, session: Session, packet: UserMessage, data: Buffer) -> None:
    user = packet.user
    if is_for_another(transport, packet) and find_connector(transport, packet) is None:
        # Duplicates are found where they arrive. Here a message may come again because the ways go
        # in a circle: it does so until its hops are used up, and its sender is told.
        _pass_on(transport, session, StoredMessage(data, packet))
        return
    source, message_id = user.source_queue_manager, user.message_id
    is_transactional = packet.transaction is not None
    if not is_transactional and transport.history.is_duplicate(source, message_id):
        transport.counters["duplicates"] += 1  # QB-3.1.5.8.1-03, QB-A12
        note(transport.core, EventKind.DUPLICATE, packet, session.remote_address)
        return
    message = StoredMessage(data, packet)
    is_done = _process(transport, session, message)
    if is_done and not is_transactional:
        transport.history.add(source, message_id, durable=message.is_recoverable)


def _process(transport: Transport, session: Session, message: StoredMessage) -> bool:
    """Decide about a message; False if it must come again because there is no room for it now."""
    packet = message.packet
    try:
        ack = from_user_message(packet)
    except WireError as error:  # QB-3.1.5.1.3-01
        transport.connections.close(session, f"malformed packet: {error}")
        return False
    if ack is not None:
        if isinstance(ack, OrderAck):
            order_ack_received(transport, ack.body, packet.user.source_queue_manager)
        else:
            final_ack_received(transport, ack.body, ack.message_class)
        return True
    queue = _find_queue(transport, packet)
    if packet.transaction is not None:
        return _process_transactional(transport, session, message, queue)
    taken = examined(transport, session, message, queue)
    if taken is None:
        return False
    if not isinstance(taken, StoredMessage):
        _refuse(transport, packet, taken, queue=queue)
        return True
    assert queue is not None, "else it was refused"
    return _insert(transport, session, taken, queue)


def _process_transactional(
    transport: Transport, session: Session, message: StoredMessage, queue: Queue | None
) -> bool:
    """Only the next message of its stream is taken (MQQB 3.1.5.8.6)."""
    packet = message.packet
    header = packet.transaction
    assert header is not None
    streams = transport.incoming_streams
    stream = streams.of(packet, queue)
    schedule_order_ack(transport, stream)
    is_direct = isinstance(packet.user.destination_queue, str)
    reply_address = session.remote_address if is_direct else ""  # QB-3.1.7.17-35, QB-A57
    if not streams.is_next(stream, header):
        streams.reject(stream)  # QB-3.1.5.8.6-06, QB-3.1.5.8.6-07
        transport.counters["out of order"] += 1
        return True
    stream.reply_address = reply_address  # a reader who waits may end the message at once
    taken = examined(transport, session, message, queue)
    if taken is None:
        return False
    if isinstance(taken, StoredMessage):
        assert queue is not None, "else it was refused"
        if not _insert(transport, session, taken, queue, reply_address):
            return False
    else:
        _refuse(transport, packet, taken, reply_address, queue=queue)
    streams.accept(stream, header, reply_address=reply_address)  # QB-A33, QB-A55
    return True


def _insert(
    transport: Transport,
    session: Session,
    message: StoredMessage,
    queue: Queue,
    reply_address: str = "",
) -> bool:
    """Put a message into its queue (MQQB 3.1.5.8.8); False if the queue manager has no room."""
    packet = message.packet
    status = enqueue_message(transport.core, queue, message)  # QB-3.1.5.8.8-02
    if status is EnqueueStatus.MANAGER_QUOTA:
        transport.counters["sessions closed for lack of room"] += 1
        problem = "the quota of the queue manager is used up"
        transport.connections.close(session, problem)  # QB-3.1.5.8.8-07, -08
        return False
    if status is EnqueueStatus.QUEUE_QUOTA:
        reason = MessageClass.NACK_Q_EXCEED_QUOTA
        if packet.user.flags & JOURNAL_NEGATIVE and packet.transaction is None:
            letter = replace(message, is_dead_letter=True, dead_letter_reason=reason)
            store_copy(transport.core, transport.core.dead_letter, letter)  # QB-3.1.5.8.8-04
        _refuse(transport, packet, reason, reply_address, queue=queue)
        return True
    if status is EnqueueStatus.TIMED_OUT:
        reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        _refuse(transport, packet, reason, reply_address, queue=queue)
        return True
    note_answer(transport.core, packet)
    _tell_arrival(transport, packet)
    return True


def _tell_arrival(transport: Transport, packet: UserMessage) -> None:
    core, settings = transport.core, transport.settings
    if packet.base.flags & TRACE:
        send_report(core, settings, packet, next_hop=None)  # QB-3.1.5.8.9-01
    if packet.properties.flags & POSITIVE_ARRIVAL and not is_for_another(transport, packet):
        reached = MessageClass.ACK_REACH_QUEUE  # of another one its connector knows
        send_administration_acknowledgment(core, settings, packet, reached)  # QB-3.1.5.8.10-01


def _refuse(
    transport: Transport,
    packet: UserMessage,
    message_class: int,
    reply_address: str = "",
    *,
    queue: Queue | None = None,
) -> None:
    """Tell those who asked that a message was not taken."""
    core, settings = transport.core, transport.settings
    transport.count_refusal(packet, message_class, queue)
    if packet.properties.flags & NEGATIVE_ARRIVAL:
        send_administration_acknowledgment(core, settings, packet, message_class)
    if packet.transaction is not None:
        send_final_ack(core, packet, message_class, reply_address=reply_address)


# Where it goes


def _pass_on(transport: Transport, session: Session, message: StoredMessage) -> None:
    """A message for another queue manager (MQQB 3.1.5.8.2, 3.1.5.8.5): one hop more."""
    packet = message.packet
    user = packet.user
    if user.source_queue_manager == transport.guid:
        _came_back(transport, packet)
        return
    now = int(transport.core.clock.time())
    if is_expired(now, user.sent_time, packet.base.time_to_reach_queue):
        _refuse(transport, packet, MessageClass.NACK_REACH_QUEUE_TIMEOUT)
        return
    hops = (user.flags & HOP_COUNT) + 1  # QB-3.1.5.8.2-21
    if hops > HOP_COUNT_MAX:  # QB-3.1.5.8.2-22, QB-A16
        _refuse(transport, packet, MessageClass.NACK_HOP_COUNT_EXCEEDED)
        return
    name = _destination(packet)
    if name is None:
        _refuse(transport, packet, MessageClass.NACK_BAD_DST_Q)
        return
    if name not in transport.core.outgoing and transport.router.is_asked(name):
        raise RegistryAskedError(f"the directory is asked for {name}", since=now)
    passed = _with_hops(message, hops)
    try:
        descriptor = open_queue(transport.core, name, AccessType.SEND, internal=True)
    except ResourceError:  # the message is good: its sender keeps it, and sends it again later
        _no_room(transport, session)
        return
    except FalconMQError:
        _refuse(transport, packet, MessageClass.NACK_BAD_DST_Q)
        return
    queue = descriptor.queue
    if not isinstance(queue, OutgoingQueue):
        # A queue of ours under the address of another: none of its rules has been asked.
        close_queue(transport.core, descriptor)
        _refuse(transport, packet, MessageClass.NACK_BAD_DST_Q)
        return
    status = enqueue_message(transport.core, queue, passed)  # QB-3.1.5.8.5-03
    close_queue(transport.core, descriptor)
    if status is not EnqueueStatus.OK:  # QB-3.1.5.8.2-01; it has not expired, see above
        _no_room(transport, session)
        return
    transport.counters["passed on"] += 1
    if packet.base.flags & TRACE:
        send_report(transport.core, transport.settings, passed.packet, next_hop=None)


def _no_room(transport: Transport, session: Session) -> None:
    transport.counters["sessions closed for lack of room"] += 1
    transport.connections.close(session, "there is no room to pass messages on")


def _came_back(transport: Transport, packet: UserMessage) -> None:
    """A message of our own went in a circle: it would for ever, so its way ends here."""
    circle = MessageClass.NACK_HOP_COUNT_EXCEEDED
    transport.count_refusal(packet, circle)
    if packet.properties.flags & NEGATIVE_ARRIVAL:
        send_administration_acknowledgment(transport.core, transport.settings, packet, circle)
    if packet.transaction is not None:
        final_ack_received(transport, FinalAckBody.about(packet), circle)


def _with_hops(message: StoredMessage, hops: int) -> StoredMessage:
    """The same packet but for RC: whatever else is in it belongs to others (QB-3.1.1.5-07)."""
    user = message.packet.user
    flags = user.flags & ~HOP_COUNT | hops
    data = bytearray(message.data)
    data[_FLAGS_AT : _FLAGS_AT + 4] = flags.to_bytes(4, "little")
    packet = replace(message.packet, user=replace(user, flags=flags))
    return StoredMessage(bytes(data), packet)


def _destination(packet: UserMessage) -> SingleFormatName | None:
    """The queue that a message names, as an address of its own."""
    user = packet.user
    kind, name = user.destination_queue_type, user.destination_queue
    if kind == PRIVATE_ON_DESTINATION and isinstance(name, int):
        return PrivateFormatName(UUID(bytes_le=user.queue_manager_address), name)
    if kind == PUBLIC and isinstance(name, bytes):
        return PublicFormatName(UUID(bytes_le=name))
    return None  # direct names are for whoever gets them


def _find_queue(transport: Transport, packet: UserMessage) -> Queue | None:
    """The queue of ours that a message is for; None if there is none, or not for messages."""
    if is_for_another(transport, packet):
        return find_connector(transport, packet)
    user = packet.user
    kind, name = user.destination_queue_type, user.destination_queue
    core = transport.core
    queue: Queue | None = None
    if kind == DIRECT and isinstance(name, str):
        queue = transport.known_names.get(name)
        if queue is None or queue.is_deleted:
            queue = _find_direct(transport, name)
    elif kind == PRIVATE_ON_DESTINATION and isinstance(name, int):
        queue = core.private_numbers.get(name)
    elif kind == PUBLIC and isinstance(name, bytes):
        queue = core.public.get(UUID(bytes_le=name))
    if queue is None or queue.queue_type in _RECEIVING:
        return queue
    # A queue of the queue manager's own takes messages while somebody listens: nobody else would
    # ever read them.
    return queue if queue.is_internal and queue.descriptors else None


def _find_direct(transport: Transport, text: str) -> Queue | None:
    """The host part is how its sender found us, whatever we call ourselves."""
    try:
        name = DirectFormatName.from_wire(text)
    except NameSyntaxError:
        return None
    if name.subqueue is not None or name.is_read_only:
        return None
    path = direct_path(name)
    queue = None if path is None else transport.core.paths.get(path)
    if queue is not None:
        if len(transport.known_names) >= _NAMES_MAX:
            transport.known_names.clear()
        transport.known_names[text] = queue
    return queue
