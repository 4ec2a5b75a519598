"""Version 2 and the life of the server: its queue, its runs, its directory (T1 to T34)."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any
from uuid import UUID

import pytest

from falconmq.directory.notification import ReceivingSettings, Refusal, notify_queue
from falconmq.directory.notification_handling import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES
from falconmq.directory.notification_receiving import RETRY_SECONDS, ChangeNotificationServer
from falconmq.errors import QueueError
from falconmq.manager.directory import write_directory
from falconmq.manager.directory_backend import AttributeFilter, FilterOperator
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.opening import open_queue
from falconmq.manager.queue_rows import queue_row
from falconmq.manager.queues import open_subqueue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, DirectoryResult, QueuePrivacy, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.wire.change_notification import NotificationEvent as Event
from falconmq.wire.message_class import MessageClass
from tests.directory.notifications import (
    QUEUE,
    Listener,
    add_queue,
    change,
    make_listener,
    make_row,
    raw,
    text,
    updates,
)
from tests.manager.directories import make_integrated_core
from tests.manager.helpers import (
    COMPUTER,
    IDENTIFIER,
    STRANGER,
    commit,
    given_queue,
    make_core,
    record_events,
)
from tests.manager.helpers import message as make_message

NORMAL = ReceivingSettings()
NO_CHECK = ReceivingSettings(is_immediate=True, checks_deletions=False)


class Asked(MemoryDirectory):
    """A directory that remembers how it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[tuple[str, Any, Any]] = []

    def read(self, type_name: str, filters: Any, attributes: Any) -> Any:
        self.questions.append((type_name, filters, attributes))
        return super().read(type_name, filters, attributes)


def by_identifier(identifier: UUID) -> tuple[AttributeFilter, ...]:
    return (AttributeFilter("identifier", FilterOperator.EQUALS, identifier),)


def reads(listener: Listener) -> list[str]:
    return [call for call in listener.directory.calls if call.startswith("read")]


@pytest.mark.requirement(
    "CN-2.2.5-02",
    "CN-3.2.5-05",
    "CN-3.2.5.2-01",
    "CN-3.2.5.2-03",
    "CN-3.2.5.2-04",
    "CN-3.2.5.2-06",
    "CN-3.2.5.2-07",
)
def test_a_new_queue_is_read_from_the_directory_and_created() -> None:  # T1
    listener = make_listener()
    row = make_row(label="Orders", quota_kilobytes=7, transactional=True, create_time=123)
    listener.directory.create("Queue", row)
    before = {QUEUE: dict(listener.directory.rows["Queue"][QUEUE])}
    listener.directory.calls.clear()
    listener.hear(text(Event.QUEUE_CREATED))
    queue = listener.known()
    assert (queue.properties.label, queue.properties.quota_kilobytes) == ("Orders", 7)
    assert (queue.properties.transactional, queue.create_time) == (True, 123)
    assert queue.directory_path == before[QUEUE]["directory_path"]
    # the directory was asked once and has not changed
    assert listener.directory.calls == ["read Queue"]
    assert listener.directory.rows["Queue"] == before


@pytest.mark.requirement("CN-3.2.5.2-08", "CN-3.2.5.2-10")
def test_a_changed_queue_is_read_again() -> None:  # T2
    listener = make_listener()
    queue = add_queue(listener, label="old")
    changed = {"label": "new", "quota_kilobytes": 5, "privacy_level": QueuePrivacy.BODY}
    listener.directory.rows["Queue"][QUEUE].update(changed)
    listener.hear(text(Event.QUEUE_CHANGED))
    assert {name: getattr(queue.properties, name) for name in changed} == changed
    assert listener.server.counters["changed"] == 1


def test_a_changed_queue_stays_what_it_is_and_its_subqueues_follow() -> None:
    listener = make_listener()
    queue = add_queue(listener, label="old")
    subqueue = open_subqueue(listener.core, queue, "urgent")
    row = listener.directory.rows["Queue"][QUEUE]
    row.update({"transactional": True, "label": "new"})
    listener.hear(text(Event.QUEUE_CHANGED))
    assert not queue.properties.transactional
    assert subqueue.properties.label == "new"
    # when a value is none that a queue can have, then nothing changes
    row.update({"label": "x" * 125, "quota_kilobytes": 3})
    listener.hear(text(Event.QUEUE_CHANGED))
    assert queue.properties.label == "new"
    assert queue.properties.quota_kilobytes != 3
    assert listener.refusals() == {Refusal.BAD_VALUE.value: 1}


