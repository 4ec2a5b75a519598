"""Who is told of a change, how, and when not (T1, T29 to T31, T35; MQCN 3.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from falconmq.directory.notification import ReceivingSettings, default_hash, notify_queue
from falconmq.directory.notification_building import build_update, build_updates
from falconmq.directory.notification_receiving import ChangeNotificationServer
from falconmq.directory.notification_sending import (
    IDLE_SECONDS,
    ChangeNotificationClient,
    SendingSettings,
    Told,
)
from falconmq.errors import WireError
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory import (
    create_directory_object,
    delete_directory_object,
    write_directory,
)
from falconmq.manager.directory_objects import (
    NULL_UUID,
    DirectoryObject,
    Enterprise,
    QueueManager,
    RoutingLink,
    Site,
)
from falconmq.manager.lifecycle import initialize
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.model import OutgoingQueue, Queue, QueueProperties
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import (
    AccessType,
    ChangeOperation,
    QueueType,
    ShareMode,
)
from falconmq.manager.storing import enqueue_message
from falconmq.names import PathName, PrivateFormatName
from falconmq.names.syntax import MsmqVersion
from falconmq.security.hashes import HASHES
from falconmq.security.keys import ManagerKeys, public_keys
from falconmq.security.manager_signatures import signing_manager, verify_manager
from falconmq.security.problems import SecurityError
from falconmq.security.providers import ADVANCED
from falconmq.security.signature_input import SignatureVersion, signature_input
from falconmq.store import MemoryStore
from falconmq.wire.change_notification import ChangeNotificationMessage, NotificationBody
from falconmq.wire.directory_change import NotificationUpdate
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import HASH_MD5, HASH_SHA1, HASH_SHA256, HASH_SHA512
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.user_message import UserMessage
from tests.directory.enterprises import guid
from tests.manager.directories import SITE, make_directory, make_integrated_core
from tests.manager.helpers import COMPUTER, IDENTIFIER, commit, given_queue, pass_time
from tests.security import known

OWNER = guid("OWNER")
QUEUE = guid("OWNER's queue")
KEYS = ManagerKeys({}, {ADVANCED: known.PAIR_1024})
PUBLISHED = public_keys({ADVANCED: known.PAIR_1024.public})
Op = ChangeOperation


def make_client(
    settings: SendingSettings | None = None, *, keys: bool = True, system: str = "10.0"
) -> tuple[QueueManagerCore, ChangeNotificationClient]:
    directory = make_directory()
    owner = QueueManager(OWNER, computer_name="OWNER", site_identifiers=[SITE])
    owner.operating_system_version = system
    directory.create("QueueManager", owner.row())
    core, _, _ = make_integrated_core(directory)
    client = ChangeNotificationClient(core, settings, (lambda: KEYS) if keys else None)
    core.change_notifier = client
    return core, client


def their_queue(core: QueueManagerCore, **properties: Any) -> Queue:
    """A public queue of the owner, as we have it in our hands to write it to the directory."""
    chosen = QueueProperties(security=parse_sddl("O:WDG:WDD:(A;;0x2003f;;;WD)"), **properties)
    path_name = PathName.parse(r"OWNER\orders")
    queue = Queue(4711, path_name, QueueType.PUBLIC, chosen, core.fetch)
    queue.identifier, queue.create_time, queue.modify_time = QUEUE, 11, 22
    return queue


def outgoing(core: QueueManagerCore, owner: UUID = OWNER) -> OutgoingQueue:
    return core.outgoing[notify_queue(owner)]


def sent(core: QueueManagerCore, owner: UUID = OWNER) -> list[StoredMessage]:
    queue = core.outgoing.get(notify_queue(owner))
    ids = [] if queue is None else queue.positions.lookup_ids()
    found = [] if queue is None else [queue.positions.find(lookup_id) for lookup_id in ids]
    return [position.message for position in found if position is not None]


def only(core: QueueManagerCore) -> UserMessage:
    (message,) = sent(core)
    return message.packet


def told(packet: UserMessage) -> Any:
    return ChangeNotificationMessage.decode(packet.properties.message_body).data


@pytest.mark.requirement(
    "CN-3.3.4.1-01",
    "CN-3.3.4.1-02",
    "CN-3.3.4.1-04",
    "CN-3.3.4.1-05",
    "CN-3.3.4.1-07",
    "CN-3.3.5.1-01",
    "CN-3.3.5.1-02",
    "CN-3.3.5.1-03",
    "CN-3.3.5.1-04",
    "CN-3.3.5.1-05",
    "CN-3.3.5.1-06",
    "CN-3.3.5.1-08",
    "CN-3.3.5.1-09",
    "CN-3.3.5.1-10",
    "CN-3.3.5.1-11",
    "CN-3.3.5.1-13",
    "CN-3.3.5.1-14",
)
@pytest.mark.parametrize(
    ("operation", "event"),
    [
        (Op.QUEUE_CREATION, "1"),
        (Op.QUEUE_UPDATE, "2"),
        (Op.QUEUE_DELETION, "3"),
        (Op.QUEUE_MANAGER_UPDATE, "4"),
    ],
)
def test_a_queue_manager_tells_which_object_changed_and_where(
    operation: ChangeOperation, event: str
) -> None:
    core, client = make_client(SendingSettings(server="dc1.example.com"))
    of_machine = operation is Op.QUEUE_MANAGER_UPDATE
    entry: Queue | DirectoryObject = QueueManager(OWNER) if of_machine else their_queue(core)
    assert client.tell(operation, entry) is Told.SENT
    body = bytes(only(core).properties.message_body)
    guid_text = str(OWNER if of_machine else QUEUE).upper()
    text = (
        f"<Notification><Event>{event}</Event><ObjectGuid>{guid_text}</ObjectGuid>"
        "<DomainController>dc1.example.com</DomainController></Notification>"
    )
    assert body == b"\2\1" + text.encode("utf-16-le") + b"\0"


@pytest.mark.requirement(
    "CN-3.3.5.3-01",
    "CN-3.3.5.3-02",
    "CN-3.3.5.3-03",
    "CN-3.3.5.3-04",
    "CN-3.3.5.3-05",
    "CN-3.3.5.3-06",
    "CN-3.3.5.3-07",
    "CN-3.3.5.3-09",
    "CN-3.3.5.3-10",
    "CN-3.3.5.3-14",
    "CN-3.3.5.3-15",
)
@pytest.mark.parametrize(
    ("version", "hash_algorithm", "signature"),
    [
        (MsmqVersion.MSMQ_1_0, HASH_MD5, SignatureVersion.MSMQ_1_0),
        (MsmqVersion.MSMQ_2_0, HASH_MD5, SignatureVersion.MSMQ_2_0),
        (MsmqVersion.MSMQ_3_0, HASH_SHA1, SignatureVersion.MSMQ_2_0),
        (MsmqVersion.MSMQ_4_0, HASH_SHA1, SignatureVersion.MSMQ_2_0),
        (MsmqVersion.MSMQ_6_0, HASH_SHA512, SignatureVersion.MSMQ_2_0),
    ],
)
def test_the_message_is_express_lives_five_minutes_and_is_signed(
    version: MsmqVersion, hash_algorithm: int, signature: SignatureVersion
) -> None:
    core, client = make_client(SendingSettings(version=version))
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    packet = only(core)
    assert packet.base.time_to_reach_queue == 300
    assert packet.user.delivery_mode == 0
    assert packet.properties.message_class == MessageClass.NORMAL
    assert packet.properties.hash_algorithm == hash_algorithm == default_hash(version)
    assert packet.user.destination_queue == 3
    assert packet.user.queue_manager_address == OWNER.bytes_le
    assert verify_manager(packet, PUBLISHED, allow_weak=True) is signature
    notification = ChangeNotificationMessage.decode(packet.properties.message_body)
    assert bytes(packet.properties.message_body) == notification.encode()
    assert packet.properties.message_body[-1] == 0
    assert core.journal.positions.lookup_ids() == []  # T35


@pytest.mark.requirement("CN-3.3.3-01", "CN-3.3.3-02", "CN-3.3.3-03", "CN-3.3.3-04", "CN-3.3.3-05")
@pytest.mark.requirement("CN-3.3.3-06")
def test_the_way_to_an_owner_is_opened_once_and_closed_when_it_is_idle() -> None:
    core, client = make_client()
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    (descriptor,) = outgoing(core).descriptors
    assert descriptor.format_name == PrivateFormatName(OWNER, 3)
    assert (descriptor.access, descriptor.share) == (AccessType.SEND, ShareMode.DENY_NONE)
    assert not outgoing(core).next_hops
    pass_time(core, IDLE_SECONDS - 1)
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    assert outgoing(core).descriptors == [descriptor]
    pass_time(core, 1)  # the watch looks, and it was used a second ago
    assert outgoing(core).descriptors == [descriptor]
    pass_time(core, IDLE_SECONDS)
    assert outgoing(core).descriptors == []
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    assert len(outgoing(core).descriptors) == 1
    pass_time(core, IDLE_SECONDS)
    assert outgoing(core).descriptors == []
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    client.close()
    assert outgoing(core).descriptors == []


@pytest.mark.requirement("CN-3.3.5.1-12")
def test_every_object_has_a_message_of_its_own() -> None:
    core, client = make_client()
    for _ in range(3):
        client.tell(Op.QUEUE_UPDATE, their_queue(core))
    assert [type(told(message.packet)) for message in sent(core)] == [NotificationBody] * 3
    assert client.counters == {"sent": 3}


@pytest.mark.requirement("CN-1.6-01", "CN-2.2.5-10")
@pytest.mark.parametrize("operation", list(Op))
def test_nobody_is_told_of_our_own_objects_and_of_private_queues(
    operation: ChangeOperation,
) -> None:  # T29, T30
    core, client = make_client()
    ours = their_queue(core)
    ours.path_name = PathName.parse(rf"{COMPUTER}\orders")
    private = given_queue(core)
    entries: list[tuple[Queue | DirectoryObject, Told]] = [
        (ours, Told.OWN),
        (core.local, Told.OWN),
        (private, Told.NOTHING_TO_TELL),
        (Site(guid("A")), Told.NOTHING_TO_TELL),
        (RoutingLink(guid("L")), Told.NOTHING_TO_TELL),
        (Enterprise(guid("E")), Told.NOTHING_TO_TELL),
    ]
    for entry, expected in entries:
        assert client.tell(operation, entry) is expected
    assert core.outgoing == {}


@pytest.mark.parametrize("is_directory_service", [False, True])
def test_foreign_systems_are_told_nothing(
    caplog: pytest.LogCaptureFixture, is_directory_service: bool
) -> None:
    core, client = make_client(SendingSettings(is_directory_service=is_directory_service))
    directory = core.directory
    assert isinstance(directory, MemoryDirectory)
    owner = QueueManager(OWNER, computer_name="OWNER", foreign_system=True)
    directory.rows["QueueManager"][OWNER]["foreign_system"] = True
    assert client.tell(Op.QUEUE_CREATION, their_queue(core)) is Told.FOREIGN
    assert client.tell(Op.QUEUE_MANAGER_UPDATE, owner) is Told.FOREIGN
    assert core.outgoing == {}
    assert not caplog.records


def test_whom_nobody_can_be_found_for_is_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    core, client = make_client()
    stranger = their_queue(core)
    stranger.path_name = PathName.parse(r"NOBODY\orders")
    assert client.tell(Op.QUEUE_UPDATE, stranger) is Told.OWNER_UNKNOWN
    assert "owner unknown" in caplog.text
    unborn = QueueManager(NULL_UUID)
    assert client.tell(Op.QUEUE_MANAGER_UPDATE, unborn) is Told.NO_IDENTIFIER
    queue = their_queue(core)
    queue._identifier = NULL_UUID
    assert client.tell(Op.QUEUE_UPDATE, queue) is Told.NO_IDENTIFIER
    assert client.counters == {Told.OWNER_UNKNOWN.value: 1, Told.NO_IDENTIFIER.value: 2}


@pytest.mark.parametrize("is_created", [True, False])
def test_a_new_queue_is_told_of_when_the_directory_has_given_it_its_guid(is_created: bool) -> None:
    # given a queue without a GUID, that the directory takes or refuses
    core, client = make_client()
    directory = core.directory
    assert isinstance(directory, MemoryDirectory)
    queue = their_queue(core)
    queue._identifier = NULL_UUID
    directory.is_connected = is_created
    create_directory_object(core, queue)
    assert core.outgoing == {}
    # when the event is over
    directory.is_connected = True
    core.run_timers()
    # then the owner is told of it, if it has come to be
    if is_created:
        (identifier,) = directory.rows["Queue"]
        assert told(only(core)).object_guid == identifier.bytes_le
    else:
        assert core.outgoing == {}
    expected = Told.SENT if is_created else Told.NO_IDENTIFIER
    assert client.counters == {Told.LATER.value: 1, expected.value: 1}


def test_a_message_that_cannot_be_built_or_stored_is_not_sent() -> None:
    core, client = make_client(SendingSettings(server="not a name"))
    assert client.tell(Op.QUEUE_UPDATE, their_queue(core)) is Told.NOT_SENT
    core, client = make_client()
    core.settings.quota_kilobytes = 0
    assert client.tell(Op.QUEUE_UPDATE, their_queue(core)) is Told.NOT_SENT


def test_the_server_to_ask_is_the_first_that_is_known_or_ourselves() -> None:
    core, client = make_client()
    core.settings.qualified_computer_name = "sales01.example.com"
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    core.directory_servers = ["dc7.example.com", "dc8.example.com"]
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    servers = [told(message.packet).domain_controller for message in sent(core)]
    assert servers == ["sales01.example.com", "dc7.example.com"]


@pytest.mark.parametrize(
    ("system", "flag", "expected"),
    [
        ("4.0", True, Told.OWNER_TOO_OLD),
        ("5.0 (2195)", True, Told.OWNER_TOO_OLD),
        ("5.0 (2195)", False, Told.SENT),
        ("5.1", True, Told.SENT),
        ("", True, Told.SENT),
    ],
)
def test_an_owner_that_knows_version_1_alone_is_not_told_in_version_2(
    system: str, flag: bool, expected: Told
) -> None:  # T31
    core, client = make_client(system=system)
    assert core.enterprise is not None
    core.enterprise.non_ldap_capable_queue_manager_notification = flag
    assert client.tell(Op.QUEUE_UPDATE, their_queue(core)) is expected


def test_without_keys_version_2_goes_unsigned_and_version_1_not_at_all() -> None:
    core, client = make_client(keys=False)
    assert client.tell(Op.QUEUE_UPDATE, their_queue(core)) is Told.SENT
    assert only(core).security is None
    core, client = make_client(SendingSettings(is_directory_service=True), keys=False)
    assert client.tell(Op.QUEUE_UPDATE, their_queue(core)) is Told.NO_KEYS


# Version 1


def update_of(
    operation: ChangeOperation, entry: Any = None, changed: tuple[str, ...] | None = None
) -> tuple[NotificationUpdate, UserMessage]:
    core, client = make_client(SendingSettings(is_directory_service=True))
    entry = their_queue(core, quota_kilobytes=5) if entry is None else entry
    assert client.tell(operation, entry, changed) is Told.SENT
    packet = only(core)
    (update,) = told(packet)
    assert bytes(packet.properties.message_body)[:2] == b"\1\1"
    assert update.guid_master_id == IDENTIFIER.bytes_le
    return update, packet


@pytest.mark.requirement(
    "CN-3.3.4.1-06",
    "CN-3.3.5.2-01",
    "CN-3.3.5.2-02",
    "CN-3.3.5.2-06",
    "CN-3.3.5.2-08",
    "CN-2.2.6-11",
    "CN-3.3.5.2-11",
    "CN-3.3.5.2-12",
    "CN-3.3.5.2-13",
    "CN-3.3.5.2-42",
    "CN-3.3.5.2-45",
    "CN-3.3.5.2-46",
    "CN-3.3.5.2-48",
    "CN-3.3.5.2-49",
    *[f"CN-3.3.5.2-{row}" for row in range(14, 30)],
)
def test_a_directory_service_says_what_a_new_queue_is_like() -> None:
    update, _ = update_of(Op.QUEUE_CREATION)
    assert (update.command, update.use_guid, update.path_name) == (0, False, r"OWNER\orders")
    security = parse_sddl("O:WDG:WDD:(A;;0x2003f;;;WD)").encode()
    assert dict(update.properties) == {
        101: QUEUE.bytes_le,
        102: bytes(16),
        103: r"OWNER\orders",
        104: 0,
        105: 5,
        106: 0,
        107: 0xFFFFFFFF,
        108: "",
        109: 11,
        110: 22,
        111: 0,
        112: 1,
        113: 0,
        114: 1,
        1101: security,
    }
    assert update.properties[0][0] == 101  # A16


@pytest.mark.requirement("CN-3.3.5.2-33")
@pytest.mark.requirement(
    "CN-3.3.5.2-03",
    "CN-3.3.5.2-07",
    "CN-3.3.5.2-09",
    "CN-3.3.5.2-10",
    "CN-3.3.5.2-31",
    "CN-3.3.5.2-32",
)
def test_a_directory_service_says_what_of_a_queue_is_new() -> None:
    update, _ = update_of(Op.QUEUE_UPDATE, changed=("quota_kilobytes", "label", "authentication"))
    assert (update.command, update.guid_identifier) == (1, QUEUE.bytes_le)
    assert update.path_name is None
    assert update.properties == [(115, OWNER.bytes_le), (105, 5), (111, 0)]
    update, _ = update_of(Op.QUEUE_UPDATE)
    assert [number for number, _ in update.properties] == [115, 104, 105, 106, 107, 111, 112, 1101]


@pytest.mark.requirement("CN-3.3.5.2-37")
@pytest.mark.requirement("CN-3.3.5.2-34", "CN-3.3.5.2-35", "CN-3.3.5.2-36")
def test_a_directory_service_says_what_of_a_queue_manager_is_new() -> None:
    machine = QueueManager(OWNER, computer_name="OWNER", quota_kilobytes=8)
    update, _ = update_of(Op.QUEUE_MANAGER_UPDATE, machine, ("quota_kilobytes",))
    assert (update.command, update.guid_identifier) == (1, OWNER.bytes_le)
    assert update.properties == [(202, OWNER.bytes_le), (219, 0), (214, 8)]
    update, _ = update_of(Op.QUEUE_MANAGER_UPDATE, machine)
    assert [number for number, _ in update.properties] == [202, 219, 214, 215, 1201]


@pytest.mark.requirement(
    "CN-3.3.5.2-04", "CN-3.3.5.2-40", "CN-3.3.5.2-41", "CN-3.3.5.2-43", "CN-3.3.5.2-44"
)
def test_a_directory_service_says_that_a_queue_is_gone() -> None:
    update, _ = update_of(Op.QUEUE_DELETION)
    assert (update.command, update.guid_identifier) == (2, QUEUE.bytes_le)
    assert update.properties == [(1403, 1), (1404, 1)]


@pytest.mark.requirement("CN-3.3.5.3-11", "CN-3.3.5.3-12")
def test_version_1_is_signed_by_the_queue_manager_of_the_directory_service() -> None:
    _, packet = update_of(Op.QUEUE_DELETION)
    assert packet.security is not None
    assert packet.security.flags & 0xF == 2
    assert bytes(packet.security.security_id) == IDENTIFIER.bytes_le  # A3: of the sender
    assert verify_manager(packet, PUBLISHED) is SignatureVersion.MSMQ_2_0


@pytest.mark.requirement("CN-3.3.5.2-47")
def test_several_changes_may_go_in_one_message() -> None:
    core, _ = make_client()
    queue = their_queue(core)
    told_of = [build_update(op, queue, OWNER, IDENTIFIER) for op in (Op.QUEUE_UPDATE,) * 255]
    assert ChangeNotificationMessage.decode(build_updates(told_of).encode()).data == told_of
    with pytest.raises(WireError):
        build_updates([*told_of, told_of[0]]).encode()


# Both sides


def owner_core(directory: MemoryDirectory, like: QueueManagerCore) -> QueueManagerCore:
    settings = Settings(computer_name="OWNER")
    core = QueueManagerCore(OWNER, MemoryStore(), like.clock, like.random, settings, directory)
    initialize(core)
    commit(core)
    return core


@pytest.mark.parametrize("version", [1, 2])
def test_an_owner_follows_what_another_does_to_its_queue(version: int) -> None:  # T1, T2, T3
    # given two queue managers of one directory, and a queue of one that the other creates
    core, _ = make_client(SendingSettings(is_directory_service=version == 1))
    directory = core.directory
    assert isinstance(directory, MemoryDirectory)
    directory.rows["QueueManager"][IDENTIFIER]["directory_server"] = True
    owner = owner_core(directory, core)
    server = ChangeNotificationServer(owner, ReceivingSettings(is_immediate=True))
    server.start()
    queue = their_queue(core, label="new", quota_kilobytes=5)

    def deliver() -> None:
        """What the transport does: the message comes, its signature is verified, it is stored."""
        messages = sent(core)
        arrived = StoredMessage(messages[-1].data)
        arrived.authentication_level = verify_manager(arrived.packet, PUBLISHED)
        enqueue_message(owner, owner.private_numbers[3], arrived)
        owner.run_timers()

    # when it creates, changes and deletes it, then the owner has it, the change, and not any more
    create_directory_object(core, queue)
    deliver()
    assert owner.public[QUEUE].properties.quota_kilobytes == 5
    queue.properties = replace(queue.properties, quota_kilobytes=6)
    write_directory(core, queue)
    deliver()
    assert owner.public[QUEUE].properties.quota_kilobytes == 6
    delete_directory_object(core, queue)
    deliver()
    assert owner.public == {}
    # and what it says of the owner itself
    theirs = QueueManager(OWNER)
    theirs.update({**directory.rows["QueueManager"][OWNER], "quota_kilobytes": 12})
    write_directory(core, theirs)
    deliver()
    assert owner.settings.quota_kilobytes == 12
    assert sum(server.counters.values()) == server.counters["reloads"] + 8


def test_a_signature_of_another_key_or_over_another_text_does_not_fit() -> None:
    core, client = make_client()
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    packet = only(core)
    changed = replace(packet.properties, message_body=b"\2\1other")
    nobody = public_keys({})
    small = public_keys({ADVANCED: known.PAIR_512.public})
    for other, keys in (
        (replace(packet, properties=changed), PUBLISHED),
        (packet, nobody),
        (packet, small),
        (replace(packet, security=None), PUBLISHED),
    ):
        with pytest.raises(SecurityError):
            verify_manager(other, keys)
    assert verify_manager(packet, PUBLISHED) is SignatureVersion.MSMQ_2_0


def test_a_key_that_is_too_short_counts_only_where_weak_ones_are_allowed() -> None:
    # given a packet that somebody signed with 512 bits, which we never do
    core, client = make_client()
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    packet = only(core)
    packet = replace(packet, properties=replace(packet.properties, hash_algorithm=HASH_SHA256))
    key = known.PAIR_512
    digest = HASHES[HASH_SHA256].digest_info(signature_input(SignatureVersion.MSMQ_2_0, packet))
    block = b"\0\1" + b"\xff" * (64 - 3 - len(digest)) + b"\0" + digest
    number = pow(int.from_bytes(block, "big"), key.private_exponent, key.modulus)
    assert packet.security is not None
    security = replace(packet.security, signature=number.to_bytes(64, "little"))
    packet = replace(packet, security=security)
    published = public_keys({ADVANCED: key.public})
    # then it counts where an administrator allows such
    assert verify_manager(packet, published, allow_weak=True) is SignatureVersion.MSMQ_2_0
    with pytest.raises(SecurityError):
        verify_manager(packet, published)


def test_only_sixteen_bytes_name_a_queue_manager() -> None:
    core, client = make_client()
    client.tell(Op.QUEUE_UPDATE, their_queue(core))
    packet = only(core)
    assert packet.security is not None
    assert signing_manager(packet) == IDENTIFIER
    for identifier in (b"", b"1" * 15, b"1" * 17):
        security = replace(packet.security, security_id=identifier)
        assert signing_manager(replace(packet, security=security)) is None
    assert signing_manager(replace(packet, security=None)) is None
