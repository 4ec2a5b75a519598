"""Administrators: queues that are purged, deleted and made again."""

from __future__ import annotations

import pytest

from falconmq.simulation.administration import Administration
from falconmq.simulation.workload import PATHS
from tests.simulation.helpers import Town


@pytest.fixture
def town() -> Town:
    return Town()


@pytest.fixture
def administration(town: Town) -> Administration:
    return Administration(town.world)


def test_a_queue_that_is_deleted_comes_back(town: Town, administration: Administration) -> None:
    node = town.nodes[0]
    before = dict(town.life().core.paths)
    administration.delete(node)
    (name,) = node.deleted_queues
    assert PATHS[name] not in town.life().core.paths
    town.world.run_until(100.0)
    after = town.life().core.paths
    assert after.keys() == before.keys()
    assert after[PATHS[name]].number != before[PATHS[name]].number


def test_a_queue_comes_back_even_if_its_node_is_down_when_it_should(
    town: Town, administration: Administration
) -> None:
    node = town.nodes[0]
    administration.delete(node)
    node.disk.flush()
    node.crash(silently=True)
    town.world.run_until(100.0)
    node.start()
    town.world.run_until(200.0)
    assert all(path in town.life().core.paths for path in PATHS.values())


def test_what_waits_for_a_destination_can_be_thrown_away(
    town: Town, administration: Administration
) -> None:
    # given messages for a node that is down
    town.nodes[1].crash(silently=False)
    for _ in range(30):
        town.workload.send(town.nodes[0])
    town.world.run_until(5.0)
    outgoing = town.life().core.outgoing

    def waiting() -> int:
        return sum(len(queue.positions) for queue in outgoing.values())

    before = waiting()
    # when an administrator purges one of the outgoing queues
    administration.purge_outgoing(town.nodes[0])
    town.world.run_until(10.0)
    # then its messages have ended there, and the ledger knows
    ended = [end for copy in town.ledger.copies.values() for end in copy.ends]
    assert ended
    assert waiting() <= before - len(ended)
