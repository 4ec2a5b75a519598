"""What all jobs share: how they say how far they are, and what they did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from falconmq.spark.tables import TableSpec


@dataclass(frozen=True)
class Progress:
    """How far a job is; `total` is None as long as nobody knows."""

    step: str  # in words for the user: "reading events of A"
    done: int
    total: int | None = None
    unit: str = "rows"


Tell = Callable[[Progress], None]


def tell_nobody(progress: Progress) -> None:
    """For callers that show no progress."""


@dataclass
class Summary:
    """What a run did, or would do."""

    job: str
    is_dry: bool = False
    read: int = 0  # rows, or what the job reads
    written: dict[str, int] = field(default_factory=dict)  # rows by table
    rejected: int = 0  # rows that are in the table of rejects, with the reason
    facts: dict[str, Any] = field(default_factory=dict)  # what else is worth a line

    def add(self, table: str, rows: int) -> None:
        self.written[table] = self.written.get(table, 0) + rows


REJECTS_SCHEMA: Final = "at timestamp, source string, place string, reason string, record binary"
"""When, from where (a manager, a file), where there (a number, an offset), why, and what it was."""


def rejects_of(job: str) -> TableSpec:
    return TableSpec(f"rejects/{job}", REJECTS_SCHEMA, (), f"What `{job}` could not use, and why.")
