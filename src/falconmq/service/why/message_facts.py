"""What is known of one message: where it is now, and what happened to it.

Nothing finds a message by its identifier alone. The records of the event log say where it was put
last; if they do not reach back so far, `search` walks through the queues, a page a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind, MessageEvent
from falconmq.manager.expiry import time_to_be_received_deadline
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import PositionState
from falconmq.message import MessageId
from falconmq.service.observation.event_texts import queue_text
from falconmq.service.why.holders import Holders, is_being_sent, is_prepared
from falconmq.service.why.outgoing_facts import OutgoingFacts, outgoing_facts
from falconmq.transport.settings import PORT
from falconmq.transport.situations import Whereabouts

if TYPE_CHECKING:
    from falconmq.service.operating.outgoing import Outgoing

PAGE: Final = 500  # messages that are looked at in one turn
SEARCHED_MAX: Final = 1_000_000  # then it is given up

Spot = tuple[int, int]
"""A place: the number of a queue and a lookup identifier."""


class Role(StrEnum):
    """What kind of queue a message is in."""

    QUEUE = "queue"
    OUTGOING = "outgoing"
    JOURNAL = "journal"
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message, or a copy of it, is at this moment."""

    queue: str
    role: Role
    lookup_id: int
    seconds: float  # since it came there
    ahead: int = 0  # readable messages in front of it
    is_readable: bool = True
    is_being_sent: bool = False
    is_purged: bool = False  # it goes as soon as its holder lets go
    is_in_doubt: bool = False
    holder: str = ""
    readers_waiting: int = 0
    last_receive_seconds: float | None = None
    aborts: int = 0
    reason: int = 0  # of a dead letter
    expires_seconds: float | None = None
    whereabouts: Whereabouts = field(default_factory=Whereabouts)
    outgoing: OutgoingFacts | None = None


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """One message."""

    id: str
    now: float = 0.0
    is_ours: bool = False  # it was sent here
    source: str = ""
    label: str = ""
    size_bytes: int = 0
    places: tuple[Place, ...] = ()
    events: tuple[MessageEvent, ...] = ()
    log_seconds: float = 0.0  # since the start
    is_log_whole: bool = True  # nothing was forgotten since the start
    log_reaches_seconds: float = 0.0  # how far back it goes
    is_search_whole: bool = True


def message_facts(
    core: QueueManagerCore,
    transport: Outgoing | None,
    id: MessageId,
    spots: list[Spot],
    holders: Holders,
    port: int = PORT,
) -> MessageFacts:
    """Read it, inside a turn; `spots` are where it may be."""
    now, log = core.clock.time(), core.events
    source, ordinal = id.queue_manager.bytes_le, id.ordinal
    events = () if log is None else tuple(log.of_message(source, ordinal))
    found = [p for spot in spots if (p := _at(core, spot, (source, ordinal))) is not None]
    oldest = next(iter(log.after(0, 1)), None) if log is not None else None
    started = now if log is None else log.started
    return MessageFacts(
        id=str(id),
        now=now,
        is_ours=id.queue_manager == core.identifier,
        source=str(id.queue_manager),
        label=found[0].message.packet.properties.label.rstrip("\0") if found else "",
        size_bytes=found[0].size if found else max((event.size for event in events), default=0),
        places=tuple(_place(core, transport, position, holders, port) for position in found),
        events=events,
        log_seconds=now - started,
        is_log_whole=log is not None and log.first_number == 1,
        log_reaches_seconds=now - (started if oldest is None else oldest.time),
    )


def spots_of(core: QueueManagerCore, id: MessageId) -> list[Spot]:
    """Where the records say that a message was put, and where it still is."""
    if core.events is None:
        return []
    identity = id.queue_manager.bytes_le, id.ordinal
    found: dict[Spot, None] = {}
    for event in core.events.of_message(*identity):
        if event.queue is not None and event.lookup_id:
            found[event.queue.number, event.lookup_id] = None
    held = (p for queue in core.queues.values() for p in queue.positions.held.values())
    for position in held:  # what is being sent has left no record yet
        if position.message.identity == identity:
            found[position.queue.number, position.lookup_id] = None
    return [spot for spot in found if _at(core, spot, identity) is not None]


