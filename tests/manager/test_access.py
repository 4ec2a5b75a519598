"""Who may do what: the access check, and where the events of the core ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import falconmq
from falconmq import Message, QueueError
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.access import (
    NOBODY_KNOWN,
    STRICTLY_ANONYMOUS,
    Principal,
    acting_as,
    caller_of,
    check_move,
    check_open,
    grants,
    may_anyone_send,
)
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.opening import open_queue
from falconmq.manager.permissions import grant, name_of, revoke, rights_mask, rights_words, who
from falconmq.manager.queues import (
    create_queue,
    delete_queue,
    open_subqueue,
    purge_queue,
    set_queue_properties,
)
from falconmq.manager.states import AccessType
from falconmq.names import PathName, parse_format_name
from falconmq.wire import ace as aces
from falconmq.wire.access_masks import (
    GENERIC_ALL,
    GENERIC_MAPPINGS,
    GENERIC_READ,
    GENERIC_WRITE,
    MQSEC_QUEUE_GENERIC_ALL,
    MQSEC_WRITE_MESSAGE,
    READ_CONTROL,
    WRITE_DACL,
    ObjectKind,
    map_generic,
)
from falconmq.wire.ace import Ace, BasicAce, ObjectAce, access_allowed, access_denied
from falconmq.wire.acl import Acl
from falconmq.wire.sddl import format_sddl, parse_sddl
from falconmq.wire.security_descriptor import SE_DACL_PRESENT, SecurityDescriptor
from falconmq.wire.sid import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED_USERS,
    EVERYONE,
    OWNER_RIGHTS,
    USERS,
    Sid,
)
from tests.manager.helpers import given_queue, make_core

QUEUE = ObjectKind.QUEUE
ALICE, BOB = Sid.parse("S-1-5-21-1-2-3-1105"), Sid.parse("S-1-5-21-1-2-3-1106")
USER = Principal("alice", ALICE, frozenset({USERS}))
FULL = MQSEC_QUEUE_GENERIC_ALL


def listed(*entries: Ace, owner: Sid | None = None) -> SecurityDescriptor:
    return SecurityDescriptor(owner, None, Acl.of(entries))


def may(descriptor: SecurityDescriptor | None, mask: int, principal: Principal = USER) -> bool:
    return grants(descriptor, principal, mask, QUEUE)


# The access check

# Few people and few rights, so that entries meet each other and what is asked for.
_people = st.sampled_from([ALICE, USERS, EVERYONE, ANONYMOUS, BOB])
_masks = st.one_of(
    st.integers(1, 7),
    st.sampled_from([GENERIC_ALL, GENERIC_READ, GENERIC_WRITE, READ_CONTROL, WRITE_DACL, FULL]),
)
_wanted = st.one_of(
    st.sampled_from([1, 2, 4]),
    st.sampled_from([3, 6, GENERIC_WRITE, READ_CONTROL, WRITE_DACL, FULL]),
)
_basic = st.builds(
    BasicAce,
    st.sampled_from([0, 0, 1, 1, 2, aces.ACCESS_ALLOWED_CALLBACK_ACE_TYPE, 0x0A]),
    _masks,
    st.one_of(_people, st.sampled_from([ALICE, OWNER_RIGHTS])),
    st.sampled_from([0, 0, aces.INHERIT_ONLY_ACE, aces.INHERITED_ACE]),
)
_entries: st.SearchStrategy[Ace] = st.one_of(
    _basic, _basic, st.builds(ObjectAce, st.sampled_from([5, 6]), _masks, _people)
)
_principals = st.sampled_from([USER, USER, Principal("bob", BOB), NOBODY_KNOWN, STRICTLY_ANONYMOUS])


def naive(descriptor: SecurityDescriptor, principal: Principal, mask: int) -> bool:
    """Bit by bit: the first entry about it and about one of the SIDs decides."""
    assert descriptor.dacl is not None
    is_owner = descriptor.owner in principal.sids
    sids = principal.sids | ({OWNER_RIGHTS} if is_owner else set())
    basic = [ace for ace in descriptor.dacl.aces if isinstance(ace, BasicAce)]
    speaks_of_owner = any(ace.sid == OWNER_RIGHTS for ace in basic)
    for number in range(32):
        bit = 1 << number
        if not map_generic(mask, QUEUE) & bit:
            continue
        if is_owner and not speaks_of_owner and bit in (READ_CONTROL, WRITE_DACL):
            continue
        first = next(
            (
                ace.ace_type
                for ace in basic
                if ace.sid in sids
                and not ace.ace_flags & aces.INHERIT_ONLY_ACE
                and ace.ace_type in (0, 1, 0x0A)
                and map_generic(ace.mask, QUEUE) & bit
            ),
            None,
        )
        if first != 0:
            return False
    return True


@given(st.lists(_entries, max_size=4), st.one_of(st.none(), _people), _principals, _wanted)
@settings(max_examples=300)
def test_the_check_is_that_of_each_bit_alone(
    entries: list[Ace], owner: Sid | None, principal: Principal, mask: int
) -> None:
    descriptor = listed(*entries, owner=owner)
    assert may(descriptor, mask, principal) == naive(descriptor, principal, mask)


def test_no_list_is_no_rule_and_an_empty_one_lets_nobody_in() -> None:
    assert may(None, FULL)
    assert may(SecurityDescriptor(), FULL)
    assert may(SecurityDescriptor(control=SE_DACL_PRESENT), FULL)  # the null list
    assert not may(listed(), 1)


def test_the_order_of_entries_decides() -> None:
    allowing, denying = access_allowed(7, USERS), access_denied(4, ALICE)
    assert may(listed(allowing, denying), 4)
    assert not may(listed(denying, allowing), 4)
    assert may(listed(denying, allowing), 3)  # what is not denied


def test_rights_are_collected_from_several_entries() -> None:
    both = listed(access_allowed(1, ALICE), access_allowed(2, USERS))
    assert may(both, 3)
    assert not may(both, 7)


def test_an_entry_for_others_or_only_for_heirs_says_nothing() -> None:
    assert not may(listed(access_allowed(FULL, BOB)), 1)
    assert not may(listed(access_allowed(FULL, ALICE, aces.INHERIT_ONLY_ACE)), 1)
    assert may(listed(access_denied(1, BOB), access_allowed(1, ALICE)), 1)
    assert may(listed(ObjectAce(6, 1, ALICE), access_allowed(1, ALICE)), 1)
    assert not may(listed(ObjectAce(5, 1, ALICE)), 1)


def test_generic_rights_are_those_of_the_kind_of_object() -> None:
    everything = listed(access_allowed(GENERIC_ALL, ALICE))
    for kind in (ObjectKind.QUEUE, ObjectKind.QUEUE_MANAGER):
        mapping = GENERIC_MAPPINGS[kind]
        assert grants(everything, USER, mapping.all, kind)
        reading = listed(access_allowed(GENERIC_READ, ALICE))
        assert grants(reading, USER, mapping.read, kind)
        assert not grants(reading, USER, mapping.all, kind)
    assert may(listed(access_allowed(FULL, ALICE)), GENERIC_ALL)


def test_the_owner_may_read_and_change_permissions_unless_an_entry_speaks_of_owners() -> None:
    implied = READ_CONTROL | WRITE_DACL
    assert may(listed(owner=ALICE), implied)
    assert not may(listed(owner=ALICE), implied | 1)
    assert not may(listed(owner=BOB), implied)
    assert not may(listed(access_allowed(READ_CONTROL, OWNER_RIGHTS), owner=ALICE), implied)
    assert may(listed(access_allowed(READ_CONTROL, OWNER_RIGHTS), owner=ALICE), READ_CONTROL)
    assert not may(listed(access_allowed(FULL, OWNER_RIGHTS), owner=BOB), 1)


def test_a_condition_that_nobody_can_check_denies_and_never_allows() -> None:
    allowing = BasicAce(aces.ACCESS_ALLOWED_CALLBACK_ACE_TYPE, 1, ALICE, 0, b"artx")
    denying = BasicAce(aces.ACCESS_DENIED_CALLBACK_ACE_TYPE, 1, ALICE, 0, b"artx")
    assert not may(listed(allowing), 1)
    assert not may(listed(denying, access_allowed(1, ALICE)), 1)


def test_everybody_is_in_everyone_but_only_who_is_known_is_authenticated() -> None:
    assert USER.sids == {ALICE, USERS, EVERYONE, AUTHENTICATED_USERS}
    assert NOBODY_KNOWN.sids == {ANONYMOUS, EVERYONE}
    assert STRICTLY_ANONYMOUS.sids == {ANONYMOUS}
    assert USER.is_domain_user
    assert not Principal("system", Sid.parse("S-1-5-18")).is_domain_user


# Where the core asks


def guarded(mask: int, *, access_control: bool = True) -> tuple[QueueManagerCore, Queue]:
    """A queue of bob's that gives alice these rights and nothing else."""
    core = make_core(access_control=access_control)
    queue = given_queue(core)
    set_queue_properties(core, queue, security=listed(access_allowed(mask, ALICE), owner=BOB))
    core.local.security = listed()
    return core, queue


