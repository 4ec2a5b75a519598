"""The directory on many servers: written anywhere, the same everywhere, whoever is killed.

FALCONMQ_REPLICATION_OBJECTS says how many queues are created, changed and deleted; the whole run of
`make replicate` takes 5,000, which is also enough for deletions to be forgotten (purged) while a
server is away.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from falconmq.client import UnreachableError
from falconmq.errors import FalconMQError
from tests.e2e.estate import wait_until
from tests.e2e.replicas import SITES, Replicas

OBJECTS = int(os.environ.get("FALCONMQ_REPLICATION_OBJECTS", "120"))
KILLS = max(3, OBJECTS // 250)
PURGED_FROM = 3000  # objects: below that nothing is purged
WRITERS = ("pec0", "psc1", "psc2")


@pytest.fixture
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    with Replicas(tmp_path_factory.mktemp("replicas")) as replicas:
        replicas.begin()
        yield replicas


@dataclass
class Expected:
    """What must be true at the end: labels by GUID, what is gone, and what may be either way."""

    labels: dict[str, set[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    perhaps_gone: set[str] = field(default_factory=set)
    certain: int = 0  # calls that were answered


class Writer:
    """Creates, changes and deletes queues of all sites, at any server that runs."""

    def __init__(self, replicas: Replicas, seed: int) -> None:
        self.replicas = replicas
        self.expected = Expected()
        self._random = random.Random(seed)
        self._number = 0

    def write(self, servers: list[str]) -> None:
        """One call; one that a kill broke off may have been obeyed or not."""
        expected, server = self.expected, self._random.choice(servers)
        choice = self._random.random()
        known = sorted(expected.labels)
        try:
            if choice < 0.5 or not known:
                owner = self._random.choice(WRITERS)
                self._create(server, owner)
            elif choice < 0.8:
                self._change(server, self._random.choice(known))
            else:
                self._delete(server, self._random.choice(known))
            expected.certain += 1
        except (FalconMQError, UnreachableError):
            pass  # somebody that has to be asked is down

    def _create(self, server: str, owner: str) -> None:
        self._number += 1
        label = f"label {self._number}"
        name = rf"{owner}\queue{self._number}"
        identifier = self.replicas.create(server, "queue", {"path_name": name, "label": label})
        self.expected.labels[identifier] = {label}

    def _change(self, server: str, identifier: str) -> None:
        self._number += 1
        label = f"label {self._number}"
        before = set(self.expected.labels[identifier])
        self.expected.labels[identifier].add(label)  # it may happen although nobody says so
        self.replicas.change(server, "queue", identifier, {"label": label})
        self.expected.labels[identifier] = {label} | (before if len(before) > 1 else set())

    def _delete(self, server: str, identifier: str) -> None:
        self.expected.perhaps_gone.add(identifier)
        self.replicas.delete(server, "queue", identifier)
        self.expected.gone.add(identifier)
        del self.expected.labels[identifier]


def check(replicas: Replicas, expected: Expected) -> None:
    """All copies are equal, and have what was acknowledged."""
    replicas.settle()
    found = replicas.queues("bsc2")
    assert replicas.queues("pec0") == found
    for identifier, labels in expected.labels.items():
        if identifier in found:
            assert found[identifier] in labels, identifier
        else:
            assert identifier in expected.perhaps_gone, identifier
    assert not expected.gone & found.keys()


def test_five_servers_end_with_the_same_though_they_are_killed(replicas: Replicas) -> None:
    writer = Writer(replicas, seed=1)
    kills = {OBJECTS * number // (KILLS + 1): number for number in range(1, KILLS + 1)}
    chance = random.Random(2)
    for number in range(OBJECTS):
        if number in kills:
            victim = replicas.named[chance.choice(sorted(SITES))]
            victim.kill()
            servers = [name for name, daemon in replicas.named.items() if daemon.process]
            for _ in range(5):
                writer.write(servers)
            victim.start()
            wait_until(
                lambda: replicas.status(victim.name)["ready"],  # noqa: B023
                f"{victim.name} has its copy",
            )
        writer.write(sorted(SITES))
    check(replicas, writer.expected)
    count = len(writer.expected.labels)
    assert writer.expected.certain > OBJECTS // 2
    print(f"{writer.expected.certain} changes, {KILLS} kills, {count} queues: all copies are equal")


def test_a_backup_that_was_away_catches_up(replicas: Replicas) -> None:
    """Its controller is killed too: what waited for the backup in its outgoing queue is gone.

    Otherwise every change would still be told in its turn, and nothing would have to be asked for.
    """
    writer = Writer(replicas, seed=3)
    backup, controller = replicas.named["bsc2"], replicas.named["psc2"]
    before = _numbers(replicas, "bsc2", "last")
    backup.kill()
    others = sorted(SITES.keys() - {"bsc2"})
    for _ in range(OBJECTS):
        writer.write(others)
    if OBJECTS >= PURGED_FROM:
        wait_until(lambda: any(_numbers(replicas, "psc2", "purged").values()), "it forgot some")
    controller.kill()
    controller.start()
    wait_until(lambda: replicas.status("psc2")["ready"], "psc2 has its copy")
    forgotten = _numbers(replicas, "psc2", "purged")
    backup.start()
    check(replicas, writer.expected)
    full = replicas.status("bsc2")["counters"]["engine"].get("sync0", 0)
    print(f"{writer.expected.certain} changes while it was away, {full} whole copies asked for")
    print(f"it had {before}, its controller had forgotten {forgotten}")
    too_late = [name for name, number in before.items() if number < forgotten[name]]
    assert full == len(too_late), "a whole copy is asked for only if it has to be, and then it is"
    assert bool(too_late) == (OBJECTS >= PURGED_FROM)


def _numbers(replicas: Replicas, server: str, which: str) -> dict[str, int]:
    """A number of each partition, by its name."""
    return {each["name"]: each[which] for each in replicas.status(server)["partitions"]}
