"""Messages between daemons: every kind arrives, as it was sent, near and far."""

from __future__ import annotations

import base64
from uuid import uuid4

import pytest

from falconmq.client import ServiceError
from falconmq.errors import MqStatus
from falconmq.wire.base_header import PACKET_SIZE_MAX
from tests.cli.commands import run
from tests.e2e.conftest import Company
from tests.e2e.estate import Estate, Json, path, wait_until

KINDS = [
    pytest.param({"recoverable": False}, False, "EXPRESS", id="express"),
    pytest.param({"recoverable": True}, False, "RECOVERABLE", id="recoverable"),
    pytest.param({}, True, "RECOVERABLE", id="transactional"),
]
HEADERS = 1024  # more than the headers of these messages have


def new_name() -> str:
    return f"q{uuid4().hex[:12]}"


@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "over the hub"])
@pytest.mark.parametrize(("properties", "transactional", "delivery"), KINDS)
def test_messages_arrive_complete_and_in_order(
    company: Company, properties: Json, transactional: bool, delivery: str, is_direct: bool
) -> None:
    # given a queue in the warehouse
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name, transactional=transactional)
    destination = warehouse.direct(name) if is_direct else warehouse.private(name)
    # when the shop sends a hundred messages
    sent = [
        {
            "text": f"order {number} äöü",
            "label": f"label {number}",
            "application_tag": number,
            "extension": base64.b64encode(bytes([number])).decode(),
            "correlation_id": rf"{{{uuid4()}}}\{number + 1}",
            **properties,
        }
        for number in range(100)
    ]
    ids = shop.client.send(destination, sent, transactional)
    # then they come with everything that was said, in their order
    came = warehouse.take(name, len(sent))
    assert [message["id"] for message in came] == ids
    for given, message in zip(sent, came, strict=True):
        for key in ("text", "label", "application_tag", "extension"):
            assert message[key] == given[key]
        assert message["correlation_id"].lower() == str(given["correlation_id"]).lower()
        assert message["delivery"] == delivery
        assert message["source_queue_manager"] == str(shop.id)
        assert message["hop_count"] == (0 if is_direct else 1)
        assert (message["transaction"] is not None) is transactional
    # and the shop keeps nothing
    wait_until(lambda: shop.waiting(destination) == 0, "everything is acknowledged")
    assert warehouse.count(name) == 0


@pytest.mark.parametrize("is_direct", [True, False], ids=["direct", "over the hub"])
def test_an_answer_finds_its_way_back(company: Company, is_direct: bool) -> None:
    # given a question that names the queue for answers
    shop, warehouse, asked, answers = company.shop, company.warehouse, new_name(), new_name()
    warehouse.create_queue(asked)
    shop.create_queue(answers)
    back = shop.direct(answers) if is_direct else shop.private(answers)
    question = {"text": "in stock?", "response_queue": back}
    [id] = shop.client.send(warehouse.direct(asked), [question])
    # when somebody answers it
    [message] = warehouse.take(asked, 1)
    answer = {"text": "yes", "correlation_id": message["id"]}
    warehouse.client.send(message["response_queue"], [answer])
    # then the answer is where it was asked for
    [came] = shop.take(answers, 1)
    assert (came["text"], came["correlation_id"]) == ("yes", id)


def test_urgent_messages_overtake_those_that_wait(estate: Estate) -> None:
    # given messages of every priority that wait because nobody is at the other end
    a, b = estate.manager("A"), estate.manager("B")
    b.start().create_queue("orders")
    b.stop()
    a.start()
    given = [3, 0, 7, 5, 5, 1, 6, 2, 4, 0, 7]
    sent = [{"text": f"{n}", "priority": priority} for n, priority in enumerate(given)]
    a.client.send(b.direct("orders"), sent)
    # when the other end comes back
    b.start()
    # then the urgent ones are first, and those of one priority are in their order
    came = b.take("orders", len(sent))
    wanted = sorted(range(len(given)), key=lambda number: -given[number])
    assert [int(message["text"]) for message in came] == wanted


@pytest.mark.parametrize("transactional", [False, True], ids=["recoverable", "transactional"])
def test_bodies_of_four_mebibytes_arrive(company: Company, transactional: bool) -> None:
    # given the largest body that leaves room for the headers
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name, transactional=transactional)
    body = base64.b64encode(b"\x01\xfe" * ((PACKET_SIZE_MAX - HEADERS) // 2)).decode()
    # when three of them are sent over the hub
    for _ in range(3):
        shop.client.send(warehouse.private(name), [{"body": body}], transactional)
    # then they arrive unchanged
    came = warehouse.take(name, 3)
    assert [message["body"] == body for message in came] == [True] * 3


@pytest.mark.parametrize("missing", [0, 64], ids=["the body alone", "with its headers"])
def test_a_body_that_is_too_large_is_refused_where_it_is_sent(
    company: Company, missing: int
) -> None:
    # given a body that no packet can hold
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name)
    body = base64.b64encode(bytes(PACKET_SIZE_MAX - missing)).decode()
    # when it is sent
    with pytest.raises(ServiceError) as caught:
        shop.client.send(warehouse.direct(name), [{"body": body}])
    # then the sender is told what is wrong and what the limit is
    assert caught.value.status is MqStatus.INSUFFICIENT_RESOURCES
    assert "a packet holds 4194304" in str(caught.value)
    assert "send it in parts" in caught.value.hint
    assert shop.waiting(warehouse.direct(name)) == 0


def test_the_commands_send_and_receive_across_computers(company: Company) -> None:
    # given a queue of another computer, made with the command
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    there, here = ("--data", str(warehouse.data)), ("--data", str(shop.data))
    assert run("queue", "create", path(name), *there).code == 0
    # when a person sends to it
    sent = run("send", warehouse.direct(name), "--body", "hello", *here)
    # then a person there receives it
    assert sent.code == 0
    assert run("receive", path(name), "--timeout", "60", *there).out == "hello\n"


def test_a_paused_queue_keeps_its_messages_until_it_is_resumed(company: Company) -> None:
    # given an outgoing queue that was used
    shop, warehouse, name = company.shop, company.warehouse, new_name()
    warehouse.create_queue(name)
    destination = warehouse.direct(name)
    shop.client.send(destination, [{"text": "first"}])
    warehouse.take(name, 1)
    [outgoing] = [q for q in shop.client.outgoing() if q["destination"] == destination]
    # when it is paused
    shop.client.pause(outgoing["number"])
    shop.client.send(destination, [{"text": "second"}])
    other = new_name()
    warehouse.create_queue(other)
    shop.client.send(warehouse.direct(other), [{"text": "not paused"}])
    warehouse.take(other, 1)
    # then its messages stay, though others go
    [outgoing] = [q for q in shop.client.outgoing() if q["destination"] == destination]
    assert (outgoing["state"], outgoing["messages"]) == ("on hold", 1)
    assert warehouse.count(name) == 0
    # until it is resumed
    shop.client.resume(outgoing["number"])
    assert [message["text"] for message in warehouse.take(name, 1)] == ["second"]
