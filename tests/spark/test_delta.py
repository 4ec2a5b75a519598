"""Tables of a lake as Delta tables: the log says what the commits say, whatever happens between."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from falconmq.cli.pipeline_options import Engine
from falconmq.cli.problems import WrongUsageError
from falconmq.spark import delta
from falconmq.spark.tables import BATCH, Lake, LakeError, Table, TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "number bigint, name string, at timestamp, body binary, parts array<string>, day date"
SPEC = TableSpec("bronze/things", SCHEMA, ("day",))
DAY = date(2026, 11, 16)
AT = datetime(2026, 11, 16, 10, 30, 0, 123456, tzinfo=UTC)


def things(spark: SparkSession, *numbers: int, day: date | None = DAY) -> DataFrame:
    rows = [(n, f"a/b={n} %", AT, bytes([n]), ["x", str(n)], day) for n in numbers]
    return spark.createDataFrame(rows, SCHEMA)


def seen(table: Table) -> list[dict[str, object]]:
    """What a reader of Delta sees, who knows nothing of our commits."""
    rows = DeltaTable(str(table.path)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["number"])


@pytest.mark.slow
def test_readers_of_delta_see_what_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "lake")
    table = lake.table(SPEC)
    first = table.append(things(spark, 1), source="job", batch=1)
    assert not (table.path / "_delta_log").exists()

    # A lake that becomes one of Delta tables tells of what it has with its next batch.
    lake.become("delta")
    second = table.append(things(spark, 2, day=None), source="job", batch=2)
    assert [row["number"] for row in seen(table)] == [1, 2]
    assert {key: value for key, value in seen(table)[0].items() if key != BATCH} == {
        "number": 1,
        "name": "a/b=1 %",
        "at": AT,
        "body": b"\x01",
        "parts": ["x", "1"],
        "day": DAY,
    }
    assert seen(table)[1]["day"] is None

    # A crash between our commit and Delta's log: the next one makes up for it, once.
    with monkeypatch.context() as patched:
        patched.setattr(delta, "publish", _crash)
        with pytest.raises(RuntimeError, match="crash"):
            table.append(things(spark, 3), source="job", batch=3)
    assert [row["number"] for row in seen(table)] == [1, 2]
    assert table.publish() == 1
    assert table.publish() == 0
    assert [row["number"] for row in seen(table)] == [1, 2, 3]

    # In the place of some, in the place of all, and swept from the disk.
    table.rewrite(things(spark, 12), [first, second], source="job", batch=4)
    assert [row["number"] for row in seen(table)] == [3, 12]
    table.replace(things(spark, 20, 21), source="job", batch=5)
    assert table.sweep() == 4
    assert [row["number"] for row in seen(table)] == [20, 21]

    # A new column is null in older files.
    wider = lake.table(TableSpec(SPEC.name, f"{SCHEMA}, more int", SPEC.partition_by))
    frame = things(spark, 30).selectExpr("*", "7 as more")
    wider.append(frame, source="job", batch=6)
    assert [(row["number"], row["more"]) for row in seen(wider)] == [
        (20, None),
        (21, None),
        (30, 7),
    ]
    files = DeltaTable(str(table.path)).file_uris()
    assert spark.read.parquet(*files).count() == 3


def _crash(*_: object) -> int:
    raise RuntimeError("crash")


def test_a_delta_lake_stays_one(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.become("parquet")
    lake.become("delta")
    assert Lake(lake.path).format == "delta"
    with pytest.raises(LakeError, match="stays one"):
        lake.become("parquet")
    with pytest.raises(LakeError, match="no format"):
        lake.become("orc")
    with pytest.raises(WrongUsageError, match="--format orc"):
        Engine(table_format="orc").check()
