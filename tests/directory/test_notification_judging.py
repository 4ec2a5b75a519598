"""Version 1: what is obeyed, what is refused and why (scenarios T9 to T20)."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.directory.notification import ReceivingSettings, Refusal, Refused
from falconmq.directory.notification_judging import ChangeQueue, Judge, Judged
from falconmq.directory.notification_values import QUEUE_CREATION
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueuePrivacy, QueueScope
from falconmq.wire.change_notification import ChangeNotificationMessage
from falconmq.wire.directory_change import CREATE, UPDATE, NotificationUpdate
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.variant import Value
from tests.directory.notifications import (
    MASTER,
    OTHER,
    QUEUE,
    Listener,
    add_queue,
    change,
    creation,
    deletion,
    make_listener,
    raw,
    updates,
)
from tests.manager.helpers import COMPUTER, IDENTIFIER

SECURITY = parse_sddl("O:WDG:WDD:(A;;0x2003f;;;WD)")
SECURITY_OF_MANAGER = parse_sddl("O:WDG:WDD:(A;;0x20020;;;WD)")
TYPE = UUID(int=77)
NEW: dict[int, Value] = {
    101: QUEUE.bytes_le,
    102: TYPE.bytes_le,
    103: rf"{COMPUTER}\orders",
    104: 1,
    105: 111,
    106: -5,
    107: 222,
    108: "Orders",
    109: 1000,
    110: 2000,
    111: 1,
    112: 2,
    113: 1,
    114: 0,
    1101: SECURITY.encode(),
}
HEARD: dict[str, object] = {
    "label": "Orders",
    "type": TYPE,
    "journaling": True,
    "quota_kilobytes": 111,
    "journal_quota_kilobytes": 222,
    "authentication": True,
    "privacy_level": QueuePrivacy.BODY,
    "transactional": True,
    "base_priority": -5,
    "security": SECURITY,
}


def new(name: str = rf"{COMPUTER}\orders") -> NotificationUpdate:
    return creation(*NEW.items(), name=name)


def heard(told: StoredMessage, **settings_: Any) -> Listener:
    """A listener with one queue, after it has heard something."""
    listener = make_listener(ReceivingSettings(is_immediate=True, **settings_))
    add_queue(listener, label="old", quota_kilobytes=9)
    listener.hear(told)
    return listener


@pytest.mark.requirement(
    "CN-3.2.5-02",
    "CN-3.2.5-03",
    "CN-3.2.5.1-01",
    "CN-3.2.5.1-08",
    "CN-3.2.5.1-25",
    "CN-3.2.5.1-26",
    *[f"CN-3.2.5.1-{row}" for row in range(10, 25)],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_new_queue_has_every_value_in_whatever_order_they_came(seed: int) -> None:  # T9
    order = list(NEW.items())
    order = order[seed * 3 :] + order[: seed * 3]
    listener = make_listener()
    before = dict(listener.directory.rows.get("Queue", {}))
    # when a signed notification of a directory server says that there is a new queue
    listener.hear(updates(creation(*order)))
    # then it is here, with all its values
    queue = listener.known()
    assert str(queue.path_name) == rf"{COMPUTER}\orders"
    assert {name: getattr(queue.properties, name) for name in HEARD} == HEARD
    assert (queue.create_time, queue.modify_time) == (1000, 2000)
    assert queue.scope is QueueScope.SITE
    assert queue.identifier == QUEUE
    assert queue.journal is not None
    assert queue.journal.properties.quota_kilobytes == 222
    # and the directory was not written
    assert listener.directory.rows.get("Queue", {}) == before
    assert not [call for call in listener.directory.calls if not call.startswith("read")]
    assert listener.server.counters["created"] == 1


@pytest.mark.requirement("CN-3.2.5.1-09")
def test_what_a_notification_leaves_out_has_its_default() -> None:
    listener = make_listener()
    listener.hear(updates(creation((101, QUEUE.bytes_le))))
    properties = listener.known().properties
    assert properties.quota_kilobytes == 0xFFFFFFFF
    assert properties.privacy_level is QueuePrivacy.OPTIONAL
    assert properties.security is not None


@pytest.mark.requirement("CN-3.3.5.2-30", "CN-3.2.5.1-36")
def test_unwanted_properties_are_decoded_and_ignored() -> None:  # T10, T13
    listener = make_listener()
    more: list[tuple[int, Value]] = [
        (126, "LDAP://x"),
        (116, UUID(int=3).bytes_le),
        (117, b"12345678"),
        (118, 7),
    ]
    listener.hear(updates(creation(*more, *NEW.items())))
    queue = listener.known()
    assert queue.properties.label == "Orders"
    assert queue.directory_path == ""
    # when a change has a label, a transaction flag, a type, a path
    told: list[tuple[int, Value]] = [
        (108, "other"),
        (113, 0),
        (102, bytes(16)),
        (126, "x"),
        (125, "224.1.1.1:7"),
        (105, 5),
    ]
    listener.hear(updates(change((115, IDENTIFIER.bytes_le), *told)))
    # then only what can change has changed
    expected = {**HEARD, "quota_kilobytes": 5}
    assert {name: getattr(queue.properties, name) for name in HEARD} == expected
    assert queue.properties.multicast_address is None


@pytest.mark.requirement("CN-3.2.5.1-28", *[f"CN-3.2.5.1-{row}" for row in range(29, 36)])
@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ((106, -7), "base_priority", -7),
        ((104, 1), "journaling", True),
        ((105, 71), "quota_kilobytes", 71),
        ((107, 72), "journal_quota_kilobytes", 72),
        ((1101, SECURITY.encode()), "security", SECURITY),
        ((111, 1), "authentication", True),
        ((112, 2), "privacy_level", QueuePrivacy.BODY),
    ],
)
def test_a_change_touches_only_what_it_names(
    given: tuple[int, Value], name: str, value: object
) -> None:  # T12
    listener = make_listener()
    queue = add_queue(listener)
    before = dataclasses.asdict(queue.properties)
    listener.hear(updates(change((115, IDENTIFIER.bytes_le), given)))
    after = dataclasses.asdict(queue.properties)
    assert getattr(queue.properties, name) == value
    assert {key for key in after if after[key] != before[key]} == {name}
    if name == "journal_quota_kilobytes":
        assert queue.journal is not None
        assert queue.journal.properties.quota_kilobytes == value


@pytest.mark.requirement("CN-3.2.5.1-05", "CN-3.2.5.1-06", "CN-3.2.5.1-07")
@pytest.mark.parametrize(
    ("first", "rest", "is_obeyed"),
    [
        ((1101, b"?"), (105, 5), True),  # T14
        ((115, IDENTIFIER.bytes_le), (105, 5), True),
        ((1201, b"?"), (214, 5), False),  # a queue manager, and not this one
        ((301, "site"), (105, 5), False),  # T15
        ((601, "enterprise"), (105, 5), False),
        ((1301, b"?"), (105, 5), False),
    ],
)
def test_the_first_property_tells_the_type(
    first: tuple[int, Value], rest: tuple[int, Value], is_obeyed: bool
) -> None:
    listener = heard(updates(change(first, rest)))
    assert (listener.known().properties.quota_kilobytes == 5) is is_obeyed
    assert bool(listener.refusals()) is not is_obeyed


@pytest.mark.requirement("CN-3.2.5.1-42", "CN-3.2.5.1-44", "CN-3.2.5.1-45")
def test_a_deletion_takes_the_queue_and_leaves_the_directory_alone() -> None:  # T16
    listener = heard(updates(deletion()))
    assert listener.queue() is None
    assert QUEUE in listener.directory.rows["Queue"]
    assert listener.server.counters["deleted"] == 1


@pytest.mark.requirement("CN-3.2.5.1-43")
@pytest.mark.parametrize("kind", [0, 2, 3, 8])
def test_a_deletion_of_something_else_is_refused(kind: int) -> None:
    listener = heard(updates(deletion(kind)))
    assert listener.queue() is not None
    assert listener.refusals() == {Refusal.WRONG_TYPE.value: 1}


@pytest.mark.requirement("CN-3.3.5.2-39")
@pytest.mark.requirement(
    "CN-3.2.5.1-37", "CN-3.2.5.1-38", "CN-3.2.5.1-39", "CN-3.2.5.1-40", "CN-3.2.5.1-41"
)
def test_a_change_of_the_queue_manager_sets_quotas_and_permissions() -> None:  # T19
    networks = (UUID(int=1).bytes_le, UUID(int=2).bytes_le)
    in_front: list[tuple[int, Value]] = [
        (202, OTHER.bytes_le),
        (206, b"\1\2\3"),
        (207, networks),
        (216, "Windows"),
        (219, 1),
        (220, 0x500),
    ]
    values: list[tuple[int, Value]] = [(214, 4000), (215, 5000), (1201, SECURITY.encode())]
    listener = make_listener()
    local = listener.core.local
    listener.hear(updates(change(*in_front, *values[:2], identifier=IDENTIFIER)))
    assert (local.quota_kilobytes, local.journal_quota_kilobytes) == (4000, 5000)
    assert listener.core.settings.quota_kilobytes == 4000
    assert (local.foreign_system, local.identifier, local.security) == (False, IDENTIFIER, None)
    # when only the permissions come, then the quotas stay
    security = SECURITY_OF_MANAGER.encode()
    listener.hear(
        updates(change((202, IDENTIFIER.bytes_le), (1201, security), identifier=IDENTIFIER))
    )
    assert local.security == SECURITY_OF_MANAGER
    assert local.quota_kilobytes == 4000
    assert listener.server.counters["manager changed"] == 2


@pytest.mark.requirement("CN-3.2.5.1-27")
def test_a_new_queue_manager_is_nothing_to_us() -> None:
    update = NotificationUpdate(CREATE, "x", MASTER.bytes_le, [(214, 1)])
    listener = heard(updates(update))
    assert listener.core.local.quota_kilobytes != 1
    assert listener.refusals() == {}


BAD: dict[str, tuple[StoredMessage, Refusal]] = {
    "unsigned": (updates(change((105, 5)), level=0), Refusal.NOT_AUTHENTICATED),
    "from a user": (updates(change((105, 5)), sender_type=1), Refusal.NOT_FROM_MANAGER),
    "without sender": (
        raw(ChangeNotificationMessage([change((105, 5))]).encode()),
        Refusal.NOT_FROM_MANAGER,
    ),
    "no directory server": (
        updates(change((105, 5)), sender=OTHER),
        Refusal.NOT_FROM_DIRECTORY_SERVER,
    ),
    "from nobody": (
        updates(change((105, 5)), sender=UUID(int=9)),
        Refusal.NOT_FROM_DIRECTORY_SERVER,
    ),
    "another computer": (updates(new(name=r"OTHER\x"), new()), Refusal.NOT_OURS),
    "another computer's path": (
        updates(creation((103, r"OTHER\x"), (101, OTHER.bytes_le))),
        Refusal.NOT_OURS,
    ),
    "another manager": (updates(change((214, 5), identifier=OTHER)), Refusal.NOT_OURS),
    "bad flag": (updates(change((104, 7))), Refusal.BAD_VALUE),
    "bad privacy": (updates(change((112, 3))), Refusal.BAD_VALUE),
    "not here": (updates(change((105, 5), identifier=OTHER)), Refusal.NOT_HERE),
    "deleted twice": (updates(deletion(identifier=OTHER)), Refusal.NOT_HERE),
    "without GUID": (updates(creation((105, 5))), Refusal.MALFORMED),
    "third is bad": (
        updates(change((105, 5)), change((105, 6)), change((301, "x"))),
        Refusal.WRONG_TYPE,
    ),
    "private": (
        updates(creation((101, OTHER.bytes_le), name=rf"{COMPUTER}\private$\x")),
        Refusal.NOT_PUBLIC,
    ),
    "no name": (updates(creation((101, OTHER.bytes_le), name="")), Refusal.MALFORMED),
    "name taken": (updates(creation((101, OTHER.bytes_le))), Refusal.NAME_TAKEN),
    "long label": (
        updates(creation((101, OTHER.bytes_le), (108, "x" * 125), name=rf"{COMPUTER}\new")),
        Refusal.REFUSED_HERE,
    ),
    "unknown version": (raw(b"\3\1x"), Refusal.UNKNOWN_VERSION),
    "version 0": (raw(b"\0\1x"), Refusal.UNKNOWN_VERSION),
    "version 255": (raw(b"\xff\1x"), Refusal.UNKNOWN_VERSION),
    "empty": (raw(b""), Refusal.TOO_SHORT),
    "one byte": (raw(b"\2"), Refusal.TOO_SHORT),
}


@pytest.mark.requirement(
    "CN-3.2.5.1-02", "CN-3.2.5.1-03", "CN-3.2.5.1-04", "CN-3.2.5-06", "CN-3.2.5-07"
)
@pytest.mark.parametrize(("told", "reason"), BAD.values(), ids=BAD)
def test_what_is_not_right_is_refused_counted_and_changes_nothing(
    told: StoredMessage, reason: Refusal, caplog: pytest.LogCaptureFixture
) -> None:  # T8, T11, T15, T17
    listener = make_listener()
    queue = add_queue(listener, quota_kilobytes=9)
    queues, quota = set(listener.core.queues), listener.core.local.quota_kilobytes
    listener.hear(told)
    assert listener.refusals() == {reason.value: 1}
    assert reason.value in caplog.text
    assert queue.properties.quota_kilobytes == 9
    assert (set(listener.core.queues), listener.core.local.quota_kilobytes) == (queues, quota)
    # and the loop goes on
    listener.hear(updates(change((105, 6))))
    assert queue.properties.quota_kilobytes == 6


def test_who_may_send_version_1_is_asked_only_when_that_is_wanted() -> None:
    listener = heard(updates(change((105, 5)), sender=OTHER), is_strict=False)
    assert listener.known().properties.quota_kilobytes == 5


@pytest.mark.requirement("CN-1.7-02", "CN-1.7-03")
def test_an_old_profile_reads_version_1_alone() -> None:
    only_first = {"versions": frozenset({1})}
    listener = heard(raw(b"\2\1x"), **only_first)
    assert listener.refusals() == {Refusal.UNKNOWN_VERSION.value: 1}
    listener.hear(updates(change((105, 5))))
    assert listener.known().properties.quota_kilobytes == 5


def test_a_security_descriptor_that_is_none_leaves_the_old_one() -> None:
    rights_of_nothing = parse_sddl("O:WDG:WDD:(A;;0x8000;;;WD)").encode()
    for blob in (b"", b"rubbish", rights_of_nothing):
        listener = make_listener()
        queue = add_queue(listener)
        queue.properties.security = SECURITY
        listener.hear(updates(change((1101, blob), (105, 5))))
        assert queue.properties.security == SECURITY
        assert queue.properties.quota_kilobytes == 5
        listener.core.local.security = SECURITY_OF_MANAGER
        listener.hear(updates(change((202, bytes(16)), (1201, blob), identifier=IDENTIFIER)))
        assert listener.core.local.security == SECURITY_OF_MANAGER


def test_a_message_may_have_255_updates() -> None:  # T18
    told = [creation((101, UUID(int=n).bytes_le), name=rf"{COMPUTER}\q{n}") for n in range(1, 256)]
    listener = make_listener()
    listener.hear(updates(*told))
    assert set(listener.core.public) == {UUID(int=n) for n in range(1, 256)}


def test_updates_are_obeyed_in_their_order_and_an_object_may_be_named_by_its_path() -> None:  # T37
    path = NotificationUpdate(UPDATE, rf"{COMPUTER}\orders", MASTER.bytes_le, [(105, 77)])
    listener = make_listener()
    listener.hear(updates(new(), path))
    assert listener.known().properties.quota_kilobytes == 77
    listener.hear(updates(deletion(), new()))
    assert listener.known().properties.quota_kilobytes == 111
    listener.hear(updates(new(), deletion()))
    assert listener.queue() is None


def test_a_new_queue_that_is_here_already_is_a_change() -> None:  # A12
    listener = heard(updates(new()))
    assert listener.known().properties.quota_kilobytes == 111
    assert listener.server.counters["changed"] == 1


JUDGE = Judge(IDENTIFIER, lambda name: name == COMPUTER, ReceivingSettings())
WHOLE = bytes(updates(new(), change(*NEW.items())).packet.properties.message_body)


def test_a_truncated_message_is_refused_at_every_byte() -> None:  # T20
    whole = updates(new(), change(*NEW.items())).packet
    for end in range(len(WHOLE) - 1):
        properties = dataclasses.replace(whole.properties, message_body=WHOLE[:end])
        stored = StoredMessage.of(dataclasses.replace(whole, properties=properties))
        stored.authentication_level = 3
        assert isinstance(JUDGE.judge(stored), Refused)


@settings(max_examples=120, deadline=None)
@given(
    body=st.one_of(
        st.binary(max_size=80),
        st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4)).map(
            lambda cut: WHOLE[: cut[0]] + cut[1] + WHOLE[cut[0] + len(cut[1]) :]
        ),
    )
)
def test_any_bytes_are_judged_and_nothing_escapes(body: bytes) -> None:
    packet = updates(new()).packet
    stored = StoredMessage.of(
        dataclasses.replace(
            packet, properties=dataclasses.replace(packet.properties, message_body=body)
        )
    )
    stored.authentication_level = 3
    assert isinstance(JUDGE.judge(stored), Judged | Refused)


def test_of_a_property_given_twice_the_first_counts() -> None:
    judged = JUDGE.judge(updates(change((105, 1), (105, 2))))
    assert isinstance(judged, Judged)
    assert judged.steps == [ChangeQueue(QUEUE, {"quota_kilobytes": 1})]


def test_a_new_queue_is_made_of_fifteen_properties() -> None:
    assert set(QUEUE_CREATION) == set(NEW)
    assert len(list(itertools.chain(NEW))) == 15
