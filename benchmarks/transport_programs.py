"""The two programs of `benchmarks.transport`: one sends, one receives, through a door.

    python -m benchmarks.transport_programs send|receive '{"door": ..., ...}'

A door is what a program of that system uses: the control client of FalconMQ (packets, or JSON), an
AMQP client. Both
programs print "ready", the sender waits for a line, and each prints one line of JSON at its end.

Every body begins with a stamp: when it was due to be sent, by which caller, as which of his. So the
receiver knows the time each message took, and that none was lost, doubled or overtaken. The clock
is the monotonic one, which all processes of a computer share. The last message says how many there
were.
"""

from __future__ import annotations

import base64
import json
import statistics
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

from falconmq import Message
from falconmq.client import ControlClient

STAMP: Final = struct.Struct("<dIq")  # when it was due, caller, number of this caller's message
LAST: Final = 0xFFFFFFFF  # as caller: the end; its number says how many messages there were
PATIENCE: Final = 30.0  # seconds without a message after which a receiver gives up
_WAIT: Final = 1.0


@dataclass
class Task:
    """What a program is to do."""

    system: str  # falconmq, rabbitmq
    place: str  # control socket, or port of the broker
    queue: str
    kind: str  # express, recoverable, transactional; quorum is recoverable for the sender
    size: int = 1024
    seconds: float = 1.0
    per_second: float = 0.0  # of all callers; 0: as fast as it goes
    callers: int = 1
    bulk: int = 64  # messages a call
    door: str = "packets"  # of FalconMQ: packets or json

    def arguments(self, action: str) -> list[str]:
        module = "benchmarks.transport_programs"
        return [sys.executable, "-m", module, action, json.dumps(asdict(self))]


@dataclass
class Sent:
    count: int
    begun: float
    processor: float  # seconds


@dataclass
class Received:
    count: int
    ended: float
    p50: float  # milliseconds from due to received
    p99: float
    longest: float
    processor: float
    problem: str = ""


class SendingDoor(Protocol):
    def send(self, bodies: list[bytes]) -> None:
        """Hand over messages; it may return before they are safe, `flush` may not."""

    def flush(self) -> None: ...
    def close(self) -> None: ...


class ReceivingDoor(Protocol):
    def receive(self) -> list[bytes]:
        """The next messages; none if none came within a second."""

    def close(self) -> None: ...


class ControlSender:
    """The JSON door: many messages a request; the answer says that they are durable."""

    def __init__(self, task: Task) -> None:
        self._client = ControlClient(Path(task.place))
        self._queue = task.queue
        self._is_recoverable = task.kind != "express"
        self._in_transaction = task.kind == "transactional"

    def send(self, bodies: list[bytes]) -> None:
        messages = [
            {"body": base64.b64encode(body).decode(), "recoverable": self._is_recoverable}
            for body in bodies
        ]
        self._client.send(self._queue, messages, transaction=self._in_transaction)

    def flush(self) -> None:
        """Nothing is left: `send` waits."""

    def close(self) -> None:
        self._client.close()


class ControlReceiver:
    """Takes whatever is there, a request at a time."""

    def __init__(self, task: Task) -> None:
        self._client = ControlClient(Path(task.place))
        self._queue = task.queue
        self._count = task.bulk * 4

    def receive(self) -> list[bytes]:
        messages = self._client.receive(self._queue, count=self._count, timeout=_WAIT)
        return [base64.b64decode(message["body"]) for message in messages]

    def close(self) -> None:
        self._client.close()


class PacketSender:
    """The fast door: the messages of a call as MSMQ packets."""

    def __init__(self, task: Task) -> None:
        self._client = ControlClient(Path(task.place))
        self._queue = task.queue
        self._is_recoverable = task.kind != "express"
        self._in_transaction = task.kind == "transactional"

    def send(self, bodies: list[bytes]) -> None:
        is_recoverable = self._is_recoverable
        messages = [Message(body, recoverable=is_recoverable) for body in bodies]
        self._client.send_packets(self._queue, messages, transaction=self._in_transaction)

    def flush(self) -> None:
        """Nothing is left: `send` waits."""

    def close(self) -> None:
        self._client.close()


class PacketReceiver:
    """The fast door, the other way."""

    def __init__(self, task: Task) -> None:
        self._client = ControlClient(Path(task.place))
        self._queue = task.queue
        self._count = task.bulk * 4

    def receive(self) -> list[bytes]:
        messages = self._client.receive_packets(self._queue, count=self._count, timeout=_WAIT)
        return [message.body for message in messages]

    def close(self) -> None:
        self._client.close()


