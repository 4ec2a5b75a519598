"""Messages for foreign systems end in the connector queues of whoever is in their site (guide 8.5).

SAM is in Berlin, as is CONRAD, a routing server; CONRAD is in the foreign site Host, too. There is
FRIDA, a foreign system that no session leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from falconmq.directory.routing import DirectoryRouter
from falconmq.manager.directory_objects import QueueManager, RoutingLink, Site
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.model import Queue, ReadResult
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.queues import purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, OutgoingState, QueueType
from falconmq.message import Acknowledge, Journal, Message
from falconmq.names import ConnectorFormatName, PublicFormatName, parse_format_name
from falconmq.transport.posting import post_message
from falconmq.wire.message_class import MessageClass
from tests.directory.enterprises import guid
from tests.transport.answers import packets_in
from tests.transport.estate import Estate, Node, bodies, only
from tests.transport.protected import protect, signed

BERLIN, HOST, FRIDA = guid("B"), guid("H"), guid("FRIDA")
PLAIN, TRANSACTIONAL = ConnectorFormatName(HOST), ConnectorFormatName(HOST, transactional=True)
FAR = rf"PRIVATE={FRIDA}\00000005"
LEDGER = guid("a public queue of FRIDA")


@dataclass
class World:
    estate: Estate
    directory: MemoryDirectory
    sam: Node
    conrad: Node

    def connector(self, name: ConnectorFormatName) -> Queue:
        return self.conrad.core.connectors[name]


def given_world() -> World:
    estate, directory = Estate(), MemoryDirectory()
    sam, conrad = estate.node("SAM", 1), estate.node("CONRAD", 2)
    directory.create("Site", Site(BERLIN, name="Berlin").row())
    directory.create("Site", Site(HOST, name="Host", foreign_site=True).row())
    for name, identifier, sites in (
        ("SAM", sam.identifier, [BERLIN]),
        ("CONRAD", conrad.identifier, [BERLIN, HOST]),
        ("FRIDA", FRIDA, [HOST]),
    ):
        machine = QueueManager(identifier, computer_name=name, site_identifiers=sites)
        machine.routing_server, machine.foreign_system = name == "CONRAD", name == "FRIDA"
        directory.create("QueueManager", machine.row())
    link = RoutingLink(guid("BH"), site1_identifier=BERLIN, site2_identifier=HOST)
    link.site_gate_identifiers = [conrad.identifier]
    directory.create("RoutingLink", link.row())
    directory.create(
        "Queue",
        {
            "identifier": LEDGER,
            "path_name": r"FRIDA\ledger",
            "computer_name": "FRIDA",
            "queue_manager_identifier": FRIDA,
            "base_priority": 0,
        },
    )
    for node in (sam, conrad):
        use_directory(node, directory)
    return World(estate, directory, sam, conrad)


def use_directory(node: Node, directory: MemoryDirectory) -> None:
    node.core.directory = directory
    router = DirectoryRouter(node.core)
    node.run(router.start)
    node.transport.router = router


def take(node: Node, name: ConnectorFormatName) -> StoredMessage:
    """A connector program reads the first message."""

    def read() -> StoredMessage:
        descriptor = open_queue(node.core, name, AccessType.RECEIVE)
        result = dequeue_message(node.core, descriptor, timeout=0)
        assert isinstance(result, ReadResult)
        assert result.position is not None, result.status
        close_queue(node.core, descriptor)
        return result.position.message

    message: StoredMessage = node.run(read)
    return message


@pytest.mark.requirement("DM-3.1.1.2-35", "DM-3.1.1.7-06")
def test_a_connector_has_both_queues_before_the_first_message_and_after_a_restart() -> None:
    world = given_world()
    assert {q.queue_type for q in world.conrad.core.connectors.values()} == {QueueType.CONNECTOR}
    assert set(world.conrad.core.connectors) == {PLAIN, TRANSACTIONAL}
    assert world.sam.core.connectors == {}
    assert not world.connector(PLAIN).properties.transactional
    assert world.connector(TRANSACTIONAL).properties.transactional
    before = {name: queue.number for name, queue in world.conrad.core.connectors.items()}
    # when it starts again, then they are the same queues
    world.conrad.restart()
    use_directory(world.conrad, world.directory)
    assert {n: q.number for n, q in world.conrad.core.connectors.items()} == before


@pytest.mark.requirement("MQ-2.2.19.2-87")
def test_a_message_of_another_computer_waits_for_the_connector_with_its_destination() -> None:
    world = given_world()
    sent = world.sam.send(FAR, b"order", recoverable=True, connector_type=guid("a connector"))
    world.estate.advance(15)
    # then the packet is there as it was sent, and nobody else has it
    queue = world.connector(PLAIN)
    assert only(queue).data == sent.data
    user = only(queue).packet.user
    assert user.queue_manager_address == FRIDA.bytes_le
    assert user.destination_queue == 5
    assert user.connector_type == guid("a connector").bytes_le
    assert len(world.sam.outgoing(FAR).positions) == 0
    assert world.conrad.core.outgoing == {}
    # and it survives a restart, and can be read
    world.conrad.restart()
    assert bodies(world.connector(PLAIN)) == [b"order"]
    assert take(world.conrad, PLAIN).data == sent.data
    assert bodies(world.connector(PLAIN)) == []


@pytest.mark.requirement("DM-3.1.1.1-14")
def test_a_public_queue_of_a_foreign_system_is_reached_the_same_way() -> None:
    assert not QueueManager(FRIDA).foreign_system  # unless somebody says so
    world = given_world()
    name = PublicFormatName(LEDGER)
    assert world.sam.run(post_message, world.sam.core, name, Message(b"far"))
    assert world.conrad.run(post_message, world.conrad.core, name, Message(b"near"))
    world.estate.advance(15)
    assert sorted(bodies(world.connector(PLAIN))) == [b"far", b"near"]


def test_what_is_signed_for_a_foreign_system_is_not_judged_on_the_way() -> None:
    world = given_world()
    protect(world.conrad)  # it knows no certificates
    own = world.conrad.queue("orders")
    for name in (FAR, world.conrad.private_name(own)):
        message = StoredMessage.of(
            signed(world.sam.build(name, b"signed", recoverable=True).packet)
        )
        world.sam.run(world.sam._send, parse_format_name(name), [message])
    world.estate.advance(15)
    assert bodies(own) == []  # for a queue of its own it has to know who signed
    assert only(world.connector(PLAIN)).packet.security is not None


def test_a_message_that_comes_twice_is_taken_once() -> None:
    world = given_world()
    world.conrad.holds_commits = True  # so that nothing is acknowledged
    world.sam.send(FAR, b"order", recoverable=True)
    world.estate.settle()
    for line in list(world.sam.lines):
        world.estate.cut(line)
    world.conrad.release_commits()
    world.estate.advance(60)
    assert bodies(world.connector(PLAIN)) == [b"order"]
    assert world.conrad.transport.counters["duplicates"] == 1


def test_transactional_messages_come_once_in_order_and_their_sender_is_told() -> None:
    world = given_world()
    sam, queue = world.sam, world.connector(TRANSACTIONAL)
    sam.send_transaction(FAR, b"1", b"2", journal=Journal.JOURNAL | Journal.DEAD_LETTER)
    sam.send_transaction(FAR, b"3")
    world.estate.advance(30)
    assert bodies(queue) == [b"1", b"2", b"3"]
    # the OrderAck of the connector counts in place of FRIDA's: nothing is sent again
    assert sam.outgoing(FAR).transfer_info.resend_count == 0
    assert sam.outgoing(FAR).transfer_info.no_ack_count == 0
    # what may be journaled stays until the connector has it
    assert len(sam.outgoing(FAR).positions) == 2
    for body in (b"1", b"2", b"3"):
        assert bytes(take(world.conrad, TRANSACTIONAL).packet.properties.message_body) == body
    world.estate.advance(30)
    assert len(sam.outgoing(FAR).positions) == 0
    assert bodies(sam.core.journal) == [b"1", b"2"]


def test_streams_to_a_foreign_queue_and_to_one_of_ours_with_the_same_number_are_two() -> None:
    world = given_world()
    sam, conrad = world.sam, world.conrad
    own = conrad.queue("orders", transactional=True)
    far = rf"PRIVATE={FRIDA}\{own.private_queue_number:08x}"
    for number in range(3):
        sam.send_transaction(far, b"far %d" % number)
        sam.send_transaction(conrad.private_name(own), b"own %d" % number)
        world.estate.advance(5)
    assert bodies(own) == [b"own 0", b"own 1", b"own 2"]
    assert bodies(world.connector(TRANSACTIONAL)) == [b"far 0", b"far 1", b"far 2"]
    assert conrad.transport.counters["out of order"] == 0


@pytest.mark.requirement("QB-3.1.5.2.1-12")
def test_what_is_sent_on_the_connector_itself_goes_into_its_queues() -> None:
    world = given_world()
    conrad = world.conrad
    conrad.send(FAR, b"one", recoverable=True, journal=Journal.JOURNAL)
    conrad.send(FAR, b"two")
    conrad.send_transaction(FAR, b"three", b"four")
    world.estate.advance(1)
    assert bodies(world.connector(PLAIN)) == [b"one", b"two"]
    assert bodies(world.connector(TRANSACTIONAL)) == [b"three", b"four"]
    outgoing = conrad.outgoing(FAR)
    assert (len(outgoing.positions), outgoing.next_hops) == (0, [f"FOREIGN={HOST}"])
    assert outgoing.state is OutgoingState.INACTIVE
    assert conrad.transport.tables[outgoing].pending == 0  # nobody waits for an OrderAck
    assert bodies(conrad.core.journal) == [b"one"]
    assert conrad.transport.counters["handed to a connector"] == 4
    # and a restart finds each message once
    conrad.restart()
    use_directory(conrad, world.directory)
    world.estate.advance(60)
    assert bodies(world.connector(PLAIN)) == [b"one"]  # the other was express
    assert bodies(world.connector(TRANSACTIONAL)) == [b"three", b"four"]
    # and more can be sent
    conrad.send_transaction(FAR, b"five")
    world.estate.advance(1)
    assert bodies(world.connector(TRANSACTIONAL)) == [b"three", b"four", b"five"]


def test_a_message_that_came_too_late_for_the_connector_expires() -> None:
    world = given_world()
    conrad = world.conrad
    conrad.send(FAR, b"seed", recoverable=True)
    world.estate.advance(1)
    take(conrad, PLAIN)
    outgoing = conrad.outgoing(FAR)
    conrad.run(conrad.transport.pause, outgoing)
    conrad.send(FAR, b"late", recoverable=True, time_to_reach_queue=10, journal=Journal.DEAD_LETTER)
    world.estate.advance(1)
    assert bodies(world.connector(PLAIN)) == []  # it waits: somebody paused its queue
    conrad.send(rf"PRIVATE={FRIDA}\00000006", b"other")
    world.estate.advance(1)
    assert bytes(take(conrad, PLAIN).packet.properties.message_body) == b"other"
    assert len(outgoing.positions) == 1
    world.estate.clock.advance(20)
    conrad.run(conrad.transport.resume, outgoing)
    world.estate.advance(1)
    assert bodies(world.connector(PLAIN)) == []
    assert bodies(conrad.core.dead_letter) == [b"late"]


def ask(world: World, **properties: Any) -> Queue:
    """SAM sends, and wants to hear everything."""
    answers = world.sam.queue("answers")
    world.sam.send(
        FAR,
        b"order",
        recoverable=True,
        acknowledgements=Acknowledge.FULL_REACH_QUEUE | Acknowledge.FULL_RECEIVE,
        administration_queue=world.sam.private_name(answers),
        **properties,
    )
    world.estate.advance(15)
    return answers


def test_only_a_connector_knows_that_a_message_was_received() -> None:
    world = given_world()
    answers = ask(world)
    take(world.conrad, PLAIN)
    world.estate.advance(15)
    assert packets_in(answers) == []


def test_a_message_that_no_connector_will_read_is_told_to_its_sender() -> None:
    world = given_world()
    answers = ask(world)
    conrad = world.conrad
    conrad.run(purge_queue, conrad.core, world.connector(PLAIN))
    world.estate.advance(15)
    (answer,) = packets_in(answers)
    assert answer.properties.message_class == MessageClass.NACK_Q_PURGED
