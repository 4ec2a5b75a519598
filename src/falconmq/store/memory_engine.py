"""A store in memory that can be made to fail: for tests and the simulator.

It keeps the contract of `interface` to the letter. What was committed survives `crash`, which is
what the end of a process leaves of a real store; batches that nobody committed were never here.
`fail_commit` and `is_full` bring the bad days: an error before anything happened, the end of the
process just before or just after the sync, a full disk.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Self

from sortedcontainers import SortedDict

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.store.interface import (
    KEY_BYTES_MAX,
    TABLES_MAX,
    Block,
    Durability,
    StoreStatistics,
    StoreView,
    WriteBatch,
    bad_key,
    too_many_tables,
)
from falconmq.store.lmdb_engine import LmdbStore

NO_LIMIT: Final = 1 << 63
_PIECE: Final = 64  # records a scan reads before it lets the writer in again
_BLOCK: Final = 64  # records of a block

_Table = SortedDict[bytes, bytes]


class ProcessCrash(BaseException):
    """The process that used the store ended here; nobody may catch it but the simulator."""


@dataclass(slots=True)
class _Failure:
    commits_before: int
    error: BaseException
    is_durable: bool


class MemoryStore:
    """Tables in memory; see the module."""

    def __init__(self, *, limit_bytes: int = NO_LIMIT) -> None:
        self.durability = Durability.SYNC
        self.limit_bytes = limit_bytes
        self.is_full = False  # no batch that puts anything is taken
        self.commits = 0
        self._tables: dict[str, _Table] = {}
        self._used_bytes = 0
        self._mutex = threading.Lock()
        self._failures: list[_Failure] = []
        self._snapshots: set[_Snapshot] = set()
        self._is_closed = False
        self._is_dead = False

    def fail_commit(
        self, number: int = 1, error: BaseException | None = None, *, durable: bool = False
    ) -> None:
        """Let the `number`-th commit from now fail, once.

        With `durable` it is made durable, and then the process ends before it could return:
        a ProcessCrash, after which the store has to be brought back with `crash`.
        """
        assert number >= 1
        if error is None:
            error = ProcessCrash() if durable else _broken()
        self._failures.append(_Failure(self.commits + number - 1, error, durable))

    def crash(self) -> None:
        """The process ended and a new one opens the store: it has exactly what was committed."""
        with self._mutex:
            for snapshot in self._snapshots:
                snapshot.is_closed = True
            self._snapshots.clear()
            self._failures.clear()
            self._is_closed = self._is_dead = False

    def get(self, table: str, key: bytes) -> bytes | None:
        with self._mutex:
            self._check_open()
            records = self._tables.get(table)
            return None if records is None else records.get(key)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        while True:
            with self._mutex:
                self._check_open()
                found = _range(self._tables.get(table), start, stop, reverse=reverse)
                piece = list(islice(found, _PIECE))
            yield from piece
            if len(piece) < _PIECE:
                return
            if reverse:
                stop = piece[-1][0]
            else:
                start = piece[-1][0] + b"\0"

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        with self._mutex:
            self._check_open()
            failure = self._due_failure()
            self.commits += 1
            if failure is not None and not failure.is_durable:
                self._is_dead = isinstance(failure.error, ProcessCrash)
                raise failure.error
            self._apply(batches)
            if failure is not None:
                self._is_dead = True
                raise failure.error

    @contextmanager
    def snapshot(self) -> Iterator[StoreView]:
        """A copy of everything: fine for tests, and it cannot change behind the reader's back."""
        with self._mutex:
            self._check_open()
            copies = {name: records.copy() for name, records in self._tables.items()}
            snapshot = _Snapshot(copies)
            self._snapshots.add(snapshot)
        try:
            yield snapshot
        finally:
            snapshot.is_closed = True
            self._snapshots.discard(snapshot)

    def write_copy(self, descriptor: int) -> dict[str, int]:
        """By way of a store on disk: a backup does not tell where it comes from."""
        batch = WriteBatch()
        with self._mutex:
            self._check_open()
            for name, records in self._tables.items():
                for key, value in records.items():
                    batch.put(name, key, value)
        with (
            tempfile.TemporaryDirectory(prefix="falconmq-") as place,
            LmdbStore(Path(place), durability=Durability.RELAXED) as store,
        ):
            store.commit([batch])
            return store.write_copy(descriptor)

    def statistics(self) -> StoreStatistics:
        with self._mutex:
            self._check_open()
            return StoreStatistics(
                engine="memory",
                path="",
                durability=self.durability,
                used_bytes=self._used_bytes,
                reusable_bytes=0,
                file_bytes=0,
                limit_bytes=self.limit_bytes,
                commits=self.commits,
                records={name: len(records) for name, records in self._tables.items()},
            )

    def verify(self) -> list[str]:
        with self._mutex:
            self._check_open()
            return []

    def close(self) -> None:
        with self._mutex:
            self._is_closed = True
            for snapshot in self._snapshots:
                snapshot.is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _due_failure(self) -> _Failure | None:
        for failure in self._failures:
            if failure.commits_before == self.commits:
                self._failures.remove(failure)
                return failure
        return None

    def _apply(self, batches: Sequence[WriteBatch]) -> None:
        """All or nothing: what could be refused is looked at before anything changes."""
        growth = sum(self._check(batch) for batch in batches)
        tables = self._tables.keys() | {
            name for batch in batches for name, _, _ in batch.operations
        }
        if len(tables) > TABLES_MAX:
            raise too_many_tables()
        if growth and (self.is_full or self._used_bytes + growth > self.limit_bytes):
            raise ResourceError(
                f"the store in memory has reached its limit of {self.limit_bytes} bytes",
                status=MqStatus.MESSAGE_STORAGE_FAILED,
                hint="receive or purge messages",
            )
        for batch in batches:
            for name, key, value in batch.operations:
                self._change(name, key, None if value is None else bytes(value))

    def _check(self, batch: WriteBatch) -> int:
        """The bytes that a batch may add."""
        growth = 0
        for name, key, value in batch.operations:
            if not 0 < len(key) <= KEY_BYTES_MAX:
                raise bad_key(name, key)
            if value is not None:
                growth += len(key) + len(value)
        return growth

    def _change(self, name: str, key: bytes, value: bytes | None) -> None:
        records = self._tables.get(name)
        if records is None:
            records = self._tables[name] = SortedDict()
        old = records.pop(key, None) if value is None else records.get(key)
        if old is not None:
            self._used_bytes -= len(key) + len(old)
        if value is not None:
            records[key] = value
            self._used_bytes += len(key) + len(value)

    def _check_open(self) -> None:
        if self._is_dead:
            raise StoreError("the process of this store has crashed; crash() opens it again")
        if self._is_closed:
            raise StoreError("the store in memory is closed")


