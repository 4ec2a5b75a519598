"""One run: build a world from a seed, let it work and break, repair it, wait, check.

work and faults     a minute to ten of virtual time
quiet               hours, in which everything that was accepted must arrive
drain               the readers take what is left
quiet again         hours, for the last acknowledgements; then nobody may wait for anything
"""

from __future__ import annotations

from functools import partial
from typing import Final
from uuid import UUID

from falconmq.simulation.administration import Administration
from falconmq.simulation.checkers import check_quiet
from falconmq.simulation.copies import State
from falconmq.simulation.faults import FaultPlan
from falconmq.simulation.ledger import Ledger
from falconmq.simulation.network import SimulatedNetwork
from falconmq.simulation.node import Node
from falconmq.simulation.result import Result, run_world
from falconmq.simulation.topology import connect_nodes
from falconmq.simulation.workload import Workload
from falconmq.simulation.world import SimulationError, World
from falconmq.transport.settings import TransportSettings

QUIET_SECONDS: Final = 3 * 3600.0
_BUSY_TURNS: Final = 200  # of a node in an hour in which nothing is left to do


class Simulation:
    """A world with its nodes, its load and its faults."""

    def __init__(self, seed: int, *, keep_all: bool = False) -> None:
        self.world = world = World(seed, keep_all=keep_all)
        random = world.random
        self.ledger = Ledger(world)
        self.network = SimulatedNetwork(world)
        self.nodes = [self._node(number) for number in range(random.choice((2, 2, 3, 3, 4, 4)))]
        self.ledger.nodes = self.nodes
        ghost = None
        if len(self.nodes) > 2 and random.random() < 0.15:
            world.counts["ways in a circle"] += 1
            ghost = UUID(int=random.getrandbits(128), version=4)
        connect_nodes(world, self.nodes, ghost)
        self.workload = Workload(world, self.nodes, self.ledger, ghost)
        self.seconds = random.choice((20.0, 60.0, 200.0, 600.0))

    def _node(self, number: int) -> Node:
        random = self.world.random
        settings = TransportSettings(
            window_size=random.choice((1, 2, 5, 64, 64)),
            ping_enabled=random.random() < 0.1,
            ping_answered=True,  # who does not answer is never connected to
            send_insecure_nacks=random.random() < 0.5,
        )
        node = Node(
            self.world,
            self.network,
            self.ledger,
            name=f"NODE{number}",
            address=f"10.0.0.{number + 1}",
            settings=settings,
        )
        if random.random() < 0.05:
            self.world.counts["small quota"] += 1
            node.quota_kilobytes, node.was_full = random.choice((12, 40)), True
        return node

    def run(self) -> None:
        """Everything; SimulationError if a promise was broken."""
        world, random = self.world, self.world.random
        for node in self.nodes:
            node.start()
            node.disk.flush()
            self.workload.create_queues(node)
        world.run_until(1.0)
        plan = FaultPlan(world, self.network, self.nodes, Administration(world), self.seconds)
        plan.schedule()
        for _ in range(random.randint(8, 45)):
            node = random.choice(self.nodes)
            world.at(self._moment(), partial(self.workload.send, node))
        for _ in range(random.randint(8, 45)):
            node = random.choice(self.nodes)
            world.at(random.uniform(1.0, self.seconds), partial(self.workload.receive, node))
        world.run_until(self.seconds + QUIET_SECONDS)
        self._drain()
        world.run_until(world.now + QUIET_SECONDS)
        turns = [self._turns(node) for node in self.nodes]
        world.run_until(world.now + 3600.0)
        check_quiet(self.ledger, self.network)
        for node, before in zip(self.nodes, turns, strict=True):
            if self._turns(node) - before > _BUSY_TURNS:
                spent = self._turns(node) - before
                raise SimulationError(f"{node.name} is busy with nothing: {spent} turns in an hour")

    def _moment(self) -> float:
        """When somebody sends: many do it at once, others at any time."""
        random = self.world.random
        if random.random() < 0.5:
            return random.choice((1.0, self.seconds / 3)) + random.random()
        return random.uniform(1.0, self.seconds)

    def _drain(self) -> None:
        """Read what is left; acknowledgements of that make more, so a second time later."""
        for _ in range(3):
            for node in self.nodes:
                self.workload.drain(node)
            self.world.run_until(self.world.now + 600.0)

    def _turns(self, node: Node) -> int:
        assert node.life is not None
        return node.life.turns


def run_seed(seed: int, *, keep_all: bool = False) -> Result:
    """Run a seed; whatever breaks is told in the result."""
    simulation = Simulation(seed, keep_all=keep_all)
    result = run_world(simulation.world, simulation.run)
    result.messages = sum(c.state is State.ACCEPTED for c in simulation.ledger.copies.values())
    return result
