"""`falconmq dead-letter`: list, show, redrive, delete."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq import Message
from falconmq.clock import VirtualClock
from falconmq.message import Journal
from tests.cli.commands import InProcess, start
from tests.embedded.helpers import ORDERS
from tests.service.asking import clocked_engine
from tests.service.control import ControlledManager

OTHER = r".\private$\other"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledManager]:
    """A queue manager whose clock the test turns."""
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    with ControlledManager(tmp_path, clocked_engine()[0]) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(OTHER)
        yield controlled


def kill(service: ControlledManager, *bodies: str, **properties: object) -> list[str]:
    queue = service.blocking.queue(ORDERS)
    ids = []
    for body in bodies:
        message = Message(body, time_to_be_received=1, journal=Journal.DEAD_LETTER)
        for name, value in properties.items():
            setattr(message, name, value)
        ids.append(str(queue.send(message)))
    advance(service, 2)
    return ids


def advance(service: ControlledManager, seconds: float) -> None:
    clock = service.engine.core.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(seconds)
    service.engine.run_timers()


def texts(service: ControlledManager, name: str = ORDERS) -> list[str]:
    return [message.text for message in service.blocking.queue(name)]


def test_the_list_says_why_and_where_to(falconmq: InProcess, service: ControlledManager) -> None:
    assert falconmq("dead-letter", "list") == (0, "", "no dead letters\n")
    (id,) = kill(service, "a", label="order 7")
    done = falconmq("dead-letter", "list")
    heading, line = done.out.splitlines()
    assert heading.split() == ["DIED", "REASON", "DESTINATION", "LABEL", "BYTES", "MESSAGE"]
    assert line.startswith("2023-11-14 22:13:22  not read in time  PRIVATE=")
    assert line.endswith(id)
    assert "order 7" in line
    found = json.loads(falconmq("dead-letter", "list", "--json").out)["letters"]
    assert [letter["reason"] for letter in found] == ["NACK_RECEIVE_TIMEOUT"]


def test_the_list_is_filtered_and_says_if_there_is_more(
    falconmq: InProcess, service: ControlledManager
) -> None:
    kill(service, "a", label="old")
    advance(service, 7200)
    kill(service, "b", label="new")
    old = falconmq("dead-letter", "list", "--older-than", "1h", "--json")
    assert [letter["label"] for letter in json.loads(old.out)["letters"]] == ["old"]
    new = falconmq("dead-letter", "list", "--newer-than", "90s", "--contains", "NEW", "--json")
    assert [letter["label"] for letter in json.loads(new.out)["letters"]] == ["new"]
    done = falconmq("dead-letter", "list", "--count", "1")
    assert "there are more than 1" in done.err
    wrong = falconmq("dead-letter", "list", "--older-than", "soon")
    assert (wrong.code, "90s, 15m, 2h or 7d" in wrong.err) == (2, True)
    assert falconmq("dead-letter", "list", "--reason", "NOTHING").code == 1


def test_one_letter_is_shown_with_its_body(falconmq: InProcess, service: ControlledManager) -> None:
    (id,) = kill(service, "hello\x1b[31m")
    done = falconmq("dead-letter", "show", id)
    assert "NACK_RECEIVE_TIMEOUT" in done.out
    assert done.out.endswith("hello\\x1b[31m\n")
    (letter,) = json.loads(falconmq("dead-letter", "list", "--json").out)["letters"]
    by_place = falconmq("dead-letter", "show", letter["lookup_id"], "--json")
    assert json.loads(by_place.out)["letter"]["id"] == id
    assert falconmq("dead-letter", "show", "4711").code == 1


def test_letters_are_sent_again_with_a_report(
    falconmq: InProcess, service: ControlledManager
) -> None:
    kill(service, *map(str, range(250)))
    done = falconmq("dead-letter", "redrive")
    assert (done.code, done.err) == (0, "")
    heading, row, last = done.out.splitlines()
    assert heading.split() == ["LETTERS", "REASON", "OUTCOME"]
    assert row.split() == ["250", "NACK_RECEIVE_TIMEOUT", "redriven"]
    assert last == "250 dead letters redriven, 0 stay"
    assert texts(service) == [str(number) for number in range(250)]
    assert falconmq("dead-letter", "list").out == ""


def test_a_dry_run_lists_what_would_happen(falconmq: InProcess, service: ControlledManager) -> None:
    (id,) = kill(service, "a")
    done = falconmq("dead-letter", "redrive", "--dry-run")
    assert id in done.out
    assert done.out.endswith("1 dead letter would be redriven, 0 stay\n")
    assert texts(service) == []
    service.blocking.delete_queue(ORDERS)
    refused = falconmq("dead-letter", "redrive", "--dry-run")
    assert refused.code == 1
    assert "no queue" in refused.out
    elsewhere = falconmq("dead-letter", "redrive", "--dry-run", "--to", OTHER)
    assert f"would go to {OTHER}" in elsewhere.out
    moved = falconmq("dead-letter", "redrive", "--to", OTHER)
    assert (moved.code, texts(service, OTHER)) == (0, ["a"])


def test_a_limit_is_kept(falconmq: InProcess, service: ControlledManager) -> None:
    kill(service, *"abcde")
    done = falconmq("dead-letter", "redrive", "--limit", "2", "--json")
    assert json.loads(done.out)["done"] == 2
    assert texts(service) == ["a", "b"]
    assert falconmq("dead-letter", "redrive", "--rate", "0").code == 2


def test_a_rate_is_kept(falconmq: InProcess, service: ControlledManager) -> None:
    kill(service, *map(str, range(11)))
    begun = time.monotonic()
    done = falconmq("dead-letter", "redrive", "--rate", "10")
    assert done.out.endswith("11 dead letters redriven, 0 stay\n")
    assert time.monotonic() - begun >= 0.95  # the eleventh may go after a second


def test_letters_are_deleted(falconmq: InProcess, service: ControlledManager) -> None:
    ids = kill(service, "a", "b")
    done = falconmq("dead-letter", "delete", "--id", ids[0])
    assert done.out.endswith("1 dead letter deleted, 0 stay\n")
    assert [letter for letter in ids if letter in falconmq("dead-letter", "list").out] == ids[1:]


@pytest.mark.slow
def test_ctrl_c_ends_a_redrive_with_its_report_and_nothing_half_done(
    service: ControlledManager, tmp_path: Path
) -> None:
    kill(service, *map(str, range(50)))
    process = start("dead-letter", "redrive", "--rate", "2", "--data", str(tmp_path))
    deadline = time.monotonic() + 30
    while not texts(service):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    done = len(texts(service))
    assert out.decode().splitlines()[-1] == f"{done} dead letters redriven, 0 stay"
    assert service.blocking.dead_letter.count == 50 - done
