"""The event log in the store: blocks, numbers, what fails, what is retired."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq import Message, QueueManager
from falconmq.clock import VirtualClock
from falconmq.embedded.engine import Engine
from falconmq.embedded.manager import start_engine
from falconmq.errors import FalconMQError, StoreError
from falconmq.manager import event_keeping, event_store
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.event_facts import facts_of
from falconmq.manager.event_keeping import EventKeeper, Retention
from falconmq.manager.event_store import (
    NAMED,
    ORDERED,
    PACKED,
    RECORD,
    TABLE,
    TRACED,
    Block,
    BlockBuilder,
    StoredEvent,
    blocks_from,
    bounds_of,
    events_of,
    key_of,
    open_block,
)
from falconmq.manager.events import EventKind, EventLog
from falconmq.manager.model import Queue
from falconmq.store import MemoryStore, WriteBatch
from falconmq.store.memory_engine import ProcessCrash
from tests.manager.helpers import COMPUTER, IDENTIFIER, START_TIME, message

ORDERS = r".\private$\orders"
LEDGER = r".\private$\ledger"
FAR = r"DIRECT=OS:FAR\private$\orders"
PRIVATE = f"PRIVATE={IDENTIFIER}\\00000006"
DAY = 86_400


def name_of(queue: Queue) -> str:
    return str(queue.path_name.with_computer("."))


class Kept:
    """A queue manager without threads that keeps its events, on a clock that stands still."""

    def __init__(self, store: MemoryStore | None = None, **retention: Any) -> None:
        self.store = MemoryStore() if store is None else store
        self.clock = VirtualClock()
        self.retention = Retention(**retention)
        self.start()

    def start(self) -> None:
        self.engine: Engine = start_engine(
            self.store,
            Settings(computer_name=COMPUTER),
            clock=self.clock,
            random=Random(7),
            is_threaded=False,
            prepare=self._prepare,
        )
        self.manager = QueueManager(self.engine)

    def _prepare(self, core: QueueManagerCore) -> None:
        core.events = EventLog(core.clock.time)
        core.events.keeper = EventKeeper(core.store, self.retention, name_of)

    def crash(self) -> None:
        """The process ends here; another one opens the store."""
        self.store.crash()
        self.start()

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.engine.run_timers()

    @property
    def events(self) -> list[StoredEvent]:
        return stored(self.store)

    @property
    def told(self) -> list[tuple[int, str]]:
        return [(event.number, kind_of(event)) for event in self.events]


def stored(store: MemoryStore) -> list[StoredEvent]:
    return [event for block in blocks_from(store, 0) for event in events_of(block)]


def waiting(kept: Kept) -> int:
    return len(list(kept.manager.queue(ORDERS)))


def kind_of(event: StoredEvent) -> str:
    return EventKind(event.record.kind).name.lower()


def keys(store: MemoryStore) -> list[int]:
    return [int.from_bytes(key, "big") for key, _ in store.scan(TABLE)]


# Blocks


def record(builder: BlockBuilder, **fields: Any) -> bytes:
    named = {"at": START_TIME * 1_000_000, "kind": EventKind.ARRIVED, **fields}
    texts = ("queue", "detail", "destination", "source")
    places = {name: builder.text(named[name]) for name in texts if name in named}
    values = {**named, **places}
    return RECORD.pack(*(int(values.get(name, 0)) for name in event_store.Record._fields))


def given_block(**fields: Any) -> bytes:
    builder = BlockBuilder()
    for number in (1, 2):
        packet = b"packet %d" % number
        row = record(
            builder,
            flags=NAMED | PACKED,
            queue=ORDERS,
            source="{GUID}",
            message_id=number,
            packet_size=len(packet),
            **fields,
        )
        builder.add(START_TIME * 1_000_000, row, packet)
    return builder.encode(7, 1000)


def test_a_block_gives_back_what_was_put_in() -> None:
    first, second = events_of(open_block(key_of(7), given_block(detail="10.0.0.7")))
    assert (first.number, second.number) == (7, 8)
    assert (first.queue, first.detail, first.destination) == (ORDERS, "10.0.0.7", None)
    assert (first.source, first.record.message_id) == ("{GUID}", 1)
    assert (first.packet, second.packet) == (b"packet 1", b"packet 2")


def test_a_text_stands_in_a_block_once() -> None:
    assert given_block().count(ORDERS.encode()) == 1


@given(
    texts=st.lists(st.text(max_size=20), min_size=1, max_size=5),
    packets=st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=5),
    number=st.integers(1, 1 << 60),
)
def test_any_texts_and_packets_come_back(
    texts: list[str], packets: list[bytes | None], number: int
) -> None:
    builder = BlockBuilder()
    for text, packet in zip(texts, packets, strict=False):
        size = {} if packet is None else {"flags": PACKED, "packet_size": len(packet)}
        builder.add(5, record(builder, detail=text, **size), packet)
    found = list(events_of(open_block(key_of(number), builder.encode(number, 0))))
    given_texts = [text.encode("utf-8", "replace").decode() or None for text in texts]
    assert [event.detail for event in found] == given_texts[: len(found)]
    assert [event.packet for event in found] == packets[: len(found)]
    assert [event.number for event in found] == list(range(number, number + len(found)))


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_block_or_a_named_error(data: bytes) -> None:
    with pytest.raises(StoreError, match="the block of events from number 7 on cannot be read"):
        list(events_of(open_block(key_of(7), data)))


def changed(at: int, layout: str, value: int) -> bytes:
    block = bytearray(given_block())
    struct.pack_into(layout, block, at, value)
    return bytes(block)


HEAD_SIZE = len(given_block()) - 2 * (RECORD.size + 8) - 8 - len(ORDERS) - 6


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (given_block()[:-1], "bytes and says"),
        (given_block() + b"x", "bytes and says"),
        (given_block()[:30], "are too few"),
        (changed(0, "<B", 9), "version 9"),
        (changed(4, "<I", 3), "bytes and says"),
        (changed(4, "<I", 0), "it says 0 events"),
        (changed(8, "<Q", 8), "it says 2 events"),  # another number than its key
        (changed(40, "<I", 0xFFFF), "65535 texts do not fit"),
        (changed(HEAD_SIZE + 2 * RECORD.size, "<I", 99), "texts are not as long"),
        (changed(HEAD_SIZE + 12, "<I", 99), "names a text that is not there"),
        (changed(HEAD_SIZE + RECORD.size - 4, "<I", 1), "packets are not as long"),
    ],
    ids=[
        "cut", "longer", "short", "version", "count", "none", "number", "texts", "sizes", "place",
        "packets",
    ],
)  # fmt: skip
def test_a_damaged_block_is_refused_by_name(block: bytes, problem: str) -> None:
    with pytest.raises(StoreError, match=problem) as refused:
        list(events_of(open_block(key_of(7), block)))
    assert "from number 7 on" in str(refused.value)
    assert refused.value.hint


# Together with what they tell of


def test_an_event_is_in_the_batch_of_its_message() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    before = kept.store.commits
    queue.send(Message(b"a"))
    assert kept.store.commits == before + 1
    assert kept.told == [(1, "arrived")]
    assert queue.receive(timeout=0).body == b"a"
    assert kept.store.commits == before + 2
    assert kept.told == [(1, "arrived"), (2, "received")]


@pytest.mark.parametrize("is_durable", [False, True])
def test_a_crash_in_a_commit_leaves_both_or_neither(is_durable: bool) -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"before"))
    kept.store.fail_commit(error=ProcessCrash(), durable=is_durable)
    with pytest.raises(ProcessCrash):
        queue.send(Message(b"in it"))
    kept.crash()
    count = 2 if is_durable else 1
    assert waiting(kept) == count
    assert kept.told == [(number, "arrived") for number in range(1, count + 1)]
    kept.manager.queue(ORDERS).send(Message(b"after"))
    assert [number for number, _ in kept.told] == list(range(1, count + 2))


def test_numbers_go_on_after_a_failed_commit_as_if_it_had_not_been() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"a"))
    kept.store.fail_commit()
    with pytest.raises(FalconMQError):
        queue.send(Message(b"b"))
    queue.send(Message(b"c"))
    assert kept.told == [(1, "arrived"), (2, "restored"), (3, "arrived")]


def test_a_turn_that_was_torn_recorded_nothing() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)

    def torn(core: QueueManagerCore) -> None:
        assert core.events is not None
        core.events.record(EventKind.ARRIVED, IDENTIFIER.bytes_le, 1, None)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        kept.engine.run(torn)
    queue.send(Message(b"a"))
    assert kept.told == [(1, "restored"), (2, "arrived")]


def test_numbers_have_no_gaps_across_restarts() -> None:
    kept = Kept()
    kept.manager.create_queue(ORDERS)
    for _ in range(3):
        kept.manager.queue(ORDERS).send(Message(b"a"))
        kept.crash()
    assert kept.told == [(1, "arrived"), (2, "arrived"), (3, "arrived")]
    assert bounds_of(kept.store).next == 4


def test_events_of_queues_that_are_gone_are_still_read() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"a"))
    kept.manager.delete_queue(ORDERS)
    kept.crash()
    assert kept.told == [(1, "arrived"), (2, "queue_deleted")]
    assert [event.queue for event in kept.events] == [ORDERS, ORDERS]


def test_a_queue_that_comes_again_under_another_name_has_that_name() -> None:
    kept = Kept()
    for name in (ORDERS, LEDGER):
        kept.manager.create_queue(name).send(Message(b"a"))
        kept.manager.delete_queue(name)
    assert [event.queue for event in kept.events] == [ORDERS, ORDERS, LEDGER, LEDGER]


# Express messages have no batch


def test_events_without_a_batch_wait_a_second_and_hold_nobody_up() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    before = kept.store.commits
    queue.send(Message(b"a", recoverable=False))
    kept.pass_time(event_keeping.WAIT_SECONDS - 0.1)
    assert (kept.told, kept.store.commits) == ([], before)
    kept.pass_time(0.2)
    assert kept.told == [(1, "arrived")]
    queue.send(Message(b"b", recoverable=False))  # and the same again
    kept.pass_time(event_keeping.WAIT_SECONDS)
    assert kept.told == [(1, "arrived"), (2, "arrived")]


def test_events_without_a_batch_go_with_the_next_one_in_their_order() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"a", recoverable=False))
    queue.receive(timeout=0)
    queue.send(Message(b"b"))
    assert kept.told == [(1, "arrived"), (2, "received"), (3, "arrived")]
    assert len(keys(kept.store)) == 1


def test_many_events_without_a_batch_do_not_wait() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    for _ in range(event_keeping.WAITING_MAX - 1):
        queue.send(Message(b"a", recoverable=False))
    kept.engine.run_timers()
    assert kept.told == []
    queue.send(Message(b"a", recoverable=False))
    kept.engine.run_timers()  # no time has passed
    assert len(kept.told) == event_keeping.WAITING_MAX


def test_an_orderly_stop_loses_none() -> None:
    kept = Kept()
    kept.manager.create_queue(ORDERS).send(Message(b"a", recoverable=False))
    kept.manager.close()
    kept.store.crash()
    assert kept.told == [(1, "arrived")]


def test_events_of_express_messages_survive_a_failed_commit_of_others() -> None:
    kept = Kept()
    express, queue = kept.manager.create_queue(LEDGER), kept.manager.create_queue(ORDERS)
    kept.store.fail_commit()
    with pytest.raises(FalconMQError):
        queue.send(Message(b"a"))
    express.send(Message(b"b", recoverable=False))
    kept.pass_time(1)
    assert kept.told == [(1, "restored"), (2, "arrived")]
    assert kept.events[1].queue == LEDGER


def test_a_large_turn_makes_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_store, "EVENTS_MAX", 10)
    kept = Kept()
    queue = kept.manager.create_queue(LEDGER, transactional=True)
    with kept.manager.transaction() as transaction:
        for _ in range(25):
            queue.send(Message(b"a"), transaction=transaction)
    assert keys(kept.store) == [1, 11, 21]
    assert [number for number, _ in kept.told] == list(range(1, 26))


# More facts


def test_an_event_tells_where_its_message_was_sent_and_when() -> None:
    kept = Kept()
    kept.manager.create_queue(ORDERS).send(Message(b"a", trace=True))
    (event,) = kept.events
    queue = kept.manager.queue(ORDERS)
    assert event.destination == str(queue.format_name)
    assert event.record.sent_time == START_TIME
    assert event.record.flags == NAMED | TRACED
    sent = queue.peek(timeout=0)
    assert sent.lookup_id is not None
    assert event.record.arrival_number == sent.lookup_id & (1 << 56) - 1
    assert f"{event.source}\\{event.record.message_id}" == str(sent.id)


def test_a_transactional_message_tells_its_place_in_the_stream() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(LEDGER, transactional=True)
    with kept.manager.transaction() as transaction:
        for _ in range(2):
            queue.send(Message(b"a"), transaction=transaction)
    sent = [position.transaction for position in queue]
    assert [event.record.flags for event in kept.events] == [NAMED | ORDERED] * 2
    for event, place in zip(kept.events, sent, strict=True):
        assert place is not None
        row = event.record
        assert (row.sequence_id, row.sequence_number) == (place.sequence_id, place.sequence_number)
        assert row.previous_number == place.previous_sequence_number


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"administration_queue": FAR},
        {"response_queue": r"DIRECT=OS:A\private$\b", "administration_queue": FAR},
        {"response_queue": FAR, "administration_queue": FAR},
        {"response_queue": f"PUBLIC={IDENTIFIER}", "connector_type": IDENTIFIER},
        {"administration_queue": PRIVATE, "destination": PRIVATE},
    ],
    ids=str,
)
def test_facts_are_read_off_the_bytes_as_decoding_reads_them(properties: dict[str, Any]) -> None:
    stored = message(b"body", transactional=True, **properties)
    read, decoded = facts_of(stored), facts_of(stored.packet)
    assert read == decoded
    assert (read.sequence_id, read.sequence_number) == (1, 1)
    assert read.destination.upper() == str(properties.get("destination", read.destination)).upper()


def test_a_message_that_has_no_number_yet_tells_none() -> None:
    stored = message(transactional=True)
    stored.needs_number = True
    assert not facts_of(stored).flags & ORDERED


def test_bytes_that_are_no_packet_leave_the_event_without_facts() -> None:
    stored = message()
    stored.data = bytes(stored.data[:70])
    assert facts_of(stored) == facts_of(None)


# Packets


@pytest.mark.parametrize(
    ("pattern", "is_kept"),
    [
        (ORDERS, True),
        (ORDERS.upper(), True),
        (r".\private$\Ord*", True),
        ("*", True),
        ("x*", False),
    ],
)
def test_the_packets_of_chosen_queues_are_kept(pattern: str, is_kept: bool) -> None:
    kept = Kept(bodies=(pattern,))
    queue = kept.manager.create_queue(r".\private$\orderS")
    queue.send(Message(b"hello"))
    queue.receive(timeout=0)
    arrived, received = kept.events
    assert (arrived.packet is not None) == is_kept
    assert received.packet is None  # the arrival has it
    if arrived.packet is not None:
        assert b"hello" in arrived.packet
        assert arrived.record.size == len(arrived.packet)


def test_journals_are_chosen_by_their_own_names() -> None:
    kept = Kept(bodies=(r"*;journal",))
    queue = kept.manager.create_queue(ORDERS, journaling=True)
    queue.send(Message(b"hello"))
    queue.receive(timeout=0)
    found = {kind_of(event): event for event in kept.events}
    assert found["arrived"].packet is None
    assert b"hello" in (found["journaled"].packet or b"")


def test_packets_of_a_batch_are_split_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_store, "PACKET_BYTES_MAX", 2000)
    kept = Kept(bodies=("*",))
    queue = kept.manager.create_queue(LEDGER, transactional=True)
    with kept.manager.transaction() as transaction:
        for _ in range(6):
            queue.send(Message(b"a" * 900), transaction=transaction)
    assert keys(kept.store) == [1, 3, 5]


# Retention


def size_of_log(store: MemoryStore) -> int:
    return sum(len(value) for _, value in store.scan(TABLE))


def test_the_bounds_are_known_without_a_walk() -> None:
    kept = Kept()
    assert bounds_of(kept.store) == (1, 1, 0)
    queue = kept.manager.create_queue(ORDERS)
    for _ in range(3):
        queue.send(Message(b"a"))
    assert bounds_of(kept.store) == (1, 4, size_of_log(kept.store))


def test_the_oldest_leave_when_there_is_too_much() -> None:
    kept = Kept(max_bytes=3000)
    queue = kept.manager.create_queue(ORDERS)
    for _ in range(100):
        queue.send(Message(b"a"))
    first, following, size = bounds_of(kept.store)
    assert following == 101
    assert size == size_of_log(kept.store)
    one = size // (following - first)
    assert 3000 - one < size <= 3000
    assert [number for number, _ in kept.told] == list(range(first, 101))
    kept.crash()
    kept.manager.queue(ORDERS).send(Message(b"a"))
    assert bounds_of(kept.store)[:2] == (first + 1, 102)


def test_the_oldest_leave_when_they_are_too_old() -> None:
    kept = Kept(max_age_days=2)
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"a"))
    kept.clock.advance(DAY)
    queue.send(Message(b"b"))
    kept.clock.advance(DAY)
    queue.send(Message(b"c"))
    assert bounds_of(kept.store)[:2] == (1, 4)  # two days are not over two days
    kept.clock.advance(1)
    queue.send(Message(b"d"))
    assert bounds_of(kept.store)[:2] == (2, 5)


def test_the_last_block_stays_for_it_tells_the_numbers() -> None:
    kept = Kept(max_bytes=1)
    queue = kept.manager.create_queue(ORDERS)
    for _ in range(3):
        queue.send(Message(b"a"))
    assert kept.told == [(3, "arrived")]
    kept.crash()
    assert bounds_of(kept.store)[:2] == (3, 4)


def test_what_is_much_too_much_leaves_in_turns_of_its_own() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    for _ in range(100):
        queue.send(Message(b"a"))
    kept.retention = Retention(max_bytes=1)
    kept.crash()
    kept.manager.queue(ORDERS).send(Message(b"a"))
    assert 1 < bounds_of(kept.store).first < 101  # a message waits for some, not for all of them
    kept.pass_time(1)
    assert bounds_of(kept.store)[:2] == (101, 102)


def test_a_block_at_the_front_that_cannot_be_read_stops_no_message() -> None:
    kept = Kept(max_bytes=1)
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"a"))
    batch = WriteBatch()
    batch.put(TABLE, key_of(0), b"damaged")
    kept.store.commit([batch])
    kept.crash()
    kept.manager.queue(ORDERS).send(Message(b"b"))
    assert waiting(kept) == 2
    assert bounds_of_newest(kept.store) == 3


def bounds_of_newest(store: MemoryStore) -> int:
    key, value = next(iter(store.scan(TABLE, reverse=True)))
    return event_store.read_head(key, value).end


def test_while_the_disk_is_full_each_block_takes_an_old_one_along() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    for _ in range(4):
        queue.send(Message(b"a"))
    kept.store.is_full = True
    with pytest.raises(FalconMQError):
        queue.send(Message(b"b"))
    kept.store.is_full = False
    operations = watched(kept)
    queue.receive(timeout=0)
    # as many records go as come: the store of a full disk takes that
    assert [(table, value is None) for table, _, value in operations if table != "meta"] == [
        ("messages", True),
        (TABLE, False),
        (TABLE, True),
    ]
    kept.clock.advance(120)
    operations.clear()
    queue.receive(timeout=0)
    assert [value is None for table, _, value in operations if table == TABLE] == [False]


def watched(kept: Kept) -> list[Any]:
    """The operations of all commits from now on."""
    found: list[Any] = []
    commit: Callable[..., None] = kept.store.commit

    def watching(batches: Any) -> None:
        commit(batches)
        for batch in batches:
            found.extend(batch.operations)

    kept.store.commit = watching  # type: ignore[method-assign]  # a look at what really goes in
    return found


# Reading


def test_reading_begins_in_the_middle_of_a_block() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(LEDGER, transactional=True)
    for _ in range(2):
        with kept.manager.transaction() as transaction:
            for _ in range(5):
                queue.send(Message(b"a"), transaction=transaction)
    assert firsts(blocks_from(kept.store, 3)) == [1, 6]
    assert firsts(blocks_from(kept.store, 5)) == [1, 6]
    assert firsts(blocks_from(kept.store, 6)) == [6]
    assert firsts(blocks_from(kept.store, 11)) == []


def firsts(blocks: Any) -> list[int]:
    found: list[Block] = list(blocks)
    return [block.head.first for block in found]


def test_data_from_a_backup_get_numbers_that_nobody_has_seen() -> None:
    kept = Kept()
    queue = kept.manager.create_queue(ORDERS)
    queue.send(Message(b"a"))
    batch = WriteBatch()
    event_store.skip_event_numbers(kept.store, batch)
    kept.store.commit([batch])
    kept.crash()
    kept.manager.queue(ORDERS).send(Message(b"b"))
    old, new = (number for number, _ in kept.told)
    assert (old, new) == (1, 2 + (1 << 40))
    assert firsts(blocks_from(kept.store, 2)) == [new]
    assert bounds_of(kept.store)[:2] == (1, new + 1)