def test_a_changed_queue_that_is_not_here_is_created() -> None:  # A12
    listener = make_listener()
    listener.directory.create("Queue", make_row(label="late"))
    listener.hear(text(Event.QUEUE_CHANGED))
    assert listener.known().properties.label == "late"
    # and one that is here already is not created twice
    listener.hear(text(Event.QUEUE_CREATED))
    assert listener.server.counters["created"] == 1


@pytest.mark.requirement("CN-3.2.5.2-11", "CN-3.2.5.2-12")
def test_a_deleted_queue_goes_without_a_question() -> None:
    listener = make_listener(NO_CHECK)
    add_queue(listener)
    listener.hear(text(Event.QUEUE_DELETED))
    assert listener.queue() is None
    assert listener.directory.calls == []
    assert QUEUE in listener.directory.rows["Queue"]


def test_a_deletion_is_believed_when_the_directory_says_so() -> None:  # T3, T33
    listener = make_listener()
    queue = add_queue(listener)
    listener.directory.rows["Queue"][QUEUE]["label"] = "still here"
    # given a queue that the directory still has
    listener.hear(text(Event.QUEUE_DELETED))
    # then it stays, and is read again
    assert listener.known() is queue
    assert queue.properties.label == "still here"
    assert listener.refusals() == {Refusal.STILL_IN_DIRECTORY.value: 1}
    # when it is really gone, then it goes here as well, with its messages, whose senders hear why
    for number in range(5):
        enqueue_message(listener.core, queue, make_message(str(number).encode()))
    events = record_events(listener.core)
    del listener.directory.rows["Queue"][QUEUE]
    listener.hear(text(Event.QUEUE_DELETED))
    assert listener.queue() is None
    assert queue.is_deleted
    assert events.reasons.count(MessageClass.NACK_Q_DELETED) == 5


@pytest.mark.requirement("CN-3.2.5.2-13", "CN-3.2.5.2-15")
def test_of_the_queue_manager_quotas_and_permissions_are_read_again() -> None:  # T4
    listener = make_listener()
    own = listener.directory.rows["QueueManager"][IDENTIFIER]
    own.update({"quota_kilobytes": 4, "journal_quota_kilobytes": 5, "queue_manager_version": "x"})
    listener.hear(text(Event.MACHINE_CHANGED, IDENTIFIER))
    local = listener.core.local
    assert (local.quota_kilobytes, local.journal_quota_kilobytes) == (4, 5)
    assert local.queue_manager_version != "x"
    assert listener.core.settings.quota_kilobytes == 4


@pytest.mark.requirement("CN-3.2.5.2-02", "CN-3.2.5.2-05", "CN-3.2.5.2-09", "CN-3.2.5.2-14")
def test_the_directory_server_that_is_named_is_asked_for_the_right_attributes() -> None:
    named = Asked()
    named.create("Queue", make_row(label="named"))
    named.rows["QueueManager"] = {IDENTIFIER: make_integrated_core()[0].local.row()}
    listener = make_listener(directories={"DC1.example.com": named})
    for event, identifier in (
        (Event.QUEUE_CREATED, QUEUE),
        (Event.QUEUE_CHANGED, QUEUE),
        (Event.MACHINE_CHANGED, IDENTIFIER),
    ):
        listener.hear(text(event, identifier, server="dc1.EXAMPLE.com"))
    assert listener.known().properties.label == "named"
    assert named.questions == [
        ("Queue", by_identifier(QUEUE), QUEUE_ATTRIBUTES),
        ("Queue", by_identifier(QUEUE), QUEUE_ATTRIBUTES),
        ("QueueManager", by_identifier(IDENTIFIER), MANAGER_ATTRIBUTES),
    ]
    assert reads(listener) == []
    known = set(queue_row(listener.known()))
    assert len(QUEUE_ATTRIBUTES) == 16
    assert set(QUEUE_ATTRIBUTES) <= known
    assert set(MANAGER_ATTRIBUTES) == {"quota_kilobytes", "journal_quota_kilobytes", "security"}


def test_a_directory_server_that_nobody_knows_is_not_gone_to() -> None:  # T34
    listener = make_listener(directories={"dc1": Asked()})
    listener.directory.create("Queue", make_row())
    listener.directory.calls.clear()
    listener.hear(text(Event.QUEUE_CREATED, server="evil.example.org"))
    assert listener.queue() is not None
    assert reads(listener) == ["read Queue"]


