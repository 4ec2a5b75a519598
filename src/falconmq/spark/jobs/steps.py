"""Batches that write several tables, and stay one batch if the job dies in between.

How to think about it. A batch writes its tables one after the other, the table with the position
last: as long as that one has no commit of the batch, the batch is not done and is done again. What
it wrote before counts already, so the second try must do exactly the same: each commit carries the
plan of the batch (which rows it reads, what time it is), and the second try goes by that plan
instead of making its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from falconmq.spark.tables import Table


@dataclass(frozen=True)
class Step:
    """The next batch of a source; `plan` is None if nothing of it was written yet."""

    source: str
    batch: int
    plan: dict[str, Any] | None
    last: dict[str, Any]  # the plan of the batch before; empty if this is the first


def next_step(tables: Sequence[Table], source: str) -> Step:
    """Where a source goes on. `tables` are in the order in which a batch writes them."""
    last = tables[-1].last(source)
    batch = 1 if last is None else last.batch + 1
    begun = (table.find(source, batch) for table in tables[:-1])
    plan = next((commit.facts for commit in begun if commit is not None), None)
    return Step(source, batch, plan, {} if last is None else last.facts)
