"""systemd hears how the service is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from falconmq.service.readiness import Readiness


def listener(address: str) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.settimeout(60)
    receiver.bind(address)
    return receiver


def test_the_service_manager_hears_of_each_step(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listener(path) as receiver:
        readiness = Readiness({"NOTIFY_SOCKET": path})
        readiness.ready("listening on 127.0.0.2:1801")
        readiness.status("fine\nSTOPPING=1")
        readiness.alive()
        readiness.stopping("bye")
        heard = [receiver.recv(1000).decode() for _ in range(4)]
    assert heard == [
        "READY=1\nSTATUS=listening on 127.0.0.2:1801",
        "STATUS=fine STOPPING=1",  # one line: nothing can be smuggled in
        "WATCHDOG=1",
        "STOPPING=1\nSTATUS=bye",
    ]


def test_an_abstract_socket_is_found() -> None:
    name = f"falconmq-test-{os.getpid()}"
    with listener("\0" + name) as receiver:
        Readiness({"NOTIFY_SOCKET": "@" + name}).alive()
        assert receiver.recv(1000) == b"WATCHDOG=1"


def test_without_a_service_manager_nothing_is_sent() -> None:
    readiness = Readiness({})
    readiness.ready("listening")
    assert readiness.watchdog_interval is None


def test_a_service_manager_that_is_gone_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Readiness({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready("listening")
    assert "cannot notify the service manager" in caplog.text


@pytest.mark.parametrize(
    ("microseconds", "process", "interval"),
    [
        ("30000000", "", 15.0),
        pytest.param("30000000", str(os.getpid()), 15.0, id="ours"),
        ("30000000", "1", None),  # meant for another process
        ("0", "", None),
        ("often", "", None),
        ("", "", None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_asked(
    microseconds: str, process: str, interval: float | None
) -> None:
    environment = {
        "NOTIFY_SOCKET": "/run/notify",
        "WATCHDOG_USEC": microseconds,
        "WATCHDOG_PID": process,
    }
    assert Readiness(environment).watchdog_interval == interval
