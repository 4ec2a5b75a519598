"""The directory: registration of many queues, and look-ups, on all back ends.

    register   create 10,000 public queues: all in one call, and one by one
    by path    read a queue by its path name, a few attributes
    by GUID    read a queue by its GUID, all attributes
    of one     list the queues of one queue manager out of ten

The embedded directory is in a store with full durability; remote is the same in another process,
over its HTTP API on loopback; LDAP is Debian's slapd on loopback, with its database in full
durability as well. Beside each rate stands the processor time of this process for one object, which
a busy machine changes less. Needs slapd for the last column: tools/install-slapd.sh installs it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from falconmq.client.remote_directory import RemoteDirectory
from falconmq.clock import SystemClock
from falconmq.directory.base import DirectoryBase
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.ldap_directory import LdapDirectory
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.directory.queries import find_all
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import Settings
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.service.access import Role
from falconmq.store import LmdbStore
from tests.directory.slapd import ADMINISTRATOR, DOMAIN, PASSWORD, Slapd, find_slapd
from tests.service.ports import HttpManager

MACHINES = 10
COLUMNS = ("label", "queue_manager_identifier")


@contextmanager
def embedded(place: Path) -> Iterator[DirectoryBase]:
    with LmdbStore(place) as store:
        yield EmbeddedDirectory(store, SystemClock(), Random(1))


@contextmanager
def remote(place: Path) -> Iterator[DirectoryBase]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(place, theirs))
    server.start()
    try:
        directory = RemoteDirectory(*ours.recv())
        yield directory
        directory.close()
    finally:
        ours.send(None)
        server.join()


def serve(place: Path, caller: Connection) -> None:
    """Another queue manager: it says where it is, and goes when it is told to."""
    with LmdbStore(place) as store:
        engine = start_engine(store, Settings(computer_name="SERVER"))
        with HttpManager(place, engine=engine) as manager:
            caller.send(([manager.url], manager.token(Role.DIRECTORY)))
            caller.recv()


@contextmanager
def ldap(place: Path) -> Iterator[DirectoryBase]:
    server = Slapd(place, is_durable=True).start()
    try:
        settings = LdapSettings((server.url,), ADMINISTRATOR, PASSWORD)
        directory = LdapDirectory(settings, SystemClock(), Random(1))
        yield directory
        directory.close()
    finally:
        server.stop()


def paths(count: int, prefix: str) -> list[str]:
    return [f"machine{number % MACHINES}\\{prefix}{number}" for number in range(count)]


def measure(directory: DirectoryBase, count: int, reads: int) -> dict[str, str]:
    """What each step took, in words."""
    directory.create("Enterprise", {"name": DOMAIN})
    _, site = directory.create("Site", {"name": "Berlin"})
    for number in range(MACHINES):
        name = f"machine{number}"
        directory.create("QueueManager", {"computer_name": name, "site_identifiers": [site]})
    wanted = paths(count, "queue")
    found: dict[str, str] = {}

    def register_all() -> int:
        results = directory.create_many("Queue", [{"path_name": path} for path in wanted])
        assert all(result is DirectoryResult.SUCCESS for result, _ in results)
        return len(results)

    def register_each() -> int:
        some = paths(min(count, reads), "single")
        for path in some:
            assert directory.create("Queue", {"path_name": path})[0] is DirectoryResult.SUCCESS
        return len(some)

    def by_path() -> int:
        for path in Random(2).choices(wanted, k=reads):
            result, _ = directory.read("Queue", equals("path_name", path), COLUMNS)
            assert result is DirectoryResult.SUCCESS
        return reads

    guids: list[object] = []

    def of_one() -> int:
        rows = find_all(directory, "Queue", equals("computer_name", "machine3"))
        guids.extend(row["identifier"] for row in rows)
        return len(rows)

    def by_guid() -> int:
        for guid in Random(3).choices(guids, k=reads):
            result, _ = directory.read("Queue", equals("identifier", guid), None)
            assert result is DirectoryResult.SUCCESS
        return reads

    steps: dict[str, Callable[[], int]] = {
        f"register {count:,} queues in one call": register_all,
        "register one by one": register_each,
        "look up by path name": by_path,
        "list the queues of one manager": of_one,
        "look up by GUID, all attributes": by_guid,
    }
    for name, step in steps.items():
        started, worked = time.perf_counter(), time.process_time()
        done = step()
        seconds, microseconds = time.perf_counter() - started, time.process_time() - worked
        found[name] = f"{done / seconds:,.0f}/s, {microseconds / done * 1e6:,.0f} us each"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Look-ups and registration in the directory.")
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--reads", type=int, default=2_000)
    options = parser.parse_args()
    columns: dict[str, dict[str, str]] = {}
    back_ends = {"embedded": embedded, "remote (HTTP)": remote}
    if find_slapd() is None:
        sys.stderr.write("no slapd: LDAP is left out; tools/install-slapd.sh installs one\n")
    else:
        back_ends["LDAP (slapd)"] = ldap
    for name, back_end in back_ends.items():
        with tempfile.TemporaryDirectory() as place, back_end(Path(place)) as directory:
            columns[name] = measure(directory, options.queues, options.reads)
    table = Table("", *columns, title=f"load of the machine: {os.getloadavg()[0]:.1f}")
    for step in next(iter(columns.values())):
        table.add_row(step, *(column[step] for column in columns.values()))
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
