"""Messages a second through the embedded API, beside the raw store engine and a SQLite queue.

Every figure is one run of `--seconds` on a directory of its own; the rows of one table come from
one run of this program, so compare them as ratios. A caller is a thread that begins its next call
when the last one returned; `tasks` are asyncio tasks of one event loop that do the same; `many` is
`send_many` with 64 messages, and a transaction of 64 counts its messages.

    send          one message, durable when the call returns (express: in memory)
    receive       one message out of a full queue
    send+receive  one message in and one out

Yardsticks: `sync` writes the message's bytes to a file and calls fdatasync; `engine` puts or
deletes a record of the same size in the store, through the same group commit; `sqlite` is the queue
that people build first: WAL, synchronous=FULL, one connection a thread.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import falconmq
from falconmq import Message, Queue, QueueManager, aio
from falconmq.store import GroupCommitter, WriteBatch, open_data_directory

BODY_SIZES = {"100 B": 100, "1 KiB": 1024, "64 KiB": 64 * 1024}
CALLERS = (1, 8)
HEADERS = 150  # bytes of headers around a body, about
MANY = 64
NO_LIMIT = 0xFFFFFFFF
QUEUE = r".\private$\bench"
OPERATIONS = ("send", "receive", "send+receive")

Step = Callable[[int], int]
"""One call of a caller, given its number; how many messages it moved."""


@dataclass
class Row:
    what: str  # api, engine, sqlite, sync
    message: str  # express, recoverable, transaction of 1 ...
    body: str
    callers: str
    operation: str
    per_second: float
    ratio: float | None = None  # to the engine with the same callers, body and operation


def rate(step: Step, callers: int, seconds: float, most: int = sys.maxsize) -> float:
    """Messages a second of so many threads that call `step`; they stop after `most` messages."""
    counts = [0] * callers
    start = threading.Barrier(callers + 1)
    share = most // callers

    def call(number: int) -> None:
        start.wait()
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline and counts[number] < share:
            counts[number] += step(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    start.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun)


class Api:
    """The embedded API, one kind of message."""

    def __init__(self, manager: QueueManager, kind: str, size: int) -> None:
        self.manager = manager
        self.is_express = kind == "express"
        self.in_transaction = int(kind.rpartition(" ")[2]) if kind.startswith("trans") else 0
        self.body = bytes(size)
        self.queue: Queue = manager.create_queue(QUEUE, transactional=bool(self.in_transaction))

    def message(self) -> Message:
        return Message(self.body, recoverable=not self.is_express)

    def fill(self, count: int) -> None:
        for start in range(0, count, 512):
            batch = [self.message() for _ in range(min(512, count - start))]
            if not self.in_transaction:
                self.queue.send_many(batch)
                continue
            with self.manager.transaction() as transaction:
                self.queue.send_many(batch, transaction)

    def send(self, _: int) -> int:
        if not self.in_transaction:
            self.queue.send(self.message())
            return 1
        with self.manager.transaction() as transaction:
            for _ in range(self.in_transaction):
                self.queue.send(self.message(), transaction)
        return self.in_transaction

    def send_many(self, _: int) -> int:
        self.queue.send_many([self.message() for _ in range(MANY)])
        return MANY

    def receive(self, _: int) -> int:
        if not self.in_transaction:
            self.queue.receive(timeout=0)
            return 1
        with self.manager.transaction() as transaction:
            for _ in range(self.in_transaction):
                self.queue.receive(transaction, timeout=0)
        return self.in_transaction

    def send_and_receive(self, number: int) -> int:
        return min(self.send(number), self.receive(number))


class Engine:
    """The store alone: a record of the same size, under the same group commit."""

    def __init__(self, committer: GroupCommitter, size: int, per_batch: int = 1) -> None:
        self.committer = committer
        self.value = bytes(size + HEADERS)
        self.keys = itertools.count()
        self.heads = itertools.count()
        self.per_batch = per_batch

    def fill(self, count: int) -> None:
        batch = WriteBatch()
        for _ in range(count):
            batch.put("messages", next(self.keys).to_bytes(16, "big"), self.value)
        self.committer.submit(batch).wait()

    def send(self, _: int) -> int:
        batch = WriteBatch()
        for _ in range(self.per_batch):
            batch.put("messages", next(self.keys).to_bytes(16, "big"), self.value)
        self.committer.submit(batch).wait()
        return self.per_batch

    def receive(self, _: int) -> int:
        batch = WriteBatch()
        for _ in range(self.per_batch):
            batch.delete("messages", next(self.heads).to_bytes(16, "big"))
        self.committer.submit(batch).wait()
        return self.per_batch

    def send_and_receive(self, number: int) -> int:
        return min(self.send(number), self.receive(number))


class Sqlite:
    """A queue in one table, as people write it first."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.body = bytes(size)
        self.local = threading.local()
        self.connection.execute("create table queue (id integer primary key, body blob)")

    @property
    def connection(self) -> sqlite3.Connection:
        if not hasattr(self.local, "connection"):
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            self.local.connection = connection
        found: sqlite3.Connection = self.local.connection
        return found

    def fill(self, count: int) -> None:
        self.connection.execute("begin immediate")
        rows = itertools.repeat((self.body,), count)
        self.connection.executemany("insert into queue (body) values (?)", rows)
        self.connection.execute("commit")

    def send(self, _: int) -> int:
        self.connection.execute("insert into queue (body) values (?)", (self.body,))
        return 1

    def receive(self, _: int) -> int:
        self.connection.execute(
            "delete from queue where id = (select min(id) from queue) returning body"
        ).fetchall()
        return 1

    def send_and_receive(self, number: int) -> int:
        return min(self.send(number), self.receive(number))


