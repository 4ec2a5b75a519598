"""The process that `tools.crash` kills: load on one data directory, every step noted in a log.

A line is written before an operation begins (small letter) and after it returned (capital letter).
The log is a file in append mode, so what was noted before a SIGKILL is there after it.

    s/S queue sender number [ordinal]   a message is being sent / was sent
    r/R queue reader [sender number]    a receive begins / returned this message
    c/C queue sender transaction count  a commit of so many sent messages begins / returned
    A queue sender transaction          an abort of sent messages returned
    d/D queue reader bodies             a commit of received messages begins / returned
    m/M in out body                     a transfer from queue to queue begins to commit / returned
    p/P queue number                    a purge of everything up to a number begins / returned
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import falconmq
from falconmq import Journal, Message, MqStatus, Queue, QueueManager

PLAIN = r".\private$\plain"
LEDGER = r".\private$\ledger"
INCOMING = r".\private$\incoming"
OUTGOING = r".\private$\outgoing"
PURGED = r".\private$\purged"
EXPIRING = r".\private$\expiring"
QUEUES = {
    PLAIN: False,
    LEDGER: True,
    INCOMING: True,
    OUTGOING: True,
    PURGED: False,
    EXPIRING: False,
}
TIME_TO_BE_RECEIVED = 1  # seconds
BACKLOG = 300  # messages in a queue at which its sender pauses


class Log:
    """Lines that survive the end of the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


@dataclass
class Turn:
    """One more round of a thread."""

    chance: random.Random
    name: str
    number: int = 0


class Load:
    """The threads of one run."""

    def __init__(self, manager: QueueManager, log: Log, run: int, seed: int) -> None:
        self.manager = manager
        self.log = log
        self.run = run
        self.seed = seed
        self.queues = {name: manager.queue(name) for name in QUEUES}

    def start(self) -> list[threading.Thread]:
        steps: list[Callable[[Turn], None]] = [
            self.send,
            self.send,
            self.receive,
            self.send_in_transaction,
            self.receive_in_transaction,
            self.transfer,
            self.purge,
            self.expire,
        ]
        threads = []
        for number, step in enumerate(steps):
            name = f"{self.run}.{number}"
            turn = Turn(random.Random(f"{self.seed}/{name}"), name)  # noqa: S311
            threads.append(threading.Thread(target=repeat, args=(step, turn), daemon=True))
        for thread in threads:
            thread.start()
        return threads

    def send(self, turn: Turn) -> None:
        self._wait_for_room(PLAIN)
        self.log.note("s", PLAIN, turn.name, turn.number)
        body = f"{turn.name} {turn.number}".ljust(turn.chance.choice((20, 400, 5000)))
        id = self.queues[PLAIN].send(Message(body))
        self.log.note("S", PLAIN, turn.name, turn.number, id.ordinal)

    def receive(self, turn: Turn) -> None:
        self.log.note("r", PLAIN, turn.name)
        body = receive(self.queues[PLAIN], turn.chance.choice((0.0, 0.05)))
        self.log.note("R", PLAIN, turn.name, body)

    def send_in_transaction(self, turn: Turn) -> None:
        self._wait_for_room(LEDGER)
        count = turn.chance.randint(1, 6)
        transaction = self.manager.transaction()
        for part in range(count):
            message = Message(f"{turn.name} {turn.number} {part}")
            self.queues[LEDGER].send(message, transaction)
        if turn.chance.random() < 0.2:
            transaction.abort()
            self.log.note("A", LEDGER, turn.name, turn.number)
            return
        self.log.note("c", LEDGER, turn.name, turn.number, count)
        transaction.commit()
        self.log.note("C", LEDGER, turn.name, turn.number, count)

    def receive_in_transaction(self, turn: Turn) -> None:
        ledger, bodies = self.queues[LEDGER], []
        transaction = self.manager.transaction()
        for _ in range(turn.chance.randint(1, 5)):
            try:
                bodies.append(ledger.receive(transaction, timeout=0.02).text.strip())
            except falconmq.ReadError:
                break
        if not bodies or turn.chance.random() < 0.3:
            transaction.abort()
            return
        self.log.note("d", LEDGER, turn.name, ";".join(bodies))
        transaction.commit()
        self.log.note("D", LEDGER, turn.name, ";".join(bodies))

    def transfer(self, turn: Turn) -> None:
        source, target = self.queues[INCOMING], self.queues[OUTGOING]
        if turn.chance.random() < 0.5:
            source, target = target, source
        with self.manager.transaction() as transaction:
            try:
                message = source.receive(transaction, timeout=0)
            except falconmq.ReadError:
                return
            if turn.chance.random() < 0.3:
                transaction.abort()
                return
            target.send(Message(message.body, body_type=message.body_type), transaction)
            self.log.note("m", source.name, target.name, message.text)
        self.log.note("M", source.name, target.name, message.text)

    def purge(self, turn: Turn) -> None:
        queue = self.queues[PURGED]
        for part in range(turn.chance.randint(1, 8)):
            self.log.note("s", PURGED, turn.name, turn.number * 10 + part)
            id = queue.send(Message(f"{turn.name} {turn.number * 10 + part}"))
            self.log.note("S", PURGED, turn.name, turn.number * 10 + part, id.ordinal)
        if turn.chance.random() < 0.7:
            self.log.note("p", PURGED, turn.name, turn.number * 10 + 9)
            queue.purge()
            self.log.note("P", PURGED, turn.name, turn.number * 10 + 9)

    def expire(self, turn: Turn) -> None:
        self._wait_for_room(EXPIRING)
        self.log.note("s", EXPIRING, turn.name, turn.number)
        message = Message(
            f"{turn.name} {turn.number}",
            time_to_be_received=TIME_TO_BE_RECEIVED,
            journal=Journal.DEAD_LETTER,
        )
        id = self.queues[EXPIRING].send(message)
        self.log.note("S", EXPIRING, turn.name, turn.number, id.ordinal)

    def _wait_for_room(self, name: str) -> None:
        pause = threading.Event()
        while self.queues[name].count > BACKLOG:
            pause.wait(0.005)


def repeat(step: Callable[[Turn], None], turn: Turn) -> None:
    while True:
        turn.number += 1
        step(turn)


def receive(queue: Queue, timeout: float) -> str:
    """The text of the next message; empty if none came."""
    try:
        return queue.receive(timeout=timeout).text.strip()
    except falconmq.ReadError as error:
        if error.status is not MqStatus.IO_TIMEOUT:
            raise
        return ""


def prepare(directory: Path) -> None:
    """The queues, and the messages that travel between two of them."""
    with falconmq.open(directory) as manager:
        for name, transactional in QUEUES.items():
            manager.create_queue(name, transactional=transactional)
        with manager.transaction() as transaction:
            travellers = [Message(f"traveller {number}") for number in range(20)]
            manager.queue(INCOMING).send_many(travellers, transaction)


def main() -> int:
    directory, log_path, run, seed = sys.argv[1:5]
    log = Log(Path(log_path))
    manager = falconmq.open(directory)
    threads = Load(manager, log, int(run), int(seed)).start()
    print("ready", flush=True)
    failed = threading.Event()

    def report(arguments: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(arguments)
        failed.set()

    threading.excepthook = report
    while not failed.wait(0.1):
        if not any(thread.is_alive() for thread in threads):
            break
    return 1  # only a kill ends it well


if __name__ == "__main__":
    sys.exit(main())
