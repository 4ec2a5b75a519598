"""D11 with a whole service: its directory is stopped under it, and comes back with news."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from falconmq import Message
from falconmq.clock import SystemClock
from falconmq.directory import presence
from falconmq.directory.base import DirectoryBase
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.ldap_directory import LdapDirectory
from falconmq.directory.ldap_settings import LdapSettings
from falconmq.directory.queries import find_all
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory import read_directory
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.service.access import Role
from falconmq.service.daemon import Service
from falconmq.service.web.http import HttpServer
from tests.directory.slapd import ADMINISTRATOR, PASSWORD, ROOT, Slapd, find_slapd
from tests.service.directory.enterprises import DOMAIN, in_enterprise, started
from tests.service.ports import HttpManager
from tests.service.services import loopback, run, until

SUCCESS = DirectoryResult.SUCCESS
AWAY = DirectoryResult.DIRECTORY_NOT_CONNECTED
Change = Callable[[DirectoryBase], object]


@dataclass
class Keeper:
    """Who keeps the directory: stopped and started again, and changed meanwhile."""

    section: dict[str, Any]
    change: Callable[[Change], object]  # behind the back of everybody
    stop: Callable[[], object]
    start: Callable[[], object]


@contextmanager
def ldap_keeper(place: Path) -> Iterator[Keeper]:
    if find_slapd() is None:
        pytest.skip("no slapd: tools/install-slapd.sh installs one")
    (place / "slapd").mkdir()
    server = Slapd(place / "slapd").start()
    port = server.port

    def change(work: Change) -> None:
        """Where nobody else looks for the server: at a port of its own."""
        server.stop()
        server.port = server.tls_port
        server.start()
        settings = LdapSettings((server.url,), ADMINISTRATOR, PASSWORD, root=ROOT)
        directory = LdapDirectory(settings, SystemClock(), Random(1))
        work(directory)
        directory.close()
        server.stop()
        server.port = port

    try:
        section = {
            "kind": "ldap",
            "servers": (server.url,),
            "bind_name": ADMINISTRATOR,
            "password_file": secret(place / "password", PASSWORD),
            "root": ROOT,
        }
        yield Keeper(section, change, server.stop, server.start)
    finally:
        server.stop()


@contextmanager
def remote_keeper(place: Path) -> Iterator[Keeper]:
    (place / "keeper").mkdir(mode=0o700)
    with HttpManager(place / "keeper", bind=loopback()) as manager:
        kept = EmbeddedDirectory(manager.app.state.control.engine.store, SystemClock(), Random(1))
        token = secret(place / "token", manager.token(Role.DIRECTORY, name="member"))
        http = replace(manager.configuration.http, port=manager.address[1])
        again = replace(manager.configuration, http=http)
        section = {"kind": "remote", "servers": (manager.url,), "token_file": token}

        def stop() -> None:
            manager.do(manager.server.stop)

        def start() -> None:
            manager.server = HttpServer(again, manager.access, None)
            manager.do(lambda: manager.server.start(manager.app))

        yield Keeper(section, lambda work: work(kept), stop, start)


def secret(file: Path, text: str) -> Path:
    file.touch(0o600)
    file.write_text(f"{text}\n")
    return file


@pytest.mark.parametrize("keeping", [ldap_keeper, remote_keeper])
def test_a_running_service_lives_through_the_absence_of_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeping: Any
) -> None:
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.05)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.1)
    with keeping(tmp_path) as keeper:
        keeper.change(fill)
        keeper.stop()
        keeper.start()
        configuration = in_enterprise(tmp_path / "a", **keeper.section)

        async def main() -> None:
            async with started(configuration) as service:
                await live_through(service, keeper)

        run(main())


def fill(directory: DirectoryBase) -> None:
    assert directory.create("Enterprise", {"name": DOMAIN})[0] is SUCCESS
    _, site = directory.create("Site", {"name": "Berlin"})
    beta = {"computer_name": "beta", "site_identifiers": [site]}
    assert directory.create("QueueManager", beta)[0] is SUCCESS
    assert directory.create("Queue", {"path_name": r"beta\bills"})[0] is SUCCESS


async def live_through(service: Service, keeper: Keeper) -> None:
    core, hub = service.engine.core, service.hub
    # given a public queue of ours, and one of another that was asked for once
    orders = await service.manager.create_queue(r".\orders", label="before")
    ours = next(iter(core.public.values()))
    by_guid, bills = equals("identifier", ours.identifier), equals("path_name", r"beta\bills")
    beta = read_directory(core, "Queue", bills)[1]["queue_manager_identifier"]
    # when the directory stops, then whoever asks first is told, and we are offline
    await asyncio.to_thread(keeper.stop)
    unknown = equals("computer_name", "gamma")
    assert read_directory(core, "QueueManager", unknown)[0] is AWAY
    assert core.is_directory_offline
    status = hub.status()
    assert (status["is_away"], status["is_offline"]) == (True, True)
    assert keeper.section["servers"][0] in str(status["problem"])
    # what is here, what was asked for, and who we are is answered; nothing else
    assert read_directory(core, "Queue", by_guid)[1]["label"] == "before"
    assert read_directory(core, "Queue", bills)[1]["queue_manager_identifier"] == beta
    own = equals("identifier", core.identifier)
    assert read_directory(core, "QueueManager", own)[0] is SUCCESS
    assert read_directory(core, "QueueManager", unknown)[0] is AWAY
    # and our queues work as ever, but there are no new public ones
    await orders.send(Message("hello"))
    assert (await orders.receive(timeout=0)).text == "hello"
    with pytest.raises(DirectoryError) as refused:
        await service.manager.create_queue(r".\more")
    assert refused.value.status is MqStatus.NO_DS
    # when it is back, with a change, then so are we, without waiting for the minute to end
    await asyncio.to_thread(keeper.change, rename)
    assert core.is_directory_offline
    await asyncio.to_thread(keeper.start)
    await until(lambda: not core.is_directory_offline)
    assert ours.properties.label == "after"
    assert hub.status()["is_away"] is False
    assert read_directory(core, "QueueManager", unknown)[0] is DirectoryResult.OBJECT_NOT_FOUND
    await service.manager.create_queue(r".\more")


def rename(directory: DirectoryBase) -> None:
    (row,) = find_all(directory, "Queue", equals("label", "before"))
    changed = {"identifier": row["identifier"], "label": "after"}
    assert directory.write("Queue", changed) is SUCCESS
