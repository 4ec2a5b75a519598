"""Files that tasks write themselves: like those of Spark, and of one attempt only."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from falconmq.spark import part_files
from falconmq.spark.part_files import Draft, PartFiles, split
from falconmq.spark.tables import Lake, Table, TableSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "number bigint, name string, at timestamp, parts array<string>, day date, queue string"
SPEC = TableSpec("bronze/things", SCHEMA, ("day", "queue"))
ARROW = pa.schema(
    [
        ("number", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("parts", pa.list_(pa.string())),
        ("day", pa.date32()),
        ("queue", pa.string()),
    ]
)
AT = datetime(2026, 11, 16, 10, 30, 0, 123456, tzinfo=UTC)
DAY = date(2026, 11, 16)


def row(number: int, queue: str | None = "a", day: date | None = DAY) -> dict[str, Any]:
    known = {"number": number, "name": f"n{number}", "at": AT, "parts": ["x", None]}
    return {**known, "day": day, "queue": queue}


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=ARROW)


def draft(folder: Path) -> Draft:
    return Draft(str(folder), ARROW, ("day", "queue"))


def read(folder: Path, name: str) -> list[int]:
    found: list[int] = pq.read_table(folder / name, partitioning=None)["number"].to_pylist()
    return found


def test_rows_are_split_by_partition_and_keep_their_order() -> None:
    given = batch(row(1), row(2, "b"), row(3), row(4, None), row(5, "b", None), row(6, "b"))
    found = {place: rows["number"].to_pylist() for place, rows in split(given, ("day", "queue"))}
    assert found == {
        "day=2026-11-16/queue=a": [1, 3],
        "day=2026-11-16/queue=b": [2, 6],
        "day=2026-11-16/queue=__HIVE_DEFAULT_PARTITION__": [4],
        "day=__HIVE_DEFAULT_PARTITION__/queue=b": [5],
    }
    assert [place for place, _ in split(given, ())] == [""]
    many = batch(*(row(number, "ab"[number % 2]) for number in range(200)))
    assert [rows["number"].to_pylist() for _, rows in split(many, ("queue",))] == [
        list(range(0, 200, 2)),
        list(range(1, 200, 2)),
    ]


def test_each_attempt_has_files_of_its_own(tmp_path: Path) -> None:
    one, other = PartFiles(draft(tmp_path), 3), PartFiles(draft(tmp_path), 3)
    for attempt in (one, other):
        attempt.write(batch(row(1), row(2, "b")))
        attempt.write(batch())
        attempt.write(batch(row(3)))
    first, second = one.close(), other.close()
    assert len(first) == len(second) == 2
    assert not {*first} & {*second}
    assert sorted(read(tmp_path, name) for name in first) == [[1, 3], [2]]
    # their names differ behind the folder of the attempt, too
    names = {Path(name).name for name in (*first, *second)}
    assert len(names) == 4
    assert all(name.startswith("part-00003-") for name in names)
    assert PartFiles(draft(tmp_path / "none"), 0).close() == ()
    assert not (tmp_path / "none").exists()


def test_memory_and_open_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "_OPEN_MOST", 2)
    monkeypatch.setattr(part_files, "_HELD_BYTES", 1)  # so that every batch is written at once
    files = PartFiles(draft(tmp_path), 0)
    files.write(batch(row(1), row(2, "b")))
    files.write(batch(row(3), row(4, "b")))
    assert {*map(len, (files._open, files._files))} == {2}
    files.write(batch(row(5), row(6, "c")))  # one too many: all are closed
    assert not files._open
    files.write(batch(row(7)))  # goes on in a new one
    names = files.close()
    assert sorted(read(tmp_path, name) for name in names) == [[1, 3, 5], [2, 4], [6], [7]]
    groups = [pq.read_metadata(tmp_path / name).num_row_groups for name in names]
    assert sorted(groups) == [1, 1, 2, 3]


@pytest.mark.slow
def test_the_files_are_those_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    # given queues with every sign that a name may have, and some that it may not
    signs = "".join(map(chr, range(1, 0x80))) + "äß€ 中"
    queues = [signs[at : at + 40] for at in range(0, len(signs), 40)] + ["", None, " x ", "%41"]
    rows = [row(number, queue) for number, queue in enumerate(queues)] + [row(999, "a", None)]
    frame = spark.createDataFrame(pa.Table.from_batches([batch(*rows)]))
    # when Spark writes them, and we do
    theirs, ours = (Lake(tmp_path / name).table(SPEC) for name in ("theirs", "ours"))
    theirs.append(frame, source="job", batch=1)
    with ours.draft(spark) as given:
        files = PartFiles(given, 0)
        files.write(batch(*rows))
        staged = ours.stage_files(given, files.close())
    ours.settle(staged, source="job", batch=1)
    assert staged.rows == len(rows)
    # then the folders are the same, and the columns of the files, and what is read of them
    assert _folders(ours) == _folders(theirs)
    assert _types(ours) == _types(theirs)
    assert _contents(spark, ours) == _contents(spark, theirs)
    schemas = [spark.read.parquet(_batch(table)).schema for table in (ours, theirs)]
    assert schemas[0] == schemas[1]


@pytest.mark.slow
def test_codec_and_times_are_those_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    table = Lake(tmp_path).table(SPEC)
    settings = {
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for setting, value in settings.items():
            spark.conf.set(setting, value)
        with table.draft(spark) as given:
            files = PartFiles(given, 0)
            files.write(batch(row(1)))
            (name,) = files.close()
            file = pq.ParquetFile(Path(given.folder) / name)
    finally:
        for setting, known in before.items():
            spark.conf.set(setting, str(known))
    assert name.endswith(".zstd.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.schema_arrow.field("at").type == pa.timestamp("us", "UTC")


@pytest.mark.slow
def test_only_the_files_that_are_named_count(spark: SparkSession, tmp_path: Path) -> None:
    # given two attempts of a task that both wrote everything
    lake = Lake(tmp_path)
    lake.become("delta")
    table = lake.table(SPEC)
    with table.draft(spark) as given:
        attempts = [PartFiles(given, 0), PartFiles(given, 0)]
        for attempt in attempts:
            attempt.write(batch(row(1), row(2)))
        named, other = (attempt.close() for attempt in attempts)
        assert (Path(given.folder) / other[0]).exists()
        # when the driver hears of one of them
        commit = table.settle(table.stage_files(given, named), source="job", batch=1)
    # then the other does not count, though it ends later still
    assert commit.rows == 2
    late = PartFiles(given, 0)
    late.write(batch(row(1), row(2)))
    late.close()
    assert sorted(row["number"] for row in table.read(spark).collect()) == [1, 2]
    told = DeltaTable(str(table.path)).to_pyarrow_table()
    assert sorted(told["number"].to_pylist()) == [1, 2]
    assert told["at"].to_pylist() == [AT, AT]
    assert table.sweep() == 1
    assert not Path(given.folder).exists()
    # and the same batch again leaves nothing behind
    with table.draft(spark) as given:
        again = PartFiles(given, 0)
        again.write(batch(row(7)))
        staged = table.stage_files(given, again.close())
        assert table.settle(staged, source="job", batch=1) == commit
    assert [folder.name for folder in (table.path / "data").iterdir()] == [commit.folder]


def _batch(table: Table) -> str:
    return str(next((table.path / "data").iterdir()))


def _folders(table: Table) -> set[str]:
    root = Path(_batch(table))
    return {str(file.parent.relative_to(root)) for file in root.rglob("*.parquet")}


def _types(table: Table) -> set[str]:
    found = set()
    for file in Path(_batch(table)).rglob("*.parquet"):
        schema = pq.read_metadata(file).schema
        columns = [schema.column(index) for index in range(len(schema.names))]
        found.add(
            "\n".join(
                f"{c.path} {c.physical_type} {c.logical_type} {c.max_definition_level} "
                f"{c.max_repetition_level}"
                for c in columns
            )
        )
    return found


def _contents(spark: SparkSession, table: Table) -> list[tuple[Any, ...]]:
    rows = table.read(spark).drop("batch").collect()
    return sorted((tuple(row) for row in rows), key=lambda row: int(row[0]))
