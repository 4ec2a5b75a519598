"""What an acknowledgement of a consumer does, turn by turn.

Every message below an arrival number is removed as received, some of them in each turn, and the
same write says how far that is. So a crash between two turns leaves a consumer that is less far,
and nothing else: to acknowledge again goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from falconmq.embedded import actions
from falconmq.errors import MqStatus, QueueError
from falconmq.manager.arrivals import arrivals_between
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import PositionState
from falconmq.service.requests.consumer_records import Record, write_record
from falconmq.service.requests.finding import find_local
from falconmq.store import Commit
from falconmq.wire.message_class import MessageClass

TURN_MESSAGES: Final = 500  # that are removed without letting others work


@dataclass(slots=True)
class Progress:
    """How an acknowledgement gets on."""

    removed: int = 0
    locked: int = 0
    commit: Commit | None = None  # of the last turn


def check_offsets(
    core: QueueManagerCore, name: str, opened: Mapping[int, actions.Opened], offsets: dict[str, int]
) -> dict[int, int]:
    """The numbers of the queues with how far each is done; refuses what cannot be."""
    found = {}
    for queue_name, stop in offsets.items():
        queue = find_local(core, queue_name)
        if queue.number not in opened:
            raise QueueError(
                f"consumer {name} has not claimed {actions.path_of(queue)}",
                status=MqStatus.INVALID_PARAMETER,
                hint="claim all queues together, then acknowledge",
            )
        if stop > core.sequential_id.value + 1:
            raise QueueError(
                f"arrival number {stop} of {actions.path_of(queue)} was never given: the last one "
                f"is {core.sequential_id.value}",
                status=MqStatus.INVALID_PARAMETER,
                hint="it belongs to another queue manager, or this one came out of an old backup",
            )
        found[queue.number] = stop
    return found


def remove_some(
    core: QueueManagerCore,
    name: str,
    record: Record,
    opened: actions.Opened,
    start: int,
    stop: int,
    progress: Progress,
) -> int:
    """One turn: remove some messages, and write down how far that is."""
    queue = actions.local(opened)
    positions = queue.positions
    span = arrivals_between(positions, start, stop, TURN_MESSAGES)
    removed = 0
    for _, lookup_id in span.places():
        position = positions.find(lookup_id, decode=False)
        if position is None:
            continue  # a subscriber took it away meanwhile
        if position.state is PositionState.AVAILABLE:
            message_position_deleted(core, queue, position, MessageClass.ACK_RECEIVE)
            removed += 1
        else:
            progress.locked += 1
    progress.removed += removed
    place = record.places[queue.number]
    if removed or span.reached > place.next:
        place.next = max(place.next, span.reached)
        place.updated = core.clock.time()
        write_record(core, name, record)
    return span.reached
