"""A queue manager that is in two sites: operators see it, and say where it is no more."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from falconmq.cli import app as cli
from tests.service.directory.directory_server import (
    PARIS,
    given_directory_server,
    given_double,
    replication_of,
)
from tests.service.directory.enterprise import Directory


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    with given_directory_server(tmp_path_factory.mktemp("server")) as made:
        yield made


def sites_of(directory: Directory, name: str) -> list[str]:
    return list(directory.find("queue-manager", name)["site_identifiers"])


def refused(directory: Directory, **given: object) -> str:
    answer = directory.http.post("/directory-replication/remove-claim", json=given)
    assert answer.status_code >= 400
    return str(answer.json())


def run(directory: Directory, *words: str) -> int:
    return cli.main(["directory", "replication", *words, "--url", directory.site.url])


def test_two_sites_have_it_until_somebody_says_which_one_is_right(
    directory: Directory, capsys: pytest.CaptureFixture[str]
) -> None:
    berlin = directory.find("site", "Berlin")["identifier"]
    assert directory.http.get("/directory-replication").json()["doubles"] == []
    assert run(directory, "status") == 0
    assert "TWO SITES" not in capsys.readouterr().out
    # given one that is shown as Berlin has it, and one as Paris has it
    store, shop = (
        given_double(directory, "STORE7", is_shown=True),
        given_double(directory, "SHOP2", is_shown=False),
    )
    assert (sites_of(directory, "STORE7"), sites_of(directory, "SHOP2")) == (
        [berlin],
        [str(PARIS)],
    )
    # then status, metrics, page and explanation say so
    found = directory.http.get("/directory-replication").json()["doubles"]
    assert sorted(found, key=lambda each: str(each["name"])) == [
        {
            "kind": "queue-manager",
            "name": "SHOP2",
            "id": shop,
            "shown": "Paris",
            "others": ["Berlin"],
        },
        {
            "kind": "queue-manager",
            "name": "STORE7",
            "id": store,
            "shown": "Berlin",
            "others": ["Paris"],
        },
    ]
    assert run(directory, "status") == 0
    shown = capsys.readouterr()
    assert "IN TWO SITES" in shown.out
    assert "SHOP2" in shown.out
    assert "falconmq directory replication remove-claim NAME SITE" in shown.err
    metrics = httpx.get(f"{directory.site.url}/metrics").text
    assert "\nfalconmq_directory_replication_doubles 2" in metrics
    assert run(directory, "why", "STORE7") == 0
    why = capsys.readouterr().out
    assert "It is in Paris too; shown is the one that was made last" in why.replace("\n", " ")
    assert "remove-claim 'STORE7' SITE" in why
    # and what makes no sense is refused
    assert "PEC0 is not in two sites" in refused(directory, object="PEC0", site="Berlin")
    assert "STORE7 is not in Rome" in refused(directory, object="STORE7", site="Rome")
    assert "it is in Berlin, Paris" in refused(directory, object="STORE7", site="Rome")
    # when somebody only looks, nothing happens
    assert run(directory, "remove-claim", "shop2", "paris", "--dry-run") == 0
    assert capsys.readouterr().out == "PSC1 would delete SHOP2 in Paris; Berlin keeps it\n"
    assert len(directory.http.get("/directory-replication").json()["doubles"]) == 2
    # when Berlin lets go of the one that is not shown from there
    assert run(directory, "remove-claim", "shop2", "berlin") == 0
    assert capsys.readouterr().out == "SHOP2 is no more in Berlin; it is in Paris\n"
    assert sites_of(directory, "SHOP2") == [str(PARIS)]
    # and of the one that is, by its GUID
    assert run(directory, "remove-claim", store, "Berlin", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rest"] == ["Paris"]
    assert sites_of(directory, "STORE7") == [str(PARIS)]
    # then each is in one site, and the deletions are told as such
    assert directory.http.get("/directory-replication").json()["doubles"] == []
    prints = directory.http.get("/directory-replication/fingerprints").json()["fingerprints"]
    for guid in (store, shop):
        kinds = {key.split("/")[0]: key.split("/")[1] for key in prints if guid in key}
        assert kinds == {str(PARIS): "QueueManager", berlin: "deleted"}


def test_a_server_that_does_not_answer_is_named(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_double(directory, "KIOSK3", is_shown=True)
    monkeypatch.setattr(replication_of(directory), "wait", lambda _write: None)
    answer = refused(directory, object="KIOSK3", site="Paris")
    assert "PSC1 did not answer" in answer
    assert "look before you repeat it" in answer


def test_a_site_that_is_given_up_is_looked_at_as_its_own_server_has_it(
    directory: Directory,
) -> None:
    given_double(directory, "BACKUP4", is_shown=True, service=2)  # in Berlin it is no server
    asked = {"site": "Paris", "dry_run": True}
    answer = directory.http.post("/directory-replication/remove-site", json=asked)
    assert answer.status_code == 200, answer.text
    assert "BACKUP4" in answer.json()["servers"]
