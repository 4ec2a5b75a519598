"""What the tables know after a restart: read from the stored packets, without decoding them.

A message that was sent before the restart and not acknowledged is unsent again. A transactional one
that had arrived, and waits for the news of its reading, must not be sent again; its stream says how
far the OrderAcks had come. One that was sent when there was no transport, by an embedded manager,
has no place in its stream yet: it gets one now, in the order of the commits.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from falconmq.manager.core import message_key
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import NEEDS_NUMBER, StoredMessage
from falconmq.transport.numbering import number_late
from falconmq.transport.outgoing import JOURNALED, Entry, OutgoingTable
from falconmq.transport.tables import table_of
from falconmq.wire.user_header import TRANSACTION_HEADER

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_RECORD: Final = struct.Struct("<xB14xQH")  # flags, arrival number, size of the path
_PACKET: Final = struct.Struct("<16x16s24xII")  # SourceQueueManager, MessageID, Flags
_LOOKUP_ID: Final = struct.Struct(">8xQ")


def load(transport: Transport) -> None:
    """Read all that the store has; what was known before is forgotten."""
    transport.outgoing_streams.load()
    transport.incoming_streams.load()
    transport.history.load()
    transport.tables.clear()
    transport.awaiting.clear()
    transport.last_numbered.clear()
    for peer in transport.peers.values():
        peer.tables.clear()
    for queue in transport.core.outgoing.values():
        _load_queue(transport, queue)


def _load_queue(transport: Transport, queue: OutgoingQueue) -> None:
    """Fill the table of an outgoing queue with the messages that the queue has."""
    if queue.is_multicast or queue.is_http or not len(queue.positions):
        return
    table = table_of(transport, queue)
    for lookup_id in queue.positions.available:
        table.unsent.add(lookup_id)
    unnumbered: list[tuple[int, int]] = []
    start, stop = message_key(queue.number, 0), message_key(queue.number + 1, 0)
    for key, record in transport.core.store.scan("messages", start, stop):
        record_flags, arrival_number, path_size = _RECORD.unpack_from(record)
        source, message_id, flags = _PACKET.unpack_from(record, _RECORD.size + path_size)
        if not flags & TRANSACTION_HEADER or source != transport.guid:
            continue
        (lookup_id,) = _LOOKUP_ID.unpack(key)
        if lookup_id not in queue.positions.available:
            continue
        if record_flags & NEEDS_NUMBER:
            unnumbered.append((arrival_number, lookup_id))
        else:
            _load_transactional(transport, table, lookup_id, message_id, flags)
    for _, lookup_id in sorted(unnumbered):
        number_late(transport, table, lookup_id)


def _load_transactional(
    transport: Transport, table: OutgoingTable, lookup_id: int, message_id: int, flags: int
) -> None:
    queue = table.queue
    if table.stream is None:
        table.stream = transport.outgoing_streams.of(queue.destination)
    transport.last_numbered[queue] = max(transport.last_numbered.get(queue, 0), lookup_id)
    table.pending += 1
    if not flags & JOURNALED:
        return
    position = queue.positions.find(lookup_id)
    assert position is not None
    _load_journaled(transport, table, position, position.message, message_id)


def _load_journaled(
    transport: Transport,
    table: OutgoingTable,
    position: MessagePosition,
    message: StoredMessage,
    message_id: int,
) -> None:
    """A FinalAck may come before the message is sent again, so it is known from the beginning."""
    header = message.transaction
    assert header is not None
    entry = Entry(
        table,
        position.lookup_id,
        message.size,
        message.packet.user.flags,
        message_id,
        is_recoverable=True,
        source=transport.guid,
        has_bit=True,
        tx_sequence_id=header.tx_sequence_id,
        tx_sequence_number=header.tx_sequence_number,
    )
    transport.awaiting[message_id] = entry
    if table.has_passed(header):
        entry.received_order_ack = entry.is_over = True
        table.unsent.remove(position.lookup_id)
        table.arrived[position.lookup_id] = entry
        table.pending -= 1
