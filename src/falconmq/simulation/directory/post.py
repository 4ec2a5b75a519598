"""The way of replication messages: late, in another order, twice, or not at all.

They are express messages: they wait at their sender while its way is cut or the other one is down,
die with the sender, and end when their time is over. A change request that ends so may come back to
its sender as a negative acknowledgement, or may not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.directory.replication.effects import Send
from falconmq.directory.replication.profiles import PROFILES
from falconmq.simulation.world import World
from falconmq.wire.replication_messages import (
    ChangeRequestMessage,
    ReplicationMessage,
    decode_replication_message,
)

if TYPE_CHECKING:
    from falconmq.simulation.directory.server import DirectoryServer

_LATE: Final = (0.5, 4.0, 15.0, 60.0, 400.0)


@dataclass
class Weather:
    """How bad the ways are, as chances of a message."""

    latency: float = 0.01
    loss: float = 0.0
    doubling: float = 0.0
    lateness: float = 0.0

    def clear(self) -> None:
        self.latency, self.loss, self.doubling, self.lateness = 0.01, 0.0, 0.0, 0.0


@dataclass(frozen=True, slots=True)
class _Letter:
    sender: DirectoryServer
    life: int
    machine: str
    data: bytes
    expires: float
    is_request: bool
    kind: str


@dataclass(eq=False)
class Post:
    """Between all servers of a world."""

    world: World
    weather: Weather = field(default_factory=Weather)
    servers: dict[str, DirectoryServer] = field(default_factory=dict)
    trusted: dict[UUID, str] = field(default_factory=dict)
    messages: int = 0
    _cuts: dict[frozenset[str], float] = field(default_factory=dict)

    def add(self, server: DirectoryServer) -> None:
        self.servers[server.name] = server
        self.trusted[server.identifier] = server.name

    def cut(self, one: str, other: str, seconds: float) -> None:
        """Nothing passes between two servers for a while."""
        way = frozenset((one, other))
        self._cuts[way] = max(self._cuts.get(way, 0.0), self.world.now + seconds)

    def repair(self) -> None:
        self._cuts.clear()
        self.weather.clear()

    def decode(self, data: bytes) -> ReplicationMessage:
        return decode_replication_message(data)

    def decode_request(self, data: bytes) -> ChangeRequestMessage:
        message = decode_replication_message(data)
        assert isinstance(message, ChangeRequestMessage)
        return message

    def send(self, sender: DirectoryServer, send: Send) -> None:
        weather, world = self.weather, self.world
        self.messages += 1
        kind = type(send.message).__name__.removesuffix("Message")
        if world.chance(weather.loss):
            world.counts["message lost"] += 1
            world.note(sender.name, "%s to %s is lost", kind, send.machine)
            return
        letter = _Letter(
            sender,
            sender.life,
            send.machine,
            send.message.encode(),
            world.now + PROFILES[send.profile].timeout_seconds,
            isinstance(send.message, ChangeRequestMessage),
            kind,
        )
        self._leave(letter)
        if world.chance(weather.doubling):
            world.counts["message doubled"] += 1
            self._leave(letter)

    def _leave(self, letter: _Letter) -> None:
        world, weather = self.world, self.weather
        seconds = weather.latency  # the same for all: what is not late keeps its order
        if world.chance(weather.lateness):
            world.counts["message late"] += 1
            seconds += world.random.choice(_LATE) * world.random.random()
        world.after(seconds, lambda: self._arrive(letter))

    def _arrive(self, letter: _Letter) -> None:
        sender, world = letter.sender, self.world
        target = self.servers.get(letter.machine)
        if world.now > letter.expires:
            self._expire(letter)
        elif target is None or not target.is_up or self._is_cut(sender.name, letter.machine):
            if sender.is_up and sender.life == letter.life:
                world.after(world.random.uniform(1.0, 30.0), lambda: self._arrive(letter))
        else:
            world.note(letter.machine, "%s of %s", letter.kind, sender.name)
            target.receive(letter.data, sender.identifier)

    def _expire(self, letter: _Letter) -> None:
        sender = letter.sender
        self.world.counts["message expired"] += 1
        if letter.is_request and sender.life == letter.life and self.world.chance(0.5):
            self.world.note(sender.name, "%s to %s came back", letter.kind, letter.machine)
            sender.nacked(letter.data)

    def _is_cut(self, one: str, other: str) -> bool:
        return self._cuts.get(frozenset((one, other)), 0.0) > self.world.now
