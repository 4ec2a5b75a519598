"""Queues over HTTP: pages of many, and changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.helpers import threaded_engine
from tests.service.asking import LEDGER, ORDERS, Api, queue_path
from tests.service.control import ControlledManager
from tests.service.test_api_transactions import BrokenStore


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as controlled:
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def named(number: int) -> str:
    return rf".\private$\Queue{number:02}"


def names(answer: Any) -> list[str]:
    return [queue["name"] for queue in answer["queues"]]


def create(api: Api, name: str, **properties: object) -> Any:
    return api.post("/queues", {"name": name, **properties})


# Lists


def test_queues_are_listed_page_by_page(api: Api) -> None:
    for number in (3, 1, 5, 2, 4):
        create(api, named(number))
    assert names(api.get("/queues")) == [named(number) for number in range(1, 6)]
    first = api.get("/queues?count=2")
    assert (names(first), first["next"]) == ([named(1), named(2)], named(2))
    second = api.get(f"/queues?count=2&after={first['next'].replace(chr(92), '%5C')}")
    assert (names(second), second["next"]) == ([named(3), named(4)], named(4))
    last = api.get("/queues?count=2&after=" + named(4).replace("\\", "%5C"))
    assert (names(last), last["next"]) == ([named(5)], None)
    assert api.get("/queues?count=5")["next"] is None


def test_queues_are_found_by_a_part_of_their_name(api: Api) -> None:
    for name in ("Orders", "ordinary", "ledger"):
        create(api, rf".\private$\{name}")
    found = api.get("/queues?contains=ORD")
    assert names(found) == [r".\private$\Orders", r".\private$\ordinary"]
    assert names(api.get("/queues?contains=ord&count=1")) == [r".\private$\Orders"]
    assert api.get("/queues?contains=ord&count=1")["next"] == r".\private$\Orders"
    assert api.get("/queues?contains=ledger&count=1")["next"] is None
    assert names(api.get("/queues?contains=nothing")) == []


def test_a_page_knows_of_queues_that_came_and_went(controlled: ControlledManager, api: Api) -> None:
    create(api, named(1))
    assert names(api.get("/queues")) == [named(1)]
    create(api, named(2))
    assert names(api.get("/queues")) == [named(1), named(2)]
    controlled.blocking.delete_queue(named(1))
    assert names(api.get("/queues")) == [named(2)]
    controlled.blocking.delete_queue(named(2))
    create(api, named(3))
    assert names(api.get("/queues")) == [named(3)]


def test_a_list_is_right_after_a_write_that_failed(tmp_path: Path) -> None:
    store = BrokenStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        api = Api(controlled.path)
        assert controlled.control.events is not None  # the service has them
        create(api, named(1))
        assert names(api.get("/queues")) == [named(1)]
        store.is_broken = True
        assert api.ask("POST", "/queues", {"name": named(2)}).status == 507
        store.is_broken = False
        assert names(api.get("/queues")) == [named(1)]


def test_system_queues_are_listed_when_asked_for(api: Api) -> None:
    create(api, named(1))
    listed = names(api.get("/queues?system=true"))
    assert listed == [
        named(1),
        r".\system$;deadletter",
        r".\system$;deadxact",
        r".\system$;journal",
    ]
    assert names(api.get("/queues?system=true&contains=dead")) == listed[1:3]


@pytest.mark.parametrize("query", ["?count=0", "?count=10001", "?count=x"])
def test_a_wrong_question_is_refused(api: Api, query: str) -> None:
    assert api.refused("GET", "/queues" + query)[0] == 422


@pytest.mark.slow
def test_a_page_of_thousands_of_queues_is_found(controlled: ControlledManager, api: Api) -> None:
    manager = controlled.blocking
    for number in range(3_000):
        manager.create_queue(rf".\private$\q{number:05}")
    api.get("/queues?count=1")
    page = api.get("/queues?count=100&after=.%5Cprivate%24%5Cq02899&contains=q")
    assert names(page)[0] == r".\private$\q02900"
    assert page["next"] is None


def test_to_look_at_a_queue_opens_nothing(controlled: ControlledManager, api: Api) -> None:
    create(api, ORDERS)
    before = dict(controlled.engine.core.descriptors)
    api.get(queue_path(ORDERS))
    api.get(queue_path(ORDERS, "/messages"))
    api.get("/queues")
    remote = queue_path(r"DIRECT=OS:sales02\private$\orders")
    for method in ("GET", "DELETE", "PATCH"):
        refusal = api.refused(method, remote, {})
        assert refusal[1] == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert controlled.engine.core.descriptors == before
    assert not controlled.engine.core.outgoing


# Changes


def test_properties_are_changed(api: Api) -> None:
    create(api, ORDERS, label="old", quota_kilobytes=10, journaling=True)
    changed = api.ask("PATCH", queue_path(ORDERS), {"label": "new", "base_priority": -3})
    assert changed.status == 200
    assert changed.json == api.get(queue_path(ORDERS))
    queue = changed.json
    assert (queue["label"], queue["base_priority"]) == ("new", -3)
    assert (queue["quota_kilobytes"], queue["journaling"]) == (10, True)  # they stay
    changes = {
        "quota_kilobytes": None,
        "journal_quota_kilobytes": 7,
        "journaling": False,
        "authentication": True,
        "privacy_level": "BODY",
        "label": "",
    }
    queue = api.ask("PATCH", queue_path(ORDERS), changes).json
    assert {name: queue[name] for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"transactional": True}, 422),
        ({"quota_kilobytes": -1}, 422),
        ({"label": "x" * 125}, 400),
        ({"privacy_level": "SECRET"}, 422),
        ({"privacy_level": None}, 422),
    ],
)
def test_what_cannot_be_changed_is_refused(api: Api, changes: dict[str, object], code: int) -> None:
    before = create(api, ORDERS)
    assert api.refused("PATCH", queue_path(ORDERS), {**changes, "journaling": True})[0] == code
    assert api.get(queue_path(ORDERS)) == before


def test_no_change_is_no_change(api: Api) -> None:
    before = create(api, LEDGER, transactional=True)
    assert api.ask("PATCH", queue_path(LEDGER), {}).json == before
    assert api.refused("PATCH", queue_path(r".\private$\nothing"), {})[0] == 404
