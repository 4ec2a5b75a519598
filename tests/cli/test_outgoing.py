"""`falconmq outgoing` and `falconmq session`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from falconmq import Message
from falconmq.service.daemon import Service
from tests.cli.commands import InProcess
from tests.service.control import ControlledManager
from tests.service.services import PATIENCE, configured, loopback

REMOTE = r"DIRECT=TCP:127.255.255.254\private$\orders"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A real service, with messages for a computer that is not there."""
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path / "data"))
    started: Future[tuple[Service, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        service = await Service.start(configured(loopback(), tmp_path / "data"))
        stopping = asyncio.Event()
        started.set_result((service, asyncio.get_running_loop(), stopping))
        await stopping.wait()
        await service.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    service, loop, stopping = started.result(PATIENCE)
    service.manager.blocking.queue(REMOTE).send(Message("x"))
    service.manager.blocking.queue(REMOTE).send(Message("y"))
    yield service
    loop.call_soon_threadsafe(stopping.set)
    thread.join(PATIENCE)


def test_outgoing_queues_are_listed_paused_resumed_and_purged(
    falconmq: InProcess, served: Service
) -> None:
    (queue,) = json.loads(falconmq("outgoing", "list", "--json").out)["outgoing"]
    number = str(queue["number"])
    heading, row = falconmq("outgoing", "list").out.splitlines()[:2]
    assert heading.split()[:2] == ["NUMBER", "OUTGOING"]
    assert row.split()[:2] == [number, REMOTE]
    # by the name of its destination, or by its number
    assert falconmq("outgoing", "pause", REMOTE.lower()).out == f"paused {REMOTE}\n"
    assert "on hold" in falconmq("outgoing", "list").out
    assert falconmq("outgoing", "resume", number).out == f"resumed {REMOTE}\n"
    assert "on hold" not in falconmq("outgoing", "list").out
    assert falconmq("outgoing", "purge", number) == (0, "purged 2 messages\n", "")
    assert falconmq("outgoing", "list") == (0, "", "nothing waits for other queue managers\n")


def test_an_outgoing_queue_that_is_not_there(falconmq: InProcess, served: Service) -> None:
    done = falconmq("outgoing", "pause", "4711")
    assert done.code == 1
    assert "there is no outgoing queue 4711" in done.err


def test_no_sessions_are_said_beside_the_results(falconmq: InProcess, served: Service) -> None:
    (queue,) = json.loads(falconmq("outgoing", "list", "--json").out)["outgoing"]
    falconmq("outgoing", "purge", str(queue["number"]))  # nothing is left to connect for
    while falconmq("session", "list").out:
        pass  # a last try to connect is under way
    assert falconmq("session", "list") == (0, "", "no sessions\n")
    assert json.loads(falconmq("session", "list", "--json").out) == {"sessions": []}


def test_without_a_transport_nothing_can_be_paused(
    falconmq: InProcess, service: ControlledManager
) -> None:
    service.blocking.queue(REMOTE).send(Message("x"))
    done = falconmq("outgoing", "pause", REMOTE)
    assert done.code == 1
    assert "start it with: falconmq serve" in done.err
