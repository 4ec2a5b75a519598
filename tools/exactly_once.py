"""Kill Spark drivers and the queue manager in the middle of streams, and count what came through.

    python -m tools.exactly_once source --messages 200000 --driver-kills 20 --manager-kills 10
    python -m tools.exactly_once sink --messages 200000 --driver-kills 20 --manager-kills 10

`source` consumes a queue into Parquet files, `sink` writes Parquet files into a transactional
queue. Both run in small batches; at random moments of a batch the driver with its Java, or the
queue manager, is ended with SIGKILL and started again. At the end every message must be there
exactly once, in order within each partition. One seed decides the plan of kills; it is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from falconmq import Message
from tests.e2e.estate import Daemon, Estate, path

QUEUE: Final = "numbers"
PARTS: Final = 200  # files that the sink reads
BATCHES: Final = 6  # for each kill: a life of a driver does a few
PATIENCE: Final = 300.0  # seconds in which a driver must have said something
SENT_AT_ONCE: Final = 1000
Found = dict[str, Any]
EARLY: Final = 0.1  # share of the kills of a driver before its first batch is done


class BrokenPromiseError(Exception):
    """Something was lost, doubled or out of order."""


class Driver:
    """A Spark driver as a process group of its own."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tools.exactly_once_driver", *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def line(self, seconds: float = PATIENCE) -> str:
        """The next thing it says; "" when it has ended."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise BrokenPromiseError(f"the driver said nothing for {seconds:.0f} seconds") from None

    def kill(self) -> None:
        """The driver and its Java at once; its Python workers notice it a moment later."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self.process.wait()
        self._lines.put("")


@dataclass
class Run:
    """A plan of kills, and what became of it."""

    daemon: Daemon
    arguments: list[str]
    log: Path
    random: random.Random
    kills: list[str]
    done: Counter[str] = field(default_factory=Counter)
    seconds: float = 1.0  # that a batch took lately
    driver: Driver | None = None

    def go(self) -> None:
        """Until a driver has come to the end of its stream."""
        while not self._live():
            pass
        if self.kills:
            raise BrokenPromiseError(f"the stream was over before {len(self.kills)} of the kills")

    def _live(self) -> bool:
        """One life of a driver; True if it reached the end."""
        driver = self.driver = Driver(self.arguments, self.log)
        self.done["starts"] += 1
        is_early = self.random.random() < EARLY
        batches, last = 0, time.monotonic()
        while line := driver.line():
            if line == "done":
                driver.process.wait()
                return True
            if line.startswith("batch"):
                batches += 1
                self.done["batches"] += 1
                now = time.monotonic()
                self.seconds, last = (min(5.0, now - last) if batches > 1 else self.seconds), now
            is_moment = batches >= 1 or (is_early and line == "started")
            if is_moment and self.kills and not self._kill(driver):
                return False
        self.done["failures"] += 1  # the manager was away, or had forgotten what was staged
        return False

    def _kill(self, driver: Driver) -> bool:
        """Do the next kill of the plan at some moment of the next batch; False: the driver's."""
        time.sleep(self.random.random() * 1.2 * self.seconds)
        victim = self.kills.pop()
        if victim == "driver":
            if driver.process.poll() is not None:
                self.kills.insert(0, victim)  # it had ended by itself: another one
                return True
            driver.kill()
        else:
            self.daemon.kill()
            time.sleep(self.random.random() * 0.5)
            self.daemon.start()
        self.done[f"{victim} kills"] += 1
        return victim != "driver"


