"""The host of a node: turns, commits, crashes, restarts."""

from __future__ import annotations

import pytest

from falconmq.manager.queues import create_queue
from falconmq.manager.states import ManagerState
from falconmq.names import PathName
from falconmq.simulation.copies import State
from falconmq.simulation.workload import queue_of
from tests.simulation.helpers import Town

OFFICE = PathName.parse(r".\private$\office")


@pytest.fixture
def town() -> Town:
    return Town()


def test_an_outcome_is_told_when_the_batch_is_durable_and_not_before(town: Town) -> None:
    # given a turn that creates a queue
    outcomes: list[bool] = []
    life = town.life()
    life.turn(lambda: create_queue(life.core, OFFICE), outcomes.append)
    # then its outcome waits for the disk
    assert outcomes == []
    town.world.run_until(1.0)
    assert outcomes == [True]


def test_what_was_not_durable_is_gone_after_a_crash_and_the_rest_is_there(town: Town) -> None:
    # given a queue that is durable, and one that is not
    node, life = town.nodes[0], town.life()
    life.turn(lambda: create_queue(life.core, OFFICE))
    node.disk.flush()
    lost = PathName.parse(r".\private$\cellar")
    outcomes: list[bool] = []
    node.disk.store.is_full = True  # so that the commit under way cannot have happened
    life.turn(lambda: create_queue(life.core, lost), outcomes.append)
    # when the node crashes and starts again
    node.crash(silently=True)
    node.disk.store.is_full = False
    node.start()
    node.disk.flush()
    # then it has the one, not the other, and the truth is known
    assert OFFICE.with_computer(".") in town.life().core.paths
    assert lost.with_computer(".") not in town.life().core.paths
    assert outcomes == [False]
    assert life.is_over


def test_a_commit_that_fails_brings_memory_back_to_what_the_store_has(town: Town) -> None:
    node, life = town.nodes[0], town.life()
    node.disk.store.is_full = True
    outcomes: list[bool] = []
    life.turn(lambda: create_queue(life.core, OFFICE), outcomes.append)
    town.world.run_until(5.0)
    assert outcomes == [False]
    assert node.restores
    assert node.life is life
    assert OFFICE.with_computer(".") not in life.core.paths


def test_a_node_serves_when_what_it_wrote_at_its_start_is_durable(town: Town) -> None:
    node = town.nodes[0]
    node.crash(silently=True)
    node.start()
    assert not node.is_up
    node.disk.flush()
    assert node.is_up


def test_a_node_that_cannot_write_at_its_start_tries_again(town: Town) -> None:
    node = town.nodes[0]
    node.crash(silently=True)
    node.disk.store.is_full = True
    node.start()
    town.world.run_until(5.0)
    assert not node.is_up
    node.disk.store.is_full = False
    town.world.run_until(20.0)
    assert node.is_up


def test_a_node_that_stops_in_order_closes_its_connections(town: Town) -> None:
    # given two nodes that talk
    for _ in range(20):
        town.workload.send(town.nodes[0])
    town.world.run_until(3.0)
    assert town.network.open_endpoints()
    life = town.life()
    # when one of them stops
    town.nodes[0].stop()
    town.world.run_until(4.0)
    # then nobody holds a connection
    assert life.core.state is ManagerState.STOPPED
    assert not town.network.open_endpoints()
    assert not town.nodes[0].is_up


def test_messages_travel_from_node_to_node_and_are_received(town: Town) -> None:
    # given a world where nothing goes wrong
    for _ in range(60):
        town.workload.send(town.nodes[0])
    town.world.run_until(60.0)
    # then what came to the other node can be read there
    arrived = [c for c in town.ledger.copies.values() if c.target is town.nodes[1] and c.inserted]
    assert len(arrived) > 10
    town.workload.drain(town.nodes[1])
    town.world.run_until(120.0)
    assert len(queue_of(town.life(1), "orders").positions) == 0
    assert all(len(copy.left) == 1 for copy in arrived)


def test_what_a_crash_interrupts_is_never_accepted(town: Town) -> None:
    for _ in range(30):
        town.workload.send(town.nodes[0])
    town.nodes[0].disk.store.is_full = True
    town.nodes[0].crash(silently=True)
    assert all(
        copy.state is not State.ACCEPTED
        for copy in town.ledger.copies.values()
        if copy.kind.value != "express" and not copy.inserted
    )