@pytest.mark.parametrize(
    ("told", "row", "reason"),
    [
        (text(Event.QUEUE_CREATED), None, Refusal.NOT_IN_DIRECTORY),
        (text(Event.QUEUE_CHANGED), None, Refusal.NOT_IN_DIRECTORY),
        (text(Event.QUEUE_DELETED), None, Refusal.NOT_HERE),
        (text(Event.QUEUE_CREATED), {"name": r"OTHER\orders"}, Refusal.NOT_OURS),
        (text(Event.QUEUE_CREATED), {"name": "rubbish"}, Refusal.BAD_VALUE),
        (text(Event.QUEUE_CREATED), {"label": "x" * 125}, Refusal.REFUSED_HERE),
        (text(Event.MACHINE_CHANGED, STRANGER), None, Refusal.NOT_OURS),
    ],
)
def test_what_the_directory_does_not_bear_out_is_refused(
    told: Any, row: dict[str, Any] | None, reason: Refusal
) -> None:
    listener = make_listener()
    if row is not None:
        listener.directory.create("Queue", make_row(**row))
    listener.hear(told)
    assert listener.refusals() == {reason.value: 1}
    assert listener.core.public == {}


@pytest.mark.parametrize("trailer", ["", "00", "0000", "000000"])
def test_the_unused_bytes_behind_the_text_do_not_matter(trailer: str) -> None:  # T5, T6
    listener = make_listener()
    listener.directory.create("Queue", make_row())
    body = bytes(text(Event.QUEUE_CREATED).packet.properties.message_body)
    words = body[2:-1].decode("utf-16-le")
    assert (body[:2], len(body)) == (b"\2\1", 2 + 2 * len(words) + 1)
    other = words.replace("</ObjectGuid>", "</ObjectGuid >").replace(
        str(QUEUE).upper(), str(QUEUE).lower()
    )
    listener.hear(raw(b"\2\1" + other.encode("utf-16-le") + bytes.fromhex(trailer)))
    assert other != words
    assert listener.queue() is not None


@pytest.mark.requirement("CN-3.3.5.3-08")
@pytest.mark.parametrize("value", [0x00, 0x01, 0x3C, 0xFF])
def test_the_last_byte_may_be_anything(value: int) -> None:
    listener = make_listener()
    queue = add_queue(listener, label="old")
    listener.directory.rows["Queue"][QUEUE]["label"] = "new"
    for told in (text(Event.QUEUE_CHANGED), updates(change((105, 5)))):
        properties = told.packet.properties
        body = bytes(properties.message_body)[:-1] + bytes([value])
        other = dataclasses.replace(properties, message_body=body)
        heard = StoredMessage.of(dataclasses.replace(told.packet, properties=other))
        heard.authentication_level = told.authentication_level
        listener.hear(heard)
    assert (queue.properties.label, listener.server.counters["changed"]) == ("new", 2)


@pytest.mark.requirement("CN-3.3.5.1-07")
@pytest.mark.parametrize("event", ["0", "5", "12", "", "x"])
def test_an_unknown_event_is_refused(event: str) -> None:  # T7
    words = bytes(text(Event.QUEUE_CREATED).packet.properties.message_body)[2:-1].decode(
        "utf-16-le"
    )
    listener = make_listener()
    listener.hear(raw(b"\2\1" + words.replace(">1<", f">{event}<").encode("utf-16-le") + b"\0"))
    assert listener.refusals() == {Refusal.MALFORMED.value: 1}
    assert reads(listener) == []


# The life of the server


@pytest.mark.requirement("CN-3.2.3-01", "CN-3.2.3-03", "CN-3.2.3-04", "CN-3.2.3-05", "CN-3.2.5-01")
@pytest.mark.requirement("CN-1.9-01", "CN-1.9-02", "CN-3.2.1.2.1-01")
def test_the_notification_queue_is_opened_for_receiving_by_everybody_of_ours() -> None:
    listener = make_listener()
    (descriptor,) = listener.core.private_numbers[3].descriptors
    assert descriptor.format_name == notify_queue(IDENTIFIER)
    assert str(descriptor.format_name) == f"PRIVATE={str(IDENTIFIER).upper()}\\00000003"
    assert (descriptor.access, descriptor.share) == (AccessType.RECEIVE, ShareMode.DENY_NONE)
    assert str(descriptor.queue and descriptor.queue.path_name) == (
        rf"{COMPUTER}\private$\notify_queue$"
    )
    # and applications cannot open it
    with pytest.raises(QueueError):
        open_queue(listener.core, notify_queue(IDENTIFIER), AccessType.RECEIVE)


