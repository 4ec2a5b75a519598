"""What the tests of the simulator share: small worlds with nodes that are easy to watch."""

from __future__ import annotations

from falconmq.message import Acknowledge, Journal
from falconmq.simulation.copies import Copy, Kind
from falconmq.simulation.ledger import Ledger
from falconmq.simulation.life import Life
from falconmq.simulation.network import Connection, Endpoint, SimulatedNetwork
from falconmq.simulation.node import Node
from falconmq.simulation.run import Simulation
from falconmq.simulation.topology import connect_nodes
from falconmq.simulation.workload import Workload
from falconmq.simulation.world import World
from falconmq.transport.settings import TransportSettings


class Town:
    """A world without faults and without load: two nodes with their queues."""

    def __init__(self, seed: int = 1, *, count: int = 2) -> None:
        self.world = World(seed, keep_all=True)
        self.ledger = Ledger(self.world)
        self.network = SimulatedNetwork(self.world)
        self.nodes = [
            Node(
                self.world,
                self.network,
                self.ledger,
                name=f"NODE{number}",
                address=f"10.0.0.{number + 1}",
                settings=TransportSettings(),
            )
            for number in range(count)
        ]
        self.ledger.nodes = self.nodes
        connect_nodes(self.world, self.nodes)
        self.workload = Workload(self.world, self.nodes, self.ledger)
        for node in self.nodes:
            node.start()
            node.disk.flush()
            self.workload.create_queues(node)

    def life(self, number: int = 0) -> Life:
        life = self.nodes[number].life
        assert life is not None
        return life


class Wire:
    """A connection between two nodes, and what arrives at its ends, instead of their transports."""

    def __init__(self, town: Town) -> None:
        self.connection = Connection(town.network, town.life(0), town.life(1))
        town.network.connections.append(self.connection)
        self.received = b""
        self.pieces = 0
        self.problems: list[str] = []
        town.life(1).data_received = self._data  # type: ignore[method-assign]
        for life in (town.life(0), town.life(1)):
            life.connection_lost = self._lost  # type: ignore[method-assign]

    def _data(self, end: Endpoint, data: bytes) -> None:
        assert end is self.connection.server
        self.received += data
        self.pieces += 1

    def _lost(self, end: Endpoint, problem: str) -> None:
        self.problems.append(f"{end.life.node.name}: {problem}")


def given_copy(town: Town, number: int, kind: Kind = Kind.TRANSACTIONAL, **changes: object) -> Copy:
    """A line of the ledger, from NODE0 to NODE1."""
    copy = Copy(
        key=(town.nodes[0].identifier.bytes_le, number),
        number=number,
        kind=kind,
        sender=town.nodes[0],
        target=town.nodes[1],
        queue="orders" if kind is Kind.TRANSACTIONAL else "plain",
        name="DIRECT=OS:NODE1\\private$\\orders",
        body=b"",
        journal=Journal.NONE,
        acknowledgements=Acknowledge.NONE,
        may_expire=False,
        rejection=0,
    )
    for name, value in changes.items():
        setattr(copy, name, value)
    town.ledger.asked(copy)
    return copy


def digest_of(seed: int) -> str:
    """The hash over everything that happened in a run."""
    simulation = Simulation(seed, keep_all=True)
    simulation.run()
    return simulation.world.digest()
