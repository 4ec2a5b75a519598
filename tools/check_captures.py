"""Compare what the job `capture` finds with the wire layer's own decoding, and with the truth.

    python -m tools.make_captures OUT --megabytes 1000 --damage
    python -m tools.check_captures OUT --lake LAKE

Runs the job over the captures, reads the same files with `falconmq.capture` (slow: one frame after
the other, in two processes), and compares packet by packet: file, frame, time, ends, kind, size,
message id, class, label, sequence, and a checksum of the bytes. Then it compares the messages found
with `truth.json`: all that could be found, and none that could not.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

from falconmq.capture.packets import CapturedPacket, CaptureReader
from falconmq.capture.pcap import CaptureError, read_capture
from falconmq.spark.capture.facts import packet_facts, ping_facts
from falconmq.spark.jobs.capture import PACKETS_TABLE, CaptureOptions, run
from falconmq.spark.session import session
from falconmq.spark.tables import Lake

COLUMNS = (
    "capture", "frame", "at", "source", "source_port", "destination_port", "kind", "size",
    "message_id", "message_class", "label", "queue", "sequence_id", "sequence_number", "crc",
)  # fmt: skip


class SetOracle(CaptureReader):
    """`falconmq decode` for files that follow each other."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(io.BytesIO())
        self._paths = paths
        self._starts: list[int] = []

    def all_packets(self) -> Iterator[tuple[str, int, CapturedPacket]]:
        """File, frame in it, packet."""
        for path in self._paths:
            passed = self.totals.frames
            self._starts.append(passed)
            try:
                with Path(path).open("rb") as file:
                    for frame in read_capture(file):
                        frame.number += passed
                        yield from map(self._placed, self._frame(frame))
            except CaptureError:
                pass  # what came before counts
        for event in self._reassembler.finish():
            yield from map(self._placed, self._stream_event(event))

    def _placed(self, packet: CapturedPacket) -> tuple[str, int, CapturedPacket]:
        place = max(i for i, start in enumerate(self._starts) if start < packet.frame)
        return self._paths[place], packet.frame - self._starts[place], packet


def expected_packets(paths: Sequence[str]) -> list[tuple[Any, ...]]:
    """Frame, kind, size, message id and label of every packet, by the wire layer."""
    found = []
    for _, frame, packet in SetOracle(paths).all_packets():
        if not packet.problem:
            facts = facts_of(packet)
            found.append(
                (frame, facts["kind"], packet.size, facts.get("message_id"), facts.get("label"))
            )
    return found


def facts_of(packet: CapturedPacket) -> dict[str, Any]:
    return packet_facts(packet.data) if packet.conversation else ping_facts(packet.data)


def oracle_rows(paths: Sequence[str]) -> Counter[int]:
    """All packets of a set, each as the hash of its columns: a set may hold millions."""
    rows: Counter[int] = Counter()
    for path, frame, packet in SetOracle(paths).all_packets():
        if packet.problem:
            continue
        facts = facts_of(packet)
        place = (path, frame, None if packet.time_ns is None else packet.time_ns // 1000)
        ends = (str(packet.source), packet.source.port, packet.destination.port)
        said = (facts["kind"], packet.size, facts.get("message_id"), facts.get("message_class"))
        more = (facts.get("label"), facts.get("queue"), facts.get("sequence_id"))
        key = (*place, *ends, *said, *more, facts.get("sequence_number"), zlib.crc32(packet.data))
        rows[_hash(key)] += 1
    return rows


def table_rows(lake: Lake, paths: Sequence[str]) -> tuple[Counter[int], set[str]]:
    """The same of the job's table, and all message ids in it."""
    import pyarrow.dataset as ds  # noqa: PLC0415

    table = lake.table(PACKETS_TABLE)
    folders = [str(table.path / "data" / commit.folder) for commit in table.counting()]
    wanted = ds.field("capture").isin(list(paths))
    columns = [name for name in COLUMNS if name != "crc"] + ["packet"]
    rows: Counter[int] = Counter()
    ids: set[str] = set()
    for folder in folders:
        for batch in ds.dataset(folder).to_batches(columns=columns, filter=wanted, batch_size=4096):
            for row in batch.to_pylist():
                at = None if row["at"] is None else round(row["at"].timestamp() * 1_000_000)
                source = row["source"]
                ends = f"[{source}]" if ":" in source else source
                key = (
                    *(row["capture"], row["frame"], at),
                    *(f"{ends}:{row['source_port']}", row["source_port"], row["destination_port"]),
                    *(row["kind"], row["size"], row["message_id"], row["message_class"]),
                    *(row["label"], row["queue"], row["sequence_id"], row["sequence_number"]),
                    zlib.crc32(row["packet"]),
                )
                rows[_hash(key)] += 1
                if row["message_id"]:
                    ids.add(row["message_id"])
    return rows, ids


def _hash(key: tuple[Any, ...]) -> int:
    text = repr(key).encode()
    return zlib.crc32(text) << 32 | zlib.adler32(text)


def check_truth(facts: dict[str, Any], ids: set[str]) -> list[str]:
    """What a set's truth says against what was found; nothing if they agree.

    Of a session that was still going on when the capture stopped, the last messages may be missing.
    """
    problems = []
    for talk in facts["sessions"]:
        for manager, sent, lost in (
            (talk["client_manager"], talk["sent"], talk["sent_lost"]),
            (talk["server_manager"], talk["answered"], talk["answered_lost"]),
        ):
            prefix = f"{{{str(UUID(bytes_le=bytes.fromhex(manager))).upper()}}}\\"
            gone = set(lost)
            for number in sent:
                is_found = f"{prefix}{number}" in ids
                if is_found and number in gone:
                    problems.append(f"{talk['client']}: {number} is damaged but was found")
                if not is_found and number not in gone and not talk.get("is_open"):
                    problems.append(f"{talk['client']}: {number} was not found")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lake", type=Path, required=True)
    options = parser.parse_args()
    folder: Path = options.folder.absolute()
    lake = Lake(options.lake)
    truth = json.loads((folder / "truth.json").read_text())
    size = sum(file.stat().st_size for file in folder.glob("*.pcap*")) / 1e6
    began = time.perf_counter()
    with session(master="local[2]") as spark:
        started = time.perf_counter()
        summary = run(spark, lake, CaptureOptions((str(folder),), keep_packets=True))
        took = time.perf_counter() - started
    print(f"{size:.0f} MB through Spark in {took:.0f} s ({size / took:.0f} MB/s)")
    print(f"  {summary.written}")
    began = time.perf_counter()
    sets = {
        name: [str(folder / file) for file in facts["files"]]
        for name, facts in truth["sets"].items()
    }
    with ProcessPoolExecutor(2) as pool:
        expected = dict(zip(sets, pool.map(oracle_rows, sets.values()), strict=True))
    print(f"  the wire layer, two processes: {time.perf_counter() - began:.0f} s")
    failures = 0
    for name, paths in sets.items():
        rows, ids = table_rows(lake, paths)
        missing, extra = expected[name] - rows, rows - expected[name]
        problems = check_truth(truth["sets"][name], ids)
        failures += len(missing) + len(extra) + len(problems)
        print(
            f"  {name}: {rows.total()} packets, {expected[name].total()} by the wire layer, "
            f"{missing.total()} missing, {extra.total()} too many; "
            f"against the truth: {len(problems)} differences {problems[:3]}"
        )
        print(f"    damages: {truth['sets'][name]['damages']}")
    print("equal" if not failures else f"{failures} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
