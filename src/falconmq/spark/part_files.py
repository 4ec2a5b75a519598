"""Parquet files that tasks write themselves: rows go from Arrow to the disk, not through Java.

How to think about it. A task of Spark may be tried several times, twice at the same moment even,
and one that was given up may go on writing for a while. So no attempt writes where rows count: each
has a folder of its own in the *draft* of a batch and names its files to the driver at its end. The
driver hears of the attempt that Spark took, and of no other; it moves the files of that one to
their place (`Table.stage_files`) and throws the draft away. An attempt that lives on behind that
writes into a folder that nobody reads, and that the next run sweeps.

    lake/bronze/events/data/_draft-5f3c9a01/8c21d0e7/day=2026-11-16/part-00001-8c21d0e7.c000....

The files are those that Spark would have written: the same types, nulls and order of columns, the
same folders for partitions, and the codec and the type of times that the session is set to. Numbers
are packed as differences, which makes an archive half as big; every Spark since 3.3 reads that.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"  # the folder of null, and of ""
_HELD_BYTES: Final = 64 << 20  # of rows in memory; then each partition gets a row group of its own
_OPEN_MOST: Final = 100  # files at a time
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(1, 0x20)))
_CODEC: Final = "spark.sql.parquet.compression.codec"
_TIMES: Final = "spark.sql.parquet.outputTimestampType"
_CODECS: Final[Mapping[str, str]] = {  # as Spark and as Arrow call them
    "none": "uncompressed",
    "uncompressed": "uncompressed",
    "snappy": "snappy",
    "gzip": "gzip",
    "brotli": "brotli",
    "zstd": "zstd",
    "lz4_raw": "lz4",
}
_DISTINCT: Final = frozenset({"message_id"})  # texts that hardly repeat: a dictionary costs only


@dataclass(frozen=True)
class Draft:
    """Where the tasks of a batch write files of a table, and what these are; sent to executors."""

    folder: str
    schema: pa.Schema  # with the columns of the partitions
    partition_by: tuple[str, ...]
    codec: str = "snappy"
    has_long_times: bool = True  # 96 bits, as Spark writes them unless it is told otherwise


def make_draft(
    spark: SparkSession, folder: Path, schema: str, partition_by: tuple[str, ...]
) -> Draft:
    """A draft in a folder that is not there yet; `schema` in Spark's words."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - optional
    from pyspark.sql.types import StructType  # noqa: PLC0415

    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return Draft(
        str(folder),
        to_arrow_schema(parsed, timezone="UTC"),
        partition_by,
        _CODECS.get((spark.conf.get(_CODEC) or "").lower(), "snappy"),
        (spark.conf.get(_TIMES) or "").upper() == "INT96",
    )


class PartFiles:
    """The files of one attempt of one task."""

    def __init__(self, draft: Draft, task: int) -> None:
        attempt = secrets.token_hex(8)
        self._draft = draft
        self._folder = Path(draft.folder) / attempt
        self._stem = f"part-{task:05d}-{attempt}"
        names = [name for name in draft.schema.names if name not in draft.partition_by]
        self._schema = pa.schema([draft.schema.field(name) for name in names])
        self._pending: dict[str, list[pa.RecordBatch]] = {}  # by folder of the partition
        self._held = 0  # bytes of all of them
        self._open: dict[str, _File] = {}
        self._files: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, with the columns of the table in any order."""
        if not batch.num_rows:
            return
        for partition, rows in split(batch, self._draft.partition_by):
            arrays = [rows.column(name) for name in self._schema.names]
            part = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            self._pending.setdefault(partition, []).append(part)
        self._held += batch.nbytes
        if self._held >= _HELD_BYTES:
            self._flush()

    def close(self) -> tuple[str, ...]:
        """Finish all files; their names, from the folder of the draft on."""
        self._flush()
        self._close_files()
        return tuple(self._files)

    def _flush(self) -> None:
        for partition, batches in self._pending.items():
            if partition not in self._open:
                self._open[partition] = self._new_file(partition)
            self._open[partition].write(batches)
        self._pending, self._held = {}, 0
        if len(self._open) > _OPEN_MOST:
            self._close_files()

    def _new_file(self, partition: str) -> _File:
        codec = self._draft.codec
        name = f"{self._stem}.c{len(self._files):03d}.{codec}.parquet"
        path = self._folder / partition / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._files.append(path.relative_to(self._draft.folder).as_posix())
        return _File(path, self._schema, codec, self._draft.has_long_times)

    def _close_files(self) -> None:
        for file in self._open.values():
            file.close()
        self._open = {}


@dataclass
class _File:
    """One file; each write is a row group."""

    path: Path
    schema: pa.Schema
    codec: str
    has_long_times: bool
    _writer: Any = field(init=False)

    def __post_init__(self) -> None:
        texts = [
            column.name
            for column in self.schema
            if pa.types.is_string(column.type) and column.name not in _DISTINCT
        ]
        numbers = [column.name for column in self.schema if pa.types.is_integer(column.type)]
        self._writer = pq.ParquetWriter(
            self.path,
            self.schema,
            compression=self.codec,
            use_dictionary=texts,
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
            use_deprecated_int96_timestamps=self.has_long_times,
            store_schema=False,
        )

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches, self.schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


def split(
    batch: pa.RecordBatch, partition_by: Sequence[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each partition, in their order, with the folder that Spark has for it."""
    codes = np.zeros(batch.num_rows, np.int64)
    values: list[list[Any]] = []
    for name in partition_by:
        column = batch.column(name).dictionary_encode("encode")
        values.append(column.dictionary.to_pylist())
        codes = codes * len(values[-1]) + column.indices.to_numpy()
    edges = np.flatnonzero(np.diff(codes))
    if len(edges):  # sorted by partition, and within it as they came
        order = np.argsort(codes, kind="stable")
        batch, codes = batch.take(pa.array(order)), codes[order]
        edges = np.flatnonzero(np.diff(codes))
    starts = [0, *(int(edge) + 1 for edge in edges)]
    for start, stop in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        code, folders = int(codes[start]), []
        for name, known in zip(reversed(partition_by), reversed(values), strict=True):
            code, place = divmod(code, len(known))
            folders.append(f"{name}={_escaped(known[place])}")
        yield "/".join(reversed(folders)), batch.slice(start, stop - start)


def _escaped(value: Any) -> str:
    """A value as a name of a folder."""
    text = "" if value is None else str(value)
    if not text:
        return NO_VALUE
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED else sign for sign in text)
