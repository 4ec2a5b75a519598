"""The enterprise of a run: sites, the servers that serve them, and who asks them for what."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.replication.settings import ReplicationSettings, Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.writes import PendingWrite, RequestedChange
from falconmq.errors import MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult, DirectoryServerType
from falconmq.simulation.directory.ledger import (
    FORWARDED_SECONDS,
    Change,
    Kind,
    Ledger,
    Name,
    Outcome,
)
from falconmq.simulation.directory.post import Post
from falconmq.simulation.directory.server import Asked, DirectoryServer
from falconmq.simulation.world import World

DOMAIN: Final = "example.com"
SERVER_TYPES: Final = {
    Role.PEC: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
    Role.PSC: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    Role.BSC: DirectoryServerType.BACKUP_SITE_CONTROLLER,
}
# How an object is called, and the attribute whose value the ledger knows.
WATCHED: Final = {
    tables.ENTERPRISE: ("name", "default_time_to_live"),
    tables.SITE: ("name", "primary_site_controller"),
    tables.CONNECTED_NETWORK: ("name", "network_protocol"),
    tables.ROUTING_LINK: ("identifier", "description"),
    tables.QUEUE_MANAGER: ("computer_name", "queue_manager_version"),
    tables.QUEUE: ("path_name", "label"),
}
NEAR: Final = "\\near"  # what a queue is called that its own site alone has to know
_OF_SITES: Final = (tables.QUEUE_MANAGER, tables.QUEUE)  # a PSC decides about these
_SETTLE_SECONDS: Final = 5.0


class Enterprise:
    """See the module."""

    def __init__(self, world: World, settings: ReplicationSettings) -> None:
        self.world = world
        self.settings = settings
        self.post = Post(world)
        self.ledger = Ledger()
        self.servers: dict[str, DirectoryServer] = {}  # those that belong to it now
        self.controllers: dict[UUID, str] = {}  # the PSC of each site
        self.site_names: dict[UUID, str] = {}
        self.pec_name = ""
        self.moved: set[str] = set()  # queue managers that left a site, in small letters
        self._returned: list[DirectoryServer] = []  # from the dead; it may not know who decides now
        self._made = 0
        self._machines: dict[str, object] = {}  # the sites of each, by its name in small letters

    @property
    def pec(self) -> DirectoryServer:
        return self.servers[self.pec_name]

    def psc(self, site: UUID) -> DirectoryServer:
        return self.servers[self.controllers[site]]

    def bscs(self, site: UUID) -> list[DirectoryServer]:
        return [
            server
            for server in self.servers.values()
            if server.site == site and server.name != self.controllers[site]
        ]

    def authority(self, partition: UUID) -> DirectoryServer:
        return self.pec if partition == ENTERPRISE_PARTITION else self.psc(partition)

    def add_server(self, role: Role, site: UUID) -> DirectoryServer:
        """A new computer, with an empty disk."""
        server = DirectoryServer(self.world, self.post, self.settings, f"SERVER{self._made}", site)
        self._made += 1
        server.role = role
        server.pec_name = self.pec_name or server.name
        server.psc_name = self.controllers.get(site, "") if role is Role.BSC else ""
        self.servers[server.name] = server
        self.post.add(server)
        return server

    def new_site(self) -> UUID:
        site = UUID(int=self.world.random.getrandbits(128), version=4)
        self.site_names[site] = f"site{len(self.site_names)}"
        return site

    def begin(self, bsc_counts: list[int]) -> None:
        """One site for each number of BSCs; the first has the PEC. All are in step at the end."""
        sites = [self.new_site() for _ in bsc_counts]
        for site in sites:
            role = Role.PSC if self.pec_name else Role.PEC
            server = self.add_server(role, site)
            self.pec_name = self.pec_name or server.name
            self.controllers[site] = server.name
        self.pec.start()
        self.create(self.pec, (tables.ENTERPRISE, DOMAIN), 345600)
        for site in sites:
            self.create_site(site)
        for site, count in zip(sites, bsc_counts, strict=True):
            psc = self.psc(site)
            psc.start()
            self.world.run_until(self.world.now + _SETTLE_SECONDS)
            self.register(psc)
            for _ in range(count):
                bsc = self.add_server(Role.BSC, site)
                self.register(bsc)
                bsc.start()
        self.world.run_until(self.world.now + 60.0)

    def create_site(self, site: UUID) -> Change:
        name = (tables.SITE, self.site_names[site])
        controller = self.controllers[site]
        return self.create(self.pec, name, controller, identifier=site)

    def name_controller(self, site: UUID, server: DirectoryServer) -> None:
        """A server has made itself the PSC of its site."""
        name, now = (tables.SITE, self.site_names[site]), self.world.now
        self.ledger.add(name, Change(Kind.CHANGE, server.name, now, now, Outcome.DONE))

    def has_lost(self, site: UUID) -> None:
        """A site is gone, and all that was in it."""
        now = self.world.now
        for name in list(self.ledger.names):
            is_it = name == (tables.SITE, self.site_names[site])
            is_in_it = name[0] in _OF_SITES and self._machines.get(_machine_of(name)) == [site]
            if is_it or is_in_it:
                self.ledger.add(name, Change(Kind.DELETE, None, now, now, Outcome.DONE))

    def is_open(self, name: Name) -> bool:
        """Whether nobody can say what becomes of a name.

        It is of a queue manager that moved, and a take-over lost something of it: if that was the
        deletion in its old site, it is in both.
        """
        machine = _machine_of(name)
        if name[0] not in _OF_SITES or machine not in self.moved:
            return False
        return any(
            _machine_of(lost) == machine for lost in self.ledger.forgiven if lost[0] in _OF_SITES
        )

    def register(self, server: DirectoryServer) -> Change:
        """Write a server into the directory, at the PSC of its site."""
        return self.create(
            self.psc(server.site),
            (tables.QUEUE_MANAGER, server.name),
            f"server {server.name}",
            identifier=server.identifier,
            site_identifiers=[server.site],
            server_type=SERVER_TYPES[server.role],
        )

    def create(self, at: DirectoryServer, name: Name, value: object, **more: object) -> Change:
        key, attribute = WATCHED[name[0]]
        row = {key: name[1], attribute: value, **more}
        if name[0] == tables.QUEUE_MANAGER:
            self._machines[name[1].lower()] = more["site_identifiers"]
        return self.ask(at, name, Kind.CREATE, value, lambda there: there.create(name[0], row)[0])

    def change(self, at: DirectoryServer, name: Name, value: object) -> Change | None:
        """Change what is there, as far as this server knows; None: it knows no such object."""
        row = self.find(at, name)
        if row is None:
            return None
        wanted = {"identifier": row["identifier"], WATCHED[name[0]][1]: value}
        return self.ask(at, name, Kind.CHANGE, value, lambda there: there.write(name[0], wanted))

    def delete(self, at: DirectoryServer, name: Name) -> Change | None:
        row = self.find(at, name)
        identifier = None if row is None else row["identifier"]
        if not isinstance(identifier, UUID):
            return None
        return self.ask(
            at, name, Kind.DELETE, None, lambda there: there.delete(name[0], identifier)
        )

    def find(self, at: DirectoryServer, name: Name) -> Row | None:
        key, _ = WATCHED[name[0]]
        wanted: object = UUID(name[1]) if key == "identifier" else name[1]
        if name[0] == tables.ENTERPRISE:
            result, row = at.directory.read(name[0], (), None)
        else:
            result, row = at.directory.read(name[0], equals(key, wanted), None)
        return row if result is DirectoryResult.SUCCESS else None

    def ask(
        self,
        at: DirectoryServer,
        name: Name,
        kind: Kind,
        value: object,
        asked: Asked,
    ) -> Change:
        """Ask a server for a change, and write into the ledger what comes of it."""
        world = self.world
        world.note(at.name, "%s %s %s: %r", kind.value, *name, value)
        name = (name[0], name[1].lower())
        change = self.ledger.add(name, Change(kind, value, world.now, world.now))
        result, waiting = at.ask(asked)
        if waiting is not None:
            world.counts["change sent on"] += 1
            change.ended = world.now + FORWARDED_SECONDS
            self._doubt(change)  # who decides may hear that it should not before its answer is here
            waiting.add_done_callback(lambda write: self._answered(at, name, change, write))
        elif result is DirectoryResult.SUCCESS:
            self._acknowledge(change)
        elif result is not None:
            change.outcome = Outcome.REFUSED
            world.note(at.name, "%s %s: %s", *name, result.name)
        return change

    def ask_directly(
        self, at: DirectoryServer, name: Name, wanted: RequestedChange, of: str
    ) -> None:
        """Let a server ask a certain other one for a change of an object's watched value."""
        world, engine, writes = self.world, at.engine, []
        assert engine is not None
        value = wanted.properties[0][1]
        ended = world.now + FORWARDED_SECONDS
        change = self.ledger.add(name, Change(Kind.CHANGE, value, world.now, ended))

        def asked(_: object) -> DirectoryResult:
            writes.append(engine.request(wanted, of))
            return DirectoryResult.SUCCESS

        at.ask(asked)
        for write in writes:
            write.add_done_callback(lambda write: self._answered(at, name, change, write))

    def _answered(
        self, at: DirectoryServer, name: Name, change: Change, write: PendingWrite
    ) -> None:
        """The answer to a change that was sent on; the end of the wait says nothing.

        Nor does a nack: what came back may have come twice. What was answered is over: a request
        that comes again is not obeyed again.
        """
        status = write.status
        self.world.note(at.name, "%s %s %s: answer %#010x", change.kind.value, *name, status)
        if status == MqStatus.OK:
            change.ended = self.world.now
            self._acknowledge(change)
        elif status not in (MqStatus.MQDS_NO_RSP_FROM_OWNER, MqStatus.MQDS_OWNER_NOT_REACHED):
            change.outcome, change.ended = Outcome.REFUSED, self.world.now

    def came_back(self, server: DirectoryServer) -> None:
        """From the dead: it decides until it hears that it should not, also what is on its way."""
        self._returned.append(server)
        self.ledger.forgive_unanswered(self.world.now)

    def _acknowledge(self, change: Change) -> None:
        self._doubt(change)
        change.acknowledge()

    def _doubt(self, change: Change) -> None:
        """Who is back from the dead may not be the one to say that something is done."""
        if any(self._pretends(server) for server in self._returned):
            change.forgive()

    def _pretends(self, server: DirectoryServer) -> bool:
        status = server.status()
        return status is not None and any(
            each.is_own and self.authority(each.partition_id) is not server
            for each in status.partitions
        )


def _machine_of(name: Name) -> str:
    """The queue manager that a name is of: its own, or that of a queue."""
    return name[1].partition("\\")[0].lower()
