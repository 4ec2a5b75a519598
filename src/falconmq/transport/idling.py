"""What is left of peers that never come back: empty outgoing queues, and OrderAcks for nobody.

A sender that invents its identifier or address costs an outgoing queue for the answer. So queues
without messages and readers go after a while, as they do at a restart, and an OrderAck that could
not be delivered for longer than any sender waits before it sends again is of no use: the next
message of its stream will bring another.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from falconmq.manager.model import OutgoingQueue
from falconmq.manager.persistence import forget_queue
from falconmq.manager.registry import unregister
from falconmq.manager.removing import remove_position
from falconmq.transport.outgoing import OutgoingTable
from falconmq.wire.message_class import MessageClass

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport

_CLEAN_UP_SECONDS: Final = 3600.0
_CROWDED: Final = 500  # outgoing queues: then those without messages go every minute
_CROWDED_SECONDS: Final = 60.0
_LOOKED_AT_MAX: Final = 1_000  # messages of one queue in one go


def keep_clean(transport: Transport) -> None:
    """Forget now, and every hour, what nobody needs."""
    _clean_up_hourly(transport)
    _clear_crowd(transport)


def _clean_up_hourly(transport: Transport) -> None:
    transport.incoming_streams.clean_up(transport.now)
    _clean_up(transport)
    transport.after(_CLEAN_UP_SECONDS, partial(_clean_up_hourly, transport))


def _clear_crowd(transport: Transport) -> None:
    """Somebody invents destinations: let go sooner of those that have no messages."""
    if len(transport.core.outgoing) > _CROWDED:
        _clean_up(transport)
    transport.after(_CROWDED_SECONDS, partial(_clear_crowd, transport))


def _clean_up(transport: Transport) -> None:
    for queue in list(transport.core.outgoing.values()):
        table = transport.tables.get(queue)
        if table is not None and table.peer.session is None:
            _drop_order_acks(transport, table)
        if _is_idle(queue, table):
            _forget(transport, queue, table)
    for peer in [peer for peer in transport.peers.values() if not peer.tables]:
        if peer.session is None and not peer.is_busy:
            del transport.peers[peer.key]


def _drop_order_acks(transport: Transport, table: OutgoingTable) -> None:
    limit = transport.core.clock.time() - transport.settings.resend_final
    for lookup_id in list(table.unsent)[:_LOOKED_AT_MAX]:
        position = table.queue.positions.find(lookup_id)
        if position is None:
            continue
        packet = position.message.packet
        is_order_ack = packet.properties.message_class == MessageClass.ORDER_ACK
        if is_order_ack and packet.user.sent_time < limit:
            table.drop(lookup_id)
            remove_position(transport.core, position)
            transport.counters["order acks dropped"] += 1


def _is_idle(queue: OutgoingQueue, table: OutgoingTable | None) -> bool:
    if len(queue.positions) or queue.descriptors:
        return False
    return table is None or (table.peer.session is None and not table.has_work)


def _forget(transport: Transport, queue: OutgoingQueue, table: OutgoingTable | None) -> None:
    unregister(transport.core, queue)
    forget_queue(transport.core, queue)
    transport.last_numbered.pop(queue, None)
    if table is None:
        return
    del transport.tables[queue]
    del table.peer.tables[queue]