@contextmanager
def sending_door(task: Task) -> Iterator[SendingDoor]:
    door: SendingDoor
    if task.system == "falconmq":
        door = PacketSender(task) if task.door == "packets" else ControlSender(task)
    else:
        from benchmarks import rabbitmq  # noqa: PLC0415 - its client is optional

        confirming = rabbitmq.ConfirmedSender
        kind = rabbitmq.TransactionalSender if task.kind == "transactional" else confirming
        door = kind(int(task.place), task.queue, is_durable=task.kind != "express")
    try:
        yield door
    finally:
        door.close()


@contextmanager
def receiving_door(task: Task) -> Iterator[ReceivingDoor]:
    door: ReceivingDoor
    if task.system == "falconmq":
        door = PacketReceiver(task) if task.door == "packets" else ControlReceiver(task)
    else:
        from benchmarks import rabbitmq  # noqa: PLC0415 - its client is optional

        door = rabbitmq.Receiver(int(task.place), task.queue)
    try:
        yield door
    finally:
        door.close()


class Schedule:
    """Who sends what when. Callers that are late catch up with more messages in one call."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._taken = 0

    def take(self) -> list[float]:
        """The times at which the messages of the next call are due; none: it is over."""
        if not self._task.per_second:
            now = time.monotonic()
            return [now] * self._task.bulk if now - self._begun < self._task.seconds else []
        with self._lock:
            return self._due()

    def _due(self) -> list[float]:
        apart = 1 / self._task.per_second
        first = self._begun + self._taken * apart
        if first - self._begun >= self._task.seconds:
            return []
        now = time.monotonic()
        if now < first:
            time.sleep(first - now)
            now = time.monotonic()
        count = min(self._task.bulk, int((now - first) / apart) + 1)
        self._taken += count
        return [first + number * apart for number in range(count)]


def call(
    door: SendingDoor, caller: int, schedule: Schedule, filler: bytes, sent: list[int]
) -> None:
    """One caller: the next call begins when the last one returned."""
    pack = STAMP.pack
    while due := schedule.take():
        first = sent[caller]
        door.send([pack(each, caller, n) + filler for n, each in enumerate(due, first)])
        sent[caller] += len(due)
    door.flush()


def send(task: Task) -> Sent:
    with ExitStack() as stack:
        doors = [stack.enter_context(sending_door(task)) for _ in range(task.callers)]
        print("ready", flush=True)
        sys.stdin.readline()
        begun, worked = time.monotonic(), time.process_time()
        filler, sent = bytes(max(0, task.size - STAMP.size)), [0] * task.callers
        schedule = Schedule(task)
        threads = [
            threading.Thread(target=call, args=(door, caller, schedule, filler, sent))
            for caller, door in enumerate(doors)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        doors[0].send([STAMP.pack(time.monotonic(), LAST, sum(sent)) + filler])
        doors[0].flush()
        return Sent(sum(sent), begun, time.process_time() - worked)


class Tally:
    """What a receiver has seen."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.expected: int | None = None
        self.problem = ""
        self._next: dict[int, int] = {}

    def add(self, body: bytes, now: float) -> None:
        due, caller, number = STAMP.unpack_from(body)
        if caller == LAST:
            self.expected = number
            return
        if number != self._next.get(caller, 0):
            what = f"message {number} of caller {caller} came"
            self.problem = self.problem or f"{what}, {self._next.get(caller, 0)} was expected"
        self._next[caller] = number + 1
        self.took.append((now - due) * 1000)


def receive(task: Task) -> Received:
    tally = Tally()
    with receiving_door(task) as door:
        print("ready", flush=True)
        worked, ended = time.process_time(), time.monotonic()
        while tally.expected is None:
            bodies = door.receive()
            now = time.monotonic()
            for body in bodies:
                tally.add(body, now)
            if bodies:
                ended = now
            elif now - ended > PATIENCE:
                tally.problem = f"nothing came for {PATIENCE:.0f} seconds"
                break
        processor = time.process_time() - worked
    if not tally.problem and len(tally.took) != tally.expected:
        tally.problem = f"{len(tally.took)} messages came of {tally.expected}"
    cuts = [0.0] * 99
    if len(tally.took) > 1:
        cuts = statistics.quantiles(tally.took, n=100, method="inclusive")
    longest = max(tally.took, default=0.0)
    return Received(len(tally.took), ended, cuts[49], cuts[98], longest, processor, tally.problem)


def main(arguments: list[str]) -> int:
    action, text = arguments
    task = Task(**json.loads(text))
    result = send(task) if action == "send" else receive(task)
    print(json.dumps(asdict(result)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
