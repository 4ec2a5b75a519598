r"""Event logs of an estate that never was, with known faults: what the pipeline must find.

    python -m tools.make_traffic OUT --messages 100000 --seed 7

Three queue managers exchange messages: directly, over the one in the middle, and within one
computer; a part of them in transactional streams. Some meet a fault, which the truth lists. One
clock is ahead and one behind. OUT gets one Arrow file for each manager (the columns of
`falconmq.client.event_columns`) and `truth.json`; the same seed makes the same traffic.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.ipc

from falconmq.client.event_columns import event_schema
from falconmq.spark.jobs.event_logs import LogStatus, Piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START: Final = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
DEAD_LETTERS: Final = r".\system$;DEADLETTER"
QUEUES: Final = ("orders", "invoices")
FAULTS: Final = (
    *("lost", "doubled", "dropped", "late", "out_of_order"),
    *("expired", "refused", "outlived", "stuck"),
)
_ORDERED: Final = ("lost", "doubled", "out_of_order", "refused")  # faults that streams can have
_DEADLY: Final = {
    "expired": "NACK_REACH_QUEUE_TIMEOUT",
    "refused": "NACK_Q_EXCEED_QUOTA",
    "outlived": "NACK_RECEIVE_TIMEOUT",
}
_ROUTES: Final = ((0, 1), (1, 0), (0, 1, 2), (2, 1), (0, 0))
_LATE: Final = 900.0  # seconds
_AFTERWARDS: Final = timedelta(hours=3)  # so long after the last event the logs are read


@dataclass(frozen=True)
class Manager:
    """One queue manager: who it is, where it is, and how wrong its clock is."""

    guid: str
    computer: str
    address: str
    ahead: float  # seconds


@dataclass
class Truth:
    """What is wrong, by message; streams by how many of their messages came out of order."""

    found: dict[str, set[str]] = field(default_factory=dict)  # kind of finding -> message ids
    causes: dict[str, str] = field(default_factory=dict)  # of dead letters
    out_of_order: int = 0
    states: dict[str, str] = field(default_factory=dict)  # of every message

    def add(self, kind: str, message: str) -> None:
        self.found.setdefault(kind, set()).add(message)


@dataclass
class _Message:
    id: str
    way: tuple[int, ...]
    queue: str
    at: float
    size: int
    stream: tuple[str, int, int] | None  # identifier, number, previous number
    fault: str | None


class Traffic:
    """Logs of three managers, and the truth about them."""

    def __init__(
        self, seed: int, messages: int = 2_000, *, faults: float = 0.02, rate: float = 50.0
    ) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - nobody's secret
        self._faults, self._rate = faults, rate
        ahead = (0.0, 37.0, -45.0) if seed % 2 else (0.0, 0.0, 0.0)
        self.managers = [self._manager(seed, index, late) for index, late in enumerate(ahead)]
        self.truth = Truth()
        self._rows: list[list[tuple[Any, ...]]] = [[] for _ in self.managers]
        self._numbers: dict[tuple[tuple[int, ...], str], list[int]] = {}
        self._held: dict[tuple[tuple[int, ...], str], _Message] = {}
        self._passed: dict[tuple[tuple[int, ...], int], float] = {}  # streams keep their order
        for index in range(messages):
            self._send(index, index / rate)
        for late in self._held.values():  # nobody came after them: they were in order
            self._deliver(late)
        self.end = START + timedelta(seconds=messages / rate) + _AFTERWARDS
        self.logs = [self._log(index) for index in range(len(self.managers))]

    @property
    def events(self) -> int:
        return sum(log.num_rows for log in self.logs)

    def _manager(self, seed: int, index: int, ahead: float) -> Manager:
        guid = str(UUID(int=self._chance.getrandbits(128), version=4))
        address = f"10.{seed // 256 % 256}.{seed % 256}.{index + 1}"
        return Manager(guid, f"SALES{seed}-{index + 1}", address, ahead)

    # What the messages do

    def _send(self, index: int, at: float) -> None:
        chance = self._chance
        way, queue = chance.choice(_ROUTES), chance.choice(QUEUES)
        sender = self.managers[way[0]]
        is_ordered = queue == "invoices" and way[0] != way[-1]
        fault = chance.choice(FAULTS) if chance.random() < self._faults else None
        if fault and (way[0] == way[-1] or (is_ordered and fault not in _ORDERED)):
            fault = None
        if fault == "out_of_order" and not is_ordered:
            fault = None
        stream = None
        if is_ordered:
            numbers = self._numbers.setdefault((way, queue), [0])
            numbers.append(numbers[-1] + 1)
            stream = (str(way[0] * 100 + way[-1] + (1 << 33)), numbers[-1], numbers[-2])
        name = f"{{{sender.guid.upper()}}}\\{index + 1}"
        size = chance.randrange(200, 2000)
        self._order(_Message(name, way, queue, at, size, stream, fault))

    def _order(self, message: _Message) -> None:
        """A message that is to be out of order lets its successor pass."""
        key = message.way, message.queue
        if message.fault == "out_of_order" and key not in self._held:
            self._held[key] = message
            return
        held = self._held.get(key) if message.stream else None
        self._deliver(message)
        if held is not None and message.fault != "lost":
            del self._held[key]
            held.at = message.at + 0.05
            self.truth.out_of_order += 1
            self._deliver(held)

    def _deliver(self, message: _Message) -> None:
        act = getattr(self, f"_{message.fault}", self._healthy)
        self.truth.states[message.id] = act(message)

    def _healthy(self, message: _Message, delay: float = 0.0) -> str:
        at = self._travel(message, message.at, delay)
        self._arrive(message, at)
        return self._receive(message, at)

    _out_of_order = _healthy

    def _lost(self, message: _Message) -> str:
        """The last one of its way never gets it, though its neighbour thinks so."""
        self._travel(message, message.at)
        self.truth.add("lost", message.id)
        return "lost"

    def _doubled(self, message: _Message) -> str:
        at = self._travel(message, message.at)
        for again in (at, at + 0.2):
            self._arrive(message, again)
            self._receive(message, again)
        self.truth.add("doubled", message.id)
        return "received"

    def _dropped(self, message: _Message) -> str:
        at = self._travel(message, message.at)
        self._arrive(message, at)
        peer = self.managers[message.way[-2]].address
        self._event(message, message.way[-1], at + 0.5, "duplicate", queue=None, detail=peer)
        self.truth.add("repeated", message.id)
        return self._receive(message, at + 1)

    def _late(self, message: _Message) -> str:
        self.truth.add("late", message.id)
        return self._healthy(message, _LATE)

    def _expired(self, message: _Message) -> str:
        here, outgoing = message.way[0], self._outgoing(message)
        self._event(message, here, message.at, "queued", queue=outgoing)
        end, reason = message.at + 30, _DEADLY["expired"]
        self._event(message, here, end, "expired", queue=outgoing, reason=reason)
        return self._bury(message, here, end)

    def _refused(self, message: _Message) -> str:
        at, reason = self._travel(message, message.at), _DEADLY["refused"]
        self._event(message, message.way[-1], at, "refused", reason=reason)
        self._event(message, message.way[0], at + 0.1, "told", queue=None, reason=reason)
        return self._bury(message, message.way[0], at + 0.1)

    def _outlived(self, message: _Message) -> str:
        at, reason = self._travel(message, message.at), _DEADLY["outlived"]
        self._arrive(message, at)
        self._event(message, message.way[-1], at + 60, "expired", reason=reason)
        return self._bury(message, message.way[-1], at + 60)

    def _stuck(self, message: _Message) -> str:
        self._event(message, message.way[0], message.at, "queued", queue=self._outgoing(message))
        self.truth.add("stuck", message.id)
        return "under way"

    # What the managers note

    def _outgoing(self, message: _Message) -> str:
        return rf"DIRECT=OS:{self.managers[message.way[-1]].computer}\private$\{message.queue}"

    def _travel(self, message: _Message, at: float, delay: float = 0.0) -> float:
        """From the sender to the last one; when it is there."""
        for here, there in zip(message.way, message.way[1:], strict=False):
            if here == there:
                break
            outgoing = self._outgoing(message)
            self._event(message, here, at, "queued", queue=outgoing)
            at += delay + self._chance.uniform(0.002, 0.02)
            delay = 0.0
            if message.stream:
                at = max(at, self._passed.get((message.way, here), 0.0) + 0.0001)
                self._passed[message.way, here] = at
            address = self.managers[there].address
            taken = at + self._chance.uniform(0.001, 0.03)
            self._event(message, here, taken, "delivered", queue=outgoing, detail=address)
        return at

    def _arrive(self, message: _Message, at: float) -> None:
        self._event(message, message.way[-1], at, "arrived")

    def _receive(self, message: _Message, at: float) -> str:
        if self._chance.random() < 0.02:
            return "waiting"
        taken = at + self._chance.expovariate(0.5)
        self._event(message, message.way[-1], taken, "received", reason="ACK_RECEIVE")
        return "received"

    def _bury(self, message: _Message, index: int, at: float) -> str:
        cause = _DEADLY[message.fault or ""]
        self._event(message, index, at, "dead_lettered", queue=DEAD_LETTERS, reason=cause)
        self.truth.add("dead_letter", message.id)
        self.truth.causes[message.id] = cause
        return "dead-lettered"

    def _event(
        self,
        message: _Message,
        index: int,
        at: float,
        kind: str,
        *,
        queue: str | None = "",
        reason: str | None = None,
        detail: str | None = None,
    ) -> None:
        name = rf".\private$\{message.queue}" if queue == "" else queue
        stream = message.stream or (None, None, None)
        self._rows[index].append(
            (
                *(at, kind, message.id, name, message.size, reason, detail, int(message.at)),
                *stream,
                self._outgoing(message),
            )
        )

    def _log(self, index: int) -> pa.Table:
        """A log is in the order of its manager's own time; its clock may be wrong."""
        manager, rows = self.managers[index], sorted(self._rows[index], key=lambda row: row[0])
        count = len(rows)
        at, kind, ids, queue, size, reason, detail, sent, sid, number, previous, goal = (
            list(column) for column in zip(*rows, strict=True)
        )
        start = START.timestamp()

        def times(seconds: Iterable[float], ahead: float) -> list[int]:
            return [round((start + ahead + second) * 1_000_000) for second in seconds]

        columns = {
            "number": list(range(1, count + 1)),
            "at": times(at, manager.ahead),
            "kind": kind,
            "manager": [manager.guid] * count,
            "computer": [manager.computer] * count,
            "message_id": ids,
            "queue": queue,
            "lookup_id": list(range(1, count + 1)),
            "arrival_number": list(range(1, count + 1)),
            "size": size,
            "reason": reason,
            "detail": detail,
            "sent_at": times(sent, 0),
            "sequence_id": sid,
            "sequence_number": number,
            "previous_number": previous,
            "destination": goal,
            "trace": [False] * count,
            "packet": [None] * count,
        }
        schema = event_schema()
        arrays = [pa.array(columns[name.name], name.type) for name in schema]
        return pa.Table.from_arrays(arrays, schema=schema)


