"""A network that fails: names, TCP connections and datagrams between the nodes of a world.

How to think about it. A connection is two endpoints. What is written at one arrives at the other
after a latency, in order, in pieces of any size. A connection may be cut at any byte of either
direction: what comes behind the cut is lost, and each side learns of it soon, late or never (then
it is half open, and only the protocol's own timers can find out). Two nodes may be parted for a
while: bytes wait, as TCP would send them again, and new connections run into the void.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from falconmq.manager.states import ConnectionStatus
from falconmq.simulation.world import World
from falconmq.transport.settings import PING_PORT
from falconmq.wire.reader import Buffer

if TYPE_CHECKING:
    from falconmq.simulation.life import Life
    from falconmq.simulation.node import Node
    from falconmq.transport.peers import Peer
    from falconmq.transport.session import Session

CONNECT_TIMEOUT: Final = 21.0  # what Windows and Linux give a connect that nobody answers
_ASKING_PORT: Final = 50_000
_NEVER: Final = float("inf")


@dataclass(slots=True)
class Weather:
    """How bad the network is; the fault plan changes it, the quiet period clears it."""

    latency: float = 0.002
    jitter: float = 0.002
    bytes_per_second: float = 10_000_000.0
    split: float = 0.0  # probability that a write arrives in pieces
    cut: float = 0.0  # probability that a new connection will be cut at some byte
    refuse: float = 0.0  # probability that a connect is refused
    resolve_failure: float = 0.0
    datagram_loss: float = 0.0

    def clear(self) -> None:
        fresh = Weather()
        for name in Weather.__slots__:
            setattr(self, name, getattr(fresh, name))


class Endpoint:
    """One side of a connection; it is the `Link` of its node's transport."""

    __slots__ = (
        "_arrival",
        "connection",
        "cut_at",
        "is_closed",
        "is_lost",
        "life",
        "other",
        "session",
        "written",
    )

    def __init__(self, connection: Connection, life: Life) -> None:
        self.connection = connection
        self.life = life
        self.session: Session | None = None
        self.other: Endpoint = self
        self.is_closed = False  # by our side
        self.is_lost = False  # our side was told, or needs no telling
        self.written = 0
        self.cut_at = _NEVER  # bytes of this direction that get through
        self._arrival = 0.0

    @property
    def is_writable(self) -> bool:
        return True  # lines here are slow, but they have room

    def write(self, data: Sequence[Buffer]) -> None:
        joined = b"".join(data)
        if self.is_closed or self.is_lost or self.connection.is_cut or not joined:
            return
        room = int(min(len(joined), self.cut_at - self.written))
        self.written += len(joined)
        for piece in self.connection.network.pieces(joined[:room]) if room > 0 else ():
            self._send(piece)
        if 0 <= room < len(joined):  # what was written before the cut arrives, then it ends
            where = f"byte {self.cut_at} from {self.life.node.name}"
            self._deliver(0, lambda: self.connection.cut(where))

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.connection.network.endpoint_closed(self)
        if not self.connection.is_cut:
            other = self.other
            self._deliver(0, lambda: other.lose("the peer closed the connection"))

    def _send(self, data: bytes) -> None:
        other = self.other
        self._deliver(len(data), lambda: other.life.data_received(other, data))

    def _deliver(self, size: int, action: Callable[[], None]) -> None:
        network, connection = self.connection.network, self.connection
        time = network.arrival_time(self.life.node, self.other.life.node, size)
        self._arrival = time = max(time, self._arrival)

        def arrive() -> None:
            if not connection.is_cut:
                action()

        network.world.at(time, arrive)

    def lose(self, problem: str) -> None:
        """Our side learns that the connection is gone."""
        if self.is_lost or self.is_closed:
            self.is_lost = True
            return
        self.is_lost = True
        self.connection.network.endpoint_closed(self)
        self.life.connection_lost(self, problem)


class Connection:
    """Two endpoints and what may become of them."""

    def __init__(self, network: SimulatedNetwork, client: Life, server: Life) -> None:
        self.network = network
        self.is_cut = False
        self.client = Endpoint(self, client)
        self.server = Endpoint(self, server)
        self.client.other, self.server.other = self.server, self.client

    def joins(self, one: Node, other: Node) -> bool:
        nodes = (self.client.life.node, self.server.life.node)
        return nodes in ((one, other), (other, one))

    def cut(self, where: str) -> None:
        """Nothing gets through any more; each side learns of it soon, late or never."""
        if self.is_cut:
            return
        self.is_cut = True
        world = self.network.world
        world.counts["cut"] += 1
        world.note("network", "cut at %s", where)
        for end in (self.client, self.server):
            kind = world.random.randrange(4)
            if kind == 0:
                world.counts["half open"] += 1
                continue
            delay = world.random.uniform(0.0, 0.5) if kind < 3 else world.random.uniform(1.0, 200.0)
            world.after(delay, partial(end.lose, "connection reset"))


@dataclass(slots=True)
class Parting:
    """Two nodes that cannot reach each other until a time."""

    one: Node
    other: Node
    until: float


