"""Who may use a queue whose creator did not say (MQDMPR 3.1.7.1.3.1, scenario 80)."""

from __future__ import annotations

from typing import Any

import pytest

from falconmq.manager.default_security import build_descriptor, default_security
from falconmq.wire.ace import BasicAce, access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SE_DACL_PRESENT, SE_SELF_RELATIVE, SecurityDescriptor
from falconmq.wire.sid import ANONYMOUS, EVERYONE, Sid
from tests.manager.directories import make_integrated_core
from tests.manager.helpers import COMPUTER, make_core

DOMAIN = Sid.parse("S-1-5-21-1-2-3")
USER, GUEST, MACHINE = DOMAIN.child(1105), DOMAIN.child(501), DOMAIN.child(2001)
FULL, LOOK, WRITE = 0xF003F, 0x20020, 0x4


def build(**options: Any) -> SecurityDescriptor:
    defaults = {"caller": USER, "is_domain_user": True, "machine": None, "srmp": False}
    supplied = options.pop("supplied", None)
    return build_descriptor(supplied, **{**defaults, **options})


def entries(descriptor: SecurityDescriptor) -> list[tuple[int, Sid]]:
    assert descriptor.dacl is not None
    aces = [ace for ace in descriptor.dacl.aces if isinstance(ace, BasicAce)]
    assert [access_allowed(ace.mask, ace.sid) for ace in aces] == list(descriptor.dacl.aces)
    return [(ace.mask, ace.sid) for ace in aces]


@pytest.mark.requirement(
    "DM-3.1.7.1.3.1-08",
    "DM-3.1.7.1.3.1-13",
    "DM-3.1.7.1.3.1-16",
    "DM-3.1.7.1.3.1-19",
    "DM-3.1.7.1.3.1-11",
)
def test_a_domain_user_owns_the_queue_and_others_may_look_at_it() -> None:
    descriptor = build()
    assert descriptor.owner == USER
    assert entries(descriptor) == [(LOOK, EVERYONE), (FULL, USER)]


@pytest.mark.requirement("DM-3.1.7.1.3.1-12")
def test_a_queue_of_the_guest_is_everybodys() -> None:
    descriptor = build(caller=GUEST)
    assert descriptor.owner == GUEST
    assert entries(descriptor) == [(FULL, EVERYONE)]


@pytest.mark.requirement("DM-3.1.7.1.3.1-09", "DM-3.1.7.1.3.1-12")
@pytest.mark.parametrize("caller", [USER, None])
def test_who_is_no_domain_user_is_anonymous_and_the_queue_everybodys(caller: Sid | None) -> None:
    descriptor = build(caller=caller, is_domain_user=False)
    assert descriptor.owner == ANONYMOUS
    assert entries(descriptor) == [(FULL, EVERYONE)]


@pytest.mark.requirement("DM-3.1.7.1.3.1-14", "DM-3.1.7.1.3.1-18")
def test_the_computer_may_look_at_its_queue() -> None:
    assert entries(build(machine=MACHINE)) == [(LOOK, EVERYONE), (LOOK, MACHINE), (FULL, USER)]


@pytest.mark.requirement("DM-3.1.7.1.3.1-15", "DM-3.1.7.1.3.1-17")
def test_where_srmp_can_send_everybody_and_nobody_may_send() -> None:
    descriptor = build(machine=MACHINE, srmp=True)
    assert entries(descriptor) == [
        (LOOK | WRITE, EVERYONE),
        (WRITE, ANONYMOUS),
        (LOOK, MACHINE),
        (FULL, USER),
    ]


@pytest.mark.requirement("DM-3.1.7.1.3.1-05")
def test_an_owner_that_was_given_is_kept() -> None:
    descriptor = build(supplied=SecurityDescriptor(owner=MACHINE))
    assert descriptor.owner == MACHINE
    assert entries(descriptor) == [(LOOK, EVERYONE), (FULL, MACHINE)]


@pytest.mark.requirement(
    "DM-3.1.7.1.3.1-04", "DM-3.1.7.1.3.1-06", "DM-3.1.7.1.3.1-07", "DM-3.1.7.1.3.1-10"
)
def test_lists_that_were_given_are_kept_as_they_are() -> None:
    dacl = Acl.of([access_allowed(WRITE, USER)])
    sacl = Acl.of([access_allowed(LOOK, EVERYONE)])
    given = SecurityDescriptor(dacl=dacl, sacl=sacl)
    descriptor = build(supplied=given, machine=MACHINE, srmp=True)
    assert (descriptor.dacl, descriptor.sacl) == (dacl, sacl)
    assert descriptor.owner == USER
    # and a list of its own stands beside the default
    descriptor = build(supplied=SecurityDescriptor(sacl=sacl))
    assert descriptor.sacl == sacl
    assert entries(descriptor) == [(LOOK, EVERYONE), (FULL, USER)]


def test_a_null_list_is_a_list_that_was_given() -> None:
    descriptor = build(supplied=SecurityDescriptor(control=SE_DACL_PRESENT))
    assert descriptor.has_null_dacl


@pytest.mark.requirement("DM-3.1.7.1.3.1-20")
def test_the_descriptor_is_self_relative() -> None:
    descriptor = build()
    assert descriptor.control & SE_SELF_RELATIVE
    assert SecurityDescriptor.decode(descriptor.encode()) == descriptor


@pytest.mark.requirement("DM-3.1.7.1.3.1-01", "DM-3.1.7.1.3.1-02", "DM-3.1.7.1.3.1-03")
def test_the_directory_knows_the_sid_of_the_computer_or_there_is_none() -> None:
    # given a directory that knows one computer
    settings: dict[str, Any] = {"owner": USER, "owner_is_domain_user": True}
    core, directory, _ = make_integrated_core(**settings)
    directory.computer_sids[COMPUTER] = MACHINE
    # then that one gets an entry, another and a workgroup get none
    assert (LOOK, MACHINE) in entries(default_security(core, COMPUTER))
    without = [(LOOK, EVERYONE), (FULL, USER)]
    assert entries(default_security(core, "OTHER")) == without
    assert entries(default_security(make_core(**settings), COMPUTER)) == without
