"""What operators see of a directory server: status, metrics, and why a change is not here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from falconmq.cli import app as cli
from falconmq.service.observation.replication_metrics import PARTITIONS_MAX, add_replication
from tests.service.directory.directory_server import PSC1, given_directory_server, hear
from tests.service.directory.enterprise import Directory

PREFIX = "falconmq_directory_replication"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with given_directory_server(tmp_path_factory.mktemp("server")) as made:
        hear(made, last=7)
        yield made


def why(directory: Directory, subject: str) -> dict[str, Any]:
    answer = directory.http.get("/directory-replication/why", params={"subject": subject})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def codes(found: dict[str, Any]) -> list[str]:
    return [cause["code"] for cause in found["causes"]]


def test_the_status_says_who_was_asked_and_heard(directory: Directory) -> None:
    found = directory.http.get("/directory-replication").json()
    paris = next(each for each in found["partitions"] if each["name"] == "Paris")
    assert (paris["last"], paris["lag"]) == (0, 7)
    assert paris["asked_seconds"] >= 0  # nobody answers
    enterprise = found["partitions"][0]
    assert enterprise["asked_seconds"] is None
    neighbours = {each["machine"]: each for each in found["neighbours"]}
    assert neighbours["PSC1"]["last_heard_seconds"] >= 0
    assert neighbours["BSC01"]["last_heard_seconds"] is None
    assert not neighbours["BSC01"]["silent"]


def test_a_role_that_cannot_move_is_refused(
    directory: Directory, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(what: str, **given: object) -> str:
        answer = directory.http.post(f"/directory-replication/{what}", json=given)
        assert answer.status_code >= 400
        return str(answer.json())

    assert "move that role first" in refused("move", subject="Berlin", server="BSC01")
    assert "PSC1 cannot be reached" in refused("move", subject="enterprise", server="PSC1")
    lost = refused("take-over", server="PSC1")
    assert "changes that only PSC1 has, also acknowledged ones, are lost" in lost
    words = ["directory", "replication", "take-over", "PSC1", "--accept-loss"]
    assert cli.main([*words, "--url", directory.site.url]) != 0
    assert "PSC1 has no role that this server can take over" in capsys.readouterr().err
    assert "all queue managers and queues of Paris are deleted" in refused(
        "remove-site", site="Paris"
    )
    assert "this is the site of the PEC" in refused("remove-site", site="Berlin", dry_run=True)
    assert directory.http.get("/directory-replication").json()["role"] == "pec"


def test_a_scrape_has_the_numbers_of_each_partition(directory: Directory) -> None:
    text = httpx.get(f"{directory.site.url}/metrics").text
    series = {
        (sample.name.removeprefix(PREFIX), *sample.labels.values()): sample.value
        for family in parse(text)
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    }
    status = directory.http.get("/directory-replication").json()
    for each in status["partitions"]:
        assert series["_last_number", each["name"]] == each["last"]
        assert series["_lag_changes", each["name"]] == each["lag"]
        assert series["_pending_changes", each["name"]] == 0
        assert series["_full_sync", each["name"]] == 0
    assert series["_lag_changes", "Paris"] == 7
    assert series["_neighbour_changes", "PSC1"] >= 0
    assert series[("_waiting_writes",)] == 0
    assert series[("_decided_total",)] == status["counters"]["engine"]["decided"] > 0
    assert series[("_sync_requests_total",)] > 0
    assert series[("_sent_total",)] > 0


class Sheet:
    """Where samples go, without Prometheus."""

    def __init__(self) -> None:
        self.samples: dict[tuple[str, ...], float] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        key = (name.removeprefix(PREFIX), *labels)
        assert key not in self.samples, "Prometheus refuses a series that is there twice"
        self.samples[key] = value


def partition(number: int, name: str, **more: object) -> dict[str, object]:
    known = {"id": f"id {number}", "name": name, "last": number, "lag": 0, "pending": 0}
    return known | {"state": "NORMAL"} | more


def test_every_series_is_there_once_and_drops_have_their_reason() -> None:
    partitions = [partition(1, "Rome"), partition(2, "Rome", state="SYNC0", pending=3)]
    partitions += [partition(number, f"site {number}") for number in range(3, 2_000)]
    neighbours = [{"machine": "PSC1", "waiting_changes": count} for count in (2, 3)]
    engine = {"applied": 5, "sync0": 1, "purged": 9, "dropped.not_its_authority": 4}
    carrier = {"sent": 3, "malformed": 2, "SyncReplyMessage": 8}
    sheet = Sheet()
    status = {
        "partitions": partitions,
        "neighbours": neighbours,
        "waiting_writes": 6,
        "doubles": [{}],
    }
    add_replication(sheet, status | {"counters": {"engine": engine, "carrier": carrier}})
    samples = sheet.samples
    assert samples["_full_sync", "Rome"] == 0
    assert samples["_full_sync", "id 2"] == 1
    assert samples["_pending_changes", "id 2"] == 3
    assert sum(key[0] == "_last_number" for key in samples) == PARTITIONS_MAX
    assert samples["_neighbour_changes", "PSC1"] == 5
    assert samples[("_waiting_writes",)] == 6
    assert samples[("_doubles",)] == 1
    assert samples[("_applied_total",)] == 5
    assert samples[("_full_syncs_total",)] == 1
    assert samples[("_purged_total",)] == 9
    drops = {key[1]: count for key, count in samples.items() if key[0] == "_dropped_total"}
    assert drops == {"not its authority": 4, "malformed": 2}


def test_a_change_that_is_missing_is_explained(
    directory: Directory, capsys: pytest.CaptureFixture[str]
) -> None:
    # when somebody asks for an object that nobody here has heard of
    found = why(directory, str(PSC1))
    assert codes(found)[:1] == ["behind"]
    assert "has heard of 7; PSC1 was asked" in found["summary"]
    assert found["kind"] == "directory"
    # and in the shell
    data = str(directory.site.configuration.manager.data)
    words = ["directory", "replication", "why", "Paris", "--data", data]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "this server decides about it" in shown
    assert "enterprise: this server decides, last change" in shown
    assert cli.main([*words, "--json"]) == 0
    assert '"decided-here"' in capsys.readouterr().out


def test_a_deletion_is_known_by_the_guid(directory: Directory) -> None:
    made = directory.create("queue", path_name=r"PEC0\short-lived")
    assert codes(why(directory, made))[-1:] == ["decided-here"]
    assert codes(why(directory, r"pec0\Short-Lived"))[-1:] == ["decided-here"]
    assert directory.http.delete(f"/directory/queue/{made}").status_code == 204
    found = why(directory, made)
    assert "deleted" in codes(found)
    assert f"The queue {made} was deleted with change" in found["summary"]
    # by its name nobody knows it any more, but where it would be is known
    unknown = why(directory, r"PEC0\short-lived")
    assert codes(unknown) == ["never-made"]
    partitions = [fact["value"] for fact in unknown["facts"] if fact["label"] == "partition"]
    assert len(partitions) == 1
    assert partitions[0].startswith("Berlin: this server decides")
