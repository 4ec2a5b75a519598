"""What goes wrong, and when: drawn from the seed before the world begins.

A plan is a list of moments with a fault each, and the weather of the network. Everything that is
broken is repaired at the end of the plan, so that the quiet period can show that all settles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from falconmq.manager.core import Settings
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.quotas import begin_flow_control, end_flow_control
from falconmq.simulation.administration import Administration
from falconmq.simulation.network import SimulatedNetwork
from falconmq.simulation.node import Node
from falconmq.simulation.world import World

_ROOM: Final = Settings("").quota_kilobytes
_SMALL_JUMPS: Final = (-3.0, 2.0, -60.0, 45.0)
_LARGE_JUMPS: Final = (-7200.0, 3600.0, 86_400.0)


@dataclass(eq=False)
class FaultPlan:
    """The faults of one run."""

    world: World
    network: SimulatedNetwork
    nodes: list[Node]
    administration: Administration
    seconds: float  # until everything is repaired
    _held: list[tuple[Node, OutgoingQueue]] = field(default_factory=list)

    def schedule(self) -> None:
        random = self.world.random
        self._choose_weather()
        faults: list[Callable[[], None]] = [
            self._crash,
            self._crash,
            self._crash_at_commit,
            self._crash_at_commit,
            self._stop,
            self._disk_full,
            self._slow_disk,
            self._throttle,
            self._part,
            self._part,
            self._cut,
            self._cut,
            self._jump,
            self._change_weather,
            self._hold,
            self._purge,
            self._purge_outgoing,
            self._delete,
            self._delete,
        ]
        for _ in range(random.choice((0, 1, 3, 5, 8, 12))):
            self.world.at(random.uniform(0.0, self.seconds * 0.9), random.choice(faults))
        self.world.at(self.seconds, self.repair)

    def repair(self) -> None:
        """The end of all troubles."""
        self.world.note("world", "everything is repaired")
        self.network.weather.clear()
        self.network.partings.clear()
        for node in self.nodes:
            node.disk.store.is_full = node.disk.is_slow = False
            node.disk.crash_in = 0
            node.quota_kilobytes = _ROOM
            if node.life is not None:
                end_flow_control(node.life.core)
                node.life.core.settings.quota_kilobytes = _ROOM
            if not node.is_up:
                node.start()
            self._let_go(node)

    def _count(self, kind: str, node: Node | None = None) -> None:
        self.world.counts[kind] += 1
        if node is not None:
            self.world.note(node.name, "fault: %s", kind)

    def _node(self) -> Node:
        return self.world.random.choice(self.nodes)

    def _choose_weather(self) -> None:
        random, weather = self.world.random, self.network.weather
        weather.latency = random.choice((0.0001, 0.002, 0.02, 0.3))
        weather.jitter = weather.latency * random.choice((0.1, 1.0, 5.0))
        weather.bytes_per_second = random.choice((20_000.0, 1_000_000.0, 100_000_000.0))
        weather.split = random.choice((0.0, 0.1, 0.6))
        weather.cut = random.choice((0.0, 0.0, 0.2, 0.6))
        weather.refuse = random.choice((0.0, 0.0, 0.1, 0.4))
        weather.resolve_failure = random.choice((0.0, 0.0, 0.1))
        weather.datagram_loss = random.choice((0.0, 0.1, 0.5))
        for node in self.nodes:
            node.disk.latency = random.choice((0.0002, 0.003, 0.03))

    def _change_weather(self) -> None:
        self._count("weather")
        self._choose_weather()

    def _start_later(self, node: Node) -> None:
        def start() -> None:
            if not node.is_up:
                node.start()

        self.world.after(self.world.random.choice((0.01, 1.0, 20.0, 120.0)), start)

    def _crash(self) -> None:
        node = self._node()
        if node.is_up:
            self._count("crash")
            node.crash(silently=self.world.chance(0.5))
            self._start_later(node)

    def _crash_at_commit(self) -> None:
        """The power fails at one of the next commits, before or after it is durable."""
        node = self._node()
        node.disk.crash_in = self.world.random.randint(1, 6)
        if self.world.chance(0.5):  # so slow that timers run out before the commit
            self._slow(node)
        self.world.after(30.0, lambda: None if node.is_up else node.start())

    def _stop(self) -> None:
        node = self._node()
        if node.is_up and not node.disk.store.is_full:
            self._count("stop")
            node.stop()
            self._start_later(node)

    def _disk_full(self) -> None:
        node = self._node()
        self._count("disk full", node)
        node.disk.store.is_full = True

        def make_room() -> None:
            node.disk.store.is_full = False

        self.world.after(self.world.random.choice((0.5, 5.0, 20.0)), make_room)

    def _throttle(self) -> None:
        """A queue manager takes no messages for a while, as if its quota were used up."""
        life = self._node().life
        if life is None:
            return
        self._count("throttle", life.node)
        life.node.was_full = True
        life.turn(lambda: begin_flow_control(life.core))
        seconds = self.world.random.choice((0.5, 5.0, 40.0))
        self.world.after(seconds, lambda: end_flow_control(life.core))

    def _slow_disk(self) -> None:
        self._slow(self._node())

    def _slow(self, node: Node) -> None:
        self._count("slow disk", node)
        node.disk.is_slow = True

        def recover() -> None:
            node.disk.is_slow = False

        self.world.after(self.world.random.uniform(1.0, 60.0), recover)

    def _part(self) -> None:
        one, other = self.world.random.sample(self.nodes, 2)
        seconds = self.world.random.choice((0.5, 5.0, 30.0, 200.0))
        self._count("partition", one)
        self.network.part(one, other, seconds)

    def _cut(self) -> None:
        if self.network.connections:
            connection = self.world.random.choice(self.network.connections)
            connection.cut("any moment")

    def _jump(self) -> None:
        node = self._node()
        is_large = self.world.chance(0.2)
        seconds = self.world.random.choice(_LARGE_JUMPS if is_large else _SMALL_JUMPS)
        self._count("clock jump", node)
        node.clock.jump(seconds)
        if node.life is not None:
            node.life.clock_jumped()

    def _hold(self) -> None:
        """An administrator pauses an outgoing queue, and resumes it later."""
        node = self._node()
        life = node.life
        if life is None or not life.core.outgoing:
            return
        queue = self.world.random.choice(list(life.core.outgoing.values()))
        self._count("pause", node)
        life.turn(lambda: life.transport.pause(queue))
        self._held.append((node, queue))
        self.world.after(self.world.random.uniform(0.5, 60.0), lambda: self._let_go(node))

    def _let_go(self, node: Node) -> None:
        held = [queue for there, queue in self._held if there is node]
        self._held = [(there, queue) for there, queue in self._held if there is not node]
        life = node.life
        if life is None:
            return  # the pause is not kept over a restart
        for queue in held:
            if life.core.outgoing.get(queue.destination) is queue:
                life.turn(partial(life.transport.resume, queue))

    def _purge(self) -> None:
        self.administration.purge(self._node())

    def _purge_outgoing(self) -> None:
        self.administration.purge_outgoing(self._node())

    def _delete(self) -> None:
        """A queue is deleted; sometimes its senders cannot have heard yet what it took."""
        node = self._node()
        if self.world.chance(0.5):
            for other in self.nodes:
                if other is not node:
                    self.network.part(node, other, self.world.random.uniform(1.0, 30.0))
        self.administration.delete(node)
