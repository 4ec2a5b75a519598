"""An enterprise of directory servers over the real transport: PEC0, PSC1, PSC2, backups.

Each server has the real engine over its own store. The estate delivers and lets time pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from uuid import UUID

from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.queries import find_one
from falconmq.directory.replication.carrying import ReplicationCarrier
from falconmq.directory.replication.carrying_judging import Judge
from falconmq.directory.replication.engine import ReplicationEngine
from falconmq.directory.replication.replication_queue import QUEUE_PATH
from falconmq.directory.replication.settings import ReplicationSettings, Role, ServerIdentity
from falconmq.directory.replication.status import fingerprints
from falconmq.directory.replication.writes import PendingWrite
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult, DirectoryServerType
from tests.directory.enterprises import guid
from tests.transport.estate import Node
from tests.transport.protected import KEYS, PUBLIC, Registered, protect
from tests.transport.raw_peer import routed_estate

SITES = [guid(f"site {number}") for number in range(3)]
TYPES = {
    Role.PEC: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
    Role.PSC: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    Role.BSC: DirectoryServerType.BACKUP_SITE_CONTROLLER,
}


@dataclass
class DirectoryServer:
    """One server of the enterprise."""

    node: Node
    directory: EmbeddedDirectory
    engine: ReplicationEngine
    carrier: ReplicationCarrier
    registry: Registered

    @property
    def name(self) -> str:
        return self.node.name

    def create(self, type_name: str, **row: object) -> UUID:
        result, identifier = self.node.run(self.directory.create, type_name, row)
        assert result is DirectoryResult.SUCCESS
        assert isinstance(identifier, UUID)
        return identifier

    def has(self, type_name: str, identifier: UUID) -> bool:
        return find_one(self.directory, type_name, equals("identifier", identifier)) is not None

    def queue(self, path_name: str) -> UUID | None:
        """The GUID that a queue has here; None: it is not here."""
        row = find_one(self.directory, "Queue", equals("path_name", path_name))
        return None if row is None else UUID(str(row["identifier"]))

    def ask_create(self, type_name: str, **row: object) -> PendingWrite:
        """Begin a write that another server decides about, and do not wait."""
        begun: list[PendingWrite] = []
        self.engine.gate.wait = begun.append
        result, _ = self.node.run(self.directory.create, type_name, row)
        assert result is DirectoryResult.DIRECTORY_NOT_CONNECTED, "nobody waited"
        self.node.run(self.node.core.run_timers)
        (write,) = begun
        return write


class CarriedEnterprise:
    """Servers by name, on one estate."""

    def __init__(self, settings: ReplicationSettings | None = None) -> None:
        self.estate = routed_estate()
        self.settings = ReplicationSettings() if settings is None else settings
        self.servers: dict[str, DirectoryServer] = {}
        self.trusted: dict[UUID, str] = {}

    def __getitem__(self, name: str) -> DirectoryServer:
        return self.servers[name]

    def add(self, name: str, role: Role, site: int, psc: str = "") -> DirectoryServer:
        """A new server that everybody trusts, with an empty store; the PEC gets its objects."""
        node = self.estate.node(name, len(self.servers) + 1, send_insecure_nacks=True)
        registry = protect(node, weak=frozenset({QUEUE_PATH}))
        self.trusted[node.identifier] = name
        random = Random(name)
        directory = EmbeddedDirectory(node.store, node.core.clock, random)
        if role is Role.PEC:
            directory.create("Enterprise", {"name": "example"})
            directory.create("Site", {"name": "site 0", "identifier": SITES[0]})
        identity = ServerIdentity(
            role, name, node.identifier, SITES[site], "PEC0", psc, trusted=self.trusted
        )
        clock = self.estate.clock
        engine = ReplicationEngine(directory, identity, self.settings, clock, random)
        judge = Judge(signing_keys_of=registry.signing_keys_of)
        carrier = ReplicationCarrier(node.core, engine, lambda: KEYS, judge)
        server = DirectoryServer(node, directory, engine, carrier, registry)
        self.servers[name] = server
        for each in self.servers.values():
            each.registry.keys |= {other.node.identifier: PUBLIC for other in self.servers.values()}
        return server

    def start(self, *names: str) -> None:
        for name in names:
            self[name].node.run(self[name].carrier.start)

    def settle(self, seconds: float = 15.0) -> None:
        self.estate.advance(seconds)

    def cut_off(self, name: str) -> None:
        """A computer is switched off: nobody reaches it any more."""
        node = self[name].node
        self.estate.refusing.add(node.address)
        for line in list(node.lines):
            self.estate.cut(line)

    def are_equal(self) -> bool:
        prints = [fingerprints(server.directory) for server in self.servers.values()]
        return all(each == prints[0] for each in prints)


def three_sites(settings: ReplicationSettings | None = None) -> CarriedEnterprise:
    """PEC0 with site 0, PSC1 with site 1, PSC2 with site 2 and its backup BSC21, all in step."""
    enterprise = CarriedEnterprise(settings)
    pec = enterprise.add("PEC0", Role.PEC, 0)
    enterprise.start("PEC0")
    for number in (1, 2):
        controller = f"PSC{number}"
        row = {"name": f"site {number}", "primary_site_controller": controller}
        pec.create("Site", identifier=SITES[number], **row)
        enterprise.add(controller, Role.PSC, number)
        enterprise.start(controller)
    enterprise.settle()
    add_backup(enterprise, "BSC21")
    register(enterprise, "PEC0", Role.PEC, 0)
    register(enterprise, "PSC1", Role.PSC, 1)
    register(enterprise, "PSC2", Role.PSC, 2)
    enterprise.settle()
    return enterprise


def add_backup(enterprise: CarriedEnterprise, name: str) -> DirectoryServer:
    """A backup of site 2, made known by its controller."""
    server = enterprise.add(name, Role.BSC, 2, "PSC2")
    register(enterprise, name, Role.BSC, 2, at="PSC2")
    enterprise.start(name)
    enterprise.settle()
    return server


def register(
    enterprise: CarriedEnterprise, name: str, role: Role, site: int, at: str | None = None
) -> None:
    server = enterprise[name]
    enterprise[at or name].create(
        "QueueManager",
        identifier=server.node.identifier,
        computer_name=name,
        site_identifiers=[SITES[site]],
        server_type=TYPES[role],
        directory_server=True,
    )
