"""How an heir comes to know what others know, before it takes over from a dead server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication import eras, taking_over
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.errors import FalconMQError
from falconmq.manager.states import DirectoryResult
from falconmq.simulation.directory.comparing import furthest
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.server import DirectoryServer


class Gathering:
    """See the module."""

    def __init__(self, enterprise: Enterprise) -> None:
        self._enterprise = enterprise
        self._world = enterprise.world
        # Who tells an heir everything, by its name, its life and the partition.
        self._tellers: dict[tuple[str, int, UUID], DirectoryServer] = {}

    def pscs(self, dead: DirectoryServer) -> list[DirectoryServer]:
        names = self._enterprise.controllers.values()
        return [self._enterprise.servers[name] for name in names if name != dead.name]

    def backups(self, dead: DirectoryServer, heir: DirectoryServer) -> list[DirectoryServer]:
        """Those of the dead server, and those of the heir's own site."""
        sites = dict.fromkeys([dead.site, heir.site])
        return [bsc for site in sites for bsc in self._enterprise.bscs(site) if bsc is not dead]

    def gather(self, heir: DirectoryServer, partition: UUID, dead: DirectoryServer) -> bool:
        """Let an heir ask the backups first, and then the PSCs."""
        return self._gather(heir, partition, dead, self.backups(dead, heir)) and self._gather(
            heir, partition, dead, self.pscs(dead)
        )

    def _gather(
        self,
        heir: DirectoryServer,
        partition: UUID,
        dead: DirectoryServer,
        others: Iterable[DirectoryServer],
    ) -> bool:
        """Let an heir ask, until it has what everybody has; not what it cannot be told any more."""
        known = heir.partition(partition)
        if known is None:
            return False
        if known.state != "NORMAL":
            self._fetch_whole(heir, partition, dead)
            return False
        further = []
        for other in others:
            there = other.partition(partition) if other is not heir else None
            if there is not None and there.state == "NORMAL" and there.last > known.last:
                further.append(other)
                if there.purged > known.last:
                    self._world.counts["heir too far behind"] += 1
                    return True
        names = [other.name for other in further]
        silent: list[str] = []

        def ask(server: Server) -> None:
            # Who has counted over what is not for it has a greater number, and nothing to tell.
            asked = server.asked_around.get(partition)
            answered = set() if asked is None else asked.answered
            silent[:] = [name for name in names if name.lower() not in answered]
            taking_over.ask_around(server, server.state.partitions[partition], silent)

        return not names or (act(heir, ask) and not silent)

    def knows_sites(self, heir: DirectoryServer, dead: DirectoryServer) -> bool:
        """The one server that has heard of a new site may be away: then the operator waits.

        If all are there, nobody can tell of it, and it is made once more.
        """
        if all(heir.partition(site) is not None for site in self._enterprise.controllers):
            return True
        others = self.pscs(dead)
        has_all = self.gather(heir, ENTERPRISE_PARTITION, dead)
        return has_all and all(other.is_up for other in others)

    def knows_roles(self, server: DirectoryServer) -> bool:
        """Whether its directory names who decides, for all sites that it knows.

        Otherwise the naming is lost with the PEC, and roles go back to whom the directory names.
        """
        if not _is_whole(server, ENTERPRISE_PARTITION):
            return False
        for site, controller in self._enterprise.controllers.items():
            row = self._enterprise.find(server, (tables.SITE, self._enterprise.site_names[site]))
            if row is not None and row["primary_site_controller"] != controller:
                return False
        return True

    def _fetch_whole(self, heir: DirectoryServer, partition: UUID, dead: DirectoryServer) -> None:
        """The dead server was telling an heir everything anew: somebody else has to."""
        known = heir.partition(partition)
        if known is None or known.state != "SYNC0":
            return
        key = heir.name, heir.life, partition
        teller = self._tellers.get(key)
        if teller is not None and _is_whole(teller, partition):
            return  # it is on the way
        for others in (self.backups(dead, heir), self.pscs(dead)):
            whole = [other for other in others if other is not heir and _is_whole(other, partition)]
            if whole:
                self._tell_whole(heir, partition, furthest(whole, partition))
                return

    def _tell_whole(self, heir: DirectoryServer, partition: UUID, teller: DirectoryServer) -> None:
        def fetch(server: Server) -> None:
            eras.fetch_whole(server, server.state.partitions[partition], teller.name)

        if act(heir, fetch):
            self._tellers[heir.name, heir.life, partition] = teller
            self._world.counts["whole from a copy"] += 1


def act(at: DirectoryServer, action: Callable[[Server], None]) -> bool:
    """One turn at a server, as its operator lets it do something."""
    engine = at.engine
    if engine is None:
        return False

    def asked(_: object) -> DirectoryResult:
        try:
            engine.command(action)
        except FalconMQError as error:  # the disk is full
            at.world.note(at.name, "refused: %s", error)
            return DirectoryResult.GENERIC_ERROR
        return DirectoryResult.SUCCESS

    return at.ask(asked)[0] is DirectoryResult.SUCCESS


def _is_whole(server: DirectoryServer, partition: UUID) -> bool:
    known = server.partition(partition)
    return known is not None and known.state == "NORMAL"
