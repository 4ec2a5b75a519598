"""The Spark source and sink, held against what bounds them, in one run on one machine.

    python -m benchmarks.spark --messages 200000

The source is held against Spark reading the same rows from its own Parquet files, the sink against
a client that sends the same messages to the queue manager in bulk. Spark, the queue manager and the
client share this machine's cores. Each figure is the best of the turns; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from falconmq import Message
from falconmq.spark.session import session
from tests.e2e.estate import Daemon, Estate, path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BODY: Final = 200
TURNS: Final = 3
AT_ONCE: Final = 1000
FEW: Final = "arrival_number,message_id,queue,label,body,body_type,priority,sent_at,arrived_at,size"


def best(work: Callable[[], object], turns: int = TURNS) -> float:
    """Seconds of the quickest turn."""
    times = []
    for _ in range(turns):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def send(daemon: Daemon, queue: str, count: int) -> float:
    """The manager's own bulk send, by one client; seconds."""
    started = time.perf_counter()
    for start in range(0, count, AT_ONCE):
        messages = [
            Message(b"%0200d" % number, label=f"number {number}")
            for number in range(start, min(count, start + AT_ONCE))
        ]
        daemon.client.send_packets(path(queue), messages)
    return time.perf_counter() - started


def read_source(spark: SparkSession, daemon: Daemon, count: int, folder: Path) -> None:
    for words, columns in (("10 columns", FEW), ("all columns", "")):
        options = {"url": f"unix:{daemon.data}", "queue": path("numbers"), "minPartitions": "2"}
        if columns:
            options["columns"] = columns

        target = str(folder / words.replace(" ", "-"))
        _load(spark, options).write.parquet(target)
        assert spark.read.parquet(target).count() == count
        queue = best(partial(_drain, partial(_load, spark, options)))
        parquet = best(partial(_drain, partial(spark.read.parquet, target)))
        print(
            f"source, {words:12} {count / queue:10,.0f} rows/s   "
            f"Parquet {count / parquet:10,.0f} rows/s   ratio {parquet / queue:.2f}",
            flush=True,
        )


def _load(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    return spark.read.format("falconmq").options(**options).load()


def _drain(load: Callable[[], DataFrame]) -> None:
    load().write.format("noop").mode("overwrite").save()


def write_sink(spark: SparkSession, daemon: Daemon, count: int, folder: Path) -> None:
    rows = spark.read.parquet(str(folder / "10-columns")).select("label", "body").limit(count)
    local = folder / "rows"
    rows.repartition(2).write.parquet(str(local))
    for words, is_transactional in (("plain", False), ("transactional", True)):
        times: dict[str, list[float]] = {"sink": [], "bulk": []}
        for turn in range(TURNS):
            for way, seconds in times.items():
                name = f"{way}-{words}-{turn}"
                daemon.create_queue(name, transactional=is_transactional)
                if way == "bulk":
                    seconds.append(send(daemon, name, count))
                else:
                    seconds.append(_write(spark, daemon, name, local))
                assert daemon.count(name) == count
                daemon.client.delete_queue(path(name))
        sink, bulk = min(times["sink"]), min(times["bulk"])
        print(
            f"sink, {words:14} {count / sink:10,.0f} rows/s   "
            f"bulk send {count / bulk:8,.0f} rows/s   ratio {bulk / sink:.2f}",
            flush=True,
        )


def _write(spark: SparkSession, daemon: Daemon, queue: str, rows: Path) -> float:
    started = time.perf_counter()
    spark.read.parquet(str(rows)).write.format("falconmq").mode("append").option(
        "url", f"unix:{daemon.data}"
    ).option("queue", path(queue)).save()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--written", type=int, default=50_000, help="rows that the sink writes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="falconmq-") as place, Estate(Path(place)) as estate:
        daemon = estate.manager("A").start()
        daemon.create_queue("numbers")
        send(daemon, "numbers", given.messages)
        with session(master="local[2]") as spark:
            read_source(spark, daemon, given.messages, Path(place))
            write_sink(spark, daemon, given.written, Path(place))


if __name__ == "__main__":
    main()
