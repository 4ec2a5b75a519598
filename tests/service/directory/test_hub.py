"""A service becomes a part of its directory: registered, kept up to date, and out again."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from falconmq import Message
from falconmq.directory import presence
from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_all, find_one
from falconmq.directory.routing import DirectoryRouter
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory import (
    directory_site_gates_update,
    directory_sites_update,
    read_directory,
)
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult, OutgoingState
from falconmq.names import PathName, PublicFormatName
from falconmq.security.key_store import KeyStore
from falconmq.service.configuration import DeclaredQueue, DirectorySection, Source
from falconmq.service.daemon import Service
from falconmq.service.directory.registry import DirectoryRegistry
from falconmq.service.directory.ways import Ways
from falconmq.service.registered import FileRegistry
from tests.directory.slapd import ADMINISTRATOR, PASSWORD, ROOT, Slapd, find_slapd
from tests.service.directory.enterprises import DOMAIN, Moody, in_enterprise, moody, started
from tests.service.services import ORDERS, PATIENCE, outgoing, run, serving, until

__all__ = ["moody"]  # a fixture
SUCCESS = DirectoryResult.SUCCESS
BERLIN = equals("name", "Berlin")


def own_row(directory: DirectoryBase, service: Service) -> dict[str, object] | None:
    by_identifier = equals("identifier", service.engine.core.identifier)
    row = find_one(directory, "QueueManager", by_identifier)
    return None if row is None else dict(row)


def test_the_first_start_makes_the_enterprise_and_registers(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a", routing_server=True, notification_seconds=0.5)
        async with started(configuration) as service:
            core, hub = service.engine.core, service.hub
            row = own_row(hub.kept, service)
            assert row is not None
            assert row["computer_name"] == configuration.manager.name
            assert row["qualified_computer_name"] == configuration.manager.bind
            assert row["routing_server"] is True
            assert row["directory_server"] is True
            site = find_one(hub.kept, "Site", BERLIN)
            assert site is not None
            assert row["site_identifiers"] == [site["identifier"]]
            keys = KeyStore(tmp_path / "a").keys()
            assert row["public_signing_keys"] == keys.public_signing_keys.encode()
            assert row["public_encryption_keys"] == keys.public_encryption_keys.encode()
            # the core is a part of it, with everything that belongs to that
            assert core.directory is hub.directory
            assert [each.name for each in core.sites] == ["Berlin"]
            assert core.enterprise is not None
            assert core.change_notifier is hub.notifier
            assert hub.notifications is not None
            assert hub.notifications.is_running
            settings = hub.notifications.settings
            times = settings.collect_seconds, settings.quiet_seconds, settings.longest_seconds
            assert times == pytest.approx((0.5, 7, 7.5))
            assert isinstance(service.transport.router, Ways)
            assert isinstance(service.transport.router.directory, DirectoryRouter)
            protection = service.transport.protection
            assert protection is not None
            assert isinstance(protection.registry, DirectoryRegistry)
            assert core.identifier in service.transport.router.directory.map.machines
            assert hub.status()["domain"] == DOMAIN
            assert service.troubles() == []
            identifier = core.identifier
            # an administrator has another idea of it
            _, paris = hub.kept.create("Site", {"name": "Paris"})
            changes = {
                "identifier": identifier,
                "site_identifiers": [paris],
                "routing_server": False,
                "quota_kilobytes": 77,
                "qualified_computer_name": "elsewhere",
            }
            assert hub.kept.write("QueueManager", changes) is SUCCESS
        # the keys are renewed while it does not run
        renewed = KeyStore(tmp_path / "a").renew(0)
        # the next start says only anew what the configuration says anew, and where it is
        async with started(configuration) as service:
            row = own_row(service.hub.kept, service)
            assert row is not None
            assert (row["site_identifiers"], row["routing_server"]) == ([paris], False)
            assert row["quota_kilobytes"] == 77
            assert service.engine.core.settings.quota_kilobytes == 77
            assert row["qualified_computer_name"] == configuration.manager.bind
            assert service.hub.status()["sites"] == ["Paris"]
            assert row["public_signing_keys"] == renewed.public_signing_keys.encode()
        again = replace(
            configuration,
            directory=replace(configuration.directory, site="berlin"),
            manager=replace(configuration.manager, quota_kilobytes=88),
            sources={"manager.quota_kilobytes": Source.FILE},
        )
        async with started(again) as service:
            assert service.engine.core.identifier == identifier
            row = own_row(service.hub.kept, service)
            assert row is not None
            assert row["site_identifiers"] == [paris, site["identifier"]]
            assert row["quota_kilobytes"] == 88
            assert len(find_all(service.hub.kept, "QueueManager")) == 1

    run(main())


def test_a_workgroup_keeps_a_directory_and_is_in_none(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = replace(in_enterprise(tmp_path / "a"), directory=DirectorySection())
        async with started(configuration) as service:
            assert service.hub.directory is None
            assert service.hub.asked is service.hub.kept
            assert not service.engine.core.directory.is_integrated
            assert service.hub.status()["is_joined"] is False
            await service.hub.refresh()  # nothing to do
            with pytest.raises(DirectoryError, match="in no directory"):
                await service.hub.leave()

    run(main())


@pytest.mark.parametrize(
    ("section", "status", "word"),
    [
        ({"kind": "ldap", "servers": ("http://host",)}, MqStatus.INVALID_PARAMETER, "http://host"),
        (
            {"kind": "remote", "token_file": Path("/nowhere/token")},
            MqStatus.INVALID_PARAMETER,
            "token",
        ),
    ],
)
def test_what_cannot_be_joined_is_said_at_the_start(
    tmp_path: Path, section: dict[str, Any], status: MqStatus, word: str
) -> None:
    async def main() -> None:
        with pytest.raises(DirectoryError, match=word) as refused:
            await Service.start(in_enterprise(tmp_path / "a", **section))
        assert refused.value.status is status
        assert refused.value.hint

    run(main())


def test_two_of_one_name_cannot_be(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        workgroup = replace(configuration, directory=DirectorySection())
        name = configuration.manager.name
        other = uuid4()
        async with started(workgroup) as service:
            kept = service.hub.kept
            kept.create("Enterprise", {"name": DOMAIN})
            _, site = kept.create("Site", {"name": "Berlin"})
            keys = KeyStore(tmp_path / "a").keys().public_signing_keys.encode()
            row = {"identifier": other, "computer_name": name, "site_identifiers": [site]}
            row["public_signing_keys"] = keys  # our own, from a copy of our files
            assert kept.create("QueueManager", row)[0] is SUCCESS
        with pytest.raises(DirectoryError) as refused:
            await Service.start(configuration)
        assert refused.value.status is MqStatus.MACHINE_EXISTS
        assert str(other) in str(refused.value)
        assert f"directory delete queue-manager {name}" in refused.value.hint
        # nothing was left open, and nothing was changed
        async with started(workgroup) as service:
            (found,) = find_all(service.hub.kept, "QueueManager")
            assert found["identifier"] == other

    run(main())


def test_a_directory_with_identifiers_of_its_own_is_not_joined(
    tmp_path: Path, moody: type[Moody]
) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            hub = service.hub
            hub.kept.create("Enterprise", {"name": DOMAIN})
            hub.kept.create("Site", {"name": "Berlin"})
            moody.gives_identifiers = True
            with pytest.raises(DirectoryError, match="identifiers itself") as refused:
                await hub.join(configuration.directory)
            assert refused.value.status is MqStatus.UNSUPPORTED_OPERATION
            assert find_all(hub.kept, "QueueManager") == []  # nothing is left behind

    run(main())


def test_a_site_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            hub = service.hub
            hub.kept.create("Enterprise", {"name": DOMAIN})
            for site in ("Paris", "Rome"):
                hub.kept.create("Site", {"name": site})
            with pytest.raises(DirectoryError, match="no site Berlin") as refused:
                await hub.join(configuration.directory)
            assert "Paris, Rome" in refused.value.hint
            with pytest.raises(DirectoryError, match="not said"):
                await hub.join(replace(configuration.directory, site=""))
            assert hub.directory is None
            assert not service.engine.core.directory.is_integrated
            await hub.join(replace(configuration.directory, site="rome"))
            assert hub.status()["sites"] == ["Rome"]
            # a second directory is refused
            with pytest.raises(DirectoryError, match="already"):
                await hub.join(configuration.directory)

    run(main())


def test_join_and_leave_while_it_runs(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        membership = tmp_path / "a" / "membership.toml"
        async with started(replace(configuration, directory=DirectorySection())) as service:
            hub, core = service.hub, service.engine.core
            await hub.join(configuration.directory)
            assert membership.stat().st_mode & 0o777 == 0o600
            assert service.configuration.directory == configuration.directory
            assert service.configuration.sources["directory.kind"] is Source.MEMBERSHIP
            queue = await service.manager.create_queue(r".\orders")
            await queue.send(Message("hello"))
            (identifier,) = core.public
            by_identifier = equals("identifier", identifier)
            assert find_one(hub.kept, "Queue", by_identifier) is not None
            with pytest.raises(DirectoryError, match="1 public queue") as refused:
                await hub.leave()
            assert "--force" in refused.value.hint
            assert own_row(hub.kept, service) is not None
            await hub.leave(force=True)
            assert find_all(hub.kept, "QueueManager") == []
            assert find_all(hub.kept, "Queue") == []
            assert not membership.exists()
            assert "directory.kind" not in service.configuration.sources
            assert not core.directory.is_integrated
            assert core.change_notifier is None
            assert core.sites == []
            assert core.settings.qualified_computer_name == ""
            protection = service.transport.protection
            assert protection is not None
            assert isinstance(protection.registry, FileRegistry)
            # the queue is here, with its message; the next join publishes it again
            message = await (await service.manager.queue(r".\orders")).peek(timeout=0)
            assert message.text == "hello"
            await hub.join(configuration.directory)
            (row,) = find_all(hub.kept, "Queue")
            published = row["identifier"]
            assert isinstance(published, UUID)
            assert list(core.public) == [published] != [identifier]  # which is given only once
            there = await service.manager.queue(str(PublicFormatName(published)))
            assert (await there.peek(timeout=0)).text == "hello"

    run(main())


def test_what_the_configuration_says_no_command_changes(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        said = replace(configuration, sources={"directory.kind": Source.FILE})
        async with started(said) as service:
            with pytest.raises(DirectoryError, match="configuration") as refused:
                await service.hub.leave(force=True)
            assert "directory.kind" in refused.value.hint
            with pytest.raises(DirectoryError, match="configuration"):
                await service.hub.join(configuration.directory)
            assert service.hub.directory is not None

    run(main())


def test_a_refresh_brings_links_and_gates(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(in_enterprise(tmp_path / "a")) as service:
            hub, core = service.hub, service.engine.core
            berlin = core.sites[0].identifier
            _, paris = hub.kept.create("Site", {"name": "Paris"})
            _, gate = hub.kept.create(
                "QueueManager",
                {"computer_name": "gate", "site_identifiers": [berlin], "routing_server": True},
            )
            link = {
                "site1_identifier": berlin,
                "site2_identifier": paris,
                "actual_cost": 1,
                "site_gate_identifiers": [gate],
            }
            assert hub.kept.create("RoutingLink", link)[0] is SUCCESS
            own = {"identifier": core.identifier, "out_routing_server_identifiers": [gate]}
            assert hub.kept.write("QueueManager", own) is SUCCESS
            assert core.sites[0].site_gates == []
            await hub.refresh()
            assert [each.identifier for each in core.sites[0].site_gates] == [gate]
            assert core.sites[0].site_gates[0].computer_name == "gate"
            assert hub.router is not None
            assert gate in hub.router.map.machines
            assert hub.status()["map"]["queue_managers"] == 2  # type: ignore[index]
            # an administrator puts us into a second site
            both = {"identifier": core.identifier, "site_identifiers": [berlin, paris]}
            assert hub.kept.write("QueueManager", both) is SUCCESS
            await hub.refresh()
            assert [each.name for each in core.sites] == ["Berlin", "Paris"]
            assert core.local.site_identifiers == [berlin, paris]
            # the events of the timers ask beside the loop, and apply in a turn
            hub.kept.write("QueueManager", {"identifier": gate, "qualified_computer_name": "g.x"})
            hub.kept.write("Site", {"identifier": berlin, "foreign_site": True})
            assert core.directory_beside is not None
            core.directory_beside(directory_site_gates_update)
            core.directory_beside(directory_sites_update)
            await until(lambda: core.sites[0].foreign_site)
            await until(lambda: core.sites[0].site_gates[0].qualified_computer_name == "g.x")
            # somebody whom the map does not know makes the router ask
            _, stranger = hub.kept.create(
                "QueueManager", {"computer_name": "new", "site_identifiers": [berlin]}
            )
            router = hub.router
            router.route_to(stranger)
            await until(lambda: stranger in router.map.machines)

    run(main())


def test_a_refresh_puts_right_what_came_late(tmp_path: Path) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(configuration) as service:
            hub, core = service.hub, service.engine.core
            before = own_row(hub.kept, service)
            assert before is not None
            ours = ("public_encryption_keys", "public_signing_keys", "qualified_computer_name")
            # given a write of ours that was given up, and comes behind a newer one
            late: dict[str, object] = {
                "public_encryption_keys": b"",
                "public_signing_keys": b"",
                "qualified_computer_name": "old.example.com",
                "quota_kilobytes": 77,  # that is not ours to say
            }
            hub.kept.write("QueueManager", {"identifier": core.identifier, **late})
            # when the map is read again, then what we say of ourselves is there again
            await hub.refresh()
            after = own_row(hub.kept, service)
            assert after is not None
            assert [after[name] for name in ours] == [before[name] for name in ours]
            assert after["quota_kilobytes"] == core.settings.quota_kilobytes == 77
            assert core.local.public_signing_keys == before["public_signing_keys"]
            # but who was deleted is not made anew
            assert hub.kept.delete("QueueManager", core.identifier) is DirectoryResult.SUCCESS
            with pytest.raises(DirectoryError, match="does not know this queue manager"):
                await hub.refresh()
            assert own_row(hub.kept, service) is None

    run(main())


def test_who_waits_for_a_way_takes_it_when_the_map_shows_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as receiver, started(in_enterprise(tmp_path / "a")) as sender:
            sender.configuration.transport.try_connect_interval = 10_000.0
            orders = await receiver.manager.create_queue(ORDERS)
            (number,) = [
                queue.private_queue_number
                for queue in receiver.engine.core.private_numbers.values()
                if queue.path_name.name == "orders"
            ]
            stranger = receiver.engine.core.identifier
            destination = await sender.manager.queue(f"PRIVATE={stranger}\\{number:08x}")
            await destination.send(Message("hello", recoverable=True))
            (queue,) = outgoing(sender)
            await until(lambda: queue.state is OutgoingState.NEED_VALIDATION)
            row = {
                "identifier": stranger,
                "computer_name": "receiver",
                "qualified_computer_name": receiver.configuration.manager.bind,
                "site_identifiers": [sender.engine.core.sites[0].identifier],
            }
            assert sender.hub.kept.create("QueueManager", row)[0] is SUCCESS
            await sender.hub.refresh()
            assert (await orders.receive(timeout=PATIENCE)).text == "hello"

    run(main())


def test_a_directory_that_goes_away_and_comes_back(tmp_path: Path, moody: type[Moody]) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            hub, core = service.hub, service.engine.core
            hub.kept.create("Enterprise", {"name": DOMAIN})
            hub.kept.create("Site", {"name": "Berlin"})
            await hub.join(configuration.directory)
            assert hub.directory is not None
            site = core.sites[0].identifier
            _, other = hub.kept.create(
                "QueueManager", {"computer_name": "beta", "site_identifiers": [site]}
            )
            by_name = equals("computer_name", "beta")
            assert read_directory(core, "QueueManager", by_name)[0] is SUCCESS
            moody.is_gone = True
            with pytest.raises(DirectoryError):
                await hub.refresh()  # notices, and lets the core know
            await until(lambda: core.is_directory_offline)
            status = hub.status()
            assert status["is_away"] is True
            assert status["problem"] == "the server is gone"
            assert str(status["away_since"]).endswith("+00:00")
            assert status["map"]["problem"] == "the server is gone"  # type: ignore[index]
            assert service.troubles() == []  # messages can be taken as ever
            # what is remembered is answered, what is not is refused, and nobody waits
            assert read_directory(core, "QueueManager", by_name)[1]["identifier"] == other
            unknown = read_directory(core, "QueueManager", equals("computer_name", "gamma"))
            assert unknown[0] is DirectoryResult.DIRECTORY_NOT_CONNECTED
            moody.is_gone = False
            directory = hub.directory
            await until(lambda: not directory.is_away)
            await until(lambda: not core.is_directory_offline)  # without waiting for its timer
            router = hub.router
            assert router is not None
            await until(lambda: not router.problem)

    run(main())


def test_it_starts_while_its_directory_is_away(tmp_path: Path, moody: type[Moody]) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            service.hub.kept.create("Enterprise", {"name": DOMAIN})
            service.hub.kept.create("Site", {"name": "Berlin"})
        # never registered, and nobody to register with
        moody.is_gone = True
        with pytest.raises(DirectoryError, match="never registered") as refused:
            await Service.start(configuration)
        assert refused.value.status is MqStatus.NO_DS
        assert refused.value.hint
        moody.is_gone = False
        async with started(configuration) as service:
            queue = await service.manager.create_queue(r".\orders")
            await queue.send(Message("hello"))
        moody.is_gone = True
        async with started(configuration) as service:
            core, hub = service.engine.core, service.hub
            assert core.is_directory_offline
            assert [site.name for site in core.sites] == ["Berlin"]
            assert hub.router is not None
            assert core.identifier in hub.router.map.machines
            assert hub.status()["is_registered"] is True
            assert hub.status()["is_away"] is True
            message = await (await service.manager.queue(r".\orders")).receive(timeout=0)
            assert message.text == "hello"
            # it cannot leave in order, but by force
            with pytest.raises(DirectoryError):  # its entry stays behind
                await service.manager.delete_queue(r".\orders")
            with pytest.raises(DirectoryError, match="the server is gone") as kept:
                await hub.leave()
            assert "--force" in kept.value.hint
            assert hub.directory is not None
            await hub.leave(force=True)
            assert not core.directory.is_integrated
            assert not core.is_directory_offline

    run(main())


def test_a_declared_public_queue_is_made_when_the_directory_is_back(
    tmp_path: Path, moody: type[Moody]
) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            service.hub.kept.create("Enterprise", {"name": DOMAIN})
            service.hub.kept.create("Site", {"name": "Berlin"})
            await service.hub.join(configuration.directory)
        moody.is_gone = True
        declaring = replace(configuration, queues=(DeclaredQueue(PathName.parse(r".\orders")),))
        async with started(declaring) as service:
            core = service.engine.core
            assert core.public == {}
            moody.is_gone = False
            await until(lambda: len(core.public) == 1)
            assert len(find_all(service.hub.kept, "Queue")) == 1

    run(main())


def test_queues_that_messages_wait_for_are_known_after_a_restart_without_the_directory(
    tmp_path: Path, moody: type[Moody]
) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            kept = service.hub.kept
            kept.create("Enterprise", {"name": DOMAIN})
            _, site = kept.create("Site", {"name": "Berlin"})
            _, beta = kept.create(
                "QueueManager", {"computer_name": "beta", "site_identifiers": [site]}
            )
            _, bills = kept.create("Queue", {"path_name": r"beta\bills"})
        async with started(configuration) as service:
            destination = await service.manager.queue(f"PUBLIC={bills}")
            await destination.send(Message("hello", recoverable=True))
            read_directory(service.engine.core, "Queue", equals("identifier", bills))
        moody.is_gone = True
        async with started(configuration) as service:
            core = service.engine.core
            assert core.is_directory_offline
            result, row = read_directory(core, "Queue", equals("identifier", bills))
            assert (result, row["queue_manager_identifier"]) == (SUCCESS, beta)
            router = service.hub.router
            assert router is not None
            assert router.problem
            assert router.read_at is not None
            found = router.get_destination_info(PublicFormatName(bills))
            assert found is not None
            assert found.queue_manager == beta

    run(main())


def test_a_hanging_directory_blocks_no_stop(tmp_path: Path, moody: type[Moody]) -> None:
    async def main() -> None:
        configuration = in_enterprise(tmp_path / "a")
        async with started(replace(configuration, directory=DirectorySection())) as service:
            service.hub.kept.create("Enterprise", {"name": DOMAIN})
            service.hub.kept.create("Site", {"name": "Berlin"})
        async with started(configuration) as service:
            core = service.engine.core
            assert service.hub.directory is not None
            service.hub.directory.timeout_seconds = 0.05
            moody.hanging = threading.Event()
            result, _ = read_directory(core, "QueueManager", equals("computer_name", "beta"))
            assert result is DirectoryResult.DIRECTORY_NOT_CONNECTED
            assert core.is_directory_offline
        moody.hanging.set()

    run(main())


@pytest.mark.skipif(find_slapd() is None, reason="no slapd: tools/install-slapd.sh installs one")
def test_a_service_in_ldap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered in a real slapd, started without it, and at home again when it is back."""
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.1)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.2)
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text(f"{PASSWORD}\n")
    place = tmp_path / "slapd"
    place.mkdir()
    server = Slapd(place).start()

    async def main() -> None:
        section: dict[str, Any] = {
            "kind": "ldap",
            "servers": (server.url,),
            "bind_name": ADMINISTRATOR,
            "password_file": password,
            "root": ROOT,
        }
        configuration = in_enterprise(tmp_path / "a", **section)
        with pytest.raises(DirectoryError):  # there is no enterprise, and we do not make one
            await Service.start(configuration)
        workgroup = replace(configuration, directory=DirectorySection())
        async with started(workgroup) as service:
            hub = service.hub
            core = service.engine.core
            from falconmq.service.directory.back_ends import open_back_end  # noqa: PLC0415

            ldap = open_back_end(configuration.directory, hub.kept, core.clock, core.random)
            await asyncio.to_thread(ldap.create, "Enterprise", {"name": DOMAIN})
            await asyncio.to_thread(ldap.create, "Site", {"name": "Berlin"})
            ldap.close()
        async with started(configuration) as service:
            row = await asyncio.to_thread(own_row, service.hub.asked, service)
            assert row is not None
            assert row["qualified_computer_name"] == configuration.manager.bind
            assert row["public_signing_keys"]
            assert service.hub.status()["sites"] == ["Berlin"]
        server.stop()
        async with started(configuration) as service:
            directory = service.hub.directory
            assert directory is not None
            assert directory.is_away
            assert service.engine.core.is_directory_offline
            assert service.hub.status()["sites"] == ["Berlin"]
            server.start()
            await until(lambda: not directory.is_away)
            await service.hub.refresh()

    try:
        run(main())
    finally:
        server.stop()
