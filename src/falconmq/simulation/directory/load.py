"""What administrators and applications do: create, change and delete, at any server.

Names are used again, machines have queues, and now and then somebody deletes much at once, so that
deletions are forgotten while somebody is away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.manager.states import QueueScope
from falconmq.simulation.directory.enterprise import DOMAIN, NEAR, Enterprise
from falconmq.simulation.directory.ledger import Name
from falconmq.simulation.directory.server import DirectoryServer

_QUEUES_OF_A_MACHINE: Final = 4  # names; so they are used again


class Load:
    """The changes of one run."""

    def __init__(self, enterprise: Enterprise) -> None:
        self._enterprise = enterprise
        self._world = enterprise.world
        self._machines: list[tuple[str, UUID]] = []
        self._values = 0

    def step(self) -> None:
        """Somebody does something, mostly where it is decided."""
        random = self._world.random
        match random.randrange(16):
            case 0:
                self._add_machine()
            case 1:
                self._delete_machine()
            case 2 | 3 | 4:
                self._enterprise_object()
            case 5 | 6 | 7 | 8:
                self._on_queue(self._delete)
            case 9 | 10 | 11:
                self._on_queue(self._change)
            case 12:
                self.burst()
            case _:
                self._add_queue()

    def burst(self) -> None:
        """Many changes of one site in a moment, most of them undone."""
        random = self._world.random
        machines = self.machines_now()
        if not machines:
            self._add_machine()
            return
        machine, site = random.choice(machines)
        at = self._enterprise.psc(site)
        for number in range(random.choice((4, 8, 12))):
            name = (tables.QUEUE, f"{machine}\\burst{number}")
            if at.is_up and self._enterprise.find(at, name) is None:
                self._enterprise.create(at, name, self.value("burst"))
            if random.random() < 0.7:
                self._delete(at, name)

    def machines_now(self) -> list[tuple[str, UUID]]:
        """Without those of sites that are gone."""
        return [each for each in self._machines if each[1] in self._enterprise.controllers]

    def moved(self, machine: str, site: UUID) -> None:
        """A queue manager is of another site from now on."""
        self._machines = [each for each in self._machines if each[0] != machine]
        self._machines.append((machine, site))

    def value(self, what: str) -> str:
        self._values += 1
        return f"{what} {self._values}"

    def _server(self, partition: UUID) -> DirectoryServer | None:
        """Where somebody asks: mostly at the authority."""
        random = self._world.random
        at = self._enterprise.authority(partition)
        if random.random() < 0.4:
            at = random.choice(list(self._enterprise.servers.values()))
        return at if at.is_up else None

    def _add_machine(self) -> None:
        site = self._world.random.choice(list(self._enterprise.controllers))
        at = self._server(site)
        if at is not None:
            value = self.value("machine")
            name = value.replace(" ", "").upper()
            self._machines.append((name, site))
            key = (tables.QUEUE_MANAGER, name)
            self._enterprise.create(at, key, value, site_identifiers=[site])

    def _delete_machine(self) -> None:
        machines = self.machines_now()
        if machines and self._world.chance(0.5):
            machine, site = self._world.random.choice(machines)
            at = self._server(site)
            if at is not None:
                self._enterprise.delete(at, (tables.QUEUE_MANAGER, machine))

    def _add_queue(self) -> None:
        name, at = self._any_queue()
        if at is not None:
            self.create_queue(at, name)

    def create_queue(self, at: DirectoryServer, name: Name) -> None:
        scope = QueueScope.SITE if NEAR in name[1] else QueueScope.ENTERPRISE
        self._enterprise.create(at, name, self.value("new"), scope=scope)

    def _on_queue(self, action: Callable[[DirectoryServer, Name], None]) -> None:
        name, at = self._any_queue()
        if at is not None:
            action(at, name)

    def _delete(self, at: DirectoryServer, name: Name) -> None:
        if at.is_up:
            self._enterprise.delete(at, name)

    def _change(self, at: DirectoryServer, name: Name) -> None:
        self._enterprise.change(at, name, self.value("changed"))

    def _any_queue(self) -> tuple[Name, DirectoryServer | None]:
        random = self._world.random
        machines = self.machines_now()
        if not machines:
            return (tables.QUEUE, ""), None
        machine, site = random.choice(machines)
        number = random.randrange(_QUEUES_OF_A_MACHINE)
        queue = f"{machine}\\queue{number}" if number else f"{machine}{NEAR}"
        return (tables.QUEUE, queue), self._server(site)

    def _enterprise_object(self) -> None:
        random, enterprise = self._world.random, self._enterprise
        at = self._server(ENTERPRISE_PARTITION)
        if at is None:
            return
        network = (tables.CONNECTED_NETWORK, f"net{random.randrange(5)}")
        match random.randrange(6):
            case 0:
                value = random.randrange(1, 1 << 30)
                enterprise.change(at, (tables.ENTERPRISE, DOMAIN), value)
            case 1 | 2:
                enterprise.create(at, network, random.randrange(1, 200))
            case 3:
                enterprise.delete(at, network)
            case 4:
                self._add_link(at)
            case _:
                self._on_link(at)

    def _add_link(self, at: DirectoryServer) -> None:
        random, enterprise = self._world.random, self._enterprise
        sites = list(enterprise.controllers)
        if len(sites) > 1:
            one, other = random.sample(sites, 2)
            name = (tables.ROUTING_LINK, str(UUID(int=random.getrandbits(128), version=4)))
            enterprise.create(
                at,
                name,
                self.value("link"),
                identifier=UUID(name[1]),
                site1_identifier=one,
                site2_identifier=other,
                actual_cost=random.randrange(1, 1000),
            )

    def _on_link(self, at: DirectoryServer) -> None:
        known = [name for name in self._enterprise.ledger.names if name[0] == tables.ROUTING_LINK]
        if known:
            name = self._world.random.choice(known)
            if self._world.chance(0.5):
                self._enterprise.delete(at, name)
            else:
                value = self.value("relinked")
                self._enterprise.change(at, name, value)
