"""The data model: identity, enumerations, defaults and limits (MQDMPR 3.1.1)."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.errors import DirectoryError, MqStatus, QueueError
from falconmq.manager.directory_objects import (
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    QueueManager,
    RoutingLink,
    Site,
    User,
)
from falconmq.manager.model import (
    OutgoingQueue,
    Queue,
    QueueProperties,
    WaitingRead,
)
from falconmq.manager.positions import START
from falconmq.manager.queues import open_queue
from falconmq.manager.quotas import begin_flow_control, end_flow_control
from falconmq.manager.reading import dequeue_message, peek_message
from falconmq.manager.states import (
    AccessType,
    ConnectionStatus,
    DirectoryServerType,
    OperatingSystemType,
    OutgoingState,
    QueueScope,
    QueueType,
    RemoteReadState,
)
from falconmq.manager.storing import enqueue_message
from falconmq.names import PrivateFormatName, parse_format_name
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import EVERYONE
from tests.manager.helpers import IDENTIFIER, commit, given_queue, make_core, message

OBJECTS = [QueueManager, Enterprise, Site, RoutingLink, ConnectedNetwork, User]


@pytest.mark.requirement("DM-3.1.1-05", "DM-3.1.1-06", "DM-3.1.1-07")
@pytest.mark.parametrize("kind", OBJECTS)
def test_an_identifier_is_given_once(kind: type[DirectoryObject]) -> None:
    # given an object without an identifier
    item = kind()
    assert isinstance(item, DirectoryObject)
    # when it gets one
    item.identifier = UUID(int=5)
    # then it keeps it: the same again is fine, another is refused
    item.identifier = UUID(int=5)
    with pytest.raises(DirectoryError) as refused:
        item.identifier = UUID(int=6)
    assert refused.value.status is MqStatus.PROPERTY_NOTALLOWED
    item.update({"identifier": UUID(int=6)})
    assert item.identifier == UUID(int=5)


@pytest.mark.requirement("DM-3.1.1-07")
def test_a_queue_keeps_its_identifier_too() -> None:
    queue = given_queue(make_core())
    before = queue.identifier
    with pytest.raises(DirectoryError):
        queue.identifier = UUID(int=6)
    assert queue.identifier == before


@pytest.mark.requirement("DM-3.1.1-08")
def test_a_queue_manager_holds_one_object_for_itself() -> None:
    core = make_core()
    assert isinstance(core.local, QueueManager)
    assert core.local.identifier == core.identifier


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_is_ours_alone_is_not_published(kind: type[DirectoryObject]) -> None:
    assert not {"site1", "site2", "site_gates", "type_name"} & kind().row().keys()


@pytest.mark.requirement("DM-3.1.1.1-07", "DM-3.1.1.1-08")
def test_the_types_of_operating_systems_have_these_numbers() -> None:
    assert {t.name: t.value for t in OperatingSystemType} == {
        "OTHER": 0x000,
        "FOREIGN": 0x100,
        "WIN95": 0x200,
        "WIN_CLIENT": 0x300,
        "WIN_SERVER": 0x400,
        "WIN_ENT": 0x500,
    }
    assert QueueManager().operating_system_type is OperatingSystemType.OTHER


@pytest.mark.requirement("DM-3.1.1.1-24", "DM-3.1.1.1-25", "DM-3.1.1.1-26")
def test_the_role_of_a_directory_server_is_undefined_for_who_is_none() -> None:
    assert [(t.name, t.value) for t in DirectoryServerType] == [
        ("STANDALONE", 0),
        ("BACKUP_SITE_CONTROLLER", 2),
        ("PRIMARY_SITE_CONTROLLER", 4),
        ("PRIMARY_ENTERPRISE_CONTROLLER", 8),
    ]
    manager = QueueManager(server_type=DirectoryServerType.PRIMARY_SITE_CONTROLLER)
    assert manager.directory_server_type is None
    manager.directory_server = True
    assert manager.directory_server_type is DirectoryServerType.PRIMARY_SITE_CONTROLLER


@pytest.mark.requirement("DM-3.1.1.1-02", "DM-3.1.1.1-12", "DM-3.1.1.1-13", "DM-3.1.1.1-23")
def test_a_queue_manager_begins_with_the_documented_defaults() -> None:
    manager, settings = QueueManager(), make_core().settings
    assert manager.queue_manager_version == ""
    assert manager.quota_kilobytes == settings.quota_kilobytes == 0x00100000
    assert manager.journal_quota_kilobytes == settings.journal_quota_kilobytes == 0xFFFFFFFF
    assert manager.site_identifiers == []
    assert not manager.foreign_system
    assert not manager.supporting_server
    assert not manager.remote_access_server


@pytest.mark.requirement("DM-3.1.1.1-39", "DM-3.1.7.2.5-01", "DM-3.1.7.2.6-01")
def test_flow_control_begins_and_ends() -> None:
    core = make_core()
    queue = given_queue(core)
    seen = []
    for step in (begin_flow_control, end_flow_control):
        step(core)
        seen.append((core.is_throttled, int(enqueue_message(core, queue, message()))))
    assert seen == [(True, 2), (False, 0)]


@pytest.mark.requirement("DM-3.1.1.2-26", "DM-3.1.1.2-25")
def test_the_scope_of_a_queue_is_the_enterprise() -> None:
    assert [(s.name, s.value) for s in QueueScope] == [("SITE", 0), ("ENTERPRISE", 1)]
    assert given_queue(make_core()).scope is QueueScope.ENTERPRISE


@pytest.mark.requirement("DM-3.1.1.2-31")
def test_there_are_four_types_of_queues() -> None:
    assert {t.name for t in QueueType} == {"PRIVATE", "PUBLIC", "SYSTEM", "CONNECTOR"}


@pytest.mark.requirement("DM-3.1.1.2-27", "DM-3.1.1.2-28")
def test_a_queue_is_active_while_it_is_open_or_has_something_to_send() -> None:
    # given a local and an outgoing queue with a message each
    core = make_core()
    local = given_queue(core)
    descriptor = open_queue(core, parse_format_name(r"DIRECT=OS:x\q"), AccessType.SEND)
    outgoing = descriptor.queue
    assert isinstance(outgoing, OutgoingQueue)
    # then an open queue is active, an outgoing one with messages too, a local one not
    assert outgoing.is_active
    outgoing.descriptors.clear()
    assert (outgoing.is_active, local.is_active) == (False, False)
    for queue in (local, outgoing):
        enqueue_message(core, queue, message())
    assert (outgoing.is_active, local.is_active) == (True, False)


@pytest.mark.requirement("DM-3.1.1.3-06")
def test_an_outgoing_queue_has_one_of_eight_states() -> None:
    assert {s.name for s in OutgoingState} == {
        "CONNECTED",
        "DISCONNECTED",
        "DISCONNECTING",
        "INACTIVE",
        "LOCKED",
        "NEED_VALIDATION",
        "WAITING",
        "ON_HOLD",
    }


@pytest.mark.requirement("DM-3.1.1.3-16", "DM-3.1.1.3-17")
def test_a_connection_attempt_has_one_of_seventeen_ends() -> None:
    assert {s.name for s in ConnectionStatus} == {
        "IN_PROCESS",
        "ESTABLISH_PACKET_RECEIVED",
        "ESTABLISHED",
        "UNKNOWN_FAILURE",
        "PING_FAILURE",
        "SOCKET_CREATE_FAILURE",
        "SOCKET_BIND_FAILURE",
        "SOCKET_CONNECT_FAILURE",
        "TCP_NOT_ENABLED",
        "SOCKET_SEND_FAILURE",
        "CONNECTION_NOT_READY",
        "DNS_FAILURE",
        "CERTIFICATE_VALIDATION_FAILURE",
        "CONNECTION_LIMIT_REACHED",
        "CONNECTION_REFUSED",
        "ROUTING_DATA_NOT_AVAILABLE",
        "LOW_RESOURCE",
    }


@pytest.mark.requirement("DM-3.1.1.16-12")
def test_remote_reading_has_three_states() -> None:
    assert {s.name for s in RemoteReadState} == {"NONE", "OPENED", "READY_FOR_READ"}


@pytest.mark.requirement("DM-3.1.1.8-03")
@pytest.mark.parametrize("cost", [0, 1_000_000, -1])
def test_a_routing_link_has_a_cost_within_limits(cost: int) -> None:
    assert [RoutingLink(actual_cost=c).actual_cost for c in (1, 999_999)] == [1, 999_999]
    with pytest.raises(DirectoryError) as refused:
        RoutingLink(actual_cost=cost)
    assert refused.value.status is MqStatus.ILLEGAL_PROPERTY_VALUE
    link = RoutingLink()
    with pytest.raises(DirectoryError):
        link.update({"actual_cost": cost})
    assert link.actual_cost == 1


@pytest.mark.requirement("DM-3.1.1.8-07", "DM-3.1.1.8-08", "DM-3.1.1.8-09")
def test_a_routing_link_refers_to_the_objects_it_names() -> None:
    # given a link between two sites through a gate
    one, two, gate = Site(UUID(int=1)), Site(UUID(int=2)), QueueManager(UUID(int=3))
    link = RoutingLink(
        site1_identifier=UUID(int=1),
        site2_identifier=UUID(int=2),
        site_gate_identifiers=[UUID(int=3)],
    )
    # then it refers to these, and to no others
    link.connect(one, two, [gate])
    assert (link.site1, link.site2, link.site_gates) == (one, two, [gate])
    for sites in ((two, two, [gate]), (one, one, [gate]), (one, two, [QueueManager()])):
        with pytest.raises(DirectoryError):
            link.connect(*sites)
    assert (link.site1, link.site2, link.site_gates) == (one, two, [gate])


@pytest.mark.requirement("DM-3.1.1.1-29", "DM-3.1.1.6-06", "DM-3.1.1.7-09", "DM-3.1.1.9-02")
@pytest.mark.parametrize(
    ("kind", "rights"),
    [
        (QueueManager, 0xF00F7),
        (Enterprise, 0xF0037),
        (Site, 0xF0037),
        (ConnectedNetwork, 0xF0031),
    ],
)
def test_a_descriptor_grants_only_rights_of_its_kind(
    kind: type[QueueManager | Enterprise | Site | ConnectedNetwork], rights: int
) -> None:
    # given every bit of a mask, when it is granted on an object of some kind
    taken = 0
    for bit in (1 << n for n in range(24)):
        descriptor = SecurityDescriptor(dacl=Acl.of([access_allowed(bit, EVERYONE)]))
        try:
            assert kind(security=descriptor).security == descriptor
            taken |= bit
        except QueueError as refusal:
            assert refusal.status is MqStatus.ILLEGAL_SECURITY_DESCRIPTOR
    # then the bits of that kind are taken, and no others
    assert taken == rights


@pytest.mark.requirement("DM-3.1.1.2-40")
def test_the_head_of_an_empty_queue_is_its_end() -> None:
    core = make_core()
    queue = given_queue(core)
    assert queue.positions.after(START, peek=True) is None
    enqueue_message(core, queue, message())
    (only,) = queue.positions.available
    assert queue.positions.after(START, peek=True) == only
    assert queue.positions.after(only, peek=True) is None


@pytest.mark.requirement("DM-3.1.1.15-02")
def test_the_digest_of_a_certificate_has_sixteen_bytes() -> None:
    user = User(certificate_digests=[bytes(16)])
    for wrong in (bytes(15), bytes(20)):
        with pytest.raises(DirectoryError):
            user.certificate_digests = [bytes(16), wrong]
    assert user.certificate_digests == [bytes(16)]


@pytest.mark.requirement("DM-3.1.1.10-01", "DM-3.1.1.10-02", "DM-3.1.1.10-03", "DM-3.1.1.16-17")
def test_reads_that_wait_say_what_they_are_and_wait_in_line() -> None:
    # given a receiver with a tag and a peeker without
    core = make_core()
    queue = given_queue(core)
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    reader = open_queue(core, name, AccessType.RECEIVE)
    receive = dequeue_message(core, reader, timeout=None, tag="tag")
    peek = peek_message(core, reader, timeout=None)
    # then both wait, in their order, and say so
    assert list(queue.waiting) == [receive, peek]
    assert isinstance(receive, WaitingRead)
    assert isinstance(peek, WaitingRead)
    assert (receive.is_destructive, receive.tag, receive.cursor) == (True, "tag", None)
    assert (peek.is_destructive, peek.tag, peek.cursor) == (False, None, None)


@pytest.mark.requirement("DM-3.1.1.1-51")
def test_the_collection_of_queues_has_outgoing_ones_too() -> None:
    core = make_core()
    queue = given_queue(core)
    outgoing = open_queue(core, parse_format_name(r"DIRECT=OS:x\q"), AccessType.SEND).queue
    commit(core)
    assert isinstance(outgoing, Queue)
    assert {queue.number, outgoing.number} <= core.queues.keys()


def test_the_properties_of_two_queues_are_two_objects() -> None:
    core = make_core()
    given = QueueProperties()
    one = given_queue(core, "a")
    assert one.properties is not given
    assert one.properties is not given_queue(core, "b").properties
