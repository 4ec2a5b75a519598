"""Whoever runs the enterprise: servers come and go, and roles move from one to another.

A role moves as the documentation says: the old holder must not decide any more before the new one
begins, and the new one must know everything that was decided. Each task is a few steps; one that
cannot be done now (somebody is down, a way is cut) is tried again later, until it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.properties import E_PECNAME
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.site_removal import remove_site
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.writes import RequestedChange
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.states import DirectoryResult
from falconmq.simulation.directory.enterprise import DOMAIN, Enterprise
from falconmq.simulation.directory.gathering import act
from falconmq.simulation.directory.ledger import Outcome
from falconmq.simulation.directory.server import DirectoryServer
from falconmq.wire.directory_change import UPDATE

Step = Callable[[], bool]
"""One step of a task: whether it is done now."""

_AGAIN_SECONDS: Final = (3.0, 20.0)
_SERVERS_MAX: Final = 7


class Operator:
    """One task at a time."""

    def __init__(self, enterprise: Enterprise) -> None:
        self._enterprise = enterprise
        self._world = enterprise.world
        self.task = ""  # what is under way

    def move_psc(self) -> None:
        """A BSC becomes the PSC of its site, and the PSC a BSC."""
        enterprise, random = self._enterprise, self._world.random
        sites = [
            site
            for site, name in enterprise.controllers.items()
            if name != enterprise.pec_name and enterprise.bscs(site)
        ]
        if sites and not self.task:
            site = random.choice(sites)
            old, new = enterprise.psc(site), random.choice(enterprise.bscs(site))
            task = f"{new.name} becomes PSC instead of {old.name}"
            self.begin("PSC moves", task, self._moving_psc(site, old, new))

    def move_pec(self) -> None:
        """Another PSC becomes the PEC."""
        enterprise = self._enterprise
        others = [name for name in enterprise.controllers.values() if name != enterprise.pec_name]
        if others and not self.task:
            old, new = enterprise.pec, enterprise.servers[self._world.random.choice(others)]
            task = f"{new.name} becomes PEC instead of {old.name}"
            self.begin("PEC moves", task, self._moving_pec(old, new))

    def add_bsc(self) -> None:
        enterprise = self._enterprise
        if not self.task and len(enterprise.servers) < _SERVERS_MAX:
            site = self._world.random.choice(list(enterprise.controllers))
            bsc = enterprise.add_server(Role.BSC, site)
            self.begin("new BSC", f"{bsc.name} becomes a BSC", self._adding(bsc))

    def add_site(self) -> None:
        enterprise = self._enterprise
        if not self.task and len(enterprise.servers) < _SERVERS_MAX:
            site = enterprise.new_site()
            psc = enterprise.add_server(Role.PSC, site)
            self.begin("new site", f"{psc.name} gets a site", self._adding_site(site, psc))

    def remove_bsc(self) -> None:
        enterprise = self._enterprise
        bscs = [bsc for site in enterprise.controllers for bsc in enterprise.bscs(site)]
        if bscs and not self.task:
            bsc = self._world.random.choice(bscs)
            self.begin("BSC leaves", f"{bsc.name} leaves", self._removing(bsc))

    def remove_site(self) -> None:
        """The servers of a site are switched off for good, and the site is taken away."""
        enterprise = self._enterprise
        sites = [
            site for site, name in enterprise.controllers.items() if name != enterprise.pec_name
        ]
        if sites and not self.task:
            site = self._world.random.choice(sites)
            task = f"{enterprise.site_names[site]} is removed"
            self.begin("site removed", task, self._removing_site(site))

    def begin(self, kind: str, task: str, steps: Iterator[Step]) -> None:
        self.task = task
        self._world.counts[kind] += 1
        self._world.note("operator", "begins: %s", task)
        self._go_on(steps, next(steps))

    def _go_on(self, steps: Iterator[Step], step: Step | None) -> None:
        while step is not None and step():
            step = next(steps, None)
        if step is None:
            self._world.note("operator", "done: %s", self.task)
            self.task = ""
            return
        again = step
        seconds = self._world.random.uniform(*_AGAIN_SECONDS)
        self._world.after(seconds, lambda: self._go_on(steps, again))

    # The steps of each task

    def _moving_psc(self, site: UUID, old: DirectoryServer, new: DirectoryServer) -> Iterator[Step]:
        """Say it in the directory; the servers do the rest."""
        enterprise = self._enterprise
        yield lambda: self.name_controller(site, new)
        yield lambda: new.owns(site)
        enterprise.controllers[site] = new.name
        old.role, old.psc_name, new.role, new.psc_name = Role.BSC, new.name, Role.PSC, ""
        yield lambda: all(_follows(bsc, site, new) for bsc in enterprise.bscs(site))

    def _moving_pec(self, old: DirectoryServer, new: DirectoryServer) -> Iterator[Step]:
        enterprise = self._enterprise
        yield lambda: self._name_pec(old, new)
        yield lambda: _follows(new, ENTERPRISE_PARTITION, new)

        enterprise.pec_name = new.name
        for server in enterprise.servers.values():
            server.pec_name = new.name
        old.role, new.role = Role.PSC, Role.PEC
        yield lambda: new.owns(ENTERPRISE_PARTITION)

    def _adding(self, bsc: DirectoryServer) -> Iterator[Step]:
        yield lambda: self._register(bsc)
        bsc.start()

    def _adding_site(self, site: UUID, psc: DirectoryServer) -> Iterator[Step]:
        enterprise = self._enterprise
        enterprise.controllers[site] = psc.name
        yield lambda: self.create_site(site)
        psc.start()
        yield lambda: psc.owns(site)
        yield lambda: self._register(psc)

    def _removing(self, bsc: DirectoryServer) -> Iterator[Step]:
        enterprise = self._enterprise
        yield lambda: self.unregister(bsc)
        bsc.crash()
        bsc.is_kept_down = True
        del enterprise.servers[bsc.name]

    def _removing_site(self, site: UUID) -> Iterator[Step]:
        enterprise = self._enterprise
        gone = [server for server in enterprise.servers.values() if server.site == site]
        for server in gone:
            server.crash()
            server.is_kept_down = True
            del enterprise.servers[server.name]
        del enterprise.controllers[site]
        yield lambda: self.take_away(site)

    # Single steps

    def take_away(self, site: UUID) -> bool:
        """Let the PEC delete a site, and all that is in it."""
        pec = self._enterprise.pec
        if not pec.owns(ENTERPRISE_PARTITION):
            return False
        is_known = pec.partition(site) is not None  # or else the power failed before it said so
        if is_known and not act(pec, lambda server: remove_site(server, site)):
            return False
        self._enterprise.has_lost(site)
        return True

    def name_controller(self, site: UUID, new: DirectoryServer) -> bool:
        enterprise = self._enterprise
        pec, name = enterprise.pec, (tables.SITE, enterprise.site_names[site])
        if not pec.owns(ENTERPRISE_PARTITION):
            return False
        change = enterprise.change(pec, name, new.name)
        return change is not None and change.outcome is Outcome.DONE

    def is_named(self, server: DirectoryServer, site: UUID) -> bool:
        """Whether the PEC has it as who decides about a site, or does not know the site."""
        enterprise = self._enterprise
        row = enterprise.find(enterprise.pec, (tables.SITE, enterprise.site_names[site]))
        return row is None or row["primary_site_controller"] == server.name

    def _name_pec(self, old: DirectoryServer, new: DirectoryServer) -> bool:
        if _follows(old, ENTERPRISE_PARTITION, new):
            return True  # the power failed before it could say so
        engine = old.engine
        if engine is None or not old.owns(ENTERPRISE_PARTITION):
            return False
        wanted = RequestedChange(UPDATE, DOMAIN, ENTERPRISE_PARTITION, [(E_PECNAME, new.name)])

        def asked(_: object) -> DirectoryResult:
            try:
                is_done = engine.request(wanted).status == MqStatus.OK
            except FalconMQError:  # the disk is full
                is_done = False
            return DirectoryResult.SUCCESS if is_done else DirectoryResult.GENERIC_ERROR

        return old.ask(asked)[0] is DirectoryResult.SUCCESS

    def create_site(self, site: UUID) -> bool:
        enterprise = self._enterprise
        if not enterprise.pec.owns(ENTERPRISE_PARTITION):
            return False
        name = (tables.SITE, enterprise.site_names[site])
        if enterprise.find(enterprise.pec, name) is not None:
            return True
        return enterprise.create_site(site).outcome is Outcome.DONE

    def _register(self, server: DirectoryServer) -> bool:
        enterprise = self._enterprise
        psc = enterprise.psc(server.site)
        if not psc.owns(server.site):
            return False
        return enterprise.register(server).outcome is Outcome.DONE

    def unregister(self, server: DirectoryServer) -> bool:
        enterprise = self._enterprise
        psc, name = enterprise.psc(server.site), (tables.QUEUE_MANAGER, server.name)
        if not psc.owns(server.site):
            return False
        change = enterprise.delete(psc, name)
        return change is None or change.outcome is Outcome.DONE


def _follows(server: DirectoryServer, partition: UUID, authority: DirectoryServer) -> bool:
    known = server.partition(partition)
    return known is not None and known.authority == authority.name
