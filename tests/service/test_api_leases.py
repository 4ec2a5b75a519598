"""Leases over HTTP: messages that a caller holds between requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import falconmq
from falconmq import Message
from falconmq.client.packets import from_packets
from falconmq.clock import VirtualClock
from falconmq.manager.states import AccessType
from falconmq.service.daemon import Service
from falconmq.service.requests import endings
from falconmq.store import MemoryStore
from tests.embedded.helpers import (
    Background,
    GatedStore,
    threaded,
    threaded_engine,
    wait_until,
    waiting_reads,
)
from tests.service.asking import LEDGER, ORDERS, PACKETS, Api, clocked_engine, queue_path, texts
from tests.service.control import ControlledManager
from tests.service.services import configured, loopback, run, until
from tests.service.test_api_transactions import BrokenStore

RECEIVE = queue_path(ORDERS, "/receive")


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path, clocked_engine()[0]) as controlled:
        controlled.blocking.create_queue(ORDERS)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def clock_of(controlled: ControlledManager) -> VirtualClock:
    clock = controlled.engine.core.clock
    assert isinstance(clock, VirtualClock)
    return clock


def fill(controlled: ControlledManager, *bodies: str) -> None:
    controlled.blocking.queue(ORDERS).send_many(Message(body) for body in bodies)


def in_orders(controlled: ControlledManager) -> list[str]:
    return [message.text for message in controlled.blocking.queue(ORDERS)]


def lease(api: Api, seconds: float = 60, **wanted: object) -> str:
    id: str = api.post(RECEIVE, {"lease": seconds, **wanted})["lease"]
    assert id is not None
    return id


def end(api: Api, id: str, how: str) -> dict[str, Any]:
    ended: dict[str, Any] = api.post(f"/leases/{id}/{how}")
    return ended


def open_descriptors(controlled: ControlledManager) -> int:
    """Those to receive with; the tests themselves only send and peek."""
    found = controlled.engine.core.descriptors.values()
    return sum(descriptor.access is AccessType.RECEIVE for descriptor in found)


def test_leased_messages_are_hidden_and_deleted_by_the_commit(
    controlled: ControlledManager, api: Api
) -> None:
    controlled.blocking.queue(ORDERS).update(journaling=True)
    fill(controlled, *"abc")
    answer = api.post(RECEIVE, {"lease": 30, "count": 2})
    assert texts(answer) == ["a", "b"]
    assert in_orders(controlled) == ["c"]
    id = answer["lease"]
    shown = api.get(f"/leases/{id}")
    assert shown == {
        "id": id,
        "state": "active",
        "queue": ORDERS,
        "messages": 2,
        "purged": 0,
        "timeout": 30.0,
        "expires_at": "2023-11-14T22:13:50.000+00:00",
        "reason": "",
    }
    assert api.get("/leases") == {"leases": [shown]}
    assert end(api, id, "commit") == {**shown, "state": "committed", "expires_at": None}
    assert open_descriptors(controlled) == 0
    assert api.get("/leases") == {"leases": []}
    assert controlled.blocking.queue(ORDERS).count == 1
    assert [each.text for each in controlled.blocking.queue(ORDERS).journal] == ["a", "b"]


def test_without_messages_there_is_no_lease(controlled: ControlledManager, api: Api) -> None:
    assert api.post(RECEIVE, {"lease": 30}) == {"messages": [], "lease": None}
    assert api.get("/leases") == {"leases": []}
    assert open_descriptors(controlled) == 0


def test_an_abort_gives_the_messages_back_to_their_places(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, *"abc")
    id = lease(api, count=2)
    assert end(api, id, "abort")["state"] == "aborted"
    assert open_descriptors(controlled) == 0
    assert in_orders(controlled) == ["a", "b", "c"]


def test_a_lease_that_nobody_ends_gives_its_messages_back(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "a", "b")
    id = lease(api, 30)
    clock_of(controlled).advance(29)
    assert end(api, id, "extend")["expires_at"] == "2023-11-14T22:14:19.000+00:00"
    clock_of(controlled).advance(29)
    assert api.get(f"/leases/{id}")["state"] == "active"
    clock_of(controlled).advance(1)
    status, error, detail = api.refused("POST", f"/leases/{id}/commit")
    assert (status, error) == (409, "MQ_ERROR_TRANSACTION_SEQUENCE")
    assert detail == f"the lease {id} was aborted: nobody ended it within 30 seconds"
    assert in_orders(controlled) == ["a", "b"]


def test_the_time_of_a_lease_runs_out_although_nobody_asks(tmp_path: Path) -> None:
    with ControlledManager(tmp_path, threaded_engine()) as controlled:
        controlled.blocking.create_queue(ORDERS)
        api = Api(controlled.path)
        fill(controlled, "a")
        lease(api, 1)
        waiting = Background(lambda: texts(api.post(RECEIVE, {"timeout": 600})))
        assert waiting.result() == ["a"]


@pytest.mark.parametrize("how", ["commit", "abort"])
def test_to_end_it_again_is_no_error(controlled: ControlledManager, api: Api, how: str) -> None:
    fill(controlled, "a")
    id = lease(api)
    first = end(api, id, how)
    assert end(api, id, how) == first
    other = {"commit": "abort", "abort": "commit"}[how]
    assert api.refused("POST", f"/leases/{id}/{other}")[0] == 409


def test_a_lease_that_nobody_knows_is_not_found(api: Api) -> None:
    for method, path in (("GET", ""), ("POST", "/commit"), ("POST", "/abort"), ("POST", "/extend")):
        answer = api.ask(method, f"/leases/{uuid4()}{path}")
        assert (answer.status, answer.json["error"]) == (404, "MQ_ERROR_STALE_HANDLE")
        assert "restarted" in answer.json["hint"]


def test_two_who_commit_at_once_get_the_same_answer(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        api = Api(controlled.path)
        fill(controlled, "a")
        id = lease(api)
        store.gate.clear()
        commits = [Background(partial(end, api, id, "commit")) for _ in range(3)]
        wait_until(lambda: controlled.blocking.queue(ORDERS).count == 0)
        assert not any(commit.is_done for commit in commits)
        store.gate.set()
        assert [commit.result()["state"] for commit in commits] == ["committed"] * 3


def test_a_lease_waits_for_a_message(controlled: ControlledManager, api: Api) -> None:
    waiting = Background(lambda: api.post(RECEIVE, {"lease": 30, "timeout": 600, "count": 3}))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    fill(controlled, "a", "b")
    answer = waiting.result()
    assert texts(answer) == ["a", "b"]
    end(api, answer["lease"], "commit")
    assert in_orders(controlled) == []


def test_a_message_is_leased_by_its_lookup_id(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    last = api.post(RECEIVE, {"peek": True, "seek": "last"})["messages"][0]["lookup_id"]
    id = lease(api, lookup_id=last, seek="previous")
    assert in_orders(controlled) == ["a", "c"]
    end(api, id, "commit")
    assert in_orders(controlled) == ["a", "c"]


def test_packets_are_leased(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a", "b")
    answer = api.ask("POST", RECEIVE, {"lease": 30, "count": 5}, {"Accept": PACKETS})
    head = answer.content.split(b"\n", 1)[0]
    assert [message.text for message in from_packets(answer.content)] == ["a", "b"]
    id = api.get("/leases")["leases"][0]["id"]
    assert f'"lease":"{id}"'.encode() in head
    end(api, id, "commit")
    assert controlled.blocking.queue(ORDERS).count == 0
    unleased = api.ask("POST", RECEIVE, {}, {"Accept": PACKETS})
    assert b"lease" not in unleased.content


def test_a_transactional_queue_gives_leases_too(controlled: ControlledManager, api: Api) -> None:
    queue = controlled.blocking.create_queue(LEDGER, transactional=True)
    with controlled.blocking.transaction() as transaction:
        queue.send(Message("a"), transaction)
    answer = api.post(queue_path(LEDGER, "/receive"), {"lease": 30})
    assert queue.count == 1
    end(api, answer["lease"], "commit")
    assert queue.count == 0


def test_a_caller_may_name_its_lease(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, *"abc")
    id = str(uuid4())
    assert lease(api, lease_id=id) == id
    taken = {"lease": 60, "lease_id": id}
    assert api.refused("POST", RECEIVE, taken)[:2] == (409, "MQ_ERROR_TRANSACTION_ENLIST")
    end(api, id, "commit")
    assert api.refused("POST", RECEIVE, taken)[0] == 409
    assert in_orders(controlled) == ["b", "c"]
    assert api.refused("POST", RECEIVE, {"lease_id": id})[0] == 422


def test_two_who_wait_for_a_lease_of_the_same_name_get_one(
    controlled: ControlledManager, api: Api
) -> None:
    id = str(uuid4())
    wanted = {"lease": 60, "lease_id": id, "timeout": 600}
    waiting = [Background(lambda: api.ask("POST", RECEIVE, wanted)) for _ in range(2)]
    wait_until(lambda: waiting_reads(controlled.blocking) == 2)
    fill(controlled, "a", "b")
    assert sorted(each.result().status for each in waiting) == [200, 409]
    assert len(in_orders(controlled)) == 1  # what the other one had locked is back
    end(api, id, "abort")
    assert in_orders(controlled) == ["a", "b"]
    assert open_descriptors(controlled) == 0


# What may happen to the messages meanwhile


def test_a_commit_says_that_the_messages_were_purged(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "a", "b", "c")
    api.post(RECEIVE, {})
    id = lease(api)
    controlled.blocking.queue(ORDERS).purge()
    assert end(api, id, "commit")["purged"] == 1
    assert controlled.blocking.queue(ORDERS).count == 0


@pytest.mark.parametrize("how", ["commit", "abort"])
def test_an_end_after_the_queue_was_deleted(
    controlled: ControlledManager, api: Api, how: str
) -> None:
    fill(controlled, "a")
    id = lease(api)
    controlled.blocking.delete_queue(ORDERS)
    if how == "abort":
        assert end(api, id, "abort")["state"] == "aborted"
        return
    refusal = api.refused("POST", f"/leases/{id}/commit")
    assert refusal == (410, "MQ_ERROR_QUEUE_NOT_AVAILABLE", f"{ORDERS} was deleted")
    assert api.refused("POST", f"/leases/{id}/commit") == refusal
    assert api.get(f"/leases/{id}")["state"] == "aborted"


def test_a_commit_that_cannot_be_written_leaves_the_messages(tmp_path: Path) -> None:
    store = BrokenStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        fill(controlled, "a", "b")
        api = Api(controlled.path)
        id, other = lease(api), lease(api)
        store.is_broken = True
        assert api.refused("POST", f"/leases/{id}/commit")[0] == 507
        store.is_broken = False
        assert api.refused("POST", f"/leases/{id}/commit")[0] == 507
        assert in_orders(controlled) == ["a"]
        assert end(api, other, "commit")["state"] == "committed"
        assert in_orders(controlled) == ["a"]


def test_a_restart_gives_everything_back(tmp_path: Path) -> None:
    store = MemoryStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        fill(controlled, "a", "b")
        lease(Api(controlled.path), count=2)
    store.crash()
    with threaded(store) as manager:
        assert [message.text for message in manager.queue(ORDERS)] == ["a", "b"]


def test_a_lease_lives_on_when_its_caller_hangs_up(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    id = lease(api)  # the connection of that request is closed
    assert in_orders(controlled) == []
    end(api, id, "commit")
    assert controlled.blocking.queue(ORDERS).count == 0


def test_no_more_than_ten_thousand_are_open(
    controlled: ControlledManager, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings, "OPEN_MAX", 1)
    fill(controlled, "a")
    id = lease(api)
    wanted = {"lease": 30, "timeout": 3600}
    assert api.refused("POST", RECEIVE, wanted)[0] == 507  # at once, before it waits
    end(api, id, "abort")
    lease(api)


async def _leave_everything_open(data: Path) -> float:
    """A service with all that can be open, stopped; how many seconds the stop took."""
    service = await Service.start(configured(loopback(), data))
    api = Api(service.configuration.control_socket)
    orders = await service.manager.create_queue(ORDERS)
    ledger = await service.manager.create_queue(LEDGER, transactional=True)
    await orders.send_many([Message("a"), Message("b")])
    async with service.manager.transaction() as own:
        await ledger.send(Message("c"), own)
    await orders.close()

    def use_it() -> tuple[int, str, str]:
        transaction = api.post("/transactions", {})["id"]
        api.post(queue_path(LEDGER, "/receive"), {"transaction": transaction})
        lease(api)
        handle = api.post(queue_path(ORDERS, "/handles"))["id"]
        api.post(queue_path(ORDERS, "/cursors"), {"handle": handle})
        wanted = {"transaction": transaction, "timeout": 600}
        return api.refused("POST", queue_path(LEDGER, "/receive"), wanted)

    using = asyncio.ensure_future(asyncio.to_thread(use_it))
    queues = service.engine.core.queues
    await until(lambda: any(queue.waiting for queue in queues.values()))
    start = time.perf_counter()
    await service.stop()
    seconds = time.perf_counter() - start
    assert (await using)[0] == 503
    return seconds


def test_a_service_stops_quickly_whatever_is_open_and_loses_nothing(tmp_path: Path) -> None:
    assert run(_leave_everything_open(tmp_path)) < 3
    with falconmq.open(tmp_path) as manager:
        assert [message.text for message in manager.queue(ORDERS)] == ["a", "b"]
        assert [message.text for message in manager.queue(LEDGER)] == ["c"]
