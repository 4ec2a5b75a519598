"""`falconmq consumer`."""

from __future__ import annotations

import json

from falconmq import Message
from tests.cli.commands import InProcess
from tests.service.control import ControlledManager

ORDERS = r".\private$\orders"


def given_consumer(service: ControlledManager) -> None:
    """It has done one of three messages, and has its queue for itself."""
    queue = service.blocking.create_queue(ORDERS)
    queue.send_many(Message(body) for body in "abc")
    with service.client() as client:
        wanted = {"queues": [ORDERS], "seconds": 60}
        fence = client.request("POST", "/consumers/archive/claim", wanted)["fence"]
        done = {"fence": fence, "queues": {ORDERS: 2}}
        client.request("POST", "/consumers/archive/acknowledge", done)


def test_consumers_are_listed(falconmq: InProcess, service: ControlledManager) -> None:
    assert falconmq("consumer", "list") == (0, "", "no consumers yet\n")
    given_consumer(service)
    heading, row = falconmq("consumer", "list").out.splitlines()
    assert heading.split()[:4] == ["NAME", "QUEUE", "BEHIND", "NEXT"]
    assert row.split()[:4] == ["archive", ORDERS, "2", "2"]
    (found,) = json.loads(falconmq("consumer", "list", "--json").out)["consumers"]
    assert (found["name"], found["fence"], found["is_live"]) == ("archive", 1, True)


def test_a_consumer_is_forgotten(falconmq: InProcess, service: ControlledManager) -> None:
    given_consumer(service)
    assert falconmq("consumer", "delete", "archive", "--yes") == (0, "deleted archive\n", "")
    again = falconmq("consumer", "delete", "archive")
    assert again.code == 1
    assert "there is no consumer archive" in again.err
    with service.client() as client:
        client.request("POST", "/consumers/a%20b/claim", {"queues": [ORDERS]})
    done = falconmq("consumer", "delete", "a b", "--json")
    assert json.loads(done.out) == {"deleted": "a b"}


def test_a_deleted_queue_leaves_a_consumer_without_queues(
    falconmq: InProcess, service: ControlledManager
) -> None:
    given_consumer(service)
    assert falconmq("queue", "delete", ORDERS, "--force", "--yes").code == 0
    assert falconmq("consumer", "list").out.splitlines()[1].split()[0] == "archive"


def test_why_tells_of_a_consumer(falconmq: InProcess, service: ControlledManager) -> None:
    given_consumer(service)
    told = falconmq("why", ORDERS, "--verbose").out
    assert "archive: 2 messages behind, acknowledged" in told
