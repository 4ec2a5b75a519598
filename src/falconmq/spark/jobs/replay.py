r"""replay: archived messages go to a queue again, each once for a name.

How to think about it. A replay has a name. Its first run chooses messages and writes them down in
chunks (`falconmq.spark.replaying`). Each chunk is sent through the sink as one batch of the name's
ingest key: the queue manager takes a batch as a whole and only once, so a run that dies anywhere is
simply started again. The same name never sends a message twice; what came into the archive later
needs another name.

Messages get new ids, unless `keep_ids`. Then who wants to know the old one uses `link`: it puts the
old id into the correlation id of messages that have none. Nothing else is changed: a message that
asked for acknowledgements asks for them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from falconmq.client import ControlClient
from falconmq.client.ingests import Ingest
from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.jobs.lake_tables import MESSAGES
from falconmq.spark.jobs.running import Progress, Summary, Tell
from falconmq.spark.replaying import plans
from falconmq.spark.replaying.choosing import Wanted, as_sent, chosen, chunked
from falconmq.spark.replaying.pacing import Pace, chunk_size
from falconmq.spark.replaying.plans import CHUNK, POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from falconmq.spark.replaying.plans import State
    from falconmq.spark.tables import Lake, Table

JOB: Final = "replay"
_SHOWN: Final = 10  # messages that a dry run shows


@dataclass(frozen=True)
class Options:
    """What to send again, where to, and how."""

    name: str
    to: str  # the queue
    url: str
    token: str | None = field(default=None, repr=False)
    wanted: Wanted = field(default_factory=Wanted)
    rate: float | None = None  # messages a second
    keep_ids: bool = False
    link: bool = False
    dry_run: bool = False

    def meaning(self) -> dict[str, Any]:
        """What must be the same for the same name; the rate may change."""
        return {
            "to": self.to,
            "wanted": self.wanted.as_json(),
            "keep_ids": self.keep_ids,
            "link": self.link,
        }


def run(
    spark: SparkSession, lake: Lake, options: Options, tell: Tell, *, pace: Pace | None = None
) -> Summary:
    """Send what is left to be sent; a dry run counts it and shows the first ten."""
    plans.check_name(options.name)
    size = chunk_size(options.rate)
    summary = Summary(JOB, is_dry=options.dry_run, facts={"name": options.name, "to": options.to})
    if options.dry_run:
        return _show(spark, lake, options, summary)
    with lake.lock(f"{JOB}-{options.name}"):
        table = lake.table(plans.table_of(options.name))
        done = _last_batch(options)
        if not _is_planned(table, options, done):
            tell(Progress("choosing messages", 0))
            _plan(spark, lake, table, options, size)
        _send(spark, lake, table, options, summary, tell, pace or Pace(options.rate), done)
    return summary


def _show(spark: SparkSession, lake: Lake, options: Options, summary: Summary) -> Summary:
    found = chosen(lake.table(MESSAGES).read(spark), options.wanted)
    summary.read = found.count()
    rows = (
        found.where(f"{POSITION} <= {_SHOWN}")
        .orderBy(POSITION)
        .selectExpr("message_id", "queue", "label", "size", "unix_millis(at) as at")
        .collect()
    )
    summary.facts["first"] = [
        {**row.asDict(), "at": None if row["at"] is None else _iso(row["at"] / 1000)}
        for row in rows
    ]
    return summary


def _is_planned(table: Table, options: Options, done: int | None) -> bool:
    """Whether a run before chose the messages; FalconMQError if it chose others."""
    plan = table.find(plans.SOURCE, 0)
    if plan is None:
        if done is None:
            return False
        raise FalconMQError(
            f"{options.url} knows a replay {options.name}, but this lake does not",
            status=MqStatus.INVALID_PARAMETER,
            hint="use the lake that it came from, or another --name",
        )
    if plan.facts.get("meaning") != options.meaning():
        raise FalconMQError(
            f"the replay {options.name} was begun with other options: "
            f"{_differences(plan.facts.get('meaning') or {}, options.meaning())}",
            status=MqStatus.INVALID_PARAMETER,
            hint="go on with the same options, or take another --name",
        )
    return True


def _plan(spark: SparkSession, lake: Lake, table: Table, options: Options, size: int) -> None:
    found = chunked(chosen(lake.table(MESSAGES).read(spark), options.wanted), size)
    facts = {"meaning": options.meaning(), "chunk_size": size}
    table.append(found, source=plans.SOURCE, batch=0, facts=facts)


def _send(
    spark: SparkSession,
    lake: Lake,
    table: Table,
    options: Options,
    summary: Summary,
    tell: Tell,
    pace: Pace,
    done: int | None,
) -> None:
    rows = table.read(spark)
    counts = rows.groupBy(CHUNK).count().orderBy(CHUNK).collect()
    total = sum(row["count"] for row in counts)
    noted = plans.read_state(lake, options.name)
    last = max(-1 if noted is None else noted.last_chunk, -1 if done is None else done)
    before = sum(row["count"] for row in counts if row[CHUNK] <= last)
    state = plans.State(options.name, options.to, options.url, total, before, last)
    state = _noted(lake, state)
    step = f"replaying to {options.to}"

    def tell_again() -> None:
        """Whoever listens may want to stop: it raises."""
        tell(Progress(step, state.sent, total, "messages"))

    tell_again()
    for row in counts:
        if row[CHUNK] <= last:
            continue
        pace.wait(tell_again)
        _send_chunk(rows.where(f"{CHUNK} = {row[CHUNK]}"), row[CHUNK], options)
        pace.sent(row["count"])
        sent = state.sent + row["count"]
        state = _noted(lake, replace(state, last_chunk=row[CHUNK], sent=sent))
        tell_again()
    summary.read = total
    summary.add(options.to, state.sent - before)
    summary.facts |= {"before": before, "left": total - state.sent}


def _send_chunk(rows: DataFrame, chunk: int, options: Options) -> None:
    ordered = rows.repartition(1).sortWithinPartitions(POSITION)
    messages = as_sent(ordered, keep_ids=options.keep_ids, link=options.link)
    writer = messages.write.format("falconmq").mode("append").option("url", options.url)
    if options.token is not None:
        writer = writer.option("token", options.token)
    if options.keep_ids:
        writer = writer.option("keepIds", "true")
    key = plans.key_of(options.name)
    writer.option("queue", options.to).option("key", key).option("batch", str(chunk)).save()


def _last_batch(options: Options) -> int | None:
    with ControlClient.connect(options.url, options.token) as client:
        return Ingest(client, plans.key_of(options.name)).last_batch()


def _noted(lake: Lake, state: State) -> State:
    state = replace(state, updated_at=datetime.now(UTC).isoformat(timespec="seconds"))
    plans.write_state(lake, state)
    return state


def _differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} was {before.get(name)!r}, is {now.get(name)!r}"
        for name in now
        if before.get(name) != now.get(name)
    )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