@pytest.mark.requirement("CN-3.2.3-08", "CN-3.2.3-09", "CN-3.2.5-07")
def test_messages_are_taken_one_after_the_other_for_as_long_as_it_runs() -> None:
    listener = make_listener()
    queue = add_queue(listener)
    (waiting,) = listener.core.private_numbers[3].waiting
    assert waiting.deadline is None  # for ever
    for number in range(1, 4):
        listener.hear(updates(change((105, number))))
        assert queue.properties.quota_kilobytes == number
    # two in one event are both taken
    notify = listener.core.private_numbers[3]
    for number in (7, 8):
        enqueue_message(listener.core, notify, updates(change((105, number))))
    listener.core.run_timers()
    assert queue.properties.quota_kilobytes == 8
    assert len(notify.positions) == 0
    assert listener.server.counters["received"] == 5


def test_what_waited_in_the_queue_before_the_start_is_heard() -> None:
    core, directory, _ = make_integrated_core()
    directory.create("Queue", make_row())
    enqueue_message(core, core.private_numbers[3], text(Event.QUEUE_CREATED))
    server = ChangeNotificationServer(core, ReceivingSettings(is_immediate=True))
    server.start()
    assert QUEUE in core.public


def test_a_server_that_stopped_hears_nothing_and_can_start_again() -> None:
    listener = make_listener()
    queue = add_queue(listener)
    listener.server.stop()
    listener.server.stop()
    listener.hear(updates(change((105, 1))))
    assert queue.properties.quota_kilobytes != 1
    assert not listener.server.is_running
    listener.server.start()
    assert queue.properties.quota_kilobytes == 1


def test_in_a_workgroup_there_is_nothing_to_hear() -> None:  # T25
    core = make_core()
    server = ChangeNotificationServer(core)
    server.start()
    assert not server.is_running
    assert core.private_numbers[3].descriptors == []


@pytest.mark.requirement("CN-3.2.3-07")
def test_a_queue_that_cannot_be_opened_turns_the_protocol_off(
    caplog: pytest.LogCaptureFixture,
) -> None:  # T26
    core, _, _ = make_integrated_core()
    open_queue(
        core,
        notify_queue(IDENTIFIER),
        AccessType.RECEIVE,
        ShareMode.DENY_RECEIVE,
        internal=True,
    )
    server = ChangeNotificationServer(core)
    with caplog.at_level(logging.ERROR, "falconmq.directory"):
        server.start()
    assert not server.is_running
    assert len(caplog.records) == 1
    given_queue(core)  # it works as before


def test_at_the_start_all_public_queues_are_read_once() -> None:  # T28, pitfall 9
    listener = make_listener()
    queue = add_queue(listener)
    listener.server.stop()
    listener.directory.rows["Queue"][QUEUE]["label"] = "told while nobody listened"
    ChangeNotificationServer(listener.core).start()
    assert queue.properties.label == "told while nobody listened"


@pytest.mark.requirement("CN-1.6-05")
def test_the_old_profile_waits_for_nothing() -> None:  # T24
    listener = make_listener()
    queue = add_queue(listener)
    listener.hear(updates(change((105, 5))))
    assert queue.properties.quota_kilobytes == 5


@pytest.mark.requirement("CN-1.6-07", "CN-1.6-08", "CN-1.6-09", "CN-1.6-10")
def test_notifications_wait_for_their_run() -> None:  # T21, T22
    listener = make_listener(NORMAL)
    queue = add_queue(listener)
    listener.hear(updates(change((105, 1))))
    listener.wait(59)
    listener.hear(updates(change((105, 2))))
    assert listener.server.pending == 2
    assert queue.properties.quota_kilobytes not in (1, 2)
    listener.wait(1)
    assert queue.properties.quota_kilobytes == 2
    # soon after it, the rest of the fifteen minutes
    listener.wait(10)
    listener.hear(updates(change((105, 3))))
    listener.wait(889)
    assert queue.properties.quota_kilobytes == 2
    listener.wait(1)
    assert queue.properties.quota_kilobytes == 3
    assert listener.server.counters["runs"] == 2


