"""Histograms: what falls where, and that commits are measured."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.store import GroupCommitter, MemoryStore, WriteBatch
from falconmq.store.measuring import Histogram

INFINITY = float("inf")


def test_a_value_at_a_bound_is_not_above_it() -> None:
    histogram = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 2, 7):
        histogram.add(value)
    assert list(histogram.cumulative()) == [(1, 2), (2, 4), (INFINITY, 5)]
    assert (histogram.count, histogram.sum) == (5, 12)


@given(st.lists(st.floats(0, 100)))
def test_the_counts_rise_to_all_of_them(values: list[float]) -> None:
    histogram = Histogram((0.1, 1, 10))
    for value in values:
        histogram.add(value)
    counts = list(histogram.cumulative())
    assert counts == [
        (bound, sum(value <= bound for value in values)) for bound in (0.1, 1, 10, INFINITY)
    ]


def batch(key: bytes) -> WriteBatch:
    made = WriteBatch()
    made.put("messages", key, b"value")
    return made


def test_every_commit_is_measured() -> None:
    with GroupCommitter(MemoryStore()) as committer:
        for number in range(5):
            committer.submit(batch(bytes([number]))).wait()
    assert committer.seconds.count == committer.sizes.count == committer.groups
    assert committer.sizes.sum == committer.batches == 5
    assert committer.failures == 0


class BrokenStore(MemoryStore):
    """A store that cannot write."""

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        raise OSError("no space")


def test_a_commit_that_fails_counts_as_a_failure_alone() -> None:
    with GroupCommitter(BrokenStore()) as committer:
        with pytest.raises(OSError, match="no space"):
            committer.submit(batch(b"x")).wait()
        assert committer.failures == 1
        assert committer.seconds.count == committer.groups == 0
