"""The event log in the store: how a block of events is written, read and found.

How to think about it. Events are numbered without gaps, and the log is a row of blocks: the events
of one batch (or of some express turns) stand together in one record of the table `events`, whose
key is the number of the first of them. A block goes into the same batch as what it tells of, so an
event is there if and only if its change is.

    head       version, count, number of the first, bytes of all blocks before, first and last time
    records    one of fixed size for each event, little-endian, so that numpy reads them as a table
    texts      each distinct one once: queues, details, destinations, `{GUID}` of the senders;
               records name them by their place, from 1 on
    packets    of those events that keep one, in their order

`bytes_before` counts all that was ever written, so the size of the log is the difference between
its two ends and needs no walk. Blocks are deleted at the front only, and the last one stays: it
tells how far the numbers are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import accumulate, islice, pairwise
from typing import Final, NamedTuple

from falconmq.errors import MqStatus, StoreError
from falconmq.store.interface import StoreReader, WriteBatch
from falconmq.wire.reader import Buffer

TABLE: Final = "events"
VERSION: Final = 1
FIRST_NUMBER: Final = 1
EVENTS_MAX: Final = 2_000  # of one block
PACKET_BYTES_MAX: Final = 1 << 20  # of one block, if it holds more than one

# Flags of a record
TRACED: Final = 0x01  # its sender asked for reports of every hop
NAMED: Final = 0x02  # it is about a message: its identifier is there
ORDERED: Final = 0x04  # it has a place in a stream
PACKED: Final = 0x08  # its packet is there

_HEAD: Final = struct.Struct("<BxHIQQqqIII")
RECORD: Final = struct.Struct("<qBBHIIIIIIQQIQIII")
_TEXT_SIZE: Final = struct.Struct("<I")
_META: Final = "meta"
_FLOOR: Final = b"event_number"  # no event gets a number below it
_RESTORE_STEP: Final = 1 << 40  # more events than anybody has seen since a backup


class Head(NamedTuple):
    """How a block begins."""

    version: int
    record_size: int
    events: int  # how many
    first: int  # number of its first event
    bytes_before: int  # of all blocks that were ever written before it
    first_at: int  # microseconds
    last_at: int
    texts: int  # how many
    texts_size: int  # their sizes and their bytes
    packets_size: int

    @property
    def end(self) -> int:
        """The number behind its last event."""
        return self.first + self.events


class Record(NamedTuple):
    """One event as a block has it."""

    at: int  # microseconds
    kind: int
    flags: int
    reason: int
    queue: int  # texts by their place; 0: there is none
    detail: int
    destination: int
    source: int
    message_id: int
    sent_time: int  # seconds; 0: not known
    lookup_id: int
    arrival_number: int
    size: int
    sequence_id: int
    sequence_number: int
    previous_number: int
    packet_size: int


class Block(NamedTuple):
    """A block in its parts; nothing of them is copied."""

    head: Head
    size: int  # bytes of the whole
    records: memoryview
    text_sizes: memoryview
    texts: memoryview
    packets: memoryview


class StoredEvent(NamedTuple):
    """One event with its texts, as people and programs without Arrow read it."""

    number: int
    record: Record
    queue: str | None
    detail: str | None
    destination: str | None
    source: str | None  # `{GUID}`
    packet: bytes | None


class Bounds(NamedTuple):
    """What of the log is there."""

    first: int  # number of the oldest event; `next` if there is none
    next: int  # number that the next event gets
    bytes: int


class End(NamedTuple):
    """How far the log is."""

    next: int  # number that the next event gets
    newest: int  # number that the newest block begins with; 0 if there is none
    bytes_written: int  # of all blocks that there ever were


class BlockBuilder:
    """A block that is being filled; `encode` when it is its turn."""

    __slots__ = ("_packets", "_records", "_texts", "first_at", "last_at", "packets_size")

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self._texts: dict[str, int] = {}
        self._packets: list[Buffer] = []
        self.packets_size = 0
        self.first_at = self.last_at = 0

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_full(self) -> bool:
        return len(self._records) >= EVENTS_MAX or self.packets_size >= PACKET_BYTES_MAX

    def text(self, text: str) -> int:
        """The place of a text; 0 if it is empty."""
        if not text:
            return 0
        place = self._texts.get(text)
        if place is None:
            place = self._texts[text] = len(self._texts) + 1
        return place

    def add(self, at: int, record: bytes, packet: Buffer | None = None) -> None:
        """The next event; `record` is packed with RECORD and this block's places of texts."""
        if not self._records:
            self.first_at = at
        self.last_at = at
        self._records.append(record)
        if packet is not None:
            self._packets.append(packet)
            self.packets_size += len(packet)

    def encode(self, first: int, bytes_before: int) -> bytes:
        texts = [text.encode("utf-8", "replace") for text in self._texts]
        sizes = [len(text) for text in texts]
        head = _HEAD.pack(
            VERSION,
            RECORD.size,
            len(self._records),
            first,
            bytes_before,
            self.first_at,
            self.last_at,
            len(texts),
            _TEXT_SIZE.size * len(texts) + sum(sizes),
            self.packets_size,
        )
        packed = struct.pack(f"<{len(sizes)}I", *sizes)
        return b"".join((head, *self._records, packed, *texts, *self._packets))


