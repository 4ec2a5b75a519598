"""Rows that belong together, reduced all at once: the numpy behind the ledger.

Numbers and times are int64 with NONE for null; texts are codes into a list of distinct texts, with
-1 for null. A `Groups` knows which rows belong together and makes one value of them: the smallest,
the sum, the one that goes with the latest time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE: Final = np.iinfo(np.int64).min
_MOST: Final = np.iinfo(np.int64).max
TIME: Final = pa.timestamp("us", "UTC")


class Groups:
    """`index` says for each row to which of `count` groups it belongs; every group has a row."""

    def __init__(self, index: NDArray[np.int64], count: int) -> None:
        self.index, self.count = index, count
        self._order = np.argsort(index, kind="stable")
        self._starts = np.searchsorted(index[self._order], np.arange(count))

    def minimum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The smallest that is not null."""
        if not self.count:
            return values[:0]
        there = np.where(values == NONE, _MOST, values)[self._order]
        found = np.minimum.reduceat(there, self._starts)
        return np.where(found == _MOST, NONE, found)

    def maximum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.maximum.reduceat(values[self._order], self._starts) if self.count else values[:0]

    def total(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.add.reduceat(values[self._order], self._starts) if self.count else values[:0]

    def any(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return self.maximum(values.astype(np.int64)) > 0

    def row_of(self, by: NDArray[np.int64], *, last: bool) -> NDArray[np.int64]:
        """The row with the latest or earliest `by` of each group; -1 if all are null."""
        if not self.count:
            return by[:0]
        best = self.maximum(by) if last else self.minimum(by)
        hit = (by == best[self.index]) & (by != NONE)
        rows = np.where(hit, np.arange(len(by)), -1)
        return self.maximum(rows)


def taken(values: NDArray[np.int64], rows: NDArray[np.int64], none: int = NONE) -> Any:
    """Values of rows; null where there is no row."""
    if not len(values):
        return np.full(len(rows), none, np.int64)
    return np.where(rows < 0, none, values[np.maximum(rows, 0)])


class Texts:
    """Distinct texts of a batch: every text is a number here."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.values: list[str] = []

    def code(self, text: str | None) -> int:
        if text is None:
            return -1
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.values)
            self.values.append(text)
        return code

    def codes(self, column: Any) -> NDArray[np.int64]:
        """A column of texts as codes."""
        encoded = pc.dictionary_encode(_whole(column))
        table = np.array([self.code(text) for text in encoded.dictionary.to_pylist()] + [-1])
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes: NDArray[np.int64] = table.astype(np.int64)[indices]
        return codes

    def column(self, codes: NDArray[np.int64]) -> pa.Array:
        """Codes as a column of texts."""
        values = pa.array([*self.values, ""], pa.string())
        mask = codes < 0
        return values.take(pa.array(np.where(mask, len(self.values), codes), mask=mask))

    def mapped(self, change: Callable[[str], str | None]) -> NDArray[np.int64]:
        """For each code the code of another text; one entry more, for null."""
        found = [self.code(change(text)) for text in list(self.values)]
        return np.array([*found, -1], np.int64)


def numbers(column: Any) -> NDArray[np.int64]:
    """A column of numbers, times or booleans."""
    column = _whole(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    filled: NDArray[np.int64] = column.fill_null(NONE).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64)


def as_numbers(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values == NONE)


def as_times(values: NDArray[np.int64]) -> pa.Array:
    return as_numbers(values).cast(TIME)


def combined_codes(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One number for each combination of codes, equal where all of them are."""
    whole = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        width = int(part.max(initial=-1)) + 2
        whole = whole * width + part + 1
        _, whole = np.unique(whole, return_inverse=True)
    return whole


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
