"""Several services that keep one directory: a PEC, a PSC and a BSC on loopback sockets."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from falconmq.cli import app as cli
from falconmq.cli.directory_replication import differences
from falconmq.clock import SystemClock
from falconmq.directory.queries import find_one
from falconmq.directory.replication.numbers import NumberBook
from falconmq.directory.replication.replication_queue import REPLICATION_QUEUE_NUMBER
from falconmq.errors import DirectoryError
from falconmq.manager import lifecycle
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult
from falconmq.security.key_store import KeyStore
from falconmq.security.peer_store import PeerKeys, PeerStore
from falconmq.service.configuration import (
    Computer,
    Configuration,
    DirectorySection,
    HttpSection,
    ManagerSection,
    load,
)
from falconmq.service.daemon import Service
from falconmq.service.directory.replicating import Replication
from falconmq.service.directory.replication_view import fingerprint_page
from falconmq.service.tables import ConfigurationError
from falconmq.store import open_data_directory
from falconmq.transport.settings import TransportSettings
from falconmq.wire.message_class import MessageClass
from falconmq.wire.property_ids import ObjectType
from tests.directory.enterprises import guid
from tests.service.services import loopback, until

PATIENCE = 120.0  # seconds until a test gives up
PARIS = guid("Paris")


@dataclass
class Place:
    """Where a server is: who it is was decided when its data directory was made."""

    name: str
    data: Path
    address: str
    identifier: UUID

    def configuration(self, others: list[Place], section: DirectorySection) -> Configuration:
        return Configuration(
            ManagerSection(self.name, self.data, self.address),
            TransportSettings(try_connect_interval=0.05),
            hosts={other.name.lower(): (other.address,) for other in others},
            computers=tuple(Computer(o.identifier, o.name, o.address) for o in others),
            http=HttpSection(enabled=self.name == "PEC0", port=0, loopback_role="read"),
            directory=replace(
                section,
                kind="embedded",
                host_name=self.address,
                intersite_seconds=0.05,
                intrasite_seconds=0.05,
                timeout_seconds=20,
            ),
        )


def make_place(at: Path, name: str) -> Place:
    """A queue manager that has been there once: it has a GUID and keys."""
    data = at / name
    store = open_data_directory(data)
    identifier = guid(name)
    core = QueueManagerCore(identifier, store, SystemClock(), Random(1), Settings(name))
    lifecycle.initialize(core)
    store.commit([core.take_batch()[0]])
    store.close()
    KeyStore(data).keys()
    return Place(name, data, loopback(), identifier)


def exchange_keys(places: list[Place]) -> None:
    """What `falconmq key export` and `key import` do, everywhere."""
    for place in places:
        for other in places:
            if other is not place:
                keys = KeyStore(other.data).keys()
                PeerStore(place.data).add(PeerKeys.of(other.identifier, other.name, keys))


@dataclass
class Servers:
    """Services by name."""

    places: dict[str, Place]
    services: dict[str, Service]

    def find(self, name: str, type_name: str, attribute: str, value: object) -> Row | None:
        return find_one(self.services[name].hub.kept, type_name, equals(attribute, value))

    async def create(self, at: str, type_name: str, **row: object) -> None:
        """As the API does: in a thread, which may have to wait for another server."""
        hub = self.services[at].hub
        result, _ = await asyncio.to_thread(hub._own.create, type_name, row)
        assert result is DirectoryResult.SUCCESS, hub._own

    async def until_everybody_has(self, type_name: str, attribute: str, value: object) -> None:
        names = list(self.services)
        await until(lambda: all(self.find(n, type_name, attribute, value) for n in names))

    def fingerprints(self) -> list[dict[str, str]]:
        return [_replication(service).fingerprints() for service in self.services.values()]

    async def until_equal(self) -> None:
        def are_equal() -> bool:
            first, *others = self.fingerprints()
            return bool(first) and all(other == first for other in others)

        await until(are_equal)


def _replication(service: Service) -> Replication:
    assert service.hub.replication is not None
    return service.hub.replication


SECTIONS = {
    "PEC0": DirectorySection(role="pec", domain="example", site="Berlin"),
    "PSC1": DirectorySection(role="psc", site=str(PARIS), pec="PEC0"),
    "BSC11": DirectorySection(role="bsc", site=str(PARIS), pec="PEC0", psc="PSC1"),
}


async def start(servers: Servers, name: str) -> None:
    """Start a server, and wait until it is a part of the directory."""
    place = servers.places[name]
    others = [other for other in servers.places.values() if other is not place]
    service = await Service.start(place.configuration(others, SECTIONS[name]))
    servers.services[name] = service
    await until(lambda: service.hub.directory is not None)


@asynccontextmanager
async def given_servers(at: Path, *names: str) -> AsyncIterator[Servers]:
    """PEC0 in Berlin, the others in Paris; they begin with nothing, one after the other."""
    places = [make_place(at, name) for name in names]
    exchange_keys(places)
    servers = Servers({place.name: place for place in places}, {})
    try:
        await start(servers, "PEC0")
        row = {"name": "Paris", "primary_site_controller": "PSC1", "identifier": PARIS}
        await servers.create("PEC0", "Site", **row)
        for name in names[1:]:
            await start(servers, name)
        yield servers
    finally:
        for service in reversed(servers.services.values()):
            await service.stop()


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, PATIENCE))


def test_servers_join_one_after_the_other_and_have_the_same_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with given_servers(tmp_path, "PEC0", "PSC1", "BSC11") as servers:
            # everybody registered itself, wherever the decision is made
            for name in servers.places:
                await servers.until_everybody_has("QueueManager", "computer_name", name)
            # a write at the backup is decided in Berlin, and comes back
            await servers.create("BSC11", "Site", name="Rome")
            await servers.until_everybody_has("Site", "name", "Rome")
            # but never by a thread that everything else waits for
            result, _ = servers.services["BSC11"].hub._own.create("Site", {"name": "Oslo"})
            assert result is not DirectoryResult.SUCCESS
            await servers.until_everybody_has("Site", "name", "Oslo")  # it was asked for
            # a public queue of the PSC is made where it is, and known everywhere
            await servers.services["PSC1"].manager.create_queue(r"PSC1\orders")
            await servers.until_everybody_has("Queue", "path_name", r"PSC1\orders")
            await servers.until_equal()
            assert_pages(_replication(servers.services["PEC0"]))
            await asyncio.to_thread(look_at_it, servers, capsys)
        assert "falconmq replication" not in str(threading.enumerate())

    run(main())


def assert_pages(replication: Replication) -> None:
    """All of it, and nothing twice, also when it is asked for in parts."""
    pages, after = [fingerprint_page(replication, "", 2)], ""
    while after := pages[-1]["next"]:
        pages.append(fingerprint_page(replication, after, 2))
    names = [name for page in pages for name in page["fingerprints"]]
    assert names == sorted(replication.fingerprints())


def look_at_it(servers: Servers, capsys: pytest.CaptureFixture[str]) -> None:
    """Operators see it: over the control socket, and over HTTP."""
    here = ["--data", str(servers.places["PSC1"].data)]
    http = servers.services["PEC0"].http
    assert http is not None
    assert cli.main(["directory", "replication", "status", *here]) == 0
    text = capsys.readouterr().out
    for line in (r"role +psc", r"Paris +this server +\d+ +0 +0 +NORMAL", r"BSC11 +BSC +Paris"):
        assert re.search(line, text), text
    assert cli.main(["directory", "replication", "compare", http.url, *here]) == 0
    assert capsys.readouterr().out.startswith("no difference: ")
    # and what only one of them has
    with servers.services["PEC0"].hub._own.changing() as writer:
        NumberBook(writer.workspace).take_away(ObjectType.MQDS_SITE, PARIS)
    assert cli.main(["directory", "replication", "compare", http.url, *here]) == 1
    assert f"Site  {PARIS}  missing there" in capsys.readouterr().out


def test_a_server_that_was_away_gets_what_it_missed(tmp_path: Path) -> None:
    async def main() -> None:
        async with given_servers(tmp_path, "PEC0", "PSC1") as servers:
            await servers.services.pop("PSC1").stop()
            await servers.create("PEC0", "Site", name="Rome")
            await start(servers, "PSC1")
            await servers.until_everybody_has("Site", "name", "Rome")
            await servers.until_equal()
            # what comes from elsewhere is not hidden by what was remembered here
            cached = servers.services["PSC1"].hub.directory
            assert cached is not None
            paris = equals("identifier", PARIS)
            assert (find_one(cached, "Site", paris) or {})["foreign_site"] is False
            changes = {"identifier": PARIS, "foreign_site": True}
            await asyncio.to_thread(servers.services["PEC0"].hub._own.write, "Site", changes)
            await until(lambda: (find_one(cached, "Site", paris) or {})["foreign_site"] is True)
            # the queue is for servers alone, and nothing was dropped
            core = servers.services["PSC1"].engine.core
            assert core.private_numbers[REPLICATION_QUEUE_NUMBER].is_internal
            counters = _replication(servers.services["PSC1"]).replicator.counters
            assert not [name for name in counters if name.startswith("dropped.not")]

    run(main())


def test_a_server_that_nobody_knows_gets_no_copy_until_it_is_introduced(tmp_path: Path) -> None:
    async def main() -> None:
        pec, stranger = make_place(tmp_path, "PEC0"), make_place(tmp_path, "PSC1")
        servers = Servers({"PEC0": pec}, {})
        await start(servers, "PEC0")
        known = servers.services["PEC0"]
        try:
            row = {"name": "Paris", "primary_site_controller": "PSC1", "identifier": PARIS}
            await servers.create("PEC0", "Site", **row)
            configuration = stranger.configuration([pec], SECTIONS["PSC1"])
            service = await Service.start(configuration)
            try:
                refusals = known.transport.refusals
                await until(lambda: refusals[MessageClass.NACK_BAD_SIGNATURE] > 0)
                assert not _replication(service).is_ready.is_set()
                assert service.hub.directory is None
            finally:
                await service.stop()
            # when both have each other's keys, and its configuration names the new one
            exchange_keys([pec, stranger])
            known.network.resolver.hosts = {"psc1": (stranger.address,)}
            known.configure(pec.configuration([stranger], SECTIONS["PEC0"]))
            servers.places["PSC1"] = stranger
            await start(servers, "PSC1")
            await servers.until_equal()
        finally:
            for each in servers.services.values():
                await each.stop()

    run(main())


def test_a_first_start_needs_the_guid_of_the_site(tmp_path: Path) -> None:
    async def main() -> None:
        place = make_place(tmp_path, "PSC1")
        section = DirectorySection(role="psc", site="Paris", pec="PEC0")
        with pytest.raises(DirectoryError, match="no site 'Paris'") as error:
            await Service.start(place.configuration([], section))
        assert "GUID" in error.value.hint

    run(main())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('role = "psc"\npec = "PEC0"', "directory.kind"),
        ('kind = "embedded"\nrole = "bsc"', "directory.pec"),
        ('kind = "embedded"\nrole = "king"', "directory.role"),
    ],
)
def test_a_role_that_cannot_be_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "falconmq.toml"
    file.write_text(f"[manager]\ndata = '{tmp_path / 'data'}'\n[directory]\n{text}\n")
    with pytest.raises(ConfigurationError, match=problem):
        load(file)


def test_a_role_is_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    text = 'kind = "embedded"\nrole = "bsc"\npec = "PEC0"\npsc = "PSC1"\nhello_seconds = 60'
    file.write_text(f"[manager]\ndata = '{tmp_path / 'data'}'\n[directory]\n{text}\n")
    section = load(file).directory
    assert (section.role, section.pec, section.psc) == ("bsc", "PEC0", "PSC1")
    assert section.has_role
    assert section.hello_seconds == 60
    assert section.checks_servers


def test_a_service_without_a_role_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        place = make_place(tmp_path, "ALONE")
        plain = replace(place.configuration([], DirectorySection()), directory=DirectorySection())
        service = await Service.start(plain)
        try:
            words = ["directory", "replication", "status", "--data", str(place.data)]
            assert await asyncio.to_thread(cli.main, words) == 1
            assert REPLICATION_QUEUE_NUMBER not in service.engine.core.private_numbers
        finally:
            await service.stop()

    run(main())


def test_differences_say_what_only_one_has_and_what_both_have_differently() -> None:
    here = {"p/Site/1": "3 ab", "p/Site/2": "4 cd", "p/deleted/5": "6 Site", "p/Site/9": "1 aa"}
    there = {"p/Site/2": "4 ce", "p/Site/3": "7 ef", "p/Site/9": "1 aa"}
    found = [(each["kind"], each["id"], each["difference"]) for each in differences(here, there)]
    assert found == [
        ("Site", "1", "missing there"),
        ("Site", "2", "different"),
        ("Site", "3", "missing here"),
        ("deletion", "5", "missing there"),
    ]