async def search(engine: Engine, id: MessageId) -> tuple[list[Spot], bool]:
    """Walk through all queues; where the message is, and whether everything was looked at."""
    identity = id.queue_manager.bytes_le, id.ordinal
    found: list[Spot] = []
    searched = 0
    for number in engine.look(_numbers):
        after: int | None = -1
        while after is not None:
            if searched >= SEARCHED_MAX:
                return found, False
            spots, after = engine.look(_search_page, number, after, identity)
            found += spots
            searched += PAGE
            await asyncio.sleep(0)  # others have their turns
    return found, True


def _numbers(core: QueueManagerCore) -> list[int]:
    return list(core.queues)


def _search_page(
    core: QueueManagerCore, number: int, after: int, identity: tuple[bytes, int]
) -> tuple[list[Spot], int | None]:
    """One page of a queue: the places that match, and where to go on; None at the end."""
    queue = core.queues.get(number)
    if queue is None:
        return [], None
    found: list[Spot] = []
    last = after
    for count, lookup_id in enumerate(_behind(queue, after)):
        if count == PAGE:
            return found, last
        last = lookup_id
        position = queue.positions.find(lookup_id, decode=False)
        if position is not None and position.message.identity == identity:
            found.append((number, lookup_id))
    return found, None


def _behind(queue: Queue, after: int) -> Iterator[int]:
    following = queue.positions.available.after(after)
    while following is not None:
        yield following
        following = queue.positions.available.after(following)


def _at(core: QueueManagerCore, spot: Spot, identity: tuple[bytes, int]) -> MessagePosition | None:
    number, lookup_id = spot
    queue = core.queues.get(number)
    position = None if queue is None else queue.positions.find(lookup_id)
    if position is None or position.message.identity != identity:
        return None
    return position


def _place(
    core: QueueManagerCore,
    transport: Outgoing | None,
    position: MessagePosition,
    holders: Holders,
    port: int,
) -> Place:
    queue, message, now = position.queue, position.message, core.clock.time()
    is_readable = position.state is PositionState.AVAILABLE
    last = None
    if core.events is not None:
        last = core.events.latest.get((queue.number, EventKind.RECEIVED))
    deadline = time_to_be_received_deadline(queue, message)
    whereabouts, outgoing = Whereabouts(), None
    if isinstance(queue, OutgoingQueue):
        outgoing = outgoing_facts(core, transport, queue, port)
        if transport is not None:
            whereabouts = transport.whereabouts(queue, position.lookup_id)
    return Place(
        queue=queue_text(queue),
        role=_role(core, position),
        lookup_id=position.lookup_id,
        seconds=max(0.0, now - message.arrival_time),
        ahead=_ahead(queue, position.lookup_id),
        is_readable=is_readable,
        is_being_sent=not is_readable and is_being_sent(position),
        is_purged=position.state is PositionState.PURGE_PENDING,
        is_in_doubt=is_prepared(position.transaction),
        holder="" if is_readable else holders.name(position),
        readers_waiting=len(queue.waiting),
        last_receive_seconds=None if last is None else max(0.0, now - last),
        aborts=message.abort_count,
        reason=message.dead_letter_reason,
        expires_seconds=None if deadline is None else max(0.0, deadline - now),
        whereabouts=whereabouts,
        outgoing=outgoing,
    )


def _role(core: QueueManagerCore, position: MessagePosition) -> Role:
    queue = position.queue
    if isinstance(queue, OutgoingQueue):
        return Role.OUTGOING
    if queue in (core.dead_letter, core.transactional_dead_letter):
        return Role.DEAD_LETTER
    if position.message.is_dead_letter:
        return Role.DEAD_LETTER  # in a queue of the application's own
    is_journal = queue is core.journal or queue.path_name.journal
    return Role.JOURNAL if is_journal else Role.QUEUE


def _ahead(queue: Queue, lookup_id: int) -> int:
    """How many readable messages come first."""
    return sum(1 for _ in takewhile(lookup_id.__gt__, queue.positions.available))
