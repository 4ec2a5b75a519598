"""Messages of a queue by the order in which they became readable.

How to think about it. Each message gets an arrival number when it becomes readable: the numbers of
one queue only grow, so "all below 1000" stays a closed book, whatever the priorities are. Whoever
reads a queue by ranges of these numbers misses nothing. The list of places, however, is sorted by
lookup identifiers: priority first, then a sequence.

For a message that was readable at once the arrival number is that sequence, so a range of arrival
numbers is one slice of the list for each priority. The others are late: committed after others were
sent, or moved to a subqueue with their old lookup identifier. Late ones mostly come in rows, as a
transaction does, so `LateArrivals` keeps runs: so many places from here on have so many arrival
numbers from there on. A queue without late messages has no runs and pays nothing.

A range is given back as pieces: neighbours in the list whose arrival numbers are neighbours too.
Whoever reads them from the store walks along them without a search for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from falconmq.manager.positions import LookupIds, MessagePosition, PositionList

if TYPE_CHECKING:
    from falconmq.manager.model import Queue

SEQUENCE_BITS: Final = 56  # of a lookup identifier; the priority is above them
SEQUENCE: Final = (1 << SEQUENCE_BITS) - 1
_BANDS: Final = range(8)  # the priorities, as lookup identifiers have them
_FEW_RUNS: Final = 64  # that nobody minds
_LOOK: Final = 64  # messages that are looked at to find the first one
_PASSED: Final = 10_000  # that are counted at once


@dataclass(slots=True, eq=False)
class _Run:
    """So many places in a row, and as many arrival numbers."""

    arrival: int
    lookup_id: int
    length: int = 1


class LateArrivals:
    """The runs of one queue. Neither their places nor their arrival numbers overlap."""

    def __init__(self) -> None:
        self._by_place: dict[int, _Run] = {}
        self._by_arrival: dict[int, _Run] = {}
        self._places = LookupIds()
        self._arrivals = LookupIds()
        self._crowd = _FEW_RUNS

    def __len__(self) -> int:
        return len(self._by_place)

    def number_of(self, lookup_id: int) -> int:
        """The arrival number of a place, late or not."""
        run = self._at(lookup_id)
        if run is None:
            return lookup_id & SEQUENCE
        return lookup_id - run.lookup_id + run.arrival

    def add(self, arrival: int, lookup_id: int) -> None:
        """A late message has this number. What its place had before, if anything, is forgotten."""
        run = self._at(lookup_id)
        if run is not None:
            if lookup_id - run.lookup_id == arrival - run.arrival:
                return
            self._cut(run, lookup_id)
        before = self._places.before(lookup_id)
        if before is not None:
            run = self._by_place[before]
            length = run.length
            if before + length == lookup_id and run.arrival + length == arrival:
                run.length += 1
                return
        self._insert(_Run(arrival, lookup_id))

    def runs_from(self, arrival: int) -> Iterator[_Run]:
        """The runs with this arrival number or later ones, in their order."""
        start = self._arrivals.before(arrival + 1)
        if start is not None:
            run = self._by_arrival[start]
            if start + run.length > arrival:
                yield run
        following = self._arrivals.after(arrival)
        while following is not None:
            yield self._by_arrival[following]
            following = self._arrivals.after(following)

    def runs_at(self, first: int, last: int) -> Iterator[_Run]:
        """The runs that have places from `first` to `last`, in their order."""
        run = self._at(first)
        if run is not None:
            yield run
        following = self._places.after(first)
        while following is not None and following <= last:
            yield self._by_place[following]
            following = self._places.after(following)

    @property
    def is_crowded(self) -> bool:
        """Whether so many runs came since the last sweep that another one pays."""
        return len(self._by_place) >= self._crowd

    def sweep(self, positions: PositionList) -> None:
        """Forget the runs whose messages are all gone."""
        held = sorted(positions.held)
        for run in list(self._by_place.values()):
            stop = run.lookup_id + run.length
            found = positions.available.after(run.lookup_id - 1)
            if found is not None and found < stop:
                continue
            index = bisect_left(held, run.lookup_id)
            if index == len(held) or held[index] >= stop:
                self._remove(run)
        self._crowd = max(_FEW_RUNS, 2 * len(self._by_place))

    def _at(self, lookup_id: int) -> _Run | None:
        start = self._places.before(lookup_id + 1)
        if start is None:
            return None
        run = self._by_place[start]
        return run if lookup_id < start + run.length else None

    def _cut(self, run: _Run, lookup_id: int) -> None:
        """Take one place out of a run; what was around it stays, in up to two runs."""
        before = lookup_id - run.lookup_id
        behind = run.length - before - 1
        self._remove(run)
        if before:
            self._insert(_Run(run.arrival, run.lookup_id, before))
        if behind:
            self._insert(_Run(run.arrival + before + 1, lookup_id + 1, behind))

    def _insert(self, run: _Run) -> None:
        self._by_place[run.lookup_id] = self._by_arrival[run.arrival] = run
        self._places.add(run.lookup_id)
        self._arrivals.add(run.arrival)

    def _remove(self, run: _Run) -> None:
        del self._by_place[run.lookup_id], self._by_arrival[run.arrival]
        self._places.remove(run.lookup_id)
        self._arrivals.remove(run.arrival)


def note_arrival(positions: PositionList, number: int, lookup_id: int) -> None:
    """A message that is not at the place of its arrival number became readable."""
    late = positions.late
    if late is None:
        late = positions.late = LateArrivals()
    elif late.is_crowded:
        late.sweep(positions)
    late.add(number, lookup_id)


def arrival_number(position: MessagePosition) -> int:
    """Of a message that somebody holds; 0 while its sender has not committed it."""
    return position.message.arrival_number


class Piece(NamedTuple):
    """Neighbours in the list of places, whose arrival numbers are so much smaller."""

    shift: int
    lookup_ids: list[int]

    @property
    def first(self) -> int:
        """The first arrival number."""
        return self.lookup_ids[0] - self.shift


@dataclass(slots=True)
class Span:
    """The messages of a range of arrival numbers, by their places."""

    pieces: list[Piece]  # by their first arrival numbers
    reached: int  # up to here the range was looked through; the rest takes another look

    def __len__(self) -> int:
        return sum(len(piece.lookup_ids) for piece in self.pieces)

    @property
    def is_in_order(self) -> bool:
        """Whether the pieces, one after the other, have the messages in the order of arrival."""
        last = -1
        for shift, lookup_ids in self.pieces:
            if lookup_ids[0] - shift <= last:
                return False
            last = lookup_ids[-1] - shift
        return True

    def numbers(self) -> list[int]:
        """The arrival numbers, in order."""
        found = [number - shift for shift, numbers in self.pieces for number in numbers]
        found.sort()  # nearly sorted already
        return found

    def places(self) -> list[tuple[int, int]]:
        """Arrival numbers with their lookup identifiers, in order."""
        return sorted((n - shift, n) for shift, lookup_ids in self.pieces for n in lookup_ids)

    def first(self, count: int) -> Span:
        """The first messages of it."""
        if len(self) <= count:
            return self
        return self.before(self.numbers()[count])

    def before(self, arrival: int) -> Span:
        """The part in front of an arrival number."""
        cut = [
            Piece(shift, lookup_ids[: bisect_left(lookup_ids, arrival + shift)])
            for shift, lookup_ids in self.pieces
        ]
        return Span([piece for piece in cut if piece.lookup_ids], min(arrival, self.reached))

    def behind(self, arrival: int) -> Span:
        """The part from an arrival number on."""
        cut = [
            Piece(shift, lookup_ids[bisect_left(lookup_ids, arrival + shift) :])
            for shift, lookup_ids in self.pieces
        ]
        return Span([piece for piece in cut if piece.lookup_ids], self.reached)


def arrivals_between(positions: PositionList, start: int, stop: int, count: int) -> Span:
    """The messages with `start <= arrival number < stop`, at most `count` and the first of them.

    Those that a reader holds are there, those that wait for the commit of their sender are not.
    `reached` may be below `stop` although fewer than `count` were found: so much is looked at in
    one turn, and no more.
    """
    stop = max(start, min(stop, SEQUENCE + 1))
    pieces, reached = _late(positions, start, stop, count)
    for band in _BANDS:
        reached = min(reached, _timely(positions, band, start, stop, count, pieces))
    for lookup_id, position in positions.held.items():
        number = arrival_number(position)
        if start <= number < stop and number:
            pieces.append(Piece(lookup_id - number, [lookup_id]))
    span = Span(sorted(pieces, key=_by_arrival), stop)
    if reached < stop:
        span = span.before(reached)
    return span.first(count)


def first_arrival(queue: Queue) -> int:
    """The arrival number of the oldest message; the next one to be given if there is none."""
    start, stop = 0, next_arrival(queue)
    while start < stop:
        span = arrivals_between(queue.positions, start, stop, _LOOK)
        if span.pieces:
            return span.pieces[0].first
        start = span.reached
    return stop


def next_arrival(queue: Queue) -> int:
    """One more than the highest arrival number that is known of a queue; 0 if none is."""
    return queue.arrival_number + 1 if queue.arrival_number else 0


def readable(positions: PositionList) -> tuple[int, int]:
    """How many messages became readable and are still there, and their bytes."""
    unsent = [p.size for p in positions.held.values() if not arrival_number(p)]
    return len(positions) - len(unsent), positions.total_bytes - sum(unsent)


def count_from(queue: Queue, start: int) -> int:
    """How many messages a queue holds from an arrival number on.

    Those before it are counted, for there are hardly any: whoever is beyond has removed them.
    """
    count, _ = readable(queue.positions)
    reached, stop = 0, min(start, next_arrival(queue))
    while reached < stop:
        span = arrivals_between(queue.positions, reached, stop, _PASSED)
        count -= len(span)
        reached = span.reached
    return count


def _by_arrival(piece: Piece) -> int:
    return piece.first


def _late(positions: PositionList, start: int, stop: int, count: int) -> tuple[list[Piece], int]:
    pieces: list[Piece] = []
    if positions.late is None:
        return pieces, stop
    left = looked = count
    for run in positions.late.runs_from(start):
        if run.arrival >= stop:
            break
        shift = run.lookup_id - run.arrival
        first, last = max(start, run.arrival), min(stop, run.arrival + run.length)
        found = positions.available.between(first + shift, last + shift, left)
        if found:
            pieces.append(Piece(shift, found))
            left -= len(found)
        if not left:
            return pieces, found[-1] - shift + 1
        looked -= 1
        if not looked:
            return pieces, last
    return pieces, stop


def _timely(
    positions: PositionList, band: int, start: int, stop: int, count: int, pieces: list[Piece]
) -> int:
    """Add the messages of one priority that were readable at once; how far that goes."""
    shift = band << SEQUENCE_BITS
    found = positions.available.between(start + shift, stop + shift, count)
    if not found:
        return stop
    reached = found[-1] - shift + 1 if len(found) == count else stop
    if positions.late is None:
        pieces.append(Piece(shift, found))
        return reached
    at = 0
    for run in positions.late.runs_at(found[0], found[-1]):
        low = bisect_left(found, run.lookup_id, at)
        if low > at:
            pieces.append(Piece(shift, found[at:low]))
        at = bisect_left(found, run.lookup_id + run.length, low)
    if at < len(found):
        pieces.append(Piece(shift, found[at:]))
    return reached
