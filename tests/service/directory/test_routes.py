"""The way to a queue manager, over HTTP and with `falconmq directory route`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from falconmq.service.access import Role
from falconmq.service.requests.audit import Wanted
from tests.cli.commands import InProcess
from tests.service.directory.enterprise import KNOWN, Directory, given_enterprise
from tests.service.ports import HttpManager


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with given_enterprise(tmp_path_factory.mktemp("routes")) as made:
        yield made


@pytest.fixture
def falconmq(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, directory: Directory
) -> InProcess:
    monkeypatch.setenv("FALCONMQ_URL", directory.site.url)
    monkeypatch.setenv("TZ", "UTC")
    return InProcess(capsys, monkeypatch)


def test_a_way_is_told_hop_by_hop_with_reasons_and_costs(directory: Directory) -> None:
    found = directory.route("remo").json()
    assert (found["destination"], found["sites"], found["possible"]) == ("REMO", ["Rome"], True)
    assert not found["configured"]
    steps = [(step["queue_manager"], step["next"], step["cost"]) for step in found["steps"]]
    assert steps == [
        ("SALES01", ["BERLIN-GATE"], 4),
        ("BERLIN-GATE", ["PARIS-GATE"], 4),
        ("PARIS-GATE", ["ROME-GATE"], 3),
        ("ROME-GATE", ["REMO"], 0),
        ("REMO", [], 0),
    ]
    assert "costs 4 over 2 links and begins with site Paris" in found["steps"][1]["reason"]
    assert found["map"]["joined"]
    assert found["map"]["read_at"] is not None
    assert (found["map"]["sites"], found["map"]["links"]) == (4, 3)
    assert any("site Host has no gate" in fault for fault in found["map"]["faults"])


def test_a_queue_stands_for_the_queue_manager_that_has_it(directory: Directory) -> None:
    ledger = directory.create("queue", path_name=r"REMO\ledger")
    remo = directory.find("queue-manager", "REMO")["identifier"]
    names = [remo, f"{{{remo}}}", ledger, f"PUBLIC={ledger}", rf"PRIVATE={remo}\5", r"remo\ledger"]
    assert [directory.route(name).json()["destination"] for name in names] == ["REMO"] * len(names)


def test_who_is_unknown_has_no_way_and_a_name_gets_a_hint(directory: Directory) -> None:
    stranger = str(uuid4())
    found = directory.route(stranger).json()
    assert not found["possible"]
    assert found["steps"][0]["rule"] == "the directory does not know the destination"
    answer = directory.route("NOBODY")
    assert answer.status_code == 404
    assert "no queue manager and no queue NOBODY" in answer.text
    assert "directory route NOBODY --refresh" in answer.json()["hint"]
    direct = directory.route(r"DIRECT=OS:sales02\private$\orders")
    assert direct.status_code == 400
    assert "direct names are not routed" in direct.text


def test_the_configuration_comes_before_the_map(directory: Directory) -> None:
    found = directory.route(KNOWN).json()
    assert (found["configured"], found["possible"]) == (True, True)
    assert [step["next"] for step in found["steps"]] == [["10.9.8.7"]]


def test_somebody_new_is_known_after_a_refresh(directory: Directory) -> None:
    paris = directory.find("site", "Paris")["identifier"]
    directory.create("queue-manager", computer_name="NEW", site_identifiers=[paris])
    assert directory.route("NEW").status_code == 404
    before = directory.route("PIA").json()["map"]["queue_managers"]
    assert directory.refresh()["queue_managers"] == before + 1
    assert directory.route("NEW").json()["possible"]


def test_reading_is_for_readers_and_refreshing_for_managers(directory: Directory) -> None:
    site = directory.site
    headers = {"Authorization": f"Bearer {site.token(Role.READ, name='reader')}"}
    with httpx.Client(base_url=f"{site.url}/api/v1", headers=headers) as reader:
        assert reader.get("/routes/PIA").status_code == 200
        assert reader.post("/routes/refresh").status_code == 403
    directory.refresh()
    entry = site.control.audit.newest(Wanted(), 1)[0][0]
    assert (entry["action"], entry["result"]) == ("directory refresh", "done")


def test_the_command_shows_the_way(falconmq: InProcess) -> None:
    done = falconmq("directory", "route", "remo", "--refresh")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    way = "SALES01 -> BERLIN-GATE -> PARIS-GATE -> ROME-GATE -> REMO, cost 4 over 2 links"
    assert lines[0] == way
    assert lines[2].split() == ["STEP", "AT", "NEXT", "COST", "LEFT", "WHY"]
    assert lines[4].split()[:4] == ["2", "BERLIN-GATE", "PARIS-GATE", "4"]
    assert any(line.startswith("map:   4 sites, 3 links, ") for line in lines)
    assert any(line.startswith("fault: site Host has no gate") for line in lines)


def test_the_command_says_when_there_is_none(falconmq: InProcess) -> None:
    done = falconmq("directory", "route", "FRIDA")
    assert done.code == 1
    assert done.out.startswith("no way from SALES01 to FRIDA: it ends at ")
    as_json = falconmq("directory", "route", "FRIDA", "--json")
    assert as_json.code == 1
    assert '"possible": false' in as_json.out
    unknown = falconmq("directory", "route", "NOBODY")
    assert (unknown.code, unknown.out) == (1, "")
    assert "hint:" in unknown.err


def test_in_a_workgroup_the_map_of_the_store_is_shown_and_nothing_follows_it(
    tmp_path: Path,
) -> None:
    with HttpManager(tmp_path) as port, port.client(port.token(Role.MANAGE, name="a")) as client:
        empty = client.get("/api/v1/routes/PIA")
        assert empty.status_code == 404
        assert "it knows nobody" in empty.json()["hint"]
        client.post("/api/v1/directory/enterprise", json={"attributes": {"name": "example.com"}})
        made = client.post("/api/v1/directory/site", json={"attributes": {"name": "Paris"}})
        sites = [made.json()["attributes"]["identifier"]]
        attributes = {"computer_name": "PIA", "site_identifiers": sites}
        client.post("/api/v1/directory/queue-manager", json={"attributes": attributes})
        found = client.get("/api/v1/routes/PIA").json()
        assert not found["possible"]
        assert found["steps"][0]["rule"] == "the directory does not know this queue manager"
        assert not found["map"]["joined"]
        refused = client.post("/api/v1/routes/refresh")
        assert refused.status_code >= 400
        assert "directory join" in refused.json()["hint"]
