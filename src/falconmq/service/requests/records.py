"""The records of many messages, read out of the store beside the work of the queue manager.

How to think about it. One short turn notes which places a page has (`Page`), and takes along the
messages that only memory has: express ones, held ones, those on their way to the disk. Then a
thread reads the others from one snapshot of the store, walking along neighbours instead of asking
for each. What left the queue between the turn and the snapshot is missing: it is not there any
more. What came is not in the page.

Batches are bounded by bytes. Pieces in the order of the rows are simply cut where the bound is. If
pieces have to be mixed, as those of several priorities, fewer messages are tried.
"""

from __future__ import annotations

import heapq
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from falconmq.manager.arrivals import Span
from falconmq.manager.core import message_key
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.store import Store
from falconmq.store.interface import StoreReader

_ARRIVAL: Final = struct.Struct("<16xQ")  # where a record has its arrival number
_PATH_SIZE: Final = struct.Struct("<24xH")  # the size of the path that stands before the packet
_FIRST: Final = 16  # records that are read at once, before it is known how long they are
_MOST: Final = 1024
_SOME_BYTES: Final = 4 << 20

_Some = tuple[Sequence[int], Sequence[bytes]]
"""Lookup identifiers, and the records of these messages."""


@dataclass(slots=True)
class Rows:
    """Messages as the store keeps them: three lists, for that is what columns are made of."""

    arrivals: list[int] = field(default_factory=list)  # lookup identifiers, in queue order
    lookup_ids: list[int] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records)

    def in_order(self) -> Rows:
        """The same by arrival."""
        order = sorted(range(len(self)), key=self.arrivals.__getitem__)
        return Rows(
            [self.arrivals[index] for index in order],
            [self.lookup_ids[index] for index in order],
            [self.records[index] for index in order],
        )


@dataclass(slots=True)
class Page:
    """Places of a queue, as one turn saw them."""

    queue: Queue
    span: Span
    kept: dict[int, StoredMessage] = field(default_factory=dict)  # that memory had
    locked: frozenset[int] = frozenset()  # of them those that a reader held
    moved_in: int = 0  # as the queue had it
    is_by_arrival: bool = True


def page_of(queue: Queue, span: Span, *, is_by_arrival: bool = True) -> Page:
    """What a reader needs of a span, noted in the turn that cut it."""
    positions = queue.positions
    found: dict[int, MessagePosition] = {}
    for piece in span.pieces:
        found |= positions.in_memory(piece.lookup_ids)
    kept = {lookup_id: position.message for lookup_id, position in found.items()}
    locked = frozenset(lookup_id for lookup_id in found if lookup_id in positions.held)
    return Page(queue, span, kept, locked, queue.moved_in, is_by_arrival)


class PageReader:
    """Reads a page in batches. In a thread: it waits for the disk."""

    def __init__(self, store: Store, page: Page, limit_bytes: int) -> None:
        self._store = store
        self._page = page
        self._limit = limit_bytes
        self._rest = page.span
        self._count = len(page.span)  # messages to try at once

    @property
    def is_done(self) -> bool:
        return not self._rest.pieces

    def read(self) -> Rows:
        """The next rows, about as many as the limit allows; none if all of them are gone."""
        while True:
            span = self._rest.first(self._count)
            rows, cut = self._read(span)
            if cut is None:
                self._rest = _NONE if span is self._rest else self._rest.behind(span.reached)
                self._count = min(2 * self._count, len(self._page.span))
            elif span.is_in_order:
                self._rest = self._rest.behind(cut)
            else:
                self._count = max(1, len(span) // 2)
                continue
            return rows if span.is_in_order else rows.in_order()

    def _read(self, span: Span) -> tuple[Rows, int | None]:
        """The rows of a span; if that was too much, also the number of the one it ended before."""
        page = self._page
        with self._store.snapshot() as view:
            is_suspect = page.is_by_arrival and page.queue.moved_in != page.moved_in
            taking = _Taking(self._limit, is_suspect)
            for piece in span.pieces:
                for lookup_ids, records in _pieces(view, page, piece.lookup_ids):
                    cut = taking.take(piece.shift, lookup_ids, records)
                    if cut is not None:
                        return taking.rows, cut
        return taking.rows, None


class _Taking:
    """Rows as they come, up to a number of bytes."""

    def __init__(self, limit: int, is_suspect: bool) -> None:
        self.rows = Rows()
        self._left = limit
        self._is_suspect = is_suspect  # a message may have been moved away and back meanwhile

    def take(self, shift: int, lookup_ids: Sequence[int], records: Sequence[bytes]) -> int | None:
        """Add rows; the arrival number of the first one that is too much, if there is one."""
        size = sum(map(len, records))
        if size < self._left and not self._is_suspect:  # the usual case
            rows = self.rows
            rows.arrivals += [lookup_id - shift for lookup_id in lookup_ids]
            rows.lookup_ids += lookup_ids
            rows.records += records
            self._left -= size
            return None
        for lookup_id, record in zip(lookup_ids, records, strict=True):
            if self._left <= 0:
                return lookup_id - shift
            self._take_one(lookup_id - shift, lookup_id, record)
        return None

    def _take_one(self, arrival: int, lookup_id: int, record: bytes) -> None:
        if self._is_suspect and _ARRIVAL.unpack_from(record)[0] != arrival:
            return  # it has another number now, and comes again where that is
        self.rows.arrivals.append(arrival)
        self.rows.lookup_ids.append(lookup_id)
        self.rows.records.append(record)
        self._left -= len(record)


_NONE: Final = Span([], 0)


def size_of(record: bytes) -> int:
    """Bytes of the message in a record, as quotas count them."""
    path_size: int = _PATH_SIZE.unpack_from(record)[0]
    return len(record) - _PATH_SIZE.size - path_size


def _pieces(view: StoreReader, page: Page, lookup_ids: list[int]) -> Iterator[_Some]:
    """The records of neighbours, in order; of some of them memory may have the message."""
    kept, number = page.kept, page.queue.number
    if not kept or kept.keys().isdisjoint(lookup_ids):
        yield from _stored(view, number, lookup_ids)
        return
    absent = [lookup_id for lookup_id in lookup_ids if lookup_id not in kept]
    stored = (pair for some in _stored(view, number, absent) for pair in zip(*some, strict=True))
    present = ((n, kept[n].encode()) for n in lookup_ids if n in kept)
    for lookup_id, record in heapq.merge(stored, present):
        yield (lookup_id,), (record,)


def _stored(view: StoreReader, queue_number: int, lookup_ids: list[int]) -> Iterator[_Some]:
    """What the store has of some places, which are in order and mostly neighbours."""
    if not lookup_ids:
        return
    start = message_key(queue_number, lookup_ids[0])
    stop = message_key(queue_number, lookup_ids[-1] + 1)
    scan = view.scan("messages", start, stop)
    at, count = 0, _FIRST
    while some := list(islice(scan, count)):
        keys, records = zip(*some, strict=True)
        found: tuple[int, ...] = struct.unpack(f">{2 * len(keys)}Q", b"".join(keys))[1::2]
        if found == tuple(lookup_ids[at : at + len(found)]):
            at += len(found)
            yield found, records
        else:  # some are gone, or others came between them
            behind = bisect_right(lookup_ids, found[-1])
            wanted = set(lookup_ids[at:behind])
            pairs = [pair for pair in zip(found, records, strict=True) if pair[0] in wanted]
            at = behind
            yield [number for number, _ in pairs], [record for _, record in pairs]
        usual = sum(map(len, records)) // len(records) + 1
        count = max(1, min(2 * count, _MOST, _SOME_BYTES // usual))
