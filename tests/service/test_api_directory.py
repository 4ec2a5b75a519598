"""The directory over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from falconmq.directory.texts import WORDS
from falconmq.service.access import Role
from falconmq.service.requests.audit import Wanted
from tests.service.ports import HttpManager


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpManager]:
    with HttpManager(tmp_path_factory.mktemp("directory")) as port:
        yield port


@pytest.fixture(scope="module")
def boss(served: HttpManager) -> Iterator[httpx.Client]:
    with served.client(served.token(Role.MANAGE, name="boss")) as client:
        made = post(client, "enterprise", name="example.com")
        assert made.status_code == 201
        yield client


def post(client: httpx.Client, kind: str, **attributes: Any) -> httpx.Response:
    return client.post(f"/api/v1/directory/{kind}", json={"attributes": attributes})


def at(kind: str, name: str) -> str:
    return f"/api/v1/directory/{kind}/{quote(name, safe='')}"


def test_objects_are_created_found_changed_and_deleted(boss: httpx.Client) -> None:
    site = post(boss, "site", name="Berlin").json()["attributes"]["identifier"]
    machine = post(boss, "queue-manager", computer_name="alpha", site_identifiers=[site])
    assert machine.status_code == 201
    for name in ("a", "b/c"):
        made = post(boss, "queue", path_name=f"alpha\\{name}", label=name, privacy_level="BODY")
        assert made.status_code == 201
    found = boss.get(at("queue", r"ALPHA\b/c")).json()
    assert (found["type"], found["attributes"]["label"]) == ("queue", "b/c")
    assert found["attributes"]["privacy_level"] == "BODY"
    guid = found["attributes"]["identifier"]
    assert boss.get(at("queue", guid)).json() == found
    listed = boss.get("/api/v1/directory/queue", params={"where": ["label=a", "journaling=no"]})
    assert [each["path_name"] for each in listed.json()["objects"]] == [r"alpha\a"]
    paths = [
        boss.get("/api/v1/directory/queue", params={"skip": skip, "limit": 1}).json()["objects"]
        for skip in range(3)
    ]
    assert [len(page) for page in paths] == [1, 1, 0]
    changed = boss.patch(at("queue", guid), json={"attributes": {"label": "new"}})
    assert changed.json()["attributes"]["label"] == "new"
    assert boss.delete(at("queue", guid)).status_code == 204
    assert boss.get(at("queue", guid)).status_code == 404


def test_sites_and_queue_managers_may_be_named_where_their_guids_belong(
    boss: httpx.Client,
) -> None:
    sites = [
        post(boss, "site", name=name).json()["attributes"]["identifier"]
        for name in ("Hamburg", "Rome, Italy", "Oslo")
    ]
    gate = post(boss, "queue-manager", computer_name="gate", site_identifiers="hamburg, OSLO")
    assert gate.json()["attributes"]["site_identifiers"] == [sites[0], sites[2]]
    guid = gate.json()["attributes"]["identifier"]
    ends = {"site1_identifier": "Hamburg", "site2_identifier": "Rome, Italy"}
    link = post(boss, "routing-link", **ends, actual_cost=1, site_gate_identifiers=["GATE"])
    made = link.json()["attributes"]
    assert [made["site1_identifier"], made["site2_identifier"]] == sites[:2]
    assert made["site_gate_identifiers"] == [guid]
    change = {"out_routing_server_identifiers": f"gate,{guid}", "site_identifiers": [sites[1]]}
    changed = boss.patch(at("queue-manager", "gate"), json={"attributes": change})
    assert changed.json()["attributes"]["out_routing_server_identifiers"] == [guid, guid]
    assert changed.json()["attributes"]["site_identifiers"] == [sites[1]]
    cleared = {"attributes": {"site_gate_identifiers": ""}}
    none = boss.patch(at("routing-link", made["identifier"]), json=cleared)
    assert none.json()["attributes"]["site_gate_identifiers"] == []
    for name, value in (("site_identifiers", "Nowhere"), ("in_routing_server_identifiers", "no")):
        wrong = boss.patch(at("queue-manager", "gate"), json={"attributes": {name: value}})
        assert wrong.status_code == 404
        assert value in wrong.text
        assert "falconmq directory list" in wrong.json()["hint"]


@pytest.mark.parametrize(
    ("method", "path", "attributes", "code", "words"),
    [
        ("GET", "/api/v1/directory/planet", None, 422, "queue-manager"),
        ("GET", at("site", "Nowhere"), None, 404, "Nowhere"),
        ("GET", "/api/v1/directory/site?where=colour%3Dred", None, 400, "colour"),
        ("POST", "/api/v1/directory/site", {"colour": "red"}, 400, "colour"),
        ("POST", "/api/v1/directory/site", {"name": 7}, 400, "name"),
        ("POST", "/api/v1/directory/enterprise", {"name": "other.com"}, 409, "already"),
        ("PATCH", at("enterprise", "example.com"), {"name": "other.com"}, 400, "never changes"),
        ("DELETE", at("enterprise", "example.com"), None, 400, "only"),
        ("GET", at("routing-link", "x"), None, 400, "GUID"),
        ("GET", at("site", "x" * 500), None, 400, "long"),
    ],
)
def test_what_is_wrong_is_said(
    boss: httpx.Client,
    method: str,
    path: str,
    attributes: dict[str, Any] | None,
    code: int,
    words: str,
) -> None:
    body = None if attributes is None else {"attributes": attributes}
    answer = boss.request(method, path, json=body)
    assert answer.status_code == code, answer.text
    assert words in answer.text


def test_the_description_names_every_type(boss: httpx.Client) -> None:
    described = boss.get("/api/v1/openapi.json").json()["paths"]["/api/v1/directory/{kind}"]
    (kind,) = [each for each in described["get"]["parameters"] if each["name"] == "kind"]
    assert set(kind["schema"]["enum"]) == set(WORDS)


def test_roles_decide_and_changes_are_written_down(served: HttpManager, boss: httpx.Client) -> None:
    with served.client(served.token(Role.READ, name="reader")) as reader:
        assert reader.get("/api/v1/directory/enterprise").status_code == 200
        assert post(reader, "site", name="Rome").status_code == 403
        assert reader.delete(at("enterprise", "example.com")).status_code == 403
    with served.client(served.token(Role.SEND, name="sender")) as sender:
        assert sender.get("/api/v1/directory/enterprise").status_code == 403
    post(boss, "site", name="Rome")
    entry = served.app.state.control.audit.newest(Wanted(), 1)[0][0]
    assert (entry["action"], entry["target"]) == ("directory create", "site")


def test_a_directory_begins_with_its_enterprise(tmp_path: Path) -> None:
    with HttpManager(tmp_path) as port, port.client(port.token(Role.MANAGE, name="a")) as client:
        assert post(client, "site", name="Berlin").status_code == 404
        post(client, "enterprise", name="example.com")
        post(client, "site", name="Berlin")
        assert len(client.get("/api/v1/directory/site").json()["objects"]) == 1
