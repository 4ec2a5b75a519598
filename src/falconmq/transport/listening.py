"""What the core tells the transport: of messages that came, and of those that left.

The core calls in the middle of an event, before anything is durable. So nothing is sent from here:
a message that came is noted in the turn, and what has to be told of one that left is a message of
its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from falconmq.manager.core import is_source
from falconmq.manager.dispatch import set_senders
from falconmq.manager.journaling import dead_letter
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.transport import numbering, sending
from falconmq.transport.administration import send_administration_acknowledgment
from falconmq.transport.leaving import message_left
from falconmq.transport.tables import table_of
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import NEGATIVE_ARRIVAL, POSITIVE_ARRIVAL
from falconmq.wire.user_header import ADMIN_QUEUE_TYPE, JOURNAL_NEGATIVE, TRANSACTION_HEADER

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_MAY_BE_TOLD: Final = ADMIN_QUEUE_TYPE | TRANSACTION_HEADER  # of UserHeader.Flags


class CoreListener:
    """The ear of a transport at its core; the core's OutgoingAgent too."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def listen(self) -> None:
        """Hear all that comes from now on."""
        core = self._transport.core
        core.outgoing_agent = self
        set_senders(core, binary=partial(sending.send_user_message_wrapper, self._transport))
        core.available_subscribers.append(self._message_position_available)
        core.deleted_subscribers.append(self._message_position_deleted)
        core.arrived_subscribers.append(self._message_arrived)

    # OutgoingAgent of the core

    def number(self, queue: OutgoingQueue, position: MessagePosition) -> None:
        numbering.number(self._transport, queue, position)

    def has_arrived(self, queue: OutgoingQueue, lookup_id: int) -> bool:
        table = self._transport.tables.get(queue)
        return table is not None and lookup_id in table.arrived

    # Subscribers of the core

    def _message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """A message can be sent as soon as it is durable (MQQB 3.1.7.12)."""
        if not isinstance(queue, OutgoingQueue):  # QB-3.1.7.12-01
            return
        if queue.is_multicast or queue.is_http:  # QB-3.1.7.12-02, QB-3.1.7.12-04
            return
        transport = self._transport
        transport.turns.current.fresh.append((table_of(transport, queue), position))

    def _message_position_deleted(
        self, queue: Queue, position: MessagePosition, reason: int
    ) -> None:
        if isinstance(queue, OutgoingQueue):
            self._outgoing_deleted(queue, position, reason)
            return
        transport = self._transport
        streams = transport.incoming_streams
        if reason == MessageClass.NACK_Q_DELETED and not queue.positions:
            streams.forget_queue(queue)
        if not position.message.head.flags & _MAY_BE_TOLD:
            return  # nobody wants to know, and most messages need not be decoded for that
        packet = position.message.packet
        stream = None if packet.transaction is None else streams.find(packet)
        address = "" if stream is None else stream.reply_address
        core, settings = transport.core, transport.settings
        message_left(core, settings, queue, position, reason, reply_address=address)

    def _outgoing_deleted(
        self, queue: OutgoingQueue, position: MessagePosition, reason: int
    ) -> None:
        """A message expired on its way, or somebody purged the outgoing queue."""
        transport, core = self._transport, self._transport.core
        message = position.message
        packet = message.packet
        table = transport.tables.get(queue)
        if table is not None:
            had_arrived = position.lookup_id in table.arrived
            entry = table.drop(position.lookup_id)
            if packet.transaction is not None and is_source(core, message):
                transport.awaiting.pop(packet.user.message_id, None)
                is_pending = not (had_arrived or (entry is not None and entry.received_order_ack))
                table.pending -= is_pending
                sending.renew_if_done(transport, table)
        message_class = reason
        if reason in (MessageClass.NACK_Q_PURGED, MessageClass.NACK_Q_DELETED):
            message_class = MessageClass.NACK_DELETED  # it never reached its queue
            if packet.user.flags & JOURNAL_NEGATIVE:
                dead_letter(core, queue, message, message_class)
        if packet.properties.flags & NEGATIVE_ARRIVAL:  # QB-3.1.7.1.2-04
            send_administration_acknowledgment(core, transport.settings, packet, message_class)

    def _message_arrived(self, queue: Queue, position: MessagePosition) -> None:  # noqa: ARG002
        """A message that was sent on this computer has reached its queue."""
        message, transport = position.message, self._transport
        packet = message.packet
        is_asked = packet.properties.flags & POSITIVE_ARRIVAL
        if is_asked and is_source(transport.core, message) and not message.move_count:
            reached = MessageClass.ACK_REACH_QUEUE
            send_administration_acknowledgment(transport.core, transport.settings, packet, reached)
