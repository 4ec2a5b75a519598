"""Messages for foreign systems: the last queue manager on their way keeps them for a connector.

How to think about it. The way to a foreign queue manager ends at one of ours that is in its site.
There a message goes into the connector queue of the site, unopened and with its destination, and a
program reads it there and speaks to the foreign system. That program is the one to say that a
message has reached or left its queue. Order and exactly-once end here, for here is the last who
speaks our protocol: OrderAcks come from us, and the FinalAck when the program has read a message.

What comes from the network goes into the connector queue at once (`receiving`). What is sent here
waits in an outgoing queue like everything that is not for us, until somebody asks for its way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from falconmq.manager.connectors import connector_queue
from falconmq.manager.events import EventKind
from falconmq.manager.expiry import expire
from falconmq.manager.journaling import journal_sent_message
from falconmq.manager.model import Queue
from falconmq.manager.placing import link_message
from falconmq.manager.positions import MessagePosition
from falconmq.manager.removing import remove_position
from falconmq.manager.storing import message_position_available
from falconmq.message import is_expired
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.user_message import UserMessage

if TYPE_CHECKING:
    from falconmq.transport.outgoing import OutgoingTable
    from falconmq.transport.transport import Transport


def is_for_another(transport: Transport, packet: UserMessage) -> bool:
    """Whether a message says that another queue manager has its queue (QB-A13)."""
    return packet.user.queue_manager_address not in (NULL_GUID, transport.guid)


def find_connector(transport: Transport, packet: UserMessage) -> Queue | None:
    """The connector queue for a message to another queue manager; None: it has to go on."""
    site = transport.router.connector_site(UUID(bytes_le=packet.user.queue_manager_address))
    if site is None:
        return None
    return connector_queue(transport.core, site, transactional=packet.transaction is not None)


def hand_over(transport: Transport, table: OutgoingTable, site: UUID) -> None:
    """Move what waits in an outgoing queue into the connector queues of a site, in its order."""
    table.queue.next_hops = [f"FOREIGN={site}"]  # QB-3.1.5.2.1-12
    core = transport.core
    while (position := table.head()) is not None:
        head = position.message.head
        until = min(head.time_to_reach_queue, head.time_to_be_received)
        if is_expired(int(core.clock.time()), head.sent_time, until):
            expire(core, position)
            continue
        transactional = position.message.transaction is not None
        target = connector_queue(core, site, transactional=transactional)
        _move(transport, table, position, target)
        transport.counters["handed to a connector"] += 1


def _move(
    transport: Transport, table: OutgoingTable, position: MessagePosition, target: Queue
) -> None:
    core, message = transport.core, position.message
    table.drop(position.lookup_id)
    if message.identity[0] == transport.guid:
        if message.transaction is not None:
            table.pending -= 1
        journal_sent_message(core, message)
    if core.events is not None:
        name = str(target.path_name.with_computer("."))
        core.events.record_position(EventKind.MOVED, position, name)
    remove_position(core, position)
    message_position_available(core, target, link_message(core, target, replace(message)))
