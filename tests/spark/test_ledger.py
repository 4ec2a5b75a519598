"""ledger: it finds exactly what went wrong, batch by batch, and a crash changes nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.client.arrow import messages_to_batch
from falconmq.message import Message, MessageClass, MessageId
from falconmq.spark.jobs import archive, ledger
from falconmq.spark.jobs.clocks import Link, combined, offsets
from falconmq.spark.jobs.coverage import coverage, from_json, to_json
from falconmq.spark.jobs.lake_tables import FINDINGS, LEDGER, MESSAGES
from falconmq.spark.jobs.links import learnt, links_of
from falconmq.spark.jobs.running import tell_nobody
from falconmq.spark.tables import Commit, Lake
from tests.spark.ledgers import lives, merged, without_batch
from tests.spark.made_logs import MANAGER, START, DiedError, MadeLogs, dying_after, event
from tools.make_traffic import QUEUES, Traffic, TrafficLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = "aaaaaaaa-0000-4000-8000-000000000001"
# Rows settle at once: most are over after the first batch, and opened again by the second.
OPTIONS = ledger.Options(settle_seconds=1.0)
TRAFFIC = Traffic(5, 30, faults=0.5)


def found(spark: SparkSession, lake: Lake) -> dict[str, list[str]]:
    rows = lake.table(FINDINGS).read(spark).where("kind <> 'out_of_order'").collect()
    kinds: dict[str, list[str]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row["message_id"])
    return {kind: sorted(ids) for kind, ids in kinds.items()}


def out_of_order(spark: SparkSession, lake: Lake) -> int:
    rows = lake.table(FINDINGS).read(spark).where("kind = 'out_of_order'").collect()
    return sum(row["messages"] for row in rows)


@pytest.mark.parametrize("seed", range(1, 9))
def test_it_finds_exactly_the_faults_of_the_traffic_and_nothing_else(seed: int) -> None:
    # given traffic with known faults, every second time with wrong clocks
    traffic = Traffic(seed, 800, faults=0.15)
    # when its logs are read in some batches
    rows = lives(traffic, [(), (0.5,), (0.1, 0.9)][seed % 3], rows=700 + seed)
    # then every message is there once, in its state, and exactly the faults are found
    states = {row["message_id"]: row["state"] for row in rows}
    assert len(rows) == len(states)
    assert states == traffic.truth.states
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for kind in row["findings"]:
            kinds.setdefault(kind, set()).add(row["message_id"])
    assert kinds == traffic.truth.found
    # and the causes and times are right, whatever the clocks say
    reasons = {r["message_id"]: r["reason"] for r in rows if r["state"] == "dead-lettered"}
    assert reasons == traffic.truth.causes
    for row in rows:
        if row["arrived_at"] is not None and "late" not in row["findings"]:
            assert 0 <= row["latency_seconds"] < 1
    queues = {row["queue"] for row in rows}
    places = [rf"SALES{seed}-{n}\private$\{queue}" for n in (1, 2, 3) for queue in QUEUES]
    assert queues == set(places)
    relayed = next(row for row in rows if row["route"] == f"SALES{seed}-1 -> SALES{seed}-3")
    assert [p["computer"] for p in relayed["places"] if p["queued"]] == [
        f"SALES{seed}-1",
        f"SALES{seed}-2",
    ]


@settings(max_examples=25)
@given(data=st.data())
def test_what_is_known_of_a_message_does_not_depend_on_how_its_events_were_cut(
    data: st.DataObject,
) -> None:
    traffic = TRAFFIC
    events = pa.concat_tables(traffic.logs)
    whole = merged(events)
    order = data.draw(st.permutations(range(len(traffic.logs))))
    shuffled = pa.concat_tables([traffic.logs[index] for index in order])
    cut = data.draw(st.integers(0, events.num_rows))
    size = data.draw(st.integers(1, 50))
    known = merged(shuffled.slice(0, cut), rows=size) if cut else None
    rest = shuffled.slice(cut)
    again = merged(rest, known, rows=size)
    assert without_batch(again).equals(without_batch(whole))


@pytest.mark.slow
def test_it_runs_batch_by_batch_and_a_crash_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    # given an estate with a wrong clock, whose logs are archived in two parts
    traffic = Traffic(1, 300, faults=0.3)
    logs, lake = TrafficLogs(traffic), Lake(tmp_path)
    logs.share = 0.6
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    ledger.run(spark, lake, OPTIONS, tell_nobody)
    assert "lost" not in found(spark, lake)  # not yet: they may be under way
    assert lake.table(LEDGER).rows > 10
    logs.share = 1.0
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    # when the second batch dies after each of its commits
    for _ in range(4):
        with dying_after(1), pytest.raises(DiedError):
            ledger.run(spark, lake, OPTIONS, tell_nobody)
    summary = ledger.run(spark, lake, OPTIONS, tell_nobody)
    # then every message is there once, in its state, and every fault is found once
    rows = ledger.all_lives(spark, lake).select("message_id", "state").collect()
    states = {row["message_id"]: row["state"] for row in rows}
    assert len(rows) == len(states)
    assert states == traffic.truth.states
    assert found(spark, lake) == {k: sorted(ids) for k, ids in traffic.truth.found.items()}
    assert out_of_order(spark, lake) == traffic.truth.out_of_order > 0
    assert summary.facts["open"] < len(rows) / 4
    texts = lake.table(FINDINGS).read(spark).select("explanation", "evidence").collect()
    assert all(row["explanation"] and row["evidence"] for row in texts)
    # and a run without news does nothing
    assert ledger.run(spark, lake, OPTIONS, tell_nobody).read == 0


def _lake(spark: SparkSession, path: Path, rows: list[dict[str, Any]]) -> Lake:
    lake = Lake(path)
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=MadeLogs(rows))
    return lake


def _id(ordinal: int, sender: str = MANAGER) -> str:
    return f"{{{sender.upper()}}}\\{ordinal}"


@pytest.mark.slow
def test_what_is_no_fault_and_what_is_told_by_others(spark: SparkSession, tmp_path: Path) -> None:
    journal = r".\private$\orders;JOURNAL"
    numbers = iter(range(1, 100))

    def life(ordinal: int, *steps: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        return [event(next(numbers), kind, message_id=_id(ordinal), **f) for kind, f in steps]

    out = {"queue": r"DIRECT=TCP:10.9.9.9\private$\far", "detail": "10.9.9.9"}
    rows = [
        # received, journaled, and read from the journal: received once
        *life(1, ("arrived", {}), ("received", {}), ("journaled", {"queue": journal})),
        *life(1, ("received", {"queue": journal})),
        # moved to a subqueue and back: arrived three times, and nothing is wrong
        *life(2, ("arrived", {}), ("moved", {}), ("arrived", {"queue": "q;s"})),
        *life(2, ("moved", {"queue": "q;s"}), ("arrived", {}), ("received", {})),
        # given back by its reader twice
        *life(3, ("arrived", {}), ("returned", {}), ("returned", {}), ("received", {})),
        # handed over to a stranger, who told that it was read; and one who says nothing
        *life(4, ("queued", out), ("delivered", out)),
        *life(5, ("queued", out), ("delivered", out)),
        *life(6, ("queued", out), ("delivered", out)),
        # acknowledgements of streams, which queue managers send to each other
        *life(7, ("queued", {"queue": r"DIRECT=TCP:10.0.0.2\PRIVATE$\order_queue$"})),
        *life(8, ("queued", {"queue": f"PRIVATE={FOREIGN}\\00000004"})),
        # no message at all
        event(next(numbers), "restored", message_id=None, queue=None),
        event(next(numbers), "arrived", message_id="nonsense"),
    ]
    lake = _lake(spark, tmp_path, rows)
    told = [
        Message(
            b"", message_class=MessageClass.ACK_RECEIVE, correlation_id=MessageId.parse(_id(4))
        ),
        Message(
            b"", message_class=MessageClass.NACK_Q_PURGED, correlation_id=MessageId.parse(_id(5))
        ),
        Message(
            "<MESSAGE ID>00000006</MESSAGE ID>\r\n<NEXT HOP>10.8.8.8</NEXT HOP>\r\n".encode(
                "utf-16-le"
            ),
            label=f"0D1A:00000006:01 received by {MANAGER.upper()} at 23:59:59 PM Mon,Nov 16 26",
            message_class=MessageClass.REPORT,
        ),
    ]
    batch = messages_to_batch(
        told,
        r".\private$\answers",
        beside={
            "arrival_number": [1, 2, 3],
            "arrived_at": [START] * 3,
            "source_queue_manager": [FOREIGN] * 3,
        },
    )
    frame = spark.createDataFrame(pa.Table.from_batches([batch]))
    snapshot = frame.selectExpr(
        f"'{MANAGER}' as manager",
        "1L as number",
        "'snapshot' as kind",
        "*",
        "date'2026-11-16' as day",
    )
    lake.table(MESSAGES).append(snapshot, source="snapshot", batch=1)
    summary = ledger.run(spark, lake, ledger.Options(), tell_nobody)
    known = {row["message_id"]: row for row in ledger.all_lives(spark, lake).collect()}
    states = [known[_id(ordinal)]["state"] for ordinal in range(1, 7)]
    assert states == ["received", "received", "received", "received", "refused", "delivered"]
    assert found(spark, lake) == {}
    assert known[_id(5)]["reason"] == "NACK_Q_PURGED"
    assert known[_id(3)]["returns"] == 2
    hop = next(place for place in known[_id(6)]["places"] if place["manager"] == FOREIGN)
    assert (hop["address"], hop["reported_at"].isoformat()) == ("10.8.8.8", "2026-11-16T23:59:59")
    assert summary.rejected == 1
    rejects = lake.table(ledger.REJECTS).read(spark).collect()
    assert "nonsense" in rejects[0]["reason"]
    # when news come of a message whose life was over, its row is opened again
    assert lake.table(LEDGER).rows == 6
    more = MadeLogs([*rows, *life(1, ("arrived", {}), ("received", {}))])
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=more)
    ledger.run(spark, lake, ledger.Options(), tell_nobody)
    assert found(spark, lake) == {"doubled": [_id(1)]}
    assert lake.table(LEDGER).rows == ledger.all_lives(spark, lake).count() == 6


@pytest.mark.slow
def test_a_gap_hides_what_happened_and_accuses_nobody(spark: SparkSession, tmp_path: Path) -> None:
    def stream(number: int) -> dict[str, Any]:
        place = {"sequence_number": number, "previous_number": number - 1}
        return {"sequence_id": "77", "message_id": _id(number, FOREIGN), **place}

    rows = [
        event(1, "arrived", message_id=_id(1)),
        event(2, "arrived", **stream(4)),
        event(10, "arrived", message_id=_id(2)),
        event(11, "arrived", **stream(9)),
        event(12, "arrived", **stream(12)),
    ]
    logs, lake = MadeLogs(rows[:2]), Lake(tmp_path)
    logs.asked_at = START + timedelta(seconds=3)
    archive.run(spark, lake, archive.Options(), tell_nobody, logs=logs)
    logs.rows, logs.first, logs.asked_at = rows, 10, START + timedelta(days=1)
    archive.run(spark, lake, archive.Options(allow_loss=True), tell_nobody, logs=logs)
    dry = ledger.run(spark, lake, ledger.Options(dry_run=True), tell_nobody)
    assert dry.read == 5
    ledger.run(spark, lake, ledger.Options(clock_tolerance_seconds=0), tell_nobody)
    rows_found = lake.table(FINDINGS).read(spark).collect()
    kinds = sorted((row["kind"], row["message_id"], row["messages"]) for row in rows_found)
    # 5 to 8 of the stream fall into the gap; 10 and 11 do not, and their sender's log is not here
    assert kinds == [
        ("archive_gap", None, 0),
        ("lost", None, 2),
        ("unknown_fate", _id(1), 1),
        ("unknown_fate", _id(4, FOREIGN), 1),
    ]


# Clocks and coverage


@given(
    ahead=st.floats(-500, 500),
    trips=st.lists(
        st.tuples(st.floats(0, 1e4), st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1
    ),
)
def test_the_difference_of_two_clocks_is_within_the_quickest_round_trip(
    ahead: float, trips: list[tuple[float, float, float]]
) -> None:
    links = []
    for queued, there, back in trips:
        seen, delivered = queued + there + ahead, queued + there + back
        links.append(Link("a", "b", seen - delivered, seen - queued))
    known: list[Link] = []
    for link in links:
        known = combined(known, [link])
    offset = offsets(known, tolerance=0.5)
    quickest = min(there + back for _, there, back in trips)
    assert abs(offset["b"] - offset["a"] - ahead) <= max(quickest, 0.5 + quickest) + 1e-6


def test_messages_show_where_managers_are_and_by_how_much_their_clocks_differ() -> None:
    traffic = Traffic(1, 300, faults=0)
    shown = learnt(links_of(merged(pa.concat_tables(traffic.logs))).to_pylist())
    assert shown.addresses == {manager.address: manager.guid for manager in traffic.managers}
    ahead = {manager.guid: manager.ahead for manager in traffic.managers}
    assert len(shown.links) == 4
    for link in shown.links:
        assert link.low is not None
        assert link.high is not None
        assert link.low <= ahead[link.b] - ahead[link.a] <= link.high
        assert link.high - link.low < 0.01  # by the quickest of 60 messages


def test_clocks_that_may_be_right_are_left_alone_and_a_clock_that_was_set_is_believed() -> None:
    assert offsets([Link("a", "b", -0.1, 0.3)], 2.0) == {"a": 0.0, "b": 0.0}
    links = [Link("a", "b", 9.9, 10.1), Link("c", "b", -20.1, -19.9)]
    assert offsets(links, 2.0) == pytest.approx({"a": 0.0, "b": 10.0, "c": 30.0})
    [link] = combined([Link("a", "b", 9.9, 10.1)], [Link("a", "b", -0.1, 0.1)])
    assert (link.low, link.high) == (-0.1, 0.1)


def test_coverage_survives_the_plan_of_a_batch() -> None:
    facts = {
        "manager": MANAGER,
        "computer": "SALES01",
        "from": 5,
        "asked_at": "2026-11-16T12:00:00+00:00",
        "first_at": "2026-11-16T11:00:00+00:00",
        "through": "2026-11-16T12:00:00+00:00",
        "gap": None,
    }
    later = {**facts, "gap": [9, 12], "first_at": "2026-11-16T13:00:00+00:00"}
    later["through"] = "2026-11-16T14:00:00+00:00"
    commits = [
        Commit(1, "s", 1, "f", 1, "", facts=facts),
        Commit(2, "s", 2, "f", 1, "", facts=later),
    ]
    covers = coverage(commits)
    assert from_json(to_json(covers)) == covers
    cover = covers[MANAGER]
    assert (cover.since.hour, cover.through.hour) == (11, 14)
    assert [(gap.after.hour, gap.before.hour) for gap in cover.gaps] == [(12, 13)]
