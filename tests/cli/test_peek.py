"""`falconmq peek`: look, and leave everything as it is."""

from __future__ import annotations

import json

import pytest

from falconmq import Message, Queue
from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager


@pytest.fixture
def orders(service: ControlledManager) -> Queue:
    queue = service.blocking.create_queue(ORDERS)
    queue.send_many(Message(str(number), label=f"order {number}") for number in range(5))
    return queue


def test_a_peek_shows_the_first_message_and_leaves_it(falconmq: InProcess, orders: Queue) -> None:
    assert falconmq("peek", ORDERS) == (0, "0\n", "")
    assert falconmq("peek", ORDERS, "--count", "2").out == "0\n1\n"
    assert orders.count == 5


def test_all_shows_everything_page_by_page(
    falconmq: InProcess, orders: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.cli.messages.PAGE", 2)
    assert falconmq("peek", ORDERS, "--all").out.split() == list("01234")
    assert orders.count == 5


def test_json_has_a_line_for_each_message(falconmq: InProcess, orders: Queue) -> None:
    lines = falconmq("peek", ORDERS, "--count", "3", "--json").out.splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["order 0", "order 1", "order 2"]


def test_one_message_by_its_lookup_id(falconmq: InProcess, orders: Queue) -> None:
    lookup_id = list(orders)[3].lookup_id
    assert falconmq("peek", ORDERS, "--lookup-id", str(lookup_id)).out == "3\n"


def test_an_empty_queue_is_exit_code_1(falconmq: InProcess, orders: Queue) -> None:
    orders.purge()
    assert falconmq("peek", ORDERS).code == 1
    assert falconmq("peek", ORDERS, "--all").code == 0


def test_the_journal_can_be_peeked(falconmq: InProcess, orders: Queue) -> None:
    orders.update(journaling=True)
    falconmq("receive", ORDERS)
    assert falconmq("peek", ORDERS + ";journal").out == "0\n"
