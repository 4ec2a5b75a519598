"""Security descriptors count, in every back end (guide 3.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from falconmq.directory.guard import GuardedDirectory, default_descriptor
from falconmq.errors import MqStatus
from falconmq.manager.access import Principal
from falconmq.manager.states import DirectoryResult
from falconmq.wire import access_masks as masks
from falconmq.wire.access_masks import ObjectKind
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import Sid
from tests.directory.worlds import SUCCESS, World

GENERIC = DirectoryResult.GENERIC_ERROR
ALICE = Principal("alice", Sid.parse("S-1-5-21-1-2-3-1001"))
BOB = Principal("bob", Sid.parse("S-1-5-21-1-2-3-1002"))


class Guarded(World):
    """A world whose directory works for somebody."""

    caller: Principal | None = None

    @contextmanager
    def acting_as(self, principal: Principal) -> Iterator[None]:
        self.caller = principal
        try:
            yield
        finally:
            self.caller = None

    def denies(self, result: DirectoryResult) -> bool:
        problem = self.directory.last_problem
        assert problem is not None
        return result is GENERIC and problem.status is MqStatus.ACCESS_DENIED


@pytest.fixture
def guarded(world: World) -> Guarded:
    guarded = Guarded(world.directory, world.clock, world.domain)
    guarded.directory = GuardedDirectory(world.directory, lambda: guarded.caller)
    return guarded


def only(mask: int, principal: Principal) -> SecurityDescriptor:
    return SecurityDescriptor(dacl=Acl.of([access_allowed(mask, principal.user)]))


def secure(
    guarded: Guarded, type_name: str, identifier: UUID, security: SecurityDescriptor
) -> None:
    guarded.write(type_name, identifier, security=security)


def test_creating_takes_the_right_of_what_it_stands_below(guarded: Guarded) -> None:
    site = guarded.add_site()
    secure(guarded, "Site", site, only(masks.MQSEC_CREATE_MACHINE, ALICE))
    machine = {"computer_name": "alpha", "site_identifiers": [site]}
    with guarded.acting_as(BOB):
        assert guarded.denies(guarded.directory.create("QueueManager", machine)[0])
    with guarded.acting_as(ALICE):
        router = {**machine, "routing_server": True}
        assert guarded.denies(guarded.directory.create("QueueManager", router)[0])
        assert guarded.directory.create("QueueManager", machine)[0] is SUCCESS
        # she owns what she made, so she may create queues there, and he may not
        assert guarded.directory.create("Queue", {"path_name": r"alpha\a"})[0] is SUCCESS
    with guarded.acting_as(BOB):
        assert guarded.denies(guarded.directory.create("Queue", {"path_name": r"alpha\b"})[0])
        assert guarded.get("Queue", "path_name", r"alpha\a")["label"] == ""


def test_sites_and_users_take_the_right_of_the_enterprise(guarded: Guarded) -> None:
    enterprise = UUID(str(guarded.directory.read("Enterprise", (), None)[1]["identifier"]))
    secure(guarded, "Enterprise", enterprise, only(masks.MQSEC_CREATE_SITE, ALICE))
    user = {
        "security_identifier": ALICE.user.encode(),
        "certificates": b"",
        "certificate_digests": [],
    }
    with guarded.acting_as(ALICE):
        assert guarded.directory.create("Site", {"name": "Berlin"})[0] is SUCCESS
        assert guarded.denies(guarded.directory.create("User", user)[0])
    with guarded.acting_as(BOB):
        assert guarded.denies(guarded.directory.create("Site", {"name": "Paris"})[0])
    # but everybody registers his own certificates, and nobody those of others
    identifier = guarded.add("User", **user)
    row = {"identifier": identifier, "certificates": b"new"}
    with guarded.acting_as(BOB):
        assert guarded.denies(guarded.directory.write("User", row))
    with guarded.acting_as(ALICE):
        assert guarded.directory.write("User", row) is SUCCESS


def test_changing_and_deleting_take_their_own_rights(guarded: Guarded) -> None:
    site = guarded.add_site()
    secure(guarded, "Site", site, only(0x10, ALICE))
    change = {"identifier": site, "foreign_site": True}
    permit = {"identifier": site, "security": None}
    with guarded.acting_as(ALICE):
        assert guarded.directory.write("Site", change) is SUCCESS
        assert guarded.denies(guarded.directory.write("Site", permit))
        assert guarded.denies(guarded.directory.delete("Site", site))
    with guarded.acting_as(BOB):
        assert guarded.denies(guarded.directory.write("Site", change))
    secure(guarded, "Site", site, only(masks.DELETE | masks.WRITE_DACL, BOB))
    with guarded.acting_as(BOB):
        assert guarded.directory.write("Site", permit) is SUCCESS
        assert guarded.directory.delete("Site", site) is SUCCESS


def test_what_may_not_be_looked_at_is_not_there(guarded: Guarded) -> None:
    open_site, closed = guarded.add_site("Berlin"), guarded.add_site("Paris")
    secure(guarded, "Site", closed, only(0x20, ALICE))
    secure(guarded, "Site", open_site, default_descriptor(ObjectKind.SITE, BOB.user))
    with guarded.acting_as(BOB):
        assert guarded.names("Site", "name") == ["Berlin"]
        assert guarded.result("Site", "name", "Paris") is DirectoryResult.OBJECT_NOT_FOUND
    with guarded.acting_as(ALICE):
        assert guarded.names("Site", "name") == ["Berlin", "Paris"]
        assert guarded.get("Site", "name", "Paris")["security"] is None  # not hers to read
        assert guarded.get("Site", "name", "Berlin")["security"] is not None
    assert guarded.get("Site", "name", "Paris")["security"] is not None
