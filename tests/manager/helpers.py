"""What the tests of the queue manager share: a core, its commits and crashes, messages."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

from falconmq.clock import VirtualClock
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.lifecycle import initialize, settle
from falconmq.manager.model import Queue, QueueProperties, WaitingRead
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import create_queue
from falconmq.manager.record import StoredMessage
from falconmq.message import INFINITE, Delivery, Journal, Message, MessageTransaction
from falconmq.names import PathName
from falconmq.serialization import to_user_message
from falconmq.store.memory_engine import MemoryStore

IDENTIFIER: Final = UUID("0d1ab8e4-3a0d-4b0e-9f4f-0a7d3c1f2b5e")  # of the queue manager
STRANGER: Final = UUID("5b0f2d9c-6e51-4c39-8a51-7f8f1c0f9a11")  # another queue manager
START_TIME: Final = 1_700_000_000  # where a VirtualClock begins
COMPUTER: Final = "SALES01"
_MESSAGE_IDS: Final = itertools.count(1)


def make_core(
    store: MemoryStore | None = None, clock: VirtualClock | None = None, **settings: Any
) -> QueueManagerCore:
    """A queue manager that is ready, over a store in memory and a clock that stands still."""
    core = QueueManagerCore(
        IDENTIFIER,
        MemoryStore() if store is None else store,
        VirtualClock() if clock is None else clock,
        Random(7),
        Settings(**{"computer_name": COMPUTER, **settings}),
    )
    initialize(core)
    commit(core)
    return core


def commit(core: QueueManagerCore) -> list[WaitingRead]:
    """What a host does after an event: commit the batch, settle it; the reads it ended."""
    batch, positions, woken = core.take_batch()
    if len(batch):
        store_of(core).commit([batch])
    settle(core, positions)
    return woken


def restart(core: QueueManagerCore) -> QueueManagerCore:
    """The power fails, and comes back: what was not committed is gone."""
    store = store_of(core)
    store.crash()
    settings = dataclasses.replace(core.settings)
    random = Random(core.random.getrandbits(64))  # another life, other lots
    again = QueueManagerCore(core.identifier, store, core.clock, random, settings)
    initialize(again)
    commit(again)
    return again


def same(core: QueueManagerCore, queue: Queue) -> Queue:
    """The queue in the core that a restart has made."""
    return core.queues[queue.number]


def store_of(core: QueueManagerCore) -> MemoryStore:
    assert isinstance(core.store, MemoryStore)
    return core.store


def given_queue(core: QueueManagerCore, name: str = "orders", **properties: Any) -> Queue:
    """A private queue that is in the store; `properties` are those of QueueProperties."""
    path_name = PathName.parse(rf".\private$\{name}")
    queue = create_queue(core, path_name, QueueProperties(**properties))
    commit(core)
    return queue


def message(
    body: bytes = b"",
    *,
    priority: int = 3,
    recoverable: bool = True,
    transactional: bool = False,
    ttrq: int = INFINITE,
    ttbr: int = INFINITE,
    journal: int = 0,
    sent_time: int = START_TIME,
    source: UUID = IDENTIFIER,
    wire_id: int = 0,
    destination: str = rf"DIRECT=OS:{COMPUTER}\private$\orders",
    **properties: Any,
) -> StoredMessage:
    """A message as a sender builds it; `properties` are those of falconmq.message.Message."""
    sent = Message(
        body,
        priority=priority,
        delivery=Delivery.RECOVERABLE if recoverable else Delivery.EXPRESS,
        time_to_reach_queue=ttrq,
        time_to_be_received=ttbr,
        journal=Journal(journal),
        destination=destination,
        **properties,
    )
    if transactional:
        sent.transaction = MessageTransaction(sequence_id=1, sequence_number=1, id=wire_id)
    packet = to_user_message(
        sent, source_queue_manager=source, message_id=next(_MESSAGE_IDS), sent_time=sent_time
    )
    stored = StoredMessage.of(packet)
    stored.allow_peek_when_locked = sent.allow_peek_when_locked
    stored.dead_letter_queue = sent.dead_letter_queue
    return stored


def positions(queue: Queue) -> list[MessagePosition]:
    """All places of a queue, in order: readable, locked, purged."""
    found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.lookup_ids()]
    return [position for position in found if position is not None]


def only(queue: Queue) -> MessagePosition:
    """The only place of a queue."""
    (position,) = positions(queue)
    return position


def bodies(queue: Queue) -> list[bytes]:
    """The bodies of the messages a reader would get, in order."""
    return [body_of(queue, lookup_id) for lookup_id in queue.positions.available]


def body_of(queue: Queue, lookup_id: int) -> bytes:
    position = queue.positions.find(lookup_id)
    assert position is not None
    return bytes(position.message.packet.properties.message_body)


@dataclass
class Events:
    """What the subscribers of a core were told, in order."""

    available: list[tuple[Queue, MessagePosition]] = field(default_factory=list)
    deleted: list[tuple[Queue, MessagePosition, int]] = field(default_factory=list)

    @property
    def reasons(self) -> list[int]:
        return [reason for _, _, reason in self.deleted]


def record_events(core: QueueManagerCore) -> Events:
    events = Events()
    core.available_subscribers.append(lambda q, p: events.available.append((q, p)))
    core.deleted_subscribers.append(lambda q, p, reason: events.deleted.append((q, p, reason)))
    return events


def pass_time(core: QueueManagerCore, seconds: float) -> None:
    """Let time pass and raise what became due."""
    clock = core.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(seconds)
    core.run_timers()
