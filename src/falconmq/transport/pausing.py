"""Outgoing queues that an operator holds back, and lets go again (MQQB 3.1.7.13, 3.1.7.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falconmq.manager.dispatch import remove_messages_by_queue
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.queues import pause_queue, resume_queue
from falconmq.manager.states import OutgoingState
from falconmq.transport import peers
from falconmq.transport.session import SessionState
from falconmq.transport.tables import table_of

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


def pause(transport: Transport, queue: OutgoingQueue) -> None:
    """Hold the messages of an outgoing queue back (Pause Queue, MQQB 3.1.7.13)."""
    table = transport.tables.get(queue)
    session = None if table is None else table.peer.session
    if session is not None:
        session.pause(transport.now)
        transport.connections.touch(session)
    pause_queue(transport.core, queue)  # QB-3.1.7.13-11
    remove_messages_by_queue(transport.core, queue)  # QB-3.1.7.13-12
    if table is not None:
        table.offered = None


def resume(transport: Transport, queue: OutgoingQueue) -> None:
    """Let them go again (Resume Queue, MQQB 3.1.7.14)."""
    resume_queue(transport.core, queue)
    if queue.state is OutgoingState.LOCKED:
        return
    table = table_of(transport, queue)
    session = table.peer.session
    if session is not None and session.state is SessionState.OPEN:
        queue.state = OutgoingState.CONNECTED
        transport.connections.pump(session)
    else:
        peers.wake(transport, table.peer)  # QB-3.1.7.14-01, QB-3.1.7.14-02