@dataclass(eq=False)
class SimulatedNetwork:
    """The network between all nodes."""

    world: World
    weather: Weather = field(default_factory=Weather)
    nodes: dict[str, Node] = field(default_factory=dict)  # by address
    names: dict[str, str] = field(default_factory=dict)  # host name in capitals -> address
    partings: list[Parting] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    def add(self, node: Node) -> None:
        self.nodes[node.address] = node
        self.names[node.name.upper()] = node.address

    def part(self, one: Node, other: Node, seconds: float) -> None:
        self.partings.append(Parting(one, other, self.world.now + seconds))

    def parted_until(self, one: Node, other: Node) -> float:
        """When two nodes can reach each other again; a time in the past if they can now."""
        until = 0.0
        for parting in self.partings:
            if (parting.one is one and parting.other is other) or (
                parting.one is other and parting.other is one
            ):
                until = max(until, parting.until)
        return until

    def arrival_time(self, one: Node, other: Node, size: int) -> float:
        weather, now = self.weather, self.world.now
        delay = weather.latency + self.world.random.random() * weather.jitter
        start = max(now, self.parted_until(one, other)) if self.partings else now
        return start + delay + size / weather.bytes_per_second

    def pieces(self, data: bytes) -> list[bytes]:
        """The segments in which bytes arrive."""
        random = self.world.random
        if not self.weather.split or random.random() >= self.weather.split:
            return [data]
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randint(1, 4)))
        bounds = [0, *cuts, len(data)]
        found = [data[a:b] for a, b in pairwise(bounds)]
        return [piece for piece in found if piece]

    def endpoint_closed(self, end: Endpoint) -> None:
        other = end.other
        if other.is_closed or other.is_lost:
            connection = end.connection
            if connection in self.connections:
                self.connections.remove(connection)

    def open_endpoints(self) -> list[Endpoint]:
        """The sides that a node still holds open, for the check against leaks."""
        ends = [end for c in self.connections for end in (c.client, c.server)]
        return [e for e in ends if e.life.is_current and not (e.is_closed or e.is_lost)]

    def node_died(self, life: Life, *, silently: bool) -> None:
        """A computer stopped: its connections are gone, and the peers hear of it, or not."""
        for connection in list(self.connections):
            for end in (connection.client, connection.server):
                if end.life is not life or end.is_lost:
                    continue
                end.is_lost = True
                self.endpoint_closed(end)
                if connection.is_cut:
                    continue
                connection.is_cut = True
                if not silently:
                    delay = self.world.random.uniform(0.0, 1.0)
                    self.world.after(delay, partial(end.other.lose, "connection reset by peer"))


class NodeNetwork:
    """The network as the transport of one life of one node sees it."""

    def __init__(self, network: SimulatedNetwork, life: Life) -> None:
        self._network = network
        self._world = network.world
        self._life = life

    def resolve(self, peer: Peer, host: str) -> None:
        network, life, random = self._network, self._life, self._world.random
        delay = random.uniform(0.0005, 0.05)
        if random.random() < network.weather.resolve_failure:
            self._world.counts["name not found"] += 1
            self._world.after(delay, lambda: life.resolved(peer, [], "name not found"))
            return
        address = host if host in network.nodes else network.names.get(host.upper(), "")
        found = [address] if address else []
        if found and network.weather.refuse and random.random() < 0.2:
            found.insert(0, "10.9.9.9")  # an address where nobody is
        problem = "" if found else f"no host {host}"
        self._world.after(delay, lambda: life.resolved(peer, found, problem))

    def connect(self, session: Session, address: str) -> None:
        network, world, life = self._network, self._world, self._life
        there = network.nodes.get(address)
        delay = network.weather.latency + world.random.random() * network.weather.jitter
        if there is None or network.parted_until(life.node, there) > world.now:
            world.counts["connect into the void"] += 1
            failed, problem = ConnectionStatus.SOCKET_CONNECT_FAILURE, "timed out"
            delay = CONNECT_TIMEOUT
        elif not there.is_up or world.random.random() < network.weather.refuse:
            world.counts["connect refused"] += 1
            failed, problem = ConnectionStatus.SOCKET_CONNECT_FAILURE, "refused"
        else:
            world.after(delay, lambda: self._accept(session, there, delay))
            return
        world.after(delay, lambda: life.connect_failed(session, failed, problem))

    def _accept(self, session: Session, there: Node, delay: float) -> None:
        network, world, life = self._network, self._world, self._life
        server = there.life
        if server is None or not life.is_current:
            failed = ConnectionStatus.SOCKET_CONNECT_FAILURE
            world.after(delay, lambda: life.connect_failed(session, failed, "refused"))
            return
        world.counts["connections"] += 1
        if any(c.client.life is server and c.server.life is life for c in network.connections):
            world.counts["dialled by both sides"] += 1
        connection = Connection(network, life, server)
        if network.weather.cut and world.random.random() < network.weather.cut:
            end = connection.client if world.chance(0.5) else connection.server
            # Most cuts fall early: the handshake is 1208 bytes, an acknowledgement 36.
            end.cut_at = world.random.randrange(world.random.choice((700, 2000, 8000, 60_000)))
        network.connections.append(connection)
        client = connection.client
        if server.accepted(connection.server, life.node.address):
            world.after(delay, lambda: life.connected(session, client))
        else:
            connection.server.is_closed = True
            failed = ConnectionStatus.SOCKET_CONNECT_FAILURE
            network.connections.remove(connection)
            world.after(delay, lambda: life.connect_failed(session, failed, "refused"))

    def send_datagram(self, data: bytes, address: str, port: int) -> None:
        network, world, life = self._network, self._world, self._life
        there = network.nodes.get(address)
        if there is None or world.random.random() < network.weather.datagram_loss:
            return
        if network.parted_until(life.node, there) > world.now:
            return
        # Requests come from a port of their own, answers from the port of the pings.
        source_port = _ASKING_PORT if port == PING_PORT else PING_PORT
        copies = 2 if world.random.random() < network.weather.datagram_loss else 1
        for _ in range(copies):
            time = network.arrival_time(life.node, there, len(data))
            world.at(time, partial(there.datagram_received, data, life.node.address, source_port))
