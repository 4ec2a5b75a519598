"""`falconmq events`: what the store says of messages."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from falconmq import Message
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.event_keeping import EventKeeper, Retention
from falconmq.manager.events import EventLog
from falconmq.service.observation.event_texts import queue_text
from falconmq.store import MemoryStore
from tests.cli.commands import InProcess, start
from tests.embedded.helpers import COMPUTER, ORDERS
from tests.service.control import ControlledManager

LEDGER = r".\private$\Ledger"


def keep(core: QueueManagerCore) -> None:
    core.events = EventLog(core.clock.time)
    core.events.keeper = EventKeeper(core.store, Retention(), queue_text)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledManager]:
    """A queue manager that keeps its events: 1 to 4."""
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    settings = Settings(computer_name=COMPUTER)
    engine = start_engine(MemoryStore(), settings, random=Random(7), prepare=keep)
    with ControlledManager(tmp_path, engine) as controlled:
        orders = controlled.blocking.create_queue(ORDERS)
        orders.send(Message("a"))
        controlled.blocking.create_queue(LEDGER).send(Message("b"))
        orders.receive(timeout=0)
        controlled.blocking.queue(LEDGER).purge()
        yield controlled


def kinds(out: str) -> list[str]:
    return [line.split()[3] for line in out.splitlines()]


def numbers(out: str) -> list[int]:
    return [json.loads(line)["number"] for line in out.splitlines()]


def test_a_line_says_when_what_happened_where(falconmq: InProcess, kept: ControlledManager) -> None:
    done = falconmq("events")
    assert done.code == 0
    assert kinds(done.out) == ["arrived", "arrived", "received", "purged"]
    first, *_, last = done.out.splitlines()
    id = json.loads(falconmq("events", "--json").out.splitlines()[0])["message_id"]
    assert first.endswith(f"arrived        {ORDERS}  {id}")
    assert first.split()[0] == "1"
    assert last.endswith("NACK_Q_PURGED")
    assert done.err.startswith("events 1 to 4 are kept, ")


def test_what_is_wanted_is_chosen(falconmq: InProcess, kept: ControlledManager) -> None:
    assert numbers(falconmq("events", "--json", "--last", "3").out) == [2, 3, 4]
    assert numbers(falconmq("events", "--json", "--last", "0").out) == []
    assert numbers(falconmq("events", "--json", "--after", "0").out) == [1, 2, 3, 4]
    assert numbers(falconmq("events", "--json", "--after", "3").out) == [4]
    assert numbers(falconmq("events", "--json", "--kind", "arrived,purged").out) == [1, 2, 4]
    chosen = ("--kind", "ARRIVED", "--kind", "received")
    assert numbers(falconmq("events", "--json", *chosen).out) == [1, 2, 3]
    for name in (ORDERS, ORDERS.upper(), rf"{COMPUTER}\private$\orders"):
        assert numbers(falconmq("events", "--json", "--queue", name).out) == [1, 3]
    assert numbers(falconmq("events", "--json", "--queue", LEDGER.lower()).out) == [2, 4]


def test_a_queue_that_is_gone_can_still_be_asked_for(
    falconmq: InProcess, kept: ControlledManager
) -> None:
    kept.blocking.delete_queue(ORDERS)
    assert numbers(falconmq("events", "--json", "--queue", ORDERS).out) == [1, 3]


def test_what_is_not_understood_is_refused(falconmq: InProcess, kept: ControlledManager) -> None:
    done = falconmq("events", "--kind", "recieved")
    assert done.code == 2
    assert "error: --kind recieved: there is no such event" in done.err
    assert "did you mean received?" in done.err
    assert falconmq("events", "--queue", "").code == 2


def test_long_lists_come_page_by_page(falconmq: InProcess, kept: ControlledManager) -> None:
    queue = kept.blocking.create_queue(r".\private$\many", transactional=True)
    with kept.blocking.transaction() as transaction:
        for _ in range(1500):
            queue.send(Message("x"), transaction=transaction)
    assert numbers(falconmq("events", "--json", "--after", "1").out) == list(range(2, 1505))


def test_a_manager_that_keeps_none_says_so(falconmq: InProcess, service: ControlledManager) -> None:
    done = falconmq("events")
    assert (done.code, done.out) == (0, "")
    assert (
        done.err == "no events are kept; nothing is added: keep = true in [events] changes that\n"
    )


def test_a_directory_that_nobody_serves_has_its_events(falconmq: InProcess, tmp_path: Path) -> None:
    place = ("--data", str(tmp_path))
    assert falconmq("queue", "create", ORDERS, *place).code == 0
    assert falconmq("send", ORDERS, "--body", "a", *place).code == 0
    assert falconmq("receive", ORDERS, *place).code == 0
    assert kinds(falconmq("events", *place).out) == ["arrived", "received"]


def test_what_happens_is_followed(kept: ControlledManager) -> None:
    follower = start("events", "--follow", "--last", "1", "--data", str(kept.directory))
    try:
        assert follower.stdout is not None
        assert b"purged" in follower.stdout.readline()
        kept.blocking.queue(ORDERS).send(Message("c"))
        assert b"arrived" in follower.stdout.readline()
        kept.blocking.queue(ORDERS).receive(timeout=0)
        assert b"received" in follower.stdout.readline()
    finally:
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=20)
    assert follower.returncode == 130