class TrafficLogs:
    """Made logs for the jobs, as if managers had them: up to a share of each, or all."""

    def __init__(self, *traffics: Traffic) -> None:
        self._by_url = {
            f"made:{manager.computer}": (traffic, manager, log)
            for traffic in traffics
            for manager, log in zip(traffic.managers, traffic.logs, strict=True)
        }
        self.share = 1.0
        self.first: dict[str, int] = {}  # by url: what is before was forgotten

    @property
    def urls(self) -> Sequence[str]:
        return list(self._by_url)

    def status(
        self,
        url: str,
        after: int | None = None,  # noqa: ARG002 - nothing comes while one waits
        wait: float = 0,  # noqa: ARG002
    ) -> LogStatus:
        traffic, manager, log = self._by_url[url]
        count = int(log.num_rows * self.share)
        asked_at = traffic.end
        if count < log.num_rows:
            asked_at = log.column("at")[count].as_py() - timedelta(seconds=manager.ahead)
        first = self.first.get(url, 1)
        return LogStatus(manager.guid, manager.computer, url, first, count + 1, asked_at)

    def pieces(self, status: LogStatus, start: int, stop: int) -> Sequence[Piece]:
        _, _, log = self._by_url[status.url]
        middle = (start + stop) // 2
        return [
            partial(pa.Table.to_batches, log.slice(low - 1, high - low))
            for low, high in ((start, middle), (middle, stop))
            if low < high
        ]

    def browse(self, spark: SparkSession, url: str, queue: str) -> tuple[str, DataFrame]:
        raise NotImplementedError("made traffic has no queues")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--faults", type=float, default=0.02, help="share of messages, default 0.02"
    )
    arguments = parser.parse_args()
    traffic = Traffic(arguments.seed, arguments.messages, faults=arguments.faults)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for manager, log in zip(traffic.managers, traffic.logs, strict=True):
        path = arguments.out / f"{manager.computer}.arrow"
        with pa.ipc.new_file(path, log.schema) as writer:
            writer.write_table(log)
    truth = traffic.truth
    document = {
        "findings": {kind: sorted(ids) for kind, ids in sorted(truth.found.items())},
        "causes": truth.causes,
        "out_of_order": truth.out_of_order,
    }
    (arguments.out / "truth.json").write_text(json.dumps(document, indent=1))
    print(f"{traffic.events:,} events of {arguments.messages:,} messages in {arguments.out}")


if __name__ == "__main__":
    main()
