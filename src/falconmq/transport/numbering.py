"""Places in the stream: TxSequenceID and TxSequenceNumber of the messages we send (QB-A38).

A number is given once, when the transaction commits, and is part of the stored packet from then on.
The order of a stream is the order of the commits, and the order of the outgoing queue has to be the
same, for a queue is sent in its order. So a message that was enqueued early by a transaction that
commits late gets a new place behind the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from falconmq.manager.expiry import start_time_to_be_received_timer
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.placing import link_position, next_lookup_id, store_again, store_position
from falconmq.manager.positions import MessagePosition
from falconmq.manager.removing import remove_position
from falconmq.manager.states import PositionState
from falconmq.transport.outgoing import OutgoingTable
from falconmq.transport.tables import table_of

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


def number(transport: Transport, queue: OutgoingQueue, position: MessagePosition) -> None:
    """Give a transactional message its place, as its transaction commits."""
    table = table_of(transport, queue)
    if position.lookup_id < transport.last_numbered.get(queue, 0):
        queue.expired.discard(position.lookup_id)
        queue.positions.renumber(position, next_lookup_id(transport.core, position.message))
        start_time_to_be_received_timer(transport.core, position)
    _stamp(transport, table, position)


def number_late(transport: Transport, table: OutgoingTable, lookup_id: int) -> None:
    """Give a message its place that was stored without one; it is unsent, and stays it."""
    queue, core = table.queue, transport.core
    position = queue.positions.find(lookup_id)
    assert position is not None
    if lookup_id > transport.last_numbered.get(queue, 0):
        _stamp(transport, table, position)
        store_again(core, position)
        return
    remove_position(core, position)
    table.unsent.remove(lookup_id)
    message = position.message
    moved = MessagePosition(queue, next_lookup_id(core, message), message)
    moved.state = PositionState.AVAILABLE
    link_position(core, moved)
    start_time_to_be_received_timer(core, moved)
    _stamp(transport, table, moved)
    store_position(core, moved)
    table.unsent.add(moved.lookup_id)


def _stamp(transport: Transport, table: OutgoingTable, position: MessagePosition) -> None:
    stream = table.stream = table.stream or transport.outgoing_streams.of(table.queue.destination)
    transport.last_numbered[table.queue] = position.lookup_id
    sequence_id, sequence_number = transport.outgoing_streams.next(stream)
    position.message.number_in_sequence(sequence_id, sequence_number)
    table.pending += 1
