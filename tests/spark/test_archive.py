"""archive: every event once, whatever happens in between, and what is lost is said."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from falconmq.client.arrow import messages_to_batch
from falconmq.client.event_columns import event_schema
from falconmq.client.packets import destination_of, to_packet
from falconmq.errors import FalconMQError
from falconmq.message import Message
from falconmq.spark.jobs import archive, ledger
from falconmq.spark.jobs.coverage import coverage
from falconmq.spark.jobs.lake_tables import EVENTS, FINDINGS, MESSAGES
from falconmq.spark.jobs.packets import NEEDED, decode_batch
from falconmq.spark.jobs.running import Progress, Summary, tell_nobody
from falconmq.spark.jobs.snapshot import archive_queue
from falconmq.spark.tables import Lake
from tests.e2e.estate import Estate, wait_until
from tests.spark.made_logs import MANAGER, START, DiedError, MadeLogs, dying_after, event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUEUE = r".\private$\orders"

DEAD_LETTERS = r".\system$;deadletter"


def packet(label: str) -> bytes:
    name = destination_of(r"DIRECT=OS:SALES01\private$\orders")
    return to_packet(Message(b"body of " + label.encode(), label=label), name, in_transaction=False)


def log() -> MadeLogs:
    """Ten events over midnight: five with messages, one of them damaged."""
    rows = [event(1, "queued"), event(2, packet=packet("one"), arrival_number=11, lookup_id=5)]
    rows += [event(3, "received"), event(4, packet=packet("two"))]
    rows += [event(5, packet=b"no packet at all")]
    reason = "NACK_Q_PURGED"
    dead = r".\system$;DEADLETTER"
    rows += [event(6, "dead_lettered", queue=dead, reason=reason, packet=packet("three"))]
    rows += [event(number, "received") for number in range(7, 40)]
    rows += [event(40, packet=packet("four"))]
    return MadeLogs(rows)


def contents(spark: SparkSession, lake: Lake) -> dict[str, list[Any]]:
    events = lake.table(EVENTS).read(spark).select("number", "kind", "day").collect()
    messages = lake.table(MESSAGES).read(spark)
    messages = messages.select("number", "kind", "label", "queue", "message_class", "day")
    rejects = lake.table(archive.REJECTS).read(spark).select("place", "record").collect()
    return {
        "events": sorted(map(tuple, events)),
        "messages": sorted(map(tuple, messages.collect())),
        "rejects": sorted(map(tuple, rejects)),
    }


@pytest.mark.slow
def test_an_archive_that_dies_at_every_step_has_every_event_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given a log that is archived in batches of 25 events
    options = archive.Options(rows=25)
    whole = Lake(tmp_path / "whole")
    told: list[Progress] = []
    summary = archive.run(spark, whole, options, told.append, logs=log())
    assert (summary.read, summary.rejected) == (40, 1)
    assert summary.written == {"bronze/events": 40, "bronze/messages": 4}
    assert told[-1].done == 40
    expected = contents(spark, whole)
    assert [row[0] for row in expected["events"]] == list(range(1, 41))
    assert {str(row[2]) for row in expected["events"]} == {"2026-11-16", "2026-11-17"}
    assert [row[2:5] for row in expected["messages"]] == [
        ("one", QUEUE, "NORMAL"),
        ("two", QUEUE, "NORMAL"),
        ("three", r".\system$;DEADLETTER", "NACK_Q_PURGED"),
        ("four", QUEUE, "NORMAL"),
    ]
    assert expected["rejects"] == [("event 5", b"no packet at all")]
    # when a run dies after each commit, and is run again
    lake = Lake(tmp_path / "dying")
    killed = lake.path / "bronze/events/data/_draft-dead"  # of one that was killed, long ago
    killed.mkdir(parents=True)
    os.utime(killed, (0, 0))
    for _ in range(5):
        with dying_after(1), pytest.raises(DiedError):
            archive.run(spark, lake, options, tell_nobody, logs=log())
    # then its tables are those of a run that did not
    archive.run(spark, lake, options, tell_nobody, logs=log())
    assert contents(spark, lake) == expected
    last = lake.table(EVENTS).last(f"archive:{MANAGER}")
    assert last is not None
    assert last.facts["to"] == last.facts["latest"] == 41
    facts = lake.table(EVENTS).counting()[-1].facts
    times = [datetime.fromisoformat(facts[name]) for name in ("first_at", "last_at")]
    assert times == [START + timedelta(seconds=26), START + timedelta(seconds=40)]
    # and nothing is left of what was in vain
    for spec in (EVENTS, MESSAGES, archive.REJECTS):
        table = lake.table(spec)
        folders = {folder.name for folder in (table.path / "data").iterdir()}
        assert folders == {commit.folder for commit in table.counting()}


@pytest.mark.slow
def test_a_begun_batch_goes_by_its_own_plan(spark: SparkSession, tmp_path: Path) -> None:
    # given a run that died when it had the messages of the first 5 events
    lake, logs = Lake(tmp_path), log()
    with dying_after(1), pytest.raises(DiedError):
        archive.run(spark, lake, archive.Options(rows=5), tell_nobody, logs=logs)
    # when the next run has other ideas
    archive.run(spark, lake, archive.Options(rows=100), tell_nobody, logs=logs)
    # then no message is missing and none is there twice
    found = contents(spark, lake)
    assert [row[0] for row in found["messages"]] == [2, 4, 6, 40]
    assert [row[0] for row in found["events"]] == list(range(1, 41))


@pytest.mark.slow
def test_what_the_log_has_forgotten_is_a_loss(spark: SparkSession, tmp_path: Path) -> None:
    lake, logs = Lake(tmp_path), log()
    everything, logs.rows = logs.rows, logs.rows[:3]
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    logs.rows, logs.first = everything, 31
    with pytest.raises(FalconMQError, match="forgotten the events 4 to 30"):
        archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    dry = archive.run(
        spark, lake, archive.Options(allow_loss=True, dry_run=True), tell_nobody, logs=logs
    )
    assert dry.facts["managers"]["SALES01"]["left"] == 10
    assert lake.table(EVENTS).rows == 3
    summary = archive.run(spark, lake, archive.Options(allow_loss=True), tell_nobody, logs=logs)
    assert summary.facts["gaps"] == [{"computer": "SALES01", "from": 4, "to": 31}]
    cover = coverage(lake.table(EVENTS).commits())[MANAGER]
    assert [(gap.low, gap.high) for gap in cover.gaps] == [(4, 31)]
    assert cover.through == logs.asked_at
    # nothing new is worth a note: the log was read up to that moment
    commits = len(lake.table(EVENTS).commits())
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    assert len(lake.table(EVENTS).commits()) == commits + 1
    logs.rows, logs.first = everything[:2], 1
    with pytest.raises(FalconMQError, match="replaced by an older one"):
        archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)


@pytest.mark.slow
def test_following_goes_on_until_it_is_told_to_stop(spark: SparkSession, tmp_path: Path) -> None:
    lake, logs = Lake(tmp_path), log()
    everything, logs.rows = logs.rows, logs.rows[:2]

    def tell(progress: Progress) -> None:
        if progress.done == 2:  # news come, far behind: the manager was restored from a backup
            logs.rows = [*everything[:2], event(1 << 40)]
        elif progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.run(spark, lake, archive.Options(follow=True, rows=1 << 36), tell, logs=logs)
    assert lake.table(EVENTS).rows == 3


@pytest.mark.slow
def test_a_snapshot_adds_what_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    def queue(*arrivals: int) -> DataFrame:
        messages = [Message(b"x", label=str(number)) for number in arrivals]
        beside = {"arrival_number": list(arrivals)}
        batch = messages_to_batch(messages, QUEUE, beside=beside)
        return spark.createDataFrame(pa.Table.from_batches([batch]))

    class Queues(MadeLogs):
        content = queue(1, 2)

        def browse(self, spark: SparkSession, url: str, queue: str) -> tuple[str, DataFrame]:
            return MANAGER, self.content

    lake, logs = Lake(tmp_path), Queues([event(1)])
    options = archive.Options(snapshot=(QUEUE,))
    archive.run(spark, lake, options, tell_nobody, logs=logs)
    logs.content = queue(2, 3)
    summary = Summary("archive")
    archive_queue(spark, lake, logs, "", QUEUE, summary, tell_nobody, is_dry=True)
    assert summary.read == 1
    archive.run(spark, lake, options, tell_nobody, logs=logs)
    rows = lake.table(MESSAGES).read(spark).select("arrival_number", "kind", "label").collect()
    assert sorted(map(tuple, rows)) == [(n, "snapshot", str(n)) for n in (1, 2, 3)]


def test_packets_become_messages_with_what_their_events_know() -> None:
    rows = [event(1, packet=packet("one"), arrival_number=11, lookup_id=5)]
    rows += [event(2, "dead_lettered", reason="NACK_Q_PURGED", packet=packet("two"))]
    batch = pa.RecordBatch.from_pylist(rows, schema=event_schema()).select(list(NEEDED))
    first, second = decode_batch(batch).to_pylist()
    assert (first["label"], first["body"]) == ("one", b"body of one")
    assert (first["arrival_number"], first["lookup_id"], first["queue"]) == (11, 5, QUEUE)
    assert (first["message_class"], second["message_class"]) == ("NORMAL", "NACK_Q_PURGED")
    assert first["arrived_at"] == START.replace(microsecond=0).replace(second=31)
    assert first["reject"] is None


def test_one_damaged_packet_does_not_stop_the_others() -> None:
    rows = [
        event(1, packet=packet("one")),
        event(2, packet=b"damaged"),
        event(3, packet=packet("3")),
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=event_schema()).select(list(NEEDED))
    found = decode_batch(batch)
    assert found.schema.names[-2:] == ["packet", "reject"]
    assert [row["label"] for row in found.to_pylist()] == ["one", None, "3"]
    bad = found.to_pylist()[1]
    assert bad["packet"] == b"damaged"
    assert "BaseHeader" in bad["reject"] or "bytes" in bad["reject"]


@pytest.mark.slow
def test_three_queue_managers_with_a_cut_line(
    spark: SparkSession, estate: Estate, tmp_path: Path
) -> None:
    # given three queue managers that keep their events, with the messages
    a, b, c = (estate.manager(name) for name in ("SALES01", "SALES02", "SALES03"))
    for daemon in (a, b, c):
        daemon.sections["events"] = {"bodies": ["*"]}
    estate.introduce((a, b, c))
    line = estate.link(a, b)
    estate.start()
    b.create_queue("orders")
    c.create_queue("orders")
    # when messages go to both, some are received, and then the line is cut
    there = b.direct("orders", line.to_b)
    a.client.send(there, [{"text": f"order {number}"} for number in range(5)])
    a.client.send(c.direct("orders"), [{"text": "one"}, {"text": "two"}])
    b.take("orders", 3)
    c.take("orders", 2)
    wait_until(lambda: b.count("orders") == 2, "the others arrived")
    wait_until(lambda: not a.waiting(), "they were acknowledged")
    line.cut()
    a.client.send(
        there, [{"text": "too late", "time_to_reach_queue": 1, "journal": ["dead_letter"]}]
    )
    a.client.send(there, [{"text": "stuck"}])
    wait_until(lambda: a.waiting() == 1, "one of them expired")
    wait_until(lambda: a.count(r".\system$;deadletter") == 1, "and is a dead letter")
    a.client.request("GET", f"/queues/{quote(DEAD_LETTERS, safe='')}/arrivals")  # durable by then
    # then the archive has all of it, and the ledger knows where each message is
    urls = tuple(f"unix:{daemon.data}" for daemon in (a, b, c))
    lake = Lake(tmp_path / "lake")
    summary = archive.run(spark, lake, archive.Options(urls=urls), tell_nobody)
    assert summary.rejected == 0
    messages = lake.table(MESSAGES).read(spark).where("kind = 'arrived'")
    bodies = {bytes(row["body"]).decode("utf-16-le") for row in messages.collect()}
    assert bodies == {*(f"order {number}" for number in range(5)), "one", "two"}
    ledger.run(spark, lake, ledger.Options(stuck_seconds=0, grace_seconds=0), tell_nobody)
    lives = ledger.all_lives(spark, lake).collect()
    states = sorted(row["state"] for row in lives)
    assert states == ["dead-lettered", *["received"] * 5, "under way", "waiting", "waiting"]
    routes = {row["route"] for row in lives if row["arrived_at"] is not None}
    assert routes == {"SALES01 -> SALES02", "SALES01 -> SALES03"}
    found = lake.table(FINDINGS).read(spark).collect()
    assert sorted(row["kind"] for row in found) == ["dead_letter", "stuck"]
    # and a snapshot takes what is still there
    queue = archive.Options(urls=urls[1:2], snapshot=(QUEUE,))
    assert archive.run(spark, lake, queue, tell_nobody).written == {"bronze/messages": 0}
