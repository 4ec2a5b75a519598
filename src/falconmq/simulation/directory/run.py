"""One run: an enterprise from a seed, which works and breaks, is repaired, and is checked.

setup               all servers are in step
work and faults     some minutes to half an hour of virtual time
the rest            the operator ends what he has begun
quiet               in which all copies must become the same
"""

from __future__ import annotations

from typing import Final

from falconmq.directory.replication.settings import ReplicationSettings
from falconmq.simulation.directory.checking import check_quiet
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.faults import FaultPlan
from falconmq.simulation.directory.load import Load
from falconmq.simulation.directory.operator import Operator
from falconmq.simulation.result import Result, run_world
from falconmq.simulation.world import SimulationError, World

QUIET_SECONDS: Final = 900.0
_REST_SECONDS: Final = 3000.0
_SITES: Final = ([1, 1], [0, 2], [0, 1, 1], [1, 0, 1], [2, 2], [1, 1, 1], [0, 0, 2])


class DirectorySimulation:
    """An enterprise with its load, its operator and its faults."""

    def __init__(self, seed: int, *, keep_all: bool = False) -> None:
        self.world = world = World(seed, keep_all=keep_all)
        self.enterprise = Enterprise(world, _settings(world))
        self.operator = Operator(self.enterprise)
        self.load = Load(self.enterprise)
        self.seconds = world.random.choice((120.0, 400.0, 1200.0))

    def run(self) -> None:
        """Everything; SimulationError if a promise was broken."""
        world, random = self.world, self.world.random
        self.enterprise.begin(random.choice(_SITES))
        begin = world.now
        FaultPlan(self.enterprise, self.operator, self.load, self.seconds).schedule()
        for _ in range(random.randint(20, 70)):
            world.at(begin + random.uniform(0.0, self.seconds), self.load.step)
        world.run_until(begin + self.seconds + 1.0)
        self._finish()
        world.run_until(world.now + QUIET_SECONDS)
        for server in self.enterprise.servers.values():
            server.count_events()
        check_quiet(self.enterprise)

    def _finish(self) -> None:
        """Let the operator end what he has begun."""
        end = self.world.now + _REST_SECONDS
        while self.operator.task:
            if self.world.now > end:
                raise SimulationError(f"this never comes to its end: {self.operator.task}")
            self.world.run_until(self.world.now + 10.0)


def _settings(world: World) -> ReplicationSettings:
    """Short intervals and small limits, so that much happens in little time."""
    random = world.random
    return ReplicationSettings(
        intersite_seconds=20.0,
        intrasite_seconds=random.choice((5.0, 30.0)),
        hello_seconds=100.0,
        sync_resend_seconds=60.0,
        bsc_ack_seconds=600.0,
        purge_step=random.choice((2, 4, 16)),
        purge_buffer=random.choice((2, 6, 30)),
        pending_changes_max=random.choice((2, 6, 100)),
        message_changes_max=random.choice((1, 4, 1000)),
    )


def run_directory_seed(seed: int, *, keep_all: bool = False) -> Result:
    """Run a seed; whatever breaks is told in the result."""
    simulation = DirectorySimulation(seed, keep_all=keep_all)
    result = run_world(simulation.world, simulation.run)
    result.messages = simulation.enterprise.post.messages
    result.changes = simulation.enterprise.ledger.acknowledged
    return result
