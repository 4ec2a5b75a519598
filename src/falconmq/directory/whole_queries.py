"""Queries that are asked for as a whole, so that their rows need no more waiting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from falconmq.directory.base import DirectoryBase
from falconmq.manager.directory_backend import NO_ROW, Filters, SortKey
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult


def ask_whole(
    directory: DirectoryBase,
    type_name: str,
    filters: Filters,
    attributes: Sequence[str] | None,
    sort_order: Sequence[SortKey] | None,
) -> tuple[DirectoryResult, list[Row]]:
    """All rows of a query; SUCCESS if there are no more."""
    result, handle = directory.begin(type_name, filters, attributes, sort_order)
    rows = []
    while result is DirectoryResult.SUCCESS:
        result, row = directory.next(handle)
        rows.append(row)
    if handle:
        directory.end(handle)
    is_whole = result is DirectoryResult.END_OF_DATA
    return (DirectoryResult.SUCCESS if is_whole else result), rows[:-1]


class WholeQueries:
    """The rows of queries that somebody has not read to the end yet, by their handles."""

    def __init__(self) -> None:
        self._rows: dict[int, list[Row]] = {}
        self._handles = count(1)

    def begin(self, rows: Sequence[Row]) -> int:
        handle = next(self._handles)
        self._rows[handle] = list(reversed(rows))
        return handle

    def next(self, handle: int) -> tuple[DirectoryResult, Row]:
        rows = self._rows.get(handle)
        if rows is None:
            return DirectoryResult.GENERIC_ERROR, NO_ROW
        if not rows:
            return DirectoryResult.END_OF_DATA, NO_ROW
        return DirectoryResult.SUCCESS, rows.pop()

    def end(self, handle: int) -> DirectoryResult:
        is_known = self._rows.pop(handle, None) is not None
        return DirectoryResult.SUCCESS if is_known else DirectoryResult.GENERIC_ERROR
