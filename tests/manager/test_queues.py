"""Creating, changing, emptying and deleting queues (scenarios 1 to 8 of the guide)."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

import pytest

from falconmq.errors import DirectoryError, MqStatus, NameSyntaxError, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.cursors import open_cursor
from falconmq.manager.model import NULL_UUID, UNLIMITED, OutgoingQueue, Queue, QueueProperties
from falconmq.manager.moving import move_message
from falconmq.manager.queues import (
    close_queue,
    create_connector_queue,
    create_queue,
    delete_queue,
    find_queue,
    open_queue,
    open_subqueue,
    pause_queue,
    purge_queue,
    resume_queue,
    set_queue_defaults,
    set_queue_properties,
)
from falconmq.manager.reading import dequeue_message, peek_message
from falconmq.manager.states import (
    AccessType,
    ChangeOperation,
    DirectoryResult,
    OutgoingState,
    PositionState,
    QueuePrivacy,
    QueueScope,
    QueueType,
)
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import abort_transaction, create_transaction
from falconmq.names import (
    ConnectorFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    parse_format_name,
)
from falconmq.wire.access_masks import MQSEC_RECEIVE_MESSAGE
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.message_class import MessageClass
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import EVERYONE
from tests.manager.directories import make_integrated_core
from tests.manager.helpers import (
    COMPUTER,
    IDENTIFIER,
    START_TIME,
    bodies,
    commit,
    make_core,
    message,
    pass_time,
    record_events,
)


def path(text: str) -> PathName:
    return PathName.parse(text)


def create(core: QueueManagerCore, name: str, **properties: Any) -> Queue:
    return create_queue(core, path(name), QueueProperties(**properties))


def refusal(error: pytest.ExceptionInfo[Any]) -> MqStatus:
    status = error.value.status
    assert isinstance(status, MqStatus)
    return status


@pytest.mark.requirement(
    "DM-3.1.1.2-02",
    "DM-3.1.1.2-09",
    "DM-3.1.1.2-10",
    "DM-3.1.1.2-11",
    "DM-3.1.1.2-12",
    "DM-3.1.1.2-17",
    "DM-3.1.1.2-18",
)
@pytest.mark.requirement(
    "DM-3.1.7.1.33-01",
    "DM-3.1.7.1.33-02",
    "DM-3.1.7.1.33-03",
    "DM-3.1.7.1.33-04",
    "DM-3.1.7.1.33-05",
    "DM-3.1.7.1.33-06",
    "DM-3.1.7.1.33-07",
    "DM-3.1.7.1.33-08",
    "DM-3.1.7.1.33-09",
    "DM-3.1.7.1.33-10",
    "DM-3.1.7.1.33-11",
    "DM-3.1.7.1.33-12",
)
def test_the_defaults_of_a_queue_are_those_of_the_specification() -> None:
    # given a queue manager, when the defaults are asked for
    defaults = set_queue_defaults(make_core())
    # then they are these eleven
    assert defaults.label == ""
    assert defaults.type == NULL_UUID
    assert defaults.journaling is False
    assert defaults.quota_kilobytes == 0xFFFFFFFF
    assert defaults.journal_quota_kilobytes == 0xFFFFFFFF
    assert defaults.authentication is False
    assert defaults.privacy_level is QueuePrivacy.OPTIONAL
    assert defaults.transactional is False
    assert defaults.multicast_address is None
    assert defaults.security is not None
    assert defaults.security.dacl is not None
    assert defaults.base_priority == 0


@pytest.mark.requirement(
    "DM-3.1.7.1.3-04",
    "DM-3.1.7.1.3-08",
    "DM-3.1.7.1.3-09",
    "DM-3.1.7.1.3-10",
    "DM-3.1.7.1.3-11",
    "DM-3.1.7.1.3-14",
    "DM-3.1.7.1.3-15",
    "DM-3.1.7.1.3-16",
    "DM-3.1.7.1.3-17",
    "DM-3.1.7.1.3-18",
    "DM-3.1.7.1.3-20",
    "DM-3.1.7.1.3-21",
    "DM-3.1.7.1.3-28",
)
def test_a_new_private_queue_is_empty_closed_and_has_a_journal() -> None:
    # given a queue manager in a directory
    core, directory, notices = make_integrated_core()
    # when a private queue is created
    queue = create(core, r".\private$\a")
    # then it is local, new in everything, and the directory was not asked
    assert core.queues[queue.number] is queue
    assert queue.queue_type is QueueType.PRIVATE
    assert queue.path_name == path(rf"{COMPUTER}\private$\a")
    assert queue.journal is not None
    assert not queue.is_active
    assert queue.total_bytes == 0
    assert queue.subqueues == {}
    assert queue.incoming_transfers == []
    assert len(queue.positions) == 0
    assert queue.descriptors == []
    assert (queue.create_time, queue.modify_time) == (START_TIME, START_TIME)
    assert queue.scope is QueueScope.ENTERPRISE
    assert (queue.full_path, queue.directory_path) == ("", "")
    assert directory.calls == []
    assert notices == []


@pytest.mark.requirement("DM-3.1.7.1.3-05", "DM-3.1.7.1.3-06", "DM-3.1.1.2-05")
def test_a_new_queue_has_the_properties_its_creator_chose() -> None:
    # given properties that all differ from the defaults
    security = SecurityDescriptor(dacl=Acl.of([access_allowed(MQSEC_RECEIVE_MESSAGE, EVERYONE)]))
    chosen = QueueProperties(
        label="Orders",
        type=UUID(int=5),
        journaling=True,
        quota_kilobytes=7,
        journal_quota_kilobytes=8,
        authentication=True,
        privacy_level=QueuePrivacy.BODY,
        transactional=True,
        multicast_address="234.1.1.1:8001",
        security=security,
        base_priority=-3,
    )
    # when a queue is created with them
    queue = create_queue(make_core(), path(r".\private$\a"), chosen)
    # then it has them all, as a copy; only an owner was added to the descriptor
    given, taken = dataclasses.asdict(chosen), dataclasses.asdict(queue.properties)
    assert taken.pop("security") != given.pop("security")
    assert taken == given
    assert queue.properties.security is not None
    assert queue.properties.security.dacl == security.dacl
    assert queue.properties is not chosen


@pytest.mark.requirement("DM-3.1.7.1.3-07")
def test_a_creator_can_choose_these_eleven_properties_and_nothing_else() -> None:
    assert {field.name for field in dataclasses.fields(QueueProperties)} == {
        "label",
        "type",
        "journaling",
        "quota_kilobytes",
        "journal_quota_kilobytes",
        "authentication",
        "privacy_level",
        "transactional",
        "multicast_address",
        "security",
        "base_priority",
    }


@pytest.mark.requirement("DM-3.1.7.1.3-12", "DM-3.1.7.1.3-13")
def test_the_path_decides_whether_a_queue_is_public_private_or_of_the_system() -> None:
    core, _, _ = make_integrated_core()
    assert create(core, r".\private$\a").queue_type is QueueType.PRIVATE
    assert create(core, r".\system$;extra").queue_type is QueueType.SYSTEM
    assert create(core, r".\a").queue_type is QueueType.PUBLIC


@pytest.mark.requirement("DM-3.1.7.1.3-19", "DM-3.1.1.2-07")
def test_the_qualified_path_name_has_the_full_name_of_the_computer() -> None:
    core = make_core(domain_name="example.com")
    queue = create(core, r".\private$\a")
    assert queue.qualified_path_name == rf"{COMPUTER}.example.com\private$\a"


@pytest.mark.requirement("MQ-2.2.18.1.5.1-02", "MQ-2.2.18.1.7.2-04")
@pytest.mark.requirement("DM-3.1.7.1.3-22")
def test_private_numbers_are_unique_and_not_used_again() -> None:
    # given three private queues, when one is deleted and another created
    core = make_core()
    queues = [create(core, rf".\private$\q{n}") for n in range(3)]
    gone = queues[1].private_queue_number
    delete_queue(core, queues[1])
    queues[1] = create(core, r".\private$\again")
    # then no number is there twice, none is that of a system queue, and the old one is not back
    numbers = [queue.private_queue_number for queue in queues]
    assert len({*numbers, gone, 1, 3, 4}) == 7
    assert gone not in numbers


@pytest.mark.requirement("MQ-2.2.18.1.5.1-02", "MQ-2.2.18.1.7.2-04")
@pytest.mark.requirement("DM-3.1.7.1.3-22", "DM-3.1.1.2-08")
def test_a_private_number_that_is_taken_is_passed_over() -> None:
    # given a queue that has the number the next one would get
    core = make_core()
    first = create(core, r".\private$\a")
    core.private_numbers[core.queue_number.value + 1] = first
    # when the next one is created
    second = create(core, r".\private$\b")
    # then it gets another
    assert second.private_queue_number == second.number + 1


@pytest.mark.requirement("DM-3.1.7.1.3-30")
def test_a_journal_is_a_system_queue_with_the_journal_quota_and_no_journal() -> None:
    core = make_core()
    queue = create(core, r".\private$\a", journal_quota_kilobytes=12)
    journal = find_queue(core, path(r".\private$\a;journal"))
    assert journal is queue.journal
    assert journal is not None
    assert journal.queue_type is QueueType.SYSTEM
    assert journal.properties.quota_kilobytes == 12
    assert not journal.properties.transactional
    transactional = create(core, r".\private$\t", transactional=True)
    assert transactional.journal is not None
    assert transactional.journal.properties.transactional
    assert journal.journal is None


@pytest.mark.requirement("MQ-2.1.3-04")
@pytest.mark.requirement("DM-3.1.7.1.3-23", "DM-3.1.7.1.3-24", "DM-3.1.7.1.3-25")
def test_a_public_queue_is_announced_then_created_in_the_directory_then_read_back() -> None:
    # given a queue manager in a directory
    core, directory, notices = make_integrated_core()
    # when a public queue is created
    queue = create(core, r".\b")
    # then it was announced before the directory had it, and has the directory's identity
    assert notices.operations == [ChangeOperation.QUEUE_CREATION]
    assert notices.calls_before == [0]
    assert directory.calls == ["create Queue", "read Queue"]
    assert directory.rows["Queue"].keys() == {queue.identifier}
    assert queue.full_path == f"CN={queue.identifier}"
    assert queue.directory_path == f"LDAP://CN={queue.identifier}"
    assert find_queue(core, PublicFormatName(queue.identifier)) is queue


@pytest.mark.requirement("DM-3.1.7.1.3-26")
@pytest.mark.parametrize(
    ("result", "status"),
    [
        (DirectoryResult.GENERIC_ERROR, MqStatus.DS_ERROR),
        (DirectoryResult.DIRECTORY_NOT_CONNECTED, MqStatus.NO_DS),
        (DirectoryResult.OBJECT_ALREADY_EXISTS, MqStatus.QUEUE_EXISTS),  # and nobody may see it
    ],
)
def test_a_public_queue_that_the_directory_refuses_does_not_come_to_be(
    monkeypatch: pytest.MonkeyPatch, result: DirectoryResult, status: MqStatus
) -> None:
    # given a directory that says no
    core, directory, _ = make_integrated_core()
    monkeypatch.setattr(directory, "create", lambda *_: (result, NULL_UUID))
    before = dict(core.queues)
    # when a public queue is created
    with pytest.raises(DirectoryError) as refused:
        create(core, r".\b")
    # then the directory's answer is the caller's, and nothing is there
    assert refusal(refused) is status
    assert core.queues == before
    assert core.paths.get(path(r".\b")) is None


@pytest.mark.requirement("DM-3.1.7.1.3-27", "DM-3.1.7.1.3-01", "DM-3.1.7.1.4-01")
def test_a_public_queue_can_come_and_go_without_the_directory_being_asked() -> None:
    # given a queue manager in a directory that is told not to use it
    core, directory, notices = make_integrated_core()
    guid = UUID(int=77)
    queue = create_queue(core, path(r".\b"), skip_directory=True, identifier=guid)
    assert find_queue(core, PublicFormatName(guid)) is queue
    # when the queue is deleted in the same way
    delete_queue(core, queue, skip_directory=True)
    # then the directory heard nothing
    assert directory.calls == []
    assert notices == []


def test_in_a_workgroup_a_public_queue_is_refused_and_a_private_one_proposed() -> None:
    core = make_core()
    with pytest.raises(DirectoryError) as refused:
        create(core, r".\b")
    assert refusal(refused) is MqStatus.UNSUPPORTED_OPERATION
    assert r"'.\private$\b'" in refused.value.hint
    assert create_queue(core, path(r".\b"), skip_directory=True).queue_type is QueueType.PUBLIC


@pytest.mark.requirement("DM-3.1.7.1.3-29")
def test_a_path_that_is_taken_is_refused_under_every_spelling() -> None:
    core = make_core()
    create(core, r".\private$\a")
    for name in (r".\private$\A", rf"{COMPUTER.lower()}\PRIVATE$\a", r"localhost\private$\a"):
        with pytest.raises(QueueError) as refused:
            create(core, name)
        assert refusal(refused) is MqStatus.QUEUE_EXISTS


@pytest.mark.requirement("DM-3.1.7.1.3-02")
@pytest.mark.parametrize("name", [r"elsewhere\private$\a", r".\private$\a;journal"])
def test_a_path_that_no_queue_can_have_here_is_refused(name: str) -> None:
    core = make_core()
    before = dict(core.queues)
    with pytest.raises(QueueError) as refused:
        create(core, name)
    assert refusal(refused) is MqStatus.ILLEGAL_QUEUE_PATHNAME
    assert core.queues == before


@pytest.mark.requirement("DM-3.1.7.1.3-02")
def test_a_path_that_breaks_the_grammar_never_becomes_a_name() -> None:
    with pytest.raises(NameSyntaxError) as refused:
        create(make_core(), r".\private$\bad;;name")
    assert refusal(refused) is MqStatus.ILLEGAL_QUEUE_PATHNAME


@pytest.mark.requirement("DM-3.1.7.1.3-03", "DM-3.1.7.1.3-04", "DM-3.1.1.2-36")
def test_a_subqueue_has_no_journal_and_the_properties_of_its_queue() -> None:
    # given a queue, when a subqueue is created by its path
    core = make_core()
    queue = create(core, r".\private$\q", transactional=True)
    subqueue = create(core, r".\private$\q;sub")
    # then it has no journal, belongs to the queue, and is found by both names
    assert subqueue.journal is None
    assert subqueue.parent is queue
    assert subqueue.properties is queue.properties
    assert queue.subqueues == {"sub": subqueue}
    assert open_subqueue(core, queue, "SUB") is subqueue
    assert find_queue(core, path(r".\private$\Q;Sub")) is subqueue
    # and cannot be created twice, nor without a queue
    with pytest.raises(QueueError) as refused:
        create(core, r".\private$\q;sub")
    assert refusal(refused) is MqStatus.QUEUE_EXISTS
    with pytest.raises(QueueError) as refused:
        create(core, r".\private$\nothing;sub")
    assert refusal(refused) is MqStatus.QUEUE_NOT_FOUND


def test_a_journal_has_no_subqueues() -> None:
    core = make_core()
    with pytest.raises(QueueError) as refused:
        open_subqueue(core, core.dead_letter, "sub")
    assert refusal(refused) is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION


@pytest.mark.requirement("DM-3.1.7.1.5-39")
def test_a_queue_is_found_by_each_of_its_names() -> None:
    # given queues of every kind
    core, _, _ = make_integrated_core(local_names=frozenset({"10.0.0.5", "fe80::1", "alias"}))
    private, public = create(core, r".\private$\a"), create(core, r".\b")
    guid = core.identifier
    number = private.private_queue_number
    connector = ConnectorFormatName(UUID(int=3), transactional=True)
    foreign = create_connector_queue(core, connector)
    # then every kind of name finds its queue
    names = {
        rf"DIRECT=OS:{COMPUTER}\private$\a": private,
        r"DIRECT=OS:alias\PRIVATE$\A": private,
        r"DIRECT=OS:.\private$\a;journal": private.journal,
        r"DIRECT=TCP:10.0.0.5\private$\a": private,
        r"DIRECT=TCP:fe80:0::1\b": public,
        "DIRECT=HTTP://localhost/msmq/private$/a": private,
        r"DIRECT=OS:.\SYSTEM$;DEADLETTER": core.dead_letter,
        r"DIRECT=OS:.\SYSTEM$;DEADXACT": core.transactional_dead_letter,
        r"DIRECT=OS:.\SYSTEM$;JOURNAL": core.journal,
        rf"PRIVATE={guid}\{number:x}": private,
        rf"PRIVATE={guid}\{number:08X};JOURNAL": private.journal,
        f"PUBLIC={public.identifier}": public,
        f"PUBLIC={public.identifier};JOURNAL": public.journal,
        f"MACHINE={guid};DEADLETTER": core.dead_letter,
        f"MACHINE={guid};DEADXACT": core.transactional_dead_letter,
        f"MACHINE={guid};JOURNAL": core.journal,
        str(connector): foreign,
        r"DIRECT=OS:other\private$\a": None,
        r"DIRECT=TCP:127.0.0.1\private$\a": None,  # another queue manager of this computer
        rf"PRIVATE={UUID(int=1)}\{number:x}": None,
        f"MACHINE={UUID(int=1)};JOURNAL": None,
        f"MACHINE={guid}": None,
        "MULTICAST=234.1.1.1:8001": None,
    }
    assert {n: find_queue(core, parse_format_name(n)) for n in names} == names
    assert find_queue(core, path(r"other\private$\a")) is None
    assert foreign.queue_type is QueueType.CONNECTOR


def test_the_loopback_addresses_are_ours_unless_we_were_given_addresses() -> None:
    core = make_core()
    queue = create(core, r".\private$\a")
    assert find_queue(core, parse_format_name(r"DIRECT=TCP:127.0.0.1\private$\a")) is queue


@pytest.mark.requirement("DM-3.1.7.1.4-02", "DM-3.1.7.1.4-03", "DM-3.1.7.1.4-04", "DM-3.1.7.1.6-02")
def test_deleting_a_queue_deletes_its_messages_and_leaves_its_readers_without_a_queue() -> None:
    # given a queue with three messages and two readers
    core = make_core()
    queue = create(core, r".\private$\q")
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    readers = [open_queue(core, name, AccessType.RECEIVE) for _ in range(2)]
    cursor = open_cursor(core, readers[0])
    for body in (b"1", b"2", b"3"):
        enqueue_message(core, queue, message(body))
    commit(core)
    events = record_events(core)
    # when it is deleted
    delete_queue(core, queue)
    commit(core)
    # then each message was deleted for that reason, and the readers are told that it is gone
    assert events.reasons == [MessageClass.NACK_Q_DELETED] * 3
    assert queue.number not in core.queues
    assert find_queue(core, name) is None
    for reader in readers:
        result = dequeue_message(core, reader, timeout=None)
        assert getattr(result, "status", None) is MqStatus.QUEUE_NOT_AVAILABLE
        result = peek_message(core, reader, timeout=None)
        assert getattr(result, "status", None) is MqStatus.QUEUE_NOT_AVAILABLE
        close_queue(core, reader)
    # and nothing of it is left in the store
    assert cursor is not None
    assert [key for key, _ in core.store.scan("messages")] == []
    assert queue.number.to_bytes(8, "big") not in dict(core.store.scan("queues"))
    assert core.used_bytes == 0


def test_a_read_that_waits_ends_when_its_queue_is_deleted() -> None:
    core = make_core()
    queue = create(core, r".\private$\q")
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    reader = open_queue(core, name, AccessType.RECEIVE)
    read = dequeue_message(core, reader, timeout=None)
    delete_queue(core, queue)
    assert commit(core) == [read]
    result = getattr(read, "result", None)
    assert result is not None
    assert result.status is MqStatus.QUEUE_NOT_AVAILABLE


def test_a_queue_takes_its_journal_and_its_subqueues_along() -> None:
    # given a queue with a message in its journal and one in a subqueue
    core = make_core()
    queue = create(core, r".\private$\q", journaling=True)
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    reader = open_queue(core, name, AccessType.RECEIVE)
    enqueue_message(core, queue, message(b"read"))
    dequeue_message(core, reader, timeout=0)
    enqueue_message(core, queue, message(b"moved"))
    position = queue.positions.find(next(iter(queue.positions.available)))
    assert position is not None
    move_message(core, position, open_subqueue(core, queue, "sub"))
    commit(core)
    assert queue.journal is not None
    assert bodies(queue.journal) == [b"read"]
    events = record_events(core)
    # when it is deleted
    delete_queue(core, queue)
    commit(core)
    # then only the message that nobody read is reported, and nothing is left
    assert events.reasons == [MessageClass.NACK_Q_DELETED]
    assert [q.path_name.kind.value for q in core.queues.values() if q.parent] == []
    assert list(core.store.scan("messages")) == []
    assert len(list(core.store.scan("queues"))) == 5


@pytest.mark.requirement("DM-3.1.7.1.4-05", "DM-3.1.7.1.4-07")
def test_a_public_queue_is_deleted_in_the_directory_too() -> None:
    core, directory, notices = make_integrated_core()
    queue = create(core, r".\b")
    delete_queue(core, queue)
    assert directory.rows["Queue"] == {}
    assert notices.operations[-1] is ChangeOperation.QUEUE_DELETION


@pytest.mark.requirement("DM-3.1.7.1.4-06")
def test_a_directory_that_cannot_delete_is_reported_but_the_queue_is_gone() -> None:
    core, directory, _ = make_integrated_core()
    queue = create(core, r".\b")
    directory.is_connected = False
    with pytest.raises(DirectoryError) as refused:
        delete_queue(core, queue)
    assert refusal(refused) is MqStatus.NO_DS
    assert find_queue(core, path(r".\b")) is None


def test_the_queues_of_the_system_cannot_be_deleted() -> None:
    core = make_core()
    with pytest.raises(QueueError) as refused:
        delete_queue(core, core.dead_letter)
    assert refusal(refused) is MqStatus.ACCESS_DENIED


@pytest.mark.requirement("DM-3.1.7.1.7-01", "DM-3.1.7.1.7-02", "DM-3.1.7.1.7-03")
def test_purging_deletes_what_is_free_and_marks_what_is_held() -> None:
    # given a message that a transaction has read, and one that is free
    core = make_core()
    queue = create(core, r".\private$\t", transactional=True)
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    reader = open_queue(core, name, AccessType.RECEIVE)
    for body in (b"held", b"free"):
        enqueue_message(core, queue, message(body, transactional=True))
    transaction = create_transaction(core)
    held = dequeue_message(core, reader, timeout=0, transaction=transaction)
    position = getattr(held, "position", None)
    assert position is not None
    events = record_events(core)
    # when the queue is purged
    assert purge_queue(core, queue) == 1
    # then the free one is gone and the held one is marked
    assert events.reasons == [MessageClass.NACK_Q_PURGED]
    assert position.state is PositionState.PURGE_PENDING
    # and goes when the transaction gives it back
    abort_transaction(core, transaction.identifier)
    assert events.reasons == [MessageClass.NACK_Q_PURGED] * 2
    assert len(queue.positions) == 0


def test_properties_change_together_with_the_time_of_the_change() -> None:
    # given a queue with a subqueue, ten seconds old
    core = make_core()
    queue = create(core, r".\private$\q")
    subqueue = open_subqueue(core, queue, "sub")
    pass_time(core, 10)
    # when properties of the subqueue are changed
    set_queue_properties(core, subqueue, label="New", journal_quota_kilobytes=4)
    # then they are those of the queue, its journal and its subqueue
    assert queue.properties.label == "New"
    assert subqueue.properties is queue.properties
    assert queue.modify_time == START_TIME + 10
    assert queue.create_time == START_TIME
    assert queue.journal is not None
    assert queue.journal.properties.quota_kilobytes == 4


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"label": "x" * 125}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"quota_kilobytes": -1}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"journal_quota_kilobytes": UNLIMITED + 1}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"base_priority": 0x8000}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"base_priority": -0x8001}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"privacy_level": 3}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"multicast_address": "10.0.0.1:80"}, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ({"transactional": True}, MqStatus.PROPERTY_NOTALLOWED),
        ({"colour": "red"}, MqStatus.ILLEGAL_PROPID),
    ],
)
def test_a_value_that_is_not_allowed_changes_nothing(
    change: dict[str, Any], status: MqStatus
) -> None:
    core = make_core()
    queue = create(core, r".\private$\q")
    before = dataclasses.asdict(queue.properties)
    with pytest.raises(QueueError) as refused:
        set_queue_properties(core, queue, journaling=True, **change)
    assert refusal(refused) is status
    assert dataclasses.asdict(queue.properties) == before


@pytest.mark.requirement("DM-3.1.1.2-13")
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_three_privacy_levels_and_no_other_are_taken(level: int) -> None:
    core = make_core()
    queue = create(core, r".\private$\q", privacy_level=level)
    assert queue.properties.privacy_level is QueuePrivacy(level)
    with pytest.raises(QueueError) as refused:
        create(core, r".\private$\p", privacy_level=level + 3)
    assert refusal(refused) is MqStatus.ILLEGAL_PROPERTY_VALUE


@pytest.mark.parametrize(
    "edge",
    [
        {"label": "x" * 124},
        {"quota_kilobytes": 0},
        {"quota_kilobytes": UNLIMITED},
        {"base_priority": 0x7FFF},
        {"base_priority": -0x8000},
    ],
)
def test_a_value_at_its_limit_is_taken(edge: dict[str, Any]) -> None:
    core = make_core()
    queue = create(core, r".\private$\q")
    set_queue_properties(core, queue, **edge)
    (name, value), *_ = edge.items()
    assert getattr(queue.properties, name) == value


@pytest.mark.requirement("DM-3.1.1.2-19")
def test_a_right_that_no_queue_has_is_refused() -> None:
    core = make_core()
    security = SecurityDescriptor(dacl=Acl.of([access_allowed(0x40, EVERYONE)]))
    with pytest.raises(QueueError) as refused:
        create(core, r".\private$\q", security=security)
    assert refusal(refused) is MqStatus.ILLEGAL_SECURITY_DESCRIPTOR


def test_a_public_queue_that_the_directory_cannot_change_stays_as_it_was() -> None:
    # given a public queue in a directory
    core, directory, notices = make_integrated_core()
    queue = create(core, r".\b")
    set_queue_properties(core, queue, label="first")
    assert directory.rows["Queue"][queue.identifier]["label"] == "first"
    assert notices.operations[-1] is ChangeOperation.QUEUE_UPDATE
    # when the directory is gone and the queue is changed
    directory.is_connected = False
    with pytest.raises(DirectoryError):
        set_queue_properties(core, queue, label="second")
    # then it has not changed
    assert queue.properties.label == "first"


@pytest.mark.requirement("DM-3.1.7.2.3-01", "DM-3.1.7.2.4-01")
def test_a_paused_queue_is_on_hold_until_it_is_resumed() -> None:
    core = make_core()
    name = parse_format_name(r"DIRECT=OS:other\private$\q")
    queue = open_queue(core, name, AccessType.SEND).queue
    assert isinstance(queue, OutgoingQueue)
    states = []
    for step in (pause_queue, resume_queue):
        step(core, queue)
        states.append(queue.state)
    assert states == [OutgoingState.ON_HOLD, OutgoingState.INACTIVE]


@pytest.mark.requirement("DM-3.1.7.2.4-02", "DM-3.1.1.3-14")
def test_in_hardened_mode_a_resumed_queue_stays_locked_unless_it_goes_over_http() -> None:
    core = make_core(hardened_security=True)
    for text, state in (
        (r"DIRECT=OS:other\private$\q", OutgoingState.LOCKED),
        ("DIRECT=HTTP://other/msmq/q", OutgoingState.INACTIVE),
    ):
        queue = open_queue(core, parse_format_name(text), AccessType.SEND).queue
        assert isinstance(queue, OutgoingQueue)
        pause_queue(core, queue)
        resume_queue(core, queue)
        assert queue.state is state
