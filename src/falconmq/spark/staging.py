"""Rows of a batch that are on the disk and do not count yet: written by Spark, or by tasks of ours.

Tasks write into a *draft*, a folder that is gone when the batch is staged or has failed; see
`falconmq.spark.part_files` for why.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from falconmq.spark.commits import sync

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from falconmq.spark.part_files import Draft


@dataclass(frozen=True)
class Staged:
    """Rows that are written and do not count yet."""

    folder: str  # "" if there are none
    rows: int


NOTHING: Final = Staged("", 0)


def seal(target: Path) -> Staged:
    """Let the disk have what was written to a folder; one without rows goes."""
    rows = _count_rows(target)
    if not rows:
        shutil.rmtree(target, ignore_errors=True)
        return NOTHING
    sync(target)  # nobody else does: a commit must not outlive the rows it speaks of
    return Staged(target.name, rows)


@contextlib.contextmanager
def drafting(
    spark: SparkSession, data: Path, schema: str, partition_by: tuple[str, ...]
) -> Iterator[Draft]:
    """A draft for the tasks of one batch, for as long as the block runs."""
    from falconmq.spark.part_files import make_draft  # noqa: PLC0415 - it needs pyarrow

    folder = data / f"_draft-{secrets.token_hex(4)}"
    try:
        yield make_draft(spark, folder, schema, partition_by)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move_files(draft: Draft, files: Sequence[str], target: Path) -> None:
    """The files that tasks named, out of the folders of their attempts and into that of a batch."""
    for name in files:
        _, _, place = name.partition("/")  # without the attempt
        final = target / place
        final.parent.mkdir(parents=True, exist_ok=True)
        (Path(draft.folder) / name).rename(final)


def _count_rows(folder: Path) -> int:
    """By the footers of its files."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - optional

    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))
