"""The directory over HTTP as other queue managers use it: exact rows, many at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from falconmq.directory.guard import default_descriptor
from falconmq.directory.records import exact_row
from falconmq.directory.tables import TABLES
from falconmq.manager.access import Principal
from falconmq.service.access import Role
from falconmq.service.access.principals import Principals
from falconmq.service.configuration.sections import ConfiguredPrincipal
from falconmq.service.requests.audit import Wanted
from falconmq.wire.access_masks import ObjectKind
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import Sid
from tests.embedded.helpers import threaded_engine
from tests.service.ports import HttpManager

ROWS = "/api/v1/directory/rows"
SITE = UUID(int=0xB)
ALICE = Principal("alice", Sid.parse("S-1-5-21-1-2-3-1001"))
BOB = Principal("bob", Sid.parse("S-1-5-21-1-2-3-1002"))
NO_ONE = SecurityDescriptor(dacl=Acl.of([]))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpManager]:
    with HttpManager(tmp_path_factory.mktemp("rows")) as port:
        yield port


@pytest.fixture(scope="module")
def neighbour(served: HttpManager) -> Iterator[httpx.Client]:
    """A queue manager with a token for the directory."""
    with served.client(served.token(Role.DIRECTORY, name="neighbour")) as client:
        begin(client)
        yield client


def begin(client: httpx.Client) -> None:
    made(client, "enterprise", {"name": "example.com"})
    add_machine(client)


def add_machine(client: httpx.Client) -> None:
    made(client, "site", {"name": "Berlin", "identifier": SITE.hex})
    made(client, "queue-manager", {"computer_name": "alpha", "site_identifiers": [SITE.hex]})


def post(client: httpx.Client, kind: str, *rows: dict[str, Any]) -> httpx.Response:
    return client.post(f"{ROWS}/{kind}", json={"rows": rows})


def made(client: httpx.Client, kind: str, *rows: dict[str, Any]) -> list[str]:
    answer = post(client, kind, *rows)
    assert answer.status_code == 201, answer.text
    return [each["identifier"] for each in answer.json()["results"]]


def get(client: httpx.Client, kind: str, **asked: Any) -> Any:
    answer = client.get(f"{ROWS}/{kind}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def filtered(name: str, operator: str, value: object) -> str:
    return json.dumps([name, operator, value])


def newest(served: HttpManager) -> dict[str, Any]:
    entry: dict[str, Any] = served.app.state.control.audit.newest(Wanted(), 1)[0][0]
    return entry


def test_pages_follow_each_other_and_hold_every_object_once(neighbour: httpx.Client) -> None:
    expected = made(neighbour, "queue", *({"path_name": f"alpha\\page{n}"} for n in range(7)))
    found: list[str] = []
    asked: dict[str, Any] = {"limit": 3, "attributes": ["label"]}
    asked["filter"] = filtered("computer_name", "=", "alpha")
    while True:
        page = get(neighbour, "queue", **asked)
        assert len(page["rows"]) <= 3
        assert all(set(row) == {"identifier", "label"} for row in page["rows"])
        found += [row["identifier"] for row in page["rows"]]
        if page["next"] is None:
            break
        assert page["next"] == found[-1]
        asked["after"] = page["next"]
    assert found == sorted(found)
    assert set(expected) <= set(found)
    assert len(found) == len(set(found))


def test_rows_are_exact_and_filters_too(neighbour: httpx.Client) -> None:
    security = exact_row(TABLES["Queue"], {"security": NO_ONE})["security"]
    row = {"path_name": r"alpha\exact", "privacy_level": 2, "base_priority": -7, "label": "ä\n"}
    (identifier,) = made(neighbour, "queue", {**row, "security": security})
    (found,) = get(neighbour, "queue", filter=filtered("identifier", "=", identifier))["rows"]
    assert found == {**found, **row, "security": security, "identifier": identifier}
    assert isinstance(found["create_time"], int)
    both = [filtered("base_priority", "<", 0), filtered("label", "=", "ä\n")]
    assert get(neighbour, "queue", filter=both)["rows"] == [found]
    in_site = filtered("site_identifiers", "=", SITE.hex)
    assert len(get(neighbour, "queue-manager", filter=in_site)["rows"]) == 1


def test_a_row_is_changed_and_deleted_by_its_identifier(
    served: HttpManager, neighbour: httpx.Client
) -> None:
    (identifier,) = made(neighbour, "site", {"name": "Paris"})
    entry = newest(served)
    assert (entry["action"], entry["target"]) == ("directory create", "site")
    place = f"{ROWS}/site/{identifier}"
    assert neighbour.patch(place, json={"row": {"foreign_site": True}}).status_code == 204
    entry = newest(served)
    assert (entry["action"], entry["who"]) == ("directory set", "token neighbour")
    by_name = filtered("name", "=", "paris")
    assert get(neighbour, "site", filter=by_name)["rows"][0]["foreign_site"] is True
    assert neighbour.delete(place).status_code == 204
    assert newest(served)["action"] == "directory delete"
    assert neighbour.delete(place).status_code == 404
    assert get(neighbour, "site", filter=by_name)["rows"] == []


def test_one_of_many_that_is_wrong_does_not_stop_the_others(
    served: HttpManager, neighbour: httpx.Client
) -> None:
    answer = post(neighbour, "site", {"name": "Oslo"}, {"name": "Berlin"}, {"name": "Bern"}).json()
    results = [each["result"] for each in answer["results"]]
    assert results == ["SUCCESS", "OBJECT_ALREADY_EXISTS", "SUCCESS"]
    assert answer["results"][1]["identifier"] is None
    assert "Berlin" in answer["problem"]
    assert newest(served)["details"] == "2 created, 1 refused"
    assert post(neighbour, "site", {"name": "Berlin"}).status_code == 409


def test_places_members_and_servers(neighbour: httpx.Client) -> None:
    (identifier,) = made(neighbour, "queue", {"path_name": r"alpha\placed"})
    by_identifier = filtered("identifier", "=", identifier)
    (row,) = get(neighbour, "queue", filter=by_identifier)["rows"]
    placed = neighbour.get("/api/v1/directory/place", params={"at": row["full_path"].upper()})
    assert placed.json()["type"] == "queue"
    assert placed.json()["row"]["identifier"] == identifier
    (group,) = made(neighbour, "distribution-list", {"name": "all", "members": [row["full_path"]]})
    members = neighbour.get(f"/api/v1/directory/members/{group}").json()["members"]
    assert members == [f"PUBLIC={UUID(identifier)}".upper()]
    assert neighbour.get("/api/v1/directory/servers").json() == {"servers": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/rows/planet", None, 422),
        ("GET", "/rows/site?limit=0", None, 422),
        ("GET", "/rows/site?limit=1001", None, 422),
        ("GET", "/rows/site?after=x", None, 422),
        ("GET", "/rows/site?attributes=colour", None, 400),
        ("GET", "/rows/site?filter=label", None, 400),
        ("GET", "/rows/site?filter=%5B%22name%22%2C%22~%22%2C%22x%22%5D", None, 400),
        ("GET", "/rows/site?filter=%5B%22name%22%2C%22%3D%22%2C7%5D", None, 400),
        ("GET", "/rows/site?filter=" + "%5B" * 9000, None, 400),
        ("POST", "/rows/site", {"rows": []}, 422),
        ("POST", "/rows/site", {"rows": [{"colour": "red"}]}, 400),
        ("POST", "/rows/site", {"rows": [{"name": 7}]}, 400),
        ("POST", "/rows/site", {"rows": [{"name": "x"}] * 1001}, 422),
        ("PATCH", f"/rows/site/{SITE}", {"row": {"security": "zz"}}, 400),
        ("PATCH", f"/rows/site/{UUID(int=1)}", {"row": {"foreign_site": True}}, 404),
        ("GET", "/place?at=CN%3Dnowhere", None, 404),
        ("GET", f"/members/{UUID(int=1)}", None, 404),
    ],
)
def test_what_is_wrong_is_said(
    neighbour: httpx.Client, method: str, path: str, body: Any, code: int
) -> None:
    answer = neighbour.request(method, f"/api/v1/directory{path}", json=body)
    assert answer.status_code == code, answer.text
    assert answer.json()["detail"]


def test_the_role_opens_the_directory_and_nothing_else(
    served: HttpManager, neighbour: httpx.Client
) -> None:
    assert neighbour.get("/api/v1/directory/site").status_code == 200
    kind = {"attributes": {"name": "Lima"}}
    assert neighbour.post("/api/v1/directory/site", json=kind).status_code == 201
    for path in ("queues", "status", "tokens", "keys", "audit", "outgoing", "backup"):
        assert neighbour.get(f"/api/v1/{path}").status_code == 403, path
    with served.client(served.token(Role.READ, name="reader")) as reader:
        assert reader.get(f"{ROWS}/site").status_code == 200
        assert post(reader, "site", {"name": "Quito"}).status_code == 403
        assert reader.patch(f"{ROWS}/site/{SITE}", json={"row": {}}).status_code == 403
        assert reader.delete(f"{ROWS}/site/{SITE}").status_code == 403
    with served.client(served.token(Role.SEND, Role.RECEIVE, name="worker")) as worker:
        for path in ("rows/site", "place?at=x", f"members/{SITE}", "servers"):
            assert worker.get(f"/api/v1/directory/{path}").status_code == 403, path


def test_descriptors_decide_where_permissions_are_obeyed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    engine = threaded_engine(access_control=True)
    engine.core.local.security = NO_ONE  # it is the directory that counts, not the queue manager
    with HttpManager(tmp_path_factory.mktemp("guarded"), engine=engine) as port:
        port.app.state.control.principals = Principals(
            [ConfiguredPrincipal(each, tokens=(each.name,)) for each in (ALICE, BOB)]
        )
        alice = port.client(port.token(Role.DIRECTORY, name="alice"))
        bob = port.client(port.token(Role.DIRECTORY, name="bob"))
        with alice, bob:
            # given an enterprise of Alice: everybody may look, and only she may change
            hers = default_descriptor(ObjectKind.ENTERPRISE, ALICE.user)
            row = exact_row(TABLES["Enterprise"], {"name": "example.com", "security": hers})
            with port.client(port.token(Role.MANAGE, name="boss")) as boss:
                made(boss, "enterprise", row)
            add_machine(alice)
            assert [row["name"] for row in get(bob, "site")["rows"]] == ["Berlin"]
            assert bob.delete(f"{ROWS}/site/{SITE}").status_code == 403
            assert post(bob, "site", {"name": "Rome"}).status_code == 403
            refused = post(bob, "site", {"name": "Rome"}, {"name": "Oslo"}).json()
            assert {each["result"] for each in refused["results"]} == {"GENERIC_ERROR"}
            assert "bob" in refused["problem"]
            # when she lets only herself look at a queue manager
            mine = SecurityDescriptor(dacl=Acl.of([access_allowed(0x20, ALICE.user)]))
            row = exact_row(TABLES["QueueManager"], {"security": mine})
            (machine,) = get(alice, "queue-manager")["rows"]
            place = f"{ROWS}/queue-manager/{machine['identifier']}"
            assert alice.patch(place, json={"row": row}).status_code == 204
            # then it is not there for Bob, wherever he looks
            assert get(bob, "queue-manager", attributes="computer_name")["rows"] == []
            at = {"at": machine["full_path"]}
            assert bob.get("/api/v1/directory/place", params=at).status_code == 404
            shown = get(alice, "queue-manager", attributes="computer_name")["rows"]
            assert [each["computer_name"] for each in shown] == ["alpha"]
            assert alice.get("/api/v1/directory/place", params=at).status_code == 200
