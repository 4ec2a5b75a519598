"""The life of the daemon: it starts, serves, stops in order, and says what goes wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import falconmq
from falconmq import Message
from falconmq.service.configuration import Configuration, HttpSection, ManagerSection, load
from falconmq.service.daemon import Service
from falconmq.service.engine import local_names
from falconmq.service.process import _signals, serve
from tests.embedded.helpers import GatedStore
from tests.service.services import (
    ORDERS,
    PATIENCE,
    configured,
    direct,
    loopback,
    run,
    send,
    serving,
    until,
    waiting,
)

PROGRAM = """
import sys
from falconmq.service.configuration import load
from falconmq.service.process import run
sys.exit(run(load(data=sys.argv[1], bind=sys.argv[2], name="SALES01")))
"""


@contextmanager
def process(data: Path, bind: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A daemon of its own process."""
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(data), bind],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


@contextmanager
def notifications(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(PATIENCE)
        receiver.bind(str(path))
        yield receiver


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_daemon_in_order(tmp_path: Path, number: signal.Signals) -> None:
    notify, data, bind = tmp_path / "notify", tmp_path / "data", loopback()
    with notifications(notify) as receiver, process(data, bind, NOTIFY_SOCKET=str(notify)) as own:
        # given a daemon that has told systemd that it is ready
        assert receiver.recv(1000).decode() == f"READY=1\nSTATUS=listening on {bind}:1801"
        with socket.create_connection((bind, 1801), timeout=PATIENCE):
            # when it is asked to stop
            own.send_signal(number)
            assert receiver.recv(1000).decode().startswith("STOPPING=1")
            # then it does, and says so
            _, log = own.communicate(timeout=PATIENCE)
    assert own.returncode == 0
    assert f"listening addresses={bind}:1801 name=SALES01 queue_manager=" in log
    assert f"stopping signal={number.name}" in log
    assert log.strip().endswith("stopped")
    assert not (data / "control.sock").exists()
    with falconmq.open(data):  # nobody holds it any more
        pass


def test_the_watchdog_hears_that_the_daemon_lives(tmp_path: Path) -> None:
    notify = tmp_path / "notify"
    environment = {"NOTIFY_SOCKET": str(notify), "WATCHDOG_USEC": "20000"}
    with notifications(notify) as receiver, process(tmp_path / "data", loopback(), **environment):
        heard = [receiver.recv(1000).decode() for _ in range(4)]
    assert heard[0].startswith("READY=1")
    assert heard[1:] == ["WATCHDOG=1"] * 3


def test_a_daemon_that_finds_its_port_taken_says_so_and_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with serving() as first:
            bind = first.configuration.manager.bind
            assert await serve(load(data=tmp_path / "data", bind=bind)) == 1
            assert f"cannot start: cannot listen on TCP {bind}:1801" in caplog.text
            assert "hint: another queue manager may run here" in caplog.text

    run(main())
    with falconmq.open(tmp_path / "data"):  # it was given back
        pass


def test_a_daemon_that_finds_its_data_in_use_says_so_and_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with falconmq.open(tmp_path / "data"):
        assert run(serve(load(data=tmp_path / "data", bind=loopback()))) == 1
    assert "is in use by this process" in caplog.text


def test_a_second_signal_ends_the_daemon_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)

    async def main() -> None:
        stopping = asyncio.Event()
        with _signals(stopping, asyncio.Event()):
            os.kill(os.getpid(), signal.SIGTERM)
            await stopping.wait()
            assert ended == []
            os.kill(os.getpid(), signal.SIGINT)
            await until(lambda: bool(ended))

    with caplog.at_level(logging.INFO):
        run(main())
    assert ended == [130]
    assert "again to stop at once" in caplog.text


def test_the_log_says_that_every_interface_is_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    manager = ManagerSection("SALES01", tmp_path / "data", port=port)
    chosen = Configuration(manager, http=HttpSection(port=0))

    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(serve(chosen, ready=lambda _: ready.set()))
        await ready.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await task == 0

    with caplog.at_level(logging.INFO):
        run(main())
    assert f"listening addresses=0.0.0.0:{port}" in caplog.text
    assert "every interface of this computer is open to peers" in caplog.text


