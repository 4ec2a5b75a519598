"""Offsets, the sharing of limits, and the cutting into partitions: no Spark, no queue manager."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import FalconMQError
from falconmq.spark.log_runs import JUMP, dense_runs, run_of
from falconmq.spark.offsets import LOG, Feed, Offsets, Position, part_counts, share

MANAGER = "709ded8e-14e3-4f2a-a072-f18274a568db"
ORDERS = Feed(MANAGER, r".\private$\orders")
EVENTS = Feed(MANAGER, LOG)

numbers = st.integers(0, 2**63 - 1)
feeds = st.builds(Feed, st.sampled_from([MANAGER, "a", "b"]), st.text(max_size=8))
positions = st.builds(Position, numbers, numbers, numbers)


@given(st.dictionaries(feeds, positions, max_size=6))
def test_offsets_survive_spark(known: Mapping[Feed, Position]) -> None:
    offsets = Offsets(known, {feed.manager: f"http://{feed.manager}" for feed in known})
    assert Offsets.from_json(json.loads(json.dumps(offsets.to_json()))) == offsets


@given(st.dictionaries(feeds, positions, max_size=6), st.randoms())
def test_the_text_of_offsets_does_not_depend_on_their_order(
    known: dict[Feed, Position], random: Random
) -> None:
    shuffled = list(known.items())
    random.shuffle(shuffled)
    texts = {json.dumps(Offsets(dict(some)).to_json()) for some in (known.items(), shuffled)}
    assert len(texts) == 1


def test_offsets_look_as_documented() -> None:
    offsets = Offsets({ORDERS: Position(4711, 123)}, {MANAGER: "http://sales02:8018"})
    assert offsets.to_json() == {
        "v": 1,
        "managers": {
            MANAGER: {
                "url": "http://sales02:8018",
                "queues": {r".\private$\orders": {"next": 4711, "seen": 123}},
            }
        },
    }
    assert offsets.of(EVENTS) == Position(0)
    assert offsets.of(ORDERS).advanced(5000, 7) == Position(5000, 130)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"v": 2, "managers": {}},
        {"v": 1},
        {"v": 1, "managers": {"a": {"queues": {}}}},
        {"v": 1, "managers": {"a": {"url": "u", "queues": {"q": {}}}}},
        {"v": 1, "managers": {"a": {"url": "u", "queues": {"q": 4}}}},
        [],
        "earliest",
        7,
    ],
    ids=str,
)
def test_other_offsets_are_refused_with_words(document: object) -> None:
    with pytest.raises(FalconMQError, match="no offsets of FalconMQ") as refused:
        Offsets.from_json(document)
    assert "checkpoint" in refused.value.hint


backlogs = st.dictionaries(st.integers(0, 20), st.integers(0, 10**9), max_size=8)


@given(st.integers(1, 10**9), backlogs)
def test_a_limit_is_used_up_and_never_passed(limit: int, waiting: dict[int, int]) -> None:
    shares = share(limit, waiting)
    assert shares.keys() == waiting.keys()
    assert sum(shares.values()) == min(limit, sum(waiting.values()))
    assert all(0 <= shares[key] <= waiting[key] for key in waiting)


@given(st.integers(1, 1000), backlogs)
def test_no_feed_starves_if_the_limit_is_enough(limit: int, waiting: dict[int, int]) -> None:
    nonempty = [key for key, count in waiting.items() if count]
    shares = share(limit, waiting)
    if limit >= len(nonempty):
        assert all(shares[key] for key in nonempty)


@given(st.integers(100, 10**6), st.integers(1, 10**6), st.integers(2, 9))
def test_shares_follow_the_backlog(limit: int, small: int, times: int) -> None:
    shares = share(limit, {"small": small, "large": small * times})
    if shares["large"] < small * times and shares["small"] < small:
        assert abs(shares["large"] - times * shares["small"]) <= 2 * times


counts = st.lists(st.integers(0, 10**7), max_size=8)


@given(counts, st.none() | st.integers(1, 500), st.none() | st.integers(1, 10**6))
def test_partitions_are_enough_small_enough_and_not_empty(
    each: list[int], wanted: int | None, at_most: int | None
) -> None:
    parts = part_counts(each, wanted=wanted, at_most=at_most)
    assert [bool(part) for part in parts] == [bool(count) for count in each]
    assert all(part <= count for part, count in zip(parts, each, strict=True))
    if wanted is not None and all(count >= wanted for count in each if count):
        assert sum(parts) >= (wanted if any(each) else 0)
    if at_most is not None:
        assert all(part * at_most >= count for part, count in zip(parts, each, strict=True))


def test_without_a_wish_each_feed_is_one_partition() -> None:
    assert part_counts([5, 0, 10**6]) == [1, 0, 1]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=4), st.integers(0, 10), st.integers(0, 60))
def test_a_log_that_jumped_is_runs_without_holes(
    lengths: list[int], first: int, forgotten: int
) -> None:
    runs, start = [], first
    for length in lengths:
        runs.append((start, start + length))
        start += length + 2 * JUMP
    numbers = [number for begin, end in runs for number in range(begin, end)]

    def following(number: int) -> int:
        return next(known for known in numbers if known >= number)

    found = dense_runs(runs[0][0], runs[-1][1], following)
    assert found == runs
    # Later it has lost some in front and gained some behind; nobody asks again.
    del numbers[: min(forgotten, len(numbers) - 1)]
    later = [(max(begin, numbers[0]), end) for begin, end in runs if end > numbers[0]]
    later[-1] = (later[-1][0], later[-1][1] + 3)

    def nobody(number: int) -> int:
        raise AssertionError(number)

    assert dense_runs(numbers[0], later[-1][1], nobody, found) == later
    assert run_of(later[0][0], later) == later[0]
    assert run_of(later[0][1], later) == (later[1] if len(later) > 1 else later[0])
