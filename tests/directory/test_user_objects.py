"""Certificates of users in the directory, in every back end (D13)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from random import Random

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.base import DirectoryBase
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.security.certificate_store import Registered
from falconmq.service.directory.publishing import UserObjects
from falconmq.store import MemoryStore
from falconmq.wire.user_sign_certs import UserSignCerts
from tests.directory.worlds import World
from tests.security.users import ANNA, BERT, make_users


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> list[Registered]:
    """Three certificates of anna."""
    made = [make_users(tmp_path_factory.mktemp("users"), ANNA)[ANNA] for _ in range(3)]
    assert len({each.certificate.data for each in made}) == 3
    return made


def certificates_of(directory: DirectoryBase) -> list[bytes]:
    """Those of anna, whose digests come in the same order (D13)."""
    _, row = directory.read("User", equals("security_identifier", ANNA.encode()), None)
    data = row["certificates"]
    assert isinstance(data, bytes)
    found = UserSignCerts.decode(data).certificates
    digests = [hashlib.md5(each.certificate).digest() for each in found]
    assert [each.digest for each in found] == digests
    assert row["certificate_digests"] == digests
    return [each.certificate for each in found]


@pytest.mark.requirement("MQ-2.3.6.5-02")
def test_certificates_come_and_go_in_every_back_end(
    world: World, certificates: list[Registered]
) -> None:
    first, second, third = certificates
    users = UserObjects(world.directory)
    users.add(first)
    users.add(second)
    data = [each.certificate.data for each in certificates]
    assert certificates_of(world.directory) == data[:2]
    users.add(third)
    assert certificates_of(world.directory) == data
    users.add(second)  # again: the last one registered is the last in the list
    assert certificates_of(world.directory) == [data[0], data[2], data[1]]
    users.remove(first)
    assert certificates_of(world.directory) == [data[2], data[1]]
    users.remove(first)  # nobody believes it any more
    users.remove(replace(first, owner=BERT))  # nor is there such a user
    for each in (second, third):
        users.remove(each)
    _, row = world.directory.read("User", equals("security_identifier", ANNA.encode()), None)
    assert (row["certificates"] or bytes(4), row["certificate_digests"]) == (bytes(4), [])


def test_where_users_come_from_elsewhere_they_must_be_there(certificates: list[Registered]) -> None:
    directory = EmbeddedDirectory(MemoryStore(), VirtualClock(), Random(1))
    directory.create("Enterprise", {"name": "example.com"})
    users = UserObjects(directory, may_create=False)
    with pytest.raises(DirectoryError, match=f"no user {ANNA}") as refused:
        users.add(certificates[0])
    assert "make the user there first" in refused.value.hint
    assert refused.value.status is MqStatus.MQDS_OBJECT_NOT_FOUND
    UserObjects(directory).add(certificates[0])
    users.add(certificates[1])
    assert len(certificates_of(directory)) == 2


def test_a_directory_that_says_no_is_quoted(certificates: list[Registered]) -> None:
    directory = EmbeddedDirectory(MemoryStore(), VirtualClock(), Random(1))
    with pytest.raises(DirectoryError, match="the directory is empty"):
        UserObjects(directory).add(certificates[0])
    directory.create("Enterprise", {"name": "example.com"})
    row = {"security_identifier": ANNA.encode(), "certificates": b"?", "certificate_digests": []}
    directory.create("User", row)
    with pytest.raises(DirectoryError, match="cannot be read"):
        UserObjects(directory).add(certificates[0])
