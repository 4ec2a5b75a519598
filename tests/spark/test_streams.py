"""Runs of transactional streams: what is missing, repeated or out of order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from falconmq.spark.jobs.streams import collapse, fold_group
from falconmq.spark.runs import Disorder, Missing, Run, Stream, fold, run_starts

START = datetime(2026, 11, 16, tzinfo=UTC)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def runs(arrivals: list[tuple[int, int]]) -> list[Run]:
    """Arrivals as (number, previous number), one a second, collapsed."""
    numbers = np.array([number for number, _ in arrivals], np.int64)
    previous = np.array([before for _, before in arrivals], np.int64)
    starts = run_starts(np.zeros(len(numbers), np.int64), numbers, previous).tolist()
    found = []
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=False):
        found.append(
            Run(
                int(previous[start]),
                int(numbers[start]),
                int(numbers[end - 1]),
                end - start,
                at(start),
                at(end - 1),
            )
        )
    return found


def test_a_healthy_stream_is_one_run() -> None:
    arrivals = [(number, number - 1) for number in range(1, 1001)]
    assert runs(arrivals) == [Run(0, 1, 1000, 1000, at(0), at(999))]
    stream, disorders = fold(None, runs(arrivals))
    assert stream == Stream(1, 1000, 1000, at(0), at(999))
    assert disorders == []


def test_numbers_that_the_sender_left_out_are_not_missing() -> None:
    # 2 and 3 expired before they were sent: 4 names 1 as the one before it
    stream, _ = fold(None, runs([(1, 0), (4, 1), (5, 4)]))
    assert stream is not None
    assert stream.missing == ()


def test_a_predecessor_that_never_came_is_missing() -> None:
    stream, disorders = fold(None, runs([(1, 0), (4, 3), (5, 4)]))
    assert stream is not None
    assert stream.missing == (Missing(2, 3, at(0), at(1)),)
    assert disorders == []


def test_a_message_that_comes_after_its_successor_is_out_of_order_and_no_longer_missing() -> None:
    stream, disorders = fold(None, runs([(1, 0), (3, 2), (2, 1), (4, 3)]))
    assert stream is not None
    assert stream.missing == ()
    assert (stream.last_number, stream.arrived, stream.out_of_order) == (4, 4, 1)
    assert disorders == [Disorder(2, 2, 1, at(2))]


def test_a_message_that_comes_again_is_repeated_and_not_out_of_order() -> None:
    stream, disorders = fold(None, runs([(1, 0), (2, 1), (2, 1), (3, 2)]))
    assert stream is not None
    assert (stream.repeated, stream.out_of_order, stream.missing) == (1, 0, ())
    assert disorders == []


def test_a_message_that_names_a_later_one_as_its_predecessor_begins_a_run() -> None:
    assert [(run.low, run.high) for run in runs([(5, 4), (3, 5), (6, 3)])] == [(5, 5), (3, 6)]


def test_a_log_that_begins_in_the_middle_of_a_stream_misses_nothing() -> None:
    stream, _ = fold(None, runs([(700, 699), (701, 700)]))
    assert stream is not None
    assert (stream.first_number, stream.missing) == (700, ())


@given(
    order=st.permutations(range(1, 15)),
    lost=st.sets(st.integers(2, 14), max_size=5),
    again=st.lists(st.integers(1, 14), max_size=4),
)
def test_what_is_missing_is_what_did_not_come_below_the_highest(
    order: list[int], lost: set[int], again: list[int]
) -> None:
    came = [number for number in [*order, *again] if number not in lost]
    stream, disorders = fold(None, runs([(number, number - 1) for number in came]))
    assert stream is not None
    missing = {n for gap in stream.missing for n in range(gap.low, gap.high + 1)}
    first, last = came[0], max(came)
    assert missing == {n for n in lost if first < n < last}
    assert stream.arrived == len(came)
    late = {
        number
        for index, number in enumerate(came)
        if first < number < max(came[: index + 1]) and number not in came[:index]
    }
    assert stream.out_of_order == len(late) == sum(disorder.size for disorder in disorders)


@given(
    numbers=st.lists(st.integers(1, 12), max_size=20),
    cut=st.integers(0, 20),
)
def test_batches_do_not_matter(numbers: list[int], cut: int) -> None:
    arrivals = [(number, number - 1) for number in numbers]
    whole = runs(arrivals)
    first, second = arrivals[:cut], arrivals[cut:]
    shift = timedelta(seconds=len(first))
    later = [
        run._replace(first_at=run.first_at + shift, last_at=run.last_at + shift)
        for run in (runs(second))
    ]
    half, before = fold(None, runs(first))
    stream, after = fold(half, later)
    expected, disorders = fold(None, whole)
    assert stream == expected
    assert sum(d.size for d in [*before, *after]) == sum(d.size for d in disorders)


def _arrivals(rows: list[tuple[str, int, int]]) -> pa.RecordBatch:
    count = len(rows)
    return pa.RecordBatch.from_pydict(
        {
            "source": pa.array([source for source, _, _ in rows]),
            "sequence_id": pa.array(["8589934592"] * count),
            "manager": pa.array(["b"] * count),
            "queue": pa.array([r".\private$\orders"] * count),
            "computer": pa.array(["SALES02"] * count),
            "number": pa.array(range(count), pa.int64()),
            "sequence_number": pa.array([number for _, number, _ in rows], pa.int64()),
            "previous_number": pa.array([before for _, _, before in rows], pa.int64()),
            "at": pa.array([at(i) for i in range(count)], pa.timestamp("us", "UTC")),
        }
    )


def test_streams_of_two_senders_are_two_runs_even_if_their_numbers_fit() -> None:
    found = collapse(_arrivals([("a", 1, 0), ("a", 2, 1), ("c", 3, 2), ("c", 4, 3)])).to_pylist()
    assert [(r["source"], r["previous"], r["low"], r["high"], r["size"]) for r in found] == [
        ("a", 0, 1, 2, 2),
        ("c", 2, 3, 4, 2),
    ]


def test_a_row_of_the_table_goes_on_where_it_was() -> None:
    first = fold_group(
        pa.table({}), pa.Table.from_batches([collapse(_arrivals([("a", 1, 0), ("a", 4, 3)]))])
    )
    later = collapse(_arrivals([("a", 2, 1), ("a", 5, 4)]))
    row = fold_group(first, pa.Table.from_batches([later])).to_pylist()[0]
    assert [(gap["low"], gap["high"]) for gap in row["missing"]] == [(3, 3)]
    assert [(d["low"], d["size"]) for d in row["disorders"]] == [(2, 1)]
    assert (row["last_number"], row["arrived"], row["queue"]) == (5, 4, r".\private$\orders")
