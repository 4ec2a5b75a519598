"""Requests that come twice are done once; requests for another run are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from falconmq import Message
from falconmq.client.packets import to_packets
from falconmq.service.requests import idempotency
from falconmq.service.requests.idempotency import Answers
from tests.embedded.helpers import Background, GatedStore, threaded_engine, wait_until
from tests.service.asking import LEDGER, ORDERS, PACKETS, Answer, Api, queue_path
from tests.service.control import ControlledManager
from tests.service.test_api_transactions import BrokenStore

SEND = queue_path(ORDERS, "/messages")
HELLO = {"messages": [{"text": "hello"}]}


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled


@pytest.fixture
def api(controlled: ControlledManager) -> Api:
    return Api(controlled.path)


def send(api: Api, key: str, body: object = HELLO, path: str = SEND) -> Answer:
    return api.ask("POST", path, body, {"Idempotency-Key": key})


def packets(controlled: ControlledManager, *bodies: str, queue: str = ORDERS) -> bytes:
    name = controlled.blocking.queue(queue).opened.format_name
    messages = [Message(body) for body in bodies]
    return to_packets(messages, name, in_transaction=queue == LEDGER)  # type: ignore[arg-type]  # one queue


def count(controlled: ControlledManager, queue: str = ORDERS) -> int:
    return controlled.blocking.queue(queue).count


def test_the_same_request_is_done_once_and_answered_twice(
    controlled: ControlledManager, api: Api
) -> None:
    first, second = send(api, "order 17"), send(api, "order 17")
    assert first.status == second.status == 201
    assert first.json == second.json
    assert count(controlled) == 1
    assert send(api, "order 18").json != first.json
    assert count(controlled) == 2


def test_packets_are_sent_once(controlled: ControlledManager, api: Api) -> None:
    body = packets(controlled, "a", "b")
    headers = {"Content-Type": PACKETS, "Idempotency-Key": "x"}
    path = queue_path(ORDERS, "/packets")
    answers = [api.ask("POST", path, body, headers) for _ in range(3)]
    assert {answer.content for answer in answers} == {answers[0].content}
    assert answers[0].status == 201
    assert count(controlled) == 2
    usual = api.ask("POST", path + "?transaction=0", body, headers)  # not through the shortcut
    assert usual.status == 422
    other = api.ask("POST", path, packets(controlled, "c"), headers)
    assert other.status == 422
    assert count(controlled) == 2


def test_a_request_in_a_transaction_is_done_once(controlled: ControlledManager, api: Api) -> None:
    id = api.post("/transactions", {})["id"]
    body = packets(controlled, "a", queue=LEDGER)
    headers = {"Content-Type": PACKETS, "Idempotency-Key": "x"}
    path = queue_path(LEDGER, f"/packets?transaction={id}")
    assert [api.ask("POST", path, body, headers).status for _ in range(2)] == [201, 201]
    in_json = {**HELLO, "transaction": id}
    for _ in range(2):
        assert send(api, "y", in_json, queue_path(LEDGER, "/messages")).status == 201
    assert api.get(f"/transactions/{id}")["operations"] == 2


def test_a_key_goes_with_one_request(controlled: ControlledManager, api: Api) -> None:
    assert send(api, "x").status == 201
    for body, path in (
        ({"messages": [{"text": "other"}]}, SEND),
        (HELLO, queue_path(LEDGER, "/messages")),
        ({**HELLO, "transaction": False}, SEND),
    ):
        refused = send(api, "x", body, path)
        assert refused.status == 422
        assert "used for another request" in refused.json["detail"]
    assert count(controlled) + count(controlled, LEDGER) == 1


def test_a_key_has_its_limits(controlled: ControlledManager, api: Api) -> None:
    assert send(api, "x" * 200).status == 201
    assert send(api, "x" * 201).status == 422
    headers = {"Content-Type": PACKETS, "Idempotency-Key": "x" * 201}
    body = packets(controlled, "a")
    assert api.ask("POST", queue_path(ORDERS, "/packets"), body, headers).status == 422
    assert count(controlled) == 1


def test_who_comes_while_the_first_is_at_work_gets_its_answer(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        api = Api(controlled.path)
        store.gate.clear()
        asking = [Background(lambda: send(api, "x")) for _ in range(3)]
        wait_until(lambda: count(controlled) == 1)
        assert not any(each.is_done for each in asking)
        store.gate.set()
        answers = [each.result() for each in asking]
        assert {answer.content for answer in answers} == {answers[0].content}
        assert answers[0].status == 201
        assert count(controlled) == 1


def test_what_was_refused_may_be_tried_again(tmp_path: Path) -> None:
    store = BrokenStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.queue(ORDERS).send(Message("first"))
        api = Api(controlled.path)
        store.is_broken = True
        assert send(api, "x").status == 507
        store.is_broken = False
        assert send(api, "x").status == 201
        assert send(api, "x").status == 201
        assert count(controlled) == 2


def test_a_request_that_was_done_in_part_is_not_done_again(
    controlled: ControlledManager, api: Api
) -> None:
    controlled.blocking.queue(ORDERS).update(quota_kilobytes=1)
    many = {"messages": [{"text": "x" * 200}] * 3}
    refused = send(api, "x", many)
    assert (refused.status, refused.json["sent"], refused.json["family"]) == (
        507,
        1,
        "ResourceError",
    )
    assert count(controlled) == 1
    controlled.blocking.queue(ORDERS).update(quota_kilobytes=1000)
    assert send(api, "x", many).json == refused.json
    assert count(controlled) == 1
    controlled.blocking.queue(LEDGER).update(quota_kilobytes=1)
    refused = send(api, "y", many, queue_path(LEDGER, "/messages"))
    assert (refused.status, "sent" in refused.json) == (507, False)
    controlled.blocking.queue(LEDGER).update(quota_kilobytes=1000)
    assert send(api, "y", many, queue_path(LEDGER, "/messages")).status == 201


def test_old_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        answers, done = Answers(), list[str]()

        async def once(key: str) -> dict[str, Any]:
            async def work() -> dict[str, Any]:
                done.append(key)
                return {"ids": ["x" * 100]}

            return await answers.once(key, (), work)

        monkeypatch.setattr(idempotency, "KEYS", 2)
        for key in ("a", "b", "a", "c", "b", "a"):
            await once(key)
            await asyncio.sleep(0)
        assert done == ["a", "b", "c", "a"]
        assert len(answers) == 2
        monkeypatch.setattr(idempotency, "REMEMBERED_BYTES", 150)
        await once("d")
        await asyncio.sleep(0)
        assert len(answers) == 1

    asyncio.run(main())


def test_callers_do_not_see_the_answers_of_others(controlled: ControlledManager, api: Api) -> None:
    assert send(api, "x").status == 201
    assert list(controlled.control.answers._known) == ["owner\0x"]


# Runs


def test_a_request_for_another_run_is_refused(controlled: ControlledManager, api: Api) -> None:
    run = api.get("/manager")["run_id"]
    path = queue_path(ORDERS, "/packets")
    for name, status in ((run, 201), (run.upper(), 201), (str(uuid4()), 412), ("x", 412)):
        header = {"X-FalconMQ-Run": name}
        assert api.ask("POST", SEND, HELLO, header).status == status
        body = packets(controlled, "a")
        sent = api.ask("POST", path, body, {"Content-Type": PACKETS, **header})
        assert sent.status == status
    assert count(controlled) == 4
    refused = api.ask("GET", "/queues", None, {"X-FalconMQ-Run": "x"})
    assert refused.json["error"] == "MQ_ERROR_STALE_HANDLE"
    assert run in refused.json["detail"]
    assert "restarted" in refused.json["hint"]
