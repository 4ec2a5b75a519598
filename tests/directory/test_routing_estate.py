"""Three sites and six queue managers with real transports: messages find their way (R10, T27)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from falconmq.directory.notification import ReceivingSettings, Refusal
from falconmq.directory.notification_receiving import ChangeNotificationServer
from falconmq.directory.notification_sending import (
    ChangeNotificationClient,
    SendingSettings,
    Told,
)
from falconmq.directory.routing import DirectoryRouter
from falconmq.manager.directory import write_directory
from falconmq.manager.directory_objects import QueueManager, RoutingLink, Site
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.model import Queue
from falconmq.manager.queues import create_queue
from falconmq.manager.states import ChangeOperation
from falconmq.message import Message
from falconmq.names import PathName, PublicFormatName
from falconmq.transport.posting import post_message
from falconmq.wire.message_class import MessageClass
from falconmq.wire.user_header import HOP_COUNT
from tests.directory.enterprises import guid
from tests.transport.estate import Estate, Node, bodies, only
from tests.transport.protected import KEYS, PUBLIC, protect

# Who lives where; all but the two clients are routing servers and gates.
PLACES = {"ANN": "A", "A-GATE": "A", "B-GATE1": "B", "B-GATE2": "B", "C-GATE": "C", "CEM": "C"}
CLIENTS = {"ANN", "CEM"}


@dataclass
class Enterprise:
    estate: Estate
    directory: MemoryDirectory
    nodes: dict[str, Node]
    routers: dict[str, DirectoryRouter]

    def kill(self, name: str) -> None:
        """Nobody listens there any more, and its connections break."""
        node = self.nodes[name]
        self.estate.refusing.add(node.address)
        for line in list(node.lines):
            self.estate.cut(line)

    def revive(self, name: str) -> None:
        self.estate.refusing.discard(self.nodes[name].address)

    def hop(self, source: str, goal: str) -> str:
        """The name of the first hop."""
        hops = self.routers[source].get_next_hops(self.nodes[goal].identifier)
        return hops[0].host_name

    def passed(self, name: str) -> int:
        return self.nodes[name].transport.counters["passed on"]


def make_enterprise() -> Enterprise:
    estate, directory = Estate(), MemoryDirectory()
    nodes = {name: estate.node(name, 1 + place) for place, name in enumerate(PLACES)}
    for site in "ABC":
        directory.create("Site", Site(guid(site), name=site).row())
    for name, node in nodes.items():
        machine = QueueManager(node.identifier, computer_name=name)
        machine.site_identifiers = [guid(PLACES[name])]
        machine.routing_server = name not in CLIENTS
        directory.create("QueueManager", machine.row())
    gates = {name: node.identifier for name, node in nodes.items() if name not in CLIENTS}
    for one, other in ("AB", "BC"):
        link = RoutingLink(guid(one + other), site1_identifier=guid(one))
        link.site2_identifier = guid(other)
        link.site_gate_identifiers = [g for n, g in gates.items() if PLACES[n] in (one, other)]
        directory.create("RoutingLink", link.row())
    routers = {}
    for name, node in nodes.items():
        node.core.directory = directory
        routers[name] = DirectoryRouter(node.core)
        node.run(routers[name].start)
        node.transport.router = routers[name]
    return Enterprise(estate, directory, nodes, routers)


def test_messages_cross_sites_while_a_gate_is_killed_and_comes_back() -> None:
    world = make_enterprise()
    ann, cem = world.nodes["ANN"], world.nodes["CEM"]
    orders = cem.queue("orders")
    name = cem.private_name(orders)
    ann.send(name, b"one", recoverable=True)
    world.estate.advance(15)
    # it went over a gate of each site, and was passed on three times
    first = world.hop("A-GATE", "CEM")
    assert bodies(orders) == [b"one"]
    assert only(orders).packet.user.flags & HOP_COUNT == 3
    assert (world.passed("A-GATE"), world.passed(first), world.passed("C-GATE")) == (1, 1, 1)
    # when that gate of B dies, then the other takes over
    world.kill(first)
    ann.send(name, b"two", recoverable=True)
    world.estate.advance(120)
    second = "B-GATE2" if first == "B-GATE1" else "B-GATE1"
    assert bodies(orders) == [b"one", b"two"]
    assert world.passed(second) == 1
    # when both are dead, then messages wait at the gate of A, which knows why
    world.kill(second)
    ann.send(name, b"three", recoverable=True)
    world.estate.advance(60)
    assert bodies(orders) == [b"one", b"two"]
    assert "begins with site B" in world.routers["A-GATE"].explain(cem.identifier)
    # when one is back, then they come
    world.revive(first)
    world.estate.advance(300)
    assert bodies(orders) == [b"one", b"two", b"three"]


def test_a_public_queue_is_found_in_another_site_and_while_the_directory_is_away() -> None:
    world = make_enterprise()
    ann, cem = world.nodes["ANN"], world.nodes["CEM"]
    orders: Queue = cem.run(create_queue, cem.core, PathName.parse(r".\orders"))
    name = PublicFormatName(orders.identifier)
    assert ann.run(post_message, ann.core, name, Message(b"one"))
    world.estate.advance(15)
    assert bodies(orders) == [b"one"]
    # when the directory goes, then what is on its way still arrives: everybody has a map
    assert ann.run(post_message, ann.core, name, Message(b"two"))
    world.directory.is_connected = False
    world.estate.advance(15)
    assert bodies(orders) == [b"one", b"two"]


@pytest.mark.requirement("CN-1.6-04")
def test_a_notification_reaches_an_owner_in_another_site() -> None:  # T27
    world = make_enterprise()
    ann, cem = world.nodes["ANN"], world.nodes["CEM"]
    server = ChangeNotificationServer(cem.core, ReceivingSettings(is_immediate=True))
    cem.run(server.start)
    ann.core.change_notifier = ChangeNotificationClient(ann.core)
    # when somebody changes the quota of CEM on ANN
    changed = QueueManager(cem.identifier)
    changed.update({**world.directory.rows["QueueManager"][cem.identifier], "quota_kilobytes": 77})
    ann.run(write_directory, ann.core, changed)
    world.estate.advance(15)
    # then CEM hears of it over three hops, and looks
    assert cem.core.settings.quota_kilobytes == 77
    assert server.counters == {"received": 1, "reloads": 1, "manager changed": 1}


def test_a_directory_service_is_obeyed_when_its_signature_is_verified() -> None:  # T9, T11
    world = make_enterprise()
    ann, cem = world.nodes["ANN"], world.nodes["CEM"]
    registry = protect(cem)
    server = ChangeNotificationServer(cem.core, ReceivingSettings(is_immediate=True))
    cem.run(server.start)
    world.directory.rows["QueueManager"][ann.identifier]["directory_server"] = True
    client = ChangeNotificationClient(
        ann.core, SendingSettings(is_directory_service=True), lambda: KEYS
    )

    def tell(quota: int) -> None:
        changed = QueueManager(cem.identifier, quota_kilobytes=quota)
        assert ann.run(client.tell, ChangeOperation.QUEUE_MANAGER_UPDATE, changed) is Told.SENT
        world.estate.advance(15)

    # while CEM does not know the keys of ANN, the message does not even come into the queue
    before = cem.core.settings.quota_kilobytes
    tell(55)
    assert cem.core.settings.quota_kilobytes == before
    assert cem.transport.refusals == {MessageClass.NACK_BAD_SIGNATURE: 1}
    assert server.counters["received"] == 0
    # when it knows them, then it obeys
    registry.keys[ann.identifier] = PUBLIC
    tell(66)
    assert cem.core.settings.quota_kilobytes == 66
    # but only a directory server
    world.directory.rows["QueueManager"][ann.identifier]["directory_server"] = False
    tell(77)
    assert cem.core.settings.quota_kilobytes == 66
    assert server.counters[Refusal.NOT_FROM_DIRECTORY_SERVER.value] == 1


def test_every_queue_manager_has_the_same_map() -> None:
    world = make_enterprise()
    ways: dict[UUID, object] = {}
    for router in world.routers.values():
        for site in router.map.sites:
            table = router.map.routing_table(frozenset({site}))
            assert ways.setdefault(site, table) == table
