"""A queue manager in the directory that another one keeps: over a real HTTP port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from falconmq.client import ControlClient
from falconmq.clock import SystemClock
from falconmq.directory import presence
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.queries import find_all
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.service.access import Role
from falconmq.service.configuration import Configuration
from falconmq.service.daemon import Service
from falconmq.service.requests.audit import Wanted
from falconmq.service.web.http import HttpServer
from tests.service.directory.enterprises import DOMAIN, in_enterprise, started
from tests.service.ports import HttpManager
from tests.service.services import loopback, run, until


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[HttpManager]:
    """The queue manager that keeps the directory, with an enterprise of one site."""
    place = tmp_path / "keeper"
    place.mkdir(mode=0o700)
    with HttpManager(place, bind=loopback()) as manager:
        directory = kept(manager)
        directory.create("Enterprise", {"name": DOMAIN})
        directory.create("Site", {"name": "Berlin"})
        yield manager


def kept(manager: HttpManager) -> EmbeddedDirectory:
    return EmbeddedDirectory(manager.app.state.control.engine.store, SystemClock(), Random(1))


def member(data: Path, keeper: HttpManager, token: str) -> Configuration:
    file = data.with_suffix(".token")
    file.write_text(token)
    file.chmod(0o600)
    servers = (keeper.url,)
    return in_enterprise(data, kind="remote", servers=servers, token_file=file, timeout_seconds=20)


def test_it_registers_there_and_its_public_queues_are_known_there(
    keeper: HttpManager, tmp_path: Path
) -> None:
    async def main() -> None:
        token = keeper.token(Role.DIRECTORY, name="member")
        async with started(member(tmp_path / "a", keeper, token)) as service:
            name = service.configuration.manager.name
            row = kept(keeper).read("QueueManager", equals("computer_name", name), None)[1]
            assert row["identifier"] == service.engine.core.identifier
            assert row["public_signing_keys"]
            await service.manager.create_queue(f"{name}\\orders", label="Orders")
            (queue,) = find_all(kept(keeper), "Queue", equals("label", "Orders"))
            assert queue["queue_manager_identifier"] == service.engine.core.identifier
            entries = keeper.app.state.control.audit.newest(Wanted(), 10)[0]
            assert {entry["who"] for entry in entries} == {"token member"}

    run(main())


def test_people_see_the_keepers_directory_and_others_are_served_ours_alone(
    keeper: HttpManager, tmp_path: Path
) -> None:
    async def main() -> None:
        token = keeper.token(Role.DIRECTORY, name="member")
        async with started(member(tmp_path / "a", keeper, token)) as service:
            found = await asyncio.to_thread(asked, service, "GET", "/directory/site")
            assert [site["name"] for site in found["objects"]] == ["Berlin"]
            paris = {"attributes": {"name": "Paris"}}
            await asyncio.to_thread(asked, service, "POST", "/directory/site", paris)
            assert len(find_all(kept(keeper), "Site")) == 2
            # whoever asks a member gets what the member keeps: no chains, and so no circles
            served = await asyncio.to_thread(asked, service, "GET", "/directory/rows/site")
            assert served == {"rows": [], "next": None}

    run(main())


def asked(service: Service, method: str, path: str, body: Any = None) -> Any:
    with ControlClient(service.configuration.control_socket) as client:
        return client.request(method, path, body)


def test_it_starts_and_works_while_the_keeper_is_down(
    keeper: HttpManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.05)

    async def main() -> None:
        configuration = member(tmp_path / "a", keeper, keeper.token(Role.DIRECTORY, name="member"))
        async with started(configuration) as service:
            identifier = service.engine.core.identifier
        port = keeper.address[1]
        await asyncio.to_thread(keeper.do, keeper.server.stop)
        # a start with nobody to ask: what it knew is enough
        async with started(configuration) as service:
            hub = service.hub
            assert service.engine.core.identifier == identifier
            assert hub.directory is not None
            assert hub.directory.is_away
            assert keeper.url in hub.directory.problem
            assert [site.name for site in service.engine.core.sites] == ["Berlin"]
            # and when the keeper is back, that is noticed
            again = replace(
                keeper.configuration, http=replace(keeper.configuration.http, port=port)
            )
            server = HttpServer(again, keeper.access, None)
            await asyncio.to_thread(keeper.do, lambda: server.start(keeper.app))
            await until(lambda: hub.directory is not None and not hub.directory.is_away)
            await hub.refresh()
            await asyncio.to_thread(keeper.do, server.stop)

    run(main())


@pytest.mark.parametrize("token", ["wrong", "other"])
def test_a_token_that_does_not_open_the_directory_is_said_at_the_start(
    keeper: HttpManager, tmp_path: Path, token: str
) -> None:
    async def main() -> None:
        shown = keeper.token(Role.SEND, name="member") if token == "other" else "wrong"
        with pytest.raises(DirectoryError) as refused:
            await Service.start(member(tmp_path / "a", keeper, shown))
        assert refused.value.status is MqStatus.ACCESS_DENIED
        assert refused.value.hint

    run(main())
