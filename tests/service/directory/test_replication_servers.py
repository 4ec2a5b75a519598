"""Who keeps the directory, by site, and how each server stands as seen from here."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.manager.states import DirectoryResult, DirectoryServerType
from falconmq.service.directory.replication_servers import DirectorySite, directory_sites
from falconmq.store import MemoryStore
from tests.directory.enterprises import guid

BERLIN, PARIS, ROME = guid("Berlin"), guid("Paris"), guid("Rome")
BACKUP, STANDALONE = DirectoryServerType.BACKUP_SITE_CONTROLLER, DirectoryServerType.STANDALONE


@pytest.fixture(scope="module")
def kept() -> EmbeddedDirectory:
    directory = EmbeddedDirectory(MemoryStore(), VirtualClock(), Random(1))
    rows: list[tuple[str, dict[str, object]]] = [("Enterprise", {"name": "example"})]
    sites = (("Paris", PARIS), ("Rome", ROME), ("Berlin", BERLIN))
    rows += [("Site", {"name": name, "identifier": site}) for name, site in sites]
    rows += [("Site", {"name": "Mainframe", "foreign_site": True})]
    for name, site, kind in (
        ("PEC0", BERLIN, DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER),
        ("BSC12", PARIS, BACKUP),
        ("BSC11", PARIS, BACKUP),
        ("CLERK", PARIS, STANDALONE),
    ):
        machine = {"computer_name": name, "identifier": guid(name), "server_type": kind}
        rows.append(("QueueManager", {**machine, "site_identifiers": [site]}))
    for type_name, row in rows:
        assert directory.create(type_name, row)[0] is DirectoryResult.SUCCESS
    return directory


def partition(identifier: object, authority: str, **more: object) -> dict[str, Any]:
    usual = {
        "id": str(identifier),
        "authority": authority,
        "own": False,
        "number": 5,
        "lag": 0,
    }
    return usual | {"state": "NORMAL", "waiting": False, "asked_seconds": None} | more


def neighbour(machine: str, **more: object) -> dict[str, Any]:
    usual = {"machine": machine, "silent": False, "waiting_changes": 0, "last_hello_seconds": None}
    return usual | more


def look(
    kept: EmbeddedDirectory, *neighbours: dict[str, Any], here: str = "PSC1", **paris: object
) -> dict[str, DirectorySite]:
    partitions = [
        partition(ENTERPRISE_PARTITION, "PEC0", number=9),
        partition(BERLIN, "PEC0"),
        partition(PARIS, "PSC1", **({"own": here == "PSC1"} | paris)),
        partition(ROME, ""),
    ]
    status = {"machine": here, "partitions": partitions, "neighbours": list(neighbours)}
    sites = directory_sites(kept, status)
    assert [site.name for site in sites] == ["Berlin", "Paris", "Rome"]  # of the PEC first
    return {site.name: site for site in sites}


def test_servers_stand_in_their_sites(kept: EmbeddedDirectory) -> None:
    sites = look(kept)
    pec, psc = sites["Berlin"].primary, sites["Paris"].primary
    assert (pec.name, pec.role, pec.identifier, pec.is_here) == ("PEC0", "PEC", guid("PEC0"), False)
    assert pec.standing.words == "in step, change 5, E9"
    assert (psc.role, psc.is_here, psc.identifier) == ("PSC", True, None)  # not registered yet
    assert psc.standing.words == "this server, change 5"
    assert [backup.name for backup in sites["Paris"].backups] == ["BSC11", "BSC12"]
    assert sites["Rome"].primary.standing.words == "nobody decides yet"


@pytest.mark.parametrize(
    ("changed", "look_of_it", "words"),
    [
        ({"lag": 3}, "warn", "3 not here yet"),
        ({"state": "SYNC0", "lag": 3}, "warn", "fetched anew"),
        ({"waiting": True, "asked_seconds": 4.0}, "warn", "asked for changes"),
        ({"waiting": True, "asked_seconds": 600.0}, "bad", "no answer for 10 min"),
        ({}, "good", "in step, change 5"),
    ],
)
def test_how_far_this_server_is(
    kept: EmbeddedDirectory, changed: dict[str, object], look_of_it: str, words: str
) -> None:
    standing = look(kept, here="BSC11", **changed)["Paris"].primary.standing
    assert (standing.look, standing.words) == (look_of_it, words)


@pytest.mark.parametrize(
    ("changed", "look_of_it", "words"),
    [
        ({"silent": True, "waiting_changes": 2}, "bad", "silent"),
        ({"waiting_changes": 2}, "warn", "2 to send"),
        ({"last_hello_seconds": 61.0}, "good", "nothing to send, told 1 min ago"),
        ({}, "good", "nothing to send"),
    ],
)
def test_what_a_neighbour_is_still_to_be_told(
    kept: EmbeddedDirectory, changed: dict[str, object], look_of_it: str, words: str
) -> None:
    first, second = look(kept, neighbour("bsc11", **changed))["Paris"].backups
    assert (first.sending.look, first.sending.words) == (look_of_it, words)
    assert second.sending.words == ""
