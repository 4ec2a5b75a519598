"""`falconmq tail`: messages as they arrive."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from falconmq import Message
from falconmq.cli.tail import Event, Follower, parse_events
from falconmq.client import CONTROL_SOCKET, ControlClient
from falconmq.service.web.control import ControlServer
from tests.cli.commands import InProcess, start
from tests.embedded.helpers import ORDERS
from tests.processes import Command
from tests.service.control import ControlledManager
from tests.service.services import PATIENCE, loopback


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_are_found_wherever_the_stream_is_cut(size: int) -> None:
    text = (
        b': hello\n\nid: 7\nevent: ARRIVED\ndata: {"a":1}\n\nevent: gap\ndata: {}\n\n: x\n\nid: 8'
    )
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(parse_events(pieces)) == [Event("ARRIVED", "7", {"a": 1}), Event("gap", "", {})]


class Lines:
    """What a process prints, line by line, without waiting for ever."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._lines: queue.Queue[str] = queue.Queue()
        stdout = process.stdout

        def read() -> None:
            for line in stdout:
                self._lines.put(line.decode().rstrip("\n"))

        threading.Thread(target=read, daemon=True).start()

    def next(self) -> str:
        return self._lines.get(timeout=PATIENCE)


@pytest.fixture
def orders(service: ControlledManager) -> ControlledManager:
    service.blocking.create_queue(ORDERS)
    return service


def follower(service: ControlledManager, *, from_start: bool = False) -> tuple[Any, Any]:
    client = service.client()
    return client, Follower(client, ORDERS, from_start=from_start).messages()


def test_messages_are_shown_in_the_order_of_their_arrival(orders: ControlledManager) -> None:
    queue = orders.blocking.queue(ORDERS)
    queue.send(Message("old", priority=0))
    queue.send(Message("old and urgent", priority=7))
    client, messages = follower(orders, from_start=True)
    with client:
        assert [next(messages)["text"] for _ in range(2)] == ["old", "old and urgent"]
        for text, priority in (("a", 3), ("b", 7), ("c", 0)):
            queue.send(Message(text, priority=priority))
        assert [next(messages)["text"] for _ in range(3)] == ["a", "b", "c"]
        messages.close()
    assert queue.count == 5  # they stay


def test_a_message_that_was_taken_at_once_is_told_about(orders: ControlledManager) -> None:
    queue = orders.blocking.queue(ORDERS)
    client, messages = follower(orders, from_start=True)
    queue.send(Message("first"))
    with client:
        assert next(messages)["text"] == "first"
        taken = queue.send(Message("taken"))
        queue.receive()
        queue.receive()
        found = next(messages)
        messages.close()
    assert (found["id"], found["gone"]) == (str(taken), True)


@pytest.mark.parametrize("remembers", [True, False])
def test_what_comes_during_a_restart_is_shown_once(
    orders: ControlledManager, remembers: bool
) -> None:
    queue = orders.blocking.queue(ORDERS)
    client, messages = follower(orders)
    with client, ThreadPoolExecutor(1) as thread:
        first = thread.submit(next, messages)
        until_followed(orders)
        queue.send(Message("before"))
        assert first.result(PATIENCE)["text"] == "before"
        # when a message comes while nobody serves, and the next run remembers all events or none
        orders.stop_server()
        queue.send(Message("meanwhile", priority=7))
        if not remembers:
            orders.engine.core.events = None
        orders._server = ControlServer()
        orders._run(orders._start)
        # then it is shown, once, and what was shown before is not shown again
        assert thread.submit(next, messages).result(PATIENCE)["text"] == "meanwhile"
        queue.send(Message("after"))
        assert thread.submit(next, messages).result(PATIENCE)["text"] == "after"
        messages.close()


def until_followed(service: ControlledManager) -> None:
    """Until somebody listens to what happens."""
    deadline = time.monotonic() + PATIENCE
    while service.engine.core.events is None or not service.engine.core.events.listeners:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("options", [[], ["--bodies"], ["--json"]])
def test_the_command_prints_what_is_there_and_ends(
    falconmq: InProcess, orders: ControlledManager, options: list[str]
) -> None:
    for number in range(3):
        orders.blocking.queue(ORDERS).send(Message(f"body\x1b {number}\nmore", label="la\x1bbel"))
    done = falconmq("tail", ORDERS, "--from-start", "--count", "2", *options)
    assert (done.code, done.err) == (0, "")
    if options == ["--json"]:
        texts = [json.loads(line)["text"] for line in done.out.splitlines()]
        assert texts == ["body\x1b 0\nmore", "body\x1b 1\nmore"]
    elif options == ["--bodies"]:
        assert done.out == "body\x1b 0\nmore\nbody\x1b 1\nmore\n"
    else:
        first, second = done.out.splitlines()
        assert first.endswith(r"}\1  la\x1bbel  body\x1b 0")
        assert second.endswith(r"}\2  la\x1bbel  body\x1b 1")


def test_a_queue_that_is_not_there_is_an_error(
    falconmq: InProcess, service: ControlledManager
) -> None:
    done = falconmq("tail", ORDERS)
    assert done.code == 1
    assert "QUEUE_NOT_FOUND" in done.err


def test_two_ways_to_print_are_wrong_usage(falconmq: InProcess, orders: ControlledManager) -> None:
    assert falconmq("tail", ORDERS, "--json", "--bodies").code == 2


class Daemon:
    """A real service that can be started anew."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.config = directory / "falconmq.toml"
        self.config.write_text(
            f'[manager]\ndata = "data"\nbind = "{loopback()}"\n[http]\nenabled = false\n'
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = Command("serve", "--config", str(self.config), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE)

    def client(self) -> ControlClient:
        return ControlClient(self.data / CONTROL_SOCKET)

    def _is_ready(self) -> bool:
        try:
            with self.client() as client:
                client.status()
        except Exception:  # noqa: BLE001 - not yet
            return False
        return True


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    daemon.start()
    yield daemon
    daemon.kill()


@pytest.mark.slow
def test_it_goes_on_after_a_restart_and_ends_with_ctrl_c(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.create_queue(ORDERS)
    tail = start("tail", ORDERS, "--bodies", "--from-start", "--data", str(daemon.data))
    lines = Lines(tail)
    try:
        with daemon.client() as client:
            client.send(ORDERS, [{"text": "before"}])
            assert lines.next() == "before"
        # when the service is killed and started again, and messages come meanwhile
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            client.send(ORDERS, [{"text": "urgent", "priority": 7}, {"text": "after"}])
            assert [lines.next(), lines.next()] == ["urgent", "after"]
            client.send(ORDERS, [{"text": "and on"}])
            assert lines.next() == "and on"
        # then nothing was shown twice, and Ctrl-C ends it quietly
        os.kill(tail.pid, signal.SIGINT)
        assert tail.wait(PATIENCE) == 130
        assert tail.stderr is not None
        assert tail.stderr.read() == b""
    finally:
        tail.kill()
        tail.wait(PATIENCE)
        for stream in (tail.stdin, tail.stdout, tail.stderr):
            assert stream is not None
            stream.close()
