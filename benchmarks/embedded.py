"""Messages a second through the embedded API, beside the raw store engine and a SQLite queue.

A disk's mood changes from second to second. So those who are compared take turns: `--rounds` short
slices each, one after the other; shown are the median rate, the median of the ratios to the engine
in the same round, and the microseconds of processor time a message (all threads, best round), which
do not depend on the disk.

A caller is a thread that begins its next call when the last one returned; `tasks` are asyncio tasks
of one event loop that do the same; `many` is `send_many` with 64 messages; a transaction of 64
counts its messages.

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
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import FileIO
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

Slice = tuple[float, float]
"""Messages a second, and microseconds of processor time a message."""


@dataclass
class Row:
    what: str  # api, engine, sqlite, sync
    message: str  # express, recoverable, transaction of 1 ...
    body: str
    callers: str
    operation: str
    per_second: float
    ratio: float  # to the first of those it took turns with
    processor_microseconds: float  # a message


def rate(step: Step, callers: int, seconds: float, most: int = sys.maxsize) -> Slice:
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
    begun, worked = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    return slice_of(sum(counts), begun, worked)


def slice_of(count: int, begun: float, worked: float) -> Slice:
    """What `count` messages since `begun` come to."""
    taken, processor = time.perf_counter() - begun, time.process_time() - worked
    return count / taken, processor / max(1, count) * 1e6


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


@dataclass
class Contender:
    """Somebody who takes turns with others."""

    what: str
    message: str
    measure: Callable[[], Slice]


class Benchmark:
    """All rows."""

    def __init__(self, rounds: int, seconds: float, place: Path, sizes: dict[str, int]) -> None:
        self.rounds = rounds
        self.seconds = seconds
        self.place = place
        self.sizes = sizes
        self.rows: list[Row] = []

    def run(self) -> None:
        cases = itertools.product(self.sizes.items(), CALLERS, OPERATIONS)
        for (body, size), callers, operation in cases:
            with contextlib.ExitStack() as stack:
                contenders = list(self.contenders(stack, size, callers, operation))
                self.compare(contenders, body, str(callers), operation)
        if "1 KiB" in self.sizes:
            self.in_flight("1 KiB")

    def contenders(
        self, stack: contextlib.ExitStack, size: int, callers: int, operation: str
    ) -> Iterator[Contender]:
        things: list[tuple[str, str, Api | Engine | Sqlite]] = [
            ("engine", "record", self.engine(stack, size)),
            ("sqlite", "row", Sqlite(self.directory(stack) / "queue.db", size)),
        ]
        kinds = ("express", "recoverable", "transaction of 1", "transaction of 64")
        things += [("api", kind, Api(self.manager(stack), kind, size)) for kind in kinds]
        for what, message, thing in things:
            yield Contender(what, message, self.slice(thing, operation, size, callers))
        if callers == 1 and operation == "send":
            file = stack.enter_context((self.directory(stack) / "file").open("wb", buffering=0))
            yield Contender("sync", "bytes", lambda: rate(syncing(file, size), 1, self.seconds))

    def slice(
        self, thing: Api | Engine | Sqlite, operation: str, size: int, callers: int
    ) -> Callable[[], Slice]:
        step = operations(thing)[operation]

        def measure() -> Slice:
            most = sys.maxsize
            if operation == "receive":
                most = self.stock(thing, size) // callers // MANY * MANY * callers
                thing.fill(most)
            return rate(step, callers, self.seconds, most)

        return measure

    def stock(self, thing: Api | Engine | Sqlite, size: int) -> int:
        """How many messages are there to receive: enough for one slice."""
        is_fast = isinstance(thing, Api) and (thing.is_express or thing.in_transaction > 1)
        per_second = 80_000 if is_fast else 20_000
        return max(MANY * 16, int(min(per_second * self.seconds, (64 << 20) / size)))

    def compare(self, contenders: list[Contender], body: str, callers: str, operation: str) -> None:
        slices: list[list[Slice]] = [[] for _ in contenders]
        for _ in range(self.rounds):
            for contender, taken in zip(contenders, slices, strict=True):
                taken.append(contender.measure())
                print(".", end="", file=sys.stderr, flush=True)
        for contender, taken in zip(contenders, slices, strict=True):
            ratios = [own[0] / first[0] for own, first in zip(taken, slices[0], strict=True)]
            row = Row(
                contender.what,
                contender.message,
                body,
                callers,
                operation,
                statistics.median(rate for rate, _ in taken),
                statistics.median(ratios),
                min(processor for _, processor in taken),
            )
            self.rows.append(row)

    def in_flight(self, body: str) -> None:
        """More messages on their way than callers: what group commit is for."""
        size = self.sizes[body]
        for callers in CALLERS:
            with contextlib.ExitStack() as stack:
                raw = self.engine(stack, size, MANY)
                api = Api(self.manager(stack), "recoverable", size)
                steps = (("engine", f"{MANY} records", raw.send), ("api", "many", api.send_many))
                contenders = [
                    Contender(what, message, partial(rate, step, callers, self.seconds))
                    for what, message, step in steps
                ]
                self.compare(contenders, body, str(callers), "send")
        for tasks in (8, 64, 512):
            with contextlib.ExitStack() as stack:
                raw = self.engine(stack, size)
                place = self.directory(stack)
                sending = partial(tasks_send, place, tasks, size, self.seconds)
                contenders = [
                    Contender("engine", "record", partial(rate, raw.send, 8, self.seconds)),
                    Contender("api", "recoverable", sending),
                ]
                self.compare(contenders, body, f"{tasks} tasks", "send")

    def directory(self, stack: contextlib.ExitStack) -> Path:
        directory = tempfile.TemporaryDirectory(prefix="bench-", dir=self.place)
        return Path(stack.enter_context(directory))

    def engine(self, stack: contextlib.ExitStack, size: int, per_batch: int = 1) -> Engine:
        store = stack.enter_context(open_data_directory(self.directory(stack)))
        return Engine(stack.enter_context(GroupCommitter(store)), size, per_batch)

    def manager(self, stack: contextlib.ExitStack) -> QueueManager:
        path = self.directory(stack) / "data"
        return stack.enter_context(falconmq.open(path, quota_kilobytes=NO_LIMIT))


def syncing(file: FileIO, size: int) -> Step:
    data = bytes(size + HEADERS)

    def write(_: int) -> int:
        file.write(data)
        os.fdatasync(file.fileno())
        return 1

    return write


def tasks_send(place: Path, tasks: int, size: int, seconds: float) -> Slice:
    async def main() -> Slice:
        async with aio.open(place / "data", quota_kilobytes=NO_LIMIT) as manager:
            if not manager.queues():
                await manager.create_queue(QUEUE)
            queue = await manager.queue(QUEUE)
            body, sent = bytes(size), 0
            begun, worked = time.perf_counter(), time.process_time()

            async def send() -> None:
                nonlocal sent
                while time.perf_counter() - begun < seconds:
                    await queue.send(Message(body))
                    sent += 1

            await asyncio.gather(*(send() for _ in range(tasks)))
            return slice_of(sent, begun, worked)

    return asyncio.run(main())


def print_table(rows: list[Row]) -> None:
    table = Table(title="messages a second; ratio to the engine; processor microseconds a message")
    for column in ("what", "message", "body", "callers"):
        table.add_column(column)
    for operation in OPERATIONS:
        for column in (operation, "ratio", "µs"):
            table.add_column(column, justify="right")
    lines: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.what, row.message, row.body, row.callers), {})[row.operation] = row
    for key, cells in lines.items():
        texts: list[str] = []
        for operation in OPERATIONS:
            cell = cells.get(operation)
            if cell is None:
                texts += ["", "", ""]
                continue
            texts.append(f"{cell.per_second:,.0f}")
            texts.append(f"{cell.ratio:.2f}" if cell.what != "engine" else "")
            texts.append(f"{cell.processor_microseconds:.0f}")
        table.add_row(*key, *texts)
    Console(width=140).print(table)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.embedded", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    parser.add_argument("--seconds", type=float, default=0.25, help="of a turn (0.25)")
    parser.add_argument("--body", choices=list(BODY_SIZES), help="one size only")
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    sizes = {k: v for k, v in BODY_SIZES.items() if options.body in (None, k)}
    benchmark = Benchmark(options.rounds, options.seconds, options.directory, sizes)
    benchmark.run()
    print(file=sys.stderr)
    if options.json:
        print(json.dumps([row.__dict__ for row in benchmark.rows], indent=1))
    else:
        print_table(benchmark.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
