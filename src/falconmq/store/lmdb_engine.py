"""The embedded engine: LMDB behind the contract of `interface`.

How to think about it. LMDB is one file of pages. A write transaction copies the pages it changes,
writes the copies, syncs, and then writes one of the two heads of the file to point at them, synced
too: a crash at any moment leaves the old head or the new one, so there is nothing to recover. Pages
that no reader can see any more are used again, so a queue that is filled and emptied for years
keeps its size. Readers work on the pages of their moment and never wait.

What that asks of us: one writer (a lock here, one process by the lock of the data directory), short
readers (a scan opens a new one for every piece), a map size that is a limit and costs nothing, and
care before a file is opened (`lmdb_pages`).

Every value is stored with the CRC-32 of its key and itself: LMDB has no checksums, and a message
that came back changed would be worse than one that is reported as damaged. 0.5 microseconds a KiB.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, repeat
from pathlib import Path
from typing import Final, Protocol, Self
from zlib import crc32

import lmdb
import lmdb.verify

from falconmq.errors import FalconMQError, StoreError
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
from falconmq.store.lmdb_errors import READERS_MAX, damaged_record, is_disk_full, translate
from falconmq.store.reserve import Reserve

DATA_FILE: Final = "data.mdb"
DEFAULT_MAP_SIZE: Final = 1 << 40  # address space, not disk: the disk is full long before
FILE_MODE: Final = 0o600

_LMDB_MAJOR: Final = 0  # 0.9, the format that lmdb_pages reads; the package has 1.0 as well
_CHECKSUM_BYTES: Final = 4
_INTACT: Final = 0x2144DF1C  # the CRC-32 of anything followed by its own CRC-32
_PIECE_FIRST: Final = 1  # record that a scan reads at first: most want the head; then 2, 4, 8...
_PIECE_LAST: Final = 1024
_PIECE_BYTES: Final = 1 << 20
_BLOCK_FIRST: Final = 16  # records, before it is known how long they are
_BLOCK_LAST: Final = 256  # so many small ones stay in the cache of the processor
_BLOCK_BYTES: Final = 4 << 20
_NUMBER_BYTES: Final = 8  # of a number in a key
_LAST_BYTES: Final = [bytes((number,)) for number in range(256)]

_Record = tuple[bytes, bytes]


class _Releasable(Protocol):
    def release(self) -> None: ...


class LmdbStore:
    """A store in one directory. `data_directory.open_data_directory` is the way to make one."""

    def __init__(
        self,
        directory: Path,
        *,
        durability: Durability = Durability.SYNC,
        map_size: int = DEFAULT_MAP_SIZE,
        lock: _Releasable | None = None,
    ) -> None:
        self.path = directory
        self.durability = durability
        self._data_file = directory / DATA_FILE
        self._lock = lock
        self._map_size = map_size
        self._writing = threading.Lock()
        self._tables_changing = threading.Lock()
        self._reserve = Reserve(directory)
        self._commits = 0
        self._is_closed = False
        is_synced = durability is Durability.SYNC
        try:
            self._environment = lmdb.Environment(
                str(directory),
                map_size=map_size,
                sync=is_synced,
                metasync=is_synced,  # without it the last commit can vanish with the power
                mode=FILE_MODE,
                readahead=False,  # a queue's reads jump; the pages are in memory or they are not
                max_dbs=TABLES_MAX,
                max_readers=READERS_MAX,
                max_spare_txns=8,
                lib_version=_LMDB_MAJOR,
            )
        except (lmdb.Error, OSError) as error:
            raise self._translate(error) from error
        try:
            self._map_size = self._environment.info()["map_size"]  # a full file is never cut
            self._tables = self._open_tables()
            self._reserve.fill()
        except lmdb.Error as error:
            self._environment.close()
            raise self._translate(error) from error

    def get(self, table: str, key: bytes) -> bytes | None:
        database = self._tables.get(table)
        if database is None or not 0 < len(key) <= KEY_BYTES_MAX:
            self._check_open()
            return None
        try:
            with self._environment.begin(database, None, False, True) as transaction:
                stored = transaction.get(key)
                return None if stored is None else _value(self._data_file, table, key, stored)
        except lmdb.Error as error:
            raise self._translate(error) from error

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[_Record]:
        """Pieces of growing size, each in a transaction of its own; see `Store`."""
        size = _PIECE_FIRST
        while True:
            piece = self._read_piece(table, start, stop, reverse=reverse, size=size)
            yield from piece
            if len(piece) < size and sum(len(value) for _, value in piece) < _PIECE_BYTES:
                return
            last = piece[-1][0]
            if reverse:
                stop = last
            else:
                start = last + b"\0"  # the smallest key behind it
            size = min(size * 2, _PIECE_LAST)

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        with self._writing:
            self._check_open()
            try:
                self._write_or_use_reserve(batches)
            except lmdb.Error as error:
                raise self._translate(error, sum(batch.size for batch in batches)) from error
            self._commits += 1

    @contextmanager
    def snapshot(self) -> Iterator[StoreView]:
        with self._tables_changing:  # or it could know a table that it cannot see
            try:
                transaction = self._environment.begin()
            except lmdb.Error as error:
                raise self._translate(error) from error
            snapshot = _Snapshot(self._data_file, self._map_size, self._tables.copy(), transaction)
        try:
            yield snapshot
        finally:
            transaction.abort()

    def statistics(self) -> StoreStatistics:
        environment = self._environment
        try:
            with self._tables_changing:  # as `snapshot`: it sees all the tables it knows
                transaction = environment.begin()
                tables = self._tables.copy()
            with transaction:
                stats = {table: transaction.stat(database) for table, database in tables.items()}
                main = environment.stat()
            info = environment.info()
        except lmdb.Error as error:
            raise self._translate(error) from error
        pages = 2 + sum(
            stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
            for stat in (main, *stats.values())
        )
        used = pages * main["psize"]
        return StoreStatistics(
            engine="lmdb",
            path=str(self.path),
            durability=self.durability,
            used_bytes=used,
            reusable_bytes=(info["last_pgno"] + 1) * main["psize"] - used,
            file_bytes=self._data_file.stat().st_size,
            limit_bytes=info["map_size"],
            commits=self._commits,
            records={table: stat["entries"] for table, stat in stats.items()},
        )

    def verify(self) -> list[str]:
        """Every page and every record, for `--check`; commits wait meanwhile."""
        with self._writing:
            self._check_open()
            problems = verify_file(self._data_file)
            if not problems:  # a broken file is not to be walked through the map
                for table in sorted(self._tables):
                    problems += self._verify_table(table)
        return problems

    def write_copy(self, descriptor: int) -> dict[str, int]:
        """A copy without free pages. A reader that goes away ends it with a StoreError."""
        with self._tables_changing:
            try:
                transaction = self._environment.begin()
            except lmdb.Error as error:
                raise self._translate(error) from error
            tables = self._tables.copy()
        try:
            self._environment.copyfd(descriptor, compact=True, txn=transaction)
            return {
                table: transaction.stat(database)["entries"] for table, database in tables.items()
            }
        except lmdb.Error as error:
            raise self._translate(error) from error
        finally:
            transaction.abort()

    def copy_compact(self, directory: Path) -> None:
        """Write a copy without free pages into an empty directory, and sync it."""
        try:
            self._environment.copy(str(directory), compact=True)
        except lmdb.Error as error:
            raise self._translate(error) from error
        sync_file(directory / DATA_FILE)

    def close(self) -> None:
        with self._writing:
            if not self._is_closed:
                self._is_closed = True
                self._environment.close()
                if self._lock is not None:
                    self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_tables(self) -> dict[str, lmdb._Database]:
        names = self._environment.dbs()
        return {name.decode(): self._environment.open_db(name, create=False) for name in names}

    def _write_or_use_reserve(self, batches: Sequence[WriteBatch]) -> None:
        """A commit that makes room may use the space that is kept aside for it."""
        try:
            self._write(batches)
        except lmdb.Error as error:
            size = sum(batch.size for batch in batches)
            if not (_makes_room(batches) and is_disk_full(error, self._data_file, size)):
                raise
            self._reserve.spend()
            self._write(batches)
        if not self._reserve.is_whole:
            self._reserve.fill()

    def _write(self, batches: Sequence[WriteBatch]) -> None:
        """One transaction over all batches; leaving it with an error undoes everything."""
        self._create_tables({table for batch in batches for table, _, _ in batch.operations})
        tables = self._tables
        with self._environment.begin(write=True) as transaction:
            put, delete = transaction.put, transaction.delete
            for batch in batches:
                for table, key, value in batch.operations:
                    if not 0 < len(key) <= KEY_BYTES_MAX:
                        raise bad_key(table, key)
                    if value is None:
                        delete(key, db=tables[table])
                    else:
                        checksum = crc32(value, crc32(key)).to_bytes(_CHECKSUM_BYTES, "little")
                        put(key, b"".join((value, checksum)), db=tables[table])

    def _create_tables(self, names: set[str]) -> None:
        """In a commit of its own, so that no failed commit leaves a handle to nothing."""
        new = names - self._tables.keys()
        if len(self._tables) + len(new) > TABLES_MAX:
            raise too_many_tables()
        for name in sorted(new):
            with self._tables_changing:
                self._tables[name] = self._environment.open_db(name.encode())

    def _read_piece(
        self, table: str, start: bytes, stop: bytes | None, *, reverse: bool, size: int
    ) -> list[_Record]:
        database = self._tables.get(table)
        if database is None:
            self._check_open()
            return []
        piece = []
        room = _PIECE_BYTES
        try:
            with self._environment.begin(database) as transaction:
                cursor = transaction.cursor()
                for record in _records(self._data_file, cursor, table, start, stop, reverse):
                    piece.append(record)
                    room -= len(record[1])
                    if len(piece) == size or room <= 0:
                        break
        except lmdb.Error as error:
            raise self._translate(error) from error
        return piece

    def _verify_table(self, table: str) -> list[str]:
        problems = []
        try:
            with self._environment.begin(self._tables[table]) as transaction:
                for key, stored in transaction.cursor():
                    if crc32(stored, crc32(key)) != _INTACT:
                        problems.append(str(damaged_record(self._data_file, table, key)))
        except lmdb.Error as error:
            problems.append(str(self._translate(error)))
        return problems

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the store {self.path} is closed")

    def _translate(self, error: Exception, size: int = 0) -> FalconMQError:
        if self._is_closed:
            return StoreError(f"the store {self.path} is closed")
        return translate(error, self._data_file, self._map_size, size)


class _Snapshot:
    """All tables at one moment."""

    def __init__(
        self,
        data_file: Path,
        map_size: int,
        tables: dict[str, lmdb._Database],
        transaction: lmdb.Transaction[bytes],
    ) -> None:
        self._data_file = data_file
        self._map_size = map_size
        self._tables = tables
        self._transaction = transaction

    def get(self, table: str, key: bytes) -> bytes | None:
        database = self._tables.get(table)
        if database is None or not 0 < len(key) <= KEY_BYTES_MAX:
            return None
        try:
            stored = self._transaction.get(key, db=database)
        except lmdb.Error as error:
            raise self._translate(error) from error
        return None if stored is None else _value(self._data_file, table, key, stored)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[_Record]:
        database = self._tables.get(table)
        if database is None:
            return
        try:
            with self._transaction.cursor(database) as cursor:
                yield from _records(self._data_file, cursor, table, start, stop, reverse)
        except lmdb.Error as error:
            raise self._translate(error) from error

    def blocks(self, table: str, start: bytes, stop: bytes) -> Iterator[Block]:
        database = self._tables.get(table)
        if database is None:
            return
        try:
            with self._transaction.cursor(database) as cursor:
                yield from _blocks(self._data_file, cursor, table, start, stop)
        except lmdb.Error as error:
            raise self._translate(error) from error

    def neighbours(self, table: str, prefix: bytes, first: int, count: int) -> Iterator[Block]:
        database = self._tables.get(table)
        if database is None:
            return
        try:
            with self._transaction.cursor(database) as cursor:
                if cursor.set_key(prefix + first.to_bytes(_NUMBER_BYTES, "big")):
                    yield from _neighbours(cursor, prefix, first, first + count)
        except lmdb.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: lmdb.Error) -> FalconMQError:
        if error.code == 0:  # py-lmdb's own: the transaction has ended
            return StoreError("this snapshot is closed")
        return translate(error, self._data_file, self._map_size)


def _makes_room(batches: Sequence[WriteBatch]) -> bool:
    """True if at least as many records go as come."""
    operations = [value is None for batch in batches for _, _, value in batch.operations]
    return 2 * sum(operations) >= len(operations)


def _value(data_file: Path, table: str, key: bytes, stored: bytes | memoryview) -> bytes:
    """What was put, if it is what was put; a view of the map is copied once."""
    if crc32(stored, crc32(key)) != _INTACT:
        raise damaged_record(data_file, table, key)
    return bytes(stored[:-_CHECKSUM_BYTES])


def _records(
    data_file: Path,
    cursor: lmdb.Cursor[bytes],
    table: str,
    start: bytes,
    stop: bytes | None,
    reverse: bool,
) -> Iterator[_Record]:
    """The records of a range; each is compared with its checksum."""
    if reverse:
        records = cursor.iterprev() if _place_before(cursor, stop) else iter(())
    else:
        records = cursor.iternext() if _place_from(cursor, start) else iter(())
    for key, stored in records:
        if key < start if reverse else stop is not None and key >= stop:
            return
        if crc32(stored, crc32(key)) != _INTACT:
            raise damaged_record(data_file, table, key)
        yield key, stored[:-_CHECKSUM_BYTES]


def _blocks(
    data_file: Path, cursor: lmdb.Cursor[bytes], table: str, start: bytes, stop: bytes
) -> Iterator[Block]:
    """The records of a range; no step of a loop for each of them, and all checksums compared."""
    records = cursor.iternext() if _place_from(cursor, start) else iter(())
    count = _BLOCK_FIRST
    while some := list(islice(records, count)):
        keys, stored = zip(*some, strict=True)
        is_end = keys[-1] >= stop
        if is_end:
            end = bisect_left(keys, stop)
            keys, stored = keys[:end], stored[:end]
        if not keys:
            return
        if set(map(crc32, stored, map(crc32, keys))) != {_INTACT}:
            raise _first_damaged(data_file, table, keys, stored)
        sizes = [len(each) - _CHECKSUM_BYTES for each in stored]
        yield Block(keys, b"".join(stored), sizes, _CHECKSUM_BYTES)
        if is_end:
            return
        count = _more(count, sizes)


def _neighbours(
    cursor: lmdb.Cursor[bytes], prefix: bytes, number: int, stop: int
) -> Iterator[Block]:
    """Values alone: their checksums say whether they are those of the keys that are expected."""
    values, count = cursor.iternext(keys=False, values=True), _BLOCK_FIRST
    while number < stop:
        high, low = number >> 8, number & 0xFF  # the keys of a block differ in their last byte only
        count = min(count, stop - number, 256 - low)
        begun = crc32(prefix + high.to_bytes(_NUMBER_BYTES - 1, "big"))
        stored = list(islice(values, count))
        expected = map(crc32, _LAST_BYTES[low : low + count], repeat(begun))
        if len(stored) < count or set(map(crc32, stored, expected)) != {_INTACT}:
            return
        sizes = [len(each) - _CHECKSUM_BYTES for each in stored]
        yield Block((), b"".join(stored), sizes, _CHECKSUM_BYTES)
        number += count
        count = _more(count, sizes)


def _more(count: int, sizes: Sequence[int]) -> int:
    """How many records the next block has: more, but not too many bytes."""
    usual = sum(sizes) // len(sizes) + 1
    return max(1, min(2 * count, _BLOCK_LAST, _BLOCK_BYTES // usual))


def _first_damaged(
    data_file: Path, table: str, keys: Sequence[bytes], stored: Sequence[bytes]
) -> StoreError:
    checked = zip(keys, stored, strict=True)
    bad = next(key for key, value in checked if crc32(value, crc32(key)) != _INTACT)
    return damaged_record(data_file, table, bad)


def _place_from(cursor: lmdb.Cursor[bytes], start: bytes) -> bool:
    """Put a cursor on the first key at or behind `start`, which may be longer than keys can be."""
    if not start:
        return cursor.first()
    if not cursor.set_range(start[:KEY_BYTES_MAX]):
        return False
    return cursor.key() >= start or cursor.next()


def _place_before(cursor: lmdb.Cursor[bytes], stop: bytes | None) -> bool:
    """Put a cursor on the last key before `stop`; False if there is none."""
    if stop == b"":
        return False
    if stop is not None and cursor.set_range(stop[:KEY_BYTES_MAX]):
        return cursor.key() < stop or cursor.prev()
    return cursor.last()


def verify_file(path: Path) -> list[str]:
    """Every page of a data file at rest, by a reader that LMDB has no part in."""
    try:
        problems: list[str] = lmdb.verify.verify(str(path))  # type: ignore[no-untyped-call]  # py-lmdb has no types for it
    except lmdb.verify.VerifyError as error:
        problems = [str(error)]
    return [f"{path}: {problem}" for problem in problems]


def sync_file(path: Path) -> None:
    """Let a file, or the names in a directory, reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
