"""Scenario 53: six servers, lost and late messages, deaths; then quiet, and all is the same.

FALCONMQ_REPLICATION_SEEDS=1000 runs that many seeds instead of a few.
"""

from __future__ import annotations

import os

import pytest

from tests.directory.replication.soaking import Soak

SEEDS = int(os.environ.get("FALCONMQ_REPLICATION_SEEDS", "3"))


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_all_copies_become_the_same(seed: int) -> None:
    soak = Soak(seed).run()
    assert soak.problems() == []
