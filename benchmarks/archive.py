"""archive and ledger: rows a second from record batches to bronze, and events a second to silver.

    python -m benchmarks.archive --messages 100000

In one run and one session: Spark's own writing of the same rows as Parquet, the archive without and
with packets, and the ledger over what was archived. The ratio to Spark's own writing says more than
the figures: other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc

from falconmq.client.packets import destination_of, to_packet
from falconmq.message import Message
from falconmq.spark.jobs import archive, ledger
from falconmq.spark.jobs.event_logs import LogStatus
from falconmq.spark.jobs.running import tell_nobody
from falconmq.spark.session import session
from falconmq.spark.tables import Lake
from tools.make_traffic import Traffic, TrafficLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 10_000  # of a record batch
_DDL = (
    "number bigint, at timestamp, kind string, manager string, computer string, "
    "message_id string, queue string, lookup_id bigint, arrival_number bigint, size bigint, "
    "reason string, detail string, sent_at timestamp, sequence_id string, "
    "sequence_number bigint, previous_number bigint, destination string, trace boolean, "
    "packet binary"
)


class FileLogs(TrafficLogs):
    """Made logs in Arrow files: executors read record batches, as they do from a manager."""

    def __init__(self, traffic: Traffic, folder: Path, packet: bytes | None) -> None:
        super().__init__(traffic)
        self._files: dict[str, str] = {}
        for manager, log in zip(traffic.managers, traffic.logs, strict=True):
            path = folder / f"{manager.computer}.arrow"
            column = log.schema.get_field_index("packet")
            carried = [packet if kind == "arrived" else None for kind in log["kind"].to_pylist()]
            log = log.set_column(column, log.schema.field(column), pa.array(carried, pa.binary()))
            with pa.ipc.new_file(path, log.schema) as writer:
                writer.write_table(log, max_chunksize=_ROWS)
            self._files[f"made:{manager.computer}"] = str(path)

    def read(self, spark: SparkSession, status: LogStatus, start: int, stop: int) -> DataFrame:
        middle = (start + stop) // 2
        pieces = spark.createDataFrame([(start, middle), (middle, stop)], "low long, high long")
        read = partial(_read, self._files[status.url])
        return pieces.repartition(2, "low").mapInArrow(read, _DDL)


def _read(path: str, pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        for row in piece.to_pylist():
            with pa.memory_map(path) as source:
                table = pa.ipc.open_file(source).read_all()
                part = table.slice(row["low"] - 1, row["high"] - row["low"])
                yield from part.to_batches()


def measure(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def own_writing(spark: SparkSession, logs: FileLogs, folder: Path) -> None:
    """What Spark needs to write the same rows."""
    for index, url in enumerate(logs.urls):
        status = logs.status(url)
        logs.read(spark, status, status.first, status.next).write.parquet(str(folder / str(index)))


def run(spark: SparkSession, traffic: Traffic, place: Path) -> None:
    name = destination_of(r"DIRECT=OS:SALES01\private$\orders")
    packet = to_packet(Message(bytes(200), label="order"), name, in_transaction=False)
    count = traffic.events
    lake = Lake(place / "lake")
    for what, carried in (("without packets", None), ("with packets", packet)):
        folder = place / what.replace(" ", "-")
        folder.mkdir()
        logs = FileLogs(traffic, folder, carried)
        own_writing(spark, logs, folder / "warm-up")
        own = measure(lambda: own_writing(spark, logs, folder / "own"))  # noqa: B023
        lake = Lake(folder / "lake")
        ours = measure(
            lambda: archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)  # noqa: B023
        )
        print(
            f"archive {what}: {count / ours:,.0f} events/s, Spark's own Parquet "
            f"{count / own:,.0f}/s, ratio {own / ours:.2f}"
        )
    seconds = measure(lambda: ledger.run(spark, lake, ledger.Options(), tell_nobody))
    print(f"ledger: {count / seconds:,.0f} events/s ({count:,} events)")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    chosen = parser.parse_args(arguments)
    traffic = Traffic(2, chosen.messages)
    with tempfile.TemporaryDirectory() as place, session(master="local[2]") as spark:
        small, warm_up = Path(place) / "small", Path(place) / "whole"
        small.mkdir()
        warm_up.mkdir()
        run(spark, Traffic(4, 200), small)
        run(spark, traffic, warm_up)


if __name__ == "__main__":
    main()
