"""How things stand with what is on its way: for operators, who want to know why it is.

Only looks: nothing here changes the transport. Times are ages, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from uuid import UUID

from falconmq.manager.model import OutgoingQueue
from falconmq.transport.outgoing import OutgoingTable
from falconmq.transport.session import Session, SessionState

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport


@dataclass(frozen=True, slots=True)
class Situation:
    """What an operator wants to know of an outgoing queue, beside what the queue knows itself."""

    problem: str = ""  # why the last try to connect failed, or how the last session ended
    next_try_seconds: float | None = None
    is_transactional: bool = False  # it has a stream: `OutgoingQueue.transfer_info` says how far
    host_name: str = ""  # where it leads, as far as that is known
    address: str = ""  # of the session; without one, of the hop that was tried last
    session_state: SessionState | None = None  # None: there is no session
    session_seconds: float | None = None  # since it was opened
    acknowledged_seconds: float | None = None  # since the peer said last what it has
    queue_manager: UUID | None = None  # at the other end
    addresses: tuple[str, ...] = ()  # where that queue manager was seen
    unsent: int = 0
    sent: int = 0  # on this session, and not acknowledged for good
    without_order_ack: int = 0  # of those: the session says they came, no OrderAck does
    arrived: int = 0  # waiting for the news of their end
    resent: int = 0  # messages that were sent before, in vain
    unanswered_seconds: float | None = None  # since an OrderAck is due
    window: int = 0
    is_window_full: bool = False
    is_peer_reading: bool = True
    encryption_problem: str = ""  # why the last message that was to be encrypted was not sent
    waits_for_keys: bool = False  # and is that still here, to be tried again


class Progress(Enum):
    """How far a message in an outgoing queue is."""

    UNSENT = "not sent yet"
    SENT = "sent, and not acknowledged"
    RECEIVED = "received by the next queue manager, which has not said that it is in order"
    ARRIVED = "arrived, and waiting for the news of its end"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """One message on its way."""

    progress: Progress = Progress.UNSENT
    ahead: int = 0  # messages that are sent before it
    in_vain: int = 0  # how often it was sent before, without an answer


def situation_of(transport: Transport, queue: OutgoingQueue) -> Situation:
    """How things stand with an outgoing queue at this moment."""
    table = transport.tables.get(queue)
    if table is None:
        return Situation()
    peer, now = table.peer, transport.now
    session, hops = peer.session, peer.hops
    guid = None if session is None else session.remote_guid
    manager = peer.queue_manager if guid is None else UUID(bytes_le=guid)
    known = () if manager is None else transport.addresses.of(manager.bytes_le)
    return Situation(
        problem=peer.problem,
        next_try_seconds=None if peer.retry_at is None else max(0.0, peer.retry_at - now),
        is_transactional=table.stream is not None,
        host_name=peer.host_name,
        address=_address(session, hops[peer.hop_index].address if hops else ""),
        session_state=None if session is None else session.state,
        session_seconds=_age(None if session is None else session.opened_at, now),
        acknowledged_seconds=_age(None if session is None else session.acknowledged_at, now),
        queue_manager=manager,
        addresses=tuple(sorted(known)),
        unsent=len(table.unsent),
        sent=len(table.sent),
        without_order_ack=_without_order_ack(table),
        arrived=len(table.arrived),
        resent=len(table.sent_in_vain),
        unanswered_seconds=_age(table.unanswered_since, now),
        window=0 if session is None else session.window,
        is_window_full=session is not None and _is_full(session),
        is_peer_reading=session is None or transport.connections.is_peer_reading(session),
        encryption_problem=table.encryption_problem,
        waits_for_keys=table.is_held,
    )


def whereabouts_of(transport: Transport, queue: OutgoingQueue, lookup_id: int) -> Whereabouts:
    """How far one message of an outgoing queue is."""
    table = transport.tables.get(queue)
    if table is None:
        return Whereabouts()
    in_vain = table.sent_in_vain.get(lookup_id, 0)
    if lookup_id in table.arrived:
        return Whereabouts(Progress.ARRIVED)
    entry = table.sent.get(lookup_id)
    if entry is None:
        ahead = sum(1 for number in table.unsent if number < lookup_id)
        return Whereabouts(Progress.UNSENT, ahead, in_vain)
    is_there = entry.received_session_ack and bool(entry.tx_sequence_number)
    return Whereabouts(Progress.RECEIVED if is_there else Progress.SENT, 0, in_vain)


def _without_order_ack(table: OutgoingTable) -> int:
    return sum(
        1 for entry in table.transactional if entry.received_session_ack and not entry.is_over
    )


def _is_full(session: Session) -> bool:
    return session.state is SessionState.OPEN and not session.can_send


def _address(session: Session | None, tried: str) -> str:
    return tried if session is None else session.remote_address


def _age(moment: float | None, now: float) -> float | None:
    return None if moment is None else max(0.0, now - moment)
