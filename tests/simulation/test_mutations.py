"""The checkers bite: each deliberate mistake in the protocol is noticed within 500 seeds."""

from __future__ import annotations

import pytest

from falconmq.simulation.mutations import MUTATIONS, mutated
from falconmq.simulation.run import run_seed
from falconmq.transport.history import MessageIdHistory

SEEDS = 500


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_in_the_protocol_is_noticed(name: str) -> None:
    with mutated(name):
        noticed = next((seed for seed in range(1, SEEDS + 1) if run_seed(seed).problem), None)
    assert noticed is not None
    # and it is the mistake that was noticed: without it the same seed is fine
    assert not run_seed(noticed).problem


def test_there_are_at_least_thirty_mistakes() -> None:
    assert len(MUTATIONS) >= 30


def test_a_mistake_ends_with_its_block() -> None:
    right = MessageIdHistory.is_duplicate
    with mutated("forget the duplicate history"):
        assert MessageIdHistory.is_duplicate is not right
    assert MessageIdHistory.is_duplicate is right
