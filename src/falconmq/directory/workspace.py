"""Changes that are being made: a store as it will be, before anything is committed.

Whoever makes one change out of many small ones reads what he wrote a moment ago, while everybody
else still reads the store as it was. `commit` makes all of it true in one step; forgetting the
workspace undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedDict

from falconmq.store.interface import Store, WriteBatch

_Changes = SortedDict[bytes, bytes | None]


class Workspace:
    """A store with changes on top. One thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed: dict[str, _Changes] = {}

    def get(self, table: str, key: bytes) -> bytes | None:
        changed = self._changed.get(table)
        if changed is not None and key in changed:
            return changed[key]
        return self._store.get(table, key)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """As a store does; what changes behind a scan that is under way may or may not show."""
        changed = self._changed.get(table)
        if not changed:
            return self._store.scan(table, start, stop, reverse=reverse)
        keys = changed.irange(start, stop, inclusive=(True, False), reverse=reverse)
        mine = [(key, changed[key]) for key in keys]
        return _merged(self._store.scan(table, start, stop, reverse=reverse), mine, reverse=reverse)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._changed.setdefault(table, SortedDict())[key] = value

    def delete(self, table: str, key: bytes) -> None:
        self._changed.setdefault(table, SortedDict())[key] = None

    def mark(self) -> dict[str, _Changes]:
        """A point to which `restore` goes back."""
        return {table: changed.copy() for table, changed in self._changed.items()}

    def restore(self, mark: dict[str, _Changes]) -> None:
        self._changed = mark

    def commit(self) -> None:
        """Make it true; does nothing at all if nothing was changed."""
        batch = WriteBatch()
        for table, changed in self._changed.items():
            for key, value in changed.items():
                if value is None:
                    batch.delete(table, key)
                else:
                    batch.put(table, key, value)
        if len(batch):
            self._store.commit([batch])
        self._changed.clear()


def _merged(
    stored: Iterator[tuple[bytes, bytes]],
    changed: list[tuple[bytes, bytes | None]],
    *,
    reverse: bool,
) -> Iterator[tuple[bytes, bytes]]:
    """Both in order; of a key that both have, the change counts."""
    waiting = iter(changed)
    change = next(waiting, None)
    for key, record in stored:
        while change is not None and (change[0] > key if reverse else change[0] < key):
            if change[1] is not None:
                yield change[0], change[1]
            change = next(waiting, None)
        if change is None or change[0] != key:
            yield key, record
    while change is not None:
        if change[1] is not None:
            yield change[0], change[1]
        change = next(waiting, None)
