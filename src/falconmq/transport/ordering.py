"""Acknowledgments of transactional messages, both ends (MQQB 3.1.5.6, 3.1.5.7, 3.1.5.8.6, 3.1.6.9).

At the sender: an OrderAck frees what has arrived, a FinalAck tells the end of one message. At the
receiver: half a second after a transactional message came, an OrderAck says how far its stream is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from falconmq.manager.events import EventKind
from falconmq.manager.journaling import dead_letter, journal_sent_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import remove_position
from falconmq.transport.incoming_streams import IncomingStream
from falconmq.transport.outgoing import Entry, OutgoingTable
from falconmq.transport.sending import (
    finish,
    renew_if_done,
    start_transactional_ack_wait,
    stop_transactional_ack_wait,
)
from falconmq.transport.tables import table_for
from falconmq.transport.transactional_acks import send_order_ack
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import FinalAckBody, OrderAckBody
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


def order_ack_received(transport: Transport, body: OrderAckBody, sender: bytes) -> None:
    """An OrderAck from the queue manager `sender` (MQQB 3.1.5.6)."""
    streams = transport.outgoing_streams
    for stream in streams.find(body.tx_sequence_id):  # QB-A34
        if stream.remote_guid is not None and stream.remote_guid != sender:
            continue  # another receiver's stream with the same number
        if body.tx_sequence_number >= stream.next_number:
            continue  # nobody can have received what has no number yet
        table = table_for(transport, stream.destination)
        streams.acknowledge(stream, body.tx_sequence_number, transport.now)
        if table is not None:
            _arrived(transport, table, body)
            table.describe(transport.outgoing_streams)


def _arrived(transport: Transport, table: OutgoingTable, body: OrderAckBody) -> None:
    entries, is_progress = table.transactional, False
    while entries and _covers(body, entries[0]):
        entry = entries.popleft()
        table.pending -= 1
        entry.received_order_ack = is_progress = True
        if entry.received_session_ack:  # QB-3.1.5.6-08
            finish(transport, entry)
    if is_progress:
        stop_transactional_ack_wait(table)
        if table.pending:
            start_transactional_ack_wait(transport, table)
    renew_if_done(transport, table)


def _covers(body: OrderAckBody, entry: Entry) -> bool:
    if entry.tx_sequence_id != body.tx_sequence_id:
        return entry.tx_sequence_id < body.tx_sequence_id
    return entry.tx_sequence_number <= body.tx_sequence_number


def final_ack_received(transport: Transport, body: FinalAckBody, message_class: int) -> None:
    """How a message of ours ended (MQQB 3.1.5.7). Nobody's message is nobody's news (QB-A40)."""
    if body.source_guid != transport.guid:
        return
    entry = transport.awaiting.get(body.message_id)
    if entry is None or not _is_about(body, entry):
        return
    del transport.awaiting[body.message_id]
    table = entry.table
    position = table.queue.positions.find(entry.lookup_id)
    has_arrived = entry.lookup_id in table.arrived or entry.received_order_ack
    table.drop(entry.lookup_id)
    if not has_arrived:
        table.pending -= 1
    if position is not None:
        if transport.core.events is not None:
            source, size = transport.guid, position.size
            transport.core.events.record(
                EventKind.TOLD,
                source,
                body.message_id,
                table.queue,
                0,
                size,
                message_class,
                about=position.message,
            )
        _end(transport, table, position.message, message_class)
        remove_position(transport.core, position)
    renew_if_done(transport, table)
    table.describe(transport.outgoing_streams)


def _is_about(body: FinalAckBody, entry: Entry) -> bool:
    """Who had the message knows its place in the stream; who guesses its number does not."""
    place = body.tx_sequence_id, body.tx_sequence_number
    return place == (entry.tx_sequence_id, entry.tx_sequence_number)


def _end(
    transport: Transport, table: OutgoingTable, message: StoredMessage, message_class: int
) -> None:
    flags = message.packet.user.flags
    if message_class == MessageClass.ACK_RECEIVE:
        if flags & JOURNAL_POSITIVE:
            journal_sent_message(transport.core, message)  # QB-3.1.5.7-03
    elif flags & JOURNAL_NEGATIVE:
        # QB-3.1.5.7-04, QB-3.1.5.7-05
        dead_letter(transport.core, table.queue, message, message_class)


def schedule_order_ack(transport: Transport, stream: IncomingStream) -> None:
    """A transactional message came: an OrderAck is due in a while (QB-3.1.5.8.6-02, -03)."""
    if transport.incoming_streams.want_order_ack(stream, transport.now):
        _arm(transport, stream, transport.settings.order_ack_timeout)


def _arm(transport: Transport, stream: IncomingStream, seconds: float) -> None:
    transport.after(seconds, partial(_order_ack_due, transport, stream))


def _order_ack_due(transport: Transport, stream: IncomingStream) -> None:
    """Order Ack Send Timer event, MQQB 3.1.6.9."""
    due, now = stream.order_ack_due, transport.now
    if due is None:
        return
    if now < due:
        _arm(transport, stream, due - now)
        return
    transport.incoming_streams.order_ack_sent(stream, now)  # QB-3.1.6.9-02
    if stream.settled_number:
        send_order_ack(
            transport.core,
            source=stream.source,
            reply_address=stream.reply_address,
            tx_sequence_id=stream.settled_id,
            tx_sequence_number=stream.settled_number,
        )  # QB-3.1.6.9-01


def settled(transport: Transport, stream: IncomingStream, sequence_id: int, number: int) -> None:
    """What came is durable; if that took longer than the timer, tell it now."""
    transport.incoming_streams.settle(stream, sequence_id, number)
    if stream.order_ack_due is None:
        schedule_order_ack(transport, stream)
