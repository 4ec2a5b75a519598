"""directory: exports of directory replicas become differences and convergence times.

The format of the exports is in `falconmq.spark.directory.exports`. A run reads all files and
replaces the tables; if no file changed since the last run, it does nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as sql

from falconmq.errors import FalconMQError
from falconmq.spark.directory import comparing, converging, exports
from falconmq.spark.jobs.running import Progress, Summary, Tell, rejects_of
from falconmq.spark.tables import Lake, Table, TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOB: Final = "directory"
DIFFERENCES: Final = TableSpec(
    "silver/directory_differences",
    "partition string, authority string, object string, class string, kind string, "
    "attribute string, replica string, value string, sequence bigint, changed_at timestamp, "
    "reference string, reference_value string, reference_sequence bigint, "
    "reference_changed_at timestamp, behind bigint, is_expected boolean",
    (),
    "Where a replica differs from its partition's authority: missing, extra, stale, ahead, "
    "deleted, undeleted, or differs (same sequence number, other values). is_expected: the replica "
    "is only behind.",
)
CONVERGENCE: Final = TableSpec(
    "gold/directory_convergence",
    "partition string, sequence bigint, object string, authority string, originated_at timestamp, "
    "complete_at timestamp, seconds double, last_replica string, replicas bigint, "
    "unlogged bigint, missing array<string>",
    (),
    "For each change: how long until all replicas had it, which was the last, which have it not.",
)
REPLICAS: Final = TableSpec(
    "gold/directory_replicas",
    "partition string, replica string, authority string, reference string, last bigint, "
    "reference_last bigint, behind bigint, purged bigint, changes bigint, p50_seconds double, "
    "p95_seconds double, p99_seconds double, max_seconds double, times_last bigint, "
    "differences bigint, unexpected bigint",
    (),
    "For each replica and partition: how far it is, how quickly it gets changes, and how much it "
    "has otherwise.",
)
REJECTS: Final = rejects_of(JOB)
TABLES: Final = (REJECTS, DIFFERENCES, CONVERGENCE, REPLICAS)  # in the order of their writing


@dataclass(frozen=True)
class Options:
    """Files of exports, or folders of them."""

    paths: tuple[Path, ...]
    dry_run: bool = False


def run(spark: SparkSession, lake: Lake, options: Options, tell: Tell) -> Summary:
    """Compare the replicas; a dry run lists the files."""
    files = find_files(options.paths)
    summary = Summary(JOB, is_dry=options.dry_run, facts={"files": len(files)})
    if options.dry_run:
        summary.facts["names"] = [str(file) for file in files]
        return summary
    with lake.lock(JOB):
        print_ = fingerprint(files)
        if _is_done([lake.table(spec) for spec in TABLES], print_):
            summary.facts["unchanged"] = True
            return summary
        run_ = _Run(spark, files, lake, tell)
        run_.write(print_, summary)
        run_.sweep()
    return summary


def read(spark: SparkSession, files: list[Path]) -> DataFrame:
    """The lines of all files, the damaged ones among them; a task for each file."""
    rows = [(str(file.absolute()),) for file in files]
    paths = spark.createDataFrame(rows, "path string").repartition(max(1, len(rows)))
    return paths.mapInArrow(exports.read_batches, exports.SCHEMA)


def rejects(lines: DataFrame) -> DataFrame:
    return lines.where("reason is not null").select(
        sql.current_timestamp().alias("at"),
        sql.col("file").alias("source"),
        sql.concat(sql.lit("line "), sql.col("line").cast("string")).alias("place"),
        "reason",
        "record",
    )


def find_files(paths: tuple[Path, ...]) -> list[Path]:
    """The files themselves; those of a folder by their endings."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += (file for pattern in exports.FILES for file in path.glob(pattern))
        elif path.is_file():
            found.append(path)
        else:
            raise FalconMQError(f"there is no {path}", hint="name files or folders of exports")
    if not found:
        raise FalconMQError(
            f"no exports in {', '.join(map(str, paths))}",
            hint=f"in folders only {' and '.join(exports.FILES)} are read",
        )
    return sorted({file.absolute() for file in found})


def fingerprint(files: list[Path]) -> str:
    """Another one as soon as a file is another."""
    states = ((str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in files)
    return hashlib.sha256(repr(list(states)).encode()).hexdigest()


def _is_done(tables: list[Table], print_: str) -> bool:
    lasts = [table.last(JOB) for table in tables]
    return all(last is not None and last.facts.get("fingerprint") == print_ for last in lasts)


class _Run:
    """One comparison of all files; each table is written once and then read by the next one."""

    def __init__(self, spark: SparkSession, files: list[Path], lake: Lake, tell: Tell) -> None:
        self._spark, self._files, self._tell = spark, files, tell
        self._tables = [lake.table(spec) for spec in TABLES]
        # A number that no table had yet: what a crash left of the last one is replaced as a whole.
        lasts = (last.batch for table in self._tables if (last := table.last(JOB)))
        self._batch = max(lasts, default=0) + 1
        self._written = 0

    def write(self, print_: str, summary: Summary) -> None:
        self._tell(Progress("reading exports", 0, len(self._files), "files"))
        lines = read(self._spark, self._files).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            facts = {"fingerprint": print_, "files": len(self._files)}
            rejected = self._replace(REJECTS, rejects(lines), facts)
            summary.rejected = rejected.rows
            good = lines.where("reason is null")
            positions = self._small(comparing.positions(good))
            differences = self._replace(
                DIFFERENCES, comparing.differences(good, positions), facts, summary
            )
            applied = converging.applied(good)
            converged = self._replace(
                CONVERGENCE, converging.convergence(applied, positions), facts, summary
            )
            replicas = converging.replicas(
                positions, applied, converged.read(self._spark), differences.read(self._spark)
            )
            self._replace(REPLICAS, replicas, facts, summary)
            summary.read = lines.count()
        finally:
            lines.unpersist()
        self._tell(Progress("done", len(TABLES), len(TABLES), "tables"))

    def sweep(self) -> None:
        for table in self._tables:
            table.sweep()

    def _replace(
        self,
        spec: TableSpec,
        frame: DataFrame,
        facts: dict[str, Any],
        summary: Summary | None = None,
    ) -> Table:
        self._tell(Progress(f"writing {spec.name}", self._written, len(TABLES), "tables"))
        table = self._tables[TABLES.index(spec)]
        commit = table.replace(frame, source=JOB, batch=self._batch, facts=facts)
        if summary is not None:
            summary.add(spec.name, commit.rows)
        self._written += 1
        return table

    def _small(self, frame: DataFrame) -> DataFrame:
        """The same few rows, without the work behind them."""
        return self._spark.createDataFrame(frame.collect(), frame.schema)
