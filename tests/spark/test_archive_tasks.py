"""What the archive does on executors: one reading, three tables, and attempts that fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from falconmq.client import arrow
from falconmq.client.event_columns import event_schema
from falconmq.client.packets import destination_of, to_packet
from falconmq.errors import FalconMQError
from falconmq.message import Message
from falconmq.spark import part_files
from falconmq.spark.jobs import archive
from falconmq.spark.jobs.archive_tasks import Drafts, Outcome, write_piece
from falconmq.spark.jobs.event_logs import DaemonLogs, LogStatus, Piece
from falconmq.spark.jobs.lake_tables import EVENTS, MESSAGES
from falconmq.spark.jobs.running import tell_nobody
from falconmq.spark.part_files import Draft
from falconmq.spark.tables import Lake
from tests.spark.made_logs import MANAGER, START, MadeLogs, event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = ("day", pa.date32())
HEAD = [("manager", pa.string()), ("number", pa.int64()), ("kind", pa.string())]
REJECTS = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        *((name, pa.string()) for name in ("source", "place", "reason")),
        ("record", pa.binary()),
    ]
)


def packet(label: str, size: int = 10) -> bytes:
    name = destination_of(r"DIRECT=OS:SALES01\private$\orders")
    return to_packet(Message(bytes(size), label=label), name, in_transaction=False)


def batches(*rows: dict[str, Any]) -> list[pa.RecordBatch]:
    """Each event in a batch of its own."""
    return [pa.RecordBatch.from_pylist([row], schema=event_schema()) for row in rows]


def drafts(folder: Path) -> Drafts:
    columns = [column for column in event_schema() if column.name != "packet"]
    events = pa.schema([*columns, DAY])
    messages = pa.schema([*HEAD, *arrow.schema(), DAY])
    return Drafts(
        Draft(str(folder / "events"), events, ("day",)),
        Draft(str(folder / "messages"), messages, ("day", "queue")),
        Draft(str(folder / "rejects"), REJECTS, ()),
    )


def rows_of(draft: Draft, files: Sequence[str]) -> list[dict[str, Any]]:
    tables = [pq.read_table(Path(draft.folder) / file, partitioning=None) for file in files]
    return [row for table in tables for row in table.to_pylist()]


def test_one_reading_makes_rows_of_three_tables(tmp_path: Path) -> None:
    # given a piece over midnight, with two messages and a damaged one, that is read once
    rows = [event(1, "queued"), event(2, packet=packet("one"), arrival_number=7)]
    rows += [event(40, packet=packet("two")), event(41, packet=b"no packet" * 10_000)]
    read: list[int] = []

    def piece() -> Iterator[pa.RecordBatch]:
        read.append(1)
        yield from batches(*rows)

    # when it is written
    given = drafts(tmp_path)
    found = write_piece(5, piece, given)
    # then each table has its rows
    assert read == [1]
    assert sorted(row["number"] for row in rows_of(given.events, found.events)) == [1, 2, 40, 41]
    folders = {Path(file).parent.name for file in found.events}
    assert folders == {"day=2026-11-16", "day=2026-11-17"}
    messages = rows_of(given.messages, found.messages)
    assert {row["label"]: row["number"] for row in messages} == {"one": 2, "two": 40}
    assert {row["arrival_number"] for row in messages} == {7, None}
    assert {Path(file).parent.name for file in found.messages} == {"queue=.%5Cprivate$%5Corders"}
    (reject,) = rows_of(given.rejects, found.rejects)
    assert (reject["source"], reject["place"]) == (MANAGER, "event 41")
    assert reject["reason"]
    assert reject["record"] == (b"no packet" * 10_000)[: 64 * 1024]
    # and the driver hears what its commit says
    assert found.carried == 3
    begin = int(START.timestamp()) * 1_000_000
    assert (found.first_at, found.last_at) == (begin + 1_000_000, begin + 41_000_000)


def test_a_piece_without_events_writes_nothing(tmp_path: Path) -> None:
    empty = pa.RecordBatch.from_pylist([], schema=event_schema())
    assert write_piece(0, lambda: [empty], drafts(tmp_path)) == Outcome()
    assert not list(tmp_path.iterdir())


def test_events_that_wait_to_be_written_keep_no_packets_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given memory for one of the packets, and for all of the events
    monkeypatch.setattr(part_files, "_HELD_BYTES", 100_000)
    rows = batches(*(event(number, packet=packet("x", 1 << 20)) for number in range(1, 21)))
    with pa.ipc.new_stream(tmp_path / "log", event_schema()) as stream:
        for batch in rows:
            stream.write_batch(batch)
    del rows
    used: list[int] = []

    def piece() -> Iterator[pa.RecordBatch]:
        """As from a queue manager: all columns of a batch are in one piece of memory."""
        with pa.OSFile(str(tmp_path / "log")) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                used.append(pa.total_allocated_bytes())
                yield batch

    given = drafts(tmp_path)
    found = write_piece(0, piece, given)
    # then messages are written as they come, and events all at once
    assert _row_groups(given.messages, found.messages) == 20
    assert _row_groups(given.events, found.events) == 1
    assert max(used) - used[0] < 10 << 20


def _row_groups(draft: Draft, files: Sequence[str]) -> int:
    (file,) = files
    return int(pq.read_metadata(Path(draft.folder) / file).num_row_groups)


def test_what_is_wrong_when_pieces_are_planned_is_said_with_one_hint() -> None:
    logs = DaemonLogs(["gopher://sales01"])
    status = LogStatus(MANAGER, "SALES01", logs.urls[0], 1, 10, START)
    with pytest.raises(FalconMQError, match="hint: ") as refused:
        logs.pieces(status, 1, 10)
    assert refused.value.hint == ""  # the text has it


class FailingLogs(MadeLogs):
    """The second half of it fails when all of it was read, as often as `marks` has no file."""

    def __init__(self, rows: Sequence[dict[str, Any]], marks: Path, failures: int) -> None:
        super().__init__(rows)
        self._marks, self._failures = marks, failures

    def pieces(self, status: LogStatus, start: int, stop: int) -> Sequence[Piece]:
        first, second = super().pieces(status, start, stop)
        return [first, partial(_failing, second, str(self._marks), self._failures)]


def _failing(piece: Piece, marks: str, failures: int) -> Iterator[pa.RecordBatch]:
    yield from piece()
    tries = len(list(Path(marks).iterdir()))
    if tries < failures:
        (Path(marks) / str(tries)).touch()
        raise ConnectionError("the line is cut")


@pytest.mark.slow
def test_an_attempt_that_fails_leaves_no_row_and_the_next_has_each_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given a session that tries a task three times, and a line that is cut four times
    marks = tmp_path / "marks"
    marks.mkdir()
    rows = [event(number, packet=packet(str(number))) for number in range(1, 9)]
    logs, lake = FailingLogs([*rows, event(9, packet=b"none")], marks, 4), Lake(tmp_path / "lake")
    # when no attempt of the first run comes to its end
    with pytest.raises(Exception, match="the line is cut"):
        archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    # then nothing counts, and nothing is left
    tables = [lake.table(spec) for spec in (EVENTS, MESSAGES, archive.REJECTS)]
    assert [table.commits() for table in tables] == [[], [], []]
    assert not list(lake.path.rglob("*.parquet"))
    # when the second attempt of the second run does
    summary = archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    # then each row is there once
    assert len(list(marks.iterdir())) == 4
    assert summary.written == {"bronze/events": 9, "bronze/messages": 8}
    assert (summary.read, summary.rejected) == (9, 1)
    found = [row["number"] for row in tables[0].read(spark).collect()]
    assert sorted(found) == list(range(1, 10))
    labels = [row["label"] for row in tables[1].read(spark).collect()]
    assert sorted(labels) == [str(number) for number in range(1, 9)]
    for table in tables:
        (commit,) = table.commits()
        assert [folder.name for folder in (table.path / "data").iterdir()] == [commit.folder]