def refused(core: QueueManagerCore, event: Callable[[], object], who: Principal = USER) -> str:
    """Why somebody may not do something; "" if he may."""
    try:
        with acting_as(who):
            event()
    except FalconMQError as error:
        assert error.status is MqStatus.ACCESS_DENIED
        assert error.hint
        return str(error)
    return ""


def opening(access: AccessType) -> Callable[[QueueManagerCore, Queue], object]:
    name = parse_format_name(r"DIRECT=OS:SALES01\private$\orders")
    return lambda core, queue: open_queue(core, name, access)


def taking(core: QueueManagerCore, queue: Queue) -> None:
    security = queue.properties.security
    assert security is not None
    set_queue_properties(core, queue, security=replace(security, owner=ALICE))


def reading_journal(core: QueueManagerCore, queue: Queue) -> None:
    assert queue.journal is not None
    check_open(core, queue.journal, AccessType.RECEIVE)


NEEDED: list[tuple[str, int, Callable[[QueueManagerCore, Queue], object]]] = [
    ("send", 0x4, opening(AccessType.SEND)),
    ("peek", 0x2, opening(AccessType.PEEK)),
    ("receive", 0x3, opening(AccessType.RECEIVE)),
    ("receive from the journal", 0xA, reading_journal),
    ("purge", 0x3, purge_queue),
    ("delete", 0x10000, delete_queue),
    ("set properties", 0x10, partial(set_queue_properties, label="x")),
    ("new subqueue", 0x3, lambda core, queue: open_subqueue(core, queue, "late")),
    ("move inside", 0x3, lambda core, queue: check_move(core, queue, queue)),
    (
        "change permissions",
        0x40000,
        partial(set_queue_properties, security=listed(owner=BOB)),
    ),
    ("take ownership", 0x80000, taking),
]


