"""The job `capture`: what went over the wire, from captures of MSMQ traffic.

    packets        one row for each packet of a session, and each ping
    sessions       one for each TCP connection
    conversations  one for each message on its way from one queue manager to another: when it was
                   sent, when it was acknowledged, how often it was sent
    anomalies      everything that is not as it should be, with its reason and its place

The work is done in Python, inside the tasks, as arrays (`falconmq.spark.capture`): a task maps the
files of its set and hands on rows. Only rows travel through Spark, never captured bytes. Sets that
were read before and have not changed are left alone; one that has changed is read again whole, and
its rows take the place of the old ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from falconmq.spark.capture.reading import PING_PORTS, SESSION_PORTS, SetReader
from falconmq.spark.capture.rows import RowMaker
from falconmq.spark.capture.sets import CaptureSet, find_captures, group, lanes_for
from falconmq.spark.capture.tables import ANOMALIES, PACKETS, SESSIONS, all_ddl, ddl
from falconmq.spark.jobs.conversations import CONVERSATIONS_SCHEMA, conversations, duplicates
from falconmq.spark.jobs.running import Progress, Summary, tell_nobody
from falconmq.spark.tables import Lake, Table, TableSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

JOB: Final = "capture"
PACKETS_TABLE: Final = TableSpec(
    "bronze/packets", ddl(PACKETS), (), "Packets of MSMQ sessions, and pings, found in captures."
)
SESSIONS_TABLE: Final = TableSpec(
    "silver/sessions", ddl(SESSIONS), (), "TCP connections that spoke MSMQ, found in captures."
)
CONVERSATIONS_TABLE: Final = TableSpec(
    "silver/conversations", CONVERSATIONS_SCHEMA, (), "Messages between two queue managers."
)
ANOMALIES_TABLE: Final = TableSpec(
    "silver/anomalies", ddl(ANOMALIES), (), "What is wrong in captures, why, and where."
)
TABLES: Final = (PACKETS_TABLE, SESSIONS_TABLE, CONVERSATIONS_TABLE, ANOMALIES_TABLE)


@dataclass(frozen=True)
class CaptureOptions:
    """What to read, and how."""

    paths: tuple[str, ...]
    session_ports: frozenset[int] = SESSION_PORTS
    ping_ports: frozenset[int] = PING_PORTS
    is_joined: bool = True  # files of one rotation are read as one capture
    keep_packets: bool = False  # the bytes of packets in a column of their own
    lanes: int | None = None  # workers that share a set; by its size, if not said
    is_dry: bool = False


@dataclass(frozen=True)
class _Task:
    """A lane of a set; pickled to an executor."""

    name: str
    paths: tuple[str, ...]
    lane: int
    lanes: int


def decode(spark: SparkSession, sets: Sequence[CaptureSet], options: CaptureOptions) -> DataFrame:
    """All rows of these sets: a struct for each of packet, session, anomaly; two of them null."""
    lanes = lanes_for(sets, _workers(spark))
    tasks = [
        _Task(s.name, tuple(f.path for f in s.files), lane, options.lanes or count)
        for s, count in zip(sets, lanes, strict=True)
        for lane in range(options.lanes or count)
    ]
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))  # a partition for each task
    work: Callable[..., Any] = partial(_run_tasks, tasks=tasks, options=options)
    return numbers.mapInArrow(work, all_ddl())


def packets(decoded: DataFrame) -> DataFrame:
    return decoded.where("packet is not null").select("packet.*")


def sessions(decoded: DataFrame) -> DataFrame:
    return decoded.where("session is not null").select("session.*")


def anomalies(decoded: DataFrame) -> DataFrame:
    """Those that one capture shows by itself; `duplicates` needs all of them."""
    return decoded.where("anomaly is not null").select("anomaly.*")


def run(
    spark: SparkSession,
    lake: Lake,
    options: CaptureOptions,
    progress: Callable[[Progress], None] = tell_nobody,
) -> Summary:
    """Read what is new, add it to the tables, and say what was done."""
    with lake.lock(JOB):
        return _Run(spark, lake, options, progress).run()


class _Run:
    """One run of the job.

    The table of anomalies is written last, and its last commit lists the sets that are done. Sets
    that other tables know but it does not were left by a run that broke off: their rows go.
    """

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        options: CaptureOptions,
        progress: Callable[[Progress], None],
    ) -> None:
        self._spark, self._options, self._tell = spark, options, progress
        self._packets, self._sessions, self._conversations, self._anomalies = (
            lake.table(spec) for spec in TABLES
        )
        self._tables = (self._packets, self._sessions, self._conversations, self._anomalies)
        self._summary = Summary(JOB, is_dry=options.is_dry)

    def run(self) -> Summary:
        sets = group(find_captures(self._options.paths), is_joined=self._options.is_joined)
        last = self._anomalies.last(JOB)
        done: dict[str, Any] = last.facts["sets"] if last is not None else {}
        todo = [s for s in sets if done.get(s.name) != s.fingerprint()]
        self._report(sets, todo)
        if self._options.is_dry or not todo:
            return self._summary
        known = {name for table in self._tables for name in _sets_of(table)}
        outdated = (known & {s.name for s in todo}) | (known - set(done))
        after = {name: print_ for name, print_ in done.items() if name not in outdated}
        after |= {s.name: s.fingerprint() for s in todo}
        size = sum(s.size for s in todo)
        self._tell(Progress(f"reading {len(todo)} captures", 0, size, "bytes"))
        decoded = decode(self._spark, todo, self._options).persist()
        try:
            self._write(decoded, sorted(outdated), {"sets": json.loads(json.dumps(after))})
        finally:
            decoded.unpersist()
        self._tell(Progress(f"reading {len(todo)} captures", size, size, "bytes"))
        return self._summary

    def _report(self, sets: list[CaptureSet], todo: list[CaptureSet]) -> None:
        self._summary.read = sum(len(s.files) for s in todo)
        self._summary.facts = {
            "sets": [s.name for s in todo],
            "files": [file.path for s in todo for file in s.files],
            "bytes": sum(s.size for s in todo),
            "unchanged_sets": len(sets) - len(todo),
        }

    def _write(self, decoded: DataFrame, outdated: list[str], facts: dict[str, Any]) -> None:
        batches = [commit.batch for table in self._tables for commit in table.commits()]
        spark, batch = self._spark, 1 + max(batches, default=0)
        name: dict[str, Any] = {"source": JOB, "batch": batch, "facts": facts}
        for table, rows in (
            (self._packets, packets(decoded)),
            (self._sessions, sessions(decoded)),
        ):
            if outdated:
                kept = _without(table.read(spark), outdated).select(*rows.columns)
                commit = table.replace(kept.unionByName(rows), **name)
            else:
                commit = table.append(rows, **name)
            self._summary.add(table.name, commit.rows)
        pairs = conversations(self._packets.read(spark), self._sessions.read(spark))
        commit = self._conversations.replace(pairs, **name)
        self._summary.add(self._conversations.name, commit.rows)
        new = anomalies(decoded)
        kept = _without(self._anomalies.read(spark), outdated).where("kind <> 'duplicate'")
        doubled = duplicates(self._conversations.read(spark))
        everything = kept.select(*new.columns).unionByName(new).unionByName(doubled)
        commit = self._anomalies.replace(everything, **name)
        self._summary.add(self._anomalies.name, commit.rows)


def _sets_of(table: Table) -> set[str]:
    return {name for commit in table.counting() for name in commit.facts.get("sets", {})}


def _without(frame: DataFrame, names: list[str]) -> DataFrame:
    from pyspark.sql.functions import col  # noqa: PLC0415

    return frame.where(~col("capture_set").isin(names)) if names else frame


def _workers(spark: SparkSession) -> int:
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect does not say
        return 2


def _run_tasks(
    batches: Iterator[pa.RecordBatch], tasks: list[_Task], options: CaptureOptions
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _run_task(tasks[number], options)


def _run_task(task: _Task, options: CaptureOptions) -> Iterator[pa.RecordBatch]:
    reader = SetReader(
        task.paths,
        session_ports=options.session_ports,
        ping_ports=options.ping_ports,
        lane=task.lane,
        lanes=task.lanes,
    )
    rows = RowMaker(task.name, reader, keep_packets=options.keep_packets)
    for stretch in reader.stretches():
        yield from rows.batches(stretch)
