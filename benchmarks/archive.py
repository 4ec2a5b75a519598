"""archive and ledger: rows a second from record batches to bronze, and events a second to silver.

    python -m benchmarks.archive --messages 100000 --sent 200000

In one run and one session: Spark's own writing of the same rows as Parquet, the archive without and
with packets, and the ledger over what was archived; then the archive of the logs of two real queue
managers, one of which keeps the messages too. Each is the best of its turns. Other work on the
machine slows both a rate and what it is held against: go by their ratio, and by processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.ipc

from benchmarks.processor_time import Taken, taken_by
from falconmq.client.packets import destination_of, to_packet
from falconmq.message import Message
from falconmq.spark.jobs import archive, ledger
from falconmq.spark.jobs.event_logs import EventLogs, LogStatus, Piece
from falconmq.spark.jobs.running import tell_nobody
from falconmq.spark.session import session
from falconmq.spark.tables import Lake
from tests.e2e.estate import Daemon, Estate, path
from tools.make_traffic import Traffic, TrafficLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TURNS: Final = 3
AT_ONCE: Final = 1000  # messages that are sent in one call
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

    def pieces(self, status: LogStatus, start: int, stop: int) -> Sequence[Piece]:
        middle, path = (start + stop) // 2, self._files[status.url]
        return [partial(_read, path, start, middle), partial(_read, path, middle, stop)]


def _read(path: str, low: int, high: int) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(path) as source:
        table = pa.ipc.open_file(source).read_all()
        yield from table.slice(low - 1, high - low).to_batches()


def _read_all(batches: Iterable[pa.RecordBatch], pieces: Sequence[Piece]) -> Iterator[Any]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from pieces[number]()


def best(work: Callable[[Path], object], folder: Path) -> Taken:
    """The quickest turn, each with a place of its own to write to."""
    turns = [taken_by(partial(work, folder / str(turn))) for turn in range(TURNS)]
    return min(turns, key=lambda taken: taken.wall)


def own_writing(spark: SparkSession, logs: FileLogs, folder: Path) -> None:
    """What Spark needs to write the same rows."""
    for index, url in enumerate(logs.urls):
        status = logs.status(url)
        pieces = logs.pieces(status, status.first, status.next)
        numbers = spark.range(0, len(pieces), 1, len(pieces))
        read: Any = partial(_read_all, pieces=pieces)
        numbers.mapInArrow(read, _DDL).write.parquet(str(folder / str(index)))


def archiving(
    spark: SparkSession,
    folder: Path,
    *,
    logs: EventLogs | None = None,
    urls: tuple[str, ...] = (),
) -> None:
    archive.run(spark, Lake(folder), archive.Options(urls=urls), tell_nobody, logs=logs)


def run(spark: SparkSession, traffic: Traffic, place: Path) -> None:
    name = destination_of(r"DIRECT=OS:SALES01\private$\orders")
    packet = to_packet(Message(bytes(200), label="order"), name, in_transaction=False)
    count = traffic.events
    for what, carried in (("without packets", None), ("with packets", packet)):
        folder = place / what.replace(" ", "-")
        folder.mkdir()
        logs = FileLogs(traffic, folder, carried)
        own = best(partial(own_writing, spark, logs), folder / "own")
        ours = best(partial(archiving, spark, logs=logs), folder / "lake")
        print(
            f"archive {what}: {count / ours.wall:,.0f} events/s, {ours}\n"
            f"    Spark's own Parquet {count / own.wall:,.0f}/s, {own}; "
            f"ratio {own.wall / ours.wall:.2f}, of processor {own.processor / ours.processor:.2f}",
            flush=True,
        )
    begun = time.perf_counter()
    ledger.run(spark, Lake(folder / "lake" / "0"), ledger.Options(), tell_nobody)
    seconds = time.perf_counter() - begun
    print(f"ledger: {count / seconds:,.0f} events/s ({count:,} events)", flush=True)


def run_managers(spark: SparkSession, count: int, place: Path) -> None:
    """The logs of queue managers that run here, too."""
    with Estate(place) as estate:
        for what, bodies in (("without bodies", []), ("with bodies", ["*"])):
            daemon = estate.manager(f"A{len(bodies)}")
            daemon.sections["events"] = {"bodies": bodies}
            daemon.start()
            _fill(daemon, count)
            url = f"unix:{daemon.data}"
            ours = best(partial(archiving, spark, urls=(url,)), place / what.replace(" ", "-"))
            print(
                f"archive of a queue manager, {what}: {count / ours.wall:,.0f} events/s, {ours}, "
                "the queue manager among the workers",
                flush=True,
            )


def _fill(daemon: Daemon, count: int) -> None:
    daemon.create_queue("numbers")
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(count, start + AT_ONCE))
        messages = [Message(b"%0200d" % number, label=f"number {number}") for number in numbers]
        daemon.client.send_packets(path("numbers"), messages)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000, help="four events each, made up")
    parser.add_argument("--sent", type=int, default=200_000, help="to each real queue manager")
    chosen = parser.parse_args(arguments)
    traffic = Traffic(2, chosen.messages)
    with tempfile.TemporaryDirectory() as place, session(master="local[2]") as spark:
        small, whole, managers = (Path(place) / name for name in ("small", "whole", "managers"))
        for folder in (small, whole, managers):
            folder.mkdir()
        run(spark, Traffic(4, 200), small)
        run(spark, traffic, whole)
        run_managers(spark, chosen.sent, managers)


if __name__ == "__main__":
    main()
