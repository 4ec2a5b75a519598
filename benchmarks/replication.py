"""Directory replication: a whole copy, and changes on their way from one server to another.

    alone      create queues in a directory that has no copies: in one call, and one by one
    copy       a new server gets its first copy of a directory of 50,000 queues
    anew       a server whose copy is from long ago fetches all of it again (a full sync)
    changes    create queues one by one at the server that decides, until the other has the last
    one        the time of a single change from the call that makes it until the other has it

Two queue managers in two processes, over MSMQ messages on loopback, every message signed; stores
with full durability. Changes are collected for 50 ms before they are sent, not for 10 s as usual,
so that it is the work that is measured and not the pause. `--short` takes a hundredth of it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from falconmq.clock import SystemClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.replication.requesting import send_sync_request
from falconmq.directory.replication.state import PurgeState
from falconmq.manager.states import DirectoryResult
from falconmq.service.configuration import Configuration
from falconmq.service.daemon import Service
from falconmq.service.directory.replicating import Replication
from falconmq.store import LmdbStore, open_data_directory
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from tests.directory.enterprises import guid
from tests.service.directory.test_replicating import PARIS, SECTIONS, exchange_keys, make_place

MACHINES = 10
BERLIN = guid("Berlin")
LOOK_SECONDS = 0.02  # how often the other server is looked at
Figures = dict[str, str]
Worked = tuple[float, float]  # a moment, and seconds of the processor up to it


def path(number: int, prefix: str) -> str:
    return f"machine{number % MACHINES}\\{prefix}{number}"


def fill(directory: EmbeddedDirectory, count: int) -> float:
    """An enterprise that has been there for a while; the seconds that its queues took."""
    directory.create("Enterprise", {"name": "example"})
    directory.create("Site", {"name": "Berlin", "identifier": BERLIN})
    row = {"name": "Paris", "identifier": PARIS, "primary_site_controller": "PSC1"}
    directory.create("Site", row)
    for number in range(MACHINES):
        name = f"machine{number}"
        directory.create("QueueManager", {"computer_name": name, "site_identifiers": [BERLIN]})
    rows = [{"path_name": path(number, "queue")} for number in range(count)]
    started = time.monotonic()
    results = directory.create_many("Queue", rows)
    assert all(result is DirectoryResult.SUCCESS for result, _ in results)
    return time.monotonic() - started


def create_each(
    directory: EmbeddedDirectory, count: int, prefix: str, clock: Callable[[], float]
) -> tuple[float, float]:
    """Seconds, and seconds of the processor by `clock`."""
    started, worked = time.monotonic(), clock()
    for number in range(count):
        row = {"path_name": path(number, prefix)}
        assert directory.create("Queue", row)[0] is DirectoryResult.SUCCESS
    return time.monotonic() - started, clock() - worked


def alone(count: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as place, LmdbStore(Path(place)) as store:
        directory = EmbeddedDirectory(store, SystemClock(), Random(1))
        fill(directory, 0)
        return create_each(directory, count, "alone", time.thread_time)


def last_of(replication: Replication) -> int:
    """The number of the last change of Berlin that a server has; 0 while all is fetched anew."""
    for each in replication.replicator.status().partitions:
        if each.partition_id == BERLIN:
            return each.last if each.state == PurgeState.NORMAL.name else 0
    return 0


def remember_less(replication: Replication) -> None:
    """Where it is decided: deletions of the first half of all changes are forgotten."""
    with replication.replicator.turn() as server:
        berlin = server.state.partitions[BERLIN]
        berlin.purged = max(berlin.purged, berlin.last // 2)


def come_back(replication: Replication) -> None:
    """As if the copy were from long ago: it asks for what is missing, and hears that it is late."""
    with replication.replicator.turn() as server:
        berlin = server.state.partitions[BERLIN]
        berlin.last, berlin.purged, berlin.window = 1, 0, MAX_SEQ_NUMBER
        send_sync_request(server, berlin)
    replication.replicator.tell_carrier()


def copy(configuration: Configuration, caller: Connection) -> None:
    """The other server: it is asked to wait for a number, and says when it had it."""

    async def main() -> None:
        caller.send((time.monotonic(), time.process_time()))
        service = await Service.start(configuration)
        replication = service.hub.replication
        assert replication is not None
        while order := await asyncio.to_thread(caller.recv):
            wanted, is_anew = order
            if is_anew:
                await asyncio.to_thread(come_back, replication)
            while await asyncio.to_thread(last_of, replication) < wanted:
                await asyncio.sleep(LOOK_SECONDS)
            caller.send((time.monotonic(), time.process_time()))
            assert not is_anew or replication.replicator.counters["sync0"] == 1
        await service.stop()

    hush()
    asyncio.run(main())


class Pair:
    """The server that decides, in this process, and the one that has a copy."""

    def __init__(self, replication: Replication, other: Connection, filling: float) -> None:
        self.replication = replication
        self.filling = filling  # seconds that the queues took, all in one call
        self._other = other

    async def arrival(self, *, is_anew: bool = False) -> Worked:
        """When the other one had everything that is here now, and what it has worked so far."""
        wanted = await asyncio.to_thread(last_of, self.replication)
        self._other.send((wanted, is_anew))
        moment, worked = await asyncio.to_thread(self._other.recv)
        return moment, worked


async def with_copy(
    place: Path, count: int, use: Callable[[Pair, Worked], Awaitable[Figures]]
) -> Figures:
    """Start both; `use` gets the moment at which the second one began."""
    places = [make_place(place, name) for name in ("PEC0", "PSC1")]
    exchange_keys(places)
    pec, psc = places
    store = open_data_directory(pec.data)
    filling = fill(EmbeddedDirectory(store, SystemClock(), Random(1)), count)
    store.close()
    service = await Service.start(pec.configuration([psc], SECTIONS["PEC0"]))
    replication = service.hub.replication
    assert replication is not None
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    configuration = psc.configuration([pec], SECTIONS["PSC1"])
    process = context.Process(target=copy, args=(configuration, theirs))
    process.start()
    try:
        begun = await asyncio.to_thread(ours.recv)
        return await use(Pair(replication, ours, filling), begun)
    finally:
        ours.send(None)
        await asyncio.to_thread(process.join)
        await service.stop()


async def measure(place: Path, objects: int, changes: int, singles: int) -> Figures:
    async def use(pair: Pair, start: Worked) -> Figures:
        moment, before = await pair.arrival()
        copied, copy_work = moment - start[0], before - start[1]
        # The disk is busy by turns: what is compared is measured just before.
        plain, plain_work = await asyncio.to_thread(alone, changes)
        begun = time.monotonic()
        own = pair.replication.own
        made, made_work = await asyncio.to_thread(
            create_each, own, changes, "change", time.process_time
        )
        moment, worked = await pair.arrival()
        arrived, applied_work = moment - begun, worked - before
        waits = []
        for number in range(singles):
            begun = time.monotonic()
            await asyncio.to_thread(create_each, own, 1, f"single{number}-", time.process_time)
            moment, _ = await pair.arrival()
            waits.append(moment - begun)
        await asyncio.to_thread(remember_less, pair.replication)
        _, before_anew = await pair.arrival()
        begun = time.monotonic()
        moment, worked = await pair.arrival(is_anew=True)
        anew, anew_work = moment - begun, worked - before_anew
        everything = objects + changes + singles
        return {
            f"alone: create {changes:,} one by one": _rate(changes, plain, plain_work),
            f"copy: {objects:,} queues to a new server": f"{copied:.1f} s, "
            + _rate(objects, copied, copy_work),
            "copy, against creating them in one call": f"{pair.filling / copied:.2f}",
            f"anew: {everything:,} queues": f"{anew:.1f} s, " + _rate(everything, anew, anew_work),
            "changes: made where they are decided": _rate(changes, made, made_work),
            "changes: until the other has the last": _rate(changes, arrived, applied_work),
            "changes, against alone": f"{plain / arrived:.2f}; processor time of both servers "
            f"{(made_work + applied_work) / plain_work:.1f} times",
            "one: median, worst": f"{statistics.median(waits) * 1000:.0f}, "
            f"{max(waits) * 1000:.0f} ms",
        }

    return await with_copy(place, objects, use)


def hush() -> None:
    """Nothing here has gates, and the log says so."""
    logging.getLogger("falconmq").setLevel(logging.ERROR)


def _rate(count: int, seconds: float, worked: float) -> str:
    return f"{count / seconds:,.0f}/s, {worked / count * 1e6:,.0f} us each"


def main() -> int:
    parser = argparse.ArgumentParser(description="Copies of the directory on another server.")
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--changes", type=int, default=2_000)
    parser.add_argument("--singles", type=int, default=20)
    parser.add_argument("--short", action="store_true", help="500 objects and 50 changes")
    options = parser.parse_args()
    if options.short:
        options.objects, options.changes, options.singles = 500, 50, 3
    hush()
    with tempfile.TemporaryDirectory() as place:
        steps = measure(Path(place), options.objects, options.changes, options.singles)
        figures = asyncio.run(steps)
    table = Table("", "", title=f"load of the machine: {os.getloadavg()[0]:.1f}")
    for name, figure in figures.items():
        table.add_row(name, figure)
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
