"""Roles move between services that run, and are taken over from one that is gone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from falconmq.cli import app as cli
from falconmq.directory.replication import eras, taking_over
from falconmq.directory.replication.eras import era_of
from falconmq.directory.replication.server import AskedAround, Server
from falconmq.directory.replication.state import Partition, PurgeState
from falconmq.errors import DirectoryError
from falconmq.manager.states import DirectoryServerType
from falconmq.service.api import replication as api
from falconmq.service.directory import gathering
from falconmq.service.directory.replicating import Replication
from falconmq.service.directory.role_moves import Reach, TakeOver, move_role, take_over_roles
from falconmq.service.directory.site_removal import Removal, remove_site
from falconmq.service.operating.reaching import Where, answer
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from tests.service.directory.test_replicating import (
    PARIS,
    PATIENCE,
    Servers,
    given_servers,
    run,
    start,
)
from tests.service.services import until


def replication_of(servers: Servers, name: str) -> Replication:
    found = servers.services[name].hub.replication
    assert found is not None
    return found


def reach_from(servers: Servers, name: str) -> Reach:
    """As the API does it: over the network."""
    place = servers.places[name]
    hosts = {other.name.lower(): (other.address,) for other in servers.places.values()}
    where = Where(place.identifier, place.address, hosts=hosts)

    async def reach(machine: str) -> str:
        found = await answer(machine, where, 0.5)
        return "" if found["is_reachable"] else "nobody answers there"

    return reach


def roles(servers: Servers) -> dict[str, str]:
    return {name: replication_of(servers, name).replicator.role.value for name in servers.services}


async def refused(servers: Servers, at: str, subject: str, new: str) -> str:
    with pytest.raises(DirectoryError) as caught:
        await move_role(
            replication_of(servers, at), subject, new, reach_from(servers, at), dry_run=False
        )
    return str(caught.value)


async def take_over(servers: Servers, at: str, dead: str, *, dry_run: bool = False) -> TakeOver:
    return await take_over_roles(
        replication_of(servers, at),
        dead,
        reach_from(servers, at),
        pec="",
        ignores_others=False,
        dry_run=dry_run,
    )


def asked_in_vain(server: Server, partition: Partition, names: Iterable[str]) -> None:
    """The request is lost on its way."""
    asked = server.asked_around.setdefault(partition.partition_id, AskedAround())
    asked.waiting.update(name.lower() for name in names)


async def check_refusals(servers: Servers) -> None:
    assert "no site Oslo" in await refused(servers, "PEC0", "Oslo", "BSC11")
    assert "knows no NOBODY" in await refused(servers, "PEC0", "Paris", "NOBODY")
    assert "not a queue manager of Paris" in await refused(servers, "PEC0", "Paris", "PEC0")
    assert "already" in await refused(servers, "PEC0", "Paris", "PSC1")
    assert "PEC already" in await refused(servers, "PEC0", "enterprise", "PEC0")
    assert "not the PSC of a site" in await refused(servers, "PEC0", "enterprise", "BSC11")
    with pytest.raises(DirectoryError, match="it is not gone"):
        await take_over(servers, "BSC11", "PSC1")
    with pytest.raises(DirectoryError, match="no role that this server can take over"):
        await take_over(servers, "PSC1", "BSC11")


async def check_removal(servers: Servers, command: Callable[..., Awaitable[str]]) -> None:
    """The site is given up: its servers are stopped, and it goes with all that is in it."""

    async def removed(at: str, name: str, *, dry_run: bool = False) -> Removal:
        reach = reach_from(servers, at)
        return await remove_site(replication_of(servers, at), name, reach, dry_run=dry_run)

    with pytest.raises(DirectoryError, match="BSC11, PSC1 can be reached"):
        await removed("PEC0", "paris")
    with pytest.raises(DirectoryError, match="no site Oslo"):
        await removed("PEC0", "Oslo")
    await servers.services.pop("BSC11").stop()
    with pytest.raises(DirectoryError, match="PSC1 can be reached"):
        await removed("PEC0", "paris")
    await servers.services.pop("PSC1").stop()
    seen = await removed("PEC0", "paris", dry_run=True)
    assert (seen.name, seen.servers, seen.queue_managers, seen.queues) == (
        "Paris",
        ["BSC11", "PSC1"],
        4,
        0,
    )
    assert servers.find("PEC0", "QueueManager", "computer_name", "M")
    said = await command(servers, "PEC0", "remove-site", "Paris", "--accept-loss")
    assert said == "Paris is removed, with what is in it; queue managers: 4, public queues: 0\n"
    for name in ("M", "N", "PSC1", "BSC11"):
        assert servers.find("PEC0", "QueueManager", "computer_name", name) is None
    status = replication_of(servers, "PEC0").replicator.status()
    assert PARIS not in [each.partition_id for each in status.partitions]
    assert not status.neighbours


async def check_half_copy(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replication_of(servers, "PSC1").replicator
    with engine.turn() as server:
        site = server.state.partitions[PARIS]
        site.purge_state, site.last = PurgeState.SYNC0, 1
        server.numbers.reset(PARIS, MAX_SEQ_NUMBER)
    with monkeypatch.context() as patched:
        patched.setattr(eras, "fetch_whole", lambda *_: None)
        patched.setattr(gathering, "_ANSWER_SECONDS", 0.5)
        with pytest.raises(DirectoryError, match="does not have all of it"):
            await take_over(servers, "PSC1", "BSC11")
    row = servers.find("PEC0", "Site", "identifier", PARIS)
    assert row is not None
    assert row["primary_site_controller"] == "BSC11"  # the PEC was told nothing


def test_a_role_moves_is_taken_over_and_the_dead_server_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_REACH_SECONDS", 0.5)  # nobody answers pings here

    async def command(servers: Servers, at: str, *words: str) -> str:
        """What an operator says at a server, and reads."""
        here = ["--data", str(servers.places[at].data)]
        code = await asyncio.to_thread(cli.main, ["directory", "replication", *words, *here])
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    async def main() -> None:
        async with given_servers(tmp_path, "PEC0", "PSC1", "BSC11") as servers:
            for name in servers.places:
                await servers.until_everybody_has("QueueManager", "computer_name", name)
            await check_refusals(servers)
            # a backup becomes the PSC, asked for anywhere, and nothing is restarted
            at, reach = replication_of(servers, "PSC1"), reach_from(servers, "PSC1")
            seen = await move_role(at, "paris", "bsc11", reach, dry_run=True)
            assert (seen.subject, seen.old, seen.new) == ("Paris", "PSC1", "BSC11")
            assert roles(servers)["BSC11"] == "bsc"
            said = await command(servers, "PSC1", "move", "Paris", "BSC11")
            assert said == "BSC11 decides about Paris as soon as it has everything that PSC1 has\n"
            await until(lambda: roles(servers) == {"PEC0": "pec", "PSC1": "bsc", "BSC11": "psc"})
            await servers.create(
                "BSC11", "QueueManager", computer_name="M", site_identifiers=[PARIS]
            )
            await servers.until_everybody_has("QueueManager", "computer_name", "M")
            await servers.until_equal()
            # a restart does not bring back what the configuration says
            await servers.services.pop("PSC1").stop()
            await start(servers, "PSC1")
            assert roles(servers)["PSC1"] == "bsc"
            said = await command(servers, "PSC1", "status")
            assert "bsc by the directory; the configuration says psc" in said
            # it dies; the backup says what it would do, and does it
            await servers.services.pop("BSC11").stop()
            monkeypatch.setattr(gathering, "_ANSWER_SECONDS", 0.5)
            with monkeypatch.context() as patched:
                patched.setattr(taking_over, "ask_around", asked_in_vain)
                with pytest.raises(DirectoryError, match="no answer from PEC0"):
                    await take_over(servers, "PSC1", "BSC11")
            with replication_of(servers, "PSC1").replicator.turn() as server:
                assert not server.asked_around  # and nobody is believed for it
            monkeypatch.setattr(gathering, "_ANSWER_SECONDS", PATIENCE)
            # it was telling everything anew when it died: somebody else does, or it is refused
            await check_half_copy(servers, monkeypatch)
            plan = await take_over(servers, "PSC1", "BSC11", dry_run=True)
            assert (plan.roles, plan.pec, plan.asked) == (["Paris"], "PEC0", None)
            said = await command(servers, "PSC1", "take-over", "BSC11", "--accept-loss")
            assert said == (
                "this server decides about Paris now, instead of BSC11\n"
                "asked for what they have heard: PEC0\n"
            )
            said = await command(servers, "PSC1", "status")
            assert re.search(r"Paris +this server +\d +0 +0 +NORMAL, taken over 20", said), said
            assert roles(servers)["PSC1"] == "psc"
            await servers.create(
                "PSC1", "QueueManager", computer_name="N", site_identifiers=[PARIS]
            )
            # and when the dead one is back, it follows
            await start(servers, "BSC11")
            await until(lambda: roles(servers)["BSC11"] == "bsc")
            await servers.until_everybody_has("QueueManager", "computer_name", "N")
            await servers.until_equal()
            status = replication_of(servers, "BSC11").replicator.status()
            last = next(each.last for each in status.partitions if each.partition_id == PARIS)
            assert era_of(last) > 0
            row = servers.find("PEC0", "QueueManager", "computer_name", "BSC11")
            assert row is not None
            assert row["server_type"] == DirectoryServerType.BACKUP_SITE_CONTROLLER
            await check_removal(servers, command)

    run(main())
