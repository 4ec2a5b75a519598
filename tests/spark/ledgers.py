"""The ledger without Spark: its functions on record batches, as Spark calls them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from falconmq.spark.jobs.clocks import combined, offsets
from falconmq.spark.jobs.coverage import ALWAYS, Cover
from falconmq.spark.jobs.judging import judge
from falconmq.spark.jobs.links import learnt, links_of
from falconmq.spark.jobs.merging import BEFORE, EVENT, merge_batches
from falconmq.spark.jobs.view import Limits, View
from tools.make_traffic import Traffic


def rows_of(events: pa.Table, known: pa.RecordBatch | None = None, batch: int = 1) -> pa.Table:
    """What Spark brings together, sorted by message."""
    count = events.num_rows
    fresh = events.select(["message_id", *EVENT])
    fresh = fresh.append_column("updated_batch", pa.array([batch] * count, pa.int64()))
    fresh = fresh.append_column("before", pa.nulls(count, pa.string()))
    if known is not None:
        documents = [
            json.dumps(row, default=datetime.isoformat) for row in known.select(BEFORE).to_pylist()
        ]
        ids = known.column("message_id")
        old = pa.table({"message_id": ids, "before": pa.array(documents, pa.string())})
        fresh = pa.concat_tables([fresh, old], promote_options="default")
    return fresh.sort_by("message_id")


def merged(
    events: pa.Table, known: pa.RecordBatch | None = None, rows: int = 10_000
) -> pa.RecordBatch:
    batches = rows_of(events, known).to_batches(max_chunksize=rows)
    return pa.Table.from_batches(merge_batches(batches)).combine_chunks().to_batches()[0]


def view_of(traffic: Traffic, facts: pa.RecordBatch, limits: Limits | None = None) -> View:
    shown = learnt(links_of(facts).to_pylist())
    limits = limits or Limits()
    covers = {m.guid: Cover(m.guid, m.computer, ALWAYS, traffic.end) for m in traffic.managers}
    clocks = offsets(combined([], shown.links), limits.tolerance)
    return View(covers, shown.addresses, clocks, limits)


def lives(traffic: Traffic, cuts: Sequence[float] = (), rows: int = 10_000) -> list[dict[str, Any]]:
    """The ledger of made traffic, in batches that end at shares of each log."""
    known: pa.RecordBatch | None = None
    for low, high in zip((0.0, *cuts), (*cuts, 1.0), strict=True):
        pieces = [
            log.slice(int(log.num_rows * low), int(log.num_rows * high) - int(log.num_rows * low))
            for log in traffic.logs
        ]
        known = merged(pa.concat_tables(pieces), known, rows)
    assert known is not None
    judged: list[dict[str, Any]] = judge(known, view_of(traffic, known)).to_pylist()
    return judged


def without_batch(facts: pa.RecordBatch) -> pa.RecordBatch:
    """Facts, but for the batch in which they came."""
    zero = pc.multiply(facts.column("updated_batch"), 0)
    return facts.set_column(facts.schema.get_field_index("updated_batch"), "updated_batch", zero)