@pytest.mark.requirement("CN-1.6-11", "CN-1.6-12", "CN-5.1-01")
@pytest.mark.parametrize(("number", "asked"), [(99, ["read Queue"] * 99), (100, ["read Queue"])])
def test_of_a_flood_nothing_is_read_but_every_queue_once(number: int, asked: list[str]) -> None:
    listener = make_listener(NORMAL)  # T23
    add_queue(listener)
    for _ in range(number):
        enqueue_message(listener.core, listener.core.private_numbers[3], text(Event.QUEUE_CHANGED))
    listener.core.run_timers()
    if number == 100:
        listener.hear(text(Event.MACHINE_CHANGED, IDENTIFIER))
    listener.wait(60)
    assert reads(listener) == asked


def test_a_directory_that_is_away_postpones_what_needs_it() -> None:  # T32
    listener = make_listener()
    queue = add_queue(listener, label="old")
    listener.directory.rows["Queue"][QUEUE]["label"] = "new"
    listener.directory.is_connected = False
    listener.hear(text(Event.QUEUE_CHANGED))
    listener.hear(text(Event.QUEUE_DELETED))
    for quota in (4, 5):  # their sender cannot be asked about either
        listener.hear(updates(change((105, quota))))
    assert (queue.properties.label, listener.server.counters["postponed"]) == ("old", 4)
    # when it is still away, then they go on waiting
    listener.wait(RETRY_SECONDS)
    assert queue.properties.label == "old"
    # when it is back, then they are obeyed in their order
    listener.directory.is_connected = True
    listener.wait(60)
    listener.wait(RETRY_SECONDS)
    assert queue.properties.label == "new"
    assert queue.properties.quota_kilobytes == 5
    assert listener.known() is queue


def test_what_was_postponed_is_obeyed_in_its_order() -> None:
    listener = make_listener()
    queue = add_queue(listener)
    listener.directory.is_connected = False
    for quota in (4, 5):
        listener.hear(updates(change((105, quota))))
    listener.directory.is_connected = True
    listener.wait(RETRY_SECONDS)
    assert (queue.properties.quota_kilobytes, listener.server.counters["changed"]) == (5, 2)


def test_many_that_wait_for_the_directory_become_one_reload() -> None:
    settings = dataclasses.replace(NO_CHECK, flood=5)
    listener = make_listener(settings)
    queue = add_queue(listener, label="old")
    listener.directory.is_connected = False
    for _ in range(7):
        listener.hear(text(Event.QUEUE_CHANGED))
    listener.directory.rows["Queue"][QUEUE]["label"] = "new"
    listener.directory.is_connected = True
    listener.directory.calls.clear()
    listener.wait(60)
    listener.wait(RETRY_SECONDS)
    assert queue.properties.label == "new"
    assert listener.server.counters["reloads"] == 2  # that of the start, and this one


def test_nothing_that_was_told_is_told_on() -> None:
    listener = make_listener()
    notices: list[object] = []
    listener.core.change_notifier = lambda operation, entry: notices.append(operation)
    listener.directory.create("Queue", make_row())
    for event in (Event.QUEUE_CREATED, Event.QUEUE_CHANGED):
        listener.hear(text(event))
    del listener.directory.rows["Queue"][QUEUE]
    listener.hear(text(Event.QUEUE_DELETED))
    listener.hear(text(Event.MACHINE_CHANGED, IDENTIFIER))
    assert notices == []
    assert listener.server.counters["deleted"] == 1
    # unlike a change of our own
    assert write_directory(listener.core, listener.core.local) is DirectoryResult.SUCCESS
    assert len(notices) == 1


def test_what_was_told_survives_a_restart() -> None:
    listener = make_listener()
    listener.directory.create("Queue", make_row(label="Orders"))
    listener.hear(text(Event.QUEUE_CREATED))
    listener.directory.rows["Queue"][QUEUE]["journal_quota_kilobytes"] = 17
    listener.hear(text(Event.QUEUE_CHANGED))
    commit(listener.core)
    again = make_integrated_core(listener.directory, store=listener.core.store)[0]
    queue = again.public[QUEUE]
    assert (queue.properties.label, queue.properties.journal_quota_kilobytes) == ("Orders", 17)
    assert queue.journal is not None
    assert queue.journal.properties.quota_kilobytes == 17
