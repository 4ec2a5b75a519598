"""Tables of a lake as Delta tables: the same files, with the log that Delta's readers go by.

How to think about it. What counts is decided by the commits (`tables`). In a lake of this format
every commit is then told to Delta's log as well, in one transaction that names its number; so the
log can be behind, never ahead, and whoever comes next brings it up to date. A commit is told once,
however often it is tried. Files that a later commit replaced are taken out of the log before they
are swept from the disk: Delta's time travel reaches back no further than that.

The log is written by `deltalake`, which needs neither a jar nor a cluster. Who has Delta in his
Spark, DuckDB or Databricks reads the folder of a table, such as lake/silver/ledger, by its path.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from falconmq.spark.commits import Commit, LakeError

if TYPE_CHECKING:
    from deltalake import DeltaTable

APPLICATION: Final = "falconmq"  # whose transactions the log counts
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"  # how Spark names the folder of null


def need_delta() -> Any:
    """The package; LakeError if it is not there."""
    try:
        import deltalake  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise LakeError(
            "a lake of Delta tables needs the package deltalake",
            hint="pip install 'falconmq[delta]', or leave --format delta out",
        ) from error
    return deltalake


def publish(
    path: Path, data: Path, schema: str, partitions: Sequence[str], commits: Sequence[Commit]
) -> int:
    """Tell Delta's log of a table the commits that it does not know yet; how many they were.

    `schema` and `partitions` are in Spark's words, with the column of the batch.
    """
    deltalake = need_delta()
    table = _table(deltalake, path, schema, partitions)
    known = table.transaction_version(APPLICATION) or 0
    told = 0
    for commit in commits:
        if commit.sequence > known and (commit.folder or commit.replaces or commit.is_replacing):
            _tell(deltalake, table, data, commit, commits)
            table.update_incremental()
            told += 1
    return told


def _table(deltalake: Any, path: Path, schema: str, partitions: Sequence[str]) -> DeltaTable:
    """The Delta table of a folder, with all the columns that the schema has now."""
    wanted = deltalake.Schema.from_json(_as_json(schema))
    if not deltalake.DeltaTable.is_deltatable(str(path)):
        table: DeltaTable = deltalake.DeltaTable.create(
            str(path), wanted, partition_by=list(partitions), mode="ignore"
        )
        return table
    table = deltalake.DeltaTable(str(path))
    has = {column.name for column in table.schema().fields}
    new = [column for column in wanted.fields if column.name not in has]
    if new:  # a table only ever gains columns
        table.alter.add_columns(new)
        table.update_incremental()
    return table


def _tell(
    deltalake: Any, table: DeltaTable, data: Path, commit: Commit, commits: Sequence[Commit]
) -> None:
    from deltalake.transaction import RemoveAction  # noqa: PLC0415

    gone = _replaced(commit, commits)
    batches = {each.folder.partition("=")[2] for each in gone if each.folder}
    now = int(time.time() * 1000)
    actions: list[Any] = [
        RemoveAction(add["path"], True, now, add["size_bytes"], add["partition"])
        for add in _known_files(table)
        if add["partition"]["batch"] in batches
    ]
    if commit.folder:
        actions += _adds(data, commit)
    transaction = deltalake.Transaction(APPLICATION, commit.sequence)
    properties = deltalake.CommitProperties(
        custom_metadata={"source": commit.source, "batch": str(commit.batch)},
        app_transactions=[transaction],
    )
    table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)


def _replaced(commit: Commit, commits: Sequence[Commit]) -> list[Commit]:
    earlier = [each for each in commits if each.sequence < commit.sequence]
    if commit.is_replacing:
        return earlier
    return [each for each in earlier if each.sequence in commit.replaces]


def _known_files(table: DeltaTable) -> Iterator[dict[str, Any]]:
    """The files that the log has now."""
    import pyarrow as pa  # noqa: PLC0415 - optional

    found = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    for row in found:
        partition = {name: _text(value) for name, value in row["partition"].items()}
        yield {"path": row["path"], "size_bytes": row["size_bytes"], "partition": partition}


def _adds(data: Path, commit: Commit) -> list[Any]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - optional
    from deltalake.transaction import AddAction  # noqa: PLC0415

    actions = []
    for file in sorted((data / commit.folder).rglob("*.parquet")):
        place = file.relative_to(data.parent)
        status = file.stat()
        rows = pq.read_metadata(file).num_rows
        actions.append(
            AddAction(
                quote(place.as_posix(), safe="/=:"),
                status.st_size,
                _partition_values(place.parent.parts[1:]),
                int(status.st_mtime * 1000),
                True,
                json.dumps({"numRecords": rows}),
            )
        )
    return actions


def _partition_values(folders: Sequence[str]) -> dict[str, str | None]:
    """Column and value, from folders that Spark named: `day=2026-11-16`."""
    pairs = (folder.partition("=") for folder in folders)
    return {name: None if value == _NO_VALUE else unquote(value) for name, _, value in pairs}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _as_json(schema: str) -> str:
    """Delta writes schemas as Spark does."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 - optional

    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return parsed.json()
