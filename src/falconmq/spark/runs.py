"""Runs of a transactional stream: gaps, repetitions and wrong order, by whole runs at a time.

How to think about it. A sender numbers the messages of a stream, and each names the number of the
one before it. Numbers may be left out (a message expired before it was sent), so a message follows
another if it names it as its predecessor, not if its number is one higher. Arrivals that follow one
another are a *run*; a healthy stream of a million messages is one run. First `collapse` makes runs
of arrivals, with numpy; then `fold` adds them to what is known of the stream, run by run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Run(NamedTuple):
    """Arrivals of one stream, each the successor of the one before it."""

    previous: int  # what its first message names; 0: it is the first of its stream
    low: int
    high: int
    size: int
    first_at: datetime
    last_at: datetime


class Missing(NamedTuple):
    """Numbers that were named, or passed over, and have not arrived."""

    low: int
    high: int
    after: datetime  # the last arrival before it was noticed
    at: datetime  # when it was noticed


class Disorder(NamedTuple):
    """Messages that arrived after their successors."""

    low: int
    high: int
    size: int
    at: datetime


@dataclass(frozen=True)
class Stream:
    """How far a stream has come in a queue."""

    first_number: int
    last_number: int
    arrived: int
    first_at: datetime
    last_at: datetime
    repeated: int = 0
    out_of_order: int = 0
    missing: tuple[Missing, ...] = field(default=())


def run_starts(
    streams: NDArray[np.int64], numbers: NDArray[np.int64], previous: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Where runs begin, in arrivals that are sorted by stream and then by arrival."""
    if not len(numbers):
        return np.zeros(0, np.int64)
    breaks = (streams[1:] != streams[:-1]) | (previous[1:] != numbers[:-1])
    breaks |= numbers[1:] <= numbers[:-1]
    return np.concatenate(([0], np.flatnonzero(breaks) + 1)).astype(np.int64)


def fold(stream: Stream | None, runs: Iterable[Run]) -> tuple[Stream | None, list[Disorder]]:
    """Add runs, in order of arrival; also which of them came too late."""
    found: list[Disorder] = []
    for run in runs:
        for part in _parts(stream, run):
            stream, disorder = _add(stream, part)
            if disorder is not None:
                found.append(disorder)
    return stream, found


def _parts(stream: Stream | None, run: Run) -> list[Run]:
    """A run that begins below the highest number and goes beyond it is two: late, and new."""
    if stream is None or not run.low <= stream.last_number < run.high:
        return [run]
    middle = stream.last_number
    late = min(run.size - 1, middle - run.low + 1)  # exact unless the sender left numbers out
    return [
        run._replace(high=middle, size=late),
        run._replace(low=middle + 1, previous=middle, size=run.size - late),
    ]


def _add(stream: Stream | None, run: Run) -> tuple[Stream, Disorder | None]:
    if stream is None:  # a log may begin in the middle of a stream: nothing is missing
        first = Stream(run.low, run.high, run.size, run.first_at, run.last_at)
        return first, None
    grown = replace(
        stream,
        last_number=max(stream.last_number, run.high),
        arrived=stream.arrived + run.size,
        last_at=run.last_at,
    )
    if run.low > stream.last_number:
        if run.previous <= stream.last_number:
            return grown, None
        gap = Missing(stream.last_number + 1, run.previous, stream.last_at, run.first_at)
        return replace(grown, missing=(*stream.missing, gap)), None
    return _add_late(stream, grown, run)


def _add_late(stream: Stream, grown: Stream, run: Run) -> tuple[Stream, Disorder | None]:
    """A run whose numbers were passed already: it fills gaps, or repeats what is there."""
    left: list[Missing] = []
    low, high = None, 0
    for gap in stream.missing:
        if run.high < gap.low or run.low > gap.high:
            left.append(gap)
            continue
        inner_low, inner_high = max(gap.low, run.low), min(gap.high, run.high)
        low = inner_low if low is None else low
        high = inner_high
        if gap.low < inner_low:
            left.append(gap._replace(high=inner_low - 1))
        if inner_high < gap.high:
            left.append(gap._replace(low=inner_high + 1))
    if low is None:
        return replace(grown, repeated=stream.repeated + run.size), None
    count = min(run.size, high - low + 1)
    grown = replace(
        grown,
        missing=tuple(left),
        out_of_order=stream.out_of_order + count,
        repeated=stream.repeated + run.size - count,
    )
    return grown, Disorder(low, high, count, run.first_at)
