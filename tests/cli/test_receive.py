"""`falconmq receive`: take messages out and print them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from falconmq import Message, Queue
from tests.cli.commands import InProcess, run, start
from tests.embedded.helpers import ORDERS, Background, wait_until, waiting_reads
from tests.service.control import ControlledManager


@pytest.fixture
def orders(service: ControlledManager) -> Queue:
    return service.blocking.create_queue(ORDERS)


def test_the_first_body_is_printed_and_the_message_gone(falconmq: InProcess, orders: Queue) -> None:
    orders.send_many([Message("a"), Message("b")])
    assert falconmq("receive", ORDERS) == (0, "a\n", "")
    assert [message.text for message in orders] == ["b"]


def test_count_is_at_most_so_many(falconmq: InProcess, orders: Queue) -> None:
    orders.send_many(Message(str(number)) for number in range(3))
    assert falconmq("receive", ORDERS, "--count", "2").out == "0\n1\n"
    assert falconmq("receive", ORDERS, "--count", "2").out == "2\n"


def test_all_takes_everything_page_by_page(
    falconmq: InProcess, orders: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.cli.messages.PAGE", 2)
    orders.send_many(Message(str(number)) for number in range(5))
    assert falconmq("receive", ORDERS, "--all").out.split() == list("01234")
    assert falconmq("receive", ORDERS, "--all") == (0, "", "")


def test_no_message_is_exit_code_1_and_says_how_to_wait(falconmq: InProcess, orders: Queue) -> None:
    done = falconmq("receive", ORDERS)
    assert (done.code, done.out) == (1, "")
    assert "--timeout" in done.err
    waited = falconmq("receive", ORDERS, "--timeout", "0.01")
    assert waited.code == 1
    assert "within 0.01 seconds" in waited.err


@pytest.mark.parametrize("option", [["--timeout", "30"], ["--wait"]])
def test_it_waits_for_a_message(
    falconmq: InProcess, service: ControlledManager, orders: Queue, option: list[str]
) -> None:
    def send() -> None:
        wait_until(lambda: waiting_reads(service.blocking) == 1)
        orders.send(Message("late"))

    sender = Background(send)
    assert falconmq("receive", ORDERS, *option).out == "late\n"
    sender.result()


def test_a_long_wait_is_asked_for_in_parts(
    falconmq: InProcess, orders: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falconmq.cli.messages.LONGEST_WAIT", 0.01)
    assert falconmq("receive", ORDERS, "--timeout", "0.05").code == 1


def test_json_has_every_property_a_line_for_each_message(
    falconmq: InProcess, orders: Queue
) -> None:
    orders.send_many([Message("a", label="é"), Message(b"\xff")])
    lines = falconmq("receive", ORDERS, "--all", "--json").out.splitlines()
    first, second = map(json.loads, lines)
    assert (first["text"], first["label"], first["priority"]) == ("a", "é", 3)
    assert (second["text"], second["body"]) == (None, "/w==")


def test_a_table_has_a_line_for_each_message(falconmq: InProcess, orders: Queue) -> None:
    orders.send(Message("line 1\nline 2", label="first"))
    orders.send(Message("x" * 100, priority=0))
    heading, first, second = falconmq("receive", ORDERS, "--all", "--table").out.splitlines()
    assert heading.startswith("LOOKUP ID")
    assert first.split()[3:] == ["3", "26", "first", "line", "1"]
    assert second.endswith("x" * 37 + "...")


def test_a_body_that_is_no_text_is_described(falconmq: InProcess, orders: Queue) -> None:
    orders.send(Message.variant(7))
    assert falconmq("receive", ORDERS).out == "<4 bytes of VT_I4: see --raw or --json>\n"


def test_raw_writes_the_bytes_alone(service: ControlledManager, orders: Queue) -> None:
    orders.send_many([Message(b"\xff\0"), Message("a")])
    command = ("receive", ORDERS, "--all", "--raw", "--data", str(service.directory))
    process = start(*command)
    out, _ = process.communicate(timeout=30)
    assert out == b"\xff\0a\0"


def test_one_message_by_its_lookup_id(falconmq: InProcess, orders: Queue) -> None:
    orders.send_many([Message("a"), Message("b")])
    second = list(orders)[1].lookup_id
    assert falconmq("receive", ORDERS, "--lookup-id", str(second)).out == "b\n"
    again = falconmq("receive", ORDERS, "--lookup-id", str(second))
    assert again.code == 1
    assert "MQ_ERROR_MESSAGE_NOT_FOUND" in again.err


def test_two_ways_of_printing_exclude_each_other(falconmq: InProcess, orders: Queue) -> None:
    assert falconmq("receive", ORDERS, "--json", "--table").code == 2


def test_ctrl_c_while_it_waits_ends_it_quietly_and_loses_nothing(
    service: ControlledManager, orders: Queue
) -> None:
    process = start("receive", ORDERS, "--wait", "--data", str(service.directory))
    wait_until(lambda: waiting_reads(service.blocking) == 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")
    wait_until(lambda: waiting_reads(service.blocking) == 0)
    orders.send(Message("a"))
    assert [message.text for message in orders] == ["a"]


def test_a_reader_that_goes_away_stops_it_before_the_next_page(
    service: ControlledManager, orders: Queue
) -> None:
    orders.send_many(Message(b"x" * 1000) for _ in range(500))
    process = start("receive", ORDERS, "--all", "--data", str(service.directory))
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    process.wait(30)
    assert process.returncode == 141
    assert orders.count >= 200
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()


def test_a_service_that_ends_meanwhile_is_exit_code_3(
    falconmq: InProcess, service: ControlledManager, orders: Queue, tmp_path: Path
) -> None:
    service.stop_server()
    done = falconmq("receive", ORDERS, "--wait")
    assert done.code == 3
    assert "no service is running" in done.err


def test_the_installed_command_receives(service: ControlledManager, orders: Queue) -> None:
    orders.send(Message("hello"))
    environment = {"FALCONMQ_DATA": str(service.directory)}
    assert run("receive", ORDERS, environment=environment) == (0, "hello\n", "")