@pytest.mark.requirement("DM-3.1.1.2-20", "DM-3.1.1.2-21")
@pytest.mark.parametrize(("mask", "event"), [row[1:] for row in NEEDED], ids=[r[0] for r in NEEDED])
def test_an_event_takes_exactly_its_rights(
    mask: int, event: Callable[[QueueManagerCore, Queue], object]
) -> None:
    core, queue = guarded(mask)
    assert refused(core, lambda: event(core, queue)) == ""
    for number in range(20):  # any of the bits alone is missed
        bit = 1 << number
        if mask & bit:
            core, queue = guarded(FULL & ~bit)
            problem = refused(core, lambda: event(core, queue))  # noqa: B023 - called at once
            assert "alice (S-1-5-21-1-2-3-1105) may not" in problem


MANAGING: list[tuple[str, int, Callable[[QueueManagerCore], object]]] = [
    ("create a queue", 0x4, lambda core: create_queue(core, PathName.parse(r".\private$\new"))),
    ("peek dead letters", 0x2, lambda core: check_open(core, core.dead_letter, AccessType.PEEK)),
    (
        "receive dead letters",
        0x3,
        lambda core: check_open(core, core.transactional_dead_letter, AccessType.RECEIVE),
    ),
    ("peek the journal", 0x80, lambda core: check_open(core, core.journal, AccessType.PEEK)),
    ("receive journal", 0xC0, lambda core: check_open(core, core.journal, AccessType.RECEIVE)),
]


@pytest.mark.requirement("DM-3.1.1.1-30")
@pytest.mark.parametrize(
    ("mask", "event"), [row[1:] for row in MANAGING], ids=[row[0] for row in MANAGING]
)
def test_the_queue_manager_has_a_descriptor_of_its_own(
    mask: int, event: Callable[[QueueManagerCore], object]
) -> None:
    for number in range(20):
        bit = 1 << number
        if mask & bit:
            core = make_core()
            core.local.security = listed(access_allowed(0xF00F7 & ~bit, ALICE))
            assert "may not" in refused(core, lambda: event(core))  # noqa: B023 - called at once
    core = make_core()
    core.local.security = listed(access_allowed(mask, ALICE))
    assert refused(core, lambda: event(core)) == ""