def test_messages_wait_for_a_receiver_that_is_down(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as sender:
            bind = loopback()
            await send(sender, rf"DIRECT=TCP:{bind}\private$\orders", "one", "two")
            # given a receiver that comes up late
            receiver = await Service.start(configured(bind, tmp_path / "data"))
            queue = await receiver.manager.create_queue(ORDERS)
            assert [(await queue.receive(timeout=10)).text for _ in range(2)] == ["one", "two"]
            await until(lambda: not waiting(sender))
            await receiver.stop()

    run(main())


def test_a_stop_acknowledges_what_it_has_so_that_nothing_is_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        bind = loopback()
        async with serving() as sender:
            receiver = await Service.start(configured(bind, tmp_path / "data"))
            queue = await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), *[str(number) for number in range(20)])
            # given that all have arrived, and none is acknowledged yet
            await until(lambda: queue.count == 20)
            assert waiting(sender) == 20
            # when the receiver stops, long before it would acknowledge of its own accord
            await receiver.stop()
            assert 'received=20 reason="the queue manager stops"' in caplog.text
            # then the sender knows that they are safe
            await until(lambda: not sender.transport.sessions)
            assert waiting(sender) == 0
            # and they are
            again = await Service.start(configured(bind, tmp_path / "data"))
            queue = await again.manager.queue(ORDERS)
            assert queue.count == 20
            await again.stop()

    run(main())


def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    async def main() -> None:
        store = GatedStore()
        async with serving() as sender, serving(store) as receiver:
            queue = await receiver.manager.create_queue(ORDERS)
            # given a receiver whose disk stands still
            store.gate.clear()
            await send(sender, direct(receiver), *map(str, range(40)))  # more than half a window
            await until(lambda: sum(s.messages_received for s in receiver.transport.sessions) == 40)
            await asyncio.sleep(0.6)  # longer than a recoverable message may stay unacknowledged
            assert waiting(sender) == 40
            # when the disk goes on, then so does the sender
            store.gate.set()
            await until(lambda: not waiting(sender))
            assert (await queue.receive(timeout=10)).text == "0"

    run(main())


def test_a_disk_that_fails_loses_nothing() -> None:
    async def main() -> None:
        store = GatedStore()
        async with serving() as sender, serving(store) as receiver:
            queue = await receiver.manager.create_queue(ORDERS)
            store.fail_commit()
            await send(sender, direct(receiver), "one", "two")
            # the receiver closes the session and forgets; the sender sends again
            await until(lambda: not waiting(sender))
            assert [(await queue.receive(timeout=0)).text for _ in range(2)] == ["one", "two"]
            assert queue.count == 0
            assert receiver.host.failures >= 1

    run(main())


async def get(path: Path, target: str) -> dict[str, object]:
    """What the control socket answers."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(f"GET {target} HTTP/1.1\r\nHost: falconmq\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    found: dict[str, object] = json.loads(body)
    return found


def test_the_control_socket_tells_how_the_service_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as sender:
            receiver = await Service.start(configured(loopback(), tmp_path / "data"))
            await receiver.manager.create_queue(ORDERS)
            await send(sender, direct(receiver), "hello")
            await until(lambda: not waiting(sender))
            status = await get(receiver.configuration.control_socket, "/api/v1/status")
            assert status["listening"] == receiver.network.addresses
            assert status["sessions"] == [
                {
                    "address": sender.configuration.manager.bind,
                    "queue_manager": str(sender.manager.id),
                    "state": "OPEN",
                    "is_initiator": False,
                    "is_direct": True,
                    "messages_sent": 0,
                    "messages_received": 1,
                    "unacknowledged": 0,
                }
            ]
            counters = status["counters"]
            assert isinstance(counters, dict)
            assert counters["connections accepted"] == 1
            await receiver.stop()

    run(main())


def test_without_the_packages_of_the_server_the_protocol_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "falconmq.service.api", None)

    async def main() -> None:
        service = await Service.start(configured(loopback(), tmp_path / "data"))
        assert not service.configuration.control_socket.exists()
        await service.stop()

    run(main())
    assert "install falconmq[server]" in caplog.text


def test_a_service_knows_a_message_that_names_it_by_address_as_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            itself = await service.manager.queue(direct(service))
            await itself.send(Message("hello"))
            assert (await queue.receive(timeout=0)).text == "hello"

    run(main())


def test_the_names_of_a_service_are_its_addresses_and_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "falconmq.toml"
    text = '[manager]\nlocal_names = ["sales"]\nadvertised_address = "203.0.113.9"\n'
    file.write_text(text + 'bind = "127.0.0.2"\n', "utf-8")
    assert local_names(load(file)) == {"sales", "127.0.0.2", "203.0.113.9"}
    file.write_text(text, "utf-8")
    assert {"sales", "127.0.0.1", "203.0.113.9"} <= local_names(load(file))
    assert "0.0.0.0" not in local_names(load(file))


def test_a_read_that_waits_ends_when_the_service_stops() -> None:
    async def main() -> None:
        async with serving() as service:
            queue = await service.manager.create_queue(ORDERS)
            reading = asyncio.create_task(queue.receive(timeout=None))
            await asyncio.sleep(0.02)
        with pytest.raises(falconmq.FalconMQError):
            await reading

    run(main())
