"""The streams that `tools.exactly_once` kills: each a Spark driver of its own.

    source   a queue, consumed into Parquet files
    sink     Parquet files, written into a transactional queue
    count    the rows of the Parquet files that count: what a reader of the table sees

They say `batch NUMBER ROWS` when a batch is in Spark's commit log, and `done` at the end.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from falconmq.spark.session import session

ROWS_SCHEMA = "part int, number int, body binary"


class Reporter(StreamingQueryListener):
    """Tells whoever reads our output how far the stream is."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        say("started")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if progress.numInputRows:
            say(f"batch {progress.batchId} {progress.numInputRows}")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def say(line: str) -> None:
    print(line, flush=True)


def source(spark: SparkSession, given: argparse.Namespace) -> None:
    rows = (
        spark.readStream.format("falconmq")
        .option("url", given.url)
        .option("queue", given.queue)
        .option("mode", "consume")
        .option("consumer", "exactly-once")
        .option("maxMessagesPerTrigger", str(given.batch))
        .option("minPartitions", "2")
        .option("columns", "arrival_number,message_id,body")
        .load()
    )
    query = rows.writeStream.format("parquet").option("path", str(given.rows))
    _run(query, given)


def sink(spark: SparkSession, given: argparse.Namespace) -> None:
    rows = (
        spark.readStream.schema(ROWS_SCHEMA)
        .option("maxFilesPerTrigger", str(given.batch))
        .parquet(str(given.rows))
        .select("body")
    )
    query = (
        rows.writeStream.format("falconmq").option("url", given.url).option("queue", given.queue)
    )
    _run(query, given)


def _run(query: Any, given: argparse.Namespace) -> None:
    started = (
        query.option("checkpointLocation", str(given.checkpoint)).trigger(availableNow=True).start()
    )
    started.awaitTermination()
    say("done")


def count(spark: SparkSession, given: argparse.Namespace) -> None:
    """By Spark's own log of the files that count; order by each file as it is."""
    rows = spark.read.parquet(str(given.rows))
    found = rows.selectExpr("count(*) n", "count(distinct body) d", "count(distinct message_id) m")
    total, bodies, ids = found.first() or (0, 0, 0)
    files = rows.selectExpr("input_file_name() f").distinct().count()
    in_file = "partition by input_file_name() order by monotonically_increasing_id()"
    disorder = (
        rows.selectExpr(f"arrival_number < lag(arrival_number) over ({in_file}) as wrong")
        .where("wrong")
        .count()
    )
    answer = {"rows": total, "bodies": bodies, "ids": ids, "files": files, "disorder": disorder}
    say(json.dumps(answer))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["source", "sink", "count"])
    parser.add_argument("--url", default="")
    parser.add_argument("--queue", default="")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--batch", type=int, default=1000)
    given = parser.parse_args()
    work = {"source": source, "sink": sink, "count": count}[given.what]
    with session(master="local[2,3]", settings={"spark.driver.memory": "1g"}) as spark:
        if given.what != "count":
            spark.streams.addListener(Reporter())
        work(spark, given)


if __name__ == "__main__":
    main()