def test_a_move_to_another_queue_is_also_a_sending() -> None:
    core, source = guarded(0x3)
    target = given_queue(core, "other", security=listed(access_allowed(0x3, ALICE)))
    assert "send messages" in refused(core, lambda: check_move(core, source, target))
    set_queue_properties(core, target, security=listed(access_allowed(0x4, ALICE)))
    assert refused(core, lambda: check_move(core, source, target)) == ""


def test_a_subqueue_and_a_journal_are_guarded_like_their_queue() -> None:
    core, queue = guarded(0x2)
    assert queue.journal is not None
    late = open_subqueue(core, queue, "late")
    for each in (late, queue.journal):
        assert refused(core, lambda: check_open(core, each, AccessType.PEEK)) == ""  # noqa: B023
        assert refused(core, lambda: check_open(core, each, AccessType.RECEIVE))  # noqa: B023


def test_what_was_refused_did_not_happen() -> None:
    core, queue = guarded(0x2)
    before = queue.properties
    for event in (purge_queue, delete_queue, partial(set_queue_properties, label="x")):
        assert refused(core, lambda: event(core, queue))  # noqa: B023 - called at once
    assert queue.properties is before
    assert not queue.is_deleted
    assert not queue.descriptors


def test_the_owner_of_the_process_and_its_own_services_are_not_asked() -> None:
    core, queue = guarded(0)
    opening(AccessType.RECEIVE)(core, queue)
    name = parse_format_name(r"DIRECT=OS:SALES01\private$\orders")
    with acting_as(USER):
        open_queue(core, name, AccessType.SEND, internal=True)
        with acting_as(None):
            purge_queue(core, queue)
        assert caller_of(core) is USER
    assert caller_of(core) is None


def test_a_manager_that_works_for_somebody_asks_always() -> None:
    core, queue = guarded(0x2)
    core.principal = USER
    assert caller_of(core) is USER
    with pytest.raises(FalconMQError, match="may not receive messages"):
        opening(AccessType.RECEIVE)(core, queue)
    other = Principal("bob", BOB)
    assert "bob" in refused(core, lambda: purge_queue(core, queue), other)


def test_a_program_that_works_for_somebody_is_bound_by_permissions(tmp_path: Path) -> None:
    name = r".\private$\orders"
    with falconmq.open(tmp_path) as manager:  # for its owner
        manager.create_queue(name).send(Message("x"))
    with falconmq.open(tmp_path, principal=USER) as manager:
        queue = manager.queue(name)
        assert queue.receive(timeout=0).text == "x"  # it is everybody's
        assert queue.opened.queue is not None
        queue.opened.queue.properties.security = listed(access_allowed(0x6, ALICE))
        again = manager.queue(name)
        again.send(Message("y"))
        assert again.peek(timeout=0).text == "y"
        late = partial(again.move, again.peek(timeout=0), manager.create_queue(name + "2"))
        for refuse in (partial(again.receive, timeout=0), again.purge, late):
            with pytest.raises(QueueError) as caught:
                refuse()
            assert caught.value.status is MqStatus.ACCESS_DENIED


def test_access_control_can_be_switched_off() -> None:
    core, queue = guarded(0, access_control=False)
    assert refused(core, lambda: delete_queue(core, queue)) == ""
    core, queue = guarded(0, access_control=False)
    assert may_anyone_send(core, queue)


@pytest.mark.requirement("QB-A18-01", "DM-3.1.1.12-102")
def test_senders_that_nobody_knows_have_the_rights_of_everyone() -> None:
    core = make_core()
    assert may_anyone_send(core, given_queue(core, "mine"))  # as it is created here
    for entries, is_allowed in [
        ((access_allowed(MQSEC_WRITE_MESSAGE, EVERYONE),), True),
        ((access_allowed(MQSEC_WRITE_MESSAGE, ANONYMOUS),), True),
        ((access_denied(FULL, ANONYMOUS), access_allowed(FULL, EVERYONE)), False),
        ((access_allowed(FULL, AUTHENTICATED_USERS),), False),
        ((access_allowed(FULL & ~MQSEC_WRITE_MESSAGE, EVERYONE),), False),
        ((), False),
    ]:
        queue = given_queue(core, f"q{len(core.queues)}", security=listed(*entries))
        assert may_anyone_send(core, queue) is is_allowed
        assert may_anyone_send(core, queue) is is_allowed  # remembered


