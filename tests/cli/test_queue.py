"""`falconmq queue`: create, list, show, set, delete, purge, move."""

from __future__ import annotations

import json

import pytest

from falconmq import Message
from falconmq.cli import queue as queue_commands
from falconmq.cli import queue_messages
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
    done = falconmq("queue", "create", ".private$orders")  # what a shell leaves without quotes
    assert done.code == 1
    first, shown, mark, hint = done.err.splitlines()[:4]
    assert first.endswith("(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME 0xC00E0014)")
    assert (shown, mark) == ("  .private$orders", "                 ^")
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


LATER = rf"{ORDERS};later"


def labels(service: ControlledManager, name: str) -> list[str]:
    return [message.label for message in service.blocking.queue(name)]


def given_messages(service: ControlledManager, *names: str) -> None:
    queue = service.blocking.create_queue(ORDERS)
    for name in names:
        queue.send(Message("x", label=name))


def test_a_queue_is_shown_with_its_properties(
    falconmq: InProcess, service: ControlledManager
) -> None:
    service.blocking.create_queue(ORDERS, label="web shop", journaling=True, quota_kilobytes=7)
    lines = falconmq("queue", "show", ORDERS).out.splitlines()
    shown = dict(line.split("  ", 1) for line in lines if line)
    assert shown["queue"].strip() == ORDERS
    assert shown["quota"].strip() == "7 KiB"
    assert shown["journal"].strip() == "of every received message, 0 messages"
    assert json.loads(falconmq("queue", "show", ORDERS, "--json").out)["label"] == "web shop"


def test_a_misspelt_queue_is_answered_with_the_nearest(
    falconmq: InProcess, service: ControlledManager
) -> None:
    service.blocking.create_queue(ORDERS)
    done = falconmq("queue", "show", r".\private$\ordres")
    assert done.code == 1
    assert f"did you mean {ORDERS}?" in done.err


def test_set_changes_what_is_given_and_nothing_else(
    falconmq: InProcess, service: ControlledManager
) -> None:
    queue = service.blocking.create_queue(ORDERS, label="old", quota_kilobytes=7, journaling=True)
    done = falconmq("queue", "set", ORDERS, "--quota", "9", "--no-journaling")
    assert done.code == 0
    assert (queue.label, queue.quota_kilobytes, queue.journaling) == ("old", 9, False)
    falconmq("queue", "set", ORDERS, "--quota", "unlimited", "--label", "", "--json")
    shown = json.loads(falconmq("queue", "show", ORDERS, "--json").out)
    assert (shown["quota_kilobytes"], shown["label"]) == (None, "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "there is nothing to change"),
        (["--quota", "much"], "--quota much: no size"),
        (["--journal-quota", "4294967296"], "no size"),
    ],
)
def test_set_refuses_what_it_cannot_do(
    falconmq: InProcess, service: ControlledManager, options: list[str], said: str
) -> None:
    service.blocking.create_queue(ORDERS)
    done = falconmq("queue", "set", ORDERS, *options)
    assert done.code == 2
    assert said in done.err


def test_the_list_is_read_in_pages_and_filtered(
    falconmq: InProcess, service: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_commands, "PAGE", 2)
    names = [rf".\private$\q{number}" for number in range(5)]
    for name in [*names, ORDERS]:
        service.blocking.create_queue(name)
    found = json.loads(falconmq("queue", "list", "--json").out)["queues"]
    assert [queue["name"] for queue in found] == sorted([*names, ORDERS])
    found = json.loads(falconmq("queue", "list", "--json", "--contains", "order").out)["queues"]
    assert [queue["name"] for queue in found] == [ORDERS]
    assert "no queue has 'zebra'" in falconmq("queue", "list", "--contains", "zebra").err


def test_messages_are_moved_to_a_subqueue_and_back(
    falconmq: InProcess, service: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_messages, "PAGE", 2)
    given_messages(service, "a", "b", "c", "d", "e")
    done = falconmq("queue", "move", ORDERS, "--to", LATER, "--all")
    assert (done.code, done.out, done.err) == (0, "moved 5 messages\n", "")
    assert labels(service, ORDERS) == []
    done = falconmq("queue", "move", LATER, "--to", ORDERS, "--label", "c", "--json")
    assert json.loads(done.out) == {"moved": 1}
    assert labels(service, ORDERS) == ["c"]
    assert labels(service, LATER) == ["a", "b", "d", "e"]


def test_single_messages_are_moved_by_lookup_id_or_priority(
    falconmq: InProcess, service: ControlledManager
) -> None:
    given_messages(service, "a", "b")
    service.blocking.queue(ORDERS).send(Message("x", label="urgent", priority=7))
    id = next(m.lookup_id for m in service.blocking.queue(ORDERS) if m.label == "b")
    assert falconmq("queue", "move", ORDERS, "--to", LATER, "--lookup-id", str(id)).code == 0
    assert labels(service, LATER) == ["b"]
    assert falconmq("queue", "move", ORDERS, "--to", LATER, "--priority", "7").code == 0
    assert labels(service, ORDERS) == ["a"]


def test_move_wants_to_know_which_messages(falconmq: InProcess, service: ControlledManager) -> None:
    given_messages(service, "a")
    assert falconmq("queue", "move", ORDERS, "--to", LATER).code == 2
    both = falconmq("queue", "move", ORDERS, "--to", LATER, "--all", "--lookup-id", "1")
    assert both.code == 2
    none = falconmq("queue", "move", ORDERS, "--to", LATER, "--label", "zebra")
    assert none.code == 1
    assert "no message" in none.err
    assert labels(service, ORDERS) == ["a"]


def test_messages_are_moved_to_another_queue(
    falconmq: InProcess, service: ControlledManager
) -> None:
    given_messages(service, "a", "b")
    service.blocking.create_queue(r".\private$\ledger")
    id = next(iter(service.blocking.queue(ORDERS))).id
    assert falconmq("queue", "move", ORDERS, "--to", r".\private$\ledger", "--all").code == 0
    assert labels(service, ORDERS) == []
    assert labels(service, r".\private$\ledger") == ["a", "b"]
    assert next(iter(service.blocking.queue(r".\private$\ledger"))).id == id
