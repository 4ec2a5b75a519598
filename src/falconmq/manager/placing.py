"""The place of a message: its number, its row in the queue, its record in the store (3.1.7.1.9).

How to think about it. A place is made locked and unseen. `make_readable` opens it, counts its
arrival and lets the store have the message if that is recoverable. What others hear of all this is
not decided here: `storing` tells of messages that came, `removing` of those that leave.
"""

from __future__ import annotations

from typing import Final

from falconmq.manager.arrivals import SEQUENCE, SEQUENCE_BITS, note_arrival
from falconmq.manager.core import QueueManagerCore, message_key, next_number
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import PositionState

_PRIORITY_MAX: Final = 7


def next_lookup_id(core: QueueManagerCore, message: StoredMessage) -> int:
    """A new lookup identifier for a message: the urgent ones are smaller (DM-A02)."""
    sequence = next_number(core, core.sequential_id) & SEQUENCE  # DM-3.1.7.1.9-09
    return (_PRIORITY_MAX - message.priority) << SEQUENCE_BITS | sequence


def link_message(core: QueueManagerCore, queue: Queue, message: StoredMessage) -> MessagePosition:
    """Give a message the next place of a queue, locked until someone makes it available."""
    message.arrival_time = core.clock.time()  # DM-3.1.7.1.9-18
    message.arrival_number = 0
    return link_position(core, MessagePosition(queue, next_lookup_id(core, message), message))


def link_position(core: QueueManagerCore, position: MessagePosition) -> MessagePosition:
    """Put a place that has its number into its queue: its bytes count.

    Its time does not run yet: where a message may expire, `expiry` starts its timer next.
    """
    position.queue.positions.link(position)
    core.used_bytes += position.size
    return position


def make_readable(core: QueueManagerCore, position: MessagePosition) -> None:
    """Unlock, number and store a place."""
    queue = position.queue
    if position.state is not PositionState.AVAILABLE:
        queue.positions.release(position)
    message = position.message
    if message.arrival_number == 0:
        message.arrival_number = _next_arrival_number(core, position)
    if message.arrival_number != position.lookup_id & SEQUENCE and queue.keeps_arrivals:
        note_arrival(queue.positions, message.arrival_number, position.lookup_id)
    store_position(core, position)


def _next_arrival_number(core: QueueManagerCore, position: MessagePosition) -> int:
    """Count messages as they become readable, which in a transaction is later than they come.

    The numbers are those of SequentialID: a message that is readable at once has the number of its
    lookup identifier, any other gets one of its own. So they grow, are never given twice, and a
    restart needs no look at the messages to go on.
    """
    counter = core.sequential_id
    is_newest = position.lookup_id & SEQUENCE == counter.value & SEQUENCE
    number = counter.value if is_newest else next_number(core, counter)
    queue = position.queue
    queue.arrival_number = number
    for watcher in queue.arrival_watchers:
        watcher()
    return number


def store_position(core: QueueManagerCore, position: MessagePosition) -> None:
    """Let the store have a recoverable message that became readable."""
    if position.is_written or not position.message.is_recoverable:
        return
    position.is_written = True
    _write(core, position)


def store_again(core: QueueManagerCore, position: MessagePosition) -> None:
    """Let the store have what changed beside the packet. Memory is ahead until it is durable."""
    if position.is_written:
        position.is_stored = False
        _write(core, position)


def _write(core: QueueManagerCore, position: MessagePosition) -> None:
    key = message_key(position.queue.number, position.lookup_id)
    core.batch.put("messages", key, position.message.encode())
    position.pending_writes += 1
    core.unsettled.append(position)
