"""`falconmq why` and `falconmq trace`."""

from __future__ import annotations

import json

from falconmq import Message
from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager
from tests.service.why.situations import lately

FAR = r"DIRECT=OS:far\private$\orders"


def test_the_answer_comes_first_then_the_hint_then_the_facts(
    falconmq: InProcess, service: ControlledManager
) -> None:
    assert service.control.events is not None
    service.blocking.create_queue(ORDERS).send(Message("x"))
    done = falconmq("why", ORDERS)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"1 message waits in {ORDERS}. Nobody reads: ")
    assert lines[1].startswith("hint:  start the application that reads it")
    assert lines[2] == ""
    assert lines[3].split() == ["queue", ORDERS]


def test_a_message_shows_its_timeline(falconmq: InProcess, service: ControlledManager) -> None:
    assert service.control.events is not None
    queue = service.blocking.create_queue(ORDERS, journaling=True)
    id = str(queue.send(Message("x", label="red\x1b[31m")))
    done = falconmq("why", id)
    assert "red\\x1b[31m" in done.out  # no colours of theirs
    queue.receive(timeout=0)
    done = falconmq("why", id)
    assert done.out.startswith(f"The message was received from {ORDERS} ")
    table = done.out[done.out.index("TIME") :].splitlines()
    assert [line.split("  ")[1].strip() for line in table[1:]] == [
        "arrived",
        "received",
        "a copy was kept in the journal",
    ]


def test_what_waits_in_a_directory_that_is_not_served(
    falconmq: InProcess, service: ControlledManager
) -> None:
    service.blocking.queue(FAR).send(Message("x"))
    done = falconmq("why", FAR)
    assert done.out.startswith("1 message waits for far. Nobody sends: ")
    assert "hint:  start the service: falconmq serve\n" in done.out


def test_facts_of_the_same_name_have_it_once(
    falconmq: InProcess, service: ControlledManager
) -> None:
    queue = service.blocking.create_queue(ORDERS, transactional=True)
    readers = [service.blocking.transaction() for _ in range(2)]
    for reader in readers:
        with service.blocking.transaction() as transaction:
            queue.send(Message("x"), transaction)
        queue.receive(reader, timeout=0)
    lines = falconmq("why", ORDERS).out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("held by"))
    assert lines[at + 1].startswith(" " * len("held by"))
    assert str(readers[1].id) in lines[at] + lines[at + 1]


def test_why_as_json(falconmq: InProcess, service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    found = json.loads(falconmq("why", ORDERS, "--json").out)
    assert found["summary"] == f"{ORDERS} is empty."
    assert found["severity"] == "info"


def test_a_queue_that_is_not_there(falconmq: InProcess, service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    done = falconmq("why", r".\private$\ordres")
    assert (done.code, done.out) == (1, "")
    assert f"did you mean {ORDERS}?" in done.err
    assert "falconmq queue create" in done.err


def test_the_help_has_three_examples(falconmq: InProcess) -> None:
    for command in (["why"], ["trace"], ["ping"], ["dead-letter", "redrive"]):
        done = falconmq(*command, "--help")
        assert done.code == 0
        assert done.out[done.out.index("Examples:") :].count("falconmq ") == 3


def test_a_trace_shows_queue_managers_and_what_happened_there(
    falconmq: InProcess, service: ControlledManager
) -> None:
    assert service.control.events is not None
    queue = service.blocking.create_queue(ORDERS)
    id = str(queue.send(Message("x")))
    queue.receive(timeout=0)
    done = falconmq("trace", id)
    name = service.engine.core.settings.computer_name
    first, summary, manager, arrived, received = done.out.splitlines()
    assert first == id
    assert summary.startswith("Seen by 1 queue manager; ")
    assert manager == f"  {name}"
    assert arrived.split("  ")[-2:] == ["arrived", ORDERS]
    assert received.split("  ")[-2:] == ["received", ORDERS]
    of_queue = falconmq("trace", "--queue", ORDERS).out
    assert lately(of_queue) == lately(done.out)
    found = json.loads(falconmq("trace", id, "--json").out)
    assert [stop["kind"] for stop in found["stops"]] == ["arrived", "received"]


def test_a_trace_needs_a_message_or_a_queue(
    falconmq: InProcess, service: ControlledManager
) -> None:
    assert falconmq("trace").code == 2
    assert falconmq("trace", "x", "--queue", ORDERS).code == 2
    service.blocking.create_queue(ORDERS)
    done = falconmq("trace", "--queue", ORDERS)
    assert (done.code, done.out) == (0, "")
    assert "nothing happened" in done.err
