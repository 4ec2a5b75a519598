"""Megabytes of captures per second: connections and packets through Spark, against dpkt.

    python -m benchmarks.capture --megabytes 400

dpkt decodes the headers of each frame on one core and puts nothing together; that is the yardstick.
Beside it, on two cores through Spark: connections put together and cut into packets, and all rows
of the job (packets decoded, sessions, anomalies). The figures of one run compare; those of other
machines or hours do not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dpkt  # type: ignore[import-untyped]  # has no stubs
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

from falconmq.spark.capture.reading import SetReader
from falconmq.spark.capture.rows import RowMaker
from falconmq.spark.capture.sets import CaptureSet, find_captures, group
from falconmq.spark.capture.streams import Gap
from falconmq.spark.jobs.capture import CaptureOptions, decode
from falconmq.spark.session import session
from tools.make_captures import make

FLOWS_SCHEMA = "connections bigint, bytes bigint, packets bigint"


def with_dpkt(path: Path) -> int:
    """Every frame decoded; bytes of TCP payload."""
    payload = 0
    with path.open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            if isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) and isinstance(ip.data, dpkt.tcp.TCP):
                payload += len(ip.data.data)
    return payload


def flows(
    batches: Iterator[pa.RecordBatch], sets: list[tuple[str, ...]]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            connections = size = found = 0
            for stretch in SetReader(sets[number]).stretches():
                connections += len(stretch.ended)
                size += sum(d.size for e in stretch.ended for d in e.flow.directions.values())
                found += sum(not isinstance(item, Gap) for item in stretch.found)
            row = {"connections": connections, "bytes": size, "packets": found}
            yield pa.RecordBatch.from_pylist([row])


def seconds(action: Callable[[], Any], clock: Callable[[], float]) -> float:
    began = clock()
    action()
    return clock() - began


def measure(files: list[Path], rounds: int) -> dict[str, float]:
    """Megabytes per second, by name: the best of several rounds, in each of which all take part.

    What runs in this process is measured by the time it had a processor, Spark by the clock.
    """
    sets = group(files)
    size = sum(s.size for s in sets) / 1e6
    plain = next(path for path in files if path.suffix == ".pcap")
    one = sets[0]
    best: dict[str, float] = {}
    with session(master="local[2]") as spark:
        ways: dict[str, tuple[Callable[[], Any], Callable[[], float], float]] = {
            "dpkt": (partial(with_dpkt, plain), time.process_time, plain.stat().st_size / 1e6),
            "flows": (partial(read_flows, one), time.process_time, one.size / 1e6),
            "rows": (partial(read_rows, one), time.process_time, one.size / 1e6),
            "flows through Spark": (partial(_flows_job, spark, sets), time.perf_counter, size),
            "rows through Spark": (partial(_rows_job, spark, sets), time.perf_counter, size),
        }
        for _ in range(rounds):
            for name, (action, clock, megabytes) in ways.items():
                best[name] = max(best.get(name, 0.0), megabytes / seconds(action, clock))
    return best


def read_flows(capture_set: CaptureSet) -> int:
    reader = SetReader([file.path for file in capture_set.files])
    return sum(len(stretch.found) for stretch in reader.stretches())


def read_rows(capture_set: CaptureSet) -> int:
    reader = SetReader([file.path for file in capture_set.files])
    rows = RowMaker(capture_set.name, reader)
    return sum(b.num_rows for stretch in reader.stretches() for b in rows.batches(stretch))


def _flows_job(spark: Any, sets: list[CaptureSet]) -> None:
    paths = [tuple(file.path for file in s.files) for s in sets]
    numbers = spark.range(0, len(paths), 1, len(paths))
    numbers.mapInArrow(partial(flows, sets=paths), FLOWS_SCHEMA).collect()


def _rows_job(spark: Any, sets: list[CaptureSet]) -> None:
    decoded = decode(spark, sets, CaptureOptions(()))
    decoded.write.format("noop").mode("overwrite").save()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=float, default=400)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--damage", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), options.megabytes, 1, damage=options.damage)
        speeds = measure(find_captures([folder]), options.rounds)
    grid = Grid("way", "MB/s", "times dpkt")
    words = {
        "dpkt": "dpkt, headers only, one core",
        "flows": "connections cut into packets, one core",
        "rows": "all rows of the job, one core",
        "flows through Spark": "connections cut into packets, Spark, two cores",
        "rows through Spark": "all rows of the job, Spark, two cores",
    }
    for name, text in words.items():
        grid.add_row(text, f"{speeds[name]:.0f}", f"{speeds[name] / speeds['dpkt']:.1f}")
    Console().print(grid)
    if options.json:
        options.json.write_text(json.dumps(speeds, indent=1))
    return 0 if speeds["flows through Spark"] >= 3 * speeds["dpkt"] else 1


if __name__ == "__main__":
    sys.exit(main())
