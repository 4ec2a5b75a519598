"""Servers that are gone for good: others take over what they decided, and some come back after all.

The operator does what the documentation says: he lets the one that has most take over, lets it ask
everybody who can be reached, and only then begin. What nobody had but the dead server is forgiven;
everything else must be there in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication import requesting, taking_over
from falconmq.directory.replication.properties import S_PSC
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.writes import RequestedChange
from falconmq.simulation.directory.comparing import asks, differences, furthest, is_now
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.gathering import Gathering, act
from falconmq.simulation.directory.ledger import Name, Outcome
from falconmq.simulation.directory.operator import Operator, Step
from falconmq.simulation.directory.server import DirectoryServer
from falconmq.wire.directory_change import UPDATE


class Losses:
    """What dies, and who takes over."""

    def __init__(self, enterprise: Enterprise, operator: Operator) -> None:
        self._enterprise = enterprise
        self._operator = operator
        self._gathering = Gathering(enterprise)
        self._world = enterprise.world
        self._had_one: set[UUID] = set()  # partitions whose authority died

    def lose_psc(self) -> None:
        """A PSC dies; one of its backups takes over."""
        enterprise = self._enterprise
        sites = [
            site
            for site, name in enterprise.controllers.items()
            if name != enterprise.pec_name and self._heirs(site) and site not in self._had_one
        ]
        if sites and not self._operator.task:
            site = self._world.random.choice(sites)
            self._had_one.add(site)
            dead, heir = enterprise.psc(site), furthest(self._heirs(site), site)
            self._die(dead)
            task = f"{heir.name} takes over from {dead.name}"
            self._operator.begin("PSC lost", task, self._taking_site(site, dead, heir))

    def lose_pec(self) -> None:
        """The PEC dies; another PSC takes over, or one of its backups with its site."""
        enterprise, random = self._enterprise, self._world.random
        dead = enterprise.pec
        site = dead.site
        if self._operator.task or self._had_one & {ENTERPRISE_PARTITION, site}:
            return
        pscs = [
            enterprise.servers[name]
            for name in enterprise.controllers.values()
            if name != dead.name
        ]
        others = [psc for psc in pscs if psc.is_up]
        heirs = self._heirs(site)
        if heirs and (not others or random.random() < 0.5):
            heir = furthest(heirs, ENTERPRISE_PARTITION)
            steps = self._taking_both(site, dead, heir)
            self._had_one.add(site)
        elif others:
            hasty = [psc for psc in others if self._gathering.knows_roles(psc)]
            is_hasty = bool(hasty) and self._world.chance(0.3)
            heir = random.choice(hasty) if is_hasty else furthest(others, ENTERPRISE_PARTITION)
            steps = self._taking_enterprise(dead, heir, is_hasty=is_hasty)
        else:
            return
        self._had_one.add(ENTERPRISE_PARTITION)
        self._die(dead)
        self._operator.begin("PEC lost", f"{heir.name} takes over from the PEC {dead.name}", steps)

    def _heirs(self, site: UUID) -> list[DirectoryServer]:
        """The backups of a site that can take over: they have all of it, also themselves."""
        found = []
        for bsc in self._enterprise.bscs(site):
            known = [bsc.partition(each) for each in (site, ENTERPRISE_PARTITION)]
            is_whole = all(each is not None and each.state == "NORMAL" for each in known)
            if is_whole and self._enterprise.find(bsc, _machine(bsc.name)) is not None:
                found.append(bsc)
        return found

    def _die(self, server: DirectoryServer) -> None:
        self._world.note(server.name, "is gone for good")
        server.crash()
        server.is_kept_down = True

    # The steps of each task

    def _taking_site(
        self, site: UUID, dead: DirectoryServer, heir: DirectoryServer
    ) -> Iterator[Step]:
        enterprise = self._enterprise
        yield lambda: self._gathering.gather(heir, site, dead)
        yield lambda: self._claim(heir, site)
        yield lambda: self._take(heir, dead, [site], taking_over.take_over_site)
        enterprise.controllers[site] = heir.name
        heir.role = Role.PSC
        yield from self._end_of(dead, Role.BSC, heir)

    def _taking_enterprise(
        self, dead: DirectoryServer, heir: DirectoryServer, *, is_hasty: bool
    ) -> Iterator[Step]:
        """`is_hasty`: with what it has, whatever others have heard."""
        self._world.counts["hasty take-over"] += is_hasty
        if not is_hasty or not self._gathering.knows_roles(heir):
            yield lambda: self._gathering.gather(heir, ENTERPRISE_PARTITION, dead)
            yield lambda: self._gathering.knows_sites(heir, dead)
        take = taking_over.take_over_enterprise
        yield lambda: self._take(heir, dead, [ENTERPRISE_PARTITION], take)
        self._has_new_pec(heir)
        heir.role = Role.PEC
        yield from self._mend_sites(heir)
        yield from self._mend_roles()
        yield from self._coming_back(dead, Role.PSC)

    def _taking_both(
        self, site: UUID, dead: DirectoryServer, heir: DirectoryServer
    ) -> Iterator[Step]:
        enterprise, both = self._enterprise, [ENTERPRISE_PARTITION, site]
        for partition in both:
            yield partial(self._gathering.gather, heir, partition, dead)
        yield lambda: self._gathering.knows_sites(heir, dead)
        yield lambda: self._take(heir, dead, both, taking_over.take_over_both)
        enterprise.name_controller(site, heir)
        enterprise.controllers[site] = heir.name
        self._has_new_pec(heir)
        heir.role = Role.PEC
        yield from self._mend_sites(heir)
        yield from self._mend_roles()
        yield from self._end_of(dead, Role.BSC, heir)

    def _end_of(self, dead: DirectoryServer, role: Role, heir: DirectoryServer) -> Iterator[Step]:
        """The dead server comes back, or is taken out of the directory."""
        for server in list(self._enterprise.servers.values()):
            if server.site == heir.site:
                yield partial(self._register, heir, server)
        yield lambda: self._forget_who_left(heir)
        if self._world.chance(0.3):
            yield lambda: self._operator.unregister(dead)
            del self._enterprise.servers[dead.name]
        else:
            yield from self._coming_back(dead, role)
        yield lambda: all(
            self._has_joined(bsc, heir)
            for bsc in self._enterprise.bscs(heir.site)
            if bsc is not dead
        )

    def _coming_back(self, dead: DirectoryServer, role: Role) -> Iterator[Step]:
        """With the configuration that it had, or with that of its new role."""
        until = self._world.now + self._world.random.choice((1.0, 60.0, 500.0))
        yield lambda: self._world.now >= until
        self._world.counts["back from the dead"] += 1
        self._enterprise.came_back(dead)
        if self._world.chance(0.3):
            self._configure(dead, role)
        dead.is_kept_down = False
        dead.start()
        yield lambda: is_now(dead, role)
        self._configure(dead, role)

    # Single steps

    def _mend_sites(self, heir: DirectoryServer) -> Iterator[Step]:
        """What was lost may be a site; its server has what it decided, and waits for the PEC.

        Or that a site was removed.
        """
        status = heir.status()
        known = [] if status is None else [each.partition_id for each in status.partitions]
        for site in known:
            if site not in (ENTERPRISE_PARTITION, *self._enterprise.controllers):
                self._world.counts["site removed once more"] += 1
                yield partial(self._operator.take_away, site)
        for site in list(self._enterprise.controllers):
            if heir.partition(site) is None:
                self._world.counts["site made once more"] += 1
                yield partial(self._operator.create_site, site)

    def _mend_roles(self) -> Iterator[Step]:
        """What was lost may be that somebody was named; then roles go back to whom it was before.

        It is said once more, and whoever has begun hands over again; or nobody does, if it was
        taken out of the directory.
        """
        for site, name in list(self._enterprise.controllers.items()):
            server = self._enterprise.servers[name]
            if not self._operator.is_named(server, site):
                self._world.counts["named once more"] += 1
                yield partial(self._operator.name_controller, site, server)
                yield partial(self._owns_again, server, site)

    def _owns_again(self, server: DirectoryServer, site: UUID) -> bool:
        if server.owns(site):
            return True
        status = server.status()
        if status is None or status.psc_name in ("", *self._enterprise.servers):
            return False  # it waits until the other one hands over
        if not self._claim(server, site):
            return False
        self._world.counts["taken over once more"] += 1
        return act(server, lambda each: taking_over.take_over_site(each, is_forced=True))

    def _register(self, heir: DirectoryServer, server: DirectoryServer) -> bool:
        """What was lost may be that a server was registered."""
        if not heir.owns(heir.site):
            return False
        return (
            self._enterprise.find(heir, _machine(server.name)) is not None
            or self._enterprise.register(server).outcome is Outcome.DONE
        )

    def _has_joined(self, bsc: DirectoryServer, heir: DirectoryServer) -> bool:
        """One that has no copy yet knows nobody but the dead server, by its configuration."""
        if bsc.is_up and bsc.partition(bsc.site) is None and bsc.psc_name != heir.name:
            bsc.psc_name = heir.name
            bsc.crash()
            bsc.start()
        return asks(bsc, heir)

    def _forget_who_left(self, heir: DirectoryServer) -> bool:
        """What was lost may be that a server was taken out of the directory."""
        enterprise = self._enterprise
        for name in enterprise.post.servers:
            if name in enterprise.servers or enterprise.find(heir, _machine(name)) is None:
                continue
            if not heir.is_up:
                return False
            change = enterprise.delete(heir, _machine(name))
            if change is None or change.outcome is not Outcome.DONE:
                return False
        return True

    def _claim(self, heir: DirectoryServer, site: UUID) -> bool:
        """Let the PEC name an heir, and the heir hear of it."""
        enterprise, pec = self._enterprise, self._enterprise.pec
        known = heir.partition(site)
        engine = heir.engine
        if engine is None or known is None or not pec.owns(ENTERPRISE_PARTITION):
            return False
        if known.authority == heir.name:
            return True
        name = (tables.SITE, enterprise.site_names[site])
        row = enterprise.find(pec, name)
        assert row is not None
        if row["primary_site_controller"] != heir.name:
            wanted = RequestedChange(UPDATE, name[1], ENTERPRISE_PARTITION, [(S_PSC, heir.name)])
            enterprise.ask_directly(heir, name, wanted, pec.name)
        else:
            act(
                heir,
                lambda server: requesting.ask_instead(server, server.enterprise, pec.name),
            )
        return False

    def _take(
        self,
        heir: DirectoryServer,
        dead: DirectoryServer,
        partitions: list[UUID],
        take: Callable[..., None],
    ) -> bool:
        if all(heir.owns(each) for each in partitions):
            return True  # the power failed before it could say so
        if heir.engine is None or any(
            known is None or known.state != "NORMAL"
            for known in (heir.partition(each) for each in partitions)
        ):
            return False
        for partition in partitions:
            for name in differences(dead, heir, partition):
                self._enterprise.ledger.forgive(name)
        self._world.counts["taken over"] += 1
        return act(heir, lambda server: take(server, is_forced=True))

    def _has_new_pec(self, heir: DirectoryServer) -> None:
        self._enterprise.pec_name = heir.name
        for server in self._enterprise.servers.values():
            server.pec_name = heir.name

    def _configure(self, server: DirectoryServer, role: Role) -> None:
        server.role = role
        server.psc_name = self._enterprise.controllers[server.site] if role is Role.BSC else ""


def _machine(name: str) -> Name:
    return tables.QUEUE_MANAGER, name
