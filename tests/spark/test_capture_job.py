"""The job `capture` through Spark: its tables, what it leaves alone, what it reads again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falconmq.spark.jobs.capture import (
    ANOMALIES_TABLE,
    CONVERSATIONS_TABLE,
    PACKETS_TABLE,
    SESSIONS_TABLE,
    TABLES,
    CaptureOptions,
    run,
)
from falconmq.spark.tables import Lake, TableSpec
from tests.spark.captures import TEMPLATES
from tests.strategies.captures import Connection, pcap
from tools.check_captures import check_truth, expected_packets
from tools.make_captures import make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(spark: SparkSession, lake: Lake, spec: TableSpec) -> list[dict[str, Any]]:
    return [row.asDict() for row in lake.table(spec).read(spark).collect()]


def test_captures_become_tables_once(spark: SparkSession, tmp_path: Path) -> None:
    # given captures with all kinds of damage, in rotation sets
    folder, lake = tmp_path / "captures", Lake(tmp_path / "lake")
    files = make(folder, 0.45, seed=3, flows=5, damage=True)
    options = CaptureOptions((str(folder),), lanes=2)
    # when a dry run looks at them, it lists them and writes nothing
    dry = run(spark, lake, CaptureOptions((str(folder),), is_dry=True))
    assert sorted(dry.facts["files"]) == sorted(map(str, files))
    assert not lake.table(PACKETS_TABLE).commits()
    # when the job runs, its packets are those that the wire layer finds, and the truth holds
    summary = run(spark, lake, options)
    packets = rows(spark, lake, PACKETS_TABLE)
    truth = json.loads((folder / "truth.json").read_text())
    for name, facts in truth["sets"].items():
        paths = [str(folder / file) for file in facts["files"]]
        found = [row for row in packets if row["capture"] in paths]
        assert sorted(map(_facts, found)) == sorted(expected_packets(paths)), name
        assert check_truth(facts, {row["message_id"] for row in found}) == []
    assert summary.written["bronze/packets"] == len(packets)
    # and every whole session knows its queue managers
    sessions = rows(spark, lake, SESSIONS_TABLE)
    assert all(s["client_manager"] for s in sessions if s["is_whole"] and s["client_packets"])
    # when it runs again, it has nothing to do
    assert run(spark, lake, options).read == 0
    # when a session that goes on in a new file of one set comes, this set only is read again
    _append_a_session(folder, files)
    again = run(spark, lake, options)
    assert again.read == 3
    assert again.facts["unchanged_sets"] == len(truth["sets"]) - 1
    after = rows(spark, lake, PACKETS_TABLE)
    assert len(after) == len(packets) + 2
    # and the message that was sent twice, and acknowledged once, is one conversation
    conversations = rows(spark, lake, CONVERSATIONS_TABLE)
    assert sum(row["sendings"] for row in conversations) == sum(
        row["kind"] == "UserMessage" for row in after
    )
    anomalies = rows(spark, lake, ANOMALIES_TABLE)
    assert [row["count"] for row in anomalies if row["kind"] == "duplicate"] == [2]
    acknowledged = [row for row in conversations if row["session_acked_at"] is not None]
    assert len(acknowledged) > len(conversations) / 2
    assert all(row["session_ack_seconds"] >= 0 for row in acknowledged)
    assert any(row["order_acked_at"] for row in conversations)


def test_rows_of_a_run_that_broke_off_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    # given a run that wrote its packets and went no further
    lake = Lake(tmp_path / "lake")
    for name in ("one.pcap", "other.pcap"):
        frames = Connection().open().send(TEMPLATES[4]).close().frames
        (tmp_path / name).write_bytes(pcap(frames))
    run(spark, lake, CaptureOptions((str(tmp_path / "one.pcap"),)))
    for spec in TABLES[1:]:
        for commit in (lake.path / spec.name / "_commits").iterdir():
            commit.unlink()
    # when the next run is about another capture
    run(spark, lake, CaptureOptions((str(tmp_path / "other.pcap"),)))
    # then only this one counts, and the first is read when it is asked for again
    found = rows(spark, lake, PACKETS_TABLE)
    assert [Path(row["capture"]).name for row in found] == ["other.pcap"]
    assert len(rows(spark, lake, CONVERSATIONS_TABLE)) == 1
    again = run(spark, lake, CaptureOptions((str(tmp_path),), is_dry=True))
    assert [Path(file).name for file in again.facts["files"]] == ["one.pcap"]


def _append_a_session(folder: Path, files: list[Path]) -> None:
    connection = Connection(client=("10.9.9.9", 1)).open()
    connection.send(TEMPLATES[4] * 2)
    name = files[0].name.replace("00001", "00003")
    late = [(time + 10**18, frame) for time, frame in connection.frames]
    (folder / name).write_bytes(pcap(late))


def _facts(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["frame"], row["kind"], row["size"], row["message_id"], row["label"])
