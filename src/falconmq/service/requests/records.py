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
from itertools import accumulate
from operator import add
from typing import Final, NamedTuple

from falconmq.manager.arrivals import Span
from falconmq.manager.core import message_key
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.store import Store
from falconmq.store.interface import Block, StoreView

_ARRIVAL: Final = struct.Struct("<16xQ")  # where a record has its arrival number
_PATH_SIZE: Final = struct.Struct("<24xH")  # the size of the path that stands before the packet
_PREFIX_BYTES: Final = 8  # of a key: the number of the queue


@dataclass(slots=True)
class Rows:
    """Messages as the store keeps them: lists, for that is what columns are made of.

    The records are in one buffer, and every row says where its own begins and how long it is.
    """

    data: bytes
    arrivals: list[int]  # arrival numbers; lookup identifiers, in queue order
    lookup_ids: list[int]
    starts: list[int]
    sizes: list[int]

    @classmethod
    def of(cls, records: Sequence[bytes], lookup_ids: Sequence[int]) -> Rows:
        """Records that are there already."""
        sizes = [len(record) for record in records]
        starts = list(accumulate(sizes, initial=0))[:-1]
        return cls(b"".join(records), list(lookup_ids), list(lookup_ids), starts, sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def record(self, row: int) -> bytes:
        start = self.starts[row]
        return self.data[start : start + self.sizes[row]]

    def message_sizes(self) -> list[int]:
        """Bytes of the message in each record, as quotas count them."""
        path_sizes = (_PATH_SIZE.unpack_from(self.data, start)[0] for start in self.starts)
        return [
            size - _PATH_SIZE.size - path_size
            for size, path_size in zip(self.sizes, path_sizes, strict=True)
        ]

    def in_order(self) -> Rows:
        """The same by arrival."""
        order = sorted(range(len(self)), key=self.arrivals.__getitem__)
        lists = (self.arrivals, self.lookup_ids, self.starts, self.sizes)
        arrivals, lookup_ids, starts, sizes = ([each[row] for row in order] for each in lists)
        return Rows(self.data, arrivals, lookup_ids, starts, sizes)


class _Some(NamedTuple):
    """Lookup identifiers of messages, and their records one behind the other, as a Block has."""

    lookup_ids: Sequence[int]
    data: bytes
    sizes: Sequence[int]
    gap: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, bytes]]) -> _Some:
        records = [record for _, record in pairs]
        sizes = [len(record) for record in records]
        return cls([number for number, _ in pairs], b"".join(records), sizes, 0)


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
                for some in _pieces(view, page, piece.lookup_ids):
                    cut = taking.take(piece.shift, some)
                    if cut is not None:
                        return taking.rows(), cut
        return taking.rows(), None


class _Taking:
    """Rows as they come, up to a number of bytes."""

    def __init__(self, limit: int, is_suspect: bool) -> None:
        self._left = limit
        self._is_suspect = is_suspect  # a message may have been moved away and back meanwhile
        self._parts: list[bytes] = []
        self._arrivals: list[int] = []
        self._lookup_ids: list[int] = []
        self._sizes: list[int] = []
        self._gaps: list[int] = []

    def take(self, shift: int, some: _Some) -> int | None:
        """Add rows; the arrival number of the first one that is too much, if there is one."""
        lookup_ids, data, sizes, gap = some
        if len(data) < self._left and not self._is_suspect:  # the usual case
            self._add(shift, some)
            self._left -= len(data)
            return None
        ends = accumulate(size + gap for size in sizes)
        for lookup_id, size, end in zip(lookup_ids, sizes, ends, strict=True):
            if self._left <= 0:
                return lookup_id - shift
            record = data[end - gap - size : end - gap]
            # One that has another number now comes again where that is.
            if not self._is_suspect or _ARRIVAL.unpack_from(record)[0] == lookup_id - shift:
                self._add(shift, _Some((lookup_id,), record, (size,), 0))
                self._left -= size
        return None

    def rows(self) -> Rows:
        """What was taken."""
        sizes, gaps = self._sizes, self._gaps
        starts = list(accumulate(map(add, sizes, gaps), initial=0))[:-1]
        data = b"".join(self._parts)
        return Rows(data, self._arrivals, self._lookup_ids, starts, sizes)

    def _add(self, shift: int, some: _Some) -> None:
        lookup_ids, data, sizes, gap = some
        self._parts.append(data)
        self._arrivals += [number - shift for number in lookup_ids] if shift else lookup_ids
        self._lookup_ids += lookup_ids
        self._sizes += sizes
        self._gaps += [gap] * len(sizes)


_NONE: Final = Span([], 0)


def _pieces(view: StoreView, page: Page, lookup_ids: list[int]) -> Iterator[_Some]:
    """The records of neighbours, in order; of some of them memory may have the message."""
    kept, number = page.kept, page.queue.number
    if not kept or kept.keys().isdisjoint(lookup_ids):
        yield from _stored(view, number, lookup_ids)
        return
    absent = [lookup_id for lookup_id in lookup_ids if lookup_id not in kept]
    stored = (pair for some in _stored(view, number, absent) for pair in _pairs(some))
    present = ((n, kept[n].encode()) for n in lookup_ids if n in kept)
    for pair in heapq.merge(stored, present):
        yield _Some.of([pair])


def _pairs(some: _Some) -> Iterator[tuple[int, bytes]]:
    return zip(some.lookup_ids, Block((), *some[1:]).values(), strict=True)


def _stored(view: StoreView, queue_number: int, lookup_ids: list[int]) -> Iterator[_Some]:
    """What the store has of some places, which are in order and mostly neighbours."""
    at = 0
    if lookup_ids and lookup_ids[-1] - lookup_ids[0] == len(lookup_ids) - 1:  # none between them
        prefix = message_key(queue_number, 0)[:_PREFIX_BYTES]
        for block in view.neighbours("messages", prefix, lookup_ids[0], len(lookup_ids)):
            behind = at + len(block.sizes)
            yield _Some(lookup_ids[at:behind], block.data, block.sizes, block.gap)
            at = behind
    yield from _searched(view, queue_number, lookup_ids[at:])


def _searched(view: StoreView, queue_number: int, lookup_ids: list[int]) -> Iterator[_Some]:
    """The same where some may be gone, or others have come between them."""
    if not lookup_ids:
        return
    start = message_key(queue_number, lookup_ids[0])
    stop = message_key(queue_number, lookup_ids[-1] + 1)
    at = 0
    for block in view.blocks("messages", start, stop):
        numbers = struct.unpack(f">{2 * len(block.keys)}Q", b"".join(block.keys))[1::2]
        if numbers == tuple(lookup_ids[at : at + len(numbers)]):
            at += len(numbers)
            yield _Some(numbers, block.data, block.sizes, block.gap)
        else:
            behind = bisect_right(lookup_ids, numbers[-1])
            wanted = set(lookup_ids[at:behind])
            at = behind
            found = zip(numbers, block.values(), strict=True)
            yield _Some.of([pair for pair in found if pair[0] in wanted])
