"""Counting how long things take: a histogram of plain numbers, cheap enough for every commit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Histogram:
    """How many values fell below each bound. One thread adds, any thread may look.

    A look in the middle of an `add` may see the count without the sum; the next look has both.
    """

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` rise; what is above the last one counts too."""
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1  # at a bound: still below it
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each bound, and how many values were not above it; at last infinity, and all of them."""
        total = 0
        for bound, count in zip((*self._bounds, float("inf")), tuple(self._counts), strict=True):
            total += count
            yield bound, total
