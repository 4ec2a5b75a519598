"""Messages between two queue managers, beside RabbitMQ: rate, time on the way, processor time.

Two daemons run on this computer, `falconmq serve` on 127.0.0.2 and on 127.0.0.3. One program sends
through the first, another receives from the second. Beside them a RabbitMQ node with one program at
each end of a queue: classic and durable, or quorum. A computer's mood changes from second to
second; so those who are compared take turns, `--rounds` slices each, and shown are medians of the
rates and of the ratios within a round.

    express        kept in memory; RabbitMQ: delivery mode 1 with confirms
    recoverable    durable when acknowledged; RabbitMQ: delivery mode 2 with confirms
    transactional  in transactions of 64, exactly once; RabbitMQ: tx.select, 64 a transaction

Programs of FalconMQ use the fast door of the control API, which takes MSMQ packets; shown beside it
is the one that takes JSON. Both senders have up to 256 messages on their way: four requests of 64,
or 256 unconfirmed. The rate is that of the whole way, from the first send to the last receive. The
receiver checks that every message came once, and those of a caller in their order.

    latency        single messages at 50 a second, and half of the rate that was measured; `sync`
                   is a write with fdatasync at the same time, the least a durable step can take
    transport      without programs: messages wait in the outgoing queue, then it is let go

RabbitMQ is optional: tools/install-rabbitmq.sh, pip install 'falconmq[bench]'.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks import rabbitmq
from benchmarks.transport_estate import Estate, processor_seconds, wait_until
from benchmarks.transport_programs import Received, Sent, Task
from benchmarks.transport_report import Row, Slice, print_profiles, print_tables, summary
from falconmq import Message

BODY_SIZES: Final = {"100 B": 100, "1 KiB": 1024, "64 KiB": 64 * 1024}
KINDS: Final = ("express", "recoverable", "transactional")
DOORS: Final = ("packets", "json")  # of FalconMQ; the first is what is compared
PARTS: Final = ("throughput", "latency", "transport")
CALLERS: Final = 4
BULK: Final = 64
LOW_PER_SECOND: Final = 50
STOCK: Final = 20_000  # messages that wait in the outgoing queue
FILL: Final = 500  # of them in one request
FILL_BYTES: Final = 8 << 20
SYNCS: Final = 100
SYNC_BYTES: Final = 1200  # a body of 1 KiB with its headers
DRAIN_SECONDS: Final = 300.0


class System(Protocol):
    """Whoever carries messages."""

    name: str

    def tasks(self, kind: str, size: int) -> tuple[Task, Task]:
        """What the sender and the receiver are told."""

    def pids(self) -> dict[str, list[int]]: ...


class FalconMq:
    """Two daemons, and the door that programs use."""

    def __init__(self, estate: Estate, door: str) -> None:
        self.name = "falconmq" if door == DOORS[0] else f"falconmq {door}"
        self.estate = estate
        self._door = door

    def tasks(self, kind: str, size: int) -> tuple[Task, Task]:
        estate = self.estate
        to = estate.destination(kind)
        place = str(estate.alpha.socket)
        sender = Task(
            "falconmq", place, to, kind, size, callers=CALLERS, bulk=BULK, door=self._door
        )
        receiver = replace(sender, place=str(estate.bravo.socket), queue=rf".\private$\{kind}")
        return sender, receiver

    def pids(self) -> dict[str, list[int]]:
        return {"alpha": self.estate.alpha.pids, "bravo": self.estate.bravo.pids}


class RabbitMq:
    """One broker; all its queues are durable."""

    def __init__(self, node: rabbitmq.Node, *, is_quorum: bool = False) -> None:
        self.name = "quorum" if is_quorum else "classic"
        self._node = node
        for kind in ("recoverable",) if is_quorum else KINDS:
            node.declare(f"{self.name} {kind}", is_quorum=is_quorum)

    def tasks(self, kind: str, size: int) -> tuple[Task, Task]:
        callers = CALLERS if kind == "transactional" else 1
        queue = f"{self.name} {kind}"
        task = Task("rabbitmq", str(self._node.port), queue, kind, size, callers=callers, bulk=BULK)
        return task, task

    def pids(self) -> dict[str, list[int]]:
        return {"broker": self._node.pids}


def measure(system: System, kind: str, size: int, seconds: float, per_second: float = 0.0) -> Slice:
    """One turn: start both programs, let them go, wait for both."""
    sending, receiving = system.tasks(kind, size)
    sending = replace(sending, seconds=seconds, per_second=per_second)
    with program(receiving, "receive") as receiver, program(sending, "send") as sender:
        worked = used(system)
        assert sender.stdin is not None
        sender.stdin.write(b"go\n")
        sender.stdin.flush()
        sent, received = Sent(**answer(sender)), Received(**answer(receiver))
        worked = {name: now - worked[name] for name, now in used(system).items()}
    if received.problem:
        raise RuntimeError(f"{system.name}, {kind}, {size} bytes: {received.problem}")
    worked = {"sender": sent.processor, **worked, "receiver": received.processor}
    return Slice(
        sent.count / (received.ended - sent.begun),
        received.p50,
        received.p99,
        received.longest,
        {name: value / sent.count * 1e6 for name, value in worked.items()},
    )


@contextlib.contextmanager
def program(task: Task, action: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ready to go; whatever happens, it is gone afterwards."""
    process = subprocess.Popen(
        task.arguments(action), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a program broke off; what it said is above")
    result: dict[str, Any] = json.loads(line)
    return result


def used(system: System) -> dict[str, float]:
    return {name: processor_seconds(pids) for name, pids in system.pids().items()}


class Benchmark:
    def __init__(
        self,
        estate: Estate,
        node: rabbitmq.Node | None,
        *,
        doors: Sequence[str],
        rounds: int,
        seconds: float,
    ) -> None:
        for kind in KINDS:
            estate.declare(kind, transactional=kind == "transactional")
        self.doors = [FalconMq(estate, door) for door in doors]
        self.falconmq = self.doors[0]
        self.classic = None if node is None else RabbitMq(node)
        self.quorum = None if node is None else RabbitMq(node, is_quorum=True)
        self.rounds = rounds
        self.seconds = seconds
        self.rows: list[Row] = []

    def warm(self) -> None:
        """Sessions open, files are there, code is loaded."""
        for kind in KINDS:
            for system in self.systems(kind):
                measure(system, kind, 100, 0.2)

    def systems(self, kind: str) -> list[System]:
        both: list[System | None] = [*self.doors, self.classic]
        if kind == "recoverable":
            both.append(self.quorum)
        return [system for system in both if system is not None]

    def throughput(self, kind: str, body: str) -> None:
        systems, size = self.systems(kind), BODY_SIZES[body]
        turns: list[list[Slice]] = [[] for _ in systems]
        for _ in range(self.rounds):
            for system, taken in zip(systems, turns, strict=True):
                taken.append(measure(system, kind, size, self.seconds))
                print(".", end="", file=sys.stderr, flush=True)
        for system, taken in zip(systems, turns, strict=True):
            row = summary("throughput", system.name, kind, body, taken)
            ratios = [
                ours.per_second / its.per_second for ours, its in zip(turns[0], taken, strict=True)
            ]
            row.ratio, row.ratios = statistics.median(ratios), ratios
            self.rows.append(row)

    def latency(self, kind: str) -> None:
        """At low load, and at half of what each system can do."""
        systems, body = self.systems(kind), "1 KiB"
        loads: dict[str, list[float]] = {
            "low": [LOW_PER_SECOND] * len(systems),
            "half": [self.rate_of(system, kind) / 2 for system in systems],
        }
        for load, rates in loads.items():
            turns: list[list[Slice]] = [[] for _ in systems]
            syncs = []
            for _ in range(self.rounds):
                syncs.append(syncing(self.falconmq.estate.alpha.directory))
                for system, taken, per_second in zip(systems, turns, rates, strict=True):
                    taken.append(
                        measure(system, kind, BODY_SIZES[body], self.seconds * 2, per_second)
                    )
                    print(".", end="", file=sys.stderr, flush=True)
            part = f"latency, {load} load"
            for system, taken in zip(systems, turns, strict=True):
                self.rows.append(summary(part, system.name, kind, body, taken))
            self.rows.append(summary(part, "sync", kind, body, syncs))

    def rate_of(self, system: System, kind: str) -> float:
        wanted = ("throughput", system.name, kind, "1 KiB")
        for row in self.rows:
            if (row.part, row.system, row.kind, row.body) == wanted:
                return row.per_second
        return measure(system, kind, BODY_SIZES["1 KiB"], self.seconds).per_second

    def transport(self, kind: str, body: str) -> None:
        """From queue manager to queue manager: the outgoing queue is filled first, then let go."""
        taken = []
        for _ in range(self.rounds):
            taken.append(drain(self.falconmq, kind, BODY_SIZES[body]))
            print(".", end="", file=sys.stderr, flush=True)
        self.rows.append(summary("transport", self.falconmq.name, kind, body, taken))


def drain(system: FalconMq, kind: str, size: int) -> Slice:
    """Fill the outgoing queue while it is paused; then time until all is in the other's queue."""
    estate, queue = system.estate, rf".\private$\{kind}"
    stock = min(STOCK, (256 << 20) // size)
    with estate.alpha.client() as alpha, estate.bravo.client() as bravo:
        alpha.send(estate.destination(kind), [{"text": "open"}], kind == "transactional")
        wait_until(lambda: bool(bravo.receive(queue)), DRAIN_SECONDS)
        number = next(
            each["number"]
            for each in alpha.outgoing()
            if each["destination"].lower() == estate.destination(kind).lower()
        )
        alpha.pause(number)
        fill(system, kind, size, stock)
        worked, begun = used(system), time.monotonic()
        alpha.resume(number)
        wait_until(lambda: bravo.queue(queue)["messages"] == stock, DRAIN_SECONDS, pause=0.05)
        taken = time.monotonic() - begun
        worked = {name: now - worked[name] for name, now in used(system).items()}
        bravo.purge_queue(queue)
    per_message = {name: value / stock * 1e6 for name, value in worked.items()}
    return Slice(stock / taken, 0, 0, 0, per_message)


def syncing(directory: Path) -> Slice:
    """What the disk takes for one small durable write, at this moment."""
    data, took = bytes(SYNC_BYTES), []
    with (directory / "file").open("wb", buffering=0) as file:
        begun = time.monotonic()
        for _ in range(SYNCS):
            start = time.monotonic()
            file.write(data)
            os.fdatasync(file.fileno())
            took.append((time.monotonic() - start) * 1000)
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return Slice(SYNCS / (time.monotonic() - begun), cuts[49], cuts[98], max(took), {})


def fill(system: FalconMq, kind: str, size: int, stock: int) -> None:
    message = Message(bytes(size), recoverable=kind != "express")
    at_once = max(1, min(FILL, FILL_BYTES // size))
    estate, in_transaction = system.estate, kind == "transactional"
    with estate.alpha.client() as alpha:
        for start in range(0, stock, at_once):
            messages = [message] * min(at_once, stock - start)
            alpha.send_packets(estate.destination(kind), messages, transaction=in_transaction)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.transport", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of sending in a turn (2)")
    parser.add_argument("--part", choices=PARTS, action="append", help="this part only")
    parser.add_argument("--kind", choices=KINDS, action="append", help="this message only")
    parser.add_argument("--body", choices=list(BODY_SIZES), action="append", help="this size only")
    parser.add_argument("--door", choices=DOORS, action="append", help="of FalconMQ, this one only")
    parser.add_argument("--alone", action="store_true", help="without RabbitMQ")
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="on the disk to measure")
    parser.add_argument(
        "--profile", type=Path, metavar="DIR", help="daemons under cProfile; alone, and slower"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser.parse_args(arguments)


def started(stack: contextlib.ExitStack, place: Path, *, alone: bool) -> rabbitmq.Node | None:
    if alone:
        return None
    if lack := rabbitmq.missing():
        print(f"without RabbitMQ; to have it beside: {lack}", file=sys.stderr)
        return None
    node = rabbitmq.Node(place / "rabbitmq")
    stack.callback(node.stop)
    return node


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    parts, kinds = options.part or PARTS, options.kind or KINDS
    profiles: Path | None = options.profile
    if profiles is not None:
        profiles.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory)
        place = Path(stack.enter_context(temporary))
        node = started(stack, place, alone=options.alone or profiles is not None)
        estate = stack.enter_context(Estate(place / "falconmq", profiles))
        benchmark = Benchmark(
            estate,
            node,
            doors=options.door or DOORS,
            rounds=options.rounds,
            seconds=options.seconds,
        )
        benchmark.warm()
        for kind in kinds:
            for body in options.body or BODY_SIZES:
                if "throughput" in parts:
                    benchmark.throughput(kind, body)
                if "transport" in parts:
                    benchmark.transport(kind, body)
            if "latency" in parts:
                benchmark.latency(kind)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps([asdict(row) for row in benchmark.rows], indent=1))
    else:
        print_tables(benchmark.rows)
    if profiles is not None:
        print_profiles(profiles)
    return 0


if __name__ == "__main__":
    sys.exit(main())
