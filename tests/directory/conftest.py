"""Directories to test: in memory, in a store on disk, in LDAP, and at another queue manager."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

import pytest

from falconmq.client.remote_directory import RemoteDirectory
from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.ldap_directory import LdapDirectory
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.service.access import Role
from falconmq.store import Durability, LmdbStore, MemoryStore
from tests.directory.slapd import ADMINISTRATOR, DOMAIN, PASSWORD, ROOT, Slapd, find_slapd
from tests.directory.worlds import World
from tests.service.ports import HttpManager

_numbers: Final = count(1)


@pytest.fixture(scope="session")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    """One server for all tests of a process; each test has a part of the tree for itself."""
    if find_slapd() is None:
        pytest.skip("no slapd: tools/install-slapd.sh installs one")
    server = Slapd(tmp_path_factory.mktemp("slapd")).start()
    whole = LdapDirectory(settings_for(server, ROOT), VirtualClock(), Random(0))
    whole.create("Enterprise", {"name": DOMAIN})
    whole.close()
    yield server
    server.stop()


@pytest.fixture
def ldap(slapd: Slapd) -> Iterator[World]:
    number = next(_numbers)
    world = ldap_world(slapd, number)
    yield world
    world.directory.close()


@pytest.fixture(scope="session")
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpManager]:
    """Another queue manager; which directory it serves is the business of each test."""
    with HttpManager(tmp_path_factory.mktemp("neighbour")) as manager:
        yield manager


@pytest.fixture
def remote(neighbour: HttpManager) -> Iterator[World]:
    clock = VirtualClock()
    neighbour.app.state.directory = EmbeddedDirectory(MemoryStore(), clock, Random(1))
    token = neighbour.token(Role.DIRECTORY, name=f"neighbour{next(_numbers)}")
    world = World(RemoteDirectory([neighbour.url], token), clock, DOMAIN)
    yield world.begin()
    world.directory.close()


@pytest.fixture(params=["memory", "store", "ldap", "remote"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """An enterprise with nothing in it, in each back end."""
    if request.param in ("ldap", "remote"):
        yield request.getfixturevalue(request.param)
        return
    if request.param == "memory":
        yield embedded_world(MemoryStore())
        return
    place = tmp_path_factory.mktemp("directory")
    with LmdbStore(place, durability=Durability.RELAXED) as store:
        yield embedded_world(store)


def embedded_world(store: MemoryStore | LmdbStore) -> World:
    clock = VirtualClock()
    world = World(EmbeddedDirectory(store, clock, Random(1)), clock, DOMAIN)
    return world.begin()


def ldap_world(slapd: Slapd, number: int) -> World:
    clock = VirtualClock()
    settings = settings_for(slapd, f"DC=part{number},{ROOT}")
    world = World(LdapDirectory(settings, clock, Random(number)), clock, f"part{number}.{DOMAIN}")
    return world.begin()


def settings_for(slapd: Slapd, root: str, **more: object) -> LdapSettings:
    return LdapSettings((slapd.url,), ADMINISTRATOR, PASSWORD, root=root, **more)  # type: ignore[arg-type]
