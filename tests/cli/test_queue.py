"""`falconmq queue`: create, list, delete, purge."""

from __future__ import annotations

import json

from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager


def test_a_queue_is_created_with_its_properties(
    falconmq: InProcess, service: ControlledManager
) -> None:
    options = ["--transactional", "--label", "the ledger", "--journaling", "--quota", "100"]
    more = ["--journal-quota", "50", "--privacy-level", "none", "--base-priority", "3"]
    done = falconmq("queue", "create", ORDERS, *options, *more)
    assert (done.code, done.out, done.err) == (0, f"created {ORDERS}\n", "")
    queue = service.blocking.queue(ORDERS)
    assert (queue.is_transactional, queue.label, queue.journaling) == (True, "the ledger", True)
    assert (queue.quota_kilobytes, queue.journal_quota_kilobytes) == (100, 50)
    assert (queue.privacy_level.name, queue.base_priority) == ("NONE", 3)


def test_a_queue_that_is_there_is_refused_with_its_status(
    falconmq: InProcess, service: ControlledManager
) -> None:
    service.blocking.create_queue(ORDERS)
    done = falconmq("queue", "create", ORDERS)
    assert done.code == 1
    assert "(MQ_ERROR_QUEUE_EXISTS 0xC00E0005)" in done.err


def test_a_wrong_name_shows_where_it_is_wrong(
    falconmq: InProcess, service: ControlledManager
) -> None:
    done = falconmq("queue", "create", "orders")
    assert done.code == 1
    first, shown, mark, hint = done.err.splitlines()[:4]
    assert first.endswith("(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME 0xC00E0014)")
    assert (shown, mark) == ("  orders", "        ^")
    assert "single quotes" in hint


def test_an_unknown_privacy_level_is_wrong_usage(
    falconmq: InProcess, service: ControlledManager
) -> None:
    done = falconmq("queue", "create", ORDERS, "--privacy-level", "some")
    assert done.code == 2
    assert "none, optional, body" in done.err


def test_the_list_shows_names_and_messages(falconmq: InProcess, service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS, label="web\x1b[31m shop")
    service.blocking.create_queue(r".\private$\ledger", transactional=True)
    done = falconmq("queue", "list")
    heading, ledger, orders = done.out.splitlines()
    assert heading.split() == ["QUEUE", "MESSAGES", "BYTES", "JOURNAL", "KIND", "LABEL"]
    assert ledger.split() == [r".\private$\ledger", "0", "0", "0", "transactional"]
    assert orders.split() == [ORDERS, "0", "0", "0", r"web\x1b[31m", "shop"]  # no colours of theirs


def test_the_list_as_json(falconmq: InProcess, service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    names = [
        queue["name"] for queue in json.loads(falconmq("queue", "list", "--json").out)["queues"]
    ]
    assert names == [ORDERS]
    everything = json.loads(falconmq("queue", "list", "--system", "--json").out)["queues"]
    assert r".\system$;deadxact" in [queue["name"] for queue in everything]


def test_no_queues_is_said_beside_the_results(
    falconmq: InProcess, service: ControlledManager
) -> None:
    assert falconmq("queue", "list") == (0, "", "no queues yet\n")


def test_a_queue_with_messages_is_deleted_by_force_only(
    falconmq: InProcess, service: ControlledManager
) -> None:
    service.blocking.create_queue(ORDERS)
    falconmq("send", ORDERS, "--body", "x")
    refused = falconmq("queue", "delete", ORDERS)
    assert refused.code == 1
    assert "holds 1 message" in refused.err
    assert "--force" in refused.err
    assert falconmq("queue", "delete", ORDERS, "--force").code == 0
    assert service.blocking.queues() == []


def test_an_empty_queue_is_deleted(falconmq: InProcess, service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    assert falconmq("queue", "delete", ORDERS) == (0, f"deleted {ORDERS}\n", "")
    assert falconmq("queue", "delete", ORDERS).code == 1


def test_purge_says_how_many(falconmq: InProcess, service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    falconmq("send", ORDERS, "--body", "x", "--count", "3")
    assert falconmq("queue", "purge", ORDERS).out == "purged 3 messages\n"
    assert json.loads(falconmq("queue", "purge", ORDERS, "--json").out) == {"purged": 0}


def test_queue_alone_shows_its_help(falconmq: InProcess) -> None:
    done = falconmq("queue")
    assert done.code == 0
    assert "purge" in done.out