def operations(thing: Api | Engine | Sqlite) -> dict[str, Step]:
    return {
        "send": thing.send,
        "receive": thing.receive,
        "send+receive": thing.send_and_receive,
    }


class Benchmark:
    """All rows; each on a directory of its own."""

    def __init__(self, seconds: float, place: Path, sizes: dict[str, int], most: int) -> None:
        self.seconds = seconds
        self.place = place
        self.sizes = sizes
        self.most = most  # messages a queue is filled with, at 1 KiB
        self.rows: list[Row] = []

    @contextlib.contextmanager
    def directory(self) -> Iterator[Path]:
        directory = Path(tempfile.mkdtemp(prefix="bench-", dir=self.place))
        try:
            yield directory
        finally:
            shutil.rmtree(directory)

    def stock(self, size: int) -> int:
        """How many messages there are to receive; large ones are fewer."""
        return max(64 * 16, min(self.most, (self.most << 10) // size) // 64 * 64)

    def run(self) -> None:
        for (body, size), callers in itertools.product(self.sizes.items(), CALLERS):
            engine = self.engine(body, size, callers)
            self.sqlite(body, size, callers, engine)
            self.sync(body, size, callers, engine)
            for kind in ("express", "recoverable", "transaction of 1", "transaction of 64"):
                self.api(kind, body, size, callers, engine)
        if "1 KiB" in self.sizes:
            self.in_flight()

    def engine(self, body: str, size: int, callers: int) -> dict[str, float]:
        figures = {}
        for name in OPERATIONS:
            with (
                self.directory() as path,
                open_data_directory(path) as store,
                GroupCommitter(store) as committer,
            ):
                thing = Engine(committer, size)
                figures[name] = self.measure(thing, name, size, callers)
                self.add("engine", "record", body, str(callers), name, figures[name], None)
        return figures

    def sqlite(self, body: str, size: int, callers: int, engine: dict[str, float]) -> None:
        for name in OPERATIONS:
            with self.directory() as path:
                thing = Sqlite(path / "queue.db", size)
                figure = self.measure(thing, name, size, callers)
                self.add("sqlite", "row", body, str(callers), name, figure, engine[name])

    def sync(self, body: str, size: int, callers: int, engine: dict[str, float]) -> None:
        if callers > 1:
            return
        with self.directory() as path, (path / "file").open("wb", buffering=0) as file:
            data = bytes(size + HEADERS)

            def write(_: int) -> int:
                file.write(data)
                os.fdatasync(file.fileno())
                return 1

            figure = rate(write, 1, self.seconds)
            self.add("sync", "bytes", body, "1", "send", figure, engine["send"])

    def api(self, kind: str, body: str, size: int, callers: int, engine: dict[str, float]) -> None:
        for name in OPERATIONS:
            with self.directory() as path, self.manager(path) as manager:
                figure = self.measure(Api(manager, kind, size), name, size, callers)
                self.add("api", kind, body, str(callers), name, figure, engine[name])

    def in_flight(self) -> None:
        """More messages on their way than callers: what group commit is for."""
        body, size = "1 KiB", self.sizes["1 KiB"]
        for callers in CALLERS:
            with (
                self.directory() as path,
                open_data_directory(path) as store,
                GroupCommitter(store) as committer,
            ):
                raw = rate(Engine(committer, size, MANY).send, callers, self.seconds)
                self.add("engine", f"{MANY} records", body, str(callers), "send", raw, None)
            with self.directory() as path, self.manager(path) as manager:
                step = Api(manager, "recoverable", size).send_many
                figure = rate(step, callers, self.seconds)
                self.add("api", f"many ({MANY})", body, str(callers), "send", figure, raw)
        for tasks in (8, 64, 512):
            with self.directory() as path:
                figure = asyncio.run(tasks_send(path, tasks, size, self.seconds))
                self.add("api", "recoverable", body, f"{tasks} tasks", "send", figure, None)

    @contextlib.contextmanager
    def manager(self, path: Path) -> Iterator[QueueManager]:
        with falconmq.open(path / "data", quota_kilobytes=NO_LIMIT) as manager:
            yield manager

    def measure(self, thing: Api | Engine | Sqlite, name: str, size: int, callers: int) -> float:
        most = sys.maxsize
        if name == "receive":
            most = self.stock(size) // callers // 64 * 64 * callers
            thing.fill(most)
        return rate(operations(thing)[name], callers, self.seconds, most)

    def add(
        self,
        what: str,
        message: str,
        body: str,
        callers: str,
        operation: str,
        per_second: float,
        engine: float | None,
    ) -> None:
        ratio = None if engine is None else per_second / engine
        self.rows.append(Row(what, message, body, callers, operation, per_second, ratio))
        print(".", end="", file=sys.stderr, flush=True)


async def tasks_send(path: Path, tasks: int, size: int, seconds: float) -> float:
    async with aio.open(path / "data", quota_kilobytes=NO_LIMIT) as manager:
        queue = await manager.create_queue(QUEUE)
        body, sent = bytes(size), 0
        begun = time.perf_counter()

        async def send() -> None:
            nonlocal sent
            while time.perf_counter() - begun < seconds:
                await queue.send(Message(body))
                sent += 1

        await asyncio.gather(*(send() for _ in range(tasks)))
        return sent / (time.perf_counter() - begun)


def print_table(rows: list[Row]) -> None:
    table = Table(title="messages a second; ratio to the store engine with as many callers")
    for column in ("what", "message", "body", "callers"):
        table.add_column(column)
    for operation in OPERATIONS:
        table.add_column(operation, justify="right")
        table.add_column("ratio", justify="right")
    lines: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.what, row.message, row.body, row.callers), {})[row.operation] = row
    for key, cells in lines.items():
        texts: list[str] = []
        for operation in OPERATIONS:
            cell = cells.get(operation)
            texts.append("" if cell is None else f"{cell.per_second:,.0f}")
            texts.append("" if cell is None or cell.ratio is None else f"{cell.ratio:.2f}")
        table.add_row(*key, *texts)
    Console(width=120).print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.embedded", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="per figure (1)")
    parser.add_argument("--body", choices=list(BODY_SIZES), help="one size only")
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    sizes = {k: v for k, v in BODY_SIZES.items() if options.body in (None, k)}
    most = int(30_000 * max(0.05, options.seconds))
    benchmark = Benchmark(options.seconds, options.directory, sizes, most)
    benchmark.run()
    print(file=sys.stderr)
    if options.json:
        print(json.dumps([row.__dict__ for row in benchmark.rows], indent=1))
    else:
        print_table(benchmark.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