class _Snapshot:
    """All tables at one moment."""

    def __init__(self, tables: dict[str, _Table]) -> None:
        self._tables = tables
        self.is_closed = False

    def get(self, table: str, key: bytes) -> bytes | None:
        self._check_open()
        records = self._tables.get(table)
        return None if records is None else records.get(key)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        self._check_open()
        for record in _range(self._tables.get(table), start, stop, reverse=reverse):
            yield record
            self._check_open()

    def blocks(self, table: str, start: bytes, stop: bytes) -> Iterator[Block]:
        records = self.scan(table, start, stop)
        while some := list(islice(records, _BLOCK)):
            keys, values = zip(*some, strict=True)
            yield Block(keys, b"".join(values), [len(value) for value in values])

    def neighbours(self, table: str, prefix: bytes, first: int, count: int) -> Iterator[Block]:
        for number in range(first, first + count):
            value = self.get(table, prefix + number.to_bytes(8, "big"))
            if value is None:
                return
            yield Block((), value, [len(value)])

    def _check_open(self) -> None:
        if self.is_closed:
            raise StoreError("this snapshot is closed")


def _range(
    records: _Table | None, start: bytes, stop: bytes | None, *, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    if records is None:
        return
    for key in records.irange(start, stop, inclusive=(True, False), reverse=reverse):
        yield key, records[key]


def _broken() -> StoreError:
    return StoreError(
        "the commit was made to fail",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="this error comes from MemoryStore.fail_commit",
    )
