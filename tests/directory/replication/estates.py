"""Directory servers in one process, joined by a network that can lose, delay and repeat messages.

Every message travels as bytes. Time is one virtual clock; nothing happens unless a test lets it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.replication.effects import Send
from falconmq.directory.replication.engine import ReplicationEngine
from falconmq.directory.replication.settings import ReplicationSettings, Role, ServerIdentity
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition
from falconmq.directory.replication.status import fingerprints
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult, DirectoryServerType
from falconmq.store import MemoryStore
from falconmq.wire.replication_messages import ReplicationMessage, decode_replication_message

SITES = [UUID(int=0x5170 + number) for number in range(4)]
ENTERPRISE = ENTERPRISE_PARTITION
DOMAIN = "example.com"
SUCCESS = DirectoryResult.SUCCESS
M = TypeVar("M")

_ROLES = {"PEC": Role.PEC, "PSC": Role.PSC, "BSC": Role.BSC}
_TYPES = {
    Role.PEC: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
    Role.PSC: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    Role.BSC: DirectoryServerType.BACKUP_SITE_CONTROLLER,
}


def queue_manager(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"."))


def site_of(name: str) -> UUID:
    """PSC2 and BSC21 are of site 2."""
    return SITES[int(name[3])]


@dataclass
class Node:
    """One server; its name says its role and site."""

    name: str
    estate: Estate
    store: MemoryStore = field(default_factory=MemoryStore)
    sent: list[Send] = field(default_factory=list)
    starts: int = 0
    trusted: bool = True
    plays: Role | None = None  # another role than the name says
    controller: str = ""
    directory: EmbeddedDirectory = field(init=False)
    engine: ReplicationEngine = field(init=False)

    @property
    def role(self) -> Role:
        return self.plays or _ROLES[self.name[:3]]

    def open(self) -> Node:
        """A process begins, over whatever the store has."""
        self.starts += 1
        estate = self.estate
        random = Random(f"{self.name}/{self.starts}")
        self.directory = EmbeddedDirectory(self.store, estate.clock, random)
        controller = "PEC0" if self.name[3] == "0" else f"PSC{self.name[3]}"
        controller = self.controller or controller
        identity = ServerIdentity(
            self.role,
            self.name,
            queue_manager(self.name),
            site_of(self.name),
            pec_name="PEC0",
            psc_name=controller if self.role is Role.BSC else "",
            trusted={queue_manager(name): name for name in estate.known} if self.trusted else {},
        )
        self.engine = ReplicationEngine(
            self.directory, identity, estate.settings, estate.clock, random
        )
        self.engine.gate.wait = estate.wait_for
        return self

    def start(self) -> Node:
        self.open()
        self.carry(self.engine.start())
        return self

    def carry(self, sends: Iterable[Send]) -> list[Send]:
        sends = list(sends)
        self.sent.extend(sends)
        for send in sends:
            self.estate.post(self.name, send)
        return sends

    def tell(self, message: ReplicationMessage, sender: str | None) -> list[Send]:
        """Hand a message to this server alone; what it answers goes nowhere."""
        guid = None if sender is None else queue_manager(sender)
        sends = self.engine.receive(decode_replication_message(message.encode()), guid)
        self.sent.extend(sends)
        return sends

    def add(self, type_name: str, **attributes: Any) -> UUID:
        result, identifier = self.directory.create(type_name, attributes)
        assert result is SUCCESS, self.directory.last_problem
        self.carry(self.engine.take_effects())
        return identifier

    def add_machine(self, name: str, site: UUID | None = None, **more: Any) -> UUID:
        site = site_of(self.name) if site is None else site
        return self.add("QueueManager", computer_name=name, site_identifiers=[site], **more)

    def add_queue(self, path: str, **more: Any) -> UUID:
        return self.add("Queue", path_name=path, **more)

    def write(self, type_name: str, identifier: UUID, **attributes: Any) -> None:
        result = self.directory.write(type_name, {"identifier": identifier, **attributes})
        assert result is SUCCESS, self.directory.last_problem
        self.carry(self.engine.take_effects())

    def delete(self, type_name: str, identifier: UUID) -> None:
        result = self.directory.delete(type_name, identifier)
        assert result is SUCCESS, self.directory.last_problem
        self.carry(self.engine.take_effects())

    def get(self, type_name: str, identifier: UUID) -> Row | None:
        result, row = self.directory.read(type_name, equals("identifier", identifier), None)
        return row if result is SUCCESS else None

    def partition(self, partition_id: UUID) -> Partition:
        with self.engine.turn() as server:
            return server.state.partitions[partition_id]

    @property
    def partitions(self) -> set[UUID]:
        with self.engine.turn() as server:
            return set(server.state.partitions)

    @property
    def neighbours(self) -> dict[str, str]:
        return {each.machine: each.kind for each in self.engine.status().neighbours}

    def messages(self, kind: type[M], to: str | None = None) -> list[M]:
        """What this server sent so far, of one kind."""
        return [
            send.message
            for send in self.sent
            if isinstance(send.message, kind) and to in (None, send.machine)
        ]

    def lasts(self) -> dict[UUID, int]:
        return {each.partition_id: each.last for each in self.engine.status().partitions}


@dataclass(order=True)
class _Letter:
    at: float
    number: int
    machine: str = field(compare=False)
    data: bytes = field(compare=False)
    sender: str = field(compare=False)


class Estate:
    """Servers and the network between them."""

    def __init__(self, *names: str, settings: ReplicationSettings | None = None) -> None:
        self.clock = VirtualClock()
        self.settings = settings or ReplicationSettings()
        self.known = [*names, "PEC0", "PSC1", "PSC2", "BSC01", "BSC02", "BSC21"]
        self.off: set[str] = set()
        self.lose: Callable[[str, Send], bool] = lambda _machine, _send: False
        self.delay: Callable[[], float] = lambda: 0.0
        self.repeat: Callable[[], bool] = lambda: False
        self._letters: list[_Letter] = []
        self._numbers = count()
        self.nodes = {name: Node(name, self) for name in names}

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def post(self, sender: str, send: Send) -> None:
        if self.lose(sender, send):
            return
        data = send.message.encode()
        for _ in range(2 if self.repeat() else 1):
            at = self.clock.monotonic() + self.delay()
            letter = _Letter(at, next(self._numbers), send.machine, data, sender)
            heapq.heappush(self._letters, letter)

    def settle(self) -> None:
        """Deliver what can be delivered now, and do what is due now."""
        is_busy = True
        while is_busy:
            is_busy = self._deliver()
            now = self.clock.monotonic()
            for node in self._running():
                due = node.engine.next_due()
                if due is not None and due <= now:
                    node.carry(node.engine.run_due())
                    is_busy = True

    def run(self, seconds: float) -> None:
        """Let time pass, from one thing that is due to the next."""
        end = self.clock.monotonic() + seconds
        self.settle()
        while (moment := self._next_moment()) is not None and moment <= end:
            self.clock.advance(max(0.0, moment - self.clock.monotonic()))
            self.settle()
        self.clock.advance(end - self.clock.monotonic())

    def wait_for(self, write: Any) -> None:
        """How a thread of this estate waits: it lets time pass."""
        for node in self._running():
            node.carry(node.engine.take_effects())
        for _ in range(10_000):
            self.settle()
            moment = self._next_moment()
            if write.status is not None or moment is None:
                return
            self.clock.advance(max(0.0, moment - self.clock.monotonic()))

    def restart(self, name: str) -> Node:
        """The process ends; what was on its way to it is lost, and it begins again."""
        self._letters = [letter for letter in self._letters if letter.machine != name]
        heapq.heapify(self._letters)
        self.nodes[name].store.crash()
        return self.nodes[name].start()

    def are_equal(self) -> bool:
        """Whether all servers have the same objects, numbers and last numbers."""
        nodes = list(self.nodes.values())
        first = nodes[0]
        return all(
            fingerprints(node.directory) == fingerprints(first.directory)
            and node.lasts() == first.lasts()
            for node in nodes[1:]
        )

    def _running(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.starts and node.name not in self.off]

    def _next_moment(self) -> float | None:
        moments = [due for node in self._running() if (due := node.engine.next_due()) is not None]
        if self._letters:
            moments.append(self._letters[0].at)
        return min(moments, default=None)

    def _deliver(self) -> bool:
        delivered = False
        while self._letters and self._letters[0].at <= self.clock.monotonic():
            letter = heapq.heappop(self._letters)
            node = self.nodes.get(letter.machine)
            delivered = True
            if node is not None and node.starts and node.name not in self.off:
                message = decode_replication_message(letter.data)
                node.carry(node.engine.receive(message, queue_manager(letter.sender)))
        return delivered


def server_type(name: str) -> DirectoryServerType:
    return _TYPES[_ROLES[name[:3]]]


def begin_enterprise(pec: Node, *site_numbers: int) -> None:
    """The enterprise and its sites, as setup makes them at the PEC."""
    pec.add("Enterprise", name=DOMAIN)
    for number in site_numbers:
        controller = "PEC0" if number == 0 else f"PSC{number}"
        pec.add(
            "Site",
            identifier=SITES[number],
            name=f"site{number}",
            primary_site_controller=controller,
        )


def register(node: Node, name: str) -> UUID:
    """A directory server in the directory, at the PSC of its site."""
    kind = server_type(name)
    return node.add_machine(name, identifier=queue_manager(name), server_type=kind)


def estate_of_six(settings: ReplicationSettings | None = None) -> Estate:
    """Three sites: PEC0 with BSC01 and BSC02, PSC1 alone, PSC2 with BSC21; all in step."""
    estate = Estate("PEC0", "PSC1", "PSC2", "BSC01", "BSC02", "BSC21", settings=settings)
    pec = estate["PEC0"].start()
    begin_enterprise(pec, 0, 1, 2)
    for name in ("PEC0", "BSC01", "BSC02"):
        register(pec, name)
    for name in ("PSC1", "PSC2"):
        estate[name].start()
        estate.settle()
        register(estate[name], name)
    register(estate["PSC2"], "BSC21")
    for name in ("BSC01", "BSC02", "BSC21"):
        estate[name].start()
    estate.run(60.0)
    return estate
