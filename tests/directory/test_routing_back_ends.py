"""Routing and notification over every back end: what they ask, each of them can answer."""

from __future__ import annotations

from random import Random
from uuid import UUID

from falconmq.directory.notification import ReceivingSettings
from falconmq.directory.notification_receiving import ChangeNotificationServer
from falconmq.directory.notification_sending import ChangeNotificationClient
from falconmq.directory.routing import DirectoryRouter
from falconmq.directory.routing_choice import Rule
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory import (
    create_directory_object,
    delete_directory_object,
    write_directory,
)
from falconmq.manager.lifecycle import initialize
from falconmq.manager.model import Queue, QueueProperties
from falconmq.manager.next_hops import Destination
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueueType
from falconmq.manager.storing import enqueue_message
from falconmq.names import PathName, PublicFormatName
from falconmq.store import MemoryStore
from tests.directory.test_notification_sending import sent
from tests.directory.worlds import World


def make_core(world: World, identifier: UUID, name: str) -> QueueManagerCore:
    core = QueueManagerCore(
        identifier,
        MemoryStore(),
        world.clock,
        Random(1),
        Settings(computer_name=name),
        world.directory,
    )
    initialize(core)
    return core


def test_a_map_is_read_and_messages_for_a_public_queue_find_their_way(world: World) -> None:
    # given two sites, a gate in each, a link between them, and a foreign site
    berlin, paris = world.add_site("Berlin"), world.add_site("Paris")
    world.add_site("Mainframe", foreign_site=True)
    here = world.add_machine("here", berlin, routing_server=True)
    gate = world.add_machine("gate", paris, routing_server=True)
    there = world.add_machine("there", paris)
    behind = world.add_machine("behind", paris, in_routing_server_identifiers=[gate])
    link = {"site1_identifier": berlin, "site2_identifier": paris, "actual_cost": 7}
    world.add("RoutingLink", **link, site_gate_identifiers=[here, gate])
    queue = world.add("Queue", path_name=r"there\orders")
    # when a queue manager reads the map
    router = DirectoryRouter(make_core(world, here, "here"))
    router.start()
    # then it has everything in it
    assert router.problem == ""
    assert router.map.gates_of(berlin) == (here,)
    assert router.map.gates_of(paris) == (gate,)
    assert sorted(site.name for site in router.map.sites.values() if site.is_foreign) == [
        "Mainframe"
    ]
    assert router.map.machines[behind].in_servers == (gate,)
    # and finds the ways
    found = router.get_destination_info(PublicFormatName(queue))
    assert isinstance(found, Destination)
    assert found.queue_manager == there
    route = router.route_to(there)
    assert (route.rule, route.hops, route.sites[0].cost) == (Rule.NEXT_SITE, (gate,), 7)
    assert router.get_next_hops(there)[0].host_name == "gate"


def test_an_owner_follows_its_queue_in_the_directory(world: World) -> None:
    # given two queue managers
    site = world.add_site("Berlin")
    here = make_core(world, world.add_machine("here", site), "here")
    owner_id = world.add_machine("owner", site)
    owner = make_core(world, owner_id, "owner")
    here.change_notifier = ChangeNotificationClient(here)
    server = ChangeNotificationServer(owner, ReceivingSettings(is_immediate=True))
    server.start()

    def deliver() -> None:
        here.run_timers()
        arrived = StoredMessage(sent(here, owner_id)[-1].data)
        enqueue_message(owner, owner.private_numbers[3], arrived)
        owner.run_timers()

    # when one creates, changes and deletes a queue of the other
    name, properties = PathName.parse(r"owner\orders"), QueueProperties(label="new")
    queue = Queue(7, name, QueueType.PUBLIC, properties, here.fetch)
    create_directory_object(here, queue)
    deliver()
    # then the other follows
    assert owner.public[queue.identifier].properties.label == "new"
    queue.properties.label = "changed"
    write_directory(here, queue)
    deliver()
    assert owner.public[queue.identifier].properties.label == "changed"
    delete_directory_object(here, queue)
    deliver()
    assert owner.public == {}
