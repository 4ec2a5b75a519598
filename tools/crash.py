"""Kill a busy queue manager at random moments, and check that it kept its word.

    python -m tools.crash --rounds 200

A round starts a process that sends, receives, commits, aborts, purges and lets messages expire, all
at once; ends it with SIGKILL; opens its data directory; and holds what is there against the log of
what the process was told: nothing acknowledged is lost, nothing consumed comes back, transactions
happened whole or not at all, order and counters are kept. One seed decides load and moments; it is
printed first. (How threads interleave is the machine's luck: a seed repeats the plan, not the run.)
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import falconmq
from falconmq import Message, Queue, QueueManager
from tools.crash_worker import (
    EXPIRING,
    INCOMING,
    LEDGER,
    OUTGOING,
    PLAIN,
    PURGED,
    QUEUES,
    TIME_TO_BE_RECEIVED,
    prepare,
)

EARLY = 0.15  # share of the rounds that end while the process still opens the directory
CLOCK_SECONDS = 1  # sent times are whole seconds
PROBE = "probe"


class BrokenPromiseError(Exception):
    """The queue manager did not keep its word."""


@dataclass
class Told:
    """What the process was told, over all rounds."""

    begun: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # sends, by queue
    sent: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    received: set[str] = field(default_factory=set)
    transactions: dict[str, int] = field(default_factory=dict)  # begun to commit: messages
    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)  # out of the ledger, for good
    purged: dict[str, int] = field(default_factory=dict)  # up to which number, by sender
    ordinal: int = 0  # the highest message id
    operations: int = 0
    # Of this round: begun when the process ended.
    receiving: int = 0
    taking: list[list[str]] = field(default_factory=list)

    def read(self, log: Path) -> None:
        """Take in the log of one round."""
        open_reads: dict[str, int] = {}
        open_takes: dict[str, list[str]] = {}
        lines = log.read_text().split("\n")[:-1] if log.exists() else []  # the last is unfinished
        for line in lines:
            kind, *words = line.split(" ")
            queue, name = words[0], words[1]
            rest = words[2:]
            if kind == "s":
                self.begun[queue].add(f"{name} {rest[0]}")
            elif kind == "S":
                self.sent[queue].add(f"{name} {rest[0]}")
                self.ordinal = max(self.ordinal, int(rest[1]))
            elif kind == "r":
                open_reads[name] = 1
            elif kind == "R":
                open_reads[name] = 0
                self.received.update([" ".join(rest)] if rest[0] else [])
            else:
                self._read_commit(kind, name, rest, open_takes)
            self.operations += kind.isupper()
        self.receiving = sum(open_reads.values())
        self.taking = [bodies for bodies in open_takes.values() if bodies]

    def _read_commit(
        self, kind: str, name: str, rest: list[str], open_takes: dict[str, list[str]]
    ) -> None:
        if kind == "c":
            self.transactions[f"{name} {rest[0]}"] = int(rest[1])
        elif kind == "C":
            self.committed.add(f"{name} {rest[0]}")
        elif kind == "A":
            self.aborted.add(f"{name} {rest[0]}")
        elif kind == "d":
            open_takes[name] = " ".join(rest).split(";")
        elif kind == "D":
            self.taken.update(open_takes.pop(name))
        elif kind == "P":
            self.purged[name] = int(rest[0])


class Checker:
    """Holds a data directory against what was told."""

    def __init__(self, manager: QueueManager, told: Told) -> None:
        self.manager = manager
        self.told = told
        # Time goes on: who is dead now was not alive later, but who is alive may be dead soon.
        self.dead = bodies(manager.dead_letter)
        self.found = {name: bodies(manager.queue(name)) for name in QUEUES}

    def check(self) -> None:
        for name, found in self.found.items():
            require(len(found) == len(set(found)), f"{name} has a message twice")
        self.check_plain()
        self.check_sent_transactions()
        self.check_taken()
        self.check_transfers()
        self.check_purges()
        self.check_expiry()
        self.check_order()
        self.check_counters()

    def check_plain(self) -> None:
        told, present = self.told, set(self.found[PLAIN]) - {PROBE}
        back = present & told.received
        require(not back, f"consumed messages came back: {sorted(back)[:5]}")
        strange = present - told.begun[PLAIN]
        require(not strange, f"messages that nobody sent: {sorted(strange)[:5]}")
        lost = told.sent[PLAIN] - present - told.received
        require(
            len(lost) <= told.receiving,
            f"{len(lost)} acknowledged messages lost, {told.receiving} receives were under way: "
            f"{sorted(lost)[:5]}",
        )
        told.received |= lost  # a receive that was under way took them
        told.begun[PLAIN] |= present
        told.sent[PLAIN] |= present

    def check_sent_transactions(self) -> None:
        told, present = self.told, set(self.found[LEDGER])
        known = present | told.taken | {body for bodies in told.taking for body in bodies}
        for transaction, count in told.transactions.items():
            parts = {f"{transaction} {part}" for part in range(count)}
            there = parts & known
            if transaction in told.committed:
                require(there == parts, f"transaction {transaction} lost {sorted(parts - there)}")
            elif there:  # its commit was under way: all or nothing
                require(there == parts, f"half a transaction: {transaction} {sorted(there)}")
                told.committed.add(transaction)
        for body in present:
            transaction = body.rpartition(" ")[0]
            require(transaction not in told.aborted, f"{body} was aborted and is there")
            require(transaction in told.transactions, f"{body} was never committed and is there")

    def check_taken(self) -> None:
        told, present = self.told, set(self.found[LEDGER])
        back = present & told.taken
        require(not back, f"consumed in a transaction, and back: {sorted(back)[:5]}")
        for bodies in told.taking:
            there = present & set(bodies)
            require(not there or there == set(bodies), f"half a receive: {bodies}, there {there}")
            if not there:
                told.taken.update(bodies)

    def check_transfers(self) -> None:
        both = sorted(self.found[INCOMING] + self.found[OUTGOING])
        expected = sorted(f"traveller {number}" for number in range(20))
        require(both == expected, f"travellers lost or doubled: {both}")

    def check_purges(self) -> None:
        for body in self.found[PURGED]:
            sender, _, sent = body.partition(" ")
            require(int(sent) > self.told.purged.get(sender, 0), f"{body} was purged and is there")

    def check_expiry(self) -> None:
        """Every message is in its queue or a dead letter, and never in both; then time passes."""
        dead, alive = set(self.dead), set(self.found[EXPIRING])
        require(len(self.dead) == len(dead), "a dead letter twice")
        require(not dead & alive, "a message is alive and dead")
        lost = self.told.sent[EXPIRING] - dead - alive
        lost -= set(bodies(self.manager.dead_letter))  # it died between the two looks
        require(not lost, f"expiring messages lost: {sorted(lost)[:5]}")
        deadline = time.monotonic() + TIME_TO_BE_RECEIVED + CLOCK_SECONDS + 2
        queue = self.manager.queue(EXPIRING)
        while queue.count:
            require(time.monotonic() < deadline, f"{queue.count} messages did not expire")
            time.sleep(0.05)
        lost = self.told.sent[EXPIRING] - set(bodies(self.manager.dead_letter))
        require(not lost, f"expired messages left no dead letter: {sorted(lost)[:5]}")
        self.manager.dead_letter.purge()
        self.told.sent[EXPIRING].clear()

    def check_order(self) -> None:
        """What one sender sent is read in the order it was sent."""
        for name in (PLAIN, LEDGER, PURGED):
            last: dict[str, list[int]] = {}
            for body in self.found[name]:
                if body == PROBE:
                    continue
                sender, *numbers = body.split(" ")
                place = [int(number) for number in numbers]
                require(last.get(sender, [-1]) < place, f"{name}: {body} came too late")
                last[sender] = place

    def check_counters(self) -> None:
        plain = self.manager.queue(PLAIN)
        highest = max((lookup_sequence(message) for message in plain), default=0)
        id = plain.send(Message(PROBE))
        require(id.ordinal > self.told.ordinal, f"message id {id.ordinal} was given twice")
        self.told.ordinal = id.ordinal
        probe = list(plain)[-1]
        require(probe.text == PROBE, "a new message is not the last one")
        require(lookup_sequence(probe) > highest, "a lookup id was given twice")
        assert probe.lookup_id is not None
        plain.receive_by_lookup_id(probe.lookup_id)
        status = self.manager.status()
        for line in status.queues:
            queue = self.manager.queue(line.name)
            found = len(list(queue))
            require(found == line.messages, f"{line.name} counts {line.messages}, has {found}")
        size = sum(line.size_bytes for line in status.queues)
        require(size == status.message_bytes, f"{status.message_bytes} bytes counted, {size} there")


def bodies(queue: Queue) -> list[str]:
    return [message.text.strip() for message in queue]


def lookup_sequence(message: Message) -> int:
    assert message.lookup_id is not None
    return message.lookup_id & (1 << 56) - 1


def require(is_kept: bool, problem: str) -> None:
    if not is_kept:
        raise BrokenPromiseError(problem)


def kill_a_worker(directory: Path, log: Path, number: int, seed: int, chance: random.Random) -> str:
    """One process under load, ended at a random moment; when that was."""
    arguments = [str(directory), str(log), str(number), str(seed)]
    command = [sys.executable, "-m", "tools.crash_worker", *arguments]
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stderr is not None
        is_early = chance.random() < EARLY
        if not is_early:
            worker.stdout.readline()
        delay = chance.uniform(0.0, 0.5 if is_early else 1.2)
        time.sleep(delay)
        worker.send_signal(signal.SIGKILL)
        code = worker.wait()
        errors = worker.stderr.read()
    require(code == -signal.SIGKILL, f"the worker ended by itself with {code}:\n{errors}")
    return f"{'while it opened' if is_early else 'under load'}, after {delay:.3f} s"


def run(rounds: int, seed: int, directory: Path, *, quiet: bool = False) -> Told:
    """Kill and check `rounds` times over one data directory."""
    chance = random.Random(seed)  # noqa: S311
    told = Told()
    data = directory / "data"
    prepare(data)
    for number in range(1, rounds + 1):
        log = directory / f"log.{number}"
        moment = kill_a_worker(data, log, number, seed, chance)
        told.read(log)
        try:
            with falconmq.open(data) as manager:
                Checker(manager, told).check()
        except BrokenPromiseError as problem:
            text = (
                f"round {number} of seed {seed}, killed {moment}: {problem} (kept in {directory})"
            )
            raise BrokenPromiseError(text) from None
        log.unlink(missing_ok=True)
        if not quiet:
            print(f"round {number}: killed {moment}; {told.operations} operations held", flush=True)
    return told


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.crash", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="kills (10)")
    parser.add_argument("--seed", type=int, default=None, help="repeat the plan of a run")
    parser.add_argument("--directory", type=Path, default=None, help="where the data lives")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    directory = options.directory or Path(tempfile.mkdtemp(prefix="falconmq-crash-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}: python -m tools.crash --rounds {options.rounds} --seed {seed}", flush=True)
    try:
        told = run(options.rounds, seed, directory)
    except BrokenPromiseError as problem:
        print(f"BROKEN: {problem}")
        return 1
    shutil.rmtree(directory)
    print(f"{options.rounds} kills, {told.operations} acknowledged operations, every promise kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