def prove_source(
    estate: Estate, given: argparse.Namespace, chance: random.Random
) -> dict[str, Any]:
    """A queue into Parquet."""
    daemon = estate.manager("A").start()
    daemon.create_queue(QUEUE)
    for start in range(0, given.messages, SENT_AT_ONCE):
        numbers = range(start, min(given.messages, start + SENT_AT_ONCE))
        daemon.client.send_packets(path(QUEUE), [Message(f"{n:08d}".encode()) for n in numbers])
    rows = estate.directory / "rows"
    kills = given.driver_kills + given.manager_kills
    batch = max(1, given.messages // (BATCHES * max(1, kills)))
    run = _run(estate, daemon, given, chance, "source", rows, batch)
    run.go()
    counter = Driver(["count", "--rows", str(rows)], run.log)
    found: Found = json.loads(counter.line())
    counter.process.wait()
    found |= {"left in the queue": daemon.count(QUEUE), **run.done}
    wanted = given.messages
    if [found[n] for n in ("rows", "bodies", "ids")] != [wanted] * 3:
        raise BrokenPromiseError(f"{wanted} messages were sent: {found}")
    if found["disorder"] or found["left in the queue"]:
        raise BrokenPromiseError(str(found))
    return found


def prove_sink(estate: Estate, given: argparse.Namespace, chance: random.Random) -> Found:
    """Parquet into a transactional queue."""
    daemon = estate.manager("A").start()
    daemon.create_queue(QUEUE, transactional=True)
    rows = estate.directory / "rows"
    each = _write_parts(rows, given.messages)
    kills = given.driver_kills + given.manager_kills
    files = max(1, PARTS // (BATCHES * max(1, kills)))
    run = _run(estate, daemon, given, chance, "sink", rows, files)
    run.go()
    seen: dict[int, list[int]] = {part: [] for part in range(PARTS)}
    for body in _bodies(daemon):
        part, number = body.split(b":")
        seen[int(part)].append(int(number))
    total = sum(map(len, seen.values()))
    distinct = sum(len(set(numbers)) for numbers in seen.values())
    disorder = sum(numbers != sorted(numbers) for numbers in seen.values())
    found: Found = {"messages": total, "distinct": distinct, "disorder": disorder, **run.done}
    if total != distinct or distinct != each * PARTS or disorder:
        raise BrokenPromiseError(f"{each * PARTS} rows were written: {found}")
    return found


def _run(
    estate: Estate,
    daemon: Daemon,
    given: argparse.Namespace,
    chance: random.Random,
    what: str,
    rows: Path,
    batch: int,
) -> Run:
    kills = ["driver"] * given.driver_kills + ["manager"] * given.manager_kills
    chance.shuffle(kills)
    arguments = [what, "--url", f"unix:{daemon.data}", "--queue", path(QUEUE)]
    arguments += ["--rows", str(rows), "--batch", str(batch)]
    arguments += ["--checkpoint", str(estate.directory / "checkpoint")]
    return Run(daemon, arguments, estate.directory / "driver.log", chance, kills)


def _write_parts(folder: Path, messages: int) -> int:
    folder.mkdir()
    each = -(-messages // PARTS)
    for part in range(PARTS):
        numbers = range(each)
        table = pa.table(
            {
                "part": pa.array([part] * each, pa.int32()),
                "number": pa.array(numbers, pa.int32()),
                "body": pa.array([b"%d:%d" % (part, n) for n in numbers], pa.binary()),
            }
        )
        pq.write_table(table, folder / f"part-{part:04d}.parquet")
    return each


def _bodies(daemon: Daemon) -> Iterator[bytes]:
    after = None
    while page := daemon.client.receive_packets(path(QUEUE), count=1000, peek=True, after=after):
        yield from (bytes(message.body) for message in page)
        after = page[-1].lookup_id


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["source", "sink"])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--driver-kills", type=int, default=20)
    parser.add_argument("--manager-kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = random.randrange(1 << 32) if given.seed is None else given.seed
    print(f"{given.what}: {given.messages} messages, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="falconmq-") as place:
        directory = Path(place)
        try:
            with Estate(directory) as estate:
                prove = prove_source if given.what == "source" else prove_sink
                found = prove(estate, given, random.Random(seed))
        except BrokenPromiseError as error:
            log = directory / "driver.log"
            print(f"BROKEN: {error}\n{log.read_text()[-4000:] if log.exists() else ''}")
            return 1
    print("kept: " + ", ".join(f"{value} {name}" for name, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
