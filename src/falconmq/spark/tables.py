"""A lake: folders of Parquet files that are tables, each batch in them once and whole.

How to think about it. A batch of rows is written into a folder of its own; then one small file in
`_commits` says that it counts. Readers read what is committed and nothing else. A batch has a name
(who wrote it, and its number there), so one that comes again after a crash is not written twice.
What a crash left behind without its commit is swept away by the next run.

    lake/bronze/events/data/batch=00000012-5f3c/day=2026-11-16/part-....parquet
    lake/bronze/events/_commits/00000012.json

A commit may say that it stands in the place of others: those then no longer count. That is how the
few rows of a table that change are changed, and how many small batches become one.

Schemas grow: a table only ever gains columns, at the end of its schema, and never loses, renames or
retypes one; in older files a new column is null. Any Spark, DuckDB or pandas reads the files; the
commits say which of them count. The folder must be one that the driver and all executors see: a
disk of this machine, or a shared one.

A lake may have the format "delta": then every table is a Delta table as well (`delta`).
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from falconmq.spark import delta
from falconmq.spark.commits import Commit, LakeError, read_commit, write_commit
from falconmq.spark.staging import NOTHING, Staged, drafting, move_files, seal

__all__ = ["BATCH", "Commit", "Lake", "LakeError", "Staged", "Table", "TableSpec", "column_names"]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from falconmq.spark.part_files import Draft

BATCH: Final = "batch"  # the column that says which commit a row came with
_COMMITS: Final = "_commits"
_DATA: Final = "data"
_FORMAT: Final = "_format"
PARQUET: Final = "parquet"
DELTA: Final = "delta"
FORMATS: Final = (PARQUET, DELTA)


@dataclass(frozen=True)
class TableSpec:
    """What a table is called and holds; `schema` in Spark's words: `number bigint, day date`."""

    name: str  # with its layer: bronze/events
    schema: str
    partition_by: tuple[str, ...] = ()
    description: str = ""


class Lake:
    """A folder of tables."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).absolute()

    @property
    def format(self) -> str:
        """What its tables are: files with commits of ours, or Delta tables as well."""
        try:
            return (self.path / _FORMAT).read_text().strip()
        except FileNotFoundError:
            return PARQUET

    def become(self, wanted: str) -> None:
        """Have a format from now on. A Delta lake does not go back: its log would fall behind."""
        if wanted not in FORMATS:
            raise LakeError(
                f"{wanted} is no format of a lake", hint=f"it is {' or '.join(FORMATS)}"
            )
        if wanted == self.format:
            return
        if wanted == PARQUET:
            raise LakeError(
                f"{self.path} is a lake of Delta tables, and stays one",
                hint="leave --format out, or name another --lake",
            )
        delta.need_delta()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / _FORMAT).write_text(f"{wanted}\n")

    def table(self, spec: TableSpec) -> Table:
        return Table(self, spec)

    def checkpoint(self, job: str) -> Path:
        """Where Spark keeps the checkpoints of a job's stream."""
        return self.path / "_checkpoints" / job

    @contextlib.contextmanager
    def lock(self, job: str) -> Iterator[None]:
        """One run of a job at a time; LakeError if another has it."""
        folder = self.path / "_locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / job).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LakeError(
                    f"another run of {job} is working on {self.path}",
                    hint="wait until it is done, or stop it",
                ) from error
            yield


