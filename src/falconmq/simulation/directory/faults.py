"""What goes wrong in an enterprise, and when: drawn from the seed before the world begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.load import Load
from falconmq.simulation.directory.losses import Losses
from falconmq.simulation.directory.moving import Moves
from falconmq.simulation.directory.operator import Operator
from falconmq.simulation.directory.server import DirectoryServer

_EARLY: Final = 0.2  # worlds in which a site is made, and soon after the PEC is gone
_JUMPS: Final = (-3.0, 2.0, -60.0, 45.0, -7200.0, 3600.0, 86_400.0)


@dataclass(eq=False)
class FaultPlan:
    """The faults of one run; everything is repaired at the end of it."""

    enterprise: Enterprise
    operator: Operator
    load: Load
    seconds: float
    _is_over: bool = False

    def schedule(self) -> None:
        world, operator = self.enterprise.world, self.operator
        random = world.random
        self._choose_weather()
        faults: list[Callable[[], None]] = [
            self._crash,
            self._crash,
            self._crash_at_commit,
            self._crash_at_commit,
            self._crash_at_commit,
            self._go_away,
            self._go_away,
            self._cut,
            self._cut,
            self._isolate,
            self._jump,
            self._disk_full,
            self._choose_weather,
            operator.move_psc,
            operator.move_psc,
            operator.move_pec,
            operator.add_bsc,
            operator.add_site,
            operator.remove_bsc,
        ]
        begin = world.now
        self._schedule_losses()
        self._schedule_removal()
        self._schedule_moves()
        for _ in range(random.choice((0, 2, 4, 8, 14))):
            world.at(begin + random.uniform(0.0, self.seconds * 0.9), random.choice(faults))
        world.at(begin + self.seconds, self.repair)

    def _schedule_losses(self) -> None:
        """In some worlds a server dies for good; drawn apart, so that others stay as they are."""
        world = self.enterprise.world
        random = Random(f"{world.seed}/losses")  # noqa: S311
        losses = Losses(self.enterprise, self.operator)
        if random.random() < _EARLY:
            begin = world.now + random.uniform(0.0, self.seconds * 0.8)
            world.at(begin, self.operator.add_site)
            for seconds in random.sample(range(1, 60), 5):  # as soon as the operator has time
                world.at(begin + seconds, losses.lose_pec)
        for _ in range(random.choice((0, 1, 3))):
            loss = random.choice((losses.lose_psc, losses.lose_pec))
            world.at(world.now + random.uniform(0.0, self.seconds * 0.9), loss)

    def _schedule_removal(self) -> None:
        """In some worlds a site is given up."""
        world = self.enterprise.world
        random = Random(f"{world.seed}/removal")  # noqa: S311
        for _ in range(random.choice((0, 0, 0, 1))):
            begin = world.now + random.uniform(0.0, self.seconds * 0.9)
            world.at(begin, self.operator.remove_site)

    def _schedule_moves(self) -> None:
        """In some worlds queue managers move to other sites."""
        world = self.enterprise.world
        random = Random(f"{world.seed}/moves")  # noqa: S311
        moves = Moves(self.enterprise, self.load, random, world.now + self.seconds)
        for _ in range(random.choice((0, 0, 0, 2, 6))):
            world.at(world.now + random.uniform(0.0, self.seconds * 0.9), moves.begin)

    def repair(self) -> None:
        """The end of all troubles; what the operator is about to do he still does."""
        self._is_over = True
        self.enterprise.world.note("world", "everything is repaired")
        self.enterprise.post.repair()
        for server in self.enterprise.servers.values():
            server.store.is_full = False
            if server.is_doomed:
                server.crash()  # now, and not when all should be quiet
            self._wake(server)

    def _wake(self, server: DirectoryServer) -> None:
        # A new server, or one that gives its role away, is started when it is its turn.
        if server.life and not server.is_kept_down:
            server.start()

    def _server(self) -> DirectoryServer:
        return self.enterprise.world.random.choice(list(self.enterprise.servers.values()))

    def _count(self, kind: str, server: DirectoryServer) -> None:
        self.enterprise.world.counts[kind] += 1
        self.enterprise.world.note(server.name, "fault: %s", kind)

    def _choose_weather(self) -> None:
        random, weather = self.enterprise.world.random, self.enterprise.post.weather
        weather.latency = random.choice((0.001, 0.1, 2.0))
        weather.loss = random.choice((0.0, 0.05, 0.3))
        weather.doubling = random.choice((0.0, 0.0, 0.1, 0.3))
        weather.lateness = random.choice((0.0, 0.1, 0.4))

    def _crash(self) -> None:
        server, world = self._server(), self.enterprise.world
        if server.is_up:
            self._count("crash", server)
            server.crash()
            world.after(world.random.choice((0.01, 5.0, 60.0)), partial(self._wake, server))

    def _crash_at_commit(self) -> None:
        server = self._server()
        if server.is_up:
            server.fail_in_commit(self.enterprise.world.random.randint(1, 6))

    def _go_away(self) -> None:
        """A server is down for so long that the others forget deletions, while much is deleted."""
        server, world = self._server(), self.enterprise.world
        if not server.is_up:
            return
        self._count("long absence", server)
        server.crash()
        seconds = world.random.choice((200.0, 600.0))
        for _ in range(world.random.choice((1, 3, 6))):
            world.after(world.random.uniform(0.0, seconds), self._burst)
        world.after(seconds, partial(self._come_back, server))

    def _come_back(self, server: DirectoryServer) -> None:
        """Begin again; often the power fails while everything is fetched anew."""
        self._wake(server)
        if server.is_up and not self._is_over and self.enterprise.world.chance(0.6):
            server.fail_in_commit(self.enterprise.world.random.randint(1, 8))

    def _burst(self) -> None:
        if not self._is_over:
            self.load.burst()

    def _cut(self) -> None:
        world = self.enterprise.world
        servers = list(self.enterprise.servers.values())
        if len(servers) < 2:
            return  # all other sites are gone
        one, other = world.random.sample(servers, 2)
        self._count("cut", one)
        self.enterprise.post.cut(one.name, other.name, world.random.choice((5.0, 60.0, 600.0)))

    def _isolate(self) -> None:
        """One server is parted from all others, and goes on."""
        server, world = self._server(), self.enterprise.world
        self._count("isolated", server)
        seconds = world.random.choice((20.0, 120.0, 600.0))
        for name in self.enterprise.servers:
            if name != server.name:
                self.enterprise.post.cut(server.name, name, seconds)
        for _ in range(world.random.choice((0, 3))):
            world.after(world.random.uniform(0.0, seconds), self._burst)

    def _jump(self) -> None:
        server = self._server()
        self._count("clock jump", server)
        server.clock.jump(self.enterprise.world.random.choice(_JUMPS))

    def _disk_full(self) -> None:
        server, world = self._server(), self.enterprise.world
        self._count("disk full", server)
        server.store.is_full = True

        def make_room() -> None:
            server.store.is_full = False

        world.after(world.random.choice((2.0, 20.0, 90.0)), make_room)
