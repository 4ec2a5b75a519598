"""Commands for public queues, and for queues of other computers that the directory knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.directory.cached import CachedDirectory
from falconmq.names import PublicFormatName
from tests.cli.commands import InProcess
from tests.embedded.members import FAR, Enterprise, member_engine
from tests.service.control import ControlledManager

ELSEWHERE = r"sales02\far"


@pytest.fixture
def enterprise() -> Enterprise:
    return Enterprise()


@pytest.fixture
def service(
    tmp_path: Path, enterprise: Enterprise, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ControlledManager]:
    """A queue manager in a directory, which commands find without being told where."""
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path))
    engine = member_engine(enterprise, is_cached=True)
    directory = engine.core.directory
    assert isinstance(directory, CachedDirectory)
    with ControlledManager(tmp_path, engine) as controlled:
        yield controlled
    directory.close()


def test_a_public_queue_from_its_creation_to_its_end(
    falconmq: InProcess, service: ControlledManager, enterprise: Enterprise
) -> None:
    made = falconmq("queue", "create", "orders", "--transactional", "--label", "Orders")
    assert (made.code, made.out) == (0, "created .\\orders\n")
    falconmq("queue", "create", r".\private$\orders")
    listed = falconmq("queue", "list").out.splitlines()
    assert listed[1].split() == [r".\orders", "0", "0", "0", "public,", "transactional", "Orders"]
    assert "public" not in listed[2]
    assert falconmq("queue", "set", r".\orders", "--label", "New").code == 0
    shown = falconmq("queue", "show", r"SALES01\orders").out
    assert "public, transactional" in shown
    assert "PUBLIC=" in shown
    row = enterprise.find("Queue", "path_name", r"sales01\orders")
    assert row is not None
    assert row["label"] == "New"
    assert falconmq("send", r".\orders", "--body", "hello").code == 0
    assert falconmq("receive", r".\orders").out == "hello\n"
    assert falconmq("queue", "delete", r".\orders", "--yes").code == 0
    assert enterprise.find("Queue", "path_name", r"sales01\orders") is None


def test_sending_to_a_path_of_another_computer(
    falconmq: InProcess, service: ControlledManager, enterprise: Enterprise
) -> None:
    far = PublicFormatName(enterprise.add_queue(rf"{FAR}\far"))
    assert falconmq("send", ELSEWHERE, "--body", "hello").code == 0
    (waiting,) = json.loads(falconmq("outgoing", "list", "--json").out)["outgoing"]
    assert (waiting["destination"], waiting["messages"]) == (str(far), 1)
    # people see its path name, and may name it so
    assert ELSEWHERE in falconmq("outgoing", "list").out
    assert "there is no outgoing queue" not in falconmq("outgoing", "pause", r"Sales02\Far").err
    assert "there is no outgoing queue" in falconmq("outgoing", "pause", r"sales02\other").err
    assert "1 message waits" in falconmq("why", ELSEWHERE).out
    read = falconmq("receive", ELSEWHERE)
    assert read.code == 1
    assert "is on another computer: it can be sent to, not read" in read.err


def test_what_the_directory_does_not_know_is_refused_with_a_hint(
    falconmq: InProcess, service: ControlledManager
) -> None:
    sent = falconmq("send", r"sales02\nothing", "--body", "hello")
    assert sent.code == 1
    assert r"the directory knows no queue sales02\nothing (MQ_ERROR_QUEUE_NOT_FOUND" in sent.err
    assert r"a private one is named sales02\private$\nothing" in " ".join(sent.err.split())
