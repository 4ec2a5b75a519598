"""The event log as runs of numbers without holes.

There is one run, as a rule. But a queue manager that was restored from a backup does not know which
numbers it gave after that: it goes on far ahead, so that no number means two events. Then the log
has a jump. Batches end at it, and the next one begins behind it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

JUMP: Final = 1 << 39  # no log holds so many events; a jump is twice as far

Run: TypeAlias = tuple[int, int]  # the first number, and the one behind the last


def dense_runs(
    first: int, stop: int, following: Callable[[int], int], known: Sequence[Run] = ()
) -> list[Run]:
    """The runs of a log that holds numbers from `first` up to `stop`.

    `following` says which number is the first at or above another. `known` are the runs of before:
    since then the log can only have lost events in front and gained some at its end.
    """
    runs: list[Run] = []
    if known and stop - known[-1][0] < JUMP:
        left = [(max(start, first), end) for start, end in known[:-1] if end > first]
        return [*left, (max(known[-1][0], first), stop)]
    while stop - first >= JUMP:
        start = following(stop - JUMP)  # it is in the jump: nothing is so near in front of the end
        runs.insert(0, (start, stop))
        stop = first + bisect_left(range(first, start), 1, key=lambda n: following(n) >= start)
    return [(first, stop), *runs]


def run_of(number: int, runs: Sequence[Run]) -> Run:
    """The run that a number is in, or the next one behind it."""
    return next((run for run in runs if number < run[1]), runs[-1])
