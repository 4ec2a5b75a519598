"""A computer of the world: its disk, its clock and its identity.

What runs on it between a start and a crash or stop is a `Life` (`life`). Whatever the world still
holds of an earlier life (bytes on their way, timers, answers of the resolver) finds that this life
is over, and does nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.errors import FalconMQError
from falconmq.manager import lifecycle
from falconmq.manager.core import Settings
from falconmq.simulation.disk import Disk
from falconmq.simulation.life import Decision, Life
from falconmq.simulation.network import SimulatedNetwork
from falconmq.simulation.world import NodeClock, World
from falconmq.transport.routing import Router
from falconmq.transport.settings import PING_PORT, TransportSettings

if TYPE_CHECKING:
    from falconmq.simulation.ledger import Ledger

_SECONDS_TO_TRY_AGAIN: Final = 3.0  # of a queue manager that cannot write when it starts


class Node:
    """One computer; see the module."""

    def __init__(
        self,
        world: World,
        network: SimulatedNetwork,
        ledger: Ledger,
        *,
        name: str,
        address: str,
        settings: TransportSettings,
    ) -> None:
        self.world = world
        self.network = network
        self.ledger = ledger
        self.name = name
        self.address = address
        self.settings = settings
        self.identifier = UUID(int=world.random.getrandbits(128), version=4)
        self.router: Router
        self.clock = NodeClock(world)
        self.disk = Disk(world, name)
        self.disk.failed = self._commit_failed
        self.disk.power_failed = lambda: self.crash(silently=True)
        self.life: Life | None = None
        self._beginning: Life | None = None  # reads its store, nobody can reach it yet
        self.quota_kilobytes = Settings(name).quota_kilobytes
        self.was_full = False  # had no room at some time, and may have discarded answers
        self.deleted_queues: set[str] = set()  # the names of those that were, at some time
        self.decisions: dict[UUID, Decision] = {}  # about transactions that are prepared
        self.purged_outgoing_queues = False
        self.crashes = 0
        self.restores = 0
        self.stops = 0
        self.acknowledgements_seen: set[int] = set()  # lookup identifiers, for the ledger
        network.add(self)

    @property
    def is_up(self) -> bool:
        return self.life is not None

    def start(self) -> None:
        """Begin a life, with what the disk has; it serves when what it wrote first is durable."""
        if self.life is not None or self._beginning is not None:
            return
        life = self._beginning = Life(self)
        life.begin(lambda is_durable: self._begun(life, is_durable))

    def _begun(self, life: Life, is_durable: bool) -> None:
        if life.is_over or self._beginning is not life:
            return
        self._beginning = None
        if is_durable:
            self.life = life
            return
        life.is_over = True
        life.forget()
        self.world.note(self.name, "cannot start")
        self.world.after(_SECONDS_TO_TRY_AGAIN, self.start)

    def crash(self, *, silently: bool) -> None:
        """The power fails. Peers hear of it, or `silently` never."""
        life, self.life, self._beginning = self.life or self._beginning, None, None
        if life is None:
            return
        self.crashes += 1
        self.world.note(self.name, "CRASH%s", " (silent)" if silently else "")
        life.is_over = True
        self.disk.crash()
        life.forget()
        self.network.node_died(life, silently=silently)
        if self.world.chance(0.3):
            self.clock.reboot()

    def stop(self) -> None:
        """End in order: acknowledge what is durable, close the sessions, commit the last batch."""
        life = self.life
        if life is None:
            return
        self.stops += 1
        self.world.note(self.name, "STOP")
        life.turn(life.transport.stop)
        self.disk.flush()
        if self.life is not life:
            return  # the power failed in the middle
        life.turn(lambda: lifecycle.stop(life.core))
        self.disk.flush()
        self.life = None
        life.is_over = True
        life.forget()
        self.network.node_died(life, silently=False)

    def datagram_received(self, data: bytes, address: str, port: int) -> None:
        life = self.life
        if life is not None:
            is_answer = port == PING_PORT  # it comes to the socket that asked
            receive = partial(life.transport.datagram_received, is_answer=is_answer)
            life.turn(lambda: receive(data, address, port))

    def _commit_failed(self, error: FalconMQError) -> None:
        self.world.note(self.name, "commit failed: %s", error)
        self.restores += 1
        if self.life is not None:
            self.life.restore()
