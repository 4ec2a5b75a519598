"""Reading the numbers off a queue manager, for metrics.

A look takes plain numbers of some hundred queues, as short as can be, because messages wait
meanwhile; names and texts are made of them later, by whoever writes them down.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.positions import START
from falconmq.manager.states import QueueType

_PIECE: Final = 500  # queues that are looked at while messages wait: some milliseconds


class QueueNumbers(NamedTuple):
    """A queue that an application created."""

    queue: Queue
    messages: int
    size: int
    journal_messages: int
    arrived: int
    received: int
    since: float  # when the message at its head came; 0: there is none
    waiting_readers: int


class OutgoingNumbers(NamedTuple):
    """An outgoing queue."""

    queue: OutgoingQueue
    messages: int
    size: int
    since: float
    failures: int
    state: str


@dataclass(slots=True)
class Numbers:
    """A queue manager at one moment."""

    time: float
    message_bytes: int
    quota_kilobytes: int
    system: Mapping[str, tuple[int, int]]  # messages and bytes, by name
    prepared: int = 0
    transactions: int = 0
    queues_in_all: int = 0
    left_out: int = 0
    waiting_readers: int = 0
    queues: list[QueueNumbers] = field(default_factory=list)
    outgoing: list[OutgoingNumbers] = field(default_factory=list)
    events: Mapping[EventKind, int] = field(default_factory=dict)
    event_bytes: Mapping[EventKind, int] = field(default_factory=dict)
    by_reason: Mapping[tuple[EventKind, int], int] = field(default_factory=dict)


class Heads:
    """When the message at the head of each queue came, remembered as long as it is the same one.

    So a queue that does not move costs no look into the store, and one that moves costs one.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, float]] = {}  # by queue number: lookup id and time

    def since(self, queue: Queue) -> float:
        positions = queue.positions
        if not len(positions):
            self._known.pop(queue.number, None)
            return 0.0
        head = positions.available.after(START)
        if positions.held:
            first_held = min(positions.held)
            head = first_held if head is None else min(head, first_held)
        assert head is not None
        known = self._known.get(queue.number)
        if known is None or known[0] != head:
            position = positions.find(head, decode=False)
            assert position is not None
            known = self._known[queue.number] = head, position.message.arrival_time
        return known[1]

    def keep(self, numbers: Mapping[int, Queue]) -> None:
        """Forget queues that are gone."""
        if len(self._known) > len(numbers):
            self._known = {n: known for n, known in self._known.items() if n in numbers}


async def gather(engine: Engine, heads: Heads, queues_max: int) -> Numbers:
    """Look at everything; at most `queues_max` queues and as many destinations for themselves.

    Those that were created first: which ones they are must not change from one scrape to the next.
    """
    numbers, queues = engine.look(_begin)
    for start in range(0, len(queues), _PIECE):
        engine.look(_go_on, numbers, queues[start : start + _PIECE], heads, queues_max)
        await asyncio.sleep(0)
    engine.look(lambda core: heads.keep(core.queues))
    return numbers


def _begin(core: QueueManagerCore) -> tuple[Numbers, list[Queue]]:
    events = core.events
    system = {
        "dead_letter": core.dead_letter,
        "transactional_dead_letter": core.transactional_dead_letter,
        "journal": core.journal,
    }
    numbers = Numbers(
        time=core.clock.time(),
        message_bytes=core.used_bytes,
        quota_kilobytes=core.settings.quota_kilobytes,
        system={name: (len(q.positions), q.total_bytes) for name, q in system.items()},
        prepared=sum(each.is_prepared for each in core.transactions.values()),
        transactions=len(core.transactions),
    )
    if events is not None:
        numbers.events, numbers.event_bytes = dict(events.counts), dict(events.sizes)
        numbers.by_reason = dict(events.by_reason)
    return numbers, list(core.queues.values())


def _go_on(
    core: QueueManagerCore, numbers: Numbers, queues: list[Queue], heads: Heads, queues_max: int
) -> None:
    by_queue = Counter[tuple[int, EventKind]]() if core.events is None else core.events.by_queue
    for queue in queues:
        if not queue.is_deleted:
            _add(numbers, queue, heads, by_queue, queues_max)


def _add(
    numbers: Numbers,
    queue: Queue,
    heads: Heads,
    by_queue: Mapping[tuple[int, EventKind], int],
    queues_max: int,
) -> None:
    numbers.waiting_readers += len(queue.waiting)
    if isinstance(queue, OutgoingQueue):
        if len(numbers.outgoing) < queues_max:
            numbers.outgoing.append(_outgoing(queue, heads))
        else:
            numbers.left_out += 1
        return
    if queue.parent is not None or queue.queue_type is QueueType.SYSTEM:
        return
    numbers.queues_in_all += 1
    if len(numbers.queues) >= queues_max:
        numbers.left_out += 1
        return
    journal = queue.journal
    numbers.queues.append(
        QueueNumbers(
            queue,
            len(queue.positions),
            queue.total_bytes,
            0 if journal is None else len(journal.positions),
            by_queue.get((queue.number, EventKind.ARRIVED), 0),
            by_queue.get((queue.number, EventKind.RECEIVED), 0),
            heads.since(queue),
            len(queue.waiting),
        )
    )


def _outgoing(queue: OutgoingQueue, heads: Heads) -> OutgoingNumbers:
    return OutgoingNumbers(
        queue,
        len(queue.positions),
        queue.total_bytes,
        heads.since(queue),
        queue.connection_failures,
        queue.state.value,
    )
