"""Three sites, six queue managers: public queues, routed across sites, while things are killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.enterprise import Enterprise
from tests.e2e.estate import Daemon, wait_until

Json = dict[str, Any]


@pytest.fixture(scope="module")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    with Enterprise(tmp_path_factory.mktemp("enterprise")) as enterprise:
        enterprise.begin()
        yield enterprise


def texts(messages: list[Json]) -> list[str]:
    return [message["text"] for message in messages]


def numbered(first: int, last: int) -> list[Json]:
    return [{"text": str(number)} for number in range(first, last)]


def why(daemon: Daemon, destination: str) -> str:
    """All that `falconmq why` says of a queue, as one text."""
    return str(daemon.client.request("GET", f"/why?subject={quote(destination)}"))


def outgoing(daemon: Daemon, destination: str) -> int:
    return daemon.waiting(destination)


def test_everybody_has_registered_in_its_site(enterprise: Enterprise) -> None:
    for name, daemon in enterprise.named.items():
        found = enterprise.object("queue-manager", name)
        assert found["identifier"] == str(daemon.id)
        assert found["site_identifiers"], name
        assert found["public_encryption_keys"], name


def test_a_public_queue_is_found_and_reached_across_three_sites_while_a_gate_is_down(
    enterprise: Enterprise,
) -> None:
    sender, gate, receiver = (enterprise.named[name] for name in ("n1", "m1", "s2"))
    receiver.client.create_queue(r"s2\orders", transactional=True)
    sender.client.send(r"s2\orders", numbered(0, 50), True)
    assert texts(receiver.take(r".\orders", 50)) == [str(n) for n in range(50)]

    gate.kill()
    sender.client.send(r"s2\orders", numbered(50, 100), True)
    before = enterprise.named["n2"]
    wait_until(lambda: before.waiting() >= 50, "the messages wait at the gate of the north")
    gate.start()
    assert texts(receiver.take(r".\orders", 50)) == [str(n) for n in range(50, 100)]
    assert receiver.count(r".\orders") == 0


def test_the_way_is_explained_hop_by_hop(enterprise: Enterprise) -> None:
    way = enterprise.named["n1"].client.request("GET", "/routes/s2")
    assert way["possible"]
    steps = [step["queue_manager"] for step in way["steps"]]
    assert steps == ["n1", "n2", "m1", "s1", "s2"]


def test_a_directory_that_is_down_stops_nothing_that_was_known(enterprise: Enterprise) -> None:
    sender, receiver = enterprise.named["n1"], enterprise.named["s2"]
    receiver.client.create_queue(r"s2\known")
    sender.client.send(r"s2\known", numbered(0, 1))
    receiver.take(r".\known", 1)

    enterprise.keeper.kill()
    sender.client.send(r"s2\known", numbered(1, 21))
    assert sorted(texts(receiver.take(r".\known", 20)), key=int) == [str(n) for n in range(1, 21)]
    enterprise.keeper.start()


def test_what_waits_for_the_directory_is_explained_and_delivered_when_it_is_back(
    enterprise: Enterprise,
) -> None:
    sender, receiver = enterprise.named["n1"], enterprise.named["s2"]
    receiver.client.create_queue(r"s2\later")
    name = receiver.client.queue(r".\later")["format_name"]
    first = enterprise.named["n2"]
    first.kill()  # so that something waits at the sender
    sender.client.send(name, numbered(0, 5))
    sender.kill()
    enterprise.keeper.kill()
    sender.start()  # without its directory, with what it knew
    first.start()
    status = sender.client.status()["directory"]
    assert status["is_away"]
    assert "directory" in why(sender, name)
    enterprise.keeper.start()
    assert sorted(texts(receiver.take(r".\later", 5))) == [str(n) for n in range(5)]
    wait_until(lambda: not sender.client.status()["directory"]["is_away"], "n1 has its directory")


def test_a_change_in_the_directory_reaches_the_owner_of_the_queue(enterprise: Enterprise) -> None:
    owner = enterprise.named["s2"]
    owner.client.create_queue(r"s2\told")
    path = quote(r"s2\told")
    body = {"attributes": {"label": "from the directory", "journaling": True}}
    enterprise.keeper.client.request("PATCH", f"/directory/queue/{path}", body)
    wait_until(
        lambda: owner.client.queue(r".\told")["label"] == "from the directory",
        f"s2 has heard of the label\n{owner.story()}",
    )
