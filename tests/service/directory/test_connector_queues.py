"""A service that is the connector of a foreign site: its queues are listed, read and explained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from falconmq import Message
from tests.cli.commands import InProcess
from tests.service.directory.enterprise import Directory, given_enterprise


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    with given_enterprise(tmp_path) as made:
        yield made


def get(directory: Directory, path: str) -> Any:
    answer = directory.http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_from_the_sender_to_the_connector_program(
    directory: Directory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, berlin, host = (
        directory.find(kind, name)["identifier"]
        for kind, name in (("queue-manager", "SALES01"), ("site", "Berlin"), ("site", "Host"))
    )
    frida = directory.find("queue-manager", "FRIDA")["identifier"]
    plain, transactional = f"CONNECTOR={host}", f"CONNECTOR={host};XACTONLY"
    elsewhere = directory.http.get(f"/queues/{quote(plain, safe='')}")
    assert elsewhere.status_code == 400
    # when this queue manager becomes a member of the foreign site
    changed = directory.http.patch(
        f"/directory/queue-manager/{own}", json={"attributes": {"site_identifiers": [berlin, host]}}
    )
    assert changed.status_code == 200, changed.text
    directory.refresh()
    # then it has connector queues, which are listed and can be looked at by both names
    names = [queue["name"] for queue in get(directory, "/queues")["queues"]]
    paths = [rf".\system$;{kind}${host}" for kind in ("connector", "connector_xact")]
    assert [name for name in names if "connector" in name] == paths
    for name in (plain, paths[0]):
        shown = get(directory, f"/queues/{quote(name, safe='')}")
        assert shown["format_name"].lower() == plain.lower()
    # when somebody sends to the foreign system, then its connector gets the message
    destination = rf"PRIVATE={frida}\5"
    site = directory.site
    site.send(destination, Message("plain"))
    queue = site.manager.queue(plain)
    found = queue.receive(timeout=20)
    assert found is not None
    assert found.text == "plain"
    assert str(found.destination).lower() == rf"PRIVATE={frida}\00000005".lower()
    with site.manager.transaction() as transaction:
        site.manager.queue(destination).send(Message("sure"), transaction)
    with site.manager.transaction() as transaction:
        found = site.manager.queue(transactional).receive(timeout=20, transaction=transaction)
        assert found is not None
        assert found.text == "sure"
    # and the way is explained
    route = directory.route("FRIDA").json()
    assert route["possible"]
    assert "the connector queue of Host on SALES01 takes it" in route["steps"][0]["reason"]
    monkeypatch.setenv("FALCONMQ_URL", site.url)
    falconmq = InProcess(capsys, monkeypatch)
    assert "foreign systems" in falconmq("why", plain).out
    site.send(destination, Message("for a command"))
    received = falconmq("receive", plain, "--timeout", "20", "--json")
    assert (received.code, received.err) == (0, "")
    assert "for a command" in received.out
    assert paths[0] in falconmq("queue", "list").out
    assert "takes it" in falconmq("why", destination).out
