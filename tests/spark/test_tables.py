"""Tables of a lake: batches count once and whole, whatever happens in between."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from falconmq.spark.tables import Lake, LakeError, Table, TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPEC = TableSpec("bronze/things", "number bigint, name string, day date", ("day",))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Lake(tmp_path / "lake").table(SPEC)


def things(spark: SparkSession, *numbers: int) -> DataFrame:
    rows = ", ".join(f"({number}L, 'a/b={number}', date'2026-11-16')" for number in numbers)
    return spark.sql(f"select * from values {rows} as t(number, name, day)")


def numbers(spark: SparkSession, table: Table) -> list[int]:
    return sorted(row["number"] for row in table.read(spark).collect())


@pytest.mark.slow
def test_a_batch_counts_once_and_a_table_that_is_not_there_is_empty(
    spark: SparkSession, table: Table
) -> None:
    assert numbers(spark, table) == []
    assert table.last("job") is None
    first = table.append(things(spark, 1, 2), source="job", batch=1, facts={"to": 3})
    assert (first.rows, first.sequence) == (2, 1)
    # the same batch again changes nothing, even if its rows are others
    again = table.append(things(spark, 7), source="job", batch=1)
    assert again == first
    table.append(things(spark, 3), source="other", batch=1)
    empty = things(spark, 9).where("number < 0")
    assert table.append(empty, source="job", batch=2, facts={"to": 4}).folder == ""
    assert numbers(spark, table) == [1, 2, 3]
    assert table.rows == 3
    last = table.last("job")
    assert last is not None
    assert (last.batch, last.facts) == (2, {"to": 4})
    assert Table(Lake(table.path.parent.parent), SPEC).commits() == table.commits()


@pytest.mark.slow
def test_a_batch_in_the_place_of_others(spark: SparkSession, table: Table) -> None:
    first = table.append(things(spark, 1, 2), source="job", batch=1)
    table.append(things(spark, 3), source="job", batch=2)
    kept = table.read(spark, [first]).where("number > 1").drop("batch")
    table.rewrite(kept, [first], source="job", batch=3)
    assert numbers(spark, table) == [2, 3]
    assert [commit.batch for commit in table.counting(before=3)] == [1, 2]
    table.replace(table.read(spark).where("number = 3"), source="job", batch=4)
    assert numbers(spark, table) == [3]
    # what no longer counts stays for readers that began before, until it is swept
    assert table.sweep(3600) == 0
    assert table.sweep() == 3
    assert numbers(spark, table) == [3]


@pytest.mark.slow
def test_what_a_crash_left_without_a_commit_does_not_count(
    spark: SparkSession, table: Table
) -> None:
    table.append(things(spark, 1), source="job", batch=1)
    lost = table.path / "data" / "batch=00000002-dead"
    things(spark, 5).write.parquet(str(lost))
    (table.path / "_commits" / "00000002.new").write_text("{")  # it died while writing the commit
    assert numbers(spark, table) == [1]
    old = time.time() - 100
    os.utime(lost, (old, old))
    assert table.sweep(50) == 1
    table.append(things(spark, 6), source="job", batch=2)
    assert numbers(spark, table) == [1, 6]


@pytest.mark.slow
def test_new_columns_are_null_in_old_files(spark: SparkSession, table: Table) -> None:
    table.append(things(spark, 1), source="job", batch=1)
    grown = TableSpec(SPEC.name, "number bigint, name string, day date, size bigint", ("day",))
    newer = Lake(table.path.parent.parent).table(grown)
    newer.append(things(spark, 2).selectExpr("*", "7L as size"), source="job", batch=2)
    rows = {row["number"]: row for row in newer.read(spark).collect()}
    assert (rows[1]["size"], rows[2]["size"]) == (None, 7)
    assert rows[1]["name"] == "a/b=1"
    assert str(rows[2]["day"]) == "2026-11-16"


def test_a_note_moves_a_position_without_rows(table: Table) -> None:
    table.note(source="job", batch=1, facts={"to": 5})
    table.note(source="job", batch=1, facts={"to": 6})
    assert [commit.facts for commit in table.commits()] == [{"to": 5}]
    assert table.counting() == []


def test_a_commit_that_cannot_be_read_is_named(table: Table) -> None:
    table.note(source="job", batch=1, facts={})
    file = table.path / "_commits" / "00000001.json"
    fresh = Table(Lake(table.path.parent.parent), SPEC)
    file.write_text(json.dumps({"version": 2}))
    with pytest.raises(LakeError, match=r"00000001\.json.*version 2"):
        fresh.commits()
    file.write_text("{")
    with pytest.raises(LakeError, match=r"00000001\.json"):
        fresh.commits()


def test_one_run_of_a_job_at_a_time(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.lock("job"):
        with lake.lock("another"):
            pass
        with pytest.raises(LakeError, match="another run of job"), Lake(tmp_path).lock("job"):
            pass
    with lake.lock("job"):
        pass
