"""A transaction that a coordinator decides, over the crashes of its queue manager."""

from __future__ import annotations

import pytest

from falconmq.manager.coordinator import in_doubt
from falconmq.simulation.applications import CoordinatedTransaction
from falconmq.simulation.copies import State
from falconmq.simulation.world import SimulationError
from tests.simulation.helpers import Town


def prepared(town: Town, seconds: float = 2.5) -> CoordinatedTransaction:
    """An application whose transaction is prepared at NODE0."""
    application = CoordinatedTransaction(town.workload, town.life())
    application.begin()
    while not in_doubt(town.life().core):
        town.world.run_until(town.world.now + 0.001)
        assert town.world.now < seconds
    town.nodes[0].disk.flush()
    return application


def restart(town: Town) -> None:
    town.nodes[0].crash(silently=True)
    town.nodes[0].start()
    town.nodes[0].disk.flush()


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("crashes", [0, 1, 2])
def test_what_the_coordinator_decides_happens_whatever_the_node_does(
    seed: int, crashes: int
) -> None:
    # given a transaction that is prepared, and a node that crashes
    town = Town(seed)
    application = prepared(town)
    for _ in range(crashes):
        restart(town)
    # when time passes
    town.world.run_until(300.0)
    # then it has ended as the coordinator decided
    expected = State.ACCEPTED if application.decision.is_commit else State.GONE
    assert {copy.state for copy in application.copies} == {expected}
    assert not town.life().core.transactions


def test_what_is_not_prepared_ends_with_the_node() -> None:
    town = Town()
    application = CoordinatedTransaction(town.workload, town.life())
    application.begin()
    restart(town)
    town.world.run_until(300.0)
    assert {copy.state for copy in application.copies} == {State.GONE}


def test_a_queue_manager_that_forgets_what_it_prepared_is_noticed() -> None:
    town = Town()
    application = prepared(town)
    application.decision.is_told = False
    town.life().core.transactions.clear()
    with pytest.raises(SimulationError, match="has forgotten what it prepared"):
        town.world.run_until(300.0)
