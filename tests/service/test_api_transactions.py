"""Transactions over HTTP: begun, used and ended with requests of their own."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi.responses import Response

from falconmq import Message, MqStatus, ResourceError, aio
from falconmq.client.packets import from_packets, to_packets
from falconmq.clock import VirtualClock
from falconmq.service.access import OWNER, set_principal
from falconmq.service.requests import endings
from falconmq.service.requests.enlisting import take
from falconmq.service.schemas import ReceiveRequest
from falconmq.service.web.shortcut import Shortcut
from falconmq.store import MemoryStore, WriteBatch
from tests.embedded.helpers import (
    PATIENCE,
    Background,
    GatedStore,
    threaded,
    threaded_engine,
    wait_until,
    waiting_reads,
)
from tests.service.asking import LEDGER, ORDERS, PACKETS, Api, clocked_engine, queue_path, texts
from tests.service.control import ControlledManager

REMOTE = r"DIRECT=OS:sales02\private$\ledger"
SEND = queue_path(LEDGER, "/messages")
RECEIVE = queue_path(LEDGER, "/receive")
SEQUENCE = "MQ_ERROR_TRANSACTION_SEQUENCE"


class BrokenStore(MemoryStore):
    """A store whose disk fails while `is_broken`."""

    is_broken = False

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        if self.is_broken:
            raise ResourceError("the disk is broken", status=MqStatus.MESSAGE_STORAGE_FAILED)
        super().commit(batches)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def controlled(tmp_path: Path, store: MemoryStore) -> Iterator[ControlledManager]:
    engine, _ = clocked_engine(store)
    with ControlledManager(tmp_path, engine) as controlled:
        controlled.blocking.create_queue(LEDGER, transactional=True)
        controlled.blocking.create_queue(ORDERS)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def clock_of(controlled: ControlledManager) -> VirtualClock:
    clock = controlled.engine.core.clock
    assert isinstance(clock, VirtualClock)
    return clock


def begin(api: Api, **given: object) -> str:
    id: str = api.post("/transactions", given)["id"]
    return id


def send(api: Api, transaction: object, *bodies: str) -> Any:
    messages = [{"text": body} for body in bodies]
    return api.post(SEND, {"messages": messages, "transaction": transaction})


def end(api: Api, id: str, how: str) -> dict[str, Any]:
    ended: dict[str, Any] = api.post(f"/transactions/{id}/{how}")
    return ended


def in_ledger(controlled: ControlledManager) -> list[str]:
    return [message.text for message in controlled.blocking.queue(LEDGER)]


def fill(controlled: ControlledManager, *bodies: str) -> None:
    with controlled.blocking.transaction() as transaction:
        queue = controlled.blocking.queue(LEDGER)
        queue.send_many([Message(body) for body in bodies], transaction)


# Their life


def test_a_transaction_is_begun_shown_listed_and_committed(api: Api) -> None:
    begun = api.post("/transactions", {})
    assert begun == {
        "id": begun["id"],
        "state": "active",
        "timeout": 60.0,
        "expires_at": "2023-11-14T22:14:20.000+00:00",
        "operations": 0,
        "reason": "",
    }
    send(api, begun["id"], "a", "b")
    shown = api.get(f"/transactions/{begun['id']}")
    assert shown == {**begun, "operations": 2}
    assert api.get("/transactions") == {"transactions": [shown]}
    ended = end(api, begun["id"], "commit")
    assert ended == {**shown, "state": "committed", "expires_at": None}
    assert api.get(f"/transactions/{begun['id']}") == ended
    assert api.get("/transactions") == {"transactions": []}


def test_what_was_sent_is_there_when_the_transaction_commits(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api)
    sent = send(api, id, "a", "b")
    assert len(sent["ids"]) == 2
    assert in_ledger(controlled) == []
    end(api, id, "commit")
    assert in_ledger(controlled) == ["a", "b"]


def test_an_abort_takes_back_what_was_sent_and_gives_back_what_was_received(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, "old")
    id = begin(api)
    assert texts(api.post(RECEIVE, {"transaction": id})) == ["old"]
    send(api, id, "new")
    assert in_ledger(controlled) == []
    assert end(api, id, "abort")["state"] == "aborted"
    assert in_ledger(controlled) == ["old"]
    again = api.post(RECEIVE, {"peek": True})["messages"][0]
    assert again["abort_count"] == 1


def test_several_messages_are_received_in_a_transaction(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, *"abcd")
    id = begin(api)
    assert texts(api.post(RECEIVE, {"transaction": id, "count": 3})) == ["a", "b", "c"]
    assert api.get(f"/transactions/{id}")["operations"] == 3
    assert texts(api.post(RECEIVE, {"transaction": id, "count": 3})) == ["d"]
    assert texts(api.post(RECEIVE, {"transaction": id, "count": 3})) == []
    end(api, id, "commit")
    assert controlled.blocking.queue(LEDGER).count == 0


def test_a_message_is_received_in_a_transaction_by_its_lookup_id(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, *"abc")
    id = begin(api)
    second = api.post(RECEIVE, {"peek": True, "count": 2})["messages"][1]["lookup_id"]
    wanted = {"transaction": id, "lookup_id": second, "seek": "next"}
    assert texts(api.post(RECEIVE, wanted)) == ["c"]
    assert texts(api.post(RECEIVE, {"transaction": id, "lookup_id": second})) == ["b"]
    refusal = api.refused("POST", RECEIVE, {"transaction": id, "lookup_id": second})
    assert refusal[:2] == (404, "MQ_ERROR_MESSAGE_NOT_FOUND")
    end(api, id, "commit")
    assert in_ledger(controlled) == ["a"]


def test_packets_are_sent_and_received_in_a_transaction(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api)
    name = controlled.blocking.queue(LEDGER).opened.format_name
    body = to_packets([Message("a"), Message("b")], name, in_transaction=True)  # type: ignore[arg-type]  # one queue
    path = queue_path(LEDGER, f"/packets?transaction={id}")
    answer = api.ask("POST", path, body, {"Content-Type": PACKETS})
    assert (answer.status, answer.json["count"]) == (201, 2)
    assert in_ledger(controlled) == []
    end(api, id, "commit")
    id = begin(api)
    wanted = {"transaction": id, "count": 5}
    received = api.ask("POST", RECEIVE, wanted, {"Accept": PACKETS})
    assert [message.text for message in from_packets(received.content)] == ["a", "b"]
    assert in_ledger(controlled) == []
    end(api, id, "abort")
    assert in_ledger(controlled) == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "is_short"),
    [
        ("", True),
        ("transaction=true", True),
        (f"transaction={UUID(int=7)}", True),
        ("transaction=1", False),
        ("transaction=x", False),
    ],
)
def test_packets_for_a_transaction_take_the_short_way(query: str, is_short: bool) -> None:
    async def nobody(*_: object) -> Response:
        raise AssertionError

    shortcut = Shortcut(nobody, queues="/queues", send=nobody, receive=nobody)  # type: ignore[arg-type]  # not called
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/queues/{LEDGER}/packets",
        "query_string": query.encode(),
        "headers": [],
    }
    set_principal(scope, OWNER)
    assert (shortcut._handler(scope) is not None) == is_short


def test_messages_to_another_computer_wait_for_the_commit(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api)
    wanted = {"messages": [{"text": "a"}], "transaction": id}
    api.post(queue_path(REMOTE, "/messages"), wanted)
    outgoing = next(iter(controlled.engine.core.outgoing.values()))
    assert not len(outgoing.positions.available)
    end(api, id, "commit")
    assert len(outgoing.positions.available) == 1


def test_messages_are_moved_in_a_transaction(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    id = begin(api)
    lookup_id = api.post(RECEIVE, {"peek": True})["messages"][0]["lookup_id"]
    move = {"lookup_ids": [lookup_id], "target": LEDGER + ";later", "transaction": id}
    assert api.post(queue_path(LEDGER, "/messages/move"), move) == {"moved": 1}
    assert api.get(queue_path(LEDGER + ";later", "/messages"))["messages"] == []
    end(api, id, "commit")
    assert texts(api.get(queue_path(LEDGER + ";later", "/messages"))) == ["a"]


def test_a_coordinator_may_name_a_transaction(api: Api) -> None:
    id = str(uuid4())
    assert begin(api, id=id) == id
    refusal = api.refused("POST", "/transactions", {"id": id})
    assert refusal[:2] == (409, "MQ_ERROR_TRANSACTION_ENLIST")
    end(api, id, "commit")
    assert api.refused("POST", "/transactions", {"id": id})[0] == 409  # its end is remembered
    nobody = str(UUID(int=0))
    assert api.refused("POST", "/transactions", {"id": nobody})[0] == 409


def test_no_more_than_ten_thousand_are_open(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "OPEN_MAX", 2)
    first = begin(api)
    begin(api)
    assert api.refused("POST", "/transactions", {})[0] == 507
    end(api, first, "abort")
    begin(api)


# What does not go together


def test_the_kind_of_the_queue_must_fit(controlled: ControlledManager, api: Api) -> None:
    id = begin(api)
    orders = queue_path(ORDERS, "/messages")
    wanted = {"messages": [{"text": "a"}], "transaction": id}
    assert api.refused("POST", orders, wanted)[:2] == (409, "MQ_ERROR_TRANSACTION_USAGE")
    receive = queue_path(ORDERS, "/receive")
    refusal = api.refused("POST", receive, {"transaction": id})
    assert refusal[:2] == (409, "MQ_ERROR_TRANSACTION_USAGE")
    unwanted = {"messages": [{"text": "a"}], "transaction": False}
    assert api.refused("POST", SEND, unwanted)[:2] == (409, "MQ_ERROR_TRANSACTION_USAGE")
    assert api.get(f"/transactions/{id}")["operations"] == 0


@pytest.mark.parametrize("wanted", [{"peek": True}, {"lease": 5}, {"peek": True, "lease": 5}])
def test_a_transaction_takes_messages_and_nothing_else_does(
    api: Api, wanted: dict[str, object]
) -> None:
    id = begin(api)
    assert api.refused("POST", RECEIVE, {"transaction": id, **wanted})[0] == 422


def test_a_refused_request_leaves_nothing_in_the_transaction(
    controlled: ControlledManager, api: Api
) -> None:
    controlled.blocking.queue(LEDGER).update(quota_kilobytes=1)
    id = begin(api)
    send(api, id, "first")
    many = {"messages": [{"text": "x" * 200}] * 5, "transaction": id}
    assert api.refused("POST", SEND, many)[:2] == (507, "MQ_ERROR_INSUFFICIENT_RESOURCES")
    assert api.get(f"/transactions/{id}")["operations"] == 1
    end(api, id, "commit")
    assert in_ledger(controlled) == ["first"]


# Ends


@pytest.mark.parametrize("how", ["commit", "abort"])
def test_to_end_it_again_is_no_error(controlled: ControlledManager, api: Api, how: str) -> None:
    id = begin(api)
    send(api, id, "a")
    first = end(api, id, how)
    assert end(api, id, how) == first
    assert in_ledger(controlled) == (["a"] if how == "commit" else [])


@pytest.mark.parametrize(("how", "other"), [("commit", "abort"), ("abort", "commit")])
def test_to_end_it_otherwise_is_too_late(api: Api, how: str, other: str) -> None:
    id = begin(api)
    state = end(api, id, how)["state"]
    refusal = api.refused("POST", f"/transactions/{id}/{other}")
    assert refusal == (409, SEQUENCE, f"the transaction {id} was {state}")
    for path, body in (
        (SEND, {"messages": [{"text": "a"}], "transaction": id}),
        (RECEIVE, {"transaction": id}),
        (f"/transactions/{id}/prepare", None),
        (f"/transactions/{id}/extend", None),
    ):
        assert api.refused("POST", path, body) == refusal


def test_an_id_that_nobody_knows_is_not_found(api: Api) -> None:
    id = str(uuid4())
    for method, path in (("GET", ""), ("POST", "/commit"), ("POST", "/abort"), ("POST", "/extend")):
        answer = api.ask(method, f"/transactions/{id}{path}")
        assert answer.status == 404
        assert (answer.json["error"], answer.json["family"]) == (SEQUENCE, "TransactionError")
        assert "10000 ends ago, or the service was restarted" in answer.json["hint"]
    wanted = {"messages": [{"text": "a"}], "transaction": id}
    assert api.refused("POST", SEND, wanted)[0] == 404
    assert api.refused("POST", RECEIVE, {"transaction": id})[0] == 404


def test_only_the_last_ends_are_remembered(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "REMEMBERED", 2)
    ids = [begin(api) for _ in range(3)]
    for id in ids:
        end(api, id, "commit")
    assert api.refused("POST", f"/transactions/{ids[0]}/commit")[0] == 404
    assert [end(api, id, "commit")["state"] for id in ids[1:]] == ["committed"] * 2


def test_two_who_commit_at_once_get_the_same_answer_when_it_is_durable(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(LEDGER, transactional=True)
        api = Api(controlled.path)
        id = begin(api)
        send(api, id, "a")
        store.gate.clear()
        commits = [Background(partial(end, api, id, "commit")) for _ in range(3)]
        late = Background(lambda: api.refused("POST", f"/transactions/{id}/abort"))
        wait_until(lambda: api.get(f"/transactions/{id}")["operations"] == 0)
        used = api.refused("POST", SEND, {"messages": [{"text": "b"}], "transaction": id})
        assert used[:2] == (409, SEQUENCE)
        assert not any(commit.is_done for commit in commits)
        store.gate.set()
        assert [commit.result()["state"] for commit in commits] == ["committed"] * 3
        assert late.result()[0] == 409
        assert in_ledger(controlled) == ["a"]


def test_requests_in_one_transaction_may_come_at_once(
    controlled: ControlledManager, api: Api
) -> None:
    fill(controlled, *[f"old {number}" for number in range(20)])
    id = begin(api)
    sending = [Background(partial(send, api, id, f"new {n}")) for n in range(10)]
    taking = [
        Background(lambda: texts(api.post(RECEIVE, {"transaction": id, "count": 2})))
        for _ in range(10)
    ]
    for each in sending:
        each.result()
    taken = [text for each in taking for text in each.result()]
    assert sorted(taken) == sorted(f"old {number}" for number in range(20))
    assert api.get(f"/transactions/{id}")["operations"] == 30
    end(api, id, "commit")
    assert sorted(in_ledger(controlled)) == sorted(f"new {number}" for number in range(10))


@pytest.mark.parametrize("how", ["commit", "abort", "prepare"])
def test_the_end_of_a_transaction_ends_a_read_that_waits_in_it(
    controlled: ControlledManager, api: Api, how: str
) -> None:
    id = begin(api)
    waiting = Background(lambda: api.refused("POST", RECEIVE, {"transaction": id, "timeout": 600}))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    end(api, id, how)
    assert waiting.result()[:2] == (409, SEQUENCE)


def test_a_read_in_a_transaction_waits_for_a_message_and_takes_what_came_with_it(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api)
    wanted = {"transaction": id, "timeout": 600, "count": 5}
    waiting = Background(lambda: texts(api.post(RECEIVE, wanted)))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    fill(controlled, "a", "b")
    assert waiting.result() == ["a", "b"]
    end(api, id, "abort")
    assert in_ledger(controlled) == ["a", "b"]


def test_a_read_in_a_transaction_ends_when_its_time_is_over(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api)
    waiting = Background(lambda: api.post(RECEIVE, {"transaction": id, "timeout": 5}))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    clock_of(controlled).advance(5)
    controlled.engine.run_timers()
    assert waiting.result()["messages"] == []
    assert api.get(f"/transactions/{id}")["state"] == "active"


# Time


def test_a_transaction_that_nobody_ends_is_aborted(controlled: ControlledManager, api: Api) -> None:
    fill(controlled, "a")
    id = begin(api, timeout=30)
    api.post(RECEIVE, {"transaction": id})
    clock_of(controlled).advance(29.9)
    assert api.get(f"/transactions/{id}")["state"] == "active"
    clock_of(controlled).advance(0.1)
    late = {"messages": [{"text": "b"}], "transaction": id}
    assert api.refused("POST", SEND, late)[:2] == (409, SEQUENCE)  # the first who looks
    status, error, detail = api.refused("POST", f"/transactions/{id}/commit")
    assert (status, error) == (409, SEQUENCE)
    assert detail == f"the transaction {id} was aborted: nobody ended it within 30 seconds"
    assert end(api, id, "abort")["reason"] == "nobody ended it within 30 seconds"
    assert in_ledger(controlled) == ["a"]


def test_the_time_of_a_transaction_runs_out_although_nobody_asks(tmp_path: Path) -> None:
    with ControlledManager(tmp_path, threaded_engine()) as controlled:
        controlled.blocking.create_queue(LEDGER, transactional=True)
        fill(controlled, "a")
        api = Api(controlled.path)
        id = begin(api, timeout=1)
        assert texts(api.post(RECEIVE, {"transaction": id})) == ["a"]
        wait_until(lambda: in_ledger(controlled) == ["a"])


def test_a_transaction_is_extended(controlled: ControlledManager, api: Api) -> None:
    id = begin(api, timeout=30)
    clock_of(controlled).advance(29)
    assert end(api, id, "extend")["expires_at"] == "2023-11-14T22:14:19.000+00:00"
    clock_of(controlled).advance(29)
    assert api.post(f"/transactions/{id}/extend", {"timeout": 5})["timeout"] == 5
    clock_of(controlled).advance(5)
    assert api.refused("POST", f"/transactions/{id}/commit")[0] == 409


@pytest.mark.parametrize("timeout", [0, 0.5, 3601, "x"])
def test_a_life_has_its_limits(api: Api, timeout: object) -> None:
    assert api.refused("POST", "/transactions", {"timeout": timeout})[0] == 422


def test_a_read_that_waits_ends_with_the_time_of_its_transaction(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api, timeout=30)
    waiting = Background(lambda: api.refused("POST", RECEIVE, {"transaction": id, "timeout": 600}))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    clock_of(controlled).advance(30)
    api.get("/transactions")
    assert waiting.result()[:2] == (409, SEQUENCE)


# Two phases, restarts, disks that fail


def test_a_prepared_transaction_has_no_time_out_and_takes_nothing_more(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api, timeout=30)
    send(api, id, "a")
    prepared = end(api, id, "prepare")
    assert (prepared["state"], prepared["expires_at"]) == ("prepared", None)
    assert end(api, id, "prepare") == prepared
    clock_of(controlled).advance(10_000)
    assert api.get("/transactions")["transactions"] == [prepared]
    wanted = {"messages": [{"text": "b"}], "transaction": id}
    assert api.refused("POST", SEND, wanted)[:2] == (409, SEQUENCE)
    assert end(api, id, "commit")["state"] == "committed"
    assert in_ledger(controlled) == ["a"]


@pytest.mark.parametrize(("how", "found"), [("commit", ["new"]), ("abort", ["old"])])
def test_a_prepared_transaction_is_ended_after_a_restart(
    tmp_path: Path, how: str, found: list[str]
) -> None:
    store = MemoryStore()
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        controlled.blocking.create_queue(LEDGER, transactional=True)
        fill(controlled, "old")
        api = Api(controlled.path)
        id, other = begin(api), begin(api)
        api.post(RECEIVE, {"transaction": id})
        send(api, id, "new")
        send(api, other, "never")
        end(api, id, "prepare")
    store.crash()
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        api = Api(controlled.path)
        shown = api.get("/transactions")["transactions"]
        assert [(each["id"], each["state"]) for each in shown] == [(id, "prepared")]
        assert api.refused("POST", f"/transactions/{other}/commit")[0] == 404
        assert in_ledger(controlled) == []
        state = end(api, id, how)["state"]
        assert end(api, id, how)["state"] == state
        assert in_ledger(controlled) == found


def test_a_prepared_transaction_is_found_by_its_id_alone_after_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    with threaded(store) as manager:
        queue = manager.create_queue(LEDGER, transactional=True)
        transaction = manager.transaction()
        queue.send(Message("a"), transaction)
        transaction.prepare()
    store.crash()
    with ControlledManager(tmp_path, clocked_engine(store)[0]) as controlled:
        assert end(Api(controlled.path), str(transaction.id), "commit")["state"] == "committed"
        assert in_ledger(controlled) == ["a"]


def test_a_write_that_fails_aborts_the_transactions_that_are_active(tmp_path: Path) -> None:
    store = BrokenStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(LEDGER, transactional=True)
        fill(controlled, "a")
        api = Api(controlled.path)
        bystander, prepared, failing = begin(api), begin(api), begin(api)
        api.post(RECEIVE, {"transaction": bystander})
        send(api, prepared, "b")
        end(api, prepared, "prepare")
        send(api, failing, "c")
        store.is_broken = True
        refusal = api.refused("POST", f"/transactions/{failing}/commit")
        assert refusal[:2] == (507, "MQ_ERROR_MESSAGE_STORAGE_FAILED")
        assert api.refused("POST", f"/transactions/{prepared}/commit")[0] == 507
        store.is_broken = False
        # the one that failed and the one beside it are over, the promise still stands
        assert api.refused("POST", f"/transactions/{failing}/commit")[0] == 507
        assert end(api, failing, "abort")["state"] == "aborted"
        assert api.get(f"/transactions/{bystander}")["state"] == "aborted"
        assert [each["id"] for each in api.get("/transactions")["transactions"]] == [prepared]
        status, error, detail = api.refused("POST", f"/transactions/{bystander}/commit")
        assert (status, error) == (409, SEQUENCE)
        assert "the store could not write" in detail
        assert end(api, prepared, "commit")["state"] == "committed"
        assert in_ledger(controlled) == ["a", "b"]


def test_the_stop_of_the_service_ends_waits_and_transactions(
    controlled: ControlledManager, api: Api, store: MemoryStore
) -> None:
    fill(controlled, "a", "b")
    id = begin(api)
    api.post(RECEIVE, {"transaction": id, "count": 2})
    waiting = Background(lambda: api.refused("POST", RECEIVE, {"transaction": id, "timeout": 600}))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    controlled.stop_server()
    assert waiting.result()[0] == 503
    assert controlled.control.expiring._timer is None
    controlled.blocking.close()
    store.crash()
    with threaded(store) as manager:
        assert [message.text for message in manager.queue(LEDGER)] == ["a", "b"]


# Callers that go away


class Caller:
    """Somebody who asks to receive, and hangs up without a word."""

    def __init__(self, controlled: ControlledManager, **wanted: object) -> None:
        body = json.dumps(wanted).encode()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(controlled.path))
        self._socket.sendall(
            f"POST /api/v1{RECEIVE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )

    def hang_up(self) -> None:
        self._socket.close()


def test_a_caller_that_hangs_up_while_it_waits_has_taken_nothing(
    controlled: ControlledManager, api: Api
) -> None:
    id = begin(api)
    caller = Caller(controlled, transaction=id, timeout=600)
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    caller.hang_up()
    wait_until(lambda: waiting_reads(controlled.blocking) == 0)
    fill(controlled, "a")
    assert in_ledger(controlled) == ["a"]
    assert api.get(f"/transactions/{id}")["operations"] == 0


def test_a_caller_that_hangs_up_leaves_no_wait_with_the_handle_it_used(
    controlled: ControlledManager, api: Api
) -> None:
    id, handle = begin(api), api.post(queue_path(LEDGER, "/handles"))["id"]
    cursor = api.post(queue_path(LEDGER, "/cursors"), {"handle": handle})["id"]
    for wanted in (
        {"transaction": id, "handle": handle},
        {"transaction": id, "cursor": cursor},
        {"peek": True, "cursor": cursor},
        {"peek": True, "handle": handle},
        {"handle": handle},
        {"cursor": cursor},
    ):
        caller = Caller(controlled, **wanted, timeout=600)
        wait_until(lambda: waiting_reads(controlled.blocking) == 1)
        caller.hang_up()
        wait_until(lambda: waiting_reads(controlled.blocking) == 0)
    fill(controlled, "a")
    assert in_ledger(controlled) == ["a"]


def test_a_read_cancelled_in_the_moment_its_message_came_gives_it_back() -> None:
    async def main() -> None:
        engine = threaded_engine()
        manager = aio.QueueManager(engine)
        queue = await manager.create_queue(LEDGER, transactional=True)
        transaction = manager.transaction()
        given = ReceiveRequest.model_validate({"timeout": PATIENCE})
        taking = asyncio.ensure_future(take(engine, queue.opened, transaction, given))
        while not waiting_reads(manager.blocking):
            await asyncio.sleep(0)
        with manager.blocking.transaction() as own:  # the loop stands still meanwhile
            manager.blocking.queue(LEDGER).send(Message("a"), own)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert [message.text async for message in queue] == ["a"]
        await transaction.commit()
        assert [message.text async for message in queue] == ["a"]
        await manager.close()

    asyncio.run(main())


def test_a_caller_that_hangs_up_while_its_messages_are_written_has_taken_nothing(
    tmp_path: Path,
) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        queue = controlled.blocking.create_queue(LEDGER, transactional=True)
        api = Api(controlled.path)
        id = begin(api)
        store.gate.clear()
        sender = Background(lambda: fill(controlled, "a", "b"))
        wait_until(lambda: queue.count == 2)
        caller = Caller(controlled, transaction=id, count=5)
        wait_until(lambda: api.get(f"/transactions/{id}")["operations"] == 2)
        caller.hang_up()
        wait_until(lambda: api.get(f"/transactions/{id}")["operations"] == 0)
        store.gate.set()
        sender.result()
        assert in_ledger(controlled) == ["a", "b"]