class Table:
    """One table of a lake. One job writes it, under its lock; anybody reads it."""

    def __init__(self, lake: Lake, spec: TableSpec) -> None:
        self.spec = spec
        self.lake = lake
        self.path = lake.path / spec.name
        self._commits = self.path / _COMMITS
        self._data = self.path / _DATA
        self._known: dict[str, Commit] = {}  # by file: what is committed never changes

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def columns(self) -> list[str]:
        """The names of its columns, as the schema has them now."""
        return column_names(self.spec.schema)

    def commits(self) -> list[Commit]:
        """All of them, the oldest first; also those whose rows were replaced later."""
        if not self._commits.is_dir():
            return []
        files = sorted(self._commits.glob("*.json"))
        for file in files:
            if file.name not in self._known:
                self._known[file.name] = read_commit(file)
        return [self._known[file.name] for file in files]

    def last(self, source: str) -> Commit | None:
        """The newest batch of a source: there it goes on."""
        return next((c for c in reversed(self.commits()) if c.source == source), None)

    def find(self, source: str, batch: int) -> Commit | None:
        return next((c for c in self.commits() if (c.source, c.batch) == (source, batch)), None)

    def counting(self, before: int | None = None) -> list[Commit]:
        """Those whose rows count now, or counted just before the commit with a sequence."""
        commits = [c for c in self.commits() if before is None or c.sequence < before]
        replacing = [c.sequence for c in commits if c.is_replacing]
        since = replacing[-1] if replacing else 0
        gone = {sequence for commit in commits for sequence in commit.replaces}
        return [c for c in commits if c.sequence >= since and c.folder and c.sequence not in gone]

    @property
    def rows(self) -> int:
        return sum(commit.rows for commit in self.counting())

    def read(self, spark: SparkSession, commits: Sequence[Commit] | None = None) -> DataFrame:
        """The rows that count now, or those of some commits; no rows if there is no table yet."""
        chosen = self.counting() if commits is None else [c for c in commits if c.folder]
        schema = f"{self.spec.schema}, {BATCH} string"
        if not chosen:
            return spark.createDataFrame([], schema)
        paths = [str(self._data / commit.folder) for commit in chosen]
        reader = spark.read.schema(schema).option("basePath", str(self._data))
        return reader.parquet(*paths).select(*column_names(schema))

    def stage(self, frame: DataFrame) -> Staged:
        """Write rows that do not count yet: `settle` makes them."""
        target = self._data / self._new_folder()
        writer = frame.select(*self.columns).write.mode("error")
        if self.spec.partition_by:
            writer = writer.partitionBy(*self.spec.partition_by)
        writer.parquet(str(target))
        return seal(target)

    def draft(self, spark: SparkSession) -> AbstractContextManager[Draft]:
        """For tasks that write files of the next batch themselves (`part_files`)."""
        return drafting(spark, self._data, self.spec.schema, self.spec.partition_by)

    def stage_files(self, draft: Draft, files: Sequence[str]) -> Staged:
        """Rows that do not count yet, from the files that tasks named."""
        target = self._data / self._new_folder()
        move_files(draft, files, target)
        return seal(target)

    def settle(
        self, staged: Staged, *, source: str, batch: int, facts: Mapping[str, Any] | None = None
    ) -> Commit:
        """Add a batch that was staged; one that was added before stays as it is."""
        known = self.find(source, batch)
        if known is None:
            return self._settle(staged, source, batch, facts or {})
        if staged.folder and staged.folder != known.folder:
            shutil.rmtree(self._data / staged.folder)
        return known

    def append(
        self, frame: DataFrame, *, source: str, batch: int, facts: Mapping[str, Any] | None = None
    ) -> Commit:
        """Add a batch; one that was added before stays as it is."""
        return self._write(frame, source, batch, facts or {})

    def rewrite(
        self,
        frame: DataFrame,
        instead_of: Sequence[Commit],
        *,
        source: str,
        batch: int,
        facts: Mapping[str, Any] | None = None,
    ) -> Commit:
        """Let a batch stand in the place of some commits, whose rows it may be made from."""
        sequences = [commit.sequence for commit in instead_of]
        return self._write(frame, source, batch, facts or {}, replaces=sequences)

    def note(self, *, source: str, batch: int, facts: Mapping[str, Any]) -> Commit:
        """Commit a batch that has no rows: a position that moved on all the same."""
        known = self.find(source, batch)
        return known or self._settle(NOTHING, source, batch, facts)

    def replace(
        self, frame: DataFrame, *, source: str, batch: int, facts: Mapping[str, Any] | None = None
    ) -> Commit:
        """Let these be the only rows. `frame` may be made from what the table holds now."""
        return self._write(frame, source, batch, facts or {}, is_replacing=True)

    def sweep(self, seconds: float = 0) -> int:
        """Delete what does not count: replaced, or left behind by a crash. How many folders.

        A reader that began before may then miss files: leave those of the last `seconds` alone.
        """
        if not self._data.is_dir():
            return 0
        self.publish()
        wanted = {commit.folder for commit in self.counting()}
        limit = time.time() - seconds
        unwanted = [
            folder
            for folder in self._data.iterdir()
            if folder.is_dir() and folder.name not in wanted and folder.stat().st_mtime <= limit
        ]
        for folder in unwanted:
            shutil.rmtree(folder)
        return len(unwanted)

    def _write(
        self,
        frame: DataFrame,
        source: str,
        batch: int,
        facts: Mapping[str, Any],
        *,
        is_replacing: bool = False,
        replaces: Sequence[int] = (),
    ) -> Commit:
        known = self.find(source, batch)
        if known is not None:
            return known
        staged = self.stage(frame)
        return self._settle(
            staged, source, batch, facts, is_replacing=is_replacing, replaces=replaces
        )

    def _new_folder(self) -> str:
        return f"{BATCH}={self._next_sequence():08d}-{secrets.token_hex(4)}"

    def _next_sequence(self) -> int:
        commits = self.commits()
        return commits[-1].sequence + 1 if commits else 1

    def _settle(
        self,
        staged: Staged,
        source: str,
        batch: int,
        facts: Mapping[str, Any],
        *,
        is_replacing: bool = False,
        replaces: Sequence[int] = (),
    ) -> Commit:
        """Make a batch that is written count."""
        commit = Commit(
            sequence=self._next_sequence(),
            source=source,
            batch=batch,
            folder=staged.folder,
            rows=staged.rows,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            is_replacing=is_replacing,
            facts=dict(facts),
            replaces=list(replaces),
        )
        self._commit(commit)
        return commit

    def _commit(self, commit: Commit) -> None:
        write_commit(self._commits, commit)
        self.publish()

    def publish(self) -> int:
        """Bring the Delta log up to date, in a lake that has one; how many commits were new."""
        commits = self.commits()
        if self.lake.format != DELTA or not commits:
            return 0
        schema = f"{self.spec.schema}, {BATCH} string"
        partitions = (BATCH, *self.spec.partition_by)
        return delta.publish(self.path, self._data, schema, partitions, commits)


def column_names(schema: str) -> list[str]:
    from pyspark.sql.types import StructType  # noqa: PLC0415

    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return list(parsed.names)
