"""Messages out: from the outgoing queue to the session (MQQB 3.1.7.1, 3.1.7.12, 3.1.7.16).

How to think about it. A message goes when three things are true: it is durable, its session is
open, the window has room. Whatever makes one of them true calls `pump`. The heads of all queues
that share the session then compete in the dispatch collection, the most urgent first.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from falconmq.manager.core import is_source
from falconmq.manager.dispatch import (
    add_message_to_dispatch_collection,
    held_dispatch,
    remove_message_from_dispatch_collection,
)
from falconmq.manager.events import EventKind
from falconmq.manager.expiry import expire
from falconmq.manager.journaling import journal_sent_message
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage, transaction_header_offset
from falconmq.manager.removing import remove_sent
from falconmq.manager.states import OutgoingState
from falconmq.message import is_expired
from falconmq.transport import peers
from falconmq.transport.outgoing import Entry, OutgoingTable
from falconmq.transport.reports import send_report
from falconmq.transport.sealing import privacy_level_of, sealed
from falconmq.transport.session import Session
from falconmq.wire.base_header import TRACE
from falconmq.wire.reader import Buffer
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    DELIVERY_MODE_SHIFT,
    JOURNAL_POSITIVE,
    RECOVERABLE,
    TRANSACTION_HEADER,
)

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_WITH_BIT: Final = RECOVERABLE << DELIVERY_MODE_SHIFT
_PREVIOUS: Final = struct.Struct("<I")
_PREVIOUS_OFFSET: Final = 16  # of PreviousTxSequenceNumber in a TransactionHeader


def pump(transport: Transport, session: Session) -> None:
    """Send what the window allows."""
    if not transport.connections.can_send(session):
        return
    with held_dispatch(transport.core):
        for peer in transport.connections.peers_of(session):
            for table in peer.tables.values():
                offer(transport, table, session)


def offer(transport: Transport, table: OutgoingTable, session: Session) -> None:
    """Let the next message of a queue compete for the window (QB-3.1.7.12-09)."""
    if table.offered is not None or not table.unsent or not transport.connections.can_send(session):
        return
    if table.is_held:
        return
    if table.queue.state is not OutgoingState.CONNECTED:  # QB-3.1.7.1-02
        return
    position = table.head()
    if position is None:
        return
    table.offered = position
    add_message_to_dispatch_collection(transport.core, table, position)


def send_user_message_wrapper(
    transport: Transport, protocol_data: object, position: MessagePosition
) -> None:
    """Send User Message Wrapper, MQQB 3.1.7.16: the dispatch collection has chosen a message."""
    table = protocol_data
    assert isinstance(table, OutgoingTable)
    table.offered = None
    session = table.peer.session
    if session is not None and transport.connections.can_send(session):
        send_user_message(transport, table, position, session)  # QB-3.1.7.16-01
    remove_message_from_dispatch_collection(transport.core, position)  # QB-3.1.7.16-02
    if session is not None:
        offer(transport, table, session)


def send_user_message(
    transport: Transport, table: OutgoingTable, position: MessagePosition, session: Session
) -> None:
    """Send User Message, MQQB 3.1.7.1."""
    message = position.message
    base_flags, ttrq, source, _, ttbr, sent_time, message_id, flags = message.head
    now = int(transport.core.clock.time())
    if is_expired(now, sent_time, min(ttrq, ttbr)):  # QB-3.1.7.1.2-01, QB-A44
        expire(transport.core, position)  # QB-3.1.7.1.2-03 to -06
        return
    mode = flags & DELIVERY_MODE
    lookup_id, has_bit = position.lookup_id, mode == _WITH_BIT
    entry = Entry(table, lookup_id, message.size, flags, message_id, bool(mode), source, has_bit)
    is_ours = source == transport.guid
    header = message.transaction if is_ours and flags & TRANSACTION_HEADER else None
    if header is not None and table.has_passed(header):
        _found_arrived(transport, entry, header)
        return
    if is_ours and privacy_level_of(message, flags):  # QB-3.1.7.1.5-01
        encrypted = sealed(transport, table, position, session)
        if encrypted is None:
            return
        message = encrypted
    data: Sequence[Buffer] = (message.data,)
    if header is not None:
        data = _place_in_stream(table, entry, message, header)
        _learn_remote(transport, table, session)
        transport.awaiting[message_id] = entry
        start_transactional_ack_wait(transport, table)
    session.send(data, entry=entry, recoverable=entry.has_bit, now=transport.now)
    table.record(entry)  # QB-3.1.7.1.6-02
    if base_flags & TRACE:
        hop, packet = session.remote_address, message.packet
        send_report(transport.core, transport.settings, packet, next_hop=hop)  # QB-3.1.7.1.7-01


def _found_arrived(transport: Transport, entry: Entry, header: TransactionHeader) -> None:
    table = entry.table
    entry.tx_sequence_id = header.tx_sequence_id
    entry.tx_sequence_number = header.tx_sequence_number
    entry.received_order_ack = True
    table.unsent.remove(entry.lookup_id)
    table.pending -= 1
    transport.awaiting[entry.message_id] = entry  # in place of the one of an earlier sending
    finish(transport, entry)
    renew_if_done(transport, table)


def renew_if_done(transport: Transport, table: OutgoingTable) -> None:
    """Nothing is left of a sequence: the next message begins another (QB-3.1.5.6-10)."""
    stream = table.stream
    if stream is not None and not table.pending and stream.next_number > 1:
        transport.outgoing_streams.renew(stream)
        stop_transactional_ack_wait(table)


def _place_in_stream(
    table: OutgoingTable, entry: Entry, message: StoredMessage, header: TransactionHeader
) -> Sequence[Buffer]:
    """The packet with the previous number of this moment; id and number are its own for good."""
    entry.tx_sequence_id = header.tx_sequence_id
    entry.tx_sequence_number = header.tx_sequence_number
    previous = table.previous_number(header.tx_sequence_id, header.tx_sequence_number)
    entry.previous_number = previous
    data = message.data
    if previous == header.previous_tx_sequence_number:
        return (data,)
    at = transaction_header_offset(data) + _PREVIOUS_OFFSET
    view = memoryview(data)
    return (b"".join((view[:at], _PREVIOUS.pack(previous))), view[at + _PREVIOUS.size :])


def _learn_remote(transport: Transport, table: OutgoingTable, session: Session) -> None:
    """Whose OrderAcks we may believe: those of the queue manager that gets the messages."""
    stream = table.stream
    if stream is None:
        return
    manager = table.peer.queue_manager
    if manager is None:
        stream.remote_guid = session.remote_guid
    elif stream.remote_guid != manager.bytes_le:  # a foreign one has no say: its connectors do
        stream.remote_guid = None if transport.router.is_foreign(manager) else manager.bytes_le


def start_transactional_ack_wait(transport: Transport, table: OutgoingTable) -> None:
    """Start the Transactional Ack Wait Timer, if it does not run (QB-3.1.7.1.3-07)."""
    stream = table.stream
    if table.resend_timer or stream is None:
        return
    transport.timers_started += 1
    table.resend_timer = transport.timers_started
    if table.unanswered_since is None:
        table.unanswered_since = transport.now
    seconds = transport.outgoing_streams.started(stream, transport.now)
    transport.after(seconds, partial(_resend, transport, table, table.resend_timer))


def stop_transactional_ack_wait(table: OutgoingTable) -> None:
    table.resend_timer = 0
    table.unanswered_since = None


def _resend(transport: Transport, table: OutgoingTable, timer: int) -> None:
    """Transactional Ack Wait Timer event, MQQB 3.1.6.5."""
    if table.resend_timer != timer or table.stream is None:
        return
    table.resend_timer = 0
    if not table.pending:
        table.unanswered_since = None
        return
    transport.outgoing_streams.resend(table.stream, transport.now)  # QB-A36
    _count_again(transport, len(table.transactional))
    table.requeue_transactional()  # QB-3.1.6.5-01, QB-3.1.6.5-02
    start_transactional_ack_wait(transport, table)
    table.describe(transport.outgoing_streams)
    session = table.peer.session
    if session is None:
        peers.wake(transport, table.peer)
    else:
        transport.connections.pump(session)


def acknowledged(transport: Transport, received: Sequence[Entry], stored: Sequence[Entry]) -> None:
    """A session acknowledgment came (MQQB 3.1.5.5.1 to .4)."""
    for entry in received:
        entry.received_session_ack = True  # QB-3.1.5.5.1-01
        if entry.is_over:
            continue
        if not entry.has_bit:
            finish(transport, entry)  # QB-3.1.5.5.2-01
        elif entry.received_order_ack:
            finish(transport, entry)  # QB-A37
    for entry in stored:
        if not entry.is_over and not entry.tx_sequence_number:
            finish(transport, entry)  # QB-3.1.5.5.3-01, QB-3.1.5.5.3-02


def finish(transport: Transport, entry: Entry) -> None:
    """The peer has a message for good: it leaves, or stays for the FinalAck."""
    table = entry.table
    entry.is_over = True
    table.sent.pop(entry.lookup_id, None)
    table.sent_in_vain.pop(entry.lookup_id, None)
    _tell_delivered(transport, entry)
    if entry.tx_sequence_number and entry.is_journaled:
        table.arrived[entry.lookup_id] = entry  # QB-3.1.5.6-09
        return
    if transport.awaiting.get(entry.message_id) is entry:
        del transport.awaiting[entry.message_id]
    is_ours = not entry.tx_sequence_number and entry.flags & JOURNAL_POSITIVE
    if is_ours:
        _journal(transport, entry)  # QB-3.1.5.5.4-01
    remove_sent(
        transport.core,
        table.queue,
        entry.lookup_id,
        entry.size,
        is_recoverable=entry.is_recoverable,
    )


def _tell_delivered(transport: Transport, entry: Entry) -> None:
    events, table = transport.core.events, entry.table
    if events is None:
        return
    session = table.peer.session
    events.record(
        EventKind.DELIVERED,
        entry.source,
        entry.message_id,
        table.queue,
        entry.lookup_id,
        entry.size,
        detail="" if session is None else session.remote_address,
        about=_place_of(entry) if entry.tx_sequence_number else None,
    )


def _place_of(entry: Entry) -> TransactionHeader:
    return TransactionHeader(
        0, entry.tx_sequence_id, entry.tx_sequence_number, entry.previous_number
    )


def _journal(transport: Transport, entry: Entry) -> None:
    """The sender's journal is at the sender: what we pass on for others is not kept here."""
    position = entry.table.queue.positions.find(entry.lookup_id)
    if position is not None and is_source(transport.core, position.message):
        journal_sent_message(transport.core, position.message)


def _count_again(transport: Transport, messages: int) -> None:
    if messages:
        transport.counters["messages to send again"] += messages


def session_ended(transport: Transport, table: OutgoingTable) -> None:
    """What was sent and not acknowledged has to be sent again."""
    for entry in [entry for entry in table.sent.values() if entry.received_order_ack]:
        finish(transport, entry)  # an OrderAck says more than the session could have
    _count_again(transport, len(table.sent))
    table.requeue()