def key_of(number: int) -> bytes:
    """The key of the block that begins with an event."""
    return number.to_bytes(8, "big")


def read_head(key: bytes, value: Buffer) -> Head:
    """How a block begins; StoreError if it cannot be one."""
    number = int.from_bytes(key, "big")
    if len(value) < _HEAD.size:
        raise damaged(number, f"{len(value)} bytes are too few")
    head = Head._make(_HEAD.unpack_from(value))
    if head.version != VERSION:
        raise damaged(number, f"version {head.version}, this FalconMQ writes {VERSION}")
    if head.record_size != RECORD.size or not head.events or head.first != number:
        raise damaged(number, f"it says {head.events} events of {head.record_size} bytes")
    if head.texts_size < _TEXT_SIZE.size * head.texts:
        raise damaged(number, f"{head.texts} texts do not fit into {head.texts_size} bytes")
    size = _HEAD.size + RECORD.size * head.events + head.texts_size + head.packets_size
    if len(value) != size:
        raise damaged(number, f"it has {len(value)} bytes and says {size}")
    return head


def open_block(key: bytes, value: Buffer) -> Block:
    """The parts of a block; StoreError if they do not fit together."""
    head = read_head(key, value)
    view = memoryview(value)
    records = _HEAD.size + RECORD.size * head.events
    sizes = records + _TEXT_SIZE.size * head.texts
    texts = records + head.texts_size
    block = Block(
        head,
        len(view),
        view[_HEAD.size : records],
        view[records:sizes],
        view[sizes:texts],
        view[texts:],
    )
    if sum(_text_sizes(block)) != len(block.texts):
        raise damaged(head.first, "its texts are not as long as it says")
    return block


def _text_sizes(block: Block) -> tuple[int, ...]:
    return struct.unpack(f"<{block.head.texts}I", block.text_sizes)


def events_of(block: Block) -> Iterator[StoredEvent]:
    """The events of a block, one by one; StoreError if it names what it does not hold."""
    head = block.head
    ends = accumulate(_text_sizes(block), initial=0)
    texts: list[str | None] = [None]
    texts += [str(block.texts[start:end], "utf-8", "replace") for start, end in pairwise(ends)]
    at = 0
    for number, fields in enumerate(RECORD.iter_unpack(block.records), head.first):
        record = Record._make(fields)
        packet = None
        if record.flags & PACKED:
            packet = bytes(block.packets[at : at + record.packet_size])
            at += record.packet_size
        if max(record.queue, record.detail, record.destination, record.source) >= len(texts):
            raise damaged(head.first, f"event {number} names a text that is not there")
        yield StoredEvent(
            number,
            record,
            texts[record.queue],
            texts[record.detail],
            texts[record.destination],
            texts[record.source],
            packet,
        )
    if at != len(block.packets):
        raise damaged(head.first, "its packets are not as long as it says")


def end_of(store: StoreReader) -> End:
    """How far the log is; one look, however long it is."""
    floor = store.get(_META, _FLOOR)
    start = FIRST_NUMBER if floor is None else int.from_bytes(floor, "big")
    newest = next(iter(store.scan(TABLE, reverse=True)), None)
    if newest is None:
        return End(start, 0, 0)
    last = read_head(*newest)
    return End(max(last.end, start), last.first, last.bytes_before + len(newest[1]))


def bounds_of(store: StoreReader) -> Bounds:
    """Where the log begins and ends; two looks."""
    end = end_of(store)
    oldest = next(iter(store.scan(TABLE)), None)
    if oldest is None:
        return Bounds(end.next, end.next, 0)
    first = read_head(*oldest)
    return Bounds(first.first, end.next, end.bytes_written - first.bytes_before)


def blocks_from(store: StoreReader, number: int) -> Iterator[Block]:
    """The blocks from the one on that holds an event, or else from the next one on."""
    found = islice(store.scan(TABLE, stop=key_of(number + 1), reverse=True), 1)
    start = next((key for key, value in found if read_head(key, value).end > number), None)
    for key, value in store.scan(TABLE, key_of(number) if start is None else start):
        yield open_block(key, value)


def skip_event_numbers(store: StoreReader, batch: WriteBatch) -> None:
    """Let the events of data from a backup have numbers that nobody has seen yet.

    Whoever reads the log sees the jump: what was recorded since the backup is lost.
    """
    following = bounds_of(store).next + _RESTORE_STEP
    batch.put(_META, _FLOOR, following.to_bytes(8, "big"))


def damaged(number: int, problem: str) -> StoreError:
    return StoreError(
        f"the block of events from number {number} on cannot be read: {problem}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="messages are not affected: with keep = false in [events] the service works without",
    )