def test_a_change_of_permissions_or_settings_counts_for_the_next_message() -> None:
    core = make_core()
    queue = given_queue(core, "orders")
    assert may_anyone_send(core, queue)
    core.settings.everyone_includes_anonymous = False
    assert not may_anyone_send(core, queue)
    core.settings.everyone_includes_anonymous = True
    set_queue_properties(core, queue, security=listed())
    assert not may_anyone_send(core, queue)
    set_queue_properties(core, queue, security=listed(access_allowed(4, ANONYMOUS)))
    assert may_anyone_send(core, queue)


def test_a_queue_belongs_to_the_principal_that_creates_it() -> None:
    core = make_core()
    with acting_as(USER):
        queue = create_queue(core, PathName.parse(r".\private$\mine"))
    assert queue.properties.security is not None
    assert format_sddl(queue.properties.security) == (
        "O:S-1-5-21-1-2-3-1105D:(A;;0x20020;;;WD)(A;;0xf003f;;;S-1-5-21-1-2-3-1105)"
    )
    assert not may_anyone_send(core, queue)


# Permissions in words


@pytest.mark.parametrize(
    ("text", "sid"),
    [
        ("Everyone", EVERYONE),
        (" anonymous ", ANONYMOUS),
        ("BA", ADMINISTRATORS),
        ("S-1-5-21-1-2-3-1105", ALICE),
        ("Bob", BOB),
    ],
)
def test_people_have_names(text: str, sid: Sid) -> None:
    assert who(text, {"bob": BOB}) == sid


def test_unknown_people_and_rights_are_refused_with_a_hint() -> None:
    with pytest.raises(FalconMQError, match="nobody is called 'carol'") as caught:
        who("carol", {"bob": BOB})
    assert "bob, Everyone" in caught.value.hint
    for words in (["sned"], ["0x100"], ["0x0"], []):
        with pytest.raises(FalconMQError) as caught:
            rights_mask(words)
        assert "send, receive, peek" in caught.value.hint


def test_rights_have_words_and_every_mask_can_be_spelled() -> None:
    assert rights_mask(["send", "PEEK", "0x20"]) == 0x26
    assert rights_words(0x26) == ["send", "peek", "get-properties"]
    assert rights_words(FULL) == rights_words(GENERIC_ALL) == ["full"]
    for mask in range(1, 0x40):
        assert rights_mask(rights_words(mask)) == mask
    assert name_of(BOB, {"bob": BOB}) == "bob"
    assert name_of(EVERYONE) == "Everyone"
    assert name_of(ALICE) == str(ALICE)


def test_granting_adds_to_the_entry_that_is_there_and_takes_denials_away() -> None:
    before = parse_sddl("O:BAD:(D;;0x5;;;WD)(A;;0x2;;;BA)(A;;0x2;;;WD)")
    after = grant(before, EVERYONE, 0x4)
    assert format_sddl(after) == "O:BAD:(D;;0x1;;;WD)(A;;0x2;;;BA)(A;;0x6;;;WD)"
    assert format_sddl(grant(after, ALICE, 0x3)) == format_sddl(after) + f"(A;;0x3;;;{ALICE})"
    unlimited = SecurityDescriptor(control=SE_DACL_PRESENT)
    assert grant(unlimited, ALICE, 1) is unlimited


def test_revoking_takes_away_what_entries_of_that_one_give() -> None:
    before = parse_sddl("D:(A;;GA;;;WD)(A;;0x4;;;BA)(A;IO;0x4;;;WD)(D;;0x4;;;WD)")
    after = revoke(before, EVERYONE, 0x4)
    assert format_sddl(after) == "D:(A;;0xf003b;;;WD)(A;;0x4;;;BA)(A;IO;0x4;;;WD)(D;;0x4;;;WD)"
    assert format_sddl(revoke(parse_sddl("D:(A;;0x4;;;WD)"), EVERYONE, FULL)) == "D:"
    with pytest.raises(FalconMQError, match="everybody may do everything"):
        revoke(SecurityDescriptor(control=SE_DACL_PRESENT), EVERYONE, 1)


@given(st.lists(_entries, max_size=5), _people, st.integers(1, 0x3F))
def test_what_is_granted_is_allowed_unless_a_group_is_denied_it(
    entries: list[Ace], sid: Sid, mask: int
) -> None:
    principal = Principal("x", sid, is_authenticated=False, is_in_everyone=False)
    ours = [ace for ace in entries if getattr(ace, "ace_type", 0) != 0x0A]  # conditions stay
    assert may(grant(listed(*ours), sid, mask), mask, principal)
    assert not may(revoke(listed(*ours), sid, mask), mask & -mask, principal)
