"""The store beside a plain SQLite queue and a bare sync, all in one run.

The engines take turns, round by round, so that the noise of the machine and its disk hits all of
them; each figure is the median round. Read them as ratios. One operation in full durability:

    put      insert a batch of messages, commit
    get      read the messages of a batch by their keys
    scan     read messages in order from the head
    delete   delete a batch, commit
    cycle    insert a batch, read the head, delete it, commit: what a queue does

The second table is the group commit: one batch with one message per submit.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.table import Table

from falconmq.store import Commit, GroupCommitter, LmdbStore, WriteBatch, open_data_directory

BATCHES = (1, 64, 256)
BODY = os.urandom(1024)
IN_FLIGHT = 256


def key(number: int) -> bytes:
    return (1).to_bytes(8, "big") + number.to_bytes(8, "big")


class Engine(Protocol):
    name: str

    def put(self, first: int, count: int) -> None: ...
    def get(self, first: int, count: int) -> None: ...
    def scan(self, count: int) -> None: ...
    def delete(self, first: int, count: int) -> None: ...
    def cycle(self, first: int, count: int) -> None: ...
    def close(self) -> None: ...


class Lmdb:
    """FalconMQ's store, checksums and all."""

    name = "lmdb"

    def __init__(self, directory: Path) -> None:
        self.store: LmdbStore = open_data_directory(directory / "lmdb")

    def put(self, first: int, count: int) -> None:
        batch = WriteBatch()
        for number in range(first, first + count):
            batch.put("messages", key(number), BODY)
        self.store.commit([batch])

    def get(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            assert self.store.get("messages", key(number)) is not None

    def scan(self, count: int) -> None:
        assert len(list(islice(self.store.scan("messages"), count))) == count

    def delete(self, first: int, count: int) -> None:
        batch = WriteBatch()
        for number in range(first, first + count):
            batch.delete("messages", key(number))
        self.store.commit([batch])

    def cycle(self, first: int, count: int) -> None:
        """The batch that goes is the one that came a cycle ago, as in a queue that never dries."""
        batch = WriteBatch()
        for number in range(first, first + count):
            batch.put("messages", key(number), BODY)
        for head, _ in islice(self.store.scan("messages"), count):
            batch.delete("messages", head)
        self.store.commit([batch])

    def close(self) -> None:
        self.store.close()


class Sqlite:
    """What one would write in an afternoon: a table, WAL, synchronous=FULL."""

    name = "sqlite"

    def __init__(self, directory: Path) -> None:
        self.connection = sqlite3.connect(directory / "queue.sqlite", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute(
            "CREATE TABLE messages (queue INTEGER, id INTEGER, body BLOB, PRIMARY KEY (queue, id))"
            " WITHOUT ROWID"
        )

    def _insert(self, first: int, count: int) -> None:
        rows = [(1, number, BODY) for number in range(first, first + count)]
        self.connection.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)

    def put(self, first: int, count: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self._insert(first, count)
        self.connection.execute("COMMIT")

    def get(self, first: int, count: int) -> None:
        statement = "SELECT body FROM messages WHERE queue = 1 AND id = ?"
        for number in range(first, first + count):
            assert self.connection.execute(statement, (number,)).fetchone() is not None

    def scan(self, count: int) -> None:
        assert len(self._head(count)) == count

    def _head(self, count: int) -> list[tuple[int, bytes]]:
        statement = "SELECT id, body FROM messages WHERE queue = 1 ORDER BY id LIMIT ?"
        return self.connection.execute(statement, (count,)).fetchall()

    def _delete(self, numbers: list[tuple[int]]) -> None:
        statement = "DELETE FROM messages WHERE queue = 1 AND id = ?"
        self.connection.executemany(statement, numbers)

    def delete(self, first: int, count: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self._delete([(number,) for number in range(first, first + count)])
        self.connection.execute("COMMIT")

    def cycle(self, first: int, count: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        head = self._head(count)
        self._insert(first, count)
        self._delete([(number,) for number, _ in head])
        self.connection.execute("COMMIT")

    def close(self) -> None:
        self.connection.close()


@dataclass
class Figure:
    """Messages a second of the median round."""

    operation: str
    batch: int
    rates: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.rates["lmdb"] / self.rates["sqlite"]


OPERATIONS: dict[str, Callable[[Engine, int, int], None]] = {
    "put": lambda engine, first, count: engine.put(first, count),
    "get": lambda engine, first, count: engine.get(first, count),
    "scan": lambda engine, _, count: engine.scan(count),
    "delete": lambda engine, first, count: engine.delete(first, count),
    "cycle": lambda engine, first, count: engine.cycle(first, count),
}


def measure_engines(directory: Path, rounds: int) -> list[Figure]:
    engines: list[Engine] = [Lmdb(directory), Sqlite(directory)]
    for engine in engines:
        engine.put(0, 2000)  # a backlog, so that the tree has its depth
    figures = []
    first = 1_000_000
    for batch in BATCHES:
        figures += measure_batch(engines, batch, rounds, first)
        first += batch * rounds
    for engine in engines:
        engine.close()
    return figures


def measure_batch(engines: list[Engine], batch: int, rounds: int, first: int) -> list[Figure]:
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(first, first + batch * rounds, batch):
        for engine in engines:
            for operation, run in OPERATIONS.items():
                started = time.perf_counter()
                run(engine, number, batch)
                taken = time.perf_counter() - started
                times.setdefault((operation, engine.name), []).append(taken)
    figures = []
    for operation in OPERATIONS:
        medians = {e.name: statistics.median(times[operation, e.name]) for e in engines}
        rates = {name: batch / median for name, median in medians.items()}
        figures.append(Figure(operation, batch, rates))
    return figures


def bare_syncs(directory: Path, count: int) -> float:
    """Append a message to a file and sync it, one by one: the yardstick for a single caller."""
    with (directory / "bare").open("wb", buffering=0) as file:
        started = time.perf_counter()
        for _ in range(count):
            file.write(BODY)
            os.fdatasync(file.fileno())
        return count / (time.perf_counter() - started)


def submit_and_wait(committer: GroupCommitter, callers: int, count: int) -> float:
    """Callers that wait for each of their messages."""
    mutex = threading.Lock()
    numbers = iter(range(time.time_ns(), sys.maxsize))

    def send() -> None:
        for _ in range(count // callers):
            with mutex:
                batch = WriteBatch()
                batch.put("messages", key(next(numbers)), BODY)
                commit = committer.submit(batch)
            commit.wait()

    threads = [threading.Thread(target=send) for _ in range(callers)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count / (time.perf_counter() - started)


def submit_in_flight(committer: GroupCommitter, count: int) -> float:
    """One caller that has IN_FLIGHT messages under way, as an event loop has."""
    waiting: deque[Commit] = deque()
    first = time.time_ns()
    started = time.perf_counter()
    for number in range(first, first + count):
        batch = WriteBatch()
        batch.put("messages", key(number), BODY)
        waiting.append(committer.submit(batch))
        if len(waiting) == IN_FLIGHT:
            waiting.popleft().wait()
    waiting[-1].wait()
    return count / (time.perf_counter() - started)


class _Nowhere(LmdbStore):
    """Takes everything and does nothing: what is left is the cost of the committer."""

    def __init__(self) -> None:
        pass

    def commit(self, batches: object) -> None:
        pass


def submit_cost(count: int) -> float:
    """Microseconds of one submit beside the commit."""
    batches = []
    for number in range(count):
        batch = WriteBatch()
        batch.put("messages", key(number), b"")
        batches.append(batch)
    with GroupCommitter(_Nowhere()) as committer:
        started = time.perf_counter()
        for batch in batches:
            committer.submit(batch)
        return (time.perf_counter() - started) / count * 1e6


def measure_group_commit(directory: Path, rounds: int) -> dict[str, float]:
    rates: dict[str, list[float]] = {}
    with open_data_directory(directory / "group") as store, GroupCommitter(store) as committer:
        runs: dict[str, Callable[[], float]] = {
            "bare syncs, one caller": lambda: bare_syncs(directory, 100),
            "one caller": lambda: submit_and_wait(committer, 1, 100),
            "8 callers": lambda: submit_and_wait(committer, 8, 800),
            "64 callers": lambda: submit_and_wait(committer, 64, 3200),
            f"one caller, {IN_FLIGHT} in flight": lambda: submit_in_flight(committer, 12_800),
        }
        for _ in range(max(3, rounds // 20)):
            for name, run in runs.items():
                rates.setdefault(name, []).append(run())
    return {name: statistics.median(figures) for name, figures in rates.items()}


def print_tables(figures: list[Figure], group: dict[str, float], microseconds: float) -> None:
    table = Table(title="1 KiB messages a second, every commit synced")
    for column in ("operation", "batch"):
        table.add_column(column)
    for column in ("lmdb", "sqlite", "lmdb / sqlite"):
        table.add_column(column, justify="right")
    for figure in figures:
        table.add_row(
            figure.operation,
            str(figure.batch),
            f"{figure.rates['lmdb']:,.0f}",
            f"{figure.rates['sqlite']:,.0f}",
            f"{figure.ratio:.2f}",
        )
    Console().print(table)
    table = Table(title="group commit, 1 KiB messages a second")
    table.add_column("who")
    table.add_column("messages", justify="right")
    table.add_column("of bare syncs", justify="right")
    bare = group["bare syncs, one caller"]
    for name, rate in group.items():
        table.add_row(name, f"{rate:,.0f}", f"{rate / bare:.2f}")
    table.add_row("submit itself", f"{microseconds:.1f} us", "")
    Console().print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.store", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=100, help="per figure (100)")
    parser.add_argument("--directory", type=Path, default=Path(), help="whose disk (.)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        figures = measure_engines(Path(directory), options.rounds)
        group = measure_group_commit(Path(directory), options.rounds)
    microseconds = submit_cost(20_000)
    if options.json:
        rows = [{**figure.__dict__, "ratio": figure.ratio} for figure in figures]
        print(json.dumps({"engines": rows, "group": group, "submit": microseconds}, indent=1))
    else:
        print_tables(figures, group, microseconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
