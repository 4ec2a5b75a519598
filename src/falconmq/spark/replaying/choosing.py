r"""Which archived messages a replay sends, in what order, cut into which chunks.

A message may be in the archive several times: where it was sent, where it arrived, in a journal. It
is sent once, as the best of these rows knows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as sql

from falconmq.client.columns import COLUMNS
from falconmq.spark.replaying.plans import CHUNK, POSITION
from falconmq.spark.replaying.predicates import matching

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CHUNK_BYTES: Final = 128 << 20
_KINDS: Final = ("arrived", "snapshot", "queued", "journaled", "dead_lettered")  # the best first
_KEPT: Final = ("message_id", "sent_at")  # with --keep-ids


@dataclass(frozen=True)
class Wanted:
    """What the messages have in common; what is left out does not matter."""

    queues: tuple[str, ...] = ()  # patterns: *\private$\orders
    since: datetime | None = None
    until: datetime | None = None
    label: str | None = None  # a pattern
    message_ids: tuple[str, ...] = ()
    where: str | None = None  # an expression of Spark

    def as_json(self) -> dict[str, Any]:
        """To find out whether a replay means the same messages as before."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in (
                (name, list(value) if isinstance(value, tuple) else value)
                for name, value in asdict(self).items()
            )
            if value not in (None, [])
        }


def chosen(messages: DataFrame, wanted: Wanted) -> DataFrame:
    """The rows of bronze/messages that are meant, each message once, with `at` and `position`."""
    found = messages.withColumn("at", sql.coalesce("arrived_at", "sent_at"))
    if wanted.queues:
        found = found.where(_any_of([_queue_matches(queue) for queue in wanted.queues]))
    if wanted.since is not None:
        found = found.where(sql.col("at") >= _time(wanted.since))
    if wanted.until is not None:
        found = found.where(sql.col("at") < _time(wanted.until))
    if wanted.label is not None:
        found = found.where(sql.col("label").rlike(f"(?s)^{glob(wanted.label)}$"))
    if wanted.message_ids:
        ids = [id.upper() for id in wanted.message_ids]
        found = found.where(sql.upper("message_id").isin(ids))
    if wanted.where is not None:
        found = matching(found, wanted.where)
    order = ("at", "manager", "number", "queue", "arrival_number")
    best = Window.partitionBy("message_id").orderBy(_rank(), *order)
    once = found.withColumn("place", sql.row_number().over(best)).where(
        "place = 1 or message_id is null"
    )
    return once.drop("place").withColumn(
        POSITION, sql.row_number().over(Window.orderBy(*order, "message_id"))
    )


def chunked(found: DataFrame, messages: int, most_bytes: int = _CHUNK_BYTES) -> DataFrame:
    """With the column `chunk`, which only grows: none has more messages, or more bytes.

    Both counts are in the sum, so a new chunk begins as soon as either is full.
    """
    before = Window.orderBy(POSITION).rowsBetween(Window.unboundedPreceding, -1)
    size = sql.coalesce("size", sql.length("body"), sql.lit(0))
    held = sql.coalesce(sql.sum(size).over(before), sql.lit(0))
    by_count = sql.floor((sql.col(POSITION) - 1) / sql.lit(messages))
    by_bytes = sql.floor(held / sql.lit(most_bytes))
    return found.withColumn(CHUNK, (by_count + by_bytes).cast("bigint"))


def as_sent(rows: DataFrame, *, keep_ids: bool, link: bool) -> DataFrame:
    """The columns that a sender sets, and none that a queue manager fills in.

    With `link` the id that the message had becomes the correlation id, if it has none.
    """
    names = [column.name for column in COLUMNS if column.is_sent]
    names += _KEPT if keep_ids else ()
    sent = rows.withColumn(
        "message_class",  # of a dead letter it says why it died
        sql.expr("case when kind = 'dead_lettered' then 'NORMAL' else message_class end"),
    )
    if link:
        sent = sent.withColumn("correlation_id", sql.coalesce("correlation_id", "message_id"))
    return sent.select(*names)


def glob(pattern: str) -> str:
    """A pattern with * and ? as a regular expression."""
    parts = re.split(r"([*?])", pattern)
    return "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)


def _queue_matches(pattern: str) -> Column:
    r"""`.\private$\orders` is that queue on every computer."""
    name = pattern.removeprefix(".\\")
    prefix = r"(?:[^\\]*\\)?" if pattern.startswith(".\\") else ""
    return sql.col("queue").rlike(f"(?is)^{prefix}{glob(name)}$")


def _any_of(conditions: Sequence[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole | condition
    return whole


def _rank() -> Column:
    ranked = "".join(f" when '{kind}' then {place}" for place, kind in enumerate(_KINDS))
    return sql.expr(f"case kind{ranked} else {len(_KINDS)} end")


def _time(at: datetime) -> Column:
    return sql.timestamp_micros(sql.lit(int(at.timestamp() * 1_000_000)))
